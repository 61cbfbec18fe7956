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
//! it. A firing may look at locked buckets so often, all of them together; then it gives up and counts a drop.
//!
//! A deleted chunk goes to the *dirty* list of the CPU that deleted it. The control path moves dirty lists to *rinsing*,
//! waits until every CPU has left probe context once, and moves them to *clean*, from where the CPUs take them: a chunk
//! is never reused while another CPU may still be looking at it, and nothing is waited for in probe context. The
//! lists' links are a field of their own, as a reader may still be on the chain link.
//!
//! Of thread-locals that come and go all the time, the last one that a CPU deleted keeps its place for a while: see the module
//! `recent`.
//!
//! A CPU that has nothing else left need not wait for that where it is alone: each says while it is [`Inside`], and what
//! this CPU has deleted before it looked at that can be seen by nobody who comes in later. Only its own dirty list is
//! known to hold nothing younger.
//!
//! The length of a deleted chunk's key is 0, and is stored last when the chunk is used again. So who remembers in which chunk
//! a variable was ([`look`](Dynamics::look)) need not look it up: where length and key are the variable's, it is
//! still there. A length from before the deletion is seen only by those for whom the cleaner waits, and they see the
//! key from before, too.

mod recent;

use crate::budget::ANOTHER;
use crate::error::{NoMem, Reason};
use crate::hash::{mix, SAME};
use crate::mem::atomic::{fence, spin_loop, AtomicBool, AtomicU32, AtomicU64, Ordering};
use crate::mem::shared::Shared;
use crate::mem::Vec;

use recent::SPARE;
pub use recent::{Assigned, Place, Recent, NAMES};

const NEXT: usize = 0;
const FREE: usize = 4;
const HASH: usize = 8;
const KEY: usize = 24;

/// The lock bit of a bucket; the low half is the first chunk plus 1, the bits above count the changes.
const LOCK: u64 = 1 << 32;
const VERSION: u64 = 1 << 33;
/// So often a firing looks at buckets that are locked: many CPUs may want one, each of which has it for some microseconds at most. That is
/// a fraction of a millisecond, whatever the program does, so nobody pays for it.
const SPINS: u32 = 1 << 12;

/// Longest chain. Chains have one or two chunks; what would make one longer is dropped, so that looking along it ends soon.
const CHAIN: usize = 256;

/// Why a chain has no chunk of a key.
enum Missing {
    /// It is not there.
    Absent,
    /// It is not, and could not be put there.
    NoRoom,
}

/// Variables that a small space holds if their own bytes fit, however much it takes to find them again. It is so small that
/// somebody has counted.
const FEW: usize = 64;

/// Clean chunks that a CPU takes for itself at a time.
const SHARE: usize = 16;

/// The lists of one CPU; each holds a chunk's number plus 1, 0 where it is empty.
#[derive(Debug, Default)]
struct Lists {
    /// It may be looking at chunks.
    inside: AtomicBool,
    /// How often it may yet look at a locked bucket, in which firing.
    spins: AtomicU32,
    firing: AtomicU64,
    dirty: AtomicU32,
    rinsing: AtomicU32,
    clean: AtomicU32,
    /// Keeps what other CPUs write often out of this one's cache line.
    _apart: [u32; 8],
}

/// A CPU may be looking at chunks as long as this lives.
#[derive(Debug)]
pub struct Inside<'a>(&'a AtomicBool);

impl Drop for Inside<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
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
    /// Words of a head, and of a value.
    head_words: usize,
    value_words: usize,
    mask: u64,
    buckets: Shared,
    heads: Shared,
    values: Shared,
    fresh: AtomicU32,
    lists: Vec<Lists>,
    /// What hashes begin with.
    secret: u64,
    /// What was deleted last may wait aside.
    spares: bool,
    /// What was dropped.
    pub drops: Drops,
}

impl Dynamics {
    /// How many bytes such a space takes at most.
    pub fn memory(total: usize, key_size: usize) -> usize {
        let heads = KEY.saturating_add(key_size).saturating_mul(FEW);
        total.saturating_add(heads)
    }

    /// Space for keys of up to `key_size` and values of up to `value_size` bytes, both multiples of 8, within `total` bytes.
    /// `bare` is what a variable takes at most without everything that serves to find it; hashes begin with `secret`.
    pub fn new(
        total: usize,
        key_size: usize,
        value_size: usize,
        bare: usize,
        ncpus: usize,
        secret: u64,
    ) -> Result<Self, Reason> {
        let head_size = KEY.checked_add(key_size).ok_or(NoMem)?;
        let chunk = head_size.checked_add(value_size).ok_or(NoMem)? + 8;
        let few = total.checked_div(bare).unwrap_or(0).min(FEW);
        let nchunks = u32::try_from(total.checked_div(chunk).unwrap_or(0).max(few))
            .unwrap_or(u32::MAX)
            .min(u32::MAX / 2) as usize;
        // As many buckets as chunks, rounded down to a power of two: chains of one or two. Without any chunk, everything is
        // dropped, and counted.
        let nbuckets = 1usize << nchunks.checked_ilog2().unwrap_or(0);
        Ok(Self {
            nchunks: nchunks as u32,
            head_words: head_size / 8,
            value_words: value_size / 8,
            mask: nbuckets as u64 - 1,
            buckets: Shared::new(nbuckets * 8)?,
            heads: Shared::new(nchunks.checked_mul(head_size).ok_or(NoMem)?)?,
            values: Shared::new(nchunks.checked_mul(value_size).ok_or(NoMem)?)?,
            fresh: AtomicU32::new(0),
            lists: Vec::try_from_fn(ncpus, |_| Ok::<_, NoMem>(Lists::default()))?,
            secret,
            spares: nchunks / (NAMES * SPARE) >= ncpus,
            drops: Drops::default(),
        })
    }

    /// Whether there is room for any variable.
    pub fn is_empty(&self) -> bool {
        self.nchunks == 0
    }

    /// Says that `cpu` may be looking at chunks from now on; everything below but [`clean`](Self::clean) is to be called so. `firing` is
    /// the number of the firing in which it does.
    #[inline(always)]
    pub fn enter(&self, cpu: usize, firing: u64) -> Option<Inside<'_>> {
        let lists = self.lists.get(cpu)?;
        let inside = &lists.inside;
        if lists.firing.load(Ordering::Relaxed) != firing {
            lists.firing.store(firing, Ordering::Relaxed);
            lists.spins.store(SPINS, Ordering::Relaxed);
        }
        inside.store(true, Ordering::Relaxed);
        // Whoever does not see this sees to it that we see no chunk that it uses again.
        fence(Ordering::SeqCst);
        Some(Inside(inside))
    }

    /// How many words a key may have.
    pub fn key_words(&self) -> usize {
        self.head_words - KEY / 8
    }

    /// The values' memory.
    #[inline(always)]
    pub fn values(&self) -> &Shared {
        &self.values
    }

    /// Offset of a chunk's value in [`values`](Self::values).
    #[inline(always)]
    pub fn value_of(&self, chunk: u32) -> usize {
        // All values lie in one block: no product overflows.
        self.first_word(chunk).wrapping_mul(8)
    }

    /// Which word of [`values`](Self::values) a chunk's value begins with.
    #[inline(always)]
    fn first_word(&self, chunk: u32) -> usize {
        (chunk as usize).wrapping_mul(self.value_words)
    }

    /// The first word of a chunk's value: all of it, where that is a number.
    #[inline(always)]
    pub fn word(&self, chunk: u32) -> u64 {
        let value = self.values.word(self.first_word(chunk));
        value.map_or(0, |value| value.load(Ordering::Relaxed))
    }

    /// Changes it.
    #[inline(always)]
    pub fn set_word(&self, chunk: u32, to: u64) {
        if let Some(value) = self.values.word(self.first_word(chunk)) {
            value.store(to, Ordering::Relaxed);
        }
    }

    /// Hash, length and `n` words of the key of a chunk.
    #[inline(always)]
    fn head(&self, chunk: u32, n: usize) -> Option<(&AtomicU64, &AtomicU64, &[AtomicU64])> {
        // All heads lie in one block: no product overflows.
        let first = (chunk as usize).wrapping_mul(self.head_words);
        match self
            .heads
            .words(first.wrapping_add(HASH / 8), n.wrapping_add(2))?
        {
            [hash, len, key @ ..] => Some((hash, len, key)),
            _ => None,
        }
    }

    #[inline(always)]
    fn link(&self, chunk: u32, field: usize) -> u32 {
        self.heads
            .u32(self.field(chunk, field))
            .map_or(0, |l| l.load(Ordering::Acquire))
    }

    fn set_link(&self, chunk: u32, field: usize, to: u32) {
        if let Some(l) = self.heads.u32(self.field(chunk, field)) {
            l.store(to, Ordering::Release);
        }
    }

    /// Offset of a field of a chunk's head.
    #[inline(always)]
    fn field(&self, chunk: u32, field: usize) -> usize {
        (chunk as usize)
            .wrapping_mul(self.head_words)
            .wrapping_mul(8)
            .wrapping_add(field)
    }

    #[inline(always)]
    fn bucket(&self, hash: u64) -> Option<&AtomicU64> {
        self.buckets.word((hash & self.mask) as usize)
    }

    #[inline(always)]
    fn hash(&self, key: &[u64]) -> u64 {
        let mut hash = mix(self.secret, key.len() as u64);
        for word in key {
            hash = mix(hash, *word);
        }
        hash
    }

    /// Whether a chunk has a key of this hash and length, and if so whether it is the key. One that is aside has none.
    #[inline(always)]
    fn matches(&self, chunk: u32, hash: u64, key: &[u64]) -> Option<bool> {
        let (its_hash, its_len, its_key) = self.head(chunk, key.len())?;
        let meets = its_hash.load(Ordering::Relaxed) == hash
            && its_len.load(Ordering::Relaxed) == key.len() as u64;
        let is_it = || {
            let mut words = key.iter().zip(its_key);
            words.all(|(mine, its)| *mine == its.load(Ordering::Relaxed))
        };
        meets.then(is_it)
    }

    /// The chunk of `key` on the chain that begins with `link`.
    #[inline(always)]
    fn walk(&self, mut link: u32, hash: u64, key: &[u64]) -> Result<u32, Missing> {
        let mut others = 0;
        for _ in 0..CHAIN {
            let chunk = link.checked_sub(1).ok_or(Missing::Absent)?;
            match self.matches(chunk, hash, key) {
                Some(true) => return Ok(chunk),
                Some(false) => others += 1,
                None => {}
            }
            if others == SAME {
                break;
            }
            link = self.link(chunk, NEXT);
        }
        Err(Missing::NoRoom)
    }

    /// The chunk of the variable with `key`.
    #[inline]
    pub fn find(&self, key: &[u64]) -> Option<u32> {
        let hash = self.hash(key);
        let head = self.bucket(hash)?.load(Ordering::Acquire) as u32;
        self.walk(head, hash, key).ok()
    }

    /// The chunk that `hint` names, if the variable with `key` is there.
    #[inline(always)]
    fn hinted(&self, key: &[u64; 2], hint: u32) -> Option<u32> {
        let chunk = hint.checked_sub(1)?;
        let (_, len, its_key) = self.head(chunk, 2)?;
        let [first, second] = its_key else {
            return None;
        };
        let same = len.load(Ordering::Acquire) == 2
            && first.load(Ordering::Relaxed) == key[0]
            && second.load(Ordering::Relaxed) == key[1];
        same.then_some(chunk)
    }

    /// Takes a bucket's lock; returns its value without it.
    fn lock(&self, cpu: usize, bucket: &AtomicU64) -> Option<u64> {
        let spins = self.lists.get(cpu).map(|lists| &lists.spins);
        loop {
            let seen = bucket.load(Ordering::Relaxed);
            if seen & LOCK == 0
                && bucket
                    .compare_exchange(seen, seen | LOCK, Ordering::Acquire, Ordering::Relaxed)
                    .is_ok()
            {
                return Some(seen);
            }
            // Only this CPU writes it.
            let left = spins.and_then(|spins| spins.load(Ordering::Relaxed).checked_sub(1));
            let (Some(left), Some(spins)) = (left, spins) else {
                self.drops.full.fetch_add(1, Ordering::Relaxed);
                return None;
            };
            spins.store(left, Ordering::Relaxed);
            spin_loop();
        }
    }

    /// Gives a bucket's lock back, with `head` as its first link.
    fn unlock(bucket: &AtomicU64, was: u64, head: u32) {
        let version = (was & !(VERSION - 1)).wrapping_add(VERSION);
        bucket.store(version | u64::from(head), Ordering::Release);
    }

    /// Makes the variable with `key`, whose value begins with `first`, unless it exists: then returns its chunk. `free` is the
    /// private list of CPU `cpu`.
    #[inline(never)]
    pub fn insert(
        &self,
        cpu: usize,
        free: &mut u32,
        key: &[u64],
        first: u64,
    ) -> Result<u32, Dropped> {
        if key.len() > self.key_words() {
            self.drops.full.fetch_add(1, Ordering::Relaxed);
            return Err(Dropped);
        }
        let hash = self.hash(key);
        let bucket = self.bucket(hash).ok_or(Dropped)?;
        let chunk = self.take(cpu, free)?;
        if let Some((its_hash, its_len, its_key)) = self.head(chunk, key.len()) {
            its_hash.store(hash, Ordering::Relaxed);
            for (to, word) in its_key.iter().zip(key) {
                to.store(*word, Ordering::Relaxed);
            }
            its_len.store(key.len() as u64, Ordering::Release);
        }
        self.set_word(chunk, first);

        let Some(was) = self.lock(cpu, bucket) else {
            self.give_back_unused(free, chunk);
            return Err(Dropped);
        };
        let other = match self.walk(was as u32, hash, key) {
            Err(Missing::Absent) => {
                self.set_link(chunk, NEXT, was as u32);
                Self::unlock(bucket, was, chunk + 1);
                return Ok(chunk);
            }
            // Another CPU was faster.
            Ok(other) => Ok(other),
            Err(Missing::NoRoom) => {
                self.drops.full.fetch_add(1, Ordering::Relaxed);
                Err(Dropped)
            }
        };
        // Nobody has seen our chunk.
        Self::unlock(bucket, was, was as u32);
        self.give_back_unused(free, chunk);
        other
    }

    /// Gives back a chunk that has got a key, and is in no bucket. Who remembers that a variable of this key was here once is not to find it.
    #[cold]
    fn give_back_unused(&self, free: &mut u32, chunk: u32) {
        if let Some((_, len, _)) = self.head(chunk, 0) {
            len.store(0, Ordering::Relaxed);
        }
        self.give_back(free, chunk);
    }

    /// Deletes the variable in `chunk`, which was found in this firing, unless another CPU has just done so. `false`: its
    /// bucket could not be locked, and it is still there.
    #[inline(never)]
    pub fn remove(&self, cpu: usize, chunk: u32) -> bool {
        let Some((hash, len, _)) = self.head(chunk, 0) else {
            return true;
        };
        let Some(bucket) = self.bucket(hash.load(Ordering::Relaxed)) else {
            return true;
        };
        let Some(was) = self.lock(cpu, bucket) else {
            return false;
        };
        let mut head = was as u32;
        let mut before: Option<u32> = None;
        let mut link = head;
        let mut removed = false;
        for _ in 0..CHAIN {
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
        true
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

    /// Units of finding that there is no chunk.
    pub fn units_of_drop(&self) -> usize {
        self.lists.len().saturating_mul(ANOTHER)
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

    /// A list of chunks for this CPU: its own clean ones, one that was never used, another CPU's clean ones, or its own dirty
    /// ones if nobody else can be looking at them.
    fn refill(&self, cpu: usize) -> u32 {
        let own = self.lists.get(cpu).map_or(0, |l| self.some_clean(l));
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
            .map(|lists| self.some_clean(lists))
            .find(|list| *list != 0)
            .unwrap_or_else(|| self.reclaim(cpu))
    }

    /// Clean chunks of `lists`, at most [`SHARE`] but where the cleaner puts more there meanwhile: what a CPU holds no other one can
    /// have, and it may never need another chunk.
    fn some_clean(&self, lists: &Lists) -> u32 {
        // Most often others have none, and need not be disturbed.
        if lists.clean.load(Ordering::Relaxed) == 0 {
            return 0;
        }
        let first = lists.clean.swap(0, Ordering::Acquire);
        let mut last = first;
        for _ in 1..SHARE {
            match last
                .checked_sub(1)
                .map_or(0, |chunk| self.link(chunk, FREE))
            {
                0 => return first,
                next => last = next,
            }
        }
        let chunk = last.saturating_sub(1);
        let rest = self.link(chunk, FREE);
        if rest != 0 {
            self.set_link(chunk, FREE, 0);
            let put_back =
                lists
                    .clean
                    .compare_exchange(0, rest, Ordering::Release, Ordering::Relaxed);
            if put_back.is_err() {
                self.set_link(chunk, FREE, rest);
            }
        }
        first
    }

    /// The list of what this CPU has deleted, if it is alone.
    fn reclaim(&self, cpu: usize) -> u32 {
        // It has deleted all of it before this fence, and those who come in later do so behind theirs.
        fence(Ordering::SeqCst);
        let alone = self
            .lists
            .iter()
            .enumerate()
            .all(|(other, lists)| other == cpu || !lists.inside.load(Ordering::Acquire));
        match self.lists.get(cpu) {
            Some(own) if alone => own.dirty.swap(0, Ordering::Acquire),
            _ => 0,
        }
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
mod tests;
