// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Why a description names no probes in a process, in DTrace's words.

use super::{Kind, Place};
use crate::handle::plain;
use crate::names::printable;
use std::io;

/// What is wrong with a description of probes in a process.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The provider is called after a number that no process can have.
    #[error("'{0}' does not contain a valid pid")]
    Pid(String),
    /// The process is not there, or not to be looked at.
    #[error("failed to grab process {pid}")]
    Grab {
        /// Its number.
        pid: u32,
        /// Why.
        error: io::Error,
    },
    /// The kernel says that we may not trace the process.
    #[error("failed to grab process {pid}: {why}")]
    Denied {
        /// Its number.
        pid: u32,
        /// The kernel's reason.
        why: String,
    },
    /// Addresses of something else than the program.
    #[error("only the a.out module is valid with the '-' function")]
    AddressModule,
    /// Many addresses at once.
    #[error("only individual addresses may be specified with the '-' function")]
    AddressName,
    /// Neither `entry` nor `return` nor a number.
    #[error("'{0}' is an invalid probe name")]
    Name(String),
    /// The object's file cannot be understood.
    #[error("failed to read module '{module}'")]
    Object {
        /// The object.
        module: String,
        /// Why.
        error: io::Error,
    },
    /// The object has no such function.
    #[error("failed to lookup '{func}' in module '{module}'")]
    Func {
        /// The function.
        func: String,
        /// The object as the description calls it.
        module: String,
        /// One of a similar name.
        near: Option<String>,
    },
    /// The object has no instruction of such a line.
    #[error("failed to find the line in module '{module}': {why}")]
    Line {
        /// The object.
        module: String,
        /// Why.
        why: String,
        /// One that there is.
        near: Option<String>,
    },
    /// The function ends before.
    #[error("offset {offset:#x} outside of function '{func}'")]
    Offset {
        /// From the function's beginning.
        offset: u64,
        /// The function.
        func: String,
    },
    /// An instruction would be broken in two.
    #[error("offset {0:#x} is not aligned to an instruction")]
    Align(u64),
    /// The first place too many.
    #[error("{}: more probes in one description than are possible", failed(.0))]
    TooMany(Place),
    /// A probe that is spelled out cannot be.
    #[error("{}: {why}", failed(.place))]
    Instruction {
        /// Where.
        place: Place,
        /// Why.
        why: String,
    },
    /// The kernel refuses a probe.
    #[error("{}: {why}", failed(.place))]
    Kernel {
        /// Which; the first where it is not about one.
        place: Place,
        /// Why.
        why: String,
    },
}

impl Error {
    /// DTrace's name for it.
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

    /// Whether it says something of one process only: another one may have what is named.
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

    /// What helps to understand it.
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

/// What could not be done at a place.
fn failed(place: &Place) -> String {
    let func = &place.func;
    match place.kind {
        Kind::Offset(offset) => format!("failed to create probes at '{func}+{offset:#x}'"),
        kind => format!("failed to create {kind} probe for '{func}'"),
    }
}
