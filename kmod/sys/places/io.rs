// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Transfers of block devices and of NFS.
//!
//! What a file system hands to the block layer is a bio. A device that works by requests has it cut to its limits, and
//! merged with its neighbours; each piece then is a transfer, that begins when it gets its request and ends with it. Other devices
//! take a bio as it is.
//!
//! A bio counts down what is left of it, so that where it lay must be read before the end: the end of a request is told
//! before its bios are touched. Only where the block layer itself flushes the device's cache for a write, is it told twice: when the
//! data are written, and, with a bio that has been counted down, when the flush is done. The transfer ends with the second.
//!
//! NFS asks its server for a range of a file at a time, and tells of every answer with which it gets on. Where one is
//! short, and not for the file's end, it asks again without telling.

use super::{At, Call};
use crate::bindings;

/// A transfer: where it lies in memory, laid out as `struct dtrace_io`.
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

    /// The transfer of a bio that was of `bytes` bytes, if it has been counted down; 0: that is not known.
    #[inline]
    fn of_counted_bio(bio: *const bindings::bio, bytes: u32, error: i32) -> Self {
        // SAFETY: The bio is alive, for the place that passes it is at work on it.
        Self::told(|io| unsafe { bindings::dtrace_io_of_bio(bio, bytes, error, io) })
    }

    /// Its address, as long as it stays.
    #[inline]
    pub fn addr(&self) -> u64 {
        core::ptr::from_ref(&self.0) as u64
    }
}

/// A bio is handed to its device.
pub const QUEUED: At = At::Tracepoint("block_bio_queue");

/// The transfer, if it is one already.
#[inline]
pub fn queued(call: &Call<'_>) -> Option<Transfer> {
    let bio = call.word(0) as *const bindings::bio;
    // SAFETY: The bio is alive.
    let later = unsafe { bindings::dtrace_bio_becomes_request(bio) };
    (!later).then(|| Transfer::of_bio(bio, 0))
}

/// A piece of a bio gets a request, of its own or with others.
pub const REQUESTED: [At; 3] = [
    At::Tracepoint("block_getrq"),
    At::Tracepoint("block_bio_backmerge"),
    At::Tracepoint("block_bio_frontmerge"),
];

/// The transfer.
#[inline]
pub fn requested(call: &Call<'_>) -> Transfer {
    Transfer::of_bio(call.word(0) as *const _, 0)
}

/// A request, or a part of it, has been carried out.
pub const REQUEST_DONE: At = At::Tracepoint("block_rq_complete");

/// The bio of a transfer that goes on, for its data have been written but not flushed, and how many bytes it has.
#[inline]
pub fn request_goes_on(call: &Call<'_>) -> Option<(u64, u32)> {
    let request = call.word(0) as *const _;
    // SAFETY: The request is alive, and so is the bio that hangs at it.
    unsafe {
        let bio = bindings::dtrace_request_bio(request);
        let goes_on = !bio.is_null() && bindings::dtrace_request_goes_on(request);
        goes_on.then(|| (bio as u64, bindings::dtrace_bio_bytes(bio)))
    }
}

/// Calls `f` with each of its transfers that is complete. `written` is asked for the bytes of a bio that went on.
#[inline]
pub fn request_done(
    call: &Call<'_>,
    mut written: impl FnMut(u64) -> Option<u32>,
    mut f: impl FnMut(&Transfer),
) {
    let mut left = call.word(2) as u32;
    // SAFETY: The request is alive, and so are the bios that hang at it.
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

/// A bio that never was a request has been carried out.
pub const DONE: At = At::Tracepoint("block_bio_complete");

/// The transfer.
#[inline]
pub fn done(call: &Call<'_>) -> Transfer {
    let bio = call.word(1) as *const _;
    // SAFETY: The bio is alive.
    Transfer::of_bio(bio, unsafe { bindings::dtrace_bio_error(bio) })
}

/// The current task hands a bio over and waits for its end.
pub const WAIT: At = At::NestedEntry([c"submit_bio_wait", c"bio_await"]);

/// The bio.
#[inline]
pub fn waits(call: &Call<'_>) -> Transfer {
    Transfer::of_bio(call.word(0) as *const _, 0)
}

/// It has waited.
pub const WAITED: At = At::NestedReturn([c"submit_bio_wait", c"bio_await"]);

/// The bio, which is the waiting task's again.
#[inline]
pub fn waited(call: &Call<'_>) -> Transfer {
    let bio = call.word(1) as *const _;
    // SAFETY: The bio is alive: who waits for it owns it.
    Transfer::of_bio(bio, unsafe { bindings::dtrace_bio_error(bio) })
}

/// NFS asks for a read or a write.
pub const ASKED: [At; 2] = [
    At::InModule("nfs", "nfs_initiate_read"),
    At::InModule("nfs", "nfs_initiate_write"),
];

/// What it asks for.
#[inline]
pub fn asked(call: &Call<'_>) -> Transfer {
    // SAFETY: The header is alive until NFS has told of the answer, and this fills the transfer alone.
    Transfer::told(|io| unsafe { bindings::dtrace_io_of_nfs(call.word(0) as *const _, io) })
}

/// The server has answered, or will not.
pub const ANSWERED: [At; 2] = [
    At::InModule("nfs", "nfs_readpage_done"),
    At::InModule("nfs", "nfs_writeback_done"),
];

/// What it was asked for, and how much of that it did.
#[inline]
pub fn answered(call: &Call<'_>) -> Transfer {
    let (task, hdr) = (call.word(0) as *const _, call.word(1) as *const _);
    // SAFETY: The header and the task are alive, and this fills the transfer alone.
    Transfer::told(|io| unsafe { bindings::dtrace_io_end_nfs(hdr, task, io) })
}
