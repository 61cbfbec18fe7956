// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note

//! The control calls of `/dev/dtrace` and what they exchange.
//!
//! Encodings are FreeBSD's (type `'x'`, the same numbers) with Linux' direction bits; where FreeBSD passes a
//! pointer to a pointer the argument here is the structure's address itself. Pointers travel as `u64`.

use crate::hold::{Held, Hold, Known};
use crate::limits::{ARGTYPELEN, FUNCNAMELEN, MODNAMELEN, NAMELEN, PROVNAMELEN, REASONLEN};
use crate::process::Probes;
use crate::types::{AggId, Epid, ProbeId, ProviderAttributes};
use core::mem::offset_of;
use zerocopy_derive::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Version of all this, which a module tells ([`Conf::interface`]). It grows by one with every control call, field and number that is added,
/// so that of a command and a module that are not of one build it can be said which is older. What there has been stays: an older
/// command works with a newer module, and a newer one with an older module as far as that goes. But frames of interpreted code follow the addresses
/// of a stack directly since 3: where one of the two is older than that, none of them are shown, or numbers in their place. 4 has
/// [`RETRACT`] and [`Status::unanswered`].
pub const INTERFACE: u32 = 4;

/// Type of the control calls of `/dev/dtrace`.
pub const IOC_TYPE: u8 = b'x';
/// Type of the control calls of `/dev/dtracehelper`; Oracle's, so that what is built with its drti.o registers here.
pub const HELPER_IOC_TYPE: u8 = 0xd8;

const WRITE: u32 = 1;
const READ: u32 = 2;

/// Linux' `_IOC()`: include/uapi/asm-generic/ioctl.h.
const fn ioc(dir: u32, ty: u8, nr: u8, size: usize) -> u32 {
    dir << 30 | (size as u32) << 16 | (ty as u32) << 8 | nr as u32
}

/// Fills in a [`ProviderDesc`] by its name. ESRCH: no such provider.
pub const PROVIDER: u32 = ioc(READ | WRITE, IOC_TYPE, 1, size_of::<ProviderDesc>());
/// Replaces a [`ProbeDesc`] by that of the next probe whose id is greater. ESRCH: there is none.
pub const PROBES: u32 = ioc(READ | WRITE, IOC_TYPE, 2, size_of::<ProbeDesc>());
/// Switches a CPU's principal buffer and copies the full one into a [`BufDesc`]. ENOENT: no buffer there.
pub const BUFSNAP: u32 = ioc(READ | WRITE, IOC_TYPE, 4, size_of::<BufDesc>());
/// As [`PROBES`], of the probes that the description's globs match.
pub const PROBEMATCH: u32 = ioc(READ | WRITE, IOC_TYPE, 5, size_of::<ProbeDesc>());
/// Enables the DOF image of an [`Enable`]. EBUSY: the state is active already; EINVAL: a bad image.
pub const ENABLE: u32 = ioc(READ | WRITE, IOC_TYPE, 6, size_of::<Enable>());
/// As [`BUFSNAP`], of the aggregation buffer.
pub const AGGSNAP: u32 = ioc(READ | WRITE, IOC_TYPE, 7, size_of::<BufDesc>());
/// Fills in an [`EprobeDesc`] by its EPID, and as many records as it has room for. EINVAL: no such EPID.
pub const EPROBE: u32 = ioc(READ | WRITE, IOC_TYPE, 8, size_of::<EprobeDesc>());
/// Fills in an [`ArgDesc`] by probe and index.
pub const PROBEARG: u32 = ioc(READ | WRITE, IOC_TYPE, 9, size_of::<ArgDesc>());
/// Fills in a [`Conf`].
pub const CONF: u32 = ioc(READ, IOC_TYPE, 10, size_of::<Conf>());
/// Fills in a [`Status`]. ENOENT: not started yet. The number carries the structure's size, and so its version: fields are
/// only ever added at its end, and a kernel answers each size that there has been.
pub const STATUS: u32 = ioc(READ, IOC_TYPE, 11, size_of::<Status>());
/// As [`STATUS`], up to [`Status::unanswered`]: the structure as it was then.
pub const STATUS_THIRD: u32 = ioc(READ, IOC_TYPE, 11, STATUS_THIRD_SIZE);
/// As [`STATUS`], up to [`Status::unbuffered`]: the structure as it was then.
pub const STATUS_SECOND: u32 = ioc(READ, IOC_TYPE, 11, STATUS_SECOND_SIZE);
/// As [`STATUS`], up to [`Status::missed`]: the structure as it first was.
pub const STATUS_FIRST: u32 = ioc(READ, IOC_TYPE, 11, STATUS_FIRST_SIZE);
/// As [`STATUS`], of the part that all systems' DTrace have in common.
pub const STATUS_COMMON: u32 = ioc(READ, IOC_TYPE, 11, STATUS_COMMON_SIZE);
/// Starts the tracing; gives the CPU that fired `BEGIN`.
pub const GO: u32 = ioc(READ, IOC_TYPE, 12, size_of::<u32>());
/// Ends the tracing; gives the CPU that fired `END`.
pub const STOP: u32 = ioc(READ | WRITE, IOC_TYPE, 13, size_of::<u32>());
/// Fills in an [`AggDesc`] by its id, and as many records as it has room for. EINVAL: no such aggregation.
pub const AGGDESC: u32 = ioc(READ | WRITE, IOC_TYPE, 15, size_of::<AggDesc>());
/// Gives a [`FmtDesc`]'s length, or, when it is given back with room enough, its string.
pub const FORMAT: u32 = ioc(READ | WRITE, IOC_TYPE, 16, size_of::<FmtDesc>());
/// Copies the options as a DOF image to the address of a [`crate::dof::Hdr`] whose `loadsz` is the room there.
pub const DOFGET: u32 = ioc(READ | WRITE, IOC_TYPE, 17, size_of::<crate::dof::Hdr>());
/// Copies the enablings of a [`ReplDesc`]'s first description to its second.
pub const REPLICATE: u32 = ioc(WRITE, IOC_TYPE, 18, size_of::<ReplDesc>());
/// Linux' own: why the last control call on this file failed, as a [`Reason`].
pub const REASON: u32 = ioc(READ, IOC_TYPE, 64, size_of::<Reason>());
/// Linux' own: copies the file that the claimed anonymous state was made of to the address of an [`AnonDesc`]. ENOENT: none has
/// been claimed.
pub const ANONGET: u32 = ioc(READ | WRITE, IOC_TYPE, 65, size_of::<AnonDesc>());
/// Linux' own: makes the [`Probes`] of a process. ESRCH: there is no such process; EACCES: it, or an instruction of it, may not be
/// traced; EINVAL: an instruction cannot be probed.
pub const MAKEPROBES: u32 = ioc(READ | WRITE, IOC_TYPE, 66, size_of::<Probes>());

/// Linux' own: from now on processes wait at a [`Hold`]'s event. ESRCH: there is no such process; EINVAL: the instruction cannot be
/// stopped at; EACCES: the process may not be traced.
pub const HOLD: u32 = ioc(WRITE, IOC_TYPE, 70, size_of::<Hold>());
/// Linux' own: fills in a [`Held`]: a process that waits and has not been told of.
pub const HELD: u32 = ioc(READ, IOC_TYPE, 71, size_of::<Held>());
/// Linux' own: lets go who waits, by its [`Held::id`], a `u64`. ENOENT: it went by itself.
pub const RESUME: u32 = ioc(WRITE, IOC_TYPE, 72, size_of::<u64>());
/// Linux' own: removes the probes of a process, an `i32`, whose instructions it does not have any more where they were. ESRCH: there is
/// no such process.
pub const REVIEW: u32 = ioc(WRITE, IOC_TYPE, 73, size_of::<i32>());
/// Linux' own: the file that a process, a [`Known`], executes there has nothing for the caller: nobody waits for it again. ESRCH: there is no
/// such process; EFAULT, EACCES: no text of a file is there.
pub const KNOWN: u32 = ioc(WRITE, IOC_TYPE, 75, size_of::<Known>());
/// Linux' own: takes back all that [`REPLICATE`] has copied to this very [`ProbeDesc`]. Later probes are not enabled by it any more. Those
/// that are enabled stay so, and are enabled twice if it is copied again. ENOENT: nothing was copied to it.
pub const RETRACT: u32 = ioc(WRITE, IOC_TYPE, 76, size_of::<ProbeDesc>());
/// Linux' own: replaces the number that a process has for the caller, an `i32`, by the one that it has in records, which is that of the
/// first pid namespace. ESRCH: there is no such process.
pub const NUMBER: u32 = ioc(READ | WRITE, IOC_TYPE, 74, size_of::<i32>());

/// Linux' own: fills in a [`Registered`]: what a process has registered next, by the helper device, after [`Registered::generation`]. ESRCH: there is
/// no such process; ENOENT: there is nothing more; E2BIG: there is no room for the image.
pub const REGISTERED: u32 = ioc(READ | WRITE, IOC_TYPE, 80, size_of::<Registered>());

/// Linux' own: returns a descriptor of a file that a user stack leads into and that has no [`Table`](crate::unwind::Table). ENOENT: there is none; EACCES: the
/// caller may not make tables, which serve all. From the first call on such files are noted.
pub const WANTED: u32 = ioc(0, IOC_TYPE, 81, 0);
/// Linux' own: gives a file its [`Table`](crate::unwind::Table). EINVAL: it is damaged, or the file is none; EBADF: nothing is
/// open there; EEXIST: the file has one; ESTALE: it has changed since; E2BIG, ENOSPC: it is larger than tables may be; EACCES: as above.
pub const TABLE: u32 = ioc(WRITE, IOC_TYPE, 82, size_of::<crate::unwind::Table>());
/// Linux' own: fills in the next [`Remains`](crate::remains::Remains) of a process. ENOENT: there are no more; EACCES: the caller does not trace all
/// processes. From the first call on mappings of processes are noted.
pub const REMAINS: u32 = ioc(
    READ | WRITE,
    IOC_TYPE,
    83,
    size_of::<crate::remains::Remains>(),
);
/// Linux' own: fills in the names of a [`Frame`](crate::interp::Frame) of interpreted code; returns how many bytes they are. ENOENT: there are no such;
/// EAGAIN: they are being written; E2BIG: there is no room for them.
pub const FRAME: u32 = ioc(WRITE, IOC_TYPE, 84, size_of::<crate::interp::Frame>());

/// A probe's description, or globs for one (`dtrace_probedesc_t`). Strings end with NUL.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct ProbeDesc {
    /// The probe's id.
    pub id: ProbeId,
    /// Its provider.
    pub provider: [u8; PROVNAMELEN],
    /// Its module.
    pub module: [u8; MODNAMELEN],
    /// Its function.
    pub func: [u8; FUNCNAMELEN],
    /// Its name.
    pub name: [u8; NAMELEN],
}

/// A pair of descriptions (`dtrace_repldesc_t`).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct ReplDesc {
    /// Enablings of this description …
    pub matching: ProbeDesc,
    /// … are copied to this one.
    pub create: ProbeDesc,
}

/// An image to enable.
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct Enable {
    /// Address of the DOF image.
    pub dof: u64,
    /// Out: how many probes it matched.
    pub n_matched: u32,
    /// Zero.
    pub pad: u32,
}

/// Where the file of an anonymous enabling goes to.
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct AnonDesc {
    /// In: the room at `data`, bytes; out: the file's size. Nothing is copied where the room is less.
    pub size: u64,
    /// Address of the room.
    pub data: u64,
}

/// A record within an ECB's data (`dtrace_recdesc_t`).
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct RecDesc {
    /// The [`Action`](crate::action::Action) that makes it.
    pub action: u32,
    /// Its size, bytes.
    pub size: u32,
    /// Its offset from the beginning of the ECB's data.
    pub offset: u32,
    /// Its alignment, bytes.
    pub alignment: u16,
    /// The number of its format, or 0.
    pub format: u16,
    /// The action's argument.
    pub arg: u64,
    /// The consumer's note on the action.
    pub uarg: u64,
}

/// Head of an enabled probe's description; [`RecDesc`]s follow (`dtrace_eprobedesc_t`).
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct EprobeDesc {
    /// The enabled probe.
    pub epid: Epid,
    /// Its probe.
    pub probeid: ProbeId,
    /// The consumer's note on the ECB.
    pub uarg: u64,
    /// Size of its data, with the [`RecHdr`], bytes.
    pub size: u32,
    /// In: room for records; out: how many there are.
    pub nrecs: i32,
}

/// Head of an aggregation's description; [`RecDesc`]s follow (`dtrace_aggdesc_t`).
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct AggDesc {
    /// The consumer's: address of the name.
    pub name: u64,
    /// The consumer's: id of the variable.
    pub varid: i64,
    /// The consumer's.
    pub flags: i32,
    /// The aggregation.
    pub id: AggId,
    /// The enabled probe that feeds it.
    pub epid: Epid,
    /// Size of its data, with the id in front, bytes.
    pub size: u32,
    /// In: room for records; out: how many there are.
    pub nrecs: i32,
    /// Zero.
    pub pad: u32,
}

/// A format (`dtrace_fmtdesc_t`).
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct FmtDesc {
    /// Address for the string.
    pub string: u64,
    /// In: room there; out: length with the NUL.
    pub length: i32,
    /// The format's number.
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
    /// In: room at `data`, which for a principal buffer is [`crate::limits::buffer_room`] of its size at least; out: size of
    /// the records there, bytes.
    pub size: u64,
    /// The CPU.
    pub cpu: u32,
    /// Out: faults since the last snapshot.
    pub errors: u32,
    /// Out: records dropped since the last snapshot.
    pub drops: u64,
    /// Address for the records.
    pub data: u64,
    /// Out: offset of the oldest record.
    pub oldest: u64,
    /// Out: time of the snapshot, ns.
    pub timestamp: u64,
}

/// Head of each record in a principal buffer (`dtrace_rechdr_t`). An EPID of 0 alone is padding of four bytes.
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct RecHdr {
    /// The enabled probe that made the record.
    pub epid: Epid,
    /// High half of its time, ns.
    pub timestamp_hi: u32,
    /// Low half of its time, ns.
    pub timestamp_lo: u32,
}

/// Bytes of a record's head that `bufsize` does not count: its time.
pub const RECORD_TIME: usize = size_of::<RecHdr>() - size_of::<Epid>();

impl RecHdr {
    /// The head of a record of `epid` at `timestamp`.
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

/// What happened to a consumer's tracing so far (`dtrace_status_t`).
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct Status {
    /// Dynamic variables dropped: no space.
    pub dyndrops: u64,
    /// Dynamic variables dropped: the space is being rinsed.
    pub dyndrops_rinsing: u64,
    /// Dynamic variables dropped: the space is dirty.
    pub dyndrops_dirty: u64,
    /// Speculative records dropped.
    pub specdrops: u64,
    /// Speculations refused: buffers busy.
    pub specdrops_busy: u64,
    /// Speculations refused: none free.
    pub specdrops_unavail: u64,
    /// Faults.
    pub errors: u64,
    /// Fill buffers that are full.
    pub filled: u64,
    /// Overflows of the strings of stacks.
    pub stkstroverflows: u64,
    /// Faults within the handling of a fault.
    pub dblerrors: u64,
    /// The kernel has ended the tracing.
    pub killed: u8,
    /// `exit()` was called.
    pub exiting: u8,
    /// Zero.
    pub pad: [u8; 6],
    /// Linux' own from here on: probes of this consumer that fired within probe context (what it calls is traced itself),
    /// and were lost.
    pub recursions: u64,
    /// Probes of this consumer that an NMI fired on top of probe context, and were lost.
    pub nmis: u64,
    /// Firings, of whichever consumer, in code that RCU does not watch.
    pub unwatched: u64,
    /// Returns of functions, of whichever consumer, that could not be hooked when the function was called.
    pub returns: u64,
    /// Probes that this consumer has described, which appeared later and could not be enabled.
    pub missed: u64,
    /// Probes of this consumer that fired on CPUs which came while it traced, and were lost as there was no memory for their buffers;
    /// counted once for each clause, of whose predicate only what compares one built-in number is asked.
    pub unbuffered: u64,
    /// How often a program, of whichever consumer, waited at a probe for memory of its own that a clause or an instruction misses, and got it
    /// or was disturbed by a signal.
    pub waits: u64,
    /// How often one waited in vain: the memory cannot be had, or did not come in a second.
    pub waits_in_vain: u64,
    /// Instructions, of whichever consumer's probes, that were left to the kernel's uprobes, which are slower, as their program has no room to
    /// execute them elsewhere.
    pub carried: u64,
    /// How often it was not known in time whether this consumer may trace a process, which went unseen: each firing meanwhile counts, and
    /// each time that nobody answered.
    pub unanswered: u64,
}

/// Size of the part of [`Status`] that all systems have in common: `dtrace_status_t`, bytes.
pub const STATUS_COMMON_SIZE: usize = 88;

/// Size of [`Status`] up to its field `missed`, bytes.
pub const STATUS_FIRST_SIZE: usize = 128;

/// Size of [`Status`] up to its field `unbuffered`, bytes.
pub const STATUS_SECOND_SIZE: usize = 136;

/// Size of [`Status`] up to its field `unanswered`, bytes.
pub const STATUS_THIRD_SIZE: usize = 160;

/// What the kernel's DIF machine is like (`dtrace_conf_t`).
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct Conf {
    /// Version of DIF.
    pub difversion: u32,
    /// Integer registers.
    pub difintregs: u32,
    /// Tuple registers.
    pub diftupregs: u32,
    /// Data model of the kernel, as in a DOF image.
    pub ctfmodel: u32,
    /// Linux' own: the module's [`INTERFACE`]; 0 of a module from before there was one.
    pub interface: u32,
    /// Zero.
    pub pad: [u32; 7],
}

/// [`ArgDesc::ndx`]: the probe has no such argument.
pub const ARG_NONE: i32 = -1;

/// Type of a probe's argument (`dtrace_argdesc_t`).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct ArgDesc {
    /// The probe.
    pub id: ProbeId,
    /// In: which of `args[]`; out: the same, or [`ARG_NONE`].
    pub ndx: i32,
    /// Which native argument it comes from.
    pub mapping: i32,
    /// Native type.
    pub native: [u8; ARGTYPELEN],
    /// Translated type; empty where it is the native one.
    pub xlate: [u8; ARGTYPELEN],
}

/// [`ProviderPrivileges::flags`]: needs rights over the kernel.
pub const PRIV_KERNEL: u32 = 1;
/// [`ProviderPrivileges::flags`]: needs rights over users.
pub const PRIV_USER: u32 = 2;
/// [`ProviderPrivileges::flags`]: needs rights over processes.
pub const PRIV_PROC: u32 = 4;
/// [`ProviderPrivileges::flags`]: only the owner's probes.
pub const PRIV_OWNER: u32 = 8;

/// What a consumer needs to use a provider (`dtrace_ppriv_t`).
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct ProviderPrivileges {
    /// `PRIV_*`.
    pub flags: u32,
    /// The owner.
    pub uid: u32,
    /// The owner's container.
    pub zoneid: u32,
}

/// A provider (`dtrace_providerdesc_t`).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct ProviderDesc {
    /// Its name, ending with NUL.
    pub name: [u8; PROVNAMELEN],
    /// Stability of its probes' names.
    pub attr: ProviderAttributes,
    /// Zero.
    pub pad: u8,
    /// What it needs.
    pub privileges: ProviderPrivileges,
}

/// Why the last control call failed: a line of text that ends with NUL, empty where there is nothing to say.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Reason {
    /// The text.
    pub text: [u8; REASONLEN],
}

/// A user-level object's DOF (`dof_helper_t`).
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

/// DOF that a process has registered.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Registered {
    /// The process, as the caller numbers it.
    pub pid: i32,
    /// What the registration is called by among those of its process, from 1; in: the one before.
    pub generation: u32,
    /// What the image's addresses are relative to.
    pub addr: u64,
    /// In: the room at `data`, bytes; out: the image's size.
    pub size: u64,
    /// Address of the room.
    pub data: u64,
    /// Name of the object, as the process says it; it ends with NUL.
    pub module: [u8; MODNAMELEN],
}

/// Most bytes of an image that a process registers.
pub const REGISTERED_MAX: usize = 256 << 10;
/// Most registrations of a process, and most providers of all its images.
pub const REGISTRATIONS_MAX: usize = 32;
/// Most bytes of the images that the processes of a user have registered.
pub const REGISTERED_USER_MAX: usize = 16 << 20;
/// Most bytes of the images that all processes have registered.
pub const REGISTERED_ALL_MAX: usize = 64 << 20;

/// Helper call: registers the DOF at this address, whose addresses are the process' own. The result is a number to remove it by, from 1. EINVAL: it
/// is no DOF of a program; E2BIG: it is too large; ENOSPC: the process, or its user, has registered too much; EFAULT: it is not there.
pub const HELPER_ADD: u32 = ioc(WRITE, HELPER_IOC_TYPE, 1, size_of::<crate::dof::Hdr>());
/// Helper call: removes what has this number. ENOENT: nothing has.
pub const HELPER_REMOVE: u32 = ioc(WRITE, HELPER_IOC_TYPE, 2, size_of::<u32>());
/// Helper call: as [`HELPER_ADD`], for a [`DofHelper`].
pub const HELPER_ADDDOF: u32 = ioc(WRITE, HELPER_IOC_TYPE, 3, size_of::<DofHelper>());
/// Helper call: the file that the process has mapped at this address has probes. The result is as that of [`HELPER_ADD`]. EFAULT: nothing is there;
/// EACCES: it is no text of a file.
pub const HELPER_LOOK: u32 = ioc(WRITE, HELPER_IOC_TYPE, 4, size_of::<u64>());

/// What illumos' numbers of helper calls begin with; the number of the call follows: 1 for [`HELPER_ADD`], 2, 3.
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
