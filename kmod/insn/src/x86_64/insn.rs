// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only OR MIT

//! A decoded instruction.
//!
//! Invariant: only [`decode`](super::decode()) creates one, so its length is the sum of its parts,
//! 1 to 15 bytes.

use super::prefixes::Prefixes;

/// The longest instruction, in bytes. Processors refuse longer ones.
pub const LONGEST: usize = 15;

/// The mode in which bytes are decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// x86-64.
    Long,
    /// i386, on the same processor.
    Compatible,
}

/// How the meaning of the opcode is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Legacy prefixes and escape bytes.
    Legacy,
    /// VEX, as used by AVX: C4, C5.
    Vex,
    /// EVEX, as used by AVX-512: 62.
    Evex,
    /// XOP, of AMD processors before Zen: 8F.
    Xop,
}

/// The opcode map: the table in which an opcode is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Map {
    /// One-byte opcodes.
    Primary,
    /// Opcodes after 0F; VEX and EVEX call it map 1.
    Secondary,
    /// Opcodes after 0F 38; map 2.
    M38,
    /// Opcodes after 0F 3A; map 3.
    M3a,
    /// Map 5 of EVEX.
    M5,
    /// Map 6 of EVEX.
    M6,
    /// Map 8 of XOP.
    X8,
    /// Map 9 of XOP.
    X9,
    /// Map 10 of XOP.
    Xa,
}

/// A decoded instruction with its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Insn {
    pub(super) bytes: [u8; LONGEST],
    pub(super) length: u8,
    pub(super) mode: Mode,
    pub(super) prefixes: Prefixes,
    pub(super) encoding: Encoding,
    pub(super) map: Map,
    pub(super) opcode: u8,
    pub(super) modrm: Option<u8>,
    pub(super) sib: Option<u8>,
    /// Sign-extended; 0 if there is none.
    pub(super) displacement: i32,
    /// The offset of the displacement in `bytes`, or where it would be if it has no bytes. 0 if
    /// there is no memory operand.
    pub(super) displacement_at: u8,
    /// Sign-extended, except absolute addresses, far pointers, and the operands of `ret`, `enter`,
    /// `extrq` and `insertq`. 0 if there is none.
    pub(super) immediate: u64,
}

impl Insn {
    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        self.bytes
            .get(..usize::from(self.length))
            .unwrap_or_default()
    }

    /// Its length, in bytes.
    pub fn length(&self) -> u8 {
        self.length
    }

    /// The mode in which it was decoded.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Its encoding.
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// The map of its opcode.
    pub fn map(&self) -> Map {
        self.map
    }

    /// Its opcode; the last byte if there are several.
    pub fn opcode(&self) -> u8 {
        self.opcode
    }

    /// Whether it is this opcode of this map, in the legacy encoding.
    pub(super) fn is(&self, map: Map, opcode: u8) -> bool {
        self.encoding == Encoding::Legacy && self.map == map && self.opcode == opcode
    }

    pub(super) fn long(&self) -> bool {
        self.mode == Mode::Long
    }

    /// The `reg` field of the ModRM byte, which selects a register or an instruction.
    pub(super) fn middle(&self) -> u8 {
        self.modrm.unwrap_or(0) >> 3 & 7
    }

    /// Whether the ModRM byte names registers only.
    pub(super) fn of_registers(&self) -> bool {
        self.modrm.is_some_and(|byte| byte >= 0xc0)
    }

    /// Whether it is a nop, as programs have at the sites of their own probes.
    pub fn is_nop(&self) -> bool {
        let hint = self.is(Map::Secondary, 0x1f) && self.middle() == 0;
        let short = self.is(Map::Primary, 0x90) && self.bytes().last() == Some(&0x90);
        hint || short && !self.prefixes.w() && self.prefixes.repeat() == 0
    }

    /// Whether it addresses memory relative to the instruction pointer.
    pub fn is_ip_relative(&self) -> bool {
        let memory = self.displacement_at != 0;
        memory && self.long() && self.modrm.is_some_and(|byte| byte & 0xc7 == 0x05)
    }

    /// The address of the next instruction, if this one is at `at`.
    pub(super) fn next(&self, at: u64) -> u64 {
        self.wrapped(at.wrapping_add(u64::from(self.length)))
    }

    /// Truncates an address to the width that the mode has.
    pub(super) fn wrapped(&self, address: u64) -> u64 {
        match self.mode {
            Mode::Long => address,
            Mode::Compatible => address & 0xffff_ffff,
        }
    }
}

/// Copies `bytes` to the beginning of `room` and returns their number. `None`: too little room.
/// Copies in a loop, because `copy_from_slice` contains a panic.
pub(super) fn put(room: &mut [u8], bytes: &[u8]) -> Option<usize> {
    let room = room.get_mut(..bytes.len())?;
    for (to, from) in room.iter_mut().zip(bytes) {
        *to = *from;
    }
    Some(bytes.len())
}
