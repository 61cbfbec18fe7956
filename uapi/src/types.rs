// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note

//! Types that DIF, DOF and the control calls share.

use crate::numbered::numbered;
use zerocopy_derive::{FromBytes, Immutable, IntoBytes, KnownLayout, TryFromBytes};

/// Identifies a probe; 0 is none.
pub type ProbeId = u32;
/// Identifies an enabled probe: one ECB of one consumer. 0 stands for padding in a buffer.
pub type Epid = u32;
/// Identifies an aggregating action of one consumer; 0 is none.
pub type AggId = u32;

/// [`DifType::kind`] of a value typed by the consumer; the name recalls the Compact C Type Format.
pub const DIF_TYPE_CTF: u8 = 0;
/// [`DifType::kind`] of a D string.
pub const DIF_TYPE_STRING: u8 = 1;

/// [`DifType::flags`]: the value is a kernel-space address of the data.
pub const DIF_TF_BYREF: u8 = 1;
/// [`DifType::flags`]: the value is a user-space address of the data.
pub const DIF_TF_BYUREF: u8 = 2;

/// [`DifVar::kind`] of an array.
pub const DIFV_KIND_ARRAY: u8 = 0;
/// [`DifVar::kind`] of a scalar.
pub const DIFV_KIND_SCALAR: u8 = 1;
/// [`DifVar::scope`] of a global variable.
pub const DIFV_SCOPE_GLOBAL: u8 = 0;
/// [`DifVar::scope`] of a thread-local variable (`self->`).
pub const DIFV_SCOPE_THREAD: u8 = 1;
/// [`DifVar::scope`] of a clause-local variable (`this->`).
pub const DIFV_SCOPE_LOCAL: u8 = 2;
/// [`DifVar::flags`]: the DIFO reads the variable.
pub const DIFV_F_REF: u16 = 1;
/// [`DifVar::flags`]: the DIFO writes the variable.
pub const DIFV_F_MOD: u16 = 2;

/// The type of what a DIFO returns, or of a variable (`dtrace_diftype_t`).
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct DifType {
    /// [`DIF_TYPE_CTF`] or [`DIF_TYPE_STRING`].
    pub kind: u8,
    /// The consumer's own note on the type's kind.
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
    /// Variable id, see [`crate::var`].
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

/// What stands behind the last address of a user stack whose caller was not found, if there is room. It is no address of a program.
pub const STACK_LOST: u64 = 0x2000_0000_0000_0000;

/// What is added to an address of a user stack that a frame pointer led to, or code that was looked at, where that is to be told. No
/// address of a program has that bit.
pub const STACK_GUESSED: u64 = 0x4000_0000_0000_0000;

/// What is added to an address of a user stack that was interrupted there, and where no program can be: 0, or one of more than 56 bits (Linux:
/// `Documentation/arch/x86/x86_64/mm.rst`). A program may have jumped there, or say that it has.
pub const STACK_NOWHERE: u64 = 0xc000_0000_0000_0000;

/// The beginning of a stack that is a value of D's (`dt_stack_t`); the addresses follow, 8 bytes each and innermost first, with
/// zeros behind the last, or [`STACK_LOST`] and then zeros.
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct StackHead {
    /// Addresses that mean something.
    pub depth: u32,
    /// 1 for the stack of a process, 0 for the kernel's.
    pub is_user: u32,
    /// The process whose stack it is, 0 for the kernel's.
    pub pid: u32,
    /// What the program asked of `ustack()` for strings, bytes; no strings are kept.
    pub strsz: u32,
}

const _: () = assert!(size_of::<StackHead>() == 16);
const _: () = assert!(size_of::<DifType>() == 8);
const _: () = assert!(size_of::<DifVar>() == 20);

/// How far a name or its data may be relied on (`dtrace_stability_t`).
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
    /// Will go away.
    Obsolete = 2,
    /// Controlled by somebody else.
    External = 3,
    /// New or rapidly changing.
    Unstable = 4,
    /// Less likely to change.
    Evolving = 5,
    /// Changes only with a major release.
    Stable = 6,
    /// Follows an industry standard.
    Standard = 7,
}

/// Which machines a name or its data exists on (`dtrace_class_t`).
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
    /// Not known.
    Unknown = 0,
    /// This model of CPU.
    Cpu = 1,
    /// This platform.
    Platform = 2,
    /// This group of platforms.
    Group = 3,
    /// This instruction set.
    Isa = 4,
    /// All machines.
    Common = 5,
}

numbered!(Stability: u8, "stability");

numbered!(Class: u8, "class");

/// Stability of a name, its data, and its dependency class (`dtrace_attribute_t`), as raw numbers.
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
    /// An attribute from its three parts.
    pub const fn new(name: Stability, data: Stability, class: Class) -> Self {
        Self {
            name: name as u8,
            data: data as u8,
            class: class as u8,
        }
    }
}

/// The attributes of a provider, part by part of its probes' names (`dtrace_pattr_t`).
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct ProviderAttributes {
    /// Of the provider's name.
    pub provider: Attribute,
    /// Of its modules' names.
    pub module: Attribute,
    /// Of its functions' names.
    pub func: Attribute,
    /// Of its probes' names.
    pub name: Attribute,
    /// Of its probes' arguments.
    pub args: Attribute,
}

const _: () = assert!(size_of::<Attribute>() == 3);
const _: () = assert!(size_of::<ProviderAttributes>() == 15);
