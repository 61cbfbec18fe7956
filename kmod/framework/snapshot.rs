// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Reading what a tracing has recorded.
//!
//! A buffer is switched on its own CPU, which is claimed as for a firing, so no firing uses the
//! buffer at that time.

use super::consumer::{OwnedConsumer, Tracing};
use super::text::{refuse, Answer, Refusal};
use super::user;
use crate::sys::percpu::Losses;
use crate::sys::{clock, crosscall};
use dtrace_engine::consumer::Which;
use dtrace_uapi::ioctl::{BufDesc, Status};
use dtrace_uapi::limits::buffer_room;
use dtrace_uapi::option::{Opt, UNSET};
use kernel::prelude::*;
use zerocopy::IntoBytes;

/// Returns what has happened so far: the first `room` bytes of the status, which is as much as the
/// caller's version of the contract knows.
pub fn status(
    owned: &OwnedConsumer,
    arg: u64,
    room: usize,
    tracing: Option<&Tracing>,
    carried_before: u64,
) -> Answer {
    let consumer = &owned.shared;
    let mut status: Status = consumer.engine.status()?;
    consumer.report(&mut status);
    if let Some(tracing) = tracing {
        let total = Losses::total();
        status.carried = total.carried.wrapping_sub(carried_before);
        let lost = total.since(tracing.lost_before);
        if consumer.is_in_kernel() {
            status.unwatched = lost.unwatched;
        }
        status.waits = lost.waits;
        status.waits_in_vain = lost.waits_in_vain;
    }
    user::put(arg, status.as_bytes().get(..room).unwrap_or_default())?;
    Ok(0)
}

/// Switches a buffer and copies out what it held.
pub fn bufsnap(owned: &OwnedConsumer, arg: u64, which: Which) -> Answer {
    let mut desc: BufDesc = user::get(arg)?;
    let engine = &owned.shared.engine;
    let (option, room): (_, fn(u64) -> u64) = match which {
        Which::Principal => (Opt::Bufsize, buffer_room),
        Which::Aggregation => (Opt::Aggsize, |size| size),
    };
    let size = engine.option(option);
    if size != UNSET && desc.size < room(size) {
        return Err(Refusal::new(EINVAL, "less room than the buffer is large"));
    }
    let mut switched = Ok(());
    {
        let _visit = owned.visits.lock();
        crosscall::on_cpu(desc.cpu, &mut |cpu| {
            switched = engine.switch(cpu, which, clock::monotonic());
        })?;
    }
    switched?;
    engine.snapshot(desc.cpu as usize, which, |snapshot| {
        if desc.size < snapshot.data.len() as u64 {
            return Err(refuse(EINVAL));
        }
        user::put(desc.data, snapshot.data)?;
        desc.size = snapshot.data.len() as u64;
        desc.errors = snapshot.errors;
        desc.drops = snapshot.drops;
        desc.oldest = snapshot.oldest;
        desc.timestamp = snapshot.timestamp;
        Ok(())
    })??;
    user::put(arg, &desc)?;
    Ok(0)
}
