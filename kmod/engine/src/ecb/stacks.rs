// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Stacks in records and keys.
//!
//! The number of frames of a stack is known when it has been walked, so they are paid for then;
//! that is one stack at most. The room of a user stack is paid for before, because it may be large:
//! it includes that of the frames of interpreted code.

use super::output::at_start;
use super::price::spend;
use crate::budget::FRAME;
use crate::buf::set_word;
use crate::dif::env::Env;
use crate::dif::exec::Stopped;
use crate::frames::Frames;
use crate::interp::walk as interp;
use crate::machine::Machine;
use dtrace_uapi::fault::Fault;

/// Writes a kernel stack. Returns the number of meaningful bytes.
#[inline(always)]
pub(super) fn write_kernel<M: Machine>(
    to: &mut [u8],
    env: &mut Env<'_, M>,
) -> Result<usize, Stopped> {
    if !env.core.kernel {
        return Err(at_start(Fault::Kpriv));
    }
    let len = to.len();
    let mut frames = Frames::new(to);
    env.m.stack(&mut frames);
    let (count, _) = frames.counts();
    let used = len.saturating_sub(frames.end().len());
    spend(env, count.saturating_mul(FRAME))?;
    Ok(used)
}

/// Writes a process id and a user stack of at most `most` frames, not counting those of interpreted
/// code. Returns the number of meaningful bytes.
#[inline(always)]
pub(super) fn write_user<M: Machine>(
    most: u32,
    to: &mut [u8],
    env: &mut Env<'_, M>,
) -> Result<usize, Stopped> {
    let stopped = |trap| Stopped { trap, pc: 0 };
    env.check_user().map_err(stopped)?;
    spend(env, to.len())?;
    set_word(to, 0, u64::from(env.m.told()));
    let rest = to.get_mut(8..).unwrap_or_default();
    let written = interp::ustack(env, most as usize, rest).map_err(stopped)?;
    Ok(written.saturating_add(8))
}
