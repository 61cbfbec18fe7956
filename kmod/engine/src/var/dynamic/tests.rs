// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Variables that are created and deleted, on one CPU and on several.

use super::*;

const SECRET: u64 = 0x5ec1_2e7a_11d5_0b5c;

fn store(d: &Dynamics, cpu: usize, free: &mut u32, key: &[u64], value: u64) -> bool {
    match d
        .find(key)
        .map_or_else(|| d.insert(cpu, free, key, value), Ok)
    {
        Ok(chunk) => {
            let word = d.values().u64(d.value_of(chunk)).unwrap();
            word.store(value, Ordering::Relaxed);
            true
        }
        Err(Dropped) => false,
    }
}

fn load(d: &Dynamics, key: &[u64]) -> Option<u64> {
    let at = d.value_of(d.find(key)?);
    d.values().u64(at).map(|w| w.load(Ordering::Relaxed))
}

fn remove(d: &Dynamics, cpu: usize, key: &[u64]) {
    if let Some(chunk) = d.find(key) {
        d.remove(cpu, chunk);
    }
}

fn dropped(d: &Dynamics) -> [u64; 3] {
    let Drops {
        full,
        rinsing,
        dirty,
    } = &d.drops;
    [full, rinsing, dirty].map(|n| n.load(Ordering::Relaxed))
}

#[test]
fn one_cpu_does_not_keep_what_is_free_from_the_others() {
    let d = Dynamics::new(100 * 72, 24, 16, 40, 2, SECRET).unwrap();
    let n = u64::from(d.nchunks);
    let (mut mine, mut others) = (0, 0);
    for k in 0..n {
        assert!(store(&d, 0, &mut mine, &[k, 0], k));
    }
    for k in 0..n {
        remove(&d, 0, &[k, 0]);
    }
    d.clean(|| ());
    d.clean(|| ());
    // This CPU takes some of the chunks that it has deleted, and needs no more.
    assert!(store(&d, 0, &mut mine, &[0, 1], 1));
    let stored = (0..n).filter(|k| store(&d, 1, &mut others, &[*k, 2], 2));
    assert_eq!(stored.count() as u64, n - SHARE as u64);
}

/// Buckets that another CPU keeps locked cost a limited time, however often a firing wants them.
#[test]
fn a_firing_waits_for_buckets_so_long_altogether() {
    let d = Dynamics::new(100 * 72, 24, 16, 40, 2, SECRET).unwrap();
    let left = || d.lists.first().unwrap().spins.load(Ordering::Relaxed);
    let bucket = |key| d.bucket(d.hash(key)).unwrap();
    let mut free = 0;
    let firing = d.enter(0, 1).unwrap();
    assert!(store(&d, 0, &mut free, &[1, 1], 1));
    assert_eq!(left(), SPINS);
    bucket(&[1, 1]).fetch_or(LOCK, Ordering::Relaxed);
    bucket(&[2, 2]).fetch_or(LOCK, Ordering::Relaxed);
    assert!(!store(&d, 0, &mut free, &[2, 2], 2));
    assert_eq!((left(), dropped(&d)), (0, [1, 0, 0]));
    // An existing variable is found without the lock, and stays.
    let chunk = d.find(&[1, 1]).unwrap();
    assert!(!d.remove(0, chunk));
    assert_eq!((left(), dropped(&d)), (0, [2, 0, 0]));
    assert_eq!(load(&d, &[1, 1]), Some(1));
    // A bucket that is free can be locked nevertheless.
    bucket(&[1, 1]).fetch_and(!LOCK, Ordering::Relaxed);
    assert!(d.remove(0, chunk));
    drop(firing);
    let again = d.enter(0, 1).unwrap();
    assert_eq!(left(), 0);
    drop(again);
    let _next = d.enter(0, 2).unwrap();
    assert_eq!(left(), SPINS);
}

#[test]
fn values_come_and_go_and_space_comes_back() {
    let d = Dynamics::new(100 * 72, 24, 16, 40, 3, SECRET).unwrap();
    let n = u64::from(d.nchunks);
    let mut free = 0;
    // Another CPU is inside all the time.
    let _other = d.enter(2, 1).unwrap();
    for round in 0..5 {
        for k in 0..n {
            assert!(
                store(&d, 0, &mut free, &[k, round], k * 3),
                "round {round}, {k}"
            );
        }
        assert!((0..n).all(|k| load(&d, &[k, round]) == Some(k * 3)));
        assert!(!store(&d, 0, &mut free, &[n, round], 1));
        for k in 0..n {
            remove(&d, (k % 2) as usize, &[k, round]);
            remove(&d, 0, &[k, round]);
            assert_eq!(load(&d, &[k, round]), None);
        }
        assert!(!store(&d, 0, &mut free, &[n, round], 1));
        d.clean(|| assert!(!store(&d, 0, &mut free, &[n, round], 1)));
    }
    // Full, then dirty, then rinsing, in each round.
    assert_eq!(dropped(&d), [5, 5, 5]);
}

fn look(d: &Dynamics, key: &[u64; 2], hint: &mut u32) -> Option<u32> {
    let mut recent = Recent::told(*hint);
    let found = d.look(key, &mut recent);
    *hint = recent.hint;
    found
}

#[test]
fn what_is_remembered_is_found_as_long_as_it_is_there() {
    let d = Dynamics::new(100 * 72, 24, 16, 40, 1, SECRET).unwrap();
    let (mut free, mut hint) = (0, 0);
    let (mine, other) = ([1, 2], [3, 4]);
    assert_eq!(look(&d, &mine, &mut hint), None);
    assert!(store(&d, 0, &mut free, &mine, 5));
    let chunk = look(&d, &mine, &mut hint).unwrap();
    assert_eq!((hint, look(&d, &mine, &mut hint)), (chunk + 1, Some(chunk)));
    // Another variable is not found by this hint.
    assert_eq!(look(&d, &other, &mut hint), None);
    let mut stale = chunk + 1;
    remove(&d, 0, &mine);
    assert_eq!((look(&d, &mine, &mut stale), stale), (None, 0));
    // The chunk is reused for another variable.
    d.clean(|| ());
    free = 0;
    while d.find(&other) != Some(chunk) {
        remove(&d, 0, &other);
        assert!(store(&d, 0, &mut free, &other, 6));
    }
    stale = chunk + 1;
    assert_eq!(look(&d, &mine, &mut stale), None);
    stale = chunk + 1;
    assert_eq!(look(&d, &other, &mut stale), Some(chunk));
    let mut none = u32::MAX;
    assert_eq!(look(&d, &other, &mut none), Some(chunk));
}

#[test]
fn keys_that_are_too_long_are_dropped_and_counted() {
    let d = Dynamics::new(4096, 16, 8, 24, 1, SECRET).unwrap();
    assert!(!store(&d, 0, &mut 0, &[1, 2, 3], 1));
    assert_eq!(dropped(&d), [1, 0, 0]);
    let none = Dynamics::new(15, 16, 8, 16, 1, SECRET).unwrap();
    assert!(none.is_empty() && !d.is_empty());
    assert!(!store(&none, 0, &mut 0, &[1, 2], 1));
    assert_eq!(load(&none, &[1, 2]), None);
    assert_eq!(dropped(&none), [1, 0, 0]);
}

#[test]
fn a_chain_that_would_be_too_long_is_dropped_and_counted() {
    let d = Dynamics::new(2048 * 72, 24, 16, 40, 1, SECRET).unwrap();
    let meets = |key: &u64| d.hash(&[*key]) & d.mask == 0;
    let keys: std::vec::Vec<u64> = (0..).filter(meets).take(CHAIN + 2).collect();
    let mut free = 0;
    for (n, key) in keys.iter().enumerate() {
        assert_eq!(store(&d, 0, &mut free, &[*key], n as u64), n < CHAIN);
    }
    assert_eq!(dropped(&d), [2, 0, 0]);
    let all = |from: usize| (from..CHAIN).all(|n| load(&d, &[keys[n]]) == Some(n as u64));
    assert!(all(0));
    // The oldest one is the last of its chain.
    remove(&d, 0, &[keys[0]]);
    assert!(all(1) && load(&d, &[keys[0]]).is_none());
    assert!(store(&d, 0, &mut free, &[keys[CHAIN]], 1));
}

/// Only a few keys with the same hash are compared. To construct such keys one must know the
/// secret.
#[test]
fn keys_of_one_hash_are_few() {
    let d = Dynamics::new(2048 * 72, 24, 16, 40, 1, SECRET).unwrap();
    let key = |n: u64| [n, mix(mix(SECRET, 2), n)];
    assert_eq!(d.hash(&key(1)), d.hash(&key(2)));
    let (mut free, most) = (0, u64::from(SAME));
    for n in 0..most {
        assert!(store(&d, 0, &mut free, &key(n), n));
    }
    assert!((0..most).all(|n| load(&d, &key(n)) == Some(n)));
    assert!(!store(&d, 0, &mut free, &key(most), most));
    assert_eq!(dropped(&d), [1, 0, 0]);
}

/// Returns the number of chunks that are examined until the variable of a key is found.
fn looks(d: &Dynamics, key: &[u64]) -> usize {
    let found = d.find(key).unwrap();
    let mut link = d.bucket(d.hash(key)).unwrap().load(Ordering::Relaxed) as u32;
    let mut looks = 1;
    while link != found + 1 {
        link = d.link(link - 1, NEXT);
        looks += 1;
    }
    looks
}

/// Keys as programs use them, with 90 of 100 chunks in use. Random keys would need one look plus
/// half the number of variables per bucket. There are as many buckets as chunks, or half as many.
#[test]
fn collisions_at_ninety_percent() {
    type Key = fn(u64) -> [u64; 3];
    let kinds: [(&str, Key); 7] = [
        ("threads", |n| [7, 1000 + n, 0]),
        ("descriptors", |n| [9, 1000 + n / 64, n % 64]),
        ("objects of a cache", |n| {
            [9, 0xffff_8881_0234_0000 + n * 192, 0]
        }),
        ("pages", |n| [9, 0xffff_ea00_0000_0000 + n * 4096, 0]),
        ("times", |n| [9, 1_700_000_000_000 + n * 1_000_003, 0]),
        ("names", |n| {
            [9, u64::from_le_bytes(*b"worker/0") + (n % 10 << 56), n / 10]
        }),
        ("blocks", |n| [9, 0x0080_0010, n * 8]),
    ];
    for (chunks, per_bucket) in [(1 << 14, 0.9), ((1 << 14) - 1, 1.8)] {
        for (kind, key) in kinds {
            let d = Dynamics::new(chunks * 72, 24, 16, 72, 1, SECRET).unwrap();
            let n = u64::from(d.nchunks) * 9 / 10;
            let mut free = 0;
            assert!(
                (0..n).all(|k| store(&d, 0, &mut free, &key(k), k)),
                "{kind}"
            );
            let looks = || (0..n).map(|k| looks(&d, &key(k)));
            let mean = looks().sum::<usize>() as f64 / n as f64;
            let most = looks().max().unwrap();
            println!("{chunks} chunks, {kind}: {mean:.2} looks, {most} at most");
            assert!(
                mean <= 1.1 * (1.0 + per_bucket / 2.0) && most <= 16,
                "{kind}"
            );
        }
    }
}

#[test]
fn a_small_space_holds_what_fits_without_management() {
    for (total, bare, n) in [(15, 4, 3), (20, 20, 1), (79, 20, 3), (64 * 4, 4, 64)] {
        let d = Dynamics::new(total, 16, 8, bare, 1, SECRET).unwrap();
        assert_eq!(d.nchunks, n, "{total}");
    }
    // In larger spaces all of it counts: 24 bytes of head, 16 of key, 8 of value, 8 of the table.
    let d = Dynamics::new(56 << 10, 16, 8, 4, 1, SECRET).unwrap();
    assert_eq!(d.nchunks, 1 << 10);
}

#[test]
fn who_is_alone_uses_at_once_what_it_deleted() {
    let d = Dynamics::new(20, 16, 8, 20, 2, SECRET).unwrap();
    let mut free = [0; 2];
    {
        let _me = d.enter(0, 1).unwrap();
        for k in 0..100 {
            assert!(store(&d, 0, &mut free[0], &[k, 7], k), "{k}");
            assert_eq!(load(&d, &[k, 7]), Some(k));
            remove(&d, 0, &[k, 7]);
        }
    }
    assert_eq!(dropped(&d), [0, 0, 0]);
    // It is the only chunk, so another CPU must wait for the cleaner, and so must this one while
    // another CPU is inside.
    assert!(!store(&d, 1, &mut free[1], &[1, 1], 1));
    let other = d.enter(1, 1).unwrap();
    assert!(!store(&d, 0, &mut free[0], &[1, 1], 1));
    assert_eq!(dropped(&d), [0, 0, 2]);
    drop(other);
    assert!(store(&d, 0, &mut free[0], &[1, 1], 1));
}

#[test]
fn cpus_agree_on_what_exists() {
    // Room for all, and so little room that deleted chunks are needed again at once.
    for total in [1 << 15, 24 * 8] {
        agree_on_what_exists(total);
    }
}

fn agree_on_what_exists(total: usize) {
    const THREADS: usize = 4;
    const ROUNDS: u64 = if cfg!(miri) { 50 } else { 20_000 };
    let d = Dynamics::new(total, 16, 8, 24, THREADS, SECRET).unwrap();
    let inside: [AtomicU64; THREADS] = Default::default();
    let done = AtomicU32::new(0);
    let work = |cpu: usize| {
        let mut free = 0;
        for round in 0..ROUNDS {
            inside[cpu].fetch_add(1, Ordering::SeqCst);
            let here = d.enter(cpu, round + 1);
            // One key of this thread alone, and one that all threads compete for. The value follows
            // from the key.
            let own = [cpu as u64 + 100, round % 7];
            let common = [round % 13, 7];
            let kept = store(&d, cpu, &mut free, &own, round + 1);
            assert!(!kept || load(&d, &own) == Some(round + 1));
            store(&d, cpu, &mut free, &common, common[0] + 1);
            if let Some(value) = load(&d, &common) {
                assert_eq!(value, common[0] + 1);
            }
            if round % 3 == 0 {
                remove(&d, cpu, &common);
            }
            remove(&d, cpu, &own);
            assert_eq!(load(&d, &own), None);
            drop(here);
            inside[cpu].fetch_add(1, Ordering::SeqCst);
        }
        done.fetch_add(1, Ordering::SeqCst);
    };
    std::thread::scope(|scope| {
        for cpu in 0..THREADS {
            let work = &work;
            scope.spawn(move || work(cpu));
        }
        // The cleaner: its grace period waits until every thread that is inside has left once.
        while done.load(Ordering::SeqCst) < THREADS as u32 {
            d.clean(|| {
                for cpu in &inside {
                    let seen = cpu.load(Ordering::SeqCst);
                    while seen % 2 == 1 && cpu.load(Ordering::SeqCst) == seen {
                        std::thread::yield_now();
                    }
                }
            });
            std::thread::yield_now();
        }
    });
    for key in 0..13 {
        for cpu in 0..THREADS {
            remove(&d, cpu, &[key, 7]);
        }
        assert_eq!(d.find(&[key, 7]), None);
    }
}
