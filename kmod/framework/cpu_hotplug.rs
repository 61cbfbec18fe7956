// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! CPUs that come online while a consumer traces (INV-17).
//!
//! A consumer has buffers for the CPUs that are online when it begins, because a virtual machine
//! may declare many times as many CPUs as it has. A CPU that comes later gets its buffers before it
//! runs anything, so nothing is dropped on it. If there is no memory for them, the CPU comes online
//! all the same, and what fires on it is counted. The buffers of a CPU that goes offline stay, with
//! their contents.

use super::consumer::Consumer;
use super::text::errno;
use crate::sys::hotplug::{CpuState, Everywhere, PerCpu, Stage};
use kernel::prelude::*;
use kernel::sync::Arc;

/// Gives a consumer's buffers to CPUs that come online.
pub struct CpuHotplug(Arc<Consumer>);

/// A running [`CpuHotplug`]. Dropping it ends it.
pub type Admitting = Pin<KBox<Everywhere<CpuHotplug>>>;

impl PerCpu for CpuHotplug {
    const STAGE: Stage = Stage::Prepare;

    fn start(&self, cpu: usize) -> Result {
        let pay = |bytes| self.0.purse.set_buffers(bytes).is_ok();
        self.0.engine.admit(cpu, &pay).map_err(errno)
    }

    fn stop(&self, _cpu: usize) {}
}

impl CpuHotplug {
    /// Starts for a consumer that has its buffers. CPUs that have come online since it got them get
    /// theirs here; an error of one of these fails the call.
    pub fn start(state: &Arc<CpuState<Self>>, consumer: &Arc<Consumer>) -> Result<Admitting> {
        Everywhere::start(state.clone(), Self(consumer.clone()))
    }
}
