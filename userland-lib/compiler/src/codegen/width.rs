// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Integers narrower than a register.
//!
//! A register contains an integer extended to 64 bits according to its type. For unsigned types
//! this always holds: every result is extended again, which gives C's wrap-around. For signed types
//! it does not: C leaves overflow undefined, and D has always kept the 64-bit result as long as
//! computations stay in that type. The value is truncated to the type where it leaves the
//! computation: where it is stored, recorded, used as a key, compared or converted.
//! [`Lowering::exact`] does this, and generates no code if the value is known to fit its type.
//! Computations with operands narrower than `int` are done in `int` as in C, but the result has the
//! operands' type.

use super::ir::VReg;
use super::lower::{Lowering, Shape};
use crate::hir::{Expr, ExprKind};
use crate::source::Span;
use crate::syntax::ast::BinaryOp;
use dtrace_types::{IntType, Ty};
use dtrace_uapi::dif::Op;

impl Lowering<'_> {
    /// Returns the result of arithmetic in type `ty`, wrapped if the type is unsigned.
    pub(super) fn wrap(&mut self, value: VReg, ty: Ty, span: Span) -> VReg {
        match self.shape(ty) {
            Shape::Int { signed: false, .. } => self.extend(value, ty, span),
            _ => value,
        }
    }

    /// Returns the value of `e` truncated to its type.
    pub(super) fn exact(&mut self, e: &Expr) -> VReg {
        let value = self.expr(e);
        self.cut(value, e)
    }

    /// Returns `value`, the value of `e`, truncated to the type of `e`.
    pub(super) fn cut(&mut self, value: VReg, e: &Expr) -> VReg {
        match self.is_exact(e) {
            true => value,
            false => self.extend(value, e.ty, e.span),
        }
    }

    /// Whether the value of `e` is known to fit its type.
    pub(super) fn is_exact(&self, e: &Expr) -> bool {
        let Shape::Int { size, signed } = self.shape(e.ty) else {
            return true;
        };
        match &e.kind {
            _ if size >= 8 => true,
            ExprKind::Int(value) => {
                let int = IntType {
                    size: size as u8,
                    signed,
                };
                *value == int.normalize(*value)
            }
            ExprKind::Arith(..) | ExprKind::Neg(_) | ExprKind::BitNot(_) if !signed => true,
            ExprKind::Arith(op, a, b) => {
                let bits = matches!(op, BinaryOp::And | BinaryOp::Or | BinaryOp::Xor);
                let down = matches!(op, BinaryOp::Rem | BinaryOp::Shr);
                (bits && self.is_exact(b) || down) && self.is_exact(a)
            }
            ExprKind::Neg(_) => false,
            ExprKind::BitNot(inner) | ExprKind::Comma(_, inner) => self.is_exact(inner),
            ExprKind::Retype(inner) => {
                self.is_integer(inner) && self.fits(inner, e.ty) && self.is_exact(inner)
            }
            ExprKind::Cond(_, a, b) => self.is_exact(a) && self.is_exact(b),
            _ => true,
        }
    }

    fn is_integer(&self, e: &Expr) -> bool {
        matches!(self.shape(e.ty), Shape::Int { .. })
    }

    /// Extends the low bits of `value` to 64 bits according to type `ty`. Generates no code if it
    /// has 64 bits.
    pub(super) fn extend(&mut self, value: VReg, ty: Ty, span: Span) -> VReg {
        match self.shape(ty) {
            Shape::Int { size, signed } if size < 8 => {
                let bits = 64 - 8 * size;
                self.shift_out(value, bits, bits, signed, span)
            }
            _ => value,
        }
    }

    /// Shifts `value` left by `left` bits, then right by `right`.
    pub(super) fn shift_out(
        &mut self,
        value: VReg,
        left: u64,
        right: u64,
        signed: bool,
        span: Span,
    ) -> VReg {
        let amount = self.constant(left, span);
        let value = if left == 0 {
            value
        } else {
            self.bin(Op::Sll, value, amount, span)
        };
        let amount = if left == right {
            amount
        } else {
            self.constant(right, span)
        };
        let op = if signed { Op::Sra } else { Op::Srl };
        if right == 0 {
            value
        } else {
            self.bin(op, value, amount, span)
        }
    }

    /// Converts the value of `from` to an integer of type `to`.
    pub(super) fn convert(&mut self, value: VReg, from: &Expr, to: Ty, span: Span) -> VReg {
        let from = self.computed(from);
        match (self.fits(from, to), self.is_exact(from)) {
            (true, true) => value,
            (true, false) => self.extend(value, from.ty, span),
            (false, _) => self.extend(value, to, span),
        }
    }

    /// Returns the computation whose result `e` retypes to a narrower type, or `e` itself.
    pub(super) fn computed<'e>(&self, e: &'e Expr) -> &'e Expr {
        match &e.kind {
            ExprKind::Retype(inner) if self.is_integer(inner) && !self.fits(inner, e.ty) => inner,
            _ => e,
        }
    }

    /// Whether every value of the type of `from` has the same register contents in type `to`.
    fn fits(&self, from: &Expr, to: Ty) -> bool {
        match (self.shape(from.ty), self.shape(to)) {
            (Shape::Int { size: a, signed: x }, Shape::Int { size: b, signed: y }) => {
                a < b && (!x || y) || a == b && x == y || b == 8
            }
            (Shape::Pointer { .. }, Shape::Int { size, .. }) => size == 8,
            _ => true,
        }
    }
}
