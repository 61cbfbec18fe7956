// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Files that a consumer does not know: processes map them, and they may have probes that the
//! consumer wants (INV-26).
//!
//! A program's own probes are known from its file alone. So a consumer that traces programs which
//! begin later has every process wait that maps an unknown file to execute it. The consumer looks
//! into the file, and declares it as known if it has nothing to trace. No process waits for a known
//! file again until the file is written to.
//!
//! A consumer that is stopped must not hold up the whole system. So after one process has waited in
//! vain, none waits until the consumer asks again. A process also does not wait in a system call at
//! whose end a tracer (`ptrace()`) may stop it, which may be for ever. The consumer is notified of
//! the processes that do not wait.

use crate::sys::births;
use crate::sys::mappings::FileId;
use crate::sys::pause::Pid;
use crate::sys::process::Process;
use dtrace_uapi::hold::HOLDS_MAX;
use kernel::alloc::flags::GFP_KERNEL_ACCOUNT;
use kernel::alloc::KVec;
use kernel::prelude::*;
use kernel::rbtree::{RBTree, RBTreeNode};
use kernel::sync::{new_spinlock, SpinLock};

/// Maximum number of files that are remembered. If there are more, all are forgotten, and processes
/// wait for them anew.
const KNOWN_MAX: usize = 65_536;
/// Maximum number of processes that do not wait and of which the consumer has yet to be notified.
const TOLD_MAX: usize = 256;

/// The known files, and the processes that have to wait for unknown ones.
#[pin_data]
pub struct Files {
    /// Also locked where sleeping is not allowed, so no holder sleeps.
    #[pin]
    state: SpinLock<State>,
    consumer: Option<Pid>,
}

struct State {
    known: RBTree<FileId, ()>,
    count: usize,
    /// Processes that the consumer has named.
    named: KVec<Process>,
    /// Time for which all other processes wait, ms; `None` if they do not wait.
    all: Option<u32>,
    /// Time for which the named processes wait, ms.
    wait: u32,
    /// A process has waited in vain since the consumer last asked.
    in_vain: bool,
    /// Processes that do not wait and of which the consumer has yet to be notified. Has a fixed
    /// capacity, because a push must not allocate.
    told: KVec<Pid>,
}

/// What happens to a process.
pub enum Then {
    /// The consumer does not care.
    Nothing,
    /// It waits, for so many ms.
    Waits(u32),
    /// It does not wait, and the consumer is notified.
    IsTold,
    /// It does not wait, and there is no room to note it for the consumer.
    IsLost,
}

impl Files {
    /// Makes an empty set of files. The current process is the consumer, which never waits for
    /// itself.
    pub fn new() -> impl PinInit<Self> {
        let state = State {
            known: RBTree::new(),
            count: 0,
            named: KVec::new(),
            all: None,
            wait: 0,
            in_vain: false,
            told: KVec::new(),
        };
        pin_init!(Self {
            state <- new_spinlock!(state, "dtrace::Files"),
            consumer: Pid::current(),
        })
    }

    /// Has a process, or all processes, wait for unknown files from now on. `ENOSPC` if too many
    /// are named. May sleep.
    pub fn ask(&self, process: Option<Process>, wait: u32) -> Result {
        let mut room = KVec::with_capacity(TOLD_MAX, GFP_KERNEL)?;
        let mut state = self.state.lock();
        if state.told.capacity() == 0 {
            core::mem::swap(&mut state.told, &mut room);
        }
        let Some(process) = process else {
            state.all = Some(wait);
            return Ok(());
        };
        state.wait = wait;
        let named = &mut state.named;
        named.retain(|one| !one.is_over());
        if named.iter().any(|one| one.is(&process)) {
            return Ok(());
        }
        if named.len() >= HOLDS_MAX {
            return Err(ENOSPC);
        }
        Ok(named.push(process, GFP_ATOMIC)?)
    }

    /// Notes that a file has nothing for the consumer. May sleep.
    pub fn know(&self, file: FileId) -> Result {
        if self.knows(file) {
            return Ok(());
        }
        let node = RBTreeNode::new(file, (), GFP_KERNEL_ACCOUNT)?;
        let mut forgotten = RBTree::new();
        let mut state = self.state.lock();
        if state.count >= KNOWN_MAX {
            core::mem::swap(&mut state.known, &mut forgotten);
            state.count = 0;
        }
        let old = state.known.insert(node);
        if old.is_none() {
            state.count = state.count.saturating_add(1);
        }
        drop(state);
        drop((old, forgotten));
        Ok(())
    }

    /// Whether a file is known.
    pub fn knows(&self, file: FileId) -> bool {
        self.state.lock().known.get(&file).is_some()
    }

    /// Decides what happens to the current process, which maps a file. Does not sleep.
    pub fn mapped(&self, file: FileId) -> Then {
        let mut state = self.state.lock();
        if state.known.get(&file).is_some() {
            return Then::Nothing;
        }
        self.then(&mut state)
    }

    /// Decides what happens to the current process, which has registered probes. Does not sleep.
    pub fn registered(&self) -> Then {
        self.then(&mut self.state.lock())
    }

    fn then(&self, state: &mut State) -> Then {
        let is_named = state.named.iter().any(Process::is_current);
        let wait = match (is_named, state.all) {
            (true, _) => state.wait,
            (false, Some(wait)) => wait,
            (false, None) => return Then::Nothing,
        };
        if self.consumer.as_ref().is_some_and(Pid::is_current) {
            return Then::Nothing;
        }
        if wait > 0 && !state.in_vain && !births::may_be_stopped() {
            return Then::Waits(wait);
        }
        if state.told.iter().any(Pid::is_current) {
            return Then::IsTold;
        }
        if state.told.len() < state.told.capacity() {
            if let Some(pid) = Pid::current() {
                let _ = state.told.push_within_capacity(pid);
                return Then::IsTold;
            }
        }
        Then::IsLost
    }

    /// Notes that a process has waited in vain.
    pub fn waited_in_vain(&self) {
        self.state.lock().in_vain = true;
    }

    /// Returns a process that does not wait and of which the consumer has yet to be notified. The
    /// consumer answers, so processes may wait again.
    pub fn next(&self) -> Option<Pid> {
        let mut state = self.state.lock();
        state.in_vain = false;
        state.told.pop()
    }

    /// Whether there is such a process.
    pub fn has_told(&self) -> bool {
        !self.state.lock().told.is_empty()
    }
}
