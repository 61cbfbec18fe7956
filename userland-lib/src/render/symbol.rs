// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Addresses as text: ``object`symbol+0xoffset`` and its shorter forms.
//!
//! Rendering names no address itself: it asks a [`Symbolizer`]. What nobody knows is printed as a number.

use super::{pad, Datum, Kind, Renderer};
use crate::dwarf::Inlined;
use crate::symbols::demangled;
use dtrace_uapi::interp::Word;
use std::borrow::Cow;
use std::rc::Rc;

/// Where an address lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The kernel module, or the file name of the program or library.
    pub object: String,
    /// The symbol, and the address' distance from its start.
    pub symbol: Option<(String, u64)>,
}

impl Location {
    /// An address `offset` behind the start of a symbol.
    pub fn symbol(object: &str, name: &str, offset: u64) -> Self {
        Self {
            object: object.into(),
            symbol: Some((name.into(), offset)),
        }
    }

    /// An address that only its object is known of.
    pub fn object(object: &str) -> Self {
        Self {
            object: object.into(),
            symbol: None,
        }
    }
}

/// Names addresses.
pub trait Symbolizer {
    /// The kernel's address `pc`.
    fn kernel(&self, pc: u64) -> Option<Location>;

    /// The address `pc` of a process; without one, of the process that is traced (`-p`, `-c`), if any.
    fn user(&self, pid: Option<u32>, pc: u64) -> Option<Location>;

    /// Which build of a program the address `pc` of a process is in, in hexadecimal digits, and where in its file.
    fn build(&self, _pid: u32, _pc: u64) -> Option<(Rc<str>, u64)> {
        None
    }

    /// The text of a frame of interpreted code in a process.
    fn interpreted(&self, _pid: u32, _frame: Word) -> Option<String> {
        None
    }

    /// The functions that are inlined at the address `pc` of a process, the innermost first.
    fn inlined(&self, _pid: u32, _pc: u64) -> Rc<[Inlined]> {
        Rc::default()
    }

    /// A record of a process has come, which may end before an address in it is asked for.
    fn note(&self, _pid: u32) {}

    /// A buffer was taken from the kernel: what was known of processes before may be older than what its records tell of.
    fn taken(&self) {}

    /// The service of a port, for `%P`.
    fn port(&self, _port: u16) -> Option<String> {
        None
    }
}

/// Knows no name.
pub struct NoSymbols;

impl Symbolizer for NoSymbols {
    fn kernel(&self, _pc: u64) -> Option<Location> {
        None
    }

    fn user(&self, _pid: Option<u32>, _pc: u64) -> Option<Location> {
        None
    }
}

/// `pc` at its location, with the distance from its symbol.
pub(super) fn address(pc: u64, location: Option<&Location>) -> String {
    match location {
        Some(Location {
            object,
            symbol: Some((name, offset)),
        }) if *offset > 0 => format!("{object}`{name}+{offset:#x}"),
        _ => symbol(pc, location),
    }
}

/// The symbol that `pc` lies in.
pub(super) fn symbol(pc: u64, location: Option<&Location>) -> String {
    match location {
        Some(Location {
            object,
            symbol: Some((name, _)),
        }) => format!("{object}`{name}"),
        Some(Location { object, .. }) => format!("{object}`{pc:#x}"),
        None => format!("{pc:#x}"),
    }
}

/// The object that `pc` lies in.
pub(super) fn object(pc: u64, location: Option<&Location>) -> String {
    match location {
        Some(location) => location.object.clone(),
        None => format!("{pc:#x}"),
    }
}

impl Renderer<'_> {
    /// Where an address of the kernel lies.
    pub(super) fn kernel(&self, pc: u64) -> Option<Location> {
        self.shown(self.symbols.kernel(pc))
    }

    /// Where an address of a process lies.
    pub(super) fn user(&self, pid: Option<u32>, pc: u64) -> Option<Location> {
        self.shown(self.symbols.user(pid, pc))
    }

    fn shown(&self, location: Option<Location>) -> Option<Location> {
        let mut location = location?;
        if let Some((name, _)) = &mut location.symbol {
            if let Cow::Owned(whole) = self.name(name) {
                *name = whole;
            }
        }
        Some(location)
    }

    /// A linker's name as the options want it.
    pub(super) fn name<'n>(&self, name: &'n str) -> Cow<'n, str> {
        match self.style.mangled {
            true => Cow::Borrowed(name),
            false => demangled(name),
        }
    }

    /// The text of an address, as its kind asks; `None` if the datum is no address.
    pub(super) fn location(&self, datum: &Datum<'_>) -> Option<String> {
        let (pid, pc) = datum.address()?;
        let location = match pid {
            Some(_) => self.user(pid, pc),
            None => self.kernel(pc),
        };
        let location = location.as_ref();
        Some(match datum.kind {
            Kind::Sym | Kind::Usym => symbol(pc, location),
            Kind::Mod | Kind::Umod => object(pc, location),
            _ => address(pc, location),
        })
    }

    /// The column of an address: of `sym()`, `mod()`, `usym()`, `umod()`, `uaddr()`.
    pub(super) fn location_column(&self, out: &mut Vec<u8>, datum: &Datum<'_>) {
        let text = self.location(datum).unwrap_or_default();
        out.extend_from_slice(b"  ");
        pad::pad(out, text.as_bytes(), 50, true);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{testing::render, Style};
    use super::*;

    #[test]
    fn each_kind_shows_its_part_of_the_address() {
        let user = |pc: u64| [42u64.to_ne_bytes(), pc.to_ne_bytes()].concat();
        let kernel = |pc: u64| pc.to_ne_bytes().to_vec();
        for (kind, data, expected) in [
            (Kind::Sym, kernel(0x1010), "vmlinux`vfs_read"),
            (Kind::Sym, kernel(0x3010), "ext4`0x3010"),
            (Kind::Sym, kernel(0x9000), "0x9000"),
            (Kind::Mod, kernel(0x3010), "ext4"),
            (Kind::Mod, kernel(0x9000), "0x9000"),
            (Kind::Usym, user(0x400008), "libc.so.6`malloc"),
            (Kind::Uaddr, user(0x400008), "libc.so.6`malloc+0x8"),
            (Kind::Uaddr, user(0x400000), "libc.so.6`malloc"),
            (Kind::Uaddr, user(0x500000), "a.out`0x500000"),
            (Kind::Umod, user(0x500000), "a.out"),
            (Kind::Umod, user(1), "0x1"),
        ] {
            let text = render(&Style::default(), |r, out| {
                r.location_column(out, &Datum::new(kind, &data));
            });
            assert_eq!(text, format!("  {expected:<50}"), "{kind:?}");
        }
    }
}
