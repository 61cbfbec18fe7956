// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The text of a consumer's output: a [`Receiver`] that prints.
//!
//! A record becomes a line: the columns before its values, the values in their forms, and a
//! newline, unless the program says otherwise. Output goes to the given writer, or to the file that
//! `freopen()` named last. The library itself prints nothing.

use super::line::{self, Enabled, Flow};
use super::output::{Output, Redirect};
use super::{RenderError, Renderer, Sink, Style, Zone};
use dtrace_compiler::format::Format;
use dtrace_compiler::options::{Encoding, Frames, Options};
use dtrace_consumer::aggregate::{Aggregations, Sort};
use dtrace_consumer::consume::{
    Args, EnabledProbe, End, Event, Head, Receiver, Refused, Spoken, Start, Surroundings, Value,
};
use dtrace_uapi::option::Opt;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::path::Path;

/// What the text of a consumer's output depends on besides its records: all that outlives a call.
pub struct Text {
    /// The time zone in which times are printed.
    zone: Zone,
    redirect: Redirect,
    /// The text of the current record. All records share it, to avoid allocations.
    pending: Vec<u8>,
    flow: Vec<Flow>,
    /// Whether the header of the output was printed.
    is_headed: bool,
    style: Style,
    columns: Columns,
}

/// The columns before the values of a record.
#[derive(Clone, Copy, Debug, Default)]
struct Columns {
    /// `flowindent`.
    is_flow: bool,
    /// `unnumbered`: without CPU and probe id.
    is_unnumbered: bool,
}

impl Text {
    /// Makes the state of an output to which nothing was printed yet.
    pub fn new(zone: Zone) -> Self {
        Self {
            zone,
            redirect: Redirect::default(),
            pending: Vec::new(),
            flow: Vec::new(),
            is_headed: false,
            style: Style::default(),
            columns: Columns::default(),
        }
    }

    /// Returns a receiver that prints to `out`, and passes events to `event`.
    pub fn to<'a>(
        &'a mut self,
        out: &'a mut dyn Output,
        event: &'a mut dyn FnMut(Event),
    ) -> Printer<'a> {
        Printer {
            text: self,
            out,
            event,
        }
    }

    /// Sets the form of what follows.
    pub(super) fn set(&mut self, options: &Options) {
        self.style = style(options);
        self.columns = Columns {
            is_flow: options.is_on(Opt::Flowindent),
            is_unnumbered: options.consumer.unnumbered,
        };
    }

    /// Whether the option `quiet` is on.
    pub(super) fn is_quiet(&self) -> bool {
        self.style.quiet
    }

    /// Whether `freopen()` has redirected the output to a file.
    pub(super) fn is_redirected(&self) -> bool {
        self.redirect.is_active()
    }

    /// Returns what renders single values.
    pub(super) fn renderer<'a>(&'a self, around: Surroundings<'a>) -> Renderer<'a> {
        Renderer {
            style: &self.style,
            symbols: around.symbols,
            zone: &self.zone,
        }
    }

    /// Appends the text of `render` to the current record.
    fn rendered<T>(
        &mut self,
        around: Surroundings<'_>,
        render: impl FnOnce(&Renderer<'_>, &mut Vec<u8>) -> T,
    ) -> T {
        let renderer = Renderer {
            style: &self.style,
            symbols: around.symbols,
            zone: &self.zone,
        };
        render(&renderer, &mut self.pending)
    }

    /// Returns the text of a format that is an argument, not output.
    pub(super) fn formatted(
        &self,
        around: Surroundings<'_>,
        format: &Format,
        args: Args<'_>,
    ) -> Result<OsString, Refused> {
        let mut text = Vec::new();
        let renderer = self.renderer(around);
        renderer.printf(&mut text, format, args).map_err(unfit)?;
        Ok(OsString::from_vec(text))
    }

    /// Appends the columns before a record's values, and before the first record the header.
    fn head(&mut self, head: &Head<'_>) {
        let probe = &head.enabled.probe;
        let (numbered, text) = (!self.columns.is_unnumbered, &mut self.pending);
        if self.columns.is_flow {
            if !std::mem::replace(&mut self.is_headed, true) {
                line::flow_header(text, numbered);
            }
            let cpu = head.cpu as usize;
            if self.flow.len() <= cpu {
                self.flow.resize_with(cpu + 1, Flow::default);
            }
            let name = (&*probe.provider, &*probe.func, &*probe.name);
            let following = head.following.map(enabled);
            let cpu_shown = numbered.then_some(head.cpu);
            self.flow[cpu].step(text, cpu_shown, enabled(head.enabled), name, following);
        } else if !self.style.quiet {
            if !std::mem::replace(&mut self.is_headed, true) {
                line::header(text, numbered);
            }
            let numbers = numbered.then_some((head.cpu, probe.id));
            line::probe(text, numbers, &probe.func, &probe.name);
        }
    }
}

/// Prints what a consumer yields.
pub struct Printer<'a> {
    text: &'a mut Text,
    out: &'a mut dyn Output,
    event: &'a mut dyn FnMut(Event),
}

impl Printer<'_> {
    /// Writes text to the current output.
    pub fn write(&mut self, text: &[u8]) -> io::Result<()> {
        match text.is_empty() {
            true => Ok(()),
            false => self.text.redirect.output(self.out).write_all(text),
        }
    }

    /// Writes out the buffered text of the output.
    pub fn flush(&mut self) -> io::Result<()> {
        self.text.redirect.flush().and_then(|()| self.out.flush())
    }

    /// Writes the text of the current record, as far as there is any.
    fn write_pending(&mut self) -> io::Result<()> {
        let mut pending = std::mem::take(&mut self.text.pending);
        let written = self.write(&pending);
        pending.clear();
        self.text.pending = pending;
        written
    }

    /// Redirects the output to the file `path`.
    fn reopen(&mut self, path: &OsStr) -> Result<(), Refused> {
        let reopened = self.text.redirect.reopen(path);
        reopened.map_err(|error| {
            let path = Path::new(path).display();
            Refused::Value(format!("failed to freopen() \"{path}\": {error}"))
        })
    }
}

impl Sink for Printer<'_> {
    fn receiver(&mut self) -> &mut dyn Receiver {
        self
    }

    fn gap(&mut self) -> io::Result<()> {
        self.write(b"\n")
    }

    fn flush(&mut self) -> io::Result<()> {
        Printer::flush(self)
    }
}

impl Receiver for Printer<'_> {
    fn options(&mut self, options: &Options) {
        self.text.set(options);
    }

    fn start(&mut self, _start: &Start<'_>) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self, _end: &End) -> io::Result<()> {
        Ok(())
    }

    fn begin(&mut self, head: &Head<'_>) -> io::Result<()> {
        self.text.pending.clear();
        // A clause that is split by conditions has a record for each part, but only one line.
        if !head.is_continued {
            self.text.head(head);
        }
        Ok(())
    }

    fn value(&mut self, value: Value<'_>, around: Surroundings<'_>) -> Result<(), Refused> {
        match value {
            Value::Datum(datum) => {
                self.text
                    .rendered(around, |renderer, text| renderer.trace(text, &datum));
            }
            Value::Printf(format, args) => self
                .text
                .rendered(around, |renderer, text| renderer.printf(text, format, args))
                .map_err(unfit)?,
            Value::Object(shape, data) => {
                self.text
                    .rendered(around, |renderer, text| renderer.object(text, shape, data));
            }
            Value::Pointee {
                address,
                shape,
                data,
            } => self.text.rendered(around, |renderer, text| {
                renderer.structure(text, address, shape, data);
            }),
            Value::Printa {
                format,
                vars,
                aggregations,
            } => self
                .text
                .rendered(around, |renderer, text| {
                    renderer.printa(text, aggregations, vars, format)
                })
                .map_err(unfit)?,
            Value::System(format, args) => {
                let command = self.text.formatted(around, format, args);
                self.write_pending()
                    .and_then(|()| self.flush())
                    .map_err(Refused::Output)?;
                around
                    .run(&command?, Spoken::Output)
                    .map_err(Refused::Value)?;
            }
            Value::Freopen(format, args) => {
                let path = self.text.formatted(around, format, args);
                self.write_pending().map_err(Refused::Output)?;
                self.reopen(&path?)?;
            }
            Value::Ftruncate => {
                // A terminal or pipe cannot be truncated: it must still get the pending text.
                self.write_pending().map_err(Refused::Output)?;
                let truncated = self.text.redirect.output(self.out).truncate();
                truncated
                    .map_err(|error| Refused::Value(format!("failed to ftruncate(): {error}")))?;
            }
            Value::Exit(_) => {}
        }
        Ok(())
    }

    fn end(&mut self, head: &Head<'_>) -> io::Result<()> {
        if !self.text.style.quiet && !head.goes_on {
            self.text.pending.push(b'\n');
        }
        self.write_pending()
    }

    /// Prints the aggregations that no `printa()` has printed.
    fn aggregations(
        &mut self,
        aggregations: &Aggregations,
        around: Surroundings<'_>,
    ) -> io::Result<()> {
        // A record whose walk has failed is not printed.
        self.text.pending.clear();
        self.text.rendered(around, |renderer, text| {
            renderer.aggregations(text, aggregations);
        });
        self.write_pending()
    }

    fn event(&mut self, event: Event) {
        (self.event)(event);
    }
}

pub(super) fn unfit(error: RenderError) -> Refused {
    Refused::Value(error.to_string())
}

fn enabled(probe: &EnabledProbe) -> Enabled {
    Enabled {
        epid: probe.epid,
        probe: probe.probe.id,
    }
}

/// Returns the form of values under these options.
fn style(options: &Options) -> Style {
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
