// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Walks one record: prints the columns before it, handles its fields in order, and ends its line.
//!
//! A record is walked group by group ([`Group`]). A group either prints (a value, a format with its
//! arguments) or acts (on an aggregation, an option, or the output).
//!
//! A failure of a group (an unknown option, data that does not fit its format) becomes an
//! [`Event`], and the walk continues. The walk ends only if output cannot be written or the device
//! fails or supplies inconsistent data.

use super::fields::Group;
use super::layout::EnabledProbe;
use super::order::Turn;
use super::records::Record;
use super::{fault_text, named, ConsumeError, Consumer, Context, Event, Sink};
use dtrace_compiler::options::{Encoding, Frames, Options, Setter};
use dtrace_compiler::statement::{Print, Statement};
use dtrace_render::line::{self, Enabled, Flow};
use dtrace_render::value::until_nul;
use dtrace_render::{message, Datum, Kind, NoSymbols, Renderer, Sort, Style};
use dtrace_uapi::action::Action;
use dtrace_uapi::option::Opt;
use rustix::process::{pidfd_open, Pid, PidfdFlags};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::process::Command;

/// Returns the form of values under these options.
pub fn style(options: &Options) -> Style {
    let number = |opt| {
        options
            .get(opt)
            .and_then(|value| usize::try_from(value).ok())
    };
    let encoding = options.consumer.encoding;
    Style {
        quiet: options.is_on(Opt::Quiet),
        rawbytes: options.is_on(Opt::Rawbytes),
        stackindent: number(Opt::Stackindent),
        aggzoom: options.is_on(Opt::Aggzoom),
        agghist: options.is_on(Opt::Agghist),
        aggpack: options.is_on(Opt::Aggpack),
        utf8: options.is_on(Opt::Aggpack)
            && encoding.map_or_else(locale_is_utf8, |set| set == Encoding::Utf8),
        eighths: encoding == Some(Encoding::Utf8),
        mangled: options.consumer.mangled,
        build_ids: options.consumer.frames == Frames::BuildId,
        inlines: options.consumer.inlines,
        sort: Sort {
            by_key: options.is_on(Opt::Aggsortkey),
            reverse: options.is_on(Opt::Aggsortrev),
            position: number(Opt::Aggsortpos).unwrap_or(0),
            key_position: number(Opt::Aggsortkeypos).unwrap_or(0),
        },
    }
}

/// Whether the locale in the environment uses UTF-8.
fn locale_is_utf8() -> bool {
    let set = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set);
    let locale = locale.unwrap_or_default().to_ascii_lowercase();
    locale.ends_with("utf-8") || locale.ends_with("utf8")
}

/// Returns the renderer for this context.
pub fn renderer<'a>(context: Context<'a>, options: &Options, style: &'a Style) -> Renderer<'a> {
    Renderer {
        style,
        symbols: match options.consumer.noresolve {
            true => &NoSymbols,
            false => context.symbols,
        },
        zone: context.zone,
    }
}

/// A group of fields and the bytes of their record.
struct Values<'a> {
    group: &'a Group,
    record: &'a [u8],
}

impl<'a> Values<'a> {
    fn data(&self, index: usize) -> &'a [u8] {
        let field = self.group.fields.get(index);
        field.map_or(&[], |field| field.data(self.record))
    }

    /// Returns the value of the first field as a number, if it is an integer.
    fn number(&self) -> Option<i64> {
        Datum::new(Kind::Int { signed: true }, self.data(0)).signed()
    }

    /// Returns the arguments of a format. A call without arguments has a field without size, which
    /// is skipped.
    fn args(&self) -> impl Iterator<Item = Datum<'a>> {
        let (fields, record) = (self.group.fields.iter(), self.record);
        fields
            .filter(|field| !field.is_empty())
            .map(|field| field.datum(record))
    }
}

fn enabled(record: &Record) -> Enabled {
    Enabled {
        epid: record.enabled.epid,
        probe: record.enabled.probe.id,
    }
}

impl Consumer {
    /// Prints one record and performs its actions.
    pub(super) fn walk(
        &mut self,
        context: Context<'_>,
        options: &mut Options,
        sink: &mut Sink<'_>,
        turn: &Turn<'_>,
    ) -> Result<(), ConsumeError> {
        let this = &turn.record.enabled;
        if this.is_error {
            return self.fault(context, sink, this, turn.bytes);
        }
        // All records share one buffer, to avoid allocations.
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        // A clause that is split by conditions has a record for each part, but only one line.
        if !std::mem::replace(&mut self.goes_on, turn.goes_on) {
            self.head(&mut text, options, turn);
        }
        for group in &this.groups {
            let values = Values {
                group,
                record: turn.bytes,
            };
            self.group(context, options, sink, &mut text, this, &values)?;
        }
        if !options.is_on(Opt::Quiet) && !turn.goes_on {
            text.push(b'\n');
        }
        let written = self.write(sink, &text);
        self.text = text;
        written
    }

    /// Writes text to the current output.
    pub fn write(&mut self, sink: &mut Sink<'_>, text: &[u8]) -> Result<(), ConsumeError> {
        if text.is_empty() {
            return Ok(());
        }
        self.redirect
            .output(sink.out)
            .write_all(text)
            .map_err(ConsumeError::Output)
    }

    /// Writes out the buffered text of the output.
    pub fn flush(&mut self, sink: &mut Sink<'_>) -> io::Result<()> {
        self.redirect.flush().and_then(|()| sink.out.flush())
    }

    /// Appends the columns before a record's values, and before the first record the header.
    fn head(&mut self, text: &mut Vec<u8>, options: &Options, turn: &Turn<'_>) {
        let probe = &turn.record.enabled.probe;
        let numbered = !options.consumer.unnumbered;
        if options.is_on(Opt::Flowindent) {
            if !std::mem::replace(&mut self.headed, true) {
                line::flow_header(text, numbered);
            }
            let cpu = turn.cpu as usize;
            if self.flow.len() <= cpu {
                self.flow.resize_with(cpu + 1, Flow::default);
            }
            let name = (&*probe.provider, &*probe.func, &*probe.name);
            self.flow[cpu].step(
                text,
                numbered.then_some(turn.cpu),
                enabled(turn.record),
                name,
                turn.following.map(enabled),
            );
        } else if !options.is_on(Opt::Quiet) {
            if !std::mem::replace(&mut self.headed, true) {
                line::header(text, numbered);
            }
            let numbers = numbered.then_some((turn.cpu, probe.id));
            line::probe(text, numbers, &probe.func, &probe.name);
        }
    }

    /// Reports a fault from a record of the library's own clause of `dtrace:::ERROR`.
    fn fault(
        &mut self,
        context: Context<'_>,
        sink: &mut Sink<'_>,
        this: &EnabledProbe,
        bytes: &[u8],
    ) -> Result<(), ConsumeError> {
        let mut args = [0; 5];
        let fields = this.groups.iter().flat_map(|group| &group.fields);
        for (arg, field) in args.iter_mut().zip(fields) {
            *arg = Datum::new(Kind::Int { signed: false }, field.data(bytes))
                .unsigned()
                .unwrap_or(0);
        }
        let [epid, rest @ ..] = args;
        let epid =
            u32::try_from(epid).map_err(|_| ConsumeError::Layout("a fault names no probe"))?;
        let faulty = self.layouts.enabled(context, epid)?;
        (sink.event)(Event::Fault(fault_text(&faulty, rest)));
        let [action, offset, ..] = rest;
        if let Some(place) = context.places.find(faulty.clause, action, offset) {
            (sink.event)(Event::Place(place));
        }
        Ok(())
    }

    fn group(
        &mut self,
        context: Context<'_>,
        options: &mut Options,
        sink: &mut Sink<'_>,
        text: &mut Vec<u8>,
        this: &EnabledProbe,
        values: &Values<'_>,
    ) -> Result<(), ConsumeError> {
        let style = self.style;
        let renderer = renderer(context, options, &style);
        let statement = values.group.statement(context.statements);
        let failed = |sink: &mut Sink<'_>, reason: String| {
            (sink.event)(Event::Library(message::library_error(
                &named(this),
                &reason,
            )));
        };
        if statement.is_some_and(Statement::reads_aggregations) {
            self.refresh(context, options, sink)?;
        }
        match statement {
            Some(Statement::Printf(print)) => {
                let args = values.args();
                if let Err(error) = renderer.printf(text, &print.format, args) {
                    failed(sink, error.to_string());
                }
            }
            Some(Statement::System(print)) => {
                let command = formatted(&renderer, print, values);
                self.write(sink, text)?;
                text.clear();
                self.flush(sink).map_err(ConsumeError::Output)?;
                if let Err(error) = command.and_then(|command| run(&command, context.wait)) {
                    failed(sink, error);
                }
            }
            Some(Statement::Freopen(print)) => {
                let path = formatted(&renderer, print, values);
                self.write(sink, text)?;
                text.clear();
                let reopened = path.and_then(|path| {
                    let result = self.redirect.reopen(&path);
                    result.map_err(|error| {
                        format!(
                            "failed to freopen() \"{}\": {error}",
                            Path::new(&path).display()
                        )
                    })
                });
                if let Err(error) = reopened {
                    failed(sink, error);
                }
            }
            Some(Statement::Ftruncate) => {
                // A terminal or pipe cannot be truncated: it must still get the pending text.
                self.write(sink, text)?;
                text.clear();
                if let Err(error) = self.redirect.output(sink.out).truncate() {
                    failed(sink, format!("failed to ftruncate(): {error}"));
                }
            }
            Some(Statement::Print(shape)) => {
                let address = values.number().unwrap_or(0) as u64;
                let data = values.data(1);
                let shown = data.len().min(options.consumer.printsize);
                renderer.structure(text, address, shape, &data[..shown]);
            }
            Some(Statement::PrintValue(shape)) => {
                let data = values.data(0);
                let shown = data.len().min(options.consumer.printsize);
                renderer.object(text, shape, &data[..shown]);
            }
            Some(Statement::Printa { format, aggs }) => {
                let printed = renderer.printa(text, &mut self.aggregations, aggs, format.as_ref());
                if let Err(error) = printed {
                    failed(sink, error.to_string());
                }
            }
            Some(Statement::Setopt) => {
                let text = |at| String::from_utf8_lossy(until_nul(values.data(at)));
                let (name, value) = (text(0), (values.group.fields.len() > 1).then(|| text(1)));
                if let Err(error) = options.set(&name, value.as_deref(), Setter::Running) {
                    let value = value.as_deref().unwrap_or("1");
                    failed(
                        sink,
                        // As in every DTrace, an empty line follows this message.
                        format!("couldn't set option \"{name}\" to \"{value}\": {error}\n"),
                    );
                }
                self.style = self::style(options);
            }
            Some(Statement::Exit) => {
                self.exit_status = values
                    .number()
                    .and_then(|status| i32::try_from(status).ok());
            }
            Some(Statement::Clear(var)) => self.aggregations.clear(*var),
            Some(Statement::Trunc(var)) => {
                self.aggregations.trunc(*var, values.number().unwrap_or(0))
            }
            Some(Statement::Normalize(var)) => {
                match values
                    .number()
                    .and_then(|factor| u64::try_from(factor).ok())
                    .filter(|factor| *factor != 0)
                {
                    Some(factor) => self.aggregations.normalize(*var, factor),
                    None => failed(sink, "Invalid normalization".to_owned()),
                }
            }
            Some(Statement::Denormalize(var)) => self.aggregations.denormalize(*var),
            Some(Statement::Speculative | Statement::Error | Statement::Aggregate { .. }) => {}
            Some(Statement::Trace(_) | Statement::Tracemem | Statement::Action) | None => {
                trace(&renderer, text, values);
            }
        }
        Ok(())
    }
}

/// Appends the values of a `trace()`, or of an action that needs no statement to be printed.
fn trace(renderer: &Renderer<'_>, text: &mut Vec<u8>, values: &Values<'_>) {
    let mut limit = usize::MAX;
    for field in &values.group.fields {
        let data = field.data(values.record);
        match field.action {
            // The size computed by a tracemem() comes before the memory and limits it.
            Some(Action::TracememDynsize) => {
                let size = Datum::new(Kind::Int { signed: false }, data).unsigned();
                limit = size
                    .and_then(|size| usize::try_from(size).ok())
                    .unwrap_or(0);
            }
            Some(Action::Tracemem) => {
                renderer.trace(
                    text,
                    &Datum::new(Kind::Memory, &data[..data.len().min(limit)]),
                );
            }
            Some(Action::Exit | Action::None) => {}
            _ if field.is_empty() => {}
            _ => renderer.trace(text, &field.datum(values.record)),
        }
    }
}

/// Returns the text of a format that is an argument, not output.
fn formatted(
    renderer: &Renderer<'_>,
    print: &Print,
    values: &Values<'_>,
) -> Result<OsString, String> {
    let mut text = Vec::new();
    let args = values.args();
    renderer
        .printf(&mut text, &print.format, args)
        .map_err(|error| error.to_string())?;
    Ok(OsString::from_vec(text))
}

/// Runs a command of `system()` and waits until it ends. Its output is not captured, and its exit
/// status is ignored. Processes of the command may be traced themselves and wait for this consumer;
/// `wait` serves them meanwhile.
fn run(command: &OsStr, wait: &dyn Fn(BorrowedFd<'_>)) -> Result<(), String> {
    let shell = Command::new("/bin/sh").arg("-c").arg(command).spawn();
    let result = shell.and_then(|mut child| {
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        // The descriptor becomes readable when the command ends.
        if let Some(Ok(ended)) = pid.map(|pid| pidfd_open(pid, PidfdFlags::empty())) {
            wait(ended.as_fd());
        }
        child.wait()
    });
    result.map(drop).map_err(|error| {
        format!(
            "failed to run \"{}\": {error}",
            Path::new(command).display()
        )
    })
}
