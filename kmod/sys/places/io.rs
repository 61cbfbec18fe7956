// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Transfers of block devices and of NFS.
//!
//! What a file system hands to the block layer is a bio. A device that works by requests has it cut to its limits, and
//! merged with its neighbours; each piece then is a transfer, that begins when it gets its request and ends with it. Other devices
//! take a bio as it is.
//!
//! A bio counts down what is left of it, so that where it lay must be read before the end: the end of a request is told
//! before its bios are touched.
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
        // SAFETY: The bio is alive, for the place that passes it is at work on it.
        Self::told(|io| unsafe { bindings::dtrace_io_of_bio(bio, error, io) })
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

/// Calls `f` with each of its transfers that is complete.
#[inline]
pub fn request_done(call: &Call<'_>, mut f: impl FnMut(&Transfer)) {
    let mut left = u64::from(call.word(2) as u32);
    // SAFETY: The request is alive, and so are the bios that hang at it.
    unsafe {
        let error = bindings::dtrace_block_errno(call.word(1) as u8);
        let mut bio = bindings::dtrace_request_bio(call.word(0) as *const _);
        while !bio.is_null() {
            let Some(rest) = left.checked_sub(bindings::dtrace_bio_bytes(bio)) else {
                return;
            };
            f(&Transfer::of_bio(bio, error));
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
