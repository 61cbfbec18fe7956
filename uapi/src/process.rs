// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note

//! Probes in processes: what a consumer asks the kernel to make.
//!
//! The kernel knows no symbols of programs. A consumer tells it what each probe is called and at which instructions of the process it
//! is to fire, all in one call; the probes are then enabled by description, like any others.

use zerocopy_derive::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The first part of the provider's name of such probes; the number of the process follows.
pub const PROVIDER: &str = "pid";

/// [`Probe::kind`]: fires when the function is called.
pub const ENTRY: u32 = 0;
/// [`Probe::kind`]: fires when the function returns, by whichever of its sites.
pub const RETURN: u32 = 1;
/// [`Probe::kind`]: fires before one instruction, which is named by its offset in a function.
pub const OFFSET: u32 = 2;
/// [`Probe::kind`]: fires before one instruction, which is named by its address in the program's file.
pub const ADDRESS: u32 = 3;
/// [`Probe::kind`]: fires where the program says so itself, by whichever of its sites; its provider is named by the program.
pub const USDT: u32 = 4;
/// [`Probe::kind`]: fires before one instruction, where a source line begins.
pub const LINE: u32 = 5;

/// Most probes of one [`Probes`].
pub const PROBES_MAX: usize = 250_000;
/// Most instructions of one [`Probes`].
pub const SITES_MAX: usize = 500_000;
/// Most arguments of one [`Probes`].
pub const ARGS_MAX: usize = 1_000_000;
/// Most arguments of one probe.
pub const PROBE_ARGS_MAX: usize = 32;
/// Most bytes of text of one [`Probes`].
pub const TEXT_MAX: usize = 32 << 20;

/// Probes to be made in one process. Those that are there already stay as they are.
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct Probes {
    /// The process, as the caller numbers it.
    pub pid: i32,
    /// How many probes.
    pub nprobes: u32,
    /// How many instructions.
    pub nsites: u32,
    /// Bytes of text.
    pub text_size: u32,
    /// Address of the probes.
    pub probes: u64,
    /// Address of the instructions' addresses in the process, `u64` each.
    pub sites: u64,
    /// Address of the names, each of which ends with NUL.
    pub text: u64,
    /// Out, where the call fails for one of the instructions: its index. Else `u32::MAX`.
    pub failed: u32,
    /// How many arguments.
    pub nargs: u32,
    /// Address of the arguments, [`Arg`]s, of all probes together.
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
    /// Where in the text its module's name begins.
    pub module: u32,
    /// Its function's.
    pub func: u32,
    /// Its own.
    pub name: u32,
    /// Where its function begins in the process. Of [`USDT`]: the [registration](crate::ioctl::Registered) that it goes with; 0: none.
    pub start: u64,
    /// Bytes of the function.
    pub size: u64,
    /// The first of its instructions.
    pub first: u32,
    /// How many there are; one but for [`RETURN`] and [`USDT`].
    pub nsites: u32,
    /// Of [`USDT`]: where in the text its provider's name begins, without the number of the process.
    pub provider: u32,
    /// Of [`USDT`]: how many arguments it has.
    pub nargs: u32,
    /// Of [`USDT`]: the first of its arguments: all of its first site, then all of the next.
    pub first_arg: u32,
    /// Of [`USDT`]: at how many of its instructions, the last ones, the program only asks whether it is enabled. The first argument there is
    /// the address of a number of 4 bytes that becomes 1 while it is, or what becomes 1 itself ([`ANSWER`]).
    pub asks: u32,
    /// Of [`USDT`]: where in the file the counter of two bytes is that says whether anybody has enabled the probe; 0: nowhere.
    pub semaphore: u64,
}

/// [`Arg::base`], [`Arg::index`]: no register.
pub const NO_REGISTER: u8 = 0xff;

/// [`Arg::base`]: the first of 16 vector registers, of which the lowest bytes are meant. Not part of an address.
pub const VECTOR: u8 = 0x20;

/// Arguments of a function in a process have the words of the calling convention by their numbers. From this one on they are the lowest 8
/// bytes of the 16 vector registers, in which numbers in floating point are passed (System V ABI, AMD64 §3.2.3).
pub const VECTOR_WORD: u32 = 1 << 16;

/// [`Arg::form`]: a number.
pub const NUMBER: u8 = 0;
/// [`Arg::form`]: where a program asks whether its probe is enabled, the general register `base` itself becomes 1, which is
/// that of a function's result.
pub const ANSWER: u8 = 1;
/// [`Arg::form`]: a number in floating point, of 4 or 8 bytes.
pub const FLOAT: u8 = 2;

/// How an argument of a probe is made at one site: `value + base + (index << shift)`, or what lies there.
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct Arg {
    /// A constant, or a distance.
    pub value: u64,
    /// A general register by the processor's number, one from [`VECTOR`] on, or [`NO_REGISTER`].
    pub base: u8,
    /// A general register, or [`NO_REGISTER`].
    pub index: u8,
    /// 0 to 3.
    pub shift: u8,
    /// Bytes: 1, 2, 4 or 8.
    pub size: u8,
    /// Not 0: it is a number with a sign.
    pub is_signed: u8,
    /// Not 0: it is what lies at that address.
    pub is_loaded: u8,
    /// Not 0: it is bits 8 to 15 of the register.
    pub is_high: u8,
    /// [`NUMBER`], [`ANSWER`] or [`FLOAT`].
    pub form: u8,
}

const _: () = assert!(size_of::<Probes>() == 56);
const _: () = assert!(size_of::<Probe>() == 64);
const _: () = assert!(size_of::<Arg>() == 16);
