// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Runs consumers while memory is short, or while other calls of the kernel fail. Runs in the VM as
//! root, with the module `shortage` loaded: `shortage-check STEP`; for consumers with probes in
//! processes `shortage-check processes EVERY DEPTH`; for what neither of these does `shortage-check
//! rest EVERY DEPTH`. With `member` as the last argument, the consumers are those of [`MEMBER`],
//! who is in the tracing group; then anybody may open the device. `shortage-check loads EVERY DEPTH
//! DIRECTORY` tests loading the module itself, the dtrace.ko in that directory.
//!
//! The life of a consumer, from opening to closing, is run again and again. Each time another
//! allocation that is made for it fails: the first, then the one STEP later, until a life has fewer
//! allocations; and once more with all from there on. Registrations and other calls of the kernel
//! fail as well. Every life ends with success, with ENOMEM or with EIO, and closing always frees
//! everything: afterwards a consumer works as before, memory use is what it was, and the same
//! functions are patched.

mod loads;
mod processes;

use dtrace::device::{Buffer, DevDtrace, Device, PATH};
use dtrace_uapi::ioctl::ProbeDesc;
use processes::Kind;
use qemu_tests::memory::Memory;
use qemu_tests::patched;
use qemu_tests::program::compile;
use rustix::process::{Gid, Uid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use std::io;
use std::os::unix::process::parent_id;
use std::path::Path;
use std::process::ExitCode;
use std::{fs, process};
use zerocopy::FromZeros;

/// Uses something of every provider except `kinst`, which `breakpoint-shortage` tests, and
/// everything that has buffers.
const PROGRAM: &str = r#"
    BEGIN { printf("%d", pid); self->began = timestamp; kept[pid, execname] = 1; }
    syscall::getppid: { @[execname, probefunc] = count(); self->spec = speculation(); }
    syscall::getppid:return /self->spec/ { speculate(self->spec); stack(5); }
    syscall::getppid:return /self->spec/ { commit(self->spec); self->spec = 0; }
    fbt::vfs_read:, fbt::vfs_write: { @q[ustack(3)] = quantize(arg0); }
    profile-97, tick-50ms { @s[stack(5)] = lquantize(arg0, 0, 10, 1); }
    sdt:::sched_switch, proc:::exec-success, sched:::on-cpu, io:::start, lockstat:::adaptive-acquire { trace(arg0); }
    sysinfo:::sysread, vminfo:::as_fault, ip:::send, tcp:::send, udp:::send { trace(arg0); }
    cpc:::cpu_clock-all-10000000 { trace(arg0); }
    END { printa(@q); }
"#;

/// The same for what a member may use.
const PROGRAM_OF_MEMBER: &str = r#"
    BEGIN { printf("%d", pid); self->began = timestamp; kept[pid, execname] = 1; }
    syscall::getppid: { @[execname, probefunc] = count(); self->spec = speculation(); }
    syscall::getppid:return /self->spec/ { speculate(self->spec); ustack(5); }
    syscall::getppid:return /self->spec/ { commit(self->spec); self->spec = 0; }
    syscall::read: { @q[ustack(3)] = quantize(arg0); }
    profile-97, tick-50ms { @s[ustack(5)] = lquantize(arg0, 0, 10, 1); }
    END { printa(@q); }
"#;

/// The member's user and group IDs.
const MEMBER: (u32, u32) = (65534, 77);

type Outcome = Result<(), String>;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let Some(outcome) = obey(&words) else {
        eprintln!("usage: shortage-check STEP [member]");
        eprintln!("       shortage-check processes|rest EVERY DEPTH [member]");
        eprintln!("       shortage-check loads EVERY DEPTH DIRECTORY");
        return ExitCode::from(2);
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            println!("shortage-check: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the check that the arguments name; `None` if they are not valid.
fn obey(words: &[&str]) -> Option<Outcome> {
    let number = |text: &str| text.parse::<u64>().ok().filter(|n| *n > 0);
    let (owner, words) = match words {
        [words @ .., "member"] => (Owner::Member, words),
        _ => (Owner::Root, words),
    };
    Some(match (words, owner) {
        ([step], _) => check(owner, number(step)? as usize),
        (["loads", every, depth, dir], Owner::Root) => {
            loads::check(dir, number(every)?, number(depth)?)
        }
        ([kind, every, depth], _) => {
            processes::check(owner, Kind::named(kind)?, number(every)?, number(depth)?)
        }
        _ => return None,
    })
}

/// Sets a parameter of the module `shortage`.
fn set(parameter: &str, value: u64) -> Outcome {
    let path = format!("/sys/module/shortage/parameters/{parameter}");
    fs::write(&path, value.to_string()).map_err(|e| format!("{path}: {e}"))
}

fn get(parameter: &str) -> Result<String, String> {
    let path = format!("/sys/module/shortage/parameters/{parameter}");
    let text = fs::read_to_string(&path).map_err(|e| format!("{path}: {e}"))?;
    Ok(text.trim().to_owned())
}

/// The owner of the consumers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    Root,
    Member,
}

impl Owner {
    /// The owner's program, and a function that it traces.
    fn program(self) -> (&'static str, &'static str) {
        match self {
            Self::Root => (PROGRAM, "vfs_read"),
            Self::Member => (PROGRAM_OF_MEMBER, "getppid"),
        }
    }

    /// Calls `does` with the owner's IDs. No other thread runs meanwhile.
    fn act<T>(self, does: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        if self == Self::Root {
            return does();
        }
        let (user, group) = (Uid::from_raw(MEMBER.0), Gid::from_raw(MEMBER.1));
        set_thread_groups(&[])?;
        set_thread_res_gid(Gid::ROOT, group, Gid::ROOT)?;
        set_thread_res_uid(Uid::ROOT, user, Uid::ROOT)?;
        let done = does();
        set_thread_res_uid(Uid::ROOT, Uid::ROOT, Uid::ROOT)?;
        set_thread_res_gid(Gid::ROOT, Gid::ROOT, Gid::ROOT)?;
        done
    }
}

/// The life of a consumer from opening to closing. Returns how many probes it enabled.
fn life(owner: Owner, image: &[u8]) -> io::Result<u32> {
    owner.act(|| live(owner.program().1, image))
}

fn live(func: &str, image: &[u8]) -> io::Result<u32> {
    let device = DevDtrace::open(Path::new(PATH))?;
    let mut pattern = ProbeDesc::new_zeroed();
    pattern.func = dtrace::device::fill(func).ok_or(io::ErrorKind::InvalidInput)?;
    device.next_probe(&pattern)?;
    let matched = device.enable(image)?;
    device.go()?;
    for _ in 0..3 {
        let _ = parent_id();
        fs::read("/proc/self/stat")?;
        std::thread::yield_now();
    }
    device.enabled_probe(1)?;
    device.aggregation(1)?;
    let mut room = vec![0; 64 << 10];
    for cpu in 0..device.cpus() {
        for which in [Buffer::Principal, Buffer::Aggregation] {
            device.snapshot(which, cpu, &mut room)?;
        }
    }
    device.status()?;
    device.stop()?;
    Ok(matched)
}

/// A life whose `nth` allocation fails, and all later ones too if `onwards`. `None` if it had
/// fewer.
fn short(
    owner: Owner,
    image: &[u8],
    nth: u64,
    onwards: bool,
) -> Result<Option<io::Result<u32>>, String> {
    set("onwards", u64::from(onwards))?;
    set("nth", nth)?;
    set("seen", 0)?;
    set("task", u64::from(process::id()))?;
    let outcome = life(owner, image);
    set("task", 0)?;
    let seen: u64 = get("seen")?.parse().map_err(|_| "seen is no number")?;
    Ok((seen >= nth).then_some(outcome))
}

fn check(owner: Owner, step: usize) -> Outcome {
    let image = compile(owner.program().0, "16k")?;
    let whole = || life(owner, &image).map_err(|e| format!("a consumer with memory enough: {e}"));
    let matched = whole()?;
    let patched = patched::settled()?;
    let before = Memory::now()?;
    let (mut failed, mut lives) = (0, 0u64);
    for onwards in [false, true] {
        for nth in (1..).step_by(step) {
            let Some(outcome) = short(owner, &image, nth, onwards)? else {
                break;
            };
            lives += 1;
            match outcome {
                Ok(_) => {}
                // ENOMEM, or EIO, with which the other calls fail.
                Err(e) if matches!(e.raw_os_error(), Some(12 | 5)) => failed += 1,
                Err(e) => return Err(format!("allocation {nth}, {}: {e}", get("where")?)),
            }
            if lives % 20 == 0 && whole()? != matched {
                return Err(format!("fewer probes after {}", get("where")?));
            }
        }
    }
    if whole()? != matched {
        return Err("fewer probes in the end".into());
    }
    if failed == 0 || failed == lives {
        return Err(format!("{failed} of {lives} lives failed"));
    }
    let after = Memory::now()?;
    eprintln!("shortage-check: {failed} of {lives} lives failed; {before:?}, then {after:?}");
    after.check(&before, lives)?;
    patched::check(&patched)?;
    println!("shortage-check: ok");
    Ok(())
}
