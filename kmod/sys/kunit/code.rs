// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The kernel's code: symbols, traced functions, tracepoints, stacks.

use kernel::prelude::*;

#[kunit_tests(dtrace_code)]
mod tests {
    use super::*;
    use crate::bindings;
    use crate::sys::ftrace::{Change, FtraceOps, Hooks, Wanted};
    use crate::sys::functions::{self, Validity};
    use crate::sys::kunit::{sleep_ms, wait_until};
    use crate::sys::percpu::CpuGuard;
    use crate::sys::periodic::{Periodic, Task};
    use crate::sys::regs::Regs;
    use crate::sys::stack;
    use crate::sys::symbols::{self, Address};
    use crate::sys::tracepoint::{Hit, Tracepoints};
    use core::sync::atomic::{AtomicU64, Ordering};
    use kernel::sync::Arc;

    /// A function of the kernel that is traceable, has no side effects, and is not called by
    /// anything else during the tests.
    const FUNCTION: &core::ffi::CStr = c"int_sqrt";

    /// Calls it.
    fn root(function: Address, of: usize) -> usize {
        // SAFETY: The function takes one number and returns its square root; it has no other
        // requirements.
        unsafe { function.call([of, 0, 0, 0, 0]) }
    }

    #[test]
    fn symbols_are_found_by_name_and_by_address() -> Result {
        let (one, other) = (symbols::lookup(FUNCTION)?, symbols::lookup(c"vfs_read")?);
        let mut ips = [one.get(), other.get()];
        ips.sort_unstable();
        let names = symbols::name_all(&ips, 0)?;
        let mut found = [None, None];
        for (n, ip) in ips.iter().enumerate() {
            found[usize::from(*ip == other.get())] = names.get(n);
        }
        assert_eq!(
            found,
            [
                Some((None, &b"int_sqrt"[..])),
                Some((None, &b"vfs_read"[..]))
            ]
        );
        assert_eq!(symbols::find(c"no_such_symbol_here")?, None);
        Ok(())
    }

    /// A function that ftrace cannot patch, because the module's own code is built without that.
    extern "C" fn left_out() {}

    #[test]
    fn what_ftrace_cannot_patch_is_not_traceable() -> Result {
        let valid = Validity::new()?;
        let anchor = functions::traceable_at(Address(bindings::dtrace_anchor as usize));
        assert!(anchor.is_some_and(|ip| valid.check(ip)));
        assert!(functions::traceable_at(Address(left_out as usize)).is_none());
        assert!(!valid.check(0));
        Ok(())
    }

    /// What was seen of the function.
    #[derive(Default)]
    struct Calls {
        entries: AtomicU64,
        returns: AtomicU64,
        wrong: AtomicU64,
    }

    struct Watch(Arc<Calls>);

    impl Hooks for Watch {
        fn entry(&self, ip: usize, _caller: u64, regs: &Regs) -> Option<Wanted> {
            if regs.function_arg(0) != 144 {
                self.0.wrong.fetch_add(1, Ordering::Relaxed);
            }
            self.0.entries.fetch_add(1, Ordering::Relaxed);
            Some(Wanted::whole(ip))
        }

        fn unhooked(&self, _ip: usize) {
            self.0.wrong.fetch_add(1, Ordering::Relaxed);
        }

        fn leave(&self, _ip: usize, _caller: u64, value: u64, first: u64) {
            if (value, first) != (12, 144) {
                self.0.wrong.fetch_add(1, Ordering::Relaxed);
            }
            self.0.returns.fetch_add(1, Ordering::Relaxed);
        }
    }

    impl Calls {
        fn seen(&self) -> (u64, u64, u64) {
            let get = |n: &AtomicU64| n.load(Ordering::Relaxed);
            (get(&self.entries), get(&self.returns), get(&self.wrong))
        }
    }

    #[test]
    fn a_traced_function_tells_of_call_and_return() -> Result {
        let function = symbols::lookup(FUNCTION)?;
        let ip = functions::traceable_at(function).ok_or(ENODEV)?;
        let calls = Arc::new(Calls::default(), GFP_KERNEL)?;
        let ops = FtraceOps::new(Watch(calls.clone()))?;
        root(function, 144);
        let before = calls.seen();
        let add = Change {
            add: &[ip],
            drop: &[],
            returns: true,
        };
        let mut switched = 0;
        let added = ops.change(&add, || switched += 1);
        let value = root(function, 144);
        root(function, 144);
        let during = calls.seen();
        let dropped = ops.change(
            &Change {
                add: &[],
                drop: &[ip],
                returns: false,
            },
            || {},
        );
        root(function, 144);
        let after = calls.seen();
        drop(ops);
        root(function, 144);
        assert_eq!((added, dropped, switched), (Ok(()), Ok(()), 1));
        assert_eq!(value, 12);
        assert_eq!((before, during, after), ((0, 0, 0), (2, 2, 0), (2, 2, 0)));
        assert_eq!(calls.seen(), after);
        Ok(())
    }

    #[test]
    fn a_change_that_fails_changes_nothing() -> Result {
        let calls = Arc::new(Calls::default(), GFP_KERNEL)?;
        let ops = FtraceOps::new(Watch(calls.clone()))?;
        let mut switched = 0;
        let none = left_out as usize;
        let change = Change {
            add: &[none],
            drop: &[],
            returns: false,
        };
        let result = ops.change(&change, || switched += 1);
        drop(ops);
        assert!(result.is_err());
        assert_eq!(switched, 0);
        assert_eq!(calls.seen(), (0, 0, 0));
        Ok(())
    }

    /// Calls the function all the time.
    struct Caller {
        function: Address,
        rounds: Arc<AtomicU64>,
    }

    impl Task for Caller {
        fn run(&mut self) -> u64 {
            for _ in 0..200 {
                root(self.function, 144);
            }
            self.rounds.fetch_add(1, Ordering::Relaxed);
            0
        }
    }

    /// Drops an ops while its function is being called, possibly on another CPU.
    #[test]
    fn an_ops_may_go_at_any_time() -> Result {
        let function = symbols::lookup(FUNCTION)?;
        let ip = functions::traceable_at(function).ok_or(ENODEV)?;
        let calls = Arc::new(Calls::default(), GFP_KERNEL)?;
        let rounds = Arc::new(AtomicU64::new(0), GFP_KERNEL)?;
        let caller = Caller {
            function,
            rounds: rounds.clone(),
        };
        let caller = KBox::pin_init(Periodic::start(0, caller), GFP_KERNEL)?;
        let mut result = Ok(());
        let mut called = true;
        for _ in 0..3 {
            let ops = FtraceOps::new(Watch(calls.clone()))?;
            result = ops.change(
                &Change {
                    add: &[ip],
                    drop: &[],
                    returns: true,
                },
                || {},
            );
            let then = rounds.load(Ordering::Relaxed);
            called &= wait_until(|| rounds.load(Ordering::Relaxed) > then + 1);
            drop(ops);
            if result.is_err() {
                break;
            }
        }
        drop(caller);
        let seen = calls.seen();
        result?;
        assert!(called);
        assert!(seen.0 > 0);
        assert_eq!((seen.0, seen.2), (seen.1, 0));
        Ok(())
    }

    struct Counter(Arc<AtomicU64>);

    impl Hit for Counter {
        fn hit(&self, args: &[u64]) {
            self.0.fetch_add(args.len() as u64, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_tracepoint_is_hit_while_it_is_attached() -> Result {
        let hits = Arc::new(AtomicU64::new(0), GFP_KERNEL)?;
        let get = || hits.load(Ordering::Relaxed);
        let tracepoints = Tracepoints::new(|desc, _| {
            let wanted = desc.name == b"sched_switch" && desc.system == Some(b"sched");
            Ok(wanted.then(|| Counter(hits.clone())))
        })?;
        sleep_ms(20);
        let before = get();
        let attached = tracepoints.attach(0);
        let unknown = tracepoints.attach(1);
        // Each call passes four arguments.
        let hit = wait_until(|| get() >= 12);
        tracepoints.detach(0);
        drop(tracepoints);
        let then = get();
        sleep_ms(20);
        assert_eq!((before, attached, unknown), (0, Ok(()), Err(EINVAL)));
        assert!(hit);
        assert_eq!(then % 4, 0);
        assert_eq!(get(), then);
        Ok(())
    }

    #[test]
    fn a_stack_has_no_frames_of_ours() {
        let from = |pc| stack::From { pc, regs: None };
        let found = CpuGuard::enter().map(|guard| {
            stack::kernel(&guard, from(0), usize::MAX, |frames| {
                // SAFETY: The helper takes any number.
                let ours = |pc: &&usize| unsafe { bindings::dtrace_own_text(**pc) };
                (frames.len(), frames.iter().filter(ours).count())
            })
        });
        let nowhere = CpuGuard::enter()
            .map(|guard| stack::kernel(&guard, from(stack::NOWHERE), usize::MAX, |f| f.len()));
        assert!(found.is_some_and(|(frames, ours)| frames >= 2 && ours == 0));
        assert_eq!(nowhere, Some(0));
    }
}
