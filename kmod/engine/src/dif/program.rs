// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! The parts of a prepared program.

use super::float::Float;
use crate::budget::{ASKED, CALLED, CLOCK, LOADED, LOOKUP, LOOPED};
use crate::error::NoMem;
use crate::mem::Vec;
use dtrace_uapi::dif::Op;
use dtrace_uapi::subr::Subr;
use dtrace_uapi::var::Var;

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
    /// Returns the condition of a branch; `None` for other operations and for `ba`.
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

    /// Whether the condition holds between `a` and `b`.
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

/// A comparison with a known number, in a form that is fast. Whatever the kind of comparison, the
/// values for which it holds are consecutive in the ring of all 64-bit numbers. So one comparison
/// of a value's distance from the first of them is enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Test {
    /// The first of the values.
    first: u64,
    /// Distance of the last of them from the first.
    span: u64,
}

impl Test {
    /// Makes the comparison of a value, on the left, with `with`. `None` if the result is the same
    /// for all values.
    pub fn new(cond: Cond, with: u64) -> Option<Self> {
        // Maps the order of signed numbers to that of unsigned ones, and back.
        let sign = match cond {
            Cond::G | Cond::Ge | Cond::L | Cond::Le => 1 << 63,
            _ => 0,
        };
        let with = with ^ sign;
        let (after, before) = (with.wrapping_add(1), with.wrapping_sub(1));
        let (first, last) = match cond {
            Cond::E => (with, with),
            Cond::Ne => (after, before),
            Cond::G | Cond::Gu if after != 0 => (after, u64::MAX),
            Cond::Ge | Cond::Geu if with != 0 => (with, u64::MAX),
            Cond::L | Cond::Lu if with != 0 => (0, before),
            Cond::Le | Cond::Leu if after != 0 => (0, with),
            _ => return None,
        };
        Some(Self {
            first: first ^ sign,
            span: last.wrapping_sub(first),
        })
    }

    /// Returns the test that holds where this one does not.
    pub fn negated(self) -> Self {
        Self {
            first: self.first.wrapping_add(self.span).wrapping_add(1),
            span: (!self.span).wrapping_sub(1),
        }
    }

    /// Whether the comparison holds for `value`.
    #[inline(always)]
    pub fn holds(self, value: u64) -> bool {
        value.wrapping_sub(self.first) <= self.span
    }
}

/// A space of memory that a load reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// The engine's and the kernel's.
    Kernel,
    /// The current process's.
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

/// A dynamic variable: how its key is made, and what its value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dyn {
    /// Its id.
    pub id: u16,
    /// It is a thread-local variable.
    pub thread: bool,
    /// The tuple stack is part of its key.
    pub array: bool,
    /// Size of its value in bytes, if it is by reference.
    pub by_ref: Option<u32>,
    /// It is a string.
    pub string: bool,
}

impl Dyn {
    /// Returns the first word of the key of a variable without a tuple.
    #[inline(always)]
    pub fn name(self) -> u64 {
        u64::from(self.id) | u64::from(self.thread) << 32
    }
}

/// The place of a global or clause-local variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Static {
    /// It is clause-local.
    pub local: bool,
    /// Offset in its block.
    pub offset: u32,
    /// Size of its value in bytes, if it is by reference.
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
    /// Unary operations ignore `r2`.
    Float {
        float: Float,
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
    /// Takes the cost of another round from the budget, and goes back.
    Loop {
        to: u32,
        cost: u32,
    },
    Branch {
        cond: Cond,
        to: u32,
    },
    /// `cmp` or `tst`, and the branch that follows it.
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

/// A built-in variable that can be read without scratch memory and without a fault, except an
/// argument that lies in memory.
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
    /// Returns the quick variable of `var`, if it is one.
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

    /// Whether it is an argument of the probe.
    pub fn is_arg(self) -> bool {
        matches!(self, Self::Arg(_))
    }

    /// Returns the units of reading it.
    pub fn units(self) -> usize {
        match self {
            Self::Timestamp | Self::Vtimestamp | Self::Walltimestamp => CLOCK,
            Self::Cpu | Self::Id | Self::Epid => 1,
            // It may lie in a program's memory.
            Self::Arg(_) => 2 * ASKED,
            Self::Pid
            | Self::Tid
            | Self::Ppid
            | Self::Uid
            | Self::Gid
            | Self::Errno
            | Self::Ipl => ASKED,
        }
    }
}

/// A program that is ready to run.
#[derive(Debug)]
pub enum Program {
    /// Returns a constant.
    Const(u64),
    /// Returns a built-in variable.
    Quick(Quick),
    /// Compares a built-in variable with a constant and returns one of two constants.
    Select {
        /// The variable.
        var: Quick,
        /// The comparison, with the variable on its left.
        test: Test,
        /// The result if it holds.
        yes: u64,
        /// The result if it does not hold.
        no: u64,
    },
    /// Returns a built-in variable that may fault or takes scratch memory.
    Builtin {
        /// The variable.
        var: Var,
        /// The instruction that loads it.
        pc: u32,
    },
    /// Returns a dynamic variable, which the first instruction loads.
    Load(Dyn),
    /// Assigns a built-in variable, or 0, to a dynamic variable; returns 0.
    Assign {
        /// The dynamic variable.
        var: Dyn,
        /// The built-in variable; `None` for 0.
        value: Option<Quick>,
        /// The instruction that stores it.
        pc: u32,
    },
    /// Returns the difference between a built-in variable and a dynamic variable, which the second
    /// instruction loads.
    Since {
        /// The built-in variable, from which is subtracted.
        from: Quick,
        /// The dynamic variable, which is subtracted.
        var: Dyn,
    },
    /// Runs steps.
    Steps {
        /// The steps.
        steps: Vec<Step>,
        /// Units that they take from the budget, beyond those that depend on data.
        cost: usize,
    },
}

impl Step {
    /// Returns the units of doing it, beyond those that depend on data.
    pub fn units(&self) -> usize {
        match self {
            Self::Load { space, .. } if *space != Space::Restricted => LOADED,
            Self::Quick { var, .. } => var.units(),
            Self::Array { .. } => LOADED,
            Self::Builtin { var, .. } => Quick::new(*var).map_or(ASKED, Quick::units),
            Self::LoadDyn { .. } | Self::StoreDyn { .. } => LOOKUP,
            Self::Call { .. } | Self::Scmp { .. } => CALLED,
            _ => 1,
        }
    }

    /// Returns the same for doing it once more in a loop.
    pub fn units_again(&self) -> usize {
        self.units().max(LOOPED)
    }

    /// Whether it goes back.
    pub fn is_loop(&self) -> bool {
        matches!(self, Self::Loop { .. })
    }

    fn looks_for_dynamic(&self) -> bool {
        matches!(self, Self::LoadDyn { .. } | Self::StoreDyn { .. })
    }

    fn reads_user(&self) -> bool {
        match self {
            Self::Load { space, .. } => *space == Space::User,
            Self::Call { subr, .. } => {
                matches!(subr, Subr::Copyin | Subr::Copyinstr | Subr::Copyinto)
            }
            _ => false,
        }
    }

    fn reads_args(&self) -> bool {
        match self {
            Self::Quick { var, .. } => var.is_arg(),
            Self::Array { var, .. } => *var == Var::Args,
            _ => false,
        }
    }
}

/// Returns the units of steps that are done once, beyond those that depend on data.
pub fn cost(steps: &[Step]) -> usize {
    let units = steps.iter().map(Step::units);
    units.fold(0, usize::saturating_add)
}

/// Returns for each step, and for the end, the units that the steps before it take when a loop does
/// them again, beyond those that depend on data. The steps between two take the difference.
pub fn rounds(steps: &[Step]) -> Result<Vec<usize>, NoMem> {
    let mut before = Vec::with_capacity(steps.len().saturating_add(1))?;
    let mut sum = 0usize;
    before.push(sum)?;
    for step in steps {
        sum = sum.saturating_add(step.units_again());
        before.push(sum)?;
    }
    Ok(before)
}

impl Program {
    /// Makes a program that runs `steps`.
    pub fn of(steps: Vec<Step>) -> Self {
        let cost = cost(&steps);
        Self::Steps { steps, cost }
    }

    /// Returns the units of running it, beyond those that depend on data. It is 0 for steps, which
    /// take theirs from the budget themselves.
    pub fn price(&self) -> usize {
        match self {
            Self::Const(_) | Self::Steps { .. } => 0,
            Self::Quick(var) | Self::Select { var, .. } => var.units(),
            Self::Builtin { .. } => ASKED,
            Self::Load(_) => LOOKUP,
            Self::Assign { value, .. } => value.map_or(0, Quick::units).saturating_add(LOOKUP),
            Self::Since { from, .. } => from.units().saturating_add(LOOKUP),
        }
    }

    /// Whether it has steps that load user memory, or that call `copyin()`, `copyinstr()` or
    /// `copyinto()`.
    pub fn reads_user(&self) -> bool {
        matches!(self, Self::Steps { steps, .. } if steps.iter().any(Step::reads_user))
    }

    /// Whether it reads an argument of the probe.
    pub fn reads_args(&self) -> bool {
        match self {
            Self::Quick(var) | Self::Select { var, .. } => var.is_arg(),
            Self::Assign { value, .. } => value.is_some_and(Quick::is_arg),
            Self::Since { from, .. } => from.is_arg(),
            Self::Steps { steps, .. } => steps.iter().any(Step::reads_args),
            Self::Const(_) | Self::Builtin { .. } | Self::Load(_) => false,
        }
    }

    /// Whether it looks up thread-local variables or elements of associative arrays.
    pub fn looks_for_dynamics(&self) -> bool {
        match self {
            Self::Load(_) | Self::Assign { .. } | Self::Since { .. } => true,
            Self::Steps { steps, .. } => steps.iter().any(Step::looks_for_dynamic),
            Self::Const(_) | Self::Quick(_) | Self::Select { .. } | Self::Builtin { .. } => false,
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_holds_where_its_condition_does() {
        const CONDS: [Cond; 10] = [
            Cond::E,
            Cond::Ne,
            Cond::G,
            Cond::Gu,
            Cond::Ge,
            Cond::Geu,
            Cond::L,
            Cond::Lu,
            Cond::Le,
            Cond::Leu,
        ];
        let values = [0, 1, 2, u64::MAX, 1 << 63, (1 << 63) - 1];
        for cond in CONDS {
            for with in values {
                let expected = values.map(|value| cond.holds(value, with));
                let Some(test) = Test::new(cond, with) else {
                    // `values` contains both ends of the signed order and of the unsigned one.
                    assert!(expected.iter().all(|holds| *holds == expected[0]));
                    continue;
                };
                assert_eq!(values.map(|v| test.holds(v)), expected, "{cond:?} {with}");
                let negated = values.map(|v| !test.negated().holds(v));
                assert_eq!(negated, expected, "not {cond:?} {with}");
            }
        }
    }
}
