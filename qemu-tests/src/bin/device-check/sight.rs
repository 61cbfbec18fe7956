// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! What the device permits the calling user: `device-check sight PID ADDRESS` prints a line for
//! each row, its key and the answer, `seen` or the error. PID is a process of another user, and
//! ADDRESS an instruction of its text. Nothing is traced.

use super::programs::{action, clause, constant, counting};
use super::{open, place};
use dtrace::device::{fill, DevDtrace, Device};
use dtrace::dof;
use dtrace::program::{ActionDesc, Clause, Program};
use dtrace_uapi::action::Action;
use dtrace_uapi::hold::{Hold, Known, FORK, MAP};
use dtrace_uapi::ioctl::ProbeDesc;
use dtrace_uapi::option::Opt;
use std::io;
use zerocopy::FromZeros;

/// Probes inside the kernel, one of each provider whose probes exist in advance.
const OF_KERNEL: &[&str] = &[
    "fbt:vmlinux:vfs_read:entry",
    "sdt:::sched_switch",
    "proc:::exec",
    "sched:::on-cpu",
    "io:::start",
    "lockstat:::adaptive-acquire",
    "sysinfo:::pswitch",
    "vminfo:::as_fault",
    "ip:::send",
    "tcp:::send",
    "udp:::send",
];
/// Probes that are created on request.
const MADE: &[&str] = &["kinst::vfs_read:0", "cpc:::page_faults-all-1"];
/// Probes that reveal only processes, or time.
const OF_PROCESSES: &[&str] = &[
    "syscall::read:entry",
    "profile:::profile-97",
    "profile:::tick-7",
];
const DESTRUCTIVE: &[Action] = &[
    Action::Stop,
    Action::Raise,
    Action::System,
    Action::Freopen,
    Action::Panic,
    Action::Chill,
];

/// Prints all rows.
pub fn all(args: &[String]) -> Result<(), String> {
    let [pid, address] = args else {
        return Err("usage: device-check sight PID ADDRESS".to_owned());
    };
    let pid: u32 = pid.parse().map_err(|e| format!("{pid}: {e}"))?;
    let address = u64::from_str_radix(address, 16).map_err(|e| format!("{address}: {e}"))?;
    let rows: [(&str, String); 18] = [
        ("kernel-probes", of_all(OF_KERNEL, enabled)?),
        ("process-probes", of_all(OF_PROCESSES, enabled)?),
        ("made-probes", of_all(MADE, enabled)?),
        ("kernel-names", listed("fbt:vmlinux:vfs_read:entry")?),
        ("made-names", listed("kinst::vfs_write:0")?),
        ("made-enabled", enabled(&"kinst::vfs_write:0")?),
        ("choose-cpu", with_option(Opt::Cpu, 0)?),
        ("allow-destructive", with_option(Opt::Destructive, 1)?),
        (
            "destroy",
            of_all(DESTRUCTIVE, |kind| destroys(*kind, true))?,
        ),
        (
            "destroy-without-w",
            of_all(DESTRUCTIVE, |kind| destroys(*kind, false))?,
        ),
        ("stack-tables", answer(open()?.wanted().map(drop))),
        ("ended-mappings", ended()?),
        ("other-place", placed(pid, address)?),
        (
            "other-registered",
            told(open()?.registered(pid, 0).map(drop)),
        ),
        ("other-hold", held(pid)?),
        ("other-file", known(pid, address)?),
        ("other-review", answer(open()?.review(pid))),
        ("number", answer(open()?.number(pid).map(drop))),
    ];
    for (key, answer) in rows {
        println!("{key} {answer}");
    }
    Ok(())
}

fn errno(error: &io::Error) -> String {
    let name = match error.raw_os_error().unwrap_or_default() {
        1 => "EPERM",
        2 => "ENOENT",
        3 => "ESRCH",
        13 => "EACCES",
        22 => "EINVAL",
        number => return format!("error {number}"),
    };
    name.to_owned()
}

fn answer(result: io::Result<()>) -> String {
    result.map_or_else(|error| errno(&error), |()| "seen".to_owned())
}

/// The answer of a call that finds nothing: ENOENT means that it was permitted.
fn told(result: io::Result<()>) -> String {
    match answer(result) {
        none if none == "ENOENT" => "seen".to_owned(),
        other => other,
    }
}

/// The answer for all of `these`, or each different answer.
fn of_all<T>(these: &[T], ask: impl Fn(&T) -> Result<String, String>) -> Result<String, String> {
    let mut answers = Vec::new();
    for this in these {
        let answer = ask(this)?;
        if !answers.contains(&answer) {
            answers.push(answer);
        }
    }
    Ok(answers.join(" or "))
}

fn enabled(probe: &&str) -> Result<String, String> {
    let enabled = open()?.enable(&counting(probe));
    Ok(match enabled {
        Ok(0) => "no probe".to_owned(),
        other => answer(other.map(drop)),
    })
}

/// Whether an existing probe is listed. Does not create any probe.
fn listed(probe: &str) -> Result<String, String> {
    let device = open()?;
    let mut parts = probe.split(':');
    let mut part = || parts.next().unwrap_or_default();
    let wanted = [part(), part(), part(), part()];
    let mut desc = ProbeDesc::new_zeroed();
    // Begins after probe 1: matching probes are created only if a listing starts from the
    // beginning.
    desc.id = 1;
    desc.provider = fill(wanted[0]).ok_or("a long name")?;
    desc.func = fill(wanted[2]).ok_or("a long name")?;
    desc.name = fill(wanted[3]).ok_or("a long name")?;
    let found = device.next_probe(&desc).map_err(|e| e.to_string())?;
    Ok(found.map_or("not listed", |_| "seen").to_owned())
}

fn with(clauses: Vec<Clause>, options: &[(Opt, u64)]) -> Result<String, String> {
    let program = Program {
        clauses,
        first_uarg: 1,
        ..Program::default()
    };
    let enabled = open()?.enable(&dof::emit(&program, options));
    Ok(answer(enabled.map(drop)))
}

fn with_option(option: Opt, value: u64) -> Result<String, String> {
    with(
        vec![clause("dtrace:::BEGIN", Vec::new())],
        &[(option, value)],
    )
}

fn destroys(kind: Action, asked: bool) -> Result<String, String> {
    let format = match kind {
        Action::System | Action::Freopen => Some("%d".into()),
        _ => None,
    };
    let action = ActionDesc {
        format,
        ..action(kind, constant(1))
    };
    let bare = matches!(kind, Action::Stop | Action::Panic);
    let action = match bare {
        true => ActionDesc {
            difo: None,
            ..action
        },
        false => action,
    };
    let clauses = vec![clause("dtrace:::BEGIN", vec![action])];
    let options: &[_] = match asked {
        true => &[(Opt::Destructive, 1)],
        false => &[],
    };
    with(clauses, options)
}

fn ended() -> Result<String, String> {
    let device = open()?;
    let Ok(Some(remains)) = device.remains() else {
        return Ok("EACCES".to_owned());
    };
    Ok(answer(remains.next(1, 0).map(drop)))
}

fn placed(pid: u32, address: u64) -> Result<String, String> {
    let made = open()?.make_probes(pid, &place::request(address, 1));
    Ok(answer(made.map_err(|(_, error)| error)))
}

fn hold(device: &DevDtrace, kind: u32, pid: u32) -> io::Result<()> {
    device.hold(&Hold {
        kind,
        pid: pid as i32,
        ..Hold::default()
    })
}

fn held(pid: u32) -> Result<String, String> {
    of_all(&[FORK, MAP], |kind| Ok(answer(hold(&open()?, *kind, pid))))
}

/// Which file a process executes at an address. The device answers this only if the consumer holds
/// processes.
fn known(pid: u32, address: u64) -> Result<String, String> {
    let device = open()?;
    if let Err(error) = hold(&device, MAP, std::process::id()) {
        return Ok(errno(&error));
    }
    let known = Known {
        address,
        pid: pid as i32,
        reserved: 0,
    };
    Ok(answer(device.known(&known)))
}
