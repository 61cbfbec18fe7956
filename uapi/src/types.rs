// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT

//! Types that DIF, DOF and the ioctls share.

use crate::numbered::numbered;
use zerocopy_derive::{FromBytes, Immutable, IntoBytes, KnownLayout, TryFromBytes};

/// ID of a probe; 0 means none.
pub type ProbeId = u32;
/// ID of an enabled probe: one ECB of one consumer. 0 means padding in a buffer.
pub type Epid = u32;
/// ID of an aggregating action of one consumer; 0 means none.
pub type AggId = u32;

/// Value of [`DifType::kind`]: a type that only the consumer interprets. The name is that of the
/// Compact C Type Format.
pub const DIF_TYPE_CTF: u8 = 0;
/// Value of [`DifType::kind`]: a D string.
pub const DIF_TYPE_STRING: u8 = 1;

/// Bit of [`DifType::flags`]: the value is the kernel address of the data.
pub const DIF_TF_BYREF: u8 = 1;
/// Bit of [`DifType::flags`]: the value is the user address of the data.
pub const DIF_TF_BYUREF: u8 = 2;

/// Value of [`DifVar::kind`]: an array.
pub const DIFV_KIND_ARRAY: u8 = 0;
/// Value of [`DifVar::kind`]: a scalar.
pub const DIFV_KIND_SCALAR: u8 = 1;
/// Value of [`DifVar::scope`]: a global variable.
pub const DIFV_SCOPE_GLOBAL: u8 = 0;
/// Value of [`DifVar::scope`]: a thread-local variable (`self->`).
pub const DIFV_SCOPE_THREAD: u8 = 1;
/// Value of [`DifVar::scope`]: a clause-local variable (`this->`).
pub const DIFV_SCOPE_LOCAL: u8 = 2;
/// Bit of [`DifVar::flags`]: the DIFO reads the variable.
pub const DIFV_F_REF: u16 = 1;
/// Bit of [`DifVar::flags`]: the DIFO writes the variable.
pub const DIFV_F_MOD: u16 = 2;

/// The type of a DIFO's result or of a variable (`dtrace_diftype_t`).
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct DifType {
    /// [`DIF_TYPE_CTF`] or [`DIF_TYPE_STRING`].
    pub kind: u8,
    /// The consumer's number of the kind of type. Only the consumer interprets it.
    pub ckind: u8,
    /// [`DIF_TF_BYREF`], [`DIF_TF_BYUREF`].
    pub flags: u8,
    /// Zero.
    pub pad: u8,
    /// Size in bytes.
    pub size: u32,
}

/// A variable that a DIFO uses (`dtrace_difv_t`).
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct DifVar {
    /// Offset of the name in the DIFO's string table.
    pub name: u32,
    /// The variable's ID: see [`crate::var`].
    pub id: u32,
    /// `DIFV_KIND_*`.
    pub kind: u8,
    /// `DIFV_SCOPE_*`.
    pub scope: u8,
    /// `DIFV_F_*`.
    pub flags: u16,
    /// The variable's type.
    pub ty: DifType,
}

/// Follows the last address of a user stack whose next caller could not be found, if there is room.
/// It is not an address of a program.
pub const STACK_LOST: u64 = 0x2000_0000_0000_0000;

/// Bit that marks an address of a user stack which was found by a frame pointer or by inspecting
/// code, if the consumer requests such marks ([`USTACKMODE_TOLD`](crate::option::USTACKMODE_TOLD)).
/// No address of a program has this bit.
pub const STACK_GUESSED: u64 = 0x4000_0000_0000_0000;

/// Bits that mark the address at which a user stack was interrupted if no program can be there: 0,
/// or an address of more than 56 bits (Linux: `Documentation/arch/x86/x86_64/mm.rst`). The program
/// may have jumped there, or may have forged the frame.
pub const STACK_NOWHERE: u64 = 0xc000_0000_0000_0000;

/// Header of a stack that is a value in D (`dt_stack_t`). Room for as many addresses follows as the
/// type says, 8 bytes each, innermost first. The rest of that room is zero, except for a
/// [`STACK_LOST`] directly behind the last address. Behind it may be room for frames of interpreted
/// code, each a [`Word`](crate::interp::Word); the rest of that is zero as well.
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct StackHead {
    /// Number of valid addresses.
    pub depth: u32,
    /// 1 for the stack of a process, 0 for a kernel stack.
    pub is_user: u32,
    /// ID of the process whose stack it is, 0 for a kernel stack.
    pub pid: u32,
    /// The string size that the program passed to `ustack()`, bytes. No strings are stored.
    pub strsz: u32,
}

const _: () = assert!(size_of::<StackHead>() == 16);
const _: () = assert!(size_of::<DifType>() == 8);
const _: () = assert!(size_of::<DifVar>() == 20);

/// Stability of a name or its data (`dtrace_stability_t`).
#[repr(u8)]
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
pub enum Stability {
    /// Private to DTrace itself.
    Internal = 0,
    /// Private to the kernel.
    Private = 1,
    /// Will be removed.
    Obsolete = 2,
    /// Controlled by another party.
    External = 3,
    /// New or rapidly changing.
    Unstable = 4,
    /// Less likely to change than [`Unstable`](Self::Unstable).
    Evolving = 5,
    /// Changes only with a major release.
    Stable = 6,
    /// Follows an industry standard.
    Standard = 7,
}

/// The machines on which a name or its data exists (`dtrace_class_t`).
#[repr(u8)]
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
pub enum Class {
    /// Unknown.
    Unknown = 0,
    /// Only this model of CPU.
    Cpu = 1,
    /// Only this platform.
    Platform = 2,
    /// Only this group of platforms.
    Group = 3,
    /// Only this instruction set.
    Isa = 4,
    /// All machines.
    Common = 5,
}

numbered!(Stability: u8, "stability");

numbered!(Class: u8, "class");

/// Stability of a name and of its data, and the dependency class (`dtrace_attribute_t`), as raw
/// numbers.
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct Attribute {
    /// A [`Stability`].
    pub name: u8,
    /// A [`Stability`].
    pub data: u8,
    /// A [`Class`].
    pub class: u8,
}

impl Attribute {
    /// Makes an attribute from its three parts.
    pub const fn new(name: Stability, data: Stability, class: Class) -> Self {
        Self {
            name: name as u8,
            data: data as u8,
            class: class as u8,
        }
    }
}

/// The attributes of a provider, for each part of its probes' names (`dtrace_pattr_t`).
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct ProviderAttributes {
    /// The provider's name.
    pub provider: Attribute,
    /// The modules' names.
    pub module: Attribute,
    /// The functions' names.
    pub func: Attribute,
    /// The probes' names.
    pub name: Attribute,
    /// The probes' arguments.
    pub args: Attribute,
}

const _: () = assert!(size_of::<Attribute>() == 3);
const _: () = assert!(size_of::<ProviderAttributes>() == 15);
