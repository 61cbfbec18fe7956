// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Splits snapshots of aggregation buffers into entries and sums them up.
//!
//! An entry consists of an aggregation's id, its keys and its value. An id of zero is padding.
//! Several clauses may aggregate into the same variable, each with an id of its own. Entries are
//! summed by variable, not by id.

use super::fields::range;
use super::layout::{Aggregation, Layouts};
use super::{ConsumeError, Context};
use crate::aggregate::Aggregations;
use crate::value::Datum;
use dtrace_uapi::action::Action;
use dtrace_uapi::types::AggId;
use zerocopy::FromBytes;

/// Merges the entries of `data` into `table`.
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
        let aggregation = layouts.aggregation(context, id)?;
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
    let var = aggregation.var;
    let keys = aggregation.keys.iter().map(|key| key.datum(entry));
    let keys: Vec<Datum<'_>> = keys.collect();
    for pid in keys.iter().filter_map(Datum::process) {
        context.symbols.note(pid);
    }
    table.declare(var, func, field.arg);
    let value = entry.get(range(field)).unwrap_or_default();
    let merged = table.merge(var, func, &keys, value, context.symbols);
    merged.map_err(|_| ConsumeError::Layout("an aggregation's value has the wrong size"))
}
