// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The provider `io`: transfers to and from block devices, and requests of NFS to its servers.
//!
//! `start` fires in the task that hands a transfer to the block layer; for data that are written
//! back later this is a kernel thread. `done` fires in the context in which the device reports the
//! end, usually an interrupt. Both name the same blocks, so `args[0]->b_edev` and
//! `args[0]->b_blkno` identify the `done` that belongs to a `start`. In a stack of devices each
//! layer has its own transfers. A write that includes a flush of the device's cache is done when
//! the flush is.
//!
//! `wait-start` and `wait-done` fire for a task that submits a transfer and waits for that transfer
//! alone. A task that waits for a page of the cache, or for a buffer, waits for whatever fills it,
//! and the kernel does not report which transfer that is.
//!
//! NFS is a module that may be loaded after a consumer has begun; its transfers fire from then on.
//! They have no wait probes, because no task waits for just one of them.
//!
//! The name of the file is known if the pages belong to the file, so not for direct transfers.

use super::event::{register as register_events, Arg, Definition, Event, Passage, Source};
use super::pending::Pending;
use crate::framework::{Framework, Registration};
use crate::sys::places::io;
use kernel::prelude::*;
use kernel::sync::Arc;

const START: usize = 0;
const DONE: usize = 1;
const WAIT_START: usize = 2;
const WAIT_DONE: usize = 3;

const NATIVE: &str = "dtrace_io_t *";

/// The arguments of every probe of the provider.
const TRANSFER: [Arg; 3] = [
    Arg::translated(NATIVE, "bufinfo_t *", 0),
    Arg::translated(NATIVE, "devinfo_t *", 0),
    Arg::translated(NATIVE, "fileinfo_t *", 0),
];

/// In the order of the numbers above.
static PROBES: [Event; 4] = [
    Event::new("start", &TRANSFER),
    Event::new("done", &TRANSFER),
    Event::new("wait-start", &TRANSFER),
    Event::new("wait-done", &TRANSFER),
];

static SOURCES: [Source; 12] = [
    Source::new(io::QUEUED, &[START], queued),
    Source::new(io::REQUESTED[0], &[START], requested),
    Source::new(io::REQUESTED[1], &[START], requested),
    Source::new(io::REQUESTED[2], &[START], requested),
    Source::new(io::REQUEST_DONE, &[DONE], request_done),
    Source::new(io::DONE, &[DONE], done),
    Source::new(io::WAIT, &[WAIT_START], waits),
    Source::new(io::WAITED, &[WAIT_DONE], waited),
    Source::new(io::ASKED[0], &[START], asked),
    Source::new(io::ASKED[1], &[START], asked),
    Source::new(io::ANSWERED[0], &[DONE], answered),
    Source::new(io::ANSWERED[1], &[DONE], answered),
];

static IO: Definition = Definition {
    name: "io",
    probes: &PROBES,
    sources: &SOURCES,
    begin: || WRITTEN.clear(),
};

/// Registers the provider and creates its probes.
pub fn register(framework: &Arc<Framework>) -> Result<Registration> {
    register_events(framework, &IO)
}

fn queued(passage: &Passage<'_>) {
    if let Some(transfer) = io::queued(passage.call) {
        passage.fire(START, &[transfer.addr()]);
    }
}

fn requested(passage: &Passage<'_>) {
    passage.fire(START, &[io::requested(passage.call).addr()]);
}

/// Transfers that have been written but not flushed: the size in bytes, by the address of the bio.
static WRITTEN: Pending<512> = Pending::new();

fn request_done(passage: &Passage<'_>) {
    if let Some((bio, bytes)) = io::request_goes_on(passage.call) {
        // Without a slot the size is not known when the flush ends.
        WRITTEN.begin(bio, u64::from(bytes));
        return;
    }
    let written = |bio| Some(WRITTEN.end(bio)? as u32);
    io::request_done(passage.call, written, |transfer| {
        passage.fire(DONE, &[transfer.addr()]);
    });
}

fn done(passage: &Passage<'_>) {
    passage.fire(DONE, &[io::done(passage.call).addr()]);
}

fn waits(passage: &Passage<'_>) {
    passage.fire(WAIT_START, &[io::waits(passage.call).addr()]);
}

fn waited(passage: &Passage<'_>) {
    passage.fire(WAIT_DONE, &[io::waited(passage.call).addr()]);
}

fn asked(passage: &Passage<'_>) {
    passage.fire(START, &[io::asked(passage.call).addr()]);
}

fn answered(passage: &Passage<'_>) {
    passage.fire(DONE, &[io::answered(passage.call).addr()]);
}
