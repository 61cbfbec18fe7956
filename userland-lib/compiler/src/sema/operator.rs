// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Binary operators, and C's conversions of their operands.

use super::expression::{counted, folded, is_null};
use super::fold;
use super::Sema;
use crate::diag::{Diagnostic, Result};
use crate::hir::{Expr, ExprKind};
use crate::source::Span;
use crate::syntax::ast::{self, BinaryOp};
use dtrace_types::Ty;
use dtrace_uapi::subr::Subr;

impl Sema<'_, '_> {
    /// Returns the value of `e`, extended as its type says, if `e` is an integer or pointer
    /// constant.
    pub(super) fn known(&self, e: &Expr) -> Option<u64> {
        let value = e.constant()?;
        Some(
            self.state
                .types
                .int(e.ty)
                .map_or(value, |ty| ty.normalize(value)),
        )
    }

    /// Converts a number to another numeric type. Generates no code if the value certainly is one
    /// of that type.
    pub(super) fn convert(&self, e: Expr, ty: Ty) -> Expr {
        if self.computes_in_float(e.ty, ty) {
            return self.convert_float(e, ty);
        }
        let (Some(from), Some(to)) = (self.state.types.int(e.ty), self.state.types.int(ty)) else {
            return e.retype(ty);
        };
        let span = e.span;
        if e.ty == ty {
            return e;
        }
        if let Some(value) = self.known(&e) {
            return Expr::int(to.normalize(value), ty, span);
        }
        // 64-bit types share one register format, whatever their sign. Smaller types must agree in
        // sign as well, because their values are extended to 64 bits.
        if to.size == from.size && (to.size == 8 || to.signed == from.signed) {
            return e.retype(ty);
        }
        Expr::new(ExprKind::Convert(Box::new(e)), ty, span)
    }

    /// Returns text in the form that the DIF machine handles: text in user space is copied in.
    pub(super) fn string_value(&self, e: Expr) -> Expr {
        let types = &self.state.types;
        let user = e.user || types.is_pointer(e.ty) && types.is_userland(e.ty);
        if !user {
            return e;
        }
        let span = e.span;
        Expr::new(
            ExprKind::Call(Subr::Copyinstr, vec![e.retype(Ty::UINTPTR_T)]),
            Ty::STRING,
            span,
        )
    }

    /// Returns the error that two types do not go together.
    pub(super) fn incompatible(
        &self,
        left: Ty,
        op: &str,
        right: Ty,
        span: Span,
    ) -> Box<Diagnostic> {
        let types = &self.state.types;
        let error = Diagnostic::new(
            "D_OP_INCOMPAT",
            span,
            format!(
                "operands have incompatible types: \"{}\" {op} \"{}\"",
                types.name(left),
                types.name(right)
            ),
        );
        error.notes(types.stacks_differ(left, right))
    }

    /// Returns the error that an operator cannot compute with its operands.
    pub(super) fn arithmetic_error(
        &self,
        op: BinaryOp,
        left: Ty,
        right: Ty,
        span: Span,
    ) -> Box<Diagnostic> {
        let (tag, kind) = match op {
            BinaryOp::Add | BinaryOp::Sub => {
                return self.incompatible(left, op.text(), right, span)
            }
            BinaryOp::Mul | BinaryOp::Div => ("D_OP_ARITH", "arithmetic"),
            _ => ("D_OP_INT", "integral"),
        };
        Diagnostic::new(
            tag,
            span,
            format!("operator {} requires operands of {kind} type", op.text()),
        )
    }

    /// Converts `value` to type `ty` as an assignment does.
    pub(super) fn coerce(&mut self, value: Expr, ty: Ty, op: &str, span: Span) -> Result<Expr> {
        let types = &self.state.types;
        if types.is_number(ty) && types.is_number(value.ty) {
            return Ok(self.convert(value, ty));
        }
        if types.is_string(ty) && types.is_string_like(value.ty) {
            return Ok(self.string_value(value).retype(ty));
        }
        let zero = value.constant() == Some(0);
        let null = zero
            && (types.is_pointer(ty) && types.int(value.ty).is_some()
                || types.is_string(ty) && types.is_pointer(value.ty));
        if null || types.assignable(ty, value.ty) {
            // An object in user space must be copied in before it can be stored.
            let object = !types.fits_register(ty) && value.user;
            return Ok(match object {
                true => self.copied_in(value, ty),
                false => value.retype(ty),
            });
        }
        Err(self.incompatible(ty, op, value.ty, span))
    }

    /// Copies an object in from user space, as one of type `ty`.
    pub(super) fn copied_in(&self, value: Expr, ty: Ty) -> Expr {
        let span = value.span;
        let size = self.state.types.size(ty).unwrap_or(0);
        let args = vec![
            value.retype(Ty::UINTPTR_T),
            Expr::int(size, Ty::SIZE_T, span),
        ];
        Expr::new(ExprKind::Call(Subr::Copyin, args), ty, span)
    }

    /// Returns `value * sizeof (element)`, for pointer arithmetic.
    pub(super) fn scaled(&mut self, value: Expr, element: Ty, span: Span) -> Result<Expr> {
        let size = match self.state.types.size(element) {
            // As in GNU C, functions and `void` have a size of one byte.
            Some(0) | None if !self.state.types.is_record(element) => 1,
            Some(size) => size,
            None => {
                return Err(Diagnostic::new(
                    "D_OP_INCOMPAT",
                    span,
                    format!(
                        "pointer arithmetic requires a complete type: \"{}\"",
                        self.state.types.name(element)
                    ),
                ))
            }
        };
        let value = self.convert(value, Ty::INT64_T);
        let span = value.span;
        Ok(match (value.constant(), size) {
            (Some(value), _) => Expr::int(value.wrapping_mul(size), Ty::INT64_T, span),
            (None, 1) => value,
            (None, _) => {
                let size = Expr::int(size, Ty::INT64_T, span);
                let kind = ExprKind::Arith(BinaryOp::Mul, Box::new(value), Box::new(size));
                Expr::new(kind, Ty::INT64_T, span)
            }
        })
    }

    /// Returns `address + offset` in bytes. Makes only one addition, however deep members are
    /// nested.
    pub(super) fn displaced(&self, address: Expr, offset: u64) -> Expr {
        let (span, ty, user) = (address.span, address.ty, address.user);
        if offset == 0 {
            return address;
        }
        let mut base = address;
        while let ExprKind::Retype(inner) = base.kind {
            base = *inner;
        }
        let (base, before) = match base.kind {
            ExprKind::Int(base) => return Expr::int(base.wrapping_add(offset), ty, span),
            // Only a 64-bit sum can be merged: a narrower one may wrap before the offset is added.
            ExprKind::Arith(BinaryOp::Add, inner, constant)
                if constant.constant().is_some()
                    && self
                        .state
                        .types
                        .int(base.ty)
                        .is_none_or(|shape| shape.size == 8) =>
            {
                (inner, constant.constant().unwrap_or(0))
            }
            kind => (Box::new(Expr { kind, ..base }), 0),
        };
        let offset = Expr::int(before.wrapping_add(offset), Ty::INT64_T, span);
        let kind = ExprKind::Arith(BinaryOp::Add, base, Box::new(offset));
        Expr {
            kind,
            ty,
            user,
            span,
        }
    }

    /// Types a binary operator and the chain on its left, as in a long sum. Takes one operator
    /// after the other, so that only right operands nest.
    pub(super) fn chain(&mut self, e: &ast::Expr) -> Result<Expr> {
        let mut operators = Vec::new();
        let mut first = e;
        while let ast::ExprKind::Binary(op, left, right) = &first.kind {
            operators.push((first, *op, right));
            first = left;
        }
        let mut value = self.operand(first)?;
        while let Some((whole, op, right)) = operators.pop() {
            let right = self.operand(right)?;
            value = self
                .binary(op, value, right, whole.span)
                .map_err(|error| counted(whole, error))?;
        }
        Ok(value)
    }

    /// Types `left op right`.
    pub(super) fn binary(
        &mut self,
        op: BinaryOp,
        left: Expr,
        right: Expr,
        span: Span,
    ) -> Result<Expr> {
        match op {
            BinaryOp::LogAnd | BinaryOp::LogOr | BinaryOp::LogXor => {
                self.logic(op, left, right, span)
            }
            _ if op.is_comparison() => self.comparison(op, left, right, span),
            BinaryOp::Add | BinaryOp::Sub => {
                match self.pointer_arithmetic(op, &left, &right, span)? {
                    Some(result) => Ok(result),
                    None => self.arithmetic(op, left, right, span),
                }
            }
            _ => self.arithmetic(op, left, right, span),
        }
    }

    fn logic(&mut self, op: BinaryOp, left: Expr, right: Expr, span: Span) -> Result<Expr> {
        for operand in [&left, &right] {
            let types = &self.state.types;
            if !types.is_scalar(operand.ty) {
                return Err(Diagnostic::new(
                    "D_OP_SCALAR",
                    span,
                    format!("operator {} requires operands of scalar type", op.text()),
                ));
            }
        }
        let (left, right) = (self.condition(left), self.condition(right));
        if let (Some(l), Some(r)) = (self.known(&left), self.known(&right)) {
            let value = fold::compare(op, false, l, r);
            return Ok(Expr::int(u64::from(value), Ty::INT, span));
        }
        let kind = ExprKind::Logic(op, Box::new(left), Box::new(right));
        Ok(Expr::new(kind, Ty::INT, span))
    }

    fn comparison(&mut self, op: BinaryOp, left: Expr, right: Expr, span: Span) -> Result<Expr> {
        let types = &self.state.types;
        let (a, b) = (left.ty, right.ty);
        // NULL is not a string and is less than any string. `==` and `!=` with NULL compare
        // addresses only, because they need not look at the bytes.
        let ordered = !matches!(op, BinaryOp::Eq | BinaryOp::Ne);
        let text = types.is_string(a) && (types.is_string_like(b) || ordered && is_null(&right))
            || types.is_string(b) && (types.is_string_like(a) || ordered && is_null(&left));
        if text {
            let (left, right) = (self.string_value(left), self.string_value(right));
            let kind = ExprKind::CompareStr(op, Box::new(left), Box::new(right));
            return Ok(Expr::new(kind, Ty::INT, span));
        }
        if self.computes_in_float(a, b) {
            return Ok(self.compare_float(op, left, right, span));
        }
        let (signed, left, right) = if let Some(ty) = types.usual(a, b) {
            let signed = types.int(ty).is_some_and(|int| int.signed);
            (signed, self.convert(left, ty), self.convert(right, ty))
        } else if types.pointers_agree(a, b)
            // A string may be NULL: subroutines return it if they find nothing.
            || types.is_string(a) && is_null(&right)
            || types.is_string(b) && is_null(&left)
            || types.pointee(a).is_some() && types.int(b).is_some() && right.constant().is_some()
            || types.pointee(b).is_some() && types.int(a).is_some() && left.constant().is_some()
        {
            (false, left, right)
        } else {
            return Err(self.incompatible(a, op.text(), b, span));
        };
        if let (Some(l), Some(r)) = (self.known(&left), self.known(&right)) {
            let value = fold::compare(op, signed, l, r);
            return Ok(Expr::int(u64::from(value), Ty::INT, span));
        }
        let (left, right) = (Box::new(left), Box::new(right));
        let kind = ExprKind::Compare {
            op,
            signed,
            left,
            right,
        };
        Ok(Expr::new(kind, Ty::INT, span))
    }

    /// Types a sum or difference if an operand is a pointer, or a string, which counts in bytes;
    /// `None` if neither is.
    fn pointer_arithmetic(
        &mut self,
        op: BinaryOp,
        left: &Expr,
        right: &Expr,
        span: Span,
    ) -> Result<Option<Expr>> {
        let types = &self.state.types;
        let element = |ty| match types.is_string(ty) {
            true => Some(Ty::CHAR),
            false => types.pointee(ty),
        };
        let (l, r) = (element(left.ty), element(right.ty));
        let (pointer, element, offset) = match (l, r) {
            (Some(element), None) if types.int(right.ty).is_some() => (left, element, right),
            (None, Some(element)) if op == BinaryOp::Add && types.int(left.ty).is_some() => {
                (right, element, left)
            }
            (Some(element), Some(_))
                if op == BinaryOp::Sub && types.compatible(left.ty, right.ty) =>
            {
                return self
                    .pointer_difference(left, right, element, span)
                    .map(Some)
            }
            (None, None) => return Ok(None),
            _ => return Err(self.incompatible(left.ty, op.text(), right.ty, span)),
        };
        if types.resolve(element) == Ty::VOID {
            return Err(self.incompatible(left.ty, op.text(), right.ty, span));
        }
        let offset = self.scaled(offset.clone(), element, span)?;
        // An array decays into a pointer to its elements.
        let user = pointer.user || self.state.types.is_userland(pointer.ty);
        let own = self.state.types.is_pointer(pointer.ty) || self.state.types.is_string(pointer.ty);
        let ty = match (own, user) {
            (true, _) => pointer.ty,
            (false, true) => self.state.types.user_pointer_to(element),
            (false, false) => self.state.types.pointer_to(element),
        };
        if let (Some(base), Some(offset)) = (pointer.constant(), offset.constant()) {
            let value = match op {
                BinaryOp::Add => base.wrapping_add(offset),
                _ => base.wrapping_sub(offset),
            };
            return Ok(Some(Expr::int(value, ty, span)));
        }
        if let Some(offset) = offset.constant() {
            let offset = match op {
                BinaryOp::Add => offset,
                _ => offset.wrapping_neg(),
            };
            let mut address = self.displaced(pointer.clone(), offset);
            if address.ty != ty {
                address = address.retype(ty);
            }
            (address.user, address.span) = (false, span);
            return Ok(Some(address));
        }
        let kind = ExprKind::Arith(op, Box::new(pointer.clone()), Box::new(offset));
        Ok(Some(Expr::new(kind, ty, span)))
    }

    fn pointer_difference(
        &mut self,
        left: &Expr,
        right: &Expr,
        element: Ty,
        span: Span,
    ) -> Result<Expr> {
        let address = |e: &Expr| Box::new(e.clone().retype(Ty::INT64_T));
        let difference = Expr::new(
            ExprKind::Arith(BinaryOp::Sub, address(left), address(right)),
            Ty::INT64_T,
            span,
        );
        let size = self.state.types.size(element).unwrap_or(1).max(1);
        if size == 1 {
            return Ok(difference);
        }
        let size = Expr::int(size, Ty::INT64_T, span);
        let kind = ExprKind::Arith(BinaryOp::Div, Box::new(difference), Box::new(size));
        Ok(Expr::new(kind, Ty::INT64_T, span))
    }

    fn arithmetic(&mut self, op: BinaryOp, left: Expr, right: Expr, span: Span) -> Result<Expr> {
        let types = &self.state.types;
        let Some(usual) = types.usual(left.ty, right.ty) else {
            return Err(self.arithmetic_error(op, left.ty, right.ty, span));
        };
        if types.float(usual).is_some() {
            return self.float_arithmetic(op, left, right, span);
        }
        let shift = matches!(op, BinaryOp::Shl | BinaryOp::Shr);
        let ranked = types
            .ranked(left.ty, right.ty)
            .filter(|ranked| !shift && types.size(*ranked) < types.size(usual));
        let (ty, left, right) = if shift {
            // The result of shifting by an undeclared variable has 64 bits, as that variable has.
            let ty = match types.shown(right.ty) == right.ty {
                true => types.promote(left.ty),
                false => types.usual(left.ty, Ty::INFERRED_INT).unwrap_or(usual),
            };
            (ty, self.convert(left, ty), right)
        } else {
            (usual, self.convert(left, usual), self.convert(right, usual))
        };
        let result = self.computed(op, ty, left, right, span)?;
        // Operands narrower than `int` are computed as in C, but the result gets their own type. A
        // constant has C's type.
        Ok(match ranked {
            Some(ranked) if result.constant().is_none() => result.retype(ranked),
            _ => result,
        })
    }

    /// Types `left op right`. Both operands are of the type `ty`, except the right operand of a
    /// shift.
    fn computed(&self, op: BinaryOp, ty: Ty, left: Expr, right: Expr, span: Span) -> Result<Expr> {
        let zero = matches!(op, BinaryOp::Div | BinaryOp::Rem) && right.constant() == Some(0);
        if zero {
            return Err(Diagnostic::new(
                "D_DIV_ZERO",
                span,
                "expression contains division by zero",
            ));
        }
        if let (Some(l), Some(r), Some(shape)) =
            (left.constant(), right.constant(), self.state.types.int(ty))
        {
            if let Some(value) = fold::arith(op, shape, l, r) {
                let (value, ty) = folded(value, ty);
                return Ok(Expr::int(value, ty, span));
            }
        }
        let kind = ExprKind::Arith(op, Box::new(left), Box::new(right));
        Ok(Expr::new(kind, ty, span))
    }
}
