// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT

//! The DTrace Object Format, which carries an enabling to the kernel.
//!
//! An image consists of a header, a table of section headers, and the sections. Sections refer to
//! each other by index ([`SecIdx`]) and to strings by their offset in a string table ([`StrIdx`]).
//! The kernel validates all of it.

use crate::numbered::numbered;
use crate::types::DifType;
use zerocopy::FromBytes as _;
use zerocopy_derive::{FromBytes, Immutable, IntoBytes, KnownLayout, TryFromBytes};

/// Index of a section.
pub type SecIdx = u32;
/// Offset in a string table.
pub type StrIdx = u32;

/// No section.
pub const SECIDX_NONE: SecIdx = u32::MAX;
/// No string.
pub const STRIDX_NONE: StrIdx = u32::MAX;

/// The first bytes of an image.
pub const MAGIC: [u8; 4] = [0x7f, b'D', b'O', b'F'];
/// Index of the data model in [`Hdr::ident`].
pub const ID_MODEL: usize = 4;
/// Index of the byte order in [`Hdr::ident`].
pub const ID_ENCODING: usize = 5;
/// Index of the version of DOF in [`Hdr::ident`].
pub const ID_VERSION: usize = 6;
/// Index of the version of DIF in [`Hdr::ident`].
pub const ID_DIFVERS: usize = 7;
/// Index of the number of integer registers in [`Hdr::ident`].
pub const ID_DIFIREG: usize = 8;
/// Index of the number of tuple registers in [`Hdr::ident`].
pub const ID_DIFTREG: usize = 9;
/// Index of the first byte of [`Hdr::ident`] that must be zero.
pub const ID_PAD: usize = 10;
/// Data model: `int` has 32 bits, `long` and pointers have 64 bits.
pub const MODEL_LP64: u8 = 2;
/// Data model: `int`, `long` and pointers have 32 bits.
pub const MODEL_ILP32: u8 = 1;
/// Byte order: little-endian.
pub const ENCODE_LSB: u8 = 1;
/// Byte order: big-endian.
pub const ENCODE_MSB: u8 = 2;
/// First version of DOF.
pub const VERSION_1: u8 = 1;
/// Version of DOF with is-enabled probes. This project writes this version.
pub const VERSION_2: u8 = 2;
/// Version of DOF in which an is-enabled site passes the address of the answer.
pub const VERSION_3: u8 = 3;

/// Bit of [`Sec::flags`]: the kernel loads the section.
pub const SECF_LOAD: u32 = 1;

/// Value of [`RelocDesc::ty`]: nothing to do.
pub const RELO_NONE: u32 = 0;
/// Value of [`RelocDesc::ty`]: add the symbol's address to an integer of the integer table.
pub const RELO_SETX: u32 = 1;
/// Value of [`RelocDesc::ty`]: make an offset relative to the load address of the image.
pub const RELO_DOFREL: u32 = 2;

/// The type of a section's contents.
#[repr(u32)]
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
pub enum SecType {
    /// Nothing.
    None = 0,
    /// Holds `text`.
    Comments = 1,
    /// Holds `text`.
    Source = 2,
    /// Holds `dof_ecbdesc`.
    EcbDesc = 3,
    /// Holds `dof_probedesc`.
    ProbeDesc = 4,
    /// Holds `dof_actdesc[]`.
    ActDesc = 5,
    /// Holds `dof_difohdr + links`.
    DifoHdr = 6,
    /// Holds `u32[]`.
    Dif = 7,
    /// Holds `bytes`.
    Strtab = 8,
    /// Holds `dtrace_difv[]`.
    Vartab = 9,
    /// Holds `dof_relodesc[]`.
    Reltab = 10,
    /// Holds `dtrace_diftype[]`.
    Typtab = 11,
    /// Holds `dof_relohdr`.
    UrelHdr = 12,
    /// Holds `dof_relohdr`.
    KrelHdr = 13,
    /// Holds `dof_optdesc[]`.
    OptDesc = 14,
    /// Holds `dof_provider`.
    Provider = 15,
    /// Holds `dof_probe[]`.
    Probes = 16,
    /// Holds `u8[]`.
    Prargs = 17,
    /// Holds `u32[]`.
    Proffs = 18,
    /// Holds `u64[]`.
    Inttab = 19,
    /// Holds `struct utsname`.
    Utsname = 20,
    /// Holds `dof_xlref[]`.
    Xltab = 21,
    /// Holds `dof_xlmember[]`.
    Xlmembers = 22,
    /// Holds `dof_xlator`.
    Xlimport = 23,
    /// Holds `dof_xlator`.
    Xlexport = 24,
    /// Holds `u32[]`.
    Prexport = 25,
    /// Holds `u32[]`.
    Prenoffs = 26,
}

numbered!(SecType: u32, "type of section");

impl SecType {
    /// Whether the kernel uses sections of this type. The others must not have [`SECF_LOAD`].
    pub const fn is_loadable(self) -> bool {
        !matches!(
            self,
            Self::None | Self::Comments | Self::Source | Self::Utsname
        )
    }
}

/// The header of an image (`dof_hdr_t`).
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct Hdr {
    /// Magic number, data model, byte order, versions and register counts: see the `ID_*`
    /// constants.
    pub ident: [u8; 16],
    /// Zero.
    pub flags: u32,
    /// Size of this header, bytes.
    pub hdrsize: u32,
    /// Size of a section header, bytes.
    pub secsize: u32,
    /// Number of section headers.
    pub secnum: u32,
    /// Offset of the first section header.
    pub secoff: u64,
    /// Size of the part that the kernel loads, bytes.
    pub loadsz: u64,
    /// Size of the whole image, bytes.
    pub filesz: u64,
    /// Zero.
    pub pad: u64,
}

/// The header of a section (`dof_sec_t`).
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct Sec {
    /// A [`SecType`].
    pub ty: u32,
    /// Alignment of the data, a power of two.
    pub align: u32,
    /// [`SECF_LOAD`] or 0.
    pub flags: u32,
    /// Size of an entry if the section is a table, otherwise 0, bytes.
    pub entsize: u32,
    /// Offset of the data in the image.
    pub offset: u64,
    /// Size of the data, bytes.
    pub size: u64,
}

/// The consecutive images of a file, split by the sizes in their headers. Their contents are not
/// checked. The first invalid or incomplete image ends the iteration with an error message.
#[derive(Clone, Debug)]
pub struct Images<'a>(&'a [u8]);

impl<'a> Images<'a> {
    /// An iterator over the images of `file`.
    pub fn new(file: &'a [u8]) -> Self {
        Self(file)
    }
}

impl<'a> Iterator for Images<'a> {
    type Item = Result<&'a [u8], &'static str>;

    fn next(&mut self) -> Option<Self::Item> {
        let file = core::mem::take(&mut self.0);
        if file.is_empty() {
            return None;
        }
        let Ok((hdr, _)) = Hdr::read_from_prefix(file) else {
            return Some(Err("file ends within a DOF header"));
        };
        let size = usize::try_from(hdr.filesz).unwrap_or(usize::MAX);
        if !hdr.ident.starts_with(&MAGIC) || size < size_of::<Hdr>() {
            return Some(Err("file holds something else than DOF images"));
        }
        let Some((image, rest)) = file.split_at_checked(size) else {
            return Some(Err("file ends within a DOF image"));
        };
        self.0 = rest;
        Some(Ok(image))
    }
}

/// A clause: a probe description, a predicate and actions (`dof_ecbdesc_t`).
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct EcbDesc {
    /// Index of a [`SecType::ProbeDesc`].
    pub probes: SecIdx,
    /// Index of a [`SecType::DifoHdr`], or none.
    pub pred: SecIdx,
    /// Index of a [`SecType::ActDesc`], or none.
    pub actions: SecIdx,
    /// Zero.
    pub pad: u32,
    /// A value that the consumer attaches to the ECB.
    pub uarg: u64,
}

/// A probe description (`dof_probedesc_t`).
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct ProbeDesc {
    /// Index of the string table of the description.
    pub strtab: SecIdx,
    /// Glob for the provider.
    pub provider: StrIdx,
    /// Glob for the module.
    pub module: StrIdx,
    /// Glob for the function.
    pub func: StrIdx,
    /// Glob for the name.
    pub name: StrIdx,
    /// The probe's ID, or 0.
    pub id: u32,
}

/// An action (`dof_actdesc_t`).
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct ActDesc {
    /// Index of a [`SecType::DifoHdr`], or none.
    pub difo: SecIdx,
    /// Index of the string table of the format, or none.
    pub strtab: SecIdx,
    /// An [`Action`](crate::action::Action).
    pub kind: u32,
    /// For an aggregating function: how many of the preceding actions form its tuple.
    pub ntuple: u32,
    /// The action's argument; for a printf-like action the offset of its format.
    pub arg: u64,
    /// A value that the consumer attaches to the action.
    pub uarg: u64,
}

/// Header of a DIFO, followed by the indices of its sections, one [`SecIdx`] each
/// (`dof_difohdr_t`).
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct DifoHdr {
    /// Type of the returned value.
    pub rtype: DifType,
}

/// Header of relocations (`dof_relohdr_t`).
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct RelocHdr {
    /// Index of the string table of the symbols.
    pub strtab: SecIdx,
    /// Index of the [`SecType::Reltab`].
    pub relsec: SecIdx,
    /// Index of the section to change.
    pub tgtsec: SecIdx,
}

/// A relocation (`dof_relodesc_t`).
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct RelocDesc {
    /// Name of the symbol.
    pub name: StrIdx,
    /// `RELO_*`.
    pub ty: u32,
    /// Offset in the section to change.
    pub offset: u64,
    /// Addend.
    pub data: u64,
}

/// The setting of an option (`dof_optdesc_t`).
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct OptDesc {
    /// An [`Opt`](crate::option::Opt).
    pub option: u32,
    /// Index of a string table, or none.
    pub strtab: SecIdx,
    /// The value.
    pub value: u64,
}

/// A provider of user-level probes (`dof_provider_t`). In version 1 of DOF the structure ends
/// before `prenoffs`.
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct Provider {
    /// Index of the string table of the provider.
    pub strtab: SecIdx,
    /// Index of the [`SecType::Probes`].
    pub probes: SecIdx,
    /// Index of the [`SecType::Prargs`].
    pub prargs: SecIdx,
    /// Index of the [`SecType::Proffs`].
    pub proffs: SecIdx,
    /// The provider's name.
    pub name: StrIdx,
    /// Attribute word of the provider: name << 24, data << 16, class << 8.
    pub provattr: u32,
    /// Attribute word of the modules.
    pub modattr: u32,
    /// Attribute word of the functions.
    pub funcattr: u32,
    /// Attribute word of the names.
    pub nameattr: u32,
    /// Attribute word of the arguments.
    pub argsattr: u32,
    /// Index of the [`SecType::Prenoffs`].
    pub prenoffs: SecIdx,
}

/// A user-level probe (`dof_probe_t`).
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct Probe {
    /// Address of the function.
    pub addr: u64,
    /// Name of the function.
    pub func: StrIdx,
    /// Name of the probe.
    pub name: StrIdx,
    /// Types of the native arguments.
    pub nargv: StrIdx,
    /// Types of the native arguments, consecutive strings.
    pub xargv: StrIdx,
    /// Types of the translated arguments, consecutive strings.
    pub argidx: u32,
    /// Index of its first entry in the argument map.
    pub offidx: u32,
    /// Index of its first entry in the table of offsets.
    pub nargc: u8,
    /// Number of translated arguments.
    pub xargc: u8,
    /// Number of offsets.
    pub noffs: u16,
    /// First entry in the table of is-enabled offsets.
    pub enoffidx: u32,
    /// Index of its first entry in the table of is-enabled offsets.
    pub nenoffs: u16,
    /// Zero.
    pub pad1: u16,
    /// Zero.
    pub pad2: u32,
}

/// A translator (`dof_xlator_t`).
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct Xlator {
    /// Index of the [`SecType::Xlmembers`].
    pub members: SecIdx,
    /// Index of the string table of the translator.
    pub strtab: SecIdx,
    /// Types of the input.
    pub argv: StrIdx,
    /// Number of inputs.
    pub argc: u32,
    /// Type of the output.
    pub ty: StrIdx,
    /// Attribute word.
    pub attr: u32,
}

/// A member of a translator (`dof_xlmember_t`).
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct XlMember {
    /// Index of the [`SecType::DifoHdr`] that computes it.
    pub difo: SecIdx,
    /// The member's name.
    pub name: StrIdx,
    /// The member's type.
    pub ty: DifType,
}

/// A reference to a translator's member (`dof_xlref_t`).
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct XlRef {
    /// Index of the section of the translator.
    pub xlator: SecIdx,
    /// Index of the member.
    pub member: u32,
    /// Number of the argument.
    pub argn: u32,
}

const _: () = assert!(size_of::<Hdr>() == 64);
const _: () = assert!(size_of::<Sec>() == 32);
const _: () = assert!(size_of::<EcbDesc>() == 24);
const _: () = assert!(size_of::<ProbeDesc>() == 24);
const _: () = assert!(size_of::<ActDesc>() == 32);
const _: () = assert!(size_of::<DifoHdr>() == 8);
const _: () = assert!(size_of::<RelocHdr>() == 12);
const _: () = assert!(size_of::<RelocDesc>() == 24);
const _: () = assert!(size_of::<OptDesc>() == 16);
const _: () = assert!(size_of::<Provider>() == 44);
const _: () = assert!(size_of::<Probe>() == 48);
const _: () = assert!(size_of::<Xlator>() == 24);
const _: () = assert!(size_of::<XlMember>() == 16);
const _: () = assert!(size_of::<XlRef>() == 12);
