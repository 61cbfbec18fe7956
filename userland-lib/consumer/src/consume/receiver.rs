// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! What the consumer yields: typed records, aggregations and events.
//!
//! A record reaches its [`Receiver`] as a head, the values of its statements in their order, and an
//! end. Values are borrowed from the kernel's buffer: nothing is copied. What a record changes in
//! the consumer (aggregations, options) is done between its values, so that a receiver sees at each
//! value what the program's author expects there.

use super::event::Event;
use super::fields::{Field, Group};
use super::layout::EnabledProbe;
use super::run::{End, Start};
use crate::aggregate::Aggregations;
use crate::symbolizer::Symbolizer;
use crate::value::{Datum, Kind};
use dtrace_compiler::format::Format;
use dtrace_compiler::options::Options;
use dtrace_compiler::shape::Shape;
use dtrace_compiler::statement::AggVarId;
use rustix::process::{pidfd_open, Pid, PidfdFlags};
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::Path;
use std::process::{Command, Stdio};

/// The head of a record. A clause that is split at conditions has a record for each part that was
/// executed: they are one record to its author.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    /// The CPU that recorded it.
    pub cpu: u32,
    /// The time at which it was recorded, ns, by the clock of D's `timestamp`.
    pub timestamp: u64,
    /// The number of the clause, counted from 0 over all programs. A clause of several
    /// descriptions has several numbers.
    pub clause: u64,
    /// The probe with the clause.
    pub enabled: &'a EnabledProbe,
    /// The enabled probe of the record that follows on the same CPU, if it was read already. Later
    /// parts of this clause in the same firing are skipped.
    pub following: Option<&'a EnabledProbe>,
    /// Whether the previous record was an earlier part of the same clause in the same firing.
    pub is_continued: bool,
    /// Whether the next record is a later part of it.
    pub goes_on: bool,
}

/// The values of a format's arguments.
#[derive(Clone, Debug)]
pub struct Args<'a> {
    fields: std::slice::Iter<'a, Field>,
    record: &'a [u8],
}

impl<'a> Args<'a> {
    pub(super) fn new(group: &'a Group, record: &'a [u8]) -> Self {
        let fields = group.fields.iter();
        Self { fields, record }
    }
}

impl<'a> Iterator for Args<'a> {
    type Item = Datum<'a>;

    // For each argument of each record, in the renderer's crate.
    #[inline]
    fn next(&mut self) -> Option<Datum<'a>> {
        // A call without arguments has a field without size, which is skipped.
        let field = self.fields.find(|field| !field.is_empty())?;
        Some(field.datum(self.record))
    }
}

/// A value of a record: what one statement of the program recorded, or asks of the output.
#[derive(Debug)]
pub enum Value<'a> {
    /// A value of `trace()`, or of an action that needs no format: a stack, a symbol, memory.
    Datum(Datum<'a>),
    /// `printf()`.
    Printf(&'a Format, Args<'a>),
    /// `print()` of a value of this type. The option `printsize` may have cut its bytes.
    Object(&'a Shape, &'a [u8]),
    /// `print()` of a pointer.
    Pointee {
        /// The pointer.
        address: u64,
        /// The type that it points to.
        shape: &'a Shape,
        /// The bytes there, which may be cut.
        data: &'a [u8],
    },
    /// `printa()`: aggregations, joined by their keys, which include all that was aggregated before
    /// this record.
    Printa {
        /// The format, if there is one.
        format: Option<&'a Format>,
        /// The variables.
        vars: &'a [AggVarId],
        /// All aggregations.
        aggregations: &'a Aggregations,
    },
    /// `system()`: a command to be run now.
    System(&'a Format, Args<'a>),
    /// `freopen()`: output goes to the file of this name from now on.
    Freopen(&'a Format, Args<'a>),
    /// `ftruncate()`: what was put out is to be removed.
    Ftruncate,
    /// `exit()`, with its status. Tracing ends, and nothing is to be done.
    Exit(i32),
}

impl<'a> Value<'a> {
    /// Makes the value of memory that `tracemem()` recorded.
    pub(super) fn memory(data: &'a [u8]) -> Self {
        Self::Datum(Datum::new(Kind::Memory, data))
    }
}

/// What a receiver may need besides a value: names of addresses, and the processes that wait.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// Resolves addresses to names.
    pub symbols: &'a dyn Symbolizer,
    /// Waits until a descriptor is readable, and meanwhile serves processes that wait for the
    /// consumer.
    pub wait: &'a dyn Fn(BorrowedFd<'_>),
}

/// Where the standard output of a command of `system()` goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spoken {
    /// To our standard output.
    Output,
    /// To our standard error, because our standard output is no text.
    Errors,
}

impl Surroundings<'_> {
    /// Runs a command of `system()` and waits until it ends. Its exit status is ignored. Processes
    /// of the command may be traced themselves and wait for this consumer. The error is the
    /// message.
    pub fn run(&self, command: &OsStr, spoken: Spoken) -> Result<(), String> {
        let mut shell = Command::new("/bin/sh");
        shell.arg("-c").arg(command);
        let output = match spoken {
            Spoken::Output => Ok(Stdio::inherit()),
            Spoken::Errors => {
                let errors = io::stderr().as_fd().try_clone_to_owned();
                errors.map(Stdio::from)
            }
        };
        let shell = output.and_then(|output| shell.stdout(output).spawn());
        let result = shell.and_then(|mut child| {
            let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
            // The descriptor becomes readable when the command ends.
            if let Some(Ok(ended)) = pid.map(|pid| pidfd_open(pid, PidfdFlags::empty())) {
                (self.wait)(ended.as_fd());
            }
            child.wait()
        });
        result.map(drop).map_err(|error| {
            let command = Path::new(command).display();
            format!("failed to run \"{command}\": {error}")
        })
    }
}

/// Why a receiver did not take a value.
#[derive(Debug)]
pub enum Refused {
    /// The value cannot be shown or done, for this reason. It becomes an [`Event::Failed`].
    Value(String),
    /// The output cannot be written, so nothing more can.
    Output(io::Error),
}

/// Takes what the consumer yields.
pub trait Receiver {
    /// Tracing begins. Not called if it fails before.
    fn start(&mut self, start: &Start<'_>) -> io::Result<()>;

    /// Tells the options that hold for what follows: before each batch of records, after each
    /// `setopt()`, and before the aggregations at the end.
    fn options(&mut self, options: &Options);

    /// A record begins.
    fn begin(&mut self, head: &Head<'_>) -> io::Result<()>;

    /// The next value of the record.
    fn value(&mut self, value: Value<'_>, around: Surroundings<'_>) -> Result<(), Refused>;

    /// The record ends. Not called for a record that could not be walked to its end, which ends
    /// consuming.
    fn end(&mut self, head: &Head<'_>) -> io::Result<()>;

    /// All aggregations, at the end of tracing.
    fn aggregations(
        &mut self,
        aggregations: &Aggregations,
        around: Surroundings<'_>,
    ) -> io::Result<()>;

    /// Tracing has ended, and everything was passed on. Not called if that has failed.
    fn finish(&mut self, end: &End) -> io::Result<()>;

    /// Reports an event. A receiver that cannot write it says so at the next record.
    fn event(&mut self, event: Event);
}
