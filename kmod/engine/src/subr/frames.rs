// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! What walkers call: see [`interp`](crate::interp).

use super::arg;
use crate::dif::env::Env;
use crate::error::Trap;
use crate::machine::Machine;

pub(super) fn call<M: Machine>(env: &mut Env<'_, M>) -> Result<u64, Trap> {
    let arg = |n| arg(env, n);
    let names = [(arg(0), arg(1)), (arg(2), arg(3)), (arg(5), arg(6))];
    let (position, first) = (arg(4), arg(7));
    env.put_frame(names, position, first)?;
    Ok(0)
}
