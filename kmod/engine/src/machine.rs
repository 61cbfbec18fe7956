// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! The kernel as the engine sees it from probe context.
//!
//! [`Machine`] is the engine's only access to the outside while a probe fires. It is a generic
//! parameter of [`Consumer::fire`](crate::Consumer::fire), so every call is resolved at compile
//! time and the existence of test machines costs the kernel nothing. An implementation may do only
//! what is legal with interrupts off, in any context that ftrace reaches: it must not sleep, take a
//! lock that other code takes, allocate, or fire probes itself (INV-4).
//!
//! DIF computes addresses of two kinds. The engine's own memory has addresses in a range that no
//! processor can use (see the module `var::addr`). Every other address is the kernel's or, for
//! `uld*` and the `copyin()` family, the user's, and is accessed through this trait. A load reports
//! failure by [`BadAddr`]; it never faults.

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

/// How user stacks are walked (the option `ustackmode`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UserWalk {
    /// By unwind tables, and by frame pointers where there is no table.
    #[default]
    Auto,
    /// By frame pointers only.
    FramePointers,
    /// By unwind tables only.
    Tables,
    /// As [`Auto`](Self::Auto), and frames that no table led to are marked by
    /// [`STACK_GUESSED`](dtrace_uapi::types::STACK_GUESSED).
    Told,
}

impl UserWalk {
    /// Converts the option's value; an unknown value means [`Auto`](Self::Auto).
    pub fn of(mode: u64) -> Self {
        match mode {
            USTACKMODE_FP => Self::FramePointers,
            USTACKMODE_TABLE => Self::Tables,
            USTACKMODE_TOLD => Self::Told,
            _ => Self::Auto,
        }
    }

    /// The same mode without marks, for addresses that a program computes with.
    #[must_use]
    pub fn bare(self) -> Self {
        match self {
            Self::Told => Self::Auto,
            other => other,
        }
    }
}

/// The holders of a reader-writer lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RwLock {
    /// One or more readers hold it.
    pub readers: bool,
    /// A writer holds it.
    pub writer: bool,
    /// No writer holds it, but one is waiting.
    pub writer_waits: bool,
}

/// A directory entry below a mount, as a `struct path` names it. Both fields are addresses; the
/// mount's is that of its `vfsmount`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The mount.
    pub mount: u64,
    /// The directory entry.
    pub dentry: u64,
}

/// What the engine needs of a `struct dentry`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dentry {
    /// Address of the directory's entry; for a root, the entry's own address.
    pub parent: u64,
    /// Address of its name.
    pub name: u64,
    /// Length of the name in bytes.
    pub len: u32,
    /// Whether it is unhashed, so that no lookup finds it.
    pub removed: bool,
}

/// What the engine needs of a mount.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mount {
    /// The directory entry that is visible at the mount point.
    pub root: u64,
    /// The mount point. For a mount that is not mounted anywhere, the mount is itself and the entry
    /// is unspecified.
    pub above: Place,
}

/// A file that is in no directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unplaced {
    /// Address of the name of its file system type.
    pub fs: u64,
    /// Its inode number.
    pub inode: u64,
}

/// What the engine needs of a `struct kobject`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kobject {
    /// Address of its name.
    pub name: u64,
    /// Address of its parent, 0 at the top.
    pub parent: u64,
}

/// Location of the arguments of a process. Each argument ends with a NUL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskArgs {
    /// The address space: the address of the `mm_struct`.
    pub mm: u64,
    /// Start address in that address space.
    pub begin: u64,
    /// End address (exclusive).
    pub end: u64,
}

/// The kernel in probe context, for one firing of one probe.
pub trait Machine {
    /// Whether a load from an address that is not a multiple of its size is a BADALIGN fault.
    /// Stores are always checked.
    const STRICT_ALIGN: bool = false;

    /// Returns the names of the firing probe.
    fn probe(&self) -> ProbeName<'_>;
    /// Returns the time of the firing, in nanoseconds of a clock that never goes back. It is the
    /// same at each call during one firing, so that all clauses see one time. Only
    /// [`chill`](Self::chill) advances it.
    fn timestamp(&self) -> u64;
    /// Returns a number that tells a firing from the others on its CPU.
    fn firing(&self) -> u64;
    /// Adds `units`, which a clause or a part of one has done, to the work that all consumers of
    /// the same kind have done in the firing, if that is limited. Returns what the units count for,
    /// which is more if they took long.
    fn toil(&self, units: u64) -> u64;
    /// Adds the work of a consumer that has a limit of its own to the sum of all such consumers in
    /// the firing. Returns whether that sum exceeds its limit.
    fn burden(&self, _units: u64) -> bool {
        false
    }
    /// Whether the consumers of this kind have used up their common limit for the firing. If so,
    /// the running clause is ended.
    fn is_over(&self) -> bool {
        false
    }
    /// Returns nanoseconds since 1970.
    fn walltimestamp(&self) -> u64;
    /// Returns the nanoseconds that the current thread has spent on a CPU up to this firing,
    /// without the time of earlier firings (INV-7). It is the same at each call during one firing.
    fn vtimestamp(&self) -> u64;
    /// Returns `arg0` to `arg9`, and `args[n]` for any n; 0 if the probe has no such argument.
    /// Fails if the argument lies in memory that cannot be read.
    fn arg(&self, n: u64) -> Result<u64, BadAddr>;
    /// Returns register `n` of the interrupted kernel context, `None` if there is none.
    fn reg(&self, n: u64) -> Option<u64>;
    /// Returns register `n` of the current thread's user context, `None` if there is none.
    fn ureg(&self, n: u64) -> Option<u64>;
    /// Returns the address of the current `task_struct`.
    fn curthread(&self) -> u64;
    /// Returns the key of thread-local storage. It differs between threads, and between a thread
    /// and the interrupts that stop it.
    fn thread_key(&self) -> u64;
    /// Returns the process id.
    fn pid(&self) -> u32;
    /// Returns the process id, for use where an address of the process is recorded. The machine
    /// notes the process, because the meaning of the address is requested later, when the process
    /// may have ended (INV-16).
    fn told(&self) -> u32 {
        self.pid()
    }
    /// Returns the thread id.
    fn tid(&self) -> u32;
    /// Returns the thread id as the process itself sees it (in its own PID namespace).
    fn own_tid(&self) -> u32;
    /// Returns the address relative to which the program addresses thread-local variables.
    fn thread_pointer(&self) -> u64;
    /// Returns the process id of the parent.
    fn ppid(&self) -> u32;
    /// Returns the real user id.
    fn uid(&self) -> u32;
    /// Returns the real group id.
    fn gid(&self) -> u32;
    /// Returns the name of the process, terminated by a NUL.
    fn execname(&self) -> [u8; 16];
    /// Returns the error of the current system call.
    fn errno(&self) -> i32;
    /// Returns 0 in a thread, more in interrupts.
    fn ipl(&self) -> u32;
    /// Returns the return address of the probed function.
    fn caller(&self) -> u64;
    /// Returns the return address of the user function.
    fn ucaller(&self, by: UserWalk) -> u64;
    /// Returns the number of frames of the kernel stack.
    fn stackdepth(&self) -> u32;
    /// Returns the number of frames of the user stack.
    fn ustackdepth(&self, by: UserWalk) -> u32;
    /// Writes the frames of the kernel stack, innermost first, as many as there is room for.
    fn stack(&self, frames: &mut Frames<'_>);
    /// Writes the frames of the user stack, innermost first, as many as there is room for, and
    /// notes the frames of evaluators in `spots`. If a walker has to supply a caller, the walk
    /// stops and a pause is returned; passed as `from`, it resumes the walk.
    fn ustack(
        &self,
        by: UserWalk,
        frames: &mut Frames<'_>,
        spots: Option<&mut Spots>,
        from: Option<Pause>,
    ) -> Option<Pause>;
    /// Whether the user stack was seen before and has a number for which `is_known` holds. Only
    /// stacks of at most `most` frames, all of native code, count. On a CPU, the process and the
    /// stack that a number stands for never change. If the answer is no, a following
    /// [`ustack`](Self::ustack) may find a number for the stack.
    fn ustack_again(
        &self,
        _by: UserWalk,
        _most: usize,
        _is_known: impl FnOnce(u64) -> bool,
    ) -> bool {
        false
    }
    /// Returns the number of the user stack that was written since
    /// [`ustack_again`](Self::ustack_again) was called, or 0 if it has none.
    fn ustack_number(&self) -> u64 {
        0
    }
    /// Returns the address of the thread that holds the mutex at `addr`, 0 if none does.
    fn mutex_owner(&self, addr: u64) -> Result<u64, BadAddr>;
    /// Returns the state of the `rwlock_t` at `addr`.
    fn rwlock(&self, addr: u64) -> Result<RwLock, BadAddr>;
    /// Returns what the bytes of a `struct path` name.
    fn place(&self, path: &[u8; 16]) -> Place;
    /// Returns the root directory of the current process, `None` if it has none.
    fn root(&self) -> Option<Place>;
    /// Returns the directory entry at `addr`.
    fn dentry(&self, addr: u64) -> Result<Dentry, BadAddr>;
    /// Returns the mount at `addr`.
    fn mount(&self, addr: u64) -> Result<Mount, BadAddr>;
    /// Returns the file of the directory entry at `addr`, which is in no directory.
    fn unplaced(&self, addr: u64) -> Result<Unplaced, BadAddr>;
    /// Returns the object of the device model at `addr`.
    fn kobject(&self, addr: u64) -> Result<Kobject, BadAddr>;
    /// Returns the address of the `struct file` of a file descriptor of the current process, 0 if
    /// there is none.
    fn file(&self, fd: u32) -> u64;
    /// Returns the start and end of the current process's arguments in its own memory. Each
    /// argument ends with a NUL.
    fn user_args(&self) -> Option<(u64, u64)>;
    /// Returns the location of the arguments of the process to which the thread with the
    /// `task_struct` at `addr` belongs; `None` if it has no address space because it is a kernel
    /// thread or has ended.
    fn task_args(&self, addr: u64) -> Result<Option<TaskArgs>, BadAddr>;
    /// Returns the name of the process to which the thread with the `task_struct` at `addr`
    /// belongs, terminated by a NUL.
    fn task_name(&self, addr: u64) -> Result<[u8; 16], BadAddr>;
    /// Whether the current process is `pid` or one of its descendants, and how many ancestors were
    /// examined.
    fn progenyof(&self, pid: u64) -> (bool, u32);
    /// Whether the consumer may trace the current process. Called only for consumers that may not
    /// trace all processes.
    fn owned(&self) -> bool;
    /// Whether the firing is about the time only and about no process. Then it also fires for
    /// consumers that may not trace the current process.
    #[inline]
    fn is_of_nobody(&self) -> bool {
        false
    }

    /// Loads `out.len()` bytes of kernel memory. On failure [`BadAddr`] holds the first byte that
    /// could not be read, or `addr`.
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
    /// Loads a kernel string: bytes up to the first NUL, or as many as `out` holds. Returns how
    /// many bytes precede the NUL; the NUL itself need not be written.
    fn load_str(&self, addr: u64, out: &mut [u8]) -> Result<usize, BadAddr>;
    /// Loads memory of the current process.
    fn user_load(&self, addr: u64, out: &mut [u8]) -> Result<(), BadAddr>;
    /// Loads a user string, like [`load_str`](Self::load_str).
    fn user_load_str(&self, addr: u64, out: &mut [u8]) -> Result<usize, BadAddr>;
    /// Waits until no earlier operation is speculative, if the consumer is not trusted with the
    /// effects of speculative execution (INV-38). Called between an access to memory at a location
    /// that a program has computed and any use of what was read there.
    fn settle(&self) {}
    /// Loads memory of the address space `mm` at `addr`, which need not be in use on this CPU. The
    /// caller must check afterwards that a thread still has that address space; only then was the
    /// loaded data its own (INV-18).
    fn remote_load(&self, mm: u64, addr: u64, out: &mut [u8]) -> Result<(), BadAddr>;
    /// Stores into memory of the current process. Called for destructive consumers only.
    fn user_store(&self, addr: u64, data: &[u8]) -> Result<(), BadAddr>;

    /// Stops the current process. This function and all that follow are called for destructive
    /// consumers only. Returns `false` if the signal could not be sent.
    fn stop(&self) -> bool;
    /// Sends a signal to the current process. Returns `false` if there is no such signal or it
    /// could not be sent.
    fn raise(&self, signal: u64) -> bool;
    /// Enters the kernel debugger.
    fn breakpoint(&self);
    /// Panics the kernel.
    fn panic(&self);
    /// Spins for `ns` nanoseconds.
    fn chill(&self, ns: u64);
}
