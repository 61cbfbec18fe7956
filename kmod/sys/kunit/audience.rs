// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Hooks that listeners share: when they are made, rest, wake and are taken away, and whom they
//! call while listeners come and go. The hooks here are timers.

use kernel::prelude::*;

#[kunit_tests(dtrace_audience)]
mod tests {
    use super::*;
    use crate::sys::audience::{Audience, Crowd, Source};
    use crate::sys::hotplug::{CpuState, Everywhere};
    use crate::sys::kunit::wait_until;
    use crate::sys::regs::Regs;
    use crate::sys::timer::{CpuTimers, Tick};
    use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    use kernel::sync::Arc;

    /// How often hooks were made, rested, woke and were taken away; and whether making and waking
    /// fails.
    static MADE: AtomicU64 = AtomicU64::new(0);
    static RESTED: AtomicU64 = AtomicU64::new(0);
    static WOKEN: AtomicU64 = AtomicU64::new(0);
    static GONE: AtomicU64 = AtomicU64::new(0);
    static FAILS: AtomicBool = AtomicBool::new(false);

    fn counts() -> [u64; 4] {
        [&MADE, &RESTED, &WOKEN, &GONE].map(|count| count.load(Ordering::Relaxed))
    }

    /// Counts one more, unless it is to fail.
    fn count(what: &AtomicU64) -> Result {
        if FAILS.load(Ordering::Relaxed) {
            return Err(ENOMEM);
        }
        what.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Hooks that are never called.
    struct Counted;

    impl Source for Counted {
        type Ear = ();

        fn begin(_crowd: &Arc<Crowd<()>>) -> Result<Self> {
            count(&MADE).map(|()| Self)
        }

        fn rest(self) -> Option<Self> {
            RESTED.fetch_add(1, Ordering::Relaxed);
            Some(self)
        }

        fn wake(&mut self, _crowd: &Arc<Crowd<()>>) -> Result {
            count(&WOKEN)
        }
    }

    impl Drop for Counted {
        fn drop(&mut self) {
            GONE.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn hooks_are_made_once_and_rest_in_time() -> Result {
        let audience = Audience::<Counted>::new()?;
        let fails = || {
            FAILS.store(true, Ordering::Relaxed);
            let failed = audience.join((), false).is_err();
            FAILS.store(false, Ordering::Relaxed);
            failed
        };
        let failed = fails();
        let unmade = counts();
        for _ in 0..10 {
            let both = (audience.join((), false)?, audience.join((), false)?);
            drop(both);
        }
        let stayed = counts();
        drop(audience.join((), true)?);
        let rested = counts();
        let failed = failed && fails();
        let rest_on = counts();
        drop(audience.join((), false)?);
        let stayed_again = counts();
        drop(audience);
        assert!(failed);
        assert_eq!(unmade, [0; 4]);
        assert_eq!(stayed, [1, 0, 0, 0]);
        assert_eq!(rested, [1, 1, 0, 0]);
        assert_eq!(rest_on, rested);
        assert_eq!(stayed_again, [1, 1, 1, 0]);
        assert_eq!(counts(), [1, 1, 1, 1]);
        Ok(())
    }

    /// A number, its complement, and how often a hook has called this listener.
    struct Pair {
        number: u64,
        complement: u64,
        told: AtomicU64,
    }

    /// How many pairs were not complements.
    static BAD: AtomicU64 = AtomicU64::new(0);

    struct Teller(Arc<Crowd<Arc<Pair>>>);

    impl Tick for Teller {
        fn tick(&self, _regs: Option<&Regs>) {
            self.0.each(|pair| {
                if pair.number != !pair.complement {
                    BAD.fetch_add(1, Ordering::Relaxed);
                }
                pair.told.fetch_add(1, Ordering::Relaxed);
            });
        }
    }

    /// The interval of the calls, ns.
    const OFTEN: i64 = 400_000;

    /// Hooks that every CPU calls all the time.
    struct Passed(#[allow(dead_code)] Pin<KBox<Everywhere<CpuTimers<Teller>>>>);

    impl Source for Passed {
        type Ear = Arc<Pair>;

        fn begin(crowd: &Arc<Crowd<Arc<Pair>>>) -> Result<Self> {
            let state = Arc::new(CpuState::new()?, GFP_KERNEL)?;
            let timers = CpuTimers::new(OFTEN, Teller(crowd.clone()))?;
            Ok(Self(Everywhere::start(state, timers)?))
        }

        fn rest(self) -> Option<Self> {
            None
        }

        fn wake(&mut self, _crowd: &Arc<Crowd<Arc<Pair>>>) -> Result {
            Ok(())
        }
    }

    fn pair(number: u64) -> Result<Arc<Pair>> {
        let pair = Pair {
            number,
            complement: !number,
            told: AtomicU64::new(0),
        };
        Ok(Arc::new(pair, GFP_KERNEL)?)
    }

    #[test]
    fn each_is_told_exactly_while_it_listens() -> Result {
        let audience = Audience::<Passed>::new()?;
        let (mut told, mut told_late) = (0, 0);
        for round in 0..40 {
            let pairs = [pair(round)?, pair(round << 8)?, pair(round << 16)?];
            let [first, second, third] = &pairs;
            let [a, b, c] = [
                audience.join(first.clone(), false)?,
                audience.join(second.clone(), false)?,
                audience.join(third.clone(), false)?,
            ];
            let count = |pair: &Arc<Pair>| pair.told.load(Ordering::Relaxed);
            // In turn, the first, the middle and the last one leaves before the others.
            let (goes, stay, of) = match round % 3 {
                0 => (a, [b, c], first),
                1 => (b, [a, c], second),
                _ => (c, [a, b], third),
            };
            if wait_until(|| pairs.iter().all(|pair| count(pair) > 0)) {
                told += 1;
            }
            drop(goes);
            let all = || pairs.iter().map(count).sum::<u64>();
            let (before, all_before) = (count(of), all());
            let goes_on = wait_until(|| all() > all_before + 4);
            if !goes_on || count(of) != before {
                told_late += 1;
            }
            drop(stay);
        }
        drop(audience);
        assert_eq!(told, 40);
        assert_eq!(told_late, 0);
        assert_eq!(BAD.load(Ordering::Relaxed), 0);
        Ok(())
    }
}
