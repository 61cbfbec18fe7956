// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! The price of a clause: what it takes from the budget whatever the data is.
//!
//! Programs that are interpreted take their costs themselves. So do strings, stacks, copied memory
//! and speculations, whose sizes are known only in the firing. The rest is known when the clause is
//! built: how many values it has, which of them read a clock or look up a variable, how long its
//! keys, its record and the data of its aggregations are. If a clause bypasses the interpreter,
//! that is all of its work. A clause whose price is more than a portion does not bypass the
//! interpreter, and its price is counted action by action.

use super::output::{in_action, Failed};
use super::{Act, Action, Aggregate, Datum, Field, Prepared};
use crate::budget::{Spent, ASKED, LOOKUP, PORTION};
use crate::dif::env::Env;
use crate::dif::exec::Stopped;
use crate::dif::program::Program;
use crate::machine::Machine;

/// Bytes of a record, or of an aggregation's data, for one unit.
const RECORDED: usize = 8;

/// Bytes of a key for one unit, taking the key at its maximum size: the bytes that it really has
/// are paid for where they come from.
const KEYED: usize = 64;

/// Units of a part of a key: it is written, hashed, and compared with those of a few entries.
const PART: usize = 8;

/// Returns the price, in units, of a clause whose record takes `principal` bytes of the buffer.
pub fn price(predicate: Option<&Program>, actions: &[Action], principal: usize) -> usize {
    let record = principal / RECORDED;
    let begun = record.saturating_add(predicate.map_or(0, Program::price));
    let prices = actions
        .iter()
        .flat_map(|action| [of_action(action), of_keys(action)]);
    prices.fold(begun, usize::saturating_add)
}

/// Returns the units of an action, without those of the parts of its key.
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

/// Returns the units of the parts of an action's key.
fn of_keys(action: &Action) -> usize {
    let keys = match &action.act {
        Act::Aggregate(aggregate) => &aggregate.keys[..],
        _ => &[],
    };
    keys.iter().map(of_key).fold(0, usize::saturating_add)
}

/// Returns the units of a part of a key.
pub(super) fn of_key(field: &Field) -> usize {
    of_field(field).saturating_add(PART)
}

/// Returns the units of a datum.
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
    // The data is cleared the first time.
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

/// Takes `units` from the clause's budget.
#[inline(always)]
pub(super) fn spend<M: Machine>(env: &mut Env<'_, M>, units: usize) -> Result<(), Stopped> {
    env.pay(units).map_err(spent)
}

/// Takes a clause's price. A price above a portion is counted action by action ([`did`]).
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

/// Counts a part of a price above a portion, which is about to be done.
#[inline(always)]
pub(super) fn did<M: Machine>(
    env: &mut Env<'_, M>,
    action: u32,
    units: impl FnOnce() -> usize,
) -> Result<(), Failed> {
    let done = env.vm.budget.did(env.m, units);
    done.map_err(spent).map_err(in_action(action))
}
