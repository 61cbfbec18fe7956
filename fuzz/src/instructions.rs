// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Instructions of a program: whatever the bytes, registers and memory are, they are refused, moved, or done whole or not at
//! all.

use dtrace_insn::x86_64::Mode;

/// What must hold for any instruction: the crate's own tests ask it too.
#[path = "../../kmod/insn/tests/any/mod.rs"]
mod any;

/// A mode, numbers for registers, and bytes.
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
