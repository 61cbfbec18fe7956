// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Aggregations: `@name[keys] = function(value)`.
//!
//! The first use of an aggregation creates it and fixes its function, the function's parameters and
//! the types of its keys. All later uses must agree. An aggregating statement becomes one action
//! for each key, one for the increment of a distribution if given, and last the aggregating action,
//! whose `ntuple` counts the actions before it.

use super::clause::Builder;
use super::printf::Keyed;
use super::shape::record_kind;
use super::Sema;
use super::{actions, aggfunc, call, distribution};
use crate::diag::{Diagnostic, Result};
use crate::hir::{self, Expr};
use crate::source::Span;
use crate::statement::{AggVarId, Kind, Statement};
use crate::syntax::ast::{self, ExprKind};
use dtrace_files::nearest::nearest;
use dtrace_types::Ty;
use dtrace_uapi::action::Action;

/// An aggregation that has been used.
#[derive(Clone, Debug)]
pub struct Known {
    /// Its number.
    pub id: AggVarId,
    /// Its name without `@`; `_` for the unnamed aggregation.
    pub name: String,
    /// Its function.
    pub func: Action,
    /// The function's parameters.
    pub arg: u64,
    /// Types of its keys.
    pub keys: Vec<Ty>,
    /// The expressions of its keys, as the first use has them.
    pub written: Vec<String>,
}

impl Known {
    /// Returns name and keys, to compare them with those of other aggregations of one `printa()`.
    pub(super) fn keyed(&self) -> Keyed<'_> {
        Keyed {
            name: &self.name,
            keys: &self.keys,
        }
    }
}

/// Returns the name of an aggregation in tables: `_` for the unnamed one.
fn table_name(name: &str) -> &str {
    if name.is_empty() {
        "_"
    } else {
        name
    }
}

impl Sema<'_, '_> {
    /// Returns the aggregation `name`. `user` is the action that refers to it and selects the error
    /// tag.
    pub(super) fn known_aggregation(&self, name: &str, user: &str, span: Span) -> Result<Known> {
        let wanted = table_name(name);
        let known = &self.state.aggregations;
        if let Some(known) = known.iter().find(|known| known.name == wanted) {
            return Ok(known.clone());
        }
        let tag = match user {
            "printa" => "D_PRINTA_AGGBAD",
            "clear" => "D_CLEAR_AGGBAD",
            "trunc" => "D_TRUNC_AGGBAD",
            "normalize" | "denormalize" => "D_NORMALIZE_AGGBAD",
            _ => "D_IDENT_UNDEF",
        };
        let error = Diagnostic::new(tag, span, format!("undefined aggregation: @{name}"));
        Err(
            match nearest(wanted, known.iter().map(|known| known.name.as_str())) {
                Some(near) => error.note(format!("did you mean `@{near}`?")),
                None => error,
            },
        )
    }

    /// Checks an aggregating statement and adds its actions.
    pub(super) fn aggregate(
        &mut self,
        name: &str,
        keys: &[ast::Expr],
        value: &ast::Expr,
        span: Span,
        builder: &mut Builder,
    ) -> Result<()> {
        let ExprKind::Call {
            name: function,
            name_span,
            args,
        } = &value.kind
        else {
            let message = format!("@{name} must be assigned the result of an aggregating function");
            return Err(Diagnostic::new("D_AGG_FUNC", value.span, message));
        };
        let Some(func) = aggfunc::function(function) else {
            if call::find(function).is_some() || actions::is_action(function) {
                let message = format!("{function}( ) is not an aggregating function");
                return Err(Diagnostic::new("D_AGG_FUNC", *name_span, message));
            }
            let message = format!("undefined aggregating function: {function}");
            let error = Diagnostic::new("D_FUNC_UNDEF", *name_span, message);
            return Err(match nearest(function, aggfunc::NAMES.iter().copied()) {
                Some(near) => error.note(format!("did you mean `{near}`?")),
                None => error,
            });
        };
        if builder.order.speculated {
            let message = "aggregating actions may not follow speculate( )";
            return Err(Diagnostic::new("D_AGG_SPEC", span, message));
        }
        if builder.order.committed {
            let message = "aggregating actions may not follow commit( )";
            return Err(Diagnostic::new("D_AGG_COMM", span, message));
        }
        let mut checked = Vec::with_capacity(args.len());
        for arg in args {
            checked.push(self.expression(arg)?);
        }
        let call = aggfunc::check(&self.state.types, func, &checked, span)?;
        let func = self.aggregated(name, func, &call, &mut checked);

        let mut tuple: Vec<(hir::Action, Ty)> = Vec::with_capacity(keys.len());
        let mut known = self.state.aggregations.iter();
        let known = known.find(|known| known.name == table_name(name));
        let known = known.map_or_else(Vec::new, |known| known.keys.clone());
        for (index, key) in keys.iter().enumerate() {
            let known = known.get(index).copied();
            tuple.push(self.key(name, index, key, known)?);
        }
        let types: Vec<Ty> = tuple.iter().map(|(_, ty)| *ty).collect();
        let var = self.enter_aggregation(name, func, call.arg, &types, keys, span)?;
        let kinds: Vec<Kind> = types
            .iter()
            .map(|ty| record_kind(&self.state.types, *ty))
            .collect();
        let uarg = self.add_statement(Statement::Aggregate { var, keys: kinds }, span);

        let mut actions: Vec<hir::Action> = tuple.into_iter().map(|(action, _)| action).collect();
        if let Some(increment) = call.increment.and_then(|at| checked.get(at)) {
            let code = self.unrecorded(increment)?;
            actions.push(hir::Action::new(Action::Difexpr, Some(code), 0));
        }
        let value: Option<&Expr> = call.value.and_then(|at| checked.get(at));
        let ntuple = actions.len() as u32;
        let code = value.map(|value| self.value(value)).transpose()?;
        actions.push(hir::Action {
            ntuple,
            ..hir::Action::new(func, code, call.arg)
        });
        builder.actions.extend(
            actions
                .into_iter()
                .map(|action| hir::Action { uarg, ..action }),
        );
        Ok(())
    }

    /// Returns the function that aggregates values of this type, and converts the arguments to
    /// match. A floating-point number, or any number if the aggregation's first value was a
    /// floating-point number, is aggregated as a `double`. A distribution takes integers.
    fn aggregated(
        &self,
        name: &str,
        func: Action,
        call: &aggfunc::Aggregating,
        args: &mut [Expr],
    ) -> Action {
        let types = &self.state.types;
        let mut known = self.state.aggregations.iter();
        let known = known.find(|known| known.name == table_name(name));
        let value = call.value.and_then(|at| args.get(at));
        let value = value.map_or(Ty::VOID, |value| value.ty);
        let floats = aggfunc::of_floats(func).filter(|floats| {
            let as_before = known.is_some_and(|known| known.func == *floats);
            types.float(value).is_some() || as_before && types.is_number(value)
        });
        let ty = floats.map_or(Ty::INT64_T, |_| Ty::DOUBLE);
        for at in [call.value, call.increment].into_iter().flatten() {
            if let Some(arg) = args
                .get_mut(at)
                .filter(|arg| self.computes_in_float(arg.ty, ty))
            {
                *arg = self.convert(arg.clone(), ty);
            }
        }
        floats.unwrap_or(func)
    }

    /// Returns action and type of a key: a value, or the record of an action such as `stack()`. To
    /// make equal keys equal records, a number takes the type that the first use gave the key, and
    /// `stack()` is a value if it was one at the first use.
    fn key(
        &mut self,
        name: &str,
        index: usize,
        key: &ast::Expr,
        known: Option<Ty>,
    ) -> Result<(hir::Action, Ty)> {
        let of_values = known.is_some_and(|ty| self.state.types.frames_of(ty).is_some());
        if let (ExprKind::Call { name, args, .. }, false) = (&key.kind, of_values) {
            if let Some(keyed) = self.address_action(name, args, key.span)? {
                return Ok(keyed);
            }
        }
        let expr = self.expression(key)?;
        let mut expr = self.typed(expr)?;
        let name = table_name(name);
        let inferred = &self.state.inferred;
        let known =
            known.or_else(|| Some(inferred.key(&mut self.state.types, name, index, expr.ty)));
        // A constant that the key's type can hold does not widen that type.
        if let Some(ty) = known {
            if self
                .known(&expr)
                .is_none_or(|value| !self.holds(ty, expr.ty, value))
            {
                self.note_key(name, index, ty, expr.ty);
            }
        }
        let types = &self.state.types;
        if let Some(ty) = known.filter(|ty| types.is_number(*ty) && types.is_number(expr.ty)) {
            expr = self.convert(expr, ty);
        }
        let types = &self.state.types;
        let no_value = matches!(expr.kind, hir::ExprKind::Translated { .. });
        if no_value || types.resolve(expr.ty) == Ty::VOID || types.is_dynamic(expr.ty) {
            let message = "a key of an aggregation must have a value";
            return Err(Diagnostic::new("D_KEY_TYPE", key.span, message));
        }
        let action = hir::Action::new(Action::Difexpr, Some(self.value(&expr)?), 0);
        Ok((action, expr.ty))
    }

    /// Whether the constant `value` of type `from` keeps its value in type `to`.
    fn holds(&self, to: Ty, from: Ty, value: u64) -> bool {
        match (self.state.types.int(to), self.state.types.int(from)) {
            (Some(to), Some(from)) => from.normalize(to.normalize(value)) == value,
            _ => false,
        }
    }

    /// Adds an aggregation at its first use, or checks a later use against the first one.
    fn enter_aggregation(
        &mut self,
        name: &str,
        func: Action,
        arg: u64,
        keys: &[Ty],
        written: &[ast::Expr],
        span: Span,
    ) -> Result<AggVarId> {
        let wanted = table_name(name);
        let Some(known) = self
            .state
            .aggregations
            .iter()
            .find(|known| known.name == wanted)
        else {
            let id = self.state.aggregations.len() as AggVarId + 1;
            let known = Known {
                id,
                name: wanted.to_owned(),
                func,
                arg,
                keys: keys.to_vec(),
                written: written.iter().map(|key| self.text_of(key)).collect(),
            };
            self.state.aggregations.push(known);
            return Ok(id);
        };
        if known.func != func {
            let message = format!(
                "aggregation redefined: @{name}\n\t current: @{name} = {}\n\tprevious: @{name} = {}",
                aggfunc::called(func),
                aggfunc::called(known.func)
            );
            return Err(Diagnostic::new("D_AGG_REDEF", span, message));
        }
        distribution::same_parameters(func, known.arg, arg, span)?;
        if known.keys.len() != keys.len() {
            let plural = if keys.len() == 1 { "" } else { "s" };
            let message = format!(
                "@{name}[ ] prototype mismatch: {} key{plural} passed, {} expected",
                keys.len(),
                known.keys.len()
            );
            return Err(Diagnostic::new("D_PROTO_LEN", span, message));
        }
        for (index, (new, old)) in keys.iter().zip(&known.keys).enumerate() {
            let types = &self.state.types;
            let fits = types.compatible(*new, *old)
                || types.is_number(*new) && types.is_number(*old)
                || types.is_string_like(*new) && types.is_string_like(*old);
            if !fits {
                let message = format!(
                    "@{name}[ ] key #{} is incompatible with prototype:\n\tprototype: {}\n\t      key: {}",
                    index + 1,
                    types.name(*old),
                    types.name(*new)
                );
                let span = written.get(index).map_or(span, |key| key.span);
                let error = Diagnostic::new("D_PROTO_ARG", span, message);
                return Err(error.notes(types.stacks_differ(*old, *new)));
            }
        }
        Ok(known.id)
    }

    /// Returns the text of an expression, on one line.
    fn text_of(&self, expr: &ast::Expr) -> String {
        let words = self.source.slice(expr.span).split_whitespace();
        words.collect::<Vec<_>>().join(" ")
    }
}
