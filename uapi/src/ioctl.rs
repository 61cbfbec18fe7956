// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT

//! The ioctls of `/dev/dtrace` and `/dev/dtracehelper` and the structures that they exchange.
//!
//! The encodings are FreeBSD's (type `'x'`, the same numbers) with the direction bits of Linux.
//! Where FreeBSD passes a pointer to a pointer, the argument here is the address of the structure
//! itself. Pointers in structures are `u64`.

use crate::hold::{Held, Hold, Known};
use crate::limits::{ARGTYPELEN, FUNCNAMELEN, MODNAMELEN, NAMELEN, PROVNAMELEN, REASONLEN};
use crate::process::Probes;
use crate::types::{AggId, Epid, ProbeId, ProviderAttributes};
use core::mem::offset_of;
use zerocopy_derive::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Version of this interface, which the module reports in [`Conf::interface`]. It grows by one with
/// every ioctl, field and number that is added, so that a command and a module of different builds
/// know which of them is older. Nothing is ever removed: an older command works with a newer
/// module, and a newer command works with an older module as far as that module goes. One
/// exception: since 3, frames of interpreted code directly follow the addresses of a stack. If the
/// command or the module is older, such frames are not shown or are shown as numbers. 4 adds
/// [`RETRACT`] and [`Status::unanswered`]. Since 5, [`Subr::Stack`](crate::subr::Subr::Stack) and
/// [`Subr::Ustack`](crate::subr::Subr::Ustack) take the room for frames of interpreted code.
pub const INTERFACE: u32 = 5;

/// Type of the ioctls of `/dev/dtrace`.
pub const IOC_TYPE: u8 = b'x';
/// Type of the ioctls of `/dev/dtracehelper`. The same as in Oracle's DTrace, so that programs that
/// are linked with its drti.o register here.
pub const HELPER_IOC_TYPE: u8 = 0xd8;

const WRITE: u32 = 1;
const READ: u32 = 2;

/// The encoding of Linux' `_IOC()`: include/uapi/asm-generic/ioctl.h.
const fn ioc(dir: u32, ty: u8, nr: u8, size: usize) -> u32 {
    dir << 30 | (size as u32) << 16 | (ty as u32) << 8 | nr as u32
}

/// Fills in a [`ProviderDesc`] by its name. ESRCH: there is no such provider.
pub const PROVIDER: u32 = ioc(READ | WRITE, IOC_TYPE, 1, size_of::<ProviderDesc>());
/// Replaces a [`ProbeDesc`] by that of the probe with the next greater ID. ESRCH: there is none.
pub const PROBES: u32 = ioc(READ | WRITE, IOC_TYPE, 2, size_of::<ProbeDesc>());
/// Switches a CPU's principal buffer and copies the filled half to the memory of a [`BufDesc`].
/// ENOENT: the CPU has no buffer.
pub const BUFSNAP: u32 = ioc(READ | WRITE, IOC_TYPE, 4, size_of::<BufDesc>());
/// As [`PROBES`], but only for probes that match the globs of the description.
pub const PROBEMATCH: u32 = ioc(READ | WRITE, IOC_TYPE, 5, size_of::<ProbeDesc>());
/// Enables the DOF image of an [`Enable`]. EBUSY: the consumer already traces; EINVAL: the image is
/// invalid.
pub const ENABLE: u32 = ioc(READ | WRITE, IOC_TYPE, 6, size_of::<Enable>());
/// As [`BUFSNAP`], for the aggregation buffer.
pub const AGGSNAP: u32 = ioc(READ | WRITE, IOC_TYPE, 7, size_of::<BufDesc>());
/// Fills in an [`EprobeDesc`] by its EPID, and as many of its records as there is room for. EINVAL:
/// there is no such EPID.
pub const EPROBE: u32 = ioc(READ | WRITE, IOC_TYPE, 8, size_of::<EprobeDesc>());
/// Fills in an [`ArgDesc`] by its probe and index.
pub const PROBEARG: u32 = ioc(READ | WRITE, IOC_TYPE, 9, size_of::<ArgDesc>());
/// Fills in a [`Conf`].
pub const CONF: u32 = ioc(READ, IOC_TYPE, 10, size_of::<Conf>());
/// Fills in a [`Status`]. ENOENT: tracing has not started. The ioctl number contains the size of
/// the structure and thereby its version: fields are only added at the end, and the kernel supports
/// every size that has existed.
pub const STATUS: u32 = ioc(READ, IOC_TYPE, 11, size_of::<Status>());
/// As [`STATUS`], for the structure that ends with [`Status::carried`].
pub const STATUS_THIRD: u32 = ioc(READ, IOC_TYPE, 11, STATUS_THIRD_SIZE);
/// As [`STATUS`], for the structure that ends with [`Status::unbuffered`].
pub const STATUS_SECOND: u32 = ioc(READ, IOC_TYPE, 11, STATUS_SECOND_SIZE);
/// As [`STATUS`], for the first structure, which ends with [`Status::missed`].
pub const STATUS_FIRST: u32 = ioc(READ, IOC_TYPE, 11, STATUS_FIRST_SIZE);
/// As [`STATUS`], for the part that DTrace has on all systems.
pub const STATUS_COMMON: u32 = ioc(READ, IOC_TYPE, 11, STATUS_COMMON_SIZE);
/// Starts tracing. Returns the CPU on which `BEGIN` fired.
pub const GO: u32 = ioc(READ, IOC_TYPE, 12, size_of::<u32>());
/// Ends tracing. Returns the CPU on which `END` fired.
pub const STOP: u32 = ioc(READ | WRITE, IOC_TYPE, 13, size_of::<u32>());
/// Fills in an [`AggDesc`] by its ID, and as many of its records as there is room for. EINVAL:
/// there is no such aggregation.
pub const AGGDESC: u32 = ioc(READ | WRITE, IOC_TYPE, 15, size_of::<AggDesc>());
/// Returns the length of a format in a [`FmtDesc`], and copies its string if there is room for it.
pub const FORMAT: u32 = ioc(READ | WRITE, IOC_TYPE, 16, size_of::<FmtDesc>());
/// Copies the options as a DOF image to the address of a [`crate::dof::Hdr`] whose `loadsz` is the
/// size of the memory there.
pub const DOFGET: u32 = ioc(READ | WRITE, IOC_TYPE, 17, size_of::<crate::dof::Hdr>());
/// Enables everything that is enabled for the first description of a [`ReplDesc`] for its second
/// description as well.
pub const REPLICATE: u32 = ioc(WRITE, IOC_TYPE, 18, size_of::<ReplDesc>());
/// Specific to Linux: returns why the last ioctl on this file failed, as a [`Reason`].
pub const REASON: u32 = ioc(READ, IOC_TYPE, 64, size_of::<Reason>());
/// Specific to Linux: copies the file of the claimed anonymous enabling to the address of an
/// [`AnonDesc`]. ENOENT: no enabling has been claimed.
pub const ANONGET: u32 = ioc(READ | WRITE, IOC_TYPE, 65, size_of::<AnonDesc>());
/// Specific to Linux: makes the [`Probes`] of a process. ESRCH: there is no such process; EPERM:
/// the consumer may not trace the process; EACCES: the consumer may not make probes in processes,
/// or not at one of the instructions; EINVAL: an instruction cannot be probed.
pub const MAKEPROBES: u32 = ioc(READ | WRITE, IOC_TYPE, 66, size_of::<Probes>());

/// Specific to Linux: makes processes wait at the event of a [`Hold`] from now on. ESRCH: there is
/// no such process; EINVAL: a process cannot stop at the instruction; EPERM: the consumer may not
/// trace the process; EACCES: the consumer may not make probes in processes, or not at the
/// instruction.
pub const HOLD: u32 = ioc(WRITE, IOC_TYPE, 70, size_of::<Hold>());
/// Specific to Linux: fills in a [`Held`]: the next process that the consumer has not been notified
/// of.
pub const HELD: u32 = ioc(READ, IOC_TYPE, 71, size_of::<Held>());
/// Specific to Linux: resumes a waiting process, named by its [`Held::id`], a `u64`. ENOENT: the
/// process has resumed by itself.
pub const RESUME: u32 = ioc(WRITE, IOC_TYPE, 72, size_of::<u64>());
/// Specific to Linux: removes the probes of a process, an `i32`, at those instructions that the
/// process no longer has at their old addresses. ESRCH: there is no such process.
pub const REVIEW: u32 = ioc(WRITE, IOC_TYPE, 73, size_of::<i32>());
/// Specific to Linux: declares that the file which a process executes, a [`Known`], has no probes
/// for the caller. No process waits for the file again. ESRCH: there is no such process; EFAULT,
/// EACCES: the address is not in the text of a file.
pub const KNOWN: u32 = ioc(WRITE, IOC_TYPE, 75, size_of::<Known>());
/// Specific to Linux: undoes all [`REPLICATE`] calls with exactly this second [`ProbeDesc`]. Probes
/// that appear later are not enabled for it. Probes that are enabled stay enabled, and are enabled
/// twice if the enabling is replicated again. ENOENT: nothing was replicated to this description.
pub const RETRACT: u32 = ioc(WRITE, IOC_TYPE, 76, size_of::<ProbeDesc>());
/// Specific to Linux: replaces a process ID of the caller's pid namespace, an `i32`, by the process
/// ID in records, which is that of the initial pid namespace. ESRCH: there is no such process.
pub const NUMBER: u32 = ioc(READ | WRITE, IOC_TYPE, 74, size_of::<i32>());

/// Specific to Linux: fills in a [`Registered`]: the first registration of a process with the
/// helper device after [`Registered::generation`]. ESRCH: there is no such process; ENOENT: there
/// are no more registrations; E2BIG: there is not enough room for the image.
pub const REGISTERED: u32 = ioc(READ | WRITE, IOC_TYPE, 80, size_of::<Registered>());

/// Specific to Linux: returns a descriptor of a file into which a user stack leads and that has no
/// [`Table`](crate::unwind::Table). ENOENT: there is none; EACCES: the caller may not provide
/// tables, which the stacks of all users depend on. The kernel notes such files from the first call
/// on.
pub const WANTED: u32 = ioc(0, IOC_TYPE, 81, 0);
/// Specific to Linux: provides the [`Table`](crate::unwind::Table) of a file. EINVAL: the table is
/// damaged, or the file is not a regular one; EBADF: the descriptor is not open; EEXIST: the file
/// has a table; ESTALE: the file has changed since it was read; E2BIG: the table is too large;
/// ENOSPC: there is no room for it; EACCES: as for WANTED.
pub const TABLE: u32 = ioc(WRITE, IOC_TYPE, 82, size_of::<crate::unwind::Table>());
/// Specific to Linux: fills in the next [`Remains`](crate::remains::Remains) of a process. ENOENT:
/// there are no more; EACCES: the caller may not read all memory. The kernel notes the mappings of
/// processes from the first call on.
pub const REMAINS: u32 = ioc(
    READ | WRITE,
    IOC_TYPE,
    83,
    size_of::<crate::remains::Remains>(),
);
/// Specific to Linux: copies the names of a [`Frame`](crate::interp::Frame) of interpreted code and
/// returns their size in bytes. ENOENT: there are no such names; EAGAIN: they are being written;
/// E2BIG: there is not enough room for them.
pub const FRAME: u32 = ioc(WRITE, IOC_TYPE, 84, size_of::<crate::interp::Frame>());

/// The description of a probe, or globs that match descriptions (`dtrace_probedesc_t`). Each string
/// ends with NUL.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct ProbeDesc {
    /// The probe's ID.
    pub id: ProbeId,
    /// The provider's name.
    pub provider: [u8; PROVNAMELEN],
    /// The module's name.
    pub module: [u8; MODNAMELEN],
    /// The function's name.
    pub func: [u8; FUNCNAMELEN],
    /// The probe's name.
    pub name: [u8; NAMELEN],
}

/// A pair of descriptions (`dtrace_repldesc_t`).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct ReplDesc {
    /// The description whose enablings are copied …
    pub matching: ProbeDesc,
    /// … and the description that they are copied to.
    pub create: ProbeDesc,
}

/// A DOF image to enable.
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct Enable {
    /// Address of the DOF image.
    pub dof: u64,
    /// Out: number of matched probes.
    pub n_matched: u32,
    /// Zero.
    pub pad: u32,
}

/// Destination of the file of an anonymous enabling.
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct AnonDesc {
    /// In: size of the memory at `data`, bytes; out: size of the file. Nothing is copied if the
    /// file is larger than the memory.
    pub size: u64,
    /// Address of the memory.
    pub data: u64,
}

/// A record in the data of an ECB (`dtrace_recdesc_t`).
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct RecDesc {
    /// The [`Action`](crate::action::Action) that writes the record.
    pub action: u32,
    /// Size of the record, bytes.
    pub size: u32,
    /// Offset of the record from the beginning of the ECB's data, bytes.
    pub offset: u32,
    /// Alignment of the record, bytes.
    pub alignment: u16,
    /// Number of the record's format, or 0.
    pub format: u16,
    /// The action's argument.
    pub arg: u64,
    /// A value that the consumer has attached to the action.
    pub uarg: u64,
}

/// Header of the description of an enabled probe, followed by [`RecDesc`]s (`dtrace_eprobedesc_t`).
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct EprobeDesc {
    /// ID of the enabled probe.
    pub epid: Epid,
    /// ID of its probe.
    pub probeid: ProbeId,
    /// A value that the consumer has attached to the ECB.
    pub uarg: u64,
    /// Size of the ECB's data including the [`RecHdr`], bytes.
    pub size: u32,
    /// In: number of records that there is room for; out: number of records.
    pub nrecs: i32,
}

/// Header of the description of an aggregation, followed by [`RecDesc`]s (`dtrace_aggdesc_t`).
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct AggDesc {
    /// For the consumer's use: address of the name. Returned as it was passed.
    pub name: u64,
    /// For the consumer's use: ID of the variable. Returned as it was passed.
    pub varid: i64,
    /// For the consumer's use. Returned as it was passed.
    pub flags: i32,
    /// ID of the aggregation.
    pub id: AggId,
    /// The first enabled probe whose ECB feeds it.
    pub epid: Epid,
    /// Size of its data including the ID at the beginning, bytes.
    pub size: u32,
    /// In: number of records that there is room for; out: number of records.
    pub nrecs: i32,
    /// Zero.
    pub pad: u32,
}

/// A format string (`dtrace_fmtdesc_t`).
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct FmtDesc {
    /// Address to which the string is copied.
    pub string: u64,
    /// In: size of the memory there; out: length of the string including its NUL.
    pub length: i32,
    /// Number of the format.
    pub format: u16,
    /// Zero.
    pub pad: u16,
}

/// A snapshot of one CPU's buffer (`dtrace_bufdesc_t`).
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct BufDesc {
    /// In: size of the memory at `data`; for a principal buffer at least
    /// [`crate::limits::buffer_room`] of the buffer's size. Out: size of the records there, bytes.
    pub size: u64,
    /// The CPU.
    pub cpu: u32,
    /// Out: faults since the last snapshot.
    pub errors: u32,
    /// Out: records dropped since the last snapshot.
    pub drops: u64,
    /// Address to which the records are copied.
    pub data: u64,
    /// Out: offset of the oldest record.
    pub oldest: u64,
    /// Out: time of the switch, ns.
    pub timestamp: u64,
}

/// Header of each record in a principal buffer (`dtrace_rechdr_t`). An EPID of 0 without the time
/// is padding of four bytes.
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct RecHdr {
    /// The enabled probe that has made the record.
    pub epid: Epid,
    /// High half of its time, ns.
    pub timestamp_hi: u32,
    /// Low half of its time, ns.
    pub timestamp_lo: u32,
}

/// Bytes of a record's header that do not count towards `bufsize`: its time.
pub const RECORD_TIME: usize = size_of::<RecHdr>() - size_of::<Epid>();

impl RecHdr {
    /// The header of a record of `epid` at `timestamp`.
    pub const fn new(epid: Epid, timestamp: u64) -> Self {
        Self {
            epid,
            timestamp_hi: (timestamp >> 32) as u32,
            timestamp_lo: timestamp as u32,
        }
    }

    /// The record's time, ns.
    pub const fn timestamp(&self) -> u64 {
        (self.timestamp_hi as u64) << 32 | self.timestamp_lo as u64
    }
}

/// Counters and state of a consumer's tracing (`dtrace_status_t`).
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct Status {
    /// Dynamic variables dropped because there was no space.
    pub dyndrops: u64,
    /// Dynamic variables dropped while the free space was on a rinsing list.
    pub dyndrops_rinsing: u64,
    /// Dynamic variables dropped while the free space was on a dirty list.
    pub dyndrops_dirty: u64,
    /// Speculative records dropped.
    pub specdrops: u64,
    /// Speculations refused because all buffers were busy.
    pub specdrops_busy: u64,
    /// Speculations refused because no buffer was free.
    pub specdrops_unavail: u64,
    /// Faults in probe context.
    pub errors: u64,
    /// Number of fill buffers that are full.
    pub filled: u64,
    /// Overflows of the string tables of stacks. Always 0, because the kernel records no such
    /// strings.
    pub stkstroverflows: u64,
    /// Faults while the ERROR probe fired.
    pub dblerrors: u64,
    /// 1 if the kernel has ended the tracing.
    pub killed: u8,
    /// 1 if `exit()` was called.
    pub exiting: u8,
    /// Zero.
    pub pad: [u8; 6],
    /// The fields from here on are specific to Linux. Firings of this consumer's probes that were
    /// dropped because the code was called from probe context.
    pub recursions: u64,
    /// Firings of this consumer's probes that were dropped because an NMI fired them during probe
    /// context.
    pub nmis: u64,
    /// Firings, of any consumer, that were dropped because RCU does not watch the code.
    pub unwatched: u64,
    /// Returns of functions, of this consumer's probes, that were dropped because the return could
    /// not be hooked when the function was called.
    pub returns: u64,
    /// Probes that this consumer has described and that appeared later, but could not be enabled or
    /// kept.
    pub missed: u64,
    /// Firings of this consumer's probes that were dropped on CPUs that came online during tracing,
    /// because there was no memory for their buffers. Each clause counts. Of its predicate only a
    /// comparison of one built-in variable with a number is evaluated first.
    pub unbuffered: u64,
    /// How often a process, at a probe of any consumer, waited until its own memory that a clause
    /// or an instruction needs was paged in, and either got it or was interrupted by a signal.
    pub waits: u64,
    /// How often such a wait failed: the memory cannot be paged in, or was not there after a
    /// second.
    pub waits_in_vain: u64,
    /// Instructions, of any consumer's probes, that were left to the kernel's slower uprobes
    /// because the process has no room for an out-of-line copy.
    pub carried: u64,
    /// How often the right of this consumer to trace a process was not known in time, so that it
    /// did not see the process. Each firing meanwhile counts, and each request that was not
    /// answered.
    pub unanswered: u64,
}

/// Size of the part of [`Status`] that all systems share, `dtrace_status_t`, bytes.
pub const STATUS_COMMON_SIZE: usize = 88;

/// Size of [`Status`] up to and including `missed`, bytes.
pub const STATUS_FIRST_SIZE: usize = 128;

/// Size of [`Status`] up to and including `unbuffered`, bytes.
pub const STATUS_SECOND_SIZE: usize = 136;

/// Size of [`Status`] up to and including `carried`, bytes.
pub const STATUS_THIRD_SIZE: usize = 160;

/// Properties of the kernel's DIF machine (`dtrace_conf_t`).
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct Conf {
    /// Version of DIF.
    pub difversion: u32,
    /// Number of integer registers.
    pub difintregs: u32,
    /// Number of tuple registers.
    pub diftupregs: u32,
    /// Data model of the kernel, as in the header of a DOF image.
    pub ctfmodel: u32,
    /// Specific to Linux: the module's [`INTERFACE`]; 0 from modules that are older than this
    /// field.
    pub interface: u32,
    /// Zero.
    pub pad: [u32; 7],
}

/// Value of [`ArgDesc::ndx`]: the probe has no such argument.
pub const ARG_NONE: i32 = -1;

/// Type of an argument of a probe (`dtrace_argdesc_t`).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct ArgDesc {
    /// The probe.
    pub id: ProbeId,
    /// In: index in `args[]`; out: the same, or [`ARG_NONE`].
    pub ndx: i32,
    /// Index of the native argument that it is translated from.
    pub mapping: i32,
    /// Name of the native type.
    pub native: [u8; ARGTYPELEN],
    /// Name of the translated type; empty if it is the native type.
    pub xlate: [u8; ARGTYPELEN],
}

/// Bit of [`ProviderPrivileges::flags`]: needs rights over the kernel.
pub const PRIV_KERNEL: u32 = 1;
/// Bit of [`ProviderPrivileges::flags`]: needs rights over users.
pub const PRIV_USER: u32 = 2;
/// Bit of [`ProviderPrivileges::flags`]: needs rights over processes.
pub const PRIV_PROC: u32 = 4;
/// Bit of [`ProviderPrivileges::flags`]: only for probes of the owner.
pub const PRIV_OWNER: u32 = 8;

/// Rights that a consumer needs to use a provider (`dtrace_ppriv_t`).
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct ProviderPrivileges {
    /// Bits `PRIV_*`.
    pub flags: u32,
    /// User ID of the owner.
    pub uid: u32,
    /// Container of the owner.
    pub zoneid: u32,
}

/// A provider (`dtrace_providerdesc_t`).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct ProviderDesc {
    /// The provider's name, which ends with NUL.
    pub name: [u8; PROVNAMELEN],
    /// Stability of the parts of its probes' names.
    pub attr: ProviderAttributes,
    /// Zero.
    pub pad: u8,
    /// Rights that a consumer needs.
    pub privileges: ProviderPrivileges,
}

/// Why the last ioctl failed: a line of text that ends with NUL, or an empty string if there is
/// nothing to report.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Reason {
    /// The text.
    pub text: [u8; REASONLEN],
}

/// DOF of an object of a process (`dof_helper_t`).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct DofHelper {
    /// Name of the object.
    pub module: [u8; MODNAMELEN],
    /// Its load address.
    pub addr: u64,
    /// Address of the DOF.
    pub dof: u64,
}

/// One registration of a process with the helper device.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Registered {
    /// ID of the process in the caller's pid namespace.
    pub pid: i32,
    /// In: number of the previous registration, 0 at first; out: number of this one among those of
    /// its process, from 1.
    pub generation: u32,
    /// Base of the image's addresses.
    pub addr: u64,
    /// In: size of the memory at `data`, bytes; out: size of the image.
    pub size: u64,
    /// Address of the memory.
    pub data: u64,
    /// Name of the object as given by the process; it ends with NUL.
    pub module: [u8; MODNAMELEN],
}

/// Maximum size of an image that a process registers, bytes.
pub const REGISTERED_MAX: usize = 256 << 10;
/// Maximum number of registrations of a process, and of providers in all its images.
pub const REGISTRATIONS_MAX: usize = 32;
/// Maximum size of all images that the processes of one user have registered, bytes.
pub const REGISTERED_USER_MAX: usize = 16 << 20;
/// Maximum size of all registered images, bytes.
pub const REGISTERED_ALL_MAX: usize = 64 << 20;

/// Helper ioctl: registers the DOF at this address. Addresses in the DOF are addresses of the
/// process. Returns the number of the registration, from 1, by which it can be removed. EINVAL:
/// this is not DOF of a program; E2BIG: it is too large; ENOSPC: the process, its user, or all
/// users have registered too much; EFAULT: it cannot be read.
pub const HELPER_ADD: u32 = ioc(WRITE, HELPER_IOC_TYPE, 1, size_of::<crate::dof::Hdr>());
/// Helper ioctl: removes the registration with this number. ENOENT: there is none.
pub const HELPER_REMOVE: u32 = ioc(WRITE, HELPER_IOC_TYPE, 2, size_of::<u32>());
/// Helper ioctl: as [`HELPER_ADD`], with a [`DofHelper`].
pub const HELPER_ADDDOF: u32 = ioc(WRITE, HELPER_IOC_TYPE, 3, size_of::<DofHelper>());
/// Helper ioctl: declares that the file which the process has mapped at this address has probes.
/// Returns a number as [`HELPER_ADD`] does. EFAULT: nothing is mapped there; EACCES: it is not text
/// of a file.
pub const HELPER_LOOK: u32 = ioc(WRITE, HELPER_IOC_TYPE, 4, size_of::<u64>());

/// The upper bytes of illumos' numbers of helper ioctls. The low byte is the number of the call: 1
/// for [`HELPER_ADD`], 2 for [`HELPER_REMOVE`], 3 for [`HELPER_ADDDOF`].
pub const HELPER_CLASSIC: u32 = 0x6474_6800;

const _: () = assert!(size_of::<ProbeDesc>() == 388);
const _: () = assert!(offset_of!(ProbeDesc, module) == 68);
const _: () = assert!(offset_of!(ProbeDesc, func) == 132);
const _: () = assert!(offset_of!(ProbeDesc, name) == 324);
const _: () = assert!(size_of::<ReplDesc>() == 776);
const _: () = assert!(size_of::<Enable>() == 16);
const _: () = assert!(size_of::<AnonDesc>() == 16);
const _: () = assert!(size_of::<RecDesc>() == 32);
const _: () = assert!(offset_of!(RecDesc, arg) == 16);
const _: () = assert!(size_of::<EprobeDesc>() == 24);
const _: () = assert!(size_of::<AggDesc>() == 40);
const _: () = assert!(offset_of!(AggDesc, epid) == 24);
const _: () = assert!(size_of::<FmtDesc>() == 16);
const _: () = assert!(size_of::<BufDesc>() == 48);
const _: () = assert!(offset_of!(BufDesc, data) == 24);
const _: () = assert!(size_of::<RecHdr>() == 12);
const _: () = assert!(offset_of!(Status, recursions) == STATUS_COMMON_SIZE);
const _: () = assert!(offset_of!(Status, unbuffered) == STATUS_FIRST_SIZE);
const _: () = assert!(offset_of!(Status, waits) == STATUS_SECOND_SIZE);
const _: () = assert!(offset_of!(Status, unanswered) == STATUS_THIRD_SIZE);
const _: () = assert!(size_of::<Status>() == 168);
const _: () = assert!(offset_of!(Status, killed) == 80);
const _: () = assert!(size_of::<Conf>() == 48);
const _: () = assert!(size_of::<ArgDesc>() == 268);
const _: () = assert!(size_of::<ProviderDesc>() == 92);
const _: () = assert!(offset_of!(ProviderDesc, privileges) == 80);
const _: () = assert!(size_of::<DofHelper>() == 80);
const _: () = assert!(size_of::<Registered>() == 96);
const _: () = assert!(HELPER_ADD == 0x4040_d801);
const _: () = assert!(HELPER_REMOVE == 0x4004_d802);
const _: () = assert!(HELPER_ADDDOF == 0x4050_d803);
const _: () = assert!(HELPER_LOOK == 0x4008_d804);
