// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Dynamic variables: thread-locals and associative arrays.
//!
//! All are stored in a fixed number of chunks of equal size, which are found through a hash table
//! with chains. A chunk has a head (chain link, hash, key) in one block and a value in another. DIF
//! can address the values only, so no program can damage the table.
//!
//! Readers take no lock: the chunks of a chain keep their key and link as long as any CPU may be
//! looking at them. To change a chain, a CPU takes the lock bit of its bucket for a few
//! instructions. The holder runs with interrupts off, and the consumer refuses an NMI on top of it
//! before the NMI gets here, so no CPU waits for a lock that it holds itself. The number of times
//! that a firing looks at locked buckets is limited over all of them; when it is used up, the
//! firing gives up and counts a drop (INV-30).
//!
//! A deleted chunk goes to the *dirty* list of the CPU that deleted it. The control path moves the
//! dirty lists to *rinsing*, waits until every CPU has left probe context once, and then moves them
//! to *clean*, from where the CPUs take them. So a chunk is never reused while another CPU may
//! still be looking at it, and probe context waits for nothing. The links of these lists are a
//! separate field, because a reader may still be following the chain link.
//!
//! The thread-local that a CPU deleted last keeps its chunk for a while, because thread-locals
//! often come and go: see the module `recent`.
//!
//! A CPU that has no other chunks left need not wait for the control path if it is alone. Each CPU
//! announces when it is [`Inside`]. What this CPU had deleted before it looked at these flags
//! cannot be seen by a CPU that enters later. Only its own dirty list is certain to hold nothing
//! that was deleted after that.
//!
//! The key length of a deleted chunk is 0, and is stored last when the chunk is reused. So a caller
//! that remembers the chunk of a variable ([`look`](Dynamics::look)) needs no look-up: if length
//! and key match, the variable is still there. A stale length, from before the deletion, is visible
//! only to CPUs that the cleaner waits for, and they also see the key from before.

mod recent;

use crate::budget::ANOTHER;
use crate::error::{NoMem, Reason};
use crate::hash::{mix, SAME};
use crate::mem::atomic::{fence, spin_loop, AtomicBool, AtomicU32, AtomicU64, Ordering};
use crate::mem::shared::Shared;
use crate::mem::Vec;

use recent::SPARE;
pub use recent::{Assigned, Place, Recent, NAMES};

// Offsets in a chunk's head: chain link (u32), link of the free lists (u32), hash (u64), length of
// the key in words (u64, at 16), key.
const NEXT: usize = 0;
const FREE: usize = 4;
const HASH: usize = 8;
const KEY: usize = 24;

/// The lock bit of a bucket's word. The low half is the number of the first chunk plus 1; the bits
/// above the lock count the changes.
const LOCK: u64 = 1 << 32;
const VERSION: u64 = 1 << 33;
/// Maximum number of times that a firing looks at locked buckets. Many CPUs may want one bucket,
/// and each holds it for some microseconds at most. The total is a fraction of a millisecond,
/// whatever the program does, so it is not charged to the budget.
const SPINS: u32 = 1 << 12;

/// Maximum length of a chain. Chains normally have one or two chunks. A chunk that would make one
/// longer is dropped, so that every walk ends soon.
const CHAIN: usize = 256;

/// Why a chain has no chunk for a key.
enum Missing {
    /// There is no such variable.
    Absent,
    /// There is no such variable, and it could not be added either.
    NoRoom,
}

/// Maximum number of variables that a small space is guaranteed to hold if their own bytes fit,
/// without their management. A user who sets such a small size has counted variables.
const FEW: usize = 64;

/// Number of clean chunks that a CPU takes for itself at a time.
const SHARE: usize = 16;

/// The lists of one CPU. Each holds the number of its first chunk plus 1; 0 means empty.
#[derive(Debug, Default)]
struct Lists {
    /// Whether the CPU may be looking at chunks.
    inside: AtomicBool,
    /// How many more times the CPU may look at a locked bucket in the firing `firing`. Only this
    /// CPU writes the two fields.
    spins: AtomicU32,
    firing: AtomicU64,
    dirty: AtomicU32,
    rinsing: AtomicU32,
    clean: AtomicU32,
    /// Keeps fields that other CPUs write often out of this CPU's cache line.
    _apart: [u32; 8],
}

/// While this value lives, the CPU may be looking at chunks.
#[derive(Debug)]
pub struct Inside<'a>(&'a AtomicBool);

impl Drop for Inside<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// The variable could not be stored; the drop is counted already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dropped;

/// Dropped variables, by the reason.
#[derive(Debug, Default)]
pub struct Drops {
    /// All chunks are in use, or the variable could not be stored for another reason.
    pub full: AtomicU64,
    /// Some chunks are being rinsed.
    pub rinsing: AtomicU64,
    /// Some chunks are dirty.
    pub dirty: AtomicU64,
}

/// The dynamic variables of a consumer.
#[derive(Debug)]
pub struct Dynamics {
    /// Number of chunks.
    nchunks: u32,
    /// Size of a head in words.
    head_words: usize,
    /// Size of a value in words.
    value_words: usize,
    /// Number of buckets minus 1.
    mask: u64,
    buckets: Shared,
    heads: Shared,
    values: Shared,
    /// Number of chunks that were ever used; may exceed `nchunks` by the number of CPUs.
    fresh: AtomicU32,
    lists: Vec<Lists>,
    /// Start value of all hashes.
    secret: u64,
    /// Whether the thread-locals deleted last are kept aside (the module `recent`).
    spares: bool,
    /// Counts of dropped variables.
    pub drops: Drops,
}

impl Dynamics {
    /// Returns about the maximum number of bytes that a space of `total` bytes takes.
    pub fn memory(total: usize, key_size: usize) -> usize {
        let heads = KEY.saturating_add(key_size).saturating_mul(FEW);
        total.saturating_add(heads)
    }

    /// Makes a space for keys of up to `key_size` and values of up to `value_size` bytes, both
    /// multiples of 8, within `total` bytes, or more if that is less than `FEW` variables take.
    /// `bare` is the maximum size of a variable without its management. Hashes start from `secret`.
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
        // As many buckets as chunks, rounded down to a power of two, so chains have one or two
        // chunks. If there are no chunks, every variable is dropped, and counted.
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

    /// Whether there is no room for any variable.
    pub fn is_empty(&self) -> bool {
        self.nchunks == 0
    }

    /// Announces that `cpu` may be looking at chunks. The caller must hold the result while it
    /// calls any function below except [`clean`](Self::clean). `firing` is the number of the
    /// current firing.
    #[inline(always)]
    pub fn enter(&self, cpu: usize, firing: u64) -> Option<Inside<'_>> {
        let lists = self.lists.get(cpu)?;
        let inside = &lists.inside;
        if lists.firing.load(Ordering::Relaxed) != firing {
            lists.firing.store(firing, Ordering::Relaxed);
            lists.spins.store(SPINS, Ordering::Relaxed);
        }
        inside.store(true, Ordering::Relaxed);
        // Pairs with the fence in `reclaim`: a CPU that does not see this flag has deleted its
        // chunks before we look, so we do not see the chunks that it reuses.
        fence(Ordering::SeqCst);
        Some(Inside(inside))
    }

    /// Returns the maximum number of words of a key.
    pub fn key_words(&self) -> usize {
        self.head_words - KEY / 8
    }

    /// Returns the values' memory.
    #[inline(always)]
    pub fn values(&self) -> &Shared {
        &self.values
    }

    /// Returns the offset of a chunk's value in [`values`](Self::values).
    #[inline(always)]
    pub fn value_of(&self, chunk: u32) -> usize {
        // Cannot overflow, because all values are in one block.
        self.first_word(chunk).wrapping_mul(8)
    }

    /// Returns the index of the first word of a chunk's value in [`values`](Self::values).
    #[inline(always)]
    fn first_word(&self, chunk: u32) -> usize {
        (chunk as usize).wrapping_mul(self.value_words)
    }

    /// Returns the first word of a chunk's value; if the value is a number, that is all of it.
    #[inline(always)]
    pub fn word(&self, chunk: u32) -> u64 {
        let value = self.values.word(self.first_word(chunk));
        value.map_or(0, |value| value.load(Ordering::Relaxed))
    }

    /// Stores the first word of a chunk's value.
    #[inline(always)]
    pub fn set_word(&self, chunk: u32, to: u64) {
        if let Some(value) = self.values.word(self.first_word(chunk)) {
            value.store(to, Ordering::Relaxed);
        }
    }

    /// Returns hash, length and `n` words of the key of a chunk.
    #[inline(always)]
    fn head(&self, chunk: u32, n: usize) -> Option<(&AtomicU64, &AtomicU64, &[AtomicU64])> {
        // Cannot overflow, because all heads are in one block.
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

    /// Returns the offset of a field of a chunk's head.
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

    /// Compares a chunk's key with `key`: `None` if hash or length differ, else whether the keys
    /// are equal. A chunk that is aside never matches.
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

    /// Returns the chunk of `key` on the chain that starts with `link`.
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

    /// Returns the chunk of the variable with `key`.
    #[inline]
    pub fn find(&self, key: &[u64]) -> Option<u32> {
        let hash = self.hash(key);
        let head = self.bucket(hash)?.load(Ordering::Acquire) as u32;
        self.walk(head, hash, key).ok()
    }

    /// Returns the chunk that `hint` names, if it holds the variable with `key`.
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

    /// Takes a bucket's lock. Returns the bucket's word from before, without the lock bit; `None`,
    /// with a drop counted, if the limit of this firing is used up.
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
            // Only this CPU writes its count, so load and store suffice.
            let left = spins.and_then(|spins| spins.load(Ordering::Relaxed).checked_sub(1));
            let (Some(left), Some(spins)) = (left, spins) else {
                self.drops.full.fetch_add(1, Ordering::Relaxed);
                return None;
            };
            spins.store(left, Ordering::Relaxed);
            spin_loop();
        }
    }

    /// Releases a bucket's lock, and sets `head` as its first link.
    fn unlock(bucket: &AtomicU64, was: u64, head: u32) {
        let version = (was & !(VERSION - 1)).wrapping_add(VERSION);
        bucket.store(version | u64::from(head), Ordering::Release);
    }

    /// Creates the variable with `key`, whose value starts with the word `first`, and returns its
    /// chunk. If the variable exists, returns its chunk unchanged. `free` is the private list of
    /// CPU `cpu`.
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
        // No other CPU has seen our chunk.
        Self::unlock(bucket, was, was as u32);
        self.give_back_unused(free, chunk);
        other
    }

    /// Returns a chunk to the private list that has got a key but is in no bucket. Its length is
    /// cleared, so that a hint from an earlier variable of this key does not find it.
    #[cold]
    fn give_back_unused(&self, free: &mut u32, chunk: u32) {
        if let Some((_, len, _)) = self.head(chunk, 0) {
            len.store(0, Ordering::Relaxed);
        }
        self.give_back(free, chunk);
    }

    /// Deletes the variable in `chunk`, which was found in this firing, unless another CPU has just
    /// deleted it. Returns `false` if its bucket could not be locked; the variable then still
    /// exists.
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

    /// Prepends the chain from `first` to `last` to `list`.
    fn push_chain(&self, list: &AtomicU32, first: u32, last: u32) {
        let mut head = list.load(Ordering::Relaxed);
        loop {
            self.set_link(last, FREE, head);
            // The only other writers take the whole list away, and may put back a part of it. Each
            // of them does so rarely, so this succeeds after a few tries.
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

    /// Returns the budget units of finding out that there is no free chunk.
    pub fn units_of_drop(&self) -> usize {
        self.lists.len().saturating_mul(ANOTHER)
    }

    /// Takes an unused chunk. If there is none, counts the drop by its reason.
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

    /// Returns a list of chunks for this CPU: its own clean ones, one that was never used, another
    /// CPU's clean ones, or its own dirty ones if no other CPU can be looking at them.
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

    /// Takes clean chunks of `lists`, normally at most [`SHARE`], because no other CPU can use a
    /// chunk that this one holds, and this CPU may never need another one. Takes all if the cleaner
    /// adds chunks at the same time.
    fn some_clean(&self, lists: &Lists) -> u32 {
        // Most of the time other CPUs have none; a load does not disturb them.
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

    /// Takes the chunks that this CPU has deleted, if no other CPU is inside.
    fn reclaim(&self, cpu: usize) -> u32 {
        // All these deletions come before this fence. CPUs that enter later look at chunks only
        // after the fence in `enter`, and see the deletions.
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

    /// Makes deleted chunks usable again. `grace` must return only when every CPU that was in probe
    /// context at the time of its call has left it. Runs in the control path; calls must not
    /// overlap.
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
