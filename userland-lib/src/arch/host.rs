// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! What the processor of this machine decides.

use object::elf::RelocationType;
use object::Architecture;

/// Facts of a processor.
#[derive(Debug)]
pub struct Host {
    /// How objects for it are marked.
    pub architecture: Architecture,
    /// The relocation that puts a symbol's address into 8 bytes.
    pub address: RelocationType,
    /// How many registers `regs[]` and `uregs[]` have.
    pub registers: u64,
    /// The names of these registers, as a D library.
    pub names: &'static str,
    /// What the preprocessor is told of it.
    pub definitions: &'static [&'static str],
    /// The largest alignment that a number has in a structure of a program of 32 bits, bytes.
    pub narrow_alignment: u64,
}

/// Those of this machine's. Registers are those that the kernel saves when it is entered, and the segments and the trap's number after
/// them. i386 aligns no number more than a word.
#[cfg(target_arch = "x86_64")]
pub const HOST: Host = Host {
    architecture: Architecture::X86_64,
    address: object::elf::R_X86_64_64,
    registers: 26,
    names: include_str!("../../dlib/regs-x86_64.d"),
    definitions: &["-D__amd64"],
    narrow_alignment: 4,
};

/// Those of this machine's. Registers are those that the kernel saves when it is entered.
#[cfg(target_arch = "aarch64")]
pub const HOST: Host = Host {
    architecture: Architecture::Aarch64,
    address: object::elf::R_AARCH64_ABS64,
    registers: 34,
    names: include_str!("../../dlib/regs-aarch64.d"),
    definitions: &[],
    narrow_alignment: 8,
};
