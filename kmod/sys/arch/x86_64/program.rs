// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Instructions of programs: which of them can have a probe, and where they lead.
//!
//! A breakpoint can be set if the exception can do the instruction, or if the program can execute
//! it elsewhere; the crate `dtrace_insn` knows that. What an instruction does is computed on a copy
//! of the registers ([`Step`]). Its store, of which it has at most one, is made later: probes fire
//! between the computation and the change (INV-41).

use crate::sys::faults::{Span, Use};
use crate::sys::nofault;
use crate::sys::regs::Regs;
use core::fmt;
use core::ops::Range;
pub use dtrace_insn::x86_64::SLOT;
use dtrace_insn::x86_64::{
    decode, Brief, Briefly, Flow, Form, Insn, Leaves, Memory, Mode, Refusal, Register, Registers,
    Segment, Size,
};
use kernel::prelude::*;

/// Why there can be no probe at an instruction.
pub enum Unprobeable {
    /// It is not a known instruction.
    Unknown,
    /// It is known and must not have a probe.
    Refused(Refusal),
}

impl fmt::Display for Unprobeable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("the instruction is not known"),
            Self::Refused(why) => why.fmt(f),
        }
    }
}

/// An instruction of a program.
pub struct Instruction {
    insn: Insn,
    form: Option<Form>,
    brief: Option<Brief>,
    shadowed: bool,
    returns: bool,
    is_long: bool,
    /// The first address that no program can have.
    end: u64,
}

impl Instruction {
    /// Decodes the instruction that `code` begins with, in a 64-bit program or in a 32-bit one.
    pub fn new(code: &[u8], is_long: bool) -> Result<Self, Unprobeable> {
        let mode = if is_long {
            Mode::Long
        } else {
            Mode::Compatible
        };
        let insn = decode(code, mode).map_err(|_| Unprobeable::Unknown)?;
        let form = insn.probed().map_err(Unprobeable::Refused)?;
        Ok(Self {
            insn,
            brief: form.and_then(|form| form.brief()),
            form,
            returns: insn.flow(0) == Flow::Return,
            shadowed: insn.touches_shadow_stack(),
            is_long,
            end: super::program_end(),
        })
    }

    /// Does the instruction on these registers, which the current program has, if it is one of the
    /// most common ones. Returns the changed registers; `None`: use [`Self::step`]. Only in the
    /// exception of a breakpoint.
    ///
    /// Its store is made at once: it goes below the stack pointer, where nothing depends on the old
    /// contents, because the program is about to overwrite them.
    #[inline]
    pub fn step_briefly(&self, regs: &Regs) -> Option<Briefly> {
        let brief = self.brief.as_ref()?;
        if !regs.is_flat_long() {
            return None;
        }
        let register = |register: Register| regs.general(register.number());
        brief.perform(regs.ip(), regs.sp(), register, &mut Words(self.end))
    }

    /// Whether the current program, which has these registers, executes it as it was decoded: in
    /// its mode, and with segments that begin at 0.
    pub fn is_meant(&self, regs: &Regs) -> bool {
        self.is_long == regs.is_long() && super::is_flat(regs)
    }

    /// Computes what the instruction does to these registers, which the current program has.
    /// `None`: that cannot be found out at once, for example because memory is missing. Only in the
    /// exception of a breakpoint.
    pub fn step(&self, regs: &Regs) -> Option<Step> {
        let form = self.form.as_ref()?;
        if !self.is_meant(regs) {
            return None;
        }
        let mut memory = Ahead(None);
        let mut after = After {
            before: regs,
            changes: Changes::none(regs),
        };
        form.perform(&mut after, &mut memory).ok()?;
        let changes = after.changes;
        (changes.count <= CHANGED_MAX).then_some(Step {
            changes,
            store: memory.0,
        })
    }

    /// Returns the memory, and what it is needed for, that is missing if a [step](Self::step)
    /// cannot be computed at once. `None`: that is not the reason.
    #[cold]
    pub fn missing(&self, regs: &Regs) -> Option<(Span, Use)> {
        let form = self.form.as_ref()?;
        if !self.is_meant(regs) {
            return None;
        }
        let mut memory = Missed(None);
        let changes = Changes::none(regs);
        let mut after = After {
            before: regs,
            changes,
        };
        form.perform(&mut after, &mut memory).err()?;
        memory.0
    }

    /// Returns its bytes.
    pub fn bytes(&self) -> &[u8] {
        self.insn.bytes()
    }

    /// Whether it is left to uprobes: they have something faster for it, or they may count there in
    /// a semaphore that the program has for a probe of its own. `is_uncounted`: it is known that
    /// there is no semaphore.
    pub fn is_left(&self, is_uncounted: bool) -> bool {
        let may_count = self.insn.is_nop() && self.is_carried() && !is_uncounted;
        self.insn.is_optimized() || may_count
    }

    /// Whether the exception can usually do it.
    pub fn is_done(&self) -> bool {
        self.form.is_some()
    }

    /// Whether it can be executed in a slot.
    pub fn is_movable(&self) -> bool {
        self.insn.is_movable()
    }

    /// Returns what is executed at `slot` in place of the instruction at `from`. `None`: that is
    /// not possible.
    pub fn moved(&self, from: u64, slot: u64) -> Option<[u8; SLOT]> {
        let mut bytes = [0; SLOT];
        self.insn.relocate(from, slot, &mut bytes).ok()?;
        Some(bytes)
    }

    /// Whether uprobes may have a breakpoint there.
    pub fn is_carried(&self) -> bool {
        self.insn.is_carried()
    }

    /// Whether uprobes can never have a breakpoint there.
    pub fn is_barred(&self) -> bool {
        self.insn.is_barred()
    }

    /// Whether the processor does more than a [`Step`] says, in the current program: it also writes
    /// a shadow stack.
    pub fn is_more(&self) -> bool {
        self.shadowed && super::has_shadow_stack()
    }

    /// Whether it is a return, so that every function that contains it [ends](Self::leaves) with
    /// it.
    #[inline]
    pub fn is_return(&self) -> bool {
        self.returns
    }

    /// Whether the function at the addresses `function` ends with this instruction, which is at
    /// `at`, if the program goes on at `to` (`None`: that is not known). A return always ends it.
    pub fn leaves(&self, at: u64, function: &Range<u64>, to: Option<u64>) -> Leaving {
        if self.is_return() {
            return Leaving::Yes;
        }
        match (self.insn.leaves(at, function), to) {
            (Leaves::Never, _) => Leaving::No,
            (Leaves::Always, _) => Leaving::Yes,
            (Leaves::Perhaps, None) => Leaving::Unknown,
            (Leaves::Perhaps, Some(to)) if function.contains(&to) => Leaving::No,
            (Leaves::Perhaps, Some(_)) => Leaving::Yes,
        }
    }
}

/// Whether a function ends with an instruction.
pub enum Leaving {
    /// It goes on.
    No,
    /// It ends.
    Yes,
    /// That depends on where the program goes on.
    Unknown,
}

/// The effect of an instruction.
pub struct Step {
    changes: Changes,
    store: Option<Store>,
}

impl Step {
    /// Returns the address at which the program goes on.
    pub fn ip(&self) -> u64 {
        self.changes.ip
    }

    /// Makes the store, if there is one. Only in the exception of a breakpoint.
    pub fn store(&self) -> Stored {
        let Some(to) = &self.store else {
            return Stored::Done;
        };
        let size = to.size.bytes();
        let stored = match to.old {
            None => nofault::user_put(to.address, size, to.value).map(|()| true),
            Some(old) => nofault::user_swap(to.address, size, old, to.value),
        };
        match stored {
            Ok(true) => Stored::Done,
            Ok(false) => Stored::Late,
            Err(_) => Stored::Gone,
        }
    }

    /// Changes the registers to what they are after the instruction. `regs` must be those that the
    /// step was computed from.
    pub fn apply(&self, regs: &mut Regs) {
        let changes = &self.changes;
        for (register, value) in changes.registers.iter().take(changes.count) {
            regs.set_general(register.number(), *value);
        }
        regs.set_ip(changes.ip);
        regs.set_flags(changes.flags);
    }
}

/// The result of a store.
pub enum Stored {
    /// It was made, or there is none.
    Done,
    /// It was not made, because another processor has changed the word that the step was computed
    /// from.
    Late,
    /// It was not made, because the page is not there or not writable any more.
    Gone,
}

/// A store of an instruction.
struct Store {
    address: u64,
    size: Size,
    value: u64,
    /// The value that must still be there, if the instruction is atomic.
    old: Option<u64>,
}

/// The most changes of general registers by one instruction.
const CHANGED_MAX: usize = 3;

/// The changes of registers; later ones are behind earlier ones.
struct Changes {
    ip: u64,
    flags: u64,
    registers: [(Register, u64); CHANGED_MAX],
    count: usize,
}

impl Changes {
    fn none(regs: &Regs) -> Self {
        Self {
            ip: regs.ip(),
            flags: regs.flags(),
            registers: [(Register::RAX, 0); CHANGED_MAX],
            count: 0,
        }
    }
}

/// The registers during the computation.
struct After<'a> {
    before: &'a Regs,
    changes: Changes,
}

impl Registers for After<'_> {
    #[inline]
    fn get(&self, register: Register) -> u64 {
        let changed = self.changes.registers.iter().take(self.changes.count);
        match changed.rev().find(|(one, _)| *one == register) {
            Some((_, value)) => *value,
            None => self.before.general(register.number()),
        }
    }

    #[inline]
    fn set(&mut self, register: Register, value: u64) {
        if let Some(change) = self.changes.registers.get_mut(self.changes.count) {
            *change = (register, value);
        }
        self.changes.count = self.changes.count.saturating_add(1);
    }

    fn ip(&self) -> u64 {
        self.changes.ip
    }

    fn set_ip(&mut self, ip: u64) {
        self.changes.ip = ip;
    }

    fn flags(&self) -> u64 {
        self.changes.flags
    }

    fn set_flags(&mut self, flags: u64) {
        self.changes.flags = flags;
    }

    fn base(&self, segment: Segment) -> u64 {
        super::segment_base(segment)
    }
}

/// The program's memory, accessed at once.
struct AtOnce;

impl Memory for AtOnce {
    #[inline]
    fn end(&self) -> u64 {
        super::program_end()
    }

    #[inline]
    fn load(&mut self, address: u64, size: Size) -> Option<u64> {
        nofault::user_get(address, size.bytes()).ok()
    }

    #[inline]
    fn store(&mut self, address: u64, size: Size, value: u64) -> Option<()> {
        nofault::user_put(address, size.bytes(), value).ok()
    }
}

/// The program's memory for instructions that load and store words. The field is the address at
/// which it ends.
struct Words(u64);

impl Memory for Words {
    #[inline]
    fn end(&self) -> u64 {
        self.0
    }

    #[inline]
    fn load(&mut self, address: u64, size: Size) -> Option<u64> {
        match size {
            Size::Quad => nofault::user_get_word(address).ok(),
            _ => AtOnce.load(address, size),
        }
    }

    #[inline]
    fn store(&mut self, address: u64, size: Size, value: u64) -> Option<()> {
        match size {
            Size::Quad => nofault::user_put_word(address, value).ok(),
            _ => AtOnce.store(address, size, value),
        }
    }
}

/// The program's memory with a store that is not made yet. The page tables say that it can be made.
struct Ahead(Option<Store>);

impl Memory for Ahead {
    fn end(&self) -> u64 {
        AtOnce.end()
    }

    fn load(&mut self, address: u64, size: Size) -> Option<u64> {
        AtOnce.load(address, size)
    }

    fn store(&mut self, address: u64, size: Size, value: u64) -> Option<()> {
        // No instruction that the exception does has two stores.
        if self.0.is_some() || !nofault::is_user_writable(address) {
            return None;
        }
        self.0 = Some(Store {
            address,
            size,
            value,
            old: None,
        });
        Some(())
    }

    fn replace(&mut self, address: u64, size: Size, old: u64, value: u64) -> Option<()> {
        self.store(address, size, value)?;
        self.0.as_mut()?.old = Some(old);
        Some(())
    }
}

/// The program's memory; notes the access that was not possible.
struct Missed(Option<(Span, Use)>);

impl Memory for Missed {
    fn end(&self) -> u64 {
        AtOnce.end()
    }

    fn load(&mut self, addr: u64, size: Size) -> Option<u64> {
        let value = AtOnce.load(addr, size);
        if value.is_none() {
            let size = size.bytes();
            self.0 = Some((Span { addr, size }, Use::Load));
        }
        value
    }

    fn store(&mut self, addr: u64, size: Size, _: u64) -> Option<()> {
        let can = nofault::is_user_writable(addr);
        if !can {
            let size = size.bytes();
            self.0 = Some((Span { addr, size }, Use::Store));
        }
        can.then_some(())
    }
}
