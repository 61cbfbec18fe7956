// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Lock-free code in every order that the memory model allows. A few threads stand for CPUs and the
//! cleaner, and loom runs them in all ways that differ. `make models` builds this with `cfg(loom)`;
//! otherwise the file is empty.
//!
//! A CPU's firings and the cleaner's work on that CPU exclude each other, and a grace period ends
//! when each CPU has been seen between firings. A mutex for each CPU models both.
#![cfg(loom)]

use dtrace_engine::spec::{Duty, Speculations, State};
use dtrace_engine::var::dynamic::{Dynamics, Recent};
use loom::sync::{Arc, Mutex, MutexGuard};
use loom::thread;
use std::sync::atomic::Ordering::Relaxed;

/// Maximum number of times that a thread is preempted where it need not wait. Bugs need few
/// preemptions.
const PREEMPTIONS: usize = 3;

fn model(run: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(PREEMPTIONS);
    builder.check(run);
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("nobody panics with it")
}

/// The pieces of one CPU for each speculation, and the records that it has committed.
#[derive(Default)]
struct Records {
    pieces: [Vec<u32>; 2],
    principal: Vec<u32>,
}

impl Records {
    fn piece(&mut self, id: u64) -> &mut Vec<u32> {
        &mut self.pieces[id as usize - 1]
    }
}

/// Two CPUs, and speculations.
struct Speculating {
    all: Speculations,
    cpus: [Mutex<Records>; 2],
}

impl Speculating {
    /// Makes `count` speculations, all of them open.
    fn begin(count: usize) -> Arc<Self> {
        let all = Speculations::new(count).expect("memory");
        for id in all.ids() {
            assert_eq!(all.open(), id);
        }
        let cpus = Default::default();
        Arc::new(Self { all, cpus })
    }

    fn speculate(&self, cpu: usize, id: u64, record: u32) -> bool {
        let mut cpu = lock(&self.cpus[cpu]);
        let piece = cpu.piece(id);
        let may = self.all.record(id, !piece.is_empty());
        if may {
            piece.push(record);
        }
        may
    }

    fn fulfil(&self, records: &mut Records, id: u64, duty: Option<Duty>) {
        let mut piece = match duty {
            Some(_) => std::mem::take(records.piece(id)),
            None => return,
        };
        if matches!(duty, Some(Duty::Move | Duty::MoveAndRelease)) {
            records.principal.append(&mut piece);
        }
        if matches!(duty, Some(Duty::MoveAndRelease | Duty::EmptyAndRelease)) {
            self.all.release(id);
        }
    }

    fn commit(&self, cpu: usize, id: u64) -> bool {
        let mut cpu = lock(&self.cpus[cpu]);
        let duty = self.all.commit(id, !cpu.piece(id).is_empty());
        self.fulfil(&mut cpu, id, duty);
        duty.is_some()
    }

    fn discard(&self, cpu: usize, id: u64) {
        let mut cpu = lock(&self.cpus[cpu]);
        let duty = self.all.discard(id, !cpu.piece(id).is_empty());
        self.fulfil(&mut cpu, id, duty);
    }

    fn clean(&self) {
        if !self.all.begin_cleaning() {
            return;
        }
        for cpu in &self.cpus {
            let mut cpu = lock(cpu);
            for id in self.all.ids() {
                let duty = self.all.cleaning(id);
                self.fulfil(&mut cpu, id, duty);
            }
        }
        self.all.end_cleaning();
    }

    /// Returns all committed records, after a last round of the cleaner.
    fn end(&self) -> Vec<u32> {
        self.clean();
        for id in self.all.ids() {
            assert_eq!(self.all.state(id), State::Inactive);
        }
        let mut committed = Vec::new();
        for cpu in &self.cpus {
            let cpu = lock(cpu);
            assert_eq!(cpu.pieces, [[], []]);
            committed.extend(&cpu.principal);
        }
        committed.sort();
        committed
    }
}

/// Id of the first speculation; of the only one in most models.
const ONE: u64 = 1;
const TWO: u64 = 2;

#[test]
fn what_was_recorded_before_a_commit_is_committed_once() {
    model(|| {
        let spec = Speculating::begin(1);
        let other = spec.clone();
        let cpu = thread::spawn(move || other.speculate(1, ONE, 2));
        let other = spec.clone();
        let cleaner = thread::spawn(move || other.clean());
        assert!(spec.speculate(0, ONE, 1));
        assert!(spec.commit(0, ONE));
        let second = cpu.join().expect("a CPU");
        cleaner.join().expect("the cleaner");
        let expected: &[u32] = if second { &[1, 2] } else { &[1] };
        assert_eq!(spec.end(), expected);
    });
}

#[test]
fn what_is_discarded_does_not_come_back_when_the_number_is_used_again() {
    model(|| {
        let spec = Speculating::begin(1);
        let other = spec.clone();
        let cpu = thread::spawn(move || {
            other.speculate(1, ONE, 2);
            // Either the discarding CPU has ended the first speculation, or there is none to open.
            if other.all.open() == 0 {
                return false;
            }
            assert!(other.speculate(1, ONE, 3));
            other.commit(1, ONE)
        });
        let other = spec.clone();
        let cleaner = thread::spawn(move || other.clean());
        spec.discard(0, ONE);
        let again = cpu.join().expect("a CPU");
        cleaner.join().expect("the cleaner");
        let expected: &[u32] = if again { &[3] } else { &[] };
        assert_eq!(spec.end(), expected);
    });
}

#[test]
fn of_two_that_commit_one_does() {
    model(|| {
        let spec = Speculating::begin(1);
        assert!(spec.speculate(0, ONE, 1));
        let other = spec.clone();
        let cpu = thread::spawn(move || (other.speculate(1, ONE, 2), other.commit(1, ONE)));
        let first = spec.commit(0, ONE);
        let (recorded, second) = cpu.join().expect("a CPU");
        assert!(first != second);
        assert!(first || recorded);
        let expected: &[u32] = if recorded { &[1, 2] } else { &[1] };
        assert_eq!(spec.end(), expected);
    });
}

#[test]
fn what_ends_while_another_is_cleaned_waits_for_the_next_round() {
    model(|| {
        let spec = Speculating::begin(2);
        assert!(spec.speculate(0, ONE, 1) && spec.speculate(0, TWO, 2));
        assert!(spec.commit(1, ONE));
        let other = spec.clone();
        let cleaner = thread::spawn(move || other.clean());
        assert!(spec.commit(1, TWO));
        cleaner.join().expect("the cleaner");
        assert_eq!(spec.end(), [1, 2]);
    });
}

const FIRST: [u64; 2] = [1, 10];
const SECOND: [u64; 2] = [2, 20];

/// Two CPUs and their dynamic variables. A key has two words, and the value is equal to the second.
struct Variables {
    space: Dynamics,
    /// The list of free chunks of each CPU.
    cpus: [Mutex<u32>; 2],
}

impl Variables {
    /// Makes room for `count` variables, and creates the first.
    fn begin(count: usize) -> Arc<Self> {
        let chunk = 24 + 16 + 8 + 8;
        let space = Dynamics::new(count * chunk, 16, 8, chunk, 2, 7).expect("memory");
        let cpus = Default::default();
        let variables = Arc::new(Self { space, cpus });
        assert!(variables.assign(0, &FIRST));
        variables
    }

    /// Runs a firing.
    fn firing<T>(&self, cpu: usize, run: impl FnOnce(&mut u32) -> T) -> T {
        let mut free = lock(&self.cpus[cpu]);
        let inside = self.space.enter(cpu, 1).expect("a CPU");
        let result = run(&mut free);
        drop(inside);
        result
    }

    fn value(&self, chunk: u32) -> u64 {
        let at = self.space.value_of(chunk);
        self.space.values().u64(at).expect("a value").load(Relaxed)
    }

    fn assign(&self, cpu: usize, key: &[u64; 2]) -> bool {
        self.firing(cpu, |free| {
            self.space.insert(cpu, free, key, key[1]).is_ok()
        })
    }

    fn delete(&self, cpu: usize, key: &[u64; 2]) {
        self.firing(cpu, |_| {
            if let Some(chunk) = self.space.find(key) {
                assert!(self.space.remove(cpu, chunk));
            }
        });
    }

    /// Starts another CPU, which deletes the first variable and creates the second.
    fn exchange(variables: &Arc<Self>) -> thread::JoinHandle<bool> {
        let other = variables.clone();
        thread::spawn(move || {
            other.delete(1, &FIRST);
            other.assign(1, &SECOND)
        })
    }

    /// Checks that a variable that is found keeps its own value as long as the firing lasts.
    fn read(&self, cpu: usize, key: &[u64; 2]) -> bool {
        self.firing(cpu, |_| match self.space.find(key) {
            Some(chunk) => {
                assert_eq!(self.value(chunk), key[1]);
                true
            }
            None => false,
        })
    }

    fn clean(&self) {
        self.space.clean(|| {
            for cpu in &self.cpus {
                drop(lock(cpu));
            }
        });
    }

    /// Checks that no chunk is lost: after all variables are deleted, there is room for `count`
    /// variables again.
    fn end(&self, count: u64) {
        for key in [FIRST, SECOND] {
            self.delete(0, &key);
        }
        self.clean();
        self.clean();
        for n in 0..count {
            assert!(self.assign(1, &[3, n]));
        }
        assert!(!self.assign(1, &[3, count]));
    }
}

#[test]
fn a_chunk_is_not_used_again_under_who_has_found_it() {
    model(|| {
        let variables = Variables::begin(1);
        let cpu = Variables::exchange(&variables);
        variables.read(0, &FIRST);
        variables.read(0, &SECOND);
        let made = cpu.join().expect("a CPU");
        assert_eq!(variables.read(0, &SECOND), made);
        variables.end(1);
    });
}

#[test]
fn what_a_cpu_remembers_is_the_variable_or_nothing() {
    model(|| {
        let variables = Variables::begin(1);
        let cpu = Variables::exchange(&variables);
        variables.firing(0, |_| {
            let mut recent = Recent::told(1);
            if let Some(chunk) = variables.space.look(&FIRST, &mut recent) {
                assert_eq!(variables.value(chunk), FIRST[1]);
            }
        });
        cpu.join().expect("a CPU");
        variables.end(1);
    });
}

#[test]
fn what_is_cleaned_was_let_go_by_everybody() {
    model(|| {
        let variables = Variables::begin(1);
        let cpu = Variables::exchange(&variables);
        let other = variables.clone();
        let cleaner = thread::spawn(move || other.clean());
        variables.read(0, &FIRST);
        let made = cpu.join().expect("a CPU");
        cleaner.join().expect("the cleaner");
        assert_eq!(variables.read(0, &SECOND), made);
        variables.end(1);
    });
}

#[test]
fn of_two_that_make_a_variable_one_does() {
    model(|| {
        let variables = Variables::begin(3);
        let other = variables.clone();
        let cpu = thread::spawn(move || assert!(other.assign(1, &SECOND)));
        assert!(variables.assign(0, &SECOND));
        cpu.join().expect("a CPU");
        // After it is deleted once, it does not exist.
        variables.delete(0, &SECOND);
        assert!(!variables.read(0, &SECOND));
    });
}

#[test]
fn of_two_that_delete_a_variable_one_does() {
    model(|| {
        let variables = Variables::begin(2);
        let other = variables.clone();
        let cpu = thread::spawn(move || other.delete(1, &FIRST));
        variables.delete(0, &FIRST);
        cpu.join().expect("a CPU");
        variables.end(2);
    });
}
