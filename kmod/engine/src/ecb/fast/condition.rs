// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Conditions on one built-in variable, which are tested before anything else.

use crate::dif::builtins::quick;
use crate::dif::env::At;
use crate::dif::program::{Cond, Program, Quick, Test};
use crate::machine::{BadAddr, Machine};

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
