// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Statements: what the consumer does with records. They are the part of a compiled program that is
//! not passed to the kernel.
//!
//! Every action that creates a record carries the number of its [`Statement`] in its `uarg`. The
//! kernel returns the number in the record's description, and the consumer looks up the meaning of
//! the record here: its type, the format for printing it, the aggregation that it refers to. All
//! records of one call (the arguments of `printf()`, the keys of an aggregation) carry the same
//! number. A record without a number comes from an image that another program made (from a file),
//! and is printed according to its action and size alone.
//!
//! Invariant: the numbers in a program's image are those of its table of statements.

use crate::format::Format;
use crate::shape::Shape;
use dtrace_uapi::action::Action;
use serde::{Deserialize, Serialize};

/// The number of an aggregation's variable, counted from 1 in the order of appearance in all of a
/// consumer's programs.
pub type AggVarId = u32;

/// The type of a recorded value, as far as printing requires it. The value's size is that of the
/// record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// A signed integer.
    Signed,
    /// An unsigned integer, or a pointer.
    Unsigned,
    /// An integer of 8 bytes, shown as an integer of `size` bytes if its value fits.
    Fitted {
        /// Size in bytes: 1, 2 or 4.
        size: u8,
        /// Whether the smaller integer is signed.
        signed: bool,
    },
    /// A floating-point number.
    Float,
    /// A string: ends at its first NUL.
    String,
    /// Bytes without alignment that could be text, such as an array of characters: shown as a
    /// string if they look like one.
    Chars,
    /// Any other bytes: arrays, structures.
    Bytes,
    /// Not a value of D, but the result of an action: a stack, a symbol.
    Action,
    /// A stack that is a value: [`StackHead`](dtrace_uapi::types::StackHead) and its frames.
    Stack,
}

/// A call of `printf()` or a similar action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Print {
    /// The format.
    pub format: Format,
    /// Types of the arguments, one for each record.
    pub args: Vec<Kind>,
}

/// The purpose of a record or a group of records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Statement {
    /// `trace()`.
    Trace(Kind),
    /// `tracemem()`.
    Tracemem,
    /// `print()` of a pointer: two records, the address of an object of this type, and the object's
    /// bytes.
    Print(Box<Shape>),
    /// `print()` of a value of this type.
    PrintValue(Box<Shape>),
    /// `stack()`, `ustack()`, `sym()` and all others whose action alone determines the output.
    Action,
    /// `printf()`.
    Printf(Print),
    /// `system()`.
    System(Print),
    /// `freopen()`; without arguments and with an empty format the output returns to its original
    /// destination.
    Freopen(Print),
    /// `printa()`.
    Printa {
        /// The format, if there is one.
        format: Option<Format>,
        /// The aggregations, joined by their keys.
        aggs: Vec<AggVarId>,
    },
    /// `exit()`; the record is the status.
    Exit,
    /// `clear()`.
    Clear(AggVarId),
    /// `trunc()`; the record is the number of entries to keep, if its size is 8; if its size is 0,
    /// none are kept.
    Trunc(AggVarId),
    /// `normalize()`; the record is the factor (8 bytes).
    Normalize(AggVarId),
    /// `denormalize()`.
    Denormalize(AggVarId),
    /// `setopt()`; the records are the option's name and, if there is one, its value.
    Setopt,
    /// `ftruncate()`.
    Ftruncate,
    /// An aggregating function.
    Aggregate {
        /// The variable.
        var: AggVarId,
        /// Types of the keys, one for each record.
        keys: Vec<Kind>,
    },
    /// `speculate()`, `commit()`, `discard()`: nothing to print.
    Speculative,
    /// The library's own clause for `dtrace:::ERROR`: five records, `arg1` to `arg5`.
    Error,
}

impl Statement {
    /// Whether it prints or changes an aggregation.
    pub fn reads_aggregations(&self) -> bool {
        matches!(
            self,
            Self::Printa { .. }
                | Self::Clear(_)
                | Self::Trunc(_)
                | Self::Normalize(_)
                | Self::Denormalize(_)
        )
    }
}

/// An aggregation's variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AggVar {
    /// Its number.
    pub id: AggVarId,
    /// Its name, without `@`; `_` for the anonymous aggregation.
    pub name: String,
    /// The aggregating function.
    pub func: Action,
    /// The expressions of its keys, as its first use has them.
    pub keys: Vec<String>,
}

/// The number of a consumer's first statement; 0 means "no statement".
pub const FIRST: u64 = 1;

/// Returns the statement with number `uarg`, if it is one of `statements`, which are numbered from
/// `first` on.
#[inline]
pub fn find(statements: &[Statement], first: u64, uarg: u64) -> Option<&Statement> {
    statements.get(usize::try_from(uarg.checked_sub(first)?).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_name_statements_and_strays_none() {
        let table = [Statement::Exit, Statement::Tracemem];
        assert_eq!(find(&table, FIRST, FIRST), Some(&Statement::Exit));
        assert_eq!(find(&table, 7, 8), Some(&Statement::Tracemem));
        for stray in [0, 3, u64::MAX] {
            assert_eq!(find(&table, FIRST, stray), None);
        }
    }
}
