// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Probes that a program has of its own.
//!
//! A program that has such probes says in its file where they are, what they are called, and in which registers and words its arguments
//! lie there; the library reads that and tells us. An argument is computed only when a clause asks for it, from the registers at
//! that instruction and without faulting: for a clause that asks for what cannot be loaded it is a fault, as any such load is. What a clause
//! asks for and can be brought is brought before the probe fires ([`Passed::missing`]).
//!
//! Some sites are there for the program to ask whether anybody has enabled the probe: it has set a number of its own, or a register, to 0, and
//! goes by what that is then. There nothing fires.

use crate::framework::process::Usdt;
use crate::framework::Arguments;
use crate::sys::faults::Span;
use crate::sys::nofault;
use crate::sys::privilege;
use crate::sys::regs::{self, Regs};
use core::cell::Cell;
use dtrace_uapi::process::{Arg, ANSWER, FLOAT, NO_REGISTER, VECTOR};
use kernel::alloc::KVec;
use kernel::prelude::*;

/// What is known of a USDT probe at one of its sites.
pub struct Mark {
    /// Which of its process' probes it is.
    index: u32,
    args: KVec<Arg>,
    /// Which of these are what is in one general register, by bits.
    registers: u64,
    /// Whether the program only asks here, and whether it may be answered.
    asks: bool,
    answers: bool,
    /// Where in the file the counter is of those who have enabled the probe; 0 for nowhere.
    pub semaphore: u64,
}

impl Mark {
    /// That of site `n` of the probe with this index.
    pub fn new(usdt: &Usdt<'_>, index: u32, n: usize) -> Result<Self> {
        let begin = n.checked_mul(usdt.nargs).ok_or(EINVAL)?;
        let end = begin.checked_add(usdt.nargs).ok_or(EINVAL)?;
        let asks = n >= usdt.asks_from;
        let mut args = KVec::new();
        args.extend_from_slice(usdt.args.get(begin..end).ok_or(EINVAL)?, GFP_KERNEL)?;
        let registers = args.iter().take(64).enumerate();
        let registers = registers.fold(0, |all, (n, arg)| all | u64::from(is_register(arg)) << n);
        Ok(Self {
            index,
            args,
            registers,
            asks,
            // Whoever locks the kernel down forbids to write to programs. The kernel logs who asks in vain.
            answers: asks && privilege::may_write(),
            semaphore: usdt.semaphore,
        })
    }

    /// Whether the program only asks here.
    pub fn asks(&self) -> bool {
        self.asks
    }

    /// Answers a program that asks whether the probe is enabled; whether it did.
    #[inline]
    pub fn answer(&self, regs: &Regs) -> bool {
        if self.asks {
            self.answer_in_memory(regs);
        }
        self.asks
    }

    #[inline(never)]
    fn answer_in_memory(&self, regs: &Regs) {
        let arg = self.args.first().filter(|arg| arg.form != ANSWER);
        if let (true, Some(arg)) = (self.answers, arg) {
            // The program has just set it to 0, so it is there.
            let _ = value(arg, regs).map(|counter| nofault::user_put(counter, 4, 1));
        }
    }

    /// The register that becomes 1 where a program asks whether the probe is enabled.
    pub fn answer_register(&self) -> Option<u8> {
        let arg = self.args.first().filter(|arg| arg.form == ANSWER)?;
        self.asks.then_some(arg.base)
    }

    /// The type of argument `n`, as C text.
    pub fn type_of(&self, n: usize) -> Option<&'static [u8]> {
        // Where it asks nothing is passed.
        let arg = self.args.get(n).filter(|_| !self.asks)?;
        if arg.form == FLOAT {
            return Some(if arg.size == 4 { b"float" } else { b"double" });
        }
        Some(match (arg.size, arg.is_signed != 0) {
            (1, true) => b"int8_t",
            (1, false) => b"uint8_t",
            (2, true) => b"int16_t",
            (2, false) => b"uint16_t",
            (4, true) => b"int32_t",
            (4, false) => b"uint32_t",
            (_, true) => b"int64_t",
            (_, false) => b"uint64_t",
        })
    }
}

impl Mark {
    /// Whether a site with this mark can be one of another mark's probe: it is the same, or it was that of one which has gone. `begin` is
    /// the index from which on probes are new, `is_free`: no probe is there.
    pub fn is_of(&self, other: &Self, begin: u32, is_free: bool) -> bool {
        let Self {
            index,
            args,
            registers: _,
            asks,
            answers: _,
            semaphore,
        } = self;
        (*index == other.index || is_free && *index < begin)
            && args[..] == other.args[..]
            && *asks == other.asks
            && *semaphore == other.semaphore
    }
}

/// The arguments at a site that a program has come to with these registers.
pub struct Passed<'a> {
    mark: &'a Mark,
    regs: &'a Regs,
    missing: Cell<Option<Span>>,
}

impl Arguments for Passed<'_> {
    fn arg(&self, n: usize) -> Result<u64, u64> {
        let Some(arg) = self.mark.args.get(n) else {
            return Ok(0);
        };
        match n < 64 && self.mark.registers >> n & 1 != 0 {
            true => Ok(sized(arg, self.regs.general(arg.base))),
            false => value(arg, self.regs).inspect_err(|addr| {
                let (addr, size) = (*addr, arg.size.into());
                self.missing.set(Some(Span { addr, size }));
            }),
        }
    }
}

impl<'a> Passed<'a> {
    pub fn new(mark: &'a Mark, regs: &'a Regs) -> Self {
        Self {
            mark,
            regs,
            missing: Cell::new(None),
        }
    }

    /// Memory that an argument lies in which was asked for, and that is not there.
    pub fn missing(&self) -> Option<Span> {
        self.missing.get()
    }
}

/// Whether an argument is what is in one general register.
fn is_register(arg: &Arg) -> bool {
    let plain = Arg {
        base: arg.base,
        index: NO_REGISTER,
        size: arg.size,
        is_signed: arg.is_signed,
        form: arg.form,
        ..Arg::default()
    };
    arg.base < VECTOR && *arg == plain
}

/// What a number is in as many bytes as the argument has.
#[inline]
fn sized(arg: &Arg, value: u64) -> u64 {
    let unused = 64_u32.saturating_sub(u32::from(arg.size).saturating_mul(8));
    let top = value.wrapping_shl(unused);
    match arg.is_signed != 0 {
        true => (top as i64).wrapping_shr(unused) as u64,
        false => top.wrapping_shr(unused),
    }
}

/// An argument, or the address that it could not be loaded from.
#[inline(never)]
fn value(arg: &Arg, regs: &Regs) -> Result<u64, u64> {
    let register = |n: u8| match n {
        NO_REGISTER => 0,
        VECTOR.. => regs::user_vector(n.wrapping_sub(VECTOR)),
        n => regs.general(n),
    };
    let index = register(arg.index).wrapping_shl(u32::from(arg.shift));
    let sum = arg
        .value
        .wrapping_add(register(arg.base))
        .wrapping_add(index);
    let size = u64::from(arg.size);
    let load = |addr| nofault::user_get(addr, size).map_err(|_| addr);
    let value = match (arg.is_loaded != 0, arg.is_high != 0) {
        (true, _) if regs.is_long() => load(sum)?,
        (true, _) => load(sum & 0xffff_ffff)?,
        (false, true) => sum >> 8,
        (false, false) => sum,
    };
    Ok(sized(arg, value))
}
