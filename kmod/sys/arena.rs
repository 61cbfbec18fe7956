// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Memory for values that are referred to without lifetimes.
//!
//! Kernel callbacks refer to probes and their names, and no Rust lifetime covers these references.
//! So an [`Arena`] hands out `&'static` references and never moves a value. It allocates large
//! chunks, which stay until the module goes: a hundred thousand probes take a few dozen
//! allocations, and a stale reference never points to memory of another type.
//!
//! A *retired* value makes room for another one. Its place is written again only when no reference
//! to it can be in use, which takes two steps:
//!
//! 1. The caller that retires the value has removed every way to it: no list, no table and no
//!    structure of a provider leads to it. So no new references can arise. The old ones are held by
//!    CPUs in probe context, in an interrupt or NMI of whatever kind, that took them earlier. RCU
//!    watches these CPUs and they cannot be preempted, or the caller has waited for them.
//! 2. A grace period begins after that, and ends. It waits for each of those CPUs to leave, NMI
//!    handlers included.
//!
//! References that last longer (a consumer's ECBs) are counted by their owner, and delay step 1
//! (INV-21).
//!
//! A place of an arena is in use or on one of three lists: *free*; *old*, which waits for the grace
//! period under way; and *young*, retired since that grace period began, which waits for the next
//! one. The lists are links in a vector that grows with the places, so retiring a value allocates
//! nothing. Grace periods are polled, not waited for: until one has ended, new values get new
//! places.

use super::rculist::GracePeriod;
use core::mem::take;
use kernel::alloc::KVVec;
use kernel::prelude::*;

/// The place of a value in its arena. Places count from 1; 0 means none.
pub type Place = u32;

/// Values of one type that never move.
///
/// # Invariants
///
/// - Every chunk but the last has `per_chunk` values. No chunk ever has more, so none is
///   reallocated.
/// - A value is overwritten only while its place is on the free list. Values move or are dropped
///   only with the arena.
/// - `links` has an entry for each place, and room for an entry for each place that the last chunk
///   can still get.
/// - A place is on at most one list, from the moment its value is retired until the place is
///   reused.
pub struct Arena<T: Sync + 'static> {
    chunks: KVVec<KVVec<T>>,
    per_chunk: usize,
    /// For each place, the next place on the same list.
    links: KVVec<Place>,
    free: Place,
    old: Place,
    young: Place,
    /// The grace period that the old places wait for.
    grace: Option<GracePeriod>,
}

impl<T: Sync + 'static> Arena<T> {
    /// Returns an arena that allocates `per_chunk` values at a time.
    ///
    /// # Safety
    ///
    /// - The arena must be dropped only when no reference that it handed out can be used any more:
    ///   when the module is unloaded, after the last callback into the module has ended.
    /// - A value must be retired at most once, and only when nothing leads to it any more. Code
    ///   that still has a reference to it must be in an RCU read-side critical section (any code
    ///   with interrupts or preemption off is in one) and must not keep the reference beyond it.
    ///   The owner of the arena must not use such a reference after the next push.
    pub const unsafe fn new(per_chunk: usize) -> Self {
        Self {
            chunks: KVVec::new(),
            per_chunk,
            links: KVVec::new(),
            free: 0,
            old: 0,
            young: 0,
            grace: None,
        }
    }

    /// Adds the value that `make` returns for its place.
    pub fn push(&mut self, make: impl FnOnce(Place) -> T) -> Result<&'static T> {
        if self.free == 0 {
            self.advance();
        }
        match self.free {
            0 => self.append(make),
            place => self.reuse(place, make),
        }
    }

    /// Returns the value at a place.
    pub fn get(&self, place: Place) -> Option<&'static T> {
        let (chunk, at) = self.position(place)?;
        let value: *const T = self.chunks.get(chunk)?.get(at)?;
        // SAFETY: The value is initialized and never moves. By the promise given to `new`, the
        // arena outlives every use of the reference, and a value is overwritten only when no
        // reference to it is in use.
        Some(unsafe { &*value })
    }

    /// Retires the value at `place`. The place is reused when no CPU can be looking at the value
    /// any more.
    pub fn retire(&mut self, place: Place) {
        let young = self.young;
        let Some(link) = self.link(place) else {
            return;
        };
        *link = young;
        self.young = place;
        if self.old == 0 {
            self.begin();
        }
    }

    /// Returns the number of places, used or not.
    #[cfg(test)]
    pub fn places(&self) -> usize {
        self.links.len()
    }

    /// Makes the young places old and begins their grace period.
    fn begin(&mut self) {
        self.old = take(&mut self.young);
        self.grace = (self.old != 0).then(GracePeriod::begin);
    }

    /// Frees the old places if their grace period has ended. The free list must be empty.
    fn advance(&mut self) {
        if self.grace.is_some_and(GracePeriod::has_ended) {
            self.free = take(&mut self.old);
            self.begin();
        }
    }

    fn link(&mut self, place: Place) -> Option<&mut Place> {
        let at = usize::try_from(place.checked_sub(1)?).ok()?;
        self.links.get_mut(at)
    }

    /// Returns the chunk of a place, and the index in that chunk.
    fn position(&self, place: Place) -> Option<(usize, usize)> {
        let at = usize::try_from(place.checked_sub(1)?).ok()?;
        Some((
            at.checked_div(self.per_chunk)?,
            at.checked_rem(self.per_chunk)?,
        ))
    }

    /// Writes a value to a free place, and drops the value that was there.
    fn reuse(&mut self, place: Place, make: impl FnOnce(Place) -> T) -> Result<&'static T> {
        let (chunk, at) = self.position(place).ok_or(EINVAL)?;
        let next = *self.link(place).ok_or(EINVAL)?;
        let chunk = self.chunks.get_mut(chunk).ok_or(EINVAL)?;
        if at >= chunk.len() {
            return Err(EINVAL);
        }
        let value = make(place);
        self.free = next;
        // Derived from the chunk's own pointer, because a reference to the values would claim all
        // of them.
        let slot = chunk.as_mut_ptr().wrapping_add(at);
        // SAFETY: `at` is below the chunk's length, so the slot holds an initialized value. That
        // value was retired, and a grace period has begun and ended since: by the promise given to
        // `new`, no reference to it is used any more, so it may be overwritten.
        unsafe {
            *slot = value;
            Ok(&*slot)
        }
    }

    /// Writes a value to a new place.
    fn append(&mut self, make: impl FnOnce(Place) -> T) -> Result<&'static T> {
        let place = Place::try_from(self.links.len()).map_err(|_| ENOSPC)?;
        let place = place.checked_add(1).ok_or(ENOSPC)?;
        if self.chunks.last().is_none_or(|c| c.len() >= self.per_chunk) {
            self.links.reserve(self.per_chunk, GFP_KERNEL)?;
            let chunk = KVVec::with_capacity(self.per_chunk, GFP_KERNEL)?;
            self.chunks.push(chunk, GFP_KERNEL)?;
        }
        let chunk = self.chunks.last_mut().ok_or(ENOMEM)?;
        let at = chunk.len();
        chunk
            .push_within_capacity(make(place))
            .map_err(|_| ENOMEM)?;
        // There is room: it was reserved together with the chunk.
        let _ = self.links.push_within_capacity(0);
        let slot = chunk.as_mut_ptr().wrapping_add(at);
        // SAFETY: The push above has filled the slot. The chunk never grows beyond its capacity, so
        // it is not reallocated, and by the promise given to `new` it outlives every use of the
        // reference.
        Ok(unsafe { &*slot })
    }
}

/// Strings of up to [`LONGEST`] bytes that never move.
///
/// Each string lies in the smallest of four sizes of places that holds it, so a string that is
/// retired makes room for another one.
pub struct Strings {
    short: Arena<[u8; 16]>,
    medium: Arena<[u8; 32]>,
    long: Arena<[u8; 64]>,
    longest: Arena<[u8; LONGEST]>,
}

/// The length of the longest string, bytes.
pub const LONGEST: usize = 192;

/// A string and its place.
#[derive(Clone, Copy)]
pub struct Text {
    bytes: &'static [u8],
    place: Place,
}

impl Text {
    /// Returns the string itself.
    #[inline]
    pub fn bytes(&self) -> &'static [u8] {
        self.bytes
    }
}

impl Strings {
    const CHUNK: usize = 64 << 10;

    /// Returns an empty set of strings.
    ///
    /// # Safety
    ///
    /// As for [`Arena::new`], for each string in place of each value.
    pub const unsafe fn new() -> Self {
        // SAFETY: The caller gives the promise of `Arena::new` for all four arenas.
        unsafe {
            Self {
                short: Arena::new(Self::CHUNK / 16),
                medium: Arena::new(Self::CHUNK / 32),
                long: Arena::new(Self::CHUNK / 64),
                longest: Arena::new(Self::CHUNK / LONGEST),
            }
        }
    }

    /// Adds a copy of `text`.
    pub fn push(&mut self, text: &[u8]) -> Result<Text> {
        match text.len() {
            0..=16 => copy(&mut self.short, text),
            17..=32 => copy(&mut self.medium, text),
            33..=64 => copy(&mut self.long, text),
            65..=LONGEST => copy(&mut self.longest, text),
            _ => Err(E2BIG),
        }
    }

    /// Retires a string, as [`Arena::retire`].
    pub fn retire(&mut self, text: Text) {
        match text.bytes.len() {
            0..=16 => self.short.retire(text.place),
            17..=32 => self.medium.retire(text.place),
            33..=64 => self.long.retire(text.place),
            _ => self.longest.retire(text.place),
        }
    }

    /// Returns the number of places of all sizes.
    #[cfg(test)]
    pub fn places(&self) -> usize {
        let few = [self.short.places(), self.medium.places()];
        let more = [self.long.places(), self.longest.places()];
        few.into_iter().chain(more).sum()
    }
}

fn copy<const N: usize>(arena: &mut Arena<[u8; N]>, text: &[u8]) -> Result<Text> {
    let mut at = 0;
    let bytes = arena.push(|place| {
        at = place;
        let mut bytes = [0; N];
        for (to, from) in bytes.iter_mut().zip(text) {
            *to = *from;
        }
        bytes
    })?;
    Ok(Text {
        bytes: bytes.get(..text.len()).ok_or(E2BIG)?,
        place: at,
    })
}
