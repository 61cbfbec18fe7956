// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! From the kernel's buffers to text.
//!
//! A [`Consumer`] reads snapshots of all CPUs ([`records`]), brings their records into one order ([`order`]), and
//! walks each record's fields: what a field means is looked up in the program's statements, how it looks is
//! [`crate::render`]'s business. Aggregations are kept here for as long as tracing lasts, because the kernel only
//! ever hands out what was added since the last time.
//!
//! Nothing is printed to where the library's user did not ask for it: records become text in the given writer,
//! and everything that is *about* tracing (faults, drops, failed options) becomes an [`Event`].

mod aggregations;
mod fields;
mod layout;
mod order;
mod output;
mod places;
mod records;
mod walk;

#[cfg(test)]
mod tests;

pub use layout::{EnabledProbe, ProbeName};
pub use output::Output;
pub use places::Places;

use crate::handle::{plain, Buffer, Device};
use crate::options::{size_text, Options};
use crate::render::line::Flow;
use crate::render::{message, Aggregations, Style, Symbolizer, Zone};
use crate::statement::{AggVarId, Statement};
use dtrace_uapi::action::Action;
use dtrace_uapi::fault::Fault;
use dtrace_uapi::ioctl::Status;
use dtrace_uapi::limits::buffer_room;
use dtrace_uapi::option::Opt;
use layout::Layouts;
use nix::errno::Errno;
use order::Queue;
use output::Redirect;
use records::{Filled, Snapshot};
use rustix::event::{poll, PollFd, PollFlags};
use rustix::thread::{self, CapabilitySet};
use std::io;
use std::os::fd::BorrowedFd;

/// Why consuming ended early.
#[derive(Debug, thiserror::Error)]
pub enum ConsumeError {
    /// The device failed.
    #[error("{}", plain(.0))]
    Device(#[from] io::Error),
    /// The device's data contradict each other.
    #[error("inconsistent data from the kernel: {0}")]
    Layout(&'static str),
    /// There is no memory to read a buffer into.
    #[error("no memory to read CPU {cpu}'s {which} buffer of {}", size_text(*.size))]
    Room {
        /// Whose buffer.
        cpu: u32,
        /// Which one.
        which: Buffer,
        /// How much it may hold, bytes.
        size: u64,
    },
    /// The output cannot be written.
    #[error("failed to write output: {}", plain(.0))]
    Output(#[source] io::Error),
}

/// Something that happened besides the records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A fault in probe context.
    Fault(String),
    /// The source of the expression of the last fault.
    Place(String),
    /// Records, aggregations or variables were lost.
    Drop(String),
    /// There was less memory for a buffer than was asked for.
    Lowered(String),
    /// A fault of the library while it handled a record.
    Library(String),
    /// A watched process ended.
    Ended(crate::proc::Ended),
}

impl std::fmt::Display for Event {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Place(text) => write!(f, "at {text}"),
            Self::Fault(text) | Self::Drop(text) | Self::Library(text) | Self::Lowered(text) => {
                f.write_str(text.strip_suffix('\n').unwrap_or(text))
            }
            Self::Ended(ended) => ended.fmt(f),
        }
    }
}

/// Where records and events go.
pub struct Sink<'a> {
    /// The text.
    pub out: &'a mut dyn Output,
    /// What else happens.
    pub event: &'a mut dyn FnMut(Event),
}

/// What a program means, and how addresses and times look: all that records are read with.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The device.
    pub device: &'a dyn Device,
    /// The statements of all programs, in the order of their numbers. Between two calls there may be more, but no others.
    pub statements: &'a [Statement],
    /// Where in the source a fault happened.
    pub places: &'a Places,
    /// Names of addresses.
    pub symbols: &'a dyn Symbolizer,
    /// The zone of times.
    pub zone: &'a Zone,
    /// Waits until a descriptor is readable, and does meanwhile what others wait for.
    pub wait: &'a dyn Fn(BorrowedFd<'_>),
}

/// Waits until a descriptor is readable, which nobody else waits for.
pub fn until_readable(descriptor: BorrowedFd<'_>) {
    let mut ready = [PollFd::from_borrowed_fd(descriptor, PollFlags::IN)];
    while poll(&mut ready, None) == Err(rustix::io::Errno::INTR) {}
}

/// So many snapshots' memory is kept for the next ones.
const ROOMS: usize = 4;

/// The state of consuming.
#[derive(Default)]
pub struct Consumer {
    layouts: Layouts,
    queue: Queue,
    aggregations: Aggregations,
    redirect: Redirect,
    flow: Vec<Flow>,
    headed: bool,
    /// The record that is being walked, or comes next, goes on with the line.
    goes_on: bool,
    exit_status: Option<i32>,
    status: Status,
    rooms: Vec<Vec<u8>>,
    text: Vec<u8>,
    /// How values look, by the options as the record that is being walked finds them.
    style: Style,
    /// Whether the aggregations were taken in after the records that are being walked.
    fresh: bool,
}

impl Consumer {
    /// The status that `exit()` was given, if its record was seen.
    pub fn exit_status(&self) -> Option<i32> {
        self.exit_status
    }

    /// Makes an aggregation's variable known, so that it can be printed before anything was aggregated.
    pub fn declare(&mut self, var: AggVarId, func: Action, arg: u64) {
        self.aggregations.declare(var, func, arg);
    }

    /// Reports what was lost since the last time.
    pub fn note_status(&mut self, status: Status, options: &Options, sink: &mut Sink<'_>) {
        for (tag, text) in message::status_drops(&self.status, &status) {
            dropped(options, sink, tag, text);
        }
        self.status = status;
    }

    /// Takes in what the aggregation buffers hold.
    pub fn read_aggregations(
        &mut self,
        context: Context<'_>,
        options: &Options,
        sink: &mut Sink<'_>,
    ) -> Result<(), ConsumeError> {
        for cpu in 0..context.device.cpus() {
            let Some(read) = self.read(context.device, options, Buffer::Aggregation, cpu)? else {
                continue;
            };
            context.symbols.taken();
            if read.drops > 0 {
                let text = message::aggregation_drops(read.drops, cpu);
                dropped(options, sink, "DTRACEDROP_AGGREGATION", text);
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

    /// Takes in aggregations for a record that looks at them: what was aggregated before it has to be there. With
    /// an `aggrate` that somebody has set they are as old as that says.
    fn refresh(
        &mut self,
        context: Context<'_>,
        options: &Options,
        sink: &mut Sink<'_>,
    ) -> Result<(), ConsumeError> {
        if self.fresh || options.get(Opt::Aggrate).is_some() {
            return Ok(());
        }
        self.read_aggregations(context, options, sink)
    }

    /// Consumes what the principal buffers hold. While tracing goes on, records that are younger than another
    /// CPU's snapshot wait for the next call; `last` is the CPU that fired `END`, when tracing has ended. Tells how
    /// full the fullest buffer was, of 100.
    pub fn read_records(
        &mut self,
        context: Context<'_>,
        options: &mut Options,
        first: Option<u32>,
        last: Option<u32>,
        sink: &mut Sink<'_>,
    ) -> Result<u64, ConsumeError> {
        let size = options.get(Opt::Bufsize).unwrap_or(0).max(1);
        let mut fullest = 0;
        let mut until = u64::MAX;
        for cpu in 0..context.device.cpus() {
            let Some(read) = self.read(context.device, options, Buffer::Principal, cpu)? else {
                continue;
            };
            if read.drops > 0 {
                let text = message::principal_drops(read.drops, cpu);
                dropped(options, sink, "DTRACEDROP_PRINCIPAL", text);
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
        self.style = walk::style(options);
        // The queue is taken out while its records are walked, which changes everything else.
        let mut queue = std::mem::take(&mut self.queue);
        let temporal = options.is_on(Opt::Temporal);
        let mut walk = |turn: order::Turn<'_>| self.walk(context, options, sink, &turn);
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

    /// Prints the aggregations that no `printa()` has printed.
    pub fn print_aggregations(
        &mut self,
        context: Context<'_>,
        options: &Options,
        sink: &mut Sink<'_>,
    ) -> Result<(), ConsumeError> {
        let style = walk::style(options);
        let renderer = walk::renderer(context, options, &style);
        let mut text = Vec::new();
        renderer.aggregations(&mut text, &self.aggregations);
        self.write(sink, &text)
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
            // Ring and fill buffers are read when tracing has ended.
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

    /// Keeps memory for the next snapshot.
    fn keep(&mut self, room: Vec<u8>) {
        if self.rooms.len() < ROOMS {
            self.rooms.push(room);
        }
    }
}

/// Zeroed memory; `None` where there is none. It costs nothing until the kernel writes to it, which memory that is reserved and
/// then filled would: so that it can be had is tried first.
fn fresh(size: usize) -> Option<Vec<u8>> {
    let mut tried = Vec::<u8>::new();
    tried.try_reserve_exact(size).ok()?;
    drop(std::hint::black_box(tried));
    Some(vec![0; size])
}

/// What was read from one buffer.
struct Read {
    data: Filled,
    drops: u64,
    oldest: u64,
    timestamp: u64,
}

/// Reports what was lost, under `droptags` with the tag of its kind.
fn dropped(options: &Options, sink: &mut Sink<'_>, tag: &str, text: String) {
    let text = if options.compile.droptags {
        format!("[{tag}] {text}")
    } else {
        text
    };
    (sink.event)(Event::Drop(text));
}

/// The message for a fault on `probe`: `arg2` to `arg5` of `dtrace:::ERROR`.
fn fault_text(probe: &EnabledProbe, [action, offset, fault, addr]: [u64; 4]) -> String {
    let fault = u32::try_from(fault)
        .ok()
        .and_then(Fault::from_raw)
        .unwrap_or(Fault::Unknown);
    message::error(
        &named(probe),
        &message::Error {
            action: u32::try_from(action).unwrap_or(u32::MAX),
            offset: u32::try_from(offset)
                .ok()
                .filter(|offset| *offset != u32::MAX),
            fault,
            addr,
            lacks: lacks(fault),
        },
    )
}

/// The capability that who may see everything lacks to read memory as well.
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

/// An enabled probe as messages name it.
fn named(probe: &EnabledProbe) -> message::Probe<'_> {
    let name = &probe.probe;
    message::Probe {
        epid: probe.epid,
        id: name.id,
        name: [&name.provider, &name.module, &name.func, &name.name],
    }
}
