// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Reads and writes of places: variables, elements of associative arrays, memory and its
//! bit-fields.
//!
//! A place that is both read and written (`x[f()]++`) is computed once, into a [`Target`]; only the
//! tuple stack must be filled again for each access.

use super::ir::{Inst, VReg, VarDecl};
use super::lower::{Key, Lowering, Shape};
use crate::hir::{Bits, Place, VarRef, VarScope};
use crate::source::Span;
use dtrace_types::Ty;
use dtrace_uapi::dif::Op;
use dtrace_uapi::subr::Subr;
use dtrace_uapi::types::{
    DifType, DIFV_KIND_ARRAY, DIFV_KIND_SCALAR, DIFV_SCOPE_GLOBAL, DIFV_SCOPE_LOCAL,
    DIFV_SCOPE_THREAD, DIF_TYPE_CTF, DIF_TYPE_STRING,
};
use dtrace_uapi::var::{Var, OTHER_MIN};

/// A place whose address or keys have been computed.
pub(super) enum Target<'a> {
    /// A variable, or with keys one of its elements.
    Var(&'a VarRef, Vec<Key>),
    Memory(VReg, Option<Bits>),
}

impl Lowering<'_> {
    pub(super) fn load_op(&self, ty: Ty, user: bool) -> Op {
        let (size, signed) = match self.shape(ty) {
            Shape::Int { size, signed } => (size, signed),
            Shape::Float { size } | Shape::Pointer { size } => (size, false),
            Shape::Object { .. } => (8, false),
        };
        load_op(size, signed, user)
    }

    pub(super) fn load_bits(&mut self, addr: VReg, bits: Bits, user: bool, span: Span) -> VReg {
        let op = load_op(bits.word.into(), false, user);
        let word = self.emit(span, |dst| Inst::Load { op, dst, addr });
        let left = 64 - u64::from(bits.shift) - u64::from(bits.width);
        self.shift_out(word, left, 64 - u64::from(bits.width), bits.signed, span)
    }

    /// Computes the address or the keys of a place.
    pub(super) fn target<'p>(&mut self, place: &'p Place) -> Target<'p> {
        match place {
            Place::Var(var) => Target::Var(var, Vec::new()),
            Place::Element(var, keys) => Target::Var(var, self.keys(keys)),
            Place::Memory { address, bits } => {
                let address = match self.expr(address) {
                    // DIF encodes a store's address in the destination register, which %r0 cannot
                    // be.
                    a @ VReg::ZERO => self.emit(address.span, |dst| Inst::Un {
                        op: Op::Mov,
                        dst,
                        a,
                    }),
                    address => address,
                };
                Target::Memory(address, *bits)
            }
        }
    }

    pub(super) fn read(&mut self, target: &Target<'_>, ty: Ty, span: Span) -> VReg {
        match target {
            Target::Var(var, keys) => {
                let (op, _) = self.variable(var, keys);
                let var = var.id;
                self.emit(span, |dst| Inst::LoadVar { op, dst, var })
            }
            Target::Memory(addr, Some(bits)) => self.load_bits(*addr, *bits, false, span),
            Target::Memory(addr, None) if matches!(self.shape(ty), Shape::Object { .. }) => *addr,
            Target::Memory(addr, None) => {
                let op = self.load_op(ty, false);
                self.emit(span, |dst| Inst::Load {
                    op,
                    dst,
                    addr: *addr,
                })
            }
        }
    }

    pub(super) fn write(&mut self, target: &Target<'_>, src: VReg, ty: Ty, span: Span) {
        match target {
            Target::Var(var, keys) => {
                let (_, op) = self.variable(var, keys);
                let var = var.id;
                self.func.push(Inst::StoreVar { op, src, var }, span);
            }
            Target::Memory(addr, Some(bits)) => self.store_bits(*addr, src, *bits, span),
            Target::Memory(addr, None) => match self.shape(ty) {
                Shape::Object { size } => {
                    let size = match self.types.is_string(ty) {
                        true => self.text_size(src, span),
                        false => self.constant(size, span),
                    };
                    self.func.push(
                        Inst::Copy {
                            src,
                            size,
                            dst: *addr,
                        },
                        span,
                    );
                }
                Shape::Int { size, .. } | Shape::Float { size } | Shape::Pointer { size } => {
                    self.func.push(
                        Inst::Store {
                            op: store_op(size),
                            src,
                            addr: *addr,
                        },
                        span,
                    );
                }
            },
        }
    }

    /// Prepares access to a variable: declares it and pushes its keys. Returns the operations that
    /// load it and store to it.
    fn variable(&mut self, var: &VarRef, keys: &[Key]) -> (Op, Op) {
        self.declare(var);
        if !keys.is_empty() {
            self.push_all(keys);
        }
        match (var.scope, keys.is_empty()) {
            (VarScope::Global, true) => (Op::Ldgs, Op::Stgs),
            (VarScope::Thread, true) => (Op::Ldts, Op::Stts),
            (VarScope::Clause, true) => (Op::Ldls, Op::Stls),
            (VarScope::Thread, false) => (Op::Ldtaa, Op::Sttaa),
            (_, false) => (Op::Ldgaa, Op::Stgaa),
        }
    }

    /// Returns the size of the text at `src` including its NUL. Memory behind the NUL need not be
    /// readable.
    fn text_size(&mut self, src: VReg, span: Span) -> VReg {
        self.func.push(Inst::Flush, span);
        self.func.push(
            Inst::Push {
                op: Op::Pushtr,
                ty: DIF_TYPE_STRING,
                size: VReg::ZERO,
                value: src,
            },
            span,
        );
        let subr = Subr::Strlen;
        let length = self.emit(span, |dst| Inst::Call { dst, subr });
        let one = self.constant(1, span);
        self.bin(Op::Add, length, one, span)
    }

    /// Replaces the bits within their word.
    fn store_bits(&mut self, addr: VReg, value: VReg, bits: Bits, span: Span) {
        let ones = u64::MAX >> (64 - u32::from(bits.width).min(64));
        let keep = self.constant(!(ones << bits.shift), span);
        let ones = self.constant(ones, span);
        let op = load_op(bits.word.into(), false, false);
        let word = self.emit(span, |dst| Inst::Load { op, dst, addr });
        let word = self.bin(Op::And, word, keep, span);
        let value = self.bin(Op::And, value, ones, span);
        let shift = self.constant(bits.shift.into(), span);
        let value = self.bin(Op::Sll, value, shift, span);
        let src = self.bin(Op::Or, word, value, span);
        self.func.push(
            Inst::Store {
                op: store_op(bits.word.into()),
                src,
                addr,
            },
            span,
        );
    }

    pub(super) fn declare(&mut self, var: &VarRef) {
        let scope = match var.scope {
            VarScope::Global => DIFV_SCOPE_GLOBAL,
            VarScope::Thread => DIFV_SCOPE_THREAD,
            VarScope::Clause => DIFV_SCOPE_LOCAL,
        };
        let kind = if var.keyed {
            DIFV_KIND_ARRAY
        } else {
            DIFV_KIND_SCALAR
        };
        let ty = self.dif_type(var.ty, false);
        self.func.variable(VarDecl {
            name: var.name.clone(),
            id: var.id,
            kind,
            scope,
            ty,
        });
    }

    pub(super) fn declare_builtin(&mut self, var: Var, ty: Ty, user: bool) {
        let id = var as u16;
        let kind = if id < OTHER_MIN {
            DIFV_KIND_ARRAY
        } else {
            DIFV_KIND_SCALAR
        };
        // A built-in variable is 8 bytes, whatever type the program sees, unless it is a string.
        let ty = match self.dif_type(ty, user) {
            ty if ty.kind == DIF_TYPE_STRING => ty,
            ty => DifType {
                kind: DIF_TYPE_CTF,
                ckind: ty.ckind,
                flags: 0,
                pad: 0,
                size: 8,
            },
        };
        self.func.variable(VarDecl {
            name: var.name().into(),
            id,
            kind,
            scope: DIFV_SCOPE_GLOBAL,
            ty,
        });
    }
}

fn load_op(size: u64, signed: bool, user: bool) -> Op {
    match (size, signed, user) {
        (1, true, false) => Op::Ldsb,
        (2, true, false) => Op::Ldsh,
        (4, true, false) => Op::Ldsw,
        (1, false, false) => Op::Ldub,
        (2, false, false) => Op::Lduh,
        (4, false, false) => Op::Lduw,
        (_, _, false) => Op::Ldx,
        (1, true, true) => Op::Uldsb,
        (2, true, true) => Op::Uldsh,
        (4, true, true) => Op::Uldsw,
        (1, false, true) => Op::Uldub,
        (2, false, true) => Op::Ulduh,
        (4, false, true) => Op::Ulduw,
        (_, _, true) => Op::Uldx,
    }
}

fn store_op(size: u64) -> Op {
    match size {
        1 => Op::Stb,
        2 => Op::Sth,
        4 => Op::Stw,
        _ => Op::Stx,
    }
}
