// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Bounds checks for elements of arrays of known length.
//!
//! The DIF machine knows where the memory of the program's variables is, but not where one variable
//! ends and the next begins. An index into an array of the program is therefore compared with the
//! length before it is used, and an index outside of it is a fault. For an array in an element of
//! an associative array the fault is a bad address, as it is if there is no such element. An array
//! in kernel memory may be longer than its type says, so only a constant index is checked there.

use super::Sema;
use crate::diag::{Diagnostic, Result};
use crate::hir::{Expr, ExprKind, Place};
use crate::source::Span;
use crate::syntax::ast::BinaryOp;
use dtrace_types::{Kind, Ty};
use dtrace_uapi::subr::Subr;

impl Sema<'_, '_> {
    /// Returns the address of `base[index]`, where `base` is a pointer or an array and `index` an
    /// integer.
    pub(super) fn element(&mut self, base: Expr, index: Expr, span: Span) -> Result<Expr> {
        let types = &self.state.types;
        let Kind::Array(_, Some(count @ 1..)) = *types.base(base.ty) else {
            return self.binary(BinaryOp::Add, base, index, span);
        };
        let own = self.is_own(&base);
        let Some(constant) = index.constant() else {
            return match own {
                true => self.guarded(base, index, count, span),
                false => self.binary(BinaryOp::Add, base, index, span),
            };
        };
        if constant < u64::from(count) {
            return self.binary(BinaryOp::Add, base, index, span);
        }
        // The element that contains the array may not exist, which only the machine can find out.
        // Address 0 gives the same fault at run time.
        if let ExprKind::Element(..) = base.kind {
            let address = self.binary(BinaryOp::Add, base, Expr::int(0, Ty::INT, span), span)?;
            return Ok(Expr::int(0, address.ty, span));
        }
        let constant = constant as i64;
        let message = format!("index outside array bounds: {constant}, max is {count}");
        Err(Diagnostic::new("D_ARR_BOUNDS", span, message))
    }

    /// Whether the object `base` is a variable of the program or a stack, or lies in one.
    fn is_own(&self, base: &Expr) -> bool {
        match &base.kind {
            ExprKind::Var(_) | ExprKind::Element(..) => !self.state.types.fits_register(base.ty),
            ExprKind::Call(Subr::Stack | Subr::Ustack, _) => true,
            ExprKind::Retype(inner)
            | ExprKind::Arith(_, inner, _)
            | ExprKind::Comma(_, inner)
            | ExprKind::Assign(_, inner) => self.is_own(inner),
            ExprKind::Cond(_, then, otherwise) => self.is_own(then) || self.is_own(otherwise),
            _ => false,
        }
    }

    /// Returns the address of an element whose index is checked at run time.
    fn guarded(&mut self, base: Expr, index: Expr, count: u32, span: Span) -> Result<Expr> {
        let mut index = self.convert(index, Ty::INT64_T);
        let mut before = None;
        // The index is used twice below. Evaluate it once if evaluating it again would differ.
        if index.changes() {
            let name = format!("<index {}>", self.hidden);
            self.hidden += 1;
            let var = self.hidden_of_type(&name, Ty::INT64_T, span)?;
            let assign = ExprKind::Assign(Place::Var(var.clone()), Box::new(index));
            before = Some(Expr::new(assign, Ty::INT64_T, span));
            index = Expr::new(ExprKind::Var(var), Ty::INT64_T, span);
        }
        let inside = ExprKind::Compare {
            op: BinaryOp::Lt,
            // Compared as unsigned, a negative index is a large one.
            signed: false,
            left: Box::new(index.clone()),
            right: Box::new(Expr::int(count.into(), Ty::INT64_T, span)),
        };
        let outside = match base.kind {
            ExprKind::Element(..) => ExprKind::Int(0),
            _ => ExprKind::Call(Subr::Outside, vec![index.clone()]),
        };
        let address = self.binary(BinaryOp::Add, base, index, span)?;
        let (ty, user) = (address.ty, address.user);
        let kind = ExprKind::Cond(
            Box::new(Expr::new(inside, Ty::INT, span)),
            Box::new(address),
            Box::new(Expr::new(outside, ty, span)),
        );
        let checked = Expr {
            kind,
            ty,
            user,
            span,
        };
        Ok(match before {
            Some(before) => {
                let kind = ExprKind::Comma(Box::new(before), Box::new(checked));
                Expr {
                    kind,
                    ty,
                    user,
                    span,
                }
            }
            None => checked,
        })
    }
}
