// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Enablings: from descriptions to ECBs at probes, and back.
//!
//! A request is taken over whole or not at all (INV-2). First, everything that can fail is done
//! aside: the engine has prepared the clauses ([`Pending`](dtrace_engine::Pending)), descriptions
//! are matched, EPIDs are given out ([`Binding`](dtrace_engine::Binding)), and room is reserved for
//! nodes and lists. A refusal up to here drops all of that, and the consumer is as it was. After
//! that there are only moves and stores of pointers: the consumer takes over the clauses and the
//! ECBs. Last, providers arm the probes that had no ECB ([`arming`](super::arming)). A probe that
//! cannot be armed is left out and named in the note of the call; this refuses nothing (INV-19).
//!
//! ECBs wait until their consumer begins to trace: [`publish`](State::publish) links them to their
//! probes, which cannot fail. What is enabled later is linked at once. When the consumer stops, is
//! killed or goes, its ECBs are removed ([`withdraw`](State::withdraw)). So a firing passes only
//! the ECBs of consumers that trace (INV-22).
//!
//! The framework knows a consumer from its first enabling on, so opening the device does not wait
//! for the framework's mutex.
//!
//! Descriptions are [retained](super::retained): a probe that appears later, for example with a
//! kernel module, is enabled for each consumer that has described it. There is no call to refuse
//! then, so a failure is counted in the consumer's status.
//!
//! A consumer is taken down in the opposite order: unlink, disarm the probes that no other consumer
//! wants, wait for an RCU grace period, free. No step allocates, so none can fail.

use super::consumer::Consumer;
use super::linking::Enablings;
use super::patience::{Patience, ASKED_AT_ONCE, PERMITTED};
use super::probe::ProbeRef;
use super::provider::Description;
use super::quota::Dues;
use super::retained::{Match, Retained, Wanted};
use super::state::State;
use super::text::{refuse, Refusal, Text};
use crate::sys::task;
use dtrace_uapi::glob;
use dtrace_uapi::ioctl::{ProbeDesc, ReplDesc, PRIV_KERNEL};
use kernel::alloc::KVVec;
use kernel::prelude::*;
use kernel::sync::Arc;

/// The new probes that a consumer may have.
struct Permitted {
    /// The probes; `None` for all of them.
    list: Option<KVVec<ProbeRef>>,
    /// Probes about which only the consumer's own task can ask, and another task is current.
    unknown: KVVec<ProbeRef>,
}

/// Whether a part of a description is a pattern and not one exact name.
fn is_pattern(name: &[u8]) -> bool {
    name.is_empty() || glob::is_glob(name)
}

/// Returns why the descriptions could not all be matched.
pub(super) fn too_long(error: Error) -> Refusal {
    match error {
        E2BIG => Refusal::new(E2BIG, "the descriptions take too long to match"),
        error => refuse(error),
    }
}

impl State {
    /// Makes the consumer known to the framework, if it is not. Returns its index in `consumers`.
    fn introduce(&mut self, consumer: &Arc<Consumer>) -> Result<usize> {
        if let Some(at) = self.index_of(consumer) {
            return Ok(at);
        }
        self.consumers.push(Enablings::new(consumer), GFP_KERNEL)?;
        Ok(self.consumers.len().saturating_sub(1))
    }

    /// Takes away all that a consumer has enabled. The caller must drop the result without the
    /// framework's mutex, because that waits for a grace period.
    pub fn withdraw(&mut self, consumer: &Arc<Consumer>) -> Option<Enablings> {
        let at = self.index_of(consumer)?;
        let mut gone = self.consumers.remove(at).ok()?;
        let unwanted = gone.unlink(&mut self.writer);
        self.disarm(unwanted);
        self.is_littered = true;
        Some(gone)
    }

    /// Links what a consumer has enabled. It traces from now on.
    pub fn publish(&mut self, consumer: &Arc<Consumer>) {
        if let Some(enablings) = self
            .index_of(consumer)
            .and_then(|at| self.consumers.get_mut(at))
        {
            enablings.begin(&mut self.writer);
        }
    }

    /// Enables what `wanted` describes for a consumer. Returns the number of ECBs whose probes are
    /// armed. Once nothing can fail any more, calls `commit`, which gives the clauses to the
    /// consumer. `note` gets a text about probes that could not be armed.
    pub fn enable(
        &mut self,
        consumer: &Arc<Consumer>,
        wanted: &Wanted,
        commit: impl FnOnce(),
        note: &mut Text,
    ) -> Result<u32, Refusal> {
        let at = self.introduce(consumer)?;
        self.want(at, wanted, commit, note)
    }

    /// Enables the clauses that a consumer has for one description for another description as well.
    /// Returns and notes the same as [`enable`](Self::enable).
    pub fn replicate(
        &mut self,
        consumer: &Arc<Consumer>,
        repl: &ReplDesc,
        note: &mut Text,
    ) -> Result<u32, Refusal> {
        if consumer.engine.is_over() {
            return Err(Refusal::new(EINVAL, "the tracing has ended"));
        }
        let at = self.introduce(consumer)?;
        let enablings = self.consumers.get(at).ok_or(refuse(ENODEV))?;
        let wanted = enablings.retained.replicas(repl)?;
        if wanted.list.is_empty() {
            return Err(Refusal::new(ENOENT, "no enabling has this description"));
        }
        self.want(at, &wanted, || {}, note)
    }

    /// Forgets the replicas for a description. Their ECBs stay until their probes or the consumer
    /// go.
    pub fn retract(&mut self, consumer: &Arc<Consumer>, desc: &ProbeDesc) -> Result<(), Refusal> {
        let enablings = self
            .index_of(consumer)
            .and_then(|at| self.consumers.get_mut(at));
        let paid = enablings.and_then(|enablings| enablings.retained.retract(desc));
        let paid = paid.ok_or(Refusal::new(
            ENOENT,
            "no enabling was replicated for this description",
        ))?;
        consumer.purse.refund(paid);
        Ok(())
    }

    /// Retains, links and arms what `wanted` describes. Once nothing can fail any more, calls
    /// `commit`.
    fn want(
        &mut self,
        at: usize,
        wanted: &Wanted,
        commit: impl FnOnce(),
        note: &mut Text,
    ) -> Result<u32, Refusal> {
        // All descriptions first have providers make probes, because a probe that is made for one
        // description may match another one.
        let enablings = self.consumers.get_mut(at).ok_or(refuse(ENODEV))?;
        let consumer = enablings.consumer.clone();
        let kept = wanted.list.iter().map(Retained::price);
        let paid = consumer.purse.pay(kept.fold(0, usize::saturating_add))?;
        enablings.retained.make_room(wanted)?;
        for retained in wanted.list.iter().filter(|r| r.desc.id == 0) {
            if task::is_killed() {
                return Err(refuse(EINTR));
            }
            let desc = Description::from(&retained.desc);
            self.provide(&consumer, &desc).map_err(too_long)?;
        }
        let found = self.find(at, wanted)?;
        let unarmed = self.unarmed(found.iter().map(|(probe, _)| *probe))?;
        let dues = self.pay(at, &found)?;
        self.note_kernel(&consumer, &found);
        let enablings = self.consumers.get_mut(at).ok_or(refuse(ENODEV))?;
        enablings.link(&mut self.writer, &found, dues, commit)?;
        enablings.retained.add(wanted);
        paid.keep();
        self.arm_wanted(unarmed, note);
        let armed = found.iter().filter(|(probe, _)| probe.is_armed()).count();
        Ok(u32::try_from(armed).unwrap_or(u32::MAX))
    }

    /// Returns the probes that are described and that the consumer may use, with their clauses. A
    /// description that matches only probes which the consumer may not use is refused.
    fn find(&self, at: usize, wanted: &Wanted) -> Result<KVVec<Match>, Refusal> {
        let enablings = self.consumers.get(at).ok_or(refuse(ENODEV))?;
        let permits = |probe: &ProbeRef| {
            let permits = self.permits_probe(&enablings.consumer, probe);
            // An error means that the process has ended, or that the answer is not known.
            permits.unwrap_or(false)
        };
        let mut found = KVVec::new();
        let patience = enablings.consumer.patience(self.occasion);
        for Retained { desc, clause, .. } in &wanted.list {
            if task::is_killed() {
                return Err(refuse(EINTR));
            }
            let mut matches = match desc.id {
                0 => {
                    let pattern = self.table.pattern(&Description::from(desc));
                    let matches = self.table.matches(&pattern, &patience);
                    matches.map_err(too_long)?
                }
                id => {
                    let mut one = KVVec::new();
                    match self.table.get(id) {
                        Some(probe) => one.push(probe, GFP_KERNEL)?,
                        // The probe has gone since the consumer got its id.
                        None => enablings.consumer.miss(1),
                    }
                    one
                }
            };
            // A pattern does not mean probes that were made to order for another user (INV-33).
            if desc.id == 0 && is_pattern(Description::from(desc).name) {
                let user = enablings.consumer.payer.user();
                matches.retain(|probe| probe.is_for(user));
            }
            // A probe that the consumer may not know of is no match. To refuse it would tell that
            // it exists.
            if enablings.consumer.rights.is_some() {
                let steps = ASKED_AT_ONCE.saturating_mul(matches.len() as u64);
                patience.take(steps).map_err(too_long)?;
                matches.retain(|probe| self.may_list(&enablings.consumer, probe));
            }
            let before = found.len();
            found.reserve(matches.len(), GFP_KERNEL)?;
            for probe in matches.iter().filter(|probe| permits(probe)) {
                found.push((*probe, *clause), GFP_KERNEL)?;
            }
            if !enablings.may_have(found.len()) {
                return Err(Refusal::new(ENOSPC, "too many enabled probes"));
            }
            if found.len() == before && !matches.is_empty() {
                return Err(self.refusal(&enablings.consumer, &matches));
            }
        }
        Ok(found)
    }

    /// Pays for the ECBs, timers and rates that a consumer is about to get.
    fn pay(&self, at: usize, found: &[Match]) -> Result<Dues, Refusal> {
        let enablings = self.consumers.get(at).ok_or(refuse(ENODEV))?;
        let consumer = &enablings.consumer;
        let mut dues = consumer.payer.dues();
        dues.add(found.len())?;
        if consumer.sees_all {
            return Ok(dues);
        }
        let are_timers = found.iter().filter(|(probe, _)| self.hz(probe).is_some());
        dues.add_timers(are_timers.count())?;
        // A member has few timers, because `add_timers` has just limited them. A probe's rate
        // counts once, however many clauses are at it.
        for (n, (probe, _)) in found.iter().enumerate() {
            let Some(hz) = self.hz(probe) else {
                continue;
            };
            let earlier = found.get(..n).unwrap_or_default();
            let is_first = earlier.iter().all(|(other, _)| other.id() != probe.id());
            if is_first && !enablings.are_at(probe) {
                dues.add_hz(hz)?;
            }
        }
        Ok(dues)
    }

    /// Notes with a consumer that it gets probes in the kernel's code, if it does.
    fn note_kernel(&self, consumer: &Consumer, found: &[Match]) {
        let is_in_kernel = |(probe, _): &Match| {
            let provider = self.provider_at(probe.provider());
            provider.is_some_and(|provider| provider.privileges() & PRIV_KERNEL != 0)
        };
        if !consumer.is_in_kernel() && found.iter().any(is_in_kernel) {
            consumer.enter_kernel();
        }
    }

    /// Enables probes that have just been created, for every consumer that retains a description of
    /// them. If they were made for `whom`, other consumers get them only by descriptions whose
    /// provider is a pattern without a number at its end ([`Retained::is_anybodys`]). A consumer
    /// for which this fails goes without, and its status counts that.
    ///
    /// A pattern of another user does not match a probe that was [made to order for a
    /// member](super::probe::Probe::is_for).
    pub fn enable_new(&mut self, created: &[ProbeRef], whom: Option<&Arc<Consumer>>) {
        // All were made together, for the same user.
        let Some(first) = created.first() else {
            return;
        };
        let owner = whom.map(|consumer| self.index_of(consumer));
        // The consumer whose call this is comes first. Otherwise the comparisons for other
        // consumers of its user could use up its allowance.
        let others = (0..self.consumers.len()).filter(|at| owner != Some(Some(*at)));
        for at in Iterator::chain(owner.flatten().into_iter(), others) {
            let enablings = self.consumers.get(at);
            if enablings.is_some_and(|a| !first.is_for(a.consumer.payer.user())) {
                continue;
            }
            let which = match owner {
                Some(owner) if owner != Some(at) => Retained::is_anybodys,
                _ => Retained::is_by_name,
            };
            self.link_new(at, created, which);
        }
        self.arm_new(created);
    }

    /// Notes that the probes of `module` of the provider `index` could not be created, with every
    /// consumer that retains a description which may match them. Their number is unknown, so each
    /// description counts as one.
    pub fn miss(&self, index: u32, module: &[u8]) {
        let Some(provider) = self.provider_at(index) else {
            return;
        };
        for enablings in &self.consumers {
            let described = enablings
                .retained
                .count_for(provider.name().as_bytes(), module);
            if described > 0 && self.permits(&enablings.consumer.engine, index) {
                enablings.consumer.miss(described as u64);
            }
        }
    }

    fn link_new(&mut self, at: usize, created: &[ProbeRef], which: fn(&Retained) -> bool) {
        let (Some(enablings), Some(first)) = (self.consumers.get(at), created.first()) else {
            return;
        };
        let consumer = enablings.consumer.clone();
        let may_be = self.permits(&consumer.engine, first.provider());
        if !may_be || !enablings.retained.has(which) {
            return;
        }
        // The call that creates the probes may be another consumer's. Whether its caller is killed
        // does not matter here.
        let patience = consumer.patience(self.occasion).deaf();
        let Ok(Permitted { list, unknown }) = self.permitted(&consumer, created, &patience) else {
            return consumer.miss(1);
        };
        let created = list.as_deref().unwrap_or(created);
        let Some(enablings) = self.consumers.get_mut(at) else {
            return;
        };
        let mut found = KVVec::new();
        let mut count = 0usize;
        let told = enablings
            .retained
            .each_new(&self.table, &unknown, which, &patience, |_| {
                consumer.miss(1)
            })
            .and_then(|()| {
                enablings
                    .retained
                    .each_new(&self.table, created, which, &patience, |one| {
                        count = count.saturating_add(1);
                        // If there was no room or memory for one, do not try the others: the consumer
                        // gets none of them.
                        if found.len().saturating_add(1) == count && enablings.may_have(count) {
                            let _ = found.push(one, GFP_KERNEL);
                        }
                    })
            });
        drop(patience);
        if told.is_err() {
            return consumer.miss(1);
        }
        if found.len() != count {
            return consumer.miss(count as u64);
        }
        if count == 0 {
            return;
        }
        let paid = self.pay(at, &found);
        self.note_kernel(&consumer, &found);
        let linked = paid.and_then(|dues| {
            let enablings = self.consumers.get_mut(at).ok_or(refuse(ENODEV))?;
            enablings.link(&mut self.writer, &found, dues, || {})
        });
        if linked.is_err() {
            consumer.miss(count as u64);
        }
    }

    /// Returns those of `created` that a consumer may have.
    fn permitted(
        &self,
        consumer: &Consumer,
        created: &[ProbeRef],
        patience: &Patience,
    ) -> Result<Permitted> {
        let mut permitted = Permitted {
            list: None,
            unknown: KVVec::new(),
        };
        if consumer.reads_all() {
            return Ok(permitted);
        }
        let mut list = KVVec::new();
        patience.take(PERMITTED.saturating_mul(created.len() as u64))?;
        for probe in created {
            match self.permits_probe(consumer, probe) {
                Ok(true) => list.push(*probe, GFP_KERNEL)?,
                Err(error) if error == EAGAIN => permitted.unknown.push(*probe, GFP_KERNEL)?,
                _ => {}
            }
        }
        permitted.list = Some(list);
        Ok(permitted)
    }

    fn index_of(&self, consumer: &Arc<Consumer>) -> Option<usize> {
        self.consumers
            .iter()
            .position(|a| Arc::ptr_eq(&a.consumer, consumer))
    }
}
