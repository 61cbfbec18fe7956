// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! A compiled program: for the kernel and for the consumer.
//!
//! One half of a [`Program`] goes to the kernel: clauses with predicates and actions, which
//! [`crate::dof::emit`] emits as DOF. The other half stays with the consumer: every record that an
//! action creates carries in its `uarg` the number of the [`Statement`] that it belongs to, and the
//! statement says how to show it.
//!
//! Records by statement, in the order in which they are created:
//! - `trace`, `exit`, `stack`, `sym` and similar, `raise`, `chill`, `speculate`, …: one record;
//! - `printf`, `system`, `freopen`: one record for each argument, at least one (of size 0 if the
//!   format takes no argument); the first carries the format;
//! - `printa`, `clear`, `denormalize`, `ftruncate`: one record of size 0;
//! - `setopt`: a `LIBACT` record with the option's name and, if given, one with its value;
//! - `trunc`, `normalize`: one record, 8 bytes of count or factor, or size 0;
//! - `print` of a value: one record with the value; of a pointer: a record with the address, then a
//!   `TRACEMEM` record with the object's bytes;
//! - `tracemem` with a dynamic size: a `TRACEMEM_DYNSIZE` record with the 8-byte size, then the
//!   `TRACEMEM` record;
//! - an aggregation: in the aggregation buffer, the keys and the aggregation's data; an increment
//!   given to a quantization is a record of size 0 between them.
//!
//! Invariant: statement numbers are unique among all programs of one `Compiler`, and consecutive,
//! so that programs can be enabled one by one on the same device.

use crate::diag::Diagnostic;
use crate::source::Span;
use crate::stability::Report;
use crate::statement::{self, AggVar, Statement};
use dtrace_objects::pattern::ProbePattern;
use dtrace_objects::pid::Described;
use dtrace_objects::usdt::Provider;
use dtrace_uapi::action::Action;
use dtrace_uapi::dif::Instr;
use dtrace_uapi::types::{DifType, DifVar};

/// A compiled program.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// The clauses to enable.
    pub clauses: Vec<Clause>,
    /// The walkers, which find frames of interpreted code in user stacks: see
    /// `interp` of `dtrace-machine`.
    pub walkers: Vec<Clause>,
    /// The meaning of records, at index `uarg - first_uarg`. Use [`Program::statement`].
    pub statements: Vec<Statement>,
    /// The location of each statement in the source.
    pub spans: Vec<Span>,
    /// Number of the first statement; 1 or more, because 0 means "no statement".
    pub first_uarg: u64,
    /// The aggregations of all programs of the compiler up to and including this one.
    pub aggs: Vec<AggVar>,
    /// The program's syntax tree, and the typed program, as text, if requested.
    pub tree: String,
    /// The stability of the program.
    pub attributes: Report,
    /// `#pragma D depends_on provider|module|library NAME`, in order.
    pub depends: Vec<(String, String)>,
    /// Warnings: constructs that are valid but may not be intended.
    pub warnings: Vec<Diagnostic>,
    /// The providers of an application that the program defines.
    pub providers: Vec<Provider>,
    /// Its descriptions of probes in processes.
    pub processes: Vec<Described>,
    /// Its descriptions of probes that programs define themselves (USDT). The programs may start
    /// later.
    pub own: Vec<ProbePattern>,
    /// Whether it contains destructive actions or subroutines, which must be permitted first: they
    /// stop or signal processes, write to them, run commands, …
    pub is_destructive: bool,
}

impl Program {
    /// Returns the statement of a record's `uarg`.
    pub fn statement(&self, uarg: u64) -> Option<&Statement> {
        statement::find(&self.statements, self.first_uarg, uarg)
    }
}

/// Number of low bits of a clause's number that distinguish the parts of one clause of the source.
pub const PART_BITS: u32 = 32;

/// A probe description with its predicate and actions. A source clause with a list of descriptions
/// becomes one clause for each of them.
#[derive(Clone, Debug)]
pub struct Clause {
    /// The probes.
    pub probes: ProbePattern,
    /// The predicate.
    pub predicate: Option<Difo>,
    /// The actions. If there are none, the default action applies.
    pub actions: Vec<ActionDesc>,
    /// Its number among all clauses of its compiler, which its ECBs carry. A source clause that is
    /// split at conditions becomes several parts, which the lowest [`PART_BITS`] bits count.
    pub number: u64,
    /// Location of the description.
    pub span: Span,
}

/// An action of a clause.
#[derive(Clone, Debug)]
pub struct ActionDesc {
    /// The kind of action.
    pub kind: Action,
    /// The code that computes the action's value.
    pub difo: Option<Difo>,
    /// Format, in the first action of a printf-like statement.
    pub format: Option<Vec<u8>>,
    /// For an aggregating action: how many of the preceding actions form its tuple.
    pub ntuple: u32,
    /// The action's argument.
    pub arg: u64,
    /// Number of its statement.
    pub uarg: u64,
}

/// A DIF object: code with its tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Difo {
    /// Instructions.
    pub text: Vec<Instr>,
    /// The constants that `setx` loads.
    pub ints: Vec<u64>,
    /// The strings that `sets` loads, each terminated by NUL; the first is empty.
    pub strings: Vec<u8>,
    /// The variables that the code uses.
    pub vars: Vec<DifVar>,
    /// Type of the result.
    pub rtype: DifType,
    /// The source location of each instruction.
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
