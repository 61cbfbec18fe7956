// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Timers, counters and repeated tasks: that they run, where they run, and that they end with their
//! owner.

use kernel::prelude::*;

#[kunit_tests(dtrace_time)]
mod tests {
    use super::*;
    use crate::bindings;
    use crate::sys::clock;
    use crate::sys::hotplug::{CpuState, Everywhere, PerCpu};
    use crate::sys::kunit::{sleep_ms, wait_until};
    use crate::sys::percpu::{nr_cpus, online};
    use crate::sys::perf::{Counters, Event, Every, Overflow, What};
    use crate::sys::periodic::{Periodic, Task};
    use crate::sys::regs::Regs;
    use crate::sys::timer::{CpuTimers, OneTimer, Tick};
    use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    use kernel::sync::Arc;

    const MS: i64 = 1_000_000;

    /// What the ticks have recorded.
    #[derive(Default)]
    struct Ticks {
        count: AtomicU64,
        cpus: AtomicU64,
        without_regs: AtomicBool,
    }

    impl Ticks {
        fn count(&self) -> u64 {
            self.count.load(Ordering::Relaxed)
        }
    }

    struct Ticker(Arc<Ticks>);

    impl Tick for Ticker {
        fn tick(&self, regs: Option<&Regs>) {
            // SAFETY: Must be called with preemption off; this is a hard interrupt.
            let here = unsafe { bindings::dtrace_this_cpu() };
            self.0.cpus.fetch_or(1 << (here & 63), Ordering::Relaxed);
            self.0
                .without_regs
                .fetch_or(regs.is_none(), Ordering::Relaxed);
            self.0.count.fetch_add(1, Ordering::Relaxed);
        }
    }

    impl Overflow for Ticker {
        fn overflow(&self, regs: Option<&Regs>) {
            self.tick(regs);
        }

        fn missed(&self) {}
    }

    /// Returns the CPUs that are online, as bits.
    fn all_online() -> u64 {
        (0..nr_cpus().min(64) as u32)
            .filter(|cpu| online(*cpu))
            .fold(0, |cpus, cpu| cpus | 1 << cpu)
    }

    #[test]
    fn a_timer_ticks_until_it_is_dropped() -> Result {
        let ticks = Arc::new(Ticks::default(), GFP_KERNEL)?;
        let timer = OneTimer::start(MS, Ticker(ticks.clone()))?;
        let ticked = wait_until(|| ticks.count() >= 3);
        drop(timer);
        let then = ticks.count();
        sleep_ms(20);
        assert!(ticked);
        assert_eq!(ticks.count(), then);
        assert!(!ticks.without_regs.load(Ordering::Relaxed));
        Ok(())
    }

    /// Whether what `start` starts ticks on every online CPU, and whether it stops ticking once it
    /// is dropped.
    fn runs_and_ends<T: PerCpu, R>(
        ticks: &Ticks,
        start: impl FnOnce(Arc<CpuState<T>>) -> Result<R>,
    ) -> Result<(bool, bool)> {
        let wanted = all_online();
        let running = start(Arc::new(CpuState::new()?, GFP_KERNEL)?)?;
        let all = wait_until(|| ticks.cpus.load(Ordering::Relaxed) == wanted);
        drop(running);
        let then = ticks.count();
        sleep_ms(20);
        Ok((all, ticks.count() == then))
    }

    #[test]
    fn every_online_cpu_has_a_timer() -> Result {
        let ticks = Arc::new(Ticks::default(), GFP_KERNEL)?;
        let timers = CpuTimers::new(MS, Ticker(ticks.clone()))?;
        let start = |state| Everywhere::start(state, timers);
        assert_eq!(runs_and_ends(&ticks, start)?, (true, true));
        Ok(())
    }

    /// Counts `event` with a thousand overflows a second. Every machine has the kernel's clock.
    const fn often(event: Event) -> What {
        What {
            event,
            every: Every::Hz(1000),
            user: true,
            kernel: true,
        }
    }

    #[test]
    fn every_online_cpu_has_a_counter() -> Result {
        let ticks = Arc::new(Ticks::default(), GFP_KERNEL)?;
        let ticker = Ticker(ticks.clone());
        let start = |state| Counters::start(&state, &often(Event::CpuClock), ticker);
        assert_eq!(runs_and_ends(&ticks, start)?, (true, true));
        assert!(!ticks.without_regs.load(Ordering::Relaxed));
        Ok(())
    }

    #[test]
    fn what_cannot_be_counted_is_refused() -> Result {
        let ticks = Arc::new(Ticks::default(), GFP_KERNEL)?;
        let state = Arc::new(CpuState::new()?, GFP_KERNEL)?;
        let cycles = often(Event::Cycles);
        let started = Counters::start(&state, &cycles, Ticker(ticks)).is_ok();
        assert_eq!(Ok(started), cycles.countable());
        Ok(())
    }

    /// A task that takes a while.
    struct Slow {
        runs: Arc<AtomicU64>,
        inside: Arc<AtomicBool>,
    }

    impl Task for Slow {
        fn run(&mut self) -> u64 {
            self.inside.store(true, Ordering::SeqCst);
            sleep_ms(5);
            self.inside.store(false, Ordering::SeqCst);
            self.runs.fetch_add(1, Ordering::SeqCst);
            MS as u64
        }
    }

    #[test]
    fn a_task_is_repeated_until_it_is_dropped() -> Result {
        let runs = Arc::new(AtomicU64::new(0), GFP_KERNEL)?;
        let inside = Arc::new(AtomicBool::new(false), GFP_KERNEL)?;
        let task = Slow {
            runs: runs.clone(),
            inside: inside.clone(),
        };
        let running = KBox::pin_init(Periodic::start(0, task), GFP_KERNEL)?;
        let ran = wait_until(|| runs.load(Ordering::SeqCst) >= 2);
        let caught = wait_until(|| inside.load(Ordering::SeqCst));
        drop(running);
        let (left, then) = (inside.load(Ordering::SeqCst), runs.load(Ordering::SeqCst));
        sleep_ms(20);
        assert!(ran);
        assert!(caught);
        assert!(!left);
        assert_eq!(runs.load(Ordering::SeqCst), then);
        Ok(())
    }

    #[test]
    fn clocks_go_on() {
        let (then, wall) = (clock::monotonic(), clock::wall());
        clock::spin(2_000_000);
        assert!(clock::monotonic() >= then + 2_000_000);
        assert!(clock::wall() > wall);
    }
}
