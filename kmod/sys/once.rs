// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! What may exist once only, made for the module's entry.

use super::arena::{Arena, Strings};
use super::rculist::Writer;
use core::sync::atomic::{AtomicBool, Ordering};
use kernel::prelude::*;

/// Memory that must outlive every firing, and the right to change what probe context reads.
pub struct Parts<P: Sync + 'static, N: Sync + 'static> {
    /// For probes.
    pub probes: Arena<P>,
    /// For the texts of names.
    pub texts: Strings,
    /// For names.
    pub names: Arena<N>,
    /// For lists of ECBs.
    pub writer: Writer,
}

/// The parts, once: `EBUSY` afterwards.
///
/// The module drops them in its unload: after the device is gone, so that there are no consumers, and after the providers,
/// each of which waits until no CPU is in its callbacks. References to probes and names live in those callbacks, in providers
/// and in consumers only.
///
/// Of these, what is retired before that is led to by none: the table retires a probe when it is disarmed, which its provider has done,
/// who makes no use of it any more, and when no consumer has an ECB of it, not even one that was taken away; a name, and its text,
/// with the last probe that is made of it. What is left are callbacks that had begun, which a grace period waits for.
pub fn parts<P: Sync, N: Sync>() -> Result<Parts<P, N>> {
    static TAKEN: AtomicBool = AtomicBool::new(false);

    if TAKEN.swap(true, Ordering::Relaxed) {
        return Err(EBUSY);
    }
    // SAFETY: By the above nothing refers to probes and names when they go, be it one or all.
    let (probes, texts, names) = unsafe { (Arena::new(1024), Strings::new(), Arena::new(1024)) };
    Ok(Parts {
        probes,
        texts,
        names,
        // SAFETY: There is no other, for the parts are given out once.
        writer: unsafe { Writer::new() },
    })
}
