// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Turns a verified DIF object into a program that is ready to run.
//!
//! Each instruction becomes one [`Step`] with its operands decoded and its constant, string or
//! variable resolved. A step has the index of its instruction, which faults report. A comparison
//! followed by its branch is fused into one step; the branch stays where it is, because other
//! branches may go to it. The simplest objects need no steps at all: see the module `shape`.
// Arithmetic on indexes of instructions, of which an object has at most `DIFO_MAX` bytes.
#![allow(clippy::arithmetic_side_effects)]

use super::float::Float;
use super::program::{self, Alu, Cond, Dyn, Program, Quick, Space, Static, Step};
use super::shape::shape;
use crate::dof::Difo;
use crate::error::Reason;
use crate::mem::Vec;
use crate::var::addr::{self, Region};
use crate::var::statics::{Place, Table};
use dtrace_uapi::dif::{Instr, Op, DIF_RLD_DELTA};
use dtrace_uapi::subr::Subr;
use dtrace_uapi::types::{DIFV_SCOPE_GLOBAL, DIFV_SCOPE_LOCAL, DIFV_SCOPE_THREAD, DIF_TYPE_STRING};
use dtrace_uapi::var::{Var, OTHER_UBASE};

/// What preparation needs to know about the consumer.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The variables, including those that the object declares.
    pub table: &'a Table,
    /// Offset of the object's strings in the consumer's.
    pub strings: usize,
    /// Kernel memory may be read.
    pub kernel: bool,
}

/// Prepares a verified object.
pub fn prepare(difo: &Difo, cx: &Context<'_>) -> Result<Program, Reason> {
    let mut steps = steps(difo, cx)?;
    if let Some(program) = shape(&steps) {
        return Ok(program);
    }
    fuse(&mut steps);
    Ok(Program::of(steps))
}

/// Decodes the instructions of a verified object, one step each.
pub fn steps(difo: &Difo, cx: &Context<'_>) -> Result<Vec<Step>, Reason> {
    let mut steps = Vec::try_from_fn(difo.text.len(), |pc| {
        let instr = difo.text.get(pc).copied().unwrap_or(Instr(0));
        step(instr, difo, cx).ok_or(Reason::pc("not verified", pc as u32))
    })?;
    if steps.iter().any(Step::is_loop) {
        let before = program::rounds(&steps)?;
        let units = |pc: usize| before.get(pc).copied().unwrap_or(0);
        for (pc, step) in steps.iter_mut().enumerate() {
            if let Step::Loop { to, cost } = step {
                *cost = units(pc + 1).wrapping_sub(units(*to as usize)) as u32;
            }
        }
    }
    Ok(steps)
}

fn place_of<'a>(i: Instr, scope: u8, cx: &Context<'a>) -> Option<&'a Place> {
    cx.table.find(u32::from(i.index()), scope)
}

fn static_of(i: Instr, scope: u8, cx: &Context<'_>) -> Option<Static> {
    let place = place_of(i, scope, cx)?;
    Some(Static {
        local: scope == DIFV_SCOPE_LOCAL,
        offset: u32::try_from(place.offset).ok()?,
        by_ref: place.by_ref.map(|size| size as u32),
        string: place.string,
    })
}

fn dyn_of(i: Instr, scope: u8, array: bool, cx: &Context<'_>) -> Option<Dyn> {
    let place = place_of(i, scope, cx)?;
    Some(Dyn {
        id: i.index(),
        thread: scope == DIFV_SCOPE_THREAD,
        array,
        by_ref: place.by_ref.map(|size| size as u32),
        string: place.string,
    })
}

/// Returns the ALU operation of `op`, if it is one.
pub fn alu_of(op: Op) -> Option<Alu> {
    Some(match op {
        Op::Or => Alu::Or,
        Op::Xor => Alu::Xor,
        Op::And => Alu::And,
        Op::Sll => Alu::Sll,
        Op::Srl => Alu::Srl,
        Op::Sra => Alu::Sra,
        Op::Sub => Alu::Sub,
        Op::Add => Alu::Add,
        Op::Mul => Alu::Mul,
        Op::Sdiv => Alu::Sdiv,
        Op::Udiv => Alu::Udiv,
        Op::Srem => Alu::Srem,
        Op::Urem => Alu::Urem,
        _ => return None,
    })
}

/// Returns space, size in bytes and signedness of the load `op`, if it is one. Without `kernel`, a
/// load from the kernel's space is restricted to the engine's memory.
pub fn load_of(op: Op, kernel: bool) -> Option<(Space, u8, bool)> {
    let raw = op as u8;
    let (space, base) = match raw {
        _ if (Op::Ldsb as u8..=Op::Ldx as u8).contains(&raw) => (Space::Kernel, Op::Ldsb as u8),
        _ if (Op::Uldsb as u8..=Op::Uldx as u8).contains(&raw) => (Space::User, Op::Uldsb as u8),
        _ if (Op::Rldsb as u8..=Op::Rldx as u8).contains(&raw) => {
            (Space::Restricted, Op::Ldsb as u8 + DIF_RLD_DELTA)
        }
        _ => return None,
    };
    let space = match space {
        Space::Kernel if !kernel => Space::Restricted,
        space => space,
    };
    let (size, signed) = match raw - base {
        0 => (1, true),
        1 => (2, true),
        2 => (4, true),
        3 => (1, false),
        4 => (2, false),
        5 => (4, false),
        _ => (8, false),
    };
    Some((space, size, signed))
}

/// Decodes a load or store of a variable of the program's own.
fn variable_step(op: Op, i: Instr, cx: &Context<'_>) -> Option<Step> {
    let rd = i.rd();
    let (global, thread, local) = (DIFV_SCOPE_GLOBAL, DIFV_SCOPE_THREAD, DIFV_SCOPE_LOCAL);
    Some(match op {
        Op::Ldgs if i.index() >= OTHER_UBASE => Step::LoadStatic {
            rd,
            var: static_of(i, global, cx)?,
        },
        Op::Stgs => Step::StoreStatic {
            rd,
            var: static_of(i, global, cx)?,
        },
        Op::Ldls => Step::LoadStatic {
            rd,
            var: static_of(i, local, cx)?,
        },
        Op::Stls => Step::StoreStatic {
            rd,
            var: static_of(i, local, cx)?,
        },
        Op::Ldts => Step::LoadDyn {
            rd,
            var: dyn_of(i, thread, false, cx)?,
        },
        Op::Stts => Step::StoreDyn {
            rd,
            var: dyn_of(i, thread, false, cx)?,
        },
        Op::Ldtaa => Step::LoadDyn {
            rd,
            var: dyn_of(i, thread, true, cx)?,
        },
        Op::Sttaa => Step::StoreDyn {
            rd,
            var: dyn_of(i, thread, true, cx)?,
        },
        Op::Ldgaa => Step::LoadDyn {
            rd,
            var: dyn_of(i, global, true, cx)?,
        },
        Op::Stgaa => Step::StoreDyn {
            rd,
            var: dyn_of(i, global, true, cx)?,
        },
        _ => return None,
    })
}

/// Decodes an instruction. `None` only if it was not verified.
fn step(i: Instr, difo: &Difo, cx: &Context<'_>) -> Option<Step> {
    let op = i.op()?;
    let (r1, r2, rd) = (i.r1(), i.r2(), i.rd());
    if let Some(alu) = alu_of(op) {
        return Some(Step::Alu { alu, r1, r2, rd });
    }
    if let Some(float) = Float::of(op) {
        return Some(Step::Float { float, r1, r2, rd });
    }
    if let Some((space, size, signed)) = load_of(op, cx.kernel) {
        return Some(Step::Load {
            space,
            size,
            signed,
            r1,
            rd,
        });
    }
    if let Some(cond) = Cond::of(op) {
        return Some(Step::Branch {
            cond,
            to: i.label(),
        });
    }
    if let Some(step) = variable_step(op, i, cx) {
        return Some(step);
    }
    Some(match op {
        Op::Not => Step::Not { r1, rd },
        Op::Mov => Step::Mov { r1, rd },
        Op::Cmp => Step::Cmp { r1, r2 },
        Op::Tst => Step::Cmp { r1, r2: 0 },
        Op::Scmp => Step::Scmp { r1, r2 },
        Op::Ba => Step::Jump { to: i.label() },
        // `steps` sets the cost, when all steps are known.
        Op::Loop => Step::Loop {
            to: i.label(),
            cost: 0,
        },
        Op::Stb => Step::Store { size: 1, r1, rd },
        Op::Sth => Step::Store { size: 2, r1, rd },
        Op::Stw => Step::Store { size: 4, r1, rd },
        Op::Stx => Step::Store { size: 8, r1, rd },
        Op::Ret => Step::Ret { rd },
        Op::Nop => Step::Nop,
        Op::Setx => Step::Const {
            rd,
            value: difo.ints.get(usize::from(i.index())).copied()?,
        },
        Op::Sets => Step::Const {
            rd,
            value: addr::make(
                Region::Strings,
                cx.strings.checked_add(usize::from(i.index()))?,
            ),
        },
        Op::Ldga => Step::Array {
            rd,
            var: Var::from_raw(u16::from(r1))?,
            r2,
        },
        Op::Ldgs => Step::Builtin {
            rd,
            var: Var::from_raw(i.index())?,
        },
        Op::Call => Step::Call {
            rd,
            subr: Subr::from_raw(i.index())?,
        },
        Op::Pushtr => Step::PushRef {
            string: r1 == DIF_TYPE_STRING,
            r2,
            rd,
        },
        Op::Pushtv => Step::PushVal { rd },
        Op::Popts => Step::Pop,
        Op::Flushts => Step::Flush,
        Op::Allocs => Step::Alloc { r1, rd },
        Op::Copys => Step::Copy { r1, r2, rd },
        _ => return None,
    })
}

/// Fuses comparisons with their branches, and replaces loads of quick built-in variables.
fn fuse(steps: &mut [Step]) {
    for pc in 1..steps.len() {
        let pair = (steps.get(pc - 1).copied(), steps.get(pc).copied());
        if let (Some(Step::Cmp { r1, r2 }), Some(Step::Branch { cond, to })) = pair {
            if let Some(first) = steps.get_mut(pc - 1) {
                *first = Step::CmpBranch { r1, r2, cond, to };
            }
        }
    }
    for step in steps {
        if let Step::Builtin { rd, var } = *step {
            if let Some(var) = Quick::new(var) {
                *step = Step::Quick { rd, var };
            }
        }
    }
}
