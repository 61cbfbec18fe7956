// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! What of a clause can be done before anything is made ready for it.
//!
//! Most firings of most clauses do next to nothing: a condition on one built-in variable does not hold, or a counter goes up by
//! one that has no key, or whose key is one built-in variable that has come before, or some built-in variables are
//! recorded. None of it takes memory or budget, or can fault but for an argument that lies in memory; so it is done first, and the rest
//! of the way is for those that need it: for what faults as well. A [`Guard`] is the whole condition of its clause, which then has no other; a [`Tally`] or a [`Note`] is all that its
//! clause does, which has no condition but a guard.

use super::aggregation::Function;
use super::execname;
use super::fire::Outputs;
use super::{Act, Action, Aggregate, Datum, Field, Shape};
use crate::buf::{add_word, half, set_half, set_word, word};
use crate::dif::builtins::quick;
use crate::dif::env::At;
use crate::dif::program::{Cond, Program, Quick, Test};
use crate::error::NoMem;
use crate::machine::{BadAddr, Machine};
use crate::mem::Vec;
use crate::var::dynamic::mix;
use dtrace_uapi::var::Var;

/// A condition on one built-in variable that cannot fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guard {
    var: Quick,
    test: Test,
}

impl Guard {
    /// The condition that `predicate` is, if it is one.
    pub fn of(predicate: &Program) -> Option<Self> {
        match *predicate {
            Program::Quick(var) => Some(Self {
                var,
                test: Test::new(Cond::Ne, 0)?,
            }),
            Program::Select { var, test, yes, no } => {
                let test = match (yes, no) {
                    (1.., 0) => test,
                    (0, 1..) => test.negated(),
                    _ => return None,
                };
                Some(Self { var, test })
            }
            _ => None,
        }
    }

    /// Whether the clause is to run.
    #[inline(always)]
    pub fn opens<M: Machine>(&self, m: &M, at: At) -> Result<bool, BadAddr> {
        Ok(self.test.holds(quick(m, at, self.var)?))
    }
}

/// A value that cannot fault, and takes no memory on its way to a record or a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    /// The name of the process.
    Execname,
    /// A variable in eight bytes.
    Word(Quick),
    /// A variable in four bytes.
    Half(Quick),
}

/// Such a value and where it is, from the beginning of the record or of the entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Placed {
    value: Value,
    offset: usize,
}

impl Placed {
    /// The value that `field` is, if it is one.
    fn of(field: &Field) -> Option<Self> {
        let Datum::Expr { program, shape } = &field.datum else {
            return None;
        };
        let value = match (program, shape) {
            (Program::Quick(var), Shape::Value(8)) => Value::Word(*var),
            (Program::Quick(var), Shape::Value(4)) => Value::Half(*var),
            (
                Program::Builtin {
                    var: Var::Execname, ..
                },
                Shape::String,
            ) if field.size >= execname::SIZE => Value::Execname,
            _ => return None,
        };
        Some(Self {
            value,
            offset: field.offset,
        })
    }

    /// Whether it is what the entry at `base` has in its place.
    #[inline(always)]
    fn is_in<M: Machine>(&self, mem: &[u8], base: usize, m: &M, at: At) -> bool {
        let place = base.wrapping_add(self.offset);
        match self.value {
            Value::Execname => execname::is_at(mem, place, m),
            Value::Word(var) => quick(m, at, var) == Ok(word(mem, place)),
            Value::Half(var) => {
                quick(m, at, var).is_ok_and(|value| half(mem, place) == value as u32)
            }
        }
    }

    /// Writes it to its place in the record at `base`.
    #[inline(always)]
    fn write<M: Machine>(&self, mem: &mut [u8], base: usize, m: &M, at: At) -> Result<(), BadAddr> {
        let place = base.wrapping_add(self.offset);
        match self.value {
            Value::Execname => {
                execname::write(mem.get_mut(place..).unwrap_or(&mut []), m);
            }
            Value::Word(var) => set_word(mem, place, quick(m, at, var)?),
            Value::Half(var) => set_half(mem, place, quick(m, at, var)? as u32),
        }
        Ok(())
    }
}

/// Values that cannot fault, which are all that a clause records.
#[derive(Debug)]
pub struct Note(Vec<Placed>);

impl Note {
    /// What `actions` amount to, if it is this.
    pub fn of(actions: &[Action]) -> Result<Option<Self>, NoMem> {
        let mut values = Vec::new();
        for action in actions {
            let value = match &action.act {
                Act::Record(field) => Placed::of(field),
                Act::Nothing => continue,
                _ => None,
            };
            match value {
                Some(value) => values.push(value)?,
                None => return Ok(None),
            }
        }
        Ok(Some(Self(values)))
    }

    /// Writes them to the record at `base`.
    #[inline(always)]
    pub fn write<M: Machine>(
        &self,
        mem: &mut [u8],
        base: usize,
        m: &M,
        at: At,
    ) -> Result<(), BadAddr> {
        self.0
            .iter()
            .try_for_each(|value| value.write(mem, base, m, at))
    }
}

/// The only action of a clause, which is `count()` without a key or with one that cannot fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tally {
    /// Which of the aggregations, from 0.
    slot: usize,
    /// Offset of the counter in the entry.
    offset: usize,
    key: Option<Placed>,
}

impl Tally {
    /// What `actions` amount to, if it is this.
    pub fn of(actions: &[Action]) -> Option<Self> {
        let [Action {
            act: Act::Aggregate(aggregate),
            ..
        }] = actions
        else {
            return None;
        };
        let Aggregate {
            value: None,
            increment: None,
            function: Function::Count,
            ..
        } = aggregate
        else {
            return None;
        };
        let key = match &*aggregate.keys {
            [] => None,
            [key] => Some(Placed::of(key)?),
            _ => return None,
        };
        Some(Self {
            slot: (aggregate.id as usize).checked_sub(1)?,
            offset: aggregate.offset,
            key,
        })
    }

    /// Counts where it counted the last time; `false`: the key is another one, or there was no last time.
    #[inline(always)]
    pub fn count<M: Machine>(&self, m: &M, at: At, out: &mut Outputs) -> bool {
        let known = out.slots.get(self.slot).copied().unwrap_or(0);
        if (known >> 32) as u32 != out.aggregations.generation() {
            return false;
        }
        let entry = known as u32 as usize;
        let mem = out.aggregations.bytes();
        if self.key.is_some_and(|key| !key.is_in(mem, entry, m, at)) {
            return false;
        }
        add_word(mem, entry.wrapping_add(self.offset), 1);
        true
    }

    /// Counts by a number that has come before; `false`: it has not, or the key is none.
    #[inline(never)]
    pub fn count_elsewhere<M: Machine>(&self, m: &M, at: At, out: &mut Outputs) -> bool {
        let Some(key) = self.key else {
            return false;
        };
        let (var, mask) = match key.value {
            Value::Word(var) => (var, u64::MAX),
            Value::Half(var) => (var, u64::from(u32::MAX)),
            Value::Execname => return false,
        };
        let id = self.slot.wrapping_add(1) as u32;
        let Ok(value) = quick(m, at, var) else {
            return false;
        };
        let value = value & mask;
        let part = |entry: &[u8]| match key.value {
            Value::Half(_) => u64::from(half(entry, key.offset)),
            _ => word(entry, key.offset),
        };
        let is_it = |entry: &[u8]| half(entry, 0) == id && part(entry) == value;
        let Some(entry) = out.aggregations.find(mix(u64::from(id), value), is_it) else {
            return false;
        };
        if let Some(slot) = out.slots.get_mut(self.slot) {
            *slot = u64::from(out.aggregations.generation()) << 32 | entry as u64;
        }
        let mem = out.aggregations.bytes();
        add_word(mem, entry.wrapping_add(self.offset), 1);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guard_is_what_its_program_returns() {
        let select = |yes, no| Program::Select {
            var: Quick::Pid,
            test: Test::new(Cond::Lu, 5).unwrap(),
            yes,
            no,
        };
        let holds = |program: &Program, value| Guard::of(program).map(|g| g.test.holds(value));
        for value in [0, 4, 5, 6, u64::MAX] {
            assert_eq!(holds(&select(1, 0), value), Some(value < 5));
            assert_eq!(holds(&select(0, 7), value), Some(value >= 5));
            assert_eq!(holds(&Program::Quick(Quick::Tid), value), Some(value != 0));
        }
        // The same on both sides is no condition, and what may fault is none that a guard can ask.
        assert_eq!(Guard::of(&select(1, 2)), None);
        assert_eq!(Guard::of(&select(0, 0)), None);
        assert_eq!(Guard::of(&Program::Const(0)), None);
    }
}
