// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The way from a provider into the consumers: [`fire`].
//!
//! A probe may fire wherever the kernel runs. The first thing done is therefore to take this CPU
//! ([`CpuGuard::enter`]): interrupts go off and a per-CPU flag goes up. Where the flag was up already, the probe was hit by our own
//! work (a traced function that the machine calls, a page fault of a load) or by an NMI on top of it; the
//! firing is left, and counted for each consumer that it is lost to. Behind the guard this CPU's buffers are ours alone, so
//! nothing below takes a lock.
//!
//! With interrupts off we are also within an RCU read-side critical section: the list of ECBs cannot be
//! freed under us. That holds only where RCU is watching, which is why a provider must not call [`fire`] from
//! code that runs outside RCU's sight (ftrace: `FTRACE_OPS_FL_RCU`).
//!
//! Arguments are not fetched here. [`FireArgs`] says where they are, and the machine takes those that the program
//! asks for, so that a probe whose predicate looks at `pid` alone pays for nothing else.

use super::ecb;
use super::machine::KernelMachine;
use super::probe::ProbeRef;
use super::tracer::Tracer;
use crate::sys::faults::Span;
use crate::sys::percpu::{CpuGuard, Nested, NoGracePeriod};
use crate::sys::regs::Regs;
use crate::sys::stack;

/// Where a firing's arguments are.
#[derive(Clone, Copy)]
pub enum Args<'a> {
    /// At hand; those beyond the slice are 0.
    Words(&'a [u64]),
    /// In the registers and on the stack of a kernel function that has just been called.
    Function(&'a Regs),
    /// In the registers that the current task entered the kernel with: `arg0` to `arg5` of a system call.
    Syscall,
    /// In these registers, which the current task entered the kernel with, and on its stack: a function of the program has just been
    /// called.
    Called(&'a Regs),
    /// A function of the program returns: where, and the general registers of its result.
    Returned(&'a [u64; 3]),
    /// To be computed.
    Computed(&'a dyn Arguments),
}

/// Arguments that are computed when a program asks for them.
pub trait Arguments {
    /// Argument `n`; 0 beyond the last. An error: where it would lie nothing can be loaded.
    fn arg(&self, n: usize) -> Result<u64, u64>;
}

/// Why a probe fires. It matters to consumers that do not see everything.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The current task has come by.
    Passage,
    /// An interrupt has stopped the current task, at whatever it was doing.
    Sample,
    /// It is time. Whom that has stopped is of no interest.
    Tick,
}

/// What a provider tells of one firing.
#[derive(Clone, Copy)]
pub struct FireArgs<'a> {
    pub(super) args: Args<'a>,
    pub(super) caller: u64,
    pub(super) errno: i32,
    /// `caller` is an instruction that was interrupted.
    pub(super) sampled: bool,
    pub(super) cause: Cause,
    /// The arguments are the kernel's business.
    pub(super) of_kernel: bool,
    /// The current program has come here by itself, or was interrupted.
    pub(super) in_program: bool,
    pub(super) regs: Option<&'a Regs>,
}

impl<'a> FireArgs<'a> {
    /// A firing with `args`, of which nothing else is known.
    #[inline]
    pub const fn new(args: Args<'a>) -> Self {
        Self {
            args,
            caller: 0,
            errno: 0,
            sampled: false,
            cause: Cause::Passage,
            of_kernel: false,
            in_program: false,
            regs: None,
        }
    }

    /// Why the probe fires, unless somebody has come by.
    #[inline]
    pub const fn cause(mut self, cause: Cause) -> Self {
        self.cause = cause;
        self
    }

    /// The firing interrupted the kernel, or nobody knows what: who has no rights over the kernel is not told where.
    #[inline]
    pub const fn of_kernel(mut self) -> Self {
        self.of_kernel = true;
        self
    }

    /// The kernel address that `stack()` begins with and `caller` gives: for a function's entry and return the
    /// address it returns to. Unless set, the stack begins where our own frames end.
    #[inline]
    pub const fn caller(mut self, addr: u64) -> Self {
        self.caller = addr;
        self
    }

    /// The firing is at no place in the kernel: it marks the beginning or the end of a tracing. There is no stack, and no caller.
    #[inline]
    pub const fn nowhere(self) -> Self {
        self.caller(stack::NOWHERE)
    }

    /// The same, since it has interrupted user code, or user code has come here: the processor has that program's memory.
    #[inline]
    pub const fn in_program(mut self) -> Self {
        self.in_program = true;
        self.nowhere()
    }

    /// The firing interrupted the kernel at `addr`: the stack begins with that instruction, and `caller` is what called the
    /// function that it is in.
    #[inline]
    pub const fn sample(mut self, addr: u64) -> Self {
        self.sampled = true;
        self.caller(addr)
    }

    /// The interrupted kernel registers, for `regs[]`; all of them are valid.
    #[inline]
    pub const fn regs(mut self, regs: &'a Regs) -> Self {
        self.regs = Some(regs);
        self
    }

    /// The error of the system call that returns.
    #[inline]
    pub const fn errno(mut self, errno: i32) -> Self {
        self.errno = errno;
        self
    }
}

/// Fires `probe` for every consumer that has enabled it.
///
/// May be called in any context in which RCU is watching, NMI included. Takes no lock, does not sleep or allocate.
#[inline(always)]
pub fn fire(probe: ProbeRef, args: &FireArgs<'_>) {
    match CpuGuard::enter() {
        Some(guard) => ecb::fire_all(&guard, &KernelMachine::new(&guard, probe, args)),
        None => lost(probe),
    }
}

/// The first user memory that the clauses of `probe` would load if it fired, and that is not there. A provider that can bring it does so
/// before it fires, for a firing takes what there is.
///
/// As [`fire`].
#[cold]
pub fn rehearse(probe: ProbeRef, args: &FireArgs<'_>) -> Option<Span> {
    if !probe.reads_user() {
        return None;
    }
    let guard = CpuGuard::enter()?;
    let missing = ecb::rehearse_all(&guard, &KernelMachine::new(&guard, probe, args))?;
    Some(Span {
        addr: missing.addr,
        size: missing.size as u64,
    })
}

/// Tells those who have enabled `probe` that a firing was lost, once for each clause. Out of RCU's sight nobody can be told;
/// the CPU's own count is all there is.
#[cold]
fn lost(probe: ProbeRef) {
    if let Some(nested) = Nested::after_refusal() {
        tell(probe, &nested, |tracer, n| tracer.lose(n, nested.nmi));
    }
}

/// Tells those who have enabled `probe` that it should have fired `n` times more, some time ago, in probe context, where its
/// provider was not called.
///
/// As [`fire`]; also where that is refused.
#[cold]
pub fn lose(probe: ProbeRef, n: u64) {
    tell_anywhere(probe, |tracer, clauses| {
        tracer.have_lost(n.saturating_mul(clauses))
    });
}

/// For whom a firing would be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Concern {
    /// For nobody.
    Nobody,
    /// For some who do not see the whole machine, and for nobody else.
    Users,
    /// For somebody who does, at least.
    All,
}

/// For whom a firing of `probe` by the current task would be. Hooks on returns are few: a call of which nobody is told is to take none, and one of
/// which users alone are told none of everybody's.
///
/// As [`fire`].
#[inline]
pub fn concern(probe: ProbeRef) -> Concern {
    match probe.is_for_all() {
        true => Concern::All,
        false if concerns_a_user(probe) => Concern::Users,
        false => Concern::Nobody,
    }
}

#[cold]
fn concerns_a_user(probe: ProbeRef) -> bool {
    let args = FireArgs::new(Args::Words(&[]));
    // Where that cannot be asked the return tells of its loss.
    CpuGuard::enter().is_none_or(|guard| {
        let machine = KernelMachine::new(&guard, probe, &args);
        let mut concerned = ecb::concerned(&guard, &machine);
        concerned.next().is_some()
    })
}

/// Tells those who have enabled `probe`, which fires for the current task where a function returns, that it will not.
///
/// As [`lose`].
#[cold]
pub fn unhooked(probe: ProbeRef) {
    let args = FireArgs::new(Args::Words(&[]));
    if let Some(guard) = CpuGuard::enter() {
        let machine = KernelMachine::new(&guard, probe, &args);
        let concerned = ecb::concerned(&guard, &machine);
        concerned.for_each(|at| at.tracer.lose_return(at.count().into()));
    } else if let Some(nested) = Nested::after_refusal() {
        tell(probe, &nested, Tracer::lose_return);
    }
}

/// Tells those who have enabled `probe` that they go without a part of it: something has come that it could not be enabled at.
///
/// As [`lose`].
#[cold]
pub fn miss(probe: ProbeRef) {
    probe.miss();
    tell_anywhere(probe, Tracer::miss);
}

/// Tells them in probe context of its own, or on top of the one that there is.
fn tell_anywhere(probe: ProbeRef, what: impl Fn(&Tracer, u64)) {
    if let Some(guard) = CpuGuard::enter() {
        tell(probe, &guard, what);
    } else if let Some(nested) = Nested::after_refusal() {
        tell(probe, &nested, what);
    }
}

/// Tells each consumer, and how many clauses it has at the probe.
fn tell(probe: ProbeRef, here: &impl NoGracePeriod, what: impl Fn(&Tracer, u64)) {
    for at in probe.enabled().iter(here) {
        what(&at.tracer, at.count().into());
    }
}
