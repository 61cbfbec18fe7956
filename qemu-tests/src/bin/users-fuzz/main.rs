// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Tests what users can do to others through `/dev/dtrace`. Runs in the VM as root, with the module
//! loaded with `group=77` and the device open to everybody: `users-fuzz SEED SECONDS [PROCESSES
//! USER...]`.
//!
//! Root and two members of the group, or the given users, have PROCESSES processes each ([`work`]),
//! two by default, and one `ioctl-fuzz` each. Members request as much as they may, and a little
//! more ([`images`]); root requests little. Meanwhile root traces, starts tracings, and loads
//! modules ([`control`]), and a process on each processor measures how long that is held
//! ([`watch`]). The limits are in [`judge`].
//!
//! `users-fuzz without`, without the module, reports for comparison how long processors are held
//! then.
//!
//! A worker's rounds are determined by the seed and their numbers, which are in the kernel's log:
//! as a user, `users-fuzz work SEED ROUND SECONDS` begins with that round, where SEED is the
//! worker's seed from the log. When each worker does what is not determined.

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
