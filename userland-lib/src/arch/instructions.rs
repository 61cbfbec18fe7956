// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! The instructions of a program: where they begin, where a probe may stop one, and which leave a function.

pub use dtrace_insn::x86_64::LONGEST;

use dtrace_insn::x86_64::{decode, Insn, Leaves, Mode};
use iced_x86::{Decoder, DecoderOptions, Instruction};
use object::Architecture;
use std::ops::Range;

/// How instructions follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instructions {
    /// x86, of so many bits.
    X86(u32),
    /// All are 4 bytes long. What they do is not known.
    Words,
}

impl Instructions {
    /// Those of a file's machine, if it is known.
    pub fn of(architecture: Architecture) -> Option<Self> {
        match architecture {
            Architecture::X86_64 => Some(Self::X86(64)),
            Architecture::I386 => Some(Self::X86(32)),
            Architecture::Aarch64 => Some(Self::Words),
            _ => None,
        }
    }

    /// Whether they are of programs of 64 bits.
    pub fn is_wide(self) -> bool {
        self != Self::X86(32)
    }

    /// Where they begin in code that lies at `address`, from its own beginning on. They end before what is none.
    pub fn offsets(self, code: &[u8], address: u64) -> impl Iterator<Item = usize> + use<'_> {
        let (x86, words) = match self {
            Self::X86(bits) => (Some(x86(bits, code, address)), None),
            Self::Words => (None, Some((0..code.len()).step_by(4))),
        };
        x86.into_iter().flatten().chain(words.into_iter().flatten())
    }

    /// Whether the instruction that `code` begins with can be stopped at; the error says why not.
    pub fn probed(self, code: &[u8]) -> Result<(), String> {
        probed(&self.insn(code)?)
    }

    /// Whether the instruction that `code` begins with, at `address`, may leave a function; an error if it does and cannot be stopped at.
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
