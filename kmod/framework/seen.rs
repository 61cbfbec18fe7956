// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The kernel as a consumer sees it that may not see everything: [`Seen`] is a firing for such a
//! consumer.
//!
//! For it, no probe fires in a process that it may not trace. Exceptions are its own probes
//! (`BEGIN`, `END`, `ERROR`) and ticks, which fire whatever runs on the CPU. So they show nothing
//! of a current process that the consumer may not trace: no process, no thread, no used time, and a
//! tick no arguments. A firing that has interrupted the kernel shows no arguments either.
//!
//! The consumer may have written a program that has the processor load speculatively what the
//! program may not, and may find out the value by the traces that this leaves in the caches
//! (INV-38). So after each load the machine waits until it is certain that the load was right, and
//! no load from the kernel and no store begins before its checks have been made.

use super::consumer::Consumer;
use super::fire::Cause;
use super::machine::KernelMachine;
use crate::sys::nofault::settle;
use crate::sys::rights::Rights;
use core::cell::Cell;
use dtrace_engine::frames::Frames;
use dtrace_engine::{
    BadAddr, Dentry, Kobject, Machine, Mount, Pause, Place, ProbeName, RwLock, Spots, TaskArgs,
    Unplaced, UserWalk,
};

/// A firing as a consumer sees it that may not see everything.
pub struct Seen<'a> {
    machine: &'a KernelMachine<'a>,
    /// Which processes the consumer may trace; `None` for all.
    rights: Option<&'a Rights>,
    /// Whether the consumer may trace the current process, once this has been looked up.
    own: Cell<Option<bool>>,
}

impl<'a> Seen<'a> {
    /// Makes the view that `consumer` has of a firing.
    pub fn new(machine: &'a KernelMachine<'a>, consumer: &'a Consumer) -> Self {
        Self {
            machine,
            rights: consumer.rights.as_deref(),
            own: Cell::new(None),
        }
    }

    /// Returns the firing without restrictions.
    pub fn machine(&self) -> &'a KernelMachine<'a> {
        self.machine
    }

    /// Returns what `ask` finds about the current process, or the default of `T` if the consumer
    /// may not trace that process.
    fn own<T: Default>(&self, ask: impl FnOnce(&KernelMachine<'a>) -> T) -> T {
        match self.owned() {
            true => ask(self.machine),
            false => T::default(),
        }
    }
}

impl Machine for Seen<'_> {
    fn probe(&self) -> ProbeName<'_> {
        Machine::probe(self.machine)
    }

    fn timestamp(&self) -> u64 {
        self.machine.timestamp()
    }

    fn firing(&self) -> u64 {
        self.machine.firing()
    }

    fn burden(&self, units: u64) -> bool {
        self.rights.is_none() && self.machine.burden(units)
    }

    fn toil(&self, units: u64) -> u64 {
        match self.rights.is_some() {
            true => self.machine.toil_of_user(units),
            false => self.machine.toil(units),
        }
    }

    fn is_over(&self) -> bool {
        self.rights.is_some() && self.machine.users_are_over()
    }

    fn walltimestamp(&self) -> u64 {
        self.machine.walltimestamp()
    }

    fn vtimestamp(&self) -> u64 {
        self.own(Machine::vtimestamp)
    }

    fn arg(&self, n: u64) -> Result<u64, BadAddr> {
        let args = self.machine.args();
        if args.of_kernel || self.is_of_nobody() && !self.owned() {
            return Ok(0);
        }
        let arg = self.machine.arg(n);
        self.settle();
        arg
    }

    fn reg(&self, n: u64) -> Option<u64> {
        self.machine.reg(n)
    }

    fn ureg(&self, n: u64) -> Option<u64> {
        self.own(|machine| machine.ureg(n))
    }

    fn curthread(&self) -> u64 {
        self.machine.curthread()
    }

    /// A key of no thread, if the consumer may not trace the current one. It differs between CPUs,
    /// so that two CPUs never share variables.
    fn thread_key(&self) -> u64 {
        match self.owned() {
            true => self.machine.thread_key(),
            false => self.machine.no_thread_key(),
        }
    }

    fn pid(&self) -> u32 {
        self.own(Machine::pid)
    }

    fn own_tid(&self) -> u32 {
        self.own(Machine::own_tid)
    }

    fn thread_pointer(&self) -> u64 {
        self.own(Machine::thread_pointer)
    }

    fn tid(&self) -> u32 {
        self.own(Machine::tid)
    }

    fn ppid(&self) -> u32 {
        self.own(Machine::ppid)
    }

    fn uid(&self) -> u32 {
        self.own(Machine::uid)
    }

    fn gid(&self) -> u32 {
        self.own(Machine::gid)
    }

    fn execname(&self) -> [u8; 16] {
        self.own(Machine::execname)
    }

    fn errno(&self) -> i32 {
        self.own(Machine::errno)
    }

    fn ipl(&self) -> u32 {
        self.machine.ipl()
    }

    fn caller(&self) -> u64 {
        self.machine.caller()
    }

    fn ucaller(&self, by: UserWalk) -> u64 {
        self.own(|machine| machine.ucaller(by))
    }

    fn stackdepth(&self) -> u32 {
        self.machine.stackdepth()
    }

    fn ustackdepth(&self, by: UserWalk) -> u32 {
        self.own(|machine| machine.ustackdepth(by))
    }

    fn stack(&self, frames: &mut Frames<'_>) {
        self.machine.stack(frames);
    }

    fn ustack(
        &self,
        by: UserWalk,
        frames: &mut Frames<'_>,
        spots: Option<&mut Spots>,
        from: Option<Pause>,
    ) -> Option<Pause> {
        self.own(|machine| machine.ustack(by, frames, spots, from))
    }

    fn mutex_owner(&self, addr: u64) -> Result<u64, BadAddr> {
        self.machine.mutex_owner(addr)
    }

    fn rwlock(&self, addr: u64) -> Result<RwLock, BadAddr> {
        self.machine.rwlock(addr)
    }

    fn place(&self, path: &[u8; 16]) -> Place {
        self.machine.place(path)
    }

    fn root(&self) -> Option<Place> {
        self.own(Machine::root)
    }

    fn dentry(&self, addr: u64) -> Result<Dentry, BadAddr> {
        self.machine.dentry(addr)
    }

    fn mount(&self, addr: u64) -> Result<Mount, BadAddr> {
        self.machine.mount(addr)
    }

    fn unplaced(&self, addr: u64) -> Result<Unplaced, BadAddr> {
        self.machine.unplaced(addr)
    }

    fn kobject(&self, addr: u64) -> Result<Kobject, BadAddr> {
        self.machine.kobject(addr)
    }

    fn file(&self, fd: u32) -> u64 {
        self.own(|machine| machine.file(fd))
    }

    fn user_args(&self) -> Option<(u64, u64)> {
        self.own(Machine::user_args)
    }

    fn task_args(&self, addr: u64) -> Result<Option<TaskArgs>, BadAddr> {
        self.machine.task_args(addr)
    }

    fn task_name(&self, addr: u64) -> Result<[u8; 16], BadAddr> {
        self.machine.task_name(addr)
    }

    fn progenyof(&self, pid: u64) -> (bool, u32) {
        self.own(|machine| machine.progenyof(pid))
    }

    fn owned(&self) -> bool {
        if let Some(own) = self.own.get() {
            return own;
        }
        let own = self.rights.is_none_or(Rights::may_see);
        self.own.set(Some(own));
        own
    }

    fn is_of_nobody(&self) -> bool {
        self.machine.args().cause == Cause::Tick
    }

    fn settle(&self) {
        settle();
    }

    fn load(&self, addr: u64, out: &mut [u8]) -> Result<(), BadAddr> {
        let loaded = self.machine.load(addr, out);
        self.settle();
        loaded
    }

    fn load_str(&self, addr: u64, out: &mut [u8]) -> Result<usize, BadAddr> {
        let loaded = self.machine.load_str(addr, out);
        self.settle();
        loaded
    }

    fn user_load(&self, addr: u64, out: &mut [u8]) -> Result<(), BadAddr> {
        let loaded = self.machine.user_load(addr, out);
        self.settle();
        loaded
    }

    fn user_load_str(&self, addr: u64, out: &mut [u8]) -> Result<usize, BadAddr> {
        let loaded = self.machine.user_load_str(addr, out);
        self.settle();
        loaded
    }

    fn remote_load(&self, mm: u64, addr: u64, out: &mut [u8]) -> Result<(), BadAddr> {
        let loaded = self.machine.remote_load(mm, addr, out);
        self.settle();
        loaded
    }

    fn user_store(&self, addr: u64, data: &[u8]) -> Result<(), BadAddr> {
        self.machine.user_store(addr, data)
    }

    fn stop(&self) -> bool {
        self.machine.stop()
    }

    fn raise(&self, signal: u64) -> bool {
        self.machine.raise(signal)
    }

    fn breakpoint(&self) {
        self.machine.breakpoint();
    }

    fn panic(&self) {
        self.machine.panic();
    }

    fn chill(&self, ns: u64) {
        self.machine.chill(ns);
    }
}
