// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! The operators of `long double`. A register holds the address of such a number.
//!
//! The format is x87's: ten bytes, followed by six bytes of padding. Results are in scratch memory,
//! with zeros as padding, so equal numbers are equal bytes.

use super::arg;
use crate::budget::FLOAT;
use crate::dif::env::Env;
use crate::error::Trap;
use crate::machine::Machine;
use crate::softfloat::{self as soft, Double, Extended, Single};
use crate::var::addr::{self, Region};
use core::cmp::Ordering;
use dtrace_uapi::subr::Subr;

/// Bytes of a number including its padding.
const SIZE: u64 = 16;

pub(super) fn call<M: Machine>(subr: Subr, env: &mut Env<'_, M>) -> Result<u64, Trap> {
    env.pay(FLOAT)?;
    let (a, b) = (arg(env, 0), arg(env, 1));
    let number = match subr {
        Subr::LdAdd => soft::add(load(env, a)?, load(env, b)?),
        Subr::LdSub => soft::sub(load(env, a)?, load(env, b)?),
        Subr::LdMul => soft::mul(load(env, a)?, load(env, b)?),
        Subr::LdDiv => soft::div(load(env, a)?, load(env, b)?),
        Subr::LdFromDouble => soft::convert(Double(a)),
        Subr::LdFromSigned => soft::from_i64(a as i64),
        Subr::LdFromUnsigned => soft::from_u64(a),
        Subr::LdToSigned => return Ok(soft::to_i64(load(env, a)?) as u64),
        Subr::LdToUnsigned => return Ok(soft::to_u64(load(env, a)?)),
        Subr::LdToDouble => {
            let Double(bits) = soft::convert(load(env, a)?);
            return Ok(bits);
        }
        Subr::LdToSingle => {
            let Single(bits) = soft::convert(load(env, a)?);
            return Ok(bits.into());
        }
        Subr::LdEq | Subr::LdLt | Subr::LdLe => {
            let order = soft::compare(load(env, a)?, load(env, b)?);
            let holds = match subr {
                Subr::LdEq => order.is_some_and(Ordering::is_eq),
                Subr::LdLt => order.is_some_and(Ordering::is_lt),
                _ => order.is_some_and(Ordering::is_le),
            };
            return Ok(holds.into());
        }
        // `LdValue`: a copy.
        _ => load(env, a)?,
    };
    store(env, number)
}

/// Loads the number at `at`; a null pointer gives zero.
fn load<M: Machine>(env: &Env<'_, M>, at: u64) -> Result<Extended, Trap> {
    let mut significand = [0; 8];
    let mut high = [0; 2];
    if at != 0 {
        env.view().read(at, &mut significand)?;
        env.view().read(at.wrapping_add(8), &mut high)?;
    }
    Ok(Extended {
        high: u16::from_le_bytes(high),
        significand: u64::from_le_bytes(significand),
    })
}

/// Stores a number in scratch memory, and returns its address.
fn store<M: Machine>(env: &mut Env<'_, M>, number: Extended) -> Result<u64, Trap> {
    let at = addr::make(Region::Scratch, env.vm.alloc(SIZE)?);
    let bytes = u128::from(number.high) << 64 | u128::from(number.significand);
    env.write(at, &bytes.to_le_bytes())?;
    Ok(at)
}
