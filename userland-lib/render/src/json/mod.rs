// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! A consumer's output as JSON: a [`Receiver`] that writes an object a line (NDJSON).
//!
//! Records, aggregations, faults, drops and errors are in one stream, each with its `type`; the
//! last line, `end`, says that nothing is missing behind it. `docs/json.md` shows every kind of
//! line, and `docs/dtrace.schema.json` says what may be in it.
//!
//! A record is a line, also if conditions have split its clause. The rows of a `printa()` are lines
//! behind it. What the program writes to a file by `freopen()` is text, as ever, and is not in the
//! stream; nor is what commands of `system()` print, which goes to standard error.
//!
//! Invariants: a line is written as a whole; it is UTF-8, whatever was traced; pending lines take
//! no more memory than the text of the same record.

mod aggregation;
mod event;
pub mod list;
mod put;
mod structure;
#[cfg(any(test, feature = "fixture"))]
pub mod testing;
#[cfg(test)]
mod tests;
mod value;
#[cfg(test)]
mod value_tests;

pub use event::{doubt, error, refusal};

use crate::output::Output;
use crate::text::{unfit, Printer, Text};
use crate::Sink;
use dtrace_compiler::options::Options;
use dtrace_compiler::sema::function_name;
use dtrace_compiler::statement::AggVarId;
use dtrace_consumer::aggregate::Aggregations;
use dtrace_consumer::consume::{
    End, Event, Head, Receiver, Refused, Spoken, Start, Surroundings, Value,
};
use put::{Object, Put};
use std::collections::BTreeMap;
use std::io;

/// The version of the schema: it rises when a reader has to know of a change.
pub const VERSION: u32 = 1;

/// The state of an output that is JSON.
pub struct Json {
    quote64: bool,
    /// Has the form of values, and prints what goes to a file.
    text: Text,
    /// Whether `freopen()` has redirected the output to a file.
    is_redirected: bool,
    /// The elements of the current record's output, with commas between.
    output: Vec<u8>,
    /// Lines that follow the record's.
    after: Vec<u8>,
    /// When the record was made, ns.
    time: u64,
    /// Whether the record began when the output was not redirected.
    is_ours: bool,
    counts: Counts,
    /// Why an event could not be written.
    failed: Option<io::Error>,
}

/// What was written.
#[derive(Default)]
struct Counts {
    records: u64,
    aggregations: u64,
    faults: u64,
    errors: u64,
    /// Drops by kind.
    drops: BTreeMap<String, u64>,
}

impl Json {
    /// Makes the state of an output to which nothing was written. `text` is for files of
    /// `freopen()`. With `quote64`, integers beyond 2^53 are strings.
    pub fn new(text: Text, quote64: bool) -> Self {
        Self {
            quote64,
            text,
            is_redirected: false,
            output: Vec::new(),
            after: Vec::new(),
            time: 0,
            is_ours: false,
            counts: Counts::default(),
            failed: None,
        }
    }

    /// Returns a receiver that writes to `out`.
    pub fn to<'a>(&'a mut self, out: &'a mut dyn Output) -> Lines<'a> {
        Lines { json: self, out }
    }

    /// Adds an element to the output of the current record.
    fn element(&mut self, fill: impl FnOnce(&Text, &mut Put<'_>)) {
        if !self.output.is_empty() {
            self.output.push(b',');
        }
        fill(&self.text, &mut Put::to(&mut self.output, self.quote64));
    }

    /// Returns the line of a record and those behind it; nothing if there is nothing to say.
    fn record(&mut self, head: &Head<'_>) -> Vec<u8> {
        let mut line = Vec::new();
        if !self.output.is_empty() || self.is_ours && !self.text.is_quiet() {
            self.counts.records += 1;
            let probe = &head.enabled.probe;
            Put::to(&mut line, self.quote64).object(|object| {
                object.member("type").text("probe");
                object.member("timestamp").integer(head.timestamp);
                object.member("cpu").integer(head.cpu);
                object.member("id").integer(probe.id);
                object.member("epid").integer(head.enabled.epid);
                object.member("clause").integer(head.clause);
                object.member("provider").text(&probe.provider);
                object.member("module").text(&probe.module);
                object.member("function").text(&probe.func);
                object.member("name").text(&probe.name);
                let output = &self.output;
                object.member("output").array(|array| {
                    if !output.is_empty() {
                        array.item().raw(output);
                    }
                });
            });
            line.push(b'\n');
        }
        self.output.clear();
        line.append(&mut self.after);
        line
    }

    /// Adds the rows of `vars`, and the element that names them.
    fn printa(&mut self, around: Surroundings<'_>, aggregations: &Aggregations, vars: &[AggVarId]) {
        let time = self.time;
        let known = || vars.iter().filter_map(|var| aggregations.get(*var));
        for aggregation in known() {
            let renderer = self.text.renderer(around);
            let (out, quote64) = (&mut self.after, self.quote64);
            self.counts.aggregations +=
                aggregation::lines(&renderer, out, aggregation, Some(time), quote64);
        }
        self.element(|_, put| {
            put.object(|object| {
                let names = known().map(|aggregation| aggregation.name());
                object.member("printa").texts(names);
            });
        });
    }
}

/// Writes what a consumer yields.
pub struct Lines<'a> {
    json: &'a mut Json,
    out: &'a mut dyn Output,
}

impl Lines<'_> {
    /// Passes something to the printer of text, whose output is redirected to a file.
    fn as_text<T>(&mut self, pass: impl FnOnce(&mut Printer<'_>) -> T) -> T {
        // Events are told in the stream.
        let mut untold = |_| {};
        pass(&mut self.json.text.to(self.out, &mut untold))
    }

    /// Returns why an event could not be written.
    fn check(&mut self) -> io::Result<()> {
        self.json.failed.take().map_or(Ok(()), Err)
    }

    /// Takes a value that is not text.
    fn take(&mut self, value: Value<'_>, around: Surroundings<'_>) -> Result<(), Refused> {
        let json = &mut *self.json;
        match value {
            Value::Datum(datum) => json.element(|text, put| {
                value::element(&text.renderer(around), put, &datum);
            }),
            Value::Printf(format, args) => {
                let renderer = json.text.renderer(around);
                let mut message = Vec::new();
                let printed = renderer.printf(&mut message, format, args.clone());
                printed.map_err(unfit)?;
                json.element(|text, put| {
                    put.object(|object| {
                        object.member("message").bytes(&message);
                        let renderer = text.renderer(around);
                        value::arguments(&renderer, object.member("args"), format, args);
                    });
                });
            }
            Value::Object(shape, data) => {
                json.element(|_, put| structure::element(put, None, shape, data));
            }
            Value::Pointee {
                address,
                shape,
                data,
            } => json.element(|_, put| structure::element(put, Some(address), shape, data)),
            Value::Printa {
                vars, aggregations, ..
            } => json.printa(around, aggregations, vars),
            Value::System(format, args) => {
                let command = json.text.formatted(around, format, args)?;
                json.element(|_, put| {
                    put.object(|object| {
                        let command = command.as_encoded_bytes();
                        object.member("system").bytes(command);
                    });
                });
                self.out.flush().map_err(Refused::Output)?;
                let ran = around.run(&command, Spoken::Errors);
                ran.map_err(Refused::Value)?;
            }
            Value::Freopen(format, args) => self.reopen(around, Value::Freopen(format, args))?,
            Value::Ftruncate => {
                let reason = "failed to ftruncate(): the output is JSON";
                return Err(Refused::Value(reason.to_owned()));
            }
            // The last line has the status.
            Value::Exit(_) => {}
        }
        Ok(())
    }

    /// Redirects the output, or ends that.
    fn reopen(&mut self, around: Surroundings<'_>, value: Value<'_>) -> Result<(), Refused> {
        self.as_text(|printer| printer.value(value, around))?;
        self.json.is_redirected = self.json.text.is_redirected();
        Ok(())
    }
}

impl Receiver for Lines<'_> {
    fn start(&mut self, start: &Start<'_>) -> io::Result<()> {
        let mut line = Vec::new();
        Put::to(&mut line, self.json.quote64).object(|object| begun(object, start));
        line.push(b'\n');
        self.out.write_all(&line)
    }

    fn options(&mut self, options: &Options) {
        self.json.text.set(options);
    }

    fn begin(&mut self, head: &Head<'_>) -> io::Result<()> {
        self.check()?;
        self.json.time = head.timestamp;
        if !head.is_continued {
            self.json.output.clear();
            self.json.after.clear();
            self.json.is_ours = !self.json.is_redirected;
        }
        match self.json.is_redirected {
            true => self.as_text(|printer| printer.begin(head)),
            false => Ok(()),
        }
    }

    fn value(&mut self, value: Value<'_>, around: Surroundings<'_>) -> Result<(), Refused> {
        match (self.json.is_redirected, &value) {
            (true, Value::Freopen(..)) => self.reopen(around, value),
            // The stream's standard output is not for commands, whatever the records go to.
            (true, Value::System(..)) | (false, _) => self.take(value, around),
            (true, _) => self.as_text(|printer| printer.value(value, around)),
        }
    }

    fn end(&mut self, head: &Head<'_>) -> io::Result<()> {
        if self.json.is_redirected {
            self.as_text(|printer| printer.end(head))?;
        }
        if head.goes_on {
            return Ok(());
        }
        let line = self.json.record(head);
        self.out.write_all(&line)
    }

    /// Writes the aggregations that no `printa()` has printed.
    fn aggregations(
        &mut self,
        aggregations: &Aggregations,
        around: Surroundings<'_>,
    ) -> io::Result<()> {
        self.check()?;
        if self.json.is_redirected {
            return self.as_text(|printer| printer.aggregations(aggregations, around));
        }
        let all = self.json.text.renderer(around).unprinted(aggregations);
        for aggregation in all {
            let mut lines = Vec::new();
            let renderer = self.json.text.renderer(around);
            let quote64 = self.json.quote64;
            let count = aggregation::lines(&renderer, &mut lines, aggregation, None, quote64);
            self.json.counts.aggregations += count;
            self.out.write_all(&lines)?;
        }
        Ok(())
    }

    fn finish(&mut self, end: &End) -> io::Result<()> {
        self.check()?;
        let mut line = Vec::new();
        let counts = &self.json.counts;
        Put::to(&mut line, self.json.quote64).object(|object| ended(object, end, counts));
        line.push(b'\n');
        self.out.write_all(&line)
    }

    fn event(&mut self, event: Event) {
        let counts = &mut self.json.counts;
        let mut total = 0;
        match &event {
            Event::Drop(drops) => {
                let of = counts.drops.entry(drops.kind.name()).or_default();
                *of = of.saturating_add(drops.count);
                total = *of;
            }
            Event::Fault(_) => counts.faults += 1,
            Event::Failed { .. } => counts.errors += 1,
            Event::Place(_) | Event::Missing(_) | Event::Lowered(_) | Event::Ended(_) => {}
        }
        let mut line = Vec::new();
        if !event::line(&mut Put::to(&mut line, self.json.quote64), &event, total) {
            return;
        }
        line.push(b'\n');
        if self.json.failed.is_none() {
            self.json.failed = self.out.write_all(&line).err();
        }
    }
}

impl Sink for Lines<'_> {
    fn receiver(&mut self) -> &mut dyn Receiver {
        self
    }

    fn gap(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.check()?;
        self.as_text(|printer| printer.flush())
    }
}

/// Puts the members of the line `start`.
fn begun(object: &mut Object<'_, '_>, start: &Start<'_>) {
    object.member("type").text("start");
    object.member("version").integer(VERSION);
    let system = (start.system)();
    object.member("host").text(&system.host);
    object.member("boot_id").text(&system.boot_id);
    object.member("kernel").text(&system.kernel);
    object.member("timestamp").integer(system.timestamp);
    object.member("walltimestamp").integer(system.walltimestamp);
    object.member("programs").array(|array| {
        for program in start.programs {
            array.item().object(|object| {
                object.member("name").text(&program.name);
                object.member("matched").integer(program.matched);
                object.member("left_out").text(&program.left_out);
            });
        }
    });
    object.member("aggregations").array(|array| {
        for aggregation in start.aggregations.all() {
            array.item().object(|object| {
                object.member("name").text(aggregation.name());
                let func = function_name(aggregation.func());
                object.member("func").text(func);
                let keys = aggregation.keys().iter().map(String::as_str);
                object.member("keys").texts(keys);
            });
        }
    });
}

/// Puts the members of the line `end`.
fn ended(object: &mut Object<'_, '_>, end: &End, counts: &Counts) {
    object.member("type").text("end");
    object.member("status").integer(end.status);
    object.member("records").integer(counts.records);
    object.member("aggregations").integer(counts.aggregations);
    object.member("drops").object(|object| {
        for (kind, count) in &counts.drops {
            object.member(kind).integer(*count);
        }
    });
    object.member("faults").integer(counts.faults);
    object.member("errors").integer(counts.errors);
}
