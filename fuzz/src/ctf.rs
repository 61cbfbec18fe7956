// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! A program's file that anybody may have made: what it tells of types in the short form ends, and never goes wrong.

use crate::dwarf::take_apart;
use dtrace::ctf::Ctf;

/// An ELF file.
pub fn ctf(data: &[u8]) {
    if let Ok(ctf) = Ctf::parse(data) {
        take_apart(&ctf, 0x1000..0x1100);
    }
}
