// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Clauses that only count: without a key, by the name of the process, or by a number.
//!
//! A count without a key, or by the name of the process, increments the counter that it incremented
//! last, without a look-up. A number usually differs from the last one, so it is looked up every
//! time. That is a separate function, so that the other paths carry no cost of it.

use super::execname;
use super::record::{Placed, Value};
use crate::buf::{add_word_in, half_in, word_in};
use crate::dif::builtins::quick;
use crate::dif::env::At;
use crate::dif::program::Quick;
use crate::ecb::aggregation::Function;
use crate::ecb::output::Outputs;
use crate::ecb::{Act, Action, Aggregate};
use crate::hash::mix;
use crate::machine::Machine;

/// Returns the aggregation that `actions` are, if they are nothing but `count()`.
pub(super) fn counting(actions: &[Action]) -> Option<&Aggregate> {
    let [Action {
        act: Act::Aggregate(aggregate),
        ..
    }] = actions
    else {
        return None;
    };
    let is_plain = matches!(
        aggregate,
        Aggregate {
            value: None,
            increment: None,
            function: Function::Count,
            ..
        }
    );
    is_plain.then_some(aggregate)
}

/// The only action of a clause, if it is `count()` without a key or by the name of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// The aggregation, from 0.
    slot: usize,
    /// Offset of the counter in the entry.
    offset: u32,
    /// Offset of the name in the entry, if the key is the name.
    name: Option<u32>,
}

impl Count {
    /// Returns the count that `actions` are, if they are one.
    pub fn of(actions: &[Action]) -> Option<Self> {
        let aggregate = counting(actions)?;
        let name = match &*aggregate.keys {
            [] => None,
            [key] => {
                let key = Placed::of(key).filter(|key| key.value == Value::Execname)?;
                Some(u32::try_from(key.offset).ok()?)
            }
            _ => return None,
        };
        Some(Self {
            slot: (aggregate.id as usize).checked_sub(1)?,
            offset: u32::try_from(aggregate.offset).ok()?,
            name,
        })
    }

    /// Counts in the entry of the last time. False if the name differs, or there was no last time.
    #[inline(always)]
    pub fn count<M: Machine>(&self, m: &M, out: &mut Outputs) -> bool {
        let known = out.slots.get(self.slot).copied().unwrap_or(0);
        if (known >> 32) as u32 != out.aggregations.generation() {
            return false;
        }
        let entry = known as u32;
        let mem = out.aggregations.bytes();
        if let Some(name) = self.name {
            if !execname::is_at(mem, (entry as usize).wrapping_add(name as usize), m) {
                return false;
            }
        }
        add_word_in(mem, entry, self.offset, 1);
        true
    }
}

/// The only action of a clause, if it is `count()` by a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountByNumber {
    /// The aggregation.
    id: u32,
    /// Offset of the counter in the entry.
    offset: u32,
    /// The number, and its offset in the entry.
    var: Quick,
    place: u32,
    /// It has four bytes, not eight.
    is_half: bool,
}

impl CountByNumber {
    /// Returns the count that `actions` are, if they are one.
    pub fn of(actions: &[Action]) -> Option<Self> {
        let aggregate = counting(actions)?;
        let [key] = &*aggregate.keys else {
            return None;
        };
        let Placed { value, offset } = Placed::of(key)?;
        let (var, is_half) = match value {
            Value::Execname => return None,
            Value::Word(var) => (var, false),
            Value::Half(var) => (var, true),
        };
        Some(Self {
            id: aggregate.id,
            offset: u32::try_from(aggregate.offset).ok()?,
            var,
            place: u32::try_from(offset).ok()?,
            is_half,
        })
    }

    /// Counts if the number came before; false if it did not, or cannot be loaded.
    #[inline(never)]
    pub fn count<M: Machine>(&self, m: &M, at: At, out: &mut Outputs) -> bool {
        let Ok(value) = quick(m, at, self.var) else {
            return false;
        };
        let value = match self.is_half {
            true => u64::from(value as u32),
            false => value,
        };
        let number = |mem: &[u8], entry| match self.is_half {
            true => half_in(mem, entry, self.place).into(),
            false => word_in(mem, entry, self.place),
        };
        let is_it =
            |mem: &[u8], entry| half_in(mem, entry, 0) == self.id && number(mem, entry) == value;
        let hash = mix(out.aggregations.hash(self.id), value);
        let Some(entry) = out.aggregations.find(hash, is_it) else {
            return false;
        };
        add_word_in(out.aggregations.bytes(), entry, self.offset, 1);
        true
    }
}
