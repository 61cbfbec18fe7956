// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Integers narrower than a register.
//!
//! A register holds an integer extended to 64 bits as its type says. Of unsigned types that is always so: what a
//! computation gives is extended anew, and wraps as C has it. Of signed types it is not: C leaves open what comes of an
//! overflow, and in D it has always been the 64-bit result, as long as it is computed with in that type. It is cut to
//! the type where it leaves it: where it is stored, recorded, made a key, compared or converted; [`Lowering::exact`]
//! does that, with no code where the value is one of its type anyway. What is computed with operands narrower than an
//! `int` is C's `int` too, while the result is of the operands' type.

use super::ir::VReg;
use super::lower::{Lowering, Shape};
use crate::sema::fold::IntShape;
use crate::sema::hir::{Expr, ExprKind};
use crate::source::Span;
use crate::syntax::ast::BinaryOp;
use crate::types::Ty;
use dtrace_uapi::dif::Op;

impl Lowering<'_> {
    /// The result of arithmetic in type `ty` as far as C says what it is.
    pub(super) fn wrap(&mut self, value: VReg, ty: Ty, span: Span) -> VReg {
        match self.shape(ty) {
            Shape::Int { signed: false, .. } => self.extend(value, ty, span),
            _ => value,
        }
    }

    /// The value of `e` cut to its type.
    pub(super) fn exact(&mut self, e: &Expr) -> VReg {
        let value = self.expr(e);
        self.cut(value, e)
    }

    /// `value`, which is that of `e`, cut to the type of `e`.
    pub(super) fn cut(&mut self, value: VReg, e: &Expr) -> VReg {
        match self.is_exact(e) {
            true => value,
            false => self.extend(value, e.ty, e.span),
        }
    }

    /// Whether the value of `e` is one of its type for certain.
    pub(super) fn is_exact(&self, e: &Expr) -> bool {
        let Shape::Int { size, signed } = self.shape(e.ty) else {
            return true;
        };
        match &e.kind {
            _ if size >= 8 => true,
            ExprKind::Int(value) => {
                let shape = IntShape {
                    size: size as u8,
                    signed,
                };
                *value == shape.normalize(*value)
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

    /// Extends the low bits of `value` to 64 as type `ty` says; nothing where they are 64.
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

    /// The value of `from` as an integer of type `to`.
    pub(super) fn convert(&mut self, value: VReg, from: &Expr, to: Ty, span: Span) -> VReg {
        let from = self.computed(from);
        match (self.fits(from, to), self.is_exact(from)) {
            (true, true) => value,
            (true, false) => self.extend(value, from.ty, span),
            (false, _) => self.extend(value, to, span),
        }
    }

    /// The computation whose result `e` calls by a narrower type, or `e` itself.
    pub(super) fn computed<'e>(&self, e: &'e Expr) -> &'e Expr {
        match &e.kind {
            ExprKind::Retype(inner) if self.is_integer(inner) && !self.fits(inner, e.ty) => inner,
            _ => e,
        }
    }

    /// Whether every value of the type of `from` is one of the type `to`, in the same register.
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
