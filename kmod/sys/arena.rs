// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Memory whose values are referred to by whom no lifetime binds.
//!
//! Probes and their names are referred to from kernel callbacks that know no lifetimes. So an [`Arena`] hands out `&'static`
//! references, and never moves a value. Allocation is in large pieces, which stay until the module goes: a hundred thousand probes take
//! a few dozen allocations, and a stale reference never points to memory of another type.
//!
//! A value that is *retired* makes room for another one. Its place is written again only when nobody can have a reference to it
//! any more, which takes two steps:
//!
//! 1. Whoever retires it has made sure that nothing leads to it: no list, no table, no structure of a provider. New references
//!    cannot come about. The old ones are those of CPUs in probe context, in whichever interrupt or NMI that is, which took
//!    them before. They are in RCU's sight and cannot be preempted, or were waited for.
//! 2. A grace period begins after that, and ends. It waits for each of those CPUs to leave, NMI handlers included.
//!
//! References that last longer (a consumer's ECBs) are counted by their owner, and put off step 1.
//!
//! The places of an arena are on three lists: *free*; *old*, which wait for the grace period that is under way; and *young*, retired
//! since that began, which wait for the next one. The lists are links in a vector that grows with the places, so to retire a value
//! takes no memory. Grace periods are asked about and not waited for: as long as one has not ended, new values get new places.

use super::rculist::GracePeriod;
use core::mem::take;
use kernel::alloc::KVVec;
use kernel::prelude::*;

/// Where a value is in its arena: the places count from 1, so that 0 is none.
pub type Place = u32;

/// Values of one type that stay where they are.
///
/// # Invariants
///
/// - Every chunk but the last has `per_chunk` values, and none ever has more: it is never reallocated.
/// - A value is overwritten only when its place is on the free list, and moved or dropped with the arena only.
/// - `links` has an entry for each place, and room for one for each place of the last chunk.
/// - A place is on one list at most. It is on one from the retiring of its value until the place is used again.
pub struct Arena<T: Sync + 'static> {
    chunks: KVVec<KVVec<T>>,
    per_chunk: usize,
    /// The next place on the same list.
    links: KVVec<Place>,
    free: Place,
    old: Place,
    young: Place,
    /// The one that the old places wait for.
    grace: Option<GracePeriod>,
}

impl<T: Sync + 'static> Arena<T> {
    /// An arena that allocates `per_chunk` values at a time.
    ///
    /// # Safety
    ///
    /// - The arena must be dropped only when no reference that it handed out can be used any more: at the module's unload, after the
    ///   last callback into the module has ended.
    /// - A value must be retired once, and only when nothing leads to it any more. Whoever has a reference to it by then must be within
    ///   an RCU read-side critical section, which any code with interrupts or preemption off is, and must not keep the reference
    ///   beyond that; nor must the owner of the arena use it when something has been pushed.
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

    /// Adds the value that `make` makes for its place.
    pub fn push(&mut self, make: impl FnOnce(Place) -> T) -> Result<&'static T> {
        if self.free == 0 {
            self.advance();
        }
        match self.free {
            0 => self.append(make),
            place => self.reuse(place, make),
        }
    }

    /// The value at a place.
    pub fn get(&self, place: Place) -> Option<&'static T> {
        let (chunk, at) = self.position(place)?;
        let value: *const T = self.chunks.get(chunk)?.get(at)?;
        // SAFETY: The value is initialized, and stays where it is; the creator of the arena promised not to drop that as long as
        // references are in use, and to retire no value that the reference of could be used when it is overwritten.
        Some(unsafe { &*value })
    }

    /// Lets a value go. Its place is used again when those who look at it now have gone.
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

    /// How many places there are, whatever is in them.
    #[cfg(test)]
    pub fn places(&self) -> usize {
        self.links.len()
    }

    /// Lets the young places grow old.
    fn begin(&mut self) {
        self.old = take(&mut self.young);
        self.grace = (self.old != 0).then(GracePeriod::begin);
    }

    /// Frees the old places if their grace period has ended. There are no free ones.
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

    /// The chunk of a place, and where it is in it.
    fn position(&self, place: Place) -> Option<(usize, usize)> {
        let at = usize::try_from(place.checked_sub(1)?).ok()?;
        Some((
            at.checked_div(self.per_chunk)?,
            at.checked_rem(self.per_chunk)?,
        ))
    }

    /// Writes a value to a place that is free.
    fn reuse(&mut self, place: Place, make: impl FnOnce(Place) -> T) -> Result<&'static T> {
        let (chunk, at) = self.position(place).ok_or(EINVAL)?;
        let next = *self.link(place).ok_or(EINVAL)?;
        let chunk = self.chunks.get_mut(chunk).ok_or(EINVAL)?;
        if at >= chunk.len() {
            return Err(EINVAL);
        }
        let value = make(place);
        self.free = next;
        // Derived from the chunk's own pointer, not from a reference to values.
        let slot = chunk.as_mut_ptr().wrapping_add(at);
        // SAFETY: `at` is within the chunk, whose value there is initialized. It was retired, and a grace period has begun and ended
        // since: by the promise of the arena's creator no reference to it is used any more.
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
        // There is room: it was reserved with the chunk.
        let _ = self.links.push_within_capacity(0);
        let slot = chunk.as_mut_ptr().wrapping_add(at);
        // SAFETY: The slot has just been filled; the chunk never grows beyond its capacity, so it is not reallocated, and the
        // creator of the arena promised to keep it for as long as references are in use.
        Ok(unsafe { &*slot })
    }
}

/// Texts that stay where they are, of up to [`LONGEST`] bytes.
///
/// Each is in the smallest of four sizes of places that holds it, so that one that goes makes room for another.
pub struct Strings {
    short: Arena<[u8; 16]>,
    medium: Arena<[u8; 32]>,
    long: Arena<[u8; 64]>,
    longest: Arena<[u8; LONGEST]>,
}

/// The longest text, bytes.
pub const LONGEST: usize = 192;

/// A text, and where it is.
#[derive(Clone, Copy)]
pub struct Text {
    bytes: &'static [u8],
    place: Place,
}

impl Text {
    /// The text itself.
    #[inline]
    pub fn bytes(&self) -> &'static [u8] {
        self.bytes
    }
}

impl Strings {
    const CHUNK: usize = 64 << 10;

    /// No texts.
    ///
    /// # Safety
    ///
    /// As of [`Arena::new`].
    pub const unsafe fn new() -> Self {
        // SAFETY: By the caller's promise.
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

    /// Lets a text go, as [`Arena::retire`].
    pub fn retire(&mut self, text: Text) {
        match text.bytes.len() {
            0..=16 => self.short.retire(text.place),
            17..=32 => self.medium.retire(text.place),
            33..=64 => self.long.retire(text.place),
            _ => self.longest.retire(text.place),
        }
    }

    /// How many places there are, of all sizes.
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
