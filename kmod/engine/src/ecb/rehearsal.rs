// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Rehearsals: a clause is run without effects, to find out which user memory it would miss
//! (INV-47).
//!
//! A load of user memory fails if its page is not in memory, and a provider may be able to bring
//! the page before the clause runs. If the clause ran, the page were brought, and the clause ran
//! again, everything before the load would be counted twice. A rehearsal computes what the clause
//! computes, and keeps nothing: it begins no record, makes no entry of an aggregation, and leaves
//! out assignments to variables that outlive the firing. The first load of user memory that fails
//! ends it, and is its result.
//!
//! Clause-local variables are assigned, because addresses often depend on them. What a clause
//! stores elsewhere and reads back in the same firing has its value from before the firing. If an
//! address depends on that, the rehearsal may overlook a page, and the clause faults as it would
//! without a rehearsal.

use super::output::{in_action, Failed};
use super::price::{did, of_action, of_key, spend, spend_price};
use super::{Act, Action, Datum, Field, Prepared, Shape};
use crate::budget::CALLED;
use crate::dif::env::{user_load, user_load_str, Env};
use crate::dif::exec;
use crate::dif::program::Program;
use crate::machine::Machine;

/// User memory that a clause would load, and that is not in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Where the load begins.
    pub addr: u64,
    /// Size of the load in bytes; for a string, its maximum.
    pub size: usize,
}

/// Rehearses a clause whose condition may hold. Missing memory is noted in `env`. Any fault ends
/// the rehearsal.
pub fn run<M: Machine>(clause: &Prepared, env: &mut Env<'_, M>) -> Result<(), Failed> {
    if let Some(predicate) = clause.condition.program() {
        if exec::run(predicate, env).map_err(in_action(0))? == 0 {
            return Ok(());
        }
    }
    spend_price(clause, env).map_err(in_action(0))?;
    for action in clause.actions.iter() {
        let Action { number, act } = action;
        did(env, *number, || of_action(action))?;
        match act {
            Act::Record(field) | Act::Exit(field) => touch(field, env)?,
            Act::Memory(memory) => touch(memory.field(), env)?,
            Act::Aggregate(aggregate) => {
                for key in aggregate.keys.iter() {
                    did(env, key.action, || of_key(key))?;
                    touch(key, env)?;
                }
                for program in [&aggregate.value, &aggregate.increment]
                    .into_iter()
                    .flatten()
                {
                    exec::run(program, env).map_err(in_action(aggregate.action))?;
                }
            }
            Act::Effect(program)
            | Act::Raise(program)
            | Act::Chill(program)
            | Act::Speculate(program)
            | Act::Commit(program)
            | Act::Discard(program) => {
                exec::run(program, env).map_err(in_action(*number))?;
            }
            Act::Stop | Act::Breakpoint | Act::Panic | Act::Nothing => {}
        }
    }
    Ok(())
}

/// Computes a datum, and loads the part of it that is in user memory.
fn touch<M: Machine>(field: &Field, env: &mut Env<'_, M>) -> Result<(), Failed> {
    let fail = in_action(field.action);
    let (program, shape) = match &field.datum {
        Datum::Expr { program, shape } => (program, *shape),
        Datum::Address(program) | Datum::UserAddress(program) => (program, Shape::Value(8)),
        Datum::Stack | Datum::Ustack { .. } => return Ok(()),
    };
    let mut at = exec::run(program, env).map_err(&fail)?;
    let is_string = match shape {
        Shape::UserBytes => false,
        Shape::UserString => true,
        Shape::Value(_) | Shape::Bytes | Shape::String => return Ok(()),
    };
    let trapped = |trap| exec::Stopped { trap, pc: 0 };
    env.check_user_memory().map_err(trapped).map_err(&fail)?;
    let mut left = field.size;
    while left > 0 {
        let n = left.min(env.core.strsize);
        spend(env, n.max(CALLED)).map_err(&fail)?;
        let tmp = &mut env.vm.tmp[0];
        let piece = tmp.get_mut(..n).unwrap_or(&mut []);
        if n == 0 {
            break;
        }
        let loaded = match is_string {
            true => user_load_str(env.m, env.rehearsal, at, piece).map(|len| len < n),
            false => user_load(env.m, env.rehearsal, at, piece).map(|()| false),
        };
        if loaded.map_err(|bad| fail(trapped(bad.into())))? {
            break;
        }
        at = at.wrapping_add(n as u64);
        left = left.saturating_sub(n);
    }
    Ok(())
}

impl Action {
    /// Whether `field` holds for one of its fields, or `program` for one of its programs outside of
    /// a field.
    fn any(&self, field: fn(&Field) -> bool, program: fn(&Program) -> bool) -> bool {
        match &self.act {
            Act::Record(of) | Act::Exit(of) => field(of),
            Act::Memory(memory) => field(memory.field()),
            Act::Aggregate(aggregate) => {
                let values = [&aggregate.value, &aggregate.increment];
                aggregate.keys.iter().any(field) || values.into_iter().flatten().any(program)
            }
            Act::Effect(of)
            | Act::Raise(of)
            | Act::Chill(of)
            | Act::Speculate(of)
            | Act::Commit(of)
            | Act::Discard(of) => program(of),
            Act::Stop | Act::Breakpoint | Act::Panic | Act::Nothing => false,
        }
    }
}

impl Field {
    fn program(&self) -> Option<&Program> {
        match &self.datum {
            Datum::Expr { program, .. } | Datum::Address(program) | Datum::UserAddress(program) => {
                Some(program)
            }
            Datum::Stack | Datum::Ustack { .. } => None,
        }
    }

    fn reads_user(&self) -> bool {
        let is_user = |shape| matches!(shape, Shape::UserBytes | Shape::UserString);
        matches!(self.datum, Datum::Expr { shape, .. } if is_user(shape))
            || self.program().is_some_and(Program::reads_user)
    }

    fn reads_args(&self) -> bool {
        self.program().is_some_and(Program::reads_args)
    }
}

/// Whether a clause loads user memory.
pub fn reads_user(predicate: Option<&Program>, actions: &[Action]) -> bool {
    let mut actions = actions.iter();
    predicate.is_some_and(Program::reads_user)
        || actions.any(|action| action.any(Field::reads_user, Program::reads_user))
}

/// Whether a clause reads an argument of the probe, which may lie in user memory.
pub fn reads_args(predicate: Option<&Program>, actions: &[Action]) -> bool {
    let mut actions = actions.iter();
    predicate.is_some_and(Program::reads_args)
        || actions.any(|action| action.any(Field::reads_args, Program::reads_args))
}
