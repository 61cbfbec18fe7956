// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Unwind tables, which consumers provide, and names of frames of interpreted code, which they read
//! (INV-12, INV-15).
//!
//! A table serves all consumers that meet its file. So only a consumer that may read all memory can
//! provide one: a wrong table makes wrong stacks.

use super::consumer::OwnedConsumer;
use super::text::{refuse, Answer, Refusal};
use super::user;
use crate::sys::unwind::{Fresh, Server};
use dtrace_engine::Unread;
use dtrace_uapi::interp::{Frame, CONSTANTS_MAX, NAMES_MAX};
use dtrace_uapi::unwind::{self, TABLE_MAX};
use kernel::prelude::*;

const _: () = assert!(TABLE_MAX as usize == dtrace_unwind::table::SIZE_MAX);
const _: () = assert!(CONSTANTS_MAX == dtrace_unwind::evaluators::CONSTANTS_MAX as usize);

fn may_make_tables(owned: &OwnedConsumer) -> Result<(), Refusal> {
    match owned.shared.reads_all() {
        true => Ok(()),
        false => Err(Refusal::new(EACCES, "tables for stacks serve all users")),
    }
}

/// Returns a descriptor of the next file that needs a table.
#[inline(never)]
pub fn wanted(owned: &OwnedConsumer, server: &mut Option<Server>) -> Answer {
    may_make_tables(owned)?;
    let server = server.get_or_insert_with(Server::new);
    Ok(server.wanted()? as isize)
}

/// Takes over a table, after a check of all of it.
#[inline(never)]
pub fn table(owned: &OwnedConsumer, arg: u64) -> Answer {
    may_make_tables(owned)?;
    let request: unwind::Table = user::get(arg)?;
    if request.size > TABLE_MAX {
        return Err(refuse(E2BIG));
    }
    let mut fresh = Fresh::new(request.size)?;
    let bytes = fresh.bytes();
    user::read(request.bytes, bytes)?;
    if !bytes.is_empty() && dtrace_unwind::Table::check(bytes).is_err() {
        return Err(Refusal::new(EINVAL, "the table is damaged"));
    }
    fresh.add(request.fd, request.changed)?;
    Ok(0)
}

/// Copies out the names of a frame of interpreted code.
#[inline(never)]
pub fn frame(owned: &OwnedConsumer, arg: u64) -> Answer {
    let asked: Frame = user::get(arg)?;
    let room = NAMES_MAX.min(asked.size as usize);
    let mut names = KVVec::from_elem(0u8, room, GFP_KERNEL)?;
    let engine = &owned.shared.engine;
    let read = engine.frame_names(asked.name, &mut names);
    let size = read.map_err(|unread| {
        refuse(match unread {
            Unread::None => ENOENT,
            Unread::Early => EAGAIN,
            Unread::Long => E2BIG,
        })
    })?;
    user::put(asked.bytes, names.get(..size).unwrap_or(&[]))?;
    Ok(size as isize)
}
