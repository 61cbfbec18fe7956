// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Calling conventions of functions (System V ABI, AMD64 §3.2.3 and i386 §2.2.3).
//!
//! A probe's `argN` counts words: those of the integer registers, then those on the stack. These
//! words are the parameters only while all parameters are integers or pointers. A floating-point
//! number takes a register of another kind, whose word is numbered from [`VECTOR_WORD`] on, or room
//! on the stack.

use dtrace_uapi::process::VECTOR_WORD;

/// Number of registers for passing integers.
const INTEGERS: u32 = 6;
/// Number of registers for passing floating-point numbers.
const FLOATS: u32 = 8;

/// The class of a parameter, with its size in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// An integer or a pointer.
    Integer(u64),
    /// A floating-point number.
    Float(u64),
}

/// Returns the number of the word that is the last of these parameters of a 64-bit function; `None`
/// if the parameter is not a single word.
pub fn word(params: &[Class]) -> Option<u32> {
    let (mut integers, mut floats, mut stack) = (0, 0, 0u32);
    let mut word = None;
    for class in params {
        word = None;
        match *class {
            Class::Integer(..=8) if integers < INTEGERS => {
                word = Some(integers);
                integers += 1;
            }
            Class::Integer(..=8) => {
                word = Some(INTEGERS + stack);
                stack += 1;
            }
            Class::Integer(_) if integers + 2 <= INTEGERS => integers += 2,
            Class::Float(..=8) if floats < FLOATS => {
                word = Some(VECTOR_WORD + floats);
                floats += 1;
            }
            Class::Float(..=8) => {
                word = Some(INTEGERS + stack);
                stack += 1;
            }
            Class::Integer(_) | Class::Float(_) => stack = stack.next_multiple_of(2) + 2,
        }
    }
    word
}

/// Like [`word`], for a 32-bit function, where all parameters are on the stack.
pub fn word_of_32(params: &[Class]) -> Option<u32> {
    let mut next = 0;
    let mut word = None;
    for class in params {
        let (Class::Integer(size) | Class::Float(size)) = *class;
        let is_word = matches!(class, Class::Integer(..=4) | Class::Float(..=4));
        word = is_word.then_some(next);
        next += u32::try_from(size.div_ceil(4)).unwrap_or(1).max(1);
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_fill_registers_then_the_stack() {
        let int = Class::Integer(4);
        for n in 1..10 {
            assert_eq!(word(&vec![int; n]), Some(n as u32 - 1));
            assert_eq!(word_of_32(&vec![int; n]), Some(n as u32 - 1));
        }
    }

    #[test]
    fn others_do_not_count_but_take_their_room() {
        let (int, double, long) = (Class::Integer(8), Class::Float(8), Class::Float(16));
        assert_eq!(word(&[long]), None);
        assert_eq!(word(&[int, double]), Some(VECTOR_WORD));
        assert_eq!(word(&[double, int, double]), Some(VECTOR_WORD + 1));
        assert_eq!(word(&[double; 8]), Some(VECTOR_WORD + 7));
        assert_eq!(word(&[double; 9]), Some(6));
        assert_eq!(word(&[int, double, int]), Some(1));
        assert_eq!(word(&[long, int]), Some(0));
        let mut many = vec![double; 9];
        many.extend([int; 7]);
        assert_eq!(word(&many), Some(7));
        assert_eq!(
            word(&[int, int, int, int, int, int, int, long, int]),
            Some(10)
        );
        let wide = Class::Integer(16);
        assert_eq!(word(&[wide, int]), Some(2));
        assert_eq!(word(&[int, int, int, int, int, wide, int]), Some(5));
    }

    #[test]
    fn wide_ones_of_32_bits_take_two_words() {
        let (int, wide) = (Class::Integer(4), Class::Integer(8));
        assert_eq!(word_of_32(&[wide]), None);
        assert_eq!(word_of_32(&[int, wide, int]), Some(3));
        assert_eq!(word_of_32(&[Class::Float(8)]), None);
        assert_eq!(word_of_32(&[Class::Float(8), int]), Some(2));
        assert_eq!(word_of_32(&[int, Class::Float(4)]), Some(1));
        assert_eq!(word_of_32(&[Class::Integer(1), int]), Some(1));
    }
}
