// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The names of addresses, from the symbols of this machine.

use dtrace_consumer::symbolizer::{Location, Symbolizer};
use dtrace_files::dwarf::Inlined;
use dtrace_machine::interp::names::{Frames, Source};
use dtrace_machine::symbols::{KernelSymbols, Remains, UserSymbols};
use dtrace_uapi::interp::Word;
use std::collections::HashMap;
use std::rc::Rc;

/// Names of kernel and user addresses.
#[derive(Debug)]
pub struct Names {
    kernel: Rc<KernelSymbols>,
    user: UserSymbols,
    frames: Frames,
    /// The process to which an address without a process belongs.
    pub default_pid: Option<u32>,
    /// The process IDs that we use, by those in records, where they differ.
    aliases: HashMap<u32, u32>,
}

impl Names {
    /// Uses the kernel's symbols, and reads those of processes when they are needed.
    pub fn new(kernel: &Rc<KernelSymbols>) -> Self {
        Self {
            kernel: Rc::clone(kernel),
            user: UserSymbols::default(),
            frames: Frames::default(),
            default_pid: None,
            aliases: HashMap::new(),
        }
    }

    /// Notes that a process has one ID in records and another one for us, because we are in a pid
    /// namespace.
    pub fn alias(&mut self, in_records: u32, pid: u32) {
        if in_records != pid {
            self.aliases.insert(in_records, pid);
            self.user.alias(pid, in_records);
        }
    }

    /// Sets the source of the mappings of processes that end from now on.
    pub fn keep(&self, remains: Option<Box<dyn Remains>>) {
        self.user.keep(remains);
    }

    /// Sets the source of the names of frames of interpreted code.
    pub fn ask(&self, source: Option<Box<dyn Source>>) {
        self.frames.ask(source);
    }

    /// Our ID of the process that has the ID `pid` in records.
    fn ours(&self, pid: u32) -> u32 {
        self.aliases.get(&pid).copied().unwrap_or(pid)
    }

    /// Reads the mappings of a watched process, before it ends.
    pub fn watch(&self, pid: u32) {
        self.user.watch(pid);
    }

    /// As [`watch`](Self::watch), for one of many processes, which may be forgotten when room is
    /// needed.
    pub fn meet(&self, pid: u32) {
        self.user.meet(pid);
    }
}

impl Symbolizer for Names {
    fn kernel(&self, pc: u64) -> Option<Location> {
        let symbol = self.kernel.by_address(pc)?;
        Some(Location {
            object: symbol.module,
            symbol: Some((symbol.name, pc - symbol.address)),
        })
    }

    fn user(&self, pid: Option<u32>, pc: u64) -> Option<Location> {
        let pid = pid.map(|pid| self.ours(pid));
        let symbol = self.user.by_address(pid.or(self.default_pid)?, pc);
        Some(Location {
            object: symbol.object?,
            symbol: symbol.function,
        })
    }

    fn build(&self, pid: u32, pc: u64) -> Option<(Rc<str>, u64)> {
        self.user.build(self.ours(pid), pc)
    }

    fn interpreted(&self, pid: u32, frame: Word) -> Option<String> {
        let open = |pid, path: &str| self.user.open_seen(pid, path);
        Some(self.frames.text(self.ours(pid), frame, open))
    }

    fn inlined(&self, pid: u32, pc: u64) -> Rc<[Inlined]> {
        self.user.inlined(self.ours(pid), pc)
    }

    fn note(&self, pid: u32) {
        self.user.note(self.ours(pid));
    }

    fn taken(&self) {
        self.user.taken();
    }

    fn port(&self, port: u16) -> Option<String> {
        let services = std::fs::read_to_string("/etc/services").ok()?;
        service(&services, port)
    }
}

/// Returns the name of `port` in the text of `/etc/services`.
fn service(services: &str, port: u16) -> Option<String> {
    services.lines().find_map(|line| {
        let line = line.split('#').next()?;
        let mut words = line.split_ascii_whitespace();
        let (name, number) = (words.next()?, words.next()?.split('/').next()?);
        (number.parse() == Ok(port)).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_by_port() {
        let text = "# comment 22/tcp\nssh 22/tcp # the shell\nhttp\t80/tcp www\nbroken\n";
        assert_eq!(service(text, 22).as_deref(), Some("ssh"));
        assert_eq!(service(text, 80).as_deref(), Some("http"));
        assert_eq!(service(text, 81), None);
    }
}
