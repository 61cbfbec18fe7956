// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Consumers of everything else, which end by themselves or are killed. What they see depends on
//! what happens at the time.
//!
//! They may report drops and faults. Any other message is a failure.

use crate::counted::{Job, Tally};
use crate::program::{run, sleep, Program};
use qemu_tests::random::Random;

/// Options, the D program, and the command that is traced with `-c`.
type Mixed = (&'static [&'static str], &'static str, &'static str);

/// Ends a program that has no command.
const END: &str = "tick-1s { exit(0); }";

const ALL: &[Mixed] = &[
    (&[], "sched:::,proc::: { @[probename, execname] = count(); }", ""),
    (
        &["-x", "aggrate=50ms"],
        "io::: { @[probename, args[1]->dev_statname] = count(); @b = quantize(args[0]->b_bcount); }",
        "",
    ),
    (&[], "lockstat::: { @[probename, stack(3)] = count(); }", ""),
    (
        &[],
        "profile-199 { @u[ustack(8), execname] = count(); @k[stack(8)] = count(); } tick-300ms { printa(@k); clear(@u); trunc(@k, 3); }",
        "",
    ),
    (&[], "vminfo:::,sysinfo::: { @[probename, execname] = sum(arg0); }", ""),
    (
        &[],
        "tcp:::,udp:::,ip::: { @[probename] = count(); } tcp:::send { @s = quantize(args[2]->ip_plength); }",
        "",
    ),
    (
        &["-x", "nspec=4", "-x", "cleanrate=50hz"],
        "syscall:::entry /!self->spec/ { self->spec = speculation(); }
        syscall:::entry /self->spec/ { speculate(self->spec); printf(\"%s %d\\n\", probefunc, arg0); }
        syscall:::return /self->spec && errno/ { commit(self->spec); self->spec = 0; }
        syscall:::return /self->spec/ { discard(self->spec); self->spec = 0; }",
        "",
    ),
    (
        &["-x", "bufpolicy=ring", "-x", "bufsize=32k"],
        "syscall:::entry { printf(\"%s %s\\n\", execname, probefunc); }",
        "",
    ),
    (
        &["-x", "bufpolicy=fill", "-x", "bufsize=256k"],
        "sdt:sched:: { printf(\"%s %d\\n\", probename, timestamp); }",
        "",
    ),
    (
        &["-x", "switchrate=10ms", "-x", "dynvarsize=256k"],
        "syscall:::entry { trace(pid); @[execname, probefunc] = count(); self->at[probefunc] = timestamp; self->v = vtimestamp; }
        syscall:::return /self->at[probefunc]/ { @q[probefunc] = quantize(timestamp - self->at[probefunc]);
            @v = llquantize(vtimestamp - self->v, 10, 0, 9, 10); self->at[probefunc] = 0; }",
        "",
    ),
    (&[], "cpc:::cpu_clock-all-1000000 { @[arg0 != 0, ustack(2)] = count(); }", ""),
    (&[], "kinst:vmlinux:vfs_read:0, fbt::vfs_*: { @[probeprov, stack(4), ustack(4)] = count(); }", ""),
    (
        &["-Z"],
        "pid*:late.so:greet:entry, late*:::greeted { @[probeprov, probename] = count(); }",
        "pid-loader open call fork close open call close done",
    ),
    (
        &["-Z"],
        "work*::: { @[probename] = count(); } pid$target:a.out:dof_*: { @i = count(); }",
        "usdt-dof register fire fork exec register fire remove fire",
    ),
    (&[], "pid$target:a.out:fib: { @[ustack()] = count(); } pid$target:libc.so.6:mem*:entry { @m = count(); }", "pid-work fib sum fork"),
    (&["-Z"], "fbt:dummy::, kinst:dummy:dummy_setup:0 { @[probefunc] = count(); }", ""),
    (&["-Z"], "sample::: { @[probename, arg0] = count(); }", ""),
    (&[], "syscall::open*:entry { @[copyinstr(arg1)] = count(); } syscall::write:entry { @w[fds[arg0].fi_pathname] = sum(arg2); }", ""),
    (
        &["-x", "strsize=1k"],
        "proc:::exec-success { printf(\"%s %Y\\n\", curpsinfo->pr_psargs, walltimestamp); } profile-97 { @[strjoin(execname, \"!\")] = avg(cpu); }",
        "",
    ),
];

/// A consumer's messages on standard error.
#[derive(Default)]
pub struct Said {
    /// Drops of all kinds.
    pub drops: u64,
    /// In addition, the drops of all consumers together where RCU is not watching; they are not
    /// counted by consumer.
    pub elsewhere: u64,
    /// The first line about anything else.
    pub other: Option<String>,
    /// Faults of programs, and probes that could not be created, or not in time.
    pub faults: u64,
}

/// Parses the messages.
pub fn said(text: &str) -> Said {
    let mut said = Said::default();
    for line in text.lines().filter(|l| !l.is_empty()) {
        let Some(ours) = line.strip_prefix("dtrace: ") else {
            // A load's line about itself: `forks: 12 rounds`.
            if !line.ends_with(" rounds") {
                said.other = said.other.or(Some(line.to_owned()));
            }
            continue;
        };
        let (first, rest) = ours.split_once(' ').unwrap_or((ours, ""));
        let is_elsewhere = rest.contains("RCU not watching");
        let is_loss = rest.contains("drop") || rest.starts_with("failed spec");
        match first.parse::<u64>() {
            Ok(n) if is_elsewhere => said.elsewhere += n,
            Ok(n) if is_loss => said.drops += n,
            // Probes that could not be created.
            Ok(_) => said.faults += 1,
            Err(_) if ours.starts_with("error on enabled probe") => said.faults += 1,
            // A process is held for a second at most, and the machine is overloaded.
            Err(_) if ours.starts_with("processes went on ") => said.faults += 1,
            Err(_) => said.other = said.other.or(Some(line.to_owned())),
        }
    }
    said
}

/// The command line of one, which traces for a while, or as long as its process lives.
fn words((options, script, load): Mixed, whole: &mut String) -> Vec<&str> {
    *whole = script.to_owned();
    let mut words = vec!["dtrace", "-q"];
    words.extend(options);
    match load {
        "" => {
            whole.push_str(END);
            words.extend(["-n", whole.as_str()]);
        }
        load => words.extend(["-n", whole.as_str(), "-c", load]),
    }
    words
}

fn trace(which: usize, slower: u32) -> Result<Tally, String> {
    let mut script = String::new();
    let ended = run(&words(ALL[which % ALL.len()], &mut script), slower)?;
    let said = said(&ended.err);
    match said.other {
        Some(other) => Err(format!("{script}: it says {other}")),
        None => Ok(Tally {
            drops: said.drops,
            ..Tally::default()
        }),
    }
}

/// The next `count` consumers in turn.
pub fn lane(from: usize, count: usize) -> Vec<Job> {
    let job = |n: usize| Box::new(move |slower| trace(from + n, slower)) as Job;
    (0..count).map(job).collect()
}

/// Kills one while it enables, traces or ends.
fn kill(seed: u64, slower: u32) -> Result<Tally, String> {
    let mut random = Random::new(seed);
    // Not those with a load, because the load would continue on its own.
    let alone: Vec<Mixed> = ALL.iter().copied().filter(|m| m.2.is_empty()).collect();
    let which = random.below(alone.len());
    let mut script = String::new();
    let mut consumer = Program::start(&words(alone[which], &mut script), slower)?;
    sleep(&mut random, 2000 * slower);
    consumer.kill()?;
    consumer.end()?;
    Ok(Tally::default())
}

/// Starts a process with thousands of probes and its consumer, and kills one of the two. The
/// process must compute the same results as untraced.
fn kill_one_of_two(seed: u64, slower: u32) -> Result<Tally, String> {
    let mut random = Random::new(seed);
    let mut process = Program::start(&["pid-hot", "20000"], slower)?;
    process.await_word("ready");
    let pid = process.pid();
    let script = "pid$target:a.out:hot*: { @[probefunc] = count(); } pid$target:a.out:hot10:entry { @s[ustack()] = count(); }";
    let mut consumer = Program::start(&["dtrace", "-qn", script, "-p", &pid], slower)?;
    sleep(&mut random, 3000 * slower);
    if random.below(2) == 0 {
        process.kill()?;
        process.end()?;
        // The consumer may have found no such process, and says so; its status does not matter.
        return consumer.end().map(|_| Tally::default());
    }
    consumer.kill()?;
    consumer.end()?;
    while process.runs() {
        process.signal("-USR2")?;
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let ended = process.end_well()?;
    match ended
        .out
        .ends_with("wrong 0, unanswered 0, text as before\n")
    {
        true => Ok(Tally::default()),
        false => Err(format!(
            "a process whose consumer was killed: {}",
            ended.out
        )),
    }
}

/// The killed consumers of a round.
pub fn killed(seed: u64) -> Vec<Job> {
    let consumer = |n: u64| Box::new(move |slower| kill(seed ^ n << 32, slower)) as Job;
    let pair = |n: u64| Box::new(move |slower| kill_one_of_two(seed ^ n << 32, slower)) as Job;
    vec![consumer(1), pair(2)]
}

#[cfg(test)]
mod tests {
    use super::said;

    #[test]
    fn losses_are_counted_and_the_rest_is_told() {
        let told = said("\ndtrace: 12 drops on CPU 0\ndtrace: 1 dynamic variable drop with non-empty dirty list\n3 failed speculations\nforks: 3 rounds\n");
        assert_eq!(told.drops, 13);
        assert!(told.other.is_some());
        let told = said("dtrace: 3 failed speculations (no speculative buffer available)\ndtrace: 1 aggregation drop on CPU 1\n");
        assert_eq!((told.drops, told.other), (4, None));
        let told = said("dtrace: 642 drops in probe context (RCU not watching)\n");
        assert_eq!((told.drops, told.elsewhere, told.other), (0, 642, None));
        let told = said("dtrace: error on enabled probe ID 3 (ID 1: a:b:c:d): invalid address (0x0) in action #1\n");
        assert_eq!((told.drops, told.other, told.faults), (0, None, 1));
        let told = said("dtrace: processes went on 1 time before their probes were made\n");
        assert_eq!((told.drops, told.other, told.faults), (0, None, 1));
        let told = said("dtrace: processing aborted: Abort due to systemic unresponsiveness\n");
        assert!(told.other.is_some());
    }
}
