// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only OR MIT

//! Decoding of instructions.
//!
//! Lengths are exact: if processors disagree about the length of an instruction, or if no manual
//! defines it, it is refused. The decoder does not check whether a processor has the instruction
//! and would accept its operands.

use super::insn::{put, Encoding, Insn, Map, Mode, LONGEST};
use super::prefixes::Prefixes;
use super::tables::{self, Immediate};

/// Why bytes are not an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undecoded {
    /// They end too early.
    Short,
    /// There would be more than 15.
    Long,
    /// There is no instruction with this opcode, or none with these prefixes.
    Unknown,
    /// Processors of Intel and AMD disagree about its length.
    Disputed,
    /// It needs a processor with APX: prefix D5, or 62 with the bits of APX.
    Apx,
}

/// Decodes the instruction at the beginning of `bytes`.
pub fn decode(bytes: &[u8], mode: Mode) -> Result<Insn, Undecoded> {
    let mut reader = Reader { bytes, at: 0 };
    let mut prefixes = Prefixes::default();
    let mut byte = reader.byte()?;
    while prefixes.take(byte, mode == Mode::Long) {
        byte = reader.byte()?;
    }
    let start = start(byte, &mut reader, prefixes, mode)?;
    let long = mode == Mode::Long;
    let layout = tables::layout(
        start.encoding,
        start.map,
        start.opcode,
        reader.peek(),
        long,
        prefixes.small(),
    )
    .ok_or(Undecoded::Unknown)?;
    let mut insn = Insn {
        bytes: [0; LONGEST],
        length: 0,
        mode,
        prefixes,
        encoding: start.encoding,
        map: start.map,
        opcode: start.opcode,
        modrm: None,
        sib: None,
        displacement: 0,
        displacement_at: 0,
        immediate: 0,
    };
    if layout.modrm {
        let modrm = reader.byte()?;
        insn.modrm = Some(modrm);
        if modrm < 0xc0 && !layout.registers {
            memory(&mut insn, &mut reader, modrm)?;
        }
    }
    insn.immediate = immediate(&insn, &mut reader, layout.immediate)?;
    let whole = bytes.get(..reader.at).ok_or(Undecoded::Short)?;
    put(&mut insn.bytes, whole).ok_or(Undecoded::Long)?;
    insn.length = reader.at as u8;
    Ok(insn)
}

struct Reader<'a> {
    bytes: &'a [u8],
    /// At most `LONGEST`.
    at: usize,
}

impl Reader<'_> {
    fn byte(&mut self) -> Result<u8, Undecoded> {
        if self.at >= LONGEST {
            return Err(Undecoded::Long);
        }
        let byte = self.peek().ok_or(Undecoded::Short)?;
        self.at = self.at.wrapping_add(1);
        Ok(byte)
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// Reads a little-endian number of up to 8 bytes.
    fn number(&mut self, bytes: u32) -> Result<u64, Undecoded> {
        let mut number = 0;
        for i in 0..bytes {
            number |= u64::from(self.byte()?).wrapping_shl(i.wrapping_mul(8));
        }
        Ok(number)
    }

    /// Reads a number and sign-extends it.
    fn signed(&mut self, bytes: u32) -> Result<i64, Undecoded> {
        let unused = 64_u32.wrapping_sub(bytes.wrapping_mul(8));
        let number = self.number(bytes)? as i64;
        Ok(number.wrapping_shl(unused).wrapping_shr(unused))
    }
}

/// An opcode with its encoding and map.
struct Start {
    encoding: Encoding,
    map: Map,
    opcode: u8,
}

fn start(
    first: u8,
    reader: &mut Reader<'_>,
    prefixes: Prefixes,
    mode: Mode,
) -> Result<Start, Undecoded> {
    let long = mode == Mode::Long;
    // In 32-bit mode these bytes are `les`, `lds` and `bound`, which have a memory operand. They
    // begin a vector instruction only if the next byte, read as ModRM, would name registers.
    let vector = long || reader.peek().is_some_and(|byte| byte >= 0xc0);
    match first {
        0xc4 | 0xc5 | 0x62 if vector => vector_start(first, reader, prefixes),
        // `pop` has 0 in the `reg` field of its ModRM byte, which would be a map below 8.
        0x8f if reader.peek().is_some_and(|byte| byte & 0x1f >= 8) => {
            vector_start(first, reader, prefixes)
        }
        0xd5 if long => Err(Undecoded::Apx),
        0x0f => {
            let (map, opcode) = match reader.byte()? {
                0x38 => (Map::M38, reader.byte()?),
                0x3a => (Map::M3a, reader.byte()?),
                // UD0 has a ModRM byte on Intel processors only.
                0xff => return Err(Undecoded::Disputed),
                opcode => (Map::Secondary, opcode),
            };
            Ok(Start {
                encoding: Encoding::Legacy,
                map,
                opcode,
            })
        }
        opcode => Ok(Start {
            encoding: Encoding::Legacy,
            map: Map::Primary,
            opcode,
        }),
    }
}

fn vector_start(
    first: u8,
    reader: &mut Reader<'_>,
    prefixes: Prefixes,
) -> Result<Start, Undecoded> {
    if !prefixes.allow_vector() {
        return Err(Undecoded::Unknown);
    }
    let payload = reader.byte()?;
    let (encoding, map) = match first {
        0xc5 => (Encoding::Vex, 1),
        0xc4 => (Encoding::Vex, payload & 0x1f),
        0x8f => (Encoding::Xop, payload & 0x1f),
        _ => (Encoding::Evex, payload & 7),
    };
    if encoding == Encoding::Evex {
        let second = reader.byte()?;
        reader.byte()?;
        if payload & 8 != 0 || second & 4 == 0 || map == 4 {
            return Err(Undecoded::Apx);
        }
    } else if first != 0xc5 {
        reader.byte()?;
    }
    let map = match map {
        1 => Map::Secondary,
        2 => Map::M38,
        3 => Map::M3a,
        5 => Map::M5,
        6 => Map::M6,
        8 => Map::X8,
        9 => Map::X9,
        10 => Map::Xa,
        _ => return Err(Undecoded::Unknown),
    };
    let opcode = reader.byte()?;
    Ok(Start {
        encoding,
        map,
        opcode,
    })
}

/// Reads the SIB byte and the displacement.
fn memory(insn: &mut Insn, reader: &mut Reader<'_>, modrm: u8) -> Result<(), Undecoded> {
    let (form, low) = (modrm >> 6, modrm & 7);
    let size = if !insn.long() && insn.prefixes.address() {
        match (form, low) {
            (0, 6) | (2, _) => 2,
            (1, _) => 1,
            _ => 0,
        }
    } else {
        let mut base = low;
        if low == 4 {
            let sib = reader.byte()?;
            insn.sib = Some(sib);
            base = sib & 7;
        }
        match (form, base) {
            (0, 5) | (2, _) => 4,
            (1, _) => 1,
            _ => 0,
        }
    };
    insn.displacement_at = reader.at as u8;
    insn.displacement = reader.signed(size)? as i32;
    Ok(())
}

fn immediate(insn: &Insn, reader: &mut Reader<'_>, kind: Immediate) -> Result<u64, Undecoded> {
    let prefixes = insn.prefixes;
    let small = prefixes.operand() && !prefixes.w();
    let operand = if small { 2 } else { 4 };
    let signed = match kind {
        Immediate::None => 0,
        Immediate::Byte => reader.signed(1)?,
        Immediate::Operand => reader.signed(operand)?,
        Immediate::Distance if small && insn.long() => return Err(Undecoded::Disputed),
        Immediate::Distance => reader.signed(operand)?,
        Immediate::Full if prefixes.w() => reader.signed(8)?,
        Immediate::Full => reader.signed(operand)?,
        Immediate::Word => reader.number(2)? as i64,
        Immediate::Bytes2 => reader.number(2)? as i64,
        Immediate::Enter => reader.number(3)? as i64,
        Immediate::Long => reader.signed(4)?,
        Immediate::Far if small => reader.number(4)? as i64,
        Immediate::Far => reader.number(6)? as i64,
        Immediate::Address => match (insn.long(), prefixes.address()) {
            (true, false) => reader.number(8)? as i64,
            (false, true) => reader.number(2)? as i64,
            _ => reader.number(4)? as i64,
        },
    };
    Ok(signed as u64)
}
