// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! When a clause runs: its predicate, and the test before anything else that a predicate on one
//! built-in variable is.

use crate::dif::builtins::quick;
use crate::dif::env::At;
use crate::dif::program::{Cond, Program, Quick, Test};
use crate::machine::{BadAddr, Machine};

/// When a clause runs.
#[derive(Debug)]
pub enum Condition {
    /// At each firing of its probe.
    Always,
    /// If a built-in variable passes a test.
    Quick(QuickTest),
    /// If this does not return 0.
    Program(Program),
}

impl Condition {
    /// Returns the condition that a predicate is.
    pub fn of(predicate: Option<Program>) -> Self {
        match predicate {
            None => Self::Always,
            Some(program) => QuickTest::of(&program).map_or(Self::Program(program), Self::Quick),
        }
    }

    /// Returns what is to be run to test the condition, if that takes a program.
    #[inline(always)]
    pub fn program(&self) -> Option<&Program> {
        match self {
            Self::Program(program) => Some(program),
            Self::Always | Self::Quick(_) => None,
        }
    }

    /// Whether the clause may have to run, which is certain unless there is a
    /// [`program`](Self::program).
    #[inline(always)]
    pub fn may_hold<M: Machine>(&self, m: &M, at: At) -> Result<bool, BadAddr> {
        match self {
            Self::Quick(test) => test.holds(m, at),
            Self::Always | Self::Program(_) => Ok(true),
        }
    }
}

/// A test of one built-in variable. It cannot fault, except by an argument that lies in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuickTest {
    var: Quick,
    test: Test,
}

impl QuickTest {
    /// Returns the test that `predicate` is, if it is one.
    fn of(predicate: &Program) -> Option<Self> {
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

    #[inline(always)]
    fn holds<M: Machine>(&self, m: &M, at: At) -> Result<bool, BadAddr> {
        Ok(self.test.holds(quick(m, at, self.var)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_is_what_its_program_returns() {
        let select = |yes, no| Program::Select {
            var: Quick::Pid,
            test: Test::new(Cond::Lu, 5).unwrap(),
            yes,
            no,
        };
        let holds =
            |program: &Program, value| QuickTest::of(program).map(|quick| quick.test.holds(value));
        for value in [0, 4, 5, 6, u64::MAX] {
            assert_eq!(holds(&select(1, 0), value), Some(value < 5));
            assert_eq!(holds(&select(0, 7), value), Some(value >= 5));
            assert_eq!(holds(&Program::Quick(Quick::Tid), value), Some(value != 0));
        }
        // The same result on both sides is no condition, and a test has one variable.
        assert_eq!(QuickTest::of(&select(1, 2)), None);
        assert_eq!(QuickTest::of(&select(0, 0)), None);
        assert_eq!(QuickTest::of(&Program::Const(0)), None);
    }
}
