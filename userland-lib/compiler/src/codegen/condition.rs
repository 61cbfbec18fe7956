// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Conditions: branches on them, and values of them.
//!
//! A condition's value is computed only where it is used as a value. A branch uses a comparison's
//! condition codes, and short-circuit operators become control flow. Predicates allow further
//! shortcuts: any value other than 0 is true, so a difference can stand for `!=`, and a value that
//! equals a nonzero number is itself true.

use super::ir::{Inst, Label, VReg};
use super::lower::Lowering;
use crate::hir::{Expr, ExprKind};
use crate::syntax::ast::BinaryOp;
use dtrace_uapi::dif::Op;

impl Lowering<'_> {
    /// Returns the value of a condition, 0 or 1.
    pub(super) fn truth(&mut self, e: &Expr) -> VReg {
        let dst = self.func.vreg();
        match &e.kind {
            ExprKind::Logic(BinaryOp::LogXor, ..) => self.expr_into(e, dst),
            _ => self.truth_into(e, dst),
        }
        dst
    }

    pub(super) fn truth_into(&mut self, e: &Expr, dst: VReg) {
        let (otherwise, end) = (self.func.label(), self.func.label());
        self.branch(e, false, otherwise);
        self.func.push(Inst::Const { dst, value: 1 }, e.span);
        let (op, label) = (Op::Ba, end);
        self.func.push(Inst::Branch { op, label }, e.span);
        self.func.push(Inst::Label(otherwise), e.span);
        self.func.push(Inst::Const { dst, value: 0 }, e.span);
        self.func.push(Inst::Label(end), e.span);
    }

    /// Branches to `label` if the truth value of `e` is `wanted`; otherwise continues.
    pub(super) fn branch(&mut self, e: &Expr, wanted: bool, label: Label) {
        let span = e.span;
        match &e.kind {
            ExprKind::Compare {
                op,
                signed,
                left,
                right,
            } => {
                let (a, b) = (self.exact(left), self.exact(right));
                self.func.push(Inst::Compare { op: Op::Cmp, a, b }, span);
                let op = branch_on(*op, *signed, wanted);
                self.func.push(Inst::Branch { op, label }, span);
            }
            ExprKind::CompareStr(op, left, right) => {
                let (a, b) = (self.expr(left), self.expr(right));
                self.func.push(Inst::Compare { op: Op::Scmp, a, b }, span);
                let op = branch_on(*op, true, wanted);
                self.func.push(Inst::Branch { op, label }, span);
            }
            ExprKind::Logic(op @ (BinaryOp::LogAnd | BinaryOp::LogOr), left, right) => {
                // The value of the left operand that decides alone: false for `&&`, true for `||`.
                let deciding = *op == BinaryOp::LogOr;
                if deciding == wanted {
                    self.branch(left, wanted, label);
                    self.branch(right, wanted, label);
                } else {
                    let end = self.func.label();
                    self.branch(left, deciding, end);
                    self.branch(right, wanted, label);
                    self.func.push(Inst::Label(end), span);
                }
            }
            ExprKind::Not(inner) => self.branch(inner, !wanted, label),
            _ => {
                let a = match &e.kind {
                    ExprKind::Logic(..) => self.truth(e),
                    _ => self.exact(e),
                };
                self.func.push(Inst::Test { a }, span);
                let op = if wanted { Op::Bne } else { Op::Be };
                self.func.push(Inst::Branch { op, label }, span);
            }
        }
    }

    /// Returns a register that is 0 if and only if `e` is false. This is cheaper than the value 0
    /// or 1.
    pub(super) fn decision(&mut self, e: &Expr) -> VReg {
        let span = e.span;
        match &e.kind {
            ExprKind::Compare {
                op: BinaryOp::Ne,
                left,
                right,
                ..
            } => {
                let a = self.exact(left);
                match right.constant() {
                    Some(0) => a,
                    _ => {
                        let b = self.exact(right);
                        self.bin(Op::Sub, a, b, span)
                    }
                }
            }
            ExprKind::Compare { .. } | ExprKind::Logic(BinaryOp::LogAnd | BinaryOp::LogOr, ..) => {
                let (no, end) = (self.func.label(), self.func.label());
                let dst = self.func.vreg();
                self.decide(e, dst, no, end);
                self.func.push(Inst::Label(no), span);
                self.func.push(Inst::Const { dst, value: 0 }, span);
                self.func.push(Inst::Label(end), span);
                dst
            }
            _ => self.exact(e),
        }
    }

    /// If `e` is true, goes to `end` with a nonzero value in `dst`. If it is false, goes to `no`,
    /// goes to `end` with 0 in `dst`, or falls through.
    fn decide(&mut self, e: &Expr, dst: VReg, no: Label, end: Label) {
        let span = e.span;
        let branch = |op, label| Inst::Branch { op, label };
        match &e.kind {
            ExprKind::Compare {
                op: BinaryOp::Eq,
                left,
                right,
                ..
            } if right.constant().is_some_and(|value| value != 0) => {
                // A value that equals a nonzero number is itself true.
                let b = self.exact(right);
                let (a, op) = (self.exact(left), Op::Cmp);
                self.copy(dst, a, span);
                self.func.push(Inst::Compare { op, a: dst, b }, span);
                self.func.push(branch(Op::Be, end), span);
            }
            ExprKind::Logic(BinaryOp::LogAnd, left, right) => {
                self.branch(left, false, no);
                self.decide(right, dst, no, end);
            }
            ExprKind::Logic(BinaryOp::LogOr, left, right) => {
                let second = self.func.label();
                self.branch(left, false, second);
                self.func.push(Inst::Const { dst, value: 1 }, span);
                self.func.push(branch(Op::Ba, end), span);
                self.func.push(Inst::Label(second), span);
                self.decide(right, dst, no, end);
            }
            ExprKind::Compare { op, .. } if *op != BinaryOp::Ne => {
                self.branch(e, false, no);
                self.func.push(Inst::Const { dst, value: 1 }, span);
                self.func.push(branch(Op::Ba, end), span);
            }
            _ => {
                match e.kind {
                    ExprKind::Compare { .. } => {
                        let a = self.decision(e);
                        self.copy(dst, a, span);
                    }
                    _ if self.is_exact(e) => self.expr_into(e, dst),
                    _ => {
                        let a = self.exact(e);
                        self.copy(dst, a, span);
                    }
                }
                self.func.push(branch(Op::Ba, end), span);
            }
        }
    }
}

/// Returns the branch that is taken if `left op right` holds, or if it does not hold.
fn branch_on(op: BinaryOp, signed: bool, holds: bool) -> Op {
    let op = match (op, holds) {
        (op, true) => op,
        (BinaryOp::Lt, false) => BinaryOp::Ge,
        (BinaryOp::Le, false) => BinaryOp::Gt,
        (BinaryOp::Gt, false) => BinaryOp::Le,
        (BinaryOp::Ge, false) => BinaryOp::Lt,
        (BinaryOp::Eq, false) => BinaryOp::Ne,
        (_, false) => BinaryOp::Eq,
    };
    match (op, signed) {
        (BinaryOp::Lt, true) => Op::Bl,
        (BinaryOp::Lt, false) => Op::Blu,
        (BinaryOp::Le, true) => Op::Ble,
        (BinaryOp::Le, false) => Op::Bleu,
        (BinaryOp::Gt, true) => Op::Bg,
        (BinaryOp::Gt, false) => Op::Bgu,
        (BinaryOp::Ge, true) => Op::Bge,
        (BinaryOp::Ge, false) => Op::Bgeu,
        (BinaryOp::Eq, _) => Op::Be,
        (_, _) => Op::Bne,
    }
}

#[cfg(test)]
mod tests {
    use super::super::lower::predicate;
    use super::*;
    use crate::disassemble::listing;
    use crate::source::Span;
    use dtrace_objects::processes::Nowhere;
    use dtrace_types::{Ty, Types};
    use dtrace_uapi::var::Var;

    fn arg(var: Var) -> Box<Expr> {
        let span = Span::default();
        Box::new(Expr::new(ExprKind::Builtin(var), Ty::INT64_T, span))
    }

    fn compare(op: BinaryOp, var: Var, value: u64) -> Box<Expr> {
        let span = Span::default();
        let kind = ExprKind::Compare {
            op,
            signed: true,
            left: arg(var),
            right: Box::new(Expr::int(value, Ty::INT64_T, span)),
        };
        Box::new(Expr::new(kind, Ty::INT, span))
    }

    /// Returns the operations of a predicate's code.
    fn operations(expr: &Expr) -> Vec<String> {
        let difo = predicate(expr, &Types::new(&Nowhere)).expect("it fits");
        let code = listing(&difo);
        let lines = code.lines().skip(1).take(difo.text.len());
        lines
            .filter_map(|line| line.split_whitespace().nth(2).map(str::to_owned))
            .collect()
    }

    #[test]
    fn predicates_return_whatever_is_not_zero() {
        assert_eq!(operations(&arg(Var::Arg0)), ["ldgs", "ret"]);
        assert_eq!(
            operations(&compare(BinaryOp::Ne, Var::Arg0, 5)),
            ["ldgs", "setx", "sub", "ret"]
        );
        assert_eq!(
            operations(&compare(BinaryOp::Eq, Var::Arg0, 5)),
            ["setx", "ldgs", "cmp", "be", "mov", "ret"]
        );
    }

    #[test]
    fn operators_that_decide_early_branch_once() {
        let left = compare(BinaryOp::Lt, Var::Arg0, 5);
        let negated = Box::new(Expr::new(ExprKind::Not(left), Ty::INT, Span::default()));
        let kind = ExprKind::Logic(
            BinaryOp::LogAnd,
            compare(BinaryOp::Eq, Var::Arg0, 0),
            compare(BinaryOp::Eq, Var::Arg1, 5),
        );
        let both = Expr::new(kind, Ty::INT, Span::default());
        assert_eq!(
            operations(&both),
            ["ldgs", "cmp", "bne", "setx", "ldgs", "cmp", "be", "mov", "ret"]
        );
        let kind = ExprKind::Logic(BinaryOp::LogOr, negated, arg(Var::Arg1));
        let either = Expr::new(kind, Ty::INT, Span::default());
        assert_eq!(
            operations(&either),
            ["ldgs", "setx", "cmp", "bl", "setx", "ba", "ldgs", "ret"]
        );
    }
}
