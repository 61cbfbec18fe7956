// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The providers, one a file. They know the framework and [`sys`](crate::sys), not each other.

pub mod dtrace;
mod fbt;
mod function;
mod profile;
mod sdt;
mod syscall;

use crate::framework::{Framework, Registration};
use kernel::prelude::*;
use kernel::sync::Arc;

/// Providers in operation. Dropping it ends them.
pub struct Providers {
    _profile: Registration,
    _syscall: Registration,
    _sdt: Registration,
    _fbt: fbt::Handle,
}

/// Registers all providers but `dtrace`, which the framework has itself.
pub fn register_all(framework: &Arc<Framework>) -> Result<Providers> {
    Ok(Providers {
        _profile: profile::register(framework)?,
        _syscall: syscall::register(framework)?,
        _sdt: sdt::register(framework)?,
        _fbt: fbt::register(framework)?,
    })
}
