// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! The run time of threads without the time of firings, on simulated CPUs whose time the tests
//! control.

mod common;

use common::asm::asm;
use common::{action, clause, config, Steps};
use dtrace_engine::ledger::Ledger;
use dtrace_engine::Consumer;
use dtrace_uapi::action::Action;

/// Number of accounts of a ledger with one set.
const ALL: u64 = 8;

/// CPUs that run threads and stop them for firings.
struct Machine {
    ledger: Ledger<1>,
    now: u64,
    /// CPU time that each thread has used.
    gross: [u64; 3],
}

impl Machine {
    fn new() -> Self {
        Self {
            ledger: Ledger::new(),
            now: 1_000_000,
            gross: [0; 3],
        }
    }

    fn run(&mut self, who: usize, ns: u64) {
        self.now += ns;
        self.gross[who] += ns;
    }

    /// A firing of `ns` that reads `vtimestamp` twice.
    fn fire(&mut self, who: usize, ns: u64) -> u64 {
        let read = || self.ledger.net(who as u64, self.now, self.gross[who]);
        let first = read();
        assert_eq!(first, read());
        self.run(who, ns);
        self.ledger.charge(who as u64, self.now, ns);
        first
    }
}

#[test]
fn firings_take_no_time() {
    let mut m = Machine::new();
    m.run(1, 100);
    assert_eq!(m.fire(1, 5_000_000), 100);
    assert_eq!(m.fire(1, 7), 100);
    m.run(1, 1);
    assert_eq!(m.fire(1, 0), 101);
}

#[test]
fn each_thread_pays_for_its_own_firings_across_switches() {
    let mut m = Machine::new();
    let mut net = [0; 3];
    for round in 0..100 {
        for (who, net) in net.iter_mut().enumerate() {
            let ns = 10 * (who as u64 + 1) + round;
            m.run(who, ns);
            *net += ns;
            for took in 0..round % 4 {
                assert_eq!(m.fire(who, 1000 * took), *net);
            }
        }
    }
}

#[test]
fn time_does_not_go_back() {
    let ledger = Ledger::<1>::new();
    assert_eq!(ledger.net(1, 1, 100), 100);
    // The scheduler's numbers are read while another CPU changes them, so they may decrease.
    assert_eq!(ledger.net(1, 2, 90), 100);
    // More than the thread has run.
    ledger.charge(1, 3, 1000);
    assert_eq!(ledger.net(1, 4, 110), 100);
    ledger.charge(1, 5, u64::MAX);
    assert_eq!(ledger.net(1, 6, u64::MAX), 100);
}

#[test]
fn the_account_used_least_recently_goes_to_who_has_none() {
    let ledger = Ledger::<1>::new();
    for who in 0..ALL {
        ledger.charge(who, 10 + who, 1 + who);
    }
    for who in 0..ALL {
        assert_eq!(ledger.net(who, 20 + who, 1000), 999 - who);
    }
    // The first thread's account is the least recently used one. It goes to the new thread, and the
    // first thread's time then grows.
    ledger.charge(ALL, 30, 500);
    assert_eq!(ledger.net(ALL, 31, 1000), 500);
    assert_eq!(ledger.net(2, 32, 1000), 997);
    assert_eq!(ledger.net(0, 33, 1000), 1000);
    // That was the second thread's account.
    assert_eq!(ledger.net(1, 34, 1000), 1000);
    assert_eq!(ledger.net(ALL, 35, 1000), 500);
}

#[test]
fn threads_on_many_cpus_keep_their_accounts_apart() {
    const ROUNDS: u64 = 20_000;
    let ledger = Ledger::<2>::new();
    std::thread::scope(|scope| {
        for who in 1..=4u64 {
            let ledger = &ledger;
            scope.spawn(move || {
                for round in 1..=ROUNDS {
                    ledger.charge(who, round, who);
                    assert_eq!(ledger.net(who, round, who * (ROUNDS + round)), who * ROUNDS);
                }
            });
        }
    });
}

#[test]
fn threads_that_take_accounts_from_each_other_never_go_back() {
    let ledger = Ledger::<1>::new();
    std::thread::scope(|scope| {
        for cpu in 0..4u64 {
            let ledger = &ledger;
            scope.spawn(move || {
                // Each CPU has six threads; together they are three times as many as the accounts.
                let mut last = [0; 6];
                for round in 1..20_000u64 {
                    let n = (round % 6) as usize;
                    let who = cpu * 6 + n as u64;
                    ledger.charge(who, round, 3);
                    let net = ledger.net(who, round, round * 4);
                    assert!(
                        net >= last[n] && net <= round * 4,
                        "{net} after {}",
                        last[n]
                    );
                    last[n] = net;
                }
            });
        }
    });
}

#[test]
fn who_reads_vtimestamp_is_known() {
    let reads = |text: &str| {
        let consumer = Consumer::new(config()).unwrap();
        assert!(!consumer.reads_vtimestamp());
        let value = action(Action::Difexpr, asm(text));
        consumer.add_clause(&clause(None, vec![value])).unwrap();
        consumer.add_clause(&clause(None, vec![])).unwrap();
        consumer.reads_vtimestamp()
    };
    assert!(reads("ldgs vtimestamp, %r1\n ret %r1"));
    assert!(!reads("ldgs timestamp, %r1\n ret %r1"));
    let consumer = Consumer::new(config()).unwrap();
    let predicate = Some(asm("ldgs vtimestamp, %r1\n ret %r1"));
    consumer.add_clause(&clause(predicate, vec![])).unwrap();
    assert!(consumer.reads_vtimestamp());
}
