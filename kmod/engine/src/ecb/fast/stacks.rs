// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Clauses that only count by a stack, which is what most profiles do.
//!
//! The machine may recognise a user stack that came before, by its number (INV-13). The entry of
//! that number is remembered, so nothing is walked, written or compared.

use super::count::counting;
use crate::buf::add_word_in;
use crate::dif::env::{Core, Env};
use crate::ecb::fire::{entry_of, same_bytes};
use crate::ecb::output::{in_action, Failed, Outputs};
use crate::ecb::price::spend_price;
use crate::ecb::stacks::{write_kernel, write_user};
use crate::ecb::{Action, Datum, Prepared};
use crate::machine::Machine;

/// Number of stacks whose entries are remembered.
pub const COUNTED: usize = 64;

/// The entry of a stack that has a number.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counted {
    /// The number; 0 means none.
    number: u64,
    /// The aggregation, from 0.
    slot: usize,
    /// Generation (high half) and offset of the entry.
    entry: u64,
}

/// The only action of a clause, if it is `count()` by a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountByStack {
    /// The aggregation, from 0.
    slot: usize,
    /// Offset of the counter in the entry.
    counter: u32,
    /// Offset of the stack in the key and in the entry.
    start: usize,
    size: usize,
    /// Maximum number of frames of a user stack; `None` for a kernel stack.
    user: Option<u32>,
    /// The action of the stack, from 1.
    action: u32,
}

impl CountByStack {
    /// Returns the count that `actions` are, if they are one.
    pub fn of(actions: &[Action]) -> Option<Self> {
        let aggregate = counting(actions)?;
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

    /// Whether the stack is a user stack.
    pub fn is_user(&self) -> bool {
        self.user.is_some()
    }

    /// Returns the maximum number of user frames that are counted by.
    #[inline(always)]
    fn most(&self, most: u32) -> usize {
        (most as usize).min(self.size.saturating_sub(8) / 8)
    }

    /// Returns the place where the entry of the stack with this number is remembered.
    #[inline(always)]
    fn place<'a>(&self, stacks: &'a mut [Counted], number: u64) -> Option<&'a mut Counted> {
        let at = (number as usize).wrapping_add(self.slot) % COUNTED;
        stacks.get_mut(at)
    }

    /// Counts in the entry of the same stack, if that is known; false if it is not.
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
        // The entry shows addresses of the process, so the process must be marked (INV-16).
        m.told();
        add_word_in(out.aggregations.bytes(), entry, self.counter, 1);
        true
    }

    /// Walks the stack and counts it.
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
        // The same stack often comes again: try the entry of the last one.
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

    /// Remembers the entry of the stack, if it has a number.
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

    /// Looks up or adds the entry of a stack that differs from the last one; false if there is no
    /// room.
    #[inline(never)]
    fn look_up(&self, actions: &[Action], used: usize, out: &mut Outputs) -> bool {
        let aggregations = &mut out.aggregations;
        let entry = counting(actions)
            .and_then(|aggregate| entry_of(aggregate, aggregations, &mut out.key, &[used]));
        if let (Some(entry), Some(slot)) = (entry, out.slots.get_mut(self.slot)) {
            *slot = u64::from(aggregations.generation()) << 32 | u64::from(entry);
        }
        entry.is_some()
    }
}
