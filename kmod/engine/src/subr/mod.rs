// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Subroutines: the implementation of `call`, one family per file.
//!
//! The computations of the string subroutines are in [`text`](crate::text), as functions from
//! slices to slices. This module fetches their arguments from wherever DIF's addresses point to,
//! and stores their results in scratch memory. A string argument is what can be read up to the
//! first NUL, at most `strsize` characters. A result is truncated so that its NUL fits.

mod addresses;
mod extended;
mod files;
mod frames;
mod locks;
mod memory;
mod numbers;
mod stacks;
mod strings;

use crate::budget::HOP;
use crate::dif::env::Env;
use crate::error::Trap;
use crate::machine::Machine;
use crate::mem::alloc::Bytes;
use crate::text::Out;
use crate::var::addr::{self, Region};
use dtrace_uapi::fault::Fault;
use dtrace_uapi::subr::Subr;

/// The number of arguments of a subroutine.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// Minimum number of arguments.
    pub min: u8,
    /// Maximum number of arguments.
    pub max: u8,
}

/// Returns how many arguments `subr` takes.
pub fn spec(subr: Subr) -> Spec {
    use Subr::*;
    let (min, max) = match subr {
        Rand | Speculation => (0, 0),
        MutexOwned | MutexOwner | MutexTypeAdaptive | MutexTypeSpin | RwReadHeld | RwWriteHeld
        | RwIswriter | Msgdsize | Msgsize | Getf | DPath => (1, 1),
        Copyin | DdiPathname => (2, 2),
        Copyinstr => (1, 2),
        Copyout | Copyoutstr | Copyinto | Bcopy => (3, 3),
        Progenyof | Strlen | Alloca | Getmajor | Getminor | Basename | Dirname | Cleanpath
        | Toupper | Tolower | Htons | Htonl | Htonll | Ntohs | Ntohl | Ntohll | InetNtoa
        | Uuidstr | Taskargs | Outside => (1, 1),
        Lltostr | Strtoll | InetNtoa6 | Stack => (1, 2),
        Frame => (8, 8),
        Caller => (3, 3),
        Scope => (2, 2),
        Strjoin | Strchr | Strrchr | Strstr | Strtok | InetNtop | LinkNtop | Json | Strip => (2, 2),
        Substr | Index | Rindex | Ustack => (2, 3),
        LdAdd | LdSub | LdMul | LdDiv | LdEq | LdLt | LdLe => (2, 2),
        LdValue | LdFromDouble | LdFromSigned | LdFromUnsigned | LdToDouble | LdToSingle
        | LdToSigned | LdToUnsigned => (1, 1),
    };
    Spec { min, max }
}

/// Calls `subr` with the entries of the tuple stack as arguments, and returns its value.
pub fn call<M: Machine>(subr: Subr, env: &mut Env<'_, M>) -> Result<u64, Trap> {
    let value = dispatch(subr, env);
    // The value may depend on bytes at addresses that the program has computed (INV-38).
    env.m.settle();
    value
}

#[inline(always)]
fn dispatch<M: Machine>(subr: Subr, env: &mut Env<'_, M>) -> Result<u64, Trap> {
    use Subr::*;
    match subr {
        Strlen | Strjoin | Strchr | Strrchr | Strstr | Strtok | Substr | Index | Rindex
        | Toupper | Tolower | Basename | Dirname | Cleanpath | Json => strings::call(subr, env),
        Lltostr | Strtoll | Htons | Htonl | Htonll | Ntohs | Ntohl | Ntohll | Getmajor
        | Getminor | Rand => numbers::call(subr, env),
        InetNtop | InetNtoa | InetNtoa6 | LinkNtop | Uuidstr => addresses::call(subr, env),
        Copyin | Copyinstr | Copyinto | Copyout | Copyoutstr | Alloca | Bcopy => {
            memory::call(subr, env)
        }
        Progenyof => {
            let pid = arg(env, 0);
            let (progeny, hops) = env.m.progenyof(pid);
            env.pay((hops as usize).saturating_mul(HOP))?;
            Ok(u64::from(progeny))
        }
        Speculation => {
            let Some(all) = (env.core.speculations.as_ref()).filter(|_| env.rehearsal.is_none())
            else {
                return Ok(0);
            };
            env.pay(all.count())?;
            Ok(all.open())
        }
        // Kernel pointers carry no authentication code on the supported processors.
        Strip => Ok(arg(env, 0)),
        Outside => Err(Trap::new(Fault::BadIndex, arg(env, 0))),
        MutexOwned | MutexOwner | MutexTypeAdaptive | MutexTypeSpin | RwReadHeld | RwWriteHeld
        | RwIswriter => locks::call(subr, env),
        DPath | Getf | DdiPathname => files::call(subr, env),
        Taskargs => env.taskargs(arg(env, 0)),
        Stack | Ustack => stacks::call(subr, env),
        Frame => frames::frame(env),
        Caller => frames::caller(env),
        Scope => frames::scope(env),
        LdAdd | LdSub | LdMul | LdDiv | LdEq | LdLt | LdLe | LdValue | LdFromDouble
        | LdFromSigned | LdFromUnsigned | LdToDouble | LdToSingle | LdToSigned | LdToUnsigned => {
            extended::call(subr, env)
        }
        // These return the size of a STREAMS message. Linux has no such messages, so no pointer is
        // valid.
        Msgdsize | Msgsize => Err(Trap::new(Fault::IllOp, arg(env, 0))),
    }
}

/// Returns argument `n`; 0 if it was not given.
fn arg<M: Machine>(env: &Env<'_, M>, n: usize) -> u64 {
    optional(env, n).unwrap_or(0)
}

/// Returns argument `n`, if it was given.
fn optional<M: Machine>(env: &Env<'_, M>, n: usize) -> Option<u64> {
    if n < env.vm.ntuple {
        env.vm.tuple.get(n).map(|entry| entry.value)
    } else {
        None
    }
}

/// Stores a string that `write` produces in scratch memory, and returns its address; 0 if `write`
/// returns `false`. The string is cut off after `strsize` - 1 bytes, or where scratch memory ends.
fn result<M: Machine>(
    env: &mut Env<'_, M>,
    write: impl FnOnce(&Env<'_, M>, &mut Out<'_>) -> bool,
) -> Result<u64, Trap> {
    let at = env.vm.used.next_multiple_of(8);
    let end = env
        .vm
        .scratch
        .len()
        .min(at.saturating_add(env.core.strsize));
    if at >= end {
        return Err(Trap::new(Fault::NoScratch, 0));
    }
    let mut scratch = core::mem::replace(&mut env.vm.scratch, Bytes::empty());
    // Leave a byte for the NUL.
    let mut out = Out::new(
        scratch
            .get_mut(at..end.saturating_sub(1))
            .unwrap_or(&mut []),
    );
    let written = write(env, &mut out);
    let len = out.len();
    let end = at.saturating_add(len);
    if let Some(nul) = scratch.get_mut(end) {
        *nul = 0;
    }
    env.vm.scratch = scratch;
    if !written {
        return Ok(0);
    }
    env.vm.used = end.saturating_add(1);
    env.pay(len)?;
    Ok(addr::make(Region::Scratch, at))
}
