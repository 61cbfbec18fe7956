// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The frames of a recorded stack.
//!
//! A stack ends at its first address of zero. A mark behind the last frame of a user stack says
//! that its caller was not found. A user stack may have frames of interpreted code behind its
//! addresses; here each follows the frame of the evaluator that executes it.
//!
//! A stack that is a D value begins with a head that names its owner and depth. Frames of
//! interpreted code follow the room of its addresses. The D program can change the head. If its
//! depth exceeds the recorded addresses, there are only these.
//!
//! A frame is an address until somebody asks for its name: to find one may take long, and not every
//! form of a stack shows it.

use crate::symbolizer::{Location, Symbolizer};
use crate::value::{words, Datum, Kind};
use dtrace_files::dwarf::Inlined;
use dtrace_uapi::interp::Word;
use dtrace_uapi::types::{StackHead, STACK_GUESSED, STACK_LOST, STACK_NOWHERE};
use std::rc::Rc;
use zerocopy::FromBytes;

/// A frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame {
    /// A function of the kernel or of a process.
    Native(Native),
    /// A function of interpreted code in this process, executed by the last native frame before.
    Interpreted(u32, Word),
    /// The caller of the frame before was not found.
    Lost,
}

/// A frame of native code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Native {
    /// The process; `None` for the kernel.
    pub pid: Option<u32>,
    /// The address: where the innermost frame is, or where a caller goes on.
    pub address: u64,
    /// Whether it is a caller, not the innermost frame.
    pub is_caller: bool,
    /// Whether it was found without an unwind table.
    pub is_guess: bool,
}

/// Returns the process of a stack; `None` for the kernel's, and for what is no stack.
pub fn process(datum: &Datum<'_>) -> Option<u32> {
    match datum.kind {
        Kind::Ustack | Kind::StackValue => datum.process(),
        _ => None,
    }
}

/// Returns the frames of a stack, innermost first.
pub fn frames(datum: &Datum<'_>) -> Vec<Frame> {
    match datum.kind {
        Kind::Ustack => user(datum.data),
        Kind::StackValue => value(datum.data),
        _ => kernel(words(datum.data)),
    }
}

fn kernel(pcs: impl Iterator<Item = u64>) -> Vec<Frame> {
    let pcs = pcs.take_while(|&pc| pc != 0).enumerate();
    pcs.map(|(number, pc)| {
        Frame::Native(Native {
            pid: None,
            address: pc,
            is_caller: number > 0,
            is_guess: false,
        })
    })
    .collect()
}

fn value(data: &[u8]) -> Vec<Frame> {
    let Ok((head, pcs)) = StackHead::read_from_prefix(data) else {
        return Vec::new();
    };
    let depth = head.depth as usize;
    if head.is_user == 0 {
        return kernel(words(pcs).take(depth));
    }
    // `depth` does not count the mark of a caller that was not found.
    let is_more = words(pcs).nth(depth) == Some(STACK_LOST);
    let depth = depth.saturating_add(is_more.into());
    // What the addresses leave of their room is zero.
    let interpreted = words(pcs).skip(depth).skip_while(|&word| word == 0);
    let is_address = |&word: &u64| word != 0 && Word::decode(word).is_none();
    let pcs = words(pcs).take(depth).take_while(is_address);
    mixed(head.pid, pcs, interpreted)
}

fn user(data: &[u8]) -> Vec<Frame> {
    let mut all = words(data);
    let Some(pid) = all.next() else {
        return Vec::new();
    };
    let all = all.take_while(|&word| word != 0);
    let is_address = |word: &u64| Word::decode(*word).is_none();
    let interpreted = all.clone().skip_while(is_address);
    mixed(pid as u32, all.take_while(is_address), interpreted)
}

/// Returns the frames of these addresses, each followed by the frames of interpreted code that it
/// executes. The words of those end with the first that is no frame.
fn mixed(
    pid: u32,
    pcs: impl Iterator<Item = u64>,
    interpreted: impl Iterator<Item = u64>,
) -> Vec<Frame> {
    let mut frames = Vec::new();
    let mut interpreted = interpreted.map_while(Word::decode).peekable();
    for (number, pc) in pcs.enumerate() {
        frames.push(of_process(pid, pc, number));
        while let Some(word) = interpreted.next_if(|word| usize::from(word.native) <= number) {
            frames.push(Frame::Interpreted(pid, word));
        }
    }
    frames
}

/// Returns the frame of a word of a process's stack. `number` counts from the innermost, 0.
fn of_process(pid: u32, pc: u64, number: usize) -> Frame {
    if pc == STACK_LOST {
        return Frame::Lost;
    }
    let is_guess = pc & STACK_NOWHERE == STACK_GUESSED;
    let address = match pc {
        // The mark alone: the process was interrupted at address 0.
        STACK_NOWHERE => 0,
        _ if is_guess => pc & !STACK_GUESSED,
        _ => pc,
    };
    Frame::Native(Native {
        pid: Some(pid),
        address,
        is_caller: number > 0,
        is_guess,
    })
}

impl Native {
    /// Resolves the address. A call that never returns may be the last instruction of its function.
    /// Then the return address is behind that function: outside of any function, or at the start of
    /// the next. In these cases the function of the call itself is returned. This is done for
    /// processes alone.
    pub fn location(&self, symbols: &dyn Symbolizer) -> Option<Location> {
        let Some(pid) = self.pid else {
            return symbols.kernel(self.address);
        };
        let location = symbols.user(Some(pid), self.address)?;
        let is_inside = matches!(&location.symbol, Some((_, offset)) if *offset != 0);
        if is_inside || !self.is_caller {
            return Some(location);
        }
        let call = symbols.user(Some(pid), self.address.wrapping_sub(1));
        match call.filter(|call| call.object == location.object) {
            Some(Location {
                object,
                symbol: Some((name, offset)),
            }) => Some(Location {
                object,
                symbol: Some((name, offset + 1)),
            }),
            _ => Some(location),
        }
    }

    /// Returns the build ID of the file that contains the address, in hexadecimal digits, and the
    /// offset in that file.
    pub fn build(&self, symbols: &dyn Symbolizer) -> Option<(Rc<str>, u64)> {
        symbols.build(self.pid?, self.address)
    }

    /// Returns the functions that are inlined at a frame of a process, the innermost first.
    pub fn inlined(&self, symbols: &dyn Symbolizer) -> Rc<[Inlined]> {
        let Some(pid) = self.pid else {
            return Rc::default();
        };
        // A call may be the last instruction of an inlined function: look up the call, not the
        // return address.
        let at = match self.is_caller {
            true => self.address.wrapping_sub(1),
            false => self.address,
        };
        symbols.inlined(pid, at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::IntoBytes;

    fn bytes(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|w| w.to_ne_bytes()).collect()
    }

    fn native(pid: Option<u32>, address: u64, is_caller: bool) -> Native {
        Native {
            pid,
            address,
            is_caller,
            is_guess: false,
        }
    }

    #[test]
    fn a_kernel_stack_ends_at_zero() {
        let data = bytes(&[0x1010, 0x2000, 0, 0x3000]);
        let datum = Datum::new(Kind::Stack, &data);
        let expected = [native(None, 0x1010, false), native(None, 0x2000, true)];
        assert_eq!(frames(&datum), expected.map(Frame::Native));
        assert_eq!(process(&datum), None);
    }

    #[test]
    fn interpreted_frames_follow_their_evaluator() {
        let word = |native, position| Word {
            native,
            position,
            name: 1,
        };
        let interpreted = [word(0, 3), word(1, 4), word(9, 5)];
        let interpreted = interpreted.map(Word::encode);
        let pcs = [42, 0x4000, 0x9000 | STACK_GUESSED, STACK_LOST];
        let data = bytes(&[&pcs[..], &interpreted].concat());
        let datum = Datum::new(Kind::Ustack, &data);
        let guess = Native {
            is_guess: true,
            ..native(Some(42), 0x9000, true)
        };
        let expected = [
            Frame::Native(native(Some(42), 0x4000, false)),
            Frame::Interpreted(42, word(0, 3)),
            Frame::Native(guess),
            Frame::Interpreted(42, word(1, 4)),
            Frame::Lost,
        ];
        assert_eq!(frames(&datum), expected);
        assert_eq!(process(&datum), Some(42));
    }

    #[test]
    fn a_value_has_as_many_frames_as_it_says_and_as_there_are() {
        let value = |is_user, depth, pcs: &[u64]| {
            let head = StackHead {
                depth,
                is_user,
                pid: 42,
                strsz: 0,
            };
            [head.as_bytes(), &bytes(pcs)].concat()
        };
        let frames = |data: &[u8]| frames(&Datum::new(Kind::StackValue, data));
        let first = |pid| Frame::Native(native(pid, 0x1010, false));
        assert_eq!(frames(&value(0, 1, &[0x1010, 0x2000])), [first(None)]);
        assert_eq!(frames(&value(0, u32::MAX, &[0x1010])), [first(None)]);
        let lost = [first(Some(42)), Frame::Lost];
        assert_eq!(frames(&value(1, 1, &[0x1010, STACK_LOST, 1])), lost);
        let word = |native, position| Word {
            native,
            position,
            name: 1,
        };
        let code = |words: &[Word]| words.iter().map(|word| word.encode()).collect::<Vec<_>>();
        let interpreted = |number| Frame::Interpreted(42, number);
        // Room for two addresses, one of which is used, and for three words.
        let words = [&[0x1010, 0][..], &code(&[word(0, 3), word(0, 4)]), &[0]].concat();
        let both = [word(0, 3), word(0, 4)].map(interpreted);
        assert_eq!(
            frames(&value(1, 1, &words)),
            [&[first(Some(42))][..], &both].concat()
        );
        // The room of the addresses is full.
        let words = [&[0x1010, STACK_LOST][..], &code(&[word(0, 3), word(9, 4)])].concat();
        let expected = [first(Some(42)), interpreted(word(0, 3)), Frame::Lost];
        assert_eq!(frames(&value(1, 1, &words)), expected);
        // The program has set another depth.
        let words = [&[0x1010, 0x2000, 0][..], &code(&[word(0, 3)])].concat();
        assert_eq!(frames(&value(1, 1, &words)), [first(Some(42))]);
        let words = [&[0x1010][..], &code(&[word(0, 3)])].concat();
        assert_eq!(frames(&value(1, u32::MAX, &words)), [first(Some(42))]);
        assert!(frames(&[0; 15]).is_empty());
    }
}
