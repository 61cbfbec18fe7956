// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Tests of retired probes: what is given back and when. Compares what is left with a plain list.

use crate::bindings::{end_grace_period, hold_grace_periods};
use crate::host_tests::table;
use crate::patience::Patience;
use crate::probe::{Held, ProbeRef};
use crate::provider::Description;
use crate::table::{NewProbe, Table};
use kernel::alloc::fail_after;
use kernel::error::{Result, E2BIG, EINVAL, ENOMEM};
use std::collections::{BTreeMap, HashSet};

type Parts = [String; 4];

fn create(table: &mut Table, parts: &Parts) -> Result<ProbeRef> {
    let [provider, module, func, name] = parts.each_ref().map(|part| part.as_bytes());
    table.create(&NewProbe {
        provider: 0,
        provider_name: provider,
        module,
        func,
        name,
        cookie: 0,
    })
}

fn parts(provider: &str, module: &str, func: &str, name: &str) -> Parts {
    [provider, module, func, name].map(str::to_owned)
}

fn retire(table: &mut Table, probe: ProbeRef) {
    probe.kill();
    table.retire(probe);
}

fn ids(table: &Table, parts: &Parts) -> Vec<u32> {
    let [provider, module, func, name] = parts.each_ref().map(|part| part.as_bytes());
    let desc = Description {
        provider,
        module,
        func,
        name,
    };
    let pattern = table.pattern(&desc);
    let found = table.matches(&pattern, &Patience::of_call(true)).unwrap();
    let found: Vec<_> = found.iter().map(|probe| probe.id()).collect();
    let mut walked = Vec::new();
    let endless = Patience::of_call(true);
    let next = |after| table.next_match(&pattern, after, &endless).unwrap();
    while let Some(probe) = next(walked.last().copied().unwrap_or(0)) {
        walked.push(probe.id());
    }
    assert_eq!(found, walked, "{parts:?}: both ways of matching agree");
    found
}

/// The names of a process' probe: the provider is the process' own, and the function may be another
/// process' too. Names have all lengths.
fn of_process(number: u32, nth: u32) -> Parts {
    // One in ten is long.
    let long = match nth % 10 {
        0 => "x".repeat(nth as usize * 4 % 180),
        _ => String::new(),
    };
    let module = if nth % 2 == 0 { "a.out" } else { "libc.so.6" };
    let func = format!("f{}{long}", (number * 7 + nth) % 500);
    parts(&format!("pid{number}"), module, &func, "entry")
}

#[test]
fn processes_come_and_go_and_memory_stays_flat() {
    let mut t = table();
    let kernel = parts("fbt", "vmlinux", "vfs_read", "entry");
    let first = create(&mut t, &kernel).unwrap();
    let (processes, probes) = if cfg!(miri) { (30, 5) } else { (100_000, 50) };
    let mut room = None;
    let mut greatest = first.id();
    for number in 1..=processes {
        let made: Vec<_> = (0..probes)
            .map(|nth| create(&mut t, &of_process(number, nth)).unwrap())
            .collect();
        for probe in &made {
            assert!(probe.id() > greatest, "ids are new ones");
            greatest = probe.id();
        }
        let ids: Vec<_> = made.iter().map(|probe| probe.id()).collect();
        made.into_iter().for_each(|probe| retire(&mut t, probe));
        for id in ids {
            assert!(t.get(id).is_none() && t.hold(id).is_none());
        }
        if number == 2000 || processes < 2000 && number == processes / 2 {
            room = Some(t.room());
        }
    }
    assert_eq!(Some(t.room()), room);
    let ([places, entries], [names, texts, slots]) = t.room();
    // Arenas grow by four places in this test, except those of texts.
    assert!(places <= 1 + 2 * 50 + 4 && entries < 1000, "{:?}", t.room());
    assert!(
        names < 1000 && texts < 1000 && slots <= 2048,
        "{:?}",
        t.room()
    );
    assert_eq!(ids(&t, &parts("", "", "", "")), [first.id()]);
    assert_eq!(ids(&t, &kernel), [first.id()]);
    assert_eq!(ids(&t, &parts("pid1", "", "", "")), []);
}

#[test]
fn a_name_that_is_not_to_be_printed_is_refused() {
    let mut t = table();
    for good in ["größe", "operator/", "type:.eq.[2]interface {}"] {
        create(&mut t, &parts("p", "m", good, "n")).unwrap();
    }
    let room = t.room();
    for at in 0..4 {
        for bad in ["\u{1b}[2J", "a\nb", "\u{9b}2J", "\u{202e}"] {
            let mut parts = parts("p", "m", "f", "n");
            parts[at] = bad.to_owned();
            assert_eq!(create(&mut t, &parts).err(), Some(EINVAL), "{parts:?}");
        }
    }
    let latin = NewProbe {
        provider: 0,
        provider_name: b"p",
        module: b"m",
        func: b"\xf6",
        name: b"n",
        cookie: 0,
    };
    assert_eq!(t.create(&latin).err(), Some(EINVAL));
    for (at, bad) in [(0, "a:b"), (1, "a/b"), (1, "a:b"), (3, "a:b")] {
        let mut parts = parts("p", "m", "f", "n");
        parts[at] = bad.to_owned();
        assert_eq!(create(&mut t, &parts).err(), Some(EINVAL), "{parts:?}");
    }
    assert_eq!(t.room(), room);
    assert_eq!(ids(&t, &parts("p", "m", "", "")).len(), 3);
}

/// No probe is overwritten while a CPU may be using it or a [`Held`] exists.
#[test]
fn what_may_be_in_use_stays_as_it_is() {
    let mut t = table();
    let [old, held, new] = ["old", "held", "new"].map(|func| parts("pid1", "m", func, "entry"));
    hold_grace_periods(true);
    let seen = create(&mut t, &old).unwrap();
    let kept = Held::new(create(&mut t, &held).unwrap());
    let (seen_id, kept_id) = (seen.id(), kept.id());
    retire(&mut t, seen);
    retire(&mut t, kept.probe());
    for _ in 0..10 {
        let other = create(&mut t, &new).unwrap();
        assert!(other.id() > kept_id);
        assert_eq!((seen.id(), seen.names().func), (seen_id, &b"old"[..]));
        retire(&mut t, other);
    }
    // After a grace period, the place, name and text of the first retired probe are used again;
    // those of the held one are not.
    let mut before = None;
    for n in 0..10 {
        end_grace_period();
        let other = create(&mut t, &parts("pid2", "mm", "other", "return")).unwrap();
        assert_eq!((kept.id(), kept.names().func), (kept_id, &b"held"[..]));
        retire(&mut t, other);
        t.sweep();
        if n == 3 {
            before = Some(t.room());
        }
    }
    assert_eq!(Some(t.room()), before);
    assert!(t.get(kept_id).is_none());
    let place = kept.place();
    drop(kept);
    t.sweep();
    let mut places = HashSet::new();
    for n in 0..20 {
        end_grace_period();
        places.insert(create(&mut t, &of_process(n, n)).unwrap().place());
    }
    assert!(places.contains(&place));
    hold_grace_periods(false);
}

/// Probes that share a name leave its chain from any position.
#[test]
fn one_of_many_of_a_name_goes() {
    let mut t = table();
    let n = if cfg!(miri) { 50u32 } else { 100_000 };
    let all: Vec<_> = (0..n)
        .map(|i| create(&mut t, &parts("pid1", "m", &format!("f{i}"), "entry")).unwrap())
        .collect();
    let goes = |i: usize| i % 3 == 0 || i % 7 < 3;
    let left: Vec<_> = (0..all.len())
        .filter(|i| !goes(*i))
        .map(|i| all[i].id())
        .collect();
    for (_, probe) in all.into_iter().enumerate().filter(|(i, _)| goes(*i)) {
        retire(&mut t, probe);
    }
    assert_eq!(ids(&t, &parts("", "", "", "entry")), left);
    assert_eq!(ids(&t, &parts("pid*", "m", "", "")), left);
}

#[test]
fn a_text_that_was_given_for_ever_stays() {
    let mut t = table();
    let text = t.intern(b"pid7").unwrap();
    for n in 0..200 {
        let probe = create(&mut t, &parts("pid7", "pid7", "pid7", "pid7")).unwrap();
        retire(&mut t, probe);
        let other = create(&mut t, &of_process(n, n)).unwrap();
        retire(&mut t, other);
    }
    assert_eq!(text, b"pid7");
    assert!(std::ptr::eq(t.intern(b"pid7").unwrap(), text));
}

/// After the greatest id, the least ones come again, except those in use.
#[test]
fn ids_begin_again_when_all_were_given_out() {
    let mut t = table();
    let name = |n: u32| parts("p", "m", &format!("f{n}"), "n");
    let first: Vec<_> = (0..5).map(|n| create(&mut t, &name(n)).unwrap()).collect();
    assert_eq!(ids(&t, &parts("p", "", "", "")), [1, 2, 3, 4, 5]);
    retire(&mut t, first[1]);
    let held = Held::new(first[3]);
    retire(&mut t, first[3]);
    t.skip_ids(u32::MAX - 2);
    let last: Vec<_> = (5..10).map(|n| create(&mut t, &name(n)).unwrap()).collect();
    let given: Vec<_> = last.iter().map(|probe| probe.id()).collect();
    // 2 has an empty entry that has not been removed yet.
    assert_eq!(given, [u32::MAX - 1, u32::MAX, 6, 7, 8]);
    let all = [1, 3, 5, 6, 7, 8, u32::MAX - 1, u32::MAX];
    assert_eq!(ids(&t, &parts("p", "", "", "")), all);
    assert!(all
        .iter()
        .all(|id| t.get(*id).is_some_and(|probe| probe.id() == *id)));
    assert!([0, 2, 4, 9, u32::MAX - 2]
        .iter()
        .all(|id| t.get(*id).is_none()));
    drop(held);
}

/// Everything of a table that can be observed.
fn picture(table: &Table) -> impl PartialEq + std::fmt::Debug {
    let names = ["", "pid*", "*e*", "fbt"].map(|provider| ids(table, &parts(provider, "", "", "")));
    (names, ids(table, &parts("", "", "", "entry")))
}

#[test]
fn want_of_memory_leaves_the_table_whole() {
    let mut t = table();
    for n in 0..40 {
        create(&mut t, &of_process(1, n)).unwrap();
    }
    let (mut failures, mut number) = (0, 1);
    // Enough rounds for each arena to grow.
    for _ in 0..600 {
        number += 1;
        let before = picture(&t);
        for n in 0.. {
            fail_after(Some(n));
            let made = create(&mut t, &of_process(number, number));
            fail_after(None);
            match made {
                Ok(_) => break,
                Err(error) => assert_eq!(error, ENOMEM),
            }
            failures += 1;
            assert_eq!(picture(&t), before, "after {n} allocations");
            assert_eq!(ids(&t, &of_process(number, number)), []);
        }
    }
    assert!(failures > 100, "{failures}");
    // Retiring needs no memory, and creating needs none where a place is free.
    let before = t.room();
    fail_after(Some(0));
    let all: Vec<_> = (1..=t.room().0[0] as u32)
        .filter_map(|id| t.get(id))
        .collect();
    let count = all.len();
    all.into_iter().for_each(|probe| retire(&mut t, probe));
    for n in 0..count as u32 {
        let made = create(&mut t, &of_process(2, n));
        assert!(made.is_ok(), "{n} of {count}");
    }
    fail_after(None);
    assert_eq!(t.room().0, before.0);
}

/// A probe in the plain list.
struct Plain {
    parts: Parts,
    live: bool,
    probe: ProbeRef,
}

/// A table and a plain list. Each operation is done to both.
struct Both {
    table: std::mem::ManuallyDrop<Table>,
    plain: BTreeMap<u32, Plain>,
    /// Probes that were retired while held, with their ids and names.
    held: Vec<(Held, u32, Parts)>,
    random: u64,
}

impl Both {
    fn random(&mut self, below: usize) -> usize {
        self.random = self
            .random
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(1);
        (self.random >> 33) as usize % below
    }

    fn one_of<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.random(of.len())]
    }

    fn create(&mut self) {
        let provider = format!("pid{}", self.random(30));
        let func = format!("f{}{}", self.random(40), "y".repeat(self.random(3) * 30));
        let module = self.one_of(&["", "a", "pid1"]);
        let name = self.one_of(&["entry", "return", "a"]);
        let parts = parts(&provider, module, &func, name);
        let probe = create(&mut self.table, &parts).unwrap();
        let dead: Vec<_> = self
            .plain
            .iter()
            .filter(|(_, p)| !p.live && p.parts == parts)
            .collect();
        match dead.is_empty() {
            true => assert!(!self.plain.contains_key(&probe.id())),
            false => assert!(dead.iter().any(|(id, _)| **id == probe.id())),
        }
        let live = true;
        self.plain.insert(probe.id(), Plain { parts, live, probe });
    }

    fn some_live(&mut self) -> Option<u32> {
        let live: Vec<_> = self
            .plain
            .iter()
            .filter(|(_, p)| p.live)
            .map(|(id, _)| *id)
            .collect();
        (!live.is_empty()).then(|| live[self.random(live.len())])
    }

    fn retire(&mut self) {
        let Some(id) = self.some_live() else {
            return;
        };
        let gone = self.plain.remove(&id).unwrap();
        if self.random(4) == 0 {
            self.held.push((Held::new(gone.probe), id, gone.parts));
        }
        retire(&mut self.table, gone.probe);
    }

    fn remove(&mut self) {
        if let Some(id) = self.some_live() {
            let plain = self.plain.get_mut(&id).unwrap();
            plain.probe.kill();
            plain.live = false;
        }
    }

    fn let_go(&mut self) {
        if !self.held.is_empty() {
            let at = self.random(self.held.len());
            drop(self.held.swap_remove(at));
        }
        self.table.sweep();
    }

    fn check(&mut self) {
        let provider = self.one_of(&["", "pid1", "pid*", "*2", "pid2?", "a", "nosuch"]);
        let module = self.one_of(&["", "a", "*", "p*", "pid1"]);
        let func = self.one_of(&["", "f1", "f1*", "*y", "f[23]", "f7", "a"]);
        let name = self.one_of(&["", "entry", "re*", "a", "*"]);
        let wanted = parts(provider, module, func, name);
        let fits = |have: &String, want: &String| {
            want.is_empty() || dtrace_uapi::glob::matches(want.as_bytes(), have.as_bytes())
        };
        let found: Vec<_> = self
            .plain
            .iter()
            .filter(|(_, p)| p.live && p.parts.iter().zip(&wanted).all(|(h, w)| fits(h, w)))
            .map(|(id, _)| *id)
            .collect();
        assert_eq!(ids(&self.table, &wanted), found, "{wanted:?}");
        for (id, plain) in &self.plain {
            let there = self.table.get(*id).map(|probe| probe.names().func);
            assert_eq!(there, plain.live.then_some(plain.parts[2].as_bytes()));
        }
        for (held, id, parts) in &self.held {
            let names = held.names();
            let names = [names.provider, names.module, names.func, names.name];
            assert_eq!(names, parts.each_ref().map(|part| part.as_bytes()));
            assert_eq!(held.id(), *id);
            assert!(self.table.get(*id).is_none());
        }
    }
}

#[test]
fn a_table_does_what_a_list_would() {
    let (walks, steps) = if cfg!(miri) { (1, 300) } else { (20, 5_000) };
    for seed in 0..walks {
        let mut both = Both {
            table: table(),
            plain: BTreeMap::new(),
            held: Vec::new(),
            random: seed,
        };
        hold_grace_periods(true);
        for step in 0..steps {
            // The ids begin again now and then.
            if step % 1000 == 999 {
                both.table.skip_ids(u32::MAX - 20);
            }
            // The number of probes grows and shrinks in turns.
            let creates = if step / 500 % 2 == 0 { 6 } else { 3 };
            match both.random(12) {
                n if n < creates => both.create(),
                9 => both.let_go(),
                10 => end_grace_period(),
                11 if step % 4 == 0 => both.remove(),
                _ => both.retire(),
            }
            if step % 10 == 0 {
                both.check();
            }
        }
        hold_grace_periods(false);
    }
}

/// Finding that no name matches costs a look at each name, whichever part it belongs to.
#[test]
fn names_that_are_passed_by_are_counted() {
    let mut t = table();
    for n in 0..20_000 {
        create(&mut t, &parts("fbt", "vmlinux", &format!("f{n}"), "entry")).unwrap();
    }
    let desc = Description {
        provider: b"zz*",
        module: b"",
        func: b"",
        name: b"",
    };
    let patience = Patience::of_call(false);
    let mut results = (0..16_384).map(|_| t.matches(&t.pattern(&desc), &patience).map(|m| m.len()));
    assert!(results.by_ref().take(100).all(|found| found == Ok(0)));
    assert_eq!(results.find(|found| *found != Ok(0)), Some(Err(E2BIG)));
}

/// A search that is interrupted goes on where it stopped, and finds what an uninterrupted one
/// finds.
#[test]
fn a_search_in_stretches_finds_the_same() {
    let mut t = table();
    for n in 0..20_000 {
        create(
            &mut t,
            &parts("fbt", "vmlinux", &format!("{:a<60}{n}", ""), "entry"),
        )
        .unwrap();
    }
    let desc = Description {
        provider: b"",
        module: b"",
        func: b"*aaaaaaab*19999",
        name: b"",
    };
    let (pattern, mut after, mut stretches) = (t.pattern(&desc), 0, 0);
    let found = loop {
        match t.next_match(&pattern, after, &Patience::of_stretch()) {
            Ok(found) => break found,
            Err(last) => {
                assert!(last > after);
                (after, stretches) = (last, stretches + 1);
            }
        }
    };
    assert!(found.is_none() && stretches > 3, "{stretches}");
}
