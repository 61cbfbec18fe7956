// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The kernel as the engine sees it: [`KernelMachine`] is one firing of one probe on this CPU.
//!
//! Making one costs a few words on the stack; everything is fetched when the program asks. Nothing here sleeps, locks or
//! allocates, and whatever loads from an address goes through [`nofault`](crate::sys::nofault).

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

/// What this machine can do.
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

/// Units of a clause from which on its time counts, of those who see everything: to look at the clock costs as much as some hundred.
const TIMED: u64 = 4096;

/// Units of passing by what does not fire: whether it does may have to be asked.
const PASSED: u64 = 16;

/// One firing on this CPU.
pub struct KernelMachine<'a> {
    guard: &'a CpuGuard,
    probe: ProbeRef,
    args: &'a FireArgs<'a>,
    /// The time of the firing once it has been asked for, else 0.
    now: Cell<u64>,
    /// The thread's key, the same way.
    thread: Cell<u64>,
}

impl<'a> KernelMachine<'a> {
    /// The firing of `probe` with `args`.
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

    /// The firing of another probe on account of `other`'s, at the same time.
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

    /// A user's clause is about to run, or may be: what that takes counts from now on.
    pub fn begin_of_user(&self) {
        self.guard.look_at_toil(clock::monotonic());
    }

    /// What work counts for with the time that has gone since that was last asked.
    #[cold]
    fn timed(&self, units: u64) -> u64 {
        budget::work(units, self.guard.look_at_toil(clock::monotonic()))
    }

    /// Adds what a user's clause took, with the time that it took; returns what that counts for.
    #[cold]
    pub fn toil_of_user(&self, units: u64) -> u64 {
        let units = self.timed(units);
        self.guard.add_work_of_users(units);
        units
    }

    /// Adds what was passed by of a user's that does not fire here, or not any more.
    pub fn pass_of_users(&self) {
        self.guard.add_work_of_users(PASSED);
    }

    /// What users' clauses may do together. At a breakpoint they are rehearsed first.
    fn most_of_users(&self) -> u64 {
        match self.guard.is_stopped() {
            true => 2 * budget::FIRING_OF_USERS,
            false => budget::FIRING_OF_USERS,
        }
    }

    /// Whether users' clauses have done all that they may do together in a firing.
    pub fn users_are_over(&self) -> bool {
        self.guard.work_of_users() > self.most_of_users()
    }

    /// The probe.
    #[inline]
    pub fn probe(&self) -> ProbeRef {
        self.probe
    }

    /// What its provider told.
    #[inline]
    pub fn args(&self) -> &'a FireArgs<'a> {
        self.args
    }

    #[inline]
    fn task(&self) -> Current<'a> {
        Current::get(self.guard)
    }

    /// Walks the kernel stack of what fired.
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

    /// Walks the user stack of what fired, gives its frames to `to`, and notes those of evaluators in `spots`. Makes pauses.
    fn user_frames(
        &self,
        by: UserWalk,
        spots: Option<&mut Spots>,
        to: Sink<'_, '_>,
        from: Option<Pause>,
    ) -> Option<Pause> {
        unwind::walk(self.guard, self.how(by)?, spots, to, from)
    }

    /// How the user stack of what fired is walked, if there is one.
    fn how(&self, by: UserWalk) -> Option<unwind::How<'_>> {
        Some(unwind::How {
            regs: self.task().user_regs()?,
            is_called: matches!(self.args.args, Args::Called(_)),
            is_there: self.args.in_program,
            by,
        })
    }

    /// A key that no thread has, for this CPU.
    pub fn no_thread_key(&self) -> u64 {
        !(self.guard.cpu().index() as u64)
    }

    #[inline(never)]
    fn make_thread_key(&self) -> u64 {
        let who = self.task().who(self.guard.cpu().index());
        // A program that has come to a breakpoint is in no interrupt.
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

    /// Whoever sees everything is limited by itself.
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

    /// A thread's id comes back after its death, its start time does not; the idle threads share both, and differ by CPU. An
    /// interrupt has variables of its own, apart from those of the thread it interrupts.
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

    /// The address that the probed function returns to. A sample's stack begins within the function.
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

    /// The second frame: the user code that called what entered the kernel.
    fn ucaller(&self, by: UserWalk) -> u64 {
        let mut pcs = [0; 16];
        let mut frames = Frames::new(&mut pcs);
        self.user_frames(by.bare(), None, Sink::Frames(&mut frames), None);
        // Behind a single frame it may say that there is no other.
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

    /// A consumer that does not see everything goes by [`Seen`](super::seen::Seen).
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

    /// Refused when the program is enabled: the kernel exports no way into its debugger.
    fn breakpoint(&self) {}

    fn panic(&self) {
        control::panic();
    }

    fn chill(&self, ns: u64) {
        clock::spin(ns);
        // That is no work of whoever comes next.
        self.guard.look_at_toil(clock::monotonic());
        // It is to be seen how long it took.
        self.now.set(0);
    }
}
