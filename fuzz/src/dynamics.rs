// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Dynamic variables against a map: what is stored is found until it is deleted, every refusal is counted once, and no
//! chunk is lost, given twice, or used again while a CPU may be looking at it.

use dtrace_engine::var::dynamic::{Dropped, Dynamics, Inside, Recent};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering::Relaxed;

/// Words of the longest key that fits.
const KEY_WORDS: usize = 3;
const VALUE: usize = 16;
/// Links, hash, length, key, value, and a bucket.
const CHUNK: usize = 24 + KEY_WORDS * 8 + VALUE + 8;

struct Cpu<'d> {
    /// Its private list.
    free: u32,
    /// It is in a long firing.
    inside: Option<Inside<'d>>,
}

struct Space<'d> {
    dynamics: &'d Dynamics,
    chunks: usize,
    cpus: Vec<Cpu<'d>>,
    /// What must be there: value and chunk.
    known: BTreeMap<Vec<u64>, (u64, u32)>,
    /// Chunks that wait to be used again, and who deleted them.
    deleted: BTreeMap<u32, usize>,
    refused: u64,
}

/// Number of chunks, of CPUs, and then an operation every three bytes.
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

    /// Does `work` as `cpu`, which is then looking at chunks.
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
                // A CPU that is always alone uses all there is, but for what is being rinsed.
                if self.cpus.len() == 1 && key.len() <= KEY_WORDS {
                    assert!(self.deleted.values().all(|by| *by == usize::MAX));
                    assert_eq!(self.known.len() + self.deleted.len(), self.chunks);
                }
            }
        }
        assert_eq!(self.drops(), self.refused);
    }

    /// What waits may be used again only by who deleted it, and alone: then all that it deleted may be.
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
            // Whoever deletes what somebody else has deleted does nothing.
            self.dynamics.remove(cpu, chunk);
            self.dynamics.remove(cpu, chunk);
            assert_eq!(self.deleted.insert(chunk, cpu), None);
            assert_eq!(self.known.remove(key).map(|(_, its)| its), Some(chunk));
        }
    }

    /// What a firing remembers may be of any age.
    fn look(&self, key: &[u64], remembered: u32) {
        let Ok(key) = <&[u64; 2]>::try_from(key) else {
            return;
        };
        let mut recent = Recent::told(match remembered {
            255 => u32::MAX,
            other => other % 32,
        });
        let found = self.dynamics.find(key);
        // What was learnt by the first look is what the second goes by.
        for _ in 0..2 {
            assert_eq!(self.dynamics.look(key, &mut recent), found);
        }
    }

    /// Cleans; `meanwhile` happens during the grace period, for whose end all long firings end.
    fn clean(&mut self, meanwhile: impl FnOnce(&mut Self)) {
        let d = self.dynamics;
        // What waits now is nobody's until the end of the grace period; the number is no CPU's.
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

    /// All that was put in is there, and when it is gone all chunks can be used again, each once.
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

/// One of a few dozen keys of up to one word too many.
fn key(which: u8) -> Vec<u64> {
    let words = usize::from(which) % (KEY_WORDS + 2);
    let word = |n: u64| u64::from(which / 16) * (n + 1);
    (0..words as u64).map(word).collect()
}
