// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Why a control call was refused: an errno, and a line of text that the consumer can read and
//! print.

use core::fmt::{self, Write};
use dtrace_engine::Reason;
use dtrace_uapi::ioctl;
use dtrace_uapi::limits::REASONLEN;
use kernel::alloc::AllocError;
use kernel::prelude::*;

/// A line of text of limited length.
pub struct Text {
    bytes: [u8; REASONLEN],
    len: usize,
}

impl Text {
    /// Makes an empty text.
    pub const fn new() -> Self {
        Self {
            bytes: [0; REASONLEN],
            len: 0,
        }
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        let bytes = self.bytes.get(..self.len).unwrap_or_default();
        // A text that did not fit may have been cut inside a character.
        core::str::from_utf8(bytes).unwrap_or("?")
    }

    /// Returns the text as the consumer gets it.
    pub fn to_reason(&self) -> ioctl::Reason {
        ioctl::Reason { text: self.bytes }
    }
}

impl Write for Text {
    /// Appends as much as there is room for. The last byte stays NUL.
    fn write_str(&mut self, s: &str) -> fmt::Result {
        let room = self
            .bytes
            .get_mut(self.len..REASONLEN - 1)
            .unwrap_or_default();
        let n = s.len().min(room.len());
        for (to, from) in room.iter_mut().zip(s.bytes()) {
            *to = from;
        }
        self.len = self.len.saturating_add(n);
        if n < s.len() {
            return Err(fmt::Error);
        }
        Ok(())
    }
}

/// Result of a control call.
pub type Answer = Result<isize, Refusal>;

/// The refusal of a control call.
pub struct Refusal {
    /// The error that the call returns.
    pub errno: Error,
    /// The text for the consumer; `None` if the errno says everything, or if there was no memory.
    text: Option<KBox<Text>>,
}

impl Refusal {
    /// Makes a refusal with a text.
    pub fn new(errno: Error, text: &str) -> Self {
        Self::with(errno, format_args!("{text}"))
    }

    /// Makes a refusal with a formatted text.
    pub fn with(errno: Error, text: fmt::Arguments<'_>) -> Self {
        let mut line = Text::new();
        // What does not fit is cut off.
        let _ = line.write_fmt(text);
        Self {
            errno,
            text: KBox::new(line, GFP_KERNEL).ok(),
        }
    }

    /// Returns the text, to be kept until the consumer reads it.
    pub fn into_text(self) -> Text {
        self.text.map_or(Text::new(), KBox::into_inner)
    }
}

/// Makes a refusal without a text.
pub fn refuse(errno: Error) -> Refusal {
    Refusal { errno, text: None }
}

impl From<Error> for Refusal {
    fn from(errno: Error) -> Self {
        refuse(errno)
    }
}

impl From<AllocError> for Refusal {
    fn from(_: AllocError) -> Self {
        refuse(ENOMEM)
    }
}

impl From<Reason> for Refusal {
    fn from(reason: Reason) -> Self {
        Self::with(errno(reason), format_args!("{reason}"))
    }
}

/// Returns the kernel's error for the engine's reason, for callers that cannot pass on the text.
pub fn errno(reason: Reason) -> Error {
    Error::from_errno(reason.errno.0.wrapping_neg())
}
