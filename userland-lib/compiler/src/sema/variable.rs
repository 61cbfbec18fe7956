// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Variables of the program: declared, or created by their first assignment.

use super::scratch::Origin;
use super::Sema;
use crate::diag::{Diagnostic, Result};
use crate::hir::{VarRef, VarScope};
use crate::source::Span;
use crate::syntax::ast::Expr;
use dtrace_files::nearest::nearest;
use dtrace_types::{DataModel, Ty};
use dtrace_uapi::dif::DIF_NTREGS;
use dtrace_uapi::var::OTHER_UBASE;
use std::collections::HashMap;

/// A variable.
#[derive(Clone, Debug)]
pub struct Variable {
    /// How code refers to it.
    pub place: VarRef,
    /// Types of the keys of an associative array.
    pub keys: Vec<Ty>,
    /// Where the variable points, if it is a pointer and that is known.
    pub origin: Option<Origin>,
    /// Whether the variable is undeclared, so that its type follows from what is assigned to it.
    pub is_inferred: bool,
    /// Whether a warning that the variable truncates values has been given.
    cuts: bool,
}

/// What a global name means.
#[derive(Clone, Debug)]
pub enum Global {
    /// A variable.
    Variable(Variable),
    /// An inline, whose expression replaces its name.
    Inline {
        /// Its type.
        ty: Ty,
        /// Names and types of the parameters.
        params: Vec<(String, Ty)>,
        /// The expression.
        value: Box<Expr>,
        /// Data model in which the expression is typed.
        model: DataModel,
    },
}

/// All variables of a compiler. Each scope numbers its own variables.
#[derive(Clone, Debug, Default)]
pub struct Table {
    globals: HashMap<String, Global>,
    scoped: HashMap<(VarScope, String), Variable>,
    next: [u16; 3],
}

impl Table {
    /// Returns what the global `name` means.
    pub fn global(&self, name: &str) -> Option<&Global> {
        self.globals.get(name)
    }

    /// Returns the variable `name` of a scope other than the global one.
    pub fn scoped(&self, scope: VarScope, name: &str) -> Option<&Variable> {
        self.scoped.get(&(scope, name.to_owned()))
    }

    /// Returns the variable `name` of any scope.
    pub fn find(&self, scope: VarScope, name: &str) -> Option<&Variable> {
        match scope {
            VarScope::Global => match self.globals.get(name) {
                Some(Global::Variable(variable)) => Some(variable),
                _ => None,
            },
            _ => self.scoped(scope, name),
        }
    }

    /// Adds the inline `name`.
    pub fn add_inline(
        &mut self,
        name: &str,
        ty: Ty,
        params: Vec<(String, Ty)>,
        value: Expr,
        model: DataModel,
    ) {
        self.globals.insert(
            name.to_owned(),
            Global::Inline {
                ty,
                params,
                value: Box::new(value),
                model,
            },
        );
    }

    /// Adds a variable. Returns `None` if its scope is full.
    pub fn add(
        &mut self,
        scope: VarScope,
        name: &str,
        ty: Ty,
        keys: Option<Vec<Ty>>,
    ) -> Option<Variable> {
        let next = &mut self.next[scope as usize];
        let id = OTHER_UBASE.checked_add(*next)?;
        *next = next.checked_add(1)?;
        let variable = Variable {
            place: VarRef {
                name: name.to_owned(),
                scope,
                id,
                ty,
                keyed: keys.is_some(),
            },
            keys: keys.unwrap_or_default(),
            origin: None,
            is_inferred: false,
            cuts: false,
        };
        match scope {
            VarScope::Global => {
                self.globals
                    .insert(name.to_owned(), Global::Variable(variable.clone()));
            }
            _ => {
                self.scoped
                    .insert((scope, name.to_owned()), variable.clone());
            }
        }
        Some(variable)
    }

    fn find_mut(&mut self, scope: VarScope, name: &str) -> Option<&mut Variable> {
        match scope {
            VarScope::Global => match self.globals.get_mut(name) {
                Some(Global::Variable(variable)) => Some(variable),
                _ => None,
            },
            scope => self.scoped.get_mut(&(scope, name.to_owned())),
        }
    }

    /// Notes where the variable `var` points.
    pub fn set_origin(&mut self, var: &VarRef, origin: Origin) {
        if let Some(variable) = self.find_mut(var.scope, &var.name) {
            variable.origin = Some(origin);
        }
    }

    /// Notes that the type of the variable was not declared.
    pub fn set_inferred(&mut self, var: &VarRef) {
        if let Some(variable) = self.find_mut(var.scope, &var.name) {
            variable.is_inferred = true;
        }
    }

    /// Gives an undeclared variable the type `ty`. Returns whether it had another.
    pub fn widen(&mut self, scope: VarScope, name: &str, ty: Ty) -> bool {
        let variable = self.find_mut(scope, name);
        match variable.filter(|variable| variable.is_inferred && variable.place.ty != ty) {
            Some(variable) => {
                variable.place.ty = ty;
                true
            }
            None => false,
        }
    }

    /// Whether the declared variable `var` truncates a value for the first time. Notes that it
    /// does.
    pub fn first_cut(&mut self, var: &VarRef) -> bool {
        let variable = self.find_mut(var.scope, &var.name);
        let variable = variable.filter(|variable| !variable.is_inferred);
        variable.is_some_and(|variable| !std::mem::replace(&mut variable.cuts, true))
    }

    fn names(&self, scope: VarScope) -> Vec<&str> {
        match scope {
            VarScope::Global => self.globals.keys().map(String::as_str).collect(),
            _ => self
                .scoped
                .keys()
                .filter(|(known, _)| *known == scope)
                .map(|(_, name)| name.as_str())
                .collect(),
        }
    }
}

impl Sema<'_, '_> {
    /// Returns the error that no variable is called `name`, with a suggestion if a similar name
    /// exists.
    pub(super) fn unknown_variable(
        &self,
        scope: VarScope,
        name: &str,
        span: Span,
    ) -> Box<Diagnostic> {
        let error = Diagnostic::new(
            "D_IDENT_UNDEF",
            span,
            format!("failed to resolve {name}: Unknown variable name"),
        );
        let mut names = self.state.variables.names(scope);
        names.sort_unstable();
        if scope == VarScope::Global {
            for builtin in super::builtin::names() {
                names.push(builtin);
            }
        }
        match nearest(name, names.into_iter()) {
            Some(known) => error.note(format!("did you mean `{known}`?")),
            None => error,
        }
    }

    /// Adds an undeclared variable whose first value is of type `ty`.
    pub(super) fn infer_variable(
        &mut self,
        scope: VarScope,
        name: &str,
        ty: Ty,
        keys: Option<Vec<Ty>>,
        span: Span,
    ) -> Result<Variable> {
        let ty = match self.state.types.int(ty) {
            Some(_) => self.state.inferred.variable(scope, name, ty),
            None => ty,
        };
        let ty = self.state.types.inferred(ty);
        let variable = self.add_variable(scope, name, ty, keys, span)?;
        self.state.variables.set_inferred(&variable.place);
        Ok(variable)
    }

    /// Adds a variable. Fails if it has too many keys or its scope is full.
    pub(super) fn add_variable(
        &mut self,
        scope: VarScope,
        name: &str,
        ty: Ty,
        keys: Option<Vec<Ty>>,
        span: Span,
    ) -> Result<Variable> {
        let tuple = keys.as_ref().map_or(0, Vec::len);
        if tuple > usize::from(DIF_NTREGS) {
            let message = "Insufficient tuple registers to generate code";
            let error = Diagnostic::generators(span, message);
            return Err(error.note(format!(
                "{name} has {tuple} keys; an associative array has {DIF_NTREGS} at most"
            )));
        }
        self.state
            .variables
            .add(scope, name, ty, keys)
            .ok_or_else(|| {
                Diagnostic::new(
                    "D_ID_OFLOW",
                    span,
                    format!("cannot create {name}: too many variables"),
                )
            })
    }
}
