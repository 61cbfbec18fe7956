// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The deadman: kills consumers that starve the machine or that no program serves (INV-27).
//!
//! A consumer's probes may fire so often, or for so long, that nothing else runs, not even the
//! command that could end the tracing. Process context starves first; hard interrupts still arrive.
//! So a periodic beat in process context shows that the machine is alive, and each CPU where probes
//! fire gives a [sign of life](Lives). A timer in hard interrupts kills the consumer if one of
//! these has been missing for the time limit. The beat counts only while control calls come from
//! the consumer, because otherwise a command that is stopped or stuck would trace for ever. A
//! firing pays nothing for any of this.
//!
//! The first beat after a consumer was killed, for whatever reason, takes away its ECBs. The beat
//! may run on any CPU, because one of them may be starved.
//!
//! A consumer with the option `destructive` has no deadman: `chill()` and `stop()` slow the machine
//! down on purpose.

use super::consumer::Consumer;
use super::lives::Lives;
use super::Framework;
use crate::sys::clock;
use crate::sys::periodic::{Periodic, Task};
use crate::sys::regs::Regs;
use crate::sys::timer::{OneTimer, Tick};
use dtrace_engine::Activity;
use dtrace_uapi::limits::{DEADMAN_INTERVAL, DEADMAN_TIMEOUT, DEADMAN_USER};
use kernel::prelude::*;
use kernel::sync::Arc;

/// Time limits of the deadman, ns.
#[derive(Clone, Copy)]
pub struct Limits {
    timeout: u64,
    user: u64,
}

impl Limits {
    /// Makes limits from milliseconds; 0 means the default. `timeout` limits the time without a
    /// beat or a sign of life, `user` the time without a control call.
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

/// A consumer's deadman. Dropping it stops it.
pub struct Deadman {
    _watch: Pin<KBox<OneTimer<Watch>>>,
    _beat: Pin<KBox<Periodic<Beat>>>,
}

/// The part that runs in process context.
struct Beat {
    framework: Arc<Framework>,
    consumer: Arc<Consumer>,
    limits: Limits,
}

/// The part that runs in hard interrupts.
struct Watch {
    consumer: Arc<Consumer>,
    limits: Limits,
    lives: Lives,
}

impl Task for Beat {
    fn run(&mut self) -> u64 {
        self.consumer.beat(clock::monotonic(), self.limits.user);
        // The beat has been given already, so it may wait for the framework's mutex here: a tracing
        // consumer's beat never depends on that mutex.
        if self.consumer.engine.activity() == Activity::Killed {
            self.framework.withdraw(&self.consumer);
        }
        self.limits.interval()
    }
}

impl Tick for Watch {
    fn tick(&self, _regs: Option<&Regs>) {
        let (interval, timeout) = (self.limits.interval(), self.limits.timeout);
        let without = |since| self.lives.longest_without(since);
        self.consumer
            .watch(clock::monotonic(), interval, timeout, without);
    }
}

impl Deadman {
    /// Starts the deadman of a consumer that begins to trace. `None` if the consumer has the option
    /// `destructive`.
    pub fn start(
        framework: &Arc<Framework>,
        consumer: &Arc<Consumer>,
        limits: Limits,
    ) -> Result<Option<Self>> {
        if consumer.engine.is_destructive().is_ok_and(|is| is) {
            return Ok(None);
        }
        consumer.begin(clock::monotonic());
        let beat = Beat {
            framework: framework.clone(),
            consumer: consumer.clone(),
            limits,
        };
        let watch = Watch {
            consumer: consumer.clone(),
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
