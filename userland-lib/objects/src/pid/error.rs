// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Why a description of probes in a process cannot be resolved, in DTrace's words.

use super::{Kind, Place};
use dtrace_files::names::printable;
use dtrace_files::text::plain;
use std::io;

/// Error in a description of probes in a process.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The number in the provider's name cannot be a process id.
    #[error("'{0}' does not contain a valid pid")]
    Pid(String),
    /// The process does not exist or cannot be inspected.
    #[error("failed to grab process {pid}")]
    Grab {
        /// Process id.
        pid: u32,
        /// The reason.
        error: io::Error,
    },
    /// The kernel does not permit us to trace the process.
    #[error("failed to grab process {pid}: {why}")]
    Denied {
        /// Process id.
        pid: u32,
        /// The kernel's reason.
        why: String,
    },
    /// Addresses are possible in the program only.
    #[error("only the a.out module is valid with the '-' function")]
    AddressModule,
    /// A pattern in place of a single address.
    #[error("only individual addresses may be specified with the '-' function")]
    AddressName,
    /// The name is neither `entry` nor `return` nor a number.
    #[error("'{0}' is an invalid probe name")]
    Name(String),
    /// The object cannot be read.
    #[error("failed to read module '{module}'")]
    Object {
        /// Module name of the object.
        module: String,
        /// The reason.
        error: io::Error,
    },
    /// The object has no such function.
    #[error("failed to lookup '{func}' in module '{module}'")]
    Func {
        /// The function.
        func: String,
        /// The module as the description names it.
        module: String,
        /// A function with a similar name.
        near: Option<String>,
    },
    /// The object has no instruction of this source line.
    #[error("failed to find the line in module '{module}': {why}")]
    Line {
        /// Module name of the object.
        module: String,
        /// The reason.
        why: String,
        /// A source file with a similar name.
        near: Option<String>,
    },
    /// The offset is not inside the function, or the address not inside the code.
    #[error("offset {offset:#x} outside of function '{func}'")]
    Offset {
        /// Offset from the function's beginning, or an address.
        offset: u64,
        /// The function.
        func: String,
    },
    /// The offset is not the beginning of an instruction.
    #[error("offset {0:#x} is not aligned to an instruction")]
    Align(u64),
    /// The description has too many places; this is the first beyond the limit.
    #[error("{}: more probes in one description than are possible", failed(.0))]
    TooMany(Place),
    /// A probe that is spelled out cannot be made.
    #[error("{}: {why}", failed(.place))]
    Instruction {
        /// The place.
        place: Place,
        /// The reason.
        why: String,
    },
    /// The kernel refuses a probe.
    #[error("{}: {why}", failed(.place))]
    Kernel {
        /// The place; the first one if the reason does not concern a particular place.
        place: Place,
        /// The reason.
        why: String,
    },
}

impl Error {
    /// Returns DTrace's tag for the error.
    pub fn tag(&self) -> &'static str {
        match self {
            Self::Pid(_) => "D_PROC_BADPID",
            Self::Grab { .. } | Self::Denied { .. } => "D_PROC_GRAB",
            Self::AddressModule | Self::Object { .. } => "D_PROC_LIB",
            Self::AddressName | Self::Name(_) => "D_PROC_NAME",
            Self::Func { .. } => "D_PROC_FUNC",
            Self::Line { .. } => "D_PROC_LINE",
            Self::Offset { .. } => "D_PROC_OFF",
            Self::Align(_) => "D_PROC_ALIGN",
            Self::TooMany(_) | Self::Instruction { .. } | Self::Kernel { .. } => {
                "D_PROC_CREATEFAIL"
            }
        }
    }

    /// Whether the error concerns one process only, so that the description may be valid for
    /// another.
    pub fn is_of_one(&self) -> bool {
        matches!(
            self,
            Self::Grab { .. }
                | Self::Denied { .. }
                | Self::Object { .. }
                | Self::Func { .. }
                | Self::Line { .. }
                | Self::Offset { .. }
        )
    }

    /// Returns a note that explains the error.
    pub fn note(&self) -> Option<String> {
        match self {
            Self::Pid(provider) if provider == "pid0" => {
                Some("$target is 0 where neither -c nor -p names a process".to_owned())
            }
            Self::Grab { error, .. } | Self::Object { error, .. } => Some(plain(error)),
            Self::Func { near, .. } | Self::Line { near, .. } => {
                near.as_ref().map(|name| format!("did you mean `{name}`?"))
            }
            Self::Instruction { place, .. } | Self::Kernel { place, .. } => {
                let Place { object, offset, .. } = place;
                let path = printable(&object.path);
                Some(format!("it would be at {offset:#x} in {path}"))
            }
            _ => None,
        }
    }
}

/// Describes the probe that could not be made at a place.
fn failed(place: &Place) -> String {
    let func = &place.func;
    match place.kind {
        Kind::Offset(offset) => format!("failed to create probes at '{func}+{offset:#x}'"),
        kind => format!("failed to create {kind} probe for '{func}'"),
    }
}
