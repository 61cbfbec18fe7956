// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Floating-point numbers in registers.
//!
//! A register contains a `float` or a `double` as its bits in memory, so that loads, stores,
//! variables, keys and records need no special cases. The machine computes in doubles: a `float` is
//! widened before and narrowed after an operation, which gives the same results as `float`
//! arithmetic. There are three comparisons. The others exchange the operands and never negate the
//! result, because for NaN every comparison but `!=` is false.
//!
//! A `long double` is represented by its address, like an object, and every operation on it is a
//! call. A value that goes into a record or a key is copied first, because the padding between two
//! numbers is undefined.

use super::ir::{Inst, VReg};
use super::lower::Lowering;
use crate::hir::{Expr, ExprKind};
use crate::source::Span;
use crate::syntax::ast::BinaryOp;
use dtrace_types::Ty;
use dtrace_uapi::dif::Op;
use dtrace_uapi::subr::Subr;
use dtrace_uapi::types::DIF_TYPE_CTF;

/// The representation of a number in a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Signed,
    Unsigned,
    Single,
    Double,
    /// The address of its bytes.
    Extended,
}

impl Lowering<'_> {
    /// Whether `ty` is a floating-point type.
    pub(super) fn is_float(&self, ty: Ty) -> bool {
        self.types.float(ty).is_some()
    }

    fn form(&self, ty: Ty) -> Form {
        match (self.types.float(ty), self.types.int(ty)) {
            (Some(4), _) => Form::Single,
            (Some(8), _) => Form::Double,
            (Some(_), _) => Form::Extended,
            // A smaller unsigned integer is also a valid signed integer of 64 bits.
            (None, Some(int)) if int.signed || int.size < 8 => Form::Signed,
            (None, _) => Form::Unsigned,
        }
    }

    fn unary(&mut self, op: Op, a: VReg, span: Span) -> VReg {
        self.emit(span, |dst| Inst::Un { op, dst, a })
    }

    /// Returns the constant `value` of type `ty`.
    pub(super) fn float_constant(&mut self, value: f64, ty: Ty, span: Span) -> VReg {
        // All NaNs become the same one.
        let value = if value.is_nan() { f64::NAN } else { value };
        let bits = match self.form(ty) {
            Form::Single => (value as f32).to_bits().into(),
            _ => value.to_bits(),
        };
        let bits = self.constant(bits, span);
        match self.form(ty) {
            Form::Extended => self.extended(Subr::LdFromDouble, &[bits], span),
            _ => bits,
        }
    }

    /// Calls an operator of `long double`.
    fn extended(&mut self, subr: Subr, args: &[VReg], span: Span) -> VReg {
        self.func.push(Inst::Flush, span);
        for &value in args {
            let push = Inst::Push {
                op: Op::Pushtv,
                ty: DIF_TYPE_CTF,
                size: VReg::ZERO,
                value,
            };
            self.func.push(push, span);
        }
        self.emit(span, |dst| Inst::Call { dst, subr })
    }

    /// Returns `value`, the value of `e`, in a form that can be recorded: a `long double` is copied
    /// unless the program has just computed it.
    pub(super) fn recordable(&mut self, value: VReg, e: &Expr) -> VReg {
        let computed = matches!(
            e.kind,
            ExprKind::Arith(..) | ExprKind::Neg(_) | ExprKind::Float(_) | ExprKind::Convert(_)
        );
        match !computed && !e.user && self.is_float(e.ty) && self.form(e.ty) == Form::Extended {
            true => self.extended(Subr::LdValue, &[value], e.span),
            false => value,
        }
    }

    /// Converts `value` from type `from` to type `to`.
    pub(super) fn convert_float(&mut self, value: VReg, from: Ty, to: Ty, span: Span) -> VReg {
        use Form::*;
        let op = match (self.form(from), self.form(to)) {
            (Single, Single) | (Double, Double) | (Extended, Extended) => return value,
            (Signed, Extended) => return self.extended(Subr::LdFromSigned, &[value], span),
            (Unsigned, Extended) => return self.extended(Subr::LdFromUnsigned, &[value], span),
            (Double, Extended) => return self.extended(Subr::LdFromDouble, &[value], span),
            (Extended, form) => {
                let subr = match form {
                    Single => Subr::LdToSingle,
                    Signed => Subr::LdToSigned,
                    Unsigned => Subr::LdToUnsigned,
                    Double | Extended => Subr::LdToDouble,
                };
                let value = self.extended(subr, &[value], span);
                return self.extend(value, to, span);
            }
            (Signed, Single) => Op::Fxtos,
            (Unsigned, Single) => Op::Futos,
            (Signed, _) => Op::Fxtod,
            (Unsigned, _) => Op::Futod,
            (Single, Double) => Op::Fstod,
            (Double, Single) => Op::Fdtos,
            (Single, _) => {
                let wide = self.unary(Op::Fstod, value, span);
                return self.convert_float(wide, Ty::DOUBLE, to, span);
            }
            (Double, Unsigned) => Op::Fdtou,
            (Double, Signed) => Op::Fdtox,
        };
        let value = self.unary(op, value, span);
        self.extend(value, to, span)
    }

    /// Computes `a op b` in the floating-point type `ty`.
    pub(super) fn float_arith(
        &mut self,
        op: BinaryOp,
        a: VReg,
        b: VReg,
        ty: Ty,
        span: Span,
    ) -> VReg {
        let (op, subr) = match op {
            BinaryOp::Add => (Op::Fadd, Subr::LdAdd),
            BinaryOp::Sub => (Op::Fsub, Subr::LdSub),
            BinaryOp::Mul => (Op::Fmul, Subr::LdMul),
            _ => (Op::Fdiv, Subr::LdDiv),
        };
        if self.form(ty) == Form::Extended {
            return self.extended(subr, &[a, b], span);
        }
        let a = self.convert_float(a, ty, Ty::DOUBLE, span);
        let b = self.convert_float(b, ty, Ty::DOUBLE, span);
        let value = self.bin(op, a, b, span);
        self.convert_float(value, Ty::DOUBLE, ty, span)
    }

    /// Computes `-value` in the floating-point type `ty`.
    pub(super) fn negate_float(&mut self, value: VReg, ty: Ty, span: Span) -> VReg {
        let sign = match self.form(ty) {
            Form::Single => 1 << 31,
            Form::Extended => {
                // Subtracting from this zero changes the sign and nothing else.
                let zero = self.float_constant(-0.0, ty, span);
                return self.float_arith(BinaryOp::Sub, zero, value, ty, span);
            }
            _ => 1 << 63,
        };
        let sign = self.constant(sign, span);
        self.bin(Op::Xor, value, sign, span)
    }

    /// Returns 1 if `left op right`, else 0.
    pub(super) fn compare_float(
        &mut self,
        op: BinaryOp,
        left: &Expr,
        right: &Expr,
        span: Span,
    ) -> VReg {
        let (a, b) = (self.expr(left), self.expr(right));
        let (op, subr, a, b) = match op {
            BinaryOp::Lt => (Op::Flt, Subr::LdLt, a, b),
            BinaryOp::Le => (Op::Fle, Subr::LdLe, a, b),
            BinaryOp::Gt => (Op::Flt, Subr::LdLt, b, a),
            BinaryOp::Ge => (Op::Fle, Subr::LdLe, b, a),
            _ => (Op::Feq, Subr::LdEq, a, b),
        };
        if self.form(left.ty) == Form::Extended {
            return self.extended(subr, &[a, b], span);
        }
        // Both operands have the same type.
        let a = self.convert_float(a, left.ty, Ty::DOUBLE, span);
        let b = self.convert_float(b, left.ty, Ty::DOUBLE, span);
        self.bin(op, a, b, span)
    }

    /// Computes `old op right` in the type of `right`. Returns the old value, the value to store,
    /// and the value of the expression; the last two are equal.
    pub(super) fn update_float(
        &mut self,
        op: BinaryOp,
        (old, ty): (VReg, Ty),
        (right, wide): (VReg, Ty),
        span: Span,
    ) -> (VReg, VReg, VReg) {
        // The store will overwrite the memory that `old` points to.
        let old = match self.form(ty) {
            Form::Extended => self.extended(Subr::LdValue, &[old], span),
            _ => old,
        };
        let left = self.convert_float(old, ty, wide, span);
        let value = self.float_arith(op, left, right, wide, span);
        let new = self.convert_float(value, wide, ty, span);
        (old, new, new)
    }
}
