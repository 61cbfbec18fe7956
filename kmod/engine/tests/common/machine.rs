// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! A machine whose kernel memory and user memory are maps from addresses to pieces.

use dtrace_engine::budget;
use dtrace_engine::frames::Frames;
use dtrace_engine::{
    BadAddr, Dentry, Kobject, Machine, Mount, Pause, Place, ProbeName, RwLock, Spot, Spots,
    TaskArgs, Unplaced, UserWalk,
};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

#[derive(Debug)]
pub struct TestMachine {
    pub kernel: BTreeMap<u64, Vec<u8>>,
    pub user: RefCell<BTreeMap<u64, Vec<u8>>>,
    pub args: [u64; 10],
    /// An argument that cannot be read, and the address at which it would lie.
    pub missing: Option<(u64, u64)>,
    pub pid: u32,
    pub comm: &'static str,
    pub now: Cell<u64>,
    pub owned: bool,
    /// Whether the firing is about no process.
    pub of_nobody: bool,
    pub thread: u64,
    /// Number of frames of the kernel stack, at most three.
    pub depth: usize,
    pub root: Option<Place>,
    pub user_args: Option<(u64, u64)>,
    /// Distance by which the address space of a process moves at each read from it, as if it
    /// executed another program; `executed` is the sum so far.
    pub executes: u64,
    pub executed: Cell<u64>,
    pub log: RefCell<Vec<String>>,
    /// The work that was counted, in units.
    pub toil: Cell<u64>,
    /// The clock, and how it limits members' clauses.
    pub time: Time,
    /// Number of calls of `settle()`.
    pub settled: Cell<u32>,
    /// Frames of the user stack.
    pub ustack: Vec<u64>,
    /// The processes and stacks that were seen, by their numbers minus 1; `number` is that of the
    /// last one.
    pub recorded: RefCell<Vec<(u32, Vec<u64>)>>,
    pub number: Cell<u64>,
    /// Frames of evaluators in the user stack: the index of the frame, the number of its walker,
    /// and the only constant of its file.
    pub evaluators: Vec<(u32, u64, u64)>,
    /// Number of the walker of generated code, in which all of the user stack is then; it tells
    /// callers.
    pub made: Option<u64>,
    /// Whether the owner of generated code is searched for, for each stack.
    pub seeks: bool,
}

impl Default for TestMachine {
    fn default() -> Self {
        Self {
            kernel: BTreeMap::new(),
            user: RefCell::default(),
            args: std::array::from_fn(|i| 100 + i as u64),
            missing: None,
            pid: 1234,
            comm: "tester",
            now: Cell::new(0x1_0000_0000),
            owned: true,
            of_nobody: false,
            thread: 0xffff_8880_0000_1000,
            depth: 3,
            root: None,
            user_args: None,
            executes: 0,
            executed: Cell::default(),
            log: RefCell::default(),
            toil: Cell::default(),
            time: Time::default(),
            settled: Cell::default(),
            ustack: vec![21, 22],
            recorded: RefCell::default(),
            number: Cell::default(),
            evaluators: Vec::new(),
            made: None,
            seeks: false,
        }
    }
}

/// A clock that advances when memory is loaded or variables are looked up.
#[derive(Debug, Default)]
pub struct Time {
    /// The time, in ns.
    pub now: Cell<u64>,
    /// Duration of a load in ns, for each 64 bytes.
    pub load: u64,
    /// Number of loads so far; `pause` is the load during which the machine stops for a second.
    pub loads: Cell<u64>,
    pub pause: Option<u64>,
    /// When work was counted last, if work counts by time and has a limit.
    pub looked: Option<Cell<u64>>,
    /// Number of calls of `is_over()`.
    pub asked: Cell<u32>,
}

impl Time {
    fn pass(&self, bytes: usize) {
        let loads = self.loads.get() + 1;
        self.loads.set(loads);
        let pause = u64::from(self.pause == Some(loads)) * 1_000_000_000;
        let lines = bytes.div_ceil(64).max(1) as u64;
        self.now.set(self.now.get() + self.load * lines + pause);
    }

    /// Returns what units count as.
    fn work(&self, units: u64) -> u64 {
        let Some(looked) = &self.looked else {
            return units;
        };
        let now = self.now.get();
        budget::work(units, now - looked.replace(now))
    }
}

fn find(map: &BTreeMap<u64, Vec<u8>>, addr: u64) -> Option<&[u8]> {
    let (base, bytes) = map.range(..=addr).next_back()?;
    bytes
        .get(usize::try_from(addr - base).ok()?..)
        .filter(|b| !b.is_empty())
}

fn load(map: &BTreeMap<u64, Vec<u8>>, addr: u64, out: &mut [u8]) -> Result<(), BadAddr> {
    if out.is_empty() {
        return Ok(());
    }
    let from = find(map, addr).and_then(|b| b.get(..out.len()));
    out.copy_from_slice(from.ok_or(BadAddr(addr))?);
    Ok(())
}

fn load_str(map: &BTreeMap<u64, Vec<u8>>, addr: u64, out: &mut [u8]) -> Result<usize, BadAddr> {
    let from = find(map, addr).ok_or(BadAddr(addr))?;
    for (i, to) in out.iter_mut().enumerate() {
        match from.get(i) {
            Some(0) => return Ok(i),
            Some(b) => *to = *b,
            None => return Err(BadAddr(addr + i as u64)),
        }
    }
    Ok(out.len())
}

impl Machine for TestMachine {
    fn probe(&self) -> ProbeName<'_> {
        ProbeName {
            provider: b"test",
            module: b"vmlinux",
            func: b"do_it",
            name: b"entry",
        }
    }
    fn timestamp(&self) -> u64 {
        self.now.get()
    }
    fn firing(&self) -> u64 {
        self.now.get()
    }
    fn toil(&self, units: u64) -> u64 {
        let units = self.time.work(units);
        self.toil.set(self.toil.get() + units);
        units
    }
    fn is_over(&self) -> bool {
        self.time.asked.set(self.time.asked.get() + 1);
        self.time.looked.is_some() && self.toil.get() > budget::FIRING_OF_USERS
    }
    fn walltimestamp(&self) -> u64 {
        77
    }
    fn vtimestamp(&self) -> u64 {
        88
    }
    fn arg(&self, n: u64) -> Result<u64, BadAddr> {
        match self.missing {
            Some((arg, addr)) if arg == n => Err(BadAddr(addr)),
            _ => Ok(self.args.get(n as usize).copied().unwrap_or(0)),
        }
    }
    fn reg(&self, n: u64) -> Option<u64> {
        (n < 4).then(|| 1000 + n)
    }
    fn ureg(&self, n: u64) -> Option<u64> {
        (n < 4).then(|| 2000 + n)
    }
    fn curthread(&self) -> u64 {
        self.thread
    }
    fn thread_key(&self) -> u64 {
        self.time.pass(8);
        self.thread
    }
    fn pid(&self) -> u32 {
        self.pid
    }
    fn tid(&self) -> u32 {
        self.pid + 1
    }
    fn own_tid(&self) -> u32 {
        self.pid + 2
    }
    fn thread_pointer(&self) -> u64 {
        self.thread + 8
    }
    fn ppid(&self) -> u32 {
        1
    }
    fn uid(&self) -> u32 {
        501
    }
    fn gid(&self) -> u32 {
        502
    }
    fn execname(&self) -> [u8; 16] {
        let mut out = [0; 16];
        out[..self.comm.len()].copy_from_slice(self.comm.as_bytes());
        out
    }
    fn errno(&self) -> i32 {
        2
    }
    fn ipl(&self) -> u32 {
        6
    }
    fn caller(&self) -> u64 {
        0xffff_ffff_8100_0000
    }
    fn ucaller(&self, _by: UserWalk) -> u64 {
        0x40_0000
    }
    fn stackdepth(&self) -> u32 {
        3
    }
    fn ustackdepth(&self, _by: UserWalk) -> u32 {
        2
    }
    fn stack(&self, frames: &mut Frames<'_>) {
        let pcs = [11, 12, 13].into_iter().take(self.depth);
        pcs.for_each(|pc| {
            frames.put(pc);
        });
    }
    fn ustack(
        &self,
        _by: UserWalk,
        frames: &mut Frames<'_>,
        spots: Option<&mut Spots>,
        from: Option<Pause>,
    ) -> Option<Pause> {
        if let Some(walker) = self.made {
            return made_stack(walker, frames, spots?, from);
        }
        self.ustack.iter().all(|pc| frames.put(*pc));
        let spots = spots?;
        if self.seeks && spots.ask_owner() {
            spots.seek_owner();
        }
        for (frame, walker, constant) in &self.evaluators {
            let spot = Spot::new(*frame, 21, 0x7000, None, 0x40_0000);
            spots.note(spot, *walker, |n| (n == 0).then_some(*constant));
        }
        None
    }
    fn ustack_again(&self, _by: UserWalk, most: usize, is_known: impl FnOnce(u64) -> bool) -> bool {
        self.number.set(0);
        if self.made.is_some() || !self.evaluators.is_empty() || self.ustack.is_empty() {
            return false;
        }
        let mut all = self.recorded.borrow_mut();
        let it = (
            self.pid,
            self.ustack[..most.min(self.ustack.len())].to_vec(),
        );
        let known = all.iter().position(|one| *one == it);
        if known.is_some_and(|n| is_known(n as u64 + 1)) {
            return true;
        }
        // The stack gets a new number.
        if let Some(n) = known {
            all[n].0 = 0;
        }
        all.push(it);
        self.number.set(all.len() as u64);
        false
    }
    fn ustack_number(&self) -> u64 {
        self.number.get()
    }
    /// A mutex is its owner with flags, as in the kernel. A reader-writer lock is three bytes.
    fn mutex_owner(&self, addr: u64) -> Result<u64, BadAddr> {
        self.load_u64(addr).map(|word| word & !7)
    }
    fn rwlock(&self, addr: u64) -> Result<RwLock, BadAddr> {
        let mut state = [0; 3];
        self.load(addr, &mut state)?;
        let [readers, writer, writer_waits] = state.map(|byte| byte != 0);
        Ok(RwLock {
            readers,
            writer,
            writer_waits,
        })
    }
    /// The kernel's structures are sequences of words here, one for each field in order.
    fn place(&self, path: &[u8; 16]) -> Place {
        let word = |at: usize| u64::from_ne_bytes(path[at..at + 8].try_into().unwrap());
        Place {
            mount: word(0),
            dentry: word(8),
        }
    }
    fn root(&self) -> Option<Place> {
        self.root
    }
    fn dentry(&self, addr: u64) -> Result<Dentry, BadAddr> {
        let word = |n: u64| self.load_u64(addr + n * 8);
        Ok(Dentry {
            parent: word(0)?,
            name: word(1)?,
            len: word(2)? as u32,
            removed: word(3)? != 0,
        })
    }
    fn mount(&self, addr: u64) -> Result<Mount, BadAddr> {
        let word = |n: u64| self.load_u64(addr + n * 8);
        Ok(Mount {
            root: word(0)?,
            above: Place {
                mount: word(1)?,
                dentry: word(2)?,
            },
        })
    }
    fn unplaced(&self, addr: u64) -> Result<Unplaced, BadAddr> {
        Ok(Unplaced {
            fs: self.load_u64(addr + 32)?,
            inode: self.load_u64(addr + 40)?,
        })
    }
    fn kobject(&self, addr: u64) -> Result<Kobject, BadAddr> {
        Ok(Kobject {
            name: self.load_u64(addr)?,
            parent: self.load_u64(addr + 8)?,
        })
    }
    fn file(&self, fd: u32) -> u64 {
        [0xff00, 0, 0xff02].get(fd as usize).copied().unwrap_or(0)
    }
    fn user_args(&self) -> Option<(u64, u64)> {
        self.user_args
    }
    /// A task is three words (address space, start and end of its arguments), followed by its name.
    fn task_args(&self, addr: u64) -> Result<Option<TaskArgs>, BadAddr> {
        let word = |n: u64| self.load_u64(addr + n * 8);
        let args = TaskArgs {
            mm: word(0)? + self.executed.get(),
            begin: word(1)?,
            end: word(2)?,
        };
        Ok((args.mm != 0).then_some(args))
    }
    fn task_name(&self, addr: u64) -> Result<[u8; 16], BadAddr> {
        let mut name = [0; 16];
        self.load(addr + 24, &mut name)?;
        Ok(name)
    }
    fn progenyof(&self, pid: u64) -> (bool, u32) {
        (pid == 1 || pid == u64::from(self.pid), 4096)
    }
    fn owned(&self) -> bool {
        self.owned
    }
    fn is_of_nobody(&self) -> bool {
        self.of_nobody
    }
    fn load(&self, addr: u64, out: &mut [u8]) -> Result<(), BadAddr> {
        load(&self.kernel, addr, out)
    }
    fn load_str(&self, addr: u64, out: &mut [u8]) -> Result<usize, BadAddr> {
        self.time.pass(out.len());
        load_str(&self.kernel, addr, out)
    }
    fn settle(&self) {
        self.settled.set(self.settled.get() + 1);
    }
    fn user_load(&self, addr: u64, out: &mut [u8]) -> Result<(), BadAddr> {
        self.time.pass(out.len());
        load(&self.user.borrow(), addr, out)
    }
    fn user_load_str(&self, addr: u64, out: &mut [u8]) -> Result<usize, BadAddr> {
        load_str(&self.user.borrow(), addr, out)
    }
    /// An address space is a part of the kernel's memory.
    fn remote_load(&self, mm: u64, addr: u64, out: &mut [u8]) -> Result<(), BadAddr> {
        self.executed.set(self.executed.get() + self.executes);
        self.load(mm + addr, out)
    }
    fn user_store(&self, addr: u64, data: &[u8]) -> Result<(), BadAddr> {
        let mut user = self.user.borrow_mut();
        let (base, bytes) = user.range_mut(..=addr).next_back().ok_or(BadAddr(addr))?;
        let at = (addr - base) as usize;
        bytes
            .get_mut(at..at + data.len())
            .ok_or(BadAddr(addr))?
            .copy_from_slice(data);
        Ok(())
    }
    fn stop(&self) -> bool {
        self.log.borrow_mut().push("stop".into());
        true
    }
    fn raise(&self, signal: u64) -> bool {
        self.log.borrow_mut().push(format!("raise {signal}"));
        signal <= 64
    }
    fn breakpoint(&self) {
        self.log.borrow_mut().push("breakpoint".into());
    }
    fn panic(&self) {
        self.log.borrow_mut().push("panic".into());
    }
    fn chill(&self, ns: u64) {
        self.log.borrow_mut().push(format!("chill {ns}"));
    }
}

/// Walks a stack whose frames are found by a walker.
fn made_stack(
    walker: u64,
    frames: &mut Frames<'_>,
    spots: &mut Spots,
    from: Option<Pause>,
) -> Option<Pause> {
    let (walked, pc, sp) = match from {
        None => (0, 21, 0x7000),
        Some(pause) => {
            let caller = pause.caller?;
            (pause.walked, caller.pc, caller.sp)
        }
    };
    spots.own_made(walker, 0x40_0000, true, |_| None);
    let is_to_tell = spots.note_made(Spot::new(walked, pc, sp, None, 0));
    let pause = Pause {
        walked: walked + 1,
        is_exact: walked == 0,
        pc,
        sp,
        fp: None,
        caller: None,
    };
    (frames.put(pc) && is_to_tell).then_some(pause)
}
