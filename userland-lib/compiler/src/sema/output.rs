// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Actions that make output: `trace()`, `tracemem()`, `print()`, `printf()` and its variants.
//!
//! Their records hold values. The text between and around the values stays in the statement, for
//! the consumer. All records of one call carry the number of its statement, in the order of the
//! arguments.

use super::action::Called;
use super::aggregate::Known;
use super::call::incompatible;
use super::printf::{check_printa, check_printf, same_keys, Arg, Call};
use super::shape::{record_kind, shape_of};
use super::Sema;
use crate::diag::{Diagnostic, Result};
use crate::format::Format;
use crate::hir::{self, Expr};
use crate::shape::Form;
use crate::statement::{Kind, Print, Statement};
use crate::syntax::ast::ExprKind;
use dtrace_types::{Kind as TypeKind, Ty};
use dtrace_uapi::action::Action;

/// A call's statement and its actions.
type Made = (Statement, Vec<hir::Action>);

impl Sema<'_, '_> {
    /// Returns the format that is the first argument of a call, as text and parsed.
    fn format(&mut self, call: &Called<'_>) -> Result<(Vec<u8>, Format)> {
        if let Some(text) = call.constant_text(0) {
            return match Format::parse(text) {
                Ok(format) => Ok((text.to_owned(), format)),
                Err(error) => Err(Diagnostic::new(
                    "D_SYNTAX",
                    call.place(0),
                    error.to_string(),
                )),
            };
        }
        let ty = self.type_of_argument(call, 0)?;
        let types = &self.state.types;
        let (tag, wanted) = match types.is_string(ty) {
            true => ("D_PRINTF_ARG_FMT", "string constant"),
            false => ("D_PROTO_ARG", "string"),
        };
        let mut error = incompatible(call.name(), 0, wanted, &types.name(ty), call.place(0));
        error.tag = tag;
        Err(error)
    }

    pub(super) fn trace(&mut self, call: &Called<'_>) -> Result<Made> {
        let value = self.argument(call, 0)?;
        let types = &self.state.types;
        let value = super::translate::shown(self.typed(value)?, types);
        if types.resolve(value.ty) == Ty::VOID {
            return Err(call.error("D_TRACE_VOID", "may not be applied to a void expression"));
        }
        if types.is_dynamic(value.ty) {
            return Err(call.error("D_TRACE_DYN", "may not be applied to a dynamic expression"));
        }
        let kind = match record_kind(types, value.ty) {
            Kind::Bytes if self.state.types.align(value.ty) == 1 => Kind::Chars,
            kind => kind,
        };
        let statement = Statement::Trace(kind);
        let action = hir::Action::new(Action::Difexpr, Some(self.value(&value)?), 0);
        Ok((statement, vec![action]))
    }

    /// Checks `printf()`, `system()` and `freopen()`.
    pub(super) fn formatted(&mut self, call: &Called<'_>) -> Result<Made> {
        let format = self.format(call);
        if format.is_err() {
            // Errors within an argument are reported before errors in the format.
            for arg in call.args.get(1..).unwrap_or(&[]) {
                self.expression(arg)?;
            }
        }
        let (text, format) = format?;
        let kind = call.row.kernel;
        if kind == Action::Freopen && text == b"." {
            return Err(call.error("D_FREOPEN_INVALID", "argument #1 cannot be \".\""));
        }
        let (mut actions, shapes) = self.printed(call, kind)?;
        let checked = Call {
            name: call.name(),
            before: 1,
            span: call.span,
        };
        // An empty name returns to the output before the first `freopen()`. An empty format is
        // otherwise an error.
        let back = kind == Action::Freopen && text.is_empty() && shapes.is_empty();
        let args: Vec<Kind> = match back {
            true => Vec::new(),
            false => check_printf(&self.state.types, checked, &format, &shapes)?,
        };
        if actions.is_empty() {
            actions.push(hir::Action::new(kind, None, 0));
        }
        if let Some(first) = actions.first_mut() {
            first.format = Some(text);
        }
        let print = Print { format, args };
        let statement = match kind {
            Action::System => Statement::System(print),
            Action::Freopen => Statement::Freopen(print),
            _ => Statement::Printf(print),
        };
        Ok((statement, actions))
    }

    /// Returns the actions that record what a format prints, and what each argument is.
    fn printed(&mut self, call: &Called<'_>, kind: Action) -> Result<(Vec<hir::Action>, Vec<Arg>)> {
        let mut actions = Vec::new();
        let mut shapes = Vec::new();
        for arg in call.args.get(1..).unwrap_or(&[]) {
            let called = match &arg.kind {
                ExprKind::Agg { .. } => {
                    shapes.push(Arg::Aggregation);
                    continue;
                }
                ExprKind::Call { name, args, .. } => self.address_action(name, args, arg.span)?,
                _ => None,
            };
            let value = match called {
                Some((action, ty)) => {
                    shapes.push(Arg::Value(ty));
                    actions.push(action);
                    continue;
                }
                None => self.expression(arg)?,
            };
            let value = super::translate::shown(self.typed(value)?, &self.state.types);
            let null = value.constant() == Some(0) && self.state.types.is_pointer(value.ty);
            shapes.push(if null {
                Arg::Null
            } else {
                Arg::Value(value.ty)
            });
            // A `void` argument has no code. The check of the format reports it.
            if self.state.types.resolve(value.ty) != Ty::VOID {
                actions.push(hir::Action::new(kind, Some(self.value(&value)?), 0));
            }
        }
        Ok((actions, shapes))
    }

    pub(super) fn printa(&mut self, call: &Called<'_>) -> Result<Made> {
        let has_format = match call.args.first().map(|arg| &arg.kind) {
            Some(ExprKind::Agg { .. }) => false,
            _ => {
                let ty = self.type_of_argument(call, 0)?;
                self.state.types.is_string(ty)
            }
        };
        if has_format && call.args.len() < 2 {
            let text = "prototype mismatch: 1 args passed, 2 expected";
            return Err(call.error("D_PRINTA_PROTO", text));
        }
        let format = match has_format {
            true => Some(self.format(call)?),
            false => None,
        };
        let mut known = Vec::new();
        for (index, arg) in call.args.iter().enumerate().skip(usize::from(has_format)) {
            let ExprKind::Agg { name, .. } = &arg.kind else {
                let ty = self.type_of_argument(call, index)?;
                let given = self.state.types.name(ty);
                let mut error = incompatible(call.name(), index, "aggregation", &given, arg.span);
                error.tag = "D_PRINTA_AGGARG";
                return Err(error);
            };
            known.push(self.known_aggregation(name, call.name(), arg.span)?);
        }
        if let [first, others @ ..] = known.as_slice() {
            for other in others {
                same_keys(&self.state.types, first.keyed(), other.keyed(), call.span)?;
            }
            if let Some((_, format)) = &format {
                let checked = Call {
                    name: call.name(),
                    before: 1,
                    span: call.span,
                };
                let value = |known: &Known| match known.func.is_float() {
                    true => Ty::DOUBLE,
                    false => Ty::INT64_T,
                };
                let values: Vec<Ty> = known.iter().map(value).collect();
                check_printa(&self.state.types, checked, format, &first.keys, &values)?;
            }
        }
        let aggs = known.iter().map(|known| known.id).collect();
        let (text, format) = format.unzip();
        let action = hir::Action {
            format: text,
            ..hir::Action::new(Action::Printa, None, 0)
        };
        Ok((Statement::Printa { format, aggs }, vec![action]))
    }

    pub(super) fn tracemem(&mut self, call: &Called<'_>) -> Result<Made> {
        let address = self.argument(call, 0)?;
        let types = &self.state.types;
        if types.int(address.ty).is_none() && types.pointee(address.ty).is_none() {
            let given = types.name(address.ty);
            let wanted = "pointer or integer";
            let mut error = incompatible(call.name(), 0, wanted, &given, call.place(0));
            error.tag = "D_TRACEMEM_ADDR";
            return Err(error);
        }
        let size = self
            .positive_size(call, 1, Ty::SIZE_T, "D_TRACEMEM_SIZE", "argument #2")?
            .unwrap_or(0);
        let mut actions = Vec::new();
        if call.args.len() > 2 {
            let dynamic = self.integer(call, 2, Ty::SIZE_T)?;
            let code = self.value(&dynamic)?;
            actions.push(hir::Action::new(Action::TracememDynsize, Some(code), 0));
        }
        let user = address.user || self.state.types.is_userland(address.ty);
        let code = self.bytes_at(&address, size, user)?;
        actions.push(hir::Action::new(Action::Tracemem, Some(code), size.into()));
        Ok((Statement::Tracemem, actions))
    }

    /// Checks `print()`, which prints what a pointer points to, or a value as a whole. The
    /// statement holds the type.
    pub(super) fn print(&mut self, call: &Called<'_>) -> Result<Made> {
        let value = self.argument(call, 0)?;
        let value = self.typed(value)?;
        let types = &self.state.types;
        match value.kind {
            hir::ExprKind::Translated { .. } => self.print_translated(call, value),
            _ if types.is_pointer(value.ty) => self.print_target(call, value),
            _ => self.print_value(call, value),
        }
    }

    /// Prints a translated structure, or the one that a pointer stands for, without the members
    /// that this kernel does not have.
    fn print_translated(&mut self, call: &Called<'_>, value: Expr) -> Result<Made> {
        let ty = match self.state.types.is_pointer(value.ty) {
            true => self.state.types.pointee(value.ty).unwrap_or(value.ty),
            false => value.ty,
        };
        self.printable_size(call, ty)?;
        let (object, members) = self.translated_object(Expr { ty, ..value })?;
        let mut shape = shape_of(&mut self.state.types, ty);
        if let Form::Record(fields) = &mut shape.form {
            fields.retain(|field| members.contains(&field.name));
        }
        let action = hir::Action::new(Action::Difexpr, Some(self.value(&object)?), 0);
        Ok((Statement::PrintValue(Box::new(shape)), vec![action]))
    }

    fn print_value(&mut self, call: &Called<'_>, value: Expr) -> Result<Made> {
        let types = &self.state.types;
        let is_value = types.is_scalar(value.ty)
            || matches!(
                types.base(value.ty),
                TypeKind::Record(_)
                    | TypeKind::Array(..)
                    | TypeKind::String
                    | TypeKind::Float { .. }
            );
        if value.constant().is_some() || !is_value {
            let given = types.name(value.ty);
            return Err(incompatible(
                call.name(),
                0,
                "void *",
                &given,
                call.place(0),
            ));
        }
        self.printable_size(call, value.ty)?;
        let shape = shape_of(&mut self.state.types, value.ty);
        let action = hir::Action::new(Action::Difexpr, Some(self.value(&value)?), 0);
        Ok((Statement::PrintValue(Box::new(shape)), vec![action]))
    }

    /// Returns the size in bytes of what is to be printed. Fails if it has none.
    fn printable_size(&self, call: &Called<'_>, ty: Ty) -> Result<u32> {
        let types = &self.state.types;
        let size = u32::try_from(types.size(ty).unwrap_or(0)).ok();
        size.filter(|&size| size > 0).ok_or_else(|| {
            let text = format!(
                "argument #1 reference has type '{}' with size 0; cannot print( ) it.",
                types.name(ty)
            );
            call.error("D_PRINT_SIZE", &text)
        })
    }

    /// Records the address and the bytes of what a pointer points to.
    fn print_target(&mut self, call: &Called<'_>, pointer: Expr) -> Result<Made> {
        let types = &self.state.types;
        let target = types.pointee(pointer.ty).unwrap_or(Ty::VOID);
        let size = self.printable_size(call, target)?;
        let types = &self.state.types;
        let user = pointer.user || types.is_userland(pointer.ty);
        let pointer = pointer.retype(Ty::UINTPTR_T);
        let address = self.value(&pointer)?;
        let object = self.bytes_at(&pointer, size, user)?;
        let shape = shape_of(&mut self.state.types, target);
        Ok((
            Statement::Print(Box::new(shape)),
            vec![
                hir::Action::new(Action::Difexpr, Some(address), 0),
                hir::Action::new(Action::Tracemem, Some(object), size.into()),
            ],
        ))
    }
}
