// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note

//! Frames of interpreted code in user stacks.
//!
//! An interpreter executes many functions of its language in one function of its own, the *evaluator*. A *walker* is a program for one
//! kind of interpreter: a clause of [`PROVIDER`]`:`[`MODULE`] whose function is a number in hexadecimal digits, and whose one action is the
//! program. It runs for each frame of an evaluator in a stack, reads [`Var::Walk`](crate::var::Var::Walk) and the process' memory, and puts frames
//! with [`Subr::Frame`](crate::subr::Subr::Frame). Which functions are evaluators, and what else a walker has to know of a file, is in the file's
//! [table](crate::unwind), under the walker's number.
//!
//! Code that a program makes while it runs may be walked by what its runtime alone knows. Where a file says so, its walker is run for a frame in such
//! code before the walk goes on, and tells that frame's caller with [`Subr::Caller`](crate::subr::Subr::Caller): [`WALK_ASKED`].
//!
//! A frame is a [`Word`] behind the addresses of a user stack's record, before the zero that ends them where there is room. Its names are kept once by the consumer, which gives them by
//! [`FRAME`](crate::ioctl::FRAME).

use zerocopy_derive::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The provider of a walker's description.
pub const PROVIDER: &[u8] = b"dtrace";
/// The module of a walker's description.
pub const MODULE: &[u8] = b"walker";

/// Most walkers of a consumer.
pub const WALKERS_MAX: usize = 16;
/// Most frames of interpreted code in a stack.
pub const WORDS_MAX: usize = 256;
/// Most constants of a file.
pub const CONSTANTS_MAX: usize = 64;
/// Most bytes of a function's name, of a file's, of a table of lines, and of the name of what the function belongs to.
pub const NAME_MAX: [usize; 4] = [128, 256, 1536, 128];

/// Element of `walk[]`: how many frames of evaluators the stack had before this one.
pub const WALK_NTH: u64 = 0;
/// Element of `walk[]`: where offset 0 of the evaluator's file is, or would be.
pub const WALK_BASE: u64 = 1;
/// Element of `walk[]`: the evaluator's stack pointer.
pub const WALK_SP: u64 = 2;
/// Element of `walk[]`: its frame pointer, 0 if it is not known.
pub const WALK_FP: u64 = 3;
/// Element of `walk[]`: where it goes on.
pub const WALK_PC: u64 = 4;
/// Element of `walk[]`: the thread's id, as the process sees it.
pub const WALK_TID: u64 = 5;
/// Element of `walk[]`: the stack pointer of the next evaluator with the same walker, all ones if there is none. What lies below it in the stack
/// is this one's, or of functions that this one has called.
pub const WALK_NEXT: u64 = 6;
/// Element of `walk[]`: the thread pointer, from which the thread's own variables are addressed (System V ABI, AMD64 §3.4.6).
pub const WALK_THREAD: u64 = 7;
/// Element of `walk[]`: what is wanted: 0 for frames, [`ASKED_CALLER`] or [`ASKED_INTERRUPTED`].
pub const WALK_ASKED: u64 = 8;
/// Element of `walk[]`: the first of the file's constants. One that is not there is 0.
pub const WALK_CONSTANTS: u64 = 16;

/// What is wanted is the caller of a frame that has called, so that [`WALK_PC`] is behind the call.
pub const ASKED_CALLER: u64 = 1;
/// What is wanted is the caller of a frame that was interrupted at [`WALK_PC`].
pub const ASKED_INTERRUPTED: u64 = 2;

/// A frame of interpreted code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    /// The native frame that it stands beneath, counted from the innermost.
    pub native: u16,
    /// Its line, or its place in the table of lines.
    pub position: u32,
    /// The number of its names; [`NAMELESS`] if there was no room for them.
    pub name: u32,
}

/// No names.
pub const NAMELESS: u32 = 0xff_ffff;
/// Greatest native frame that a word has; others are counted as this one.
pub const NATIVE_MAX: u16 = 0x3ff;
/// Greatest position, which others become.
pub const POSITION_MAX: u32 = 0xff_ffff;

/// Bit 63 alone of the highest two: no address of a program.
const MARK: u64 = 1 << 63;

impl Word {
    /// As a number.
    pub fn encode(self) -> u64 {
        let native = self.native.min(NATIVE_MAX);
        let position = self.position.min(POSITION_MAX);
        MARK | u64::from(native) << 48
            | u64::from(position) << 24
            | u64::from(self.name.min(NAMELESS))
    }

    /// That of a number, if it is one.
    pub fn decode(word: u64) -> Option<Self> {
        (word >> 58 == MARK >> 58).then_some(Self {
            native: (word >> 48) as u16 & NATIVE_MAX,
            position: (word >> 24) as u32 & POSITION_MAX,
            name: word as u32 & NAMELESS,
        })
    }
}

/// What the names of a frame begin with. The bytes of the function's, of the file's, of the table of lines and of what the function belongs to follow.
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct NameHead {
    /// The walker.
    pub walker: u64,
    /// What the positions in the table of lines count from.
    pub first: u32,
    /// Bytes of each.
    pub sizes: [u16; 4],
    /// 0.
    pub pad: [u16; 2],
}

const _: () = assert!(size_of::<NameHead>() == 24);

/// Asks for the names of frames.
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct Frame {
    /// Their number.
    pub name: u32,
    /// How many bytes there is room for.
    pub size: u32,
    /// Where: a [`NameHead`] and what follows.
    pub bytes: u64,
}

const _: () = assert!(size_of::<Frame>() == 16);

/// Most bytes of names.
pub const NAMES_MAX: usize =
    size_of::<NameHead>() + NAME_MAX[0] + NAME_MAX[1] + NAME_MAX[2] + NAME_MAX[3];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_no_addresses_of_programs() {
        let word = Word {
            native: 3,
            position: 120,
            name: 7,
        };
        assert_eq!(Word::decode(word.encode()), Some(word));
        let most = Word {
            native: u16::MAX,
            position: u32::MAX,
            name: NAMELESS,
        };
        let cut = Word::decode(most.encode()).unwrap();
        assert_eq!((cut.native, cut.position), (NATIVE_MAX, POSITION_MAX));
        for address in [0, 0x7fff_ffff_f000, 0xffff_ffff_ff60_0000, u64::MAX] {
            assert_eq!(Word::decode(address), None);
        }
    }
}
