// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Properties of the processor of this machine.

use object::elf::RelocationType;
use object::Architecture;

/// Properties of a processor.
#[derive(Debug)]
pub struct Host {
    /// The architecture of object files for it.
    pub architecture: Architecture,
    /// The relocation that stores a symbol's address in 8 bytes.
    pub address: RelocationType,
    /// The number of registers in `regs[]` and `uregs[]`.
    pub registers: u64,
    /// The names of these registers, as a D library.
    pub names: &'static str,
    /// The macros that the preprocessor is given.
    pub definitions: &'static [&'static str],
    /// Maximum alignment of a number in a structure of a 32-bit program, in bytes.
    pub narrow_alignment: u64,
}

/// x86-64. The registers are those that the kernel saves on entry, followed by the segment
/// registers and the trap number. On i386 no number is aligned to more than a word.
#[cfg(target_arch = "x86_64")]
pub const HOST: Host = Host {
    architecture: Architecture::X86_64,
    address: object::elf::R_X86_64_64,
    registers: 26,
    names: include_str!("../../../dlib/regs-x86_64.d"),
    definitions: &["-D__amd64"],
    narrow_alignment: 4,
};

/// AArch64. The registers are those that the kernel saves on entry.
#[cfg(target_arch = "aarch64")]
pub const HOST: Host = Host {
    architecture: Architecture::Aarch64,
    address: object::elf::R_AARCH64_ABS64,
    registers: 34,
    names: include_str!("../../../dlib/regs-aarch64.d"),
    definitions: &[],
    narrow_alignment: 8,
};
