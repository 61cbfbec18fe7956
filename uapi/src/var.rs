// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note

//! Variable ids: what `ldgs`, `ldga`, `ldta`, `ldts`, `ldls` and their stores name.
//!
//! Ids below 0x100 are arrays, the rest scalars and associative arrays; a program's own variables start at
//! [`ARRAY_UBASE`] and [`OTHER_UBASE`]. Built-ins up to `errno` have illumos' numbers; 0x0200 and above are Linux'.

use crate::numbered::numbered;
use zerocopy_derive::{Immutable, IntoBytes, KnownLayout, TryFromBytes};

/// Greatest id of an array.
pub const ARRAY_MAX: u16 = 0x00ff;
/// First array of a program's own.
pub const ARRAY_UBASE: u16 = 0x0080;
/// First id of a scalar or associative array.
pub const OTHER_MIN: u16 = 0x0100;
/// First scalar or associative array of a program's own.
pub const OTHER_UBASE: u16 = 0x0500;
/// Greatest id.
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
    /// The interrupted kernel registers.
    Regs = 0x0001,
    /// The interrupted thread's user registers.
    Uregs = 0x0002,
    /// What a walker knows of the frame that it runs for: see [`interp`](crate::interp).
    Walk = 0x0040,
    /// Address of the current thread's `task_struct`.
    Curthread = 0x0100,
    /// Nanoseconds of a clock that never steps back.
    Timestamp = 0x0101,
    /// Nanoseconds that the current thread has spent on a CPU, less DTrace's own.
    Vtimestamp = 0x0102,
    /// Interrupt level: 0 in a thread, else nonzero.
    Ipl = 0x0103,
    /// Id of the enabled probe.
    Epid = 0x0104,
    /// Id of the probe.
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
    /// Frames of the kernel stack.
    Stackdepth = 0x0110,
    /// Program counter that called the probe's function.
    Caller = 0x0111,
    /// Name of the probe's provider.
    Probeprov = 0x0112,
    /// Name of the probe's module.
    Probemod = 0x0113,
    /// Name of the probe's function.
    Probefunc = 0x0114,
    /// Name of the probe.
    Probename = 0x0115,
    /// Process id of the current thread.
    Pid = 0x0116,
    /// Thread id of the current thread.
    Tid = 0x0117,
    /// Name of the current process.
    Execname = 0x0118,
    /// Name of the current container.
    Zonename = 0x0119,
    /// Nanoseconds since 1970-01-01 00:00 UTC.
    Walltimestamp = 0x011a,
    /// Frames of the user stack.
    Ustackdepth = 0x011b,
    /// Program counter that called the current user function.
    Ucaller = 0x011c,
    /// Process id of the parent.
    Ppid = 0x011d,
    /// Real user id.
    Uid = 0x011e,
    /// Real group id.
    Gid = 0x011f,
    /// Error of the last system call of the current thread.
    Errno = 0x0120,
    /// Number of the current CPU.
    Cpu = 0x0200,
    /// Arguments of the current process.
    Execargs = 0x0201,
}

/// Every built-in variable with the name that D gives it.
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
