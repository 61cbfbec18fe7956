// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The values that may exist only once, for the module's entry point.

use super::arena::{Arena, Strings};
use super::rculist::Writer;
use core::sync::atomic::{AtomicBool, Ordering};
use kernel::prelude::*;

/// Memory that must outlive every firing, and the right to change what probe context reads.
pub struct Parts<P: Sync + 'static, N: Sync + 'static> {
    /// For probes.
    pub probes: Arena<P>,
    /// For the strings of names.
    pub texts: Strings,
    /// For names.
    pub names: Arena<N>,
    /// For lists of ECBs.
    pub writer: Writer,
}

/// Returns the parts on the first call, and `EBUSY` on every later one.
///
/// The module drops them when it is unloaded: after the device is gone, so that there are no
/// consumers, and after the providers, each of which waits until no CPU is in its callbacks.
/// References to probes and names exist only in those callbacks, in providers and in consumers.
///
/// Nothing leads to a value that is retired before that. The table retires a probe when its
/// provider has disarmed it and uses it no more, and no consumer has an ECB of it, not even one
/// that was taken away. It retires a name and its strings with the last probe that uses them. That
/// leaves callbacks that had begun, for which a grace period waits (INV-21).
pub fn parts<P: Sync, N: Sync>() -> Result<Parts<P, N>> {
    static TAKEN: AtomicBool = AtomicBool::new(false);

    if TAKEN.swap(true, Ordering::Relaxed) {
        return Err(EBUSY);
    }
    // SAFETY: `Arena::new` and `Strings::new` require that nothing refers to a value when it is
    // overwritten or when the arena is dropped. The text above says why that holds, for single
    // values and for all of them.
    let (probes, texts, names) = unsafe { (Arena::new(1024), Strings::new(), Arena::new(1024)) };
    Ok(Parts {
        probes,
        texts,
        names,
        // SAFETY: There must be only one writer. `TAKEN` makes sure that this line is reached once.
        writer: unsafe { Writer::new() },
    })
}
