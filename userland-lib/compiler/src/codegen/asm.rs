// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Encodes a function as a DIF object.

use super::ir::{Func, Inst, VReg};
use super::optimize::optimize;
use super::regs;
use crate::program::Difo;
use dtrace_uapi::dif::{Instr, Op, DIF_INTOFF_MAX, DIF_STROFF_MAX};
use dtrace_uapi::limits::DIFO_MAX;
use dtrace_uapi::types::{DifType, DifVar, DIFV_F_MOD, DIFV_F_REF};
use std::collections::HashMap;

/// Why a function does not fit in a DIF object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AsmError {
    /// More constants than an instruction can address.
    #[error("integer table of D program exceeds {DIF_INTOFF_MAX} entries")]
    Integers,
    /// A longer string table than an instruction can address.
    #[error("string table of D program exceeds {DIF_STROFF_MAX} bytes")]
    Strings,
    /// More code than the kernel accepts.
    #[error("D program text exceeds {DIFO_MAX} bytes")]
    Text,
}

/// Encodes `func`, which returns a value of type `rtype`.
///
/// # Panics
///
/// If lowering broke [`super::ir`]'s invariants: a branch to a label that is not placed after it,
/// or a loop to a label that is not placed before it.
pub fn assemble(func: &Func, rtype: DifType) -> Result<Difo, AsmError> {
    let mut func = func.clone();
    optimize(&mut func);
    let assignment = regs::allocate(&mut func);
    // Remove copies between virtual registers that were assigned the same register.
    func.code.retain(|(inst, _)| match inst {
        Inst::Un {
            op: Op::Mov,
            dst,
            a,
        } => assignment[dst.0 as usize] != assignment[a.0 as usize],
        _ => true,
    });
    let mut asm = Assembler {
        places: places(&func),
        assignment,
        ints: HashMap::new(),
        difo: Difo {
            rtype,
            ..Difo::default()
        },
    };
    for (inst, span) in &func.code {
        let at = asm.difo.text.len();
        if let Some(instr) = asm.encode(inst, at)? {
            asm.difo.text.push(instr);
            asm.difo.spans.push(*span);
        }
    }
    asm.difo.vars = variables(&mut func)?;
    let names_string = |(inst, _): &(Inst, _)| matches!(inst, Inst::Str { .. });
    // A table with only the empty string is left out, unless the code loads that string.
    if func.strings.len() > 1 || func.code.iter().any(names_string) {
        asm.difo.strings = func.strings;
    }
    if asm.difo.text.len() * size_of::<Instr>() > DIFO_MAX {
        return Err(AsmError::Text);
    }
    Ok(asm.difo)
}

/// Returns for each label the index of the instruction that follows it.
fn places(func: &Func) -> Vec<Option<usize>> {
    let mut places = vec![None; func.label_count()];
    let mut at = 0;
    for (inst, _) in &func.code {
        match inst {
            Inst::Label(label) => places[label.index()] = Some(at),
            _ => at += 1,
        }
    }
    places
}

/// Returns the table of variables: the declared ones that the code accesses, with the kinds of
/// access.
fn variables(func: &mut Func) -> Result<Vec<DifVar>, AsmError> {
    let mut table = Vec::new();
    for var in std::mem::take(&mut func.vars) {
        let mut flags = 0;
        for (id, op) in func.code.iter().filter_map(|(inst, _)| inst.variable()) {
            if id == var.id && scope(op) == var.scope {
                flags |= if is_store(op) { DIFV_F_MOD } else { DIFV_F_REF };
            }
        }
        if flags != 0 {
            let name = func.string(var.name.as_bytes()).offset();
            table.push(DifVar {
                name,
                id: var.id.into(),
                kind: var.kind,
                scope: var.scope,
                flags,
                ty: var.ty,
            });
        }
    }
    if func.strings.len() > DIF_STROFF_MAX as usize {
        return Err(AsmError::Strings);
    }
    Ok(table)
}

fn is_store(op: Op) -> bool {
    matches!(op, Op::Stgs | Op::Stts | Op::Stls | Op::Stgaa | Op::Sttaa)
}

fn scope(op: Op) -> u8 {
    use dtrace_uapi::types::{DIFV_SCOPE_GLOBAL, DIFV_SCOPE_LOCAL, DIFV_SCOPE_THREAD};
    match op {
        Op::Ldls | Op::Stls => DIFV_SCOPE_LOCAL,
        Op::Ldts | Op::Stts | Op::Ldta | Op::Ldtaa | Op::Sttaa => DIFV_SCOPE_THREAD,
        _ => DIFV_SCOPE_GLOBAL,
    }
}

struct Assembler {
    places: Vec<Option<usize>>,
    assignment: regs::Assignment,
    ints: HashMap<u64, u16>,
    difo: Difo,
}

impl Assembler {
    fn reg(&self, vreg: VReg) -> u8 {
        self.assignment[vreg.0 as usize]
    }

    /// Returns the index of `value` in the integer table.
    fn int(&mut self, value: u64) -> Result<u16, AsmError> {
        if let Some(&index) = self.ints.get(&value) {
            return Ok(index);
        }
        let index = u16::try_from(self.difo.ints.len()).map_err(|_| AsmError::Integers)?;
        self.difo.ints.push(value);
        self.ints.insert(value, index);
        Ok(index)
    }

    /// Encodes the instruction at index `at`; `None` for a label.
    fn encode(&mut self, inst: &Inst, at: usize) -> Result<Option<Instr>, AsmError> {
        let instr = match *inst {
            Inst::Const { dst, value: 0 } => Instr::fmt(Op::Mov, 0, 0, self.reg(dst)),
            Inst::Const { dst, value } => Instr::indexed(Op::Setx, self.int(value)?, self.reg(dst)),
            Inst::Str { dst, string } => {
                let offset = u16::try_from(string.offset()).map_err(|_| AsmError::Strings)?;
                Instr::indexed(Op::Sets, offset, self.reg(dst))
            }
            Inst::Bin { op, dst, a, b } => Instr::fmt(op, self.reg(a), self.reg(b), self.reg(dst)),
            Inst::Un { op, dst, a } => Instr::fmt(op, self.reg(a), 0, self.reg(dst)),
            Inst::Load { op, dst, addr } => Instr::fmt(op, self.reg(addr), 0, self.reg(dst)),
            Inst::Store { op, src, addr } => Instr::fmt(op, self.reg(src), 0, self.reg(addr)),
            Inst::LoadVar { op, dst, var } => Instr::indexed(op, var, self.reg(dst)),
            Inst::StoreVar { op, src, var } => Instr::indexed(op, var, self.reg(src)),
            Inst::LoadArray {
                op,
                dst,
                var,
                index,
            } => Instr::fmt(op, var, self.reg(index), self.reg(dst)),
            Inst::Compare { op, a, b } => Instr::fmt(op, self.reg(a), self.reg(b), 0),
            Inst::Test { a } => Instr::fmt(Op::Tst, self.reg(a), 0, 0),
            Inst::Branch { op, label } => {
                let place = self.places[label.index()].filter(|&place| place > at);
                let place = place.expect("a branch goes forward to a label that is placed");
                Instr::branch(op, place.try_into().map_err(|_| AsmError::Text)?)
            }
            Inst::Loop { head } => {
                let place = self.places[head.index()].filter(|&place| place <= at);
                let place = place.expect("a loop goes back to a label that is placed");
                Instr::branch(Op::Loop, place.try_into().map_err(|_| AsmError::Text)?)
            }
            Inst::Label(_) => return Ok(None),
            Inst::Call { dst, subr } => Instr::indexed(Op::Call, subr as u16, self.reg(dst)),
            Inst::Push {
                op,
                ty,
                size,
                value,
            } => Instr::fmt(op, ty, self.reg(size), self.reg(value)),
            Inst::Pop => Instr::fmt(Op::Popts, 0, 0, 0),
            Inst::Flush => Instr::fmt(Op::Flushts, 0, 0, 0),
            Inst::Alloc { dst, size } => Instr::fmt(Op::Allocs, self.reg(size), 0, self.reg(dst)),
            Inst::Copy { src, size, dst } => {
                Instr::fmt(Op::Copys, self.reg(src), self.reg(size), self.reg(dst))
            }
            Inst::Ret { src } => Instr::fmt(Op::Ret, 0, 0, self.reg(src)),
        };
        Ok(Some(instr))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codegen::ir::VarDecl;
    use crate::disassemble::listing;
    use crate::source::Span;
    use dtrace_uapi::types::{DIFV_KIND_SCALAR, DIFV_SCOPE_GLOBAL};
    use dtrace_uapi::var::Var;
    use proptest::prelude::*;

    const SPAN: Span = Span::new(0, 0);
    const INT: DifType = DifType {
        kind: 0,
        ckind: 1,
        flags: 0,
        pad: 0,
        size: 8,
    };

    #[test]
    fn a_conditional_reads_well() {
        let mut f = Func::new();
        f.variable(VarDecl {
            name: "arg0".into(),
            id: Var::Arg0 as u16,
            kind: DIFV_KIND_SCALAR,
            scope: DIFV_SCOPE_GLOBAL,
            ty: INT,
        });
        let (arg, out) = (f.vreg(), f.vreg());
        let (other, end) = (f.label(), f.label());
        f.push(
            Inst::LoadVar {
                op: Op::Ldgs,
                dst: arg,
                var: Var::Arg0 as u16,
            },
            SPAN,
        );
        f.push(Inst::Test { a: arg }, SPAN);
        f.push(
            Inst::Branch {
                op: Op::Be,
                label: other,
            },
            SPAN,
        );
        f.push(Inst::Const { dst: out, value: 7 }, SPAN);
        f.push(
            Inst::Branch {
                op: Op::Ba,
                label: end,
            },
            SPAN,
        );
        f.push(Inst::Label(other), SPAN);
        f.push(Inst::Const { dst: out, value: 0 }, SPAN);
        f.push(Inst::Label(end), SPAN);
        f.push(Inst::Ret { src: out }, SPAN);
        let difo = assemble(&f, INT).expect("it fits");
        let expected = "\
OFF OPCODE      INSTRUCTION
00: 29010601    ldgs DT_VAR(262), %r1\t\t! DT_VAR(262) = \"arg0\"
01: 10010000    tst  %r1
02: 12000005    be   5
03: 25000001    setx DT_INTEGER[0], %r1\t\t! 0x7
04: 11000006    ba   6
05: 0e000001    mov  %r0, %r1
06: 23000001    ret  %r1

NAME             ID   KND SCP FLAG TYPE
arg0             106  scl glb r    D type (integer) (size 8)
";
        assert_eq!(listing(&difo), expected);
    }

    #[test]
    fn the_empty_string_is_in_a_table() {
        let mut f = Func::new();
        let dst = f.vreg();
        let string = f.string(b"");
        f.push(Inst::Str { dst, string }, SPAN);
        f.push(Inst::Ret { src: dst }, SPAN);
        assert_eq!(assemble(&f, INT).expect("it fits").strings, b"\0");
    }

    #[test]
    fn too_many_constants_are_refused() {
        let mut f = Func::new();
        let dst = f.vreg();
        for value in 0..=0x1_0001u64 {
            f.push(
                Inst::Const {
                    dst,
                    value: value + 1,
                },
                SPAN,
            );
        }
        f.push(Inst::Ret { src: dst }, SPAN);
        assert_eq!(assemble(&f, INT), Err(AsmError::Integers));
    }

    /// Executes the operations that the test below generates: constants, differences, moves and
    /// spills.
    fn run(difo: &Difo) -> u64 {
        let mut regs = [0u64; 8];
        let mut locals = HashMap::new();
        for instr in &difo.text {
            let (r1, r2, rd) = (
                instr.r1() as usize,
                instr.r2() as usize,
                instr.rd() as usize,
            );
            assert!(rd < 8);
            match instr.op().expect("a known operation") {
                Op::Setx => regs[rd] = difo.ints[usize::from(instr.index())],
                Op::Mov => regs[rd] = regs[r1],
                Op::Sub => regs[rd] = regs[r1].wrapping_sub(regs[r2]),
                Op::Stls => {
                    locals.insert(instr.index(), regs[rd]);
                }
                Op::Ldls => regs[rd] = locals[&instr.index()],
                Op::Ret => return regs[rd],
                op => panic!("{op:?} was not asked for"),
            }
            assert_eq!(regs[0], 0);
        }
        panic!("no ret")
    }

    proptest! {
        /// Regardless of the number of live values, the allocated code computes the same as the
        /// virtual registers would.
        #[test]
        fn allocation_keeps_values(
            constants in proptest::collection::vec(any::<u64>(), 1..30),
            steps in proptest::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..60),
        ) {
            let mut f = Func::new();
            let mut values = constants.clone();
            let mut vregs: Vec<VReg> = Vec::new();
            for &value in &constants {
                let dst = f.vreg();
                f.push(Inst::Const { dst, value }, SPAN);
                vregs.push(dst);
            }
            for (a, b) in steps {
                let (a, b) = (a.index(vregs.len()), b.index(vregs.len()));
                let dst = f.vreg();
                f.push(Inst::Bin { op: Op::Sub, dst, a: vregs[a], b: vregs[b] }, SPAN);
                vregs.push(dst);
                values.push(values[a].wrapping_sub(values[b]));
            }
            // Everything is used again at the end, so that all of it stays live.
            let sum = f.vreg();
            f.push(Inst::Const { dst: sum, value: 1 }, SPAN);
            let mut expected = 1u64;
            for (&vreg, value) in vregs.iter().zip(values) {
                f.push(Inst::Bin { op: Op::Sub, dst: sum, a: sum, b: vreg }, SPAN);
                expected = expected.wrapping_sub(value);
            }
            f.push(Inst::Ret { src: sum }, SPAN);
            prop_assert_eq!(run(&assemble(&f, INT).expect("it fits")), expected);
        }
    }
}
