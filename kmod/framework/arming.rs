// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Arming: telling providers which probes have got their first ECB, and which have lost their last.
//!
//! It is done when a consumer describes its probes, not when it begins to trace: nobody knows before whether a probe can be armed, and
//! whoever asks for it is to be told. What waits for `GO` is linked to no list yet, so that each probe counts the ECBs that there are for it.
//! Outside of this file and [`enabling`](super::enabling), that is to say whenever the framework's mutex is free, a probe is armed exactly
//! while it has any.
//!
//! Providers get batches, one a provider, since what they do costs by the call. A provider may fail for single probes; those
//! lose their ECBs again, and whoever wanted them is told: by the note of its call, or, where no call of its own was
//! the cause, by its status. The memory that arming needs is allocated before anything is linked ([`Unarmed`]), so that
//! this step cannot fail as a whole.

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

/// Probes that are to be armed, in the order of their providers, and room for those that cannot be.
pub struct Unarmed {
    probes: KVVec<ProbeRef>,
    failed: Failed,
}

impl State {
    /// Those of `probes` that are not armed.
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

    /// Arms what one consumer has asked for; `note` says what could not be.
    pub(super) fn arm_wanted(&mut self, unarmed: Unarmed, note: &mut Text) {
        let failed = self.arm(unarmed);
        self.give_up(failed.probes(), |_| {});
        let of_one_provider = |a: &Failure, b: &Failure| a.0.provider() == b.0.provider();
        for group in failed.as_slice().chunk_by(of_one_provider) {
            describe(group, note);
        }
    }

    /// Arms those of `created` that somebody has an ECB for. Consumers go without those for which that fails.
    pub(super) fn arm_new(&mut self, created: &[ProbeRef]) {
        let wanted = created.iter().copied().filter(|probe| probe.is_wanted());
        let miss = |gone: &Enabled| gone.tracer.miss(gone.count().into());
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

    /// Has providers arm probes; gives those that could not be.
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

    /// Takes the ECBs away that there are for `probes`, which are not armed or not there; `whose` is told who goes without.
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
            for attached in &mut self.attached {
                attached.give_up(&mut self.writer, &mut gone);
            }
        }
    }

    /// Has providers disarm `probes`, which are in the order of their providers.
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

    /// Removes probes of a provider.
    pub fn remove(&mut self, index: u32, probes: &[ProbeRef]) {
        let ours = probes.iter().filter(|probe| probe.provider() == index);
        let mut armed = KVVec::new();
        for probe in ours.clone().filter(|probe| probe.is_live()) {
            probe.kill();
            if probe.is_armed() && armed.push(*probe, GFP_KERNEL).is_err() {
                // Slow, but sure.
                self.disarm(&[*probe]);
            }
        }
        self.give_up(ours.copied(), |_| {});
        self.disarm(&armed);
    }

    /// Removes probes of a provider for good: their memory is used again, for others of other ids.
    ///
    /// The provider must have made sure that whoever fires one of them from now on has begun to do so, and is not preempted until it has
    /// ended (an RCU read-side critical section, say); what disarms them may do that. It may not use them when the framework's mutex is
    /// free again. Consumers that have records of them are told no names any more.
    pub fn retire(&mut self, index: u32, probes: &[ProbeRef]) {
        self.remove(index, probes);
        for probe in probes.iter().filter(|probe| probe.provider() == index) {
            self.table.retire(probe);
        }
        if self.is_littered || self.table.waiters() >= WAITERS {
            for attached in &mut self.attached {
                attached.shed(&mut self.writer);
            }
            self.table.sweep();
            self.is_littered = false;
        }
    }

    /// Retires the probes that nobody has asked for any more.
    pub(super) fn remove_abandoned(&mut self, index: u32, provider: &dyn Provider) {
        self.retire_each(index, || provider.abandoned());
    }

    /// Retires what `next` gives. Each retirement waits for who is about to fire, so many go together: as many as there is memory for.
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
            // Who has that many may have thousands.
            if size == BATCH {
                let _ = many.resize(BIG_BATCH, first, GFP_KERNEL);
            }
        }
    }
}

/// Puts `first` and what `next` gives into a batch, as far as there is room; how many.
fn fill(
    batch: &mut [ProbeRef],
    first: ProbeRef,
    mut next: impl FnMut() -> Option<ProbeRef>,
) -> usize {
    let mut first = Some(first);
    let given = iter::from_fn(|| first.take().or_else(&mut next));
    let mut size = 0usize;
    // Where there is no room nothing is asked for.
    for (slot, probe) in batch.iter_mut().zip(given) {
        *slot = probe;
        size = size.saturating_add(1);
    }
    size
}

/// Probes that are retired at once, at first.
const BATCH: usize = 64;
/// Probes that are retired at once where there are many: 64 KiB of references.
const BIG_BATCH: usize = 8192;
/// So many retired probes may wait before somebody looks who holds them: looking takes as long as there are ECBs and waiting probes.
const WAITERS: usize = 1024;

/// Says which probes could not be armed, as far as there is room.
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
    // A text that is full stays as it is.
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
