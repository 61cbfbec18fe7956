// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Snapshots of aggregation buffers cut into entries and added up.
//!
//! An entry is an aggregation's number, its keys and its value; a number of zero is padding. The same variable
//! may be fed by several clauses, each with a number of its own: the statement's variable, not the number, says
//! what is added to what.

use super::layout::{range, Aggregation, Layouts};
use super::walk::datum;
use super::{ConsumeError, Context};
use crate::render::{Aggregations, Datum};
use crate::statement::{self, AggVarId, Statement};
use dtrace_uapi::action::Action;
use dtrace_uapi::types::AggId;
use zerocopy::FromBytes;

/// Adds the entries of `data` to `table`.
pub fn add(
    context: Context<'_>,
    layouts: &mut Layouts,
    table: &mut Aggregations,
    data: &[u8],
) -> Result<(), ConsumeError> {
    let mut rest = data;
    while let Ok((id, after)) = AggId::read_from_prefix(rest) {
        if id == 0 {
            rest = after;
            continue;
        }
        let aggregation = layouts.aggregation(context.device, id)?;
        let entry = rest.get(..aggregation.size);
        let entry = entry.ok_or(ConsumeError::Layout(
            "an aggregation's entry exceeds its buffer",
        ))?;
        add_entry(context, table, &aggregation, entry)?;
        rest = &rest[aggregation.size..];
    }
    Ok(())
}

fn add_entry(
    context: Context<'_>,
    table: &mut Aggregations,
    aggregation: &Aggregation,
    entry: &[u8],
) -> Result<(), ConsumeError> {
    let field = &aggregation.value;
    let func = Action::from_raw(field.action).filter(|func| func.is_aggregation());
    let func = func.ok_or(ConsumeError::Layout("an aggregation without a function"))?;
    let (var, kinds) = variable(context, field.uarg);
    // An increment given to a quantization has a record without size.
    let keys = aggregation
        .keys
        .iter()
        .filter(|key| key.size > 0)
        .enumerate();
    let keys: Vec<Datum<'_>> = keys
        .map(|(at, key)| datum(kinds.get(at).copied(), key, &entry[range(key)]))
        .collect();
    for pid in keys.iter().filter_map(Datum::process) {
        context.symbols.note(pid);
    }
    table.declare(var, func, field.arg);
    let value = entry.get(range(field)).unwrap_or_default();
    let merged = table.merge(var, func, &keys, value, context.symbols);
    merged.map_err(|_| ConsumeError::Layout("an aggregation's value has the wrong size"))
}

/// The variable of an aggregating action and the types of its keys; 0 and no types for one of nobody's.
fn variable(context: Context<'_>, uarg: u64) -> (AggVarId, &[statement::Kind]) {
    match statement::find(context.statements, statement::FIRST, uarg) {
        Some(Statement::Aggregate { var, keys }) => (*var, keys),
        _ => (0, &[]),
    }
}
