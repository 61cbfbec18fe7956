// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Pins the thread that enables probes to a CPU.
//!
//! A timer that fires on one CPU fires on the CPU on which it was started. With `-x cpu` this must
//! be the only traced CPU.

use rustix::thread::{sched_getaffinity, sched_setaffinity, CpuSet};

/// Keeps the calling thread on a CPU until it is dropped.
pub struct Stay(Option<CpuSet>);

impl Stay {
    /// Moves the thread to `cpu`, if given. Does nothing if that CPU is offline or does not exist,
    /// because the kernel reports this when probes are enabled.
    pub fn on(cpu: Option<u64>) -> Self {
        let cpu = cpu.and_then(|cpu| usize::try_from(cpu).ok());
        let Some(cpu) = cpu.filter(|cpu| *cpu < CpuSet::MAX_CPU) else {
            return Self(None);
        };
        let mut only = CpuSet::new();
        only.set(cpu);
        let before = sched_getaffinity(None).ok();
        let moved = before.filter(|_| sched_setaffinity(None, &only).is_ok());
        Self(moved)
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            // If these CPUs have gone offline meanwhile, the thread may stay where it is.
            let _ = sched_setaffinity(None, before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thread_stays_and_goes_back() {
        let before = sched_getaffinity(None).unwrap();
        let cpu = (0..CpuSet::MAX_CPU)
            .find(|&cpu| before.is_set(cpu))
            .unwrap();
        let stay = Stay::on(Some(cpu as u64));
        let now = sched_getaffinity(None).unwrap();
        assert!(now.is_set(cpu));
        assert_eq!(now.count(), 1);
        drop(stay);
        assert_eq!(sched_getaffinity(None).unwrap(), before);
        for nothing in [None, Some(u64::MAX), Some(CpuSet::MAX_CPU as u64 - 1)] {
            let _stay = Stay::on(nothing);
            assert_eq!(sched_getaffinity(None).unwrap(), before);
        }
    }
}
