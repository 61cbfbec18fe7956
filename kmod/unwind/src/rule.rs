// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! How a frame's caller is found.
//!
//! The *canonical frame address* (CFA) is where the stack pointer was before the call. The return address lies right below it. Of all
//! registers that a function may have saved the frame pointer alone is followed: nearly no caller's CFA rests on another one.
//!
//! A rule has eight bytes, in the order of the processor's: what the CFA is (`u8`), where the frame pointer is (`u8`), a small number (`i16`) and
//! a large one (`i32`).

/// A register that a CFA rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Base {
    /// The stack pointer.
    Sp,
    /// The frame pointer.
    Fp,
    /// Another one, by its DWARF number, up to 15. It is known in the innermost frame alone.
    Other(u8),
}

/// What the CFA is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cfa {
    /// It is not told.
    Unknown,
    /// There is no caller.
    End,
    /// A register and a number of bytes.
    At(Base, i32),
    /// In the linker's stubs: the stack pointer and a number of bytes, and a word more from this byte on of each sixteen.
    Linkage(i32, i16),
    /// What lies so many bytes from a register, and so many bytes more.
    Loaded(Base, i32, u8),
    /// The frame is a signal's: so many bytes from the stack pointer lies the interrupted code's stack pointer, among its other registers as the
    /// kernel has put them there.
    Signal(i32),
}

/// Where the caller's frame pointer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FramePointer {
    /// It is the frame's.
    Same,
    /// So many bytes from the CFA.
    Saved(i16),
    /// So many bytes from the frame's own.
    Chained(i16),
    /// Nowhere.
    Lost,
}

/// How a frame's caller is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rule {
    /// What the CFA is.
    pub cfa: Cfa,
    /// Where the caller's frame pointer is.
    pub fp: FramePointer,
}

/// Bytes of a rule.
pub const SIZE: usize = 8;

const UNKNOWN: u8 = 0;
const END: u8 = 1;
const SP: u8 = 2;
const FP: u8 = 3;
const LINKAGE: u8 = 4;
const SIGNAL: u8 = 5;
const LOADED_SP: u8 = 6;
const LOADED_FP: u8 = 7;
/// With the number of a register.
const OTHER: u8 = 16;

const SAME: u8 = 0;
const SAVED: u8 = 1;
const CHAINED: u8 = 2;
const LOST: u8 = 3;

/// What is added to a word that is loaded as a CFA: hand-written code keeps the stack pointer of behind the call, a compiler the CFA.
const BEHIND_SP: u8 = 8;
const BEHIND_FP: u8 = 0;

/// A rule of the commonest kinds: the CFA is a number of bytes from the stack pointer or the frame pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plain {
    /// From which of the two.
    pub is_fp: bool,
    /// How far the CFA is.
    pub offset: i32,
    /// Where the caller's frame pointer is from there, unless it is the frame's.
    pub saved: Option<i16>,
}

impl Plain {
    /// The rule of these bytes, if it is of these kinds.
    #[inline]
    pub fn of(bytes: [u8; SIZE]) -> Option<Self> {
        let [cfa, fp, s0, s1, l0, l1, l2, l3] = bytes;
        if !matches!((cfa, fp), (SP | FP, SAME | SAVED)) {
            return None;
        }
        Some(Self {
            is_fp: cfa == FP,
            offset: i32::from_le_bytes([l0, l1, l2, l3]),
            saved: (fp == SAVED).then_some(i16::from_le_bytes([s0, s1])),
        })
    }
}

/// The bytes of [`Rule::UNKNOWN`].
pub(crate) const NOTHING: [u8; SIZE] = [UNKNOWN, LOST, 0, 0, 0, 0, 0, 0];

impl Rule {
    /// That nothing is told.
    pub const UNKNOWN: Self = Self {
        cfa: Cfa::Unknown,
        fp: FramePointer::Lost,
    };

    /// The rule that these bytes are, if they are one.
    pub fn decode(bytes: [u8; SIZE]) -> Option<Self> {
        let [cfa, fp, s0, s1, l0, l1, l2, l3] = bytes;
        let small = i16::from_le_bytes([s0, s1]);
        let large = i32::from_le_bytes([l0, l1, l2, l3]);
        let cfa = match cfa {
            UNKNOWN => Cfa::Unknown,
            END => Cfa::End,
            SP => Cfa::At(Base::Sp, large),
            FP => Cfa::At(Base::Fp, large),
            LINKAGE => Cfa::Linkage(large, small),
            SIGNAL => Cfa::Signal(large),
            LOADED_SP => Cfa::Loaded(Base::Sp, large, BEHIND_SP),
            LOADED_FP => Cfa::Loaded(Base::Fp, large, BEHIND_FP),
            other => Cfa::At(
                Base::Other(other.checked_sub(OTHER).filter(|n| *n < 16)?),
                large,
            ),
        };
        let fp = match fp {
            SAME => FramePointer::Same,
            SAVED => FramePointer::Saved(small),
            CHAINED => FramePointer::Chained(small),
            LOST => FramePointer::Lost,
            _ => return None,
        };
        Some(Self { cfa, fp })
    }

    /// Its bytes. `None`: there is no such rule.
    pub fn encode(self) -> Option<[u8; SIZE]> {
        let (cfa, mut small, large) = match self.cfa {
            Cfa::Unknown => (UNKNOWN, 0, 0),
            Cfa::End => (END, 0, 0),
            Cfa::At(Base::Sp, large) => (SP, 0, large),
            Cfa::At(Base::Fp, large) => (FP, 0, large),
            Cfa::At(Base::Other(n), large) if n < 16 => (OTHER | n, 0, large),
            Cfa::Linkage(large, small) => (LINKAGE, small, large),
            Cfa::Signal(large) => (SIGNAL, 0, large),
            Cfa::Loaded(Base::Sp, large, BEHIND_SP) => (LOADED_SP, 0, large),
            Cfa::Loaded(Base::Fp, large, BEHIND_FP) => (LOADED_FP, 0, large),
            _ => return None,
        };
        let fp = match self.fp {
            FramePointer::Same => SAME,
            FramePointer::Lost => LOST,
            FramePointer::Saved(at) | FramePointer::Chained(at) => {
                // The one small number is the stubs' in those.
                if cfa == LINKAGE {
                    return None;
                }
                small = at;
                match self.fp {
                    FramePointer::Saved(_) => SAVED,
                    _ => CHAINED,
                }
            }
        };
        let [s0, s1] = small.to_le_bytes();
        let [l0, l1, l2, l3] = large.to_le_bytes();
        Some([cfa, fp, s0, s1, l0, l1, l2, l3])
    }
}
