// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only OR MIT

//! The opcode tables: which opcodes exist, and what follows them.
//!
//! The two oldest maps have a letter for each opcode. The others are regular, so one bit per opcode
//! is enough. The facts are those of Intel's and AMD's manuals. What no manual defines is not
//! decoded, because its length is unknown.

use super::insn::{Encoding, Map};

/// A letter for each opcode of a map, in rows of 16.
type Letters = [[u8; 16]; 16];

/// A bit for each opcode of a map, in rows of 16.
type Bits = [u16; 16];

/// The immediate operand: what follows the opcode, ModRM byte and displacement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Immediate {
    None,
    Byte,
    Word,
    /// 2 bytes if operands are of 2 bytes, otherwise 4.
    Operand,
    /// As wide as operands.
    Full,
    /// An absolute address, as wide as addresses.
    Address,
    /// A distance to jump: as `Operand`, but disputed in 64-bit mode with an operand-size prefix.
    Distance,
    /// A word and a byte.
    Enter,
    /// An offset as `Operand`, and a selector.
    Far,
    Long,
    Bytes2,
}

/// What follows an opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub modrm: bool,
    /// Whether the ModRM byte names two registers regardless of its two highest bits.
    pub registers: bool,
    pub immediate: Immediate,
}

/// Legend: `.` undefined; `+` a prefix or an escape; `-` nothing; `M` ModRM; `R` ModRM that names
/// registers only. Immediates: `b` byte, `w` word, `z` operand, `v` full, `o` address, `j`
/// distance, `e` enter, `p` far. `B` and `Z`: ModRM and that immediate. `t` and `T`: as `B` and `Z`
/// if the `reg` field of ModRM is 0 or 1, otherwise as `M`. `x`: ModRM, and two bytes if there is a
/// prefix 66 or F2.
#[rustfmt::skip]
const PRIMARY: Letters = [
    *b"MMMMbz--MMMMbz-+",
    *b"MMMMbz--MMMMbz--",
    *b"MMMMbz+-MMMMbz+-",
    *b"MMMMbz+-MMMMbz+-",
    *b"----------------",
    *b"----------------",
    *b"--MM++++zZbB----",
    *b"bbbbbbbbbbbbbbbb",
    *b"BZBBMMMMMMMMMMMM",
    *b"----------p-----",
    *b"oooo----bz------",
    *b"bbbbbbbbvvvvvvvv",
    *b"BBw-MMBZe-w--b--",
    *b"MMMMbb--MMMMMMMM",
    *b"bbbbbbbbjjpb----",
    *b"+-++--tT------MM",
];

/// Opcodes after 0F.
#[rustfmt::skip]
const SECONDARY: Letters = [
    *b"MMMM.-----.-.M-B",
    *b"MMMMMMMMMMMMMMMM",
    *b"RRRR....MMMMMMMM",
    *b"------.-+.+.....",
    *b"MMMMMMMMMMMMMMMM",
    *b"MMMMMMMMMMMMMMMM",
    *b"MMMMMMMMMMMMMMMM",
    *b"BBBBMMM-xM..MMMM",
    *b"jjjjjjjjjjjjjjjj",
    *b"MMMMMMMMMMMMMMMM",
    *b"---MBMMM---MBMMM",
    *b"MMMMMMMMMMBMMMMM",
    *b"MMBMBBBM--------",
    *b"MMMMMMMMMMMMMMMM",
    *b"MMMMMMMMMMMMMMMM",
    *b"MMMMMMMMMMMMMMM.",
];

/// Whether this opcode of the first map does not exist in 64-bit mode.
fn is_old(opcode: u8) -> bool {
    matches!(
        opcode,
        0x06 | 0x07
            | 0x0e
            | 0x16
            | 0x17
            | 0x1e
            | 0x1f
            | 0x27
            | 0x2f
            | 0x37
            | 0x3f
            | 0x60..=0x62
            | 0x82
            | 0x9a
            | 0xc4
            | 0xc5
            | 0xce
            | 0xd4..=0xd6
            | 0xea
    )
}

#[rustfmt::skip]
const LEGACY_38: Bits = [
    0x0fff, 0x70b1, 0x0f3f, 0xffbf, 0x0003, 0x0000, 0x0000, 0x0000,
    0x0007, 0x0000, 0x0000, 0x0000, 0xbf00, 0xf900, 0x0000, 0x1f63,
];
#[rustfmt::skip]
const LEGACY_3A: Bits = [
    0xff00, 0x00f0, 0x0007, 0x0000, 0x0017, 0x0000, 0x000f, 0x0000,
    0x0000, 0x0000, 0x0000, 0x0000, 0xd000, 0x8000, 0x0000, 0x0001,
];
#[rustfmt::skip]
const VEX_1: Bits = [
    0x0000, 0x00ff, 0xff00, 0x0000, 0x0cf6, 0xffff, 0xffff, 0xf0ff,
    0x0000, 0x030f, 0x4000, 0x0000, 0x0074, 0xffff, 0xffff, 0x7fff,
];
#[rustfmt::skip]
const VEX_2: Bits = [
    0xffff, 0x77c8, 0xff3f, 0xffff, 0x0ae3, 0x570f, 0x1000, 0x0304,
    0x5000, 0xffcf, 0xffc0, 0xfff3, 0xb800, 0xfc0c, 0xffff, 0x00ec,
];
#[rustfmt::skip]
const VEX_3: Bits = [
    0xff77, 0x23f0, 0x0007, 0x030f, 0x1f57, 0xf000, 0xff0f, 0xff00,
    0x0000, 0x0000, 0x0000, 0x0000, 0xc000, 0xc000, 0x0000, 0x0001,
];
#[rustfmt::skip]
const EVEX_1: Bits = [
    0x0000, 0x00ff, 0xff00, 0x0000, 0x0000, 0xfff2, 0xffff, 0xcf7f,
    0x0000, 0x0000, 0x0000, 0x0000, 0x0074, 0xff7e, 0xffff, 0x7f7e,
];
#[rustfmt::skip]
const EVEX_2: Bits = [
    0x3811, 0xff7f, 0x3fff, 0xffff, 0xf0fd, 0x0f3f, 0x017c, 0xffef,
    0xaf08, 0xffcf, 0xffcf, 0xfff0, 0xbdd0, 0xf000, 0x0000, 0x0000,
];
#[rustfmt::skip]
const EVEX_3: Bits = [
    0x8f3b, 0xeff0, 0x00ef, 0xcf00, 0x001c, 0x00f3, 0x00c0, 0x000f,
    0x0000, 0x0000, 0x0000, 0x0000, 0xc004, 0x0000, 0x0000, 0x0000,
];
#[rustfmt::skip]
const EVEX_5: Bits = [
    0x0000, 0x2003, 0xf400, 0x0000, 0x0000, 0xff02, 0x4000, 0x7f00,
    0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000,
];
#[rustfmt::skip]
const EVEX_6: Bits = [
    0x0000, 0x0008, 0x3000, 0x0000, 0xf00c, 0x00c0, 0x0000, 0x0000,
    0x0000, 0xffc0, 0xffc0, 0xffc0, 0x0000, 0x00c0, 0x0000, 0x0000,
];
#[rustfmt::skip]
const XOP_8: Bits = [
    0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000,
    0xc0e0, 0xc0e0, 0x004c, 0x0040, 0xf00f, 0x0000, 0xf000, 0x0000,
];
#[rustfmt::skip]
const XOP_9: Bits = [
    0x0006, 0x0004, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000,
    0x000f, 0x0fff, 0x0000, 0x0000, 0x08ce, 0x08ce, 0x000e, 0x0000,
];
#[rustfmt::skip]
const XOP_A: Bits = [
    0x0000, 0x0005, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000,
    0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000, 0x0000,
];

fn letter(letters: &Letters, opcode: u8) -> Option<u8> {
    let row = letters.get(usize::from(opcode >> 4))?;
    row.get(usize::from(opcode & 15)).copied()
}

fn bit(bits: &Bits, opcode: u8) -> bool {
    let row = bits.get(usize::from(opcode >> 4)).copied().unwrap_or(0);
    row & 1_u16.wrapping_shl(u32::from(opcode & 15)) != 0
}

/// What follows an opcode of the two oldest maps with this letter. `modrm` is the next byte,
/// whether or not it is a ModRM byte. `small`: there is a prefix 66 or F2.
fn lettered(letter: u8, modrm: Option<u8>, small: bool) -> Option<Layout> {
    let test = modrm.is_some_and(|byte| byte & 0x30 == 0);
    let immediate = match letter {
        b'-' | b'M' | b'R' => Immediate::None,
        b'b' | b'B' => Immediate::Byte,
        b't' if test => Immediate::Byte,
        b'T' if test => Immediate::Operand,
        b't' | b'T' => Immediate::None,
        b'x' if small => Immediate::Bytes2,
        b'x' => Immediate::None,
        b'w' => Immediate::Word,
        b'z' | b'Z' => Immediate::Operand,
        b'v' => Immediate::Full,
        b'o' => Immediate::Address,
        b'j' => Immediate::Distance,
        b'e' => Immediate::Enter,
        b'p' => Immediate::Far,
        _ => return None,
    };
    Some(Layout {
        modrm: letter == b'R'
            || letter == b'x'
            || matches!(letter, b't' | b'T' | b'M' | b'B' | b'Z'),
        registers: letter == b'R',
        immediate,
    })
}

/// What follows an opcode; `None` if there is no such opcode. `next` is the byte after the opcode.
pub(super) fn layout(
    encoding: Encoding,
    map: Map,
    opcode: u8,
    next: Option<u8>,
    long: bool,
    small: bool,
) -> Option<Layout> {
    let known = match (encoding, map) {
        (Encoding::Legacy, Map::Primary) if long && is_old(opcode) => false,
        (Encoding::Legacy, Map::Primary) => {
            return lettered(letter(&PRIMARY, opcode)?, next, small)
        }
        (Encoding::Legacy, Map::Secondary) => {
            return lettered(letter(&SECONDARY, opcode)?, next, small)
        }
        (Encoding::Legacy, Map::M38) => bit(&LEGACY_38, opcode),
        (Encoding::Legacy, Map::M3a) => bit(&LEGACY_3A, opcode),
        (Encoding::Vex, Map::Secondary) => bit(&VEX_1, opcode),
        (Encoding::Vex, Map::M38) => bit(&VEX_2, opcode),
        (Encoding::Vex, Map::M3a) => bit(&VEX_3, opcode),
        (Encoding::Evex, Map::Secondary) => bit(&EVEX_1, opcode),
        (Encoding::Evex, Map::M38) => bit(&EVEX_2, opcode),
        (Encoding::Evex, Map::M3a) => bit(&EVEX_3, opcode),
        (Encoding::Evex, Map::M5) => bit(&EVEX_5, opcode),
        (Encoding::Evex, Map::M6) => bit(&EVEX_6, opcode),
        (Encoding::Xop, Map::X8) => bit(&XOP_8, opcode),
        (Encoding::Xop, Map::X9) => bit(&XOP_9, opcode),
        (Encoding::Xop, Map::Xa) => bit(&XOP_A, opcode),
        _ => false,
    };
    let immediate = match (map, opcode) {
        (Map::M3a | Map::X8, _) => Immediate::Byte,
        (Map::Secondary, 0x70..=0x73 | 0xc2 | 0xc4..=0xc6) => Immediate::Byte,
        (Map::Xa, _) => Immediate::Long,
        _ => Immediate::None,
    };
    let layout = Layout {
        // All but `vzeroupper` and `vzeroall`.
        modrm: (encoding, map, opcode) != (Encoding::Vex, Map::Secondary, 0x77),
        registers: false,
        immediate,
    };
    known.then_some(layout)
}
