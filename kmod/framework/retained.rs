// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Retained descriptions: what a consumer has described, kept so that probes which appear later are
//! enabled too.
//!
//! A description is retained with the clause that it was enabled for. A request brings its own
//! ([`Wanted`]), or makes [replicas](RetainedList::replicas) of those that are retained: the same
//! clauses for another description. Replicas can be [retracted](RetainedList::retract). Their
//! number is limited, and a member pays for their memory ([`quota`](super::quota)).

use super::patience::{Patience, DESCRIBED};
use super::probe::ProbeRef;
use super::provider::Description;
use super::table::Table;
use super::text::Refusal;
use dtrace_engine::{ClauseId, Enabling, Pending};
use dtrace_uapi::glob;
use dtrace_uapi::ioctl::{ProbeDesc, ReplDesc};
use dtrace_uapi::limits::RETAIN_MAX;
use kernel::alloc::KVVec;
use kernel::prelude::*;

/// Maximum number of descriptions that a consumer retains, which take some 400 bytes each: four
/// enablings of maximum size.
const DESCRIPTIONS_MAX: usize = 64 << 10;

/// Memory that is paid for a replica, bytes: the list may have room for twice as many as it holds.
const REPLICA: usize = 1024;

/// Number of descriptions for which a list may have room in addition to twice those that it holds.
const SPARE: usize = 64;

const _: () = assert!(REPLICA >= 2 * size_of::<Retained>());

/// A probe, and the clause of which it gets an ECB.
pub type Match = (ProbeRef, ClauseId);

/// A description for which a clause has been enabled.
#[derive(Clone, Copy)]
pub struct Retained {
    /// The description.
    pub desc: ProbeDesc,
    /// The clause.
    pub clause: ClauseId,
    /// Number of the enabling that it came with. Each replica of an enabling has a number of its
    /// own.
    enabling: usize,
    /// It was made by [`State::replicate`](super::state::State) and may be
    /// [retracted](RetainedList::retract).
    is_replica: bool,
}

impl Retained {
    /// Returns the memory that the consumer pays for it, bytes. For a replica this is a whole
    /// number of KiB, which can be refunded.
    pub fn price(&self) -> usize {
        match self.is_replica {
            true => REPLICA,
            false => size_of::<Self>(),
        }
    }

    /// Whether it describes probes by their names and not one probe by its id.
    pub fn is_by_name(&self) -> bool {
        self.desc.id == 0
    }

    /// Whether it also means probes that were made for other consumers: its provider is a pattern
    /// that does not end in a digit, such as `pid*`. A number at the end may have been that of
    /// another process when the description was written.
    pub fn is_anybodys(&self) -> bool {
        let provider = Description::from(&self.desc).provider;
        let ends_with_number = provider.last().is_some_and(u8::is_ascii_digit);
        self.is_by_name() && glob::is_glob(provider) && !ends_with_number
    }
}

/// What a request describes.
pub struct Wanted {
    /// The descriptions.
    pub list: KVVec<Retained>,
    /// Number of enablings that the request adds.
    enablings: usize,
}

impl Wanted {
    /// Returns what `enabling` describes. `pending` holds its clauses.
    pub fn new(enabling: &Enabling, pending: &Pending<'_>) -> Result<Self> {
        let mut list = KVVec::with_capacity(enabling.clauses().len(), GFP_KERNEL)?;
        for (n, clause) in enabling.clauses().iter().enumerate() {
            let retained = Retained {
                desc: clause.probe,
                clause: pending.clause(n).ok_or(EINVAL)?,
                enabling: 0,
                is_replica: false,
            };
            list.push(retained, GFP_KERNEL)?;
        }
        Ok(Self { list, enablings: 1 })
    }
}

/// What a consumer retains.
pub struct RetainedList {
    list: KVVec<Retained>,
    /// Number of enablings that the list comes from.
    enablings: usize,
    /// Number of the next enabling.
    next: usize,
}

impl RetainedList {
    /// Nothing is retained.
    pub const fn new() -> Self {
        Self {
            list: KVVec::new(),
            enablings: 0,
            next: 0,
        }
    }

    /// Whether `which` holds for a description.
    pub fn has(&self, which: fn(&Retained) -> bool) -> bool {
        self.list.iter().any(which)
    }

    /// Returns the replicas for `repl.create`: one for each retained description that equals
    /// `repl.matching`.
    pub fn replicas(&self, repl: &ReplDesc) -> Result<Wanted> {
        let from = Description::from(&repl.matching);
        let mut wanted = Wanted {
            list: KVVec::new(),
            enablings: 0,
        };
        let mut last = None;
        for retained in &self.list {
            if retained.desc.id != 0 || Description::from(&retained.desc) != from {
                continue;
            }
            if last.replace(retained.enabling) != Some(retained.enabling) {
                wanted.enablings = wanted.enablings.saturating_add(1);
            }
            let replica = Retained {
                desc: repl.create,
                clause: retained.clause,
                enabling: wanted.enablings.saturating_sub(1),
                is_replica: true,
            };
            wanted.list.push(replica, GFP_KERNEL)?;
        }
        Ok(wanted)
    }

    /// Forgets the replicas for a description. Returns the number of bytes to refund; `None` if
    /// there were no replicas.
    pub fn retract(&mut self, desc: &ProbeDesc) -> Option<usize> {
        let to = Description::from(desc);
        let (mut last, mut paid) = (None, 0usize);
        let Self {
            list, enablings, ..
        } = self;
        list.retain(|one| {
            let is_for =
                one.is_replica && one.desc.id == desc.id && Description::from(&one.desc) == to;
            if !is_for {
                return true;
            }
            // The replicas of an enabling follow each other, because one call made them.
            if last.replace(one.enabling) != Some(one.enabling) {
                *enablings = enablings.saturating_sub(1);
            }
            paid = paid.saturating_add(one.price());
            false
        });
        // A list may have room for twice what it holds, because each replica is paid for twice. If
        // there is no memory for a shorter list, nothing is refunded.
        let most = list.len().saturating_mul(2).saturating_add(SPARE);
        if list.capacity() > most {
            let mut copy = KVVec::new();
            if copy.extend_from_slice(list, GFP_KERNEL).is_err() {
                return Some(0);
            }
            *list = copy;
        }
        (paid > 0).then_some(paid)
    }

    /// Calls `f` for each match of one of `created` with a retained description for which `which`
    /// holds. Fails like [`Patience::take`].
    pub fn each_new(
        &self,
        table: &Table,
        created: &[ProbeRef],
        which: fn(&Retained) -> bool,
        patience: &Patience,
        mut f: impl FnMut(Match),
    ) -> Result {
        if created.is_empty() {
            return Ok(());
        }
        for Retained { desc, clause, .. } in self.list.iter().filter(|r| which(r)) {
            patience.take(DESCRIBED)?;
            let pattern = table.pattern(&Description::from(desc));
            for probe in created {
                if pattern.matches_in(probe, patience)? {
                    f((*probe, *clause));
                }
            }
        }
        Ok(())
    }

    /// Counts the retained descriptions that may match probes of this provider in this module. A
    /// description with neither provider nor module, such as `END`, is not counted.
    pub fn count_for(&self, provider: &[u8], module: &[u8]) -> usize {
        let fits = |part: &[u8], name: &[u8]| part.is_empty() || glob::matches(part, name);
        let retained = self.list.iter().filter(|r| {
            let desc = Description::from(&r.desc);
            let says = !desc.provider.is_empty() || !desc.module.is_empty();
            r.desc.id == 0 && says && fits(desc.provider, provider) && fits(desc.module, module)
        });
        retained.count()
    }

    /// Checks the limits and makes room for [`add`](Self::add).
    pub fn make_room(&mut self, wanted: &Wanted) -> Result<(), Refusal> {
        if self.enablings.saturating_add(wanted.enablings) > RETAIN_MAX {
            return Err(Refusal::new(ENOSPC, "too many retained enablings"));
        }
        if self.list.len().saturating_add(wanted.list.len()) > DESCRIPTIONS_MAX {
            return Err(Refusal::new(ENOSPC, "too many retained descriptions"));
        }
        self.list.reserve(wanted.list.len(), GFP_KERNEL)?;
        Ok(())
    }

    /// Retains what was wanted.
    pub fn add(&mut self, wanted: &Wanted) {
        for entry in &wanted.list {
            let entry = Retained {
                enabling: self.next.wrapping_add(entry.enabling),
                ..*entry
            };
            // Cannot fail: `make_room` has reserved the room.
            let _ = self.list.push_within_capacity(entry);
        }
        self.enablings = self.enablings.saturating_add(wanted.enablings);
        self.next = self.next.wrapping_add(wanted.enablings);
    }
}
