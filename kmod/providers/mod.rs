// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The providers, one per file. They know the framework and [`sys`](crate::sys), not each other.
//! Code that several of them share is in four modules: [`function`] for `fbt` and `syscall`,
//! [`event`] for providers with documented events, [`order`] for those whose probes are made on
//! request, and [`sample`] for those that sample interrupted code.

mod cpc;
mod event;
mod fbt;
mod foreign;
mod function;
mod io;
mod ip;
mod kinst;
mod lockstat;
mod order;
mod pending;
mod pid;
mod proc;
mod profile;
mod sample;
mod sched;
mod sdt;
mod syscall;
mod sysinfo;
mod tcp;
mod udp;
mod vminfo;

use crate::framework::{Framework, Registration};
use crate::sys::exports::Exports;
use dtrace_uapi::types::{Attribute, Class, ProviderAttributes, Stability};
use kernel::prelude::*;
use kernel::sync::Arc;

/// All providers in operation. Dropping it ends them.
pub struct Providers {
    _profile: Registration,
    _cpc: Registration,
    _syscall: Registration,
    _sdt: sdt::Handle,
    _proc: Registration,
    _sched: Registration,
    _io: Registration,
    _ip: Registration,
    _tcp: Registration,
    _udp: Registration,
    _lockstat: Registration,
    _sysinfo: Registration,
    _vminfo: Registration,
    _fbt: fbt::Handle,
    _kinst: kinst::Handle,
    _pid: Registration,
    _foreign: Exports<foreign::Foreigners>,
}

/// The module name of the kernel itself in probe descriptions.
const KERNEL: &[u8] = b"vmlinux";

/// An interface that may change at any time.
const PRIVATE: Attribute = Attribute::new(Stability::Private, Stability::Private, Class::Unknown);
/// An interface that may change with a minor release.
const EVOLVING: Attribute = Attribute::new(Stability::Evolving, Stability::Evolving, Class::Isa);

/// The stability of a provider whose modules and functions are internals of the kernel.
fn attributes(args: Attribute) -> ProviderAttributes {
    ProviderAttributes {
        provider: EVOLVING,
        module: PRIVATE,
        func: PRIVATE,
        name: EVOLVING,
        args,
    }
}

/// Copies `text` into `field` and fills the rest with NULs. Truncates the text so that at least one
/// NUL remains.
fn put_text(field: &mut [u8], text: impl IntoIterator<Item = u8>) {
    field.fill(0);
    let room = field.len().saturating_sub(1);
    for (to, from) in field.iter_mut().take(room).zip(text) {
        *to = from;
    }
}

/// Registers all providers except `dtrace`, which belongs to the framework.
pub fn register_all(framework: &Arc<Framework>) -> Result<Providers> {
    let functions = fbt::functions()?;
    Ok(Providers {
        _profile: profile::register(framework)?,
        _cpc: cpc::register(framework)?,
        _syscall: syscall::register(framework, functions.clone())?,
        _sdt: sdt::register(framework)?,
        _proc: proc::register(framework)?,
        _sched: sched::register(framework)?,
        _io: io::register(framework)?,
        _ip: ip::register(framework)?,
        _tcp: tcp::register(framework)?,
        _udp: udp::register(framework)?,
        _lockstat: lockstat::register(framework)?,
        _sysinfo: sysinfo::register(framework)?,
        _vminfo: vminfo::register(framework)?,
        _fbt: fbt::register(framework, functions)?,
        _kinst: kinst::register(framework)?,
        _pid: pid::register(framework)?,
        _foreign: foreign::open(framework)?,
    })
}
