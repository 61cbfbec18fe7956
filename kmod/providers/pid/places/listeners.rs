// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Places at which consumers listen.
//!
//! A listener arms its place as a probe does, whether the place has probes or not. When the process
//! has ended, its listeners are removed with it.

use super::armed::{arm, disarm, Wish};
use super::site::{At, Site};
use super::{find, in_order, Place, Processes, Watched};
use crate::framework::{Ear, Post};
use crate::sys::breakpoint::{Carrier, Traps};
use crate::sys::process::Process;
use kernel::alloc::KVVec;
use kernel::prelude::*;

impl Processes {
    /// Makes `ear` hear of every time that a process comes to an instruction.
    pub fn listen(&mut self, post: Post, ear: Ear) -> Result {
        self.has_changed = true;
        let known = self.all.iter().position(|w| w.process.is(&post.process));
        let Post {
            process,
            address,
            text,
            instruction,
            is_users,
            payer,
        } = post;
        let site = Site::new(address, text, instruction);
        let at = match known {
            Some(at) => at,
            None => {
                self.all.push(Watched::new(0, process), GFP_KERNEL)?;
                self.all.len().saturating_sub(1)
            }
        };
        let Self { all, traps, .. } = self;
        let watched = all.get_mut(at).ok_or(ENODEV)?;
        // With `PREEMPT_RT` only uprobes' handler tells listeners, so the breakpoint must not be
        // kept from uprobes.
        let wish = Wish {
            counter: 0,
            is_kept: is_users && !cfg!(CONFIG_PREEMPT_RT = "y"),
            payer: Some(&payer),
        };
        let listens = watched.listen(traps, site, wish, ear);
        if listens.is_err() {
            self.sweep();
        }
        listens
    }

    /// Stops `ear` from hearing of these places.
    pub fn ignore(&mut self, posts: &mut dyn Iterator<Item = (&Process, u64)>, ear: &Ear) {
        self.has_changed = true;
        let mut carriers = KVVec::new();
        for (process, address) in posts {
            let mut known = self.all.iter_mut().filter(|w| w.process.is(process));
            if let Some(carrier) = known.find_map(|watched| watched.ignore(address, ear)) {
                // If there is no memory for it here, it is removed alone, when it is dropped.
                let _ = carriers.push(carrier, GFP_KERNEL);
            }
        }
        Carrier::remove(carriers);
        self.sweep();
    }
}

impl Watched {
    fn listen(&mut self, traps: &Traps, site: Site, wish: Wish<'_>, ear: Ear) -> Result {
        let address = site.address;
        if find(&self.places, address).is_none() {
            self.places.push(Place::new(site)?, GFP_KERNEL)?;
            in_order(&mut self.places);
        }
        let at = find(&self.places, address).ok_or(ENODEV)?;
        let site = self.places.get(at).ok_or(ENODEV)?.site.clone();
        let listens = site.listen(ear.clone()).and_then(|()| {
            let armed = self.arm_at(traps, at, address, wish);
            armed.inspect_err(|_| {
                site.ignore(&ear);
            })
        });
        self.tidy();
        listens
    }

    /// Creates and sets the breakpoint of a place.
    fn arm_at(&mut self, traps: &Traps, at: usize, address: u64, wish: Wish<'_>) -> Result {
        let mut old = KVVec::new();
        arm(
            traps,
            &mut self.places,
            &self.process,
            address,
            wish,
            &mut old,
        )?;
        Carrier::remove(old);
        // If the breakpoint of this place could not be set, that is found below.
        let _ = self.set();
        let Some(error) = self.places.get(at).and_then(Place::failure) else {
            return Ok(());
        };
        drop(disarm(&mut self.places, address));
        // Probes at the place may have lost their breakpoint to this one.
        self.restore(traps);
        Err(error)
    }

    /// Removes a listener from a place. Returns the breakpoint if the place needs it no more.
    fn ignore(&mut self, address: u64, ear: &Ear) -> Option<Carrier<At>> {
        let at = find(&self.places, address)?;
        if !self.places.get(at)?.site.ignore(ear) {
            return None;
        }
        let carrier = disarm(&mut self.places, address);
        self.tidy();
        carrier
    }

    /// Whether nobody uses the process' probes and nobody listens in it.
    pub(super) fn is_unused(&self) -> bool {
        let is_listened_at = || self.places.iter().any(|place| place.site.is_listened_at());
        self.shares.is_empty()
            && !self.has_unwanted
            && (self.process.is_over() || !is_listened_at())
    }
}
