// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Images with the maximum number of everything. Each look-up happens so often here that it must be
//! fast.

mod common;

use common::asm::{asm_with, int, string, var};
use common::{action, clause, config, cx};
use dtrace_engine::dif::verify::verify;
use dtrace_engine::dof::Difo;
use dtrace_engine::mem::Vec as EVec;
use dtrace_engine::{Clause, Consumer, Pending, Reason};
use dtrace_uapi::action::Action;
use dtrace_uapi::dif::{Instr, Op};
use dtrace_uapi::limits::DIFO_MAX;
use dtrace_uapi::types::{DifType, DifVar};
use dtrace_uapi::var::OTHER_UBASE;

/// Maximum number of variables of an object.
const VARS: usize = 4096;
/// Maximum number of instructions of an object.
const TEXT: usize = DIFO_MAX / size_of::<Instr>();

/// Returns all possible variables, declared as numbers.
fn variables() -> Vec<DifVar> {
    let ids = u32::from(OTHER_UBASE)..=0xffff;
    let scopes = |id| (0..3).map(move |scope| var(id, scope, int(8)));
    ids.flat_map(scopes).collect()
}

/// Makes an object with these variables that loads each of them.
fn loads(vars: &[DifVar]) -> Difo {
    loads_on(vars, vars.len() + 1)
}

/// Makes an object of `len` instructions that loads these variables over and over.
fn loads_on(vars: &[DifVar], len: usize) -> Difo {
    let mut difo = asm_with("", int(8), vars);
    let mut each = vars.iter().cycle();
    difo.text = EVec::try_from_fn(len, |pc| {
        let var = each.next().unwrap();
        let load = [Op::Ldgs, Op::Ldts, Op::Ldls][usize::from(var.scope)];
        Ok::<_, Reason>(match pc {
            _ if pc == len - 1 => Instr::fmt(Op::Ret, 0, 0, 1),
            _ => Instr::indexed(load, var.id as u16, 1),
        })
    })
    .unwrap();
    difo
}

fn of(difo: Difo) -> Clause {
    clause(None, vec![action(Action::Difexpr, difo)])
}

/// Makes a clause that declares global `id` with type `ty`.
fn declares(id: u32, ty: DifType) -> Clause {
    of(asm_with("ret %r0", int(8), &[var(id, 0, ty)]))
}

#[test]
fn all_variables_are_found_at_once() {
    let vars = variables();
    let c = Consumer::new(config()).unwrap();
    // Each variable is loaded by one clause, those with the greatest ids first. Those that are
    // declared last are loaded by many clauses.
    let mut clauses: Vec<_> = vars
        .chunks(VARS)
        .rev()
        .map(|some| of(loads(some)))
        .collect();
    clauses.extend((0..40).map(|_| of(loads(&vars[..VARS]))));
    clauses.push(of(loads_on(&vars[..VARS], TEXT)));
    c.prepare(&[], &clauses).map(Pending::commit).unwrap();
    // A different declaration is detected for each of them.
    for id in [u32::from(OTHER_UBASE), 0x7777, 0xffff] {
        let reason = c.prepare(&[], &[declares(id, string())]).map(drop);
        assert_eq!(
            reason.unwrap_err().text,
            "variable was declared in another way before"
        );
        c.prepare(&[], &[declares(id, int(8))]).map(drop).unwrap();
    }
}

#[test]
fn what_is_refused_declares_nothing() {
    let c = Consumer::new(config()).unwrap();
    let vars = variables();
    let mut clauses = vec![of(loads(&vars[..VARS]))];
    c.prepare(&[], &clauses).map(Pending::commit).unwrap();
    // The last clause conflicts with the first enabling and is refused, and with it the one before.
    clauses = vec![declares(0xffff, int(8)), declares(vars[0].id, string())];
    assert!(c.prepare(&[], &clauses).is_err());
    clauses = vec![declares(0xffff, string())];
    c.prepare(&[], &clauses).map(Pending::commit).unwrap();
    assert!(c.prepare(&[], &[declares(0xffff, int(8))]).is_err());
}

/// The last variable of an object may be a duplicate of the first.
#[test]
fn twins_of_an_object_agree() {
    let try_last = |last: DifVar| {
        let mut vars = variables()[..VARS - 1].to_vec();
        vars.push(last);
        verify(&loads(&vars), &cx())
            .map(drop)
            .map_err(|reason| reason.text)
    };
    let first = u32::from(OTHER_UBASE);
    let twice = Err("variable is declared twice, in different ways");
    assert_eq!(try_last(var(first, 0, int(8))), Ok(()));
    assert_eq!(try_last(var(first, 0, int(4))), twice);
    assert_eq!(try_last(var(first, 2, int(4))), twice);
    // This applies to built-in variables too, although their declarations are not used.
    let builtin = |ty| {
        let vars = [var(0x100, 0, int(8)), var(0x100, 0, ty)];
        verify(&asm_with("ret %r0", int(8), &vars), &cx()).map(drop)
    };
    assert_eq!(builtin(int(8)), Ok(()));
    assert_eq!(builtin(int(4)).map_err(|reason| reason.text), twice);
    let undeclared = asm_with("ldls 0xffff, %r1\n ret %r1", int(8), &variables()[..VARS]);
    let reason = verify(&undeclared, &cx()).unwrap_err();
    assert_eq!(reason.text, "variable is not declared");
}

/// Each of the loops goes back to the start, and is paid for all instructions before it.
#[test]
fn loops_are_priced_at_once() {
    let mut difo = asm_with("", int(8), &[]);
    difo.text = EVec::try_from_fn(TEXT, |pc| {
        Ok::<_, Reason>(match pc {
            _ if pc == TEXT - 1 => Instr::fmt(Op::Ret, 0, 0, 0),
            _ => Instr::branch(Op::Loop, 0),
        })
    })
    .unwrap();
    let c = Consumer::new(config()).unwrap();
    c.prepare(&[], &[of(difo)]).map(drop).unwrap();
}
