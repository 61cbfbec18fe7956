// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Converts the kernel's buffers to text.
//!
//! A [`Consumer`] reads snapshots of all CPUs ([`records`]), orders their records ([`order`]), and
//! walks the fields of each record. The program's statements define the meaning of a field,
//! [`dtrace_render`] its form. Aggregations are kept here while tracing lasts, because the kernel
//! returns only the increments since the last snapshot.
//!
//! The library prints only to the outputs that its user supplies. Records become text in the given
//! writer, and everything *about* tracing (faults, drops, failed options) becomes an [`Event`].

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

use crate::device::{Buffer, Device};
use dtrace_compiler::options::{size_text, Options};
use dtrace_compiler::statement::{AggVarId, Statement};
use dtrace_files::text::plain;
use dtrace_render::line::Flow;
use dtrace_render::{message, Aggregations, Style, Symbolizer, Zone};
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

/// Something besides the records that the consumer reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A fault in probe context.
    Fault(String),
    /// The source location and the expression of the last fault.
    Place(String),
    /// Records, aggregations or variables were dropped.
    Drop(String),
    /// A buffer is smaller than requested, because there was not enough memory.
    Lowered(String),
    /// An error of the library while it handled a record.
    Library(String),
    /// A watched process ended.
    Ended(dtrace_machine::proc::Ended),
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

/// The destinations of records and events.
pub struct Sink<'a> {
    /// Receives the text of records.
    pub out: &'a mut dyn Output,
    /// Receives the events.
    pub event: &'a mut dyn FnMut(Event),
}

/// All that reading records needs: the device, the meaning of programs, and the form of addresses
/// and times.
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
    /// The time zone in which times are printed.
    pub zone: &'a Zone,
    /// Waits until a descriptor is readable, and meanwhile serves processes that wait for the
    /// consumer.
    pub wait: &'a dyn Fn(BorrowedFd<'_>),
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
    redirect: Redirect,
    flow: Vec<Flow>,
    /// Whether the header of the output was printed.
    headed: bool,
    /// Whether the next record continues the line of the previous one.
    goes_on: bool,
    exit_status: Option<i32>,
    status: Status,
    /// Memory for snapshots.
    rooms: Vec<Vec<u8>>,
    /// The text of the current record, kept to reuse its memory.
    text: Vec<u8>,
    /// The form of values, by the options as they are at the current record.
    style: Style,
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

    /// Reports the drops since the last call.
    pub fn note_status(&mut self, status: Status, options: &Options, sink: &mut Sink<'_>) {
        for (tag, text) in message::status_drops(&self.status, &status) {
            dropped(options, sink, tag, text);
        }
        self.status = status;
    }

    /// Reads the aggregation buffers and adds their entries to the totals.
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

    /// Reads the aggregations, unless that was done already, before a record that uses them, so
    /// that they include all that was aggregated before it. If the user has set `aggrate`, they are
    /// read only at that rate.
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
        // Walking a record borrows the whole consumer mutably, so take the queue out meanwhile.
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

/// Reports drops; with `droptags` the tag of their kind is added.
fn dropped(options: &Options, sink: &mut Sink<'_>, tag: &str, text: String) {
    let text = if options.compile.droptags {
        format!("[{tag}] {text}")
    } else {
        text
    };
    (sink.event)(Event::Drop(text));
}

/// Returns the message for a fault on `probe`, from `arg2` to `arg5` of `dtrace:::ERROR`.
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

/// Returns an enabled probe as it appears in messages.
fn named(probe: &EnabledProbe) -> message::Probe<'_> {
    let name = &probe.probe;
    message::Probe {
        epid: probe.epid,
        id: name.id,
        name: [&name.provider, &name.module, &name.func, &name.name],
    }
}
