// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The provider `kinst`: single instructions of the kernel.
//!
//! `kinst:MODULE:FUNCTION:OFFSET` fires before the instruction is executed that begins OFFSET bytes (decimal) behind the first of
//! the function. `arg0` is its address, and `regs[]` are all registers. The names are those that FreeBSD gave them.
//!
//! Probes are made to order: a description whose function and name hold no wildcard makes its probe if there is such an
//! instruction and the kernel lets it be stopped at. Nothing of an instruction is kept but the names, and it is looked up anew when
//! it is enabled. Probes go before their module's code does, as the kernel leaves a dead breakpoint where one is set; those that
//! were there before come when the module has started again, at what has their names then.
//!
//! The kernel passes over an instruction that is executed in the midst of another breakpoint's handling, and only counts that. The next
//! firing of the probe tells the consumers how many were lost before it, or, after the last one, the end of their tracing does.

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

/// The offset that a probe's name is; the shortest way to write it, so that an instruction has one name.
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

/// The instruction of that name, if there is one.
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

/// The registered provider as the notifier owns it.
pub struct Followed(Orders<Kinst>);

impl Events for Followed {
    // A probe that is removed before stays among theirs until its jump is undone, and for ever where its module goes first
    // (`kill_optimized_kprobe()` of Linux 7.2 takes it off the list of those to be freed).
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

/// The provider in operation, following modules. Dropping it ends it.
pub type Handle = Pin<KBox<Notifier<Followed>>>;

/// Registers the provider. It has no probes yet.
pub fn register(framework: &Arc<Framework>) -> Result<Handle> {
    Notifier::new(Followed(order::register(framework, Kinst, &[])?))
}
