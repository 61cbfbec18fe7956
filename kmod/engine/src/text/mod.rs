// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! What D's string subroutines compute, apart from where their strings live.
//!
//! Every function takes bytes without their NUL and either names a part of its input or writes into an [`Out`], which
//! cuts off what does not fit, as D does with strings longer than `strsize`. Nothing here allocates, panics or takes
//! more than one pass per byte of input, unless its documentation says so.

pub mod json;
pub mod net;
pub mod number;
pub mod path;
pub mod search;
pub mod upwards;

/// Text that grows in memory of fixed size; what does not fit is cut off.
#[derive(Debug)]
pub struct Out<'a> {
    buf: &'a mut [u8],
    len: usize,
}

impl<'a> Out<'a> {
    /// An empty text in `buf`.
    pub fn new(buf: &'a mut [u8]) -> Self {
        Self { buf, len: 0 }
    }

    /// Appends a byte, if there is room.
    pub fn push(&mut self, byte: u8) {
        if let Some(slot) = self.buf.get_mut(self.len) {
            *slot = byte;
            self.len = self.len.saturating_add(1);
        }
    }

    /// Appends as many of `bytes` as there is room for.
    pub fn extend(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.push(byte);
        }
    }

    /// Shortens the text to `len` bytes; no effect where it is shorter already.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// The text so far.
    pub fn as_slice(&self) -> &[u8] {
        self.buf.get(..self.len).unwrap_or(&[])
    }

    /// Length of the text, bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no text.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

#[cfg(test)]
pub(crate) fn written(f: impl FnOnce(&mut Out<'_>)) -> std::string::String {
    let mut buf = [0; 256];
    let mut out = Out::new(&mut buf);
    f(&mut out);
    std::string::String::from_utf8(out.as_slice().to_vec()).expect("tests write UTF-8")
}
