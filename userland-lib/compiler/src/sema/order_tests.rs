// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Compares the order of statements that the compiler permits with the order of actions that the
//! kernel takes (`ecb::order` of the engine). The compiler emits nothing that the kernel refuses,
//! and refuses nothing that the kernel takes.

use super::actions;
use crate::compile::{Compiler, Settings};
use crate::diag::Result;
use crate::dof;
use crate::engine;
use crate::fixture::Little;
use crate::options::Opt;
use crate::program::{Clause, Program};
use crate::source::Source;
use dtrace_engine::{Consumer, Enabling};
use std::collections::BTreeMap;

/// A statement for each action, and other statements.
const STATEMENTS: &[&str] = &[
    "breakpoint()",
    "chill(1)",
    "clear(@a)",
    "commit(1)",
    "denormalize(@a)",
    "discard(1)",
    "exit(0)",
    "freopen(\"x\")",
    "ftruncate()",
    "func(1)",
    "jstack()",
    "mod(1)",
    "normalize(@a, 2)",
    "panic()",
    "print((int *)1)",
    "printa(@a)",
    "printf(\"x\")",
    "raise(1)",
    "setopt(\"quiet\")",
    "speculate(1)",
    "stack()",
    "stop()",
    "sym(1)",
    "system(\"x\")",
    "trace(1)",
    "tracemem((void *)1, 4)",
    "trunc(@a)",
    "uaddr(1)",
    "ufunc(1)",
    "umod(1)",
    "ustack()",
    "usym(1)",
    "@a = count()",
    "@b[1] = sum(2)",
    "x = 1",
    "copyout((void *)1, 1, 1)",
    "copyoutstr(\"a\", 1, 1)",
];

/// One of each kind.
const KINDS: &[&str] = &[
    "trace(1)",
    "@a = count()",
    "speculate(1)",
    "commit(1)",
    "discard(1)",
    "exit(0)",
    "stop()",
    "printf(\"x\")",
    "system(\"x\")",
    "clear(@a)",
    "x = 1",
    "copyout((void *)1, 1, 1)",
];

/// Compiles a clause of these statements.
fn compile(world: &Little, statements: &[&str]) -> Result<Program> {
    let body = statements.join("; ");
    let text = format!("BEGIN {{ @a = count(); }} END {{ {body}; }}");
    let source = Source::argument(text);
    Compiler::new(world).compile(&source, &Settings::default())
}

/// Those who are asked.
struct Both {
    world: Little,
    kernel: Consumer,
    /// The clause that each statement alone becomes.
    alone: BTreeMap<&'static str, Clause>,
}

impl Both {
    fn new() -> Self {
        let world = Little::default();
        let alone = |statement: &&'static str| {
            let program = compile(&world, &[*statement]);
            let program = program.unwrap_or_else(|error| panic!("{statement}: {error}"));
            let [_, clause] = &program.clauses[..] else {
                panic!("{statement} becomes several clauses");
            };
            (*statement, clause.clone())
        };
        Self {
            alone: STATEMENTS.iter().map(alone).collect(),
            kernel: engine::consumer(),
            world,
        }
    }

    /// Puts the actions of statements, one after the other, to the kernel as one clause. The error
    /// is its answer.
    fn put(&self, statements: &[&str]) -> std::result::Result<(), String> {
        let clauses = statements.iter().map(|statement| &self.alone[statement]);
        let clause = Clause {
            actions: clauses.flat_map(|clause| clause.actions.clone()).collect(),
            ..self.alone["x = 1"].clone()
        };
        let program = Program {
            clauses: vec![clause],
            ..Program::default()
        };
        let enabling = Enabling::parse(&dof::emit(&program, &[])).expect("an image");
        let options = [(Opt::Destructive, 1)];
        let taken = self.kernel.prepare(&options, enabling.clauses()).map(drop);
        taken.map_err(|reason| reason.to_string())
    }

    /// Compares what both say about statements, one after the other.
    fn compare(&self, statements: &[&str]) {
        let compiled = compile(&self.world, statements).map(drop);
        match (compiled, self.put(statements)) {
            (Ok(()), Ok(())) => {}
            (Err(error), Err(why)) => {
                let parts: Vec<&str> = error.tag.split('_').collect();
                let is_order = matches!(
                    parts[..],
                    [
                        "D",
                        "SPEC" | "COMM" | "EXIT" | "ACT" | "DREC" | "AGG",
                        "SPEC" | "COMM" | "DREC"
                    ]
                );
                assert!(is_order, "{statements:?}: {error}");
                assert!(why.contains("may not follow"), "{statements:?}: {why}");
            }
            (compiled, taken) => {
                panic!("{statements:?}: the compiler says {compiled:?}, the kernel {taken:?}")
            }
        }
    }
}

#[test]
fn every_action_is_put_to_both() {
    for name in actions::names() {
        let begin = format!("{name}(");
        let mut statements = STATEMENTS.iter();
        assert!(statements.any(|text| text.starts_with(&begin)), "{name}");
    }
    let both = Both::new();
    for statement in STATEMENTS {
        assert_eq!(both.put(&[*statement]), Ok(()), "{statement}");
    }
}

#[test]
fn two_statements_are_refused_by_both_or_by_none() {
    let both = Both::new();
    for first in STATEMENTS {
        for second in STATEMENTS {
            both.compare(&[*first, *second]);
        }
    }
}

#[test]
fn three_statements_are_refused_by_both_or_by_none() {
    let both = Both::new();
    for first in ["speculate(1)", "commit(1)", "discard(1)", "trace(1)"] {
        for second in KINDS {
            for third in KINDS {
                both.compare(&[first, *second, *third]);
            }
        }
    }
}
