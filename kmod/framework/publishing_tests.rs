// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Tests of which consumers' ECBs a firing passes: from `GO` until the tracing ends.

use super::*;

#[test]
fn firings_pass_who_traces_and_nobody_else() {
    let mut w = World::new();
    let (first, second, idle) = (w.consumer(), w.consumer(), w.consumer());
    for consumer in [&first, &second, &idle] {
        w.enable(consumer, &image(&["one", "two", "one"]))
            .ok()
            .unwrap();
    }
    let (one, two) = (w.probes[0], w.probes[1]);
    assert_eq!((walked(one), walked(two)), (0, 0), "before GO");
    assert_eq!(w.armed().len(), 2);
    w.begin(&second);
    w.begin(&first);
    assert_eq!((walked(one), walked(two)), (4, 2));
    // Consumers are in the order in which they began to trace. What one of them enables later is
    // linked at once.
    let entries = one.enabled().iter(&CpuGuard);
    let whose: Vec<_> = entries.map(|e| Arc::ptr_eq(&e.consumer, &first)).collect();
    assert_eq!(whose, [false, true]);
    assert_eq!(w.replicate(&first, "two", "three").ok().unwrap(), 1);
    assert_eq!(walked(w.probes[2]), 1);
    first.engine.stop();
    drop(w.state.withdraw(&first));
    assert_eq!((walked(one), walked(two), walked(w.probes[2])), (2, 1, 0));
    let refusal = w.replicate(&first, "two", "three").unwrap_err();
    assert_eq!(told(refusal), (EINVAL, "the tracing has ended".into()));
    second.engine.kill();
    drop(w.state.withdraw(&second));
    assert_eq!((walked(one), walked(two)), (0, 0));
    // A consumer that waits for `GO` keeps the probes armed.
    assert_eq!(w.armed().len(), 2);
    w.begin(&idle);
    assert_eq!((walked(one), walked(two)), (2, 1));
    drop(w.state.withdraw(&idle));
    assert!(w.armed().is_empty() && walked(one) == 0);
}

/// A firing passes each consumer once, however many enablings that has at the probe. The clauses
/// fire in the order of their EPIDs.
#[test]
fn a_firing_passes_a_consumer_once() {
    let mut w = World::new();
    let (one, other) = (w.consumer(), w.consumer());
    w.enable(&one, &image(&["one", "two", "one"])).ok().unwrap();
    w.enable(&other, &image(&["one"])).ok().unwrap();
    w.enable(&one, &image(&["three", "one"])).ok().unwrap();
    w.begin(&one);
    w.begin(&other);
    w.replicate(&one, "two", "one").ok().unwrap();
    w.replicate(&other, "one", "two").ok().unwrap();
    let found = [0, 1, 2].map(|n| (walked(w.probes[n]), passed(w.probes[n])));
    assert_eq!(found, [(5, 2), (2, 2), (1, 1)]);
    let entries = w.probes[0].enabled().iter(&CpuGuard);
    let epids: Vec<Vec<_>> = entries
        .map(|at| ecbs(at).iter().map(|ecb| ecb.epid).collect())
        .collect();
    assert_eq!(epids, [vec![1, 3, 5, 6], vec![1]]);
    drop(w.state.withdraw(&one));
    let found = [0, 1, 2].map(|n| (walked(w.probes[n]), passed(w.probes[n])));
    assert_eq!(found, [(1, 1), (1, 1), (0, 0)]);
    drop(w.state.withdraw(&other));
    assert!(w.armed().is_empty());
}

/// Probes that go, come back, or cannot be armed, all before `GO`.
#[test]
fn what_waits_goes_with_its_probe() {
    let mut w = World::new();
    let consumer = w.consumer();
    w.enable(&consumer, &image(&["*", "late", "two"]))
        .ok()
        .unwrap();
    let two = w.probes[1];
    w.state.remove(w.index, &[two]);
    assert!(!w.armed().contains(&two.id()));
    assert_eq!(w.create(&["two"])[0].id(), two.id());
    let late = w.create(&["late"])[0];
    let again = w.create(&["bad"])[0];
    assert_eq!(consumer.missed(), 1);
    assert!(w.armed().contains(&two.id()) && w.armed().contains(&late.id()));
    w.begin(&consumer);
    // The two bad probes have no ECBs; the note and the count of missed probes are all that is left
    // of them.
    let found = [w.probes[0], two, late, w.probes[3], again].map(walked);
    assert_eq!(found, [1, 2, 2, 0, 0]);
    assert_eq!(consumer.missed(), 1);
    drop(w.state.withdraw(&consumer));
    assert!(w.armed().is_empty());
}

/// A part of a probe that could not be enabled is reported to consumers that wait for `GO`, unless
/// it was before their enabling.
#[test]
fn what_is_missed_before_go_is_counted() {
    let mut w = World::new();
    let (early, late) = (w.consumer(), w.consumer());
    let [one, two, ..] = w.probes[..] else {
        unreachable!()
    };
    one.miss();
    w.enable(&early, &image(&["one", "one", "two"]))
        .ok()
        .unwrap();
    one.miss();
    two.miss();
    w.enable(&late, &image(&["one"])).ok().unwrap();
    w.begin(&early);
    w.begin(&late);
    assert_eq!((early.missed(), late.missed()), (3, 0));
    w.replicate(&early, "two", "one").ok().unwrap();
    assert_eq!(early.missed(), 3);
}
