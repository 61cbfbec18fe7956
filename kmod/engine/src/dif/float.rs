// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! The operations of DIF that compute with floating-point numbers.
//!
//! A register holds the bits of a binary64. The format `float` has conversions alone: an operation on two of its numbers is
//! one on doubles, rounded once more, which gives the same. Of an integer of 64 bits it would not, so that it becomes either.

use crate::softfloat::{self as soft, Double, Single};
use core::cmp::Ordering;
use dtrace_uapi::dif::Op;

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // they are those of DIF: see `Op`
pub enum Float {
    Add,
    Sub,
    Mul,
    Div,
    Eq,
    Lt,
    Le,
    FromSigned,
    FromUnsigned,
    ToSigned,
    ToUnsigned,
    Widen,
    Narrow,
    SingleFromSigned,
    SingleFromUnsigned,
}

impl Float {
    /// The operation of `op`, if it is one.
    pub fn of(op: Op) -> Option<Self> {
        Some(match op {
            Op::Fadd => Self::Add,
            Op::Fsub => Self::Sub,
            Op::Fmul => Self::Mul,
            Op::Fdiv => Self::Div,
            Op::Feq => Self::Eq,
            Op::Flt => Self::Lt,
            Op::Fle => Self::Le,
            Op::Fxtod => Self::FromSigned,
            Op::Futod => Self::FromUnsigned,
            Op::Fdtox => Self::ToSigned,
            Op::Fdtou => Self::ToUnsigned,
            Op::Fstod => Self::Widen,
            Op::Fdtos => Self::Narrow,
            Op::Fxtos => Self::SingleFromSigned,
            Op::Futos => Self::SingleFromUnsigned,
            _ => return None,
        })
    }

    /// The operation on `a` and, where it has two operands, `b`.
    pub fn compute(self, a: u64, b: u64) -> u64 {
        let (x, y) = (Double(a), Double(b));
        let holds = |test: fn(Ordering) -> bool| u64::from(soft::compare(x, y).is_some_and(test));
        let Double(number) = match self {
            Self::Add => soft::add(x, y),
            Self::Sub => soft::sub(x, y),
            Self::Mul => soft::mul(x, y),
            Self::Div => soft::div(x, y),
            Self::FromSigned => soft::from_i64(a as i64),
            Self::FromUnsigned => soft::from_u64(a),
            Self::Widen => soft::convert(Single(a as u32)),
            Self::Narrow => return single(soft::convert(x)),
            Self::SingleFromSigned => return single(soft::from_i64(a as i64)),
            Self::SingleFromUnsigned => return single(soft::from_u64(a)),
            Self::ToSigned => return soft::to_i64(x) as u64,
            Self::ToUnsigned => return soft::to_u64(x),
            Self::Eq => return holds(Ordering::is_eq),
            Self::Lt => return holds(Ordering::is_lt),
            Self::Le => return holds(Ordering::is_le),
        };
        number
    }
}

/// A register that holds a binary32.
fn single(number: Single) -> u64 {
    number.0.into()
}
