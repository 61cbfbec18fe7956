// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Tracks which pointers point to scratch memory.
//!
//! Memory from `alloca()` lives until the clause ends, and is all that `bcopy()` and `copyinto()`
//! may write to. Whether a pointer points there is followed through expressions and variables as
//! far as the program shows it. A variable that has held one kind of pointer may not hold the
//! other, because that has been a mistake in every program that did it. If nothing is known about a
//! pointer, the DIF machine decides: it faults on a store to anything else.

use super::Sema;
use crate::diag::{Diagnostic, Result};
use crate::hir::{Expr, ExprKind, Place, VarRef};
use crate::source::Span;
use crate::syntax::ast::BinaryOp;
use dtrace_uapi::subr::Subr;

/// Where a pointer points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// To memory from `alloca()`.
    Scratch,
    /// To anything else.
    Elsewhere,
    /// To either, depending on a condition.
    Mixed,
}

impl Sema<'_, '_> {
    /// Returns where a value points; `None` if that is not known. NULL counts as unknown, because
    /// it may be assigned to any pointer.
    pub(super) fn origin(&self, value: &Expr) -> Option<Origin> {
        match &value.kind {
            ExprKind::Call(Subr::Alloca, _) => Some(Origin::Scratch),
            ExprKind::Str(_) => Some(Origin::Elsewhere),
            ExprKind::Int(address) if *address != 0 => Some(Origin::Elsewhere),
            ExprKind::Var(var) | ExprKind::Element(var, _) => self.variable_origin(var),
            ExprKind::Retype(inner) | ExprKind::Comma(_, inner) | ExprKind::Assign(_, inner) => {
                self.origin(inner)
            }
            ExprKind::Arith(BinaryOp::Add | BinaryOp::Sub, base, _) => self.origin(base),
            ExprKind::Cond(_, then, otherwise) => {
                match (self.origin(then), self.origin(otherwise)) {
                    (Some(then), Some(otherwise)) if then != otherwise => Some(Origin::Mixed),
                    (then, otherwise) => then.or(otherwise),
                }
            }
            _ => None,
        }
    }

    /// Whether a value is the text of a string variable, which is the variable's own copy, whatever
    /// it was made from.
    fn is_text(&self, value: &Expr) -> bool {
        match &value.kind {
            ExprKind::Var(_) | ExprKind::Element(..) => self.state.types.is_string(value.ty),
            ExprKind::Retype(inner) => self.is_text(inner),
            _ => false,
        }
    }

    fn variable_origin(&self, var: &VarRef) -> Option<Origin> {
        self.state.variables.find(var.scope, &var.name)?.origin
    }

    /// Notes where a variable points after the assignment of `value`. Fails if that contradicts
    /// what is known of it.
    pub(super) fn note_origin(&mut self, place: &Place, value: &Expr, span: Span) -> Result<()> {
        let (Place::Var(var) | Place::Element(var, _)) = place else {
            return Ok(());
        };
        if !self.state.types.is_pointer(var.ty) {
            return Ok(());
        }
        let Some(new) = self.origin(value) else {
            return Ok(());
        };
        if new == Origin::Mixed {
            let message = "ternary conditional with alloca and non-alloca branches cannot be \
                           assigned to a variable";
            return Err(Diagnostic::new("D_ALLOCA_INCOMPAT", span, message));
        }
        match self.variable_origin(var) {
            Some(known) if known != new => Err(Diagnostic::new(
                "D_ALLOCA_INCOMPAT",
                span,
                format!(
                    "{}: cannot reuse the same identifier for both alloca and non-alloca allocations",
                    var.name
                ),
            )),
            _ => {
                self.state.variables.set_origin(var, new);
                Ok(())
            }
        }
    }

    /// Fails if an argument that `subr` writes to certainly is not scratch memory, or if a size
    /// exceeds all scratch memory.
    pub(super) fn check_memory(&self, subr: Subr, args: &[Expr], span: Span) -> Result<()> {
        let (target, size) = match (subr, args) {
            (Subr::Copyinto, [_, size, target]) => (Some((2, target)), Some(size)),
            (Subr::Bcopy, [_, target, _]) => (Some((1, target)), None),
            (Subr::Alloca, [size]) | (Subr::Copyin, [_, size]) => (None, Some(size)),
            _ => return Ok(()),
        };
        if let Some((index, target)) = target {
            let pointer = match self.origin(target) {
                Some(Origin::Elsewhere) => true,
                _ => target.constant() == Some(0),
            };
            if pointer || self.is_text(target) {
                let (wanted, given) = ("alloca pointer", "non-alloca pointer");
                return Err(super::call::incompatible(
                    subr.name(),
                    index,
                    wanted,
                    given,
                    target.span,
                ));
            }
        }
        let size = size.and_then(Expr::constant);
        match (size, self.settings.scratchsize) {
            (Some(size), Some(limit)) if size > limit => Err(Diagnostic::new(
                "D_ALLOCA_SIZE",
                span,
                format!(
                    "{}({size}) size larger than scratchsize {limit}",
                    subr.name()
                ),
            )),
            _ => Ok(()),
        }
    }
}
