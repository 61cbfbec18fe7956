// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT

//! Probes in processes, which the kernel makes on request of a consumer.
//!
//! The kernel knows no symbols of programs. One call of the consumer names each probe and the
//! instructions of the process at which it fires. The probes are then enabled by description, like
//! all others.

use zerocopy_derive::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The first part of the provider's name of such probes. The process ID follows.
pub const PROVIDER: &str = "pid";

/// Value of [`Probe::kind`]: fires when the function is called.
pub const ENTRY: u32 = 0;
/// Value of [`Probe::kind`]: fires when the function returns, at any of its sites.
pub const RETURN: u32 = 1;
/// Value of [`Probe::kind`]: fires before one instruction, which is named by its offset in a
/// function.
pub const OFFSET: u32 = 2;
/// Value of [`Probe::kind`]: fires before one instruction, which is named by its address in the
/// program's file.
pub const ADDRESS: u32 = 3;
/// Value of [`Probe::kind`]: a probe that the program defines. Fires at any of its sites. The
/// program names the provider.
pub const USDT: u32 = 4;
/// Value of [`Probe::kind`]: fires before the first instruction of a source line.
pub const LINE: u32 = 5;

/// Maximum number of probes of one [`Probes`].
pub const PROBES_MAX: usize = 250_000;
/// Maximum number of instructions of one [`Probes`].
pub const SITES_MAX: usize = 500_000;
/// Maximum number of arguments of one [`Probes`].
pub const ARGS_MAX: usize = 1_000_000;
/// Maximum number of arguments of one probe.
pub const PROBE_ARGS_MAX: usize = 32;
/// Maximum size of the text of one [`Probes`], bytes.
pub const TEXT_MAX: usize = 32 << 20;

/// Probes to make in one process. Probes that exist stay as they are.
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct Probes {
    /// The process ID in the caller's pid namespace.
    pub pid: i32,
    /// Number of probes.
    pub nprobes: u32,
    /// Number of instructions.
    pub nsites: u32,
    /// Size of the text, bytes.
    pub text_size: u32,
    /// Address of the [`Probe`]s.
    pub probes: u64,
    /// Address of the array of the instructions' addresses in the process, `u64` each.
    pub sites: u64,
    /// Address of the text: the names, each of which ends with NUL.
    pub text: u64,
    /// Out: index of the instruction for which the call fails; `u32::MAX` if the cause is not an
    /// instruction.
    pub failed: u32,
    /// Number of arguments.
    pub nargs: u32,
    /// Address of the [`Arg`]s of all probes.
    pub args: u64,
}

/// One probe of [`Probes`].
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct Probe {
    /// [`ENTRY`], [`RETURN`], [`OFFSET`], [`ADDRESS`], [`USDT`], [`LINE`].
    pub kind: u32,
    /// Offset of the module's name in the text.
    pub module: u32,
    /// Offset of the function's name in the text.
    pub func: u32,
    /// Offset of the probe's name in the text.
    pub name: u32,
    /// Address of the function in the process. For [`USDT`]: number of the
    /// [`Registered`](crate::ioctl::Registered) that the probe belongs to, or 0.
    pub start: u64,
    /// Size of the function, bytes.
    pub size: u64,
    /// Index of the first of its instructions.
    pub first: u32,
    /// Number of its instructions: 1, except for [`RETURN`] and [`USDT`].
    pub nsites: u32,
    /// For [`USDT`]: offset of the provider's name, without the process ID, in the text.
    pub provider: u32,
    /// For [`USDT`]: number of its arguments.
    pub nargs: u32,
    /// For [`USDT`]: index of its first argument. All arguments of its first site come first, then
    /// those of the next site.
    pub first_arg: u32,
    /// For [`USDT`]: at how many of its instructions, the last ones, the program only tests whether
    /// the probe is enabled. The first argument of such a site is the address of a 4-byte number
    /// that becomes 1 while the probe is enabled, or the register that becomes 1 ([`ANSWER`]).
    pub asks: u32,
    /// For [`USDT`]: offset in the file of the 2-byte counter of enablings of the probe; 0 if there
    /// is none.
    pub semaphore: u64,
}

/// Value of [`Arg::base`] and [`Arg::index`]: no register.
pub const NO_REGISTER: u8 = 0xff;

/// Value of [`Arg::base`]: the first of 16 vector registers, of which the lowest bytes are used.
/// Cannot be part of an address.
pub const VECTOR: u8 = 0x20;

/// Arguments of a function in a process are numbered as the words of the calling convention. From
/// this number on they are the lowest 8 bytes of the 16 vector registers, in which floating-point
/// numbers are passed (System V ABI, AMD64 §3.2.3).
pub const VECTOR_WORD: u32 = 1 << 16;

/// Value of [`Arg::form`]: an integer.
pub const NUMBER: u8 = 0;
/// Value of [`Arg::form`]: at a site where the program tests whether its probe is enabled, the
/// general register `base` itself becomes 1. It must be the register of a function's result.
pub const ANSWER: u8 = 1;
/// Value of [`Arg::form`]: a floating-point number of 4 or 8 bytes.
pub const FLOAT: u8 = 2;

/// How to compute an argument of a probe at one site: `value + base + (index << shift)`, or the
/// value in memory at that address.
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct Arg {
    /// A constant or a displacement.
    pub value: u64,
    /// A general register by its number in the instruction set, a vector register from [`VECTOR`]
    /// on, or [`NO_REGISTER`].
    pub base: u8,
    /// A general register, or [`NO_REGISTER`].
    pub index: u8,
    /// Shift of the index, 0 to 3.
    pub shift: u8,
    /// Size of the argument: 1, 2, 4 or 8 bytes.
    pub size: u8,
    /// Not 0 if the argument is signed.
    pub is_signed: u8,
    /// Not 0 if the argument is in memory at the computed address.
    pub is_loaded: u8,
    /// Not 0 if the argument is bits 8 to 15 of the register.
    pub is_high: u8,
    /// [`NUMBER`], [`ANSWER`] or [`FLOAT`].
    pub form: u8,
}

const _: () = assert!(size_of::<Probes>() == 56);
const _: () = assert!(size_of::<Probe>() == 64);
const _: () = assert!(size_of::<Arg>() == 16);
