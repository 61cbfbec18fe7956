// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The actions of D: one row for each.
//!
//! What the checks ask of an action is in its row. What an action is compiled to is in
//! `Sema::action`, which has an arm for each [`Id`]. The manual is compared with this table.

use super::call::check_count;
use crate::diag::Result;
use crate::source::Span;
use dtrace_types::Ty;
use dtrace_uapi::action::Action;

/// An action of the language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Id {
    Breakpoint,
    Chill,
    Clear,
    Commit,
    Denormalize,
    Discard,
    Exit,
    Freopen,
    Ftruncate,
    /// One that records a stack, or an address to be shown by name.
    Address,
    Normalize,
    Panic,
    Print,
    Printa,
    Printf,
    Raise,
    Setopt,
    Speculate,
    Stop,
    System,
    Trace,
    Tracemem,
    Trunc,
}

/// What is known of an action by its name.
#[derive(Debug)]
pub(super) struct Row {
    /// Its name.
    pub name: &'static str,
    /// The action.
    pub id: Id,
    /// The least number of its arguments.
    pub least: usize,
    /// The greatest number of its arguments; `None`: no limit.
    pub most: Option<usize>,
    /// The kernel's action for it. Some calls yield further ones: `tracemem()` of a computed size,
    /// `print()` of a pointer.
    pub kernel: Action,
    /// The type of its record if that can be printed or be a key, else `void`. Of the actions only
    /// `stack()` and `ustack()` have a value, too.
    pub ty: Ty,
}

const fn row(name: &'static str, id: Id, least: usize, most: Option<usize>, kernel: Action) -> Row {
    Row {
        name,
        id,
        least,
        most,
        kernel,
        ty: Ty::VOID,
    }
}

const fn address(name: &'static str, args: (usize, usize), kernel: Action, ty: Ty) -> Row {
    let (least, most) = args;
    Row {
        ty,
        ..row(name, Id::Address, least, Some(most), kernel)
    }
}

/// Every action, by name.
pub(super) const ACTIONS: &[Row] = &[
    row("breakpoint", Id::Breakpoint, 0, Some(0), Action::Breakpoint),
    row("chill", Id::Chill, 1, Some(1), Action::Chill),
    row("clear", Id::Clear, 1, Some(1), Action::Libact),
    row("commit", Id::Commit, 1, Some(1), Action::Commit),
    row("denormalize", Id::Denormalize, 1, Some(1), Action::Libact),
    row("discard", Id::Discard, 1, Some(1), Action::Discard),
    row("exit", Id::Exit, 1, Some(1), Action::Exit),
    row("freopen", Id::Freopen, 1, None, Action::Freopen),
    row("ftruncate", Id::Ftruncate, 0, Some(0), Action::Libact),
    address("func", (1, 1), Action::Sym, Ty::SYMBOL),
    address("jstack", (0, 2), Action::Jstack, Ty::JSTACK),
    address("mod", (1, 1), Action::Mod, Ty::SYMBOL),
    row("normalize", Id::Normalize, 2, Some(2), Action::Libact),
    row("panic", Id::Panic, 0, Some(0), Action::Panic),
    row("print", Id::Print, 1, Some(1), Action::Difexpr),
    row("printa", Id::Printa, 1, None, Action::Printa),
    row("printf", Id::Printf, 1, None, Action::Printf),
    row("raise", Id::Raise, 1, Some(1), Action::Raise),
    row("setopt", Id::Setopt, 1, Some(2), Action::Libact),
    row("speculate", Id::Speculate, 1, Some(1), Action::Speculate),
    address("stack", (0, 1), Action::Stack, Ty::STACK),
    row("stop", Id::Stop, 0, Some(0), Action::Stop),
    address("sym", (1, 1), Action::Sym, Ty::SYMBOL),
    row("system", Id::System, 1, None, Action::System),
    row("trace", Id::Trace, 1, Some(1), Action::Difexpr),
    row("tracemem", Id::Tracemem, 2, Some(3), Action::Tracemem),
    row("trunc", Id::Trunc, 1, Some(2), Action::Libact),
    address("uaddr", (1, 1), Action::Uaddr, Ty::USYMBOL),
    address("ufunc", (1, 1), Action::Usym, Ty::USYMBOL),
    address("umod", (1, 1), Action::Umod, Ty::USYMBOL),
    address("ustack", (0, 2), Action::Ustack, Ty::STACK),
    address("usym", (1, 1), Action::Usym, Ty::USYMBOL),
];

impl Row {
    /// Whether it needs the option `destructive`.
    pub fn is_destructive(&self) -> bool {
        self.kernel.is_destructive()
    }

    /// Whether it records something. `system()` and `freopen()` record their arguments.
    pub fn records(&self) -> bool {
        match self.id {
            Id::Speculate | Id::Commit | Id::Discard => false,
            _ => !self.is_destructive() || self.kernel.is_printf_like(),
        }
    }

    /// Checks the number of arguments of a call.
    pub fn check_count(&self, args: usize, span: Span) -> Result<()> {
        check_count(self.name, args, self.least, self.most, span)
    }
}

/// Returns the action `name`.
pub(super) fn find(name: &str) -> Option<&'static Row> {
    ACTIONS.iter().find(|row| row.name == name)
}

/// Whether `name` is an action.
pub fn is_action(name: &str) -> bool {
    find(name).is_some()
}

/// Returns the names of all actions.
pub fn names() -> impl Iterator<Item = &'static str> {
    ACTIONS.iter().map(|row| row.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_sorted_and_possible() {
        assert!(ACTIONS.is_sorted_by(|a, b| a.name < b.name));
        for row in ACTIONS {
            assert!(
                row.most.is_none_or(|most| row.least <= most),
                "{}",
                row.name
            );
            assert_eq!(row.id == Id::Address, row.ty != Ty::VOID, "{}", row.name);
        }
    }

    #[test]
    fn what_has_an_effect_alone_records_nothing() {
        let unrecorded = ACTIONS.iter().filter(|row| !row.records());
        let unrecorded: Vec<&str> = unrecorded.map(|row| row.name).collect();
        let expected = [
            "breakpoint",
            "chill",
            "commit",
            "discard",
            "panic",
            "raise",
            "speculate",
            "stop",
        ];
        assert_eq!(unrecorded, expected);
    }
}
