// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! A compiled program: the compiler's result and the consumer's map.
//!
//! One half of a [`Program`] goes to the kernel: clauses with predicates and actions, which [`crate::dof::emit`]
//! writes as DOF. The other half stays: every record that an action makes carries in its `uarg` the number of
//! the [`Statement`] that it belongs to, and the statement says how to show it.
//!
//! Shapes of records, in the order in which a statement makes them:
//! - `trace`, `exit`, `stack`, `sym` and their kin, `raise`, `chill`, `speculate`, …: one record;
//! - `printf`, `system`, `freopen`: one record for each argument, at least one (of size 0 where the format takes no
//!   argument); the first carries the format;
//! - `printa`, `clear`, `denormalize`, `setopt`, `ftruncate`: one record of size 0;
//! - `trunc`, `normalize`: one record, 8 bytes of count or factor, or size 0;
//! - `print`: one `LIBACT` record with the value;
//! - `tracemem` with a dynamic size: a `TRACEMEM_DYNSIZE` record with the 8-byte size, then the `TRACEMEM` record;
//! - an aggregation: in the aggregation buffer, the keys and the aggregation's data; an increment given to a
//!   quantization is a record of size 0 between them.
//!
//! Invariant: statement numbers are unique among all programs of one `Compiler`, and follow each
//! other, so that programs can be enabled one by one on the same device.

use crate::diag::Diagnostic;
use crate::pid::Described;
use crate::source::Span;
use crate::stability::Report;
use crate::statement::{self, AggVar, Statement};
use crate::usdt::Provider;
use crate::world::ProbePattern;
use dtrace_uapi::action::Action;
use dtrace_uapi::dif::{Instr, Op};
use dtrace_uapi::subr::Subr;
use dtrace_uapi::types::{DifType, DifVar};

/// A compiled program.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// What to enable.
    pub clauses: Vec<Clause>,
    /// What finds frames of interpreted code in user stacks: see [`interp`](crate::interp).
    pub walkers: Vec<Clause>,
    /// What records mean: entry `uarg - first_uarg`. Use [`Program::statement`].
    pub statements: Vec<Statement>,
    /// For each statement its place in the source.
    pub spans: Vec<Span>,
    /// Number of the first statement; 1 or more, so that 0 can mean "nobody's".
    pub first_uarg: u64,
    /// The aggregations that the compiler has seen up to the end of this program.
    pub aggs: Vec<AggVar>,
    /// The program's syntax tree as text, where it was asked for.
    pub tree: String,
    /// How far the program may be relied on.
    pub attributes: Report,
    /// `#pragma D depends_on provider|module|library NAME`, in order.
    pub depends: Vec<(String, String)>,
    /// What is allowed, but perhaps not what is meant.
    pub warnings: Vec<Diagnostic>,
    /// The providers of an application that it defines.
    pub providers: Vec<Provider>,
    /// Its descriptions of probes in processes.
    pub processes: Vec<Described>,
    /// Its descriptions of probes that programs have of their own, which may begin later.
    pub own: Vec<ProbePattern>,
}

impl Program {
    /// The statement that a record's `uarg` names.
    pub fn statement(&self, uarg: u64) -> Option<&Statement> {
        statement::find(&self.statements, self.first_uarg, uarg)
    }
}

impl Program {
    /// Whether it does what must be allowed first: stops or signals processes, writes to them, runs commands, …
    pub fn is_destructive(&self) -> bool {
        let calls = |difo: &Difo| {
            let mut calls = difo.text.iter().filter(|i| i.op() == Some(Op::Call));
            calls.any(|i| Subr::from_raw(i.index()).is_some_and(Subr::is_destructive))
        };
        self.clauses.iter().any(|clause| {
            let difos = clause.actions.iter().filter_map(|a| a.difo.as_ref());
            clause.actions.iter().any(|a| a.kind.is_destructive())
                || difos.chain(&clause.predicate).any(calls)
        })
    }
}

/// So many bits of a clause's number tell the parts of one clause of the source from each other.
pub const PART_BITS: u32 = 32;

/// A probe description with what happens when a probe of it fires. A source clause with a list of descriptions
/// becomes a clause for each.
#[derive(Clone, Debug)]
pub struct Clause {
    /// Which probes.
    pub probes: ProbePattern,
    /// The condition.
    pub predicate: Option<Difo>,
    /// The actions; none at all is the default action.
    pub actions: Vec<ActionDesc>,
    /// Its number among all clauses of its compiler; what is enabled of it carries that. A clause of the source that a
    /// condition splits becomes several parts, which the lowest [`PART_BITS`] count.
    pub number: u64,
    /// Place of the description.
    pub span: Span,
}

/// One action of a clause.
#[derive(Clone, Debug)]
pub struct ActionDesc {
    /// What to do.
    pub kind: Action,
    /// Computes the action's value.
    pub difo: Option<Difo>,
    /// Format of the first action of a printf-like statement.
    pub format: Option<Vec<u8>>,
    /// Of an aggregating action: how many of the actions before it are its tuple.
    pub ntuple: u32,
    /// The action's argument.
    pub arg: u64,
    /// Number of the statement.
    pub uarg: u64,
}

/// A DIF object: code with its tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Difo {
    /// Instructions.
    pub text: Vec<Instr>,
    /// What `setx` loads.
    pub ints: Vec<u64>,
    /// What `sets` loads: strings, each ending with NUL; the first is empty.
    pub strings: Vec<u8>,
    /// The variables that the code uses.
    pub vars: Vec<DifVar>,
    /// Type of the result.
    pub rtype: DifType,
    /// For each instruction the source it was made for.
    pub spans: Vec<Span>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_find_their_statement() {
        let program = Program {
            first_uarg: 5,
            statements: vec![Statement::Exit],
            ..Program::default()
        };
        assert_eq!(program.statement(5), Some(&Statement::Exit));
        assert_eq!(program.statement(0), None);
        assert_eq!(program.statement(6), None);
    }
}
