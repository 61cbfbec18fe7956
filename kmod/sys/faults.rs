// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Memory of the current program that is not there yet: it is brought before somebody looks at it who may not fault.

use crate::bindings;

/// How often memory is brought in a row, and the same memory: another thread may take that away again.
const BRINGS: usize = 64;
const AGAIN: usize = 16;

/// Memory of a program.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Where it begins.
    pub addr: u64,
    /// Its size, bytes.
    pub size: u64,
}

/// What it is for.
#[derive(Clone, Copy)]
pub enum Use {
    /// A clause loads it.
    Clause,
    /// The program's instruction loads it. A stack grows for that.
    Load,
    /// It stores there.
    Store,
}

impl Span {
    /// Brings what of it needs no waiting; whether that was any. May sleep.
    pub fn bring(self) -> bool {
        // SAFETY: No preconditions.
        unsafe { bindings::dtrace_bring_now(self.addr, self.size) }
    }

    /// Brings it, and waits for it where nobody waits for the current task; whether anything was brought. May sleep.
    pub fn fetch(self) -> bool {
        // SAFETY: No preconditions.
        unsafe { bindings::dtrace_bring_wait(self.addr, self.size) }
    }

    /// Has the current program, which a breakpoint has stopped at `ip`, wait for it and come there again. Does not sleep. `false`: that was
    /// in vain, or cannot be; then it is to go on without.
    pub fn await_at(self, ip: u64, for_what: Use) -> bool {
        let code = match for_what {
            Use::Clause => bindings::dtrace_use_DTRACE_USE_CLAUSE,
            Use::Load => bindings::dtrace_use_DTRACE_USE_LOAD,
            Use::Store => bindings::dtrace_use_DTRACE_USE_STORE,
        };
        // SAFETY: It is called in the exception, where the task is about to go back to its program.
        unsafe { bindings::dtrace_bring_later(ip, self.addr, self.size, code) }
    }
}

/// Brings by `bring` whatever is `missing`, until that is nothing or cannot be brought.
pub fn bring_all(mut missing: impl FnMut() -> Option<Span>, bring: fn(Span) -> bool) {
    let mut last = None;
    let mut again = 0;
    for _ in 0..BRINGS {
        let next = missing();
        again = if next == last { again + 1 } else { 0 };
        last = next;
        if again == AGAIN || !next.is_some_and(bring) {
            return;
        }
    }
}

/// Notes that the current program waits for no memory any more. Does not sleep.
pub fn settle() {
    // SAFETY: No preconditions.
    unsafe { bindings::dtrace_brought() };
}
