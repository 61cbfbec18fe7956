// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! A small machine: kernel memory and user memory, a clock that advances when a firing reads it,
//! and the thread in which probes fire.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
};

use dtrace::device::text;
use dtrace_engine::frames::Frames;
use dtrace_engine::{
    BadAddr, Dentry, Kobject, Machine, Mount, Pause, Place, ProbeName, RwLock, Spot, Spots,
    TaskArgs, Unplaced, UserWalk,
};
use dtrace_uapi::ioctl::ProbeDesc;

/// Blocks of memory by their addresses.
type Memory = BTreeMap<u64, Vec<u8>>;

/// The state that outlives a firing.
#[derive(Default)]
pub struct Platform {
    /// The kernel's memory.
    pub kernel: RefCell<Memory>,
    /// The memory of the process.
    pub user: RefCell<Memory>,
    /// Nanoseconds since the machine started.
    pub now: Cell<u64>,
    /// The destructive actions that were executed.
    pub deeds: RefCell<Vec<String>>,
    /// The walker of the frames of [`USER_STACK`], all of which are evaluators. If there is none,
    /// the process has no stack.
    pub walker: Cell<Option<u64>>,
}

/// The user stack of every firing, innermost frame first.
pub const USER_STACK: [u64; 2] = [0x1100, 0x2200];

/// The thread in which probes fire.
#[derive(Clone, Copy)]
pub struct Thread {
    /// Process ID.
    pub pid: u32,
    /// Thread ID.
    pub tid: u32,
    /// Name of the thread.
    pub comm: &'static str,
}

impl Default for Thread {
    fn default() -> Self {
        Self {
            pid: 1234,
            tid: 1235,
            comm: "bash",
        }
    }
}

/// One firing of one probe.
pub struct Firing<'a> {
    /// The machine.
    pub platform: &'a Platform,
    /// The thread.
    pub thread: Thread,
    /// The probe's name in four parts.
    name: [String; 4],
    args: Vec<u64>,
    /// The time of the firing, once the program has read it.
    now: Cell<Option<u64>>,
}

impl<'a> Firing<'a> {
    /// Makes a firing of `probe` with `args`.
    pub fn new(platform: &'a Platform, thread: Thread, probe: &ProbeDesc, args: &[u64]) -> Self {
        let ProbeDesc {
            provider,
            module,
            func,
            name,
            ..
        } = probe;
        Self {
            platform,
            thread,
            name: [text(provider), text(module), text(func), text(name)],
            args: args.to_vec(),
            now: Cell::default(),
        }
    }
}

/// The bytes from `addr` to the end of its block.
fn find(memory: &Memory, addr: u64) -> Option<&[u8]> {
    let (base, bytes) = memory.range(..=addr).next_back()?;
    let bytes = bytes.get(usize::try_from(addr - base).ok()?..)?;
    (!bytes.is_empty()).then_some(bytes)
}

fn load(memory: &Memory, addr: u64, out: &mut [u8]) -> Result<(), BadAddr> {
    let bytes = find(memory, addr).and_then(|bytes| bytes.get(..out.len()));
    out.copy_from_slice(bytes.ok_or(BadAddr(addr))?);
    Ok(())
}

fn load_str(memory: &Memory, addr: u64, out: &mut [u8]) -> Result<usize, BadAddr> {
    let bytes = find(memory, addr).ok_or(BadAddr(addr))?;
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    if end == bytes.len() && end < out.len() {
        return Err(BadAddr(addr + end as u64));
    }
    let n = end.min(out.len());
    out[..n].copy_from_slice(&bytes[..n]);
    Ok(n)
}

impl Machine for Firing<'_> {
    fn probe(&self) -> ProbeName<'_> {
        let [provider, module, func, name] = &self.name;
        ProbeName {
            provider: provider.as_bytes(),
            module: module.as_bytes(),
            func: func.as_bytes(),
            name: name.as_bytes(),
        }
    }

    fn timestamp(&self) -> u64 {
        let now = self.now.get().unwrap_or_else(|| {
            let now = self.platform.now.get() + 1;
            self.platform.now.set(now);
            now
        });
        self.now.set(Some(now));
        now
    }

    fn firing(&self) -> u64 {
        self.timestamp()
    }

    fn toil(&self, units: u64) -> u64 {
        units
    }

    fn walltimestamp(&self) -> u64 {
        951_782_400_000_000_000
    }

    fn vtimestamp(&self) -> u64 {
        self.platform.now.get() / 2
    }

    fn arg(&self, n: u64) -> Result<u64, BadAddr> {
        let n = usize::try_from(n).unwrap_or(usize::MAX);
        Ok(self.args.get(n).copied().unwrap_or(0))
    }

    fn reg(&self, _n: u64) -> Option<u64> {
        None
    }

    fn ureg(&self, _n: u64) -> Option<u64> {
        None
    }

    fn curthread(&self) -> u64 {
        0xffff_8880_0000_0000 + u64::from(self.thread.tid)
    }

    fn thread_key(&self) -> u64 {
        self.thread.tid.into()
    }

    fn pid(&self) -> u32 {
        self.thread.pid
    }

    fn tid(&self) -> u32 {
        self.thread.tid
    }

    fn own_tid(&self) -> u32 {
        self.thread.tid
    }

    fn thread_pointer(&self) -> u64 {
        0
    }

    fn ppid(&self) -> u32 {
        1
    }

    fn uid(&self) -> u32 {
        1000
    }

    fn gid(&self) -> u32 {
        100
    }

    fn execname(&self) -> [u8; 16] {
        let mut name = [0; 16];
        name[..self.thread.comm.len()].copy_from_slice(self.thread.comm.as_bytes());
        name
    }

    fn errno(&self) -> i32 {
        0
    }

    fn ipl(&self) -> u32 {
        0
    }

    fn caller(&self) -> u64 {
        super::STACK[1]
    }

    fn ucaller(&self, _by: UserWalk) -> u64 {
        0x40_0000
    }

    fn stackdepth(&self) -> u32 {
        super::STACK.len() as u32
    }

    fn ustackdepth(&self, _by: UserWalk) -> u32 {
        0
    }

    fn stack(&self, frames: &mut Frames<'_>) {
        super::STACK.iter().all(|&pc| frames.put(pc));
    }

    fn ustack(
        &self,
        _by: UserWalk,
        frames: &mut Frames<'_>,
        mut spots: Option<&mut Spots>,
        _from: Option<Pause>,
    ) -> Option<Pause> {
        let walker = self.platform.walker.get()?;
        for (n, pc) in USER_STACK.into_iter().enumerate() {
            frames.put(pc);
            if let Some(spots) = &mut spots {
                spots.note(Spot::new(n as u32, pc, 0, None, 0), walker, |_| None);
            }
        }
        None
    }

    fn mutex_owner(&self, addr: u64) -> Result<u64, BadAddr> {
        self.load_u64(addr)
    }

    fn rwlock(&self, addr: u64) -> Result<RwLock, BadAddr> {
        let cnts = self.load_u32(addr)?;
        Ok(RwLock {
            readers: cnts >> 9 != 0,
            writer: cnts & 0xff == 0xff,
            writer_waits: cnts & 0x100 != 0,
        })
    }

    fn place(&self, _path: &[u8; 16]) -> Place {
        Place::default()
    }

    fn root(&self) -> Option<Place> {
        None
    }

    fn dentry(&self, addr: u64) -> Result<Dentry, BadAddr> {
        Err(BadAddr(addr))
    }

    fn mount(&self, addr: u64) -> Result<Mount, BadAddr> {
        Err(BadAddr(addr))
    }

    fn unplaced(&self, addr: u64) -> Result<Unplaced, BadAddr> {
        Err(BadAddr(addr))
    }

    fn kobject(&self, addr: u64) -> Result<Kobject, BadAddr> {
        Err(BadAddr(addr))
    }

    fn file(&self, _fd: u32) -> u64 {
        0
    }

    fn user_args(&self) -> Option<(u64, u64)> {
        None
    }

    fn task_args(&self, addr: u64) -> Result<Option<TaskArgs>, BadAddr> {
        Err(BadAddr(addr))
    }

    fn task_name(&self, addr: u64) -> Result<[u8; 16], BadAddr> {
        Err(BadAddr(addr))
    }

    fn progenyof(&self, pid: u64) -> (bool, u32) {
        (pid == u64::from(self.thread.pid), 1)
    }

    fn owned(&self) -> bool {
        true
    }

    fn load(&self, addr: u64, out: &mut [u8]) -> Result<(), BadAddr> {
        load(&self.platform.kernel.borrow(), addr, out)
    }

    fn load_str(&self, addr: u64, out: &mut [u8]) -> Result<usize, BadAddr> {
        load_str(&self.platform.kernel.borrow(), addr, out)
    }

    fn user_load(&self, addr: u64, out: &mut [u8]) -> Result<(), BadAddr> {
        load(&self.platform.user.borrow(), addr, out)
    }

    fn user_load_str(&self, addr: u64, out: &mut [u8]) -> Result<usize, BadAddr> {
        load_str(&self.platform.user.borrow(), addr, out)
    }

    fn remote_load(&self, _mm: u64, addr: u64, _out: &mut [u8]) -> Result<(), BadAddr> {
        Err(BadAddr(addr))
    }

    fn user_store(&self, addr: u64, data: &[u8]) -> Result<(), BadAddr> {
        let mut memory = self.platform.user.borrow_mut();
        let piece = memory.range_mut(..=addr).next_back();
        let (base, bytes) = piece.ok_or(BadAddr(addr))?;
        let at = usize::try_from(addr - base).map_err(|_| BadAddr(addr))?;
        let room = bytes.get_mut(at..).and_then(|b| b.get_mut(..data.len()));
        room.ok_or(BadAddr(addr))?.copy_from_slice(data);
        Ok(())
    }

    fn stop(&self) -> bool {
        self.platform.deeds.borrow_mut().push("stop".into());
        true
    }

    fn raise(&self, signal: u64) -> bool {
        let deed = format!("raise {signal}");
        self.platform.deeds.borrow_mut().push(deed);
        true
    }

    fn breakpoint(&self) {
        self.platform.deeds.borrow_mut().push("breakpoint".into());
    }

    fn panic(&self) {
        self.platform.deeds.borrow_mut().push("panic".into());
    }

    fn chill(&self, ns: u64) {
        self.platform.deeds.borrow_mut().push(format!("chill {ns}"));
    }
}
