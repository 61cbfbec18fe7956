// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Generates the code of a whole program.

use super::asm::AsmError;
use super::lower;
use crate::diag::{Diagnostic, Result};
use crate::hir::{self, Purpose};
use crate::program::{ActionDesc, Clause, Difo, Program};
use dtrace_types::Types;
use dtrace_uapi::types::{DifType, DIF_TF_BYREF, DIF_TF_BYUREF};

/// Generates the code of a typed program. Fails, with the place of the expression, if a table of a
/// DIF object is full.
pub fn program(typed: hir::Program, types: &Types<'_>) -> Result<Program> {
    let is_destructive = typed.clauses.iter().any(hir::Clause::is_destructive);
    let clauses = typed.clauses.into_iter();
    let clauses = clauses.map(|typed| clause(typed, types));
    Ok(Program {
        clauses: clauses.collect::<Result<_>>()?,
        is_destructive,
        ..typed.outline
    })
}

fn clause(typed: hir::Clause, types: &Types<'_>) -> Result<Clause> {
    let predicate = typed.predicate.map(|typed| code(&typed, types));
    let actions = typed.actions.into_iter();
    let actions = actions.map(|typed| action(typed, types));
    Ok(Clause {
        probes: typed.probes,
        predicate: predicate.transpose()?,
        actions: actions.collect::<Result<_>>()?,
        number: typed.number,
        span: typed.span,
    })
}

fn action(typed: hir::Action, types: &Types<'_>) -> Result<ActionDesc> {
    let difo = typed.code.map(|typed| code(&typed, types)).transpose()?;
    Ok(ActionDesc {
        kind: typed.kind,
        difo,
        format: typed.format,
        ntuple: typed.ntuple,
        arg: typed.arg,
        uarg: typed.uarg,
    })
}

fn code(typed: &hir::Code, types: &Types<'_>) -> Result<Difo> {
    let expr = &typed.expr;
    let difo = match typed.purpose {
        Purpose::Recorded => lower::value(expr, types),
        Purpose::Bytes { size, user } => {
            lower::value(expr, types).map(|difo| with_type(difo, bytes(size, user)))
        }
        Purpose::Used => lower::value(expr, types).map(|difo| with_type(difo, DifType::default())),
        Purpose::Decides => lower::predicate(expr, types),
        Purpose::Discarded => lower::effect(expr, types),
    };
    difo.map_err(|why: AsmError| Diagnostic::generators(expr.span, why.to_string()))
}

fn with_type(difo: Difo, rtype: DifType) -> Difo {
    Difo { rtype, ..difo }
}

/// The type of a result that is the address of `size` bytes.
fn bytes(size: u32, user: bool) -> DifType {
    DifType {
        flags: if user { DIF_TF_BYUREF } else { DIF_TF_BYREF },
        size,
        ..DifType::default()
    }
}
