// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Probes at the code that an interrupt stopped: what `profile` and `cpc` have in common.
//!
//! `arg0` is the address of that code if it is the kernel's, `arg1` if it is a program's; the other is 0. Where nobody knows what was
//! stopped, both are.

use crate::framework::{fire as fire_probe, Args, Cause, FireArgs, ProbeRef};
use crate::sys::regs::Regs;

/// How many of the registers are those of the code.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Registers {
    /// All, so that `regs[]` may have them.
    All,
    /// Those that say where it is.
    Some,
}

/// Fires `probe` at what `regs` say.
pub fn fire(probe: ProbeRef, regs: Option<&Regs>, which: Registers) {
    fire_for(Cause::Sample, probe, regs, which);
}

/// Fires `probe` because it is time, wherever that is.
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
