// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only OR MIT

//! The legacy prefixes and the REX prefix of an instruction.

/// A segment whose base is added to an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Segment {
    /// Any segment with the base 0. All segments of programs are flat except the two below.
    Flat,
    /// `%fs`.
    Fs,
    /// `%gs`.
    Gs,
}

/// The prefixes of an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prefixes {
    /// A bit for each legacy prefix that is present, in the order of [`LEGACY`].
    seen: u16,
    /// The last F2 or F3 prefix, or 0.
    repeat: u8,
    /// The REX prefix that is in effect, or 0.
    rex: u8,
    /// There is a REX prefix without effect.
    stray: bool,
}

/// In the order of the bits of `seen`.
const LEGACY: [u8; 11] = [
    0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65, 0x66, 0x67, 0xf0, 0xf2, 0xf3,
];

const FLAT: u16 = 0x00f;
const CODE: u16 = 0x002;
const FS: u16 = 0x010;
const GS: u16 = 0x020;
const OPERAND: u16 = 0x040;
const ADDRESS: u16 = 0x080;
const LOCK: u16 = 0x100;

impl Prefixes {
    /// Takes one byte. `false`: it is not a prefix.
    pub(super) fn take(&mut self, byte: u8, long: bool) -> bool {
        let which = LEGACY.iter().position(|known| *known == byte);
        let rex = long && byte & 0xf0 == 0x40;
        // REX has an effect only if the opcode follows directly.
        self.stray |= self.rex() && (rex || which.is_some());
        if rex {
            self.rex = byte;
            return true;
        }
        let Some(which) = which else {
            return false;
        };
        self.seen |= 1_u16.wrapping_shl(which as u32);
        if byte >= 0xf2 {
            self.repeat = byte;
        }
        self.rex = 0;
        true
    }

    fn has(self, bits: u16) -> bool {
        self.seen & bits != 0
    }

    /// Whether there is an operand-size prefix, 66.
    pub(super) fn operand(self) -> bool {
        self.has(OPERAND)
    }

    /// Whether there is an address-size prefix, 67.
    pub(super) fn address(self) -> bool {
        self.has(ADDRESS)
    }

    /// Whether there is a lock prefix, F0.
    pub(super) fn lock(self) -> bool {
        self.has(LOCK)
    }

    /// The last F2 or F3 prefix, or 0.
    pub(super) fn repeat(self) -> u8 {
        self.repeat
    }

    /// Whether the code segment is named, to which no 32-bit program can write.
    pub(super) fn code_segment(self) -> bool {
        self.has(CODE)
    }

    /// Whether a segment with the base 0 is named.
    pub(super) fn flat(self) -> bool {
        self.has(FLAT)
    }

    /// The segment that is in effect. `None`: several are named, of which processors do not all
    /// choose the same.
    pub(super) fn segment(self) -> Option<Segment> {
        match (self.has(FS), self.has(GS), self.flat()) {
            (false, false, _) => Some(Segment::Flat),
            (true, false, false) => Some(Segment::Fs),
            (false, true, false) => Some(Segment::Gs),
            _ => None,
        }
    }

    /// Whether there is a REX prefix with another prefix after it.
    pub(super) fn stray(self) -> bool {
        self.stray
    }

    /// The number of different prefixes, without REX.
    pub(super) fn different(self) -> u32 {
        self.seen.count_ones()
    }

    /// Whether a REX prefix is in effect.
    pub(super) fn rex(self) -> bool {
        self.rex != 0
    }

    /// REX.W: operands are of 8 bytes.
    pub(super) fn w(self) -> bool {
        self.rex & 8 != 0
    }

    /// REX.R, as the value that it adds to the number of a register.
    pub(super) fn r(self) -> u8 {
        (self.rex & 4) << 1
    }

    /// REX.X, likewise.
    pub(super) fn x(self) -> u8 {
        (self.rex & 2) << 2
    }

    /// REX.B, likewise.
    pub(super) fn b(self) -> u8 {
        (self.rex & 1) << 3
    }

    /// Whether a VEX, EVEX or XOP instruction may follow these prefixes.
    pub(super) fn allow_vector(self) -> bool {
        !(self.operand() || self.lock() || self.repeat != 0 || self.rex())
    }

    /// Whether there is a prefix 66 or F2.
    pub(super) fn small(self) -> bool {
        self.operand() || self.repeat == 0xf2
    }
}
