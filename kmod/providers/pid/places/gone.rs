// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Places that a process no longer has: a library was unmapped, and other code may be mapped there,
//! or the process has removed a registration.
//!
//! A place is valid while the process has the same part of the same file at its address. The probes
//! of an invalid place are retired. Then the place is removed, so that its address can become
//! another place.

use super::{Made, Place, Processes, Watched};
use crate::framework::process::{Gone, Stale};
use crate::framework::ProbeRef;
use crate::sys::process::Process;
use kernel::alloc::KVVec;
use kernel::prelude::*;

impl Processes {
    /// The addresses of the places that a process no longer has, in order.
    /// `begin` is called with the number of places before they are looked up.
    pub fn review(
        &self,
        pid: u32,
        process: &Process,
        begin: &dyn Fn(usize) -> Result,
    ) -> Result<Stale> {
        let mut addresses = KVVec::new();
        let watched = self.find(pid).filter(|w| w.process.is(process));
        begin(watched.map_or(0, |watched| watched.places.len()))?;
        for place in watched.map_or(&[][..], |watched| &watched.places) {
            let Place { site, .. } = place;
            if !site.text.is_at(process, site.address) {
                addresses.push(site.address, GFP_KERNEL)?;
            }
        }
        Ok(Stale {
            pid,
            which: Gone::Instructions(addresses),
            looked_at: 0,
        })
    }

    /// The probes of a process that came with this registration, for the first of the process'
    /// numbers that has any.
    pub fn unregister(&self, process: &Process, number: u32) -> Option<Stale> {
        let has_any = |watched: &&Watched| {
            let mut probes = watched.probes.iter();
            watched.process.is(process)
                && probes.any(|made| made.probe.is_live() && made.is_of(number))
        };
        Some(Stale {
            pid: self.all.iter().find(has_any)?.number,
            which: Gone::Registration(number),
            looked_at: 0,
        })
    }

    /// Returns the next of these probes, after removing it from its places.
    pub fn leave(&mut self, stale: &mut Stale) -> Option<ProbeRef> {
        let watched = self.find(stale.pid)?;
        let is_gone = |made: &Made| match &stale.which {
            Gone::Instructions(addresses) => {
                let mut places = made.places.iter();
                places.any(|address| addresses.binary_search(address).is_ok())
            }
            Gone::Registration(number) => made.is_of(*number),
        };
        let rest = watched.probes.get(stale.looked_at..)?;
        let at = rest
            .iter()
            .position(|made| made.probe.is_live() && is_gone(made))?;
        let made = rest.get(at)?;
        stale.looked_at = stale.looked_at.saturating_add(at).saturating_add(1);
        made.leave(&watched.places);
        Some(made.probe)
    }

    /// Gives back the payment for probes that have been retired, and removes these probes and
    /// places without probes.
    pub fn bury(&mut self, stale: &Stale) {
        self.has_changed = true;
        let Some(watched) = self.all.iter_mut().find(|w| w.number == stale.pid) else {
            return;
        };
        for made in watched.probes.iter().filter(|made| !made.probe.is_live()) {
            for share in &mut watched.shares {
                if made.askers.contains(&share.consumer) {
                    share.charge.give_back(made.places.len());
                }
            }
        }
        watched.clean();
    }
}
