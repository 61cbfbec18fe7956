// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! An instruction that was taken apart.
//!
//! Invariant: it was made by [`decode`](super::decode()) alone, so its length is that of its parts, 1 to 15.

use super::prefixes::Prefixes;

/// The longest instruction, in bytes. A processor refuses longer ones.
pub const LONGEST: usize = 15;

/// How a program's bytes are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// x86-64.
    Long,
    /// i386, on the same processor.
    Compatible,
}

/// How an instruction says what its opcode means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// By single prefixes and escapes.
    Legacy,
    /// AVX: C4, C5.
    Vex,
    /// AVX-512: 62.
    Evex,
    /// AMD's, before Zen: 8F.
    Xop,
}

/// The table in which an opcode is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Map {
    /// Opcodes of one byte.
    Primary,
    /// Those behind 0F, which VEX and EVEX call map 1.
    Secondary,
    /// Behind 0F 38; map 2.
    M38,
    /// Behind 0F 3A; map 3.
    M3a,
    /// EVEX' map 5.
    M5,
    /// EVEX' map 6.
    M6,
    /// XOP's map 8.
    X8,
    /// XOP's map 9.
    X9,
    /// XOP's map 10.
    Xa,
}

/// An instruction, its bytes included.
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
    /// Sign-extended; 0 where there is none.
    pub(super) displacement: i32,
    /// Where it begins, or would; 0 where there is no memory operand.
    pub(super) displacement_at: u8,
    /// Sign-extended, but for offsets, selectors and words that are counts; 0 where there is none.
    pub(super) immediate: u64,
}

impl Insn {
    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        self.bytes
            .get(..usize::from(self.length))
            .unwrap_or_default()
    }

    /// How many bytes it has.
    pub fn length(&self) -> u8 {
        self.length
    }

    /// How its bytes were read.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// How it says what its opcode means.
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// The table in which its opcode was looked up.
    pub fn map(&self) -> Map {
        self.map
    }

    /// Its opcode, the last byte of several.
    pub fn opcode(&self) -> u8 {
        self.opcode
    }

    /// Whether the opcode is of this map and not of AVX or one of its like.
    pub(super) fn is(&self, map: Map, opcode: u8) -> bool {
        self.encoding == Encoding::Legacy && self.map == map && self.opcode == opcode
    }

    pub(super) fn long(&self) -> bool {
        self.mode == Mode::Long
    }

    /// The middle of the ModRM byte, which chooses a register or an instruction.
    pub(super) fn middle(&self) -> u8 {
        self.modrm.unwrap_or(0) >> 3 & 7
    }

    /// Whether the ModRM byte names no memory.
    pub(super) fn of_registers(&self) -> bool {
        self.modrm.is_some_and(|byte| byte >= 0xc0)
    }

    /// Whether it does nothing but take room, as what stands where a program has a probe of its own does.
    pub fn is_nop(&self) -> bool {
        let hint = self.is(Map::Secondary, 0x1f) && self.middle() == 0;
        let short = self.is(Map::Primary, 0x90) && self.bytes().last() == Some(&0x90);
        hint || short && !self.prefixes.w() && self.prefixes.repeat() == 0
    }

    /// Whether it reaches memory by a distance from itself.
    pub fn is_ip_relative(&self) -> bool {
        let memory = self.displacement_at != 0;
        memory && self.long() && self.modrm.is_some_and(|byte| byte & 0xc7 == 0x05)
    }

    /// Where the instruction behind it is, if it is at `at`.
    pub(super) fn next(&self, at: u64) -> u64 {
        self.wrapped(at.wrapping_add(u64::from(self.length)))
    }

    /// An address as the mode has them.
    pub(super) fn wrapped(&self, address: u64) -> u64 {
        match self.mode {
            Mode::Long => address,
            Mode::Compatible => address & 0xffff_ffff,
        }
    }
}

/// Writes bytes to where there is room for them, and says how many. The slices' own copy would bring a panic along.
pub(super) fn put(room: &mut [u8], bytes: &[u8]) -> Option<usize> {
    let room = room.get_mut(..bytes.len())?;
    for (to, from) in room.iter_mut().zip(bytes) {
        *to = *from;
    }
    Some(bytes.len())
}
