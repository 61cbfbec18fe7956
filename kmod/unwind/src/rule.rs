// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only OR MIT

//! Rules that tell how to find the caller of a frame.
//!
//! The *canonical frame address* (CFA) is the value of the stack pointer before the call. The
//! return address is right below it. Of the registers that a function may have saved, only the
//! frame pointer is followed, because hardly any caller's CFA depends on another one.
//!
//! A rule has eight bytes, in the processor's byte order: the kind of CFA (`u8`), the kind of frame
//! pointer (`u8`), a small number (`i16`) and a large one (`i32`).

/// A register that a CFA is computed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Base {
    /// The stack pointer.
    Sp,
    /// The frame pointer.
    Fp,
    /// Another register, by its DWARF number, up to 15. Its value is known in the innermost frame
    /// only.
    Other(u8),
}

/// How the CFA is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cfa {
    /// It is not known.
    Unknown,
    /// There is no caller.
    End,
    /// A register plus a number of bytes.
    At(Base, i32),
    /// In the linker's stubs, of 16 bytes each: the stack pointer plus a number of bytes, plus a
    /// word from the given byte of the stub on.
    Linkage(i32, i16),
    /// The word at a register plus a number of bytes, plus further bytes.
    Loaded(Base, i32, u8),
    /// The frame is a signal's. At the stack pointer plus this number of bytes is the stack pointer
    /// of the interrupted code, among its other registers as the kernel saved them.
    Signal(i32),
}

/// Where the caller's frame pointer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FramePointer {
    /// It is the frame's own.
    Same,
    /// At the CFA plus this number of bytes.
    Saved(i16),
    /// At the frame's own frame pointer plus this number of bytes.
    Chained(i16),
    /// It is lost.
    Lost,
}

/// How to find the caller of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rule {
    /// How the CFA is computed.
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
/// The first of the kinds that name a register.
const OTHER: u8 = 16;

const SAME: u8 = 0;
const SAVED: u8 = 1;
const CHAINED: u8 = 2;
const LOST: u8 = 3;

/// Bytes added to a word that is loaded as a CFA: hand-written code saves the stack pointer after
/// the call, compilers save the CFA.
const BEHIND_SP: u8 = 8;
const BEHIND_FP: u8 = 0;

/// A rule of the commonest kinds: the CFA is a number of bytes from the stack pointer or the frame
/// pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plain {
    /// Whether it is relative to the frame pointer.
    pub is_fp: bool,
    /// The distance of the CFA.
    pub offset: i32,
    /// Where the caller's frame pointer is, relative to the CFA; `None` if it is the frame's own.
    pub saved: Option<i16>,
}

impl Plain {
    /// Decodes a rule of these kinds; `None` for others.
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
    /// The rule that nothing is known.
    pub const UNKNOWN: Self = Self {
        cfa: Cfa::Unknown,
        fp: FramePointer::Lost,
    };

    /// Decodes a rule; `None` if the bytes are invalid.
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

    /// Encodes the rule; `None` if it has no encoding.
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
                // Stubs use the small number themselves.
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
