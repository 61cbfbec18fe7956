// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Subroutines of walkers; see [`interp`](crate::interp).

use super::arg;
use crate::dif::env::Env;
use crate::error::Trap;
use crate::machine::Machine;

/// Adds a frame of interpreted code.
pub(super) fn frame<M: Machine>(env: &mut Env<'_, M>) -> Result<u64, Trap> {
    let arg = |n| arg(env, n);
    let names = [(arg(0), arg(1)), (arg(2), arg(3)), (arg(5), arg(6))];
    let (position, first) = (arg(4), arg(7));
    env.put_frame(names, position, first)?;
    Ok(0)
}

/// Supplies the caller of a frame.
pub(super) fn caller<M: Machine>(env: &mut Env<'_, M>) -> Result<u64, Trap> {
    let [pc, sp, fp] = [0, 1, 2].map(|n| arg(env, n));
    env.tell_caller(pc, sp, fp)?;
    Ok(0)
}

/// Sets what the function of the next frame belongs to.
pub(super) fn scope<M: Machine>(env: &mut Env<'_, M>) -> Result<u64, Trap> {
    let name = (arg(env, 0), arg(env, 1));
    env.name_scope(name)?;
    Ok(0)
}
