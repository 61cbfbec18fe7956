// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Operators on types rather than values: `sizeof`, `offsetof`, and `stringof`, which gives a value
//! the type `string`.
//!
//! The operand of `sizeof` is typed, but no code is generated from it.

use super::Sema;
use crate::diag::{Diagnostic, Result};
use crate::hir::{Expr, ExprKind};
use crate::source::Span;
use crate::syntax::ast;
use dtrace_types::Ty;

impl Sema<'_, '_> {
    /// `sizeof (type)`
    pub(super) fn sizeof_type(&mut self, ty: &ast::TypeName, span: Span) -> Result<Expr> {
        let ty = self.type_name(ty)?;
        self.sizeof(ty, span)
    }

    /// `sizeof operand`
    pub(super) fn sizeof_value(&mut self, operand: &ast::Expr, span: Span) -> Result<Expr> {
        let operand = self.expression(operand)?;
        match &operand.kind {
            ExprKind::LoadBits { .. } => {
                let message = "cannot apply sizeof to a bit-field";
                Err(Diagnostic::new("D_SIZEOF_BITFIELD", span, message))
            }
            // A string constant has the size of its own text and NUL, like an array in C.
            ExprKind::Str(text) => Ok(Expr::int(text.len() as u64 + 1, Ty::SIZE_T, span)),
            _ => self.sizeof(operand.ty, span),
        }
    }

    fn sizeof(&mut self, ty: Ty, span: Span) -> Result<Expr> {
        let types = &self.state.types;
        match types.size(ty) {
            Some(size) if size > 0 || types.is_record(ty) => Ok(Expr::int(size, Ty::SIZE_T, span)),
            _ => Err(Diagnostic::new(
                "D_SIZEOF_TYPE",
                span,
                "cannot apply sizeof to an operand of unknown size",
            )
            .note(format!("its type is \"{}\"", self.state.types.name(ty)))),
        }
    }

    /// `offsetof (type, member)`
    pub(super) fn offsetof(
        &mut self,
        ty: &ast::TypeName,
        member: &str,
        span: Span,
    ) -> Result<Expr> {
        let record = self.type_name(ty)?;
        let types = &self.state.types;
        if !types.is_record(record) || types.size(record).is_none() {
            return Err(Diagnostic::new(
                "D_OFFSETOF_TYPE",
                ty.span,
                "offsetof operand must be a struct or union type",
            ));
        }
        let path = self.path(record, member, span).map_err(|mut error| {
            error.tag = "D_UNKNOWN";
            error.message =
                format!("failed to determine offset of {member}: Member name not found");
            error
        })?;
        if path.bits != 0 {
            return Err(Diagnostic::new(
                "D_OFFSETOF_BITFIELD",
                span,
                format!("cannot take offset of a bit-field: {member}"),
            ));
        }
        Ok(Expr::int(path.bit_offset / 8, Ty::SIZE_T, span))
    }

    /// `stringof operand`
    pub(super) fn stringof(&mut self, operand: &ast::Expr, span: Span) -> Result<Expr> {
        let mut operand = self.operand(operand)?;
        let types = &self.state.types;
        let is_int = types.int(operand.ty).is_some();
        // In a probe of a process, a number is an address of that process.
        operand.user |= is_int && self.probe.is_of_process();
        if !is_int && !types.is_pointer(operand.ty) && !types.is_string_like(operand.ty) {
            return Err(Diagnostic::new(
                "D_STRINGOF_TYPE",
                span,
                format!(
                    "cannot apply stringof to a value of type {}",
                    types.name(operand.ty)
                ),
            ));
        }
        Ok(self.string_value(operand).retype(Ty::STRING))
    }
}
