// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The kernel's memory counters that the module affects. For programs that run in the VM.
//!
//! Other parts of the system allocate and free memory meanwhile, so a leak shows only after many
//! consumers. For slabs, the objects in use are counted, not the pages, because objects of others
//! keep pages with freed objects allocated. Slabs are shrunk before they are counted; under KASAN,
//! freed objects stay in its quarantine.

use std::fs;
use std::time::Duration;

/// Bytes that a consumer may leave on average: much less than the smallest allocation that any one
/// makes, and more than the kernel's own fluctuation divided by some hundred consumers.
const LEFT: u64 = 512;

/// Bytes by which the kernel's own use fluctuates, independent of the number of consumers.
const SLACK: u64 = 512 << 10;

/// Bytes of a thread, mostly its stack. The kernel starts more workers when there is more work, and
/// they stay for minutes.
const THREAD: u64 = 32 << 10;

/// Memory in use, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    slabs: u64,
    areas: u64,
    percpu: u64,
    threads: u64,
    /// The number of the engine's vmalloc areas.
    ours: usize,
}

impl Memory {
    /// Reads the counters.
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

    /// Checks that nothing is left of `consumers`, all of which have come and gone since `before`.
    pub fn check(&self, before: &Self, consumers: u64) -> Result<(), String> {
        let users = users()?;
        if users != "0" || self.ours != 0 {
            return Err(format!("{users} users, {} areas are left", self.ours));
        }
        let threads = self.threads.saturating_sub(before.threads);
        let allowed = SLACK + threads * THREAD + consumers * LEFT;
        // Checked separately: a decrease of one must not hide an increase of another.
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

/// Reads a file of the kernel's as text.
pub fn read(path: &str) -> Result<String, String> {
    fs::read_to_string(path).map_err(|e| format!("{path}: {e}"))
}

/// One field of /proc/meminfo, in bytes.
fn field(name: &str) -> Result<u64, String> {
    let text = read("/proc/meminfo")?;
    let value = text.lines().find_map(|line| line.strip_prefix(name));
    let kib = value.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    Ok(kib.ok_or(format!("/proc/meminfo has no {name}"))? << 10)
}

/// A slab cache.
pub struct Cache {
    /// The name.
    pub name: String,
    /// The number of objects in use.
    pub active: u64,
    /// Bytes of one object.
    pub size: u64,
}

/// All slab caches except those that the kernel can reclaim when it needs memory.
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
        // A cache that has been destroyed meanwhile has no objects.
        if is_given_back.is_ok_and(|flag| flag.trim() != "1") {
            caches.push(Cache { name, active, size });
        }
    }
    match caches.is_empty() {
        true => Err("no cache of slabs tells whether it is given back".into()),
        false => Ok(caches),
    }
}

/// Bytes of slab objects in use.
fn slabs() -> Result<u64, String> {
    Ok(caches()?
        .iter()
        .map(|cache| cache.active * cache.size)
        .sum())
}

/// The number of threads, of processes and of the kernel.
pub fn threads() -> Result<u64, String> {
    let load = read("/proc/loadavg")?;
    let tasks = load
        .split(' ')
        .nth(3)
        .and_then(|tasks| tasks.split_once('/'));
    let all = tasks.and_then(|(_, all)| all.parse().ok());
    all.ok_or("/proc/loadavg has no threads".into())
}

/// The module's reference count, as /proc/modules prints it.
pub fn users() -> Result<String, String> {
    let modules = read("/proc/modules")?;
    let ours = modules.lines().find_map(|l| l.strip_prefix("dtrace "));
    let users = ours.and_then(|rest| rest.split(' ').nth(1));
    users.map(str::to_owned).ok_or("no module".into())
}

/// Gives all reclaimable memory back to the kernel.
pub fn shrink() -> Result<(), String> {
    // Some memory is freed only after a grace period, or by a worker.
    std::thread::sleep(Duration::from_millis(500));
    fs::write("/proc/sys/vm/drop_caches", "3").map_err(|e| e.to_string())?;
    let caches = fs::read_dir("/sys/kernel/slab").map_err(|e| e.to_string())?;
    for cache in caches.flatten() {
        // A cache that has been destroyed meanwhile needs no shrinking.
        let _ = fs::write(cache.path().join("shrink"), "1");
    }
    std::thread::sleep(Duration::from_millis(200));
    Ok(())
}
