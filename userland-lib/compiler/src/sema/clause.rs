// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Clauses: which actions are enabled on which probes.
//!
//! A clause is checked once for each of its probe descriptions, because the types of `args[]` may
//! differ between them.
//!
//! [`branch`](super::branch) handles statements under a condition.

use super::branch::{self, Condition, Part};
use super::Sema;
use crate::diag::{Diagnostic, Result};
use crate::hir::{Action, Clause, Code, Expr, Purpose, VarRef, VarScope};
use crate::program::PART_BITS;
use crate::source::Span;
use crate::statement::Statement;
use crate::syntax::ast::{self, Stmt};
use dtrace_types::Ty;
use dtrace_uapi::action;

/// What the statements of a clause have done so far. Some statements may not follow others.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Order {
    /// Something was recorded.
    pub(super) recorded: bool,
    /// Records go to a speculation.
    pub(super) speculated: bool,
    /// A speculation was committed.
    pub(super) committed: bool,
}

/// The speculation to which a clause of the source records, if it becomes several clauses.
#[derive(Clone)]
pub(super) struct Speculating {
    /// Reads the hidden variable that holds the number of the speculation.
    pub(super) id: Expr,
    /// Number of the statement that called `speculate()`.
    pub(super) uarg: u64,
}

/// A clause under construction.
#[derive(Default)]
pub(super) struct Builder {
    pub(super) actions: Vec<Action>,
    pub(super) order: Order,
    /// Set after `speculate()` in a body with branches.
    pub(super) speculating: Option<Speculating>,
    /// Whether the body has branches.
    pub(super) branches: bool,
    /// The finished parts.
    pub(super) done: Vec<Part>,
    /// Conditions under which the current part runs.
    pub(super) conditions: Vec<Condition>,
}

impl Sema<'_, '_> {
    /// Checks a clause of the source for each of its probe descriptions.
    pub(super) fn clause(&mut self, clause: &ast::Clause) -> Result<()> {
        for (text, span) in &clause.probes {
            for context in self.probes(text, *span)? {
                self.probe = context;
                match self.settings.walker {
                    true => self.walker(clause, *span)?,
                    false => self.clause_at(clause, *span)?,
                }
            }
        }
        Ok(())
    }

    /// Checks the clause for the current probes (`self.probe`) and adds the clauses that it
    /// becomes.
    fn clause_at(&mut self, clause: &ast::Clause, span: Span) -> Result<()> {
        let parts = self.clause_parts(clause)?;
        for (part, (predicate, actions)) in parts.into_iter().enumerate() {
            let probes = self.probe.pattern.clone();
            self.clauses.push(Clause {
                probes,
                predicate,
                actions,
                number: clause_number(self.state.clauses, part),
                span,
            });
        }
        self.state.clauses += 1;
        Ok(())
    }

    /// Returns predicate and actions of each clause that a clause of the source becomes.
    fn clause_parts(&mut self, clause: &ast::Clause) -> Result<Vec<branch::Ready>> {
        let branches = clause.body.iter().any(|stmt| match stmt {
            Stmt::If { .. } | Stmt::While { .. } => true,
            Stmt::Expr(expr) => branch::picks_action(expr),
        });
        let mut builder = Builder {
            branches,
            ..Builder::default()
        };
        // The predicate is checked first, so that its errors are reported before those of the body.
        // The exception is an unknown variable, which the body may create.
        let early = self.clause_predicate(clause);
        if let Err(error) = &early {
            if error.tag != "D_IDENT_UNDEF" {
                return early.map(|_| Vec::new());
            }
        }
        let body = self
            .statements(&clause.body, &mut builder)
            .map_err(|error| error.within("action list"));
        let predicate = self.late_predicate(clause, early, body)?;
        if clause.body.is_empty() {
            return Ok(vec![(self.decided(predicate)?, builder.actions)]);
        }
        match branches {
            true => self.seal(&mut builder)?,
            false => builder.done.push(Part::whole(builder.actions)),
        }
        self.assemble(predicate, builder.done, clause.span)
    }

    /// Returns the predicate of a clause whose body has been checked. If the first check failed
    /// because of an unknown variable, checks again, because the body may have created the
    /// variable. If predicate and body fail with the same error, reports the predicate's.
    fn late_predicate(
        &mut self,
        clause: &ast::Clause,
        early: Result<Option<Expr>>,
        body: Result<()>,
    ) -> Result<Option<Expr>> {
        match (early, body) {
            (Ok(predicate), Ok(())) => Ok(predicate),
            (Err(_), Ok(())) => self.clause_predicate(clause),
            (Err(early), Err(error)) if error.tag == early.tag => Err(early),
            (_, Err(error)) => Err(error),
        }
    }

    /// Returns the typed predicate of the clause, if it has one.
    fn clause_predicate(&mut self, clause: &ast::Clause) -> Result<Option<Expr>> {
        let Some(written) = &clause.predicate else {
            return Ok(None);
        };
        let checked = self.predicate(written).map_err(|error| {
            let error = error.within("predicate");
            match error.tag {
                "D_PRED_SCALAR" => error.counted_at(clause.end),
                _ => error,
            }
        });
        checked.map(Some)
    }

    /// Types a predicate or another condition, which must be a scalar.
    pub(super) fn predicate(&mut self, predicate: &ast::Expr) -> Result<Expr> {
        let expr = self.expression(predicate)?;
        if !self.state.types.is_scalar(expr.ty) {
            let message = "predicate result must be of scalar type";
            return Err(Diagnostic::new("D_PRED_SCALAR", expr.span, message));
        }
        Ok(self.condition(expr))
    }

    pub(super) fn statements(&mut self, statements: &[Stmt], builder: &mut Builder) -> Result<()> {
        for statement in statements {
            match statement {
                Stmt::Expr(expr) => self.statement(expr, false, builder)?,
                Stmt::If {
                    condition,
                    then,
                    otherwise,
                } => {
                    let condition = self.predicate(condition)?;
                    self.branch(
                        &condition,
                        |sema, builder| sema.statements(then, builder),
                        |sema, builder| sema.statements(otherwise, builder),
                        builder,
                    )?;
                }
                Stmt::While { condition, .. } => {
                    let message = "a loop is for walkers only";
                    return Err(Diagnostic::new("D_SYNTAX", condition.span, message));
                }
            }
        }
        Ok(())
    }

    /// Creates a clause-local variable of type `int` whose name no program can spell.
    pub(super) fn hidden_variable(&mut self, what: &str, span: Span) -> Result<VarRef> {
        // `ERROR` fires in the middle of another clause, so clauses must not share such a variable.
        let number = self.state.hidden;
        self.state.hidden += 1;
        self.hidden_of_type(&format!("<{what} {number}>"), Ty::INT, span)
    }

    /// Returns the clause-local variable `name`, which no program can spell, and creates it if
    /// necessary. The caller must always pass the same type for one name.
    pub(super) fn hidden_of_type(&mut self, name: &str, ty: Ty, span: Span) -> Result<VarRef> {
        Ok(match self.state.variables.find(VarScope::Clause, name) {
            Some(known) => known.place.clone(),
            None => {
                self.add_variable(VarScope::Clause, name, ty, None, span)?
                    .place
            }
        })
    }

    /// Checks one statement and adds its actions. `idle` permits a statement without effect.
    pub(super) fn statement(
        &mut self,
        statement: &ast::Expr,
        idle: bool,
        builder: &mut Builder,
    ) -> Result<()> {
        let known = builder.actions.len();
        // Statements within this one are checked by themselves.
        let is_speculated = builder.order.speculated;
        self.any_statement(statement, idle, builder)?;
        let added = builder.actions.get(known..).unwrap_or(&[]);
        if is_speculated && added.iter().any(Action::is_destructive) {
            let message = "destructive actions may not follow speculate( )";
            return Err(Diagnostic::new("D_ACT_SPEC", statement.span, message));
        }
        Ok(())
    }

    fn any_statement(
        &mut self,
        statement: &ast::Expr,
        idle: bool,
        builder: &mut Builder,
    ) -> Result<()> {
        let span = statement.span;
        match &statement.kind {
            ast::ExprKind::Assign { op, target, value } => {
                if let ast::ExprKind::Agg { name, keys } = &target.kind {
                    if op.is_some() {
                        let message = "aggregation must be assigned by operator =";
                        return Err(Diagnostic::new("D_AGG_OP", span, message));
                    }
                    return self.aggregate(name, keys, value, span, builder);
                }
                if let ast::ExprKind::Index(base, _) = &target.kind {
                    super::access::one_tuple_of_keys(base, target.span)?;
                }
            }
            ast::ExprKind::Agg { name, keys } => {
                if keys.is_empty() {
                    self.known_aggregation(name, "", span)?;
                }
                let message = "expression has null effect";
                return Err(Diagnostic::new("D_AGG_NULL", span, message));
            }
            ast::ExprKind::Cond(..) => return self.conditional(statement, idle, builder),
            _ => (),
        }
        if let ast::ExprKind::Call {
            name,
            name_span,
            args,
        } = &statement.kind
        {
            if self.action(name, *name_span, args, span, builder)? {
                return Ok(());
            }
        }
        let expr = self.expression(statement)?;
        super::translate::in_memory(&expr)?;
        self.has_value()?;
        match branch::matters(&expr) {
            true => self.effect(&expr, builder),
            false if idle => Ok(()),
            false => Err(branch::null_effect(span)),
        }
    }

    /// Adds an action that evaluates an expression and discards its value.
    pub(super) fn effect(&mut self, expr: &Expr, builder: &mut Builder) -> Result<()> {
        builder.actions.push(self.effect_alone(expr)?);
        Ok(())
    }

    /// Returns an action that evaluates an expression and discards its value.
    pub(super) fn effect_alone(&self, expr: &Expr) -> Result<Action> {
        let code = self.code(expr, Purpose::Discarded)?;
        Ok(Action::new(action::Action::Difexpr, Some(code), 0))
    }

    fn code(&self, expr: &Expr, purpose: Purpose) -> Result<Code> {
        self.has_value()?;
        let expr = expr.clone();
        Ok(Code { expr, purpose })
    }

    /// Fails if an expression used something without a value, so that no code can be generated.
    pub(super) fn has_value(&self) -> Result<()> {
        self.valueless.clone().map_or(Ok(()), Err)
    }

    /// Returns the code of an expression whose value the kernel records.
    pub(super) fn value(&self, expr: &Expr) -> Result<Code> {
        super::translate::in_memory(expr)?;
        self.code(expr, Purpose::Recorded)
    }

    /// Returns the code of an expression whose value is the address of `size` bytes, which the
    /// kernel records. `user` says whether the address is in user space.
    pub(super) fn bytes_at(&self, expr: &Expr, size: u32, user: bool) -> Result<Code> {
        super::translate::in_memory(expr)?;
        self.code(expr, Purpose::Bytes { size, user })
    }

    /// Returns the code of the clause's own predicate; `None` if there is none or it is always
    /// true.
    pub(super) fn decided(&self, predicate: Option<Expr>) -> Result<Option<Code>> {
        let code = predicate.map(|predicate| self.decision(&predicate));
        Ok(code.transpose()?.flatten())
    }

    /// Returns the code of a predicate; `None` if it is always true.
    pub(super) fn decision(&self, expr: &Expr) -> Result<Option<Code>> {
        let code = self.code(expr, Purpose::Decides)?;
        let is_always_true = expr.constant().is_some_and(|value| value != 0);
        Ok((!is_always_true).then_some(code))
    }

    /// Returns the code of an expression whose value the kernel uses but does not record.
    pub(super) fn unrecorded(&self, expr: &Expr) -> Result<Code> {
        super::translate::in_memory(expr)?;
        self.code(expr, Purpose::Used)
    }

    /// Adds a statement for the consumer and returns its number.
    pub(super) fn add_statement(&mut self, statement: Statement, span: Span) -> u64 {
        let uarg = self.program.first_uarg + self.program.statements.len() as u64;
        self.program.statements.push(statement);
        self.program.spans.push(span);
        uarg
    }
}

/// Returns the number of one part of the clause `clause` of the source. The low [`PART_BITS`] bits
/// count the parts; parts of one clause belong to one firing.
fn clause_number(clause: u64, part: usize) -> u64 {
    clause << PART_BITS | part as u64 & ((1 << PART_BITS) - 1)
}
