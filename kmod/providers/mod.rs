// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The providers, a file each.

pub mod dtrace;

use crate::framework::{Framework, Registration};
use kernel::alloc::KVVec;
use kernel::prelude::*;
use kernel::sync::Arc;

/// The registered providers but `dtrace`, which is the framework's own.
pub struct Providers {
    _registered: KVVec<Registration>,
}

/// Registers every provider and creates its probes.
pub fn register_all(_framework: &Arc<Framework>) -> Result<Providers> {
    Ok(Providers {
        _registered: KVVec::new(),
    })
}
