// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT

//! Frames of interpreted code in user stacks.
//!
//! An interpreter executes many functions of its language in one native function, the *evaluator*.
//! A *walker* is a D program for one kind of interpreter: a clause of [`PROVIDER`]`:`[`MODULE`]
//! whose function name is a number in hexadecimal digits, and whose only action is the program. The
//! kernel runs it for each frame of an evaluator in a stack. It reads
//! [`Var::Walk`](crate::var::Var::Walk) and the memory of the process, and adds frames with
//! [`Subr::Frame`](crate::subr::Subr::Frame). The [unwind table](crate::unwind) of a file lists its
//! evaluators, the number of the walker, and constants that the walker needs.
//!
//! Code that a runtime generates has no unwind table, so only the runtime's own structures may tell
//! how to walk it. If the table of a file says so, the walker runs for each frame in such code
//! before the walk continues, and passes the caller of that frame to
//! [`Subr::Caller`](crate::subr::Subr::Caller): see [`WALK_ASKED`].
//!
//! In the record of a user stack, a frame of interpreted code is a [`Word`]. The words follow the
//! addresses. A zero ends the record if there is room. In a stack that is a value, they follow the
//! room of the addresses ([`StackHead`](crate::types::StackHead)). The consumer's state in the
//! kernel stores the names of each frame once; [`FRAME`](crate::ioctl::FRAME) reads them.

use zerocopy_derive::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The provider of a walker's description.
pub const PROVIDER: &[u8] = b"dtrace";
/// The module of a walker's description.
pub const MODULE: &[u8] = b"walker";

/// Maximum number of walkers of a consumer.
pub const WALKERS_MAX: usize = 16;
/// Maximum number of frames of interpreted code in a stack.
pub const WORDS_MAX: usize = 256;
/// Maximum number of constants of a file.
pub const CONSTANTS_MAX: usize = 64;
/// Maximum sizes, bytes: of a function's name, a file's name, a line table, and the name of the
/// scope to which the function belongs.
pub const NAME_MAX: [usize; 4] = [128, 256, 1536, 128];

/// Element of `walk[]`: number of frames of evaluators with the same walker that precede this one
/// in the stack, counted from the innermost.
pub const WALK_NTH: u64 = 0;
/// Element of `walk[]`: the address at which offset 0 of the evaluator's file is mapped, or would
/// be.
pub const WALK_BASE: u64 = 1;
/// Element of `walk[]`: the evaluator's stack pointer.
pub const WALK_SP: u64 = 2;
/// Element of `walk[]`: the evaluator's frame pointer, 0 if it is not known.
pub const WALK_FP: u64 = 3;
/// Element of `walk[]`: the address at which the evaluator continues.
pub const WALK_PC: u64 = 4;
/// Element of `walk[]`: the thread's ID in the process's own pid namespace.
pub const WALK_TID: u64 = 5;
/// Element of `walk[]`: the stack pointer of the next (outer) evaluator with the same walker, all
/// ones if there is none. Stack memory below it belongs to this evaluator or to functions that this
/// evaluator has called.
pub const WALK_NEXT: u64 = 6;
/// Element of `walk[]`: the thread pointer, the base address of thread-local variables (System V
/// ABI, AMD64 §3.4.6).
pub const WALK_THREAD: u64 = 7;
/// Element of `walk[]`: what the walker must do: 0: add frames; [`ASKED_CALLER`] or
/// [`ASKED_INTERRUPTED`]: find the caller.
pub const WALK_ASKED: u64 = 8;
/// Element of `walk[]`: the first of the file's constants. Constants that the file does not have
/// are 0.
pub const WALK_CONSTANTS: u64 = 16;

/// Find the caller of a frame that has made a call: [`WALK_PC`] is the return address.
pub const ASKED_CALLER: u64 = 1;
/// Find the caller of a frame that was interrupted at [`WALK_PC`].
pub const ASKED_INTERRUPTED: u64 = 2;

/// A frame of interpreted code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    /// Index of the native frame to which this frame belongs, counted from the innermost.
    pub native: u16,
    /// Line number, or position in the line table.
    pub position: u32,
    /// Number of its names in the consumer's state; [`NAMELESS`] if there was no room for them.
    pub name: u32,
}

/// Value of [`Word::name`]: no names.
pub const NAMELESS: u32 = 0xff_ffff;
/// Maximum of [`Word::native`]. Greater values become this one.
pub const NATIVE_MAX: u16 = 0x3ff;
/// Maximum of [`Word::position`]. Greater values become this one.
pub const POSITION_MAX: u32 = 0xff_ffff;

/// Mark of a word: bit 63 is set, bits 58 to 62 are clear. No address of a program has these bits.
const MARK: u64 = 1 << 63;

impl Word {
    /// Encodes the word as it appears in a record.
    pub fn encode(self) -> u64 {
        let native = self.native.min(NATIVE_MAX);
        let position = self.position.min(POSITION_MAX);
        MARK | u64::from(native) << 48
            | u64::from(position) << 24
            | u64::from(self.name.min(NAMELESS))
    }

    /// Decodes a word of a record. Returns `None` if it is not a frame of interpreted code.
    pub fn decode(word: u64) -> Option<Self> {
        (word >> 58 == MARK >> 58).then_some(Self {
            native: (word >> 48) as u16 & NATIVE_MAX,
            position: (word >> 24) as u32 & POSITION_MAX,
            name: word as u32 & NAMELESS,
        })
    }
}

/// Header of the names of a frame. The bytes follow: the function's name, the file's name, the line
/// table, and the name of the scope to which the function belongs.
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct NameHead {
    /// Number of the walker.
    pub walker: u64,
    /// The value from which positions in the line table count.
    pub first: u32,
    /// Size of each part, bytes.
    pub sizes: [u16; 4],
    /// Zero.
    pub pad: [u16; 2],
}

const _: () = assert!(size_of::<NameHead>() == 24);

/// Request for the names of a frame.
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct Frame {
    /// The number of the names: [`Word::name`].
    pub name: u32,
    /// Size of the memory at `bytes`.
    pub size: u32,
    /// Address to which the kernel writes a [`NameHead`] and the bytes that follow it.
    pub bytes: u64,
}

const _: () = assert!(size_of::<Frame>() == 16);

/// Maximum size of the names of a frame with their header, bytes.
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
