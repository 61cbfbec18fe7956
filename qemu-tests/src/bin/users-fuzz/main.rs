// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! What users may do to others by `/dev/dtrace`, and what they may not. Runs in the VM as root, where the module has been loaded with
//! `group=77` and everybody may open the device: `users-fuzz SEED SECONDS [PROCESSES USER...]`.
//!
//! Root and two members of the group, or those that are named, have so many processes each ([`work`]), two unless said, and each one
//! `ioctl-fuzz` besides. Members
//! ask for as much as they may, and a little more ([`images`]); root for little. Meanwhile root traces, begins to trace, and loads modules
//! ([`control`]), and a process on each processor looks how long that is held ([`watch`]). The limits are in [`judge`].
//!
//! `users-fuzz without`, where the module is not loaded, tells for comparison how long processors are held then.
//!
//! A worker's rounds follow from the seed and their numbers, which the kernel's log has: as a user, `users-fuzz work SEED ROUND SECONDS`
//! begins with that round, where SEED is the worker's as the log has it. When which of them does what is the machine's to say.

mod control;
mod crew;
mod images;
mod judge;
mod locks;
mod prey;
mod stuck;
mod tally;
mod times;
mod watch;
mod work;

use std::process::ExitCode;
use std::time::Duration;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let outcome = match args.as_slice() {
        ["prey"] => {
            prey::live();
            Ok(())
        }
        ["watch", cpu] => {
            watch::watch(cpu);
            Ok(())
        }
        ["control"] => control::control(),
        ["without"] => judge::without(),
        ["work", numbers @ ..] => match parsed(numbers).as_deref() {
            Some(&[seed, first, seconds]) => work::work(seed, first, Duration::from_secs(seconds)),
            _ => Err("usage: users-fuzz work SEED ROUND SECONDS".to_owned()),
        },
        numbers => match parsed(numbers).as_deref() {
            Some(&[seed, seconds]) => judge::judge(seed, seconds, 2, &crew::USERS),
            Some([seed, seconds, processes, users @ ..]) => {
                let users: Vec<u32> = users.iter().map(|user| *user as u32).collect();
                let users = if users.is_empty() {
                    crew::USERS.to_vec()
                } else {
                    users
                };
                judge::judge(*seed, *seconds, *processes, &users)
            }
            _ => Err("usage: users-fuzz SEED SECONDS [PROCESSES USER...]".to_owned()),
        },
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            println!("users-fuzz: {why}");
            ExitCode::FAILURE
        }
    }
}

fn parsed(words: &[&str]) -> Option<Vec<u64>> {
    words.iter().map(|word| word.parse().ok()).collect()
}
