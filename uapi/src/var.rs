// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT

//! Variable IDs: the operands of `ldgs`, `ldga`, `ldta`, `ldts`, `ldls` and the corresponding
//! stores.
//!
//! IDs below 0x100 are arrays; the others are scalars and associative arrays. A program's own
//! variables start at [`ARRAY_UBASE`] and [`OTHER_UBASE`]. Built-in variables up to `errno` have
//! the numbers of illumos; those from 0x0200 on are specific to Linux.

use crate::numbered::numbered;
use zerocopy_derive::{Immutable, IntoBytes, KnownLayout, TryFromBytes};

/// Greatest ID of an array.
pub const ARRAY_MAX: u16 = 0x00ff;
/// First ID of a program's own arrays.
pub const ARRAY_UBASE: u16 = 0x0080;
/// First ID of scalars and associative arrays.
pub const OTHER_MIN: u16 = 0x0100;
/// First ID of a program's own scalars and associative arrays.
pub const OTHER_UBASE: u16 = 0x0500;
/// Greatest ID.
pub const OTHER_MAX: u16 = 0xffff;

/// Built-in variables.
#[repr(u16)]
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    TryFromBytes,
    IntoBytes,
    Immutable,
    KnownLayout,
)]
pub enum Var {
    /// The probe's arguments, as an array.
    Args = 0x0000,
    /// The kernel registers at the interruption.
    Regs = 0x0001,
    /// The current thread's user registers.
    Uregs = 0x0002,
    /// The properties of the frame that a walker runs for: see [`interp`](crate::interp).
    Walk = 0x0040,
    /// Address of the current thread's `task_struct`.
    Curthread = 0x0100,
    /// Nanoseconds of a monotonic clock.
    Timestamp = 0x0101,
    /// Nanoseconds that the current thread has run on a CPU, without the time spent in DTrace.
    Vtimestamp = 0x0102,
    /// Interrupt level: 0 in a thread, otherwise not 0.
    Ipl = 0x0103,
    /// ID of the enabled probe.
    Epid = 0x0104,
    /// ID of the probe.
    Id = 0x0105,
    /// First argument.
    Arg0 = 0x0106,
    /// Second argument.
    Arg1 = 0x0107,
    /// Third argument.
    Arg2 = 0x0108,
    /// Fourth argument.
    Arg3 = 0x0109,
    /// Fifth argument.
    Arg4 = 0x010a,
    /// Sixth argument.
    Arg5 = 0x010b,
    /// Seventh argument.
    Arg6 = 0x010c,
    /// Eighth argument.
    Arg7 = 0x010d,
    /// Ninth argument.
    Arg8 = 0x010e,
    /// Tenth argument.
    Arg9 = 0x010f,
    /// Number of frames of the kernel stack.
    Stackdepth = 0x0110,
    /// Return address in the caller of the probe's function.
    Caller = 0x0111,
    /// Name of the probe's provider.
    Probeprov = 0x0112,
    /// Name of the probe's module.
    Probemod = 0x0113,
    /// Name of the probe's function.
    Probefunc = 0x0114,
    /// Name of the probe.
    Probename = 0x0115,
    /// Process ID of the current thread.
    Pid = 0x0116,
    /// Thread ID of the current thread.
    Tid = 0x0117,
    /// Name of the current process.
    Execname = 0x0118,
    /// Name of the current container.
    Zonename = 0x0119,
    /// Nanoseconds since 1970-01-01 00:00 UTC.
    Walltimestamp = 0x011a,
    /// Number of frames of the user stack.
    Ustackdepth = 0x011b,
    /// Return address in the caller of the current user function.
    Ucaller = 0x011c,
    /// Process ID of the parent.
    Ppid = 0x011d,
    /// Real user ID.
    Uid = 0x011e,
    /// Real group ID.
    Gid = 0x011f,
    /// Error number of the current thread's last system call.
    Errno = 0x0120,
    /// Number of the current CPU.
    Cpu = 0x0200,
    /// Command-line arguments of the current process.
    Execargs = 0x0201,
}

/// All built-in variables with their names in D.
pub const NAMES: &[(Var, &str)] = &[
    (Var::Args, "args"),
    (Var::Regs, "regs"),
    (Var::Uregs, "uregs"),
    (Var::Walk, "__walk"),
    (Var::Curthread, "curthread"),
    (Var::Timestamp, "timestamp"),
    (Var::Vtimestamp, "vtimestamp"),
    (Var::Ipl, "ipl"),
    (Var::Epid, "epid"),
    (Var::Id, "id"),
    (Var::Arg0, "arg0"),
    (Var::Arg1, "arg1"),
    (Var::Arg2, "arg2"),
    (Var::Arg3, "arg3"),
    (Var::Arg4, "arg4"),
    (Var::Arg5, "arg5"),
    (Var::Arg6, "arg6"),
    (Var::Arg7, "arg7"),
    (Var::Arg8, "arg8"),
    (Var::Arg9, "arg9"),
    (Var::Stackdepth, "stackdepth"),
    (Var::Caller, "caller"),
    (Var::Probeprov, "probeprov"),
    (Var::Probemod, "probemod"),
    (Var::Probefunc, "probefunc"),
    (Var::Probename, "probename"),
    (Var::Pid, "pid"),
    (Var::Tid, "tid"),
    (Var::Execname, "execname"),
    (Var::Zonename, "zonename"),
    (Var::Walltimestamp, "walltimestamp"),
    (Var::Ustackdepth, "ustackdepth"),
    (Var::Ucaller, "ucaller"),
    (Var::Ppid, "ppid"),
    (Var::Uid, "uid"),
    (Var::Gid, "gid"),
    (Var::Errno, "errno"),
    (Var::Cpu, "cpu"),
    (Var::Execargs, "execargs"),
];

numbered!(Var: u16, "built-in variable", NAMES);

impl Var {
    /// Whether it is read without memory of the clause and without a fault, except that an argument
    /// may lie in memory that cannot be loaded.
    pub const fn cannot_fault(self) -> bool {
        match self {
            Self::Timestamp
            | Self::Vtimestamp
            | Self::Walltimestamp
            | Self::Ipl
            | Self::Epid
            | Self::Id
            | Self::Arg0
            | Self::Arg1
            | Self::Arg2
            | Self::Arg3
            | Self::Arg4
            | Self::Arg5
            | Self::Arg6
            | Self::Arg7
            | Self::Arg8
            | Self::Arg9
            | Self::Pid
            | Self::Tid
            | Self::Ppid
            | Self::Uid
            | Self::Gid
            | Self::Errno
            | Self::Cpu => true,
            // Elements of arrays may not exist.
            Self::Args | Self::Regs | Self::Uregs | Self::Walk => false,
            // They take rights.
            Self::Curthread
            | Self::Stackdepth
            | Self::Caller
            | Self::Ustackdepth
            | Self::Ucaller => false,
            // Their text takes memory of the clause.
            Self::Probeprov
            | Self::Probemod
            | Self::Probefunc
            | Self::Probename
            | Self::Execname
            | Self::Zonename
            | Self::Execargs => false,
        }
    }
}
