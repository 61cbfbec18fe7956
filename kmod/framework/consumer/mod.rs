// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! A consumer, from the `open()` of its file to the last close.
//!
//! What everybody knows of it is the [`Consumer`]. It is shared: by the nodes of its ECBs, and by
//! what runs beside it while it traces. One [`OwnedConsumer`] owns it and is its life. It is
//! opened, enables, goes and stops, and its drop takes back everything that the consumer has
//! (INV-23). The owner is the open file, or the anonymous state until a file [claims](super::claim)
//! that.

mod cleaner;
mod owned;
mod shared;

pub use owned::{OwnedConsumer, Tracing};
pub use shared::Consumer;
