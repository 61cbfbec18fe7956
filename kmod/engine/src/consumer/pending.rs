// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Takes over what an image requests, as a whole or not at all (INV-2).
//!
//! Options, variables, strings, formats and clauses are built *aside*, in copies of the consumer's
//! own, and put in place by moves that cannot fail. So a refusal at any point is undone by dropping
//! the [`Pending`], and nothing has to be reverted explicitly. The reason may be the last clause, a
//! lack of memory, or the framework in between. Copying costs little: most consumers enable one
//! image, and what is copied for it is empty.
//!
//! EPIDs are given out in the same way: if a [`Binding`] is dropped without
//! [`keep`](Binding::keep), its EPIDs are taken back.

use super::ecbs::OF_USER;
use super::options::Options;
use super::{ClauseId, Consumer, Control, Ecb};
use crate::dof::Clause;
use crate::ecb::{build, Prepared};
use crate::error::{Errno, Reason};
use crate::interp::Walker;
use crate::mem::sync::Guard;
use crate::mem::{Boxed, Vec};
use dtrace_uapi::interp::WALKERS_MAX;
use dtrace_uapi::option::Opt;
use dtrace_uapi::types::ProbeId;

/// Options and clauses that are ready to be taken over. While it lives, other control calls are
/// refused.
#[derive(Debug)]
pub struct Pending<'a> {
    control: Guard<'a, Control>,
    options: Options,
    shared: build::Shared,
    /// The new clauses.
    clauses: Vec<Boxed<Prepared>>,
    /// Empty, with room for the old and the new clauses.
    all: Vec<Boxed<Prepared>>,
    /// The new walkers.
    walkers: Vec<Walker>,
}

impl Consumer {
    /// Checks options, and verifies and prepares clauses. Changes nothing until
    /// [`Pending::commit`].
    ///
    /// Errors: `EBUSY` after the start, during another control call, and for an option that the
    /// clauses have fixed; `EINVAL` and `E2BIG` for requests that cannot be met; `EACCES` for what
    /// the opener may not do; `ENOMEM`; `EINTR` if the caller was killed.
    pub fn prepare(
        &self,
        options: &[(Opt, u64)],
        clauses: &[Clause],
    ) -> Result<Pending<'_>, Reason> {
        let control = self.control_before_go()?;
        let mut pending = Pending {
            options: control.options.clone(),
            shared: control.shared.copy()?,
            clauses: Vec::with_capacity(clauses.len())?,
            all: Vec::with_capacity(control.clauses.len().saturating_add(clauses.len()))?,
            walkers: Vec::new(),
            control,
        };
        let control = &pending.control;
        let fixed = !control.clauses.is_empty() || !control.walkers.is_empty();
        for (option, value) in options {
            let privileges = &self.config.privileges;
            pending.options.set(*option, *value, privileges, fixed)?;
        }
        for clause in clauses {
            let prepared = pending.build(clause, self)?;
            pending.clauses.push(prepared)?;
        }
        Ok(pending)
    }

    /// Starts to give out EPIDs. The caller must not have two bindings at a time: dropping one
    /// could take back the other's EPIDs.
    pub fn binding(&self) -> Binding<'_> {
        Binding {
            consumer: self,
            before: self.ecbs.count(),
            kept: false,
        }
    }
}

impl Pending<'_> {
    fn build(&mut self, clause: &Clause, consumer: &Consumer) -> Result<Boxed<Prepared>, Reason> {
        let built = self.with(consumer, |cx, shared| build::build(clause, cx, shared))?;
        Ok(Boxed::new(built)?)
    }

    /// Adds walkers to what is taken over. Errors: as [`Consumer::prepare`], and `E2BIG` if there
    /// are too many walkers.
    pub fn add_walkers(&mut self, walkers: &[Clause], consumer: &Consumer) -> Result<(), Reason> {
        let before = self
            .control
            .walkers
            .len()
            .saturating_add(self.walkers.len());
        if before.saturating_add(walkers.len()) > WALKERS_MAX {
            return Err(Reason::new(Errno::E2BIG, "too many walkers"));
        }
        for clause in walkers {
            let built = self.with(consumer, |cx, shared| Walker::build(clause, cx, shared))?;
            self.walkers.push(built)?;
        }
        Ok(self.control.walkers.reserve(self.walkers.len())?)
    }

    fn with<T>(
        &mut self,
        consumer: &Consumer,
        build: impl FnOnce(&build::Context<'_>, &mut build::Shared) -> T,
    ) -> T {
        let Self {
            options, shared, ..
        } = self;
        let config = &consumer.config;
        let cx = build::Context {
            privileges: config.privileges,
            features: config.features,
            destructive: config.privileges.destructive && options.flag(Opt::Destructive),
            strsize: options.get(Opt::Strsize) as usize,
            loops: !options.flag(Opt::Noloops),
            is_killed: config.is_killed,
            option: &|opt| options.get(opt),
        };
        build(&cx, shared)
    }

    /// Returns the id that the `n`th new clause will have when it has been taken over.
    pub fn clause(&self, n: usize) -> Option<ClauseId> {
        let index = self.control.clauses.len().checked_add(n)?;
        Some(ClauseId {
            index: u32::try_from(index).ok()?,
            size: u32::try_from(self.clauses.get(n)?.size).ok()?,
        })
    }

    /// Takes everything over.
    pub fn commit(mut self) {
        let control = &mut *self.control;
        // Cannot fail: `prepare` and `add_walkers` have reserved the room.
        let _ = self.all.append(&mut control.clauses);
        let _ = self.all.append(&mut self.clauses);
        let _ = control.walkers.append(&mut self.walkers);
        control.clauses = self.all;
        control.options = self.options;
        control.shared = self.shared;
    }
}

/// EPIDs that are being given out. They are taken back on drop unless they are [kept](Self::keep).
#[derive(Debug)]
pub struct Binding<'a> {
    consumer: &'a Consumer,
    before: u32,
    kept: bool,
}

impl Binding<'_> {
    /// Gives `probe` an EPID for `clause`.
    pub fn bind(&mut self, clause: ClauseId, probe: ProbeId) -> Result<Ecb, Reason> {
        let Consumer { ecbs, config, .. } = self.consumer;
        if !config.privileges.all_users && ecbs.count() >= OF_USER {
            return Err(Reason::new(Errno::E2BIG, "too many enabled probes"));
        }
        ecbs.add(clause, probe, config.own(probe))
    }

    /// Keeps the EPIDs permanently.
    pub fn keep(mut self) {
        self.consumer.ecbs.keep();
        self.kept = true;
    }
}

impl Drop for Binding<'_> {
    fn drop(&mut self) {
        if !self.kept {
            self.consumer.ecbs.truncate(self.before);
        }
    }
}
