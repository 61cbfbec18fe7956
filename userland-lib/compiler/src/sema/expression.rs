// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Typing of expressions. Each expression of the source becomes one of the typed tree.

use super::Sema;
use crate::diag::{Diagnostic, Result};
use crate::hir::{Expr, ExprKind, Place};
use crate::source::Span;
use crate::syntax::ast::{self, BinaryOp, IntSuffix, UnaryOp};
use dtrace_types::{Kind, Ty};
use dtrace_uapi::subr::Subr;

/// Maximum nesting of expressions, including what inlines and translators expand to.
const MAX_DEPTH: u32 = 300;

impl Sema<'_, '_> {
    /// Returns the typed form of an expression.
    pub(super) fn expression(&mut self, e: &ast::Expr) -> Result<Expr> {
        self.nested(e.span, |sema| sema.expression_unbounded(e))
            .map_err(|error| counted(e, error))
    }

    /// Returns the typed form of an operand, whose type must be known.
    pub(super) fn operand(&mut self, e: &ast::Expr) -> Result<Expr> {
        let value = self.expression(e)?;
        self.typed(value)
    }

    /// Runs `check` one nesting level deeper. Fails if that is too deep.
    pub(super) fn nested<T>(
        &mut self,
        span: Span,
        check: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        if self.depth >= MAX_DEPTH {
            return Err(Diagnostic::new(
                "D_SYNTAX",
                span,
                format!("nesting deeper than {MAX_DEPTH} levels"),
            )
            .note("inlines and translators count with what they stand for"));
        }
        self.depth += 1;
        let result = check(self);
        self.depth -= 1;
        result
    }

    fn expression_unbounded(&mut self, e: &ast::Expr) -> Result<Expr> {
        let span = e.span;
        match &e.kind {
            ast::ExprKind::Int(value, suffix) => {
                let ty = int_type(*value, *suffix);
                let ty = self.state.types.constant_in_model(ty, *value);
                Ok(Expr::int(*value, ty, span))
            }
            ast::ExprKind::Float(value, suffix) => {
                let ty = super::float::constant_type(*suffix);
                Ok(Expr::new(ExprKind::Float(*value), ty, span))
            }
            ast::ExprKind::Str(text) => {
                Ok(Expr::new(ExprKind::Str(text.clone()), Ty::STRING, span))
            }
            ast::ExprKind::Name { module, name } => {
                let found = match module {
                    Some(module) => self.symbol(module, name, span),
                    None => self.name(name, span),
                };
                found.map_err(|error| self.type_meant(module.as_deref(), name, span, error))
            }
            ast::ExprKind::Scoped(scope, name) => self.scoped(*scope, name, span),
            ast::ExprKind::Agg { name, .. } => Ok(self.aggregation_value(name, span)),
            ast::ExprKind::Call {
                name,
                name_span,
                args,
            } => self.call(name, *name_span, args, span),
            ast::ExprKind::Index(base, args) => self.index(base, args, span),
            ast::ExprKind::Member { base, name, arrow } => self.member(base, name, *arrow, span),
            ast::ExprKind::Unary(op, operand) => self.unary(*op, operand, span),
            ast::ExprKind::Binary(..) => self.chain(e),
            ast::ExprKind::Step { up, post, target } => self.step(*up, *post, target, span),
            ast::ExprKind::Assign { op, target, value } => self.assign(*op, target, value, span),
            ast::ExprKind::Cond(condition, then, otherwise) => {
                self.cond(condition, then, otherwise, span)
            }
            ast::ExprKind::Comma(first, second) => self.comma(first, second, span),
            ast::ExprKind::Cast(ty, written) => self.written_cast(ty, written, span),
            ast::ExprKind::SizeofType(ty) => self.sizeof_type(ty, span),
            ast::ExprKind::SizeofExpr(operand) => self.sizeof_value(operand, span),
            ast::ExprKind::Offsetof(ty, member) => self.offsetof(ty, member, span),
            ast::ExprKind::Stringof(operand) => self.stringof(operand, span),
            ast::ExprKind::Xlate(ty, value) => self.xlate(ty, value, span),
        }
    }

    /// Types `@name`, which has no value in an expression.
    fn aggregation_value(&mut self, name: &str, span: Span) -> Expr {
        let message = format!("aggregation @{name} may not be used in an expression");
        let error = Diagnostic::new("D_AGG_NULL", span, message);
        self.valueless(Ty::DYNAMIC, error)
    }

    fn comma(&mut self, first: &ast::Expr, second: &ast::Expr, span: Span) -> Result<Expr> {
        let (first, second) = (self.expression(first)?, self.expression(second)?);
        super::translate::in_memory(&second)?;
        let (ty, user) = (second.ty, second.user);
        let kind = ExprKind::Comma(Box::new(first), Box::new(second));
        Ok(Expr {
            kind,
            ty,
            user,
            span,
        })
    }

    /// Types a call in an expression. Subroutines have a value; of the actions, only those that
    /// make a stack have one.
    fn call(
        &mut self,
        name: &str,
        name_span: Span,
        args: &[ast::Expr],
        span: Span,
    ) -> Result<Expr> {
        let walkers = Subr::named(name).filter(|subr| self.settings.walker && subr.is_walkers());
        if let Some(subr) = super::call::find(name).or(walkers) {
            return self.subroutine(subr, args, span);
        }
        if let Some(stack) = self.stack_value(name, args, span)? {
            return Ok(stack);
        }
        let what = match super::aggfunc::function(name).is_some() {
            true => "aggregating function",
            false if super::actions::is_action(name) => "action",
            false => return Err(self.unknown_function(name, name_span)),
        };
        for arg in args {
            self.expression(arg)?;
        }
        let action = super::actions::find(name);
        if let Some(row) = action {
            row.check_count(args.len(), span)?;
        }
        let error = Diagnostic::new(
            "D_CG_EXPR",
            span,
            format!("{what} {name}( ) may not be called from a D expression (D program context required)"),
        );
        Ok(self.valueless(action.map_or(Ty::VOID, |row| row.ty), error))
    }

    /// Returns an expression that stands for something without a value. Only its type can be used;
    /// generating code fails with the first `error` of the program.
    fn valueless(&mut self, ty: Ty, error: Box<Diagnostic>) -> Expr {
        let span = error.span;
        self.valueless.get_or_insert(error);
        Expr::new(ExprKind::Valueless, ty, span)
    }

    fn unary(&mut self, op: UnaryOp, operand: &ast::Expr, span: Span) -> Result<Expr> {
        if op == UnaryOp::AddressOf {
            return self.address_of(operand, span);
        }
        let operand = self.operand(operand)?;
        let types = &self.state.types;
        let refuse = |tag, kind| {
            Err(Diagnostic::new(
                tag,
                span,
                format!("operator {} requires an operand of {kind} type", op.text()),
            ))
        };
        match op {
            UnaryOp::Deref => self.deref(operand, span),
            UnaryOp::Not if !types.is_scalar(operand.ty) => refuse("D_OP_SCALAR", "scalar"),
            UnaryOp::Not => Ok(self.negation(operand, span)),
            UnaryOp::Plus | UnaryOp::Neg if types.float(operand.ty).is_some() => {
                Ok(super::float::signed(op == UnaryOp::Neg, operand, span))
            }
            _ if types.int(operand.ty).is_none() => match op {
                UnaryOp::BitNot => refuse("D_OP_INT", "integral"),
                _ => refuse("D_OP_ARITH", "arithmetic"),
            },
            UnaryOp::Plus => {
                let ty = types.promote(operand.ty);
                Ok(self.convert(operand, ty))
            }
            _ => {
                let ty = types.promote(operand.ty);
                let operand = self.convert(operand, ty);
                if let (Some(value), Some(shape)) = (operand.constant(), self.state.types.int(ty)) {
                    let value = match op {
                        UnaryOp::Neg => value.wrapping_neg(),
                        _ => !value,
                    };
                    let (value, ty) = folded(shape.wrap(value), ty);
                    return Ok(Expr::int(value, ty, span));
                }
                let operand = Box::new(operand);
                let kind = match op {
                    UnaryOp::Neg => ExprKind::Neg(operand),
                    _ => ExprKind::BitNot(operand),
                };
                Ok(Expr::new(kind, ty, span))
            }
        }
    }

    fn step(&mut self, up: bool, post: bool, target: &ast::Expr, span: Span) -> Result<Expr> {
        let text = if up { "++" } else { "--" };
        let (place, ty) = self.place(target, text, Some(Ty::INT64_T))?;
        if !self.state.types.is_scalar(ty) {
            let message = format!("operator {text} requires operand of scalar type");
            return Err(Diagnostic::new("D_OP_SCALAR", span, message));
        }
        let op = if up { BinaryOp::Add } else { BinaryOp::Sub };
        let one = Expr::int(1, Ty::INT, span);
        self.update(place, ty, op, one, post, span)
    }

    fn assign(
        &mut self,
        op: Option<BinaryOp>,
        target: &ast::Expr,
        value: &ast::Expr,
        span: Span,
    ) -> Result<Expr> {
        let value = self.operand(value)?;
        if let Some(op) = op {
            let infer = match self.state.types.int(value.ty) {
                Some(_) => Ty::INT64_T,
                None => value.ty,
            };
            if self.state.types.resolve(value.ty) == Ty::VOID {
                self.declared(target)?;
            }
            let text = format!("{}=", op.text());
            let (place, ty) = self.place(target, &text, Some(infer))?;
            let arithmetic = matches!(op, BinaryOp::Add | BinaryOp::Sub);
            if arithmetic && self.state.types.int(ty).is_some() && self.points_to_void(value.ty) {
                let message =
                    format!("operator {text} requires left-hand scalar operand of known size");
                return Err(Diagnostic::new("D_OP_VFPTR", span, message));
            }
            let shown = self.state.types.shown(value.ty);
            if self.state.types.int(shown).is_some_and(|int| int.size == 8) {
                self.note_type(&place, Ty::INT64_T);
            }
            if matches!(
                op,
                BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Or
            ) {
                self.warn_cut(&place, &value, span);
            }
            return self.update(place, ty, op, value, false, span);
        }
        if matches!(self.state.types.base(value.ty), Kind::Void | Kind::Dynamic) {
            return Err(Diagnostic::new(
                "D_OP_INCOMPAT",
                span,
                format!(
                    "operator = cannot assign a value of type \"{}\"",
                    self.state.types.name(value.ty)
                ),
            ));
        }
        let infer = self.inferred(value.ty);
        let (place, ty) = self.place(target, "=", Some(infer))?;
        let types = &self.state.types;
        if matches!(types.base(ty), Kind::Array(..)) {
            let message = format!(
                "operator = may not be applied to operand of type \"{}\"",
                types.name(ty)
            );
            return Err(Diagnostic::new("D_OP_ARRFUN", span, message));
        }
        // Assigning 0 frees a dynamic variable of any type. Any string may be NULL.
        let may_lack = match place {
            Place::Memory { .. } => false,
            _ => place.is_dynamic() || types.is_string(ty),
        };
        let deletes = may_lack && is_null(&value) && !types.fits_register(ty);
        if !types.is_record(value.ty) && !deletes {
            super::translate::in_memory(&value)?;
        }
        self.note_type(&place, value.ty);
        self.warn_cut(&place, &value, span);
        let types = &self.state.types;
        let value = match value.kind {
            _ if deletes => value.retype(ty),
            ExprKind::Translated { .. } if types.compatible(ty, value.ty) => {
                self.materialized(value)?
            }
            _ => self.coerce(value, ty, "=", span)?,
        };
        self.note_origin(&place, &value, span)?;
        self.store(place, value, ty, span)
    }

    fn points_to_void(&self, ty: Ty) -> bool {
        let target = self.state.types.pointee(ty);
        target.is_some_and(|target| self.state.types.resolve(target) == Ty::VOID)
    }

    /// Fails if `target` is a variable that has no type yet and cannot get one from the assigned
    /// value.
    fn declared(&self, target: &ast::Expr) -> Result<()> {
        match super::access::variable_name(target) {
            Some((scope, name)) if self.state.variables.find(scope, name).is_none() => {
                let message = format!("{name} has not yet been declared or assigned");
                Err(Diagnostic::new("D_VAR_UNDEF", target.span, message))
            }
            _ => Ok(()),
        }
    }

    /// Returns the type that a variable gets from its first value: that of the value, except that
    /// text becomes a string with storage of its own, and a `const` of the value does not apply to
    /// the variable.
    fn inferred(&mut self, ty: Ty) -> Ty {
        if matches!(self.state.types.base(ty), Kind::Array(..))
            && self.state.types.is_string_like(ty)
        {
            return Ty::STRING;
        }
        match *self.state.types.kind(ty) {
            Kind::Const(target) => target,
            _ => self.state.types.shown(ty),
        }
    }

    fn update(
        &mut self,
        place: Place,
        ty: Ty,
        op: BinaryOp,
        value: Expr,
        post: bool,
        span: Span,
    ) -> Result<Expr> {
        let types = &self.state.types;
        let pointee = types.pointee(ty).filter(|_| types.is_pointer(ty));
        let (wide, value) = match (pointee, types.int(ty)) {
            (Some(element), _) if matches!(op, BinaryOp::Add | BinaryOp::Sub) => {
                if types.int(value.ty).is_none() {
                    return Err(self.incompatible(ty, &format!("{}=", op.text()), value.ty, span));
                }
                let value = self.scaled(value, element, span)?;
                (ty, value)
            }
            (None, _) if self.computes_in_float(ty, value.ty) => {
                self.float_operator(op, ty, value.ty, span)?;
                let wide = types.usual(ty, value.ty).unwrap_or(ty);
                (wide, self.convert(value, wide))
            }
            (None, Some(_)) => {
                if types.int(value.ty).is_none() {
                    return Err(self.update_error(op, ty, value.ty, span));
                }
                let shift = matches!(op, BinaryOp::Shl | BinaryOp::Shr);
                let wide = match shift {
                    true => types.promote(ty),
                    false => types.usual(ty, value.ty).unwrap_or(ty),
                };
                if matches!(op, BinaryOp::Div | BinaryOp::Rem) && value.constant() == Some(0) {
                    return Err(Diagnostic::new(
                        "D_DIV_ZERO",
                        span,
                        "expression contains division by zero",
                    ));
                }
                let value = match shift {
                    true => value,
                    false => self.convert(value, wide),
                };
                (wide, value)
            }
            _ => return Err(self.update_error(op, ty, value.ty, span)),
        };
        Ok(Expr::new(
            ExprKind::Update {
                place,
                op,
                wide,
                value: Box::new(value),
                post,
            },
            ty,
            span,
        ))
    }

    /// Returns the error that `op=` cannot compute with its operands.
    fn update_error(&self, op: BinaryOp, left: Ty, right: Ty, span: Span) -> Box<Diagnostic> {
        match op {
            BinaryOp::Add | BinaryOp::Sub => {
                self.incompatible(left, &format!("{}=", op.text()), right, span)
            }
            _ => self.arithmetic_error(op, left, right, span),
        }
    }

    fn cond(
        &mut self,
        condition: &ast::Expr,
        then: &ast::Expr,
        otherwise: &ast::Expr,
        span: Span,
    ) -> Result<Expr> {
        let condition = self.operand(condition)?;
        self.scalar_condition(&condition, "?:")?;
        let condition = self.condition(condition);
        let (then, otherwise) = (self.expression(then)?, self.expression(otherwise)?);
        super::translate::in_memory(&then)?;
        super::translate::in_memory(&otherwise)?;
        let types = &self.state.types;
        let (a, b) = (then.ty, otherwise.ty);
        let is_action =
            |e: &Expr| matches!(e.kind, ExprKind::Valueless) && types.resolve(e.ty) == Ty::VOID;
        if is_action(&then) || is_action(&otherwise) {
            let message = "action cannot be used in a conditional context";
            return Err(Diagnostic::new("D_OP_ACT", span, message));
        }
        let ty = if let Some(ty) = types.usual(a, b) {
            ty
        } else if types.is_string_like(a) && types.is_string_like(b) {
            Ty::STRING
        } else if types.is_pointer(b) && then.constant() == Some(0) {
            // NULL says nothing, not even which memory the other operand points to.
            b
        } else if types.compatible(a, b)
            || types.is_pointer(a)
                && (types.pointers_agree(a, b) || otherwise.constant() == Some(0))
        {
            a
        } else {
            let message = "operator ?: operands must have compatible types";
            let error = Diagnostic::new("D_OP_INCOMPAT", span, message);
            return Err(error.notes(types.stacks_differ(a, b)));
        };
        let (then, otherwise) = if types.is_number(ty) {
            (self.convert(then, ty), self.convert(otherwise, ty))
        } else if ty == Ty::STRING {
            (self.string_value(then), self.string_value(otherwise))
        } else {
            (then, otherwise)
        };
        if let Some(value) = self.known(&condition) {
            return Ok(if value != 0 { then } else { otherwise }.retype(ty));
        }
        let user = self.chosen_user(&then, &otherwise, ty, span)?;
        let kind = ExprKind::Cond(Box::new(condition), Box::new(then), Box::new(otherwise));
        Ok(Expr {
            kind,
            ty,
            user,
            span,
        })
    }

    /// Whether the operand that `?:` chooses is in user space. Fails if an object's memory depends
    /// on the condition: the result is read in one way. A pointer is of the type of one operand.
    fn chosen_user(&self, then: &Expr, otherwise: &Expr, ty: Ty, span: Span) -> Result<bool> {
        let types = &self.state.types;
        if types.is_number(ty) || ty == Ty::STRING {
            return Ok(false);
        }
        if types.is_pointer(ty) {
            let is_null = then.constant() == Some(0);
            return Ok(if is_null { otherwise.user } else { then.user });
        }
        if then.user != otherwise.user {
            let message = "operator ?: operands must both be in user space, or neither";
            return Err(Diagnostic::new("D_OP_INCOMPAT", span, message));
        }
        Ok(then.user)
    }

    /// Fails if a condition is neither a number nor an address.
    pub(super) fn scalar_condition(&self, condition: &Expr, op: &str) -> Result<()> {
        if self.state.types.is_scalar(condition.ty) {
            return Ok(());
        }
        Err(Diagnostic::new(
            "D_OP_SCALAR",
            condition.span,
            format!("operator {op} expression must be of scalar type"),
        ))
    }
}

/// Gives an error that concerns all of `e` the line that DTrace counts for `e`.
pub(super) fn counted(e: &ast::Expr, error: Box<Diagnostic>) -> Box<Diagnostic> {
    match error.span == e.span && error.counted.is_none() {
        true => error.counted_at(e.counted),
        false => error,
    }
}

/// Returns the constant `value`, computed in the type `ty`, with its type: `long` if an `int`
/// cannot hold it.
pub(super) fn folded(value: u64, ty: Ty) -> (u64, Ty) {
    let fits = i32::try_from(value as i64).is_ok();
    match ty == Ty::INT && !fits {
        true => (value, Ty::LONG),
        false => (value, ty),
    }
}

/// Whether `value` is the constant 0, which means no pointer or no string.
pub(super) fn is_null(value: &Expr) -> bool {
    value.constant() == Some(0)
}

/// Returns C's type of an integer constant if a `long` has 64 bits. A value from `i32::MIN` to -1
/// is that of a character constant.
fn int_type(value: u64, suffix: IntSuffix) -> Ty {
    let fits_int = value <= i32::MAX as u64;
    let fits_uint = value <= u64::from(u32::MAX);
    let fits_long = value <= i64::MAX as u64;
    let may_be_unsigned = suffix.unsigned || suffix.based;
    match suffix.longs {
        0 if fits_int && !suffix.unsigned => Ty::INT,
        0 if value as i64 >= i64::from(i32::MIN) && (value as i64) < 0 && !may_be_unsigned => {
            Ty::INT
        }
        0 if fits_uint && may_be_unsigned => Ty::UINT,
        2 if fits_long && !suffix.unsigned => Ty::LONGLONG,
        2 => Ty::ULONGLONG,
        _ if (fits_long || suffix.longs == 1 && !suffix.based) && !suffix.unsigned => Ty::LONG,
        _ => Ty::ULONG,
    }
}
