// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Structures that probe context reads while others change them, read in interrupts of every CPU
//! while they are changed.
//!
//! KASAN finds uses of freed memory; the tests check that what is read was meant.

use kernel::prelude::*;

#[kunit_tests(dtrace_lists)]
mod tests {
    use super::*;
    use crate::sys::arena::{self, Arena};
    use crate::sys::hotplug::{CpuState, Everywhere};
    use crate::sys::ipmap::{IpMap, Keyed};
    use crate::sys::kunit::{sleep_ms, wait_until};
    use crate::sys::once;
    use crate::sys::percpu::CpuGuard;
    use crate::sys::rculist::{Head, Links, Writer};
    use crate::sys::regs::Regs;
    use crate::sys::timer::{CpuTimers, Tick};
    use core::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};
    use kernel::sync::Arc;

    /// The interval of the readers, ns.
    const OFTEN: i64 = 400_000;

    /// What the readers have seen.
    #[derive(Default)]
    struct Seen {
        good: AtomicU64,
        bad: AtomicU64,
    }

    impl Seen {
        fn note(&self, good: bool) {
            let kind = if good { &self.good } else { &self.bad };
            kind.fetch_add(1, Ordering::Relaxed);
        }

        fn good(&self) -> u64 {
            self.good.load(Ordering::Relaxed)
        }

        fn bad(&self) -> u64 {
            self.bad.load(Ordering::Relaxed)
        }
    }

    /// A number and its complement.
    #[derive(Clone, Copy)]
    struct Pair(u64, u64);

    static HEAD: Head<Pair> = Head::new();

    struct ListReader(Arc<Seen>);

    impl Tick for ListReader {
        fn tick(&self, _regs: Option<&Regs>) {
            if let Some(guard) = CpuGuard::enter() {
                for pair in HEAD.iter(&guard) {
                    self.0.note(pair.0 == !pair.1);
                }
            }
        }
    }

    #[test]
    fn a_list_is_whole_while_it_is_changed() -> Result {
        // SAFETY: No other writer changes this list.
        let mut writer = unsafe { Writer::new() };
        let seen = Arc::new(Seen::default(), GFP_KERNEL)?;
        let state = Arc::new(CpuState::new()?, GFP_KERNEL)?;
        let readers = Everywhere::start(state, CpuTimers::new(OFTEN, ListReader(seen.clone()))?)?;
        let mut result = Ok(());
        for round in 0..40u64 {
            let mut links = Links::new();
            result = links.reserve(8).and_then(|()| {
                (0..8).try_for_each(|n| {
                    let value = round << 8 | n;
                    links.add(&HEAD, Pair(value, !value))
                })
            });
            links.publish(&mut writer, |_| {});
            // Gives the readers time to see some of them.
            let before = seen.good();
            let read = wait_until(|| seen.good() > before);
            links.unlink_if(&mut writer, |pair| pair.0 & 1 == 0);
            HEAD.unlink_all(&mut writer, |_| {});
            // Waits for the readers.
            drop(links);
            if result.is_err() || !read {
                break;
            }
        }
        drop(readers);
        result?;
        assert!(seen.good() >= 40);
        assert_eq!(seen.bad(), 0);
        let left = CpuGuard::enter().map(|guard| HEAD.iter(&guard).count());
        assert_eq!(left, Some(0));
        Ok(())
    }

    /// A pair and its place.
    struct Stamped {
        pair: Pair,
        place: arena::Place,
    }

    static NEWEST: AtomicPtr<Stamped> = AtomicPtr::new(core::ptr::null_mut());

    struct NewestReader(Arc<Seen>);

    impl Tick for NewestReader {
        fn tick(&self, _regs: Option<&Regs>) {
            let Some(_guard) = CpuGuard::enter() else {
                return;
            };
            // SAFETY: The pointer is null or was handed out by an arena that is dropped after the
            // readers have gone. The value is not overwritten as long as this CPU is in probe
            // context.
            if let Some(newest) = unsafe { NEWEST.load(Ordering::Acquire).as_ref() } {
                let Pair(number, complement) = newest.pair;
                // Takes long enough for the value to be overwritten, if that were possible.
                for _ in 0..50 {
                    core::hint::spin_loop();
                    // SAFETY: As above; the read is volatile, because an overwrite is what this
                    // looks for.
                    let again = unsafe { (&raw const newest.pair).read_volatile() };
                    self.0.note(again.0 == number && again.1 == complement);
                }
            }
        }
    }

    #[test]
    fn a_value_is_not_overwritten_while_it_is_read() -> Result {
        // SAFETY: The arena is dropped after the readers have gone. A value is retired once it is
        // not the newest any more, and a reader that has loaded it before is in probe context.
        let mut values = unsafe { Arena::new(64) };
        let seen = Arc::new(Seen::default(), GFP_KERNEL)?;
        let state = Arc::new(CpuState::new()?, GFP_KERNEL)?;
        let readers = Everywhere::start(state, CpuTimers::new(OFTEN, NewestReader(seen.clone()))?)?;
        let mut result = Ok(());
        let (mut number, mut greatest, mut last) = (0u64, 0, 0);
        for _ in 0..400 {
            for _ in 0..16 {
                number += 1;
                let pushed = values.push(|place| Stamped {
                    pair: Pair(number, !number),
                    place,
                });
                let newest: &'static Stamped = match pushed {
                    Ok(newest) => newest,
                    Err(error) => {
                        result = Err(error);
                        break;
                    }
                };
                let there = core::ptr::from_ref(newest).cast_mut();
                NEWEST.store(there, Ordering::Release);
                greatest = newest.place.max(greatest);
                values.retire(core::mem::replace(&mut last, newest.place));
            }
            sleep_ms(1);
        }
        let read = wait_until(|| seen.good() > 1000);
        NEWEST.store(core::ptr::null_mut(), Ordering::Release);
        drop(readers);
        result?;
        assert!(read);
        assert_eq!(seen.bad(), 0);
        // Places were reused, and so values overwritten.
        assert!(u64::from(greatest) < number / 2);
        Ok(())
    }

    struct Place {
        ip: AtomicUsize,
        key: u64,
    }

    impl Keyed for Place {
        fn ip(&self) -> usize {
            self.ip.load(Ordering::Relaxed)
        }

        fn key(&self) -> u64 {
            self.key
        }

        fn move_to(&self, ip: usize) {
            self.ip.store(ip, Ordering::Relaxed);
        }
    }

    struct MapReader {
        map: Arc<IpMap<Place>>,
        seen: Arc<Seen>,
    }

    impl Tick for MapReader {
        fn tick(&self, _regs: Option<&Regs>) {
            for n in 1..=64usize {
                if let Some(place) = self.map.get(n << 4) {
                    self.seen.note(place.key < 1 << 32);
                }
            }
        }
    }

    /// Adds `count` places, numbered from `first`.
    fn extend(map: &IpMap<Place>, first: usize, count: usize) -> Result {
        let mut places = KVVec::with_capacity(count, GFP_KERNEL)?;
        for n in first..first + count {
            let place = Place {
                ip: AtomicUsize::new(n << 4),
                key: n as u64,
            };
            places.push(place, GFP_KERNEL)?;
        }
        map.extend(places)
    }

    #[test]
    fn a_map_is_whole_while_it_grows() -> Result {
        let map = Arc::new(IpMap::new()?, GFP_KERNEL)?;
        let seen = Arc::new(Seen::default(), GFP_KERNEL)?;
        let state = Arc::new(CpuState::new()?, GFP_KERNEL)?;
        let reader = MapReader {
            map: map.clone(),
            seen: seen.clone(),
        };
        extend(&map, 1, 16)?;
        let readers = Everywhere::start(state, CpuTimers::new(OFTEN, reader)?)?;
        let read = wait_until(|| seen.good() > 0);
        let grown = extend(&map, 17, 200).and_then(|()| {
            (1..=100).for_each(|n| map.remove(n << 4));
            extend(&map, 1, 100)?;
            extend(&map, 1000, 1000)
        });
        drop(readers);
        grown?;
        assert!(read);
        assert_eq!(seen.bad(), 0);
        let missing =
            |range: core::ops::Range<usize>| range.filter(|n| map.get(n << 4).is_none()).count();
        assert_eq!((missing(1..217), missing(1000..2000)), (0, 0));
        assert!(map.get(217 << 4).is_none());
        Ok(())
    }

    /// The module itself has taken them.
    #[test]
    fn the_parts_are_given_out_once() {
        assert_eq!(once::parts::<u64, u64>().err(), Some(EBUSY));
    }
}
