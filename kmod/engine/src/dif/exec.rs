// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Execution of prepared programs.

use super::env::{Entry, EntryKind, Env};
use super::program::{Alu, Program, Quick, Reg, Step};
use crate::budget::{Spent, LOOKUP, PORTION};
use crate::error::Trap;
use crate::machine::Machine;
use crate::subr;
use crate::var::addr::{self, Region};
use dtrace_uapi::dif::DIF_NREGS;
use dtrace_uapi::fault::Fault;

/// Number of steps that are a portion of work, if each takes as much as a step may take.
const STRIDE: usize = PORTION as usize / LOOKUP;

/// A trap, and the index of the instruction that it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// The trap.
    pub trap: Trap,
    /// Index of the instruction.
    pub pc: u32,
}

/// Runs a program and returns its result.
#[inline(always)]
pub fn run<M: Machine>(program: &Program, env: &mut Env<'_, M>) -> Result<u64, Stopped> {
    match program {
        Program::Const(value) => Ok(*value),
        Program::Quick(var) => first(env, *var),
        Program::Select { var, test, yes, no } => {
            let value = first(env, *var)?;
            Ok(if test.holds(value) { *yes } else { *no })
        }
        Program::Builtin { var, pc } => env.builtin(*var).map_err(|trap| Stopped { trap, pc: *pc }),
        Program::Load(var) => env.load_dyn(*var).map_err(|trap| Stopped { trap, pc: 0 }),
        Program::Assign { var, value, pc } => {
            let value = value.map_or(Ok(0), |quick| first(env, quick))?;
            let done = env.store_dyn(*var, value);
            done.map_err(|trap| Stopped { trap, pc: *pc }).map(|()| 0)
        }
        Program::Since { from, var } => {
            let from = first(env, *from)?;
            let since = env.load_dyn(*var);
            since
                .map_err(|trap| Stopped { trap, pc: 1 })
                .map(|since| from.wrapping_sub(since))
        }
        Program::Steps { steps, cost } => run_steps(steps, *cost, env),
    }
}

/// Reads the variable that the first instruction loads.
#[inline(always)]
fn first<M: Machine>(env: &Env<'_, M>, var: Quick) -> Result<u64, Stopped> {
    env.quick(var).map_err(|trap| Stopped { trap, pc: 0 })
}

#[inline(never)]
fn run_steps<M: Machine>(
    steps: &[Step],
    cost: usize,
    env: &mut Env<'_, M>,
) -> Result<u64, Stopped> {
    let mut state = State::new();
    // Branches only go forward. So an instruction runs a second time only in a loop, which pays for
    // that.
    let long = cost > PORTION as usize;
    let paid = match long {
        true => env.vm.budget.begin(cost),
        false => env.pay(cost).map(|()| 0),
    };
    let before = paid.map_err(|spent| Stopped {
        trap: spent.into(),
        pc: 0,
    })?;
    let done = loop {
        let from = state.pc;
        let end = match long {
            true => steps.len().min(from.saturating_add(STRIDE)),
            false => steps.len(),
        };
        let some = steps.get(..end).unwrap_or(steps);
        match interpret(some, long, env, &mut state) {
            Ok(None) if long && state.pc < steps.len() => {
                if let Err(spent) = count(steps, from, env, &mut state) {
                    break Err(spent.into());
                }
            }
            Ok(value) => break Ok(value.unwrap_or(0)),
            Err(trap) => break Err(trap),
        }
    };
    if long {
        env.vm.budget.finish(before);
    }
    done.map_err(|trap| Stopped {
        trap,
        pc: (state.at as u32).wrapping_sub(1),
    })
}

/// Reports the work of the steps that a long program has done since the one at `from`.
#[cold]
fn count<M: Machine>(
    steps: &[Step],
    from: usize,
    env: &mut Env<'_, M>,
    state: &mut State,
) -> Result<(), Spent> {
    let done = steps.iter().enumerate().take(state.at).skip(from);
    let units = done.map(|(pc, step)| match pc < state.first {
        true => step.units_again(),
        false => step.units(),
    });
    let units = units.fold(0, usize::saturating_add);
    state.first = state.first.max(state.at);
    env.vm.budget.did(env.m, || units)
}

/// The state of a running program.
struct State {
    regs: Regs,
    /// The operands of the last comparison, from which a branch computes its condition. Before the
    /// first comparison all condition codes are clear, as if a greater value had been compared with
    /// a smaller one.
    compared: (u64, u64),
    /// Index of the next step.
    pc: usize,
    /// Index behind the last step that was begun.
    at: usize,
    /// Steps before this index have been done and counted before: they cost more when they are
    /// repeated.
    first: usize,
}

impl State {
    fn new() -> Self {
        Self {
            regs: Regs::new(),
            compared: (1, 0),
            pc: 0,
            at: 0,
            first: 0,
        }
    }
}

/// The registers. Verified numbers are below 8, so the mask changes nothing, but lets the compiler
/// omit checks.
pub(super) struct Regs([u64; DIF_NREGS as usize]);

impl Regs {
    pub(super) fn new() -> Self {
        Self([0; DIF_NREGS as usize])
    }

    #[inline(always)]
    pub(super) fn get(&self, r: Reg) -> u64 {
        let at = usize::from(r & (DIF_NREGS - 1));
        self.0.get(at).copied().unwrap_or(0)
    }

    #[inline(always)]
    pub(super) fn set(&mut self, r: Reg, value: u64) {
        if let Some(reg) = self.0.get_mut(usize::from(r & (DIF_NREGS - 1))) {
            *reg = value;
        }
    }
}

/// Computes `alu` of `a` and `b`. Division by zero traps.
#[inline(always)]
pub(super) fn compute(alu: Alu, a: u64, b: u64) -> Result<u64, Trap> {
    const BY_ZERO: Trap = Trap::new(Fault::DivZero, 0);
    let (sa, sb) = (a as i64, b as i64);
    Ok(match alu {
        Alu::Or => a | b,
        Alu::Xor => a ^ b,
        Alu::And => a & b,
        Alu::Sll => a.wrapping_shl(b as u32),
        Alu::Srl => a.wrapping_shr(b as u32),
        Alu::Sra => sa.wrapping_shr(b as u32) as u64,
        Alu::Sub => a.wrapping_sub(b),
        Alu::Add => a.wrapping_add(b),
        Alu::Mul => a.wrapping_mul(b),
        Alu::Sdiv if sb == -1 => sa.wrapping_neg() as u64,
        Alu::Srem if sb == -1 => 0,
        Alu::Sdiv => sa.checked_div(sb).ok_or(BY_ZERO)? as u64,
        Alu::Srem => sa.checked_rem(sb).ok_or(BY_ZERO)? as u64,
        Alu::Udiv => a.checked_div(b).ok_or(BY_ZERO)?,
        Alu::Urem => a.checked_rem(b).ok_or(BY_ZERO)?,
    })
}

/// Runs steps until the program returns (`Some`), or no step is left (`None`). In a `long` program,
/// also stops when a loop goes back.
fn interpret<M: Machine>(
    steps: &[Step],
    long: bool,
    env: &mut Env<'_, M>,
    state: &mut State,
) -> Result<Option<u64>, Trap> {
    let State { regs, .. } = state;
    let (mut compared, mut pc) = (state.compared, state.pc);
    // This ends, because branches only go forward, and a loop takes from the budget (INV-9).
    while let Some(step) = steps.get(pc) {
        pc = pc.wrapping_add(1);
        state.at = pc;
        match *step {
            Step::Alu { alu, r1, r2, rd } => {
                let value = compute(alu, regs.get(r1), regs.get(r2))?;
                regs.set(rd, value);
            }
            Step::Not { r1, rd } => regs.set(rd, !regs.get(r1)),
            Step::Mov { r1, rd } => regs.set(rd, regs.get(r1)),
            Step::Cmp { r1, r2 } => compared = (regs.get(r1), regs.get(r2)),
            Step::CmpBranch { r1, r2, cond, to } => {
                compared = (regs.get(r1), regs.get(r2));
                pc = if cond.holds(compared.0, compared.1) {
                    to as usize
                } else {
                    pc.wrapping_add(1)
                };
            }
            Step::Scmp { r1, r2 } => {
                compared = (env.compare(regs.get(r1), regs.get(r2))? as u64, 0);
            }
            Step::Jump { to } => pc = to as usize,
            Step::Loop { to, cost } => {
                pc = to as usize;
                if long {
                    env.vm.budget.begin(cost as usize)?;
                    break;
                }
                env.pay(cost as usize)?;
            }
            Step::Branch { cond, to } => {
                if cond.holds(compared.0, compared.1) {
                    pc = to as usize;
                }
            }
            Step::Ret { rd } => return Ok(Some(regs.get(rd))),
            Step::Const { rd, value } => regs.set(rd, value),
            Step::Quick { rd, var } => regs.set(rd, env.quick(var)?),
            _ => effect(*step, regs, env)?,
        }
    }
    (state.compared, state.pc) = (compared, pc);
    Ok(None)
}

/// Runs a step that accesses memory or variables.
pub(super) fn effect<M: Machine>(
    step: Step,
    regs: &mut Regs,
    env: &mut Env<'_, M>,
) -> Result<(), Trap> {
    let (rd, value) = match step {
        Step::Load {
            space,
            size,
            signed,
            r1,
            rd,
        } => (rd, env.load(space, size, signed, regs.get(r1))?),
        Step::Float { float, r1, r2, rd } => (rd, env.float(float, regs.get(r1), regs.get(r2))?),
        Step::Store { size, r1, rd } => return env.store(size, regs.get(rd), regs.get(r1)),
        Step::Builtin { rd, var } => (rd, env.builtin(var)?),
        Step::Array { rd, var, r2 } => (rd, env.array(var, regs.get(r2))?),
        Step::LoadStatic { rd, var } => (rd, env.load_static(var)),
        Step::StoreStatic { rd, var } => return env.store_static(var, regs.get(rd)),
        Step::LoadDyn { rd, var } => (rd, env.load_dyn(var)?),
        Step::StoreDyn { rd, var } => return env.store_dyn(var, regs.get(rd)),
        Step::Call { rd, subr } => (rd, subr::call(subr, env)?),
        Step::PushRef { string, r2, rd } => {
            return env.push(Entry {
                value: regs.get(rd),
                size: regs.get(r2),
                kind: if string {
                    EntryKind::String
                } else {
                    EntryKind::Bytes
                },
            })
        }
        Step::PushVal { rd } => {
            return env.push(Entry {
                value: regs.get(rd),
                size: 0,
                kind: EntryKind::Value,
            })
        }
        Step::Pop => {
            env.vm.ntuple = env.vm.ntuple.saturating_sub(1);
            return Ok(());
        }
        Step::Flush => {
            env.vm.ntuple = 0;
            return Ok(());
        }
        Step::Alloc { r1, rd } => {
            let size = regs.get(r1);
            let offset = env.vm.ask(size)?;
            env.pay(env.vm.used.saturating_sub(offset))?;
            if let Some(bytes) = env.vm.scratch.get_mut(offset..env.vm.used) {
                bytes.fill(0);
            }
            (rd, addr::make(Region::Scratch, offset))
        }
        Step::Copy { r1, r2, rd } => {
            let size = usize::try_from(regs.get(r2)).unwrap_or(usize::MAX);
            return env.copy(regs.get(r1), regs.get(rd), size, false);
        }
        _ => return Ok(()),
    };
    regs.set(rd, value);
    Ok(())
}
