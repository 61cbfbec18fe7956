// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The errors of a handle.

use crate::consume::ConsumeError;
use crate::diag::Diagnostic;
use crate::text::plain;
use dtrace_uapi::dif::DIF_VERSION;
use dtrace_uapi::ioctl::INTERFACE;
use nix::libc::{EINVAL, EOPNOTSUPP};
use std::io;

/// An error of a handle. Its text is what DTrace prints after the name of the attempted operation.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A program is wrong. To show the diagnostic, its source is needed.
    #[error("{}", .0.message)]
    Compile(Box<Diagnostic>),
    /// The D libraries cannot be read.
    #[error("{0}")]
    Libraries(#[from] super::LibraryError),
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

/// Says whether the module or the command is older, by a number that grows with their versions, and
/// what to do about it.
fn age(module: u32, ours: u32) -> String {
    let (age, advice) = match module < ours {
        true => ("older", "load the module that came with the command"),
        false => ("newer", "use the command that came with the module"),
    };
    format!("the module is {age} than this command (version {module}, not {ours}): {advice}")
}

/// The error for a control call that a module of this [interface](dtrace_uapi::ioctl::INTERFACE)
/// does not know, so that it lacks `what`.
pub fn missing(what: &str, module: Option<u32>) -> io::Error {
    let text = match module {
        Some(module) if module != INTERFACE => {
            let age = age(module, INTERFACE);
            format!("the kernel has no {what}: {age}")
        }
        _ => format!("the kernel has no {what}"),
    };
    io::Error::new(io::ErrorKind::Unsupported, text)
}

/// Returns what to append to a refusal by a module that may not know what it refuses. Empty for a
/// module that knows as much as we do.
pub fn older(module: u32, error: &io::Error) -> String {
    let is_unknown = matches!(error.raw_os_error(), Some(EINVAL | EOPNOTSUPP));
    match is_unknown && module < INTERFACE {
        true => format!("; it may not know that: {}", age(module, INTERFACE)),
        false => String::new(),
    }
}

/// Returns the message for a device that cannot be opened.
pub fn open_error(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => {
            "DTrace device not available on system (is the module dtrace.ko loaded?)".to_owned()
        }
        io::ErrorKind::PermissionDenied => "DTrace requires additional privileges".to_owned(),
        _ => plain(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages() {
        let open = |kind: io::ErrorKind| open_error(&kind.into());
        assert!(open(io::ErrorKind::NotFound).starts_with("DTrace device not available on system"));
        assert_eq!(
            open(io::ErrorKind::PermissionDenied),
            "DTrace requires additional privileges"
        );
        let busy = io::Error::from_raw_os_error(nix::errno::Errno::EBUSY as i32);
        assert_eq!(Error::Device(busy).to_string(), "Device or resource busy");
    }

    #[test]
    fn what_is_older_is_told() {
        let expected = "the kernel has another DIF: the module is older than this command (version 1, not 2): load the module that came with the command";
        assert_eq!(Error::Version(1).to_string(), expected);
        let expected = "the kernel has another DIF: the module is newer than this command (version 3, not 2): use the command that came with the module";
        assert_eq!(Error::Version(3).to_string(), expected);
        let text = |module| plain(&missing("magic", module));
        let age = |age| format!("the kernel has no magic: the module is {age}");
        assert!(text(Some(INTERFACE - 1)).starts_with(&age("older than this command")));
        assert!(text(Some(INTERFACE + 1)).starts_with(&age("newer than this command")));
        assert_eq!(text(Some(INTERFACE)), "the kernel has no magic");
        assert_eq!(text(None), "the kernel has no magic");
        let refused = io::Error::from_raw_os_error;
        assert_eq!(older(INTERFACE, &refused(EINVAL)), "");
        assert_eq!(older(INTERFACE - 1, &refused(nix::libc::ENOSPC)), "");
        let text = older(INTERFACE - 1, &refused(EINVAL));
        assert!(
            text.starts_with("; it may not know that: the module is older"),
            "{text}"
        );
    }

    #[test]
    fn only_a_closed_output_is_a_broken_pipe() {
        let pipe = || io::Error::from(io::ErrorKind::BrokenPipe);
        assert!(Error::Consume(ConsumeError::Output(pipe())).is_broken_pipe());
        assert!(!Error::Device(pipe()).is_broken_pipe());
    }
}
