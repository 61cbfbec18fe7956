// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Reading the types (CTF) of a program's file that any user may have made must end without a
//! failure.

use crate::dwarf::take_apart;
use dtrace::ctf::Ctf;

/// The input is an ELF file.
pub fn ctf(data: &[u8]) {
    if let Ok(ctf) = Ctf::parse(data) {
        take_apart(&ctf, 0x1000..0x1100);
    }
}
