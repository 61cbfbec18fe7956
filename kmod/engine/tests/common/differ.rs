// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Runs a DIF program in two ways: prepared, and by the reference interpreter. Result, fault,
//! instruction and memory must be the same.
//!
//! Programs are made from [`Seed`]s, a few numbers per instruction, so that the verifier accepts
//! most of them.

use super::asm::{array, asm_with, bytes, int, string, var};
use super::config;
use super::machine::TestMachine;
use dtrace_engine::dif::env::{At, Core, Env, Vm};
use dtrace_engine::dif::exec::{self, Stopped};
use dtrace_engine::dif::prepare::{prepare, Context};
use dtrace_engine::dif::tokens::Firing;
use dtrace_engine::dif::{reference, verify};
use dtrace_engine::dof::Difo;
use dtrace_engine::mem::shared::Shared;
use dtrace_engine::mem::Vec as EVec;
use dtrace_engine::spec::{Speculations, State};
use dtrace_engine::var::dynamic::Dynamics;
use dtrace_engine::var::statics::Table;
use dtrace_engine::{Machine, Privileges, UserWalk};
use dtrace_uapi::dif::{Instr, Op};
use dtrace_uapi::types::DifVar;
use std::collections::BTreeMap;

/// Size of strings in bytes.
pub const STRSIZE: usize = 32;

/// Variables of every kind.
pub fn vars() -> Vec<DifVar> {
    vec![
        var(0x500, 0, int(8)),
        var(0x501, 0, string()),
        var(0x502, 0, bytes(24)),
        var(0x500, 1, int(8)),
        var(0x501, 1, string()),
        var(0x500, 2, int(8)),
        var(0x501, 2, bytes(40)),
        array(0x503, 0, int(8)),
        array(0x503, 1, string()),
    ]
}

/// Returns a machine with some memory, and arguments that point to it or nowhere.
pub fn machine() -> TestMachine {
    let mut m = TestMachine::default();
    m.kernel.insert(
        0xffff_8000_0000_0000,
        (0..200u8).map(|b| b ^ 0x55).collect(),
    );
    m.kernel.insert(
        0xffff_8000_0001_0000,
        b"/usr//lib/../share/x,y;z\0tail".to_vec(),
    );
    m.user
        .get_mut()
        .insert(0x40_0000, b"a user string\0and more of it".to_vec());
    m.args = [
        0xffff_8000_0000_0000,
        0xffff_8000_0001_0000,
        0x40_0000,
        0,
        u64::MAX,
        i64::MIN as u64,
        7,
        1,
        0x40_0008,
        2,
    ];
    m
}

/// The part of a firing's 4 Mi units that programs do not get.
const UNITS_SPENT: usize = (4 << 20) - (1 << 20);

/// The outcome of one way of running: the result and all memory that the program could change.
#[derive(Debug, PartialEq)]
pub struct Outcome {
    pub result: Result<u64, Stopped>,
    /// Scratch memory as far as it is in use.
    pub scratch: Vec<u8>,
    /// The memory of the process.
    pub user: BTreeMap<u64, Vec<u8>>,
    locals: Vec<u8>,
    globals: Vec<u8>,
    /// Word indexes and values of the nonzero words of dynamic variables.
    values: Vec<(usize, u64)>,
    ntuple: usize,
    random: u64,
    /// What later calls of subroutines depend on: the speculations, and the string that `strtok()`
    /// takes apart, with the offset of the rest.
    pub later: (Vec<State>, Option<(Vec<u8>, usize)>),
}

/// What the engine knows about the firing in which a program runs. No number of it is 0.
pub const AT: At = At {
    cpu: 1,
    epid: 3,
    probe: 4,
};

fn outcome(
    m: TestMachine,
    difo: &Difo,
    table: &Table,
    key_size: usize,
    kernel: bool,
    run: impl FnOnce(&mut Env<'_, TestMachine>) -> Result<u64, Stopped>,
) -> Outcome {
    let core = Core {
        ustacks: UserWalk::default(),
        strings: EVec::copy_of(&difo.strings).unwrap(),
        globals: Shared::new(table.globals_size()).unwrap(),
        dynamics: Some(Dynamics::new(16384, 16 + key_size, table.data_max(), 64, 2, 7).unwrap()),
        speculations: Some(Speculations::new(2).unwrap()),
        strsize: STRSIZE,
        kernel,
        kernel_memory: kernel,
        all_users: true,
        user_memory: true,
        interp: None,
    };
    let words = core.dynamics.as_ref().unwrap().key_words();
    let mut vm = Vm::new(&core, 1024, usize::MAX, table.locals_size(), words, 7).unwrap();
    // Makes endless loops end soon.
    vm.budget.spend(UNITS_SPENT).unwrap();
    let result = run(&mut Env {
        m: &m,
        core: &core,
        vm: &mut vm,
        at: AT,
        rehearsal: None,
    });
    let all = |shared: &Shared| {
        let mut out = vec![0; shared.size()];
        assert!(shared.read(0, &mut out));
        out
    };
    Outcome {
        result,
        scratch: vm.scratch[..vm.used].to_vec(),
        user: m.user.take(),
        locals: vm.locals.to_vec(),
        globals: all(&core.globals),
        values: all(core.dynamics.as_ref().unwrap().values())
            .chunks(8)
            .enumerate()
            .map(|(at, word)| (at, super::u64_at(word, 0)))
            .filter(|(_, word)| *word != 0)
            .collect(),
        ntuple: vm.ntuple,
        random: vm.random,
        later: {
            let all = core.speculations.as_ref().unwrap();
            let states = all.ids().map(|id| all.state(id));
            let firing = Firing {
                probe: AT.probe,
                number: m.firing(),
            };
            let begun = vm.tokens.of(firing);
            let begun = begun.map(|begun| (begun.text().to_vec(), begun.at));
            (states.collect(), begun)
        },
    }
}

/// Who runs a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rights {
    /// Somebody who may do everything.
    #[default]
    All,
    /// Somebody without destructive rights.
    Harmless,
    /// A user without rights over the kernel.
    User,
}

/// Runs a program in both ways. `None` if the verifier refuses it.
pub fn both(difo: &Difo, kernel: bool) -> Option<(Outcome, Outcome)> {
    let rights = if kernel { Rights::All } else { Rights::User };
    verified(difo, rights).ok()
}

/// Runs a program in both ways. The error is the verifier's, as text.
pub fn verified(difo: &Difo, rights: Rights) -> Result<(Outcome, Outcome), String> {
    verified_on(machine, difo, rights)
}

/// Runs a program in both ways, each on a new machine. The error is the verifier's, as text.
pub fn verified_on(
    machine: impl Fn() -> TestMachine,
    difo: &Difo,
    rights: Rights,
) -> Result<(Outcome, Outcome), String> {
    let kernel = rights != Rights::User;
    let cx = verify::Context {
        privileges: Privileges {
            kernel,
            kernel_memory: kernel,
            ..Privileges::ALL
        },
        features: config().features,
        destructive: rights != Rights::Harmless,
        strsize: STRSIZE,
        loops: true,
        walker: false,
    };
    let facts = verify::verify(difo, &cx).map_err(|reason| reason.to_string())?;
    if facts.key_size >= 4096 {
        return Err("too large a key for this machine".to_owned());
    }
    let mut table = Table::default();
    for var in difo.vars.iter() {
        table.declare(var, STRSIZE).unwrap();
    }
    let cx = Context {
        table: &table,
        strings: 0,
        kernel,
    };
    let program = prepare(difo, &cx).unwrap();
    let a = outcome(machine(), difo, &table, facts.key_size, kernel, |env| {
        exec::run(&program, env)
    });
    let b = outcome(machine(), difo, &table, facts.key_size, kernel, |env| {
        reference::run(difo, &cx, env)
    });
    Ok((a, b))
}

/// The numbers from which an instruction is made.
#[derive(Clone, Debug)]
pub struct Seed {
    pub kind: u8,
    pub a: u8,
    pub b: u8,
    pub c: u8,
    pub n: u16,
}

fn pick<T: Copy>(from: &[T], n: u8) -> T {
    from[n as usize % from.len()]
}

/// Makes a program that the verifier normally accepts: operands are in range, but branches may not
/// be.
pub fn program(seeds: &[Seed]) -> Difo {
    use Op::*;
    const ALU: [Op; 21] = [
        Or, Xor, And, Sll, Srl, Sra, Sub, Add, Mul, Sdiv, Udiv, Srem, Urem, Copys, Fadd, Fsub,
        Fmul, Fdiv, Feq, Flt, Fle,
    ];
    const UNARY: [Op; 10] = [
        Not, Mov, Fxtod, Futod, Fdtox, Fdtou, Fstod, Fdtos, Fxtos, Futos,
    ];
    const LOADS: [Op; 14] = [
        Ldsb, Ldsh, Ldsw, Ldub, Lduh, Lduw, Ldx, Uldub, Uldsw, Uldx, Rldub, Rldsh, Rldx, Ldub,
    ];
    const BRANCHES: [Op; 11] = [Ba, Be, Bne, Bg, Bgu, Bge, Bgeu, Bl, Blu, Ble, Bleu];
    const BUILTINS: [u16; 14] = [
        0x106, 0x107, 0x108, 0x109, 0x10a, 0x10b, 0x10c, 0x10d, 0x10e, 0x10f, 0x116, 0x118, 0x101,
        0x114,
    ];
    // Subroutine, and number of arguments.
    const CALLS: [(u16, u8); 35] = [
        (0, 0),
        (8, 2),
        (9, 1),
        (9, 2),
        (11, 1),
        (12, 1),
        (15, 1),
        (16, 3),
        (17, 3),
        (20, 1),
        (23, 2),
        (24, 1),
        (24, 2),
        (25, 1),
        (26, 1),
        (27, 1),
        (28, 2),
        (29, 2),
        (30, 2),
        (31, 2),
        (32, 2),
        (32, 3),
        (33, 2),
        (34, 3),
        (36, 1),
        (41, 2),
        (44, 1),
        (47, 2),
        (48, 1),
        (202, 1),
        (220, 2),
        (225, 2),
        (227, 1),
        (228, 1),
        (233, 1),
    ];
    let mut text: Vec<Instr> = vec![];
    for s in seeds {
        let (r1, r2, rd) = (s.a & 7, s.b & 7, 1 + s.c % 7);
        let i = match s.kind % 21 {
            0..=2 => Instr::fmt(pick(&ALU, s.n as u8), r1, r2, rd),
            3 => Instr::fmt(pick(&UNARY, s.n as u8), r1, 0, rd),
            4 => Instr::fmt(Allocs, r1, 0, rd),
            5 => Instr::fmt(pick(&LOADS, s.n as u8), r1, 0, rd),
            6 => Instr::fmt(pick(&[Stb, Sth, Stw, Stx], s.n as u8), r1, 0, rd),
            7 => Instr::fmt(pick(&[Cmp, Scmp, Cmp], s.n as u8), r1, r2, 0),
            8 => Instr::fmt(Tst, r1, 0, 0),
            9 | 10 => Instr::branch(
                pick(&BRANCHES, s.n as u8),
                text.len() as u32 + 1 + u32::from(s.b % 12),
            ),
            11 | 12 => Instr::indexed(Setx, s.n % 12, rd),
            13 => Instr::indexed(Sets, s.n % 20, rd),
            14 => Instr::indexed(Ldgs, pick(&BUILTINS, s.n as u8), rd),
            15 => pick(
                &[
                    Instr::indexed(Ldgs, 0x500 + s.n % 3, rd),
                    Instr::indexed(Ldts, 0x500 + s.n % 2, rd),
                    Instr::indexed(Ldls, 0x500 + s.n % 2, rd),
                    Instr::fmt(Ldga, s.n as u8 % 3, r2, rd),
                ],
                s.b,
            ),
            16 => pick(
                &[
                    Instr::indexed(Stgs, 0x500 + s.n % 3, r1),
                    Instr::indexed(Stts, 0x500 + s.n % 2, r1),
                    Instr::indexed(Stls, 0x500 + s.n % 2, r1),
                ],
                s.b,
            ),
            17 => {
                text.push(Instr::fmt(Flushts, 0, 0, 0));
                text.push(Instr::fmt(Pushtv, 0, 0, r1));
                text.push(Instr::fmt(Pushtr, s.n as u8 & 1, r2, rd));
                let op = pick(&[Ldgaa, Stgaa, Ldtaa, Sttaa], s.b);
                Instr::indexed(op, 0x503, 1 + s.c % 7)
            }
            18 => {
                let (subr, n) = pick(&CALLS, s.n as u8);
                text.push(Instr::fmt(Flushts, 0, 0, 0));
                for k in 0..n {
                    text.push(Instr::fmt(Pushtv, 0, 0, (r1 + k) & 7));
                }
                Instr::indexed(Call, subr, rd)
            }
            // Branches back to an instruction after one that empties the tuple stack.
            19 => {
                let after =
                    |(at, i): (usize, &Instr)| (i.op() == Some(Flushts)).then_some(at as u32 + 1);
                let heads: Vec<u32> = text.iter().enumerate().filter_map(after).collect();
                text.push(Instr::fmt(Flushts, 0, 0, 0));
                let own = text.len() as u32;
                Instr::branch(Loop, pick(&[&heads[..], &[own]].concat(), s.b))
            }
            _ => pick(
                &[
                    Instr::fmt(Nop, 0, 0, 0),
                    Instr::fmt(Popts, 0, 0, 0),
                    Instr::fmt(Pushtv, 0, 0, r1),
                ],
                s.b,
            ),
        };
        text.push(i);
    }
    text.push(Instr::fmt(Ret, 0, 0, 1));
    let end = text.len() as u32 - 1;
    for i in &mut text {
        if i.op().is_some_and(verify::is_branch) {
            *i = Instr::branch(i.op().unwrap(), i.label().min(end));
        }
    }
    let mut difo = asm_with("ret %r1", int(8), &vars());
    difo.text = super::copy(&text);
    difo.ints = super::copy(&[
        0,
        1,
        8,
        64,
        u64::MAX,
        i64::MIN as u64,
        0xffff_8000_0000_0003,
        0xffff_8000_0001_0000,
        0x40_0000,
        300,
        13,
        16,
    ]);
    difo.strings = super::copy(b"\0/a/./b\0x,y\0{\"k\":1}\0");
    difo
}
