// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The errors of a handle.

use dtrace_compiler::diag::Diagnostic;
use dtrace_consumer::consume::ConsumeError;
use dtrace_consumer::device::age;
use dtrace_files::text::plain;
use dtrace_uapi::dif::DIF_VERSION;
use std::io;

/// An error of a handle. Its text is what DTrace prints after the name of the attempted operation.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A program is wrong. To show the diagnostic, its source is needed.
    #[error("{}", .0.message)]
    Compile(Box<Diagnostic>),
    /// The D libraries cannot be read.
    #[error("{0}")]
    Libraries(#[from] dtrace_compiler::libraries::LibraryError),
    /// A D library is wrong.
    #[error("{0}")]
    Library(String),
    /// The kernel refused and gave a reason.
    #[error("{reason}")]
    Refused {
        /// The reason, in the kernel's words.
        reason: String,
        /// The error of the call.
        error: io::Error,
    },
    /// The kernel failed and gave no reason.
    #[error("{}", plain(.0))]
    Device(#[from] io::Error),
    /// The module has this other version of DIF.
    #[error("the kernel has another DIF: {}", age(*.0, DIF_VERSION.into()))]
    Version(u32),
    /// A program is destructive, and the option `destructive` is off.
    #[error("Destructive actions not allowed")]
    Destructive,
    /// Tracing made the system unresponsive, and the kernel ended it.
    #[error("Abort due to systemic unresponsiveness")]
    Killed,
    /// There is no anonymous state to claim.
    #[error("No anonymous tracing state")]
    NoAnonymous,
    /// A consumer that claims the anonymous state cannot enable probes of its own.
    #[error("Can't claim anonymous state and enable probes")]
    OwnProbes,
    /// The records of the anonymous state cannot be interpreted.
    #[error("{0}")]
    Anonymous(#[from] crate::anon::AnonError),
    /// Consuming failed.
    #[error("{0}")]
    Consume(#[from] ConsumeError),
}

impl Error {
    /// Whether the reader of our output has closed it, which is not reported as an error.
    pub fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Consume(ConsumeError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_the_system_have_no_number() {
        let busy = io::Error::from_raw_os_error(nix::errno::Errno::EBUSY as i32);
        assert_eq!(Error::Device(busy).to_string(), "Device or resource busy");
    }

    #[test]
    fn another_version_of_dif_is_told() {
        let expected = "the kernel has another DIF: the module is older than this command (version 1, not 2): load the module that came with the command";
        assert_eq!(Error::Version(1).to_string(), expected);
        let expected = "the kernel has another DIF: the module is newer than this command (version 3, not 2): use the command that came with the module";
        assert_eq!(Error::Version(3).to_string(), expected);
    }

    #[test]
    fn only_a_closed_output_is_a_broken_pipe() {
        let pipe = || io::Error::from(io::ErrorKind::BrokenPipe);
        assert!(Error::Consume(ConsumeError::Output(pipe())).is_broken_pipe());
        assert!(!Error::Device(pipe()).is_broken_pipe());
    }
}
