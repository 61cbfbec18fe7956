// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Arming: tells providers which probes have got their first ECB and which have lost their last
//! one.
//!
//! Probes are armed when a consumer enables them and not when it begins to trace, because only
//! arming tells whether a probe can be had, and the call has to report that (INV-22). ECBs that
//! wait for `GO` are on no list yet, so each probe counts the consumers that have ECBs at it.
//! Whenever the framework's mutex is free, a probe is armed if and only if that count is not zero.
//! Only this file and [`enabling`](super::enabling) break this while they hold the mutex.
//!
//! Each provider gets all of its probes in one call, because its work costs per call. A provider
//! may fail for single probes. These lose their ECBs again, and their consumers are notified: by
//! the note of their call or, if no call of theirs was the cause, by their status. The memory that
//! arming needs is allocated before anything is linked ([`Unarmed`]), so this step cannot fail as a
//! whole.

use super::enabled::Enabled;
use super::probe::ProbeRef;
use super::provider::{by_provider, Failed, Failure, Provider};
use super::state::State;
use super::text::Text;
use core::fmt::Write;
use core::iter;
use dtrace_engine::mem::sort::sort;
use kernel::alloc::KVVec;
use kernel::prelude::*;

/// Probes to arm, sorted by provider, and room for those that cannot be armed.
pub struct Unarmed {
    probes: KVVec<ProbeRef>,
    failed: Failed,
}

impl State {
    /// Returns those of `probes` that are not armed, each once.
    pub(super) fn unarmed(&self, probes: impl Iterator<Item = ProbeRef>) -> Result<Unarmed> {
        let mut list = KVVec::new();
        for probe in probes.filter(|probe| !probe.is_armed()) {
            list.push(probe, GFP_KERNEL)?;
        }
        sort(&mut list, by_provider);
        let mut last = 0;
        list.retain(|probe: &mut ProbeRef| core::mem::replace(&mut last, probe.id()) != probe.id());
        let failed = Failed::with_capacity(list.len())?;
        Ok(Unarmed {
            probes: list,
            failed,
        })
    }

    /// Arms the probes that one consumer has requested. `note` gets a text about those that could
    /// not be armed.
    pub(super) fn arm_wanted(&mut self, unarmed: Unarmed, note: &mut Text) {
        let failed = self.arm(unarmed);
        self.give_up(failed.probes(), |_| {});
        let of_one_provider = |a: &Failure, b: &Failure| a.0.provider() == b.0.provider();
        for group in failed.as_slice().chunk_by(of_one_provider) {
            describe(group, note);
        }
    }

    /// Arms those of `created` that have ECBs. If that fails for a probe, its consumers lose their
    /// ECBs there, and their status counts them.
    pub(super) fn arm_new(&mut self, created: &[ProbeRef]) {
        let wanted = created.iter().copied().filter(|probe| probe.is_wanted());
        let miss = |gone: &Enabled| gone.consumer.miss(gone.count().into());
        match self.unarmed(wanted) {
            Ok(unarmed) => {
                let failed = self.arm(unarmed);
                self.give_up(failed.probes(), miss);
            }
            Err(_) => {
                let unarmed = created.iter().copied().filter(|probe| !probe.is_armed());
                self.give_up(unarmed, miss);
            }
        }
    }

    /// Has providers arm probes. Returns those that could not be armed.
    fn arm(&mut self, unarmed: Unarmed) -> Failed {
        let Unarmed { probes, mut failed } = unarmed;
        for group in probes.chunk_by(|a, b| a.provider() == b.provider()) {
            let Some(provider) = group.first().and_then(|p| self.provider_at(p.provider())) else {
                continue;
            };
            provider.enable(group, &mut failed);
            for probe in group {
                probe.set_armed(true);
            }
        }
        for probe in failed.probes() {
            probe.set_armed(false);
        }
        failed
    }

    /// Takes away all ECBs at `probes`, which are not armed or not live. Calls `whose` with what
    /// each consumer loses.
    fn give_up(&mut self, probes: impl Iterator<Item = ProbeRef>, whose: impl Fn(&Enabled)) {
        let mut gone = |enabled: &Enabled| {
            enabled.probe.unwant(enabled);
            whose(enabled);
        };
        let mut waiting = false;
        for probe in probes {
            probe.enabled().unlink_all(&mut self.writer, &mut gone);
            waiting |= probe.is_wanted();
        }
        if waiting {
            for enablings in &mut self.consumers {
                enablings.give_up(&mut self.writer, &mut gone);
            }
        }
    }

    /// Has providers disarm `probes`, which are sorted by provider.
    pub(super) fn disarm(&mut self, probes: &[ProbeRef]) {
        for group in probes.chunk_by(|a, b| a.provider() == b.provider()) {
            if let Some(provider) = group.first().and_then(|p| self.provider_at(p.provider())) {
                provider.disable(group);
            }
            for probe in group {
                probe.set_armed(false);
            }
        }
    }

    /// Removes probes of a provider: kills them, takes away their ECBs and disarms them. The
    /// provider may create them again.
    pub fn remove(&mut self, index: u32, probes: &[ProbeRef]) {
        let ours = probes.iter().filter(|probe| probe.provider() == index);
        let mut armed = KVVec::new();
        for probe in ours.clone().filter(|probe| probe.is_live()) {
            probe.kill();
            if probe.is_armed() && armed.push(*probe, GFP_KERNEL).is_err() {
                // No memory to batch it: one call for this probe alone. Slower, but it cannot fail.
                self.disarm(&[*probe]);
            }
        }
        self.give_up(ours.copied(), |_| {});
        self.disarm(&armed);
    }

    /// Removes probes of a provider for good. Their memory is used again for other probes, with
    /// other ids (INV-21).
    ///
    /// The provider must have made sure that no new firing of these probes begins, and that each
    /// firing that has begun ends without being preempted, for example in an RCU read-side critical
    /// section. The code that disarms the probes may see to that. Once the framework's mutex is
    /// free again, the provider must not use the probes. Consumers that have records of them get no
    /// names for them any more.
    pub fn retire(&mut self, index: u32, probes: &[ProbeRef]) {
        self.remove(index, probes);
        for probe in probes.iter().filter(|probe| probe.provider() == index) {
            self.table.retire(probe);
        }
        if self.is_littered || self.table.waiters() >= WAITERS {
            for enablings in &mut self.consumers {
                enablings.shed(&mut self.writer);
            }
            self.table.sweep();
            self.is_littered = false;
        }
    }

    /// Retires the provider's probes that no consumer requests any more.
    pub(super) fn remove_abandoned(&mut self, index: u32, provider: &dyn Provider) {
        self.retire_each(index, || provider.abandoned());
    }

    /// Retires the probes that `next` returns. Each retirement waits for firings that are about to
    /// begin, so as many probes as there is memory for are retired together.
    pub(super) fn retire_each(&mut self, index: u32, mut next: impl FnMut() -> Option<ProbeRef>) {
        let mut many = KVVec::new();
        while let Some(first) = next() {
            let mut few = [first; BATCH];
            let batch = match many.is_empty() {
                true => few.as_mut_slice(),
                false => many.as_mut_slice(),
            };
            let size = fill(batch, first, &mut next);
            self.retire(index, batch.get(..size).unwrap_or(&[]));
            // A full batch suggests that there are thousands of probes. Without memory the small
            // batch stays in use.
            if size == BATCH {
                let _ = many.resize(BIG_BATCH, first, GFP_KERNEL);
            }
        }
    }
}

/// Fills a batch with `first` and the probes that `next` returns, as far as there is room. Returns
/// their number.
fn fill(
    batch: &mut [ProbeRef],
    first: ProbeRef,
    mut next: impl FnMut() -> Option<ProbeRef>,
) -> usize {
    let mut first = Some(first);
    let given = iter::from_fn(|| first.take().or_else(&mut next));
    let mut size = 0usize;
    // The batch is the first iterator of the zip, so `next` is not called for a probe that has no
    // room.
    for (slot, probe) in batch.iter_mut().zip(given) {
        *slot = probe;
        size = size.saturating_add(1);
    }
    size
}

/// Number of probes that are retired together at first.
const BATCH: usize = 64;
/// Number of probes that are retired together if there are many: 64 KiB of references.
const BIG_BATCH: usize = 8192;
/// Number of retired probes that may wait before a sweep looks which of them are still held. A
/// sweep walks all ECBs and all waiting probes.
const WAITERS: usize = 1024;

/// Appends to `note` which probes of one provider could not be armed, as far as there is room.
fn describe(failed: &[Failure], note: &mut Text) {
    let Some((probe, why)) = failed.first() else {
        return;
    };
    let names = probe.names();
    let part = |text| core::str::from_utf8(text).unwrap_or("?");
    let (before, plural) = (
        if note.as_str().is_empty() { "" } else { "; " },
        if failed.len() == 1 { "" } else { "s" },
    );
    // A full text stays as it is.
    let _ = write!(
        note,
        "{before}{} probe{plural} could not be enabled, among them {}:{}:{}:{} (error {})",
        failed.len(),
        part(names.provider),
        part(names.module),
        part(names.func),
        part(names.name),
        why.to_errno().wrapping_neg(),
    );
}
