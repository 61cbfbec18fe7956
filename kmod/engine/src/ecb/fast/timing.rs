// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Clauses that cannot fault, except by an argument that lies in memory. They consist of
//! thread-local variables that are numbers, and of aggregations without a key.
//!
//! Most tracing measures how long something takes. That is written with two clauses: one stores the
//! time in a thread-local variable where it begins, the other aggregates the difference where it
//! ends. Nothing in them can fault, needs scratch memory or a budget, or writes a record. So they
//! run here, as moves that need no decoding. A [`Timing`] is the whole clause, except that a
//! [`QuickTest`](super::condition::QuickTest) comes before it.

use crate::dif::builtins::quick;
use crate::dif::env::At;
use crate::dif::exec::Stopped;
use crate::dif::locals::{Local, Locals};
use crate::dif::program::{Program, Quick};
use crate::ecb::fire::update_only;
use crate::ecb::output::{in_action, Failed, Outputs};
use crate::ecb::{Act, Action, Aggregate};
use crate::error::NoMem;
use crate::machine::{BadAddr, Machine};
use crate::mem::Vec;

/// A number that can be computed without a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Amount {
    Const(u64),
    Quick(Quick),
    Local(Local),
    /// The first less the second.
    Since(Quick, Local),
}

impl Amount {
    /// Returns what `program` computes, if it is such a number.
    fn of(program: &Program) -> Option<Self> {
        Some(match *program {
            Program::Const(value) => Self::Const(value),
            Program::Quick(var) => Self::Quick(var),
            Program::Load(var) => Self::Local(Local::of(var)?),
            Program::Since { from, var } => Self::Since(from, Local::of(var)?),
            _ => return None,
        })
    }

    #[inline(always)]
    fn get<M: Machine>(self, m: &M, at: At, locals: &mut Locals<'_>) -> Result<u64, BadAddr> {
        Ok(match self {
            Self::Since(from, local) => soon(m, at, from)?.wrapping_sub(locals.load(local)),
            Self::Quick(var) => soon(m, at, var)?,
            Self::Local(local) => locals.load(local),
            Self::Const(value) => value,
        })
    }
}

/// Reads the variable; if it is the time, without a call.
#[inline(always)]
fn soon<M: Machine>(m: &M, at: At, var: Quick) -> Result<u64, BadAddr> {
    match var {
        Quick::Timestamp => Ok(m.timestamp()),
        other => less_soon(m, at, other),
    }
}

#[inline(never)]
fn less_soon<M: Machine>(m: &M, at: At, var: Quick) -> Result<u64, BadAddr> {
    quick(m, at, var)
}

/// Returns the fault of an action whose argument cannot be loaded. Every such action loads it in
/// its first instruction.
fn not_there(action: u32) -> impl Fn(BadAddr) -> Failed {
    move |bad| {
        let trap = bad.into();
        in_action(action)(Stopped { trap, pc: 0 })
    }
}

/// What an action does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Move {
    /// Does nothing in the kernel.
    Nothing,
    /// Assigns a built-in variable.
    Assign(Local, Quick),
    /// Assigns 0.
    Delete(Local),
    /// Updates the action's aggregation.
    Aggregate(Amount),
}

impl Move {
    /// Returns the move that `act` is, if it is one.
    fn of(act: &Act) -> Option<Self> {
        match act {
            Act::Nothing => Some(Self::Nothing),
            Act::Effect(Program::Assign { var, value, .. }) => {
                let local = Local::of(*var)?;
                Some(value.map_or(Self::Delete(local), |value| Self::Assign(local, value)))
            }
            Act::Aggregate(Aggregate {
                keys,
                value,
                increment: None,
                function,
                ..
            }) if keys.is_empty() && function.cost() == 0 => Some(Self::Aggregate(match value {
                Some(program) => Amount::of(program)?,
                None => Amount::Const(0),
            })),
            _ => None,
        }
    }
}

/// A clause that cannot fault.
#[derive(Debug)]
pub struct Timing {
    /// If set, the clause runs only if this is not 0.
    when: Option<Local>,
    /// One for each of the clause's actions.
    moves: Vec<Move>,
}

impl Timing {
    /// Returns the clause of this predicate and these actions, if they make one. The caller must
    /// check that the clause has no record: one without actions may have.
    pub fn of(predicate: Option<&Program>, actions: &[Action]) -> Result<Option<Self>, NoMem> {
        let when = match predicate {
            None => None,
            Some(Program::Load(var)) => match Local::of(*var) {
                None => return Ok(None),
                local => local,
            },
            Some(_) => return Ok(None),
        };
        let mut moves = Vec::new();
        for action in actions {
            match Move::of(&action.act) {
                Some(step) => moves.push(step)?,
                None => return Ok(None),
            }
        }
        Ok(Some(Self { when, moves }))
    }

    /// Runs the clause if its condition holds, and returns whether it does. `actions` are those
    /// that the clause was made of.
    #[inline(always)]
    pub fn run<M: Machine>(
        &self,
        actions: &[Action],
        m: &M,
        at: At,
        mut locals: Locals<'_>,
        out: &mut Outputs,
    ) -> Result<bool, Failed> {
        if self.when.is_some_and(|local| locals.load(local) == 0) {
            return Ok(false);
        }
        for (step, action) in self.moves.iter().zip(actions) {
            match *step {
                Move::Assign(local, var) => {
                    let value = soon(m, at, var).map_err(not_there(action.number))?;
                    locals.store(local, value);
                }
                Move::Delete(local) => locals.delete(local),
                Move::Aggregate(amount) => {
                    if let Act::Aggregate(aggregate) = &action.act {
                        let value = amount.get(m, at, &mut locals);
                        let value = value.map_err(not_there(aggregate.action))?;
                        update_only(aggregate, out, value, 1);
                    }
                }
                Move::Nothing => {}
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dif::program::Dyn;
    use crate::ecb::aggregation::Function;

    const VAR: Dyn = Dyn {
        id: 0x500,
        thread: true,
        array: false,
        by_ref: None,
        string: false,
    };

    fn assign(var: Dyn, value: Option<Quick>) -> Act {
        Act::Effect(Program::Assign { var, value, pc: 0 })
    }

    fn sum(value: Program) -> Act {
        Act::Aggregate(Aggregate {
            id: 1,
            keys: Vec::new(),
            key_size: 4,
            value: Some(value),
            increment: None,
            action: 1,
            function: Function::Sum,
            offset: 8,
            size: 16,
            records: Vec::new(),
        })
    }

    #[test]
    fn what_times_something_is_timing() {
        let local = Local::of(VAR).unwrap();
        let note = Move::of(&assign(VAR, Some(Quick::Timestamp)));
        assert_eq!(note, Some(Move::Assign(local, Quick::Timestamp)));
        let difference = Move::of(&sum(Program::Since {
            from: Quick::Timestamp,
            var: VAR,
        }));
        let amount = Amount::Since(Quick::Timestamp, local);
        assert_eq!(difference, Some(Move::Aggregate(amount)));
        assert_eq!(Move::of(&assign(VAR, None)), Some(Move::Delete(local)));
        let timing = Timing::of(Some(&Program::Load(VAR)), &[]).unwrap();
        assert_eq!(timing.map(|timing| timing.when), Some(Some(local)));
    }

    #[test]
    fn what_may_fault_or_has_bytes_is_not() {
        let array = Dyn { array: true, ..VAR };
        let bytes = Dyn {
            by_ref: Some(16),
            ..VAR
        };
        for var in [array, bytes] {
            assert_eq!(Move::of(&assign(var, None)), None);
            assert_eq!(Move::of(&sum(Program::Load(var))), None);
            assert!(Timing::of(Some(&Program::Load(var)), &[])
                .unwrap()
                .is_none());
        }
        let steps = || Program::of(Vec::new());
        assert_eq!(Move::of(&Act::Effect(steps())), None);
        assert_eq!(Move::of(&sum(steps())), None);
        assert!(Timing::of(Some(&steps()), &[]).unwrap().is_none());
    }
}
