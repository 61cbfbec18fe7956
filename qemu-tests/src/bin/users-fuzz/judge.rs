// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Starts the processes, and finally reports what they did and what is wrong with it.
//!
//! The rules: no processor is held, and no system call of root takes, [longer than a
//! second](Limits::held). No control call of root, and no loading of a module, takes [longer than
//! five](Limits::waited), and no lock of the module is held for longer, if the kernel [measures
//! that](locks). On the debug kernel all limits are six times as long. No tracing of root is ended,
//! and none misses a call without reporting a drop. If root is one of the users, his control calls
//! wait for his own workers, which may take as long as he likes: then slow control calls and ended
//! tracings of root are reported, but are not faults. No user takes [more memory](Limits::memory),
//! no process is killed for lack of it, and in the end all of it is free again.
//!
//! A busy computer holds up a virtual machine as well; that part of a time is subtracted
//! ([`times`](super::times)). The numbers from before any user begins are reported next to the
//! result, and separately those [without the module](without).

use super::control::ENDED;
use super::crew::{group, Crew, Role, USERS};
use super::locks;
use super::stuck::stacks;
use super::tally::Tally;
use super::times::{Kind, Times};
use qemu_tests::memory::Memory;
use qemu_tests::random::Random;
use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

/// How long the machine is watched before users begin.
const CALM: Duration = Duration::from_secs(10);
/// Seconds between two kills of a worker, whatever it does.
const KILLS: u64 = 12;
/// How long processes may continue after their time.
const PATIENCE: Duration = Duration::from_secs(120);
/// What the module keeps for later use (accounts of users, retired probes, room in tables) counts
/// as this many consumers in the final check: some megabytes.
const SLACK: u64 = 8192;
/// How long root may wait before the stacks are reported; they are reported again after the same
/// time.
const STUCK: Duration = Duration::from_secs(6);
/// How many times slower the debug kernel is.
const SLOWER: u32 = 6;

/// How many locks are reported.
const TOLD_LOCKS: usize = 6;

struct Limits {
    held: Duration,
    waited: Duration,
    end: Duration,
    /// Bytes.
    memory: u64,
}

/// The measured times and their descriptions: of processors, and also of root's use of the module.
const PROCESSORS: [(&str, Kind); 2] = [ALL[0], ALL[1]];
const ALL: [(&str, Kind); 3] = [
    ("a processor was held", Kind::Late),
    ("a system call of root's took", Kind::Call),
    ("a control call of root's took", Kind::Wait),
];

/// The largest value, and when it was seen, in seconds.
#[derive(Default)]
struct Most<T> {
    most: T,
    at: u64,
}

impl<T: PartialOrd> Most<T> {
    fn see(&mut self, value: T, at: u64) {
        if value > self.most {
            (self.most, self.at) = (value, at);
        }
    }
}

struct Judge {
    crew: Crew,
    begin: Instant,
    times: Times,
    /// Root is one of the users; and how many of his tracings were ended then, because he could not
    /// attend to them.
    is_roots: bool,
    forgotten: u64,
    /// By user: all memory, and the kernel's part.
    memory: BTreeMap<u32, (Most<u64>, Most<u64>)>,
    available: u64,
    controls: u64,
    /// When root last reported that it traced.
    heard: Instant,
    faults: Vec<String>,
    tallies: BTreeMap<u32, Tally>,
}

impl Limits {
    fn new() -> Result<Self, String> {
        let release = text("/proc/sys/kernel/osrelease")?;
        let slower = if release.trim().ends_with("-debug") {
            SLOWER
        } else {
            1
        };
        Ok(Self {
            held: Duration::from_secs(1) * slower,
            waited: Duration::from_secs(5) * slower,
            end: PATIENCE * slower,
            memory: field("/proc/meminfo", "MemAvailable:")? * 1024 / 2,
        })
    }
}

/// Reports how long processors are held without the module, while users' programs only run.
pub fn without() -> Result<(), String> {
    let limits = Limits::new()?;
    let mut judge = Judge::new()?;
    judge.watch()?;
    for user in USERS {
        judge.crew.begin(Role::Prey(user), 0)?;
    }
    judge.listen(CALM);
    judge.times.compare();
    judge.crew.kill();
    println!("without the module:");
    judge.tell_times(&limits, &PROCESSORS);
    Ok(())
}

/// Judges a run; an error if anything is wrong.
pub fn judge(seed: u64, seconds: u64, processes: u64, users: &[u32]) -> Result<(), String> {
    let limits = Limits::new()?;
    println!(
        "users-fuzz: seed {seed}, {seconds} s, {processes} processes a user, {}",
        text("/proc/sys/kernel/osrelease")?.trim()
    );
    let mut judge = Judge::new()?;
    // Creates beforehand what stays: names of probes, and the kernel's own data.
    for args in [&["dummy"][..], &["-r", "dummy"]] {
        let loaded = Command::new("modprobe").args(args).status();
        loaded.map_err(|e| format!("modprobe: {e}"))?;
    }
    let before = Memory::now()?;
    let killed = field("/proc/vmstat", "oom_kill ")?;
    judge.watch()?;
    judge.crew.begin(Role::Control, 0)?;
    judge.listen(CALM);
    judge.times.compare();
    println!("before users begin:");
    judge.tell_times(&limits, &ALL);
    judge.faults.clear();
    judge.times.clear();
    locks::clear();
    judge.begin = Instant::now();
    judge.is_roots = users.contains(&0);
    judge.run(seed, seconds, processes, users)?;
    judge.end(limits.end);
    let killed = field("/proc/vmstat", "oom_kill ")? - killed;
    if killed > 0 {
        judge
            .faults
            .push(format!("{killed} processes were killed for want of memory"));
    }
    let consumers = judge.report(&limits);
    if let Err(why) = Memory::now().and_then(|after| after.check(&before, consumers + SLACK)) {
        judge.faults.push(why);
    }
    for fault in &judge.faults {
        println!("FAULT: {fault}");
    }
    match judge.faults.len() {
        0 => {
            println!("users-fuzz: nothing was found");
            Ok(())
        }
        n => Err(format!("{n} faults; repeat with seed {seed}")),
    }
}

impl Judge {
    fn new() -> Result<Self, String> {
        Ok(Self {
            crew: Crew::new()?,
            begin: Instant::now(),
            times: Times::new(),
            is_roots: false,
            forgotten: 0,
            memory: BTreeMap::new(),
            available: u64::MAX,
            controls: 0,
            heard: Instant::now(),
            faults: Vec::new(),
            tallies: BTreeMap::new(),
        })
    }

    fn watch(&mut self) -> Result<(), String> {
        let cpus = std::thread::available_parallelism().map_err(|e| e.to_string())?;
        for cpu in 0..cpus.get() {
            self.crew.begin(Role::Watch(cpu), 0)?;
        }
        Ok(())
    }

    fn seconds(&self) -> u64 {
        self.begin.elapsed().as_secs()
    }

    /// Lets all users work, and kills some workers.
    fn run(
        &mut self,
        seed: u64,
        seconds: u64,
        processes: u64,
        users: &[u32],
    ) -> Result<(), String> {
        let mut random = Random::of(seed, u64::MAX);
        for &user in users {
            for process in 0..processes {
                let seed = Random::of(seed, u64::from(user) << 8 | process).next() >> 32;
                let role = Role::Work {
                    user,
                    seed,
                    first: 0,
                    idles: user != 0 && process % 2 == 1,
                };
                self.crew.begin(role, seconds)?;
            }
            let seed = seed + u64::from(user);
            self.crew.begin(Role::Calls { user, seed }, seconds)?;
        }
        while self.seconds() < seconds {
            self.listen(Duration::from_secs(1));
            self.measure();
            self.note();
            let second = self.seconds();
            if second % KILLS == KILLS - 1 && second + KILLS < seconds {
                self.kill_one(&mut random, seconds - second)?;
            }
        }
        Ok(())
    }

    /// Kills a worker, and starts another with other rounds.
    fn kill_one(&mut self, random: &mut Random, seconds: u64) -> Result<(), String> {
        let works = |one: &usize| {
            let one = &self.crew.members[*one];
            matches!(one.role, Role::Work { .. }) && !one.is_over
        };
        let all: Vec<usize> = (0..self.crew.members.len()).filter(works).collect();
        if all.is_empty() {
            return Ok(());
        }
        let one = &mut self.crew.members[random.choose(&all)];
        one.is_over = true;
        // Errors are ignored: it may be about to end by itself.
        let _ = one.child.kill();
        let mut role = one.role;
        if let Role::Work { first, .. } = &mut role {
            *first += 10_000;
        }
        self.crew.begin(role, seconds)
    }

    /// Reads the processes' output for that long.
    fn listen(&mut self, time: Duration) {
        let end = Instant::now() + time;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match self.crew.lines.recv_timeout(left) {
                Ok((number, line)) => self.hear(number, &line),
                Err(_) => return,
            }
        }
    }

    fn hear(&mut self, number: usize, line: &str) {
        let at = self.seconds();
        let words: Vec<&str> = line.split('\t').collect();
        if let Some((round, tally)) = Tally::read(line) {
            let one = &mut self.crew.members[number];
            (one.round, one.tally) = (round, tally);
            return;
        }
        if words.first() == Some(&"control") {
            self.controls += 1;
            self.heard = Instant::now();
        }
        if self.times.hear(&words, at) {
            return;
        }
        match words.as_slice() {
            ["watch"] => {}
            ["fault", ENDED] if self.is_roots => self.forgotten += 1,
            ["fault", why] => self.faults.push(format!("at {at} s: {why}")),
            _ => println!("{}: {line}", self.name(number)),
        }
    }

    fn name(&self, number: usize) -> String {
        match self.crew.members[number].role {
            Role::Work { user, seed, .. } => format!("user {user}, seed {seed}"),
            Role::Calls { user, .. } => format!("user {user}, ioctl-fuzz"),
            Role::Watch(cpu) => format!("watch of CPU {cpu}"),
            Role::Control => "control".to_owned(),
            Role::Prey(user) => format!("user {user}, a program"),
        }
    }

    /// Writes to the kernel's log which rounds are in progress.
    fn note(&self) {
        let mut line = format!("users-fuzz: {} s:", self.seconds());
        for one in &self.crew.members {
            if let (Role::Work { user, seed, .. }, false) = (one.role, one.is_over) {
                line += &format!(" {user}/{seed}/{}", one.round);
            }
        }
        // Errors are ignored: the line is useful only if the machine dies.
        let _ = fs::write("/dev/kmsg", line);
    }

    fn measure(&mut self) {
        self.times.compare();
        if self.heard.elapsed() > STUCK {
            self.heard = Instant::now();
            println!("at {} s root waits:", self.seconds());
            for line in stacks() {
                println!("    {line}");
            }
        }
        let at = self.seconds();
        for user in USERS {
            let (group, (all, kernel)) = (group(user), self.memory.entry(user).or_default());
            let now = text(&format!("{group}/memory.current"));
            let now = now.ok().and_then(|text| text.trim().parse().ok());
            all.see(now.unwrap_or(0), at);
            let part = field(&format!("{group}/memory.stat"), "kernel ");
            kernel.see(part.unwrap_or(0), at);
        }
        let available = field("/proc/meminfo", "MemAvailable:").unwrap_or(0);
        self.available = self.available.min(available * 1024);
        for number in 0..self.crew.members.len() {
            self.has_ended(number);
        }
    }

    /// Whether a process has ended. Processes must end with success, unless this program killed
    /// them.
    fn has_ended(&mut self, number: usize) -> bool {
        let name = self.name(number);
        let one = &mut self.crew.members[number];
        let Ok(Some(status)) = one.child.try_wait() else {
            return false;
        };
        if !one.is_over && !status.success() {
            self.faults.push(format!("{name} ended: {status}"));
        }
        one.is_over = true;
        true
    }

    /// Waits for the users' processes, and ends this program's own.
    fn end(&mut self, patience: Duration) {
        let end = Instant::now() + patience;
        let is_ours = |role: Role| matches!(role, Role::Watch(_) | Role::Control);
        loop {
            self.listen(Duration::from_millis(500));
            self.measure();
            let all = 0..self.crew.members.len();
            let left = all.filter(|number| {
                !is_ours(self.crew.members[*number].role) && !self.has_ended(*number)
            });
            let left: Vec<usize> = left.collect();
            if left.is_empty() {
                break;
            }
            if Instant::now() > end {
                for number in left {
                    let name = self.name(number);
                    self.faults.push(format!("{name} does not end"));
                    let one = &mut self.crew.members[number];
                    one.is_over = true;
                    let _ = one.child.kill();
                }
                break;
            }
        }
        println!("after {} s all have ended", self.seconds());
        for one in &mut self.crew.members {
            if is_ours(one.role) {
                one.is_over = true;
                let _ = one.child.kill();
                let _ = one.child.wait();
            }
        }
        for one in &self.crew.members {
            if let Role::Work { user, .. } = one.role {
                self.tallies.entry(user).or_default().add(&one.tally);
            }
        }
    }

    /// Prints what was done and measured, and adds faults for what exceeds the limits. Returns the
    /// number of consumers.
    fn report(&mut self, limits: &Limits) -> u64 {
        let mut consumers = self.controls;
        for (user, tally) in &self.tallies {
            let of = |call| {
                let done = tally.count(call);
                format!("{done} of {}", done + tally.refusals(call))
            };
            println!(
                "user {user}: {} opened, ENABLE {}, GO {}, REPLICATE {}, RETRACT {}, MAKEPROBES {}, {} snapshots, {} ended by the module",
                tally.count("open"),
                of("enable"),
                of("go"),
                of("replicate"),
                of("retract"),
                of("makeprobes"),
                tally.count("bufsnap") + tally.count("aggsnap"),
                tally.count("killed")
            );
            println!(
                "    HOLD {}, HELD {}, RESUME {}, KNOWN {}, REVIEW {}, NUMBER {}, REGISTERED {}, WANTED {}, TABLE {}, REMAINS {}, FRAME {}",
                of("hold"),
                of("held"),
                of("resume"),
                of("known"),
                of("review"),
                of("number"),
                of("registered"),
                of("wanted"),
                of("table"),
                of("remains"),
                of("frame")
            );
            for call in [
                "enable",
                "go",
                "replicate",
                "makeprobes",
                "bufsnap",
                "aggsnap",
                "open",
            ] {
                for (reason, n) in tally.reasons(call) {
                    println!("    {call} refused {n} times: {reason}");
                }
            }
            consumers += tally.count("open");
            if tally.count("enable") == 0 || tally.count("go") == 0 {
                self.faults.push(format!("user {user} never traced"));
            }
        }
        let mib = |bytes: u64| bytes >> 20;
        for (user, (all, kernel)) in &self.memory {
            println!(
                "memory: user {user} had {} MiB at most (at {} s), the kernel for him {} MiB; a member may have {} MiB",
                mib(all.most),
                all.at,
                mib(kernel.most),
                mib(limits.memory)
            );
            if *user != 0 && all.most > limits.memory {
                self.faults
                    .push(format!("user {user} had {} MiB", mib(all.most)));
            }
        }
        println!("memory: {} MiB were left at least", mib(self.available));
        self.tell_times(limits, &ALL);
        self.tell_locks(limits);
        println!("root traced {} times, and always", self.controls);
        if self.is_roots {
            println!("{} times his own calls kept him from it", self.forgotten);
        }
        if self.controls == 0 {
            self.faults.push("root could never trace".to_owned());
        }
        consumers
    }

    /// Prints which locks were held longest, and adds faults for those that were held too long.
    fn tell_locks(&mut self, limits: &Limits) {
        let Some(classes) = locks::classes() else {
            println!("this kernel does not measure how long locks are held");
            return;
        };
        if classes.is_empty() {
            self.faults
                .push("no lock of the module was seen".to_owned());
        }
        for (n, class) in classes.iter().enumerate() {
            let line = format!(
                "{} was held {} ms at most",
                class.name,
                class.longest.as_millis()
            );
            if n < TOLD_LOCKS {
                println!("{line}");
            }
            if class.longest > limits.waited && class.is_shared() && !self.is_roots {
                self.faults.push(line);
            }
        }
    }

    /// Prints what took longest, and adds faults for what took too long.
    fn tell_times(&mut self, limits: &Limits, kinds: &[(&str, Kind)]) {
        for &(what, kind) in kinds {
            let limit = match kind {
                Kind::Late | Kind::Call => limits.held,
                Kind::Wait => limits.waited,
            };
            let (longest, is_known) = self.times.longest(kind);
            let line = format!(
                "{what} {} ms at most, {} ms with what the computer did else{}, at {} s ({}); any {} ms; {} ms are allowed",
                longest.time / 1000,
                longest.seemed / 1000,
                if is_known { "" } else { ", which is not known" },
                longest.at,
                longest.what,
                longest.any / 1000,
                limit.as_millis()
            );
            println!("{line}");
            let is_own = self.is_roots && matches!(kind, Kind::Wait);
            if u128::from(longest.time) > limit.as_micros() && !is_own {
                self.faults.push(line);
            }
        }
    }
}

fn text(path: &str) -> Result<String, String> {
    fs::read_to_string(path).map_err(|e| format!("{path}: {e}"))
}

/// The number after a name in a file.
fn field(path: &str, name: &str) -> Result<u64, String> {
    let text = text(path)?;
    let rest = text.lines().find_map(|line| line.strip_prefix(name));
    let number = rest.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    number.ok_or(format!("{path} has no {name}"))
}
