// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! The reference: runs raw DIF instructions by plain decoding, as DIF is defined.
//!
//! It keeps real condition codes, and decodes each word when it comes to it. It shares only
//! floating-point arithmetic and the effects on memory and variables ([`Env`]) with the prepared
//! form. Both must agree on every program: result, fault, and instruction.
// Runs on the host only, on verified objects, so an error here must panic.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::panic
)]

use super::env::{Entry, EntryKind, Env};
use super::exec::Stopped;
use super::float::Float;
use super::prepare::{self, Context};
use super::program::{self, Dyn, Space, Static, Step};
use crate::dof::Difo;
use crate::error::Trap;
use crate::machine::Machine;
use crate::subr;
use crate::var::addr::{self, Region};
use crate::var::statics::Place;
use dtrace_uapi::dif::{Instr, Op};
use dtrace_uapi::fault::Fault;
use dtrace_uapi::subr::Subr;
use dtrace_uapi::var::{Var, OTHER_UBASE};

/// Condition codes: negative, zero, overflow, carry.
#[derive(Default)]
struct Codes {
    n: bool,
    z: bool,
    v: bool,
    c: bool,
}

impl Codes {
    fn compare(a: u64, b: u64) -> Self {
        let (difference, carry) = a.overflowing_sub(b);
        let (_, overflow) = (a as i64).overflowing_sub(b as i64);
        Self {
            n: (difference as i64) < 0,
            z: difference == 0,
            v: overflow,
            c: carry,
        }
    }

    fn take(&self, op: Op) -> bool {
        let less = self.n != self.v;
        match op {
            Op::Ba => true,
            Op::Be => self.z,
            Op::Bne => !self.z,
            Op::Bg => !(self.z || less),
            Op::Bgu => !(self.c || self.z),
            Op::Bge => !less,
            Op::Bgeu => !self.c,
            Op::Bl => less,
            Op::Blu => self.c,
            Op::Ble => self.z || less,
            Op::Bleu => self.c || self.z,
            _ => false,
        }
    }
}

/// Runs a verified object.
pub fn run<M: Machine>(
    difo: &Difo,
    cx: &Context<'_>,
    env: &mut Env<'_, M>,
) -> Result<u64, Stopped> {
    let mut regs = [0u64; 8];
    let mut codes = Codes::default();
    let mut pc = 0;
    // The costs come from the prepared steps, because they are not a matter of decoding. Only
    // objects with loops pay: they may run until the budget is used up, and must end at the same
    // instruction.
    let steps = prepare::steps(difo, cx).unwrap();
    let pay = |env: &mut Env<'_, M>, units: usize, pc: u32| {
        let paid = env.vm.budget.spend(units);
        paid.map_err(|spent| Stopped {
            trap: spent.into(),
            pc,
        })
    };
    if steps.iter().any(|step| matches!(step, Step::Loop { .. })) {
        pay(env, program::cost(&steps), 0)?;
    }
    while let Some(instr) = difo.text.get(pc) {
        let here = pc;
        pc += 1;
        if let Some(Step::Loop { cost, .. }) = steps.get(here) {
            pay(env, *cost as usize, here as u32)?;
            pc = instr.label() as usize;
            continue;
        }
        if let Some(Op::Ret) = instr.op() {
            return Ok(regs[usize::from(instr.rd())]);
        }
        if let Some(to) =
            one(*instr, difo, cx, env, &mut regs, &mut codes).map_err(|trap| Stopped {
                trap,
                pc: here as u32,
            })?
        {
            pc = to as usize;
        }
    }
    Ok(0)
}

fn place<'a>(i: Instr, scope: u8, cx: &Context<'a>) -> &'a Place {
    cx.table.find(u32::from(i.index()), scope).unwrap()
}

fn fixed(i: Instr, scope: u8, cx: &Context<'_>) -> Static {
    let p = place(i, scope, cx);
    Static {
        local: scope == 2,
        offset: p.offset as u32,
        by_ref: p.by_ref.map(|n| n as u32),
        string: p.string,
    }
}

fn dynamic(i: Instr, scope: u8, array: bool, cx: &Context<'_>) -> Dyn {
    let p = place(i, scope, cx);
    Dyn {
        id: i.index(),
        thread: scope == 1,
        array,
        by_ref: p.by_ref.map(|n| n as u32),
        string: p.string,
    }
}

/// Executes one instruction; returns its target if it branches.
fn one<M: Machine>(
    i: Instr,
    difo: &Difo,
    cx: &Context<'_>,
    env: &mut Env<'_, M>,
    regs: &mut [u64; 8],
    codes: &mut Codes,
) -> Result<Option<u32>, Trap> {
    let op = i.op().unwrap();
    let reg = |r: u8| regs[usize::from(r)];
    let (a, b, s) = (reg(i.r1() & 7), reg(i.r2() & 7), reg(i.rd() & 7));
    let zero = Trap::new(Fault::DivZero, 0);
    let nonzero = |b: u64| if b == 0 { Err(zero) } else { Ok(b) };
    let value = match op {
        Op::Or => a | b,
        Op::Xor => a ^ b,
        Op::And => a & b,
        Op::Sll => a << (b & 63),
        Op::Srl => a >> (b & 63),
        Op::Sra => ((a as i64) >> (b & 63)) as u64,
        Op::Sub => a.wrapping_sub(b),
        Op::Add => a.wrapping_add(b),
        Op::Mul => a.wrapping_mul(b),
        Op::Sdiv => (a as i64).wrapping_div(nonzero(b)? as i64) as u64,
        Op::Srem => (a as i64).wrapping_rem(nonzero(b)? as i64) as u64,
        Op::Udiv => a / nonzero(b)?,
        Op::Urem => a % nonzero(b)?,
        Op::Not => !a,
        Op::Mov => a,
        Op::Cmp => {
            *codes = Codes::compare(a, b);
            return Ok(None);
        }
        Op::Tst => {
            *codes = Codes::compare(a, 0);
            return Ok(None);
        }
        Op::Scmp => {
            *codes = Codes::compare(env.compare(a, b)? as u64, 0);
            return Ok(None);
        }
        Op::Ba
        | Op::Be
        | Op::Bne
        | Op::Bg
        | Op::Bgu
        | Op::Bge
        | Op::Bgeu
        | Op::Bl
        | Op::Blu
        | Op::Ble
        | Op::Bleu => return Ok(codes.take(op).then_some(i.label())),
        Op::Nop => return Ok(None),
        Op::Setx => difo.ints[usize::from(i.index())],
        Op::Sets => addr::make(Region::Strings, cx.strings + usize::from(i.index())),
        Op::Ldga => env.array(Var::from_raw(u16::from(i.r1())).unwrap(), b)?,
        Op::Ldgs if i.index() < OTHER_UBASE => env.builtin(Var::from_raw(i.index()).unwrap())?,
        Op::Ldgs => env.load_static(fixed(i, 0, cx)),
        Op::Ldls => env.load_static(fixed(i, 2, cx)),
        Op::Stgs => return env.store_static(fixed(i, 0, cx), s).map(|()| None),
        Op::Stls => return env.store_static(fixed(i, 2, cx), s).map(|()| None),
        Op::Ldts => env.load_dyn(dynamic(i, 1, false, cx))?,
        Op::Ldtaa => env.load_dyn(dynamic(i, 1, true, cx))?,
        Op::Ldgaa => env.load_dyn(dynamic(i, 0, true, cx))?,
        Op::Stts => return env.store_dyn(dynamic(i, 1, false, cx), s).map(|()| None),
        Op::Sttaa => return env.store_dyn(dynamic(i, 1, true, cx), s).map(|()| None),
        Op::Stgaa => return env.store_dyn(dynamic(i, 0, true, cx), s).map(|()| None),
        Op::Call => subr::call(Subr::from_raw(i.index()).unwrap(), env)?,
        Op::Pushtr | Op::Pushtv => {
            let kind = match (op, i.r1()) {
                (Op::Pushtv, _) => EntryKind::Value,
                (_, 1) => EntryKind::String,
                _ => EntryKind::Bytes,
            };
            let size = if op == Op::Pushtr { b } else { 0 };
            return env
                .push(Entry {
                    value: s,
                    size,
                    kind,
                })
                .map(|()| None);
        }
        Op::Popts => {
            env.vm.ntuple = env.vm.ntuple.saturating_sub(1);
            return Ok(None);
        }
        Op::Flushts => {
            env.vm.ntuple = 0;
            return Ok(None);
        }
        Op::Allocs => {
            let at = env.vm.ask(a)?;
            let end = env.vm.used;
            env.vm.budget.spend(end - at)?;
            env.vm.scratch[at..end].fill(0);
            addr::make(Region::Scratch, at)
        }
        Op::Copys => return env.copy(a, s, b as usize, false).map(|()| None),
        Op::Stb => return env.store(1, s, a).map(|()| None),
        Op::Sth => return env.store(2, s, a).map(|()| None),
        Op::Stw => return env.store(4, s, a).map(|()| None),
        Op::Stx => return env.store(8, s, a).map(|()| None),
        _ if (Op::Fadd..=Op::Futos).contains(&op) => env.float(Float::of(op).unwrap(), a, b)?,
        _ => {
            let raw = op as u8;
            let (space, base) = if raw >= Op::Rldsb as u8 {
                (Space::Restricted, Op::Rldsb as u8)
            } else if raw >= Op::Uldsb as u8 {
                (Space::User, Op::Uldsb as u8)
            } else if cx.kernel {
                (Space::Kernel, Op::Ldsb as u8)
            } else {
                (Space::Restricted, Op::Ldsb as u8)
            };
            let sizes = [1, 2, 4, 1, 2, 4, 8];
            let n = usize::from(raw - base);
            env.load(space, sizes[n], n < 3, a)?
        }
    };
    regs[usize::from(i.rd())] = value;
    Ok(None)
}
