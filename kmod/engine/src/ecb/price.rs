// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! What a clause takes of a firing's budget whatever the data is.
//!
//! Programs that are interpreted take what they cost themselves, and so do strings, stacks, memory that is copied and speculations, whose
//! size the firing tells. What is left is known when the clause is built: how many values it has, which of them ask a clock or look for a
//! variable, how long a key and a record are. Of a clause that runs past the interpreter
//! that is everything.

use super::{Act, Action, Aggregate, Datum, Field};
use crate::budget::{ASKED, LOOKUP};
use crate::dif::program::Program;

/// Bytes of a record that are a unit.
const RECORDED: usize = 8;

/// Bytes of a key that are a unit, if it is as long as it can be: what it has of them is paid for where it comes from.
const KEYED: usize = 64;

/// The price of a clause whose record takes `principal` bytes of the buffer, units.
pub fn price(predicate: Option<&Program>, actions: &[Action], principal: usize) -> usize {
    let prices = actions.iter().map(|action| of_act(&action.act));
    let record = principal / RECORDED;
    let begun = record.saturating_add(predicate.map_or(0, Program::price));
    prices.fold(begun, |sum, one| sum.saturating_add(one).saturating_add(1))
}

fn of_act(act: &Act) -> usize {
    match act {
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
    }
}

fn of_field(field: &Field) -> usize {
    match &field.datum {
        Datum::Expr { program, .. } | Datum::Address(program) | Datum::UserAddress(program) => {
            program.price()
        }
        Datum::Stack { .. } | Datum::Ustack { .. } => 0,
    }
}

fn of_aggregate(aggregate: &Aggregate) -> usize {
    let values = [&aggregate.value, &aggregate.increment];
    let values = values.into_iter().flatten().map(Program::price);
    let looked = match aggregate.keys.is_empty() {
        true => 0,
        false => LOOKUP.saturating_add(aggregate.key_size / KEYED),
    };
    let keys = aggregate.keys.iter().map(of_field);
    values.chain(keys).fold(looked, usize::saturating_add)
}
