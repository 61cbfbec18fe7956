// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Subroutines that copy memory: from the user and, for destructive consumers only, to the user.

use super::{arg, optional};
use crate::dif::env::{user_load_paid, user_load_str, Env, Vm};
use crate::error::Trap;
use crate::machine::Machine;
use crate::var::addr::{self, Region};
use core::ops::Range;
use dtrace_uapi::fault::Fault;
use dtrace_uapi::subr::Subr;

pub(super) fn call<M: Machine>(subr: Subr, env: &mut Env<'_, M>) -> Result<u64, Trap> {
    let (a, b, c) = (arg(env, 0), arg(env, 1), arg(env, 2));
    match subr {
        Subr::Alloca => {
            let at = env.vm.ask(a)?;
            Ok(addr::make(Region::Scratch, at))
        }
        Subr::Bcopy => {
            scratch_range(env, b, c)?;
            if allocated(env, a).is_some_and(|(_, left)| left != 0 && c > left as u64) {
                return Err(Trap::new(Fault::BadSize, c));
            }
            env.copy(a, b, c as usize, false)?;
            Ok(0)
        }
        Subr::Copyin => {
            env.check_user_memory()?;
            let at = env.vm.ask(b)?;
            load(env, a, at..env.vm.used)?;
            Ok(addr::make(Region::Scratch, at))
        }
        Subr::Copyinto => {
            env.check_user_memory()?;
            let range = scratch_range(env, c, b)?;
            load(env, a, range)?;
            Ok(0)
        }
        Subr::Copyinstr => copyinstr(env, a),
        _ => copyout(subr, env, a, b, c),
    }
}

/// Loads user memory into a range of scratch memory.
fn load<M: Machine>(env: &mut Env<'_, M>, addr: u64, to: Range<usize>) -> Result<(), Trap> {
    let Vm {
        scratch, budget, ..
    } = &mut *env.vm;
    let to = scratch.get_mut(to).unwrap_or(&mut []);
    // The program has chosen the place and the size (INV-38).
    env.m.settle();
    user_load_paid(env.m, env.rehearsal, budget, addr, to)
}

/// Returns the offset of `at` in scratch memory, and the number of allocated bytes from there on;
/// `None` if `at` is elsewhere or beyond them.
fn allocated<M: Machine>(env: &Env<'_, M>, at: u64) -> Option<(usize, usize)> {
    match addr::split(at).filter(|_| addr::is_own(at))? {
        (Region::Scratch, offset) => Some((offset, env.vm.used.checked_sub(offset)?)),
        _ => None,
    }
}

/// Returns the range of scratch memory that `size` bytes at `at` take. It is a fault if they are
/// not all allocated. If some of them are, the fault is about the size and not about the address.
fn scratch_range<M: Machine>(
    env: &Env<'_, M>,
    at: u64,
    size: u64,
) -> Result<core::ops::Range<usize>, Trap> {
    let (offset, left) = allocated(env, at).ok_or(Trap::bad_addr(at))?;
    if size <= left as u64 {
        return Ok(offset..offset.saturating_add(size as usize));
    }
    Err(match left {
        0 => Trap::bad_addr(at),
        _ => Trap::new(Fault::BadSize, size),
    })
}

/// `copyinstr()`: loads a user string of up to the given size, or up to `strsize`, including its
/// NUL.
fn copyinstr<M: Machine>(env: &mut Env<'_, M>, from: u64) -> Result<u64, Trap> {
    env.check_user_memory()?;
    let size = optional(env, 1).map_or(env.core.strsize, |size| {
        usize::try_from(size).map_or(env.core.strsize, |size| size.min(env.core.strsize))
    });
    if size == 0 {
        return Ok(0);
    }
    let at = match optional(env, 1) {
        Some(_) => env.vm.ask(size as u64)?,
        None => env.vm.alloc(size as u64)?,
    };
    let room = size.saturating_sub(1);
    let end = at.saturating_add(room);
    let to = env.vm.scratch.get_mut(at..end).unwrap_or(&mut []);
    let len = match user_load_str(env.m, env.rehearsal, from, to) {
        Ok(len) => len.min(room),
        Err(bad) => {
            env.vm.used = at;
            // That many bytes may have been read before the fault.
            let _ = env.pay(room);
            return Err(bad.into());
        }
    };
    let end = at.saturating_add(len);
    if let Some(nul) = env.vm.scratch.get_mut(end) {
        *nul = 0;
    }
    // Only the string itself stays allocated.
    env.vm.used = end.saturating_add(1);
    env.pay(len)?;
    Ok(addr::make(Region::Scratch, at))
}

/// Copies memory, or a string with its NUL, to the user.
fn copyout<M: Machine>(
    subr: Subr,
    env: &mut Env<'_, M>,
    from: u64,
    to: u64,
    size: u64,
) -> Result<u64, Trap> {
    env.check_user_memory()?;
    if env.rehearsal.is_some() {
        return Ok(0);
    }
    let bad = Trap::bad_addr(to);
    if subr == Subr::Copyoutstr {
        let limit = usize::try_from(size).unwrap_or(usize::MAX);
        let len = env.fetch(from, 0, limit.saturating_sub(1))?;
        if let Some(nul) = env.vm.tmp[0].get_mut(len) {
            *nul = 0;
        }
        env.m
            .user_store(to, env.fetched(0, len.saturating_add(1).min(limit)))?;
        return Ok(0);
    }
    if size > env.vm.scratch.len() as u64 {
        return Err(Trap::new(Fault::BadSize, size));
    }
    let mut done = 0;
    while done < size {
        let n = size.saturating_sub(done).min(env.core.strsize as u64);
        env.pay(n as usize)?;
        let mut tmp = core::mem::replace(&mut env.vm.tmp[0], crate::mem::alloc::Bytes::empty());
        let piece = tmp.get_mut(..n as usize).unwrap_or(&mut []);
        let copied = env
            .view()
            .read(from.wrapping_add(done), piece)
            .and_then(|()| {
                env.m
                    .user_store(to.checked_add(done).ok_or(bad)?, piece)
                    .map_err(Trap::from)
            });
        env.vm.tmp[0] = tmp;
        copied?;
        done = done.saturating_add(n);
    }
    Ok(0)
}
