// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Consumes the kernel's buffers.
//!
//! A [`Consumer`] reads snapshots of all CPUs ([`records`]), orders their records ([`order`]), and
//! walks the fields of each record ([`walk`]), whose meaning the program's statements define. What
//! it finds goes to a [`Receiver`] as values ([`receiver`]): it neither formats nor prints.
//! Aggregations are kept here while tracing lasts, because the kernel returns only the increments
//! since the last snapshot.

mod aggregations;
mod event;
mod fields;
mod layout;
mod order;
mod places;
mod receiver;
mod records;
mod run;
mod walk;

#[cfg(test)]
mod tests;

pub use event::{DropKind, Drops, Event, EventProbe, Failure, Faulted};
pub use layout::{EnabledProbe, ProbeName};
pub use places::{Place, Places};
pub use receiver::{Args, Head, Receiver, Refused, Spoken, Surroundings, Value};
pub use run::{End, Start, System, Traced};

use crate::aggregate::Aggregations;
use crate::device::{Buffer, Device};
use crate::symbolizer::{NoSymbols, Symbolizer};
use dtrace_compiler::options::{size_text, Options};
use dtrace_compiler::statement::{AggVarId, Statement};
use dtrace_files::text::plain;
use dtrace_uapi::action::Action;
use dtrace_uapi::fault::Fault;
use dtrace_uapi::ioctl::Status;
use dtrace_uapi::limits::buffer_room;
use dtrace_uapi::option::Opt;
use layout::Layouts;
use nix::errno::Errno;
use order::Queue;
use records::{Filled, Snapshot};
use rustix::event::{poll, PollFd, PollFlags};
use rustix::thread::{self, CapabilitySet};
use std::io;
use std::os::fd::BorrowedFd;

/// Why consuming failed.
#[derive(Debug, thiserror::Error)]
pub enum ConsumeError {
    /// The device failed.
    #[error("{}", plain(.0))]
    Device(#[from] io::Error),
    /// The device's data is inconsistent.
    #[error("inconsistent data from the kernel: {0}")]
    Layout(&'static str),
    /// There is no memory into which to read a buffer.
    #[error("no memory to read CPU {cpu}'s {which} buffer of {}", size_text(*.size))]
    Room {
        /// The buffer's CPU.
        cpu: u32,
        /// The kind of buffer.
        which: Buffer,
        /// The buffer's size as set by the options, bytes.
        size: u64,
    },
    /// The output cannot be written.
    #[error("failed to write output: {}", plain(.0))]
    Output(#[source] io::Error),
}

/// All that reading records needs: the device, the meaning of programs, and the names of addresses.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The device.
    pub device: &'a dyn Device,
    /// The statements of all programs, in the order of their numbers. Between two calls statements
    /// may be added, but not removed or changed.
    pub statements: &'a [Statement],
    /// The source locations of faults.
    pub places: &'a Places,
    /// Resolves addresses to names.
    pub symbols: &'a dyn Symbolizer,
    /// Waits until a descriptor is readable, and meanwhile serves processes that wait for the
    /// consumer.
    pub wait: &'a dyn Fn(BorrowedFd<'_>),
}

impl<'a> Context<'a> {
    /// Returns what a receiver gets of it under these options.
    fn around(&self, options: &Options) -> Surroundings<'a> {
        Surroundings {
            symbols: match options.consumer.noresolve {
                true => &NoSymbols,
                false => self.symbols,
            },
            wait: self.wait,
        }
    }
}

/// Waits until a descriptor is readable, and serves nothing meanwhile.
pub fn until_readable(descriptor: BorrowedFd<'_>) {
    let mut ready = [PollFd::from_borrowed_fd(descriptor, PollFlags::IN)];
    while poll(&mut ready, None) == Err(rustix::io::Errno::INTR) {}
}

/// Maximum number of snapshots whose memory is kept for later snapshots.
const ROOMS: usize = 4;

/// The state of consuming.
#[derive(Default)]
pub struct Consumer {
    layouts: Layouts,
    queue: Queue,
    aggregations: Aggregations,
    /// Whether the next record is a later part of the clause of the previous one.
    goes_on: bool,
    exit_status: Option<i32>,
    status: Status,
    /// Memory for snapshots.
    rooms: Vec<Vec<u8>>,
    /// Whether the aggregations were read after the records that are being walked.
    fresh: bool,
}

impl Consumer {
    /// Returns the argument of `exit()`, if its record was consumed.
    pub fn exit_status(&self) -> Option<i32> {
        self.exit_status
    }

    /// Declares an aggregation's variable, so that it can be printed before anything is aggregated.
    pub fn declare(&mut self, var: AggVarId, func: Action, arg: u64) {
        self.aggregations.declare(var, func, arg);
    }

    /// Names an aggregation's variable, which was declared, and describes its keys.
    pub fn describe(&mut self, var: AggVarId, name: &str, keys: &[String]) {
        self.aggregations.describe(var, name, keys);
    }

    /// Returns the aggregations.
    pub fn aggregations(&self) -> &Aggregations {
        &self.aggregations
    }

    /// Reports the drops since the last call.
    pub fn note_status(&mut self, status: Status, options: &Options, to: &mut dyn Receiver) {
        for (kind, count) in event::drops_between(&self.status, &status) {
            dropped(options, to, kind, count, None);
        }
        self.status = status;
    }

    /// Reads the aggregation buffers and adds their entries to the totals.
    pub fn read_aggregations(
        &mut self,
        context: Context<'_>,
        options: &Options,
        to: &mut dyn Receiver,
    ) -> Result<(), ConsumeError> {
        for cpu in 0..context.device.cpus() {
            let Some(read) = self.read(context.device, options, Buffer::Aggregation, cpu)? else {
                continue;
            };
            context.symbols.taken();
            if read.drops > 0 {
                dropped(options, to, &event::AGGREGATION, read.drops, Some(cpu));
            }
            let cpu = options.consumer.aggpercpu.then_some(cpu);
            self.aggregations.from_cpu(cpu);
            aggregations::add(
                context,
                &mut self.layouts,
                &mut self.aggregations,
                read.data.bytes(),
            )?;
            self.keep(read.data.room);
        }
        self.fresh = true;
        Ok(())
    }

    /// Reads the aggregations, unless that was done already, before a record that uses them, so
    /// that they include all that was aggregated before it. If the user has set `aggrate`, they are
    /// read only at that rate.
    fn refresh(
        &mut self,
        context: Context<'_>,
        options: &Options,
        to: &mut dyn Receiver,
    ) -> Result<(), ConsumeError> {
        if self.fresh || options.get(Opt::Aggrate).is_some() {
            return Ok(());
        }
        self.read_aggregations(context, options, to)
    }

    /// Reads the principal buffers and consumes their records. With `temporal`, while tracing
    /// continues, records that are later than another CPU's snapshot wait for the next call.
    /// `first` is the CPU that fired `BEGIN`. `last` is the CPU that fired `END`; it is `None`
    /// until tracing has ended. Returns how full the fullest buffer was, in percent; 100 if it
    /// dropped records.
    pub fn read_records(
        &mut self,
        context: Context<'_>,
        options: &mut Options,
        first: Option<u32>,
        last: Option<u32>,
        to: &mut dyn Receiver,
    ) -> Result<u64, ConsumeError> {
        let size = options.get(Opt::Bufsize).unwrap_or(0).max(1);
        let mut fullest = 0;
        let mut until = u64::MAX;
        for cpu in 0..context.device.cpus() {
            let Some(read) = self.read(context.device, options, Buffer::Principal, cpu)? else {
                continue;
            };
            if read.drops > 0 {
                dropped(options, to, &event::PRINCIPAL, read.drops, Some(cpu));
            }
            let percent = match read.drops {
                0 => (read.data.len as u64).saturating_mul(100) / size,
                _ => 100,
            };
            fullest = fullest.max(percent.min(100));
            if last.is_none() && read.timestamp != 0 {
                until = until.min(read.timestamp);
            }
            let snapshot = Snapshot::parse(context, &mut self.layouts, read.data, read.oldest)?;
            self.queue.push(cpu, snapshot);
        }
        context.symbols.taken();
        self.fresh = false;
        to.options(options);
        // Walking a record borrows the whole consumer mutably, so take the queue out meanwhile.
        let mut queue = std::mem::take(&mut self.queue);
        let temporal = options.is_on(Opt::Temporal);
        let mut walk = |turn: order::Turn<'_>| self.walk(context, options, to, &turn);
        let result = if temporal {
            queue.merge(until, &mut walk)
        } else {
            queue.by_cpu(first, last, &mut walk)
        };
        for room in queue.rooms() {
            self.keep(room);
        }
        self.queue = queue;
        result.map(|()| fullest)
    }

    /// Passes the aggregations on, at the end of tracing.
    pub fn yield_aggregations(
        &mut self,
        context: Context<'_>,
        options: &Options,
        to: &mut dyn Receiver,
    ) -> Result<(), ConsumeError> {
        to.options(options);
        let yielded = to.aggregations(&self.aggregations, context.around(options));
        yielded.map_err(ConsumeError::Output)
    }

    /// Reads one buffer; `None` if the CPU has none, or it cannot be read yet.
    fn read(
        &mut self,
        device: &dyn Device,
        options: &Options,
        which: Buffer,
        cpu: u32,
    ) -> Result<Option<Read>, ConsumeError> {
        let (size, room) = match which {
            Buffer::Principal => {
                let size = options.get(Opt::Bufsize).unwrap_or(0);
                (size, buffer_room(size))
            }
            Buffer::Aggregation => {
                let size = options.get(Opt::Aggsize).unwrap_or(0);
                (size, size)
            }
        };
        let none = ConsumeError::Room { cpu, which, size };
        let Ok(size) = usize::try_from(room) else {
            return Err(none);
        };
        let mut room = self.rooms.pop().unwrap_or_default();
        if room.len() < size {
            room = fresh(size).ok_or(none)?;
        }
        let desc = match device.snapshot(which, cpu, &mut room[..size]) {
            Ok(Some(desc)) => desc,
            // `EBUSY`: ring and fill buffers can be read only after tracing has ended.
            Err(error) if error.raw_os_error() != Some(Errno::EBUSY as i32) => {
                return Err(error.into())
            }
            Ok(None) | Err(_) => {
                self.keep(room);
                return Ok(None);
            }
        };
        let len = usize::try_from(desc.size)
            .ok()
            .filter(|len| *len <= size)
            .ok_or(ConsumeError::Layout("a snapshot exceeds its room"))?;
        let data = Filled { room, len };
        Ok(Some(Read {
            data,
            drops: desc.drops,
            oldest: desc.oldest,
            timestamp: desc.timestamp,
        }))
    }

    /// Keeps memory for later snapshots; releases it if there is enough.
    fn keep(&mut self, room: Vec<u8>) {
        if self.rooms.len() < ROOMS {
            self.rooms.push(room);
        }
    }
}

/// Allocates zeroed memory; `None` if there is not enough. `vec![0; size]` gets zero pages, which
/// cost nothing until the kernel writes to them, but it aborts if there is no memory. Reserving
/// memory fallibly and filling it would touch all pages. So a fallible reservation of the same size
/// is tried and released first.
fn fresh(size: usize) -> Option<Vec<u8>> {
    let mut tried = Vec::<u8>::new();
    tried.try_reserve_exact(size).ok()?;
    // Keeps the compiler from removing the trial allocation.
    drop(std::hint::black_box(tried));
    Some(vec![0; size])
}

/// A snapshot of one buffer, with fields of its [`BufDesc`](dtrace_uapi::ioctl::BufDesc).
struct Read {
    data: Filled,
    drops: u64,
    oldest: u64,
    timestamp: u64,
}

/// Reports drops.
fn dropped(
    options: &Options,
    to: &mut dyn Receiver,
    kind: &'static DropKind,
    count: u64,
    cpu: Option<u32>,
) {
    to.event(Event::Drop(Drops {
        kind,
        count,
        cpu,
        is_tagged: options.compile.droptags,
    }));
}

/// Returns a fault on `probe`, without time and place, from `arg2` to `arg5` of `dtrace:::ERROR`.
fn faulted(probe: &EnabledProbe, [action, offset, fault, addr]: [u64; 4]) -> Faulted {
    let fault = u32::try_from(fault)
        .ok()
        .and_then(Fault::from_raw)
        .unwrap_or(Fault::Unknown);
    Faulted {
        probe: probe.into(),
        action: u32::try_from(action).unwrap_or(u32::MAX),
        offset: u32::try_from(offset)
            .ok()
            .filter(|offset| *offset != u32::MAX),
        fault,
        addr,
        lacks: lacks(fault),
        cpu: 0,
        timestamp: 0,
        place: None,
    }
}

/// Returns the capability that a consumer with `CAP_PERFMON` lacks for the access that caused
/// `fault`: `CAP_BPF`, without which it may not read memory. `None` for other consumers and faults.
fn lacks(fault: Fault) -> Option<&'static str> {
    let has = thread::capabilities(None).ok()?.effective;
    if !has.contains(CapabilitySet::PERFMON) {
        return None;
    }
    match fault {
        Fault::Kpriv | Fault::Upriv if !has.contains(CapabilitySet::BPF) => Some("CAP_BPF"),
        _ => None,
    }
}
