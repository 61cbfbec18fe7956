// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Inlines: names for expressions, optionally with parameters.
//!
//! The expression of an inline replaces its name at each use, so it is typed again each time. An
//! inline of a program is also checked where it is declared, with parameters that have a type but
//! no value, so that its errors are reported there. It cannot refer to itself, because its name is
//! added only after this check. An inline of a library is not checked there: it may refer to
//! something that this kernel lacks, which must affect only the programs that use it.
//!
//! Invariant: an inline sees globals and its own parameters, never the names bound around its use.

use super::variable::Global;
use super::Sema;
use crate::diag::{Diagnostic, Result};
use crate::hir::{Expr, ExprKind, VarRef, VarScope};
use crate::source::Span;
use crate::syntax::ast::{self, InitDeclarator};
use crate::syntax::MAX_CHAIN;
use dtrace_types::{DataModel, Ty};

/// Maximum height of the tree that an inline or a translator expands to: [`MAX_CHAIN`] operators
/// and an operand.
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

    /// Returns what a name already means, in DTrace's words. The text ends with a blank or with
    /// `inline`.
    pub(super) fn meaning(&self, name: &str) -> Option<String> {
        let array = |keyed| if keyed { "associative array" } else { "scalar" };
        Some(match self.state.variables.global(name) {
            Some(Global::Variable(variable)) => format!("{} ", array(variable.place.keyed)),
            Some(Global::Inline { params, .. }) => format!("{} inline", array(!params.is_empty())),
            None => match super::builtin::find(name) {
                Some(var) => format!("{} ", array(super::builtin::is_array(var))),
                None if super::call::find(name).is_some() => "function ".to_owned(),
                None if super::actions::is_action(name) => "tracing function ".to_owned(),
                None if super::aggfunc::function(name).is_some() => {
                    "aggregating function ".to_owned()
                }
                None => return None,
            },
        })
    }

    /// Checks an inline at its declaration.
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
            // A declaration has no probe, so the types of `args[]` are not known.
            Err(error) if error.tag.starts_with("D_ARGS_") => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Returns the value of an inline with its parameters bound, for a use at `span`.
    pub(super) fn inline(
        &mut self,
        ty: Ty,
        (value, model): (&ast::Expr, DataModel),
        params: Vec<(String, Expr)>,
        span: Span,
    ) -> Result<Expr> {
        // Spans in the text of the inline, which may be that of a library, mean nothing at its use.
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

    /// Types an expression from a program, or a library, of this data model.
    pub(super) fn of_model(&mut self, value: &ast::Expr, model: DataModel) -> Result<Expr> {
        let outer = self.state.types.model();
        self.state.types.set_model(model);
        let result = self.expression(value);
        self.state.types.set_model(outer);
        let result = result?;
        // Each expansion may be as long as the parser permits, and expansions nest.
        if result.operators() > MAX_OPERATORS {
            let message = format!("more than {MAX_CHAIN} operators in a row");
            let error = Diagnostic::new("D_SYNTAX", value.span, message);
            return Err(error.note("inlines and translators count with what they stand for"));
        }
        Ok(result)
    }
}

/// Returns an expression of type `ty` without a known value. It stands for a parameter while a
/// definition is checked, and is never turned into code.
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
