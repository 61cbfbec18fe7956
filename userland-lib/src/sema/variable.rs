// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The program's own variables: declared, or brought into being by their first assignment.

use super::hir::{VarRef, VarScope};
use super::scratch::Origin;
use super::Sema;
use crate::diag::{nearest, Diagnostic, Result};
use crate::source::Span;
use crate::syntax::ast::Expr;
use crate::types::{DataModel, Ty};
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
    /// Where it points, if it is a pointer and that is known.
    pub origin: Option<Origin>,
    /// Nobody declared it, and its type follows from what is assigned to it.
    pub is_inferred: bool,
    /// It was said that it cuts values.
    cuts: bool,
}

/// What a global name means.
#[derive(Clone, Debug)]
pub enum Global {
    /// A variable.
    Variable(Variable),
    /// An inline: its type, the parameters' names and types, and the expression to be put in its place.
    Inline {
        /// Its type.
        ty: Ty,
        /// The parameters.
        params: Vec<(String, Ty)>,
        /// The expression.
        value: Box<Expr>,
        /// How large the types are that it names.
        model: DataModel,
    },
}

/// All variables of a compiler. Each scope numbers its variables by itself.
#[derive(Clone, Debug, Default)]
pub struct Table {
    globals: HashMap<String, Global>,
    scoped: HashMap<(VarScope, String), Variable>,
    next: [u16; 3],
}

impl Table {
    /// What the global `name` means.
    pub fn global(&self, name: &str) -> Option<&Global> {
        self.globals.get(name)
    }

    /// The variable `name` of a scope that is not the global one.
    pub fn scoped(&self, scope: VarScope, name: &str) -> Option<&Variable> {
        self.scoped.get(&(scope, name.to_owned()))
    }

    /// The variable `name` of any scope.
    pub fn find(&self, scope: VarScope, name: &str) -> Option<&Variable> {
        match scope {
            VarScope::Global => match self.globals.get(name) {
                Some(Global::Variable(variable)) => Some(variable),
                _ => None,
            },
            _ => self.scoped(scope, name),
        }
    }

    /// Names the inline `name`.
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

    /// Adds a variable; `None` where its scope is full.
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

    /// Gives a variable whose type was not declared the type `ty`; whether it had another.
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

    /// Whether this is the first time that the declared variable `var` was found to cut a value.
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
    /// The error that nothing is called `name`, with a suggestion if something is called nearly so.
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

    /// Adds a variable that nobody declared, whose first value is of type `ty`.
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

    /// Adds a variable.
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
