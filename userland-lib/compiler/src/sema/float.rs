// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Floating-point expressions: conversions, arithmetic, comparisons and conditions.
//!
//! The types are C's, and so is the type of a computation: the larger of the operands' types, with
//! each result rounded to it. Constant expressions are computed here by the processor, with the
//! same results as in the engine. A floating-point number as a condition is true if it is not zero
//! (NaN is true); code generation sees a comparison.

use super::Sema;
use crate::diag::Result;
use crate::hir::{Expr, ExprKind};
use crate::source::Span;
use crate::syntax::ast::{BinaryOp, FloatSuffix};
use dtrace_types::{IntType, Ty};

/// Returns the type of a constant with this suffix.
pub(super) fn constant_type(suffix: FloatSuffix) -> Ty {
    match suffix {
        FloatSuffix::Double => Ty::DOUBLE,
        FloatSuffix::Float => Ty::FLOAT,
        FloatSuffix::LongDouble => Ty::LONG_DOUBLE,
    }
}

/// Types `+e` or `-e`.
pub(super) fn signed(negative: bool, e: Expr, span: Span) -> Expr {
    let ty = e.ty;
    let kind = match e.kind {
        ExprKind::Float(value) if negative => ExprKind::Float(-value),
        ExprKind::Float(value) => ExprKind::Float(value),
        _ if negative => ExprKind::Neg(Box::new(e)),
        // Converting to the same type makes a value that cannot be assigned to.
        _ => ExprKind::Convert(Box::new(e)),
    };
    Expr::new(kind, ty, span)
}

/// Rounds a constant to a floating-point type of `size` bytes. Always succeeds: types larger than a
/// `double` hold every `f64` exactly.
fn rounded(value: f64, size: u8) -> Option<f64> {
    match size {
        4 => Some((value as f32).into()),
        _ => Some(value),
    }
}

/// Converts an integer constant to a floating-point type of `size` bytes; `None` if an `f64` might
/// not hold the result.
fn of_integer(value: u64, signed: bool, size: u8) -> Option<f64> {
    let exact = match signed {
        true => value as i64 as f64,
        false => value as f64,
    };
    match (size, signed) {
        (4, true) => Some((value as i64 as f32).into()),
        (4, false) => Some((value as f32).into()),
        (8, _) => Some(exact),
        // A `long double` may hold more digits than the `f64` of a constant.
        _ => (value == 0).then_some(exact),
    }
}

/// Converts a floating-point constant to an integer.
fn to_integer(value: f64, int: IntType) -> u64 {
    match (int.signed, int.size) {
        (false, 8..) => value as u64,
        _ => int.normalize(value as i64 as u64),
    }
}

/// Computes `a op b` in a type of `size` bytes; `None` if it is larger than a `double`.
fn computed(op: BinaryOp, a: f64, b: f64, size: u8) -> Option<f64> {
    let value = match op {
        BinaryOp::Add => a + b,
        BinaryOp::Sub => a - b,
        BinaryOp::Mul => a * b,
        _ => a / b,
    };
    match size {
        // A `float` result computed as `double` and rounded again is the same as if rounded once.
        4 | 8 => rounded(value, size),
        _ => None,
    }
}

/// Whether `a op b` holds.
fn holds(op: BinaryOp, a: f64, b: f64) -> bool {
    match op {
        BinaryOp::Lt => a < b,
        BinaryOp::Le => a <= b,
        BinaryOp::Gt => a > b,
        BinaryOp::Ge => a >= b,
        BinaryOp::Eq => a == b,
        _ => a != b,
    }
}

impl Sema<'_, '_> {
    /// Whether both types are numbers and at least one of them is a floating-point type.
    pub(super) fn computes_in_float(&self, a: Ty, b: Ty) -> bool {
        let types = &self.state.types;
        let float = types.float(a).is_some() || types.float(b).is_some();
        float && types.is_number(a) && types.is_number(b)
    }

    /// Converts a number to another numeric type, where at least one of the types is a
    /// floating-point type.
    pub(super) fn convert_float(&self, e: Expr, ty: Ty) -> Expr {
        let types = &self.state.types;
        // A `long double` in user space must be copied in before it can be converted.
        let e = match e.user && !types.fits_register(e.ty) {
            true => {
                let ty = e.ty;
                self.copied_in(e, ty)
            }
            false => e,
        };
        let span = e.span;
        let (from, to) = (types.float(e.ty), types.float(ty));
        let folded = match (&e.kind, to, self.state.types.int(ty)) {
            (ExprKind::Float(value), None, Some(shape)) => {
                return Expr::int(to_integer(*value, shape), ty, span);
            }
            (ExprKind::Float(value), Some(size), _) => rounded(*value, size),
            (ExprKind::Int(_), Some(size), _) => {
                let signed = types.int(e.ty).is_some_and(|int| int.signed);
                let value = self.known(&e);
                value.and_then(|value| of_integer(value, signed, size))
            }
            _ => None,
        };
        match folded {
            Some(value) => Expr::new(ExprKind::Float(value), ty, span),
            None if e.ty == ty => e,
            None if from == to => e.retype(ty),
            None => Expr::new(ExprKind::Convert(Box::new(e)), ty, span),
        }
    }

    /// Fails if floating-point numbers do not have this operator.
    pub(super) fn float_operator(
        &self,
        op: BinaryOp,
        left: Ty,
        right: Ty,
        span: Span,
    ) -> Result<()> {
        match op {
            BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Div => Ok(()),
            _ => Err(self.arithmetic_error(op, left, right, span)),
        }
    }

    /// Types `left op right` for two numbers, at least one of which is a floating-point number.
    pub(super) fn float_arithmetic(
        &self,
        op: BinaryOp,
        left: Expr,
        right: Expr,
        span: Span,
    ) -> Result<Expr> {
        self.float_operator(op, left.ty, right.ty, span)?;
        let types = &self.state.types;
        let ty = types.usual(left.ty, right.ty).unwrap_or(left.ty);
        let size = types.float(ty).unwrap_or(0);
        let (left, right) = (self.convert(left, ty), self.convert(right, ty));
        if let (ExprKind::Float(a), ExprKind::Float(b)) = (&left.kind, &right.kind) {
            if let Some(value) = computed(op, *a, *b, size) {
                return Ok(Expr::new(ExprKind::Float(value), ty, span));
            }
        }
        let kind = ExprKind::Arith(op, Box::new(left), Box::new(right));
        Ok(Expr::new(kind, ty, span))
    }

    /// Types the comparison of two numbers, at least one of which is a floating-point number.
    pub(super) fn compare_float(&self, op: BinaryOp, left: Expr, right: Expr, span: Span) -> Expr {
        let ty = self.state.types.usual(left.ty, right.ty).unwrap_or(left.ty);
        let (left, right) = (self.convert(left, ty), self.convert(right, ty));
        if let (ExprKind::Float(a), ExprKind::Float(b)) = (&left.kind, &right.kind) {
            return Expr::int(u64::from(holds(op, *a, *b)), Ty::INT, span);
        }
        let (left, right) = (Box::new(left), Box::new(right));
        match op {
            BinaryOp::Ne => {
                let equal = ExprKind::CompareFloat(BinaryOp::Eq, left, right);
                let equal = Expr::new(equal, Ty::INT, span);
                Expr::new(ExprKind::Not(Box::new(equal)), Ty::INT, span)
            }
            _ => Expr::new(ExprKind::CompareFloat(op, left, right), Ty::INT, span),
        }
    }

    /// Returns a scalar as a condition: a floating-point number becomes a comparison with zero.
    pub(super) fn condition(&self, e: Expr) -> Expr {
        match self.state.types.float(e.ty) {
            Some(_) => {
                let (ty, span) = (e.ty, e.span);
                let zero = Expr::new(ExprKind::Float(0.0), ty, span);
                self.compare_float(BinaryOp::Ne, e, zero, span)
            }
            None => e,
        }
    }

    /// Types `!e` for a scalar.
    pub(super) fn negation(&self, e: Expr, span: Span) -> Expr {
        let e = self.condition(e);
        match self.known(&e) {
            Some(value) => Expr::int(u64::from(value == 0), Ty::INT, span),
            None => Expr::new(ExprKind::Not(Box::new(e)), Ty::INT, span),
        }
    }
}
