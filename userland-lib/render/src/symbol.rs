// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Addresses as text: ``object`symbol+0xoffset`` and its shorter forms.
//!
//! Rendering resolves no address itself but uses a [`Symbolizer`]. An address that cannot be
//! resolved is printed as a number.

use super::{pad, Renderer};
use dtrace_consumer::symbolizer::Location;
use dtrace_consumer::value::{Datum, Kind};
use dtrace_machine::symbols::demangled;
use std::borrow::Cow;

/// Formats `pc` as symbol and offset.
pub(super) fn address(pc: u64, location: Option<&Location>) -> String {
    match location {
        Some(Location {
            object,
            symbol: Some((name, offset)),
        }) if *offset > 0 => format!("{object}`{name}+{offset:#x}"),
        _ => symbol(pc, location),
    }
}

/// Formats `pc` as the symbol that contains it.
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

/// Formats `pc` as the object that contains it.
pub(super) fn object(pc: u64, location: Option<&Location>) -> String {
    match location {
        Some(location) => location.object.clone(),
        None => format!("{pc:#x}"),
    }
}

impl Renderer<'_> {
    /// Resolves a kernel address; the name is demangled unless the options say otherwise.
    pub(super) fn kernel(&self, pc: u64) -> Option<Location> {
        self.shown(self.symbols.kernel(pc))
    }

    /// Resolves a user address; the name is demangled unless the options say otherwise.
    pub(super) fn user(&self, pid: Option<u32>, pc: u64) -> Option<Location> {
        self.shown(self.symbols.user(pid, pc))
    }

    /// Returns a location whose symbol is demangled unless the options say otherwise.
    pub(super) fn shown(&self, location: Option<Location>) -> Option<Location> {
        let mut location = location?;
        if let Some((name, _)) = &mut location.symbol {
            if let Cow::Owned(whole) = self.name(name) {
                *name = whole;
            }
        }
        Some(location)
    }

    /// Returns a linker's name in the form that the options select.
    pub(super) fn name<'n>(&self, name: &'n str) -> Cow<'n, str> {
        match self.style.mangled {
            true => Cow::Borrowed(name),
            false => demangled(name),
        }
    }

    /// Returns the text of an address in the form of its kind; `None` if the datum is no address.
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

    /// Appends the column of a `sym()`, `mod()`, `usym()`, `umod()` or `uaddr()`.
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
