// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Stacks in records and keys, and counting by them, which is what most profiles are.
//!
//! How many frames a stack has is known when it was walked. So they are paid for then; it is one stack at most. The room for those of interpreted code,
//! which may be much, is paid for before.
//!
//! The machine may know that the program has a stack again, and has a number for it. The entry of that number is remembered, and nothing is walked,
//! written or compared.

use super::fire::{at_start, entry_of, in_action, same_bytes, Failed, Outputs};
use super::price::{spend, spend_price};
use super::{short, Action, Datum, Prepared};
use crate::budget::FRAME;
use crate::buf::{add_word_in, set_word};
use crate::dif::env::{Core, Env};
use crate::dif::exec::Stopped;
use crate::frames::Frames;
use crate::interp::walk as interp;
use crate::machine::Machine;
use dtrace_uapi::fault::Fault;

/// Writes a stack of the kernel's; returns how many bytes mean something.
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

/// Writes a process id and a stack of the program's, of so many frames at most but for those of interpreted code; returns as above.
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

/// How many stacks' entries are remembered.
pub const COUNTED: usize = 64;

/// Where a stack is counted that has a number.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counted {
    /// The number; 0: none.
    number: u64,
    /// Which of the aggregations.
    slot: usize,
    /// Generation (high half) and offset of the entry.
    entry: u64,
}

/// The only action of a clause, which is `count()` by a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TallyStack {
    /// Which of the aggregations, from 0.
    slot: usize,
    /// Offset of the counter in the entry.
    counter: u32,
    /// Where the stack is in the key and in the entry.
    start: usize,
    size: usize,
    /// How many frames one of the program's has at most; none: it is the kernel's.
    user: Option<u32>,
    /// The action of the stack, from 1.
    action: u32,
}

impl TallyStack {
    /// What `actions` amount to, if it is this.
    pub fn of(actions: &[Action]) -> Option<Self> {
        let aggregate = short::counting(actions)?;
        let [key] = &*aggregate.keys else {
            return None;
        };
        let user = match key.datum {
            Datum::Stack => None,
            Datum::Ustack { frames } => Some(frames),
            _ => return None,
        };
        Some(Self {
            slot: (aggregate.id as usize).checked_sub(1)?,
            counter: u32::try_from(aggregate.offset).ok()?,
            start: key.offset,
            size: key.size,
            user,
            action: key.action,
        })
    }

    /// Whether the stack is a program's.
    pub fn is_user(&self) -> bool {
        self.user.is_some()
    }

    /// How many frames of the program's are counted by at most.
    #[inline(always)]
    fn most(&self, most: u32) -> usize {
        (most as usize).min(self.size.saturating_sub(8) / 8)
    }

    /// Where the entry of a stack of that number is remembered.
    #[inline(always)]
    fn place<'a>(&self, stacks: &'a mut [Counted], number: u64) -> Option<&'a mut Counted> {
        let at = (number as usize).wrapping_add(self.slot) % COUNTED;
        stacks.get_mut(at)
    }

    /// Counts where the same stack was counted before; `false`: that is not known.
    #[inline(always)]
    pub fn again<M: Machine>(&self, core: &Core, m: &M, out: &mut Outputs) -> bool {
        let Some(most) = self.user else {
            return false;
        };
        if !(core.all_users || m.owned()) {
            return false;
        }
        let mut entry = None;
        let generation = out.aggregations.generation();
        let is_again = m.ustack_again(core.ustacks, self.most(most), |number| {
            let known = self.place(&mut out.stacks, number).copied();
            let known = known.filter(|known| (known.number, known.slot) == (number, self.slot));
            let current = known.filter(|known| (known.entry >> 32) as u32 == generation);
            entry = current.map(|known| known.entry as u32);
            entry.is_some()
        });
        let (true, Some(entry)) = (is_again, entry) else {
            return false;
        };
        m.told();
        add_word_in(out.aggregations.bytes(), entry, self.counter, 1);
        true
    }

    /// Does it.
    #[inline(always)]
    pub fn count<M: Machine>(
        &self,
        clause: &Prepared,
        env: &mut Env<'_, M>,
        out: &mut Outputs,
    ) -> Result<(), Failed> {
        spend_price(clause, env).map_err(in_action(0))?;
        let place = self.start..self.start.wrapping_add(self.size);
        let to = out.key.get_mut(place).unwrap_or_default();
        let used = match self.user {
            None => write_kernel(to, env),
            Some(most) => write_user(most, to, env),
        };
        let used = used.map_err(in_action(self.action))?;
        let stack = to.get(..used).unwrap_or_default();
        // The same stack often comes again: then its entry is where it was.
        let known = out.slots.get(self.slot).copied().unwrap_or(0);
        let entry = known as u32;
        let mem = out.aggregations.bytes();
        let at = (entry as usize).wrapping_add(self.start);
        let there = mem.get(at..at.wrapping_add(used));
        let is_it = there.is_some_and(|there| same_bytes(stack, there));
        let is_last = is_it && (known >> 32) as u32 == out.aggregations.generation();
        let has_room = is_last || self.look_up(&clause.actions, used, out);
        if has_room {
            let entry = out.slots.get(self.slot).copied().unwrap_or(0) as u32;
            add_word_in(out.aggregations.bytes(), entry, self.counter, 1);
            if self.is_user() {
                self.remember(env.m.ustack_number(), out);
            }
        }
        Ok(())
    }

    /// Remembers where the stack was counted, if it has a number.
    #[inline(always)]
    fn remember(&self, number: u64, out: &mut Outputs) {
        if number == 0 {
            return;
        }
        let (slot, entry) = (self.slot, out.slots.get(self.slot).copied());
        if let (Some(place), Some(entry)) = (self.place(&mut out.stacks, number), entry) {
            *place = Counted {
                number,
                slot,
                entry,
            };
        }
    }

    /// Looks for the entry where it is another stack than the last time; whether there is room for one.
    #[inline(never)]
    fn look_up(&self, actions: &[Action], used: usize, out: &mut Outputs) -> bool {
        let aggregations = &mut out.aggregations;
        let entry = short::counting(actions)
            .and_then(|aggregate| entry_of(aggregate, aggregations, &mut out.key, &[used]));
        if let (Some(entry), Some(slot)) = (entry, out.slots.get_mut(self.slot)) {
            *slot = u64::from(aggregations.generation()) << 32 | u64::from(entry);
        }
        entry.is_some()
    }
}
