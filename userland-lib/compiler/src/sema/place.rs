// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Targets of assignments.
//!
//! An assignment to an unknown name creates a variable of the type of the value. An assignment to
//! an element of an unknown name creates an associative array, whose keys have the types of those
//! given. Integers have 64 bits there ([`super::inferred`]). All other targets must exist already.
//! Kernel memory is accepted as a target; the DIF machine checks at each store whether the program
//! owns it. A thread-local structure or array, or one in an associative array, is created by the
//! first assignment to a part of it.

use super::access::variable_name;
use super::{builtin, Sema};
use crate::diag::{Diagnostic, Result};
use crate::hir::{Expr, ExprKind, Place, VarScope};
use crate::source::Span;
use crate::syntax::ast;
use dtrace_types::Ty;
use dtrace_uapi::subr::Subr;

impl Sema<'_, '_> {
    /// Returns what `target` names as the target of the operator `op`. A variable that does not
    /// exist yet is created with the type `infer`.
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
        let value = self.expression(target)?;
        let value = self.typed(value)?;
        self.place_of(value, op, span)
    }

    /// Returns the assignment of `value` to `place`, which is of type `ty`.
    pub(super) fn store(&mut self, place: Place, value: Expr, ty: Ty, span: Span) -> Result<Expr> {
        // A store to memory copies the whole size of a string, and only a variable is sure to have
        // that many bytes. So the value goes through a hidden variable.
        let value = match (&place, self.state.types.is_string(ty)) {
            (Place::Memory { .. }, true) => {
                let text = self.hidden_of_type("<text>", Ty::STRING, span)?;
                let read = Expr::new(ExprKind::Var(text.clone()), Ty::STRING, span);
                let assign = ExprKind::Assign(Place::Var(text), Box::new(value));
                let assign = Expr::new(assign, Ty::STRING, span);
                Expr::new(
                    ExprKind::Comma(Box::new(assign), Box::new(read)),
                    Ty::STRING,
                    span,
                )
            }
            _ => value,
        };
        let assign = ExprKind::Assign(place, Box::new(value));
        Ok(Expr::new(assign, ty, span))
    }

    /// Returns an address that may lie in a dynamic variable, such that the variable is created,
    /// all zeros, if it does not exist.
    fn with_room(&mut self, address: Expr) -> Expr {
        let (ty, user, span) = (address.ty, address.user, address.span);
        let types = &self.state.types;
        let kind = match address.kind {
            ExprKind::Retype(inner) => ExprKind::Retype(Box::new(self.with_room(*inner))),
            ExprKind::Arith(op, base, offset) => {
                ExprKind::Arith(op, Box::new(self.with_room(*base)), offset)
            }
            ExprKind::Cond(condition, yes, no) => {
                ExprKind::Cond(condition, Box::new(self.with_room(*yes)), no)
            }
            ExprKind::Comma(first, second) => {
                ExprKind::Comma(first, Box::new(self.with_room(*second)))
            }
            ExprKind::Var(var) if var.scope == VarScope::Thread && !types.fits_register(ty) => {
                return self.made(Place::Var(var.clone()), ExprKind::Var(var), ty, span);
            }
            // The keys are evaluated again for each access.
            ExprKind::Element(var, keys)
                if !types.fits_register(ty) && !keys.iter().any(Expr::changes) =>
            {
                let place = Place::Element(var.clone(), keys.clone());
                return self.made(place, ExprKind::Element(var, keys), ty, span);
            }
            kind => kind,
        };
        Expr {
            kind,
            ty,
            user,
            span,
        }
    }

    /// Returns `read`, which first assigns zeros to its `place` if that does not exist.
    fn made(&self, place: Place, read: ExprKind, ty: Ty, span: Span) -> Expr {
        let size = Expr::int(self.state.types.size(ty).unwrap_or(0), Ty::SIZE_T, span);
        let read = Expr::new(read, ty, span);
        let zeros = Expr::new(ExprKind::Call(Subr::Alloca, vec![size]), ty, span);
        let assign = Expr::new(ExprKind::Assign(place, Box::new(zeros)), ty, span);
        let made = ExprKind::Comma(Box::new(assign), Box::new(read.clone()));
        let there = ExprKind::Compare {
            op: ast::BinaryOp::Ne,
            signed: false,
            left: Box::new(read.clone()),
            right: Box::new(Expr::int(0, Ty::UINTPTR_T, span)),
        };
        let kind = ExprKind::Cond(
            Box::new(Expr::new(there, Ty::INT, span)),
            Box::new(read),
            Box::new(Expr::new(made, ty, span)),
        );
        Expr::new(kind, ty, span)
    }

    /// Returns the place from which `value` was read.
    pub(super) fn place_of(&mut self, value: Expr, op: &str, span: Span) -> Result<(Place, Ty)> {
        let refuse = |message: String| Err(Diagnostic::new("D_OP_LVAL", span, message));
        let ty = value.ty;
        let no_place = || {
            refuse(format!(
                "operator {op} requires modifiable lvalue as an operand"
            ))
        };
        if is_part_of_stack(&value) {
            return no_place();
        }
        if self.state.types.is_const(ty) {
            return refuse(format!("operator {op} cannot modify a const object"));
        }
        let (address, bits) = match value.kind {
            ExprKind::Load {
                address,
                user: false,
            } => (address, None),
            ExprKind::LoadBits {
                address,
                bits,
                user: false,
            } => (address, Some(bits)),
            ExprKind::Load { .. } | ExprKind::LoadBits { .. } => {
                return refuse(format!(
                    "operator {op} cannot modify user memory: use copyout( )"
                ))
            }
            // An object within another one: its address is known.
            ExprKind::Retype(address) if !self.state.types.fits_register(ty) && !value.user => {
                (address, None)
            }
            _ => return no_place(),
        };
        let address = Box::new(self.with_room(*address));
        Ok((Place::Memory { address, bits }, ty))
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
        if scope == VarScope::Global && self.state.types.declared_constant(name).is_some() {
            return Ok(None);
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
        let variable = self.infer_variable(scope, name, ty, None, span)?;
        let ty = variable.place.ty;
        Ok(Some((Place::Var(variable.place), ty)))
    }

    fn not_writable(&self, op: &str, span: Span) -> Box<Diagnostic> {
        Diagnostic::new(
            "D_OP_WRITE",
            span,
            format!("operator {op} can only be applied to a writable variable"),
        )
    }

    /// Returns an element of an associative array, which is created if necessary; `None` if the
    /// name is not such an array.
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
                        false => self.state.types.inferred(key.ty),
                    };
                    keys.push(ty);
                }
                self.infer_variable(scope, name, ty, Some(keys), span)?
            }
            (None, None) => return Ok(None),
        };
        let keys = self.keys(&variable, args, span)?;
        let ty = variable.place.ty;
        Ok(Some((Place::Element(variable.place, keys), ty)))
    }
}

/// Whether `value` is the temporary result of `stack()` or `ustack()`, or a part of it. Nothing can
/// be assigned to it.
fn is_part_of_stack(value: &Expr) -> bool {
    match &value.kind {
        ExprKind::Call(Subr::Stack | Subr::Ustack, _) => true,
        ExprKind::Load { address: base, .. }
        | ExprKind::Retype(base)
        | ExprKind::Comma(_, base)
        | ExprKind::Assign(_, base)
        | ExprKind::Arith(_, base, _) => is_part_of_stack(base),
        ExprKind::Cond(_, one, other) => is_part_of_stack(one) || is_part_of_stack(other),
        _ => false,
    }
}
