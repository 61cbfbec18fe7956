// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Transfers of block devices and of NFS.
//!
//! A file system passes a bio to the block layer. A device that works by requests has it split to
//! its limits, and merged with its neighbours. Each piece then is a transfer, which begins when the
//! piece gets its request and ends with the request. Other devices take a bio as it is.
//!
//! A bio counts down what is left of it, so its extent must be read before its end: the end of a
//! request is reported before its bios are touched. Only if the block layer itself flushes the
//! device's cache for a write is the end reported twice: when the data are written, and, with a bio
//! that has been counted down, when the flush is done. The transfer ends with the second report.
//!
//! NFS asks its server for a range of a file at a time, and reports every answer with which it
//! makes progress. If an answer is short, and not because of the file's end, it asks again without
//! a report.

use super::{At, Call};
use crate::bindings;

/// A transfer, laid out as `struct dtrace_io`.
pub struct Transfer(bindings::dtrace_io);

impl Transfer {
    #[inline]
    fn told(tell: impl FnOnce(&mut bindings::dtrace_io)) -> Self {
        let mut io = bindings::dtrace_io::default();
        tell(&mut io);
        Self(io)
    }

    #[inline]
    fn of_bio(bio: *const bindings::bio, error: i32) -> Self {
        Self::of_counted_bio(bio, 0, error)
    }

    /// Returns the transfer of a bio that was of `bytes` bytes, if the bio has been counted down;
    /// 0: that is not known.
    #[inline]
    fn of_counted_bio(bio: *const bindings::bio, bytes: u32, error: i32) -> Self {
        // SAFETY: The bio must be alive. The place that passes it is at work on it, and this runs
        // during that.
        Self::told(|io| unsafe { bindings::dtrace_io_of_bio(bio, bytes, error, io) })
    }

    /// Returns its address, which is valid as long as the value is neither moved nor dropped.
    #[inline]
    pub fn addr(&self) -> u64 {
        core::ptr::from_ref(&self.0) as u64
    }
}

/// A bio is passed to its device.
pub const QUEUED: At = At::Tracepoint("block_bio_queue");

/// Returns the transfer, if the bio is a transfer already.
#[inline]
pub fn queued(call: &Call<'_>) -> Option<Transfer> {
    let bio = call.word(0) as *const bindings::bio;
    // SAFETY: The bio must be alive; the tracepoint passes one that is being submitted.
    let later = unsafe { bindings::dtrace_bio_becomes_request(bio) };
    (!later).then(|| Transfer::of_bio(bio, 0))
}

/// A piece of a bio gets a request, its own or one shared with others.
pub const REQUESTED: [At; 3] = [
    At::Tracepoint("block_getrq"),
    At::Tracepoint("block_bio_backmerge"),
    At::Tracepoint("block_bio_frontmerge"),
];

/// Returns the transfer.
#[inline]
pub fn requested(call: &Call<'_>) -> Transfer {
    Transfer::of_bio(call.word(0) as *const _, 0)
}

/// A request, or a part of it, has been carried out.
pub const REQUEST_DONE: At = At::Tracepoint("block_rq_complete");

/// Returns the bio of a transfer that goes on, because its data have been written but not flushed,
/// and the bio's bytes.
#[inline]
pub fn request_goes_on(call: &Call<'_>) -> Option<(u64, u32)> {
    let request = call.word(0) as *const _;
    // SAFETY: The tracepoint passes a request that is being completed, so the request and its bio
    // are alive.
    unsafe {
        let bio = bindings::dtrace_request_bio(request);
        let goes_on = !bio.is_null() && bindings::dtrace_request_goes_on(request);
        goes_on.then(|| (bio as u64, bindings::dtrace_bio_bytes(bio)))
    }
}

/// Calls `f` with each transfer of the request that is complete. `written` returns the bytes of a
/// bio that went on before.
#[inline]
pub fn request_done(
    call: &Call<'_>,
    mut written: impl FnMut(u64) -> Option<u32>,
    mut f: impl FnMut(&Transfer),
) {
    let mut left = call.word(2) as u32;
    // SAFETY: The tracepoint passes a request that is being completed. The request and its bios are
    // alive until after the tracepoint.
    unsafe {
        let error = bindings::dtrace_block_errno(call.word(1) as u8);
        let mut bio = bindings::dtrace_request_bio(call.word(0) as *const _);
        while !bio.is_null() {
            let bytes = bindings::dtrace_bio_bytes(bio);
            let Some(rest) = left.checked_sub(bytes) else {
                return;
            };
            let counted = if bytes == 0 {
                written(bio as u64)
            } else {
                None
            };
            f(&Transfer::of_counted_bio(bio, counted.unwrap_or(0), error));
            left = rest;
            bio = bindings::dtrace_bio_next(bio);
        }
    }
}

/// A bio that was never a request has been carried out.
pub const DONE: At = At::Tracepoint("block_bio_complete");

/// Returns the transfer.
#[inline]
pub fn done(call: &Call<'_>) -> Transfer {
    let bio = call.word(1) as *const _;
    // SAFETY: The bio must be alive; the tracepoint passes one that is being completed.
    Transfer::of_bio(bio, unsafe { bindings::dtrace_bio_error(bio) })
}

/// The current task submits a bio and waits for its end.
pub const WAIT: At = At::NestedEntry([c"submit_bio_wait", c"bio_await"]);

/// Returns the transfer.
#[inline]
pub fn waits(call: &Call<'_>) -> Transfer {
    Transfer::of_bio(call.word(0) as *const _, 0)
}

/// The current task has waited.
pub const WAITED: At = At::NestedReturn([c"submit_bio_wait", c"bio_await"]);

/// Returns the transfer of the bio, which belongs to the waiting task again.
#[inline]
pub fn waited(call: &Call<'_>) -> Transfer {
    let bio = call.word(1) as *const _;
    // SAFETY: The bio must be alive; the task that has waited for it owns it.
    Transfer::of_bio(bio, unsafe { bindings::dtrace_bio_error(bio) })
}

/// NFS asks its server for a read or a write.
pub const ASKED: [At; 2] = [
    At::InModule("nfs", "nfs_initiate_read"),
    At::InModule("nfs", "nfs_initiate_write"),
];

/// Returns what it asks for.
#[inline]
pub fn asked(call: &Call<'_>) -> Transfer {
    // SAFETY: The header must be alive. NFS keeps it until it has reported the answer. Only `io` is
    // written.
    Transfer::told(|io| unsafe { bindings::dtrace_io_of_nfs(call.word(0) as *const _, io) })
}

/// The server has answered, or will not.
pub const ANSWERED: [At; 2] = [
    At::InModule("nfs", "nfs_readpage_done"),
    At::InModule("nfs", "nfs_writeback_done"),
];

/// Returns what the server was asked for, with how much of it was done.
#[inline]
pub fn answered(call: &Call<'_>) -> Transfer {
    let (task, hdr) = (call.word(0) as *const _, call.word(1) as *const _);
    // SAFETY: The header and the task must be alive; NFS is handling the answer. Only `io` is
    // written.
    Transfer::told(|io| unsafe { bindings::dtrace_io_end_nfs(hdr, task, io) })
}
