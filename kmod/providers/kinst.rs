// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The provider `kinst`: single instructions of the kernel.
//!
//! `kinst:MODULE:FUNCTION:OFFSET` fires before an instruction is executed: the one that begins
//! OFFSET bytes (decimal) after the start of the function. `arg0` is its address, and `regs[]` has
//! all registers. The names are FreeBSD's.
//!
//! Probes are made on request: a description whose function and name hold no wildcard creates its
//! probe if such an instruction exists and the kernel allows a breakpoint at it. Only the names are
//! kept; the instruction is looked up again when the probe is enabled. The probes of a module are
//! removed before its code goes, because the kernel would leave a dead breakpoint behind. When the
//! module has started again, the probes that existed before are made again, at the instructions
//! that have their names then.
//!
//! If an instruction is executed while the kernel handles another breakpoint, the kernel skips the
//! probe and only counts that. The consumers learn the number of these drops when the probe fires
//! next, or else when their tracing ends.

use super::order::{self, Maker, Orders};
use super::{attributes, KERNEL, PRIVATE};
use crate::framework::{fire, lose, Args, Description, FireArgs, Framework, ProbeRef};
use crate::sys::instruction::{Breakpoint, Hit, Instruction};
use crate::sys::module::{Events, Module, Notifier};
use crate::sys::regs::Regs;
use dtrace_uapi::types::ProviderAttributes;
use kernel::prelude::*;
use kernel::sync::Arc;

/// What a breakpoint fires.
struct Stop(ProbeRef);

impl Hit for Stop {
    fn missed(&self, n: u64) {
        lose(self.0, n);
    }

    fn hit(&self, regs: &Regs) {
        let words = [regs.ip()];
        let args = FireArgs::new(Args::Words(&words));
        fire(self.0, &args.sample(regs.ip()).regs(regs));
    }
}

/// Parses a probe's name as an offset. Leading zeros are refused, so that an instruction has one
/// name only.
fn offset(name: &[u8]) -> Option<usize> {
    if name.is_empty() || name.len() > 1 && name.starts_with(b"0") {
        return None;
    }
    let mut value = 0usize;
    for digit in name {
        let digit = digit.checked_sub(b'0').filter(|digit| *digit < 10)?;
        value = value.checked_mul(10)?.checked_add(usize::from(digit))?;
    }
    Some(value)
}

/// Looks up the instruction of this name.
fn find([module, func]: [&[u8]; 2], name: &[u8]) -> Result<Option<Instruction>> {
    let Some(offset) = offset(name) else {
        return Ok(None);
    };
    let module = (module != KERNEL).then_some(module);
    Instruction::find(module, func, offset)
}

/// The provider.
struct Kinst;

impl Maker for Kinst {
    type Running = Breakpoint<Stop>;

    const NAME: &'static str = "kinst";

    fn attributes(&self) -> ProviderAttributes {
        attributes(PRIVATE)
    }

    fn place<'a>(desc: &Description<'a>) -> [&'a [u8]; 2] {
        let module = match desc.module {
            b"" => KERNEL,
            module => module,
        };
        [module, desc.func]
    }

    fn order(&self, place: [&[u8]; 2], name: &[u8]) -> Result<Option<u64>> {
        let can = match find(place, name)? {
            Some(at) => at.can_stop()?,
            None => false,
        };
        Ok(can.then_some(0))
    }

    fn start(&self, probe: ProbeRef) -> Result<Self::Running> {
        let names = probe.names();
        let at = find([names.module, names.func], names.name)?.ok_or(ENOENT)?;
        Breakpoint::set(at, Stop(probe))
    }

    fn stop(all: KVVec<Self::Running>) {
        Breakpoint::remove(all);
    }

    fn settle(running: &Self::Running) {
        running.settle();
    }
}

/// The registered provider, as the notifier owns it.
pub struct Followed(Orders<Kinst>);

impl Events for Followed {
    // If a probe is removed before kprobes handle the module's end, kprobes keep it on a list until
    // its jump is undone. If the module goes first, it stays there for ever (in Linux 7.2
    // `kill_optimized_kprobe()` takes it off the list of those to be freed).
    const AFTER_KPROBES: bool = true;

    fn live(&self, module: &Module) {
        if let Err(error) = self.0.remember(module.name()) {
            pr_warn!("kinst: no probes for a module that is back: {:?}\n", error);
            self.0.miss(module.name());
        }
    }

    fn going(&self, module: &Module) {
        self.0.forget(module.name());
    }
}

/// The provider in operation, which follows modules. Dropping it ends it.
pub type Handle = Pin<KBox<Notifier<Followed>>>;

/// Registers the provider. It has no probes yet.
pub fn register(framework: &Arc<Framework>) -> Result<Handle> {
    Notifier::new(Followed(order::register(framework, Kinst, &[])?))
}
