// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! `speculate()`, `commit()` and `discard()`.
//!
//! What may follow them is checked with the other actions' order. A body with `if` becomes several clauses for the kernel,
//! of which each speculates for itself; so the number is kept in a hidden variable, which all of them read.

use super::action::{desc, Called};
use super::clause::{Builder, Speculating};
use super::hir::{Expr, ExprKind, Place};
use super::Sema;
use crate::diag::Result;
use crate::program::ActionDesc;
use crate::statement::Statement;
use crate::types::Ty;
use dtrace_uapi::action::Action;

impl Sema<'_, '_> {
    /// An action on the speculation that the call's argument numbers.
    pub(super) fn speculation(
        &mut self,
        call: &Called<'_>,
    ) -> Result<(Statement, Vec<ActionDesc>)> {
        let kind = match call.name {
            "speculate" => Action::Speculate,
            "commit" => Action::Commit,
            _ => Action::Discard,
        };
        let id = self.integer(call, 0, Ty::INT)?;
        Ok((
            Statement::Speculative,
            vec![desc(kind, Some(self.unrecorded(&id)?), 0)],
        ))
    }

    /// `speculate()` in a body that becomes several clauses: the others are to speculate too.
    pub(super) fn speculate_on(&mut self, call: &Called<'_>, builder: &mut Builder) -> Result<()> {
        let id = self.integer(call, 0, Ty::INT)?;
        let var = self.hidden_variable("speculation", call.span)?;
        let keep = ExprKind::Assign(Place::Var(var.clone()), Box::new(id));
        self.effect(&Expr::new(keep, Ty::INT, call.span), builder)?;
        let uarg = self.add_statement(Statement::Speculative, call.span);
        let id = Expr::new(ExprKind::Var(var), Ty::INT, call.span);
        let action = self.speculate(&id, uarg)?;
        builder.actions.push(action);
        builder.speculating = Some(Speculating { id, uarg });
        Ok(())
    }

    /// The action that records to speculation `id`.
    pub(super) fn speculate(&self, id: &Expr, uarg: u64) -> Result<ActionDesc> {
        let difo = Some(self.unrecorded(id)?);
        Ok(ActionDesc {
            uarg,
            ..desc(Action::Speculate, difo, 0)
        })
    }
}
