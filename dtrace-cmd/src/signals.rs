// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! SIGINT and SIGTERM as an event to wait for.
//!
//! The handlers write a byte to a socket. Thus no signal can arrive unnoticed between the test of a
//! flag and the sleep that follows. The second signal ends the command at once, for a user who does
//! not want to wait. A signal that was ignored when the command started (because a shell started it
//! in the background) stays ignored.

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::{flag, low_level};
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::AtomicBool;
use std::sync::Arc;

/// Caught signals.
pub struct Interrupts {
    socket: UnixStream,
}

impl Interrupts {
    /// Starts to catch the signals.
    pub fn catch() -> io::Result<Self> {
        let (socket, writer) = UnixStream::pair()?;
        socket.set_nonblocking(true)?;
        let ignored = ignored(&std::fs::read_to_string("/proc/self/status").unwrap_or_default());
        let once = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            if ignored >> (signal - 1) & 1 == 1 {
                continue;
            }
            // The order matters: the second signal ends the command because the first one has set
            // the flag.
            flag::register_conditional_default(signal, Arc::clone(&once))?;
            flag::register(signal, Arc::clone(&once))?;
            low_level::pipe::register(signal, writer.try_clone()?)?;
        }
        Ok(Self { socket })
    }

    /// Whether a signal has arrived since the last call.
    pub fn arrived(&self) -> bool {
        matches!((&self.socket).read(&mut [0; 16]), Ok(1..))
    }

    /// A descriptor that becomes readable when a signal arrives.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The mask of ignored signals in the text of `/proc/self/status`.
fn ignored(status: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mask_is_found() {
        assert_eq!(
            ignored("Name:\tdtrace\nSigIgn:\t0000000000001002\nSigCgt:\t0\n"),
            0x1002
        );
        assert_eq!(ignored(""), 0);
    }

    #[test]
    fn a_signal_makes_the_descriptor_readable_once() {
        let interrupts = Interrupts::catch().unwrap();
        assert!(!interrupts.arrived());
        low_level::raise(SIGTERM).unwrap();
        assert!(interrupts.arrived());
        assert!(!interrupts.arrived());
    }
}
