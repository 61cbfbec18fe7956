// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Places that somebody listens at.
//!
//! Such a place is armed as by a probe, whether it has probes or not. When a process is over its listeners are dropped with it.

use super::armed::{arm, disarm, Wish};
use super::site::{At, Site};
use super::{find, in_order, Place, Processes, Watched};
use crate::framework::{Ear, Post};
use crate::sys::breakpoint::{Carrier, Traps};
use crate::sys::process::Process;
use kernel::alloc::KVVec;
use kernel::prelude::*;

impl Processes {
    /// Has one told wherever a process comes to an instruction.
    pub fn listen(&mut self, post: Post, ear: Ear) -> Result {
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
        // There they are told by uprobes' handler alone.
        let wish = Wish {
            counts: false,
            is_kept: is_users && !cfg!(CONFIG_PREEMPT_RT = "y"),
            payer: Some(&payer),
        };
        let listens = watched.listen(traps, site, wish, ear);
        if listens.is_err() {
            self.sweep();
        }
        listens
    }

    /// Tells it no more of these.
    pub fn ignore(&mut self, posts: &mut dyn Iterator<Item = (&Process, u64)>, ear: &Ear) {
        let mut carriers = KVVec::new();
        for (process, address) in posts {
            let mut known = self.all.iter_mut().filter(|w| w.process.is(process));
            if let Some(carrier) = known.find_map(|watched| watched.ignore(address, ear)) {
                // One that finds no room is removed at once, by itself.
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

    /// Sets the breakpoint of a place.
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
        // Breakpoints that are not set are found below.
        let _ = self.set();
        let Some(error) = self.places.get(at).and_then(Place::failure) else {
            return Ok(());
        };
        drop(disarm(&mut self.places, address));
        // Who has a probe there may have lost its breakpoint to this.
        self.restore(traps);
        Err(error)
    }

    /// The breakpoint that is not needed when one listens at it no more, if it did.
    fn ignore(&mut self, address: u64, ear: &Ear) -> Option<Carrier<At>> {
        let at = find(&self.places, address)?;
        if !self.places.get(at)?.site.ignore(ear) {
            return None;
        }
        let carrier = disarm(&mut self.places, address);
        self.tidy();
        carrier
    }

    /// Whether nobody has anything of it.
    pub(super) fn is_unused(&self) -> bool {
        let is_listened_at = || self.places.iter().any(|place| place.site.is_listened_at());
        self.shares.is_empty()
            && !self.has_unwanted
            && (self.process.is_over() || !is_listened_at())
    }
}
