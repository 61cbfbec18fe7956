// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Fast paths that run before per-firing state is set up.
//!
//! Most firings of most clauses do next to nothing. A condition on one built-in variable does not
//! hold; or a counter is incremented that has no key, or whose key is one built-in variable that
//! came before; or some built-in variables are recorded. None of this takes memory or budget, or
//! can fault, except by an argument that lies in memory. So it is done first, and the general path
//! is for clauses that need it, and for those that fault. A [`Guard`] is the whole condition of its
//! clause, which then has no other. A [`Tally`], a [`TallyBy`] or a [`Note`] is all that its clause
//! does, which has no condition but a guard.
//!
//! A count without a key, or by the name of the process, increments the counter that it incremented
//! last, without a look-up. A number usually differs from the last one, so it is looked up every
//! time. That is a separate function, so that the other paths carry no cost of it.

use super::aggregation::Function;
use super::execname;
use super::fire::Outputs;
use super::{Act, Action, Aggregate, Datum, Field, Shape};
use crate::buf::{add_word_in, half_in, set_half, set_word, word_in};
use crate::dif::builtins::quick;
use crate::dif::env::At;
use crate::dif::program::{Cond, Program, Quick, Test};
use crate::error::NoMem;
use crate::hash::mix;
use crate::machine::{BadAddr, Machine};
use crate::mem::Vec;
use dtrace_uapi::var::Var;

/// A condition on one built-in variable that cannot fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guard {
    var: Quick,
    test: Test,
}

impl Guard {
    /// Returns the condition that `predicate` is, if it is one.
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

    /// Whether the clause must run.
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

/// Such a value and its offset from the beginning of the record or of the entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Placed {
    value: Value,
    offset: usize,
}

impl Placed {
    /// Returns the value that `field` is, if it is one.
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
    /// Returns the note that `actions` are, if they are one.
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
pub struct Tally {
    /// The aggregation, from 0.
    slot: usize,
    /// Offset of the counter in the entry.
    offset: u32,
    /// Offset of the name in the entry, if the key is the name.
    name: Option<u32>,
}

impl Tally {
    /// Returns the tally that `actions` are, if they are one.
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
pub struct TallyBy {
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

impl TallyBy {
    /// Returns the tally that `actions` are, if they are one.
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
        // The same result on both sides is no condition, and a guard cannot test what may fault.
        assert_eq!(Guard::of(&select(1, 2)), None);
        assert_eq!(Guard::of(&select(0, 0)), None);
        assert_eq!(Guard::of(&Program::Const(0)), None);
    }
}
