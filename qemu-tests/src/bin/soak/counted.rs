// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Consumers for which the number of events is known: each has a load of its own, under a name of
//! its own, and counts what the load does.
//!
//! The count must equal what the load did. If events were dropped, the consumer must have reported
//! that, and count and reported drops together must account for all events: exactly if each event
//! is recorded or dropped once, and at least otherwise. Any other message on standard error is a
//! failure.

use crate::mixed::said;
use crate::program::{run, Ended, Program};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The folder of the loads and of what they write.
pub const FOLDER: &str = "/tmp/soak";

/// The number of events that a consumer must see.
enum Truth {
    /// The sum of what its load prints after this word.
    Told(&'static str),
    /// A known number.
    Known(u64),
}

/// How the load is run.
enum Load {
    /// By the consumer, with `-c`.
    Command(String),
    /// Before the consumer; it waits until it is traced.
    Waits(&'static [&'static str]),
    /// By the consumer, both as a member of the group.
    Member(String),
}

/// A counted consumer. Its program prints `have WHAT ... N` for each of `counts`, or one such line
/// per event.
struct Counted {
    name: &'static str,
    options: &'static [&'static str],
    script: &'static str,
    load: Load,
    truth: Truth,
    counts: &'static [&'static str],
    /// Each event is either recorded once or dropped once.
    exact: bool,
}

/// What a consumer reported.
#[derive(Clone, Copy, Default)]
pub struct Tally {
    /// Events whose number is known, seen or reported as dropped.
    pub known: u64,
    /// All events that were seen.
    pub seen: u64,
    /// Drops.
    pub drops: u64,
}

impl Tally {
    /// Adds the other's numbers.
    pub fn add(&mut self, other: Self) {
        self.known += other.known;
        self.seen += other.seen;
        self.drops += other.drops;
    }
}

/// The names under which programs are copied, which no other process has, and the programs.
pub const NAMES: [(&str, &str); 11] = [
    ("soak-calls", "overload"),
    ("soak-records", "overload"),
    ("soak-temporal", "overload"),
    ("soak-keys", "overload"),
    ("soak-dynamic", "overload"),
    ("soak-specs", "overload"),
    ("soak-member", "overload"),
    ("soak-own", "rights-work"),
    ("soak-load", "mixed-load"),
    ("soak-other", "mixed-load"),
    ("soak-exec", "pid-work"),
];

/// The command that runs another as the member.
const MEMBER: &[&str] = &[
    "setpriv",
    "--reuid",
    "65534",
    "--regid",
    "77",
    "--clear-groups",
];

/// How often the load of processes executes a program.
const EXECS: u64 = 20;

/// The script of that load.
pub fn execs() -> String {
    format!("n=0\nwhile [ $n -lt {EXECS} ]; do {FOLDER}/soak-exec; n=$((n + 1)); done\n")
}

/// The command line for a program's own steps: ten per word.
fn steps(program: &str) -> String {
    format!("{program}{}", " steps".repeat(10))
}

fn calls() -> [Counted; 6] {
    let load = |name: &str, n: u32| Load::Command(format!("{FOLDER}/{name} {n}"));
    let each = |name, options, script, load| Counted {
        name,
        options,
        script,
        load,
        truth: Truth::Told("calls"),
        counts: &["records"],
        exact: true,
    };
    [
        Counted {
            counts: &["entries", "returns"],
            exact: false,
            ..each(
                "calls",
                &[],
                r#"syscall::sched_get_priority_max:entry /execname == "soak-calls"/ { @entries = count(); }
                syscall::sched_get_priority_max:return /execname == "soak-calls"/ { @returns = count(); }
                END { printa("have entries %@d\n", @entries); printa("have returns %@d\n", @returns); }"#,
                load("soak-calls", 10_000),
            )
        },
        each(
            "records",
            &["-x", "bufsize=64k", "-x", "switchrate=50ms"],
            r#"syscall::sched_get_priority_max:entry /execname == "soak-records"/ { printf("have records 1\n"); }"#,
            load("soak-records", 4_000),
        ),
        each(
            "temporal",
            &[
                "-x",
                "temporal",
                "-x",
                "bufsize=4m",
                "-x",
                "switchrate=10hz",
            ],
            r#"syscall::sched_get_priority_max:entry /execname == "soak-temporal"/ { printf("have records 1\n"); }"#,
            load("soak-temporal", 2_000),
        ),
        each(
            "keys",
            &["-x", "aggsize=64k"],
            r#"syscall::sched_get_priority_max:entry /execname == "soak-keys"/ { @[arg0] = count(); }
            END { printa("have records %d %@d\n", @); }"#,
            load("soak-keys", 2_000),
        ),
        each(
            "dynamic",
            &["-x", "dynvarsize=64k"],
            r#"syscall::sched_get_priority_max:entry /execname == "soak-dynamic"/ { kept[arg0] = 1; @ = sum(kept[arg0]); }
            syscall::sched_get_priority_max:entry /execname == "soak-dynamic" && arg0 % 2/ { kept[arg0] = 0; }
            END { printa("have records %@d\n", @); }"#,
            load("soak-dynamic", 2_000),
        ),
        each(
            "speculations",
            &["-x", "bufsize=64k", "-x", "nspec=1", "-x", "specsize=4k"],
            r#"syscall::sched_get_priority_max:entry /execname == "soak-specs"/ { this->spec = speculation(); }
            syscall::sched_get_priority_max:entry /execname == "soak-specs" && this->spec/ { speculate(this->spec); printf("have records 1\n"); }
            syscall::sched_get_priority_max:entry /execname == "soak-specs" && this->spec/ { commit(this->spec); }"#,
            load("soak-specs", 2_000),
        ),
    ]
}

fn processes() -> [Counted; 7] {
    let known = |name, script, load, n, counts| Counted {
        name,
        options: &[],
        script,
        load,
        truth: Truth::Known(n),
        counts,
        exact: false,
    };
    let own = r#"rights$target:::step { @sites = count(); }
        pid$target:a.out:step:entry { @functions = count(); }
        syscall::sched_get_priority_max:entry /execname == "soak-own"/ { @calls = count(); }
        END { printa("have sites %@d\n", @sites); printa("have functions %@d\n", @functions); printa("have calls %@d\n", @calls); }"#;
    [
        known(
            "functions",
            r#"pid$target:a.out:grow:entry { @entries = count(); } pid$target:a.out:grow:return { @returns = count(); }
            END { printa("have entries %@d\n", @entries); printa("have returns %@d\n", @returns); }"#,
            Load::Command("pid-work fib grow threads vfork text".into()),
            // The last call is made by a child that shares the memory.
            5001,
            &["entries", "returns"],
        ),
        known(
            "attached",
            r#"pid$target:a.out:grow:entry { @entries = count(); } pid$target:a.out:grow:return { @returns = count(); }
            END { printa("have entries %@d\n", @entries); printa("have returns %@d\n", @returns); }"#,
            Load::Waits(&["pid-work", "wait", "threads", "grow", "threads"]),
            9000,
            &["entries", "returns"],
        ),
        known(
            "own",
            own,
            Load::Command(steps(&format!("{FOLDER}/soak-own"))),
            100,
            &["sites", "functions", "calls"],
        ),
        Counted {
            truth: Truth::Told("told"),
            ..known(
                "semaphore",
                r#"work$target:::said-it { @sites = count(); } END { printa("have sites %@d\n", @sites); }"#,
                Load::Command("usdt-work asked tell tell tell".into()),
                0,
                &["sites"],
            )
        },
        known(
            "executed",
            r#"proc:::exec-success /execname == "soak-exec"/ { @execs = count(); } proc:::exit /execname == "soak-exec"/ { @exits = count(); }
            END { printa("have execs %@d\n", @execs); printa("have exits %@d\n", @exits); }"#,
            Load::Command(format!("sh {FOLDER}/execs")),
            EXECS,
            &["execs", "exits"],
        ),
        Counted {
            truth: Truth::Told("calls"),
            ..known(
                "member",
                r#"syscall::sched_get_priority_max:entry /execname == "soak-member"/ { @calls = count(); } END { printa("have calls %@d\n", @calls); }"#,
                Load::Member(format!("{FOLDER}/soak-member 500")),
                0,
                &["calls"],
            )
        },
        known(
            "member's own",
            r#"rights$target:::step { @sites = count(); } pid$target:a.out:step:entry { @functions = count(); }
            profile-97 { @stacks[ustack(3)] = count(); } tick-50ms { @ticks = count(); }
            END { clear(@stacks); trunc(@stacks); clear(@ticks); trunc(@ticks); printa("have sites %@d\n", @sites); printa("have functions %@d\n", @functions); }"#,
            Load::Member(steps(&format!("{FOLDER}/soak-own"))),
            100,
            &["sites", "functions"],
        ),
    ]
}

/// Traces all functions, system calls and tracepoints, while the machine works for that many
/// seconds.
fn everything(seconds: u64) -> Counted {
    Counted {
        name: "everything",
        options: &["-x", "aggsize=1m"],
        script: r#"fbt::: { @all = count(); } syscall::: { @all = count(); } sdt::: { @all = count(); }
            syscall::getppid:entry /execname == "soak-load"/ { @a = count(); }
            syscall::getppid:return /execname == "soak-load"/ { @b = count(); }
            fbt::*_sys_getppid:entry /execname == "soak-load"/ { @c = count(); }
            fbt::*_sys_getppid:return /execname == "soak-load"/ { @d = count(); }
            sdt:raw_syscalls::sys_enter /execname == "soak-load" && arg1 == 110/ { @e = count(); }
            END { printa("have entries %@d\n", @a); printa("have returns %@d\n", @b); printa("have functions %@d\n", @c);
                printa("have function-returns %@d\n", @d); printa("have tracepoints %@d\n", @e); printa("events %@d\n", @all); }"#,
        load: Load::Command(format!("{FOLDER}/soak-load {seconds} {FOLDER}/disk")),
        truth: Truth::Told("calls"),
        counts: &[
            "entries",
            "returns",
            "functions",
            "function-returns",
            "tracepoints",
        ],
        exact: false,
    }
}

/// The sum of the numbers in all lines that begin with these words.
fn sum(text: &str, begin: &[&str]) -> u64 {
    let number = |line: &str| {
        let words: Vec<&str> = line.split([' ', ',']).filter(|w| !w.is_empty()).collect();
        let is_it = words.get(..begin.len()) == Some(begin);
        // In `told 10, wanted 2` the number after the word counts, otherwise the last one.
        let which = match begin {
            ["have", ..] => words.len().checked_sub(1)?,
            _ => begin.len(),
        };
        words.get(which).filter(|_| is_it)?.parse::<u64>().ok()
    };
    text.lines().filter_map(number).sum()
}

impl Counted {
    /// Runs it, and compares.
    fn run(&self, slower: u32) -> Result<Tally, String> {
        let file = PathBuf::from(format!(
            "{FOLDER}/out/{}",
            self.name.replace(['\'', ' '], "-")
        ));
        let told = self.trace(&file, slower);
        let traced = fs::read_to_string(&file).unwrap_or_default();
        let _ = fs::remove_file(&file);
        told.and_then(|(ended, load)| self.compare(&traced, &ended, &load))
            .map_err(|why| format!("{}: {why}", self.name))
    }

    /// Traces into the file. Returns how the consumer ended, and what its load printed.
    fn trace(&self, file: &Path, slower: u32) -> Result<(Ended, String), String> {
        let file = file.to_string_lossy();
        let mut words = match &self.load {
            Load::Member(_) => MEMBER.to_vec(),
            _ => Vec::new(),
        };
        words.extend(["dtrace", "-q", "-o", &file, "-n", self.script]);
        words.extend(self.options);
        match &self.load {
            Load::Command(line) | Load::Member(line) => {
                words.extend(["-c", line]);
                let ended = run(&words, slower)?;
                let out = ended.out.clone();
                Ok((ended, out))
            }
            Load::Waits(load) => {
                let mut load = Program::start(load, slower)?;
                load.await_word("ready");
                let pid = load.pid();
                words.extend(["-n", "BEGIN { printf(\"begun\\n\"); }", "-p", &pid]);
                let mut consumer = Program::start(&words, slower)?;
                let begun = || fs::read_to_string(&*file).is_ok_and(|text| text.contains("begun"));
                while consumer.runs() && !begun() {
                    std::thread::sleep(Duration::from_millis(20));
                }
                load.signal("-USR1")?;
                let out = load.end_well()?.out;
                Ok((consumer.end_well()?, out))
            }
        }
    }

    fn compare(&self, traced: &str, ended: &Ended, load: &str) -> Result<Tally, String> {
        let said = said(&ended.err);
        if said.other.is_some() || said.faults > 0 {
            return Err(format!("it says {}", ended.err));
        }
        let made = match self.truth {
            Truth::Told(word) => sum(load, &[word]),
            Truth::Known(n) => n,
        };
        let mut tally = Tally {
            known: 0,
            seen: sum(traced, &["events"]),
            drops: said.drops,
        };
        for count in self.counts {
            let seen = sum(traced, &["have", count]);
            tally.known += made;
            tally.seen += seen;
            let all = seen + said.drops;
            let most = all + said.elsewhere;
            let accounted = match self.exact {
                true => all <= made && most >= made,
                false => seen <= made && most >= made,
            };
            if made == 0 || !accounted {
                return Err(format!(
                    "{count}: {seen} seen, {} told to be lost, of {made}\n{}",
                    said.drops, ended.err
                ));
            }
        }
        Ok(tally)
    }
}

/// Two lanes, each of which runs its consumers one after the other, and the lane of [`everything`].
/// A failure does not stop its lane.
pub fn lanes(seconds: u64) -> [Vec<Job>; 3] {
    let jobs = |all: Vec<Counted>| {
        let job = |one: Counted| Box::new(move |slower| one.run(slower)) as Job;
        all.into_iter().map(job).collect()
    };
    [
        jobs(calls().into()),
        jobs(processes().into()),
        jobs(vec![everything(seconds)]),
    ]
}

/// A part of a round, called with how many times slower the machine is.
pub type Job = Box<dyn Fn(u32) -> Result<Tally, String> + Send>;

#[cfg(test)]
mod tests {
    use super::sum;

    #[test]
    fn numbers_of_lines() {
        let text = "have records 77 3\nhave records 78 4\nhave keys 5\ncalls 100\ntold 10, wanted 2\ntold 9, wanted 1\n";
        assert_eq!(sum(text, &["have", "records"]), 7);
        assert_eq!(sum(text, &["have", "keys"]), 5);
        assert_eq!(sum(text, &["calls"]), 100);
        assert_eq!(sum(text, &["told"]), 19);
        assert_eq!(sum(text, &["nothing"]), 0);
    }
}
