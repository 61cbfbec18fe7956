// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The provider `cpc`: probes that fire when an event has happened a number of times on a CPU.
//!
//! `EVENT-MODE-COUNT` fires each time EVENT has happened COUNT times. MODE is `user`, `kernel` or
//! `all`, for the code in which the event is counted. The events are those that the kernel counts
//! itself and those that most processors count, as perf knows them. Probes are made on request if
//! the machine can count their event. Whether a counter is free is known only when the probe is
//! enabled. `arg0` is the address of the kernel code in which the event happened, `arg1` that of
//! user code; the other argument is 0.
//!
//! perf lets events take only a part of a CPU's time (`kernel.perf_cpu_time_max_percent`) and skips
//! those that come too often.

use super::order::{self, Maker};
use super::sample;
use super::PRIVATE;
use crate::framework::{miss, Framework, ProbeRef, Registration};
use crate::sys::hotplug::CpuState;
use crate::sys::perf::{Counters, Event, Every, Overflow, Watch, What};
use crate::sys::regs::Regs;
use dtrace_uapi::types::{Attribute, Class, ProviderAttributes, Stability};
use kernel::prelude::*;
use kernel::sync::Arc;

/// An event with its name.
struct Named {
    name: &'static [u8],
    event: Event,
    /// The smallest COUNT. A smaller one would leave no time for anything else.
    least: u64,
}

const fn named(name: &'static [u8], event: Event, least: u64) -> Named {
    Named { name, event, least }
}

/// The smallest period of the kernel's clocks, in nanoseconds; perf uses no shorter one
/// (`kernel/events/core.c`).
const CLOCK: u64 = 10_000;
/// The smallest COUNT of events that processors count.
const HARDWARE: u64 = 5_000;

/// Cookies of probes hold indices into this list.
static EVENTS: [Named; 23] = [
    named(b"cpu_clock", Event::CpuClock, CLOCK),
    named(b"task_clock", Event::TaskClock, CLOCK),
    named(b"page_faults", Event::PageFaults, 1),
    named(b"minor_faults", Event::MinorFaults, 1),
    named(b"major_faults", Event::MajorFaults, 1),
    named(b"context_switches", Event::ContextSwitches, 1),
    named(b"cpu_migrations", Event::CpuMigrations, 1),
    named(b"alignment_faults", Event::AlignmentFaults, 1),
    named(b"emulation_faults", Event::EmulationFaults, 1),
    named(b"cpu_cycles", Event::Cycles, HARDWARE),
    named(b"instructions", Event::Instructions, HARDWARE),
    named(b"cache_references", Event::CacheReferences, HARDWARE),
    named(b"cache_misses", Event::CacheMisses, HARDWARE),
    named(b"branches", Event::Branches, HARDWARE),
    named(b"branch_misses", Event::BranchMisses, HARDWARE),
    named(b"bus_cycles", Event::BusCycles, HARDWARE),
    named(b"stalled_cycles_frontend", Event::StalledFrontend, HARDWARE),
    named(b"stalled_cycles_backend", Event::StalledBackend, HARDWARE),
    named(b"ref_cycles", Event::RefCycles, HARDWARE),
    // The names that are the same on all platforms of other systems.
    named(b"PAPI_tot_cyc", Event::Cycles, HARDWARE),
    named(b"PAPI_tot_ins", Event::Instructions, HARDWARE),
    named(b"PAPI_br_ins", Event::Branches, HARDWARE),
    named(b"PAPI_br_msp", Event::BranchMisses, HARDWARE),
];

const USUAL: &[&[u8]] = &[
    b"cpu_clock-all-10000000",
    b"task_clock-all-10000000",
    b"page_faults-all-100",
    b"minor_faults-all-100",
    b"major_faults-all-1",
    b"context_switches-all-100",
    b"cpu_migrations-all-1",
];

/// What a probe's name requests.
#[derive(Clone, Copy)]
struct Order {
    event: usize,
    user: bool,
    kernel: bool,
    count: u64,
}

impl Order {
    /// How many bits of a cookie hold everything but the count.
    const BITS: u32 = 10;

    fn parse(name: &[u8]) -> Option<Self> {
        let mut parts = name.rsplitn(3, |c| *c == b'-');
        let (count, mode, event) = (parts.next()?, parts.next()?, parts.next()?);
        let event = EVENTS.iter().position(|known| known.name == event)?;
        let (user, kernel) = match mode {
            b"all" => (true, true),
            b"user" => (true, false),
            b"kernel" => (false, true),
            _ => return None,
        };
        let mut value = 0u64;
        for digit in count {
            let digit = digit.checked_sub(b'0').filter(|digit| *digit < 10)?;
            value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
        }
        // A cookie has 54 bits for the count. So it also fits the kernel's periods, which are
        // signed.
        let least = EVENTS.get(event)?.least;
        let fits = (least..=u64::MAX >> Self::BITS).contains(&value);
        fits.then_some(Self {
            event,
            user,
            kernel,
            count: value,
        })
    }

    const fn cookie(self) -> u64 {
        self.count << Self::BITS
            | (self.event as u64) << 2
            | (self.kernel as u64) << 1
            | self.user as u64
    }

    fn what(self) -> Result<What> {
        Ok(What {
            event: EVENTS.get(self.event).ok_or(EINVAL)?.event,
            every: Every::Events(self.count),
            user: self.user,
            kernel: self.kernel,
        })
    }

    const fn from_cookie(cookie: u64) -> Self {
        Self {
            event: (cookie >> 2 & 0xff) as usize,
            user: cookie & 1 != 0,
            kernel: cookie & 2 != 0,
            count: cookie >> Self::BITS,
        }
    }
}

/// What a counter fires. Called in any context, NMI included.
struct Sample(ProbeRef);

impl Overflow for Sample {
    fn overflow(&self, regs: Option<&Regs>) {
        // At a switch of tasks the kernel fills in only some of the registers.
        sample::fire(self.0, regs, sample::Registers::Some);
    }

    fn missed(&self) {
        miss(self.0);
    }
}

/// The state of the provider.
struct Cpc {
    cpus: Arc<CpuState<Watch<Sample>>>,
}

impl Maker for Cpc {
    type Running = Counters<Sample>;

    const NAME: &'static str = "cpc";

    fn attributes(&self) -> ProviderAttributes {
        let evolving = Attribute::new(Stability::Evolving, Stability::Evolving, Class::Common);
        ProviderAttributes {
            provider: evolving,
            module: PRIVATE,
            func: PRIVATE,
            name: Attribute::new(Stability::Evolving, Stability::Evolving, Class::Cpu),
            args: evolving,
        }
    }

    fn order(&self, _place: [&[u8]; 2], name: &[u8]) -> Result<Option<u64>> {
        let Some(order) = Order::parse(name) else {
            return Ok(None);
        };
        let can = match order.what() {
            Ok(what) => what.countable()?,
            Err(_) => false,
        };
        Ok(can.then(|| order.cookie()))
    }

    fn start(&self, probe: ProbeRef) -> Result<Self::Running> {
        let what = Order::from_cookie(probe.cookie()).what()?;
        Counters::start(&self.cpus, &what, Sample(probe))
    }
}

/// Registers the provider and creates the usual probes.
pub fn register(framework: &Arc<Framework>) -> Result<Registration> {
    let cpus = Arc::new(CpuState::new()?, GFP_KERNEL)?;
    Ok(order::register(framework, Cpc { cpus }, USUAL)?.registration())
}
