// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! What can be wrong with BTF.

use super::TypeId;
use std::{io, path::PathBuf};

/// BTF that breaks its format's rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// It ends within the header.
    #[error("BTF is shorter than its header")]
    Short,
    /// It is no BTF.
    #[error("BTF magic is {0:#06x}, not 0xeb9f")]
    Magic(u16),
    /// It was made for machines of the other byte order.
    #[error("BTF has the other byte order")]
    ForeignOrder,
    /// A version that nobody has defined.
    #[error("BTF version {0} is unknown")]
    Version(u8),
    /// The header's length is impossible.
    #[error("BTF header of {0} bytes is too short")]
    Header(usize),
    /// A section reaches beyond the end.
    #[error("BTF {0} section lies outside the data")]
    Section(&'static str),
    /// The string section does not start and end with a zero byte.
    #[error("BTF string section is not bounded by zero bytes")]
    Strings,
    /// A type record is cut off.
    #[error("BTF type {0} is cut off")]
    Record(TypeId),
    /// A type record of a kind of which not even the size is known.
    #[error("BTF type {0} has the unknown kind {1}")]
    Kind(TypeId, u8),
    /// A reference to a type that does not exist.
    #[error("BTF type {0} does not exist")]
    Missing(TypeId),
    /// A type that stands where it cannot.
    #[error("BTF type {0} is not {1}")]
    Expected(TypeId, &'static str),
    /// A name that is not in the string section or is no text.
    #[error("BTF string {0} does not exist")]
    Name(u32),
    /// Types that refer to each other in a ring without a record or pointer between.
    #[error("BTF type {0} refers to itself")]
    Cycle(TypeId),
    /// More types than numbers, or a size beyond all memory.
    #[error("BTF describes something too large")]
    Large,
}

/// Why the kernel's BTF could not be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file could not be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file's content is wrong.
    #[error("{}: {source}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: Malformed,
    },
}
