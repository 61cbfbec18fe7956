// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Frames of interpreted code in user stacks (INV-15).
//!
//! While the machine walks a stack, it notes the frames of evaluators ([`spots`]): functions in
//! which an interpreter executes the functions of its language. Then the walker for that kind of
//! interpreter, a verified program of the consumer, runs for each of them, innermost first
//! ([`walk`]). It reads the interpreter's data structures from the memory of the process, and adds
//! a frame for each function of the language. The names of these functions are kept once
//! ([`names`]), and a frame is one word, so equal stacks are equal bytes. The contract is `uapi`'s
//! `interp`.
//!
//! Invariants: a walker changes nothing but its own clause-local variables, which last for one
//! stack. Its work is bounded for each stack, and charged to the clause that requested the stack.
//! If a walker fails, the stack is shorter.

pub mod names;
pub mod spots;
pub mod walk;

use crate::dif::program::Program;
use crate::dof::Clause;
use crate::ecb::build;
use crate::error::{Errno, NoMem, Reason};
use crate::mem::Vec;
use dtrace_uapi::action::Action;
use names::{Names, SLOTS, TEXT};

/// A walker that is ready to run.
#[derive(Debug)]
pub struct Walker {
    /// Its number, which the tables of files refer to.
    pub number: u64,
    /// The prepared program.
    pub program: Program,
    /// Bytes of its clause-local variables.
    pub locals: usize,
}

/// Maximum size of a walker's variables in bytes. They are set to 0 for each stack.
const LOCALS_MAX: usize = 2048;

impl Walker {
    /// Verifies and prepares the walker of a clause, as [`build::build`] does for other clauses.
    pub fn build(
        clause: &Clause,
        cx: &build::Context<'_>,
        shared: &mut build::Shared,
    ) -> Result<Self, Reason> {
        let difo = match (&clause.predicate, &clause.actions[..]) {
            (None, [action]) if action.kind == Action::Difexpr => action.difo.as_deref(),
            _ => None,
        };
        let difo = difo.ok_or(Reason::invalid("a walker is one expression"))?;
        let number = number(&clause.probe.func).ok_or(Reason::invalid("a walker has a number"))?;
        let (program, locals) = build::walker(difo, cx, shared)?;
        if locals > LOCALS_MAX {
            return Err(Reason::new(Errno::E2BIG, "a walker has small variables"));
        }
        Ok(Self {
            number,
            program,
            locals,
        })
    }
}

/// Parses a name, which ends with a NUL, as a hexadecimal number.
fn number(name: &[u8]) -> Option<u64> {
    let digits = name.split(|byte| *byte == 0).next()?;
    u64::from_str_radix(core::str::from_utf8(digits).ok()?, 16).ok()
}

/// The part of a consumer's walkers that all CPUs share.
#[derive(Debug)]
pub struct Interp {
    /// At most [`WALKERS_MAX`](dtrace_uapi::interp::WALKERS_MAX); empty until all memory has been
    /// allocated.
    pub walkers: Vec<Walker>,
    /// Bytes of the clause-local variables of each walker.
    pub locals: Vec<usize>,
    /// The names of the frames that the walkers add.
    pub names: Names,
}

impl Interp {
    /// Makes this for `walkers`, which are moved in later; `None` if there are none. Hashes start
    /// from `seed`.
    pub fn of(walkers: &[Walker], seed: u64) -> Result<Option<Self>, NoMem> {
        if walkers.is_empty() {
            return Ok(None);
        }
        let locals = |n: usize| Ok::<_, NoMem>(walkers.get(n).map_or(0, |walker| walker.locals));
        Ok(Some(Self {
            walkers: Vec::new(),
            locals: Vec::try_from_fn(walkers.len(), locals)?,
            names: Names::new(SLOTS, TEXT, seed)?,
        }))
    }

    /// Returns the memory that this takes without the walkers, in bytes.
    pub fn memory(walkers: &[Walker]) -> usize {
        match walkers.is_empty() {
            true => 0,
            false => Names::memory(SLOTS, TEXT),
        }
    }

    /// Returns the walker with a number, and its index.
    fn find(&self, number: u64) -> Option<(usize, &Walker)> {
        let mut all = self.walkers.iter().enumerate();
        all.find(|(_, walker)| walker.number == number)
    }
}
