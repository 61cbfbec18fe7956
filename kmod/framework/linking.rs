// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! What the state has of a consumer: the ECBs that it was given, and their way to the lists of
//! their probes and off them.
//!
//! The consumer has one [node](Enabled) at each probe, whatever the number of its clauses there.
//! Nodes wait until the consumer begins to trace ([`begin`](Enablings::begin)), and are taken off
//! when it ends ([`unlink`](Enablings::unlink)). Room is reserved before anything is linked, so
//! from then on nothing can fail (INV-2).

use super::consumer::Consumer;
use super::enabled::Enabled;
use super::probe::ProbeRef;
use super::provider::by_provider;
use super::quota::{self, Dues};
use super::retained::{Match, RetainedList};
use super::text::Refusal;
use crate::sys::rculist::{Links, Writer};
use dtrace_engine::mem::sort::sort;
use dtrace_engine::Ecb;
use kernel::alloc::KVVec;
use kernel::prelude::*;
use kernel::sync::Arc;

/// Maximum number of ECBs of a consumer, which take some 100 bytes each: each function of the
/// kernel at both ends, twenty times.
const ECBS_MAX: usize = 4 << 20;
/// The same limit for a consumer without rights over the kernel. A member's consumers have as many
/// together (INV-28), so this limits consumers that may trace all processes.
const UNPRIVILEGED_MAX: usize = quota::ECBS_MAX as usize;

/// What the framework's state has of a consumer.
pub struct Enablings {
    /// The consumer.
    pub consumer: Arc<Consumer>,
    links: Links<Enabled>,
    /// The consumer traces, so its ECBs are linked at once.
    tracing: bool,
    /// Sum of [`missed_of`] for the waiting ECBs at the time when they were added.
    missed_before: u64,
    /// The probe of each ECB. Probes that have been retired are taken out only by
    /// [`shed`](Self::shed).
    probes: KVVec<ProbeRef>,
    /// What it retains.
    pub retained: RetainedList,
    /// What was paid for the ECBs.
    dues: Dues,
}

impl Enablings {
    /// Makes those of a consumer that has enabled nothing yet.
    pub fn new(consumer: &Arc<Consumer>) -> Self {
        Self {
            consumer: consumer.clone(),
            links: Links::new(),
            tracing: false,
            missed_before: 0,
            probes: KVVec::new(),
            retained: RetainedList::new(),
            dues: consumer.payer.dues(),
        }
    }

    /// Whether the consumer has an ECB at a probe.
    pub fn are_at(&self, probe: ProbeRef) -> bool {
        self.probes.iter().any(|one| one.id() == probe.id())
    }

    /// Takes away all ECBs. Returns each armed probe that no consumer wants any more, once.
    pub fn unlink(&mut self, writer: &mut Writer) -> &[ProbeRef] {
        self.links.unlink_if(writer, |enabled| {
            enabled.probe.unwant(enabled);
            true
        });
        sort(&mut self.probes, by_provider);
        let mut last = 0;
        self.probes.retain(|probe| {
            let first = probe.id() != last;
            last = probe.id();
            first && probe.is_armed() && !probe.is_wanted()
        });
        &self.probes
    }

    /// Links what the consumer has enabled. It traces from now on.
    pub fn begin(&mut self, writer: &mut Writer) {
        self.tracing = true;
        self.publish(writer);
    }

    /// Whether the consumer may have `more` ECBs in addition to those that it has.
    pub fn may_have(&self, more: usize) -> bool {
        let most = match self.consumer.engine.privileges().kernel {
            true => ECBS_MAX,
            false => UNPRIVILEGED_MAX,
        };
        self.probes.len().saturating_add(more) <= most
    }

    /// Takes away the waiting ECBs whose probe is not armed or not live. Calls `gone` with each
    /// node. Does nothing once the consumer traces: its ECBs are on lists then.
    pub fn give_up(&mut self, writer: &mut Writer, mut gone: impl FnMut(&Enabled)) {
        if self.tracing {
            return;
        }
        let missed_before = &mut self.missed_before;
        self.links.unlink_if(writer, |enabled| {
            let off = !(enabled.probe.is_live() && enabled.probe.is_armed());
            if off {
                *missed_before = missed_before.saturating_sub(missed_of(enabled));
                gone(enabled);
            }
            off
        });
    }

    /// Frees the memory of ECBs that were taken away, as far as a grace period has passed, and
    /// forgets retired probes. The nodes that are freed hold these probes
    /// ([`Held`](super::probe::Held)), so the probes are forgotten first.
    pub fn shed(&mut self, writer: &mut Writer) {
        let before = self.probes.len();
        self.probes.retain(|probe| !probe.is_retired());
        self.dues
            .give_back(before.saturating_sub(self.probes.len()));
        self.links.shed(writer);
    }

    /// Links the waiting ECBs, and counts what their probes have missed since the ECBs were added.
    fn publish(&mut self, writer: &mut Writer) {
        let mut missed = 0u64;
        self.links.publish(writer, |enabled| {
            missed = missed.saturating_add(missed_of(enabled));
        });
        let before = core::mem::take(&mut self.missed_before);
        self.consumer.miss(missed.saturating_sub(before));
    }

    /// Gives each of `found` its ECB, or none of them if that fails. `dues` have been paid for
    /// them. Calls `commit` once nothing can fail any more, and before a firing can see any of the
    /// ECBs.
    pub fn link(
        &mut self,
        writer: &mut Writer,
        found: &[Match],
        dues: Dues,
        commit: impl FnOnce(),
    ) -> Result<(), Refusal> {
        let consumer = self.consumer.clone();
        let mut ecbs = KVVec::with_capacity(found.len(), GFP_KERNEL)?;
        let mut binding = consumer.engine.binding();
        for (probe, clause) in found {
            let ecb = binding.bind(*clause, probe.id())?;
            ecbs.push(New::of(probe, ecb), GFP_KERNEL)?;
        }
        // ECBs of the same probe become neighbours, in the order of their clauses.
        let key = |new: &New| (new.probe.id(), new.ecb.epid);
        sort(&mut ecbs, |a, b| key(a) < key(b));
        self.probes.reserve(found.len(), GFP_KERNEL)?;
        self.links.reserve(ecbs.chunk_by(New::is_beside).count())?;
        commit();
        self.dues.merge(dues);
        binding.keep();
        for new in &ecbs {
            // Cannot fail: the room was reserved above.
            let _ = self.probes.push_within_capacity(new.probe);
        }
        if ecbs.iter().any(|new| new.probe.is_wanted()) {
            self.append(&mut ecbs);
        }
        ecbs.retain(|new| !new.is_appended);
        for group in ecbs.chunk_by(New::is_beside) {
            self.add(group);
        }
        if self.tracing {
            self.publish(writer);
        }
        Ok(())
    }

    /// Appends those of `ecbs` at probes where the consumer has a node already. `ecbs` is sorted by
    /// probe.
    fn append(&mut self, ecbs: &mut [New]) {
        for enabled in self.links.values() {
            let id = enabled.probe.id();
            let begin = ecbs.partition_point(|new| new.probe.id() < id);
            let here = ecbs.get_mut(begin..).unwrap_or_default().iter_mut();
            for new in here.take_while(|new| new.probe.id() == id) {
                new.is_appended = true;
                enabled.append(new.ecb.epid);
                if reads_user(&self.consumer, new) {
                    enabled.probe.read_user(enabled);
                }
                // `publish` reports only what waiting nodes have missed.
                let before = if self.tracing {
                    0
                } else {
                    enabled.probe.missed()
                };
                self.missed_before = self.missed_before.saturating_add(before);
            }
        }
    }

    /// Adds a node for the ECBs at a probe where the consumer has none.
    fn add(&mut self, ecbs: &[New]) {
        let Some((New { probe, ecb, .. }, others)) = ecbs.split_first() else {
            return;
        };
        let enabled = Enabled::new(&self.consumer, probe, *ecb);
        for new in others {
            enabled.append(new.ecb.epid);
        }
        probe.want(&enabled);
        if ecbs.iter().any(|new| reads_user(&self.consumer, new)) {
            probe.read_user(&enabled);
        }
        self.missed_before = self.missed_before.saturating_add(missed_of(&enabled));
        // Cannot fail: `link` has reserved the room. `BEGIN`, `END` and `ERROR` are on no list,
        // because the engine knows their ECBs and no other consumer's firing is to pass them
        // (INV-28).
        let _ = match self.consumer.engine.is_own(probe.id()) {
            true => self.links.add_apart(probe.enabled(), enabled),
            false => self.links.add(probe.enabled(), enabled),
        };
    }
}

/// An ECB that is being linked.
#[derive(Clone, Copy)]
struct New {
    probe: ProbeRef,
    ecb: Ecb,
    /// The consumer has a node at the probe already, and the ECB was appended to it.
    is_appended: bool,
}

impl New {
    fn of(probe: ProbeRef, ecb: Ecb) -> Self {
        Self {
            probe,
            ecb,
            is_appended: false,
        }
    }

    /// Whether both ECBs are at the same probe.
    fn is_beside(&self, other: &Self) -> bool {
        self.probe.id() == other.probe.id()
    }
}

/// Whether the ECB's clause loads user memory.
fn reads_user(consumer: &Consumer, new: &New) -> bool {
    let in_memory = new.probe.has_args_in_memory();
    consumer.engine.reads_user(new.ecb.clause, in_memory)
}

/// Returns how often a part of the probe could not be enabled, times the number of clauses.
fn missed_of(enabled: &Enabled) -> u64 {
    enabled
        .probe
        .missed()
        .saturating_mul(enabled.count().into())
}
