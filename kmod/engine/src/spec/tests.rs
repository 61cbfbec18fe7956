// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

use super::*;

fn counts(all: &Speculations) -> (u64, u64) {
    let load = |n: &AtomicU64| n.load(Ordering::Relaxed);
    (load(&all.busy), load(&all.unavailable))
}

/// Speculations of which the only one is in `state`.
fn in_state(state: State) -> Speculations {
    let all = Speculations::new(1).unwrap();
    all.states[0].store(state as u32, Ordering::Relaxed);
    all
}

const STATES: [State; 7] = [
    State::Inactive,
    State::Active,
    State::ActiveOne,
    State::ActiveMany,
    State::Committing,
    State::CommittingMany,
    State::Discarding,
];

#[test]
fn ids_are_given_out_until_there_is_none() {
    let all = Speculations::new(2).unwrap();
    assert_eq!([all.open(), all.open(), all.open()], [1, 2, 0]);
    assert_eq!(counts(&all), (0, 1));
    // If one is being ended, the refusal counts as busy instead of unavailable.
    assert!(all.record(2, false));
    assert_eq!(all.commit(2, false), Some(Duty::Move));
    assert_eq!((all.open(), counts(&all)), (0, (1, 1)));
    assert!(all.begin_cleaning());
    all.end_cleaning();
    assert_eq!(all.open(), 2);
    assert!(!all.exists(0) && all.exists(2) && !all.exists(3) && !all.exists(u64::MAX));
}

#[test]
fn what_may_record() {
    let after = |mine: bool| {
        STATES.map(|state| {
            let all = in_state(state);
            all.record(1, mine).then(|| all.state(1))
        })
    };
    let (one, many) = (Some(State::ActiveOne), Some(State::ActiveMany));
    assert_eq!(after(false), [None, one, many, many, None, None, None]);
    assert_eq!(after(true), [None, one, one, many, None, None, None]);
    assert!(!in_state(State::Active).record(0, false));
    assert!(!in_state(State::Active).record(2, false));
}

#[test]
fn what_commit_and_discard_leave_to_do() {
    use Duty::*;
    let commit = |mine: bool| STATES.map(|state| in_state(state).commit(1, mine));
    let (alone, many) = (Some(MoveAndRelease), Some(Move));
    assert_eq!(commit(false), [None, alone, many, many, None, None, None]);
    assert_eq!(commit(true), [None, alone, alone, many, None, None, None]);
    let discard = |mine: bool| STATES.map(|state| in_state(state).discard(1, mine));
    let (alone, many) = (Some(EmptyAndRelease), Some(Empty));
    assert_eq!(discard(false), [None, many, many, many, None, None, None]);
    assert_eq!(discard(true), [None, many, alone, many, None, None, None]);
}

#[test]
fn the_cleaner_ends_what_it_began_with() {
    let all = Speculations::new(3).unwrap();
    for id in 1..=3 {
        assert_eq!(all.open(), id);
    }
    assert!(!all.begin_cleaning());
    assert_eq!(all.discard(1, false), Some(Duty::Empty));
    assert!(all.begin_cleaning());
    // This one is committed too late for the current round.
    assert!(all.record(2, false));
    assert_eq!(all.commit(2, false), Some(Duty::Move));
    assert_eq!(
        [1, 2, 3].map(|id| all.cleaning(id)),
        [Some(Duty::Empty), None, None]
    );
    all.end_cleaning();
    assert_eq!(
        [1, 2, 3].map(|id| all.state(id)),
        [State::Inactive, State::CommittingMany, State::Active]
    );
    assert!(all.begin_cleaning());
    assert_eq!(all.cleaning(2), Some(Duty::Move));
}

/// CPUs open, record, commit and discard at random while the cleaner runs from time to time,
/// between their "firings". Every speculation must be empty when it is opened.
#[test]
fn cpus_agree_on_who_ends_a_speculation() {
    use std::sync::Mutex;
    const CPUS: usize = 3;
    const IDS: usize = 2;
    const ROUNDS: u32 = if cfg!(miri) { 100 } else { 30_000 };
    let all = Speculations::new(IDS).unwrap();
    // Bytes that each CPU has recorded. The lock stands for "interrupts are off": a firing, or the
    // cleaner's visit.
    let held: [Mutex<[u32; IDS]>; CPUS] = Default::default();
    let opened = AtomicU64::new(0);
    let fire = |cpu: usize, dice: u64| {
        let mut mine = held[cpu].lock().unwrap();
        let id = 1 + dice / 4 % IDS as u64;
        let slot = id as usize - 1;
        match dice % 4 {
            0 if all.open() != 0 => {
                opened.fetch_add(1, Ordering::Relaxed);
            }
            0 => {}
            1 => {
                if all.record(id, mine[slot] != 0) {
                    mine[slot] += 1;
                }
            }
            kind => {
                let duty = match kind {
                    2 => all.commit(id, mine[slot] != 0),
                    _ => all.discard(id, mine[slot] != 0),
                };
                if let Some(duty) = duty {
                    mine[slot] = 0;
                    if matches!(duty, Duty::MoveAndRelease | Duty::EmptyAndRelease) {
                        all.release(id);
                    }
                }
            }
        }
    };
    let cleaner = Mutex::new(());
    let clean = || {
        let _one_at_a_time = cleaner.lock().unwrap();
        if all.begin_cleaning() {
            for cpu in &held {
                let mut mine = cpu.lock().unwrap();
                for id in all.ids() {
                    if all.cleaning(id).is_some() {
                        mine[id as usize - 1] = 0;
                    }
                }
            }
            all.end_cleaning();
        }
    };
    let running = AtomicU32::new(CPUS as u32);
    std::thread::scope(|scope| {
        for cpu in 0..CPUS {
            let (fire, clean, running) = (&fire, &clean, &running);
            scope.spawn(move || {
                let mut dice = 88172645463325252u64 + cpu as u64;
                for _ in 0..ROUNDS {
                    dice ^= dice << 13;
                    dice ^= dice >> 7;
                    dice ^= dice << 17;
                    fire(cpu, dice >> 20);
                    if dice >> 40 & 0x3f == 0 {
                        clean();
                    }
                }
                running.fetch_sub(1, Ordering::SeqCst);
            });
        }
        while running.load(Ordering::SeqCst) != 0 {
            // While all CPUs are between two firings, inactive speculations are empty.
            let quiet: std::vec::Vec<_> = held.iter().map(|cpu| cpu.lock().unwrap()).collect();
            for id in all.ids().filter(|id| all.state(*id) == State::Inactive) {
                for cpu in &quiet {
                    assert_eq!(cpu[id as usize - 1], 0, "speculation {id} is not empty");
                }
            }
            drop(quiet);
            std::thread::yield_now();
        }
    });
    assert!(opened.load(Ordering::Relaxed) > 10);
}
