// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The processes: their roles, and their output.

use super::tally::Tally;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender};

/// The tracing group, as in the module's parameter.
const GROUP: u32 = 77;
/// The folder of programs that every user may execute.
const FOLDER: &str = "/tmp/fuzz";
/// Root, and two members.
pub const USERS: [u32; 3] = [0, 65534, 65533];

/// What a process does.
#[derive(Clone, Copy, PartialEq)]
pub enum Role {
    /// Works for a user, with this seed and first round.
    Work {
        user: u32,
        seed: u64,
        first: u64,
        /// Runs in the idle class, so that it keeps for long the locks that it has taken.
        idles: bool,
    },
    /// Fuzzes single calls, for a user.
    Calls {
        user: u32,
        seed: u64,
    },
    Watch(usize),
    Control,
    /// Runs a user's program, untraced.
    Prey(u32),
}

/// A process.
pub struct Member {
    pub role: Role,
    pub child: Child,
    /// The last numbers it reported.
    pub tally: Tally,
    pub round: u64,
    /// Whether it was killed or has ended.
    pub is_over: bool,
}

/// All processes, and the lines that they print, with the process' index.
pub struct Crew {
    pub members: Vec<Member>,
    pub lines: Receiver<(usize, String)>,
    to: Sender<(usize, String)>,
}

/// The control group of a user.
pub fn group(user: u32) -> String {
    format!("/sys/fs/cgroup/fuzz-{user}")
}

impl Crew {
    /// Creates an empty crew, copies programs to where users find them, and creates control groups.
    pub fn new() -> Result<Self, String> {
        fs::create_dir_all(FOLDER).map_err(|e| format!("{FOLDER}: {e}"))?;
        for name in ["users-fuzz", "ioctl-fuzz", "ioctls"] {
            let found = std::env::var("PATH").unwrap_or_default();
            let mut found = found.split(':').map(|folder| format!("{folder}/{name}"));
            let from = found.find(|path| fs::metadata(path).is_ok());
            let from = from.ok_or(format!("no program {name}"))?;
            fs::copy(&from, format!("{FOLDER}/{name}")).map_err(|e| format!("{from}: {e}"))?;
        }
        let all = "/sys/fs/cgroup/cgroup.subtree_control";
        fs::write(all, "+memory").map_err(|e| format!("{all}: {e}"))?;
        for user in USERS {
            let group = group(user);
            fs::create_dir_all(&group).map_err(|e| format!("{group}: {e}"))?;
        }
        let (to, lines) = std::sync::mpsc::channel();
        Ok(Self {
            members: Vec::new(),
            lines,
            to,
        })
    }

    /// Starts a process, for that many seconds.
    pub fn begin(&mut self, role: Role, seconds: u64) -> Result<(), String> {
        let mut command = match role {
            Role::Watch(cpu) => {
                let script = format!("exec taskset -c {cpu} chrt -f 50 users-fuzz watch {cpu}");
                shell(&script)
            }
            Role::Control => shell("exec chrt -f 10 users-fuzz control"),
            // Its output is for processes that trace it.
            Role::Prey(user) => shell(&(as_user(user, false, "users-fuzz prey") + " >/dev/null")),
            Role::Work {
                user,
                seed,
                first,
                idles,
            } => {
                let words = format!("users-fuzz work {seed} {first} {seconds}");
                shell(&as_user(user, idles, &words))
            }
            Role::Calls { user, seed } => {
                let words = format!("ioctl-fuzz {seed} {seconds}s");
                shell(&as_user(user, false, &words))
            }
        };
        let mut child = command
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| format!("sh: {e}"))?;
        let number = self.members.len();
        if let Some(told) = child.stdout.take() {
            let to = self.to.clone();
            std::thread::spawn(move || {
                for line in BufReader::new(told).lines().map_while(Result::ok) {
                    if to.send((number, line)).is_err() {
                        return;
                    }
                }
            });
        }
        self.members.push(Member {
            role,
            child,
            tally: Tally::default(),
            round: 0,
            is_over: false,
        });
        Ok(())
    }

    /// Kills all processes.
    pub fn kill(&mut self) {
        for one in &mut self.members {
            one.is_over = true;
            // Errors are ignored: it may have ended by itself.
            let _ = one.child.kill();
            let _ = one.child.wait();
        }
    }
}

/// The shell command that runs `words` in the user's control group with the user's IDs.
fn as_user(user: u32, idles: bool, words: &str) -> String {
    let identity = match user {
        0 => String::new(),
        _ => format!("setpriv --reuid {user} --regid {GROUP} --clear-groups"),
    };
    let class = if idles { "chrt -i 0" } else { "" };
    let group = group(user);
    format!("echo $$ >{group}/cgroup.procs; PATH={FOLDER}:$PATH exec {identity} {class} {FOLDER}/{words}")
}

fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]).stdin(Stdio::null());
    command
}
