// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Runs a clause: predicate, actions, data.
//!
//! A key is built in a buffer of its own, in which strings are padded with zeros to the next word.
//! It is hashed and compared over the bytes in use, and copied only if it is new. The place of an
//! aggregation's last entry is remembered: if the key is the same again, or if there is no key,
//! nothing is looked up.

use super::fast::execname;
use super::output::{at_start, begin, in_action, End, Failed, Outputs};
use super::price::{did, of_action, of_key, spend, spend_price};
use super::speculate::{commit, discard, speculate};
use super::stacks;
use super::{Act, Aggregate, Datum, Field, Prepared, Shape};
use crate::buf::aggregate::Aggregations;
use crate::buf::{copy, set_half, set_word, slice_at};
use crate::dif::env::{user_load_paid, Env};
use crate::dif::exec::{self, Stopped};
use crate::dif::program::{is_string, Program};
use crate::error::Trap;
use crate::hash::mix_bytes;
use crate::machine::Machine;
use crate::mem::alloc::Bytes;
use dtrace_uapi::limits::{CHILL_INTERVAL, CHILL_MAX};
use dtrace_uapi::var::Var;

/// Runs a clause. `last` says that this is `END`. `size_at` returns the size of the record at the
/// beginning of a slice of the principal buffer. `exits` has the effect of `exit()` on the
/// consumer, and returns whether this call of it counts.
#[inline(always)]
pub fn run<M: Machine>(
    clause: &Prepared,
    env: &mut Env<'_, M>,
    out: &mut Outputs,
    last: bool,
    size_at: impl Fn(&[u8]) -> usize,
    exits: impl Fn() -> bool,
) -> Result<End, Failed> {
    if let Some(predicate) = clause.condition.program() {
        if exec::run(predicate, env).map_err(in_action(0))? == 0 {
            return Ok(End::Done);
        }
    }
    spend_price(clause, env).map_err(in_action(0))?;
    let mut room = None;
    if clause.principal != 0 {
        match begin(clause, env.m, env.at, &mut out.principal, last, &size_at) {
            None => return Ok(End::Dropped),
            got => room = got,
        }
    }
    let base = room.map_or(0, |room| room.at);
    let mut end = End::Done;
    for (index, action) in clause.actions.iter().enumerate() {
        did(env, action.number, || of_action(action))?;
        match &action.act {
            Act::Aggregate(aggregate) => {
                if aggregate.keys.is_empty() {
                    aggregate_at_slot(aggregate, env, out)?;
                } else {
                    aggregate_by_key(aggregate, env, out)?;
                }
            }
            Act::Record(field) => {
                write_record(field, base, env, out)?;
            }
            Act::Memory(memory) => {
                let record = out.principal.bytes().get_mut(base..);
                memory.write(record.unwrap_or(&mut []), env)?;
            }
            Act::Exit(field) => {
                write_record(field, base, env, out)?;
                // The exit counts even if a later action faults. If another CPU called `exit()`
                // first, this record of it is not kept.
                if !exits() {
                    return Ok(End::Done);
                }
            }
            Act::Nothing => {}
            Act::Effect(program) => {
                exec::run(program, env).map_err(in_action(action.number))?;
            }
            Act::Speculate(id) => {
                let then = clause.actions.get(index.wrapping_add(1)..).unwrap_or(&[]);
                return speculate(clause, action.number, id, then, env, out);
            }
            Act::Commit(id) => {
                commit(id, env, out, last, &size_at).map_err(in_action(action.number))?;
                end = End::Committed;
            }
            Act::Discard(id) => discard(id, env, out).map_err(in_action(action.number))?,
            other => destructive(other, env, out).map_err(in_action(action.number))?,
        }
    }
    if let Some(room) = room {
        out.principal.commit(room);
    }
    Ok(end)
}

#[inline(never)]
fn write_record<M: Machine>(
    field: &Field,
    base: usize,
    env: &mut Env<'_, M>,
    out: &mut Outputs,
) -> Result<(), Failed> {
    let at = base.wrapping_add(field.offset);
    let to = out
        .principal
        .bytes()
        .get_mut(at..at.wrapping_add(field.size))
        .unwrap_or(&mut []);
    if let Some(done) = write_common(field, to, env) {
        return done.map(drop);
    }
    write(&field.datum, to, env).map_err(in_action(field.action))
}

/// Writes a datum, and clears what a stack leaves of its room.
#[inline]
pub(super) fn write<M: Machine>(
    datum: &Datum,
    to: &mut [u8],
    env: &mut Env<'_, M>,
) -> Result<(), Stopped> {
    let used = write_used(datum, to, env)?;
    if matches!(datum, Datum::Stack | Datum::Ustack { .. }) {
        to.get_mut(used..).unwrap_or_default().fill(0);
    }
    Ok(())
}

/// Writes a datum; returns the number of meaningful bytes. The last one of a string is its NUL.
#[inline]
fn write_used<M: Machine>(
    datum: &Datum,
    to: &mut [u8],
    env: &mut Env<'_, M>,
) -> Result<usize, Stopped> {
    match datum {
        Datum::Expr { program, shape } => write_value(program, *shape, to, env),
        Datum::Stack => stacks::write_kernel(to, env),
        Datum::Ustack { frames } => stacks::write_user(*frames, to, env),
        Datum::Address(program) => {
            let value = exec::run(program, env)?;
            set_word(to, 0, value);
            Ok(8)
        }
        Datum::UserAddress(program) => {
            let value = exec::run(program, env)?;
            set_word(to, 0, u64::from(env.m.told()));
            set_word(to, 8, value);
            Ok(16)
        }
    }
}

#[inline]
fn write_value<M: Machine>(
    program: &Program,
    shape: Shape,
    to: &mut [u8],
    env: &mut Env<'_, M>,
) -> Result<usize, Stopped> {
    if let (Program::Builtin { var, .. }, Shape::String) = (program, shape) {
        if is_string(*var) {
            // Written directly to its place, not by way of scratch memory.
            let n = env.with_builtin_str(*var, |text| {
                let n = text.len().min(to.len().saturating_sub(1));
                if let (Some(to), Some(from)) = (to.get_mut(..n), text.get(..n)) {
                    to.copy_from_slice(from);
                }
                n
            });
            return Ok(end_string(to, n));
        }
    }
    let value = exec::run(program, env)?;
    let trapped = |trap| Stopped {
        trap,
        pc: last_pc(program),
    };
    let room = to.len().saturating_sub(1);
    match shape {
        Shape::Value(8) => set_word(to, 0, value),
        Shape::Value(4) => set_half(to, 0, value as u32),
        Shape::Value(2) => {
            copy(to, &(value as u16).to_ne_bytes());
        }
        Shape::Value(_) => to.fill(value as u8),
        Shape::Bytes => env.read_paid(value, to).map_err(trapped)?,
        Shape::UserBytes => env
            .check_user_memory()
            .and_then(|()| user_load_paid(env.m, None, &mut env.vm.budget, value, to))
            .map_err(trapped)?,
        Shape::String | Shape::UserString => {
            let room = to.get_mut(..room).unwrap_or(&mut []);
            let loaded = if shape == Shape::String {
                env.view().read_str(value, room)
            } else {
                env.check_user_memory().map_err(trapped)?;
                env.m.user_load_str(value, room).map_err(Trap::from)
            };
            // A load that faults may have read as much as this.
            let paid = spend(env, *loaded.as_ref().unwrap_or(&room.len()));
            let n = loaded.map_err(trapped)?;
            paid?;
            return Ok(end_string(to, n));
        }
    }
    Ok(to.len())
}

/// Returns the index of the instruction that returned the value.
fn last_pc(program: &Program) -> u32 {
    match program {
        Program::Steps { steps, .. } => (steps.len() as u32).saturating_sub(1),
        _ => 0,
    }
}

/// Ends a string of `n` bytes with a NUL, and zeros to the next word. Returns its length with the
/// NUL.
#[inline(always)]
fn end_string(to: &mut [u8], n: usize) -> usize {
    let n = n.min(to.len().saturating_sub(1));
    let end = (n.wrapping_add(8) & !7).min(to.len());
    if let Some(rest) = to.get_mut(n..end) {
        for byte in rest {
            *byte = 0;
        }
    }
    n.wrapping_add(1)
}

/// Whether two slices are equal, compared by words.
#[inline(always)]
pub(super) fn same_bytes(a: &[u8], b: &[u8]) -> bool {
    let (pairs_a, pairs_b) = (a.chunks_exact(16), b.chunks_exact(16));
    let (rest_a, rest_b) = (pairs_a.remainder(), pairs_b.remainder());
    // Compares integers, because for arrays the compiler would call a function, which takes longer.
    let pair = |bytes: &[u8]| bytes.first_chunk().map(|pair| u128::from_ne_bytes(*pair));
    if a.len() != b.len() || pairs_a.zip(pairs_b).any(|(a, b)| pair(a) != pair(b)) {
        return false;
    }
    match (
        rest_a.split_first_chunk::<8>(),
        rest_b.split_first_chunk::<8>(),
    ) {
        (Some((a, rest_a)), Some((b, rest_b))) => {
            u64::from_ne_bytes(*a) == u64::from_ne_bytes(*b) && same_few(rest_a, rest_b)
        }
        _ => same_few(rest_a, rest_b),
    }
}

#[inline(always)]
fn same_few(a: &[u8], b: &[u8]) -> bool {
    a.iter().zip(b).all(|(a, b)| a == b)
}

/// Returns the value of an aggregation, and how often it counts.
#[inline(always)]
fn value_of<M: Machine>(aggregate: &Aggregate, env: &mut Env<'_, M>) -> Result<(u64, u64), Failed> {
    let fail = in_action(aggregate.action);
    let value = match &aggregate.value {
        Some(program) => exec::run(program, env).map_err(&fail)?,
        None => 0,
    };
    let increment = match &aggregate.increment {
        Some(program) => exec::run(program, env).map_err(&fail)?,
        None => 1,
    };
    spend(env, aggregate.function.cost()).map_err(fail)?;
    Ok((value, increment))
}

/// Updates an aggregation without a key.
#[inline(always)]
fn aggregate_at_slot<M: Machine>(
    aggregate: &Aggregate,
    env: &mut Env<'_, M>,
    out: &mut Outputs,
) -> Result<(), Failed> {
    let (value, increment) = value_of(aggregate, env)?;
    update_only(aggregate, out, value, increment);
    Ok(())
}

/// Adds `value` to the only entry of an aggregation without a key, whose place is remembered.
#[inline(always)]
pub(super) fn update_only(aggregate: &Aggregate, out: &mut Outputs, value: u64, increment: u64) {
    let slot = (aggregate.id as usize).wrapping_sub(1);
    let known = out.slots.get(slot).copied().unwrap_or(0);
    let at = if (known >> 32) as u32 == out.aggregations.generation() {
        known as u32 as usize
    } else {
        match first_at_slot(aggregate, slot, out) {
            Some(at) => at,
            None => return,
        }
    };
    aggregate.function.update(
        out.aggregations.bytes(),
        at.wrapping_add(aggregate.offset),
        value,
        increment,
    );
}

/// Adds the only entry of an aggregation without a key; `None` if there is no room for it.
#[cold]
fn first_at_slot(aggregate: &Aggregate, slot: usize, out: &mut Outputs) -> Option<usize> {
    let id = aggregate.id.to_ne_bytes();
    let at = out
        .aggregations
        .add(u64::from(aggregate.id), &id, aggregate.size)? as usize;
    let generation = u64::from(out.aggregations.generation());
    if let Some(known) = out.slots.get_mut(slot) {
        *known = generation << 32 | at as u64;
    }
    let mem = out.aggregations.bytes();
    let data = at.wrapping_add(aggregate.offset);
    aggregate.function.init(mem, data);
    Some(at)
}

/// Writes the data that are most often recorded and used as keys: numbers, and the name of the
/// process. Returns the number of meaningful bytes; `None` for all other data.
#[inline(always)]
fn write_common<M: Machine>(
    field: &Field,
    to: &mut [u8],
    env: &mut Env<'_, M>,
) -> Option<Result<usize, Failed>> {
    let Datum::Expr { program, shape } = &field.datum else {
        return None;
    };
    match (program, shape) {
        (program, Shape::Value(size @ (4 | 8))) => {
            let value = match exec::run(program, env) {
                Ok(value) => value,
                Err(stopped) => return Some(Err(in_action(field.action)(stopped))),
            };
            if *size == 8 {
                set_word(to, 0, value);
            } else {
                set_half(to, 0, value as u32);
            }
            Some(Ok(usize::from(*size)))
        }
        (
            Program::Builtin {
                var: Var::Execname, ..
            },
            Shape::String,
        ) if to.len() >= execname::SIZE => Some(Ok(execname::write(to, env.m))),
        _ => None,
    }
}

/// Writes a part of a key. Returns the number of bytes that distinguish it, with the zeros that
/// fill its last word.
#[inline(always)]
fn write_key<M: Machine>(
    field: &Field,
    part: &mut [u8],
    env: &mut Env<'_, M>,
) -> Result<usize, Failed> {
    if let Some(done) = write_common(field, part, env) {
        return done;
    }
    let used = write_used(&field.datum, part, env).map_err(in_action(field.action))?;
    Ok(used.next_multiple_of(8).min(part.len()))
}

#[inline(never)]
fn aggregate_by_key<M: Machine>(
    aggregate: &Aggregate,
    env: &mut Env<'_, M>,
    out: &mut Outputs,
) -> Result<(), Failed> {
    let Outputs {
        aggregations,
        key,
        used,
        slots,
        ..
    } = out;
    for (field, used) in aggregate.keys.iter().zip(used.iter_mut()) {
        did(env, field.action, || of_key(field))?;
        *used = write_key(field, part_mut(key, field), env)?;
    }
    let (value, increment) = value_of(aggregate, env)?;
    // The same key often comes again: try the last entry first.
    let slot = slots.get_mut((aggregate.id as usize).wrapping_sub(1));
    let known = slot.as_ref().map_or(0, |slot| **slot);
    let generation = aggregations.generation();
    let mut at = known as u32 as usize;
    let again = (known >> 32) as u32 == generation
        && (aggregations.bytes().get(at..))
            .is_some_and(|entry| is_entry(aggregate, used, key, entry));
    if !again {
        let Some(found) = entry_of(aggregate, aggregations, key, used) else {
            return Ok(());
        };
        at = found as usize;
        if let Some(slot) = slot {
            *slot = u64::from(generation) << 32 | at as u64;
        }
    }
    aggregate.function.update(
        aggregations.bytes(),
        at.wrapping_add(aggregate.offset),
        value,
        increment,
    );
    Ok(())
}

/// Whether the aggregation's entry of that key is there. `used` is the number of bytes of each part
/// of the key that distinguish it.
#[inline(always)]
fn is_entry(aggregate: &Aggregate, used: &[usize], key: &[u8], entry: &[u8]) -> bool {
    slice_at::<4>(entry, 0) == Some(&aggregate.id.to_ne_bytes())
        && aggregate.keys.iter().zip(used).all(|(field, used)| {
            let range = field.offset..field.offset.wrapping_add(*used);
            match (key.get(range.clone()), entry.get(range)) {
                (Some(a), Some(b)) => same_bytes(a, b),
                _ => false,
            }
        })
}

/// Returns the entry of a key, which is added if there is none; `None` if there is no room for it.
/// `used` is as for [`is_entry`].
#[inline(always)]
pub(super) fn entry_of(
    aggregate: &Aggregate,
    aggregations: &mut Aggregations,
    key: &mut [u8],
    used: &[usize],
) -> Option<u32> {
    let parts = || aggregate.keys.iter().zip(used);
    let hash = parts().fold(aggregations.hash(aggregate.id), |hash, (field, used)| {
        let range = field.offset..field.offset.wrapping_add(*used);
        mix_bytes(hash, key.get(range).unwrap_or(&[]))
    });
    let found = aggregations.find(hash, |mem, at| {
        (mem.get(at as usize..)).is_some_and(|entry| is_entry(aggregate, used, key, entry))
    });
    if found.is_some() {
        return found;
    }
    set_half(key, 0, aggregate.id);
    // The bytes that distinguish nothing are still those of an earlier key.
    for (field, used) in parts() {
        let part = field.offset..field.offset.wrapping_add(field.size);
        let part = key.get_mut(part).and_then(|part| part.get_mut(*used..));
        part.unwrap_or_default().fill(0);
    }
    let key = key.get(..aggregate.key_size).unwrap_or_default();
    add(aggregate, aggregations, hash, key)
}

/// Returns the part of a key that belongs to `field`.
#[inline(always)]
fn part_mut<'k>(key: &'k mut Bytes, field: &Field) -> &'k mut [u8] {
    let range = field.offset..field.offset.wrapping_add(field.size);
    key.get_mut(range).unwrap_or(&mut [])
}

/// Adds an entry; `None` if there is no room for it.
fn add(
    aggregate: &Aggregate,
    aggregations: &mut Aggregations,
    hash: u64,
    key: &[u8],
) -> Option<u32> {
    let at = aggregations.add(hash, key, aggregate.size)?;
    let data = (at as usize).wrapping_add(aggregate.offset);
    aggregate.function.init(aggregations.bytes(), data);
    Some(at)
}

/// Turns a signal that could not be sent into a fault, because nothing else would report it.
fn sent(was: bool) -> Result<(), Stopped> {
    was.then_some(())
        .ok_or(at_start(dtrace_uapi::fault::Fault::IllOp))
}

/// Runs an action that changes the system. The builder accepts those only for destructive
/// consumers.
#[cold]
fn destructive<M: Machine>(
    act: &Act,
    env: &mut Env<'_, M>,
    out: &mut Outputs,
) -> Result<(), Stopped> {
    match act {
        Act::Stop => sent(env.m.stop())?,
        Act::Raise(program) => {
            let signal = exec::run(program, env)?;
            sent(env.m.raise(signal))?;
        }
        Act::Breakpoint => env.m.breakpoint(),
        Act::Panic => env.m.panic(),
        Act::Chill(program) => {
            let ns = exec::run(program, env)?;
            let now = env.m.timestamp();
            let (since, spent) = &mut out.chill;
            if now.wrapping_sub(*since) > CHILL_INTERVAL {
                (*since, *spent) = (now, 0);
            }
            if ns > CHILL_MAX || spent.saturating_add(ns) > CHILL_MAX {
                return Err(at_start(dtrace_uapi::fault::Fault::IllOp));
            }
            env.m.chill(ns);
            *spent = spent.saturating_add(ns);
        }
        _ => {}
    }
    Ok(())
}
