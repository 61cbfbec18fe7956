// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Files that a consumer has not looked into: what processes map that it may want probes in.
//!
//! A program's own probes are known from its file alone. So a consumer that traces programs which begin later has every process wait that
//! maps a file to execute it, looks into the file, and says of one that has nothing for it that it knows it. Nobody waits for such a
//! file again, until it is written to.
//!
//! The whole system must not come to wait for a consumer that is stopped: when one process has waited in vain nobody else waits until the
//! consumer asks again. Nor does who is in a system call at the end of which its tracer (`ptrace()`) may stop it, for ever. The consumer is
//! told of them.

use crate::sys::births;
use crate::sys::mappings::FileId;
use crate::sys::pause::Pid;
use crate::sys::process::Process;
use dtrace_uapi::hold::HOLDS_MAX;
use kernel::alloc::KVec;
use kernel::prelude::*;
use kernel::rbtree::{RBTree, RBTreeNode};
use kernel::sync::{new_spinlock, SpinLock};

/// Most files that are remembered. When there are more they are asked for anew.
const KNOWN_MAX: usize = 65_536;
/// Most processes that are told of and do not wait, at a time.
const TOLD_MAX: usize = 256;

/// The files that are known, and who is asked for.
#[pin_data]
pub struct Files {
    /// Read where nobody may sleep.
    #[pin]
    state: SpinLock<State>,
    consumer: Option<Pid>,
}

struct State {
    known: RBTree<FileId, ()>,
    count: usize,
    /// Processes that are named.
    named: KVec<Process>,
    /// How long every other process waits, ms; `None`: they are not asked for.
    all: Option<u32>,
    /// How long those wait that are named, ms.
    wait: u32,
    /// Somebody has waited in vain since the consumer asked.
    in_vain: bool,
    told: KVec<Pid>,
}

/// What is to be done with a process.
pub enum Then {
    /// Nothing.
    Nothing,
    /// It waits, for so many ms.
    Waits(u32),
    /// It does not wait, and the consumer is told.
    IsTold,
    /// It does not wait, and there is no room to say so.
    IsLost,
}

impl Files {
    /// No files.
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

    /// Asks for a process, or for all.
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

    /// Learns that a file has nothing for the consumer.
    pub fn know(&self, file: FileId) -> Result {
        if self.knows(file) {
            return Ok(());
        }
        let node = RBTreeNode::new(file, (), GFP_KERNEL)?;
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

    /// The current process maps a file. Does not sleep.
    pub fn mapped(&self, file: FileId) -> Then {
        let mut state = self.state.lock();
        if state.known.get(&file).is_some() {
            return Then::Nothing;
        }
        self.then(&mut state)
    }

    /// The current process has registered probes. Does not sleep.
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

    /// A process has waited in vain.
    pub fn waited_in_vain(&self) {
        self.state.lock().in_vain = true;
    }

    /// The consumer asks: the next process that it is to be told of and that does not wait.
    pub fn next(&self) -> Option<Pid> {
        let mut state = self.state.lock();
        state.in_vain = false;
        state.told.pop()
    }

    /// Whether there is one.
    pub fn has_told(&self) -> bool {
        !self.state.lock().told.is_empty()
    }
}
