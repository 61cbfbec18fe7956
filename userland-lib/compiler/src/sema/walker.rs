// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Walkers: clauses whose statements form one expression, with loops.
//!
//! A walker finds the frames of interpreted code in a stack, see `interp` of `dtrace-machine`. It
//! contains no actions, so `if` becomes a conditional expression, and statements in sequence become
//! the operands of a comma.

use super::Sema;
use crate::diag::{Diagnostic, Result};
use crate::hir::{Clause, Expr, ExprKind};
use crate::source::Span;
use crate::syntax::ast::{self, Stmt};
use dtrace_types::Ty;

impl Sema<'_, '_> {
    /// Checks a walker, and adds it as a clause with one expression.
    pub(super) fn walker(&mut self, clause: &ast::Clause, span: Span) -> Result<()> {
        if let Some(predicate) = &clause.predicate {
            let message = "a walker has no predicate";
            return Err(Diagnostic::new("D_SYNTAX", predicate.span, message));
        }
        let body = self.walker_body(&clause.body, span)?;
        let action = self.effect_alone(&body)?;
        self.clauses.push(Clause {
            probes: self.probe.pattern.clone(),
            predicate: None,
            actions: vec![action],
            number: 0,
            span,
        });
        Ok(())
    }

    /// Returns the statements as one expression, whose value is 0.
    fn walker_body(&mut self, statements: &[Stmt], span: Span) -> Result<Expr> {
        let mut all = Expr::int(0, Ty::INT, span);
        let mut checked = Vec::new();
        for statement in statements {
            checked.push(self.walker_part(statement)?);
        }
        for part in checked.into_iter().rev() {
            let span = part.span;
            let kind = ExprKind::Comma(Box::new(part), Box::new(all));
            all = Expr::new(kind, Ty::INT, span);
        }
        Ok(all)
    }

    fn walker_part(&mut self, statement: &Stmt) -> Result<Expr> {
        let (kind, span) = match statement {
            Stmt::Expr(written) => {
                let expr = self.expression(written)?;
                self.has_value()?;
                return Ok(expr);
            }
            Stmt::If {
                condition,
                then,
                otherwise,
            } => {
                let span = condition.span;
                let condition = Box::new(self.predicate(condition)?);
                let then = Box::new(self.walker_body(then, span)?);
                let otherwise = Box::new(self.walker_body(otherwise, span)?);
                (ExprKind::Cond(condition, then, otherwise), span)
            }
            Stmt::While { condition, body } => {
                let span = condition.span;
                let condition = Box::new(self.predicate(condition)?);
                let body = Box::new(self.walker_body(body, span)?);
                (ExprKind::While(condition, body), span)
            }
        };
        Ok(Expr::new(kind, Ty::INT, span))
    }
}
