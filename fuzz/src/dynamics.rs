// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Dynamic variables against a model: a stored value is found until it is deleted, every refusal is
//! counted once, and no chunk is lost, allocated twice, or reused while a CPU may still look at it.

use dtrace_engine::var::dynamic::{Dropped, Dynamics, Inside, Recent};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering::Relaxed;

/// Words of the longest valid key.
const KEY_WORDS: usize = 3;
const VALUE: usize = 16;
/// Links, hash, length, key, value, and a bucket, bytes.
const CHUNK: usize = 24 + KEY_WORDS * 8 + VALUE + 8;

struct Cpu<'d> {
    /// The CPU's private free list.
    free: u32,
    /// Set while the CPU is in a long firing.
    inside: Option<Inside<'d>>,
}

struct Space<'d> {
    dynamics: &'d Dynamics,
    chunks: usize,
    cpus: Vec<Cpu<'d>>,
    /// The variables that must exist: value and chunk by key.
    known: BTreeMap<Vec<u64>, (u64, u32)>,
    /// Chunks that were deleted and not reused, and the CPU that has deleted each.
    deleted: BTreeMap<u32, usize>,
    refused: u64,
}

/// The input: number of chunks, number of CPUs, then three bytes for each operation.
pub fn dynamics(data: &[u8]) {
    let [size, cpus, operations @ ..] = data else {
        return;
    };
    let (chunks, cpus) = (usize::from(size % 24), usize::from(cpus % 4) + 1);
    let dynamics = Dynamics::new(chunks * CHUNK, KEY_WORDS * 8, VALUE, usize::MAX, cpus, 7);
    let dynamics = dynamics.expect("a little memory");
    let cpu = |_| Cpu {
        free: 0,
        inside: None,
    };
    let mut space = Space {
        dynamics: &dynamics,
        chunks,
        cpus: (0..cpus).map(cpu).collect(),
        known: BTreeMap::new(),
        deleted: BTreeMap::new(),
        refused: 0,
    };
    for operation in operations.chunks_exact(3) {
        space.operate(operation[0], operation[1], operation[2]);
    }
    space.finish();
}

impl Space<'_> {
    fn operate(&mut self, what: u8, which: u8, more: u8) {
        let cpu = usize::from(what >> 4) % self.cpus.len();
        let key = key(which);
        match what & 15 {
            0..=6 => self.firing(cpu, |space| space.store(cpu, &key, more.into())),
            7..=9 => self.firing(cpu, |space| space.delete(cpu, &key)),
            10 | 11 => self.look(&key, more.into()),
            12 => {
                let inside = &mut self.cpus[cpu].inside;
                *inside = match inside.take() {
                    Some(_) => None,
                    None => self.dynamics.enter(cpu, 1),
                };
            }
            13 => self.clean(|_| ()),
            14 => self.clean(|space| space.firing(cpu, |space| space.store(cpu, &key, 1))),
            _ => self.clean(|space| space.firing(cpu, |space| space.delete(cpu, &key))),
        }
        self.check(&key);
    }

    /// Does `work` on `cpu` during a firing, in which the CPU may look at chunks.
    fn firing(&mut self, cpu: usize, work: impl FnOnce(&mut Self)) {
        let _inside = match self.cpus[cpu].inside {
            Some(_) => None,
            None => self.dynamics.enter(cpu, 1),
        };
        work(self);
    }

    fn store(&mut self, cpu: usize, key: &[u64], value: u64) {
        let d = self.dynamics;
        let stored = match d.find(key) {
            Some(chunk) => Ok(chunk),
            None => d.insert(cpu, &mut self.cpus[cpu].free, key, value),
        };
        match stored {
            Ok(chunk) => {
                let word = d.values().u64(d.value_of(chunk));
                word.expect("a value within the block")
                    .store(value, Relaxed);
                self.used_again(cpu, chunk);
                self.known.insert(key.to_vec(), (value, chunk));
                let chunks: BTreeSet<u32> = self.known.values().map(|(_, chunk)| *chunk).collect();
                assert_eq!(chunks.len(), self.known.len(), "{chunk} has two variables");
            }
            Err(Dropped) => {
                self.refused += 1;
                assert!(!self.known.contains_key(key));
                // On a single CPU an insertion fails only if all chunks are in use or being rinsed.
                if self.cpus.len() == 1 && key.len() <= KEY_WORDS {
                    assert!(self.deleted.values().all(|by| *by == usize::MAX));
                    assert_eq!(self.known.len() + self.deleted.len(), self.chunks);
                }
            }
        }
        assert_eq!(self.drops(), self.refused);
    }

    /// A deleted chunk may be reused before cleaning only by the CPU that has deleted it, while no
    /// other CPU is in a firing. Then all chunks that this CPU has deleted may be reused.
    fn used_again(&mut self, cpu: usize, chunk: u32) {
        if let Some(by) = self.deleted.get(&chunk) {
            assert_eq!(*by, cpu, "{chunk} is another's");
            let mut others = self.cpus.iter().enumerate();
            let alone = others.all(|(other, its)| other == cpu || its.inside.is_none());
            assert!(alone, "{chunk} is used too early");
            self.deleted.retain(|_, by| *by != cpu);
        }
    }

    fn drops(&self) -> u64 {
        let drops = &self.dynamics.drops;
        let counters = [&drops.full, &drops.rinsing, &drops.dirty];
        counters.map(|counter| counter.load(Relaxed)).iter().sum()
    }

    fn delete(&mut self, cpu: usize, key: &[u64]) {
        if let Some(chunk) = self.dynamics.find(key) {
            // Deleting a variable that is already deleted has no effect.
            self.dynamics.remove(cpu, chunk);
            self.dynamics.remove(cpu, chunk);
            assert_eq!(self.deleted.insert(chunk, cpu), None);
            assert_eq!(self.known.remove(key).map(|(_, its)| its), Some(chunk));
        }
    }

    /// The chunk that a firing remembers may be out of date.
    fn look(&self, key: &[u64], remembered: u32) {
        let Ok(key) = <&[u64; 2]>::try_from(key) else {
            return;
        };
        let mut recent = Recent::told(match remembered {
            255 => u32::MAX,
            other => other % 32,
        });
        let found = self.dynamics.find(key);
        // The second lookup uses what the first one has remembered.
        for _ in 0..2 {
            assert_eq!(self.dynamics.look(key, &mut recent), found);
        }
    }

    /// Runs the cleaner. `meanwhile` runs during the grace period, at whose end all long firings
    /// have ended.
    fn clean(&mut self, meanwhile: impl FnOnce(&mut Self)) {
        let d = self.dynamics;
        // During the grace period no CPU may reuse the deleted chunks. `usize::MAX` is not the
        // number of a CPU.
        let rinsed: Vec<u32> = self.deleted.keys().copied().collect();
        for by in self.deleted.values_mut() {
            *by = usize::MAX;
        }
        let mut meanwhile = Some(meanwhile);
        d.clean(|| {
            if let Some(meanwhile) = meanwhile.take() {
                meanwhile(self);
            }
            for cpu in &mut self.cpus {
                cpu.inside = None;
            }
        });
        for chunk in rinsed {
            assert_eq!(self.deleted.remove(&chunk), Some(usize::MAX));
        }
    }

    fn check(&self, key: &[u64]) {
        let d = self.dynamics;
        let found = d.find(key);
        assert_eq!(found, self.known.get(key).map(|(_, chunk)| *chunk));
        if let (Some(chunk), Some((value, _))) = (found, self.known.get(key)) {
            let word = d.values().u64(d.value_of(chunk)).expect("a value");
            assert_eq!(word.load(Relaxed), *value);
        }
    }

    /// Checks that all variables exist, deletes them, and checks that every chunk can then be
    /// allocated exactly once.
    fn finish(mut self) {
        for key in self.known.keys().cloned().collect::<Vec<_>>() {
            self.check(&key);
            self.delete(0, &key);
        }
        self.clean(|_| ());
        let mut all = BTreeSet::new();
        for (number, cpu) in self.cpus.iter_mut().enumerate() {
            cpu.inside = None;
            for word in 0..=self.chunks as u64 {
                let key = [1 << 40 | word, number as u64];
                let free = &mut cpu.free;
                if let Ok(chunk) = self.dynamics.insert(number, free, &key, 0) {
                    assert!(all.insert(chunk), "{chunk} is given twice");
                }
            }
        }
        assert_eq!(all.len(), self.chunks);
    }
}

/// Returns one of a few dozen keys, of which the longest are one word too long.
fn key(which: u8) -> Vec<u64> {
    let words = usize::from(which) % (KEY_WORDS + 2);
    let word = |n: u64| u64::from(which / 16) * (n + 1);
    (0..words as u64).map(word).collect()
}
