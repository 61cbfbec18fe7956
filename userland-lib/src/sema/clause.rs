// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Clauses: what is enabled on which probes.
//!
//! A clause is checked once for each of its descriptions, since the types of `args[]` may differ between them.
//!
//! `if` is not known to the DIF machine. A body with one becomes several clauses of the same probe, which fire in
//! order: the statements up to the `if` end in one that stores the condition in a hidden clause-local variable, and
//! each branch is a clause under a predicate that asks for it. A condition has three values, 1, 0, and
//! [`UNKNOWN`], which is stored first where its evaluation may fault: then neither branch is taken. The clause's own predicate
//! is evaluated once and kept in the same way, and so is the speculation that the body records to: each clause that follows
//! `speculate()` speculates anew, up to the end of the branch that called it.

use super::hir::{Expr, ExprKind, Place, VarRef, VarScope};
use super::Sema;
use crate::codegen::asm::AsmError;
use crate::codegen::lower;
use crate::diag::{Diagnostic, Result};
use crate::program::{ActionDesc, Clause, Difo};
use crate::source::Span;
use crate::statement::Statement;
use crate::syntax::ast::{self, BinaryOp, Stmt};
use crate::types::Ty;
use dtrace_uapi::action::Action;
use dtrace_uapi::dif::Op;
use dtrace_uapi::subr::Subr;
use dtrace_uapi::types::DifType;

/// A condition that was not decided.
const UNKNOWN: u64 = 2;

/// A condition and the value that it must have.
#[derive(Clone, Debug)]
struct Condition {
    var: VarRef,
    value: u64,
}

/// What the statements of a clause have done so far: some may not follow others.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Order {
    /// Something was recorded.
    pub(super) recorded: bool,
    /// Records go to a speculation.
    pub(super) speculated: bool,
    /// A speculation was committed.
    pub(super) committed: bool,
}

/// The speculation that a clause of the source records to, once it becomes several clauses.
#[derive(Clone)]
pub(super) struct Speculating {
    /// The hidden variable that has its number.
    pub(super) id: Expr,
    /// The statement.
    pub(super) uarg: u64,
}

/// A clause in the making.
#[derive(Default)]
pub(super) struct Builder {
    pub(super) actions: Vec<ActionDesc>,
    pub(super) order: Order,
    /// Set after `speculate()` in a body with branches.
    pub(super) speculating: Option<Speculating>,
    /// The body has branches.
    pub(super) branches: bool,
    done: Vec<(Option<Difo>, Vec<ActionDesc>)>,
    conditions: Vec<Condition>,
}

impl Sema<'_, '_> {
    /// Checks a clause of the source.
    pub(super) fn clause(&mut self, clause: &ast::Clause) -> Result<()> {
        for (text, span) in &clause.probes {
            self.probe = self.probes(text, *span)?;
            let parts = self.clause_parts(clause)?;
            for (predicate, actions) in parts {
                let probes = self.probe.pattern.clone();
                self.program.clauses.push(Clause {
                    probes,
                    predicate,
                    actions,
                    number: self.state.clauses,
                    span: *span,
                });
                self.state.clauses += 1;
            }
        }
        Ok(())
    }

    /// Predicates and actions of the clauses that one clause of the source becomes.
    fn clause_parts(
        &mut self,
        clause: &ast::Clause,
    ) -> Result<Vec<(Option<Difo>, Vec<ActionDesc>)>> {
        let branches = clause.body.iter().any(|stmt| match stmt {
            Stmt::If { .. } => true,
            Stmt::Expr(expr) => conditional_action(expr).is_some(),
        });
        let mut builder = Builder {
            branches,
            ..Builder::default()
        };
        let early = self.clause_predicate(clause);
        if let Err(error) = &early {
            if error.tag != "D_IDENT_UNDEF" {
                return early.map(|_| Vec::new());
            }
        }
        if !branches {
            let body = self
                .statements(&clause.body, &mut builder)
                .map_err(|error| error.within("action list"));
            let predicate = self.late_predicate(clause, early, body)?;
            let predicate = predicate
                .map(|expr| self.decision(&expr))
                .transpose()?
                .flatten();
            return Ok(vec![(predicate, builder.actions)]);
        }
        let var = match clause.predicate {
            Some(_) => Some(self.hidden_variable("condition", clause.span)?),
            None => None,
        };
        let condition = var.iter().map(|var| Condition {
            var: var.clone(),
            value: 1,
        });
        builder.conditions.extend(condition);
        let body = self
            .statements(&clause.body, &mut builder)
            .map_err(|error| error.within("action list"));
        let predicate = self.late_predicate(clause, early, body)?;
        self.seal(&mut builder)?;
        let mut first = Builder::default();
        if let (Some(predicate), Some(var)) = (predicate, var) {
            self.decide(&predicate, &var, &mut first)?;
            self.seal(&mut first)?;
        }
        first.done.append(&mut builder.done);
        Ok(first.done)
    }

    /// The predicate of a clause whose body is checked: what it was found to be before the body, or now, if it speaks
    /// of a variable that the body brings into being.
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

    /// The clause's predicate.
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

    fn predicate(&mut self, predicate: &ast::Expr) -> Result<Expr> {
        let expr = self.expression(predicate)?;
        if !self.state.types.is_scalar(expr.ty) {
            let message = "predicate result must be of scalar type";
            return Err(Diagnostic::new("D_PRED_SCALAR", expr.span, message));
        }
        Ok(self.condition(expr))
    }

    fn statements(&mut self, statements: &[Stmt], builder: &mut Builder) -> Result<()> {
        for statement in statements {
            match statement {
                Stmt::Expr(expr) => match conditional_action(expr) {
                    Some([condition, then, otherwise]) => {
                        let [then, otherwise] = [then, otherwise].map(|e| Stmt::Expr(e.clone()));
                        self.branch(condition, &[then], &[otherwise], builder)?;
                    }
                    None => self.statement(expr, builder)?,
                },
                Stmt::If {
                    condition,
                    then,
                    otherwise,
                } => {
                    self.branch(condition, then, otherwise, builder)?;
                }
            }
        }
        Ok(())
    }

    fn branch(
        &mut self,
        condition: &ast::Expr,
        then: &[Stmt],
        otherwise: &[Stmt],
        builder: &mut Builder,
    ) -> Result<()> {
        let condition = self.predicate(condition)?;
        let var = self.hidden_variable("condition", condition.span)?;
        self.decide(&condition, &var, builder)?;
        self.seal(builder)?;
        for (value, body) in [(1, then), (0, otherwise)] {
            if body.is_empty() {
                continue;
            }
            builder.conditions.push(Condition {
                var: var.clone(),
                value,
            });
            let outer = builder.speculating.clone();
            self.statements(body, builder)?;
            self.seal(builder)?;
            builder.conditions.pop();
            // What a branch begins to speculate with ends with the branch.
            builder.speculating = outer;
            self.carry_on(builder)?;
        }
        Ok(())
    }

    /// Adds the actions that leave the truth of `condition` in `var`.
    fn decide(&mut self, condition: &Expr, var: &VarRef, builder: &mut Builder) -> Result<()> {
        let span = condition.span;
        let truth = match condition.kind {
            // These are 0 or 1 by themselves.
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
        let unknown = (!condition.is_safe()).then(|| Expr::int(UNKNOWN, Ty::INT, span));
        for value in unknown.into_iter().chain([Expr::new(truth, Ty::INT, span)]) {
            let assign = ExprKind::Assign(Place::Var(var.clone()), Box::new(value));
            self.effect(&Expr::new(assign, Ty::INT, span), builder)?;
        }
        Ok(())
    }

    /// A new clause-local variable of type `int` that no program can spell.
    pub(super) fn hidden_variable(&mut self, what: &str, span: Span) -> Result<VarRef> {
        let number = self.hidden;
        self.hidden += 1;
        self.hidden_of_type(&format!("<{what} {number}>"), Ty::INT, span)
    }

    /// The clause-local variable `name`, which no program can spell, always of the same type.
    pub(super) fn hidden_of_type(&mut self, name: &str, ty: Ty, span: Span) -> Result<VarRef> {
        Ok(match self.state.variables.find(VarScope::Clause, name) {
            Some(known) => known.place.clone(),
            None => {
                self.add_variable(VarScope::Clause, name, ty, None, span)?
                    .place
            }
        })
    }

    /// Ends the clause at hand; what follows belongs to the next one.
    fn seal(&mut self, builder: &mut Builder) -> Result<()> {
        // What was only carried on from the clause before is that of the next one.
        let carried = builder.speculating.is_some()
            && matches!(builder.actions.as_slice(), [only] if only.kind == Action::Speculate);
        if builder.actions.is_empty() || carried {
            return Ok(());
        }
        let actions = std::mem::take(&mut builder.actions);
        self.carry_on(builder)?;
        let conditions = builder.conditions.iter().map(|condition| {
            let span = Span::default();
            let var = Expr::new(ExprKind::Var(condition.var.clone()), Ty::INT, span);
            let compare = ExprKind::Compare {
                op: BinaryOp::Eq,
                signed: false,
                left: Box::new(var),
                right: Box::new(Expr::int(condition.value, Ty::INT, span)),
            };
            Expr::new(compare, Ty::INT, span)
        });
        let all = conditions.reduce(|left, right| {
            let both = ExprKind::Logic(BinaryOp::LogAnd, Box::new(left), Box::new(right));
            Expr::new(both, Ty::INT, Span::default())
        });
        let predicate = all.map(|expr| self.decision(&expr)).transpose()?.flatten();
        builder.done.push((predicate, actions));
        Ok(())
    }

    /// Begins a clause, which speculates as the one before did.
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

    /// Checks one statement and adds its actions.
    fn statement(&mut self, statement: &ast::Expr, builder: &mut Builder) -> Result<()> {
        let known = builder.actions.len();
        self.any_statement(statement, builder)?;
        let added = builder.actions.get(known..).unwrap_or(&[]);
        let destroys = |action: &ActionDesc| action.difo.as_ref().is_some_and(calls_destructive);
        if builder.order.speculated && added.iter().any(destroys) {
            let message = "destructive actions may not follow speculate( )";
            return Err(Diagnostic::new("D_ACT_SPEC", statement.span, message));
        }
        Ok(())
    }

    fn any_statement(&mut self, statement: &ast::Expr, builder: &mut Builder) -> Result<()> {
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
        if !expr.has_effect() && !matches!(expr.kind, ExprKind::Call(..)) {
            let message = "expression has null effect";
            return Err(Diagnostic::new("D_EXPR_NULL", span, message));
        }
        self.effect(&expr, builder)
    }

    /// Adds the evaluation of an expression whose value nobody wants.
    pub(super) fn effect(&mut self, expr: &Expr, builder: &mut Builder) -> Result<()> {
        self.has_value()?;
        let difo =
            lower::effect(expr, &self.state.types).map_err(|why| too_large(why, expr.span))?;
        builder.actions.push(ActionDesc {
            kind: Action::Difexpr,
            difo: Some(difo),
            format: None,
            ntuple: 0,
            arg: 0,
            uarg: 0,
        });
        Ok(())
    }

    /// Refuses to make code where something without a value was met.
    fn has_value(&self) -> Result<()> {
        self.valueless.clone().map_or(Ok(()), Err)
    }

    /// The code of an expression, whose value is recorded.
    pub(super) fn value(&self, expr: &Expr) -> Result<Difo> {
        self.has_value()?;
        super::translate::in_memory(expr)?;
        lower::value(expr, &self.state.types).map_err(|why| too_large(why, expr.span))
    }

    /// The code of a predicate; none where it is always true.
    fn decision(&self, expr: &Expr) -> Result<Option<Difo>> {
        self.has_value()?;
        if expr.constant().is_some_and(|value| value != 0) {
            return Ok(None);
        }
        let difo = lower::predicate(expr, &self.state.types);
        difo.map(Some).map_err(|why| too_large(why, expr.span))
    }

    /// The code of an expression that the kernel does not record.
    pub(super) fn unrecorded(&self, expr: &Expr) -> Result<Difo> {
        Ok(Difo {
            rtype: DifType::default(),
            ..self.value(expr)?
        })
    }

    /// Adds a statement for the consumer and returns its number.
    pub(super) fn add_statement(&mut self, statement: Statement, span: Span) -> u64 {
        let uarg = self.program.first_uarg + self.program.statements.len() as u64;
        self.program.statements.push(statement);
        self.program.spans.push(span);
        uarg
    }
}

/// The parts of a statement `condition ? then : otherwise` that picks an action, so that it is an `if`.
fn conditional_action(statement: &ast::Expr) -> Option<[&ast::Expr; 3]> {
    let ast::ExprKind::Cond(condition, then, otherwise) = &statement.kind else {
        return None;
    };
    let acts = |e: &ast::Expr| match &e.kind {
        ast::ExprKind::Call { name, .. } => super::action::is_action(name),
        _ => conditional_action(e).is_some(),
    };
    (acts(then) || acts(otherwise)).then_some([&**condition, &**then, &**otherwise])
}

/// Whether code calls a subroutine that changes what is traced.
fn calls_destructive(difo: &Difo) -> bool {
    difo.text.iter().any(|instr| {
        let subr = Subr::from_raw(instr.index());
        instr.op() == Some(Op::Call) && subr.is_some_and(Subr::is_destructive)
    })
}

fn too_large(why: AsmError, span: Span) -> Box<Diagnostic> {
    Diagnostic::generators(span, why.to_string())
}
