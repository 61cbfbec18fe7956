// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Warnings about values that a declared variable has no room for. C truncates them silently.
//!
//! What counts is how many bytes a value needs by the types of its operands, not by the type of the
//! expression: `c + 1` of a `char` is an `int`, which is no surprise. A cast shows that the
//! truncation is intended.

use super::Sema;
use crate::diag::Diagnostic;
use crate::hir::{Expr, ExprKind, Place};
use crate::source::Span;
use crate::syntax::ast::BinaryOp;

impl Sema<'_, '_> {
    /// Warns if `value` may not fit the declared variable `place`, once for each variable.
    pub(super) fn warn_cut(&mut self, place: &Place, value: &Expr, span: Span) {
        let (Place::Var(var) | Place::Element(var, _)) = place else {
            return;
        };
        let types = &self.state.types;
        let Some(int) = types.int(var.ty).filter(|int| int.size < 8) else {
            return;
        };
        if types.int(value.ty).is_none() || self.bytes(value) <= int.size {
            return;
        }
        if !self.state.variables.first_cut(var) {
            return;
        }
        let types = &self.state.types;
        let message = format!(
            "{} is declared \"{}\" and cuts values of type \"{}\"",
            var.shown(),
            types.name(var.ty),
            types.name(value.ty)
        );
        let warning = Diagnostic::new("D_CUT", span, message);
        self.program.warnings.push(*warning);
    }

    /// Returns how many bytes the value of the integer expression `e` needs.
    fn bytes(&self, e: &Expr) -> u8 {
        let types = &self.state.types;
        let own = types.int(types.shown(e.ty)).map_or(8, |int| int.size);
        let inner = match &e.kind {
            ExprKind::Int(value) => constant_bytes(*value),
            ExprKind::Arith(BinaryOp::And, a, b) => match (a.constant(), b.constant()) {
                (None, None) => self.bytes(a).max(self.bytes(b)),
                _ => self.bytes(a).min(self.bytes(b)),
            },
            ExprKind::Arith(BinaryOp::Rem, _, b) => self.bytes(b),
            ExprKind::Arith(BinaryOp::Shl, a, _) if a.constant().is_none() => self.bytes(a),
            ExprKind::Arith(BinaryOp::Shl, ..) => own,
            ExprKind::Arith(BinaryOp::Shr, a, by) => {
                let gone = by.constant().map_or(0, |by| by.min(64) / 8) as u8;
                self.bytes(a).saturating_sub(gone).max(1)
            }
            ExprKind::Arith(BinaryOp::Div, a, _) => self.bytes(a),
            ExprKind::Arith(_, a, b) | ExprKind::Cond(_, a, b) => self.bytes(a).max(self.bytes(b)),
            ExprKind::Neg(a) | ExprKind::BitNot(a) | ExprKind::Comma(_, a) => self.bytes(a),
            ExprKind::Convert(a) | ExprKind::Retype(a) if types.int(a.ty).is_some() => {
                self.bytes(a)
            }
            ExprKind::Compare { .. } | ExprKind::Logic(..) | ExprKind::Not(_) => 1,
            _ => own,
        };
        inner.min(own)
    }
}

/// Returns the size of the smallest type, signed or unsigned, that can hold `value`.
fn constant_bytes(value: u64) -> u8 {
    let fits = |size: &u8| {
        let bits = u32::from(*size) * 8;
        value >> bits == 0 || (value as i64) >> (bits - 1) == -1
    };
    [1, 2, 4].into_iter().find(fits).unwrap_or(8)
}
