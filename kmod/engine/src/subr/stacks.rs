// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Stacks as values, which a program can store and take apart (INV-10).

use super::arg;
use crate::budget::{FRAME, USER_FRAME};
use crate::buf::copy;
use crate::dif::env::Env;
use crate::error::Trap;
use crate::frames::Frames;
use crate::interp::walk as interp;
use crate::machine::Machine;
use crate::var::addr::{self, Region};
use core::ops::Range;
use dtrace_uapi::fault::Fault;
use dtrace_uapi::interp::WORDS_MAX;
use dtrace_uapi::limits::FRAMES_MAX;
use dtrace_uapi::subr::Subr;
use dtrace_uapi::types::StackHead;
use zerocopy::IntoBytes;

pub(super) fn call<M: Machine>(subr: Subr, env: &mut Env<'_, M>) -> Result<u64, Trap> {
    let user = subr == Subr::Ustack;
    let asked = arg(env, 0);
    if asked == 0 || asked > FRAMES_MAX.into() {
        return Err(Trap::new(Fault::BadSize, asked));
    }
    let words = arg(env, if user { 2 } else { 1 });
    if words > WORDS_MAX as u64 {
        return Err(Trap::new(Fault::BadSize, words));
    }
    if user {
        env.check_user()?;
    } else {
        env.check_kernel()?;
    }
    let strsz = if user { arg(env, 1) as u32 } else { 0 };
    let most = asked as usize;
    let each = if user { USER_FRAME } else { FRAME };
    // The words of a user stack are also copied.
    env.pay(most.saturating_mul(each).saturating_add(words as usize))?;
    let size = asked.saturating_add(words).saturating_mul(8);
    let at = env
        .vm
        .alloc(size.saturating_add(size_of::<StackHead>() as u64))?;
    let frames = at.saturating_add(size_of::<StackHead>())..env.vm.used;
    let head = StackHead {
        is_user: user.into(),
        pid: if user { env.m.told() } else { 0 },
        strsz,
        depth: match user {
            true => interp::value(env, most, frames)?,
            false => kernel(env, most, frames),
        } as u32,
    };
    copy(
        env.vm.scratch.get_mut(at..).unwrap_or_default(),
        head.as_bytes(),
    );
    Ok(addr::make(Region::Scratch, at))
}

/// Writes a kernel stack of at most `most` frames to scratch memory. Returns their number.
fn kernel<M: Machine>(env: &mut Env<'_, M>, most: usize, at: Range<usize>) -> usize {
    let to = env.vm.scratch.get_mut(at).unwrap_or_default();
    let mut frames = Frames::up_to(most, to);
    env.m.stack(&mut frames);
    frames.finish()
}
