// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Register allocation: assigns virtual registers to DIF's seven.
//!
//! This is a linear scan. Because branches go forward only, a register is live from its first
//! assignment to its last use in instruction order, and two registers whose ranges do not overlap
//! can share one of DIF's. If more than seven are live, the one with the latest last use is spilled
//! to a clause-local variable: every assignment is followed by a store, and every use is preceded
//! by a load into a new register whose range is that one instruction. Then the scan starts again.
//! This terminates because an instruction uses at most three registers.
//!
//! Clause-local variables are suitable because they are private to one firing of one clause on one
//! CPU. Spills use ids from the greatest downwards, away from the program's own variables.

use super::ir::{Func, Inst, VReg, VarDecl};
use dtrace_uapi::dif::{Op, DIF_NREGS};
use dtrace_uapi::types::{DifType, DIFV_KIND_SCALAR, DIFV_SCOPE_LOCAL, DIF_TYPE_CTF};
use dtrace_uapi::var::OTHER_MAX;

/// DIF's register for each virtual register, indexed by the virtual register's number.
pub(super) type Assignment = Vec<u8>;

/// Assigns every register of `func` to one of DIF's, and spills where these do not suffice.
pub(super) fn allocate(func: &mut Func) -> Assignment {
    // Registers created for a spill live within one instruction; spilling them again would not
    // help.
    let mut pinned = vec![false; func.vreg_count()];
    let mut spills = 0;
    loop {
        match scan(func, &pinned) {
            Ok(assignment) => return assignment,
            Err(victim) => {
                spill(func, victim, OTHER_MAX - spills);
                spills += 1;
                pinned[victim.0 as usize] = true;
                pinned.resize(func.vreg_count(), true);
            }
        }
    }
}

/// The first and the last instruction at which a register is live.
#[derive(Clone, Copy)]
struct Range {
    vreg: VReg,
    start: usize,
    end: usize,
}

/// Returns the live ranges of all registers in use, sorted by start.
fn ranges(func: &mut Func) -> Vec<Range> {
    let mut ranges: Vec<Option<Range>> = vec![None; func.vreg_count()];
    let mut note = |vreg: VReg, at: usize| {
        if vreg != VReg::ZERO {
            ranges[vreg.0 as usize]
                .get_or_insert(Range {
                    vreg,
                    start: at,
                    end: at,
                })
                .end = at;
        }
    };
    for (at, (inst, _)) in func.code.iter_mut().enumerate() {
        inst.for_each_read(|vreg| note(*vreg, at));
        if let Some(vreg) = inst.assigned() {
            note(vreg, at);
        }
    }
    let mut ranges: Vec<Range> = ranges.into_iter().flatten().collect();
    ranges.sort_by_key(|range| range.start);
    ranges
}

/// Scans the ranges once. Returns an assignment, or the register to spill.
fn scan(func: &mut Func, pinned: &[bool]) -> Result<Assignment, VReg> {
    let mut assignment = vec![0; func.vreg_count()];
    let mut free: Vec<u8> = (1..DIF_NREGS).rev().collect();
    let mut active: Vec<Range> = Vec::new();
    for range in ranges(func) {
        // A register whose last use is here can be reused here, because operands are read before
        // the result is written. A range of one instruction still occupies its register there.
        active.retain(|old| {
            let lives = old.end > range.start || old.start == old.end && old.end == range.start;
            if !lives {
                free.push(assignment[old.vreg.0 as usize]);
            }
            lives
        });
        free.sort_unstable_by(|a, b| b.cmp(a));
        active.push(range);
        match free.pop() {
            Some(register) => assignment[range.vreg.0 as usize] = register,
            None => {
                let spillable = active.iter().filter(|r| !pinned[r.vreg.0 as usize]);
                let victim = spillable.max_by_key(|r| r.end);
                return Err(victim
                    .expect("an instruction names at most three registers")
                    .vreg);
            }
        }
    }
    Ok(assignment)
}

/// Moves `victim` to the clause-local variable `id`.
fn spill(func: &mut Func, victim: VReg, id: u16) {
    let ty = DifType {
        kind: DIF_TYPE_CTF,
        ckind: 1,
        flags: 0,
        pad: 0,
        size: 8,
    };
    let name = format!("<spill {}>", OTHER_MAX - id);
    func.variable(VarDecl {
        name,
        id,
        kind: DIFV_KIND_SCALAR,
        scope: DIFV_SCOPE_LOCAL,
        ty,
    });
    for (mut inst, span) in std::mem::take(&mut func.code) {
        let mut loaded = None;
        inst.for_each_read(|vreg| {
            if *vreg == victim {
                *vreg = *loaded.get_or_insert_with(|| func.vreg());
            }
        });
        if let Some(dst) = loaded {
            func.push(
                Inst::LoadVar {
                    op: Op::Ldls,
                    dst,
                    var: id,
                },
                span,
            );
        }
        let mut stored = None;
        inst.for_assigned(|vreg| {
            if *vreg == victim {
                *vreg = *stored.insert(func.vreg());
            }
        });
        func.push(inst, span);
        if let Some(src) = stored {
            func.push(
                Inst::StoreVar {
                    op: Op::Stls,
                    src,
                    var: id,
                },
                span,
            );
        }
    }
}
