// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Inlines: names for expressions, perhaps with parameters.
//!
//! An inline's expression is put in the place of its name, so it is typed anew at each use. A program's inline is also
//! checked where it stands, with parameters that have a type but no value: what is wrong with it is told there, and it
//! cannot refer to itself, for its name is known only after that. A library's is not: it may speak of what this kernel
//! lacks, and then concerns those programs alone that use it.
//!
//! Invariant: an inline sees globals and its own parameters, never the names bound around its use.

use super::hir::{Expr, ExprKind, VarRef, VarScope};
use super::variable::Global;
use super::Sema;
use crate::diag::{Diagnostic, Result};
use crate::source::Span;
use crate::syntax::ast::{self, InitDeclarator};
use crate::syntax::MAX_CHAIN;
use crate::types::{DataModel, Ty};

/// How many operators may stand in each other in what an inline or a translator stands for: the operand is one more.
const MAX_OPERATORS: u32 = MAX_CHAIN + 1;

impl Sema<'_, '_> {
    /// Declares an inline of type `ty`; `params` are the parameters' names and types.
    pub(super) fn declare_inline(
        &mut self,
        init: &InitDeclarator,
        ty: Ty,
        params: Vec<(String, Ty)>,
    ) -> Result<()> {
        let (name, span) = (init.declarator.name.as_str(), init.declarator.span);
        let Some(value) = &init.value else {
            let message = format!("inline {name} has no value");
            return Err(Diagnostic::new("D_SYNTAX", span, message));
        };
        if let Some(previous) = self.meaning(name) {
            let message = format!(
                "identifier redefined: {name}\n\t current: inline definition\n\tprevious: {previous}"
            );
            return Err(Diagnostic::new("D_DECL_IDRED", span, message));
        }
        if let Some((unnamed, _)) = params.iter().enumerate().find(|(_, (n, _))| n.is_empty()) {
            let message = format!("inline {name} parameter #{} has no name", unnamed + 1);
            return Err(Diagnostic::new("D_DECL_PROTO_FORM", span, message));
        }
        if !self.is_library {
            self.check_inline(name, ty, &params, value)?;
        }
        let model = self.state.types.model();
        self.state
            .variables
            .add_inline(name, ty, params, value.clone(), model);
        Ok(())
    }

    /// What a name means already, in DTrace's words; ends with a blank or with `inline`.
    pub(super) fn meaning(&self, name: &str) -> Option<String> {
        let array = |keyed| if keyed { "associative array" } else { "scalar" };
        Some(match self.state.variables.global(name) {
            Some(Global::Variable(variable)) => format!("{} ", array(variable.place.keyed)),
            Some(Global::Inline { params, .. }) => format!("{} inline", array(!params.is_empty())),
            None => match super::builtin::find(name) {
                Some(var) => format!("{} ", array(super::builtin::is_array(var))),
                None if super::call::find(name).is_some() => "function ".to_owned(),
                None if super::action::is_action(name) => "tracing function ".to_owned(),
                None if super::aggfunc::function(name).is_some() => {
                    "aggregating function ".to_owned()
                }
                None => return None,
            },
        })
    }

    /// Checks an inline where it is declared.
    fn check_inline(
        &mut self,
        name: &str,
        ty: Ty,
        params: &[(String, Ty)],
        value: &ast::Expr,
    ) -> Result<()> {
        let param = |(name, ty): &(String, Ty)| (name.clone(), placeholder(name, *ty, value.span));
        let params = params.iter().map(param).collect();
        match self.inline_value(value, self.state.types.model(), params) {
            Ok(value) => {
                let fits = self.state.types.compatible(ty, value.ty)
                    || self.coerce(value.clone(), ty, "=", value.span).is_ok();
                match fits {
                    true => Ok(()),
                    false => {
                        let types = &self.state.types;
                        let message = format!(
                            "inline {name} definition uses incompatible types: \"{}\" = \"{}\"",
                            types.name(ty),
                            types.name(value.ty)
                        );
                        let error = Diagnostic::new("D_OP_INCOMPAT", value.span, message);
                        Err(error.notes(types.stacks_differ(ty, value.ty)))
                    }
                }
            }
            // There is no probe here whose arguments could be looked at.
            Err(error) if error.tag.starts_with("D_ARGS_") => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// An inline's value with its parameters bound, in place of its use.
    pub(super) fn inline(
        &mut self,
        ty: Ty,
        (value, model): (&ast::Expr, DataModel),
        params: Vec<(String, Expr)>,
        span: Span,
    ) -> Result<Expr> {
        // Places in the inline's own text, perhaps a library's, mean nothing here.
        let placed = |mut error: Box<Diagnostic>| {
            error.span = span;
            error.counted = None;
            error
        };
        let result = self.inline_value(value, model, params).map_err(placed)?;
        let result = match self.state.types.compatible(ty, result.ty) {
            true => result,
            false => self.coerce(result, ty, "=", span)?,
        };
        Ok(result.placed(span))
    }

    fn inline_value(
        &mut self,
        value: &ast::Expr,
        model: DataModel,
        params: Vec<(String, Expr)>,
    ) -> Result<Expr> {
        let outer = std::mem::replace(&mut self.bindings, params);
        let result = self.of_model(value, model);
        self.bindings = outer;
        result
    }

    /// An expression that was written in a program of this data model, perhaps a library.
    pub(super) fn of_model(&mut self, value: &ast::Expr, model: DataModel) -> Result<Expr> {
        let outer = self.state.types.model();
        self.state.types.set_model(model);
        let result = self.expression(value);
        self.state.types.set_model(outer);
        let result = result?;
        // Each may be as long as a program's own, and they may stand in each other.
        if result.operators() > MAX_OPERATORS {
            let message = format!("more than {MAX_CHAIN} operators in a row");
            let error = Diagnostic::new("D_SYNTAX", value.span, message);
            return Err(error.note("inlines and translators count with what they stand for"));
        }
        Ok(result)
    }
}

/// Something of type `ty` whose value is not known: stands for a parameter while a definition is checked, and is never
/// turned into code.
pub(super) fn placeholder(name: &str, ty: Ty, span: Span) -> Expr {
    let var = VarRef {
        name: name.to_owned(),
        scope: VarScope::Clause,
        id: 0,
        ty,
        keyed: false,
    };
    Expr::new(ExprKind::Var(var), ty, span)
}
