// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Tests of the tables and lists.

use crate::names::Name;
use crate::patience::Patience;
use crate::probe::{Probe, ProbeRef};
use crate::provider::Description;
use crate::sys::arena::{Arena, Strings};
use crate::sys::ipmap::{IpMap, Keyed};
use crate::sys::percpu::CpuGuard;
use crate::sys::rculist::{Head, Links, Writer};
use crate::table::{NewProbe, Table};
use core::sync::atomic::{AtomicUsize, Ordering};
use kernel::alloc::{fail_after, KVVec, GFP_KERNEL};
use kernel::error::E2BIG;
use std::mem::ManuallyDrop;

/// A table that is never dropped. The module does not drop its table either while its probes are in
/// use.
pub fn table() -> ManuallyDrop<Table> {
    // SAFETY: the table is never dropped, so its references stay valid.
    let (probes, texts, names): (Arena<Probe>, Strings, Arena<Name>) =
        unsafe { (Arena::new(4), Strings::new(), Arena::new(4)) };
    ManuallyDrop::new(Table::new(probes, texts, names, 0x5ec1_2e7a_11d5_0b5c))
}

fn add(table: &mut Table, name: &str) -> ProbeRef {
    let mut parts = name.split(':').map(str::as_bytes);
    let mut part = || parts.next().unwrap();
    table
        .create(&NewProbe {
            provider: 0,
            provider_name: part(),
            module: part(),
            func: part(),
            name: part(),
            cookie: 7,
        })
        .unwrap()
}

fn desc(name: &str) -> Description<'_> {
    let mut parts = name.split(':').map(str::as_bytes);
    let mut part = || parts.next().unwrap();
    Description {
        provider: part(),
        module: part(),
        func: part(),
        name: part(),
    }
}

/// The ids that a description matches. Checks that both ways of matching agree.
fn ids(table: &Table, name: &str) -> Vec<u32> {
    let desc = desc(name);
    let pattern = table.pattern(&desc);
    let found: Vec<u32> = table
        .matches(&pattern, &Patience::of_call(true))
        .unwrap()
        .iter()
        .map(|p| p.id())
        .collect();
    let mut walked = Vec::new();
    let endless = Patience::of_call(true);
    let next = |after| table.next_match(&pattern, after, &endless).unwrap();
    while let Some(probe) = next(walked.last().copied().unwrap_or(0)) {
        walked.push(probe.id());
    }
    assert_eq!(found, walked, "{name}: both ways of matching agree");
    found
}

fn filled() -> ManuallyDrop<Table> {
    let mut t = table();
    for name in [
        "dtrace:::BEGIN",
        "dtrace:::END",
        "fbt:vmlinux:vfs_read:entry",
        "fbt:vmlinux:vfs_read:return",
        "fbt:vmlinux:vfs_write:entry",
        "fbt:ext4:ext4_read:entry",
        "syscall:vmlinux:read:entry",
        "syscall:vmlinux:read:return",
    ] {
        add(&mut t, name);
    }
    t
}

#[test]
fn ids_are_dense_and_names_come_back() {
    let t = filled();
    for id in 1..=8 {
        assert_eq!(t.get(id).unwrap().id(), id);
    }
    assert!(t.get(0).is_none() && t.get(9).is_none() && t.get(u32::MAX).is_none());
    let probe = t.get(5).unwrap();
    assert_eq!(probe.names().func, b"vfs_write");
    assert_eq!(&probe.desc().module[..8], b"vmlinux\0");
    assert_eq!(probe.cookie(), 7);
}

#[test]
fn plain_descriptions() {
    let t = filled();
    assert_eq!(ids(&t, "fbt:vmlinux:vfs_read:entry"), [3]);
    assert_eq!(ids(&t, ":::BEGIN"), [1]);
    assert_eq!(ids(&t, "::read:"), [7, 8]);
    assert_eq!(ids(&t, "syscall:::entry"), [7]);
    assert_eq!(ids(&t, "::nosuch:"), []);
    assert_eq!(ids(&t, "fbt:::BEGIN"), []);
    assert_eq!(ids(&t, ":::"), [1, 2, 3, 4, 5, 6, 7, 8]);
}

#[test]
fn globs() {
    let t = filled();
    assert_eq!(ids(&t, "fbt::vfs_*:"), [3, 4, 5]);
    assert_eq!(ids(&t, "fbt::*read:entry"), [3, 6]);
    assert_eq!(ids(&t, "*:::e*"), [3, 5, 6, 7]);
    assert_eq!(ids(&t, "?bt:[!v]*::"), [6]);
    assert_eq!(ids(&t, "dtrace:::*"), [1, 2]);
    assert_eq!(ids(&t, "*:*:*:*"), [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(ids(&t, ":nosuch*::"), []);
}

#[test]
fn probes_of_one_name_are_different() {
    let mut t = filled();
    let twin = add(&mut t, "fbt:vmlinux:vfs_read:entry");
    assert_eq!(twin.id(), 9);
    assert_eq!(ids(&t, "fbt:vmlinux:vfs_read:entry"), [3, 9]);
}

#[test]
fn a_removed_probe_comes_back_under_its_id() {
    let mut t = filled();
    t.get(6).unwrap().kill();
    assert!(t.get(6).is_none());
    assert_eq!(ids(&t, "fbt:ext4::"), []);
    assert_eq!(ids(&t, "::ext4*:"), []);
    assert_eq!(add(&mut t, "fbt:ext4:ext4_read:entry").id(), 6);
    assert_eq!(ids(&t, "fbt:ext4::"), [6]);
    assert_eq!(add(&mut t, "fbt:ext4:ext4_read:return").id(), 9);
}

#[test]
fn names_that_do_not_fit_are_refused() {
    let mut t = table();
    let long = [b'x'; 192];
    let mut new = NewProbe {
        provider: 0,
        provider_name: b"p",
        module: b"",
        func: &long,
        name: b"n",
        cookie: 0,
    };
    assert_eq!(t.create(&new).err(), Some(E2BIG));
    new.func = &long[1..];
    assert!(t.create(&new).is_ok());
}

#[test]
fn many_names() {
    let mut t = table();
    let n = if cfg!(miri) { 300 } else { 20_000 };
    for i in 0..n {
        add(&mut t, &format!("fbt:vmlinux:func_{i}:entry"));
        add(&mut t, &format!("fbt:vmlinux:func_{i}:return"));
    }
    assert_eq!(ids(&t, "fbt::func_17:"), [35, 36]);
    assert_eq!(ids(&t, "fbt::func_2?9:return").len(), 10);
    assert_eq!(ids(&t, "fbt:::entry").len(), n);
}

#[test]
fn lists_of_several_owners() {
    static A: Head<u32> = Head::new();
    static B: Head<u32> = Head::new();
    let values = |head: &Head<u32>| head.iter(&CpuGuard).copied().collect::<Vec<_>>();
    // SAFETY: the lists of this test are used by no other thread.
    let mut w = unsafe { Writer::new() };
    let (mut one, mut two) = (Links::new(), Links::new());
    one.reserve(2).unwrap();
    two.reserve(2).unwrap();
    two.add(&A, 2).unwrap();
    one.add(&A, 1).unwrap();
    one.add(&B, 3).unwrap();
    assert!(one.add(&A, 9).is_err(), "no room was reserved");
    assert!(values(&A).is_empty() && values(&B).is_empty());
    let mut told = Vec::new();
    one.publish(&mut w, |e| told.push(*e));
    two.publish(&mut w, |e| told.push(*e));
    assert!(one.add(&A, 9).is_err(), "no room beside what is linked");
    one.reserve(2).unwrap();
    one.add(&A, 4).unwrap();
    one.add(&A, 5).unwrap();
    one.unlink_if(&mut w, |e| *e == 5);
    one.publish(&mut w, |e| told.push(*e));
    assert_eq!(values(&A), [1, 2, 4]);
    assert_eq!(told, [1, 3, 2, 4]);

    one.unlink_if(&mut w, |e| *e == 1);
    assert_eq!(values(&A), [2, 4]);
    two.unlink_if(&mut w, |_| true);
    assert_eq!(values(&A), [4]);
    drop(two);
    let mut gone = Vec::new();
    A.unlink_all(&mut w, |e| gone.push(*e));
    assert!(values(&A).is_empty() && gone == [4]);
    one.unlink_if(&mut w, |_| true);
    assert!(values(&B).is_empty());
}

/// Nodes leave a list from any position: first, last, and neighbours. Each leaves its own list.
#[test]
fn what_goes_leaves_the_rest_in_order() {
    static LISTS: [Head<u32>; 3] = [const { Head::new() }; 3];
    let values = |n: usize| LISTS[n].iter(&CpuGuard).copied().collect::<Vec<_>>();
    // SAFETY: the lists of this test are used by no other thread.
    let mut w = unsafe { Writer::new() };
    let (mut one, mut two) = (Links::new(), Links::new());
    for n in 0..120u32 {
        let owner = if n / 6 % 2 == 0 { &mut one } else { &mut two };
        owner.reserve(1).unwrap();
        owner.add(&LISTS[n as usize % 3], n).unwrap();
        owner.publish(&mut w, |_| {});
    }
    let goes = |n: u32| n / 6 % 2 == 0 && n % 9 < 5;
    one.unlink_if(&mut w, |n| n % 9 < 5);
    for list in 0..3u32 {
        let left: Vec<_> = (0..120).filter(|n| n % 3 == list && !goes(*n)).collect();
        assert_eq!(values(list as usize), left);
    }
    one.unlink_if(&mut w, |_| true);
    assert_eq!((one.linked(), two.linked()), (0, 60));
    two.unlink_if(&mut w, |_| true);
    assert!((0..3).all(|n| values(n).is_empty()));
}

/// A function of a module, which may be loaded at different addresses.
struct Function {
    ip: AtomicUsize,
    id: u64,
}

impl Keyed for Function {
    fn ip(&self) -> usize {
        self.ip.load(Ordering::Relaxed)
    }

    fn key(&self) -> u64 {
        self.id
    }

    fn move_to(&self, ip: usize) {
        self.ip.store(ip, Ordering::Relaxed);
    }
}

/// `n` functions from address `base` on.
fn functions(n: usize, base: usize) -> KVVec<Function> {
    functions_from(0, n, base)
}

/// As [`functions`], with ids from `first` on.
fn functions_from(first: u64, n: usize, base: usize) -> KVVec<Function> {
    let mut list = KVVec::new();
    for (nth, id) in (0..n).zip(first..) {
        let ip = AtomicUsize::new(base + nth * 16);
        list.push(Function { ip, id }, GFP_KERNEL).unwrap();
    }
    list
}

#[test]
fn addresses_find_what_was_added_and_not_removed() {
    let map = IpMap::new().unwrap();
    map.extend(functions(300, 0x1000)).unwrap();
    assert_eq!(map.get(0x1000 + 299 * 16).unwrap().id, 299);
    assert!(map.get(0x1008).is_none());
    assert!(map.get(0).is_none());
    map.remove(0x1000 + 7 * 16);
    map.remove(0x1008);
    assert!(map.get(0x1000 + 7 * 16).is_none());
    assert_eq!(map.get(0x1000 + 8 * 16).unwrap().id, 8);
}

#[test]
fn a_module_that_comes_back_needs_no_more_memory() {
    let map = IpMap::new().unwrap();
    let mut room = None;
    for round in 1..200 {
        // The addresses differ each time, but some of them were used in an earlier round.
        let base = 0x10_0000 + round * 0x750;
        map.extend(functions(100, base)).unwrap();
        for n in 0..100 {
            assert_eq!(
                map.get(base + n * 16).unwrap().id,
                n as u64,
                "round {round}"
            );
        }
        assert_eq!(*room.get_or_insert(map.room()), map.room(), "round {round}");
        for n in 0..100 {
            map.remove(base + n * 16);
            assert!(map.get(base + n * 16).is_none());
        }
    }
}

#[test]
fn an_address_is_found_at_the_first_look_if_asked_to_be() {
    // Addresses at equal distances would not collide.
    let all = || (1..1000).map(|nth| nth * nth * 16);
    let map = IpMap::new().unwrap();
    for (id, ip) in (0..).zip(all()) {
        map.extend(functions_from(id, 1, ip)).unwrap();
    }
    assert!(!all().all(|ip| map.is_first(ip)));
    for ip in all() {
        map.prefer([ip, 8].into_iter());
        assert!(map.is_first(ip));
        assert!(all().all(|ip| map.get(ip).is_some()));
    }
}

/// Modules are loaded and unloaded, each at any of the same few addresses.
#[test]
fn addresses_find_who_is_there_now() {
    const FUNCTIONS: u64 = 100;
    let at = |place: usize, nth: u64| 0x10_0000 + place * 0x640 + nth as usize * 16;
    let map = IpMap::new().unwrap();
    let mut places = [None; 8];
    let mut random = 1u64;
    for step in 0..2000 {
        random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        let (module, place) = (random >> 33 & 7, (random >> 40 & 7) as usize);
        if let Some(loaded) = places.iter().position(|p| *p == Some(module)) {
            (0..FUNCTIONS).for_each(|nth| map.remove(at(loaded, nth)));
            places[loaded] = None;
        }
        if places[place].is_none() {
            let new = functions_from(module * FUNCTIONS, FUNCTIONS as usize, at(place, 0));
            map.extend(new).unwrap();
            places[place] = Some(module);
        }
        map.prefer((0..step % 7).map(|nth| at(place, nth * 13)));
        for (place, module) in places.iter().enumerate() {
            for nth in 0..FUNCTIONS {
                let found = map.get(at(place, nth)).map(|function| function.id);
                let there = module.map(|module| module * FUNCTIONS + nth);
                assert_eq!(found, there, "step {step}, place {place}");
            }
        }
    }
    let (slots, values) = map.room();
    assert!(slots <= 16384 && values == 8 * FUNCTIONS as usize);
}

#[test]
fn addresses_without_memory_are_not_added() {
    let map = IpMap::new().unwrap();
    map.extend(functions(10, 0x1000)).unwrap();
    map.remove(0x1000);
    let mut failures = 0;
    for n in 0.. {
        let more = functions(500, 0x8000);
        fail_after(Some(n));
        let added = map.extend(more);
        fail_after(None);
        assert_eq!(map.get(0x1010).unwrap().id, 1);
        if added.is_ok() {
            break;
        }
        failures += 1;
        assert!(map.get(0x8000).is_none());
    }
    assert!(failures > 0);
    assert_eq!(map.get(0x8000 + 499 * 16).unwrap().id, 499);
}
