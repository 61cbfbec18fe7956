// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! What of a clause can be done before anything is made ready for it.
//!
//! Most firings of most clauses do next to nothing: a condition on one built-in variable does not hold, or a counter without a
//! key goes up by one. Neither can fault, or takes memory or budget, so that both are done first, and the rest of the way is for
//! those that need it. A [`Guard`] is the whole condition of its clause, which then has no other; a [`Tally`] is all that its
//! clause does.

use super::aggregation::Function;
use super::fire::Outputs;
use super::{Act, Action, Aggregate};
use crate::buf::add_word;
use crate::dif::builtins::quick;
use crate::dif::env::At;
use crate::dif::program::{Cond, Program, Quick, Test};
use crate::machine::Machine;

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

/// The only action of a clause, which is `count()` without a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tally {
    /// Which of the aggregations, from 0.
    slot: usize,
    /// Offset of the counter in the entry.
    offset: usize,
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
        match aggregate {
            Aggregate {
                value: None,
                increment: None,
                function: Function::Count,
                ..
            } if aggregate.keys.is_empty() => Some(Self {
                slot: (aggregate.id as usize).checked_sub(1)?,
                offset: aggregate.offset,
            }),
            _ => None,
        }
    }

    /// Counts; `false` where the counter is yet to be made.
    #[inline(always)]
    pub fn count(&self, out: &mut Outputs) -> bool {
        let known = out.slots.get(self.slot).copied().unwrap_or(0);
        if (known >> 32) as u32 != out.aggregations.generation() {
            return false;
        }
        let at = (known as u32 as usize).wrapping_add(self.offset);
        add_word(out.aggregations.bytes(), at, 1);
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
