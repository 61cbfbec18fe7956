// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Probes that report the code that an interrupt stopped: the part that `profile` and `cpc` share.
//!
//! `arg0` is the address of that code if it is the kernel's, `arg1` if it is a program's. The other
//! argument is 0. Both are 0 if the interrupted code is not known.

use crate::framework::{fire as fire_probe, Args, Cause, FireArgs, ProbeRef};
use crate::sys::regs::Regs;

/// How many of the registers belong to the interrupted code.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Registers {
    /// All of them, so `regs[]` may use them.
    All,
    /// Only those that tell where the code is.
    Some,
}

/// Fires `probe` for the interrupted code that `regs` describes. `None`: that code is not known.
pub fn fire(probe: ProbeRef, regs: Option<&Regs>, which: Registers) {
    fire_for(Cause::Sample, probe, regs, which);
}

/// Fires `probe` because its interval has passed. Which code was interrupted does not matter
/// ([`Cause::Tick`]).
pub fn tick(probe: ProbeRef, regs: Option<&Regs>) {
    fire_for(Cause::Tick, probe, regs, Registers::All);
}

fn fire_for(cause: Cause, probe: ProbeRef, regs: Option<&Regs>, which: Registers) {
    let Some(regs) = regs else {
        let args = FireArgs::new(Args::Words(&[0, 0])).cause(cause);
        fire_probe(probe, &args.of_kernel());
        return;
    };
    if regs.user_mode() {
        let words = [0, regs.user_ip()];
        let args = FireArgs::new(Args::Words(&words)).cause(cause);
        fire_probe(probe, &args.in_program());
    } else {
        let words = [regs.ip(), 0];
        let args = FireArgs::new(Args::Words(&words)).cause(cause);
        let args = args.of_kernel().sample(regs.ip());
        let args = match which {
            Registers::All => args.regs(regs),
            Registers::Some => args,
        };
        fire_probe(probe, &args);
    }
}
