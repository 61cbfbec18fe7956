// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! The kernel as the engine sees it from probe context.
//!
//! [`Machine`] is the only way out of the engine while a probe fires. It is a generic parameter of
//! [`Consumer::fire`](crate::Consumer::fire), so every call is resolved at compile time and a test machine costs the
//! kernel nothing. Everything that an implementation does must be legal with interrupts off, in any context that
//! ftrace reaches: no sleeping, no locks that other code takes, no allocation, no tracing of itself.
//!
//! Addresses that DIF computes are of two worlds: the engine's own memory has addresses in a range that no processor
//! can use (see the module `var::addr`), and every other address is the kernel's or, for `uld*` and the `copyin()` family,
//! the user's, and goes through this trait. A load reports failure by [`BadAddr`]; it never faults.

use crate::frames::Frames;
use crate::interp::spots::{Pause, Spots};
use dtrace_uapi::option::{USTACKMODE_FP, USTACKMODE_TABLE, USTACKMODE_TOLD};

/// A load or store failed at this address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadAddr(pub u64);

/// The four parts of the name of the firing probe, without NULs.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProbeName<'a> {
    /// Provider.
    pub provider: &'a [u8],
    /// Module.
    pub module: &'a [u8],
    /// Function.
    pub func: &'a [u8],
    /// Name.
    pub name: &'a [u8],
}

/// How user stacks are walked: the option `ustackmode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UserWalk {
    /// By tables, and by frame pointers where there are none.
    #[default]
    Auto,
    /// By frame pointers alone.
    FramePointers,
    /// By tables alone.
    Tables,
    /// As [`Auto`](Self::Auto), and it is told which frames no table led to: by [`STACK_GUESSED`](dtrace_uapi::types::STACK_GUESSED).
    Told,
}

impl UserWalk {
    /// That of the option's value.
    pub fn of(mode: u64) -> Self {
        match mode {
            USTACKMODE_FP => Self::FramePointers,
            USTACKMODE_TABLE => Self::Tables,
            USTACKMODE_TOLD => Self::Told,
            _ => Self::Auto,
        }
    }

    /// The same for addresses that a program computes with.
    #[must_use]
    pub fn bare(self) -> Self {
        match self {
            Self::Told => Self::Auto,
            other => other,
        }
    }
}

/// Who holds a lock for readers and writers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RwLock {
    /// One or more readers.
    pub readers: bool,
    /// A writer.
    pub writer: bool,
    /// Nobody or readers, but a writer waits.
    pub writer_waits: bool,
}

/// A directory entry below a mount: what a `struct path` names. Both are addresses, the mount's that of its `vfsmount`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The mount.
    pub mount: u64,
    /// The directory entry.
    pub dentry: u64,
}

/// What a directory entry says of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dentry {
    /// That of the directory; of a root, its own address.
    pub parent: u64,
    /// Where its name is.
    pub name: u64,
    /// How long that is.
    pub len: u32,
    /// No lookup finds it any more.
    pub removed: bool,
}

/// What a mount says of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mount {
    /// The directory entry that it shows where it is mounted.
    pub root: u64,
    /// Where that is; of a mount that is nowhere, itself and anything.
    pub above: Place,
}

/// A file that is in no directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unplaced {
    /// Where the name of its kind of file system is.
    pub fs: u64,
    /// The number of its inode.
    pub inode: u64,
}

/// What an object of the device model says of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kobject {
    /// Where its name is.
    pub name: u64,
    /// The one above it, 0 at the top.
    pub parent: u64,
}

/// Where a process has its arguments, which end with a NUL each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskArgs {
    /// Its address space: the address of the `mm_struct`.
    pub mm: u64,
    /// Where they begin there.
    pub begin: u64,
    /// Where they end.
    pub end: u64,
}

/// The kernel in probe context, for one firing of one probe.
pub trait Machine {
    /// Whether a load whose address is not a multiple of its size is a BADALIGN fault. Stores always check.
    const STRICT_ALIGN: bool = false;

    /// The firing probe's names.
    fn probe(&self) -> ProbeName<'_>;
    /// The time of the firing, in nanoseconds of a clock that never steps back: the same whenever it is asked for during
    /// one firing, so that all of its clauses see one time.
    /// Only [`chill`](Self::chill) moves it on.
    fn timestamp(&self) -> u64;
    /// What tells a firing from others on its CPU.
    fn firing(&self) -> u64;
    /// Adds what a clause took, or a part of that, to the work that consumers like this one have done together in the firing, where that is
    /// limited; returns what it counts for.
    fn toil(&self, units: u64) -> u64;
    /// Adds what a consumer that is limited by itself has done to what all such have done in the firing; whether that is too much.
    fn burden(&self, _units: u64) -> bool {
        false
    }
    /// Whether that is all that they may do in the firing: then the clause that asks is ended.
    fn is_over(&self) -> bool {
        false
    }
    /// Nanoseconds since 1970.
    fn walltimestamp(&self) -> u64;
    /// Nanoseconds that the current thread has spent on a CPU up to the firing, without those of earlier firings; the same whenever
    /// it is asked for during one firing.
    fn vtimestamp(&self) -> u64;
    /// `arg0` to `arg9`, and `args[n]` of any n; 0 where the probe has no such argument. It may lie in memory that is
    /// not there.
    fn arg(&self, n: u64) -> Result<u64, BadAddr>;
    /// Register `n` of the interrupted kernel context, `None` where there is none.
    fn reg(&self, n: u64) -> Option<u64>;
    /// Register `n` of the current thread's user context, `None` where there is none.
    fn ureg(&self, n: u64) -> Option<u64>;
    /// Address of the current `task_struct`.
    fn curthread(&self) -> u64;
    /// What names the thread-local storage: differs between threads, and between a thread and the interrupts in it.
    fn thread_key(&self) -> u64;
    /// Process id.
    fn pid(&self) -> u32;
    /// The same, where an address of the process is recorded: what that means is asked for later, when the process may have ended.
    fn told(&self) -> u32 {
        self.pid()
    }
    /// Thread id.
    fn tid(&self) -> u32;
    /// The same as the process itself sees it.
    fn own_tid(&self) -> u32;
    /// From where the program addresses the thread's own variables.
    fn thread_pointer(&self) -> u64;
    /// Process id of the parent.
    fn ppid(&self) -> u32;
    /// Real user id.
    fn uid(&self) -> u32;
    /// Real group id.
    fn gid(&self) -> u32;
    /// Name of the process, ending with NUL.
    fn execname(&self) -> [u8; 16];
    /// Error of the current system call.
    fn errno(&self) -> i32;
    /// 0 in a thread, more in interrupts.
    fn ipl(&self) -> u32;
    /// Return address of the probed function.
    fn caller(&self) -> u64;
    /// Return address of the user function.
    fn ucaller(&self, by: UserWalk) -> u64;
    /// Frames of the kernel stack.
    fn stackdepth(&self) -> u32;
    /// Frames of the user stack.
    fn ustackdepth(&self, by: UserWalk) -> u32;
    /// Puts the frames of the kernel stack, innermost first, as many as there is room for.
    fn stack(&self, frames: &mut Frames<'_>);
    /// Puts the frames of the user stack, innermost first, as many as there is room for, and notes those of evaluators in `spots`. Returns a pause where
    /// a walker is to tell a caller; `from` there it goes on.
    fn ustack(
        &self,
        by: UserWalk,
        frames: &mut Frames<'_>,
        spots: Option<&mut Spots>,
        from: Option<Pause>,
    ) -> Option<Pause>;
    /// Whether the user stack, of at most `most` frames, all of native code, has come before and has a number that `is_known`: process and stack
    /// of a number are always the same on a CPU. If not, [`ustack`](Self::ustack) may find a number for it.
    fn ustack_again(
        &self,
        _by: UserWalk,
        _most: usize,
        _is_known: impl FnOnce(u64) -> bool,
    ) -> bool {
        false
    }
    /// The number of the user stack that was put since [`ustack_again`](Self::ustack_again) was asked; 0: it has none.
    fn ustack_number(&self) -> u64 {
        0
    }
    /// Address of the thread that holds the mutex at `addr`, 0 where none does.
    fn mutex_owner(&self, addr: u64) -> Result<u64, BadAddr>;
    /// The state of the `rwlock_t` at `addr`.
    fn rwlock(&self, addr: u64) -> Result<RwLock, BadAddr>;
    /// What the bytes of a `struct path` name.
    fn place(&self, path: &[u8; 16]) -> Place;
    /// The root directory of the current process, `None` where it has none.
    fn root(&self) -> Option<Place>;
    /// The directory entry at `addr`.
    fn dentry(&self, addr: u64) -> Result<Dentry, BadAddr>;
    /// The mount at `addr`.
    fn mount(&self, addr: u64) -> Result<Mount, BadAddr>;
    /// The file of the directory entry at `addr`, which is in no directory.
    fn unplaced(&self, addr: u64) -> Result<Unplaced, BadAddr>;
    /// The object of the device model at `addr`.
    fn kobject(&self, addr: u64) -> Result<Kobject, BadAddr>;
    /// Address of the `struct file` of a file descriptor of the current process, 0 where there is none.
    fn file(&self, fd: u32) -> u64;
    /// Begin and end of the arguments of the current process, in its own memory; they end with a NUL each.
    fn user_args(&self) -> Option<(u64, u64)>;
    /// Where the process of the thread whose `task_struct` is at `addr` has its arguments; `None` where it has no memory: it is a
    /// kernel thread, or has ended.
    fn task_args(&self, addr: u64) -> Result<Option<TaskArgs>, BadAddr>;
    /// Name of the process of the thread whose `task_struct` is at `addr`, ending with NUL.
    fn task_name(&self, addr: u64) -> Result<[u8; 16], BadAddr>;
    /// Whether the current process is `pid` or descends from it, and how many of its ancestors were asked.
    fn progenyof(&self, pid: u64) -> (bool, u32);
    /// Whether the consumer may trace the current process; asked only where it may not trace all.
    fn owned(&self) -> bool;
    /// Whether the firing tells of no process, only of the time: it is for those as well who may not trace the current process.
    #[inline]
    fn is_of_nobody(&self) -> bool {
        false
    }

    /// Loads `out.len()` bytes of kernel memory. [`BadAddr`] holds the first byte that could not be read, or `addr`.
    fn load(&self, addr: u64, out: &mut [u8]) -> Result<(), BadAddr>;
    /// Loads a byte of kernel memory.
    #[inline]
    fn load_u8(&self, addr: u64) -> Result<u8, BadAddr> {
        let mut b = [0; 1];
        self.load(addr, &mut b).map(|()| b[0])
    }
    /// Loads two bytes of kernel memory.
    #[inline]
    fn load_u16(&self, addr: u64) -> Result<u16, BadAddr> {
        let mut b = [0; 2];
        self.load(addr, &mut b).map(|()| u16::from_ne_bytes(b))
    }
    /// Loads four bytes of kernel memory.
    #[inline]
    fn load_u32(&self, addr: u64) -> Result<u32, BadAddr> {
        let mut b = [0; 4];
        self.load(addr, &mut b).map(|()| u32::from_ne_bytes(b))
    }
    /// Loads eight bytes of kernel memory.
    #[inline]
    fn load_u64(&self, addr: u64) -> Result<u64, BadAddr> {
        let mut b = [0; 8];
        self.load(addr, &mut b).map(|()| u64::from_ne_bytes(b))
    }
    /// Loads a kernel string: bytes up to the first NUL, or as many as `out` holds. Returns how many came before
    /// the NUL; it need not write the NUL.
    fn load_str(&self, addr: u64, out: &mut [u8]) -> Result<usize, BadAddr>;
    /// Loads user memory.
    fn user_load(&self, addr: u64, out: &mut [u8]) -> Result<(), BadAddr>;
    /// Loads a user string, as [`load_str`](Self::load_str).
    fn user_load_str(&self, addr: u64, out: &mut [u8]) -> Result<usize, BadAddr>;
    /// Waits until what was done before is done for certain, where the consumer is not trusted with what a processor does on a guess. Called
    /// between an access to memory whose place a program has computed and any use of what was there.
    fn settle(&self) {}
    /// Loads what the address space `mm` has at `addr`, which need not be in use on this CPU. What is loaded was its own as long as
    /// a thread still has that address space afterwards.
    fn remote_load(&self, mm: u64, addr: u64, out: &mut [u8]) -> Result<(), BadAddr>;
    /// Stores into user memory; only destructive consumers get here.
    fn user_store(&self, addr: u64, data: &[u8]) -> Result<(), BadAddr>;

    /// Stops the current process; only destructive consumers get here, as with all that follow. `false`: it could not be told.
    fn stop(&self) -> bool;
    /// Sends the current process a signal. `false`: there is no such signal, or it could not be sent.
    fn raise(&self, signal: u64) -> bool;
    /// Enters the kernel's debugger.
    fn breakpoint(&self);
    /// Panics the kernel.
    fn panic(&self);
    /// Spins for that many nanoseconds.
    fn chill(&self, ns: u64);
}
