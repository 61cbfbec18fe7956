// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Enablings: from descriptions to ECBs at probes, and back.
//!
//! Enabling goes in three steps: the engine takes the clauses; every probe that a clause's description matches gets an
//! ECB linked; providers arm, one batch each, the probes that had none before. An ECB may be linked before its probe is
//! armed because a consumer that has not started ignores firings. If a later step fails, what the engine took (clauses,
//! EPIDs, options) stays with the consumer until its file is closed.
//!
//! The descriptions are retained: a probe that appears later (a kernel module is loaded) is enabled by whoever described it.
//!
//! A consumer goes in the opposite order: unlink, disarm what nobody wants any more, wait for an RCU grace period, free. No step of
//! it allocates, so that it cannot fail.

use super::ecb::{EcbRef, Tracer};
use super::probe::ProbeRef;
use super::provider::{Description, Failed};
use super::text::{refuse, Refusal, Text};
use super::State;
use crate::sys::rculist::{Links, Writer};
use core::fmt::Write;
use dtrace_engine::mem::sort::sort;
use dtrace_engine::{ClauseId, Enabling};
use dtrace_uapi::ioctl::{ProbeDesc, ReplDesc};
use dtrace_uapi::types::Epid;
use kernel::alloc::KVVec;
use kernel::prelude::*;
use kernel::sync::Arc;

/// A consumer's part of the framework's state.
pub struct Attached {
    tracer: Arc<Tracer>,
    links: Links<EcbRef>,
    /// Every probe that `links` is linked to, some more than once.
    probes: KVVec<ProbeRef>,
    retained: KVVec<(ProbeDesc, ClauseId)>,
}

impl State {
    /// Begins to know a consumer.
    pub fn attach(&mut self, tracer: Arc<Tracer>) -> Result {
        self.attached.push(
            Attached {
                tracer,
                links: Links::new(),
                probes: KVVec::new(),
                retained: KVVec::new(),
            },
            GFP_KERNEL,
        )?;
        Ok(())
    }

    /// Ends all that a consumer has enabled. What is returned is to be dropped without the framework's mutex, for that waits.
    pub fn detach(&mut self, tracer: &Arc<Tracer>) -> Option<Attached> {
        let at = self.index_of(tracer)?;
        let mut gone = self.attached.remove(at).ok()?;
        gone.links.unlink_if(&mut self.writer, |_| true);
        sort(&mut gone.probes, by_provider);
        let mut last = 0;
        let writer = &self.writer;
        gone.probes.retain(|probe| {
            let first = probe.id() != last;
            last = probe.id();
            first && probe.is_armed() && probe.ecbs().is_empty(writer)
        });
        self.disarm(&gone.probes);
        Some(gone)
    }

    /// Enables what `enabling` describes for a consumer; returns how many ECBs were made. `note` gets a word on
    /// probes that could not be armed.
    pub fn enable(
        &mut self,
        tracer: &Arc<Tracer>,
        enabling: &Enabling,
        note: &mut Text,
    ) -> Result<u32, Refusal> {
        let mut wanted = KVVec::with_capacity(enabling.clauses().len(), GFP_KERNEL)
            .map_err(|_| refuse(ENOMEM))?;
        let first = tracer.engine.add_enabling(enabling)?;
        for (n, clause) in enabling.clauses().iter().enumerate() {
            let id = ClauseId(first.0.wrapping_add(n as u32));
            let _ = wanted.push((clause.probe, id), GFP_KERNEL);
        }
        self.want(tracer, wanted, note)
    }

    /// Enables the clauses that a consumer has for one description for another one as well.
    pub fn replicate(
        &mut self,
        tracer: &Arc<Tracer>,
        repl: &ReplDesc,
        note: &mut Text,
    ) -> Result<u32, Refusal> {
        let mut wanted = KVVec::new();
        let from = Description::from(&repl.matching);
        let at = self
            .index_of(tracer)
            .and_then(|at| self.attached.get(at))
            .ok_or(refuse(ENODEV))?;
        for (desc, clause) in &at.retained {
            if Description::from(desc) == from {
                wanted
                    .push((repl.create, *clause), GFP_KERNEL)
                    .map_err(|_| refuse(ENOMEM))?;
            }
        }
        if wanted.is_empty() {
            return Err(Refusal::new(ENOENT, "no enabling has this description"));
        }
        self.want(tracer, wanted, note)
    }

    /// Enables probes that have just been created, for everybody who retains a description of them. A consumer for which that
    /// fails goes without.
    pub fn enable_new(&mut self, created: &[ProbeRef]) {
        if created.is_empty() {
            return;
        }
        for at in 0..self.attached.len() {
            // What failed was nobody's request, so there is nobody to tell.
            let _ = self.link_new(at, created);
        }
        let mut unarmed = KVVec::new();
        for probe in created {
            if !probe.is_armed() && !probe.ecbs().is_empty(&self.writer) {
                let _ = unarmed.push(*probe, GFP_KERNEL);
            }
        }
        if !unarmed.is_empty() {
            self.arm(&mut unarmed, &mut Text::new());
        }
    }

    fn link_new(&mut self, at: usize, created: &[ProbeRef]) -> Result<(), Refusal> {
        let Some(attached) = self.attached.get_mut(at) else {
            return Ok(());
        };
        for n in 0..attached.retained.len() {
            let Some((desc, clause)) = attached.retained.get(n) else {
                break;
            };
            let (desc, clause) = (*desc, *clause);
            if desc.id != 0 {
                continue;
            }
            let pattern = self.table.pattern(&Description::from(&desc));
            let mut found = KVVec::new();
            for probe in created.iter().filter(|probe| pattern.matches(probe)) {
                found.push(*probe, GFP_KERNEL).map_err(|_| refuse(ENOMEM))?;
            }
            if !found.is_empty() {
                attached.link(&mut self.writer, clause, &found, &mut None)?;
            }
        }
        Ok(())
    }

    /// Links and arms what `wanted` describes, all or nothing but for probes that cannot be armed.
    fn want(
        &mut self,
        tracer: &Arc<Tracer>,
        wanted: KVVec<(ProbeDesc, ClauseId)>,
        note: &mut Text,
    ) -> Result<u32, Refusal> {
        let at = self.index_of(tracer).ok_or(refuse(ENODEV))?;
        let attached = self.attached.get_mut(at).ok_or(refuse(ENODEV))?;
        attached
            .retained
            .reserve(wanted.len(), GFP_KERNEL)
            .map_err(|_| refuse(ENOMEM))?;
        let before = attached.links.linked();
        let mark = attached.probes.len();
        let mut made = None;
        let mut unarmed = match self.link_all(at, &wanted, &mut made) {
            Ok(unarmed) => unarmed,
            Err(refusal) => {
                self.unlink_from(at, mark, made);
                return Err(refusal);
            }
        };
        self.arm(&mut unarmed, note);
        let attached = self.attached.get_mut(at).ok_or(refuse(ENODEV))?;
        for entry in &wanted {
            // There is room: it was reserved.
            let _ = attached.retained.push(*entry, GFP_KERNEL);
        }
        Ok(attached.links.linked().saturating_sub(before) as u32)
    }

    /// Links what `wanted` describes; returns the probes that are to be armed. `made` gets the first EPID.
    fn link_all(
        &mut self,
        at: usize,
        wanted: &[(ProbeDesc, ClauseId)],
        made: &mut Option<Epid>,
    ) -> Result<KVVec<ProbeRef>, Refusal> {
        let mut unarmed = KVVec::new();
        for (desc, clause) in wanted {
            let found = self.find(desc)?;
            let attached = self.attached.get_mut(at).ok_or(refuse(ENODEV))?;
            unarmed
                .reserve(found.len(), GFP_KERNEL)
                .map_err(|_| refuse(ENOMEM))?;
            for probe in &found {
                if !probe.is_armed() && probe.ecbs().is_empty(&self.writer) {
                    unarmed
                        .push(*probe, GFP_KERNEL)
                        .map_err(|_| refuse(ENOMEM))?;
                }
            }
            attached.link(&mut self.writer, *clause, &found, made)?;
        }
        Ok(unarmed)
    }

    /// The probes that a clause's description means.
    fn find(&mut self, desc: &ProbeDesc) -> Result<KVVec<ProbeRef>, Refusal> {
        if desc.id != 0 {
            let mut found = KVVec::new();
            if let Some(probe) = self.table.get(desc.id) {
                found.push(probe, GFP_KERNEL).map_err(|_| refuse(ENOMEM))?;
            }
            return Ok(found);
        }
        let parts = Description::from(desc);
        self.provide(&parts).map_err(refuse)?;
        self.table
            .matches(&self.table.pattern(&parts))
            .map_err(refuse)
    }

    /// Takes back what a failed request has linked: the EPIDs from `made` on, at the probes from `mark` on.
    fn unlink_from(&mut self, at: usize, mark: usize, made: Option<Epid>) {
        if let (Some(attached), Some(made)) = (self.attached.get_mut(at), made) {
            attached
                .links
                .unlink_if(&mut self.writer, |entry| entry.ecb.epid >= made);
            attached.probes.truncate(mark);
        }
    }

    /// Has providers arm `probes`. Those that cannot be armed lose their ECBs.
    fn arm(&mut self, probes: &mut KVVec<ProbeRef>, note: &mut Text) {
        sort(probes, by_provider);
        for group in probes.chunk_by(|a, b| a.provider() == b.provider()) {
            let Some(provider) = group.first().and_then(|p| self.provider_at(p.provider())) else {
                continue;
            };
            let Ok(mut failed) = Failed::with_capacity(group.len()) else {
                self.give_up(group);
                continue;
            };
            provider.enable(group, &mut failed);
            for probe in group {
                probe.set_armed(true);
            }
            for (probe, _) in failed.as_slice() {
                probe.set_armed(false);
                probe.ecbs().unlink_all(&mut self.writer);
            }
            describe(failed.as_slice(), note);
        }
    }

    fn give_up(&mut self, group: &[ProbeRef]) {
        for probe in group {
            probe.ecbs().unlink_all(&mut self.writer);
        }
    }

    /// Has providers disarm `probes`, which are in the order of their providers.
    fn disarm(&mut self, probes: &[ProbeRef]) {
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
            probe.ecbs().unlink_all(&mut self.writer);
            if probe.is_armed() && armed.push(*probe, GFP_KERNEL).is_err() {
                // Slow, but sure.
                self.disarm(&[*probe]);
            }
        }
        self.disarm(&armed);
    }

    fn index_of(&self, tracer: &Arc<Tracer>) -> Option<usize> {
        self.attached
            .iter()
            .position(|a| Arc::ptr_eq(&a.tracer, tracer))
    }
}

impl Attached {
    /// Gives each of `probes` an ECB of `clause`.
    fn link(
        &mut self,
        writer: &mut Writer,
        clause: ClauseId,
        probes: &[ProbeRef],
        made: &mut Option<Epid>,
    ) -> Result<(), Refusal> {
        self.links.reserve(probes.len()).map_err(refuse)?;
        self.probes
            .reserve(probes.len(), GFP_KERNEL)
            .map_err(|_| refuse(ENOMEM))?;
        for probe in probes {
            let ecb = self.tracer.engine.bind(clause, probe.id())?;
            made.get_or_insert(ecb.epid);
            let entry = EcbRef {
                tracer: self.tracer.clone(),
                ecb,
            };
            self.probes
                .push(*probe, GFP_KERNEL)
                .map_err(|_| refuse(ENOMEM))?;
            self.links
                .push(writer, probe.ecbs(), entry)
                .map_err(refuse)?;
        }
        Ok(())
    }
}

/// Whether `a` comes before `b` in the order in which providers get their batches.
fn by_provider(a: &ProbeRef, b: &ProbeRef) -> bool {
    (a.provider(), a.id()) < (b.provider(), b.id())
}

/// Says which probes could not be armed, as far as there is room.
fn describe(failed: &[(ProbeRef, Error)], note: &mut Text) {
    let Some((probe, why)) = failed.first() else {
        return;
    };
    let names = probe.names();
    let part = |text| core::str::from_utf8(text).unwrap_or("?");
    // A text that is full stays as it is.
    let _ = write!(
        note,
        "{} probes could not be enabled, among them {}:{}:{}:{} (error {})",
        failed.len(),
        part(names.provider),
        part(names.module),
        part(names.func),
        part(names.name),
        why.to_errno().wrapping_neg(),
    );
}
