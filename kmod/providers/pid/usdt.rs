// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Programs' own probes (USDT).
//!
//! Such a program describes its probes in its file: where they are, their names, and the registers
//! and memory in which the arguments are at each site. The library reads this description and
//! passes it to the module. An argument is computed only when a clause reads it, from the registers
//! at the site and without faulting. If it cannot be loaded, the clause ends in a fault, as with
//! any load. Memory of an argument that can be brought is brought before the probe fires
//! ([`Passed::missing`]).
//!
//! At some sites the program only asks whether the probe is enabled: it has set a number in its
//! memory, or a register, to 0, and checks it after the site. The module sets it to 1 there.
//! Nothing fires at such a site.

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
    args: KVec<Arg>,
    /// The set of arguments that are simply the value of one general register, of the first 64.
    registers: u64,
    /// Whether the program only asks here, and whether its memory may be written for the answer.
    asks: bool,
    answers: bool,
    /// The offset in the file of the counter of consumers that have enabled the probe; 0 if there
    /// is none.
    pub semaphore: u64,
}

impl Mark {
    /// Creates the mark of site `n` of a probe. `EINVAL`: there are too few arguments.
    pub fn new(usdt: &Usdt<'_>, n: usize) -> Result<Self> {
        let begin = n.checked_mul(usdt.nargs).ok_or(EINVAL)?;
        let end = begin.checked_add(usdt.nargs).ok_or(EINVAL)?;
        let asks = n >= usdt.asks_from;
        let mut args = KVec::new();
        args.extend_from_slice(usdt.args.get(begin..end).ok_or(EINVAL)?, GFP_KERNEL)?;
        let registers = args.iter().take(64).enumerate();
        let registers = registers.fold(0, |all, (n, arg)| all | u64::from(is_register(arg)) << n);
        Ok(Self {
            args,
            registers,
            asks,
            // Lockdown forbids writing to programs. Checked only if needed, because the kernel logs
            // each refusal.
            answers: asks && privilege::may_write(),
            semaphore: usdt.semaphore,
        })
    }

    /// Whether the program only asks at this site whether the probe is enabled.
    pub fn asks(&self) -> bool {
        self.asks
    }

    /// Answers a program that asks by a number in its memory. Returns whether this site only asks.
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
            // The program has just set the number to 0, so its page is in memory.
            let _ = value(arg, regs).map(|counter| nofault::user_put(counter, 4, 1));
        }
    }

    /// The register to set to 1, if the program asks by a register here.
    pub fn answer_register(&self) -> Option<u8> {
        let arg = self.args.first().filter(|arg| arg.form == ANSWER)?;
        self.asks.then_some(arg.base)
    }

    /// The type of argument `n`, as C text. `None`: there is no such argument.
    pub fn type_of(&self, n: usize) -> Option<&'static [u8]> {
        // A site that only asks passes no arguments.
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
    /// Whether a site with this mark can be a site of a probe with the mark `other`.
    pub fn equals(&self, other: &Self) -> bool {
        let Self {
            args,
            registers: _,
            asks,
            answers: _,
            semaphore,
        } = self;
        args[..] == other.args[..] && *asks == other.asks && *semaphore == other.semaphore
    }
}

/// The arguments at a site, for a program that has come there with these registers.
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

    /// Memory of an argument that a clause has read and that could not be loaded.
    pub fn missing(&self) -> Option<Span> {
        self.missing.get()
    }
}

/// Whether an argument is simply the value of one general register.
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

/// Truncates `value` to the argument's size and extends it to 64 bits, with or without sign.
#[inline]
fn sized(arg: &Arg, value: u64) -> u64 {
    let unused = 64_u32.saturating_sub(u32::from(arg.size).saturating_mul(8));
    let top = value.wrapping_shl(unused);
    match arg.is_signed != 0 {
        true => (top as i64).wrapping_shr(unused) as u64,
        false => top.wrapping_shr(unused),
    }
}

/// Computes an argument. The error is the address that could not be loaded.
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
