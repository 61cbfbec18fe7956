// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Kernel stacks by our own walk, compared with the kernel's.

use kernel::prelude::kunit_tests;

#[kunit_tests(dtrace_stack)]
mod tests {
    use super::super::sleep_ms;
    use crate::bindings;
    use crate::sys::crosscall::probe_on;
    use crate::sys::percpu::{nr_cpus, online, CpuGuard};
    use crate::sys::regs::Regs;

    /// Room for frames. Our walk and the kernel's may begin in different functions.
    const ROOM: usize = 100;

    /// The comparison of two walks from here.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Compared {
        /// So many frames are the same, from the first frame of our walk that is not this module's.
        Same(usize),
        /// They differ after so many frames.
        Differ(usize),
        /// The kernel's walk does not have that frame.
        Missing,
    }

    fn compare() -> Compared {
        let (mut ours, mut theirs) = ([0usize; ROOM], [0usize; ROOM]);
        // SAFETY: Both arrays are valid for a write of so many words. All callers are in probe
        // context, so interrupts are off and the CPU is claimed.
        let (n, m) = unsafe {
            (
                bindings::dtrace_stack_here(ours.as_mut_ptr().cast(), ROOM as u32),
                bindings::stack_trace_save(theirs.as_mut_ptr().cast(), ROOM as u32, 0),
            )
        };
        let ours = ours.get(..n as usize).unwrap_or_default();
        let theirs = theirs.get(..m as usize).unwrap_or_default();
        // SAFETY: The helper takes any number.
        let is_foreign = |pc: &usize| !unsafe { bindings::dtrace_own_text(*pc) };
        let ours = ours.get(ours.iter().position(is_foreign).unwrap_or(0)..);
        let ours = ours.unwrap_or_default();
        let first = theirs.iter().position(|pc| Some(pc) == ours.first());
        let Some(theirs) = first.and_then(|first| theirs.get(first..)) else {
            return Compared::Missing;
        };
        let same = ours.iter().zip(theirs).take_while(|(a, b)| a == b).count();
        match same == ours.len() && same == theirs.len() {
            true => Compared::Same(same),
            false => Compared::Differ(same),
        }
    }

    #[test]
    fn a_stack_is_as_the_kernel_has_it() {
        let compared = CpuGuard::enter().map(|_guard| compare());
        match compared {
            Some(Compared::Same(frames)) => assert!(frames > 1),
            other => assert_eq!(other, Some(Compared::Same(0))),
        }
    }

    /// Interrupts the CPUs in whatever they do.
    #[test]
    fn so_is_one_that_was_interrupted() {
        let mut all = 0;
        let mut wrong = None;
        for _ in 0..200 {
            for cpu in (0..nr_cpus() as u32).filter(|cpu| online(*cpu)) {
                let _ = probe_on(cpu, &mut |_guard| match compare() {
                    Compared::Same(frames) if frames > 1 => all += 1,
                    other => wrong = Some(other),
                });
            }
            sleep_ms(1);
        }
        assert_eq!(wrong, None);
        assert!(all >= 200);
    }

    /// Registers may contain any stack pointer. Then only the instruction is known.
    #[test]
    fn no_other_memory_is_read() {
        let mut theirs = [0usize; ROOM];
        // SAFETY: The array is valid for a write of so many words.
        let n = unsafe {
            bindings::stack_trace_save(theirs.as_mut_ptr().cast(), ROOM as u32, 0) as usize
        };
        let ip = n.checked_sub(1).and_then(|last| theirs.get(last)).copied();
        let ip = ip.unwrap_or(0);
        let mut seen = [(0, 0); 4];
        for (at, seen) in seen.iter_mut().enumerate() {
            // Unmapped, a user's, in the vmalloc space, at the end of the address space.
            let sp = [8, 0x7fff_0000_1000, 0xffff_c900_0123_4560, usize::MAX - 7].get(at);
            let sp = sp.copied().unwrap_or(0);
            let regs = Regs::in_kernel(ip as u64, sp as u64);
            let mut ours = [0usize; ROOM];
            if let Some(_guard) = CpuGuard::enter() {
                // SAFETY: `ours` is valid for a write of so many words, and the guard keeps
                // interrupts off. The walk checks what the registers say.
                let n = unsafe {
                    let room = ours.as_mut_ptr().cast();
                    bindings::dtrace_stack_from(room, ROOM as u32, regs.as_ptr())
                };
                *seen = (n, ours.first().copied().unwrap_or(0));
            }
        }
        assert_eq!(seen, [(1, ip); 4]);
    }
}
