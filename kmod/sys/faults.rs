// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Memory of the current program that is not there yet: it is brought before somebody looks at it who may not fault.

use crate::bindings;

/// Memory of a program.
#[derive(Clone, Copy)]
pub struct Span {
    /// Where it begins.
    pub addr: u64,
    /// Its size, bytes.
    pub size: u64,
}

impl Span {
    /// Brings what of it needs no waiting; whether that was any. May sleep.
    pub fn bring(self) -> bool {
        // SAFETY: No preconditions.
        unsafe { bindings::dtrace_bring_now(self.addr, self.size) }
    }

    /// Has the current program, which a breakpoint has stopped at `ip`, wait for it and come there again. Does not sleep. `false`: that was
    /// in vain, or cannot be; then it is to go on without.
    pub fn await_at(self, ip: u64) -> bool {
        // SAFETY: It is called in the exception, where the task is about to go back to its program.
        unsafe { bindings::dtrace_bring_later(ip, self.addr, self.size) }
    }
}

/// Notes that the current program waits for no memory any more. Does not sleep.
pub fn settle() {
    // SAFETY: No preconditions.
    unsafe { bindings::dtrace_brought() };
}
