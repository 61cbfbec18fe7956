// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Where clauses write, and how they end.
//!
//! A record belongs to the principal buffer only when it is committed, so no reader sees half of
//! one.

use super::fast::stacks::Counted;
use super::Prepared;
use crate::buf::aggregate::Aggregations;
use crate::buf::principal::{Principal, Room};
use crate::buf::set_head;
use crate::dif::env::At;
use crate::dif::exec::Stopped;
use crate::error::Trap;
use crate::machine::Machine;
use crate::mem::alloc::Bytes;
use crate::mem::Vec;
use crate::spec::buffer::Pieces;
use dtrace_uapi::ioctl::RecHdr;

/// What a CPU needs to run clauses, besides the state of programs.
#[derive(Debug)]
pub struct Outputs {
    /// The principal buffer.
    pub principal: Principal,
    /// The aggregation buffer.
    pub aggregations: Aggregations,
    /// Records of speculations.
    pub pieces: Pieces,
    /// The buffer in which keys of aggregations are built.
    pub key: Bytes,
    /// Number of bytes in use of each part of the key.
    pub used: Vec<usize>,
    /// The place of the last entry of each aggregation: generation (high half) and offset.
    pub slots: Vec<u64>,
    /// The entries of user stacks that came before, by the stacks' numbers.
    pub stacks: Vec<Counted>,
    /// The beginning of the current interval of `chill()`, and how much of it was used, in ns.
    pub chill: (u64, u64),
}

/// How a clause ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The predicate was false, or everything has been done.
    Done,
    /// There was no room for the record.
    Dropped,
    /// A speculation was committed; there may have been no room for its records.
    Committed,
}

/// A fault: the action, from 1 (0 is the predicate), and where it stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed {
    /// The action.
    pub action: u32,
    /// The trap, and the instruction.
    pub stopped: Stopped,
}

pub(super) fn in_action(action: u32) -> impl Fn(Stopped) -> Failed {
    move |stopped| Failed { action, stopped }
}

pub(super) fn at_start(fault: dtrace_uapi::fault::Fault) -> Stopped {
    Stopped {
        trap: Trap::new(fault, 0),
        pc: 0,
    }
}

/// Reserves the record of a clause and writes its header; `None` if there is no room.
#[inline(always)]
pub(super) fn begin<M: Machine>(
    clause: &Prepared,
    m: &M,
    at: At,
    principal: &mut Principal,
    last: bool,
    size_at: impl Fn(&[u8]) -> usize,
) -> Option<Room> {
    let room = principal.reserve(clause.principal, clause.align, last, size_at)?;
    let head = RecHdr::new(at.epid, m.timestamp());
    set_head(principal.bytes(), room.at, head);
    Some(room)
}
