// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Unit tests of the framework in the kernel (`make kunit`): its mutex, its providers and its
//! consumers as threads and interrupts meet them. What a single thread can show is tested on the
//! host.
//!
//! Each test has a framework of its own beside the module's. As in
//! [`sys::kunit`](crate::sys::kunit), no assertion is made while anything is held, because a failed
//! assertion ends the thread and drops nothing.

// KUnit's macro generates unsafe functions.
#![allow(unsafe_code)]

use kernel::prelude::*;

#[kunit_tests(dtrace_framework)]
mod tests {
    use super::*;
    use crate::framework::consumer::Consumer;
    use crate::framework::deadman::{Deadman, Limits};
    use crate::framework::lives::Lives;
    use crate::framework::machine::FEATURES;
    use crate::framework::probe::ProbeRef;
    use crate::framework::provider::{Failed, Provider};
    use crate::framework::{fire, quota, Args, FireArgs, Framework};
    use crate::sys::clock;
    use crate::sys::deferred::{Chore, Deferred};
    use crate::sys::hotplug::{CpuState, Everywhere};
    use crate::sys::kunit::{parts, sleep_ms, wait_until};
    use crate::sys::percpu::{nr_cpus, CpuGuard};
    use crate::sys::periodic::{Periodic, Task};
    use crate::sys::regs::Regs;
    use crate::sys::timer::{CpuTimers, Tick};
    use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    use dtrace_engine::{Activity, Config, Consumer as Engine, Privileges};
    use dtrace_uapi::types::ProviderAttributes;
    use kernel::sync::Arc;
    use zerocopy::FromZeros;

    fn framework() -> Result<Arc<Framework>> {
        let places = quota::Limits {
            user: 10,
            consumer: 10,
            memory: 10,
        };
        // SAFETY: Each test drops the framework last, when everything that fires its probes has
        // ended.
        let parts = unsafe { parts() };
        Framework::new(parts, Limits::new(0, 0), u32::MAX, places)
    }

    /// A provider that has nothing to arm.
    struct Idle(&'static str);

    impl Provider for Idle {
        fn name(&self) -> &'static str {
            self.0
        }

        fn attributes(&self) -> ProviderAttributes {
            ProviderAttributes::new_zeroed()
        }

        fn privileges(&self) -> u32 {
            0
        }

        fn enable(&self, _probes: &[ProbeRef], _failed: &mut Failed) {}

        fn disable(&self, _probes: &[ProbeRef]) {}
    }

    #[test]
    fn a_name_is_taken_until_its_provider_goes() -> Result {
        let framework = framework()?;
        let register =
            |name| -> Result<_> { framework.register(Arc::new(Idle(name), GFP_KERNEL)?) };
        let first = register("idle")?;
        let second = register("idle").err();
        let dtrace = register("dtrace").err();
        drop(first);
        let third = register("idle").is_ok();
        assert_eq!(second, Some(EEXIST));
        assert_eq!(dtrace, Some(EEXIST));
        assert!(third);
        Ok(())
    }

    /// Registers a provider, creates and removes its probes, and unregisters it, again and again.
    struct Churn {
        framework: Arc<Framework>,
        name: &'static str,
        rounds: Arc<AtomicU64>,
        failed: Arc<AtomicU64>,
    }

    impl Churn {
        fn round(&self) -> Result {
            let provider = Arc::new(Idle(self.name), GFP_KERNEL)?;
            let registration = self.framework.register(provider)?;
            let probes = registration.populate(|batch| {
                Ok([
                    batch.create(b"", b"", b"one", 0)?,
                    batch.create(b"", b"", b"two", 0)?,
                ])
            })?;
            for probe in probes {
                fire(probe, &FireArgs::new(Args::Words(&[])));
            }
            registration.remove(&probes);
            Ok(())
        }
    }

    impl Task for Churn {
        fn run(&mut self) -> u64 {
            if self.round().is_err() {
                self.failed.fetch_add(1, Ordering::Relaxed);
            }
            self.rounds.fetch_add(1, Ordering::Relaxed);
            0
        }
    }

    #[test]
    fn providers_come_and_go_side_by_side() -> Result {
        let framework = framework()?;
        let (rounds, failed) = (
            Arc::new(AtomicU64::new(0), GFP_KERNEL)?,
            Arc::new(AtomicU64::new(0), GFP_KERNEL)?,
        );
        let start = |name| -> Result<_> {
            let churn = Churn {
                framework: framework.clone(),
                name,
                rounds: rounds.clone(),
                failed: failed.clone(),
            };
            KBox::pin_init(Periodic::start(0, churn), GFP_KERNEL)
        };
        let (one, other) = (start("one")?, start("other")?);
        let done = wait_until(|| rounds.load(Ordering::Relaxed) >= 40);
        drop((one, other));
        assert!(done);
        assert_eq!(failed.load(Ordering::Relaxed), 0);
        Ok(())
    }

    /// Fires a probe.
    struct Firing {
        probe: ProbeRef,
        fired: Arc<AtomicU64>,
    }

    impl Tick for Firing {
        fn tick(&self, regs: Option<&Regs>) {
            let args = FireArgs::new(Args::Words(&[1, 2]));
            match regs {
                Some(regs) => fire(self.probe, &args.caller(regs.ip()).regs(regs)),
                None => fire(self.probe, &args),
            }
            self.fired.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A probe may fire after it was removed, and after it has come back.
    #[test]
    fn a_probe_may_fire_while_it_goes() -> Result {
        let framework = framework()?;
        let registration = framework.register(Arc::new(Idle("idle"), GFP_KERNEL)?)?;
        let create = || registration.populate(|batch| batch.create(b"m", b"f", b"n", 7));
        let probe = create()?;
        let fired = Arc::new(AtomicU64::new(0), GFP_KERNEL)?;
        let state = Arc::new(CpuState::new()?, GFP_KERNEL)?;
        let firing = Firing {
            probe,
            fired: fired.clone(),
        };
        let timers = Everywhere::start(state, CpuTimers::new(400_000, firing)?)?;
        let mut same = true;
        for _ in 0..50 {
            registration.remove(&[probe]);
            same &= create().is_ok_and(|again| again.id() == probe.id());
        }
        let enough = wait_until(|| fired.load(Ordering::Relaxed) >= 50);
        drop(timers);
        assert!(same);
        assert!(enough);
        Ok(())
    }

    /// Makes a consumer that traces and has nothing enabled.
    fn tracing(framework: &Framework) -> Result<Arc<Consumer>> {
        let ends = framework.ends;
        let engine = Engine::new(Config {
            ncpus: nr_cpus(),
            privileges: Privileges::ALL,
            features: FEATURES,
            begin: ends.begin.id(),
            end: ends.end.id(),
            error: ends.error.id(),
            seed: 1,
            secret: 1,
            is_killed: || false,
        })
        .map_err(|_| ENOMEM)?;
        engine.go().map_err(|_| ENOMEM)?;
        engine.activate();
        let payer = framework.users.lock().payer(None)?;
        let consumer = Consumer::new(engine, ends.error, None, payer);
        Ok(Arc::new(consumer, GFP_KERNEL)?)
    }

    #[test]
    fn the_deadman_ends_whom_nobody_asks() -> Result {
        let framework = framework()?;
        let consumer = tracing(&framework)?;
        let before = consumer.engine.activity();
        let deadman = Deadman::start(&framework, &consumer, Limits::new(400, 100))?;
        let watched = deadman.is_some();
        let killed = wait_until(|| consumer.engine.activity() == Activity::Killed);
        drop(deadman);
        assert!(watched);
        assert!(before == Activity::Active);
        assert!(killed);
        Ok(())
    }

    #[test]
    fn the_deadman_spares_whom_somebody_has_asked() -> Result {
        let framework = framework()?;
        let consumer = tracing(&framework)?;
        let deadman = Deadman::start(&framework, &consumer, Limits::new(2000, 0))?;
        sleep_ms(5000);
        let spared = consumer.engine.activity() == Activity::Active;
        drop(deadman);
        assert!(spared);
        Ok(())
    }

    /// Keeps its CPU in probe context.
    struct Hog(Arc<AtomicBool>);

    impl Chore for Hog {
        fn run(&self) {
            let guard = CpuGuard::enter();
            guard.iter().for_each(CpuGuard::count);
            self.0.store(true, Ordering::Relaxed);
            clock::spin(300_000_000);
            drop(guard);
        }
    }

    #[test]
    fn a_cpu_that_runs_nothing_is_noticed() -> Result {
        let lives = Lives::new()?;
        // The first call may only request a sign of life.
        let answered = || wait_until(|| [1, 1].map(|since| lives.longest_without(since)) == [0, 0]);
        let before = answered();
        let inside = Arc::new(AtomicBool::new(false), GFP_KERNEL)?;
        let hog = KBox::pin_init(Deferred::new(Hog(inside.clone())), GFP_KERNEL)?;
        let here = CpuGuard::enter().map_or(0, |guard| guard.cpu().index());
        hog.ask_on(u32::from(here == 0));
        let hogs = wait_until(|| inside.load(Ordering::Relaxed));
        // The first of these calls requests the sign of life.
        let without = [7, 20, 300].map(|since| lives.longest_without(since));
        drop(hog);
        let after = answered();
        let again = [5, 6].map(|since| lives.longest_without(since));
        assert!(before && hogs && after);
        assert_eq!(without, [0, 20, 320]);
        assert_eq!(again, [0, 0]);
        Ok(())
    }
}
