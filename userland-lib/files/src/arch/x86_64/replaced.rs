// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Calls of probes that `dtrace -G` replaces with instructions that do nothing, and their remains
//! in a program.

use object::elf::{self, Machine, RelocationType};

/// The machine of objects whose calls can be replaced. They are of 64 bits.
pub const MACHINE: Machine = elf::EM_X86_64;
/// Its name in messages.
pub const MACHINE_NAME: &str = "x86";
/// Size of a call in bytes.
pub const CALL_SIZE: usize = 5;
/// Offset in a call of the word that its relocation is about.
pub const CALL_WORD: usize = 1;
/// The kind that the relocation of a replaced call gets.
pub const DONE: RelocationType = elf::R_X86_64_NONE;
/// The instructions: a call, a jump to a function that is called last (tail call), no operation, a
/// return, and setting the result to 0.
const CALL: u8 = 0xe8;
const JUMP: u8 = 0xe9;
const NOTHING: u8 = 0x90;
const RETURN: u8 = 0xc3;
const ZERO: [u8; 2] = [0x33, 0xc0];
/// Size of the instruction that sets the result to 0.
pub const ZERO_SIZE: usize = ZERO.len();
/// The forms in which other tools set the result to 0.
const ZEROS: [[u8; 2]; 2] = [ZERO, [0x31, 0xc0]];

/// The replacement of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replacement {
    /// The instructions.
    pub code: [u8; CALL_SIZE],
    /// The offset of the probe site in them.
    pub site: u64,
    /// Whether the call was already replaced.
    pub is_done: bool,
}

/// Returns the replacement of the call `code`, whose relocation is of this kind; `None` if it is
/// not a call that can be replaced. The call of an is-enabled probe (`asks`) gets the result 0.
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

/// Whether `code` may be the start of a replaced call: a return, or a no-operation, for which other
/// tools may use a longer form.
pub fn is_site(code: &[u8]) -> bool {
    matches!(code, [NOTHING | RETURN, ..] | [0x66, 0x90] | [0x0f, 0x1f])
}

/// Whether it is a return, so that the return address is on top of the stack. The original was a
/// tail call.
pub fn is_return(code: &[u8]) -> bool {
    code.first() == Some(&RETURN)
}

/// Whether these [`ZERO_SIZE`] bytes set the result to 0.
pub fn is_zero(code: &[u8]) -> bool {
    ZEROS.iter().any(|zero| code == zero)
}
