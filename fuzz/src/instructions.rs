// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Instructions of a program: with any bytes, registers and memory, an instruction is refused,
//! moved out of line, or emulated completely or not at all.

use dtrace_insn::x86_64::Mode;

/// Properties that hold for any instruction; shared with the crate's own tests.
#[path = "../../kmod/insn/tests/any/mod.rs"]
mod any;

/// The input: the mode, the bytes of the instruction, and values for the registers.
pub fn instructions(data: &[u8]) {
    let Some((mode, rest)) = data.split_first() else {
        return;
    };
    let (bytes, registers) = rest.split_at(rest.len().min(20));
    let mut numbers = [0; 20];
    for (number, bytes) in numbers.iter_mut().zip(registers.chunks(8)) {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        *number = u64::from_le_bytes(word);
    }
    let mode = match mode & 1 {
        0 => Mode::Long,
        _ => Mode::Compatible,
    };
    any::instruction(bytes, mode, &numbers);
}
