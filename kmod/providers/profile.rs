// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The provider `profile`: probes that fire with time.
//!
//! `profile-RATE` fires on every CPU, `tick-RATE` on one. RATE is a number with a unit of time, or, alone or with `hz`, how often
//! in a second. Probes are made to order; those of the usual rates exist from the beginning. `arg0` is the address of the
//! kernel code that the timer's interrupt stopped, `arg1` that of user code; the one that was not running is 0.

use crate::framework::{
    fire, Args, Batch, Description, Failed, FireArgs, Framework, ProbeRef, Provider, Registration,
};
use crate::sys::regs::Regs;
use crate::sys::timer::{CpuState, CpuTimers, OneTimer, Tick};
use dtrace_uapi::ioctl::PRIV_KERNEL;
use dtrace_uapi::types::{Attribute, Class, ProbeId, ProviderAttributes, Stability};
use kernel::alloc::KVVec;
use kernel::prelude::*;
use kernel::sync::{new_mutex, Arc, Mutex};

/// The shortest interval, in nanoseconds: 5,000 Hz. A shorter one could leave no time for anything else.
const SHORTEST: u64 = 200_000;
/// The most probes, since those made to order stay.
const MOST: usize = 4096;
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

/// Running timers.
enum Running {
    Everywhere {
        _timers: Pin<KBox<CpuTimers<Sample>>>,
    },
    Once {
        _timer: Pin<KBox<OneTimer<Sample>>>,
    },
}

/// The provider.
#[pin_data]
struct ProfileProvider {
    state: Arc<CpuState<Sample>>,
    #[pin]
    running: Mutex<KVVec<(ProbeId, Running)>>,
    #[pin]
    made: Mutex<usize>,
}

impl ProfileProvider {
    fn make(&self, name: &[u8], batch: &mut Batch<'_>) -> Result {
        let Some(rate) = Rate::parse(name) else {
            return Ok(());
        };
        let mut made = self.made.lock();
        if *made >= MOST || batch.find(b"", b"", name).is_some() {
            return Ok(());
        }
        match batch.create(b"", b"", name, rate.cookie()) {
            Err(error) if error == E2BIG => Ok(()),
            result => {
                result?;
                *made = made.wrapping_add(1);
                Ok(())
            }
        }
    }

    fn start(&self, probe: ProbeRef) -> Result {
        let rate = Rate::from_cookie(probe.cookie());
        let interval = i64::try_from(rate.interval).map_err(|_| EINVAL)?;
        let mut running = self.running.lock();
        running.reserve(1, GFP_KERNEL)?;
        let timers = if rate.everywhere {
            Running::Everywhere {
                _timers: CpuTimers::start(self.state.clone(), interval, Sample(probe))?,
            }
        } else {
            Running::Once {
                _timer: OneTimer::start(interval, Sample(probe))?,
            }
        };
        running.push((probe.id(), timers), GFP_KERNEL)?;
        Ok(())
    }

    fn stop(&self, probe: ProbeRef) {
        let mut running = self.running.lock();
        if let Some(at) = running.iter().position(|(id, _)| *id == probe.id()) {
            // Dropping the timers stops them.
            drop(running.remove(at));
        }
    }
}

impl Provider for ProfileProvider {
    fn name(&self) -> &'static str {
        "profile"
    }

    fn attributes(&self) -> ProviderAttributes {
        let evolving = Attribute::new(Stability::Evolving, Stability::Evolving, Class::Common);
        let unstable = Attribute::new(Stability::Unstable, Stability::Unstable, Class::Common);
        let private = Attribute::new(Stability::Private, Stability::Private, Class::Unknown);
        ProviderAttributes {
            provider: evolving,
            module: unstable,
            func: private,
            name: evolving,
            args: evolving,
        }
    }

    fn privileges(&self) -> u32 {
        PRIV_KERNEL
    }

    fn provide(&self, desc: &Description<'_>, batch: &mut Batch<'_>) -> Result {
        self.make(desc.name, batch)
    }

    fn enable(&self, probes: &[ProbeRef], failed: &mut Failed) {
        for probe in probes {
            if let Err(error) = self.start(probe) {
                failed.add(probe, error);
            }
        }
    }

    fn disable(&self, probes: &[ProbeRef]) {
        for probe in probes {
            self.stop(probe);
        }
    }
}

/// Registers the provider and creates the usual probes.
pub fn register(framework: &Arc<Framework>) -> Result<Registration> {
    let state = Arc::new(CpuState::new()?, GFP_KERNEL)?;
    let provider = Arc::pin_init(
        pin_init!(ProfileProvider {
            state,
            running <- new_mutex!(KVVec::new(), "dtrace::profile"),
            made <- new_mutex!(0, "dtrace::profile::made"),
        }),
        GFP_KERNEL,
    )?;
    let registration = framework.register(provider.clone())?;
    registration.populate(|batch| USUAL.iter().try_for_each(|name| provider.make(name, batch)))?;
    Ok(registration)
}
