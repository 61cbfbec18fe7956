// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Stacks as values, which a program can store and take apart (INV-10).

use super::arg;
use crate::budget::{FRAME, USER_FRAME};
use crate::buf::copy;
use crate::dif::env::Env;
use crate::error::Trap;
use crate::frames::Frames;
use crate::machine::Machine;
use crate::var::addr::{self, Region};
use dtrace_uapi::fault::Fault;
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
    if user {
        env.check_user()?;
    } else {
        env.check_kernel()?;
    }
    let each = if user { USER_FRAME } else { FRAME };
    let size = asked.saturating_mul(8);
    env.pay((asked as usize).saturating_mul(each))?;
    let at = env
        .vm
        .alloc(size.saturating_add(size_of::<StackHead>() as u64))?;
    let mut head = StackHead {
        is_user: user.into(),
        pid: if user { env.m.told() } else { 0 },
        strsz: arg(env, 1) as u32,
        ..StackHead::default()
    };
    let place = env.vm.scratch.get_mut(at..env.vm.used).unwrap_or(&mut []);
    let (begin, rest) = place
        .split_at_mut_checked(size_of::<StackHead>())
        .unwrap_or_default();
    let mut frames = Frames::new(rest);
    match user {
        // No frames of evaluators are noted, so no walker runs, and the walk makes no pause.
        true => {
            env.m
                .ustack(env.core.ustacks.bare(), &mut frames, None, None);
        }
        false => env.m.stack(&mut frames),
    }
    head.depth = frames.finish() as u32;
    copy(begin, head.as_bytes());
    Ok(addr::make(Region::Scratch, at))
}
