// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! `speculate()`, `commit()` and `discard()`.
//!
//! Which statements may follow them is checked with the order of all actions, in
//! [`action`](super::action). A body with branches becomes several clauses for the kernel, each of
//! which must speculate by itself. A hidden variable that all of them read keeps the number of the
//! speculation.

use super::action::Called;
use super::clause::{Builder, Speculating};
use super::Sema;
use crate::diag::Result;
use crate::hir::{self, Expr, ExprKind, Place};
use crate::statement::Statement;
use dtrace_types::Ty;
use dtrace_uapi::action::Action;

impl Sema<'_, '_> {
    /// Returns an action on the speculation whose number is the argument of the call.
    pub(super) fn speculation(
        &mut self,
        call: &Called<'_>,
    ) -> Result<(Statement, Vec<hir::Action>)> {
        let id = self.integer(call, 0, Ty::INT)?;
        Ok((
            Statement::Speculative,
            vec![hir::Action::new(
                call.row.kernel,
                Some(self.unrecorded(&id)?),
                0,
            )],
        ))
    }

    /// Adds `speculate()` in a body that becomes several clauses, so that the later ones speculate
    /// too.
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

    /// Returns the action that directs records to speculation `id`.
    pub(super) fn speculate(&self, id: &Expr, uarg: u64) -> Result<hir::Action> {
        let code = Some(self.unrecorded(id)?);
        Ok(hir::Action {
            uarg,
            ..hir::Action::new(Action::Speculate, code, 0)
        })
    }
}
