// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! A clause's record in the principal buffer: its header, and the whole record if nothing in it can
//! fault.
//!
//! The record belongs to the buffer only when it is committed, so no reader sees half of one.

use super::fire::End;
use super::short::Note;
use super::Prepared;
use crate::buf::principal::{Principal, Room};
use crate::buf::set_head;
use crate::dif::env::At;
use crate::machine::{BadAddr, Machine};
use dtrace_uapi::ioctl::RecHdr;

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

/// Records `note`, which is all that the clause does. If an argument cannot be loaded, there is no
/// record.
#[inline(always)]
pub fn record<M: Machine>(
    clause: &Prepared,
    note: &Note,
    m: &M,
    at: At,
    principal: &mut Principal,
    last: bool,
    size_at: impl Fn(&[u8]) -> usize,
) -> Result<End, BadAddr> {
    let Some(room) = begin(clause, m, at, principal, last, size_at) else {
        return Ok(End::Dropped);
    };
    note.write(principal.bytes(), room.at, m, at)?;
    principal.commit(room);
    Ok(End::Done)
}
