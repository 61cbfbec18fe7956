// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! From a verified DIF object to a program that is ready to run.
//!
//! Each instruction becomes one [`Step`] with its operands decoded and its constant, string or variable resolved; an
//! instruction keeps its index, which faults report. A compare that is followed by its branch is fused into one step
//! (the branch stays where it is, for those who jump to it). Objects that only return a constant or a built-in variable,
//! and those that only compare a built-in with a constant (most predicates), need no steps at all: they are found
//! by following both paths of the object with known values, whatever way the compiler wrote them.

use crate::dof::Difo;
use crate::error::Reason;
use crate::mem::Vec;
use crate::var::addr::{self, Region};
use crate::var::statics::{Place, Table};
use dtrace_uapi::dif::{Instr, Op, DIF_NREGS, DIF_RLD_DELTA};
use dtrace_uapi::subr::Subr;
use dtrace_uapi::types::{DIFV_SCOPE_GLOBAL, DIFV_SCOPE_LOCAL, DIFV_SCOPE_THREAD, DIF_TYPE_STRING};
use dtrace_uapi::var::{Var, OTHER_UBASE};

/// A comparison of two registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cond {
    /// Equal.
    E,
    /// Not equal.
    Ne,
    /// Greater, signed.
    G,
    /// Greater, unsigned.
    Gu,
    /// Greater or equal, signed.
    Ge,
    /// Greater or equal, unsigned.
    Geu,
    /// Less, signed.
    L,
    /// Less, unsigned.
    Lu,
    /// Less or equal, signed.
    Le,
    /// Less or equal, unsigned.
    Leu,
}

impl Cond {
    /// The condition of a branch; `None` for other operations and for `ba`.
    pub fn of(op: Op) -> Option<Self> {
        Some(match op {
            Op::Be => Self::E,
            Op::Bne => Self::Ne,
            Op::Bg => Self::G,
            Op::Bgu => Self::Gu,
            Op::Bge => Self::Ge,
            Op::Bgeu => Self::Geu,
            Op::Bl => Self::L,
            Op::Blu => Self::Lu,
            Op::Ble => Self::Le,
            Op::Bleu => Self::Leu,
            _ => return None,
        })
    }

    /// Whether it holds between `a` and `b`.
    #[inline(always)]
    pub fn holds(self, a: u64, b: u64) -> bool {
        let (sa, sb) = (a as i64, b as i64);
        match self {
            Self::E => a == b,
            Self::Ne => a != b,
            Self::G => sa > sb,
            Self::Gu => a > b,
            Self::Ge => sa >= sb,
            Self::Geu => a >= b,
            Self::L => sa < sb,
            Self::Lu => a < b,
            Self::Le => sa <= sb,
            Self::Leu => a <= b,
        }
    }
}

/// A kind of memory that a load reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// The engine's and the kernel's.
    Kernel,
    /// The current process'.
    User,
    /// The engine's only.
    Restricted,
}

/// Arithmetic of two registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Alu {
    Or,
    Xor,
    And,
    Sll,
    Srl,
    Sra,
    Sub,
    Add,
    Mul,
    Sdiv,
    Udiv,
    Srem,
    Urem,
}

/// Where a dynamic variable's key comes from, and what its value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dyn {
    /// Its id.
    pub id: u16,
    /// It belongs to the thread.
    pub thread: bool,
    /// The tuple stack is part of its key.
    pub array: bool,
    /// Size of its bytes, if it is by reference.
    pub by_ref: Option<u32>,
    /// It is a string.
    pub string: bool,
}

/// Where a global or clause-local lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Static {
    /// It is clause-local.
    pub local: bool,
    /// Offset in its block.
    pub offset: u32,
    /// Size of its bytes, if it is by reference.
    pub by_ref: Option<u32>,
    /// It is a string.
    pub string: bool,
}

/// A register's number.
pub type Reg = u8;

/// One instruction, decoded. Field names are those of DIF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Step {
    Alu {
        alu: Alu,
        r1: Reg,
        r2: Reg,
        rd: Reg,
    },
    Not {
        r1: Reg,
        rd: Reg,
    },
    Mov {
        r1: Reg,
        rd: Reg,
    },
    Cmp {
        r1: Reg,
        r2: Reg,
    },
    Scmp {
        r1: Reg,
        r2: Reg,
    },
    Jump {
        to: u32,
    },
    Branch {
        cond: Cond,
        to: u32,
    },
    /// `cmp` or `tst` and the branch behind it.
    CmpBranch {
        r1: Reg,
        r2: Reg,
        cond: Cond,
        to: u32,
    },
    Load {
        space: Space,
        size: u8,
        signed: bool,
        r1: Reg,
        rd: Reg,
    },
    Store {
        size: u8,
        r1: Reg,
        rd: Reg,
    },
    Ret {
        rd: Reg,
    },
    Nop,
    Const {
        rd: Reg,
        value: u64,
    },
    Quick {
        rd: Reg,
        var: Quick,
    },
    Builtin {
        rd: Reg,
        var: Var,
    },
    Array {
        rd: Reg,
        var: Var,
        r2: Reg,
    },
    LoadStatic {
        rd: Reg,
        var: Static,
    },
    StoreStatic {
        rd: Reg,
        var: Static,
    },
    LoadDyn {
        rd: Reg,
        var: Dyn,
    },
    StoreDyn {
        rd: Reg,
        var: Dyn,
    },
    Call {
        rd: Reg,
        subr: Subr,
    },
    PushRef {
        string: bool,
        r2: Reg,
        rd: Reg,
    },
    PushVal {
        rd: Reg,
    },
    Pop,
    Flush,
    Alloc {
        r1: Reg,
        rd: Reg,
    },
    Copy {
        r1: Reg,
        r2: Reg,
        rd: Reg,
    },
}

/// A built-in variable that can be read without a fault and without scratch memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Quick {
    Arg(u64),
    Pid,
    Timestamp,
    Tid,
    Cpu,
    Ppid,
    Uid,
    Gid,
    Errno,
    Vtimestamp,
    Walltimestamp,
    Ipl,
    Id,
    Epid,
}

impl Quick {
    /// The variable as a quick one, if it is.
    pub fn new(var: Var) -> Option<Self> {
        Some(match var {
            Var::Arg0 => Self::Arg(0),
            Var::Arg1 => Self::Arg(1),
            Var::Arg2 => Self::Arg(2),
            Var::Arg3 => Self::Arg(3),
            Var::Arg4 => Self::Arg(4),
            Var::Arg5 => Self::Arg(5),
            Var::Arg6 => Self::Arg(6),
            Var::Arg7 => Self::Arg(7),
            Var::Arg8 => Self::Arg(8),
            Var::Arg9 => Self::Arg(9),
            Var::Pid => Self::Pid,
            Var::Timestamp => Self::Timestamp,
            Var::Tid => Self::Tid,
            Var::Cpu => Self::Cpu,
            Var::Ppid => Self::Ppid,
            Var::Uid => Self::Uid,
            Var::Gid => Self::Gid,
            Var::Errno => Self::Errno,
            Var::Vtimestamp => Self::Vtimestamp,
            Var::Walltimestamp => Self::Walltimestamp,
            Var::Ipl => Self::Ipl,
            Var::Id => Self::Id,
            Var::Epid => Self::Epid,
            _ => return None,
        })
    }
}

/// A program that is ready to run: what the back ends have in common.
#[derive(Debug)]
pub enum Program {
    /// Returns a constant.
    Const(u64),
    /// Returns a built-in variable.
    Quick(Quick),
    /// Compares a built-in variable with a constant and returns one of two constants.
    Select {
        /// Which.
        var: Quick,
        /// The comparison, the variable on its left.
        cond: Cond,
        /// With what.
        with: u64,
        /// The result where it holds.
        yes: u64,
        /// The result where it does not.
        no: u64,
    },
    /// Returns a built-in variable that may fault or takes scratch memory.
    Builtin {
        /// Which.
        var: Var,
        /// The instruction that loads it.
        pc: u32,
    },
    /// Runs steps.
    Steps(Vec<Step>),
}

/// What preparation has to know about the consumer.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The variables, with those of the object declared.
    pub table: &'a Table,
    /// Where the object's strings begin in the consumer's.
    pub strings: usize,
    /// Kernel memory may be read.
    pub kernel: bool,
}

/// Prepares a verified object.
pub fn prepare(difo: &Difo, cx: &Context<'_>) -> Result<Program, Reason> {
    let mut steps = Vec::try_from_fn(difo.text.len(), |pc| {
        let instr = difo.text.get(pc).copied().unwrap_or(Instr(0));
        step(instr, difo, cx).ok_or(Reason::pc("not verified", pc as u32))
    })?;
    if let Some(program) = shape(&steps) {
        return Ok(program);
    }
    fuse(&mut steps);
    Ok(Program::Steps(steps))
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

/// The ALU operation of `op`.
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

/// Space, size and signedness of a load.
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

/// Decodes an instruction. `None` only where it was not verified.
pub fn step(i: Instr, difo: &Difo, cx: &Context<'_>) -> Option<Step> {
    let op = i.op()?;
    let (r1, r2, rd) = (i.r1(), i.r2(), i.rd());
    if let Some(alu) = alu_of(op) {
        return Some(Step::Alu { alu, r1, r2, rd });
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
    Some(match op {
        Op::Not => Step::Not { r1, rd },
        Op::Mov => Step::Mov { r1, rd },
        Op::Cmp => Step::Cmp { r1, r2 },
        Op::Tst => Step::Cmp { r1, r2: 0 },
        Op::Scmp => Step::Scmp { r1, r2 },
        Op::Ba => Step::Jump { to: i.label() },
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
        Op::Ldgs if i.index() < OTHER_UBASE => Step::Builtin {
            rd,
            var: Var::from_raw(i.index())?,
        },
        Op::Ldgs => Step::LoadStatic {
            rd,
            var: static_of(i, DIFV_SCOPE_GLOBAL, cx)?,
        },
        Op::Stgs => Step::StoreStatic {
            rd,
            var: static_of(i, DIFV_SCOPE_GLOBAL, cx)?,
        },
        Op::Ldls => Step::LoadStatic {
            rd,
            var: static_of(i, DIFV_SCOPE_LOCAL, cx)?,
        },
        Op::Stls => Step::StoreStatic {
            rd,
            var: static_of(i, DIFV_SCOPE_LOCAL, cx)?,
        },
        Op::Ldts => Step::LoadDyn {
            rd,
            var: dyn_of(i, DIFV_SCOPE_THREAD, false, cx)?,
        },
        Op::Stts => Step::StoreDyn {
            rd,
            var: dyn_of(i, DIFV_SCOPE_THREAD, false, cx)?,
        },
        Op::Ldtaa => Step::LoadDyn {
            rd,
            var: dyn_of(i, DIFV_SCOPE_THREAD, true, cx)?,
        },
        Op::Sttaa => Step::StoreDyn {
            rd,
            var: dyn_of(i, DIFV_SCOPE_THREAD, true, cx)?,
        },
        Op::Ldgaa => Step::LoadDyn {
            rd,
            var: dyn_of(i, DIFV_SCOPE_GLOBAL, true, cx)?,
        },
        Op::Stgaa => Step::StoreDyn {
            rd,
            var: dyn_of(i, DIFV_SCOPE_GLOBAL, true, cx)?,
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

/// What a register holds while a shape is looked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Known {
    Nothing,
    Const(u64),
    Builtin(Var, u32),
}

/// How a path ends.
enum End {
    Returns(Known),
    /// Compares and branches at this instruction; both operands.
    Compares(Known, Known, Cond, usize),
    Other,
}

const REGS: usize = DIF_NREGS as usize;

/// Follows constants, moves, jumps and the load of at most one built-in from `pc` on.
fn follow(steps: &[Step], mut pc: usize, regs: &mut [Known; REGS]) -> End {
    let mut compared = None;
    // Jumps only go forward, so this ends.
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

/// The simple program that the steps amount to, if they do.
fn shape(steps: &[Step]) -> Option<Program> {
    let mut regs = [Known::Nothing; REGS];
    regs[0] = Known::Const(0);
    // A built-in that is loaded and not used may still fault, so only the one that decides is left out.
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
                        cond,
                        with,
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

/// Whether a built-in variable is a string, which takes scratch memory when it is loaded.
pub fn is_string(var: Var) -> bool {
    matches!(
        var,
        Var::Execname
            | Var::Zonename
            | Var::Probeprov
            | Var::Probemod
            | Var::Probefunc
            | Var::Probename
    )
}
