// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The way from a provider to the consumers: [`fire`].
//!
//! A probe may fire wherever the kernel runs. So the first step takes this CPU
//! ([`CpuGuard::enter`]): interrupts go off and a per-CPU flag is set (INV-4). If the flag was set
//! already, the probe was hit by the module's own work (a traced function that the machine calls, a
//! page fault of a load) or by an NMI on top of it. That firing is not executed, and is counted for
//! each consumer at the probe. With the guard held, this CPU's buffers belong to this firing alone,
//! so nothing below takes a lock.
//!
//! Code with interrupts off is an RCU read-side critical section, so no node of the list of ECBs is
//! freed during a firing. That holds only where RCU is watching, so [`CpuGuard::enter`] refuses
//! elsewhere. Such a firing is counted for the CPU alone, because no list of consumers may be read
//! there.
//!
//! Arguments are not fetched here. [`FireArgs`] says where they are, and the machine fetches those
//! that a program reads. So a probe whose predicate reads only `pid` pays for nothing else.

use super::consumer::Consumer;
use super::ecb;
use super::machine::KernelMachine;
use super::probe::ProbeRef;
use crate::sys::faults::Span;
use crate::sys::percpu::{CpuGuard, Nested, NoGracePeriod};
use crate::sys::regs::Regs;
use crate::sys::stack;

/// Where the arguments of a firing are.
#[derive(Clone, Copy)]
pub enum Args<'a> {
    /// In this slice; those beyond it are 0.
    Words(&'a [u64]),
    /// In the registers and on the stack of a kernel function that has just been called.
    Function(&'a Regs),
    /// In the registers with which the current task entered the kernel: `arg0` to `arg5` of a
    /// system call.
    Syscall,
    /// In these registers, with which the current task entered the kernel, and on its stack: a
    /// function of the program has just been called.
    Called(&'a Regs),
    /// A function of the program returns: the place of the return, and the general registers of its
    /// result.
    Returned(&'a [u64; 3]),
    /// Computed when a program reads them.
    Computed(&'a dyn Arguments),
}

/// Arguments that are computed when a program reads them.
pub trait Arguments {
    /// Returns argument `n`; 0 beyond the last one. The error is the address of an argument that
    /// cannot be loaded.
    fn arg(&self, n: usize) -> Result<u64, u64>;
}

/// Why a probe fires. This matters for consumers that do not see everything.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The current task has reached the probe.
    Passage,
    /// An interrupt has stopped the current task, whatever it was doing.
    Sample,
    /// A time has come. Which task the interrupt has stopped does not matter.
    Tick,
}

/// What a provider tells of one firing.
#[derive(Clone, Copy)]
pub struct FireArgs<'a> {
    pub(super) args: Args<'a>,
    pub(super) caller: u64,
    pub(super) errno: i32,
    /// `caller` is the address of an interrupted instruction.
    pub(super) sampled: bool,
    pub(super) cause: Cause,
    /// The arguments tell of the kernel's inside.
    pub(super) of_kernel: bool,
    /// The current program has reached the probe itself, or was interrupted in user mode.
    pub(super) in_program: bool,
    pub(super) regs: Option<&'a Regs>,
}

impl<'a> FireArgs<'a> {
    /// A firing with `args` of which nothing else is known.
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

    /// Sets why the probe fires; unless set, [`Cause::Passage`].
    #[inline]
    pub const fn cause(mut self, cause: Cause) -> Self {
        self.cause = cause;
        self
    }

    /// Notes that the firing interrupted the kernel, or unknown code. Consumers without rights over
    /// the kernel do not see where.
    #[inline]
    pub const fn of_kernel(mut self) -> Self {
        self.of_kernel = true;
        self
    }

    /// Sets the kernel address with which `stack()` begins and which `caller` returns: for the
    /// entry and the return of a function, the address that it returns to. Unless set, the stack
    /// begins behind the module's own frames.
    #[inline]
    pub const fn caller(mut self, addr: u64) -> Self {
        self.caller = addr;
        self
    }

    /// Notes that the firing is at no place in the kernel, for example because it marks the
    /// beginning or the end of a tracing. There is no kernel stack and no caller.
    #[inline]
    pub const fn nowhere(self) -> Self {
        self.caller(stack::NOWHERE)
    }

    /// As [`nowhere`](Self::nowhere), because the firing interrupted user code or user code has
    /// reached the probe. The page tables in use are those of that program.
    #[inline]
    pub const fn in_program(mut self) -> Self {
        self.in_program = true;
        self.nowhere()
    }

    /// Notes that the firing interrupted the kernel at `addr`. The stack begins with that
    /// instruction, and `caller` is the caller of the interrupted function.
    #[inline]
    pub const fn sample(mut self, addr: u64) -> Self {
        self.sampled = true;
        self.caller(addr)
    }

    /// Sets the interrupted kernel registers, for `regs[]`. All of them are valid.
    #[inline]
    pub const fn regs(mut self, regs: &'a Regs) -> Self {
        self.regs = Some(regs);
        self
    }

    /// Sets the error of the system call that returns.
    #[inline]
    pub const fn errno(mut self, errno: i32) -> Self {
        self.errno = errno;
        self
    }
}

/// Fires `probe` for every consumer that traces it.
///
/// May be called in any context, including NMI. Where RCU is not watching, or in probe context, the
/// firing is not executed but counted. Takes no lock, does not sleep, does not allocate.
#[inline(always)]
pub fn fire(probe: ProbeRef, args: &FireArgs<'_>) {
    match CpuGuard::enter() {
        Some(guard) => ecb::fire_all(&guard, &KernelMachine::new(&guard, probe, args)),
        None => lost(probe),
    }
}

/// Rehearses the clauses of `probe` (INV-47). Returns the first user memory that they would load if
/// it fired and that is not in memory. A provider that can bring this memory does so before it
/// fires the probe, because a firing uses only what is in memory.
///
/// Contexts as for [`fire`].
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

/// Counts a firing of `probe` that was refused, once for each clause of each consumer at the probe.
/// Where RCU is not watching, the CPU's own counter is all that counts it.
#[cold]
fn lost(probe: ProbeRef) {
    if let Some(nested) = Nested::after_refusal() {
        tell(probe, &nested, |consumer, n| consumer.lose(n, nested.nmi));
    }
}

/// Counts `n` firings of `probe` for each clause at it. They should have happened some time ago, in
/// probe context, where the provider was not called.
///
/// May be called in the same contexts as [`fire`], and also in probe context.
#[cold]
pub fn lose(probe: ProbeRef, n: u64) {
    tell_anywhere(probe, |consumer, clauses| {
        consumer.have_lost(n.saturating_mul(clauses))
    });
}

/// Which consumers a firing would concern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Concern {
    /// No consumer.
    Nobody,
    /// Only consumers that do not see the whole machine.
    Users,
    /// At least one consumer that sees everything.
    All,
}

/// Tells which consumers a firing of `probe` for the current task would concern. Hooks on returns
/// are few (INV-29): a call that concerns no consumer takes none, and a call that concerns members
/// alone takes none from the common pool.
///
/// Contexts as for [`fire`].
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
    // If probe context is taken, the answer is unknown. The call is hooked then, and its return
    // counts the firing if it is refused too.
    CpuGuard::enter().is_none_or(|guard| {
        let machine = KernelMachine::new(&guard, probe, &args);
        let mut concerned = ecb::concerned(&guard, &machine);
        concerned.next().is_some()
    })
}

/// Counts, for each consumer that it concerns, a return of the current task's function that `probe`
/// will not fire for, because the return could not be hooked.
///
/// Contexts as for [`lose`].
#[cold]
pub fn unhooked(probe: ProbeRef) {
    let args = FireArgs::new(Args::Words(&[]));
    if let Some(guard) = CpuGuard::enter() {
        let machine = KernelMachine::new(&guard, probe, &args);
        let concerned = ecb::concerned(&guard, &machine);
        concerned.for_each(|at| at.consumer.lose_return(at.count().into()));
    } else if let Some(nested) = Nested::after_refusal() {
        tell(probe, &nested, Consumer::lose_return);
    }
}

/// Notes that `probe` could not be enabled at a part of what it stands for, such as a module that
/// has just been loaded. The status of its consumers counts that, for each clause.
///
/// Contexts as for [`lose`].
#[cold]
pub fn miss(probe: ProbeRef) {
    probe.miss();
    tell_anywhere(probe, Consumer::miss);
}

/// Calls `what` as [`tell`] does: in probe context of its own, or in the one that it is nested in.
/// Does nothing where RCU is not watching.
fn tell_anywhere(probe: ProbeRef, what: impl Fn(&Consumer, u64)) {
    if let Some(guard) = CpuGuard::enter() {
        tell(probe, &guard, what);
    } else if let Some(nested) = Nested::after_refusal() {
        tell(probe, &nested, what);
    }
}

/// Calls `what` with each consumer at the probe and the number of its clauses there.
fn tell(probe: ProbeRef, here: &impl NoGracePeriod, what: impl Fn(&Consumer, u64)) {
    for at in probe.enabled().iter(here) {
        what(&at.consumer, at.count().into());
    }
}
