// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! The actions on speculations, as one CPU does them within a firing, and the cleaner's part
//! between firings.

use super::fire::write;
use super::output::{in_action, End, Failed, Outputs};
use super::price::{did, of_action, spend};
use super::{Act, Action, Prepared};
use crate::budget::MOVED;
use crate::buf::set_head;
use crate::dif::env::Env;
use crate::dif::exec::{self, Stopped};
use crate::dif::program::Program;
use crate::error::Trap;
use crate::machine::Machine;
use crate::spec::buffer::{Pieces, Target};
use crate::spec::{Duty, Speculations};
use core::sync::atomic::Ordering;
use dtrace_uapi::fault::Fault;
use dtrace_uapi::ioctl::RecHdr;

/// Bytes that the cleaner moves at a time; it may exceed them by less than one speculation.
const CLEANED: usize = 1 << 20;

/// Runs the rest of a clause, `then`, with its record in speculation `id`. If that is not active,
/// or has no more room, the clause ends here.
#[cold]
pub(super) fn speculate<M: Machine>(
    clause: &Prepared,
    number: u32,
    id: &Program,
    then: &[Action],
    env: &mut Env<'_, M>,
    out: &mut Outputs,
) -> Result<End, Failed> {
    let (id, exists) = numbered(id, env).map_err(in_action(number))?;
    let record = |all: &Speculations| all.record(id, out.pieces.holds(id));
    let active = exists && env.core.speculations.as_ref().is_some_and(record);
    if !active {
        return Ok(End::Done);
    }
    // A clause that records nothing takes no room.
    let mut room = None;
    if clause.size != 0 {
        room = out.pieces.reserve(id, clause.size, clause.align);
        let Some(room) = room else {
            return Ok(End::Done);
        };
        let head = RecHdr::new(env.at.epid, env.m.timestamp());
        set_head(out.pieces.bytes(id), room.at, head);
    }
    let base = room.map_or(0, |room| room.at);
    for action in then {
        did(env, action.number, || of_action(action))?;
        match &action.act {
            Act::Record(field) => {
                let at = base.wrapping_add(field.offset);
                let to = out
                    .pieces
                    .bytes(id)
                    .get_mut(at..at.wrapping_add(field.size))
                    .unwrap_or(&mut []);
                write(&field.datum, to, env).map_err(in_action(field.action))?;
            }
            Act::Memory(memory) => {
                let record = out.pieces.bytes(id).get_mut(base..);
                memory.write(record.unwrap_or(&mut []), env)?;
            }
            Act::Effect(program) => {
                exec::run(program, env).map_err(in_action(action.number))?;
            }
            Act::Discard(id) => discard(id, env, out).map_err(in_action(action.number))?,
            // The builder accepts no other actions here.
            _ => {}
        }
    }
    if let Some(room) = room {
        out.pieces.keep(id, room);
    }
    Ok(End::Done)
}

/// Returns the id that a program computes, and whether that speculation exists. An id that does not
/// exist is never looked up, not even when the processor executes ahead of the check (INV-38).
fn numbered<M: Machine>(id: &Program, env: &mut Env<'_, M>) -> Result<(u64, bool), Stopped> {
    let id = exec::run(id, env)?;
    let speculations = env.core.speculations.as_ref();
    let exists = speculations.is_some_and(|all| all.exists(id));
    if exists {
        env.m.settle();
    }
    Ok((id, exists))
}

/// As [`numbered`], but `None` for 0, and a fault if there is no such speculation.
fn speculation<M: Machine>(id: &Program, env: &mut Env<'_, M>) -> Result<Option<u64>, Stopped> {
    let (id, exists) = numbered(id, env)?;
    match id {
        0 => Ok(None),
        _ if exists => Ok(Some(id)),
        _ => Err(Stopped {
            trap: Trap::new(Fault::IllOp, id),
            pc: 0,
        }),
    }
}

/// `commit()`.
#[cold]
pub(super) fn commit<M: Machine>(
    id: &Program,
    env: &mut Env<'_, M>,
    out: &mut Outputs,
    last: bool,
    size_at: impl Fn(&[u8]) -> usize,
) -> Result<(), Stopped> {
    let id = speculation(id, env)?;
    spend(env, id.map_or(0, |id| out.pieces.used(id) / MOVED))?;
    if let (Some(id), Some(all)) = (id, &env.core.speculations) {
        if let Some(duty) = all.commit(id, out.pieces.holds(id)) {
            let target = Target {
                principal: &mut out.principal,
                now: env.m.timestamp(),
                last,
                size_at,
            };
            transfer(all, &mut out.pieces, id, target);
            if duty == Duty::MoveAndRelease {
                all.release(id);
            }
        }
    }
    Ok(())
}

/// `discard()`.
#[cold]
pub(super) fn discard<M: Machine>(
    id: &Program,
    env: &mut Env<'_, M>,
    out: &mut Outputs,
) -> Result<(), Stopped> {
    if let (Some(id), Some(all)) = (speculation(id, env)?, &env.core.speculations) {
        if let Some(duty) = all.discard(id, out.pieces.holds(id)) {
            out.pieces.empty(id);
            if duty == Duty::EmptyAndRelease {
                all.release(id);
            }
        }
    }
    Ok(())
}

/// Moves the records of this CPU's piece of speculation `id`.
fn transfer<S: Fn(&[u8]) -> usize>(
    all: &Speculations,
    pieces: &mut Pieces,
    id: u64,
    target: Target<'_, S>,
) {
    let dropped = pieces.transfer(id, target);
    all.drops.fetch_add(dropped, Ordering::Relaxed);
}

/// Does the cleaner's work on one CPU, from speculation `from` on. `last` says that tracing has
/// ended. After about [`CLEANED`] bytes it returns the speculation from which to go on, so that
/// interrupts are not off for longer than that takes.
pub(crate) fn clean(
    all: &Speculations,
    out: &mut Outputs,
    now: u64,
    last: bool,
    from: u64,
    size_at: impl Fn(&[u8]) -> usize,
) -> Option<u64> {
    let mut moved = 0usize;
    for id in all.ids().filter(|id| *id >= from) {
        if moved >= CLEANED {
            return Some(id);
        }
        match all.cleaning(id) {
            Some(Duty::Move) => {
                moved = moved.saturating_add(out.pieces.used(id));
                let target = Target {
                    principal: &mut out.principal,
                    now,
                    last,
                    size_at: &size_at,
                };
                transfer(all, &mut out.pieces, id, target);
                // No clause is to be charged for this: it is bounded by CLEANED.
                out.principal.take_toil();
            }
            Some(_) => out.pieces.empty(id),
            None => {}
        }
    }
    None
}
