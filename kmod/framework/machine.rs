// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The kernel as the engine sees it: [`KernelMachine`] is one firing of one probe on this CPU.
//!
//! Making one costs a few words on the stack, and everything is fetched when a program reads it.
//! Nothing here sleeps, locks or allocates (INV-4), and each load from a given address goes through
//! [`nofault`](crate::sys::nofault).

use super::fire::{Args, FireArgs};
use super::probe::ProbeRef;
use crate::sys::percpu::CpuGuard;
use crate::sys::regs::vector_arg;
use crate::sys::task::{irq_level, Current};
use crate::sys::unwind::Sink;
use crate::sys::{clock, control, locks, nofault, paths, remains, remote, stack, unwind, vtime};
use core::cell::Cell;
use dtrace_engine::budget;
use dtrace_engine::frames::Frames;
use dtrace_engine::{
    BadAddr, Dentry, Features, Kobject, Machine, Mount, Pause, Place, ProbeName, RwLock, Spots,
    TaskArgs, Unplaced, UserWalk,
};

/// The features of this machine.
pub const FEATURES: Features = Features {
    signals: true,
    ustack: true,
    breakpoint: false,
    panic: true,
    chill: true,
    user_store: true,
    regs: true,
    uregs: true,
};

/// Work of a clause from which on its time counts too, in units, for consumers that see everything.
/// Reading the clock costs as much as some hundred units.
const TIMED: u64 = 4096;

/// Units of passing a consumer for which the probe does not fire: this may have to be looked up.
const PASSED: u64 = 16;

/// One firing on this CPU.
pub struct KernelMachine<'a> {
    guard: &'a CpuGuard,
    probe: ProbeRef,
    args: &'a FireArgs<'a>,
    /// The time of the firing, once it has been read; else 0.
    now: Cell<u64>,
    /// The key of the thread, once it has been read; else 0.
    thread: Cell<u64>,
}

impl<'a> KernelMachine<'a> {
    /// Makes the firing of `probe` with `args`.
    #[inline]
    pub fn new(guard: &'a CpuGuard, probe: ProbeRef, args: &'a FireArgs<'a>) -> Self {
        Self {
            guard,
            probe,
            args,
            now: Cell::new(0),
            thread: Cell::new(0),
        }
    }

    /// Calls `fire` with a firing of `probe` that `other` causes, at the same time.
    pub fn within<R>(
        other: &Self,
        probe: ProbeRef,
        args: &FireArgs<'_>,
        fire: impl FnOnce(&KernelMachine<'_>) -> R,
    ) -> R {
        let this = KernelMachine::new(other.guard, probe, args);
        this.now.set(other.timestamp());
        fire(&this)
    }

    /// Starts to measure time for a clause of a consumer that does not see everything. The clause
    /// may turn out not to run.
    pub fn begin_of_user(&self) {
        self.guard.look_at_toil(clock::monotonic());
    }

    /// Returns what `units` count for, with the time since the clock was last read for this
    /// purpose.
    #[cold]
    fn timed(&self, units: u64) -> u64 {
        budget::work(units, self.guard.look_at_toil(clock::monotonic()))
    }

    /// Adds the work of a member's clause, and its time, to what members have done in this firing.
    /// Returns what it counts for.
    #[cold]
    pub fn toil_of_user(&self, units: u64) -> u64 {
        let units = self.timed(units);
        self.guard.add_work_of_users(units);
        units
    }

    /// Adds the passing of a consumer for which the probe does not fire here, or does not fire any
    /// more, to what members have done in this firing.
    pub fn pass_of_users(&self) {
        self.guard.add_work_of_users(PASSED);
    }

    /// Returns the common limit of members in this firing, in units. It is doubled at a breakpoint,
    /// where clauses are rehearsed first (INV-28).
    fn most_of_users(&self) -> u64 {
        match self.guard.is_stopped() {
            true => 2 * budget::FIRING_OF_USERS,
            false => budget::FIRING_OF_USERS,
        }
    }

    /// Whether members have used up their common limit in this firing.
    pub fn users_are_over(&self) -> bool {
        self.guard.work_of_users() > self.most_of_users()
    }

    /// Returns the probe.
    #[inline]
    pub fn probe(&self) -> ProbeRef {
        self.probe
    }

    /// Returns what the provider has told of the firing.
    #[inline]
    pub fn args(&self) -> &'a FireArgs<'a> {
        self.args
    }

    #[inline]
    fn task(&self) -> Current<'a> {
        Current::get(self.guard)
    }

    /// Walks the kernel stack at the firing.
    fn frames<R>(&self, most: usize, f: impl FnOnce(&[usize]) -> R) -> R {
        let regs = match self.args.args {
            Args::Function(regs) => Some(regs),
            _ if self.args.sampled => self.args.regs,
            _ => None,
        };
        let from = stack::From {
            pc: self.args.caller,
            regs,
        };
        stack::kernel(self.guard, from, most, f)
    }

    /// Walks the user stack at the firing. Gives the frames to `to` and notes the frames of
    /// evaluators in `spots`. May return a pause, with which a later call goes on.
    fn user_frames(
        &self,
        by: UserWalk,
        spots: Option<&mut Spots>,
        to: Sink<'_, '_>,
        from: Option<Pause>,
    ) -> Option<Pause> {
        unwind::walk(self.guard, self.how(by)?, spots, to, from)
    }

    /// Returns how to walk the user stack at the firing, if there is one.
    fn how(&self, by: UserWalk) -> Option<unwind::How<'_>> {
        Some(unwind::How {
            regs: self.task().user_regs()?,
            is_called: matches!(self.args.args, Args::Called(_)),
            is_there: self.args.in_program,
            by,
        })
    }

    /// Returns a key that no thread has. It differs between CPUs.
    pub fn no_thread_key(&self) -> u64 {
        !(self.guard.cpu().index() as u64)
    }

    #[inline(never)]
    fn make_thread_key(&self) -> u64 {
        let who = self.task().who(self.guard.cpu().index());
        // A program that has reached a breakpoint is not in an interrupt, although the kernel
        // counts its exception as one.
        let level = match self.args.in_program && self.guard.is_stopped() {
            true => 0,
            false => irq_level(),
        };
        who << 2 | u64::from(level & 3)
    }
}

impl Machine for KernelMachine<'_> {
    fn probe(&self) -> ProbeName<'_> {
        self.probe.names()
    }

    #[inline]
    fn timestamp(&self) -> u64 {
        if self.now.get() == 0 {
            self.now.set(clock::monotonic());
        }
        self.now.get()
    }

    #[inline]
    fn firing(&self) -> u64 {
        self.guard.firing()
    }

    /// A consumer that sees everything has limits of its own only. Light work costs no look at the
    /// clock.
    #[inline]
    fn toil(&self, units: u64) -> u64 {
        match units < TIMED {
            true => units,
            false => self.timed(units),
        }
    }

    fn burden(&self, units: u64) -> bool {
        self.guard.add_work_of_others(units) > budget::FIRING_OF_ALL
    }

    fn walltimestamp(&self) -> u64 {
        clock::wall()
    }

    fn vtimestamp(&self) -> u64 {
        vtime::net(self.guard)
    }

    #[inline]
    fn arg(&self, n: u64) -> Result<u64, BadAddr> {
        let Ok(n) = usize::try_from(n) else {
            return Ok(0);
        };
        Ok(match self.args.args {
            Args::Words(words) => words.get(n).copied().unwrap_or(0),
            Args::Function(regs) => regs.function_arg(n),
            Args::Syscall => self.task().user_regs().map_or(0, |r| r.syscall_arg(n)),
            Args::Called(regs) => vector_arg(n).unwrap_or_else(|| regs.called_arg(n)),
            Args::Returned(words) => match words.get(n) {
                Some(word) => *word,
                None => vector_arg(n).unwrap_or(0),
            },
            Args::Computed(all) => return all.arg(n).map_err(BadAddr),
        })
    }

    fn reg(&self, n: u64) -> Option<u64> {
        self.args.regs?.get(n)
    }

    fn ureg(&self, n: u64) -> Option<u64> {
        let task = self.task();
        task.user_regs()?.user(n).or_else(|| task.user_segment(n))
    }

    fn curthread(&self) -> u64 {
        self.task().addr()
    }

    /// The key contains the thread's start time, because thread ids are reused. The idle threads
    /// share both, so their key contains the CPU instead. An interrupt has variables of its own,
    /// apart from those of the thread that it interrupts.
    #[inline]
    fn thread_key(&self) -> u64 {
        if self.thread.get() == 0 {
            self.thread.set(self.make_thread_key());
        }
        self.thread.get()
    }

    #[inline]
    fn pid(&self) -> u32 {
        self.task().tgid()
    }

    fn own_tid(&self) -> u32 {
        self.task().own_tid()
    }

    fn thread_pointer(&self) -> u64 {
        self.task().thread_pointer()
    }

    #[inline]
    fn told(&self) -> u32 {
        remains::mark();
        self.pid()
    }

    #[inline]
    fn tid(&self) -> u32 {
        self.task().pid()
    }

    fn ppid(&self) -> u32 {
        self.task().ppid()
    }

    fn uid(&self) -> u32 {
        self.task().uid()
    }

    fn gid(&self) -> u32 {
        self.task().gid()
    }

    #[inline]
    fn execname(&self) -> [u8; 16] {
        self.task().comm()
    }

    fn errno(&self) -> i32 {
        self.args.errno
    }

    fn ipl(&self) -> u32 {
        irq_level()
    }

    /// Returns the address that the probed function returns to. A sample's stack begins within the
    /// interrupted function, so its caller is the second frame.
    fn caller(&self) -> u64 {
        let frame = |n: usize| {
            self.frames(n.wrapping_add(1), |frames| {
                frames.get(n).map_or(0, |pc| *pc as u64)
            })
        };
        match self.args.caller {
            stack::NOWHERE => 0,
            _ if self.args.sampled => frame(1),
            0 => frame(0),
            caller => caller,
        }
    }

    /// Returns the second frame: the user code that called the code which entered the kernel.
    fn ucaller(&self, by: UserWalk) -> u64 {
        let mut pcs = [0; 16];
        let mut frames = Frames::new(&mut pcs);
        self.user_frames(by.bare(), None, Sink::Frames(&mut frames), None);
        // If there is only one frame, what lies behind it is no address.
        let has_second = frames.finish() == 2;
        let (_, second) = pcs.split_at(8);
        let second = second.try_into().ok().filter(|_| has_second);
        second.map_or(0, u64::from_ne_bytes)
    }

    fn stackdepth(&self) -> u32 {
        self.frames(usize::MAX, |frames| frames.len() as u32)
    }

    fn ustackdepth(&self, by: UserWalk) -> u32 {
        let mut depth = 0u32;
        self.user_frames(by, None, Sink::Depth(&mut depth), None);
        depth
    }

    fn stack(&self, frames: &mut Frames<'_>) {
        self.frames(frames.room(), |walked| frames.extend(walked));
    }

    fn ustack(
        &self,
        by: UserWalk,
        frames: &mut Frames<'_>,
        spots: Option<&mut Spots>,
        from: Option<Pause>,
    ) -> Option<Pause> {
        self.user_frames(by, spots, Sink::Frames(frames), from)
    }

    fn ustack_again(&self, by: UserWalk, most: usize, is_known: impl FnOnce(u64) -> bool) -> bool {
        unwind::again(self.guard, self.how(by), most, is_known)
    }

    fn ustack_number(&self) -> u64 {
        unwind::recorded(self.guard)
    }

    fn mutex_owner(&self, addr: u64) -> Result<u64, BadAddr> {
        locks::mutex_owner(addr).map_err(|_| BadAddr(addr))
    }

    fn rwlock(&self, addr: u64) -> Result<RwLock, BadAddr> {
        let holders = locks::Holders::of(addr).map_err(|_| BadAddr(addr))?;
        Ok(RwLock {
            readers: holders.readers(),
            writer: holders.writer(),
            writer_waits: holders.writer_waits(),
        })
    }

    fn place(&self, path: &[u8; 16]) -> Place {
        paths::place_of(path)
    }

    fn root(&self) -> Option<Place> {
        paths::root(self.guard)
    }

    fn dentry(&self, addr: u64) -> Result<Dentry, BadAddr> {
        paths::dentry(addr).map_err(|_| BadAddr(addr))
    }

    fn mount(&self, addr: u64) -> Result<Mount, BadAddr> {
        paths::mount(addr).map_err(|_| BadAddr(addr))
    }

    fn unplaced(&self, addr: u64) -> Result<Unplaced, BadAddr> {
        paths::unplaced(addr).map_err(|_| BadAddr(addr))
    }

    fn kobject(&self, addr: u64) -> Result<Kobject, BadAddr> {
        paths::kobject(addr).map_err(|_| BadAddr(addr))
    }

    fn file(&self, fd: u32) -> u64 {
        paths::file(self.guard, fd)
    }

    fn user_args(&self) -> Option<(u64, u64)> {
        paths::user_args(self.guard)
    }

    fn task_args(&self, addr: u64) -> Result<Option<TaskArgs>, BadAddr> {
        remote::task_args(self.guard, addr).map_err(|_| BadAddr(addr))
    }

    fn task_name(&self, addr: u64) -> Result<[u8; 16], BadAddr> {
        remote::task_name(addr).map_err(|_| BadAddr(addr))
    }

    fn progenyof(&self, pid: u64) -> (bool, u32) {
        self.task().descends_from(pid)
    }

    /// Not used: a consumer that may not trace all processes is given a
    /// [`Seen`](super::seen::Seen).
    fn owned(&self) -> bool {
        false
    }

    #[inline]
    fn load(&self, addr: u64, out: &mut [u8]) -> Result<(), BadAddr> {
        nofault::load(addr, out).map_err(|_| BadAddr(addr))
    }

    #[inline]
    fn load_u64(&self, addr: u64) -> Result<u64, BadAddr> {
        nofault::load_u64(addr).map_err(|_| BadAddr(addr))
    }

    fn load_str(&self, addr: u64, out: &mut [u8]) -> Result<usize, BadAddr> {
        nofault::load_str(addr, out).map_err(|_| BadAddr(addr))
    }

    fn user_load(&self, addr: u64, out: &mut [u8]) -> Result<(), BadAddr> {
        nofault::user_load(addr, out).map_err(|_| BadAddr(addr))
    }

    fn user_load_str(&self, addr: u64, out: &mut [u8]) -> Result<usize, BadAddr> {
        nofault::user_load_str(addr, out).map_err(|_| BadAddr(addr))
    }

    fn remote_load(&self, mm: u64, addr: u64, out: &mut [u8]) -> Result<(), BadAddr> {
        remote::load(self.guard, mm, addr, out).map_err(|_| BadAddr(addr))
    }

    fn user_store(&self, addr: u64, data: &[u8]) -> Result<(), BadAddr> {
        nofault::user_store(addr, data).map_err(|_| BadAddr(addr))
    }

    fn stop(&self) -> bool {
        self.task().signal(control::SIGSTOP)
    }

    fn raise(&self, signal: u64) -> bool {
        self.task().signal(signal)
    }

    /// Never called: programs with this action are refused ([`FEATURES`]), because the kernel
    /// exports no entry to its debugger.
    fn breakpoint(&self) {}

    fn panic(&self) {
        control::panic();
    }

    fn chill(&self, ns: u64) {
        clock::spin(ns);
        // Restarts the measurement, so that the next clause does not pay for the delay.
        self.guard.look_at_toil(clock::monotonic());
        // The time is read anew, so that later reads show how long the delay took.
        self.now.set(0);
    }
}
