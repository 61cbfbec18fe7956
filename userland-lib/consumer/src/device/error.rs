// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Errors of the device: what to say if it cannot be opened, or if the module lacks a call.

use dtrace_files::text::plain;
use dtrace_uapi::ioctl::INTERFACE;
use nix::libc::{EINVAL, EOPNOTSUPP};
use std::io;

/// Says whether the module or the command is older, by a number that grows with their versions, and
/// what to do about it.
pub fn age(module: u32, ours: u32) -> String {
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
    fn a_device_that_cannot_be_opened() {
        let open = |kind: io::ErrorKind| open_error(&kind.into());
        assert!(open(io::ErrorKind::NotFound).starts_with("DTrace device not available on system"));
        assert_eq!(
            open(io::ErrorKind::PermissionDenied),
            "DTrace requires additional privileges"
        );
    }

    #[test]
    fn what_is_older_is_told() {
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
}
