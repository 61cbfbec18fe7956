// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Ending consumers that starve the machine, or that nobody looks after.
//!
//! A program may fire so often, or for so long, that nothing else gets to run, not even the command that could end it. What
//! starves first is process context; hard interrupts still come through. So a beat in process context says that the machine
//! lives, each CPU where probes fire gives a [sign of life](Lives), and a timer in hard interrupts kills the consumer when it
//! has missed one of them for the time-out. The beat counts only while somebody makes a control call now and then: a command
//! that is stopped or stuck would otherwise trace for ever. None of it costs a firing anything. The next beat takes away what
//! a killed consumer has at the probes, whoever killed it; it may come on any CPU, as one may be starved.
//!
//! Whoever has asked for destructive actions is trusted: `chill()` and `stop()` slow things down on purpose.

use super::lives::Lives;
use super::tracer::Tracer;
use super::Framework;
use crate::sys::clock;
use crate::sys::periodic::{Periodic, Task};
use crate::sys::regs::Regs;
use crate::sys::timer::{OneTimer, Tick};
use dtrace_engine::Activity;
use dtrace_uapi::limits::{DEADMAN_INTERVAL, DEADMAN_TIMEOUT, DEADMAN_USER};
use dtrace_uapi::option::{Opt, UNSET};
use kernel::prelude::*;
use kernel::sync::Arc;

/// How long a consumer may be in trouble.
#[derive(Clone, Copy)]
pub struct Limits {
    timeout: u64,
    user: u64,
}

impl Limits {
    /// Without a beat, and without anybody asking: ms, 0 for what is usual.
    pub fn new(timeout: u32, user: u32) -> Self {
        let or = |ms: u32, usual| match u64::from(ms).saturating_mul(1_000_000) {
            0 => usual,
            ns => ns,
        };
        Self {
            timeout: or(timeout, DEADMAN_TIMEOUT),
            user: or(user, DEADMAN_USER),
        }
    }

    fn interval(&self) -> u64 {
        DEADMAN_INTERVAL.min(self.timeout >> 2)
    }
}

/// A consumer's deadman, until it is dropped.
pub struct Deadman {
    _watch: Pin<KBox<OneTimer<Watch>>>,
    _beat: Pin<KBox<Periodic<Beat>>>,
}

/// In process context.
struct Beat {
    framework: Arc<Framework>,
    tracer: Arc<Tracer>,
    limits: Limits,
}

/// In hard interrupts.
struct Watch {
    tracer: Arc<Tracer>,
    limits: Limits,
    lives: Lives,
}

impl Task for Beat {
    fn run(&mut self) -> u64 {
        self.tracer.beat(clock::monotonic(), self.limits.user);
        // Only here may the beat wait for the framework's mutex: a consumer that traces is alive whoever holds that.
        if self.tracer.engine.activity() == Activity::Killed {
            self.framework.withdraw(&self.tracer);
        }
        self.limits.interval()
    }
}

impl Tick for Watch {
    fn tick(&self, _regs: Option<&Regs>) {
        let (interval, timeout) = (self.limits.interval(), self.limits.timeout);
        let without = |since| self.lives.longest_without(since);
        self.tracer
            .watch(clock::monotonic(), interval, timeout, without);
    }
}

impl Deadman {
    /// Begins to watch a consumer that begins to trace; none where destructive actions are allowed.
    pub fn start(
        framework: &Arc<Framework>,
        tracer: &Arc<Tracer>,
        limits: Limits,
    ) -> Result<Option<Self>> {
        if !matches!(tracer.engine.option(Opt::Destructive), 0 | UNSET) {
            return Ok(None);
        }
        tracer.begin(clock::monotonic());
        let beat = Beat {
            framework: framework.clone(),
            tracer: tracer.clone(),
            limits,
        };
        let watch = Watch {
            tracer: tracer.clone(),
            limits,
            lives: Lives::new()?,
        };
        let interval = i64::try_from(limits.interval()).map_err(|_| EINVAL)?;
        Ok(Some(Self {
            _beat: KBox::pin_init(Periodic::start(limits.interval(), beat), GFP_KERNEL)?,
            _watch: OneTimer::start(interval, watch)?,
        }))
    }
}
