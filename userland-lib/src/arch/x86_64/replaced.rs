// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Calls of probes that `dtrace -G` replaces by instructions that do nothing, and what is left of them in a program.

use object::elf::{self, RelocationType};

/// How long a call is, and where in it the word is that its relocation is about.
pub const CALL_SIZE: usize = 5;
pub const CALL_WORD: usize = 1;
/// What a relocation becomes that is about a replaced call.
pub const DONE: RelocationType = elf::R_X86_64_NONE;
/// The instructions: a call, a jump to what is called last, nothing, a return, and the result 0.
const CALL: u8 = 0xe8;
const JUMP: u8 = 0xe9;
const NOTHING: u8 = 0x90;
const RETURN: u8 = 0xc3;
const ZERO: [u8; 2] = [0x33, 0xc0];
/// How long the instruction is that makes the result 0.
pub const ZERO_SIZE: usize = ZERO.len();
/// What other tools make the result 0 with.
const ZEROS: [[u8; 2]; 2] = [ZERO, [0x31, 0xc0]];

/// What takes the place of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replacement {
    /// The instructions.
    pub code: [u8; CALL_SIZE],
    /// Which byte of them is the site.
    pub site: u64,
    /// Whether they are there already.
    pub is_done: bool,
}

/// What takes the place of the call that is `code`, whose relocation is of this kind; nothing, if it is not a call that can be replaced. A program
/// that asks has the result 0.
pub fn replaced(code: &[u8], kind: RelocationType, asks: bool) -> Option<Replacement> {
    let (is_last, is_done) = match (code.first()?, kind) {
        (&CALL, elf::R_X86_64_PLT32 | elf::R_X86_64_PC32) => (false, false),
        (&JUMP, elf::R_X86_64_PLT32 | elf::R_X86_64_PC32) => (true, false),
        (_, DONE) => (code.contains(&RETURN), true),
        _ => return None,
    };
    let last = if is_last { RETURN } else { NOTHING };
    let (code, site) = match asks {
        true => ([ZERO[0], ZERO[1], last, NOTHING, NOTHING], ZERO_SIZE),
        false => ([last, NOTHING, NOTHING, NOTHING, NOTHING], 0),
    };
    Some(Replacement {
        code,
        site: site as u64,
        is_done,
    })
}

/// Whether what begins so may be in the place of a call: a return, or an instruction that does nothing, which other tools may have longer.
pub fn is_site(code: &[u8]) -> bool {
    matches!(code, [NOTHING | RETURN, ..] | [0x66, 0x90] | [0x0f, 0x1f])
}

/// Whether it is a return, so that the stack begins with its address. A call was a jump there, the last of its function.
pub fn is_return(code: &[u8]) -> bool {
    code.first() == Some(&RETURN)
}

/// Whether these bytes, [`ZERO_SIZE`] of them, make the result 0.
pub fn is_zero(code: &[u8]) -> bool {
    ZEROS.iter().any(|zero| code == zero)
}
