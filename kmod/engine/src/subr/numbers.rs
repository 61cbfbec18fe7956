// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Subroutines for numbers: conversion to and from text, byte order, parts of a device number,
//! random numbers.

use super::{arg, optional, result};
use crate::budget::NUMBER;
use crate::dif::env::Env;
use crate::error::Trap;
use crate::machine::Machine;
use crate::text::number;
use dtrace_uapi::fault::Fault;
use dtrace_uapi::subr::Subr;

/// Bits of a minor number in the kernel's dev_t (include/linux/kdev_t.h).
const MINOR_BITS: u32 = 20;

pub(super) fn call<M: Machine>(subr: Subr, env: &mut Env<'_, M>) -> Result<u64, Trap> {
    let value = arg(env, 0);
    Ok(match subr {
        Subr::Htons | Subr::Ntohs => u64::from((value as u16).to_be()),
        Subr::Htonl | Subr::Ntohl => u64::from((value as u32).to_be()),
        Subr::Htonll | Subr::Ntohll => value.to_be(),
        Subr::Getmajor => u64::from(value as u32 >> MINOR_BITS),
        Subr::Getminor => u64::from(value as u32 & ((1 << MINOR_BITS) - 1)),
        Subr::Rand => u64::from(random(&mut env.vm.random) as u32),
        _ => {
            let base = optional(env, 1).map_or(10, |base| i64::from(base as i32));
            if !number::BASES.contains(&base) {
                return Err(Trap::new(Fault::IllOp, base as u64));
            }
            if subr == Subr::Strtoll {
                let len = env.fetch(value, 0, usize::MAX)?;
                return Ok(number::strtoll(env.fetched(0, len), base) as u64);
            }
            env.pay(NUMBER)?;
            return result(env, |_, out| {
                number::lltostr(value as i64, base, out);
                true
            });
        }
    })
}

/// Returns the next number of a xorshift generator whose output is multiplied (xorshift64*).
fn random(state: &mut u64) -> u64 {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32
}
