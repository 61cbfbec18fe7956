// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The provider `pidN`: functions and instructions of the process N. Programs' own probes (USDT)
//! are here as well.
//!
//! A consumer names the probes and gives the instructions of the process at which they fire
//! ([`Order`]). A process here has *places*, one for each of these instructions. A place has probes
//! of several kinds, and few of each kind: the entry of a function, a return from it, an
//! instruction named by its offset in the function, one named by its address, a USDT probe, and a
//! source line. A place has a breakpoint ([`Carrier`](crate::sys::breakpoint::Carrier)) while any
//! of its probes is enabled or a consumer listens there
//! ([`Listeners`](crate::framework::Listeners)). The breakpoint is in this process and in no other.
//!
//! A return fires where the function leaves by a `ret` or by a jump out of it, with the registers
//! as they are after that instruction. No return address is ever replaced.
//!
//! Probes are made for consumers. Each consumer pays for the places of the probes that it has
//! requested (INV-34). A probe is retired when the last consumer that requested it has gone, or
//! when its number belongs to another process. Only consumers that may trace the process may have
//! its probes.

mod places;
mod usdt;

use super::{attributes, put_text, EVOLVING};
use crate::framework::process::{ConsumerId, Order, Stale};
use crate::framework::{
    Batch, Consumer, Ear, Failed, Framework, Post, ProbeRef, Provider, Refusal, Registration,
};
use crate::sys::breakpoint::Traps;
use crate::sys::process::Process;
use dtrace_uapi::ioctl::{ArgDesc, PRIV_PROC};
use dtrace_uapi::process::PROVIDER;
use dtrace_uapi::types::ProviderAttributes;
use kernel::prelude::*;
use kernel::sync::{new_mutex, Arc, Mutex};
use places::Processes;

/// The provider.
#[pin_data]
struct Pid {
    /// Locked with the framework's mutex held.
    #[pin]
    processes: Mutex<Processes>,
}

impl Provider for Pid {
    fn name(&self) -> &'static str {
        PROVIDER
    }

    fn attributes(&self) -> ProviderAttributes {
        attributes(EVOLVING)
    }

    fn privileges(&self) -> u32 {
        PRIV_PROC
    }

    fn permits(&self, probe: ProbeRef, consumer: &Consumer) -> Result<bool> {
        let mut processes = self.processes.lock();
        let process = processes.process_of(probe).ok_or(ESRCH)?;
        consumer.may_trace(process)
    }

    fn expect(&self, order: &Order) {
        self.processes.lock().expect(order);
    }

    fn tidy(&self) {
        self.processes.lock().tidy();
    }

    fn make(&self, order: Order, batch: &mut Batch<'_>) -> Result<(), Refusal> {
        self.processes.lock().make(order, batch)
    }

    fn listen(&self, post: Post, ear: Ear) -> Result {
        self.processes.lock().listen(post, ear)
    }

    fn ignore(&self, posts: &mut dyn Iterator<Item = (&Process, u64)>, ear: &Ear) {
        self.processes.lock().ignore(posts, ear);
    }

    fn forget(&self, consumer: ConsumerId) {
        self.processes.lock().forget(consumer);
    }

    fn abandoned(&self) -> Option<ProbeRef> {
        self.processes.lock().abandoned()
    }

    fn review(
        &self,
        pid: u32,
        process: &Process,
        begin: &dyn Fn(usize) -> Result,
    ) -> Result<Stale> {
        self.processes.lock().review(pid, process, begin)
    }

    fn unregister(&self, process: &Process, number: u32) -> Option<Stale> {
        self.processes.lock().unregister(process, number)
    }

    fn leave(&self, stale: &mut Stale) -> Option<ProbeRef> {
        self.processes.lock().leave(stale)
    }

    fn bury(&self, stale: Stale) {
        self.processes.lock().bury(&stale);
    }

    fn enable(&self, probes: &[ProbeRef], failed: &mut Failed) {
        self.processes.lock().arm(probes, failed);
    }

    fn disable(&self, probes: &[ProbeRef]) {
        self.processes.lock().disarm(probes);
    }

    fn argdesc(&self, probe: ProbeRef, n: u32, desc: &mut ArgDesc) -> bool {
        let Some(of) = self.processes.lock().type_of(probe, n as usize) else {
            return false;
        };
        desc.mapping = n as i32;
        put_text(&mut desc.native, of.iter().copied());
        true
    }
}

/// Registers the provider. It has no probes yet.
pub fn register(framework: &Arc<Framework>) -> Result<Registration> {
    let traps = Traps::new()?;
    let provider = Arc::pin_init(
        pin_init!(Pid {
            processes <- new_mutex!(Processes::new(traps), "dtrace::pid::processes"),
        }),
        GFP_KERNEL,
    )?;
    framework.register(provider)
}
