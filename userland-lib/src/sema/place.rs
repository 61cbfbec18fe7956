// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! What can be assigned to.
//!
//! An assignment to a name that means nothing yet makes a variable, of the type of the value; an assignment to an
//! element of such a name makes an associative array, whose keys have the types of those given. All else must
//! exist already. Memory can be a target where its address is computed from what the program owns; whether it does
//! own it is for the machine to find out when it stores.

use super::access::variable_name;
use super::hir::{ExprKind, Place, VarScope};
use super::{builtin, Sema};
use crate::diag::{Diagnostic, Result};
use crate::source::Span;
use crate::syntax::ast;
use crate::types::Ty;

impl Sema<'_, '_> {
    /// What `target` names, as something to be assigned to by `op`. A variable that does not exist yet comes into
    /// being with the type `infer`.
    pub(super) fn place(
        &mut self,
        target: &ast::Expr,
        op: &str,
        infer: Option<Ty>,
    ) -> Result<(Place, Ty)> {
        let span = target.span;
        if let Some((scope, name)) = variable_name(target) {
            if let Some(place) = self.variable_place(scope, name, op, infer, span)? {
                return Ok(place);
            }
        }
        if let ast::ExprKind::Index(base, args) = &target.kind {
            if let Some((scope, name)) = variable_name(base) {
                if let Some(place) = self.element_place(scope, name, args, infer, span)? {
                    return Ok(place);
                }
            }
        }
        let refuse = |message: String| Err(Diagnostic::new("D_OP_LVAL", span, message));
        let value = self.expression(target)?;
        let value = self.typed(value)?;
        let ty = value.ty;
        if self.state.types.is_const(ty) {
            return refuse(format!("operator {op} cannot modify a const object"));
        }
        match value.kind {
            ExprKind::Load {
                address,
                user: false,
            } => Ok((
                Place::Memory {
                    address,
                    bits: None,
                },
                ty,
            )),
            ExprKind::LoadBits {
                address,
                bits,
                user: false,
            } => Ok((
                Place::Memory {
                    address,
                    bits: Some(bits),
                },
                ty,
            )),
            ExprKind::Load { .. } | ExprKind::LoadBits { .. } => refuse(format!(
                "operator {op} cannot modify user memory: use copyout( )"
            )),
            // An object within something: its address is known.
            ExprKind::Retype(address) if !self.state.types.is_scalar(ty) && !value.user => Ok((
                Place::Memory {
                    address,
                    bits: None,
                },
                ty,
            )),
            _ => refuse(format!(
                "operator {op} requires modifiable lvalue as an operand"
            )),
        }
    }

    fn variable_place(
        &mut self,
        scope: VarScope,
        name: &str,
        op: &str,
        infer: Option<Ty>,
        span: Span,
    ) -> Result<Option<(Place, Ty)>> {
        if let Some(variable) = self.state.variables.find(scope, name) {
            if variable.place.keyed {
                return Err(self.needs_keys(name, span));
            }
            let place = variable.place.clone();
            if self.state.types.is_const(place.ty) {
                return Err(self.not_writable(op, span));
            }
            let ty = place.ty;
            return Ok(Some((Place::Var(place), ty)));
        }
        let taken = scope == VarScope::Global
            && (self.state.variables.global(name).is_some()
                || builtin::find(name).is_some()
                || self.bindings.iter().any(|(bound, _)| bound == name));
        if taken {
            return Err(self.not_writable(op, span));
        }
        let Some(ty) = infer else {
            return Ok(None);
        };
        let variable = self.add_variable(scope, name, ty, None, span)?;
        Ok(Some((Place::Var(variable.place), ty)))
    }

    fn not_writable(&self, op: &str, span: Span) -> Box<Diagnostic> {
        Diagnostic::new(
            "D_OP_WRITE",
            span,
            format!("operator {op} can only be applied to a writable variable"),
        )
    }

    /// An element of an associative array, which may come into being; `None` where the name is no such array.
    fn element_place(
        &mut self,
        scope: VarScope,
        name: &str,
        args: &[ast::Expr],
        infer: Option<Ty>,
        span: Span,
    ) -> Result<Option<(Place, Ty)>> {
        let known = self.state.variables.find(scope, name).cloned();
        let variable = match (known, infer) {
            (Some(variable), _) if variable.place.keyed => variable,
            (Some(_), _) => return Ok(None),
            (None, _)
                if scope == VarScope::Global
                    && (self.state.variables.global(name).is_some()
                        || builtin::find(name).is_some()) =>
            {
                return match builtin::find(name).is_some_and(builtin::is_array) {
                    true => Err(self.not_writable("=", span)),
                    false => Ok(None),
                }
            }
            (None, Some(ty)) => {
                if scope == VarScope::Clause {
                    return Err(Diagnostic::new(
                        "D_ARR_LOCAL",
                        span,
                        format!("cannot declare clause-local associative array this->{name}"),
                    ));
                }
                let mut keys = Vec::with_capacity(args.len());
                for arg in args {
                    let key = self.expression(arg)?;
                    let ty = match self.state.types.is_string_like(key.ty) {
                        true => Ty::STRING,
                        false => key.ty,
                    };
                    keys.push(ty);
                }
                self.add_variable(scope, name, ty, Some(keys), span)?
            }
            (None, None) => return Ok(None),
        };
        let keys = self.keys(&variable, args, span)?;
        let ty = variable.place.ty;
        Ok(Some((Place::Element(variable.place, keys), ty)))
    }
}
