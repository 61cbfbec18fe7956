// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Where a call passes its arguments (System V ABI, AMD64 §3.2.3 and i386 §2.2.3), as seen before
//! the call, that is, without the return address on the stack.

use super::operand::Operand;
use dtrace_uapi::process::{self, Arg, NO_REGISTER, VECTOR};
use std::ops::Range;

/// The numbers of the registers for passing integers: %rdi, %rsi, %rdx, %rcx, %r8, %r9.
const PASSED: [u8; 6] = [7, 6, 2, 1, 8, 9];
/// The numbers of the result register and of the stack pointer.
const RESULT: u8 = 0;
const STACK: u8 = 4;
/// Number of vector registers for passing floating-point numbers.
const VECTORS: u8 = 8;

/// The type of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Size in bytes.
    pub size: u8,
    /// Whether it is signed.
    pub is_signed: bool,
    /// Whether it is floating point.
    pub is_float: bool,
}

const BLANK: Arg = Arg {
    value: 0,
    base: NO_REGISTER,
    index: NO_REGISTER,
    shift: 0,
    size: 8,
    is_signed: 0,
    is_loaded: 0,
    is_high: 0,
    form: process::NUMBER,
};

/// Returns where an is-enabled probe puts its answer: in the result register, or in the `int` whose
/// address the program passes.
pub fn answer(by_address: bool, is_long: bool) -> Operand {
    let arg = match (by_address, is_long) {
        (true, true) => Arg {
            base: PASSED[0],
            ..BLANK
        },
        (true, false) => Arg {
            base: STACK,
            is_loaded: 1,
            size: 4,
            ..BLANK
        },
        (false, _) => Arg {
            base: RESULT,
            form: process::ANSWER,
            ..BLANK
        },
    };
    Operand {
        arg,
        is_of_file: false,
    }
}

/// Returns the location of each argument. From the first argument of unknown type on, all are
/// `None`.
pub fn passed(shapes: impl Iterator<Item = Option<Shape>>, is_long: bool) -> Vec<Option<Operand>> {
    let mut places = Places {
        registers: &PASSED,
        vectors: VECTOR..VECTOR + VECTORS,
        used: 0,
        is_long,
    };
    let mut known = true;
    let mut all = Vec::new();
    for shape in shapes {
        let shape = shape.filter(|_| known);
        known = shape.is_some();
        all.push(shape.map(|shape| places.next(shape)));
    }
    all
}

/// Adjusts a stack operand for a return address on top of the stack.
pub fn below_return(operand: &mut Operand, is_long: bool) {
    if operand.arg.base == STACK && operand.arg.is_loaded != 0 {
        operand.arg.value += word(is_long);
    }
}

const fn word(is_long: bool) -> u64 {
    if is_long {
        8
    } else {
        4
    }
}

/// The registers and the stack space that are still free.
struct Places {
    registers: &'static [u8],
    vectors: Range<u8>,
    /// Bytes of stack that are used.
    used: u64,
    is_long: bool,
}

impl Places {
    /// Returns the next free register for a value of this kind, if there is one.
    fn register(&mut self, is_float: bool) -> Option<u8> {
        if !self.is_long {
            return None;
        }
        if is_float {
            return self.vectors.next();
        }
        let (first, rest) = self.registers.split_first()?;
        self.registers = rest;
        Some(*first)
    }

    /// Returns the location of the next argument.
    fn next(&mut self, shape: Shape) -> Operand {
        let mut arg = Arg {
            size: shape.size,
            is_signed: shape.is_signed.into(),
            form: [process::NUMBER, process::FLOAT][usize::from(shape.is_float)],
            ..BLANK
        };
        match self.register(shape.is_float) {
            Some(register) => arg.base = register,
            None => {
                arg.base = STACK;
                arg.is_loaded = 1;
                arg.value = self.used;
                self.used += u64::from(shape.size).next_multiple_of(word(self.is_long));
            }
        }
        Operand {
            arg,
            is_of_file: false,
        }
    }
}
