// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! What may exist once only, made for the module's entry.

use super::arena::{Arena, Strings};
use super::rculist::Writer;
use crate::framework::Parts;

/// The framework's parts that outlive every firing. Called by the module's entry alone, once.
///
/// The module drops the framework, and with it these parts, in its unload: after the device is gone, so that there are no consumers,
/// and after the providers, each of which waits until no CPU is in its callbacks. References to probes and names live in
/// those callbacks, in providers and in consumers only.
pub fn parts() -> Parts {
    // SAFETY: By the above nothing refers to probes and names when they go.
    let (probes, texts, names) = unsafe { (Arena::new(1024), Strings::new(), Arena::new(1024)) };
    Parts {
        probes,
        texts,
        names,
        // SAFETY: The module's entry runs once.
        writer: unsafe { Writer::new() },
    }
}
