// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Memory of the current program that is not present: it is brought in before code that must not
//! fault looks at it (INV-47).

use crate::bindings;

/// How many pieces of memory are brought in a row, and how often the same one: another thread may
/// take it away again.
const BRINGS: usize = 64;
const AGAIN: usize = 16;

/// A piece of a program's memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Its first address.
    pub addr: u64,
    /// Its size, bytes.
    pub size: u64,
}

/// What memory is needed for.
#[derive(Clone, Copy)]
pub enum Use {
    /// A clause loads it.
    Clause,
    /// The program's instruction loads it. A stack grows for that.
    Load,
    /// The program's instruction stores there. A stack grows for that.
    Store,
}

impl Span {
    /// Brings in what needs no waiting. Returns whether anything was present or brought in. May
    /// sleep briefly.
    pub fn bring(self) -> bool {
        // SAFETY: No preconditions.
        unsafe { bindings::dtrace_bring_now(self.addr, self.size) }
    }

    /// Brings it in, and waits for it up to a second; ended by a signal. Returns whether anything
    /// was present or brought in. Must be called only where nothing waits for the current task. May
    /// sleep.
    pub fn fetch(self) -> bool {
        // SAFETY: No preconditions.
        unsafe { bindings::dtrace_bring_wait(self.addr, self.size) }
    }

    /// Makes the current program, which a breakpoint has stopped at `ip`, wait for the memory on
    /// its way to user mode, and come to `ip` again. Does not sleep. `false`: that was tried in
    /// vain, or cannot be done; the program must go on without the memory.
    pub fn await_at(self, ip: u64, for_what: Use) -> bool {
        let code = match for_what {
            Use::Clause => bindings::dtrace_use_DTRACE_USE_CLAUSE,
            Use::Load => bindings::dtrace_use_DTRACE_USE_LOAD,
            Use::Store => bindings::dtrace_use_DTRACE_USE_STORE,
        };
        // SAFETY: The helper queues task work for the current task, which must still return to user
        // mode. It is called in the exception of a breakpoint, which does that next.
        unsafe { bindings::dtrace_bring_later(ip, self.addr, self.size, code) }
    }
}

/// Brings in by `bring` what `missing` names, until it names nothing or what it names cannot be
/// brought.
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

/// Notes that the current program waits for memory no more. Does not sleep.
pub fn settle() {
    // SAFETY: No preconditions.
    unsafe { bindings::dtrace_brought() };
}
