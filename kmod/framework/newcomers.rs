// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! CPUs that come while a consumer traces.
//!
//! A consumer has buffers for the CPUs that are online when it begins: a virtual machine may promise many times as many as it has.
//! One that comes later is given its buffers before it runs anything, so that nothing is lost on it. Where there is no memory for them
//! the CPU comes all the same, and what fires on it is counted. Buffers of a CPU that goes stay, with what they hold.

use super::text::errno;
use super::tracer::Tracer;
use crate::sys::hotplug::{CpuState, Everywhere, PerCpu, Stage};
use kernel::prelude::*;
use kernel::sync::Arc;

/// What waits for CPUs, for one consumer.
pub struct Newcomers(Arc<Tracer>);

/// That it waits; until it is dropped.
pub type Waiting = Pin<KBox<Everywhere<Newcomers>>>;

impl PerCpu for Newcomers {
    const STAGE: Stage = Stage::Prepare;

    fn start(&self, cpu: usize) -> Result {
        let pay = |bytes| self.0.purse.set_buffers(bytes).is_ok();
        self.0.engine.admit(cpu, &pay).map_err(errno)
    }

    fn stop(&self, _cpu: usize) {}
}

impl Newcomers {
    /// Begins to wait, for a consumer that has its buffers. Those who have come since it got them are given theirs here.
    pub fn start(state: &Arc<CpuState<Self>>, tracer: &Arc<Tracer>) -> Result<Waiting> {
        Everywhere::start(state.clone(), Self(tracer.clone()))
    }
}
