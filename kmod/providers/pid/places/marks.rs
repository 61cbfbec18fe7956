// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The USDT probes of one instruction.
//!
//! A program may describe several probes at one instruction, in its file and by registration, and a
//! member may have described one that the program does not. Each has arguments and a counter of its
//! own. So each is an entry of a list that only grows, which a CPU that has come to the instruction
//! reads without a lock. What an entry says of its probe never changes; a probe that goes leaves
//! its entry to a later one that says the same. Members have a number of entries of their own, so
//! what they do takes none from others.

use super::super::usdt::Mark;
use super::{too_many, two_probes};
use crate::framework::{miss, Probe, ProbeRef, Refusal};
use crate::sys::staticref::StaticRef;
use core::iter;
use core::sync::atomic::{AtomicU32, Ordering};
use kernel::alloc::KBox;
use kernel::prelude::*;
use kernel::sync::SetOnce;

/// How many entries members may have at one instruction, and how many others may. Members have
/// few, because an entry without a probe is not paid for.
const MARKS_MAX: [usize; 2] = [2, 8];

/// A USDT probe of the instruction, or room for one.
pub struct Marked {
    mark: Mark,
    probe: StaticRef<Probe>,
    /// Whether it was made for a member.
    is_users: bool,
    /// The probe of the order under way that it is for, counted from 1; 0 if none. Calls of the
    /// provider do not overlap.
    claimer: AtomicU32,
    next: Next,
}

type Next = SetOnce<KBox<Marked>>;

#[inline]
fn entry(next: &Next) -> Option<&Marked> {
    next.as_ref().map(|marked| &**marked)
}

impl Marked {
    /// Its probe.
    pub fn slot(&self) -> &StaticRef<Probe> {
        &self.probe
    }

    fn is_for(&self, claimer: u32) -> bool {
        self.claimer.load(Ordering::Relaxed) == claimer
    }

    fn is_free(&self) -> bool {
        self.probe.get().is_none() && self.is_for(0)
    }
}

/// All of them.
pub struct Marks {
    first: Next,
}

impl Marks {
    pub const fn new() -> Self {
        Self {
            first: SetOnce::new(),
        }
    }

    /// All entries.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = &Marked> {
        iter::successors(entry(&self.first), |marked| entry(&marked.next))
    }

    /// The probes, each with what is known of it.
    #[inline]
    pub fn live(&self) -> impl Iterator<Item = (ProbeRef, &Mark)> {
        self.iter()
            .filter_map(|marked| Some((marked.probe.get()?, &marked.mark)))
    }

    /// What is known of a probe.
    pub fn of(&self, probe: ProbeRef) -> Option<&Mark> {
        let mut live = self.live();
        live.find_map(|(other, mark)| (other.id() == probe.id()).then_some(mark))
    }

    /// Whether probes are known here, and none has a counter. What members say matters only if
    /// nobody else says anything.
    pub fn are_uncounted(&self) -> bool {
        let is_users = self.iter().all(|marked| marked.is_users);
        let of_them = self.iter().filter(|marked| marked.is_users == is_users);
        let mut known = of_them.peekable();
        known.peek().is_some() && known.all(|marked| marked.mark.semaphore == 0)
    }

    /// Forgets for which probes an earlier order has claimed entries.
    pub fn unclaim(&self) {
        for marked in self.iter() {
            marked.claimer.store(0, Ordering::Relaxed);
        }
    }

    /// Claims an entry for the `claimer`th probe of an order. `EEXIST`: this probe is there twice,
    /// with different marks; `ENOSPC`: there are too many probes.
    pub fn claim(&self, claimer: u32, mark: Mark, is_users: bool) -> Result<(), Refusal> {
        if let Some(own) = self.iter().find(|marked| marked.is_for(claimer)) {
            return match own.mark.equals(&mark) {
                true => Ok(()),
                false => Err(two_probes()),
            };
        }
        let of_them = || self.iter().filter(|marked| marked.is_users == is_users);
        let mut free = of_them().filter(|marked| marked.is_free());
        if let Some(free) = free.find(|marked| marked.mark.equals(&mark)) {
            free.claimer.store(claimer, Ordering::Relaxed);
            return Ok(());
        }
        let most = MARKS_MAX.get(usize::from(!is_users));
        if most.is_none_or(|most| of_them().count() >= *most) {
            return Err(too_many());
        }
        let marked = Marked {
            mark,
            probe: StaticRef::none(),
            is_users,
            claimer: AtomicU32::new(claimer),
            next: SetOnce::new(),
        };
        let last = self.iter().last().map_or(&self.first, |last| &last.next);
        // Calls of the provider do not overlap, so nothing else sets this.
        last.populate(KBox::new(marked, GFP_KERNEL)?);
        Ok(())
    }

    /// Adds the `claimer`th probe of an order, and returns its mark; `None` if it is there already.
    pub fn add(&self, probe: ProbeRef, claimer: u32) -> Option<&Mark> {
        let marked = self.iter().find(|marked| marked.is_for(claimer))?;
        marked.claimer.store(0, Ordering::Relaxed);
        marked.probe.set(Some(probe));
        Some(&marked.mark)
    }

    /// Removes a probe.
    pub fn remove(&self, probe: ProbeRef) {
        let is_it = |marked: &&Marked| marked.probe.get().is_some_and(|it| it.id() == probe.id());
        if let Some(marked) = self.iter().find(is_it) {
            marked.probe.set(None);
        }
    }

    /// Tells the consumers of the probes that count in a semaphore that these may not fire any
    /// more.
    pub fn miss_counted(&self, counter: u64) {
        let live = self.live();
        let counted = live.filter(|(_, mark)| mark.semaphore == counter);
        counted.for_each(|(probe, _)| miss(probe));
    }

    /// Whether an existing probe has this mark here.
    pub fn has(&self, probe: ProbeRef, mark: &Mark) -> bool {
        self.of(probe).is_some_and(|known| known.equals(mark))
    }
}
