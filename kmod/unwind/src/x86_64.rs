// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only OR MIT

//! What a walk knows of the processor: x86, with 64 and with 32 bits. Everything else is in the
//! tables.

use crate::walk::Word;

/// Returns the distances from the saved stack pointer to the saved frame pointer and instruction
/// pointer, in the registers that the kernel saves for a signal: `struct sigcontext` of
/// `arch/x86/include/uapi/asm/sigcontext.h`, with the order bp, bx, dx, ax, cx, sp, ip in 64 bits,
/// and bp, sp, bx, dx, cx, ax, trapno, err, ip in 32 bits.
pub const fn saved(word: Word) -> (i64, i64) {
    match word {
        Word::Four => (-4, 28),
        Word::Eight => (-40, 8),
    }
}

/// Returns how many bytes of its stack the function frees before it returns, if its next
/// instructions are `add $n,%rsp; ret`, with 64 bits.
#[inline]
pub fn freed(code: [u8; 8]) -> Option<u8> {
    let [0x48, 0x83, 0xc4, n, 0xc3, ..] = code else {
        return None;
    };
    // The number has a sign.
    Some(n).filter(|n| *n <= i8::MAX as u8)
}
