// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Walks the syntax tree and computes the least attribute of all names in an expression.

use super::{minimum, Known, GREATEST, PRIVATE, STABLE};
use crate::syntax::ast::{
    Ast, BaseKind, Clause, Declaration, Expr, ExprKind, Item, Scope, Stmt, Storage, TypeName,
};
use dtrace_uapi::types::Attribute;

impl Known {
    /// Records a program's declarations other than clauses.
    pub(super) fn declare(&mut self, ast: &Ast) {
        self.pragmas(ast);
        for item in &ast.items {
            match item {
                Item::Declaration(declaration) => self.declaration(declaration),
                // The result of a translator is as stable as its output type.
                Item::Translator(translator) => self.declare_type(&translator.output.base.kind),
                Item::Clause(_) | Item::Provider(_) => {}
            }
        }
    }

    fn declaration(&mut self, declaration: &Declaration) {
        self.declare_type(&declaration.base.kind);
        for declared in &declaration.declarators {
            let name = &declared.declarator.name;
            if declaration.storage == Storage::Typedef {
                self.types.insert(name.clone());
            }
            if let Some(value) = &declared.value {
                let attribute = self.expression(value, STABLE);
                self.assign(name.clone(), attribute);
            }
        }
    }

    /// A type that is declared with its members or items is the program's own.
    fn declare_type(&mut self, kind: &BaseKind) {
        let tag = match kind {
            BaseKind::Record {
                tag,
                members: Some(_),
                ..
            } => tag,
            BaseKind::Enum {
                tag,
                items: Some(_),
                ..
            } => tag,
            _ => return,
        };
        self.types.extend(tag.clone());
    }

    /// Returns the least attribute of a clause's predicate and statements. `arguments` is the
    /// attribute of its probes' arguments.
    pub(super) fn clause(&mut self, clause: &Clause, arguments: Attribute) -> Attribute {
        let predicate = clause.predicate.as_ref();
        let predicate = predicate.map_or(GREATEST, |expr| self.expression(expr, arguments));
        minimum(predicate, self.statements(&clause.body, arguments))
    }

    fn statements(&mut self, statements: &[Stmt], arguments: Attribute) -> Attribute {
        let mut least = GREATEST;
        for statement in statements {
            let attribute = match statement {
                Stmt::Expr(expr) => self.expression(expr, arguments),
                Stmt::If {
                    condition,
                    then,
                    otherwise,
                } => {
                    let condition = self.expression(condition, arguments);
                    let then = self.statements(then, arguments);
                    let otherwise = self.statements(otherwise, arguments);
                    minimum(condition, minimum(then, otherwise))
                }
                Stmt::While { condition, body } => {
                    let condition = self.expression(condition, arguments);
                    minimum(condition, self.statements(body, arguments))
                }
            };
            least = minimum(least, attribute);
        }
        least
    }

    fn all<'e>(
        &mut self,
        start: Attribute,
        parts: impl IntoIterator<Item = &'e Expr>,
        arguments: Attribute,
    ) -> Attribute {
        let parts = parts.into_iter();
        parts.fold(start, |least, part| {
            minimum(least, self.expression(part, arguments))
        })
    }

    /// Returns the attribute of an expression. Assignments pass attributes on to variables.
    fn expression(&mut self, expr: &Expr, arguments: Attribute) -> Attribute {
        match &expr.kind {
            ExprKind::Int(..) | ExprKind::Float(..) | ExprKind::Str(_) => STABLE,
            ExprKind::Name {
                module: Some(_), ..
            } => PRIVATE,
            ExprKind::Name { module: None, name } if name == "args" => {
                minimum(self.name(name), arguments)
            }
            ExprKind::Name { module: None, name } => self.name(name),
            ExprKind::Scoped(scope, name) => self.name(&scoped(*scope, name)),
            ExprKind::Agg { keys, .. } => self.all(STABLE, keys, arguments),
            ExprKind::Call { name, args, .. } => self.all(self.name(name), args, arguments),
            ExprKind::Index(base, index) => {
                let base = self.expression(base, arguments);
                self.all(base, index, arguments)
            }
            ExprKind::Member { base, .. }
            | ExprKind::Unary(_, base)
            | ExprKind::Step { target: base, .. }
            | ExprKind::SizeofExpr(base)
            | ExprKind::Stringof(base) => self.expression(base, arguments),
            ExprKind::Binary(_, left, right) | ExprKind::Comma(left, right) => {
                self.all(STABLE, [&**left, &**right], arguments)
            }
            ExprKind::Cond(condition, yes, no) => {
                self.all(STABLE, [&**condition, &**yes, &**no], arguments)
            }
            ExprKind::Assign { target, value, .. } => {
                let attribute = self.expression(value, arguments);
                if let Some(name) = variable(target) {
                    self.assign(name, attribute);
                }
                minimum(attribute, self.expression(target, arguments))
            }
            ExprKind::Cast(ty, value) => {
                minimum(self.of_type(ty), self.expression(value, arguments))
            }
            // The result of a translator does not depend on the stability of its input.
            ExprKind::Xlate(ty, _) | ExprKind::SizeofType(ty) | ExprKind::Offsetof(ty, _) => {
                self.of_type(ty)
            }
        }
    }

    /// A record or an enumeration that no program has declared is the kernel's.
    fn of_type(&self, ty: &TypeName) -> Attribute {
        let is_own = match &ty.base.kind {
            BaseKind::Words(_) | BaseKind::Str => true,
            BaseKind::Named { module, .. } => module.is_none(),
            BaseKind::Record { tag, members, .. } => {
                members.is_some() || tag.as_ref().is_some_and(|tag| self.types.contains(tag))
            }
            BaseKind::Enum { tag, items, .. } => {
                items.is_some() || tag.as_ref().is_some_and(|tag| self.types.contains(tag))
            }
        };
        if is_own {
            STABLE
        } else {
            PRIVATE
        }
    }

    /// A variable is no more stable than the values assigned to it.
    fn assign(&mut self, name: String, attribute: Attribute) {
        if !self.fixed.contains(&name) {
            let known = self.names.entry(name).or_insert(STABLE);
            *known = minimum(*known, attribute);
        }
    }
}

/// Returns the variable that is the target of an assignment.
fn variable(target: &Expr) -> Option<String> {
    match &target.kind {
        ExprKind::Name { module: None, name } => Some(name.clone()),
        ExprKind::Scoped(scope, name) => Some(scoped(*scope, name)),
        ExprKind::Index(base, _) | ExprKind::Member { base, .. } => variable(base),
        _ => None,
    }
}

/// Returns a key that no other variable has.
fn scoped(scope: Scope, name: &str) -> String {
    match scope {
        Scope::Thread => format!("self->{name}"),
        Scope::Clause => format!("this->{name}"),
    }
}
