// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! What programs have registered with the helper device (INV-52).
//!
//! A [`Registration`] is DOF, as a program has passed it, and the address of the object that it
//! belongs to. The kernel only keeps it. A consumer reads it and makes the probes that it names, as
//! it does with what is in files. So what a program says is interpreted in user space alone.
//!
//! Registrations belong to a memory: they end with `execve()` and with the end of the process. A
//! child that is a copy of its parent has the same registrations, and shares the images. Entries of
//! processes that have ended are removed from time to time ([`Registry::sweep`]), and at once if a
//! quota is used up.
//!
//! The entries have a spin lock, because forks use them in a tracepoint. So nothing is freed under
//! the lock.

use super::registration::{Charges, Registration};
use crate::sys::process::Process;
use dtrace_uapi::ioctl::REGISTRATIONS_MAX;
use dtrace_uapi::limits::MODNAMELEN;
use kernel::alloc::flags::GFP_KERNEL_ACCOUNT;
use kernel::alloc::{Flags, KVec};
use kernel::prelude::*;
use kernel::rbtree::{RBTree, RBTreeNode};
use kernel::sync::{new_spinlock, Arc, SpinLock};

/// Number of new entries after which a sweep may be due; it is if these are also more than half of
/// all entries.
const LITTER: usize = 32;
/// Number of forks after which a sweep checks whether there is still anything to inherit.
const LOOKS: usize = 256;

/// Number of entries that a sweep looks at before it releases the lock.
const PIECE: usize = 64;

/// The registrations of a process.
struct Entry {
    process: Process,
    /// The number that was given out last.
    last: u32,
    list: KVec<(u32, Arc<Registration>)>,
}

impl Entry {
    fn new(process: Process, flags: Flags) -> Result<RBTreeNode<usize, Self>> {
        let entry = Self {
            last: 0,
            list: KVec::with_capacity(REGISTRATIONS_MAX, flags)?,
            process,
        };
        RBTreeNode::new(entry.process.key(), entry, flags)
    }
}

/// Memory for the registrations of a process. Allocated before the lock is taken.
pub struct Room {
    key: usize,
    node: RBTreeNode<usize, Entry>,
}

impl Room {
    /// Makes room for this process. May sleep.
    pub fn new(process: Process) -> Result<Self> {
        Ok(Self {
            key: process.key(),
            node: Entry::new(process, GFP_KERNEL_ACCOUNT)?,
        })
    }
}

/// The registrations of all processes.
#[pin_data]
pub struct Registry {
    /// Also locked in a tracepoint, so no holder sleeps.
    #[pin]
    entries: SpinLock<Entries>,
    charges: Arc<Charges>,
}

struct Entries {
    of: RBTree<usize, Entry>,
    count: usize,
    /// Number of new entries, and of forks, since the last sweep.
    new: usize,
    looks: usize,
}

impl Registry {
    /// Nothing is registered.
    pub fn new() -> Result<Arc<Self>> {
        let charges = Charges::new()?;
        let entries = Entries {
            of: RBTree::new(),
            count: 0,
            new: 0,
            looks: 0,
        };
        Arc::pin_init(
            pin_init!(Self {
                entries <- new_spinlock!(entries, "dtrace::Registry"),
                charges,
            }),
            GFP_KERNEL,
        )
    }

    /// Reads what the current program registers: DOF at the address `from`, for an object at `addr`
    /// ([`Registration::read`]).
    pub fn read(
        &self,
        module: [u8; MODNAMELEN],
        addr: u64,
        from: u64,
    ) -> Result<Arc<Registration>> {
        self.made(|| Registration::read(&self.charges, module, [addr, from]))
    }

    /// Makes a registration of the file mapped at `addr` ([`Registration::look_at`]).
    pub fn look_at(&self, addr: u64) -> Result<Arc<Registration>> {
        self.made(|| Registration::look_at(&self.charges, addr))
    }

    /// Calls `make`. If a quota is exceeded, removes the entries of processes that have ended and
    /// tries once more.
    fn made(&self, make: impl Fn() -> Result<Registration>) -> Result<Arc<Registration>> {
        let made = match make() {
            Err(ENOSPC) => {
                self.sweep();
                make()
            }
            made => made,
        };
        Ok(Arc::new(made?, GFP_KERNEL_ACCOUNT)?)
    }

    /// Adds a registration of a process. Returns its number. `ENOSPC` if the process has too many.
    /// Does not sleep, and frees what it does not need after it has released the lock.
    pub fn add(&self, room: Room, what: Arc<Registration>) -> Result<u32> {
        let Room { key, node } = room;
        let mut unused = None;
        let mut entries = self.entries.lock();
        if entries.of.get(&key).is_none() {
            unused = entries.of.insert(node);
            entries.count = entries.count.saturating_add(1);
            entries.new = entries.new.saturating_add(1);
        }
        let entry = entries.of.get_mut(&key).ok_or(ENOMEM)?;
        let providers = (entry.list.iter()).fold(what.providers(), |sum, (_, one)| {
            sum.saturating_add(one.providers())
        });
        let has_room = entry.list.len() < REGISTRATIONS_MAX && providers <= REGISTRATIONS_MAX;
        let number = entry.last.checked_add(1).filter(|_| has_room);
        // If it is refused, it is dropped after the lock was released.
        let mut what = Some(what);
        let mut refused = None;
        if let Some((number, what)) = number.and_then(|number| Some((number, what.take()?))) {
            entry.last = number;
            refused = entry.list.push_within_capacity((number, what)).err();
        }
        drop(entries);
        let is_refused = refused.is_some();
        drop((unused, refused, what));
        number.filter(|_| !is_refused).ok_or(ENOSPC)
    }

    /// Returns the number under which a process has registered the same before.
    pub fn known(&self, process: &Process, what: &Registration) -> Option<u32> {
        let mut after = 0;
        loop {
            // The lock is not held here, because the comparison of two images takes long.
            let (number, one) = self.after(process.key(), after)?;
            if one.is(what) {
                return Some(number);
            }
            after = number;
        }
    }

    fn after(&self, key: usize, after: u32) -> Option<(u32, Arc<Registration>)> {
        let entries = self.entries.lock();
        let entry = entries.of.get(&key)?;
        let next = entry.list.iter().find(|(number, _)| *number > after)?;
        Some((next.0, next.1.clone()))
    }

    /// Returns the first registration of a process with an image and a number greater than `after`.
    pub fn next(&self, process: &Process, mut after: u32) -> Option<(u32, Arc<Registration>)> {
        loop {
            let (number, one) = self.after(process.key(), after)?;
            if !one.image().is_empty() {
                return Some((number, one));
            }
            after = number;
        }
    }

    /// Whether a process has a registration with this number.
    pub fn has(&self, process: &Process, number: u32) -> bool {
        let entries = self.entries.lock();
        let entry = entries.of.get(&process.key());
        entry.is_some_and(|entry| entry.list.iter().any(|(one, _)| *one == number))
    }

    /// Removes a registration of a process. `ENOENT` if there is none.
    pub fn remove(&self, process: &Process, number: u32) -> Result {
        let mut entries = self.entries.lock();
        let entry = entries.of.get_mut(&process.key()).ok_or(ENOENT)?;
        let at = entry.list.iter().position(|(one, _)| *one == number);
        let gone = entry.list.remove(at.ok_or(ENOENT)?);
        drop(entries);
        drop(gone);
        Ok(())
    }

    /// Gives a child of the current process the registrations of the current process, with the same
    /// numbers. Called in the fork tracepoint; does not sleep. `ENOMEM`: the child has none.
    pub fn inherit(&self, child: Process) -> Result {
        let Some(parent) = Process::current() else {
            return Ok(());
        };
        let mut entries = self.entries.lock();
        entries.looks = entries.looks.saturating_add(1);
        let has_any = entries
            .of
            .get(&parent.key())
            .is_some_and(|entry| !entry.list.is_empty());
        drop(entries);
        if !has_any {
            return Ok(());
        }
        let key = child.key();
        let mut node = Some(Entry::new(child, GFP_ATOMIC)?);
        let mut entries = self.entries.lock();
        let Entries { of, count, new, .. } = &mut *entries;
        if let Some(node) = node.take_if(|_| of.get(&key).is_none()) {
            drop(of.insert(node));
            *count = count.saturating_add(1);
            *new = new.saturating_add(1);
        }
        let mut at = 0usize;
        loop {
            // Another thread of the parent may have removed them since the lock was last held.
            let Some(from) = of.get(&parent.key()) else {
                break;
            };
            let last = from.last;
            let Some((number, one)) = from.list.get(at) else {
                break;
            };
            let copy = (*number, one.clone());
            let to = of.get_mut(&key).ok_or(ESRCH)?;
            to.last = last;
            // Cannot fail: there is room for the maximum number of registrations.
            let _ = to.list.push_within_capacity(copy);
            at = at.saturating_add(1);
        }
        drop(entries);
        drop(node);
        Ok(())
    }

    /// Whether a sweep is due.
    pub fn is_littered(&self) -> bool {
        let entries = self.entries.lock();
        let has_grown = entries.new > entries.count / 2 && entries.new > LITTER;
        has_grown || entries.looks > LOOKS
    }

    /// Removes the entries of processes that have ended or have nothing registered. Returns whether
    /// no entry is left. Releases the lock after every few entries, so that forks do not wait for
    /// long.
    pub fn sweep(&self) -> bool {
        let mut entries = self.entries.lock();
        (entries.new, entries.looks) = (0, 0);
        drop(entries);
        let mut from = Some(0);
        while let Some(key) = from {
            let mut gone = RBTree::new();
            let mut entries = self.entries.lock();
            let Entries { of, count, .. } = &mut *entries;
            let mut cursor = of.cursor_lower_bound_mut(&key);
            for _ in 0..PIECE {
                let Some(at) = cursor else {
                    break;
                };
                let (_, entry) = at.current();
                if entry.process.is_over() || entry.list.is_empty() {
                    let (next, node) = at.remove_current();
                    drop(gone.insert(node));
                    *count = count.saturating_sub(1);
                    cursor = next;
                } else {
                    cursor = at.move_next();
                }
            }
            from = cursor.map(|at| *at.current().0);
            drop(entries);
            drop(gone);
        }
        self.entries.lock().count == 0
    }
}
