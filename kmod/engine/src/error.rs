// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Errors of control calls, and faults in probe context.
//!
//! There are two kinds of failure, and they never mix. A [`Reason`] answers a control call: an
//! errno and one line of text that the consumer can print. It is small and owns nothing, so a
//! refusal costs no memory. A [`Trap`] ends a DIF program when a probe fires: the fault and the
//! address (or value) that caused it.

use core::fmt;
use dtrace_uapi::fault::Fault;

/// A Linux error number, positive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub i32);

impl Errno {
    /// Not permitted.
    pub const EPERM: Self = Self(1);
    /// No such entry.
    pub const ENOENT: Self = Self(2);
    /// No such probe, provider or process.
    pub const ESRCH: Self = Self(3);
    /// The caller is killed.
    pub const EINTR: Self = Self(4);
    /// Too big.
    pub const E2BIG: Self = Self(7);
    /// No memory.
    pub const ENOMEM: Self = Self(12);
    /// No permission.
    pub const EACCES: Self = Self(13);
    /// Bad address.
    pub const EFAULT: Self = Self(14);
    /// Busy.
    pub const EBUSY: Self = Self(16);
    /// Invalid.
    pub const EINVAL: Self = Self(22);
    /// Under way already.
    pub const EALREADY: Self = Self(114);
    /// No space.
    pub const ENOSPC: Self = Self(28);
}

/// The location that a [`Reason`] refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// No particular location.
    None,
    /// A section of a DOF image, by its index.
    Section(u32),
    /// An instruction of a DIF object, by its index.
    Pc(u32),
    /// An action of a clause, by its index.
    Action(u32),
}

/// Why a control call failed: an errno and a line of text, which `Display` writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reason {
    /// The error number.
    pub errno: Errno,
    /// What is wrong.
    pub text: &'static str,
    /// The variable, subroutine, option or action that is meant; empty if there is none.
    pub name: &'static str,
    /// The location of the error.
    pub place: Place,
}

impl Reason {
    /// Makes a reason without a location.
    pub const fn new(errno: Errno, text: &'static str) -> Self {
        Self {
            errno,
            text,
            name: "",
            place: Place::None,
        }
    }

    /// Makes an `EINVAL` reason.
    pub const fn invalid(text: &'static str) -> Self {
        Self::new(Errno::EINVAL, text)
    }

    /// Makes an `EINVAL` reason for a section of a DOF image.
    pub const fn section(text: &'static str, index: u32) -> Self {
        Self::invalid(text).at(Place::Section(index))
    }

    /// Makes an `EINVAL` reason for an instruction.
    pub const fn pc(text: &'static str, pc: u32) -> Self {
        Self::invalid(text).at(Place::Pc(pc))
    }

    /// Returns the same reason with the location `place`.
    pub const fn at(mut self, place: Place) -> Self {
        self.place = place;
        self
    }

    /// Returns the same reason with the name `name`.
    pub const fn about(mut self, name: &'static str) -> Self {
        self.name = name;
        self
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Place::None => {}
            Place::Section(index) => write!(f, "DOF section {index}: ")?,
            Place::Pc(pc) => write!(f, "DIF instruction {pc}: ")?,
            Place::Action(index) => write!(f, "action {index}: ")?,
        }
        if !self.name.is_empty() {
            write!(f, "{}: ", self.name)?;
        }
        f.write_str(self.text)
    }
}

/// An allocation failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoMem;

impl From<NoMem> for Reason {
    fn from(_: NoMem) -> Self {
        Self::new(Errno::ENOMEM, "out of memory")
    }
}

/// What ended a DIF program: the fault and the address or value that caused it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trap {
    /// The kind of fault.
    pub fault: Fault,
    /// The address, or 0.
    pub value: u64,
}

impl Trap {
    /// Makes a trap with `value`.
    pub const fn new(fault: Fault, value: u64) -> Self {
        Self { fault, value }
    }

    /// Makes a trap for an access to `addr`, which cannot be accessed.
    pub const fn bad_addr(addr: u64) -> Self {
        Self::new(Fault::BadAddr, addr)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_name_place_and_thing() {
        let r = Reason::pc("needs a destructive consumer", 3).about("copyout");
        assert_eq!(
            r.to_string(),
            "DIF instruction 3: copyout: needs a destructive consumer"
        );
        assert_eq!(Reason::from(NoMem).errno, Errno::ENOMEM);
    }
}
