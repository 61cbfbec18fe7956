// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! The names of frames, each kept once.
//!
//! This is a lock-free hash table of fixed size. The CPU that first stores a hash in a slot owns
//! the slot: it reserves room for the names, writes them, and then publishes their location.
//! Nothing is ever removed. A CPU that finds its hash in a slot before the location is published
//! takes another slot. So equal names may have two numbers, but a number never stands for two
//! names.
//!
//! The number of a slot is the number of its names. If there is no slot or no room left, frames
//! have no names, and say so ([`NAMELESS`]).
// Offsets are within the text, and are checked when room is reserved.
#![allow(clippy::arithmetic_side_effects)]

use crate::error::NoMem;
use crate::hash::mix_bytes;
use crate::mem::atomic::{AtomicU64, Ordering};
use crate::mem::shared::Shared;
use dtrace_uapi::interp::{NameHead, NAMELESS};
use zerocopy::{FromBytes, IntoBytes};

/// Number of names that a consumer has room for.
pub const SLOTS: usize = 8192;
/// Bytes of all these names.
pub const TEXT: usize = 2 << 20;

/// Number of slots that are tried for names.
const TRIES: usize = 32;
/// Bytes of a slot: the hash, and the location of the names plus 1.
const SLOT: usize = 16;
/// The location of names that there was no room for.
const NOWHERE: u64 = u64::MAX;

/// A table of names.
#[derive(Debug)]
pub struct Names {
    /// Two words for each name; see [`SLOT`].
    slots: Shared,
    /// The names, each as a [`NameHead`] and text, rounded up to words.
    text: Shared,
    /// Bytes of `text` that are reserved; may exceed its size.
    used: AtomicU64,
    /// Start value of the hashes.
    seed: u64,
}

/// Why names cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unread {
    /// There are no names with this number.
    None,
    /// They are being written.
    Early,
    /// They are longer than the destination.
    Long,
}

/// The state of a slot.
enum Slot {
    /// It holds the names that are looked for.
    Ours,
    /// It holds other names, or names that are being written.
    Anothers,
    /// The caller has just taken it, and must write the names.
    Unwritten,
    /// There is no room for these names.
    Full,
}

impl Names {
    /// Returns the memory that such a table takes, in bytes.
    pub const fn memory(slots: usize, text: usize) -> usize {
        slots.saturating_mul(SLOT).saturating_add(text)
    }

    /// Makes a table of `slots` names, a power of two, and `text` bytes for them. Hashes start from
    /// `seed`.
    pub fn new(slots: usize, text: usize, seed: u64) -> Result<Self, NoMem> {
        Ok(Self {
            slots: Shared::new(slots.checked_mul(SLOT).ok_or(NoMem)?)?,
            text: Shared::new(text)?,
            used: AtomicU64::new(0),
            seed,
        })
    }

    /// Returns the number of these names, which are added if they are new; [`NAMELESS`] if there is
    /// no room.
    pub fn number(&self, head: &NameHead, text: &[u8]) -> u32 {
        let hash = self.hash(head, text);
        let count = self.slots.size() / SLOT;
        for n in 0..TRIES.min(count) {
            let slot = (hash as usize).wrapping_add(n) & (count - 1);
            match self.slot(slot, hash, head, text) {
                Slot::Ours => return slot as u32,
                Slot::Anothers => {}
                Slot::Unwritten => return self.write(slot, head, text),
                Slot::Full => break,
            }
        }
        NAMELESS
    }

    fn hash(&self, head: &NameHead, text: &[u8]) -> u64 {
        let hash = mix_bytes(self.seed, head.as_bytes());
        // A hash of 0 would mark a free slot, so the lowest bit is set.
        mix_bytes(hash, text) | 1
    }

    fn words(&self, slot: usize) -> Option<(&AtomicU64, &AtomicU64)> {
        let words = self.slots.words(slot * 2, 2)?;
        Some((words.first()?, words.last()?))
    }

    fn slot(&self, slot: usize, hash: u64, head: &NameHead, text: &[u8]) -> Slot {
        let Some((theirs, place)) = self.words(slot) else {
            return Slot::Full;
        };
        let taken = match theirs.load(Ordering::Relaxed) {
            0 => theirs.compare_exchange(0, hash, Ordering::Relaxed, Ordering::Relaxed),
            found => Err(found),
        };
        match taken {
            Ok(_) => Slot::Unwritten,
            Err(found) if found != hash => Slot::Anothers,
            Err(_) => match place.load(Ordering::Acquire) {
                0 => Slot::Anothers,
                NOWHERE => Slot::Full,
                at if self.are(at - 1, head, text) => Slot::Ours,
                _ => Slot::Anothers,
            },
        }
    }

    /// Whether the names at `at` are equal to these.
    fn are(&self, at: u64, head: &NameHead, text: &[u8]) -> bool {
        let at = at as usize;
        let is = |at: usize, bytes: &[u8]| {
            bytes.chunks(8).enumerate().all(|(n, part)| {
                let mut word = [0; 8];
                let found = word.get_mut(..part.len()).unwrap_or(&mut []);
                self.text.read(at + n * 8, found) && *found == *part
            })
        };
        is(at, head.as_bytes()) && is(at + size_of::<NameHead>(), text)
    }

    /// Writes the names of a slot that the caller has taken, and publishes their location.
    fn write(&self, slot: usize, head: &NameHead, text: &[u8]) -> u32 {
        let size = (size_of::<NameHead>() + text.len()).next_multiple_of(8) as u64;
        let room = self.text.size() as u64;
        let at = match self.used.load(Ordering::Relaxed) {
            // Stop adding once the text is full, so that the counter cannot wrap around after many
            // years.
            used if used > room => used,
            _ => self.used.fetch_add(size, Ordering::Relaxed),
        };
        let Some((_, place)) = self.words(slot) else {
            return NAMELESS;
        };
        let is_written = at + size <= room
            && self.text.write(at as usize, head.as_bytes())
            && self.text.write(at as usize + size_of::<NameHead>(), text);
        match is_written {
            true => {
                place.store(at + 1, Ordering::Release);
                slot as u32
            }
            false => {
                place.store(NOWHERE, Ordering::Release);
                NAMELESS
            }
        }
    }

    /// Copies the names with a number to the beginning of `to`. Returns their size in bytes.
    pub fn read(&self, number: u32, to: &mut [u8]) -> Result<usize, Unread> {
        let (hash, place) = self.words(number as usize).ok_or(Unread::None)?;
        let at = match place.load(Ordering::Acquire) {
            0 if hash.load(Ordering::Relaxed) != 0 => return Err(Unread::Early),
            0 | NOWHERE => return Err(Unread::None),
            at => (at - 1) as usize,
        };
        let mut head = [0; size_of::<NameHead>()];
        if !self.text.read(at, &mut head) {
            return Err(Unread::None);
        }
        let sizes = NameHead::read_from_bytes(&head).map_or([0; 4], |head| head.sizes);
        let size = head.len() + sizes.iter().map(|size| usize::from(*size)).sum::<usize>();
        let to = to.get_mut(..size).ok_or(Unread::Long)?;
        match self.text.read(at, to) {
            true => Ok(size),
            false => Err(Unread::None),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn head(text: &[u8]) -> NameHead {
        NameHead {
            walker: 1,
            sizes: [text.len() as u16, 0, 0, 0],
            ..NameHead::default()
        }
    }

    #[test]
    fn equal_names_have_one_number() {
        let names = Names::new(64, 4096, 5).unwrap();
        let texts: [&[u8]; 5] = [b"", b"main", b"main.inner", b"12345678", b"123456789"];
        let numbers = texts.map(|text| names.number(&head(text), text));
        assert_eq!(texts.map(|text| names.number(&head(text), text)), numbers);
        let mut to = [0; 100];
        for (number, text) in numbers.into_iter().zip(texts) {
            let size = names.read(number, &mut to).unwrap();
            assert_eq!(to[..size], [head(text).as_bytes(), text].concat());
        }
        assert_eq!(names.read(numbers[3], &mut to[..20]), Err(Unread::Long));
        assert_eq!(names.read(64, &mut to), Err(Unread::None));
        assert_eq!(names.read(NAMELESS, &mut to), Err(Unread::None));
        // The same bytes, divided differently.
        let other = NameHead {
            sizes: [1, 3, 0, 0],
            ..head(b"main")
        };
        assert_ne!(names.number(&other, b"main"), numbers[1]);
    }

    #[test]
    fn what_has_no_room_has_no_names() {
        let names = Names::new(64, 64, 5).unwrap();
        let first = names.number(&head(b"first"), b"first");
        assert_ne!(first, NAMELESS);
        for _ in 0..2 {
            let long = [b'x'; 40];
            assert_eq!(names.number(&head(&long), &long), NAMELESS);
        }
        assert_eq!(names.number(&head(b"first"), b"first"), first);
        // Slots can run out too.
        let names = Names::new(4, 4096, 5).unwrap();
        let numbers: std::vec::Vec<u32> =
            (0..5u8).map(|n| names.number(&head(&[n]), &[n])).collect();
        let nameless = numbers.iter().filter(|number| **number == NAMELESS);
        assert_eq!(nameless.count(), 1);
    }

    #[test]
    fn names_that_are_being_written_are_anothers() {
        let names = Names::new(64, 4096, 5).unwrap();
        let text = b"early";
        let hash = names.hash(&head(text), text);
        let slot = hash as usize & 63;
        names.words(slot).unwrap().0.store(hash, Ordering::Relaxed);
        let ours = names.number(&head(text), text);
        assert_eq!(ours as usize, (slot + 1) & 63);
        assert_eq!(names.read(slot as u32, &mut [0; 100]), Err(Unread::Early));
        assert_eq!(names.read(ours, &mut [0; 100]), Ok(24 + text.len()));
    }
}
