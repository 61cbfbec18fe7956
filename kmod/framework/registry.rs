// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! What programs have registered by the helper device.
//!
//! A [`Registration`] is DOF, as a program has passed it, and where the object lies that it is of. The kernel keeps it; a consumer asks for
//! it and makes the probes that it names, as it does with what is in files. So what a program says is taken apart where that can do no harm.
//!
//! A process is a memory here as elsewhere: with `execve()` and with its end it is over, and so are its registrations. A child that is
//! a copy of its parent has the same ones, which takes no memory for the images. Who is over is forgotten now and then ([`Registry::sweep`]),
//! and at once where there is no room for more.
//!
//! The list is locked by a spin lock, as children are made where nobody may sleep; so nothing that it holds is dropped under it.

use super::registration::{Charges, Registration};
use crate::sys::process::Process;
use dtrace_uapi::ioctl::REGISTRATIONS_MAX;
use dtrace_uapi::limits::MODNAMELEN;
use kernel::alloc::flags::GFP_KERNEL_ACCOUNT;
use kernel::alloc::{Flags, KVec};
use kernel::prelude::*;
use kernel::rbtree::{RBTree, RBTreeNode};
use kernel::sync::{new_spinlock, Arc, SpinLock};

/// So many processes may be over before they are forgotten.
const LITTER: usize = 32;
/// After so many children have been looked at somebody sees whether there is still anything to inherit.
const LOOKS: usize = 256;

/// Processes that are looked at under one lock.
const PIECE: usize = 64;

/// What there is of a process.
struct Entry {
    process: Process,
    /// The last number that was given out.
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

/// Room for what there is of a process.
pub struct Room {
    key: usize,
    node: RBTreeNode<usize, Entry>,
}

impl Room {
    /// For this one.
    pub fn new(process: Process) -> Result<Self> {
        Ok(Self {
            key: process.key(),
            node: Entry::new(process, GFP_KERNEL_ACCOUNT)?,
        })
    }
}

/// All of it.
#[pin_data]
pub struct Registry {
    /// Read where nobody may sleep.
    #[pin]
    entries: SpinLock<Entries>,
    charges: Arc<Charges>,
}

struct Entries {
    of: RBTree<usize, Entry>,
    count: usize,
    /// How many have come, and how many children were looked at, since it was swept.
    new: usize,
    looks: usize,
}

impl Registry {
    /// Nothing.
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

    /// Reads what the current program registers: DOF at `from`, of an object at `addr` ([`Registration::read`]).
    pub fn read(
        &self,
        module: [u8; MODNAMELEN],
        addr: u64,
        from: u64,
    ) -> Result<Arc<Registration>> {
        self.made(|| Registration::read(&self.charges, module, [addr, from]))
    }

    /// What says that the file at `addr` has probes.
    pub fn look_at(&self, addr: u64) -> Result<Arc<Registration>> {
        self.made(|| Registration::look_at(&self.charges, addr))
    }

    /// What is made; where there is no room, after those have been forgotten that are over.
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

    /// Adds what a process registers; its number. Does not sleep.
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
        // Where it is not taken it is dropped behind the lock.
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

    /// The number of the same registration of a process.
    pub fn known(&self, process: &Process, what: &Registration) -> Option<u32> {
        let mut after = 0;
        loop {
            // To compare takes long.
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

    /// The next DOF of a process after that of a number.
    pub fn next(&self, process: &Process, mut after: u32) -> Option<(u32, Arc<Registration>)> {
        loop {
            let (number, one) = self.after(process.key(), after)?;
            if !one.image().is_empty() {
                return Some((number, one));
            }
            after = number;
        }
    }

    /// Whether a process has a registration.
    pub fn has(&self, process: &Process, number: u32) -> bool {
        let entries = self.entries.lock();
        let entry = entries.of.get(&process.key());
        entry.is_some_and(|entry| entry.list.iter().any(|(one, _)| *one == number))
    }

    /// Removes a registration of a process.
    pub fn remove(&self, process: &Process, number: u32) -> Result {
        let mut entries = self.entries.lock();
        let entry = entries.of.get_mut(&process.key()).ok_or(ENOENT)?;
        let at = entry.list.iter().position(|(one, _)| *one == number);
        let gone = entry.list.remove(at.ok_or(ENOENT)?);
        drop(entries);
        drop(gone);
        Ok(())
    }

    /// Gives a child of the current process what that has registered, under the same numbers. Does not sleep.
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
            // Another thread of the parent's may have removed all.
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
            // There is room for as many as a process may have.
            let _ = to.list.push_within_capacity(copy);
            at = at.saturating_add(1);
        }
        drop(entries);
        drop(node);
        Ok(())
    }

    /// Whether so much has been done that it is time to sweep.
    pub fn is_littered(&self) -> bool {
        let entries = self.entries.lock();
        let has_grown = entries.new > entries.count / 2 && entries.new > LITTER;
        has_grown || entries.looks > LOOKS
    }

    /// Forgets processes that are over, or have nothing registered; whether there is none left. Children are not kept waiting for long.
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
