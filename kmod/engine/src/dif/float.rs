// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! The DIF operations on floating-point numbers (INV-8).
//!
//! A register holds the bits of a binary64. The format `float` has conversions only: an operation
//! on two of its numbers is one on doubles, whose result is rounded once more; that gives the same
//! number. For the conversion of a 64-bit integer it would not, so there is a direct conversion to
//! either format.

use crate::softfloat::{self as soft, Double, Single};
use core::cmp::Ordering;
use dtrace_uapi::dif::Op;

/// A floating-point operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the operations of DIF: see `Op`
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
    /// Returns the operation of `op`, if it is one.
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

    /// Computes the operation on `a` and, if it has two operands, `b`.
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

/// Returns the register value of a binary32.
fn single(number: Single) -> u64 {
    number.0.into()
}
