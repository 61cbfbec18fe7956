// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The interface to the names of addresses.

use dtrace_files::dwarf::Inlined;
use dtrace_uapi::interp::Word;
use std::rc::Rc;

/// The object and the symbol that contain an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The kernel module, or the file name of the program or library.
    pub object: String,
    /// The symbol, and the offset of the address from its start; `None` if only the object is
    /// known.
    pub symbol: Option<(String, u64)>,
}

impl Location {
    /// Makes the location at `offset` from the start of a symbol.
    pub fn symbol(object: &str, name: &str, offset: u64) -> Self {
        Self {
            object: object.into(),
            symbol: Some((name.into(), offset)),
        }
    }

    /// Makes the location of an address of which only the object is known.
    pub fn object(object: &str) -> Self {
        Self {
            object: object.into(),
            symbol: None,
        }
    }
}

/// Resolves addresses to names.
pub trait Symbolizer {
    /// Resolves the kernel address `pc`.
    fn kernel(&self, pc: u64) -> Option<Location>;

    /// Resolves the address `pc` of the process `pid`; if that is `None`, of the target (`-p`,
    /// `-c`), if there is one.
    fn user(&self, pid: Option<u32>, pc: u64) -> Option<Location>;

    /// Returns the build ID, in hexadecimal digits, of the file that contains the address `pc` of a
    /// process, and the offset in that file.
    fn build(&self, _pid: u32, _pc: u64) -> Option<(Rc<str>, u64)> {
        None
    }

    /// Returns the text of a frame of interpreted code in a process.
    fn interpreted(&self, _pid: u32, _frame: Word) -> Option<String> {
        None
    }

    /// Returns the functions that are inlined at the address `pc` of a process, the innermost
    /// first.
    fn inlined(&self, _pid: u32, _pc: u64) -> Rc<[Inlined]> {
        Rc::default()
    }

    /// Called when a record with addresses of a process was read, because the process may end
    /// before they are resolved.
    fn note(&self, _pid: u32) {}

    /// Called after a buffer was read from the kernel: information about processes that was
    /// collected before may be older than its records.
    fn taken(&self) {}

    /// Returns the name of a port's service, for `%P`.
    fn port(&self, _port: u16) -> Option<String> {
        None
    }
}

/// A symbolizer that resolves nothing.
pub struct NoSymbols;

impl Symbolizer for NoSymbols {
    fn kernel(&self, _pc: u64) -> Option<Location> {
        None
    }

    fn user(&self, _pid: Option<u32>, _pc: u64) -> Option<Location> {
        None
    }
}
