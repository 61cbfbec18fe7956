// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only OR MIT

//! The step from a frame to its caller.
//!
//! The stack of a program may have any contents. So the stack pointer grows with each step, except
//! the step from a signal handler to the code that the signal interrupted, which may be on another
//! stack. The caller limits the number of steps by its room for frames.

use crate::arch;
use crate::rule::{Base, Cfa, FramePointer, Plain, Rule};

/// The width of a program's addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// 32 bits.
    Four,
    /// 64 bits.
    Eight,
}

impl Word {
    /// The width of this many bytes.
    pub const fn of(bytes: u8) -> Option<Self> {
        match bytes {
            4 => Some(Self::Four),
            8 => Some(Self::Eight),
            _ => None,
        }
    }

    /// Its bytes.
    pub const fn bytes(self) -> u64 {
        match self {
            Self::Four => 4,
            Self::Eight => 8,
        }
    }

    /// Whether a word may be at this address.
    const fn has(self, address: u64) -> bool {
        address & self.bytes().wrapping_sub(1) == 0
    }
}

/// The memory of a program, and its registers.
pub trait Memory {
    /// Loads a word; `None` if it is not present.
    fn word(&self, address: u64, word: Word) -> Option<u64>;
    /// A register of the innermost frame, by its DWARF number.
    fn register(&self, n: u8) -> Option<u64>;
}

/// What is known of the text at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Its rule.
    Rule(Rule),
    /// Nothing: its file has no table, or the text is in no file.
    Nothing,
    /// Not looked up.
    Unasked,
    /// There is no text at the address.
    NoText,
}

impl Place {
    /// Whether a rule says how to find the caller, or that there is none.
    #[inline]
    pub fn tells(&self) -> bool {
        matches!(self, Self::Rule(rule) if rule.cfa != Cfa::Unknown)
    }

    /// Whether a rule says that there is no caller.
    pub fn is_end(&self) -> bool {
        matches!(self, Self::Rule(rule) if rule.cfa == Cfa::End)
    }
}

/// A frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The instruction at which it continues.
    pub ip: u64,
    /// Its stack pointer.
    pub sp: u64,
    /// Its frame pointer, if known.
    pub fp: Option<u64>,
    /// It was interrupted at `ip`. Otherwise it has called another frame, and the call is the
    /// instruction before `ip`.
    pub is_exact: bool,
    /// It has called no other frame, so its registers are known.
    pub is_innermost: bool,
    /// No rule led to it, but a frame pointer or the instructions at the address.
    pub is_guess: bool,
}

impl Frame {
    /// A frame that has called another.
    pub const fn calling(ip: u64, sp: u64, fp: Option<u64>) -> Self {
        Self {
            ip,
            sp,
            fp,
            is_exact: false,
            is_innermost: false,
            is_guess: false,
        }
    }

    /// An address within the instruction that it executes.
    pub fn at(&self) -> u64 {
        match self.is_exact {
            true => self.ip,
            false => self.ip.wrapping_sub(1),
        }
    }

    /// Its caller in a 64-bit program, from a source that is not trusted.
    pub fn told(&self, ip: u64, sp: u64, fp: Option<u64>) -> Result<Self, Ended> {
        if sp <= self.sp || !Word::Eight.has(sp) {
            return Err(Ended::Lost);
        }
        Ok(Self {
            is_guess: true,
            ..caller(ip, sp, fp)?
        })
    }
}

/// Why there is no next frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The frame was the outermost.
    Outermost,
    /// The caller cannot be found.
    Lost,
}

/// Marks a frame that no rule led to.
fn guess(frame: Frame) -> Frame {
    Frame {
        is_guess: true,
        ..frame
    }
}

/// A walk.
pub struct Walk<'a, M> {
    memory: &'a M,
    word: Word,
}

impl<'a, M: Memory> Walk<'a, M> {
    /// Creates a walk through this memory, with words of this width.
    pub fn new(memory: &'a M, word: Word) -> Self {
        Self { memory, word }
    }

    /// Returns the caller of a frame, by what is known of the frame's text.
    pub fn step(&self, frame: &Frame, place: Place) -> Result<Frame, Ended> {
        let rule = match place {
            Place::Rule(rule) if place.tells() => rule,
            // The program has just called an invalid address, so the return address is on top of
            // the stack.
            Place::NoText if frame.is_exact => return self.called(frame).map(guess),
            Place::NoText => return Err(Ended::Lost),
            other => return self.guessed(frame, other),
        };
        match rule.cfa {
            Cfa::End => Err(Ended::Outermost),
            Cfa::Signal(at) => self.interrupted(frame, at).ok_or(Ended::Lost),
            _ => self.by_rule(frame, rule),
        }
    }

    /// As [`step`](Self::step) by a rule of the commonest kinds. If there is a caller, it replaces
    /// `frame`. Otherwise returns `false`, and `frame` is unchanged.
    #[inline]
    pub fn plain(&self, frame: &mut Frame, plain: Plain) -> bool {
        let base = match (plain.is_fp, frame.fp) {
            (false, _) => frame.sp,
            (true, Some(fp)) => fp,
            (true, None) => return false,
        };
        let cfa = self.wrap(base.wrapping_add_signed(plain.offset.into()));
        if cfa <= frame.sp || !self.word.has(cfa) {
            return false;
        }
        let ip = self.load(cfa.wrapping_sub(self.word.bytes()));
        let Some(ip) = ip.filter(|ip| *ip != 0) else {
            return false;
        };
        let fp = match plain.saved {
            None => frame.fp,
            Some(by) => self.load(cfa.wrapping_add_signed(by.into())),
        };
        *frame = Frame::calling(ip, cfa, fp);
        true
    }

    /// Returns the caller of a function that is at its first instruction.
    pub fn called(&self, frame: &Frame) -> Result<Frame, Ended> {
        let ip = self.load(frame.sp).ok_or(Ended::Lost)?;
        caller(ip, frame.sp.wrapping_add(self.word.bytes()), frame.fp)
    }

    fn load(&self, address: u64) -> Option<u64> {
        self.memory.word(self.wrap(address), self.word)
    }

    fn wrap(&self, address: u64) -> u64 {
        match self.word {
            Word::Four => address & 0xffff_ffff,
            Word::Eight => address,
        }
    }

    fn base(&self, frame: &Frame, base: Base) -> Option<u64> {
        match base {
            Base::Sp => Some(frame.sp),
            Base::Fp => frame.fp,
            Base::Other(n) => self.memory.register(n).filter(|_| frame.is_innermost),
        }
    }

    fn cfa(&self, frame: &Frame, cfa: Cfa) -> Option<u64> {
        let add = |base: u64, offset: i32| base.wrapping_add_signed(offset.into());
        let cfa = match cfa {
            Cfa::At(base, offset) => add(self.base(frame, base)?, offset),
            Cfa::Linkage(offset, from) => {
                let is_behind = (frame.ip & 15) as i64 >= i64::from(from);
                let more = if is_behind { self.word.bytes() } else { 0 };
                add(frame.sp, offset).wrapping_add(more)
            }
            Cfa::Loaded(base, offset, more) => {
                let found = self.load(add(self.base(frame, base)?, offset))?;
                found.wrapping_add(more.into())
            }
            _ => return None,
        };
        Some(self.wrap(cfa))
    }

    fn by_rule(&self, frame: &Frame, rule: Rule) -> Result<Frame, Ended> {
        let cfa = self.cfa(frame, rule.cfa).ok_or(Ended::Lost)?;
        let word = self.word.bytes();
        if cfa <= frame.sp || !self.word.has(cfa) {
            return Err(Ended::Lost);
        }
        let ip = self.load(cfa.wrapping_sub(word)).ok_or(Ended::Lost)?;
        let saved = |base: u64, at: i16| self.load(base.wrapping_add_signed(at.into()));
        let fp = match rule.fp {
            FramePointer::Same => frame.fp,
            FramePointer::Saved(at) => saved(cfa, at),
            FramePointer::Chained(at) => frame.fp.and_then(|fp| saved(fp, at)),
            FramePointer::Lost => None,
        };
        caller(ip, cfa, fp)
    }

    /// Finds the caller without a rule: by the code if the text has no table, or else by the frame
    /// pointer.
    fn guessed(&self, frame: &Frame, place: Place) -> Result<Frame, Ended> {
        let by_code = match place {
            Place::Nothing => self.leaving(frame),
            _ => None,
        };
        by_code.unwrap_or_else(|| self.chained(frame)).map(guess)
    }

    /// Finds the caller by the next instructions, if they free the frame and return. Stubs that are
    /// generated at run time, such as those of Python's `-X perf`, have no frame pointer and return
    /// like this.
    fn leaving(&self, frame: &Frame) -> Option<Result<Frame, Ended>> {
        if frame.is_exact || self.word != Word::Eight {
            return None;
        }
        let n = arch::freed(self.load(frame.ip)?.to_le_bytes())?;
        let cfa = frame
            .sp
            .checked_add(n.into())?
            .checked_add(self.word.bytes())?;
        if !self.word.has(cfa) {
            return None;
        }
        let ip = self.load(cfa.wrapping_sub(self.word.bytes()));
        Some(
            ip.ok_or(Ended::Lost)
                .and_then(|ip| caller(ip, cfa, frame.fp)),
        )
    }

    /// Finds the caller by the frame pointer, as if the function had one.
    fn chained(&self, frame: &Frame) -> Result<Frame, Ended> {
        let fp = frame.fp.ok_or(Ended::Lost)?;
        let word = self.word.bytes();
        if fp == 0 {
            return Err(Ended::Outermost);
        }
        if fp < frame.sp || !self.word.has(fp) {
            return Err(Ended::Lost);
        }
        let next = self.load(fp).ok_or(Ended::Lost)?;
        let ip = self.load(fp.wrapping_add(word)).ok_or(Ended::Lost)?;
        caller(ip, fp.wrapping_add(word).wrapping_add(word), Some(next))
    }

    /// Returns the code that a signal has interrupted.
    fn interrupted(&self, frame: &Frame, at: i32) -> Option<Frame> {
        let at = frame.sp.wrapping_add_signed(at.into());
        let (fp, ip) = arch::saved(self.word);
        let load = |from: i64| self.load(at.wrapping_add_signed(from));
        Some(Frame {
            ip: load(ip)?,
            sp: load(0)?,
            fp: load(fp),
            is_exact: true,
            is_innermost: false,
            is_guess: false,
        })
    }
}

fn caller(ip: u64, sp: u64, fp: Option<u64>) -> Result<Frame, Ended> {
    match ip {
        0 => Err(Ended::Outermost),
        _ => Ok(Frame::calling(ip, sp, fp)),
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::rule::SIZE;
    use proptest::prelude::*;
    use std::collections::HashMap;

    /// Words at some addresses.
    struct Words(HashMap<u64, u64>);

    impl Memory for Words {
        fn word(&self, address: u64, _: Word) -> Option<u64> {
            self.0.get(&address).copied()
        }

        fn register(&self, _: u8) -> Option<u64> {
            None
        }
    }

    const FRAME: Frame = Frame::calling(0x1000, 0x8000, Some(0x8100));

    /// The caller of a frame that continues with this code and whose text has no table.
    fn leaving(code: [u8; 8], frame: Frame) -> Result<Frame, Ended> {
        let code = u64::from_le_bytes(code);
        let words = [
            (0x1000, code),
            (0x8018, 0x2000),
            (0x8100, 0x8200),
            (0x8108, 0x3000),
        ];
        let words = Words(HashMap::from(words));
        Walk::new(&words, Word::Eight).step(&frame, Place::Nothing)
    }

    /// Memory with arbitrary contents: each word is computed from its address.
    struct Anything;

    impl Memory for Anything {
        fn word(&self, address: u64, word: Word) -> Option<u64> {
            let found = address.wrapping_mul(0x9e37_79b9) >> 3;
            let most = [u64::MAX, u32::MAX.into()][usize::from(word == Word::Four)];
            (address % 5 != 0).then_some(if address % 7 == 0 { 0 } else { found & most })
        }

        fn register(&self, n: u8) -> Option<u64> {
            Some(n.into())
        }
    }

    proptest! {
        #[test]
        fn a_plain_rule_is_done_as_any(
            mut rule in any::<[u8; SIZE]>(),
            kinds in (0u8..8, 0u8..4),
            [ip, sp, fp] in any::<[u64; 3]>(),
            is_known in any::<bool>(),
            is_exact in any::<bool>(),
            is_long in any::<bool>(),
            by in -64i32..64,
        ) {
            (rule[0], rule[1]) = kinds;
            rule[4..].copy_from_slice(&(by * 8).to_le_bytes());
            let (word, mask) = match is_long {
                true => (Word::Eight, u64::MAX << 3),
                false => (Word::Four, u64::from(u32::MAX) - 3),
            };
            let frame = Frame {
                ip,
                sp: sp & mask,
                fp: is_known.then_some(fp & mask),
                is_exact,
                is_innermost: is_exact,
                is_guess: false,
            };
            let walk = Walk::new(&Anything, word);
            let slow = Rule::decode(rule).map(|rule| walk.step(&frame, Place::Rule(rule)));
            let mut quick = frame;
            let plain = Plain::of(rule);
            match plain.is_some_and(|plain| walk.plain(&mut quick, plain)) {
                true => prop_assert_eq!(slow, Some(Ok(quick))),
                false => prop_assert_eq!(quick, frame),
            }
            let is_plain = matches!(kinds, (2 | 3, 0 | 1));
            prop_assert_eq!(quick != frame, is_plain && slow.is_some_and(|slow| slow.is_ok()));
        }
    }

    #[test]
    fn what_is_told_is_looked_at() {
        let told = |ip, sp| FRAME.told(ip, sp, Some(7));
        let next = Frame {
            ip: 0x2000,
            sp: 0x8008,
            fp: Some(7),
            is_guess: true,
            ..FRAME
        };
        assert_eq!(told(0x2000, 0x8008), Ok(next));
        assert_eq!(told(0, 0x8008), Err(Ended::Outermost));
        for sp in [0, 0x7ff8, 0x8000, 0x8009] {
            assert_eq!(told(0x2000, sp), Err(Ended::Lost));
        }
    }

    #[test]
    fn what_was_called_and_is_no_text_has_its_caller() {
        let words = Words(HashMap::from([(0x8000, 0x2000)]));
        let step = |frame| Walk::new(&words, Word::Eight).step(&frame, Place::NoText);
        let caller = Frame {
            ip: 0x2000,
            sp: 0x8008,
            is_guess: true,
            ..FRAME
        };
        let exact = Frame {
            is_exact: true,
            ..FRAME
        };
        assert_eq!(step(exact), Ok(caller));
        assert_eq!(
            step(Frame {
                sp: 0x8008,
                ..exact
            }),
            Err(Ended::Lost)
        );
        assert_eq!(step(FRAME), Err(Ended::Lost));
    }

    #[test]
    fn a_stub_is_left_as_it_leaves() {
        let stub = [0x48, 0x83, 0xc4, 0x18, 0xc3, 0, 0, 0];
        let by_code = Frame {
            ip: 0x2000,
            sp: 0x8020,
            is_guess: true,
            ..FRAME
        };
        let by_frame_pointer = Frame {
            ip: 0x3000,
            sp: 0x8110,
            fp: Some(0x8200),
            is_guess: true,
            ..FRAME
        };
        assert_eq!(leaving(stub, FRAME), Ok(by_code));
        // In interrupted code the stack pointer may be anything at this instruction.
        let exact = Frame {
            is_exact: true,
            ..FRAME
        };
        assert_eq!(leaving(stub, exact), Ok(by_frame_pointer));
        for other in [
            [0x48, 0x83, 0xc4, 0x18, 0x5b, 0xc3, 0, 0],
            [0x48, 0x83, 0xc4, 0xf8, 0xc3, 0, 0, 0],
            [0x48, 0x83, 0xc4, 0x11, 0xc3, 0, 0, 0],
            [0x48, 0x83, 0xec, 0x18, 0xc3, 0, 0, 0],
        ] {
            assert_eq!(leaving(other, FRAME), Ok(by_frame_pointer));
        }
        let empty = [0x48, 0x83, 0xc4, 0x28, 0xc3, 0, 0, 0];
        assert_eq!(leaving(empty, FRAME), Err(Ended::Lost));
    }
}
