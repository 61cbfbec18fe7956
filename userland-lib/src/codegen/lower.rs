// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The typed tree becomes three-address code.
//!
//! Every expression leaves its value in a register of its own, as the typed tree defines values: an integer extended to
//! 64 bits as its type says, or the address of an object. Arithmetic is done in 64 bits. Of a narrower unsigned type the
//! result is extended anew, so that it wraps as C has it. Of a narrower signed type it is not: C leaves open what comes
//! of an overflow, and in D it has always been the 64-bit result, which is cut to the type when it is stored, recorded,
//! made a key or cast ([`Lowering::exact`]).
//!
//! Conditions do not become values unless somebody wants the value: [`Lowering::branch`] turns comparisons and
//! short-circuit operators into branches.
//!
//! Keys and arguments go over one tuple stack that nested expressions need as well. So all of them are computed first,
//! then the stack is emptied and they are pushed.

use super::asm::{assemble, AsmError};
use super::ir::{Func, Inst, Label, VReg};
use super::place::Target;
use crate::program::Difo;
use crate::sema::hir::{Expr, ExprKind};
use crate::source::Span;
use crate::syntax::ast::BinaryOp;
use crate::types::{Kind, Ty, Types};
use dtrace_uapi::dif::Op;
use dtrace_uapi::subr::Subr;
use dtrace_uapi::types::{DifType, DIF_TF_BYREF, DIF_TF_BYUREF, DIF_TYPE_STRING};

/// The code that returns the value of `expr`.
pub fn value(expr: &Expr, types: &Types<'_>) -> Result<Difo, AsmError> {
    let mut lowering = Lowering::new(types);
    let src = lowering.expr(expr);
    let rtype = lowering.dif_type(expr.ty, expr.user);
    lowering.finish(src, expr.span, rtype)
}

/// The code of a predicate: what it returns is 0 exactly if `expr` is false.
pub fn predicate(expr: &Expr, types: &Types<'_>) -> Result<Difo, AsmError> {
    let mut lowering = Lowering::new(types);
    let src = lowering.decision(expr);
    let rtype = lowering.dif_type(Ty::INT64_T, false);
    lowering.finish(src, expr.span, rtype)
}

/// The code that evaluates `expr` for what it changes and returns nothing.
pub fn effect(expr: &Expr, types: &Types<'_>) -> Result<Difo, AsmError> {
    let mut lowering = Lowering::new(types);
    lowering.expr(expr);
    lowering.finish(VReg::ZERO, expr.span, DifType::default())
}

pub(super) struct Lowering<'a> {
    pub(super) func: Func,
    pub(super) types: &'a Types<'a>,
}

/// What a value of some type is in a register.
pub(super) enum Shape {
    /// An integer of `size` bytes.
    Int { size: u64, signed: bool },
    /// An address, or anything else of 64 bits.
    Pointer,
    /// The address of an object of `size` bytes.
    Object { size: u64 },
}

/// A computed key or argument.
pub(super) struct Key {
    value: VReg,
    ty: Ty,
    user: bool,
    span: Span,
}

impl<'a> Lowering<'a> {
    fn new(types: &'a Types<'a>) -> Self {
        Self {
            func: Func::new(),
            types,
        }
    }

    fn finish(mut self, src: VReg, span: Span, rtype: DifType) -> Result<Difo, AsmError> {
        self.func.push(Inst::Ret { src }, span);
        assemble(&self.func, rtype)
    }

    pub(super) fn shape(&self, ty: Ty) -> Shape {
        if let Some(int) = self.types.int(ty) {
            return Shape::Int {
                size: int.size.into(),
                signed: int.signed,
            };
        }
        match self.types.base(ty) {
            Kind::String | Kind::Record(_) | Kind::Array(..) => Shape::Object {
                size: self.types.size(ty).unwrap_or(0),
            },
            _ => Shape::Pointer,
        }
    }

    /// The type as DIF knows it, of an object at an address that may be in user space.
    pub(super) fn dif_type(&self, ty: Ty, user: bool) -> DifType {
        let mut dif = self.types.dif_type(ty);
        if user && dif.flags & DIF_TF_BYREF != 0 {
            dif.flags = DIF_TF_BYUREF;
        }
        dif
    }

    /// Appends the instruction that `inst` makes for a fresh register, and returns the register.
    pub(super) fn emit(&mut self, span: Span, inst: impl FnOnce(VReg) -> Inst) -> VReg {
        let dst = self.func.vreg();
        self.func.push(inst(dst), span);
        dst
    }

    pub(super) fn constant(&mut self, value: u64, span: Span) -> VReg {
        match value {
            0 => VReg::ZERO,
            value => self.emit(span, |dst| Inst::Const { dst, value }),
        }
    }

    pub(super) fn bin(&mut self, op: Op, a: VReg, b: VReg, span: Span) -> VReg {
        self.emit(span, |dst| Inst::Bin { op, dst, a, b })
    }

    pub(super) fn expr(&mut self, e: &Expr) -> VReg {
        let span = e.span;
        match &e.kind {
            ExprKind::Int(value) => self.constant(*value, span),
            ExprKind::Str(text) => {
                let string = self.func.string(text);
                self.emit(span, |dst| Inst::Str { dst, string })
            }
            ExprKind::Builtin(var) => {
                self.declare_builtin(*var, e.ty, e.user);
                self.emit(span, |dst| Inst::LoadVar {
                    op: Op::Ldgs,
                    dst,
                    var: *var as u16,
                })
            }
            ExprKind::BuiltinArray(var, index) => {
                self.declare_builtin(*var, e.ty, e.user);
                let index = self.expr(index);
                // The ids of arrays are below 0x100.
                let var = *var as u16 as u8;
                self.emit(span, |dst| Inst::LoadArray {
                    op: Op::Ldga,
                    dst,
                    var,
                    index,
                })
            }
            ExprKind::Var(var) => self.read(&Target::Var(var), e.ty, span),
            ExprKind::Element(var, keys) => {
                let keys = self.keys(keys);
                self.read(&Target::Element(var, keys), e.ty, span)
            }
            ExprKind::Load { address, user } => {
                let addr = self.expr(address);
                let op = self.load_op(e.ty, *user);
                self.emit(span, |dst| Inst::Load { op, dst, addr })
            }
            ExprKind::LoadBits {
                address,
                bits,
                user,
            } => {
                let addr = self.expr(address);
                self.load_bits(addr, *bits, *user, span)
            }
            ExprKind::Retype(inner) | ExprKind::Translated { input: inner, .. } => self.expr(inner),
            ExprKind::Convert(inner) => {
                let value = self.expr(inner);
                self.convert(value, inner, e.ty, span)
            }
            ExprKind::Neg(inner) => {
                let value = self.expr(inner);
                let value = self.bin(Op::Sub, VReg::ZERO, value, span);
                self.wrap(value, e.ty, span)
            }
            ExprKind::BitNot(inner) => {
                let a = self.expr(inner);
                let value = self.emit(span, |dst| Inst::Un {
                    op: Op::Not,
                    dst,
                    a,
                });
                self.wrap(value, e.ty, span)
            }
            ExprKind::Arith(op, left, right) => {
                let (left, right) = (self.expr(left), self.expr(right));
                self.arith(*op, left, right, e.ty, span)
            }
            ExprKind::Not(_)
            | ExprKind::Compare { .. }
            | ExprKind::CompareStr(..)
            | ExprKind::Logic(..)
            | ExprKind::Cond(..) => {
                let dst = self.func.vreg();
                self.expr_into(e, dst);
                dst
            }
            ExprKind::Comma(first, second) => {
                self.expr(first);
                self.expr(second)
            }
            ExprKind::Assign(place, value) => {
                let value = self.exact(value);
                let target = self.target(place);
                self.write(&target, value, e.ty, span);
                value
            }
            ExprKind::Update {
                place,
                op,
                wide,
                value,
                post,
            } => {
                let target = self.target(place);
                let old = self.read(&target, e.ty, span);
                let right = self.expr(value);
                let new = self.arith(*op, old, right, *wide, span);
                let new = self.extend(new, e.ty, span);
                self.write(&target, new, e.ty, span);
                if *post {
                    old
                } else {
                    new
                }
            }
            ExprKind::Call(subr, args) => self.call(*subr, args, span),
            // Refused before any code is made.
            ExprKind::Valueless => VReg::ZERO,
        }
    }

    /// Leaves the value of `e` in `dst`.
    fn expr_into(&mut self, e: &Expr, dst: VReg) {
        let span = e.span;
        match &e.kind {
            ExprKind::Cond(condition, yes, no) => {
                let (otherwise, end) = (self.func.label(), self.func.label());
                self.branch(condition, false, otherwise);
                self.expr_into(yes, dst);
                let (op, label) = (Op::Ba, end);
                self.func.push(Inst::Branch { op, label }, span);
                self.func.push(Inst::Label(otherwise), span);
                self.expr_into(no, dst);
                self.func.push(Inst::Label(end), span);
            }
            ExprKind::Logic(BinaryOp::LogXor, left, right) => {
                let (a, b) = (self.truth(left), self.truth(right));
                let op = Op::Xor;
                self.func.push(Inst::Bin { op, dst, a, b }, span);
            }
            ExprKind::Not(_)
            | ExprKind::Compare { .. }
            | ExprKind::CompareStr(..)
            | ExprKind::Logic(..) => self.truth_into(e, dst),
            ExprKind::Retype(inner) => self.expr_into(inner, dst),
            _ => {
                let a = self.expr(e);
                self.copy(dst, a, span);
            }
        }
    }

    /// The value 0 or 1 of a condition.
    fn truth(&mut self, e: &Expr) -> VReg {
        let dst = self.func.vreg();
        match &e.kind {
            ExprKind::Logic(BinaryOp::LogXor, ..) => self.expr_into(e, dst),
            _ => self.truth_into(e, dst),
        }
        dst
    }

    fn truth_into(&mut self, e: &Expr, dst: VReg) {
        let (otherwise, end) = (self.func.label(), self.func.label());
        self.branch(e, false, otherwise);
        self.func.push(Inst::Const { dst, value: 1 }, e.span);
        let (op, label) = (Op::Ba, end);
        self.func.push(Inst::Branch { op, label }, e.span);
        self.func.push(Inst::Label(otherwise), e.span);
        self.func.push(Inst::Const { dst, value: 0 }, e.span);
        self.func.push(Inst::Label(end), e.span);
    }

    /// Branches to `label` if `e` is as true as `wanted`, else goes on.
    fn branch(&mut self, e: &Expr, wanted: bool, label: Label) {
        let span = e.span;
        match &e.kind {
            ExprKind::Compare {
                op,
                signed,
                left,
                right,
            } => {
                let (a, b) = (self.expr(left), self.expr(right));
                self.func.push(Inst::Compare { op: Op::Cmp, a, b }, span);
                let op = branch_on(*op, *signed, wanted);
                self.func.push(Inst::Branch { op, label }, span);
            }
            ExprKind::CompareStr(op, left, right) => {
                let (a, b) = (self.expr(left), self.expr(right));
                self.func.push(Inst::Compare { op: Op::Scmp, a, b }, span);
                let op = branch_on(*op, true, wanted);
                self.func.push(Inst::Branch { op, label }, span);
            }
            ExprKind::Logic(op @ (BinaryOp::LogAnd | BinaryOp::LogOr), left, right) => {
                // The left operand that decides alone: false for `&&`, true for `||`.
                let deciding = *op == BinaryOp::LogOr;
                if deciding == wanted {
                    self.branch(left, wanted, label);
                    self.branch(right, wanted, label);
                } else {
                    let end = self.func.label();
                    self.branch(left, deciding, end);
                    self.branch(right, wanted, label);
                    self.func.push(Inst::Label(end), span);
                }
            }
            ExprKind::Not(inner) => self.branch(inner, !wanted, label),
            _ => {
                let a = match &e.kind {
                    ExprKind::Logic(..) => self.truth(e),
                    _ => self.expr(e),
                };
                self.func.push(Inst::Test { a }, span);
                let op = if wanted { Op::Bne } else { Op::Be };
                self.func.push(Inst::Branch { op, label }, span);
            }
        }
    }

    /// A register that is 0 exactly if `e` is false: less work than the value 0 or 1.
    fn decision(&mut self, e: &Expr) -> VReg {
        let span = e.span;
        match &e.kind {
            ExprKind::Compare {
                op: BinaryOp::Ne,
                left,
                right,
                ..
            } => {
                let a = self.expr(left);
                match right.constant() {
                    Some(0) => a,
                    _ => {
                        let b = self.expr(right);
                        self.bin(Op::Sub, a, b, span)
                    }
                }
            }
            ExprKind::Compare { .. } | ExprKind::Logic(BinaryOp::LogAnd | BinaryOp::LogOr, ..) => {
                let (no, end) = (self.func.label(), self.func.label());
                let dst = self.func.vreg();
                self.decide(e, dst, no, end);
                self.func.push(Inst::Label(no), span);
                self.func.push(Inst::Const { dst, value: 0 }, span);
                self.func.push(Inst::Label(end), span);
                dst
            }
            _ => self.expr(e),
        }
    }

    /// Goes to `end` with what is not 0 in `dst` if `e` is true; else goes to `no`, to `end` with 0, or just on.
    fn decide(&mut self, e: &Expr, dst: VReg, no: Label, end: Label) {
        let span = e.span;
        let branch = |op, label| Inst::Branch { op, label };
        match &e.kind {
            ExprKind::Compare {
                op: BinaryOp::Eq,
                left,
                right,
                ..
            } if right.constant().is_some_and(|value| value != 0) => {
                // What equals a number other than 0 is true by itself.
                let b = self.expr(right);
                let (a, op) = (self.expr(left), Op::Cmp);
                self.copy(dst, a, span);
                self.func.push(Inst::Compare { op, a: dst, b }, span);
                self.func.push(branch(Op::Be, end), span);
            }
            ExprKind::Logic(BinaryOp::LogAnd, left, right) => {
                self.branch(left, false, no);
                self.decide(right, dst, no, end);
            }
            ExprKind::Logic(BinaryOp::LogOr, left, right) => {
                let second = self.func.label();
                self.branch(left, false, second);
                self.func.push(Inst::Const { dst, value: 1 }, span);
                self.func.push(branch(Op::Ba, end), span);
                self.func.push(Inst::Label(second), span);
                self.decide(right, dst, no, end);
            }
            ExprKind::Compare { op, .. } if *op != BinaryOp::Ne => {
                self.branch(e, false, no);
                self.func.push(Inst::Const { dst, value: 1 }, span);
                self.func.push(branch(Op::Ba, end), span);
            }
            _ => {
                match e.kind {
                    ExprKind::Compare { .. } => {
                        let a = self.decision(e);
                        self.copy(dst, a, span);
                    }
                    _ => self.expr_into(e, dst),
                }
                self.func.push(branch(Op::Ba, end), span);
            }
        }
    }

    fn copy(&mut self, dst: VReg, a: VReg, span: Span) {
        let op = Op::Mov;
        self.func.push(Inst::Un { op, dst, a }, span);
    }

    fn arith(&mut self, op: BinaryOp, a: VReg, b: VReg, ty: Ty, span: Span) -> VReg {
        let signed = matches!(self.shape(ty), Shape::Int { signed: true, .. });
        let op = match op {
            BinaryOp::Mul => Op::Mul,
            BinaryOp::Div if signed => Op::Sdiv,
            BinaryOp::Div => Op::Udiv,
            BinaryOp::Rem if signed => Op::Srem,
            BinaryOp::Rem => Op::Urem,
            BinaryOp::Add => Op::Add,
            BinaryOp::Sub => Op::Sub,
            BinaryOp::Shl => Op::Sll,
            BinaryOp::Shr if signed => Op::Sra,
            BinaryOp::Shr => Op::Srl,
            BinaryOp::And => Op::And,
            BinaryOp::Xor => Op::Xor,
            BinaryOp::Or => Op::Or,
            BinaryOp::Lt
            | BinaryOp::Le
            | BinaryOp::Gt
            | BinaryOp::Ge
            | BinaryOp::Eq
            | BinaryOp::Ne
            | BinaryOp::LogAnd
            | BinaryOp::LogXor
            | BinaryOp::LogOr => unreachable!("the typed tree has other nodes for conditions"),
        };
        let value = self.bin(op, a, b, span);
        // Of two extended operands these give an extended result.
        let narrow = matches!(
            op,
            Op::And | Op::Or | Op::Xor | Op::Udiv | Op::Urem | Op::Srl
        );
        if narrow {
            value
        } else {
            self.wrap(value, ty, span)
        }
    }

    /// The result of arithmetic in type `ty` as far as C says what it is.
    fn wrap(&mut self, value: VReg, ty: Ty, span: Span) -> VReg {
        match self.shape(ty) {
            Shape::Int { signed: false, .. } => self.extend(value, ty, span),
            _ => value,
        }
    }

    /// The value of `e` cut to its type.
    fn exact(&mut self, e: &Expr) -> VReg {
        let value = self.expr(e);
        match self.is_exact(e) {
            true => value,
            false => self.extend(value, e.ty, e.span),
        }
    }

    /// Whether the value of `e` is one of its type for certain.
    fn is_exact(&self, e: &Expr) -> bool {
        let Shape::Int { size, signed: true } = self.shape(e.ty) else {
            return true;
        };
        match &e.kind {
            _ if size >= 8 => true,
            ExprKind::Int(value) => {
                let unused = 64 - 8 * size as u32;
                *value == ((*value << unused) as i64 >> unused) as u64
            }
            ExprKind::Arith(op, a, b) => {
                let bits = matches!(op, BinaryOp::And | BinaryOp::Or | BinaryOp::Xor);
                let down = matches!(op, BinaryOp::Rem | BinaryOp::Shr);
                (bits && self.is_exact(b) || down) && self.is_exact(a)
            }
            ExprKind::Neg(_) => false,
            ExprKind::BitNot(inner) | ExprKind::Comma(_, inner) => self.is_exact(inner),
            ExprKind::Retype(inner) => self.is_integer(inner) && self.is_exact(inner),
            ExprKind::Convert(inner) => !self.fits(inner, e.ty) || self.is_exact(inner),
            ExprKind::Cond(_, a, b) => self.is_exact(a) && self.is_exact(b),
            _ => true,
        }
    }

    fn is_integer(&self, e: &Expr) -> bool {
        matches!(self.shape(e.ty), Shape::Int { .. })
    }

    /// Extends the low bits of `value` to 64 as type `ty` says; nothing where they are 64.
    fn extend(&mut self, value: VReg, ty: Ty, span: Span) -> VReg {
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
    fn convert(&mut self, value: VReg, from: &Expr, to: Ty, span: Span) -> VReg {
        match self.fits(from, to) && (self.is_exact(from) || self.is_wide(to)) {
            true => value,
            false => self.extend(value, to, span),
        }
    }

    fn is_wide(&self, ty: Ty) -> bool {
        matches!(self.shape(ty), Shape::Int { size: 8, .. })
    }

    /// Whether every value of the type of `from` is one of the type `to`, in the same register.
    fn fits(&self, from: &Expr, to: Ty) -> bool {
        match (self.shape(from.ty), self.shape(to)) {
            (Shape::Int { size: a, signed: x }, Shape::Int { size: b, signed: y }) => {
                a < b && (!x || y) || a == b && x == y || b == 8
            }
            (Shape::Pointer, Shape::Int { size, .. }) => size == 8,
            _ => true,
        }
    }

    pub(super) fn keys(&mut self, keys: &[Expr]) -> Vec<Key> {
        keys.iter()
            .map(|key| Key {
                value: self.exact(key),
                ty: key.ty,
                user: key.user,
                span: key.span,
            })
            .collect()
    }

    pub(super) fn push_all(&mut self, keys: &[Key]) {
        if let Some(first) = keys.first() {
            self.func.push(Inst::Flush, first.span);
        }
        for key in keys {
            let ty = self.dif_type(key.ty, key.user);
            let (op, size) = match self.shape(key.ty) {
                // The machine knows how long a string may be.
                Shape::Object { .. } if ty.kind == DIF_TYPE_STRING => (Op::Pushtr, VReg::ZERO),
                Shape::Object { size } => (Op::Pushtr, self.constant(size, key.span)),
                _ => (Op::Pushtv, VReg::ZERO),
            };
            self.func.push(
                Inst::Push {
                    op,
                    ty: ty.kind,
                    size,
                    value: key.value,
                },
                key.span,
            );
        }
    }

    fn call(&mut self, subr: Subr, args: &[Expr], span: Span) -> VReg {
        let args = self.keys(args);
        match (subr, args.as_slice()) {
            // DIF has an instruction for it.
            (Subr::Alloca, [size]) => {
                let size = size.value;
                self.emit(span, |dst| Inst::Alloc { dst, size })
            }
            (subr, []) => {
                self.func.push(Inst::Flush, span);
                self.emit(span, |dst| Inst::Call { dst, subr })
            }
            (subr, args) => {
                self.push_all(args);
                self.emit(span, |dst| Inst::Call { dst, subr })
            }
        }
    }
}

/// The branch that is taken where `left op right` holds, or does not hold.
fn branch_on(op: BinaryOp, signed: bool, holds: bool) -> Op {
    let op = match (op, holds) {
        (op, true) => op,
        (BinaryOp::Lt, false) => BinaryOp::Ge,
        (BinaryOp::Le, false) => BinaryOp::Gt,
        (BinaryOp::Gt, false) => BinaryOp::Le,
        (BinaryOp::Ge, false) => BinaryOp::Lt,
        (BinaryOp::Eq, false) => BinaryOp::Ne,
        (_, false) => BinaryOp::Eq,
    };
    match (op, signed) {
        (BinaryOp::Lt, true) => Op::Bl,
        (BinaryOp::Lt, false) => Op::Blu,
        (BinaryOp::Le, true) => Op::Ble,
        (BinaryOp::Le, false) => Op::Bleu,
        (BinaryOp::Gt, true) => Op::Bg,
        (BinaryOp::Gt, false) => Op::Bgu,
        (BinaryOp::Ge, true) => Op::Bge,
        (BinaryOp::Ge, false) => Op::Bgeu,
        (BinaryOp::Eq, _) => Op::Be,
        (_, _) => Op::Bne,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::Nowhere;
    use dtrace_uapi::disasm::Listing;
    use dtrace_uapi::var::Var;

    fn arg(var: Var) -> Box<Expr> {
        let span = Span::default();
        Box::new(Expr::new(ExprKind::Builtin(var), Ty::INT64_T, span))
    }

    fn compare(op: BinaryOp, var: Var, value: u64) -> Box<Expr> {
        let span = Span::default();
        let kind = ExprKind::Compare {
            op,
            signed: true,
            left: arg(var),
            right: Box::new(Expr::int(value, Ty::INT64_T, span)),
        };
        Box::new(Expr::new(kind, Ty::INT, span))
    }

    /// The operations of a predicate's code.
    fn operations(expr: &Expr) -> Vec<String> {
        let difo = predicate(expr, &Types::new(&Nowhere)).expect("it fits");
        let words: Vec<u32> = difo.text.iter().map(|i| i.0).collect();
        let listing = Listing {
            text: &words,
            ints: &difo.ints,
            strings: &difo.strings,
            vars: &difo.vars,
            rtype: difo.rtype,
        };
        let listing = listing.to_string();
        let lines = listing.lines().skip(1).take(words.len());
        lines
            .filter_map(|line| line.split_whitespace().nth(2).map(str::to_owned))
            .collect()
    }

    #[test]
    fn predicates_return_whatever_is_not_zero() {
        assert_eq!(operations(&arg(Var::Arg0)), ["ldgs", "ret"]);
        assert_eq!(
            operations(&compare(BinaryOp::Ne, Var::Arg0, 5)),
            ["ldgs", "setx", "sub", "ret"]
        );
        assert_eq!(
            operations(&compare(BinaryOp::Eq, Var::Arg0, 5)),
            ["setx", "ldgs", "cmp", "be", "mov", "ret"]
        );
    }

    #[test]
    fn operators_that_decide_early_branch_once() {
        let left = compare(BinaryOp::Lt, Var::Arg0, 5);
        let negated = Box::new(Expr::new(ExprKind::Not(left), Ty::INT, Span::default()));
        let kind = ExprKind::Logic(
            BinaryOp::LogAnd,
            compare(BinaryOp::Eq, Var::Arg0, 0),
            compare(BinaryOp::Eq, Var::Arg1, 5),
        );
        let both = Expr::new(kind, Ty::INT, Span::default());
        assert_eq!(
            operations(&both),
            ["ldgs", "cmp", "bne", "setx", "ldgs", "cmp", "be", "mov", "ret"]
        );
        let kind = ExprKind::Logic(BinaryOp::LogOr, negated, arg(Var::Arg1));
        let either = Expr::new(kind, Ty::INT, Span::default());
        assert_eq!(
            operations(&either),
            ["ldgs", "setx", "cmp", "bl", "setx", "ba", "ldgs", "ret"]
        );
    }
}
