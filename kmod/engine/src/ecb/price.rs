// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! What a clause takes of a firing's budget whatever the data is.
//!
//! Programs that are interpreted take what they cost themselves, and so do strings, stacks, memory that is copied and speculations, whose
//! size the firing tells. What is left is known when the clause is built: how many values it has, which of them ask a clock or look for a
//! variable, how long keys, records and the data of aggregations are. Of a clause that runs past the interpreter
//! that is everything. Where it is more than a portion the clause does not run past it, and counts action by action.

use super::fire::{in_action, Failed};
use super::{Act, Action, Aggregate, Datum, Field, Prepared};
use crate::budget::{Spent, ASKED, LOOKUP, PORTION};
use crate::dif::env::Env;
use crate::dif::exec::Stopped;
use crate::dif::program::Program;
use crate::machine::Machine;

/// Bytes of a record, or of an aggregation's data, that are a unit.
const RECORDED: usize = 8;

/// Bytes of a key that are a unit, if it is as long as it can be: what it has of them is paid for where it comes from.
const KEYED: usize = 64;

/// Units of a part of a key, which is written, hashed, and compared with those of a few entries.
const PART: usize = 8;

/// The price of a clause whose record takes `principal` bytes of the buffer, units.
pub fn price(predicate: Option<&Program>, actions: &[Action], principal: usize) -> usize {
    let record = principal / RECORDED;
    let begun = record.saturating_add(predicate.map_or(0, Program::price));
    let prices = actions
        .iter()
        .flat_map(|action| [of_action(action), of_keys(action)]);
    prices.fold(begun, usize::saturating_add)
}

/// What an action takes, but for the parts of a key.
pub(super) fn of_action(action: &Action) -> usize {
    let own = match &action.act {
        Act::Record(field) | Act::Exit(field) => of_field(field),
        Act::Memory(memory) => of_field(memory.field()),
        Act::Aggregate(aggregate) => of_aggregate(aggregate),
        Act::Effect(program)
        | Act::Raise(program)
        | Act::Chill(program)
        | Act::Speculate(program)
        | Act::Commit(program)
        | Act::Discard(program) => program.price(),
        Act::Stop | Act::Breakpoint | Act::Panic => ASKED,
        Act::Nothing => 0,
    };
    own.saturating_add(1)
}

/// What the parts of an action's key take.
fn of_keys(action: &Action) -> usize {
    let keys = match &action.act {
        Act::Aggregate(aggregate) => &aggregate.keys[..],
        _ => &[],
    };
    keys.iter().map(of_key).fold(0, usize::saturating_add)
}

/// What a part of a key takes.
pub(super) fn of_key(field: &Field) -> usize {
    of_field(field).saturating_add(PART)
}

/// What a datum takes.
fn of_field(field: &Field) -> usize {
    match &field.datum {
        Datum::Expr { program, .. } | Datum::Address(program) | Datum::UserAddress(program) => {
            program.price()
        }
        Datum::Stack | Datum::Ustack { .. } => 0,
    }
}

fn of_aggregate(aggregate: &Aggregate) -> usize {
    let values = [&aggregate.value, &aggregate.increment];
    let values = values.into_iter().flatten().map(Program::price);
    let looked = match aggregate.keys.is_empty() {
        true => 0,
        false => LOOKUP.saturating_add(aggregate.key_size / KEYED),
    };
    // The first time the data is cleared.
    let begun = looked.saturating_add(aggregate.size / RECORDED);
    values.fold(begun, usize::saturating_add)
}

#[cold]
fn spent(spent: Spent) -> Stopped {
    Stopped {
        trap: spent.into(),
        pc: 0,
    }
}

/// Takes from the firing's budget.
#[inline(always)]
pub(super) fn spend<M: Machine>(env: &mut Env<'_, M>, units: usize) -> Result<(), Stopped> {
    env.pay(units).map_err(spent)
}

/// Takes a clause's price. Where that is much it is [done](did) action by action.
#[inline(always)]
pub(super) fn spend_price<M: Machine>(
    clause: &Prepared,
    env: &mut Env<'_, M>,
) -> Result<(), Stopped> {
    match clause.price <= PORTION as usize {
        true => spend(env, clause.price),
        false => env.vm.budget.begin(clause.price).map(drop).map_err(spent),
    }
}

/// Some of a great price is about to be done.
#[inline(always)]
pub(super) fn did<M: Machine>(
    env: &mut Env<'_, M>,
    action: u32,
    units: impl FnOnce() -> usize,
) -> Result<(), Failed> {
    let done = env.vm.budget.did(env.m, units);
    done.map_err(spent).map_err(in_action(action))
}
