// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Errors of BTF.

use super::TypeId;
use std::{io, path::PathBuf};

/// The ways in which BTF can break the rules of its format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The data end within the header.
    #[error("BTF is shorter than its header")]
    Short,
    /// The data are not BTF.
    #[error("BTF magic is {0:#06x}, not 0xeb9f")]
    Magic(u16),
    /// The data were made for machines of the other byte order.
    #[error("BTF has the other byte order")]
    ForeignOrder,
    /// An undefined version.
    #[error("BTF version {0} is unknown")]
    Version(u8),
    /// The header's length is too small.
    #[error("BTF header of {0} bytes is too short")]
    Header(usize),
    /// A section reaches beyond the end of the data.
    #[error("BTF {0} section lies outside the data")]
    Section(&'static str),
    /// The string section does not end with a zero byte, or, without a base, does not start with
    /// one.
    #[error("BTF string section is not bounded by zero bytes")]
    Strings,
    /// A type record is cut off.
    #[error("BTF type {0} is cut off")]
    Record(TypeId),
    /// A type record of an unknown kind whose size is not described either.
    #[error("BTF type {0} has the unknown kind {1}")]
    Kind(TypeId, u8),
    /// A reference to a type that does not exist.
    #[error("BTF type {0} does not exist")]
    Missing(TypeId),
    /// A type of another kind than its position requires.
    #[error("BTF type {0} is not {1}")]
    Expected(TypeId, &'static str),
    /// A name that is not in the string section, is too long or is not UTF-8.
    #[error("BTF string {0} does not exist")]
    Name(u32),
    /// A chain of references that is a ring or longer than the limits of this reader.
    #[error("BTF type {0} refers to itself")]
    Cycle(TypeId),
    /// More types or strings than 32-bit numbers can count, or a size beyond 64 bits.
    #[error("BTF describes something too large")]
    Large,
}

/// Why the kernel's BTF cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file could not be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The content of the file is malformed.
    #[error("{}: {source}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The error in its content.
        source: Malformed,
    },
}
