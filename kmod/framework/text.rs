// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Why a control call was refused: an errno, and a line that the consumer can fetch and print.

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
    /// No text.
    pub const fn new() -> Self {
        Self {
            bytes: [0; REASONLEN],
            len: 0,
        }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        let bytes = self.bytes.get(..self.len).unwrap_or_default();
        // What did not fit may have been cut within a letter.
        core::str::from_utf8(bytes).unwrap_or("?")
    }

    /// As the consumer gets it.
    pub fn to_reason(&self) -> ioctl::Reason {
        ioctl::Reason { text: self.bytes }
    }
}

impl Write for Text {
    /// Appends as much as there is room for, with the last byte left to the NUL.
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

/// A refused control call.
pub struct Refusal {
    /// What the call returns.
    pub errno: Error,
    /// What the consumer may print; none where the errno says it all, or where memory is short.
    text: Option<KBox<Text>>,
}

impl Refusal {
    /// A refusal with a text.
    pub fn new(errno: Error, text: &str) -> Self {
        Self::with(errno, format_args!("{text}"))
    }

    /// The same, with a text that is put together.
    pub fn with(errno: Error, text: fmt::Arguments<'_>) -> Self {
        let mut line = Text::new();
        // What does not fit is left out.
        let _ = line.write_fmt(text);
        Self {
            errno,
            text: KBox::new(line, GFP_KERNEL).ok(),
        }
    }

    /// The text, to be kept until the consumer asks for it.
    pub fn into_text(self) -> Text {
        self.text.map_or(Text::new(), KBox::into_inner)
    }
}

/// A refusal that needs no words.
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

/// What the kernel calls the engine's reason, where nobody can be told more.
pub fn errno(reason: Reason) -> Error {
    Error::from_errno(reason.errno.0.wrapping_neg())
}
