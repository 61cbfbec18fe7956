// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Probe context, and the ways into that of other CPUs.

use kernel::prelude::*;

#[kunit_tests(dtrace_cpu)]
mod tests {
    use super::*;
    use crate::bindings;
    use crate::sys::crosscall::{on_cpu, probe_on};
    use crate::sys::percpu::{nr_cpus, online, possible, CpuGuard, Losses, Nested};

    /// Whether interrupts are on.
    fn interrupts() -> bool {
        // SAFETY: No preconditions.
        unsafe { bindings::dtrace_test_interrupts() }
    }

    #[test]
    fn a_cpu_is_taken_once() {
        let before = Losses::total();
        let mut again = None;
        let mut why = None;
        if let Some(guard) = CpuGuard::enter() {
            again = Some(CpuGuard::enter().is_some());
            why = Nested::after_refusal().map(|nested| nested.nmi);
            drop(guard);
        }
        let after = CpuGuard::enter().is_some();
        assert_eq!(again, Some(false));
        assert_eq!(why, Some(false));
        assert!(after);
        assert!(Losses::total().recursion > before.recursion);
    }

    #[test]
    fn interrupts_are_off_behind_the_guard_only() {
        let before = interrupts();
        let within = CpuGuard::enter().map(|_guard| interrupts());
        let after = interrupts();
        assert_eq!((before, within, after), (true, Some(false), true));
    }

    #[test]
    fn room_for_frames_is_lent_once() {
        let found = CpuGuard::enter().map(|guard| {
            let within =
                guard.with_frames(|room| (room.len(), guard.with_frames(|inner| inner.len())));
            (within, guard.with_frames(|room| room.len()))
        });
        let ((room, inner), after) = found.unwrap_or_default();
        assert!(room > 0);
        assert_eq!(inner, 0);
        assert_eq!(after, room);
    }

    #[test]
    fn every_online_cpu_can_be_visited() {
        let mut visits = 0;
        for cpu in (0..nr_cpus() as u32).filter(|cpu| possible(*cpu)) {
            let mut seen = None;
            let visited = probe_on(cpu, &mut |guard| {
                seen = Some((guard.cpu().index() as u32, interrupts()));
            });
            if online(cpu) {
                visits += 1;
                assert_eq!(visited, Ok(()));
                assert_eq!(seen, Some((cpu, false)));
            } else {
                assert_eq!(visited, Err(ENXIO));
            }
        }
        assert!(visits > 0);
    }

    #[test]
    fn a_cpu_that_cannot_be_is_refused() {
        let none = nr_cpus() as u32;
        let mut calls = 0;
        assert_eq!(probe_on(none, &mut |_| calls += 1), Err(EINVAL));
        assert_eq!(on_cpu(none, &mut |_| calls += 1), Err(EINVAL));
        assert_eq!(on_cpu(u32::MAX, &mut |_| calls += 1), Err(EINVAL));
        assert_eq!(calls, 0);
    }
}
