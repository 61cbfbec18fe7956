// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The typed program: what semantic analysis yields and code generation takes.
//!
//! Each clause has the probes, the predicate and the actions that the kernel gets. Where the kernel
//! runs code, the typed program has the expression and says what becomes of its value.

use super::Expr;
use crate::program;
use crate::source::Span;
use dtrace_objects::pattern::ProbePattern;
use dtrace_uapi::action;

/// A typed program.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// The clauses, in the order of the source.
    pub clauses: Vec<Clause>,
    /// The compiled program as far as it is not code: it has no clauses yet.
    pub outline: program::Program,
}

/// A clause for the kernel. A source clause with several descriptions or with branches becomes
/// several of them.
#[derive(Clone, Debug)]
pub struct Clause {
    /// The probes.
    pub probes: ProbePattern,
    /// The predicate; `None` if it is always true.
    pub predicate: Option<Code>,
    /// The actions.
    pub actions: Vec<Action>,
    /// Its number: see [`program::Clause::number`].
    pub number: u64,
    /// Location of the description.
    pub span: Span,
}

/// An action of a clause.
#[derive(Clone, Debug)]
pub struct Action {
    /// The kind of action.
    pub kind: action::Action,
    /// Computes the action's value.
    pub code: Option<Code>,
    /// Format, in the first action of a printf-like statement.
    pub format: Option<Vec<u8>>,
    /// For an aggregating action: how many of the preceding actions form its tuple.
    pub ntuple: u32,
    /// The action's argument.
    pub arg: u64,
    /// Number of its statement.
    pub uarg: u64,
}

/// An expression for the kernel to evaluate.
#[derive(Clone, Debug)]
pub struct Code {
    /// The expression.
    pub expr: Expr,
    /// What becomes of its value.
    pub purpose: Purpose,
}

/// What becomes of the value of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// It is recorded as its type says.
    Recorded,
    /// It is the address of `size` bytes, in user space or not, which are recorded.
    Bytes {
        /// Number of bytes.
        size: u32,
        /// Whether the address is in user space.
        user: bool,
    },
    /// The action uses it and does not record it.
    Used,
    /// It decides, as 0 or not 0, whether the actions run.
    Decides,
    /// It is discarded: the expression has effects.
    Discarded,
}

impl Action {
    /// Creates an action. The number of its statement is filled in when the action is added to a
    /// clause.
    pub fn new(kind: action::Action, code: Option<Code>, arg: u64) -> Self {
        Self {
            kind,
            code,
            format: None,
            ntuple: 0,
            arg,
            uarg: 0,
        }
    }

    /// Whether the action is destructive, or evaluates an expression that is.
    pub fn is_destructive(&self) -> bool {
        let code = self.code.as_ref();
        self.kind.is_destructive() || code.is_some_and(|code| code.expr.is_destructive())
    }
}

impl Clause {
    /// Whether the clause may do more than observe: such programs need a permission.
    pub fn is_destructive(&self) -> bool {
        let predicate = self.predicate.as_ref();
        self.actions.iter().any(Action::is_destructive)
            || predicate.is_some_and(|code| code.expr.is_destructive())
    }
}
