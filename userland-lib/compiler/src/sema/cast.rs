// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Casts: which ones are valid, and how they convert the value.
//!
//! Numbers convert to numbers of any type. Integers and addresses convert to pointers and strings,
//! and addresses to integers. A cast to a number or a pointer makes a value: nothing can be
//! assigned to it.

use super::Sema;
use crate::diag::{Diagnostic, Result};
use crate::hir::{Expr, ExprKind};
use crate::source::Span;
use crate::syntax::ast;
use dtrace_types::{Kind, Ty};

impl Sema<'_, '_> {
    fn invalid_cast(&self, from: &str, to: Ty, span: Span) -> Box<Diagnostic> {
        let to = self.state.types.name(to);
        let message = format!("invalid cast expression: \"{from}\" to \"{to}\"");
        Diagnostic::new("D_CAST_INVAL", span, message)
    }

    /// Types `(ty)written`.
    pub(super) fn written_cast(
        &mut self,
        ty: &ast::TypeName,
        written: &ast::Expr,
        span: Span,
    ) -> Result<Expr> {
        let ty = self.type_name(ty)?;
        let operand = self.expression(written)?;
        if let ast::ExprKind::Xlate(..) = written.kind {
            self.cast_translated(ty, &operand, span)?;
        }
        self.cast(ty, operand, span)
    }

    /// Fails if translated data is cast to an integer type: it has no address.
    fn cast_translated(&self, to: Ty, operand: &Expr, span: Span) -> Result<()> {
        let types = &self.state.types;
        match (types.int(to), types.is_record(operand.ty)) {
            (Some(_), true) => Err(self.invalid_cast("translated data", to, span)),
            (Some(_), false) => Err(self.invalid_cast("pointer to translated data", to, span)),
            (None, _) => Ok(()),
        }
    }

    fn cast(&mut self, ty: Ty, operand: Expr, span: Span) -> Result<Expr> {
        let types = &self.state.types;
        let from = operand.ty;
        // A kernel symbol of unknown type is read as a value of the type that the cast names.
        if types.is_dynamic(from) && types.size(ty).is_some() {
            return self.object_at(operand, ty, false, span);
        }
        if matches!(types.base(ty), Kind::Void) {
            return Ok(operand.retype(ty));
        }
        if self.computes_in_float(ty, from) {
            return Ok(self.convert_float(operand, ty));
        }
        if types.int(ty).is_some() && types.int(from).is_some() {
            return Ok(match (self.known(&operand), self.state.types.int(ty)) {
                (Some(value), Some(shape)) => Expr::int(shape.normalize(value), ty, span),
                // Converts even to the same type, because a computed value may have more bits than
                // its type.
                _ => Expr::new(ExprKind::Convert(Box::new(operand)), ty, span),
            });
        }
        let address =
            types.is_pointer(from) || matches!(types.base(from), Kind::Array(..) | Kind::String);
        if types.int(ty).is_some() && address {
            let operand = operand.retype(Ty::UINTPTR_T);
            return Ok(self.convert(operand, ty));
        }
        let text =
            types.int(from).is_some() || types.is_pointer(from) || types.is_string_like(from);
        let fits = (types.is_pointer(ty) && (types.int(from).is_some() || address))
            || (types.is_string(ty) && text)
            || types.compatible(ty, from);
        if !fits {
            return Err(self.invalid_cast(&types.name(from), ty, span));
        }
        if types.is_string(ty) {
            return Ok(self.string_value(operand).retype(ty));
        }
        Ok(operand.retype(ty))
    }
}
