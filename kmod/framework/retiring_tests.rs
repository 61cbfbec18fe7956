// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Tests of retired probes, from the consumers' side.

use super::*;
use crate::bindings::hold_grace_periods;

impl World {
    /// Creates the probes of a process that has just started.
    fn start(&mut self, number: u32, probes: u32) -> Vec<ProbeRef> {
        let names: Vec<_> = (0..probes).map(|n| format!("p{number}.{n}")).collect();
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        self.create(&names)
    }

    fn room(&self) -> ([usize; 2], [usize; 3]) {
        self.state.table.room()
    }
}

/// A consumer's wildcard keeps no memory of ended processes, whether the consumer traces or waits
/// for `GO`.
#[test]
fn a_wildcard_keeps_nothing_of_processes_that_have_ended() {
    for begins in [true, false] {
        let mut w = World::new();
        let (all, other) = (w.consumer(), w.consumer());
        w.enable(&all, &image(&["*"])).ok().unwrap();
        w.enable(&other, &image(&["p*", "one"])).ok().unwrap();
        if begins {
            w.begin(&all);
        }
        let mut room = None;
        let processes = if cfg!(miri) { 60 } else { 4_000 };
        for number in 0..processes {
            let made = w.start(number, 20);
            assert_eq!(w.armed().len(), 3 + made.len());
            if begins {
                assert!(made.iter().all(|probe| walked(probe) == 1));
            }
            w.state.retire(w.index, &made);
            assert_eq!(w.armed().len(), 3);
            if number == processes / 2 {
                room = Some((w.room(), all.missed()));
            }
        }
        if !cfg!(miri) {
            assert_eq!(room, Some((w.room(), all.missed())));
            let ([places, _], [names, ..]) = w.room();
            assert!(places < 6_000 && names < 6_000, "{:?}", w.room());
        }
        drop(w.state.withdraw(&all));
        drop(w.state.withdraw(&other));
        assert!(w.armed().is_empty());
    }
}

/// A member gets back what was paid for retired probes, and can pay for others with it.
#[test]
fn a_users_quota_is_given_back_with_the_probes() {
    let mut w = World::with(PRIV_USER);
    let payer = Users::new(LIMITS).payer(Some(7)).unwrap();
    let privileges = Privileges {
        kernel: false,
        kernel_memory: false,
        ..Privileges::ALL
    };
    let all = w.consumer_of(privileges, None, payer);
    w.enable(&all, &image(&["p*"])).ok().unwrap();
    w.begin(&all);
    let processes = if cfg!(miri) { 20 } else { 4_000 };
    for number in 0..processes {
        let made = w.start(number, 20);
        assert_eq!(made.iter().map(|probe| walked(probe)).sum::<usize>(), 20);
        w.state.retire(w.index, &made);
    }
    assert_eq!(all.missed(), 0);
}

/// While a consumer's memory holds an ECB of a probe, the probe's place is not used again.
#[test]
fn who_has_an_ecb_keeps_the_probe() {
    let mut w = World::new();
    let consumer = w.consumer();
    let gone = w.start(7, 3);
    // The ECB of a probe that stays is in the same block.
    w.enable(&consumer, &image(&["one", "p7*"])).ok().unwrap();
    w.begin(&consumer);
    let kept: Vec<_> = gone
        .iter()
        .map(|probe| (*probe, probe.id(), probe.place()))
        .collect();
    w.state.retire(w.index, &gone);
    let mut places = BTreeSet::new();
    let mut churn = |w: &mut World, from: u32| {
        for number in from..from + 300 {
            let made = w.start(number, 20);
            places.extend(made.iter().map(|probe| probe.place()));
            w.state.retire(w.index, &made);
        }
        places.clone()
    };
    let used = churn(&mut w, 100);
    for (probe, id, place) in &kept {
        assert!(!used.contains(place));
        assert_eq!(probe.id(), *id);
        assert!(probe.names().name.starts_with(b"p7."));
        assert!(w.state.table.get(*id).is_none());
    }
    // The consumer still knows the EPIDs of retired probes, although they do not fire.
    let described = consumer.engine.eprobe(2, |desc, _| desc.probeid).ok();
    assert_eq!(described, Some(kept[0].1));
    drop(w.state.withdraw(&consumer));
    let used = churn(&mut w, 1000);
    assert!(kept.iter().all(|(_, _, place)| used.contains(place)));
}

/// A firing that has begun when its probe is retired finds the probe unchanged, and its ECBs as
/// well.
#[test]
fn a_firing_ends_on_the_probe_that_it_began_on() {
    let mut w = World::new();
    let consumer = w.consumer();
    w.enable(&consumer, &image(&["p*"])).ok().unwrap();
    w.begin(&consumer);
    let [probe] = w.start(1, 1)[..] else {
        unreachable!()
    };
    let id = probe.id();
    hold_grace_periods(true);
    let mut firing = probe.enabled().iter(&CpuGuard);
    w.state.retire(w.index, &[probe]);
    for number in 2..2000 {
        let made = w.start(number, 2);
        assert!(made.iter().all(|made| made.place() != probe.place()));
        w.state.retire(w.index, &made);
    }
    // The iterator still reaches the ECB that was taken away.
    assert!(firing.next().is_some_and(|ecb| ecb.probe.id() == id));
    assert_eq!((probe.id(), probe.names().name), (id, &b"p1.0"[..]));
    assert_eq!(walked(probe), 0);
    hold_grace_periods(false);
    drop(w.state.withdraw(&consumer));
}

/// A new probe with the same names gets another id.
#[test]
fn what_was_retired_does_not_come_back() {
    let mut w = World::new();
    let first = w.start(5, 1)[0].id();
    let probe = w.state.table.get(first).unwrap();
    w.state.retire(w.index, &[probe]);
    assert!(w.state.table.get(first).is_none());
    let second = w.start(5, 1)[0].id();
    assert!(second > first);
    let probe = w.state.table.get(second).unwrap();
    w.state.remove(w.index, &[probe]);
    assert_eq!(w.start(5, 1)[0].id(), second);
    // A retirement with the index of another provider does nothing.
    let probe = w.state.table.get(second).unwrap();
    w.state.retire(w.index + 1, &[probe]);
    assert!(w.state.table.get(second).is_some());
}
