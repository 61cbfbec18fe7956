// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Tracing by `dtrace` while memory is short: with probes in processes, and what neither these nor
//! the lives of consumers cover.
//!
//! `dtrace` traces programs whose results are known, again and again. Each time an allocation fails
//! that has not failed before, whoever it is made for: the consumer, the program that meets a
//! breakpoint, a child, or a worker; until a run has no new one. Whatever fails, the program
//! computes the same results as untraced. `dtrace` prints what it always does, or reports that
//! something is missing, or reports why it ends.

use super::{get, set, Outcome, Owner, MEMBER};
use qemu_tests::memory::Memory;
use qemu_tests::patched;
use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A program to trace, and the D program.
struct Tracing {
    name: &'static str,
    options: &'static [&'static str],
    program: &'static str,
    command: &'static str,
}

/// A set of tracings.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// With probes in processes.
    Processes,
    /// Everything else.
    Rest,
}

impl Kind {
    /// The kind of that name.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "processes" => Some(Self::Processes),
            "rest" => Some(Self::Rest),
            _ => None,
        }
    }

    fn tracings(self) -> &'static [Tracing] {
        match self {
            Self::Processes => &PROCESSES,
            Self::Rest => &REST,
        }
    }
}

/// The script of the commands in [`REST`].
const WORK: &str = "/tmp/shortage.work";

/// The commands in [`REST`]. `calls CPU` makes a call on that CPU, in a program that ends at once.
/// `ends` waits until dtrace ends the command, if dtrace has started it.
const WORK_TEXT: &str = r#"
    ends() { for n in 1 2 3 4 5 6 7 8 9 10; do [ "$(cat /proc/$PPID/comm 2>/dev/null)" != dtrace ] || sleep 1; done; }
    calls() { taskset -c "$1" ended-work; }
    case $1 in
    one) calls 1; calls 1 ;;
    speculates) calls 1; calls 1; calls 0; ends ;;
    ends) cp "$(command -v ended-work)" /tmp/shortage.gone; /tmp/shortage.gone; rm /tmp/shortage.gone; ended-work ended-work ;;
    esac
"#;

/// "speculations": the only speculation has records on two CPUs when one of them commits it, so it
/// is free again only after the cleaner has run on the other one; that ends the tracing. If no call
/// is seen, the end of the command ends it.
const REST: [Tracing; 3] = [
    Tracing {
        name: "one CPU",
        options: &["-x", "cpu=1"],
        program: "BEGIN, END { printf(\"%s on %d\\n\", probename, cpu); }
            syscall::sched_get_priority_max:entry /arg0 == 77/ { printf(\"call on %d\\n\", cpu); }",
        command: "sh /tmp/shortage.work one",
    },
    Tracing {
        name: "speculations",
        options: &["-x", "nspec=1", "-x", "cleanrate=50hz"],
        program: "BEGIN { s = speculation(); calls = 0; freed = 0; }
            syscall::sched_get_priority_max:entry /arg0 == 77 && s/ { speculate(s); printf(\"call\\n\"); }
            syscall::sched_get_priority_max:entry /arg0 == 77 && ++calls == 3/ { commit(s); s = 0; }
            tick-20ms /calls == 3 && !freed/ { freed = speculation(); }
            tick-20ms /freed/ { exit(0); }
            END { printf(\"free: %d\\n\", freed != 0); }",
        command: "sh /tmp/shortage.work speculates",
    },
    Tracing {
        name: "processes that have ended",
        options: &["-x", "switchrate=1sec"],
        program: "syscall::sched_get_priority_max:entry /arg0 == 77/ { @[umod(ucaller), usym(ucaller)] = count(); @s[ustack(5)] = count(); }
            END { clear(@s); trunc(@s); }",
        command: "sh /tmp/shortage.work ends",
    },
];

const PROCESSES: [Tracing; 6] = [
    Tracing {
        name: "functions",
        options: &[],
        program: "pid$target:a.out:grow:,pid$target:a.out:sum8:,pid$target:a.out:fib:entry { @[probefunc, probename] = count(); }
            pid$target:a.out:fib:return { @r = sum(arg1); } pid$target:libc:*printf: { n++; }
            END { printf(\"%d\\n\", n > 0); }",
        command: "pid-work sum fib grow threads fork vfork exec text",
    },
    Tracing {
        name: "children",
        options: &["-Z", "-x", "follow=fork"],
        program: "pid$target:late.so:greet:entry { @[arg0] = count(); } pid$target:a.out:call:entry { @c = count(); }",
        command: "pid-loader open fork call close done",
    },
    Tracing {
        name: "probes of the file",
        options: &[],
        program: "work$target:::said-it { @[probefunc] = sum(arg0); } work$target:::memory { @m = sum(args[0]); }",
        command: "usdt-work ways tell fork exec tell",
    },
    Tracing {
        name: "probes that are registered",
        options: &["-Z", "-x", "holdtime=1sec"],
        program: "work$target:::passed { @[copyinstr(arg0)] = count(); } work$target:::tail { @n = sum(arg0); } work$target:::said-it { }",
        command: "usdt-dof register fire fork remove fire",
    },
    Tracing {
        name: "pages and stacks",
        options: &[],
        program: "pid$target:a.out:look:entry { @[copyinstr(arg0)] = sum(arg1); } pid$target:a.out:look:return { @s[ustack()] = count(); }
            END { printa(\"%s %@d\\n\", @); clear(@s); trunc(@s); }",
        command: "pid-pages look give look",
    },
    Tracing {
        name: "any process",
        options: &["-Z", "-x", "holdtime=1sec"],
        program: "work*:::said-it { @n = sum(arg0); } late*:::greeted { @g = sum(arg0); } syscall::openat:entry /execname == \"usdt-work\"/ { @o[copyinstr(arg1)] = max(1); }",
        command: "usdt-work tell fork tell",
    },
];

/// The most time that a tracing takes.
const LIMIT: Duration = Duration::from_secs(100);

/// The results of a tracing.
#[derive(Debug, PartialEq, Eq)]
pub struct Told {
    /// The exit status of the command.
    pub status: Option<i32>,
    /// What the program printed.
    program: String,
    /// What dtrace wrote to its file.
    pub traced: String,
    /// The command's complaints.
    pub complaints: String,
}

/// Whether a program reports by this line that there was no memory to register its probes.
fn is_told(line: &str) -> bool {
    matches!(line, "register: ENOMEM" | "remove: ENOENT")
}

/// The rest of a program's output, with whether its probes are enabled masked.
fn masked(text: &str) -> String {
    let mask = |line: &str| match line.split_once(',') {
        Some((said, rest)) if said.starts_with("asks") => rest.to_owned() + "\n",
        Some((said, _)) if said.starts_with("told") => "told\n".to_owned(),
        _ => line.to_owned() + "\n",
    };
    let rest = text.lines().filter(|line| !is_told(line));
    rest.map(mask).collect()
}

/// Whether dtrace reports by this line that a speculation was requested too early, before the
/// cleaner had freed one.
fn is_early(line: &str) -> bool {
    line.contains("failed speculation") && line.contains("still busy")
}

fn end(child: &mut Child) -> Result<Option<i32>, String> {
    let begin = Instant::now();
    loop {
        if let Some(status) = child.try_wait().map_err(|e| e.to_string())? {
            return Ok(status.code());
        }
        if begin.elapsed() > LIMIT {
            let _ = child.kill();
            return Err("it does not end".into());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Runs a command. Returns its output, and what dtrace writes to its file, `/tmp/shortage.traced`.
pub fn run(command: &mut Command) -> Result<Told, String> {
    let dir = std::env::temp_dir();
    let file = |name: &str| dir.join(format!("shortage.{name}"));
    let create = |name: &str| fs::File::create(file(name)).map_err(|e| e.to_string());
    let read = |name: &str| {
        let text = fs::read(file(name)).unwrap_or_default();
        String::from_utf8_lossy(&text).into_owned()
    };
    let _ = fs::remove_file(file("traced"));
    command.stdin(Stdio::null());
    command
        .stdout(create("program")?)
        .stderr(create("complaints")?);
    let mut child = command.spawn().map_err(|e| e.to_string())?;
    let status = end(&mut child)?;
    let printed = read("program");
    let said = read("complaints");
    let said = said.lines().filter(|line| !is_early(line));
    let said: String = said.map(|line| line.to_owned() + "\n").collect();
    let told = printed.lines().filter(|line| is_told(line));
    Ok(Told {
        status,
        program: masked(&printed),
        traced: read("traced"),
        complaints: told.collect::<String>() + &said,
    })
}

/// A command that runs with the owner's IDs.
fn command_of(owner: Owner, name: &str) -> Command {
    if owner == Owner::Root {
        return Command::new(name);
    }
    let (user, group) = MEMBER;
    let mut command = Command::new("setpriv");
    command.args([format!("--reuid={user}"), format!("--regid={group}")]);
    command.args(["--clear-groups", name]);
    command
}

impl Tracing {
    fn untraced(&self, owner: Owner) -> Result<Told, String> {
        let mut words = self.command.split(' ');
        run(command_of(owner, words.next().unwrap_or_default()).args(words))
    }

    fn traced(&self, owner: Owner) -> Result<Told, String> {
        let mut command = command_of(owner, "dtrace");
        command
            .args(self.options)
            .args(["-o", "/tmp/shortage.traced"]);
        run(command.args(["-qn", self.program, "-c", self.command]))
    }

    /// Traces with one allocation failing. `None` if all of them had failed before.
    fn short(&self, owner: Owner, run: u64) -> Result<Option<Told>, String> {
        set("run", run)?;
        set("seen", 0)?;
        fs::write("/sys/module/shortage/parameters/task", "-1").map_err(|e| e.to_string())?;
        let told = self.traced(owner);
        set("task", 0)?;
        let told = told?;
        Ok((get("seen")? != "0").then_some(told))
    }

    /// What is wrong with the results of a tracing in which something has failed at that place, if
    /// anything.
    fn wrong(&self, place: &str, told: &Told, whole: &Told) -> Option<&'static str> {
        // A known limitation: addresses of such a process have no names.
        let may_be_silent = place.contains(" for dtrace_remains_note+");
        let is_silent = told.complaints.trim().is_empty() && !may_be_silent;
        match told.status {
            Some(0) if told.program != whole.program => Some("the program has computed otherwise"),
            Some(0) if told.traced != whole.traced && is_silent => {
                Some("something is missing without a word")
            }
            Some(0) => None,
            Some(1) if is_silent => Some("it ends without a word"),
            // The program may not have been started.
            Some(1) if told.program.is_empty() || told.program == whole.program => None,
            Some(1) => Some("the program has computed otherwise when dtrace ended"),
            _ => Some("dtrace has died"),
        }
    }
}

/// Checks all tracings of a kind, for an owner. Tests one in `every` paths, and lets each fail
/// `depth` times.
pub fn check(owner: Owner, kind: Kind, every: u64, depth: u64) -> Outcome {
    fs::write(WORK, WORK_TEXT).map_err(|e| format!("{WORK}: {e}"))?;
    set("every", every)?;
    set("depth", depth)?;
    let mut whole = Vec::new();
    for tracing in kind.tracings() {
        let (alone, told) = (tracing.untraced(owner)?, tracing.traced(owner)?);
        if told.program != alone.program || told.status != Some(0) || told.traced.trim().is_empty()
        {
            return Err(format!(
                "{}: with memory enough: {} {}",
                tracing.name, told.traced, told.complaints
            ));
        }
        whole.push(told);
    }
    let patched = patched::settled()?;
    let before = Memory::now()?;
    let (mut lives, mut wrong) = (0, 0);
    for (tracing, whole) in kind.tracings().iter().zip(&whole) {
        let first = lives;
        while let Some(told) = tracing.short(owner, lives + 1)? {
            lives += 1;
            let place = get("where")?;
            eprintln!(
                "{} {lives}: {place}: {:?} {}",
                tracing.name,
                told.status,
                told.complaints.replace('\n', " | ")
            );
            if let Some(why) = tracing.wrong(&place, &told, whole) {
                wrong += 1;
                println!("{}: {place}: {why}: {:?}", tracing.name, told.status);
                println!("{}{}{}", told.program, told.traced, told.complaints);
            }
        }
        eprintln!("{}: {} allocations", tracing.name, lives - first);
        let again = tracing.traced(owner)?;
        if again != *whole {
            return Err(format!(
                "{}: afterwards: {}{}",
                tracing.name, again.traced, again.complaints
            ));
        }
    }
    if lives == 0 {
        return Err("no allocation has failed".into());
    }
    if get("lost")? != "0" {
        return Err("there are more paths than the module has room for".into());
    }
    let after = Memory::now()?;
    eprintln!("shortage-check: {lives} tracings; {before:?}, then {after:?}");
    after.check(&before, lives)?;
    patched::check(&patched)?;
    set("depth", 0)?;
    match wrong {
        0 => {
            println!("shortage-check: ok");
            Ok(())
        }
        _ => Err(format!("{wrong} of {lives} tracings")),
    }
}
