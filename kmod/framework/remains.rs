// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Mappings of processes that have ended, for consumers that want to know what addresses in them
//! meant (INV-16).
//!
//! Only a consumer that may read all memory gets them: once a process has ended, it is unknown
//! which other consumers were allowed to trace it.

use super::consumer::OwnedConsumer;
use super::text::{Answer, Refusal};
use super::user;
use crate::sys::remains::{Keeper, Of};
use dtrace_uapi::remains::{Remains, FILE, NONE, VDSO};
use kernel::prelude::*;

/// Fills in the next mapping of a process.
#[inline(never)]
pub fn remains(owned: &OwnedConsumer, arg: u64, keeper: &mut Option<Keeper>) -> Answer {
    if !owned.shared.reads_all() {
        let why = "mappings of processes that have ended are for who reads all memory";
        return Err(Refusal::new(EACCES, why));
    }
    let asked: Remains = user::get(arg)?;
    let keeper = match keeper {
        Some(keeper) => keeper,
        none => none.insert(Keeper::new()?),
    };
    let part = keeper.next(asked.pid, asked.after)?;
    let (kind, fd) = match part.of {
        Of::Nothing => (NONE, 0),
        Of::File(fd) => (FILE, fd),
        Of::Vdso => (VDSO, 0),
    };
    let told = Remains {
        after: part.number,
        pid: asked.pid,
        fd,
        start: part.start,
        end: part.end,
        offset: part.offset,
        kind,
        is_code: part.is_code.into(),
    };
    user::put(arg, &told)?;
    Ok(0)
}
