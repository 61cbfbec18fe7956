// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Thread-locals that come and go: what a CPU remembers of the last one of each name.
//!
//! The typical use of thread-locals is `self->t = timestamp` at a function's entry and `self->t =
//! 0` at its return, and nearly always one thread does both on one CPU. So a thread-local that is
//! deleted is put *aside* first: its chunk stays in its chain, with a length that no key has, so
//! that no look-up finds it. If the same thread assigns the same variable on the same CPU again,
//! the chunk gets its length back, and no list was touched. The next variable with that name that
//! is deleted on this CPU replaces it, and only then is the chunk really deleted.
//!
//! Invariants:
//! - A chunk that is aside belongs to the CPU that remembers it. Only that CPU revives or deletes
//!   it.
//! - It is revived only if its bucket has not changed in between. Otherwise the thread may have
//!   been on another CPU and have created the variable again there. Two CPUs cannot do so at the
//!   same time, because the key names the running thread.
//! - A space puts aside only what it can spare ([`SPARE`]), because in a small space every chunk
//!   counts.

use super::{Dropped, Dynamics};
use core::sync::atomic::Ordering;

/// Number of names of which a CPU remembers the last thread-local; a power of two. Names that are
/// equal modulo this number share an entry.
pub const NAMES: usize = 8;

/// One of this number of chunks may be aside.
pub(super) const SPARE: usize = 64;

/// Key length of a chunk that is aside.
const ASIDE: u64 = 1 << 63;

/// What a CPU remembers of the thread-locals of one name.
#[derive(Debug, Default)]
pub struct Recent {
    /// Chunk of the last one that was found, plus 1; 0 if none.
    pub(super) hint: u32,
    /// Chunk that is aside, plus 1; 0 if none.
    aside: u32,
    /// The word of its bucket at the time it was put aside.
    bucket: u64,
}

impl Recent {
    /// Makes an entry with a given `hint`, which may be any number. For tests.
    pub fn told(hint: u32) -> Self {
        Self {
            hint,
            ..Self::default()
        }
    }
}

/// Where a thread-local is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// It exists, in this chunk.
    Chunk(u32),
    /// It was deleted, and its chunk is aside.
    Aside(u32),
    /// It does not exist.
    Nowhere,
}

/// The effect of assigning a value other than 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assigned {
    /// The variable exists in this chunk and has its old value.
    Kept(u32),
    /// The variable was created in this chunk, with the first word of its value.
    Made(u32),
    /// There was no room for it; the drop is counted.
    Dropped,
}

impl Dynamics {
    /// Creates the thread-local with `key`, with `first` as the first word of its value, unless it
    /// exists. `place` must be what [`place`](Self::place) returned in this firing. `cpu` is the
    /// current CPU, and `free` its private list.
    #[inline(always)]
    pub fn assign(
        &self,
        place: Place,
        cpu: usize,
        free: &mut u32,
        key: &[u64; 2],
        recent: &mut Recent,
        first: u64,
    ) -> Assigned {
        match place {
            Place::Chunk(chunk) => Assigned::Kept(chunk),
            Place::Aside(chunk) => {
                self.revive(chunk, recent, first);
                Assigned::Made(chunk)
            }
            Place::Nowhere => self.make(cpu, free, *key, recent, first),
        }
    }

    /// The slow path of [`assign`](Self::assign): the variable does not exist, and no chunk is
    /// aside for it.
    #[inline(never)]
    fn make(
        &self,
        cpu: usize,
        free: &mut u32,
        key: [u64; 2],
        recent: &mut Recent,
        first: u64,
    ) -> Assigned {
        match self.insert(cpu, free, &key, first) {
            Ok(chunk) => {
                self.note(chunk, recent);
                Assigned::Made(chunk)
            }
            Err(Dropped) => Assigned::Dropped,
        }
    }

    /// Deletes the thread-local at `place`, which [`place`](Self::place) must have returned in this
    /// firing on CPU `cpu`.
    #[inline(always)]
    pub fn delete(&self, place: Place, cpu: usize, recent: &mut Recent) {
        if let Place::Chunk(chunk) = place {
            self.retire(cpu, chunk, recent);
        }
    }

    /// Returns where the thread-local with `key` is, and remembers it.
    #[inline(always)]
    pub fn place(&self, key: &[u64; 2], recent: &mut Recent) -> Place {
        if let Some(chunk) = self.hinted(key, recent.hint) {
            return Place::Chunk(chunk);
        }
        if let Some(chunk) = self.aside(key, recent) {
            return Place::Aside(chunk);
        }
        self.search(*key, recent)
    }

    /// The slow path of [`place`](Self::place), if nothing is remembered about the key.
    #[inline(never)]
    fn search(&self, key: [u64; 2], recent: &mut Recent) -> Place {
        let found = self.find(&key);
        recent.hint = found.map_or(0, |chunk| chunk.wrapping_add(1));
        found.map_or(Place::Nowhere, Place::Chunk)
    }

    /// Returns the chunk of the thread-local with `key`, and remembers it.
    #[inline(always)]
    pub fn look(&self, key: &[u64; 2], recent: &mut Recent) -> Option<u32> {
        match self.place(key, recent) {
            Place::Chunk(chunk) => Some(chunk),
            Place::Aside(_) | Place::Nowhere => None,
        }
    }

    /// Returns the chunk that is aside, if it has this key and its bucket is unchanged.
    #[inline(always)]
    fn aside(&self, key: &[u64; 2], recent: &Recent) -> Option<u32> {
        let chunk = recent.aside.checked_sub(1)?;
        let (hash, _, its_key) = self.head(chunk, 2)?;
        let [first, second] = its_key else {
            return None;
        };
        let same = first.load(Ordering::Relaxed) == key[0]
            && second.load(Ordering::Relaxed) == key[1]
            && self
                .bucket(hash.load(Ordering::Relaxed))?
                .load(Ordering::Acquire)
                == recent.bucket;
        same.then_some(chunk)
    }

    /// Recreates a thread-local in its chunk, which [`place`](Self::place) has just found to be
    /// aside, with the first word of its value.
    #[inline(always)]
    pub fn revive(&self, chunk: u32, recent: &mut Recent, first: u64) {
        let Some((_, len, _)) = self.head(chunk, 0) else {
            return;
        };
        self.set_word(chunk, first);
        len.store(2, Ordering::Release);
        recent.aside = 0;
        recent.hint = chunk.wrapping_add(1);
    }

    /// Remembers where a thread-local was created.
    #[inline(always)]
    pub fn note(&self, chunk: u32, recent: &mut Recent) {
        recent.hint = chunk.wrapping_add(1);
    }

    /// Puts the thread-local in `chunk`, which was found in this firing, aside, or deletes it if
    /// the space is small.
    #[inline(always)]
    pub fn retire(&self, cpu: usize, chunk: u32, recent: &mut Recent) {
        if let Some(old) = recent.aside.checked_sub(1) {
            // The bucket of `old` could not be locked, so `old` stays aside and `chunk` cannot be.
            if !self.remove(cpu, old) {
                self.remove(cpu, chunk);
                return;
            }
            recent.aside = 0;
        }
        let bucket = match self.head(chunk, 0) {
            Some((hash, len, _)) if self.spares => self
                .bucket(hash.load(Ordering::Relaxed))
                .map(|bucket| (len, bucket)),
            _ => None,
        };
        let Some((len, bucket)) = bucket else {
            self.remove(cpu, chunk);
            return;
        };
        len.store(ASIDE, Ordering::Release);
        *recent = Recent {
            hint: 0,
            aside: chunk.wrapping_add(1),
            bucket: bucket.load(Ordering::Acquire),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const CPUS: usize = 8;
    const SECRET: u64 = 0x5ec1_2e7a_11d5_0b5c;

    fn ample() -> Dynamics {
        Dynamics::new(72 * NAMES * SPARE * CPUS, 16, 8, 40, CPUS, SECRET).unwrap()
    }

    /// The state of a CPU for thread-locals of one name.
    #[derive(Default)]
    struct Cpu {
        free: u32,
        recent: Recent,
    }

    fn store(d: &Dynamics, n: usize, cpu: &mut Cpu, key: &[u64; 2], value: u64) {
        let place = d.place(key, &mut cpu.recent);
        let Cpu { free, recent } = cpu;
        match d.assign(place, n, free, key, recent, value) {
            Assigned::Kept(chunk) => d.set_word(chunk, value),
            Assigned::Made(_) => {}
            Assigned::Dropped => panic!("there is room"),
        }
    }

    fn load(d: &Dynamics, cpu: &mut Cpu, key: &[u64; 2]) -> Option<u64> {
        Some(d.word(d.look(key, &mut cpu.recent)?))
    }

    fn delete(d: &Dynamics, n: usize, cpu: &mut Cpu, key: &[u64; 2]) {
        let place = d.place(key, &mut cpu.recent);
        d.delete(place, n, &mut cpu.recent);
    }

    #[test]
    fn what_comes_and_goes_keeps_its_place() {
        let d = ample();
        let mut cpu = Cpu::default();
        store(&d, 0, &mut cpu, &[1, 2], 3);
        let chunk = d.find(&[1, 2]);
        for value in 4..10 {
            delete(&d, 0, &mut cpu, &[1, 2]);
            assert_eq!((load(&d, &mut cpu, &[1, 2]), d.find(&[1, 2])), (None, None));
            store(&d, 0, &mut cpu, &[1, 2], value);
            assert_eq!(load(&d, &mut cpu, &[1, 2]), Some(value));
            assert_eq!(d.find(&[1, 2]), chunk);
        }
        // Another variable gets a chunk of its own, and replaces the one that is aside.
        delete(&d, 0, &mut cpu, &[1, 2]);
        store(&d, 0, &mut cpu, &[1, 7], 1);
        assert_ne!(d.find(&[1, 7]), chunk);
        delete(&d, 0, &mut cpu, &[1, 7]);
        assert_eq!(
            Some(d.lists[0].dirty.load(Ordering::Relaxed)),
            chunk.map(|c| c + 1)
        );
    }

    #[test]
    fn a_small_space_puts_nothing_aside() {
        let d = Dynamics::new(72 * 100, 16, 8, 40, 1, SECRET).unwrap();
        let mut cpu = Cpu::default();
        store(&d, 0, &mut cpu, &[1, 2], 3);
        delete(&d, 0, &mut cpu, &[1, 2]);
        assert_ne!(d.lists[0].dirty.load(Ordering::Relaxed), 0);
    }

    /// Threads that move between CPUs, compared with a map. At the end every chunk is free or
    /// aside.
    #[test]
    fn threads_may_move() {
        const ROUNDS: u64 = if cfg!(miri) { 200 } else { 20_000 };
        let d = ample();
        let mut cpus: [Cpu; CPUS] = Default::default();
        let mut known = BTreeMap::new();
        let mut seed = 1u64;
        for round in 0..ROUNDS {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (n, thread) = ((seed >> 33) as usize % CPUS, (seed >> 40) % 3);
            let (key, cpu) = ([1, thread], &mut cpus[n]);
            match (seed >> 50) % 4 {
                0 => {
                    store(&d, n, cpu, &key, round + 1);
                    known.insert(thread, round + 1);
                }
                1 => {
                    delete(&d, n, cpu, &key);
                    known.remove(&thread);
                }
                2 => assert_eq!(load(&d, cpu, &key), known.get(&thread).copied()),
                _ if round % 50 == 0 => d.clean(|| {}),
                _ => {}
            }
        }
        for thread in 0..3 {
            delete(&d, 0, &mut cpus[0], &[1, thread]);
        }
        let aside = cpus.iter().filter(|cpu| cpu.recent.aside != 0).count();
        d.clean(|| {});
        let mut made = 0;
        for Cpu { free, .. } in &mut cpus {
            while d.insert(0, free, &[2, made], 0) != Err(Dropped) {
                made += 1;
            }
        }
        assert_eq!(made as usize + aside, d.nchunks as usize);
    }
}
