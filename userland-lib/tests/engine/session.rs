// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Runs programs step by step, from the DOF image to the output.

use dtrace::{
    consume::{until_readable, Consumer, Context, Event, Places},
    device::Device,
    dof,
    options::{Options, Setter},
    program::Program,
    render::{Text, Zone},
    statement::Statement,
    symbolizer::{Location, Symbolizer},
};

use dtrace_uapi::interp::Word;

use super::{device::EngineDevice, STACK};

/// Resolves the frames of [`STACK`].
struct Symbols;

impl Symbolizer for Symbols {
    fn kernel(&self, pc: u64) -> Option<Location> {
        let names = ["vfs_read", "ksys_read", "do_syscall_64"];
        let (_, name) = STACK
            .iter()
            .zip(names)
            .find(|(start, _)| (**start & !0xfff..=**start).contains(&pc))?;
        Some(Location::symbol("vmlinux", name, pc & 0xfff))
    }

    fn user(&self, _pid: Option<u32>, _pc: u64) -> Option<Location> {
        None
    }

    fn interpreted(&self, _pid: u32, frame: Word) -> Option<String> {
        Some(format!("line {}", frame.position))
    }
}

/// The text with a visible mark at the end of each line.
pub fn visible(text: &[u8]) -> String {
    let line = |line: &str| match line.strip_suffix('\n') {
        Some(line) => format!("|{line}$\n"),
        None => format!("|{line}"),
    };
    let text = String::from_utf8_lossy(text);
    text.split_inclusive('\n').map(line).collect()
}

/// A consumer of an engine, and its output.
pub struct Session {
    /// The engine.
    pub device: EngineDevice,
    /// The options.
    pub options: Options,
    statements: Vec<Statement>,
    consumer: Consumer,
    text: Text,
    output: Vec<u8>,
    /// The events besides the output.
    pub events: Vec<String>,
}

impl Session {
    /// Makes a session with `options`.
    pub fn new(options: &[(&str, Option<&str>)]) -> Self {
        let mut all = Options::default();
        for (name, value) in options {
            all.set(name, *value, Setter::User).expect("a good option");
        }
        Self {
            device: EngineDevice::new(),
            options: all,
            statements: Vec::new(),
            consumer: Consumer::default(),
            text: Text::new(Zone::utc()),
            output: Vec::new(),
            events: Vec::new(),
        }
    }

    /// Enables `program`.
    pub fn enable(&mut self, program: &Program) {
        self.statements.extend(program.statements.iter().cloned());
        let image = dof::emit(program, &self.options.for_kernel());
        if let Err(error) = self.device.enable(&image) {
            panic!("{error}: {}", self.device.reason());
        }
    }

    /// Starts tracing. Panics with the engine's reason if that fails.
    pub fn go(&mut self) {
        if let Err(error) = self.device.go() {
            panic!("{error}: {}", self.device.reason());
        }
    }

    /// Consumes the available data while tracing goes on.
    pub fn work(&mut self) {
        self.consume(Some(0), None);
    }

    /// Consumes the available data. `first` is the CPU on which `BEGIN` fired; `last` is the CPU on
    /// which `END` fired, if tracing has ended.
    fn consume(&mut self, first: Option<u32>, last: Option<u32>) {
        let events = &mut self.events;
        let mut event = |event: Event| events.push(event.to_string());
        let mut printer = self.text.to(&mut self.output, &mut event);
        let context = Context {
            places: &Places::default(),
            device: &self.device,
            statements: &self.statements,
            symbols: &Symbols,
            wait: &until_readable,
        };
        let consumer = &mut self.consumer;
        consumer
            .read_aggregations(context, &self.options, &mut printer)
            .expect("aggregations that can be read");
        consumer
            .read_records(context, &mut self.options, first, last, &mut printer)
            .expect("records that can be read");
    }

    /// Ends tracing, prints the remaining data, and returns the output with visible line ends.
    pub fn finish(mut self) -> String {
        let last = self.device.stop().expect("an end");
        self.consume(None, Some(last));
        let mut event = |_| {};
        let mut printer = self.text.to(&mut self.output, &mut event);
        let context = Context {
            places: &Places::default(),
            device: &self.device,
            statements: &self.statements,
            symbols: &Symbols,
            wait: &until_readable,
        };
        self.consumer
            .yield_aggregations(context, &self.options, &mut printer)
            .expect("aggregations that can be printed");
        let mut text = visible(&self.output);
        for event in self.events {
            text += &format!("! {event}\n");
        }
        if let Some(status) = self.consumer.exit_status() {
            text += &format!("= {status}\n");
        }
        text
    }
}
