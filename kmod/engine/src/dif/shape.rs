// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Objects that need no steps.
//!
//! Objects around a thread-local variable (`self->t = timestamp`, `/self->t/`, `timestamp -
//! self->t` and `self->t = 0`) are recognised by their exact instructions, because the compiler
//! writes them in one way. For other objects, both paths are followed with known values: constants,
//! and the load of one built-in variable. So an object that amounts to a constant, to a variable,
//! or to the choice between two constants by one comparison is recognised, whatever way the
//! compiler wrote it.
// Arithmetic on indexes of instructions, of which an object has at most `DIFO_MAX` bytes.
#![allow(clippy::arithmetic_side_effects)]

use super::program::{Alu, Cond, Program, Quick, Reg, Step, Test};
use dtrace_uapi::dif::DIF_NREGS;
use dtrace_uapi::var::Var;

/// What a register holds while a shape is searched for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Known {
    Nothing,
    Const(u64),
    Builtin(Var, u32),
}

/// How a path ends.
enum End {
    Returns(Known),
    /// Compares these two operands, and branches at this instruction.
    Compares(Known, Known, Cond, usize),
    Other,
}

const REGS: usize = DIF_NREGS as usize;

/// Follows constants, moves, jumps and the load of at most one built-in variable from `pc` on.
fn follow(steps: &[Step], mut pc: usize, regs: &mut [Known; REGS]) -> End {
    let mut compared = None;
    // This ends, because jumps only go forward; a loop is not followed.
    while let Some(step) = steps.get(pc) {
        pc += 1;
        let get = |r: Reg| regs.get(usize::from(r)).copied().unwrap_or(Known::Nothing);
        let (rd, value) = match *step {
            Step::Nop => continue,
            Step::Const { rd, value } => (rd, Known::Const(value)),
            Step::Mov { r1, rd } => (rd, get(r1)),
            Step::Builtin { rd, var } => {
                if regs.iter().any(|known| matches!(known, Known::Builtin(..))) {
                    return End::Other;
                }
                (rd, Known::Builtin(var, pc as u32 - 1))
            }
            Step::Jump { to } => {
                pc = to as usize;
                continue;
            }
            Step::Cmp { r1, r2 } => {
                compared = Some((get(r1), get(r2)));
                continue;
            }
            Step::Branch { cond, .. } => {
                return match compared {
                    Some((a, b)) => End::Compares(a, b, cond, pc - 1),
                    None => End::Other,
                }
            }
            Step::Ret { rd } => return End::Returns(get(rd)),
            _ => return End::Other,
        };
        if let Some(slot) = regs.get_mut(usize::from(rd)) {
            *slot = value;
        }
    }
    End::Other
}

/// Returns the program around one dynamic variable that the steps are, if they are one.
fn around_dynamic(steps: &[Step]) -> Option<Program> {
    match *steps {
        [Step::LoadDyn { rd, var }, Step::Ret { rd: result }] if rd == result => {
            Some(Program::Load(var))
        }
        [Step::StoreDyn { rd: 0, var }, Step::Ret { rd: 0 }] => Some(Program::Assign {
            var,
            value: None,
            pc: 0,
        }),
        [Step::Builtin { rd, var: value }, Step::StoreDyn { rd: from, var }, Step::Ret { rd: 0 }]
            if rd == from =>
        {
            Some(Program::Assign {
                var,
                value: Some(Quick::new(value)?),
                pc: 1,
            })
        }
        [Step::Builtin { rd: a, var: from }, Step::LoadDyn { rd: b, var }, Step::Alu {
            alu: Alu::Sub,
            r1,
            r2,
            rd,
        }, Step::Ret { rd: result }]
            if a != b && (a, b) == (r1, r2) && rd == result =>
        {
            Some(Program::Since {
                from: Quick::new(from)?,
                var,
            })
        }
        _ => None,
    }
}

/// Returns the simple program that the steps amount to, if there is one.
pub(super) fn shape(steps: &[Step]) -> Option<Program> {
    if let Some(program) = around_dynamic(steps) {
        return Some(program);
    }
    let mut regs = [Known::Nothing; REGS];
    regs[0] = Known::Const(0);
    // A built-in variable that is loaded and not used may still fault. So the steps may load none
    // but the one that decides.
    let builtins = steps
        .iter()
        .filter(|s| matches!(s, Step::Builtin { .. }))
        .count();
    match follow(steps, 0, &mut regs) {
        End::Returns(Known::Const(value)) if builtins == 0 => Some(Program::Const(value)),
        End::Returns(Known::Builtin(var, pc)) if builtins == 1 => Some(match Quick::new(var) {
            Some(quick) => Program::Quick(quick),
            None => Program::Builtin { var, pc },
        }),
        End::Compares(Known::Builtin(var, _), Known::Const(with), cond, at) if builtins == 1 => {
            let var = Quick::new(var)?;
            let Some(Step::Branch { to, .. }) = steps.get(at) else {
                return None;
            };
            let mut other = regs;
            let yes = follow(steps, *to as usize, &mut other);
            let no = follow(steps, at + 1, &mut regs);
            match (yes, no) {
                (End::Returns(Known::Const(yes)), End::Returns(Known::Const(no))) => {
                    Some(Program::Select {
                        var,
                        test: Test::new(cond, with)?,
                        yes,
                        no,
                    })
                }
                _ => None,
            }
        }
        _ => None,
    }
}
