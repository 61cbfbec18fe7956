// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! DIF: programs that the verifier accepts behave the same in the prepared form and in the
//! reference interpreter, which decodes each word when it executes it.

use crate::common::copy;
use crate::common::differ::{both, program, Seed};
use dtrace_uapi::asm::assemble;
use dtrace_uapi::dif::{Instr, Op};

/// Maximum number of instructions. More than a run has time for.
const LONGEST: usize = 400;

/// The first byte of the input selects instructions that are mostly valid, or arbitrary words.
pub fn dif(data: &[u8]) {
    let Some((mode, data)) = data.split_first() else {
        return;
    };
    let difo = match mode & 1 {
        0 => program(&seeds(data)),
        _ => {
            let words = data.chunks_exact(4).take(LONGEST);
            let words =
                words.map(|word| Instr(u32::from_le_bytes([word[0], word[1], word[2], word[3]])));
            let mut text: Vec<Instr> = words.collect();
            text.push(Instr::fmt(Op::Ret, 0, 0, 1));
            let mut difo = program(&[]);
            difo.text = copy(&text);
            difo
        }
    };
    if let Some((prepared, reference)) = both(&difo, mode & 2 == 0) {
        assert_eq!(prepared, reference, "{:?}", difo.text);
    }
}

/// DIF as text: what is read can be written, and is then read as the same.
pub fn assembly(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Ok(object) = assemble(&text) {
        let written = object.to_string();
        assert_eq!(assemble(&written), Ok(object), "{written}");
    }
}

/// Decodes one instruction from each six bytes.
pub fn seeds(data: &[u8]) -> Vec<Seed> {
    let seeds = data.chunks_exact(6).take(LONGEST).map(|s| Seed {
        kind: s[0],
        a: s[1],
        b: s[2],
        c: s[3],
        n: u16::from_le_bytes([s[4], s[5]]),
    });
    seeds.collect()
}
