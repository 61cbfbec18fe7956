// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The provider `vminfo`: the statistics of virtual memory. Each statistic is a probe that fires
//! when it grows; `arg0` is the growth.
//!
//! There is no `arg1` that points to a counter, because Linux keeps no such counters. These probes
//! are missing: those of things that Linux does not do (`execfree`, `execpgin`, `execpgout`,
//! `hat_fault`, `pgfrec`, `pgrec`, `pgswapin`, `pgswapout`, `rev`, `softlock`, `swapin` and
//! `swapout` of whole processes), those of things that Linux does without an event (`anonfree`,
//! `cow_fault`, `dfree`, `fsfree`), and those that correspond to `io:::start` (`fspgin`, `fspgout`,
//! `pgin`, `pgout`, `pgpgin`, `pgpgout`).

use super::event::{register as register_events, Arg, Definition, Event, Passage, Source};
use crate::framework::{Framework, Registration};
use crate::sys::places::statistics;
use kernel::prelude::*;
use kernel::sync::Arc;

const ANONPGIN: usize = 0;
const ANONPGOUT: usize = 1;
const AS_FAULT: usize = 2;
const KERNEL_ASFLT: usize = 3;
const MAJ_FAULT: usize = 4;
const PGRRUN: usize = 5;
const PROT_FAULT: usize = 6;
const SCAN: usize = 7;
const ZFOD: usize = 8;

const GROWTH: [Arg; 1] = [Arg::plain("uint64_t", 0)];

/// In the order of the numbers above.
static PROBES: [Event; 9] = [
    Event::new("anonpgin", &GROWTH),
    Event::new("anonpgout", &GROWTH),
    Event::new("as_fault", &GROWTH),
    Event::new("kernel_asflt", &GROWTH),
    Event::new("maj_fault", &GROWTH),
    Event::new("pgrrun", &GROWTH),
    Event::new("prot_fault", &GROWTH),
    Event::new("scan", &GROWTH),
    Event::new("zfod", &GROWTH),
];

static SOURCES: [Source; 9] = [
    Source::new(statistics::SWAP_IN, &[ANONPGIN], |p| pages(p, ANONPGIN)),
    Source::new(statistics::SWAP_OUT, &[ANONPGOUT], |p| pages(p, ANONPGOUT)),
    Source::new(statistics::KERNEL_FAULT, &[KERNEL_ASFLT], kernel_fault),
    Source::new(statistics::FAULT_DONE, &[AS_FAULT, MAJ_FAULT], fault_done),
    Source::new(statistics::RECLAIM, &[PGRRUN], |p| p.fire(PGRRUN, &[1])),
    Source::new(statistics::PROTECTION_FAULT, &[PROT_FAULT], |p| {
        p.fire(PROT_FAULT, &[1])
    }),
    Source::new(statistics::SCAN, &[SCAN], scan),
    Source::new(statistics::ZERO_FILL, &[ZFOD], |p| p.fire(ZFOD, &[1])),
    Source::new(statistics::ZERO_FILL_HUGE, &[ZFOD], |p| pages(p, ZFOD)),
];

static VMINFO: Definition = Definition {
    name: "vminfo",
    probes: &PROBES,
    sources: &SOURCES,
    begin: || {},
};

/// Registers the provider and creates its probes.
pub fn register(framework: &Arc<Framework>) -> Result<Registration> {
    register_events(framework, &VMINFO)
}

fn pages(passage: &Passage<'_>, probe: usize) {
    passage.fire(probe, &[statistics::pages(passage.call)]);
}

fn kernel_fault(passage: &Passage<'_>) {
    if statistics::is_own(passage.call) {
        passage.fire(KERNEL_ASFLT, &[1]);
    }
}

fn fault_done(passage: &Passage<'_>) {
    if !statistics::is_retried(passage.call) {
        passage.fire(AS_FAULT, &[1]);
    }
    if statistics::was_major(passage.call) {
        passage.fire(MAJ_FAULT, &[1]);
    }
}

fn scan(passage: &Passage<'_>) {
    match statistics::scanned(passage.call) {
        0 => {}
        pages => passage.fire(SCAN, &[pages]),
    }
}
