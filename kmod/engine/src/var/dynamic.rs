// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Dynamic variables: thread-locals and associative arrays.
//!
//! All live in a fixed number of equal chunks, found through a hash table of chains. A chunk has a head (chain link,
//! hash, key) in one block and a value in another; DIF can address only the values, so no program can damage the table.
//!
//! Reading takes no lock: a chain's chunks keep their key and link for as long as anybody may be looking at them.
//! Changing a chain takes the lock bit of its bucket for a few instructions. The holder runs with interrupts off, and an
//! NMI on top of it is refused by the consumer before it gets here, so the lock is never waited for on the CPU that holds
//! it; who cannot get it from another CPU in a bounded number of tries gives up and counts a drop.
//!
//! A deleted chunk goes to the *dirty* list of the CPU that deleted it. The control path moves dirty lists to *rinsing*,
//! waits until every CPU has left probe context once, and moves them to *clean*, from where the CPUs take them: a chunk
//! is never reused while another CPU may still be looking at it, and nothing is waited for in probe context. The
//! lists' links are a field of their own, as a reader may still be on the chain link.
//!
//! The length of a deleted chunk's key is 0, and is stored last when the chunk is used again. So who remembers in which chunk
//! a variable was ([`recall`](Dynamics::recall)) need not look it up: where length and key are the variable's, it is
//! still there. A length from before the deletion is seen only by those for whom the cleaner waits, and they see the
//! key from before, too.

use crate::error::{NoMem, Reason};
use crate::mem::shared::Shared;
use crate::mem::Vec;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

const NEXT: usize = 0;
const FREE: usize = 4;
const HASH: usize = 8;
const KEY: usize = 24;

/// The lock bit of a bucket; the low half is the first chunk plus 1, the bits above count the changes.
const LOCK: u64 = 1 << 32;
const VERSION: u64 = 1 << 33;
const SPINS: u32 = 1 << 14;

/// The lists of one CPU; each holds a chunk's number plus 1, 0 where it is empty.
#[derive(Debug, Default)]
struct Lists {
    dirty: AtomicU32,
    rinsing: AtomicU32,
    clean: AtomicU32,
}

/// Why a variable could not be stored: counted already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dropped;

/// Variables dropped, by what the space was like.
#[derive(Debug, Default)]
pub struct Drops {
    /// No space at all.
    pub full: AtomicU64,
    /// Space that is being rinsed.
    pub rinsing: AtomicU64,
    /// Space that is dirty.
    pub dirty: AtomicU64,
}

/// The dynamic variables of a consumer.
#[derive(Debug)]
pub struct Dynamics {
    nchunks: u32,
    head_size: usize,
    value_size: usize,
    mask: u64,
    buckets: Shared,
    heads: Shared,
    values: Shared,
    fresh: AtomicU32,
    lists: Vec<Lists>,
    /// What was dropped.
    pub drops: Drops,
}

/// Mixes a word into a hash.
#[inline(always)]
pub fn mix(hash: u64, word: u64) -> u64 {
    (hash ^ word)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .rotate_left(29)
}

#[inline(always)]
fn hash(key: &[u64]) -> u64 {
    let mut hash = key.len() as u64;
    for word in key {
        hash = mix(hash, *word);
    }
    hash ^ hash >> 32
}

impl Dynamics {
    /// Space for keys of up to `key_size` and values of up to `value_size` bytes, both multiples of 8, within `total` bytes.
    pub fn new(
        total: usize,
        key_size: usize,
        value_size: usize,
        ncpus: usize,
    ) -> Result<Self, Reason> {
        let head_size = KEY.checked_add(key_size).ok_or(NoMem)?;
        let chunk = head_size.checked_add(value_size).ok_or(NoMem)? + 8;
        let nchunks = u32::try_from(total.checked_div(chunk).unwrap_or(0))
            .unwrap_or(u32::MAX)
            .min(u32::MAX / 2) as usize;
        // As many buckets as chunks, rounded down to a power of two: chains of one or two. Without any chunk, everything is
        // dropped, and counted.
        let nbuckets = 1usize << nchunks.checked_ilog2().unwrap_or(0);
        Ok(Self {
            nchunks: nchunks as u32,
            head_size,
            value_size,
            mask: nbuckets as u64 - 1,
            buckets: Shared::new(nbuckets * 8)?,
            heads: Shared::new(nchunks.checked_mul(head_size).ok_or(NoMem)?)?,
            values: Shared::new(nchunks.checked_mul(value_size).ok_or(NoMem)?)?,
            fresh: AtomicU32::new(0),
            lists: Vec::try_from_fn(ncpus, |_| Ok::<_, NoMem>(Lists::default()))?,
            drops: Drops::default(),
        })
    }

    /// How many words a key may have.
    pub fn key_words(&self) -> usize {
        (self.head_size - KEY) / 8
    }

    /// The values' memory.
    #[inline(always)]
    pub fn values(&self) -> &Shared {
        &self.values
    }

    /// Offset of a chunk's value in [`values`](Self::values).
    #[inline(always)]
    pub fn value_of(&self, chunk: u32) -> usize {
        chunk as usize * self.value_size
    }

    /// Hash, length and `n` words of the key of a chunk.
    #[inline(always)]
    fn head(&self, chunk: u32, n: usize) -> Option<(&AtomicU64, &AtomicU64, &[AtomicU64])> {
        // The head's size is a multiple of 8, and all heads lie in one block: no product overflows.
        let first = (chunk as usize).wrapping_mul(self.head_size) / 8 + HASH / 8;
        match self.heads.words(first, n.wrapping_add(2))? {
            [hash, len, key @ ..] => Some((hash, len, key)),
            _ => None,
        }
    }

    #[inline(always)]
    fn link(&self, chunk: u32, field: usize) -> u32 {
        self.heads
            .u32(
                (chunk as usize)
                    .wrapping_mul(self.head_size)
                    .wrapping_add(field),
            )
            .map_or(0, |l| l.load(Ordering::Acquire))
    }

    fn set_link(&self, chunk: u32, field: usize, to: u32) {
        if let Some(l) = self.heads.u32(chunk as usize * self.head_size + field) {
            l.store(to, Ordering::Release);
        }
    }

    #[inline(always)]
    fn bucket(&self, hash: u64) -> Option<&AtomicU64> {
        self.buckets.u64((hash & self.mask) as usize * 8)
    }

    #[inline(always)]
    fn matches(&self, chunk: u32, hash: u64, key: &[u64]) -> bool {
        let Some((its_hash, its_len, its_key)) = self.head(chunk, key.len()) else {
            return false;
        };
        its_hash.load(Ordering::Relaxed) == hash
            && its_len.load(Ordering::Relaxed) == key.len() as u64
            && key
                .iter()
                .zip(its_key)
                .all(|(mine, its)| *mine == its.load(Ordering::Relaxed))
    }

    /// The chunk of `key` on the chain that begins with `link`.
    #[inline(always)]
    fn walk(&self, mut link: u32, hash: u64, key: &[u64]) -> Option<u32> {
        // A chain cannot be longer than there are chunks; the bound holds even if it were damaged.
        for _ in 0..self.nchunks {
            let chunk = link.checked_sub(1)?;
            if self.matches(chunk, hash, key) {
                return Some(chunk);
            }
            link = self.link(chunk, NEXT);
        }
        None
    }

    /// The chunk of the variable with `key`.
    #[inline]
    pub fn find(&self, key: &[u64]) -> Option<u32> {
        let hash = hash(key);
        let head = self.bucket(hash)?.load(Ordering::Acquire) as u32;
        self.walk(head, hash, key)
    }

    /// The chunk of the variable with `key`; `hint` is the one of the last time plus 1, or 0, and is brought up to date.
    #[inline(always)]
    pub fn recall(&self, key: &[u64; 2], hint: &mut u32) -> Option<u32> {
        if let Some(chunk) = hint.checked_sub(1) {
            if let Some((_, len, [first, second])) = self.head(chunk, 2) {
                if len.load(Ordering::Acquire) == 2
                    && first.load(Ordering::Relaxed) == key[0]
                    && second.load(Ordering::Relaxed) == key[1]
                {
                    return Some(chunk);
                }
            }
        }
        let found = self.find(key);
        *hint = found.map_or(0, |chunk| chunk.wrapping_add(1));
        found
    }

    /// Takes a bucket's lock; returns its value without it.
    fn lock(&self, bucket: &AtomicU64) -> Option<u64> {
        for _ in 0..SPINS {
            let seen = bucket.load(Ordering::Relaxed);
            if seen & LOCK == 0
                && bucket
                    .compare_exchange_weak(seen, seen | LOCK, Ordering::Acquire, Ordering::Relaxed)
                    .is_ok()
            {
                return Some(seen);
            }
            core::hint::spin_loop();
        }
        self.drops.full.fetch_add(1, Ordering::Relaxed);
        None
    }

    /// Gives a bucket's lock back, with `head` as its first link.
    fn unlock(bucket: &AtomicU64, was: u64, head: u32) {
        let version = (was & !(VERSION - 1)).wrapping_add(VERSION);
        bucket.store(version | u64::from(head), Ordering::Release);
    }

    /// Makes the variable with `key`, whose value `init` writes, unless it exists: then returns its chunk. `free` is the
    /// private list of CPU `cpu`.
    pub fn insert(
        &self,
        cpu: usize,
        free: &mut u32,
        key: &[u64],
        init: impl FnOnce(&Shared, usize),
    ) -> Result<u32, Dropped> {
        if key.len() > self.key_words() {
            self.drops.full.fetch_add(1, Ordering::Relaxed);
            return Err(Dropped);
        }
        let hash = hash(key);
        let bucket = self.bucket(hash).ok_or(Dropped)?;
        let chunk = self.take(cpu, free)?;
        if let Some((its_hash, its_len, its_key)) = self.head(chunk, key.len()) {
            its_hash.store(hash, Ordering::Relaxed);
            for (to, word) in its_key.iter().zip(key) {
                to.store(*word, Ordering::Relaxed);
            }
            its_len.store(key.len() as u64, Ordering::Release);
        }
        init(&self.values, self.value_of(chunk));

        let Some(was) = self.lock(bucket) else {
            self.give_back(free, chunk);
            return Err(Dropped);
        };
        if let Some(other) = self.walk(was as u32, hash, key) {
            // Another CPU was faster. Nobody has seen our chunk.
            Self::unlock(bucket, was, was as u32);
            self.give_back(free, chunk);
            return Ok(other);
        }
        self.set_link(chunk, NEXT, was as u32);
        Self::unlock(bucket, was, chunk + 1);
        Ok(chunk)
    }

    /// Deletes the variable in `chunk`, which was found in this firing, unless another CPU has just done so.
    pub fn remove(&self, cpu: usize, chunk: u32) {
        let Some((hash, len, _)) = self.head(chunk, 0) else {
            return;
        };
        let Some(bucket) = self.bucket(hash.load(Ordering::Relaxed)) else {
            return;
        };
        let Some(was) = self.lock(bucket) else {
            return;
        };
        let mut head = was as u32;
        let mut before: Option<u32> = None;
        let mut link = head;
        let mut removed = false;
        for _ in 0..self.nchunks {
            let Some(at) = link.checked_sub(1) else {
                break;
            };
            let next = self.link(at, NEXT);
            if at == chunk {
                match before {
                    Some(before) => self.set_link(before, NEXT, next),
                    None => head = next,
                }
                len.store(0, Ordering::Release);
                removed = true;
                break;
            }
            before = Some(at);
            link = next;
        }
        Self::unlock(bucket, was, head);
        if let (true, Some(lists)) = (removed, self.lists.get(cpu)) {
            self.push_chain(&lists.dirty, chunk.wrapping_add(1), chunk);
        }
    }

    /// Puts the chain from `first` to `last` in front of `list`.
    fn push_chain(&self, list: &AtomicU32, first: u32, last: u32) {
        let mut head = list.load(Ordering::Relaxed);
        loop {
            self.set_link(last, FREE, head);
            // The only other writer takes the whole list away, so this succeeds at the second try at the latest.
            match list.compare_exchange(head, first, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    fn give_back(&self, free: &mut u32, chunk: u32) {
        self.set_link(chunk, FREE, *free);
        *free = chunk + 1;
    }

    /// Takes a chunk that nobody uses.
    fn take(&self, cpu: usize, free: &mut u32) -> Result<u32, Dropped> {
        if *free == 0 {
            *free = self.refill(cpu);
        }
        if let Some(chunk) = free.checked_sub(1) {
            *free = self.link(chunk, FREE);
            return Ok(chunk);
        }
        let any = |list: fn(&Lists) -> &AtomicU32| {
            self.lists
                .iter()
                .any(|lists| list(lists).load(Ordering::Relaxed) != 0)
        };
        let counter = if any(|l| &l.rinsing) {
            &self.drops.rinsing
        } else if any(|l| &l.dirty) {
            &self.drops.dirty
        } else {
            &self.drops.full
        };
        counter.fetch_add(1, Ordering::Relaxed);
        Err(Dropped)
    }

    /// A list of chunks for this CPU: its own clean ones, one that was never used, or another CPU's clean ones.
    fn refill(&self, cpu: usize) -> u32 {
        let own = self
            .lists
            .get(cpu)
            .map_or(0, |l| l.clean.swap(0, Ordering::Acquire));
        if own != 0 {
            return own;
        }
        if self.fresh.load(Ordering::Relaxed) < self.nchunks {
            let chunk = self.fresh.fetch_add(1, Ordering::Relaxed);
            if chunk < self.nchunks {
                self.set_link(chunk, FREE, 0);
                return chunk + 1;
            }
        }
        self.lists
            .iter()
            .map(|lists| lists.clean.swap(0, Ordering::Acquire))
            .find(|list| *list != 0)
            .unwrap_or(0)
    }

    /// Makes deleted chunks usable again; `grace` returns when no CPU is in probe context that was when it was called.
    /// Calls must not overlap.
    pub fn clean(&self, grace: impl FnOnce()) {
        let mut any = false;
        for lists in self.lists.iter() {
            let dirty = lists.dirty.swap(0, Ordering::Acquire);
            lists.rinsing.store(dirty, Ordering::Release);
            any |= dirty != 0;
        }
        if !any {
            return;
        }
        grace();
        for lists in self.lists.iter() {
            let first = lists.rinsing.swap(0, Ordering::Acquire);
            let Some(mut last) = first.checked_sub(1) else {
                continue;
            };
            while let Some(next) = self.link(last, FREE).checked_sub(1) {
                last = next;
            }
            self.push_chain(&lists.clean, first, last);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(d: &Dynamics, cpu: usize, free: &mut u32, key: &[u64], value: u64) -> bool {
        let init = |values: &Shared, at: usize| {
            values.u64(at).unwrap().store(value, Ordering::Relaxed);
        };
        match d
            .find(key)
            .map_or_else(|| d.insert(cpu, free, key, init), Ok)
        {
            Ok(chunk) => {
                init(d.values(), d.value_of(chunk));
                true
            }
            Err(Dropped) => false,
        }
    }

    fn load(d: &Dynamics, key: &[u64]) -> Option<u64> {
        let at = d.value_of(d.find(key)?);
        d.values().u64(at).map(|w| w.load(Ordering::Relaxed))
    }

    fn remove(d: &Dynamics, cpu: usize, key: &[u64]) {
        if let Some(chunk) = d.find(key) {
            d.remove(cpu, chunk);
        }
    }

    fn dropped(d: &Dynamics) -> [u64; 3] {
        let Drops {
            full,
            rinsing,
            dirty,
        } = &d.drops;
        [full, rinsing, dirty].map(|n| n.load(Ordering::Relaxed))
    }

    #[test]
    fn values_come_and_go_and_space_comes_back() {
        let d = Dynamics::new(100 * 72, 24, 16, 2).unwrap();
        let n = u64::from(d.nchunks);
        let mut free = 0;
        for round in 0..5 {
            for k in 0..n {
                assert!(
                    store(&d, 0, &mut free, &[k, round], k * 3),
                    "round {round}, {k}"
                );
            }
            assert!((0..n).all(|k| load(&d, &[k, round]) == Some(k * 3)));
            assert!(!store(&d, 0, &mut free, &[n, round], 1));
            for k in 0..n {
                remove(&d, (k % 2) as usize, &[k, round]);
                remove(&d, 0, &[k, round]);
                assert_eq!(load(&d, &[k, round]), None);
            }
            assert!(!store(&d, 0, &mut free, &[n, round], 1));
            d.clean(|| assert!(!store(&d, 0, &mut free, &[n, round], 1)));
        }
        // Full, then dirty, then rinsing, in each round.
        assert_eq!(dropped(&d), [5, 5, 5]);
    }

    #[test]
    fn what_is_remembered_is_found_as_long_as_it_is_there() {
        let d = Dynamics::new(100 * 72, 24, 16, 1).unwrap();
        let (mut free, mut hint) = (0, 0);
        let (mine, other) = ([1, 2], [3, 4]);
        assert_eq!(d.recall(&mine, &mut hint), None);
        assert!(store(&d, 0, &mut free, &mine, 5));
        let chunk = d.recall(&mine, &mut hint).unwrap();
        assert_eq!((hint, d.recall(&mine, &mut hint)), (chunk + 1, Some(chunk)));
        // Another variable does not take it for its own.
        assert_eq!(d.recall(&other, &mut hint), None);
        let mut stale = chunk + 1;
        remove(&d, 0, &mine);
        assert_eq!((d.recall(&mine, &mut stale), stale), (None, 0));
        // The chunk is used again, by another.
        d.clean(|| ());
        free = 0;
        while d.find(&other) != Some(chunk) {
            remove(&d, 0, &other);
            assert!(store(&d, 0, &mut free, &other, 6));
        }
        stale = chunk + 1;
        assert_eq!(d.recall(&mine, &mut stale), None);
        stale = chunk + 1;
        assert_eq!(d.recall(&other, &mut stale), Some(chunk));
        let mut none = u32::MAX;
        assert_eq!(d.recall(&other, &mut none), Some(chunk));
    }

    #[test]
    fn keys_that_are_too_long_are_dropped_and_counted() {
        let d = Dynamics::new(4096, 16, 8, 1).unwrap();
        assert!(!store(&d, 0, &mut 0, &[1, 2, 3], 1));
        assert_eq!(dropped(&d), [1, 0, 0]);
        let none = Dynamics::new(40, 16, 8, 1).unwrap();
        assert!(!store(&none, 0, &mut 0, &[1, 2], 1));
        assert_eq!(load(&none, &[1, 2]), None);
        assert_eq!(dropped(&none), [1, 0, 0]);
    }

    #[test]
    fn cpus_agree_on_what_exists() {
        const THREADS: usize = 4;
        const ROUNDS: u64 = if cfg!(miri) { 50 } else { 20_000 };
        let d = Dynamics::new(1 << 15, 16, 8, THREADS).unwrap();
        let inside: [AtomicU64; THREADS] = Default::default();
        let done = AtomicU32::new(0);
        let work = |cpu: usize| {
            let mut free = 0;
            for round in 0..ROUNDS {
                inside[cpu].fetch_add(1, Ordering::SeqCst);
                // One key of this thread's own, one that all threads fight for. A value is its key's.
                let own = [cpu as u64 + 100, round % 7];
                let common = [round % 13, 7];
                let kept = store(&d, cpu, &mut free, &own, round + 1);
                assert!(!kept || load(&d, &own) == Some(round + 1));
                store(&d, cpu, &mut free, &common, common[0] + 1);
                if let Some(value) = load(&d, &common) {
                    assert_eq!(value, common[0] + 1);
                }
                if round % 3 == 0 {
                    remove(&d, cpu, &common);
                }
                remove(&d, cpu, &own);
                assert_eq!(load(&d, &own), None);
                inside[cpu].fetch_add(1, Ordering::SeqCst);
            }
            done.fetch_add(1, Ordering::SeqCst);
        };
        std::thread::scope(|scope| {
            for cpu in 0..THREADS {
                let work = &work;
                scope.spawn(move || work(cpu));
            }
            // The cleaner: its grace period waits for everybody that is inside to leave once.
            while done.load(Ordering::SeqCst) < THREADS as u32 {
                d.clean(|| {
                    for cpu in &inside {
                        let seen = cpu.load(Ordering::SeqCst);
                        while seen % 2 == 1 && cpu.load(Ordering::SeqCst) == seen {
                            std::thread::yield_now();
                        }
                    }
                });
                std::thread::yield_now();
            }
        });
        for key in 0..13 {
            for cpu in 0..THREADS {
                remove(&d, cpu, &[key, 7]);
            }
            assert_eq!(d.find(&[key, 7]), None);
        }
    }
}
