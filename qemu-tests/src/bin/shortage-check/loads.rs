// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Lives of the module while memory is short: it is loaded with an anonymous enabling, another
//! module with a provider is loaded, the enabling is claimed, and both modules are unloaded.
//!
//! In each life, something fails on a path on which nothing has failed before. Then either the
//! module refuses to load for lack of memory; or the trace is complete; or dtrace, `insmod` or the
//! kernel's log reports that something is missing. Modules that were loaded can always be unloaded,
//! and leave no memory allocated.

use super::processes::{run, Told};
use super::{get, set, Outcome};
use qemu_tests::memory::{read, Memory};
use std::fs;
use std::process::Command;

const LIFE: &str = "/tmp/shortage.life";

/// The script of a life. Status 3: the module refused to load. The first argument is the directory
/// of the tested module.
const LIFE_TEXT: &str = r#"
    insmod "$1/dtrace.ko" anon_file=/tmp/shortage.dof || exit 3
    insmod "$1/../provider/dtrace_sample.ko" && came=1
    sh -c 'cd /proc/irq; cat /proc/self/stat >/dev/null; sleep 0.1'
    [ -z "$came" ] || echo three >/proc/dtrace_sample
    # Who could not claim it has left it as it was, and keeps the provider.
    dtrace -ae -o /tmp/shortage.traced || dtrace -ae -o /tmp/shortage.traced
    [ -z "$came" ] || rmmod dtrace_sample
    rmmod dtrace
"#;

/// The anonymous enabling; the provider `sample` is loaded later. It has no `kinst` probe, because
/// `breakpoint-shortage` tests those.
const PROGRAM: &str = r#"
    BEGIN { printf("begins on a CPU: %d\n", cpu >= 0); }
    syscall::chdir:entry /copyinstr(arg0) == "/proc/irq"/ { @calls[probefunc] = count(); }
    fbt::vfs_read: /execname == "cat"/ { @reads[probename] = max(1); }
    proc:::exec-success /execname == "cat"/ { @execs[probename] = count(); }
    tick-20ms, profile-97 { @times[probename] = max(1); }
    sample:::write-done { @writes[probename] = count(); }
    END { printf("ends\n"); }
"#;

/// The results of a life, and the kernel's messages meanwhile.
struct Life {
    told: Told,
    words: Vec<String>,
}

/// Runs a command, which must succeed.
fn command(name: &str, args: &[&str]) -> Outcome {
    let status = Command::new(name).args(args).status();
    match status.map_err(|e| format!("{name}: {e}"))?.success() {
        true => Ok(()),
        false => Err(format!("{name} {args:?} fails")),
    }
}

/// The kernel's messages about the module, without digits, since `mark` was written to its log.
fn words_since(mark: &str) -> Result<Vec<String>, String> {
    let log = Command::new("dmesg").output().map_err(|e| e.to_string())?;
    let log = String::from_utf8_lossy(&log.stdout).into_owned();
    let (_, since) = log
        .rsplit_once(mark)
        .ok_or("the kernel's log is too short")?;
    let ours = since.lines().filter_map(|l| l.split_once(" dtrace"));
    Ok(ours
        .map(|(_, said)| said.replace(|c: char| c.is_ascii_digit(), ""))
        .collect())
}

/// The vmalloc areas of unloaded modules: the kernel prints their allocating function as a number,
/// because it has no name any more.
fn areas() -> Result<Vec<String>, String> {
    let all = read("/proc/vmallocinfo")?;
    let caller = |line: &str| line.split_whitespace().nth(2).map(str::to_owned);
    Ok(all
        .lines()
        .filter(|line| caller(line).is_some_and(|who| who.starts_with("0x")))
        .map(str::to_owned)
        .collect())
}

fn life(dir: &str, number: u64) -> Result<Life, String> {
    let mark = format!("shortage-check: life {number}.");
    // The mark ends with a newline, because a line without one is not in the log yet.
    fs::write("/dev/kmsg", format!("{mark}\n")).map_err(|e| e.to_string())?;
    let told = run(Command::new("sh").args([LIFE, dir]))?;
    let words = words_since(&mark)?;
    Ok(Life { told, words })
}

impl Life {
    /// What is wrong with a life in which something has failed, if anything.
    fn wrong(&self, whole: &Life) -> Option<&'static str> {
        let complaints = self.told.complaints.trim();
        let is_short = ["Cannot allocate memory", "Input/output error"]
            .iter()
            .any(|why| complaints.contains(why));
        let is_silent = complaints.is_empty() && self.words == whole.words;
        match self.told.status {
            Some(3) if is_short => None,
            Some(3) => Some("the module is refused for another reason"),
            Some(0) if self.told.traced != whole.told.traced && is_silent => {
                Some("something is missing without a word")
            }
            Some(0) => None,
            _ => Some("a module does not go"),
        }
    }
}

/// Runs lives of the loaded module in `dir`. Tests one in `every` paths, and lets each fail `depth`
/// times.
pub fn check(dir: &str, every: u64, depth: u64) -> Outcome {
    let module = format!("{dir}/dtrace.ko");
    fs::write(LIFE, LIFE_TEXT).map_err(|e| format!("{LIFE}: {e}"))?;
    command(
        "dtrace",
        &["-qZA", "-o", "/tmp/shortage.dof", "-n", PROGRAM],
    )?;
    command("rmmod", &["dtrace"])?;
    set("every", every)?;
    set("depth", depth)?;
    let whole = life(dir, 0)?;
    // One line each of BEGIN and END, and of each probe between them.
    let lines = whole.told.traced.lines().filter(|l| !l.trim().is_empty());
    let is_whole = whole.told.status == Some(0) && lines.count() == 9;
    if !is_whole || !whole.told.complaints.trim().is_empty() {
        return Err(format!(
            "with memory enough: {:?} {}",
            whole.told,
            whole.words.join(" | ")
        ));
    }
    command("insmod", &[&module])?;
    let before = Memory::now()?;
    command("rmmod", &["dtrace"])?;
    let left = areas()?;
    let (mut lives, mut refused, mut wrong) = (0, 0, 0);
    loop {
        set("run", lives + 1)?;
        set("seen", 0)?;
        fs::write("/sys/module/shortage/parameters/task", "-1").map_err(|e| e.to_string())?;
        let lived = life(dir, lives + 1);
        set("task", 0)?;
        let lived = lived?;
        if get("seen")? == "0" {
            break;
        }
        lives += 1;
        refused += u64::from(lived.told.status == Some(3));
        let (place, said) = (get("where")?, lived.told.complaints.replace('\n', " | "));
        let status = lived.told.status;
        eprintln!(
            "{lives}: {place}: {status:?} {said} {}",
            lived.words.join(" | ")
        );
        if let Some(why) = lived.wrong(&whole) {
            wrong += 1;
            println!(
                "{place}: {why}: {:?} {}",
                lived.told,
                lived.words.join(" | ")
            );
        }
        let now = areas()?;
        if now != left {
            return Err(format!("{place}: areas are left: {now:?}"));
        }
    }
    set("depth", 0)?;
    command("insmod", &[&module])?;
    let after = Memory::now()?;
    eprintln!("shortage-check: {refused} of {lives} refused; {before:?}, then {after:?}");
    after.check(&before, lives)?;
    if get("lost")? != "0" {
        return Err("there are more paths than the module has room for".into());
    }
    if refused == 0 || refused == lives || wrong != 0 {
        return Err(format!(
            "of {lives} lives {refused} were refused, {wrong} are wrong"
        ));
    }
    println!("shortage-check: ok");
    Ok(())
}
