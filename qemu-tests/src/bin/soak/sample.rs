// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! What exists while nothing is traced: memory by purpose, objects by kind.
//!
//! Of some things there must be none, and [`quiet`] waits for that: users and vmalloc areas of the
//! module, patched functions. All others are numbers that must not rise ([`Sample`]). Slabs that
//! the kernel can reclaim, and pages of files, are left out, and reclaimed before. Left out are
//! also this program, which remembers what it has seen, and the pool of return hooks, which keeps
//! as many as there ever were calls at once.

use crate::program::Outcome;
use dtrace::device::{DevDtrace, Device, PATH};
use qemu_tests::memory::{caches, read, shrink, threads, users};
use qemu_tests::patched;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};
use zerocopy::FromZeros;

/// How long things may be left after the last consumer has gone: the module looks for memories that
/// had breakpoints once a second.
const LEAVES: Duration = Duration::from_secs(60);

/// The numbers, by name.
pub type Sample = BTreeMap<String, f64>;

/// Waits until nothing of any consumer is left.
pub fn quiet(slower: u32) -> Outcome {
    let begin = Instant::now();
    loop {
        let left = left()?;
        if left.is_empty() {
            return Ok(());
        }
        if begin.elapsed() > LEAVES * slower {
            return Err(format!("when all have gone there are still {left}"));
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// What is left of consumers.
fn left() -> Result<String, String> {
    let mut left = Vec::new();
    let users = users()?;
    if users != "0" {
        left.push(format!("{users} users"));
    }
    let areas = read("/proc/vmallocinfo")?;
    let areas = areas.lines().filter(|l| l.contains("dtrace_mem_alloc"));
    match areas.count() {
        0 => (),
        n => left.push(format!("{n} areas")),
    }
    let patched = patched::functions()?;
    if let Some(first) = patched.first() {
        left.push(format!("{} patched functions, {first}", patched.len()));
    }
    Ok(left.join(", "))
}

/// Counts; to be called when all is quiet.
pub fn take(is_loaded: bool) -> Result<Sample, String> {
    shrink()?;
    let mut sample = Sample::new();
    memory(&mut sample)?;
    slabs(&mut sample)?;
    let mut put = |name: &str, count: usize| sample.insert(name.into(), count as f64);
    put("threads", threads()? as usize);
    put("areas", lines("/proc/vmallocinfo")?);
    put("modules", lines("/proc/modules")?);
    put("kprobes", lines("/sys/kernel/debug/kprobes/list")?);
    let functions = "/sys/kernel/tracing/enabled_functions";
    put("patched functions", lines(functions)?);
    let files = read("/proc/sys/fs/file-nr")?;
    let files = files.split_whitespace().next();
    put(
        "files",
        files
            .and_then(|f| f.parse().ok())
            .ok_or("no count of files")?,
    );
    if is_loaded {
        put("probes", probes()?);
    }
    Ok(sample)
}

fn lines(path: &str) -> Result<usize, String> {
    read(path).map(|text| text.lines().count())
}

/// Bytes, by purpose.
fn memory(sample: &mut Sample) -> Outcome {
    let text = read("/proc/meminfo")?;
    let field = |name: &str| bytes_of(&text, name);
    // Leaves out files, including those in memory, and what can be reclaimed.
    let mut used = field("MemTotal")?;
    for name in ["MemFree", "Buffers", "Cached", "SReclaimable"] {
        used -= field(name)?;
    }
    used -= in_hand()?;
    let own = read("/proc/self/status")?;
    let (itself, tables) = (bytes_of(&own, "RssAnon")?, bytes_of(&own, "VmPTE")?);
    let hooks = areas_of("rethook_alloc")?;
    used -= itself + tables + hooks;
    // The stack depot keeps the stacks of all allocations for the kernel's checkers: as many as
    // there are different ones, and for good.
    if let Ok(stats) = fs::read_to_string("/sys/kernel/debug/stackdepot/stats") {
        let pools = stats.lines().find_map(|line| line.strip_prefix("pools: "));
        let pools: Option<f64> = pools.and_then(|n| n.trim().parse().ok());
        used -= pools.unwrap_or(0.0) * DEPOT_POOL;
    }
    sample.insert("used memory".into(), used);
    for (name, of, less) in [
        ("kernel stacks", "KernelStack", 0.0),
        ("page tables", "PageTables", tables),
        ("vmalloc", "VmallocUsed", hooks),
        ("percpu", "Percpu", 0.0),
        ("memory in files", "Shmem", 0.0),
        ("memory of programs", "AnonPages", itself),
    ] {
        sample.insert(name.into(), field(of)? - less);
    }
    sample.insert("available".into(), field("MemAvailable")?);
    Ok(())
}

/// The bytes in a line `NAME: KIB kB`.
fn bytes_of(text: &str, name: &str) -> Result<f64, String> {
    let of = text.lines().find_map(|line| line.strip_prefix(name));
    let kib = of.and_then(|rest| rest.strip_prefix(':')?.split_whitespace().next());
    let kib: Option<f64> = kib.and_then(|word| word.parse().ok());
    Ok(kib.ok_or(format!("no line of {name}"))? * 1024.0)
}

/// Bytes of the vmalloc areas that a function of the kernel has allocated.
fn areas_of(caller: &str) -> Result<f64, String> {
    let text = read("/proc/vmallocinfo")?;
    let areas = text.lines().filter(|line| line.contains(caller));
    let bytes = areas.filter_map(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok());
    // Each area's size includes a guard page.
    Ok(bytes.map(|size| size - PAGE).sum())
}

/// Bytes of free pages in the CPUs' lists, which `MemFree` does not include.
fn in_hand() -> Result<f64, String> {
    let zones = read("/proc/zoneinfo")?;
    let counts = zones
        .lines()
        .filter_map(|l| l.trim().strip_prefix("count:"));
    let pages: f64 = counts.filter_map(|n| n.trim().parse::<f64>().ok()).sum();
    Ok(pages * PAGE)
}

/// Bytes.
const PAGE: f64 = 4096.0;

/// Bytes of a pool of stacks (lib/stackdepot.c: `DEPOT_POOL_SIZE`).
const DEPOT_POOL: f64 = 16384.0;

/// The objects in use of each kind, and the bytes of all.
fn slabs(sample: &mut Sample) -> Outcome {
    let mut bytes = 0;
    for cache in caches()? {
        bytes += cache.active * cache.size;
        sample.insert(format!("objects of {}", cache.name), cache.active as f64);
    }
    sample.insert("slabs".into(), bytes as f64);
    Ok(())
}

/// The number of probes.
fn probes() -> Result<usize, String> {
    let device = DevDtrace::open(Path::new(PATH)).map_err(|e| format!("{PATH}: {e}"))?;
    let mut pattern = dtrace_uapi::ioctl::ProbeDesc::new_zeroed();
    let mut count = 0;
    while let Some(probe) = device.next_probe(&pattern).map_err(|e| e.to_string())? {
        pattern.id = probe.id;
        count += 1;
    }
    Ok(count)
}
