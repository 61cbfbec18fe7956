// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Where `strtok()` goes on.
//!
//! A string belongs to the firing in which it was begun: all clauses of the probe go on with it,
//! and those of the next firing begin without one. It is a copy, because scratch memory does not
//! last from clause to clause. A firing is identified by its probe and its number on the CPU.
//! `ERROR` fires in the middle of another probe's firing, whose further clauses still have their
//! string: so there is room for two.

use crate::buf::copy;
use crate::error::NoMem;
use crate::mem::alloc::Bytes;
use dtrace_uapi::types::ProbeId;

/// Identifies a firing among those on its CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Firing {
    /// The probe; 0 means none.
    pub probe: ProbeId,
    /// The number of the firing on the CPU.
    pub number: u64,
}

/// A string that `strtok()` is taking apart.
#[derive(Debug)]
pub struct Begun {
    text: Bytes,
    len: usize,
    firing: Firing,
    /// End of the last token.
    pub at: usize,
}

impl Begun {
    fn new(strsize: usize) -> Result<Self, NoMem> {
        Ok(Self {
            text: Bytes::new(strsize)?,
            len: 0,
            firing: Firing::default(),
            at: 0,
        })
    }

    /// Returns the whole string.
    pub fn text(&self) -> &[u8] {
        self.text.get(..self.len).unwrap_or(&[])
    }
}

/// The strings of the firings on a CPU.
#[derive(Debug)]
pub struct Tokens {
    /// The string that was begun last comes first.
    begun: [Begun; 2],
}

impl Tokens {
    /// Makes room for strings of `strsize` bytes.
    pub fn new(strsize: usize) -> Result<Self, NoMem> {
        Ok(Self {
            begun: [Begun::new(strsize)?, Begun::new(strsize)?],
        })
    }

    /// Begins to take `text` apart in `firing`. It replaces the last string of the same probe, or
    /// else the older one. So the string of a firing in which `ERROR` fires is kept, because it is
    /// the newer one.
    pub fn begin(&mut self, firing: Firing, text: &[u8]) {
        let [first, second] = &mut self.begun;
        if first.firing.probe != firing.probe {
            core::mem::swap(first, second);
        }
        first.len = copy(&mut first.text, text);
        first.at = 0;
        first.firing = firing;
    }

    /// Returns the string of `firing`, if it has begun one.
    pub fn of(&self, firing: Firing) -> Option<&Begun> {
        self.begun.iter().find(|begun| begun.firing == firing)
    }

    /// The same, for writing.
    pub fn of_mut(&mut self, firing: Firing) -> Option<&mut Begun> {
        self.begun.iter_mut().find(|begun| begun.firing == firing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_in_between_leaves_the_string_alone() {
        let firing = |probe, number| Firing { probe, number };
        let (one, other, error) = (firing(7, 1), firing(8, 5), 3);
        let mut tokens = Tokens::new(8).unwrap();
        assert!(tokens.of(one).is_none());
        for outer in [one, other, one, other] {
            tokens.begin(outer, b"outer");
            for time in [6, 7] {
                tokens.begin(firing(error, time), b"error");
                assert_eq!(tokens.of(firing(error, time)).unwrap().text(), b"error");
                assert_eq!(tokens.of(outer).unwrap().text(), b"outer");
                tokens.begin(outer, b"outer");
            }
        }
        assert!(tokens.of(firing(8, 6)).is_none());
    }
}
