// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The provider `profile`: probes that fire with time.
//!
//! `profile-RATE` fires on every CPU, `tick-RATE` on one. RATE is a number with a unit of time, or, alone or with `hz`, how often
//! in a second. Probes are made to order; those of the usual rates exist from the beginning. `arg0` is the address of the
//! kernel code that the timer's interrupt stopped, `arg1` that of user code; the one that was not running is 0.

use super::order::{self, Maker};
use super::PRIVATE;
use crate::framework::{fire, Args, FireArgs, Framework, ProbeRef, Registration};
use crate::sys::regs::Regs;
use crate::sys::timer::{CpuState, CpuTimers, OneTimer, Tick};
use dtrace_uapi::types::{Attribute, Class, ProviderAttributes, Stability};
use kernel::prelude::*;
use kernel::sync::Arc;

/// The shortest interval, in nanoseconds: 5,000 Hz. A shorter one could leave no time for anything else.
const SHORTEST: u64 = 200_000;
const SECOND: u64 = 1_000_000_000;

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
    b"tick-1",
    b"tick-10",
    b"tick-100",
    b"tick-500",
    b"tick-1000",
    b"tick-5000",
];

/// What a probe's name asks for.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Rate {
    interval: u64,
    everywhere: bool,
}

impl Rate {
    fn parse(name: &[u8]) -> Option<Self> {
        let (everywhere, rate) = match name.strip_prefix(b"profile-") {
            Some(rate) => (true, rate),
            None => (false, name.strip_prefix(b"tick-")?),
        };
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
        // One bit of the cookie is not the interval's, and a timer's is signed.
        let fits = (SHORTEST..=u64::MAX >> 2).contains(&interval);
        fits.then_some(Self {
            interval,
            everywhere,
        })
    }

    const fn cookie(self) -> u64 {
        self.interval << 1 | self.everywhere as u64
    }

    const fn from_cookie(cookie: u64) -> Self {
        Self {
            interval: cookie >> 1,
            everywhere: cookie & 1 == 1,
        }
    }
}

/// What a timer fires.
struct Sample(ProbeRef);

impl Tick for Sample {
    fn tick(&self, regs: Option<&Regs>) {
        let Some(regs) = regs else {
            fire(self.0, &FireArgs::new(Args::Words(&[0, 0])));
            return;
        };
        if regs.user_mode() {
            fire(
                self.0,
                &FireArgs::new(Args::Words(&[0, regs.ip()])).nowhere(),
            );
        } else {
            let words = [regs.ip(), 0];
            let args = FireArgs::new(Args::Words(&words));
            fire(self.0, &args.sample(regs.ip()).regs(regs));
        }
    }
}

/// Running timers; dropping them stops them.
enum Running {
    Everywhere {
        _timers: Pin<KBox<CpuTimers<Sample>>>,
    },
    Once {
        _timer: Pin<KBox<OneTimer<Sample>>>,
    },
}

/// The provider's own part.
struct Profile {
    state: Arc<CpuState<Sample>>,
}

impl Maker for Profile {
    type Running = Running;

    const NAME: &'static str = "profile";

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

    fn order(&self, _place: [&[u8]; 2], name: &[u8]) -> Option<u64> {
        Rate::parse(name).map(Rate::cookie)
    }

    fn start(&self, probe: ProbeRef) -> Result<Running> {
        let rate = Rate::from_cookie(probe.cookie());
        let interval = i64::try_from(rate.interval).map_err(|_| EINVAL)?;
        Ok(if rate.everywhere {
            Running::Everywhere {
                _timers: CpuTimers::start(self.state.clone(), interval, Sample(probe))?,
            }
        } else {
            Running::Once {
                _timer: OneTimer::start(interval, Sample(probe))?,
            }
        })
    }
}

/// Registers the provider and creates the usual probes.
pub fn register(framework: &Arc<Framework>) -> Result<Registration> {
    let state = Arc::new(CpuState::new()?, GFP_KERNEL)?;
    order::register(framework, Profile { state }, USUAL)
}
