// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The interface to the running processes, for probes in them.

use crate::pid::{Code, Object, Place};
use crate::usdt::{Note, Point, Registration};
use dtrace_files::ctf::Ctf;
use dtrace_files::dwarf::{self, DebugInfo};
use std::io;
use std::rc::Rc;

/// Why the kernel did not create probes in a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmade {
    /// The index of the place that caused it, if one did.
    pub at: Option<usize>,
    /// The reason, as text.
    pub why: String,
    /// Whether we are not permitted to trace the process.
    pub is_denied: bool,
    /// Whether a limit that the user has set for this tracing has been reached.
    pub is_limit: bool,
}

impl Unmade {
    /// Returns the reason for a kernel that does not support probes in processes.
    pub fn no_probes() -> Self {
        Self {
            at: None,
            why: "the kernel has no probes in processes".to_owned(),
            is_denied: false,
            is_limit: false,
        }
    }
}

/// The running processes, for descriptions of probes in them.
pub trait ProcessSource {
    /// Returns the objects from which the process `pid` executes code, its program first. The error
    /// says why it cannot be examined.
    fn objects(&self, pid: u32) -> io::Result<Vec<Object>>;

    /// Returns the code that the process executes from no file and that has this name, which is not
    /// the name of any file.
    fn bare(&self, _pid: u32, _name: &str) -> Option<Object> {
        None
    }

    /// Returns functions and text of an object.
    fn code(&self, object: &Object) -> io::Result<Code>;

    /// Returns the probes that an object defines itself (USDT).
    fn notes(&self, _object: &Object) -> io::Result<Rc<[Note]>> {
        Ok(Rc::default())
    }

    /// Returns the probe definitions that a running process has registered.
    fn registered(&self, _pid: u32) -> io::Result<Rc<[Registration]>> {
        Ok(Rc::default())
    }

    /// Makes the kernel create such probes in the process. The error has the kernel's reason.
    fn make_own(&self, _pid: u32, _points: &[Point]) -> Result<(), Unmade> {
        Err(Unmade::no_probes())
    }

    /// Returns the debugging information of an object.
    fn debug(&self, _object: &Object) -> Result<Rc<DebugInfo>, dwarf::Error> {
        Err(dwarf::Error::None)
    }

    /// Returns the CTF of an object, from its own file or, if `apart`, from a separate file.
    fn ctf(&self, _object: &Object, _apart: bool) -> Option<Rc<Ctf>> {
        None
    }

    /// Makes the kernel create probes in the process. The error has the kernel's reason, and the
    /// place that caused it, if one did.
    fn make(&self, _pid: u32, _places: &[Place]) -> Result<(), Unmade> {
        Err(Unmade::no_probes())
    }
}

/// An environment without probes, types, symbols and processes, in which every description counts
/// as matching: for programs that are only compiled, and for unit tests.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nowhere;

impl ProcessSource for Nowhere {
    fn objects(&self, _pid: u32) -> io::Result<Vec<Object>> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn code(&self, _object: &Object) -> io::Result<Code> {
        Err(io::ErrorKind::NotFound.into())
    }
}
