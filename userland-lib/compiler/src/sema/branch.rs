// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Statements under a condition: `if`, and `condition ? statement : statement`.
//!
//! A constant condition selects a branch at compile time; the other branch is checked and leaves no
//! code. The DIF machine has no branches between actions, so a body with a branch becomes several
//! clauses of the same probe, its parts, which fire in order. A part ends by storing the condition
//! in a hidden clause-local variable, and each branch is a part whose predicate tests that
//! variable. The first part evaluates the clause's own predicate once and keeps the result in a
//! variable that the predicates of all other parts test. A part clears that variable while it runs
//! and sets it again at its end, so a fault, or a record that does not fit the buffer, ends the
//! clause as it would without branches.
//!
//! The speculation to which the body records is kept too: each part after `speculate()` speculates
//! again, up to the end of the branch that called it. If that speculation does not exist, the part
//! is skipped and the clause continues.
//!
//! A choice between expressions needs no parts: it is one expression whose value is unused.

use super::clause::{Builder, Order};
use super::Sema;
use crate::diag::{Diagnostic, Result};
use crate::hir::{Action, Code, Expr, ExprKind, Place, VarRef};
use crate::source::Span;
use crate::syntax::ast::{self, BinaryOp};
use dtrace_types::Ty;
use dtrace_uapi::action;

/// A hidden variable and the value that it must have.
#[derive(Clone, Debug)]
pub(super) struct Condition {
    var: VarRef,
    value: u64,
}

impl Condition {
    fn test(&self) -> Expr {
        let span = Span::default();
        let var = Expr::new(ExprKind::Var(self.var.clone()), Ty::INT, span);
        let compare = ExprKind::Compare {
            op: BinaryOp::Eq,
            signed: false,
            left: Box::new(var),
            right: Box::new(Expr::int(self.value, Ty::INT, span)),
        };
        Expr::new(compare, Ty::INT, span)
    }
}

/// A part of a clause and the conditions under which it runs.
pub(super) struct Part {
    conditions: Vec<Condition>,
    actions: Vec<Action>,
}

impl Part {
    /// The only part of a clause without branches.
    pub(super) fn whole(actions: Vec<Action>) -> Self {
        Self {
            conditions: Vec::new(),
            actions,
        }
    }
}

/// Predicate and actions of one clause for the kernel.
pub(super) type Ready = (Option<Code>, Vec<Action>);

/// Whether a statement is a `?:` between actions or aggregations, so that it is handled as an `if`.
pub(super) fn picks_action(statement: &ast::Expr) -> bool {
    match &statement.kind {
        ast::ExprKind::Cond(_, then, otherwise) => acts(then) || acts(otherwise),
        _ => false,
    }
}

fn acts(e: &ast::Expr) -> bool {
    match &e.kind {
        ast::ExprKind::Call { name, .. } => super::actions::is_action(name),
        ast::ExprKind::Assign { target, .. } => matches!(target.kind, ast::ExprKind::Agg { .. }),
        ast::ExprKind::Comma(first, second) => acts(first) || acts(second),
        _ => picks_action(e),
    }
}

/// Whether an expression is useful as a statement.
pub(super) fn matters(e: &Expr) -> bool {
    e.has_effect() || matches!(e.kind, ExprKind::Call(..))
}

/// Returns the error that a statement has no effect.
pub(super) fn null_effect(span: Span) -> Box<Diagnostic> {
    Diagnostic::new("D_EXPR_NULL", span, "expression has null effect")
}

fn assigned(var: &VarRef, value: Expr) -> Expr {
    let span = value.span;
    let kind = ExprKind::Assign(Place::Var(var.clone()), Box::new(value));
    Expr::new(kind, Ty::INT, span)
}

/// Returns `condition` as 0 or 1.
fn truth(condition: &Expr) -> Expr {
    let span = condition.span;
    let kind = match condition.kind {
        ExprKind::Compare { .. }
        | ExprKind::CompareFloat(..)
        | ExprKind::CompareStr(..)
        | ExprKind::Logic(..)
        | ExprKind::Not(_) => condition.kind.clone(),
        _ => ExprKind::Compare {
            op: BinaryOp::Ne,
            signed: false,
            left: Box::new(condition.clone()),
            right: Box::new(Expr::int(0, condition.ty, span)),
        },
    };
    Expr::new(kind, Ty::INT, span)
}

impl Sema<'_, '_> {
    /// Checks a statement `condition ? then : otherwise` and adds its actions. `idle` permits a
    /// statement without effect.
    pub(super) fn conditional(
        &mut self,
        statement: &ast::Expr,
        idle: bool,
        builder: &mut Builder,
    ) -> Result<()> {
        let ast::ExprKind::Cond(condition, then, otherwise) = &statement.kind else {
            return Ok(());
        };
        if picks_action(statement) {
            let condition = self.choosing(condition)?;
            return self.branch(
                &condition,
                |sema, builder| sema.picked(then, builder),
                |sema, builder| sema.picked(otherwise, builder),
                builder,
            );
        }
        let (choice, matters) = self.choice(statement)?;
        self.has_value()?;
        if !matters && !idle {
            return Err(null_effect(statement.span));
        }
        match choice.constant() {
            Some(_) => Ok(()),
            None => self.effect(&choice, builder),
        }
    }

    /// Types the condition of a `?:`.
    fn choosing(&mut self, condition: &ast::Expr) -> Result<Expr> {
        let condition = self.operand(condition)?;
        self.scalar_condition(&condition, "?:")?;
        Ok(self.condition(condition))
    }

    /// Adds the actions of a branch of `?:`, which may have no effect.
    fn picked(&mut self, e: &ast::Expr, builder: &mut Builder) -> Result<()> {
        self.nested(e.span, |sema| match &e.kind {
            ast::ExprKind::Comma(first, second) => {
                sema.picked(first, builder)?;
                sema.picked(second, builder)
            }
            _ => sema.statement(e, true, builder),
        })
    }

    /// Types a choice between expressions whose values are unused, so that their types need not
    /// agree. Also returns whether any part of the choice has an effect.
    fn choice(&mut self, e: &ast::Expr) -> Result<(Expr, bool)> {
        let nothing = Expr::int(0, Ty::INT, e.span);
        let ast::ExprKind::Cond(condition, then, otherwise) = &e.kind else {
            let value = self.expression(e)?;
            super::translate::in_memory(&value)?;
            if !matters(&value) {
                return Ok((nothing, false));
            }
            let kind = ExprKind::Comma(Box::new(value), Box::new(nothing));
            return Ok((Expr::new(kind, Ty::INT, e.span), true));
        };
        let condition = self.choosing(condition)?;
        let (then, one) = self.nested(e.span, |sema| sema.choice(then))?;
        let (otherwise, other) = self.nested(e.span, |sema| sema.choice(otherwise))?;
        let matters = one || other || condition.has_effect();
        let choice = match self.known(&condition) {
            Some(0) => otherwise,
            Some(_) => then,
            None => {
                let [condition, then, otherwise] = [condition, then, otherwise].map(Box::new);
                Expr::new(ExprKind::Cond(condition, then, otherwise), Ty::INT, e.span)
            }
        };
        Ok((choice, matters))
    }

    /// Adds two branches and the code that selects one of them.
    pub(super) fn branch(
        &mut self,
        condition: &Expr,
        then: impl FnOnce(&mut Self, &mut Builder) -> Result<()>,
        otherwise: impl FnOnce(&mut Self, &mut Builder) -> Result<()>,
        builder: &mut Builder,
    ) -> Result<()> {
        match self.known(condition) {
            Some(0) => {
                self.checked(then, builder)?;
                otherwise(self, builder)
            }
            Some(_) => {
                then(self, builder)?;
                self.checked(otherwise, builder)
            }
            None => {
                let var = self.hidden_variable("condition", condition.span)?;
                self.effect(&assigned(&var, truth(condition)), builder)?;
                self.seal(builder)?;
                self.under(&var, 1, then, builder)?;
                self.under(&var, 0, otherwise, builder)
            }
        }
    }

    /// Checks a branch that is never taken, and discards its actions and statements.
    fn checked(
        &mut self,
        body: impl FnOnce(&mut Self, &mut Builder) -> Result<()>,
        builder: &Builder,
    ) -> Result<()> {
        let mut unused = Builder {
            order: builder.order,
            speculating: builder.speculating.clone(),
            branches: builder.branches,
            ..Builder::default()
        };
        let known = self.program.statements.len();
        body(self, &mut unused)?;
        self.program.statements.truncate(known);
        self.program.spans.truncate(known);
        Ok(())
    }

    /// Adds a branch that is taken if `var` has this value.
    fn under(
        &mut self,
        var: &VarRef,
        value: u64,
        body: impl FnOnce(&mut Self, &mut Builder) -> Result<()>,
        builder: &mut Builder,
    ) -> Result<()> {
        let var = var.clone();
        builder.conditions.push(Condition { var, value });
        let outer = builder.speculating.clone();
        body(self, builder)?;
        self.seal(builder)?;
        builder.conditions.pop();
        // A speculation that the branch started ends with the branch.
        builder.speculating = outer;
        self.carry_on(builder)
    }

    /// Ends the current part; what follows belongs to the next one.
    pub(super) fn seal(&mut self, builder: &mut Builder) -> Result<()> {
        // An action list with nothing but the `speculate` carried over from the previous part is
        // not yet a part: it begins the next one.
        let carried = builder.speculating.is_some()
            && matches!(builder.actions.as_slice(), [only] if only.kind == action::Action::Speculate);
        if builder.actions.is_empty() || carried {
            return Ok(());
        }
        let actions = std::mem::take(&mut builder.actions);
        let conditions = builder.conditions.clone();
        builder.done.push(Part {
            conditions,
            actions,
        });
        self.carry_on(builder)
    }

    /// Begins a part, which speculates as the previous one did.
    fn carry_on(&mut self, builder: &mut Builder) -> Result<()> {
        builder.actions.clear();
        builder.order = Order::default();
        if let Some(speculating) = &builder.speculating {
            let action = self.speculate(&speculating.id, speculating.uarg)?;
            builder.actions.push(action);
            builder.order.speculated = true;
        }
        Ok(())
    }

    /// Returns the kernel's clauses that a clause with branches becomes.
    pub(super) fn assemble(
        &mut self,
        predicate: Option<Expr>,
        mut parts: Vec<Part>,
        span: Span,
    ) -> Result<Vec<Ready>> {
        let whole = parts.iter().all(|part| part.conditions.is_empty()) && parts.len() <= 1;
        if whole {
            let predicate = self.decided(predicate)?;
            let actions = parts.pop().map_or_else(Vec::new, |part| part.actions);
            return Ok(vec![(predicate, self.never_default(actions, span)?)]);
        }
        let goes_on = self.hidden_variable("goes on", span)?;
        let mut first = Builder::default();
        let set = |value| assigned(&goes_on, Expr::int(value, Ty::INT, Span::default()));
        match predicate {
            Some(predicate) => {
                // If the predicate faults, the variable must be clear so that no part runs.
                if !predicate.is_safe() {
                    self.effect(&set(0), &mut first)?;
                }
                self.effect(&assigned(&goes_on, truth(&predicate)), &mut first)?;
            }
            None => self.effect(&set(1), &mut first)?,
        }
        let mut ready = vec![(None, first.actions)];
        let mut parts = parts.into_iter().peekable();
        while let Some(part) = parts.next() {
            let followed = parts.peek().is_some();
            let (set, reset) = (set(1), set(0));
            ready.push(self.part(part, &goes_on, followed.then_some([set, reset]))?);
        }
        Ok(ready)
    }

    /// Returns predicate and actions of a part. If another part follows, `marks` set and clear the
    /// variable that lets that part run.
    fn part(&mut self, part: Part, goes_on: &VarRef, marks: Option<[Expr; 2]>) -> Result<Ready> {
        let first = Condition {
            var: goes_on.clone(),
            value: 1,
        };
        let mut tests = first.test();
        let both = |left, right| {
            let both = ExprKind::Logic(BinaryOp::LogAnd, Box::new(left), Box::new(right));
            Expr::new(both, Ty::INT, Span::default())
        };
        for condition in &part.conditions {
            tests = both(tests, condition.test());
        }
        let mut actions = part.actions;
        let speculates = actions
            .iter()
            .position(|action| action.kind == action::Action::Speculate);
        if let Some([set, reset]) = marks {
            match speculates {
                // Only after `speculate` it is known that the speculation exists. If it does not,
                // the actions end there and the variable stays set.
                Some(at) => actions.insert(at + 1, self.effect_alone(&reset)?),
                None => {
                    // The predicate clears the variable as its last step.
                    let one = Expr::int(1, Ty::INT, Span::default());
                    let kind = ExprKind::Comma(Box::new(reset), Box::new(one));
                    tests = both(tests, Expr::new(kind, Ty::INT, Span::default()));
                }
            }
            actions.push(self.effect_alone(&set)?);
        }
        Ok((self.decision(&tests)?, actions))
    }

    /// Returns `actions`, or one action without effect if there are none, because a clause without
    /// actions would get the default action.
    fn never_default(&mut self, mut actions: Vec<Action>, span: Span) -> Result<Vec<Action>> {
        if actions.is_empty() {
            actions.push(self.effect_alone(&Expr::int(0, Ty::INT, span))?);
        }
        Ok(actions)
    }
}
