// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The instructions of a program: where they begin, where a probe can be placed, and which leave a
//! function.

pub use dtrace_insn::x86_64::LONGEST;

use dtrace_insn::x86_64::{decode, Insn, Leaves, Mode};
use iced_x86::{Decoder, DecoderOptions, Instruction};
use object::Architecture;
use std::ops::Range;

/// An instruction set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instructions {
    /// x86 with this word size in bits.
    X86(u32),
    /// All instructions are 4 bytes long. They are not decoded.
    Words,
}

impl Instructions {
    /// Returns the instruction set of a file's architecture, if it is known.
    pub fn of(architecture: Architecture) -> Option<Self> {
        match architecture {
            Architecture::X86_64 => Some(Self::X86(64)),
            Architecture::I386 => Some(Self::X86(32)),
            Architecture::Aarch64 => Some(Self::Words),
            _ => None,
        }
    }

    /// Whether it is that of 64-bit programs.
    pub fn is_wide(self) -> bool {
        self != Self::X86(32)
    }

    /// Returns the offsets of the instructions in code that is at `address`. The sequence ends at
    /// the first invalid instruction.
    pub fn offsets(self, code: &[u8], address: u64) -> impl Iterator<Item = usize> + use<'_> {
        let (x86, words) = match self {
            Self::X86(bits) => (Some(x86(bits, code, address)), None),
            Self::Words => (None, Some((0..code.len()).step_by(4))),
        };
        x86.into_iter().flatten().chain(words.into_iter().flatten())
    }

    /// Checks that a probe can be placed at the first instruction of `code`. The error says why
    /// not.
    pub fn probed(self, code: &[u8]) -> Result<(), String> {
        probed(&self.insn(code)?)
    }

    /// Whether the first instruction of `code`, at `address`, may leave the function. Fails if it
    /// may and no probe can be placed there.
    pub fn leaves(self, code: &[u8], address: u64, function: &Range<u64>) -> Result<bool, String> {
        let insn = self.insn(code)?;
        let leaves = insn.leaves(address, function) != Leaves::Never;
        if leaves {
            probed(&insn)?;
        }
        Ok(leaves)
    }

    fn insn(self, code: &[u8]) -> Result<Insn, String> {
        let mode = match self {
            Self::X86(64) => Mode::Long,
            Self::X86(_) => Mode::Compatible,
            Self::Words => return Err("instructions of this processor are not known".to_owned()),
        };
        decode(code, mode).map_err(|_| "the instruction is not known".to_owned())
    }
}

fn probed(insn: &Insn) -> Result<(), String> {
    insn.probed().map(drop).map_err(|why| why.to_string())
}

fn x86(bits: u32, code: &[u8], address: u64) -> impl Iterator<Item = usize> + '_ {
    let mut decoder = Decoder::with_ip(bits, code, address, DecoderOptions::NONE);
    let mut instruction = Instruction::default();
    std::iter::from_fn(move || {
        let offset = decoder.position();
        if !decoder.can_decode() {
            return None;
        }
        decoder.decode_out(&mut instruction);
        (!instruction.is_invalid()).then_some(offset)
    })
}
