// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! What of a clause can be done before anything is made ready for it.
//!
//! Most firings of most clauses do next to nothing: a condition on one built-in variable does not hold, or a counter goes up by
//! one that has no key, or whose key is one built-in variable and the same as the last time. Neither can fault, or takes memory or
//! budget, so that both are done first, and the rest of the way is for those that need it. A [`Guard`] is the whole condition of its
//! clause, which then has no other; a [`Tally`] is all that its clause does.

use super::aggregation::Function;
use super::execname;
use super::fire::Outputs;
use super::{Act, Action, Aggregate, Datum, Field, Shape};
use crate::buf::{add_word, half, word};
use crate::dif::builtins::quick;
use crate::dif::env::At;
use crate::dif::program::{Cond, Program, Quick, Test};
use crate::machine::Machine;
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
    pub fn opens<M: Machine>(&self, m: &M, at: At) -> bool {
        self.test.holds(quick(m, at, self.var))
    }
}

/// A key that cannot fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    /// There is none.
    Nothing,
    /// The name of the process.
    Execname,
    /// A variable in eight bytes.
    Word(Quick),
    /// A variable in four bytes.
    Half(Quick),
}

impl Key {
    /// The key that `fields` are, if they are one, and where it is in the entry.
    fn of(fields: &[Field]) -> Option<(Self, usize)> {
        let [field] = fields else {
            return fields.is_empty().then_some((Self::Nothing, 0));
        };
        let Datum::Expr { program, shape } = &field.datum else {
            return None;
        };
        let key = match (program, shape) {
            (Program::Quick(var), Shape::Value(8)) => Self::Word(*var),
            (Program::Quick(var), Shape::Value(4)) => Self::Half(*var),
            (
                Program::Builtin {
                    var: Var::Execname, ..
                },
                Shape::String,
            ) if field.size >= execname::SIZE => Self::Execname,
            _ => return None,
        };
        Some((key, field.offset))
    }

    /// Whether it is what `mem` has at `place`.
    #[inline(always)]
    fn is_at<M: Machine>(self, mem: &[u8], place: usize, m: &M, at: At) -> bool {
        match self {
            Self::Nothing => true,
            Self::Execname => execname::is_at(mem, place, m),
            Self::Word(var) => word(mem, place) == quick(m, at, var),
            Self::Half(var) => half(mem, place) == quick(m, at, var) as u32,
        }
    }
}

/// The only action of a clause, which is `count()` without a key or with one that cannot fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tally {
    /// Which of the aggregations, from 0.
    slot: usize,
    /// Offset of the counter in the entry.
    offset: usize,
    key: Key,
    /// Offset of the key in the entry.
    key_offset: usize,
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
        let (key, key_offset) = Key::of(&aggregate.keys)?;
        Some(Self {
            slot: (aggregate.id as usize).checked_sub(1)?,
            offset: aggregate.offset,
            key,
            key_offset,
        })
    }

    /// Counts; `false` where the counter is yet to be found or made.
    #[inline(always)]
    pub fn count<M: Machine>(&self, m: &M, at: At, out: &mut Outputs) -> bool {
        let known = out.slots.get(self.slot).copied().unwrap_or(0);
        if (known >> 32) as u32 != out.aggregations.generation() {
            return false;
        }
        let entry = known as u32 as usize;
        let mem = out.aggregations.bytes();
        if !self
            .key
            .is_at(mem, entry.wrapping_add(self.key_offset), m, at)
        {
            return false;
        }
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
