// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The computations of D's string subroutines, independent of where their strings are stored.
//!
//! Every function takes bytes without their NUL and either returns a part of its input or writes
//! into an [`Out`], which truncates what does not fit, as D does with strings longer than
//! `strsize`. No function here allocates or panics. Unless its documentation says otherwise, a
//! function makes a single pass over its input.

pub mod json;
pub mod net;
pub mod number;
pub mod path;
pub mod search;
pub mod upwards;

/// Text that grows in memory of fixed size and is truncated to it.
#[derive(Debug)]
pub struct Out<'a> {
    buf: &'a mut [u8],
    len: usize,
}

impl<'a> Out<'a> {
    /// Makes an empty text in `buf`.
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

    /// Shortens the text to `len` bytes. Has no effect if it is shorter already.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Returns the text so far.
    pub fn as_slice(&self) -> &[u8] {
        self.buf.get(..self.len).unwrap_or(&[])
    }

    /// Returns the length of the text in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the text is empty.
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
