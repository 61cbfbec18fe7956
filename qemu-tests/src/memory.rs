// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! What the kernel of this machine counts of memory that the module takes from. For programs that run in the VM.
//!
//! Others take and give memory meanwhile, so a leak shows only where many consumers have come and gone. Of slabs the objects in use are
//! counted, and not the pages, on which objects of others keep what is freed. They are shrunk before that, and under KASAN what is
//! freed stays in its quarantine.

use std::fs;
use std::time::Duration;

/// Bytes that a consumer may leave on average: much less than the least that any one allocates, and more than the kernel's own
/// coming and going makes of some hundred of them.
const LEFT: u64 = 512;

/// Bytes that the kernel takes and gives meanwhile, whoever comes and goes.
const SLACK: u64 = 512 << 10;

/// Bytes of a thread, mostly its stack: the kernel starts more workers when there is more to do, and they stay for minutes.
const THREAD: u64 = 32 << 10;

/// Memory in use, bytes.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    slabs: u64,
    areas: u64,
    percpu: u64,
    threads: u64,
    /// How many areas of vmalloc the engine has.
    ours: usize,
}

impl Memory {
    /// Counts.
    pub fn now() -> Result<Self, String> {
        shrink()?;
        let areas = read("/proc/vmallocinfo")?;
        let ours = areas.lines().filter(|l| l.contains("dtrace_mem_alloc"));
        Ok(Self {
            slabs: slabs()?,
            areas: field("VmallocUsed:")?,
            percpu: field("Percpu:")?,
            threads: threads()?,
            ours: ours.count(),
        })
    }

    /// Whether nothing is left of `consumers`, all of which have come and gone since `before`.
    pub fn check(&self, before: &Self, consumers: u64) -> Result<(), String> {
        let users = users()?;
        if users != "0" || self.ours != 0 {
            return Err(format!("{users} users, {} areas are left", self.ours));
        }
        let threads = self.threads.saturating_sub(before.threads);
        let allowed = SLACK + threads * THREAD + consumers * LEFT;
        // Each for itself: what one of them lost cannot make up for another.
        for (kind, now, then) in [
            ("slabs", self.slabs, before.slabs),
            ("vmalloc", self.areas, before.areas),
            ("percpu", self.percpu, before.percpu),
        ] {
            let grown = now.saturating_sub(then);
            if grown > allowed {
                return Err(format!(
                    "{kind}: {grown} bytes more after {consumers} consumers"
                ));
            }
        }
        Ok(())
    }
}

/// A file of the kernel's as text.
pub fn read(path: &str) -> Result<String, String> {
    fs::read_to_string(path).map_err(|e| format!("{path}: {e}"))
}

/// One field of /proc/meminfo, bytes.
fn field(name: &str) -> Result<u64, String> {
    let text = read("/proc/meminfo")?;
    let value = text.lines().find_map(|line| line.strip_prefix(name));
    let kib = value.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    Ok(kib.ok_or(format!("/proc/meminfo has no {name}"))? << 10)
}

/// A kind of objects: its name, how many are in use, and the bytes of one.
pub struct Cache {
    /// The name.
    pub name: String,
    /// How many are in use.
    pub active: u64,
    /// Bytes of one.
    pub size: u64,
}

/// The kinds of objects, but for those that the kernel gives back when it needs memory.
pub fn caches() -> Result<Vec<Cache>, String> {
    let text = read("/proc/slabinfo")?;
    let mut caches = Vec::new();
    for line in text.lines().skip(2) {
        let mut words = line.split_whitespace();
        let name = words.next().unwrap_or_default().to_owned();
        let mut number = || words.next()?.parse().ok();
        let (Some(active), Some(_all), Some(size)) = (number(), number(), number()) else {
            return Err(format!("/proc/slabinfo: {line}"));
        };
        let is_given_back = fs::read_to_string(format!("/sys/kernel/slab/{name}/reclaim_account"));
        // One that has gone meanwhile has no object.
        if is_given_back.is_ok_and(|flag| flag.trim() != "1") {
            caches.push(Cache { name, active, size });
        }
    }
    match caches.is_empty() {
        true => Err("no cache of slabs tells whether it is given back".into()),
        false => Ok(caches),
    }
}

/// Bytes of objects in use.
fn slabs() -> Result<u64, String> {
    Ok(caches()?
        .iter()
        .map(|cache| cache.active * cache.size)
        .sum())
}

/// How many threads there are, of processes and of the kernel.
pub fn threads() -> Result<u64, String> {
    let load = read("/proc/loadavg")?;
    let tasks = load
        .split(' ')
        .nth(3)
        .and_then(|tasks| tasks.split_once('/'));
    let all = tasks.and_then(|(_, all)| all.parse().ok());
    all.ok_or("/proc/loadavg has no threads".into())
}

/// How many use the module.
pub fn users() -> Result<String, String> {
    let modules = read("/proc/modules")?;
    let ours = modules.lines().find_map(|l| l.strip_prefix("dtrace "));
    let users = ours.and_then(|rest| rest.split(' ').nth(1));
    users.map(str::to_owned).ok_or("no module".into())
}

/// What can be given back is given back.
pub fn shrink() -> Result<(), String> {
    // What is freed after a grace period, or by a worker.
    std::thread::sleep(Duration::from_millis(500));
    fs::write("/proc/sys/vm/drop_caches", "3").map_err(|e| e.to_string())?;
    let caches = fs::read_dir("/sys/kernel/slab").map_err(|e| e.to_string())?;
    for cache in caches.flatten() {
        // One that has gone meanwhile needs no shrinking.
        let _ = fs::write(cache.path().join("shrink"), "1");
    }
    std::thread::sleep(Duration::from_millis(200));
    Ok(())
}
