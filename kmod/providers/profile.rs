// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The provider `profile`: probes that fire at intervals of time.
//!
//! `profile-RATE` fires on every CPU and `tick-RATE` on one CPU, both by timers; code that runs
//! with interrupts off delays them. `nmi-RATE` fires on every CPU by the processor's counter of
//! cycles, whose interrupt is an NMI and cannot be delayed. It does not exist on machines without
//! such a counter. RATE is a number with a unit of time, or a frequency: a number alone or with
//! `hz`. An interval of `nmi` is converted to a frequency of whole firings per second, at least
//! one. Probes are made on request; those of the usual rates exist from the beginning. `arg0` is
//! the address of the interrupted kernel code, `arg1` that of the interrupted user code; the one
//! that was not running is 0.
//!
//! For a consumer without rights over the kernel, `profile` fires only if it interrupts code of a
//! program that the consumer may trace, and `tick` fires without showing what it has interrupted.
//! Such a consumer has no `nmi`. A member has only [slow](USER_SHORTEST) timers, and few of them
//! (INV-33).

use super::order::{self, Maker};
use super::sample;
use super::PRIVATE;
use crate::framework::{miss, Consumer, Framework, ProbeRef, Refusal, Registration, NEEDS_KERNEL};
use crate::sys::hotplug::{CpuState, Everywhere};
use crate::sys::perf::{Counters, Event, Every, Overflow, Watch, What};
use crate::sys::regs::Regs;
use crate::sys::timer::{CpuTimers, OneTimer, Tick};
use dtrace_uapi::types::{Attribute, Class, ProviderAttributes, Stability};
use kernel::prelude::*;
use kernel::sync::Arc;

/// The shortest interval, in nanoseconds: 5,000 Hz. A shorter one could leave no time for anything
/// else.
const SHORTEST: u64 = 200_000;
const SECOND: u64 = 1_000_000_000;
/// The most firings per second of a member's timer.
const USER_HZ: u64 = 997;
/// The shortest interval of a member's timer, in nanoseconds.
const USER_SHORTEST: u64 = SECOND / USER_HZ;

const UNITS: &[(&[u8], u64)] = &[
    (b"ns", 1),
    (b"nsec", 1),
    (b"us", 1_000),
    (b"usec", 1_000),
    (b"ms", 1_000_000),
    (b"msec", 1_000_000),
    (b"s", SECOND),
    (b"sec", SECOND),
    (b"m", 60 * SECOND),
    (b"min", 60 * SECOND),
    (b"h", 3_600 * SECOND),
    (b"hour", 3_600 * SECOND),
    (b"d", 86_400 * SECOND),
    (b"day", 86_400 * SECOND),
];

const USUAL: &[&[u8]] = &[
    b"profile-97",
    b"profile-199",
    b"profile-499",
    b"profile-997",
    b"profile-1999",
    b"profile-4001",
    b"profile-4999",
    b"nmi-97",
    b"nmi-997",
    b"tick-1",
    b"tick-10",
    b"tick-100",
    b"tick-500",
    b"tick-1000",
    b"tick-5000",
];

/// What fires a probe, by the first part of its name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// One timer.
    Tick,
    /// A timer on every CPU.
    Profile,
    /// A counter of cycles on every CPU.
    Nmi,
}

impl Kind {
    /// How many bits of a cookie hold the kind.
    const BITS: u32 = 2;
    const ALL: [(&'static [u8], Self); 3] = [
        (b"tick-", Self::Tick),
        (b"profile-", Self::Profile),
        (b"nmi-", Self::Nmi),
    ];
}

/// What a probe's name requests.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Rate {
    interval: u64,
    kind: Kind,
}

impl Rate {
    fn parse(name: &[u8]) -> Option<Self> {
        let (kind, rate) = Kind::ALL
            .iter()
            .find_map(|(prefix, kind)| Some((*kind, name.strip_prefix(*prefix)?)))?;
        let digits = rate.iter().take_while(|c| c.is_ascii_digit()).count();
        let (number, unit) = rate.split_at_checked(digits)?;
        if number.is_empty() {
            return None;
        }
        let mut value = 0u64;
        for digit in number {
            let digit = digit.wrapping_sub(b'0');
            value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
        }
        let interval = match unit {
            b"" | b"hz" => SECOND.checked_div(value)?,
            _ => {
                let (_, scale) = UNITS.iter().find(|(text, _)| *text == unit)?;
                value.checked_mul(*scale)?
            }
        };
        // perf counters have no lower frequency than 1 Hz. A cookie has fewer bits for the
        // interval, and the interval of a timer is signed.
        let longest = match kind {
            Kind::Nmi => SECOND,
            Kind::Tick | Kind::Profile => u64::MAX >> Kind::BITS,
        };
        let fits = (SHORTEST..=longest).contains(&interval);
        fits.then_some(Self { interval, kind })
    }

    const fn cookie(self) -> u64 {
        self.interval << Kind::BITS | self.kind as u64
    }

    fn from_cookie(cookie: u64) -> Option<Self> {
        let bits = cookie & ((1 << Kind::BITS) - 1);
        let (_, kind) = Kind::ALL.iter().find(|(_, kind)| *kind as u64 == bits)?;
        Some(Self {
            interval: cookie >> Kind::BITS,
            kind: *kind,
        })
    }

    /// The perf event that counts cycles at this rate.
    fn cycles(self) -> What {
        What {
            event: Event::Cycles,
            every: Every::Hz(self.hz()),
            user: true,
            kernel: true,
        }
    }

    /// Firings per second, rounded to the nearest integer; 0 for intervals of more than 2 s.
    fn hz(self) -> u64 {
        let interval = self.interval.max(1);
        SECOND.saturating_add(interval >> 1) / interval
    }

    /// Whether a consumer that does not see everything may have this rate.
    fn is_for(self, consumer: &Consumer) -> bool {
        let is_slow = consumer.rights.is_none() || self.interval >= USER_SHORTEST;
        self.kind != Kind::Nmi && is_slow
    }
}

/// Fires at the code that the interrupt stopped. Called in a hard interrupt or an NMI.
struct Sample(ProbeRef);

/// Fires for the single timer of `tick`. Called in a hard interrupt.
struct Alone(ProbeRef);

impl Tick for Alone {
    fn tick(&self, regs: Option<&Regs>) {
        sample::tick(self.0, regs);
    }
}

impl Tick for Sample {
    fn tick(&self, regs: Option<&Regs>) {
        sample::fire(self.0, regs, sample::Registers::All);
    }
}

impl Overflow for Sample {
    fn overflow(&self, regs: Option<&Regs>) {
        sample::fire(self.0, regs, sample::Registers::All);
    }

    fn missed(&self) {
        miss(self.0);
    }
}

/// Running timers or counters. Dropping them stops them.
enum Running {
    Once {
        _timer: Pin<KBox<OneTimer<Alone>>>,
    },
    Timers {
        _timers: Pin<KBox<Everywhere<CpuTimers<Sample>>>>,
    },
    Counters {
        _counters: Counters<Sample>,
    },
}

/// The state of the provider.
struct Profile {
    timers: Arc<CpuState<CpuTimers<Sample>>>,
    counters: Arc<CpuState<Watch<Sample>>>,
}

impl Maker for Profile {
    type Running = Running;

    const NAME: &'static str = "profile";
    const TIMERS: bool = true;

    fn attributes(&self) -> ProviderAttributes {
        let evolving = Attribute::new(Stability::Evolving, Stability::Evolving, Class::Common);
        ProviderAttributes {
            provider: evolving,
            module: Attribute::new(Stability::Unstable, Stability::Unstable, Class::Common),
            func: PRIVATE,
            name: evolving,
            args: evolving,
        }
    }

    fn order(&self, _place: [&[u8]; 2], name: &[u8]) -> Result<Option<u64>> {
        let Some(rate) = Rate::parse(name) else {
            return Ok(None);
        };
        let can = rate.kind != Kind::Nmi || rate.cycles().countable()?;
        Ok(can.then(|| rate.cookie()))
    }

    fn may_order(&self, name: &[u8], consumer: &Consumer) -> bool {
        Rate::parse(name).is_some_and(|rate| rate.is_for(consumer))
    }

    fn hz(&self, probe: ProbeRef) -> Option<usize> {
        let rate = Rate::from_cookie(probe.cookie())?;
        Some(usize::try_from(rate.hz()).unwrap_or(usize::MAX).max(1))
    }

    fn permits(&self, probe: ProbeRef, consumer: &Consumer) -> bool {
        Rate::from_cookie(probe.cookie()).is_some_and(|rate| rate.is_for(consumer))
    }

    fn refusal(&self, probe: ProbeRef) -> Refusal {
        match Rate::from_cookie(probe.cookie()) {
            Some(rate) if rate.kind != Kind::Nmi => Refusal::with(
                EACCES,
                format_args!("a user's timers may fire {USER_HZ} times a second at most"),
            ),
            _ => Refusal::new(EACCES, NEEDS_KERNEL),
        }
    }

    fn start(&self, probe: ProbeRef) -> Result<Running> {
        let rate = Rate::from_cookie(probe.cookie()).ok_or(EINVAL)?;
        let interval = i64::try_from(rate.interval).map_err(|_| EINVAL)?;
        let sample = Sample(probe);
        Ok(match rate.kind {
            Kind::Tick => Running::Once {
                _timer: OneTimer::start(interval, Alone(probe))?,
            },
            Kind::Profile => Running::Timers {
                _timers: Everywhere::start(self.timers.clone(), CpuTimers::new(interval, sample)?)?,
            },
            Kind::Nmi => Running::Counters {
                _counters: Counters::start(&self.counters, &rate.cycles(), sample)?,
            },
        })
    }
}

/// Registers the provider and creates the usual probes.
pub fn register(framework: &Arc<Framework>) -> Result<Registration> {
    let profile = Profile {
        timers: Arc::new(CpuState::new()?, GFP_KERNEL)?,
        counters: Arc::new(CpuState::new()?, GFP_KERNEL)?,
    };
    Ok(order::register(framework, profile, USUAL)?.registration())
}
