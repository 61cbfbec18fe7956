// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Removes what lowering generates needlessly: copies, unused values, unreachable code.
//!
//! Lowering generates the code of every node separately, so it copies results to where they are
//! needed and computes values of expressions that are evaluated only for their effects. One pass
//! for each suffices, because branches go forward only and every register is assigned before it is
//! read.
//!
//! Invariant: an instruction that can fault is kept even if its value is unused, because the
//! program's faults are part of its behaviour.

use super::ir::{Func, Inst, VReg};
use dtrace_uapi::dif::Op;

/// Removes instructions of `func` that have no effect.
pub(super) fn optimize(func: &mut Func) {
    coalesce(func);
    straighten(func);
    sweep(func);
}

/// The numbers of reads and assignments of each register.
struct Uses {
    reads: Vec<u32>,
    assignments: Vec<u32>,
}

impl Uses {
    fn of(func: &mut Func) -> Self {
        let mut uses = Self {
            reads: vec![0; func.vreg_count()],
            assignments: vec![0; func.vreg_count()],
        };
        for (inst, _) in &mut func.code {
            inst.for_each_read(|vreg| uses.reads[vreg.0 as usize] += 1);
            if let Some(vreg) = inst.assigned() {
                uses.assignments[vreg.0 as usize] += 1;
            }
        }
        uses
    }

    /// Whether `vreg` is assigned once and read once.
    fn is_temporary(&self, vreg: VReg) -> bool {
        let at = vreg.0 as usize;
        (self.reads[at], self.assignments[at]) == (1, 1)
    }
}

/// If the result of an instruction is copied immediately and not used otherwise, assigns it to the
/// copy's destination.
fn coalesce(func: &mut Func) {
    let uses = Uses::of(func);
    let mut code: Vec<_> = Vec::with_capacity(func.code.len());
    for (inst, span) in std::mem::take(&mut func.code) {
        if let Inst::Un {
            op: Op::Mov,
            dst,
            a,
        } = inst
        {
            let before: Option<&mut (Inst, _)> = code.last_mut();
            if let Some((before, _)) =
                before.filter(|(before, _)| before.assigned() == Some(a) && uses.is_temporary(a))
            {
                before.for_assigned(|vreg| *vreg = dst);
                continue;
            }
        }
        code.push((inst, span));
    }
    func.code = code;
}

/// Removes instructions whose only effect is to assign a register that is not read.
fn sweep(func: &mut Func) {
    let mut reads = Uses::of(func).reads;
    let mut code = std::mem::take(&mut func.code);
    let mut kept = vec![true; code.len()];
    for (keep, (inst, _)) in kept.iter_mut().zip(&mut code).rev() {
        let unread = inst
            .assigned()
            .is_some_and(|vreg| reads[vreg.0 as usize] == 0);
        if unread && is_pure(inst) {
            *keep = false;
            inst.for_each_read(|vreg| reads[vreg.0 as usize] -= 1);
        }
    }
    let mut kept = kept.into_iter();
    code.retain(|_| kept.next().unwrap_or(true));
    func.code = code;
}

/// Whether an instruction can neither fault nor have effects other than on its register.
fn is_pure(inst: &Inst) -> bool {
    match inst {
        Inst::Const { .. } | Inst::Str { .. } | Inst::Un { .. } => true,
        Inst::Bin { op, .. } => !matches!(op, Op::Sdiv | Op::Udiv | Op::Srem | Op::Urem),
        Inst::LoadVar { op, .. } => matches!(op, Op::Ldgs | Op::Ldts | Op::Ldls),
        _ => false,
    }
}

/// Removes unreachable code and branches to the next instruction.
fn straighten(func: &mut Func) {
    let mut wanted = vec![false; func.label_count()];
    for (inst, _) in &func.code {
        if let Inst::Branch { label, .. } | Inst::Loop { head: label } = inst {
            wanted[label.index()] = true;
        }
    }
    let mut reachable = true;
    func.code.retain(|(inst, _)| {
        if let Inst::Label(label) = inst {
            reachable |= wanted[label.index()];
        }
        let keep = reachable;
        reachable &= !matches!(inst, Inst::Branch { op: Op::Ba, .. } | Inst::Loop { .. });
        keep
    });
    let mut code: Vec<_> = Vec::with_capacity(func.code.len());
    let mut rest = std::mem::take(&mut func.code).into_iter().peekable();
    while let Some((inst, span)) = rest.next() {
        let next = rest.peek().map(|(next, _)| next);
        let to_next = match (&inst, next) {
            (Inst::Branch { label, .. }, Some(Inst::Label(next))) => label == next,
            _ => false,
        };
        if !to_next {
            code.push((inst, span));
        }
    }
    func.code = code;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Span;

    fn optimized(build: impl FnOnce(&mut Func)) -> Vec<Inst> {
        let mut func = Func::new();
        build(&mut func);
        optimize(&mut func);
        func.code.into_iter().map(|(inst, _)| inst).collect()
    }

    fn push(func: &mut Func, inst: Inst) {
        func.push(inst, Span::default());
    }

    fn copy(dst: VReg, a: VReg) -> Inst {
        let op = Op::Mov;
        Inst::Un { op, dst, a }
    }

    #[test]
    fn a_copied_result_is_assigned_where_it_goes() {
        let code = optimized(|f| {
            let (a, dst) = (f.vreg(), f.vreg());
            push(f, Inst::Const { dst: a, value: 3 });
            push(f, copy(dst, a));
            push(f, Inst::Ret { src: dst });
        });
        let [Inst::Const { dst, value: 3 }, Inst::Ret { src }] = code[..] else {
            panic!("a constant and its return expected: {code:?}");
        };
        assert_eq!(dst, src);
    }

    #[test]
    fn a_value_that_is_read_again_keeps_its_register() {
        let code = optimized(|f| {
            let (a, dst) = (f.vreg(), f.vreg());
            push(f, Inst::Const { dst: a, value: 3 });
            push(f, copy(dst, a));
            push(
                f,
                Inst::Compare {
                    op: Op::Cmp,
                    a,
                    b: dst,
                },
            );
            push(f, Inst::Ret { src: dst });
        });
        assert_eq!(code.len(), 4);
    }

    #[test]
    fn what_is_not_read_goes_with_all_it_needed_but_faults_stay() {
        let code = optimized(|f| {
            let (a, b, sum, addr, loaded, quotient) =
                (f.vreg(), f.vreg(), f.vreg(), f.vreg(), f.vreg(), f.vreg());
            push(f, Inst::Const { dst: a, value: 1 });
            push(f, Inst::Const { dst: b, value: 2 });
            push(
                f,
                Inst::Bin {
                    op: Op::Add,
                    dst: sum,
                    a,
                    b,
                },
            );
            push(
                f,
                Inst::Const {
                    dst: addr,
                    value: 64,
                },
            );
            push(
                f,
                Inst::Load {
                    op: Op::Ldx,
                    dst: loaded,
                    addr,
                },
            );
            push(
                f,
                Inst::Bin {
                    op: Op::Sdiv,
                    dst: quotient,
                    a: addr,
                    b: VReg::ZERO,
                },
            );
            push(f, Inst::Ret { src: VReg::ZERO });
        });
        assert!(
            matches!(
                code[..],
                [
                    Inst::Const { value: 64, .. },
                    Inst::Load { .. },
                    Inst::Bin { op: Op::Sdiv, .. },
                    Inst::Ret { .. }
                ]
            ),
            "{code:?}"
        );
    }

    #[test]
    fn branches_over_nothing_go() {
        let code = optimized(|f| {
            let (next, far) = (f.label(), f.label());
            push(f, Inst::Test { a: VReg::ZERO });
            push(
                f,
                Inst::Branch {
                    op: Op::Be,
                    label: far,
                },
            );
            push(
                f,
                Inst::Branch {
                    op: Op::Ba,
                    label: next,
                },
            );
            push(f, Inst::Label(next));
            push(f, Inst::Flush);
            push(f, Inst::Label(far));
            push(f, Inst::Ret { src: VReg::ZERO });
        });
        let branches = code
            .iter()
            .filter(|inst| matches!(inst, Inst::Branch { .. }));
        assert_eq!(branches.count(), 1);
    }

    #[test]
    fn what_nothing_leads_to_goes() {
        let code = optimized(|f| {
            let (dst, nowhere, end) = (f.vreg(), f.label(), f.label());
            push(f, Inst::Const { dst, value: 1 });
            push(
                f,
                Inst::Branch {
                    op: Op::Ba,
                    label: end,
                },
            );
            push(f, Inst::Label(nowhere));
            push(f, Inst::Const { dst, value: 2 });
            push(f, Inst::Label(end));
            push(f, Inst::Ret { src: dst });
        });
        let constants = code.iter().filter(|i| matches!(i, Inst::Const { .. }));
        let branches = code.iter().filter(|i| matches!(i, Inst::Branch { .. }));
        assert_eq!((constants.count(), branches.count()), (1, 0));
    }
}
