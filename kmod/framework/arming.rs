// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Arming: telling providers which probes have got their first ECB, and which have lost their last.
//!
//! Providers get batches, one a provider, since what they do costs by the call. A provider may fail for single probes; those
//! lose their ECBs again, and whoever wanted them is told: by the note of its call, or, where no call of its own was
//! the cause, by its status. The memory that arming needs is allocated before anything is linked ([`Unarmed`]), so that
//! this step cannot fail as a whole.

use super::probe::ProbeRef;
use super::provider::{by_provider, Failed};
use super::state::State;
use super::text::Text;
use crate::sys::rculist::Writer;
use core::fmt::Write;
use dtrace_engine::mem::sort::sort;
use kernel::alloc::KVVec;
use kernel::prelude::*;

/// Probes that are to be armed, in the order of their providers, and room for those that cannot be.
pub struct Unarmed {
    probes: KVVec<ProbeRef>,
    failed: Failed,
}

impl State {
    /// Those of `probes` that nobody has an ECB at.
    pub(super) fn unarmed(&self, probes: impl Iterator<Item = ProbeRef>) -> Result<Unarmed> {
        self.collect(probes.filter(|probe| probe.ecbs().is_empty(&self.writer)))
    }

    fn collect(&self, probes: impl Iterator<Item = ProbeRef>) -> Result<Unarmed> {
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
        self.arm(unarmed, |writer, failed| {
            for (probe, _) in failed {
                probe.ecbs().unlink_all(writer, |_| {});
            }
            describe(failed, note);
        });
    }

    /// Arms those of `created` that somebody has an ECB at.
    pub(super) fn arm_new(&mut self, created: &[ProbeRef]) {
        let wanted = |probe: &ProbeRef| !probe.ecbs().is_empty(&self.writer);
        match self.collect(created.iter().copied().filter(wanted)) {
            Ok(unarmed) => self.arm(unarmed, |writer, failed| {
                failed.iter().for_each(|(probe, _)| miss(writer, probe));
            }),
            Err(_) => {
                for probe in created.iter().filter(|probe| !probe.is_armed()) {
                    miss(&mut self.writer, probe);
                }
            }
        }
    }

    /// Has providers arm probes; `lost` is told which could not be.
    fn arm(
        &mut self,
        mut unarmed: Unarmed,
        mut lost: impl FnMut(&mut Writer, &[(ProbeRef, Error)]),
    ) {
        let Unarmed { probes, failed } = &mut unarmed;
        for group in probes.chunk_by(|a, b| a.provider() == b.provider()) {
            let Some(provider) = group.first().and_then(|p| self.provider_at(p.provider())) else {
                continue;
            };
            failed.clear();
            provider.enable(group, failed);
            for probe in group {
                probe.set_armed(true);
            }
            for (probe, _) in failed.as_slice() {
                probe.set_armed(false);
            }
            lost(&mut self.writer, failed.as_slice());
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
        let ours = |probe: &&ProbeRef| probe.provider() == index && probe.is_live();
        let mut armed = KVVec::new();
        for probe in probes.iter().filter(ours) {
            probe.kill();
            probe.ecbs().unlink_all(&mut self.writer, |_| {});
            if probe.is_armed() && armed.push(*probe, GFP_KERNEL).is_err() {
                // Slow, but sure.
                self.disarm(&[*probe]);
            }
        }
        self.disarm(&armed);
    }
}

/// Takes a probe's ECBs away, whose consumers go without it.
fn miss(writer: &mut Writer, probe: ProbeRef) {
    probe
        .ecbs()
        .unlink_all(writer, |entry| entry.tracer.miss(1));
}

/// Says which probes could not be armed, as far as there is room.
fn describe(failed: &[(ProbeRef, Error)], note: &mut Text) {
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
