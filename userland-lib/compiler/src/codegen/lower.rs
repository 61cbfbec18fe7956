// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Lowers the typed tree to three-address code.
//!
//! Every expression leaves its value in a register of its own, in the representation of the typed
//! tree: an integer extended to 64 bits according to its type (see `width`), or the address of an
//! object. Conditions become values only where the value is used (see `condition`).
//!
//! Keys and arguments are passed on one tuple stack, which nested expressions need as well.
//! Therefore all of them are computed first; then the stack is emptied and they are pushed.

use super::asm::{assemble, AsmError};
use super::ir::{Func, Inst, VReg};
use super::place::Target;
use crate::hir::{Expr, ExprKind};
use crate::program::Difo;
use crate::source::Span;
use crate::syntax::ast::BinaryOp;
use dtrace_types::{Kind, Ty, Types};
use dtrace_uapi::dif::Op;
use dtrace_uapi::subr::Subr;
use dtrace_uapi::types::{DifType, DIF_TF_BYREF, DIF_TF_BYUREF, DIF_TYPE_STRING};

/// Generates code that returns the value of `expr`.
pub fn value(expr: &Expr, types: &Types<'_>) -> Result<Difo, AsmError> {
    let mut lowering = Lowering::new(types);
    let src = lowering.expr(expr);
    let src = lowering.recordable(src, expr);
    let rtype = lowering.dif_type(expr.ty, expr.user);
    lowering.finish(src, expr.span, rtype)
}

/// Generates the code of a predicate: its result is 0 if and only if `expr` is false.
pub fn predicate(expr: &Expr, types: &Types<'_>) -> Result<Difo, AsmError> {
    let mut lowering = Lowering::new(types);
    let src = lowering.decision(expr);
    let rtype = lowering.dif_type(Ty::INT64_T, false);
    lowering.finish(src, expr.span, rtype)
}

/// Generates code that evaluates `expr` for its side effects and returns nothing.
pub fn effect(expr: &Expr, types: &Types<'_>) -> Result<Difo, AsmError> {
    let mut lowering = Lowering::new(types);
    lowering.expr(expr);
    lowering.finish(VReg::ZERO, expr.span, DifType::default())
}

pub(super) struct Lowering<'a> {
    pub(super) func: Func,
    pub(super) types: &'a Types<'a>,
}

/// The representation of a type's values in a register.
pub(super) enum Shape {
    /// An integer of `size` bytes.
    Int { size: u64, signed: bool },
    /// The bits of a floating-point number of `size` bytes, 4 or 8.
    Float { size: u64 },
    /// An address, or another value of 64 bits, that takes `size` bytes in memory.
    Pointer { size: u64 },
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
            Kind::Float { size, .. } if *size <= 8 => Shape::Float {
                size: u64::from(*size),
            },
            Kind::String | Kind::Record(_) | Kind::Array(..) | Kind::Float { .. } => {
                Shape::Object {
                    size: self.types.size(ty).unwrap_or(0),
                }
            }
            _ => Shape::Pointer {
                size: self.types.size(ty).unwrap_or(8),
            },
        }
    }

    /// Returns DIF's form of the type. `user` says that an object of it is in user space.
    pub(super) fn dif_type(&self, ty: Ty, user: bool) -> DifType {
        let mut dif = self.types.dif_type(ty);
        if user && dif.flags & DIF_TF_BYREF != 0 {
            dif.flags = DIF_TF_BYUREF;
        }
        dif
    }

    /// Appends the instruction that `inst` returns for a new register, and returns the register.
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
            ExprKind::Float(value) => self.float_constant(*value, e.ty, span),
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
            ExprKind::Var(var) => self.read(&Target::Var(var, Vec::new()), e.ty, span),
            ExprKind::Element(var, keys) => {
                let keys = self.keys(keys);
                self.read(&Target::Var(var, keys), e.ty, span)
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
                let mut inner = inner;
                while let ExprKind::Comma(first, last) = &inner.kind {
                    self.expr(first);
                    inner = last;
                }
                if self.is_float(inner.ty) || self.is_float(e.ty) {
                    let inner = self.computed(inner);
                    let value = self.exact(inner);
                    return self.convert_float(value, inner.ty, e.ty, span);
                }
                let value = self.expr(inner);
                self.convert(value, inner, e.ty, span)
            }
            ExprKind::Neg(inner) if self.is_float(e.ty) => {
                let value = self.expr(inner);
                self.negate_float(value, e.ty, span)
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
            ExprKind::CompareFloat(op, left, right) => self.compare_float(*op, left, right, span),
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
            ExprKind::While(condition, body) => self.repeat(condition, body, span),
            ExprKind::Assign(place, value) => {
                let raw = self.expr(value);
                let target = self.target(place);
                match target {
                    // A store to memory takes only the low bits, so only the value of the
                    // expression needs truncating. If that is unused, the code is optimized away.
                    Target::Memory(..) => {
                        self.write(&target, raw, e.ty, span);
                        self.cut(raw, value)
                    }
                    _ => {
                        let exact = self.cut(raw, value);
                        self.write(&target, exact, e.ty, span);
                        exact
                    }
                }
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
                let (old, new, exact) = match self.is_float(*wide) {
                    true => self.update_float(*op, (old, e.ty), (right, *wide), span),
                    false => {
                        let new = self.arith(*op, old, right, *wide, span);
                        (old, new, self.extend(new, e.ty, span))
                    }
                };
                let stored = match target {
                    Target::Memory(..) => new,
                    _ => exact,
                };
                self.write(&target, stored, e.ty, span);
                match post {
                    true => old,
                    false => exact,
                }
            }
            ExprKind::Call(subr, args) => self.call(*subr, args, span),
            // Rejected before code generation.
            ExprKind::Valueless => VReg::ZERO,
        }
    }

    /// Evaluates `body` while the condition holds. The tuple stack is empty at the start of every
    /// iteration.
    fn repeat(&mut self, condition: &Expr, body: &Expr, span: Span) -> VReg {
        let (head, end) = (self.func.label(), self.func.label());
        self.func.push(Inst::Flush, span);
        self.func.push(Inst::Label(head), span);
        self.branch(condition, false, end);
        self.expr(body);
        self.func.push(Inst::Flush, span);
        self.func.push(Inst::Loop { head }, span);
        self.func.push(Inst::Label(end), span);
        VReg::ZERO
    }

    /// Stores the value of `e` in `dst`.
    pub(super) fn expr_into(&mut self, e: &Expr, dst: VReg) {
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

    pub(super) fn copy(&mut self, dst: VReg, a: VReg, span: Span) {
        let op = Op::Mov;
        self.func.push(Inst::Un { op, dst, a }, span);
    }

    fn arith(&mut self, op: BinaryOp, a: VReg, b: VReg, ty: Ty, span: Span) -> VReg {
        if self.is_float(ty) {
            return self.float_arith(op, a, b, ty, span);
        }
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
        // With extended operands these operations give an extended result.
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

    pub(super) fn keys(&mut self, keys: &[Expr]) -> Vec<Key> {
        keys.iter()
            .map(|key| Key {
                value: {
                    let value = self.exact(key);
                    self.recordable(value, key)
                },
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
                // The kernel knows the maximum length of a string.
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
