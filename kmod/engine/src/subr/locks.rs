// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Subroutines that return the state of locks.
//!
//! Mutexes are `struct mutex`. All of them are adaptive: a task that finds one held spins while its
//! holder runs, and sleeps otherwise. Reader-writer locks are `rwlock_t`. A state is read once,
//! without taking the lock; it may have changed by the time the program uses it.

use super::arg;
use crate::dif::env::Env;
use crate::error::Trap;
use crate::machine::Machine;
use dtrace_uapi::subr::Subr;

pub(super) fn call<M: Machine>(subr: Subr, env: &mut Env<'_, M>) -> Result<u64, Trap> {
    env.check_kernel_memory()?;
    let lock = arg(env, 0);
    if matches!(
        subr,
        Subr::RwReadHeld | Subr::RwWriteHeld | Subr::RwIswriter
    ) {
        let state = env.m.rwlock(lock)?;
        return Ok(u64::from(match subr {
            Subr::RwReadHeld => state.readers,
            Subr::RwWriteHeld => state.writer,
            // Held or wanted by a writer.
            _ => state.writer || state.writer_waits,
        }));
    }
    let owner = env.m.mutex_owner(lock)?;
    Ok(match subr {
        Subr::MutexOwned => u64::from(owner == env.m.curthread()),
        Subr::MutexOwner => owner,
        Subr::MutexTypeAdaptive => 1,
        _ => 0,
    })
}
