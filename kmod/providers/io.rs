// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The provider `io`: transfers to and from block devices, and what NFS asks its servers for.
//!
//! `start` fires in the task that hands a transfer to the block layer, which is a thread of the kernel for what is written back
//! later; `done` fires wherever the device's interrupt comes. Both name the same blocks, so that `args[0]->b_edev` and
//! `args[0]->b_blkno` tell which `done` belongs to which `start`. On a stack of devices every layer has its own. A write that is to be
//! flushed from its device's cache is done when that is.
//!
//! `wait-start` and `wait-done` are of a task that hands over a transfer and waits for just that. Who waits for a page of the
//! cache, or for a buffer, waits for whatever fills it, and the kernel does not say which transfer that is.
//!
//! NFS is a module that may come after a consumer; its transfers fire from then on. There is nobody who waits for just one of
//! them.
//!
//! Of the file that a transfer is for the name is known where its pages are the file's, so not of direct transfers.

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

/// What every probe of the provider passes.
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

/// The transfers that have been written but not flushed: by their bios, how many bytes.
static WRITTEN: Pending<512> = Pending::new();

fn request_done(passage: &Passage<'_>) {
    if let Some((bio, bytes)) = io::request_goes_on(passage.call) {
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
