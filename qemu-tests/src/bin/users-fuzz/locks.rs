// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! How long the module's locks were held, if the kernel measures that, as the debug kernel does in
//! `/proc/lock_stat` (Documentation/locking/lockstat.rst). It measures elapsed time, including
//! delays by a busy computer.

use std::fs;
use std::time::Duration;

const STATISTICS: &str = "/proc/lock_stat";
/// The module's locks: those of Rust by the prefix of their names, those of C by their names, which
/// are the expressions with which they were initialized.
const RUST: &str = "dtrace::";
const C: [&str; 4] = [
    "&answers->lock",
    "&memory->lock",
    "&rights->lock",
    "&turn->lock",
];
/// Locks of a single open file, for which only the file's user waits.
const OF_A_FILE: [&str; 2] = ["dtrace::FileState", "dtrace::Holding"];
/// The numbers after a name: two of contentions and six of waiting, two of acquisitions and four of
/// holding.
const COLUMNS: usize = 12;
/// The index of the longest holding time, in microseconds.
const LONGEST: usize = 9;

/// A class of locks.
#[derive(Debug, PartialEq)]
pub struct Class {
    pub name: String,
    /// The longest time for which a lock of the class was held.
    pub longest: Duration,
}

impl Class {
    /// Whether users other than that of a file may wait for it.
    pub fn is_shared(&self) -> bool {
        !OF_A_FILE.contains(&self.name.as_str())
    }
}

/// Clears the statistics. No effect if the kernel has none.
pub fn clear() {
    let _ = fs::write(STATISTICS, "0");
}

/// The module's lock classes, longest time first. `None` if the kernel does not measure.
pub fn classes() -> Option<Vec<Class>> {
    let mut classes = read(&fs::read_to_string(STATISTICS).ok()?);
    classes.sort_by_key(|class| std::cmp::Reverse(class.longest));
    Some(classes)
}

fn read(text: &str) -> Vec<Class> {
    text.lines().filter_map(class).collect()
}

/// Parses a line `NAME: NUMBER...` if its class is one of the module's.
fn class(line: &str) -> Option<Class> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (name, numbers) = words.split_at(words.len().checked_sub(COLUMNS)?);
    let name = name.join(" ");
    let name = name.strip_suffix(':')?;
    // Readers and writers have separate lines; `#2` or `/1` is appended to a name that is not
    // unique.
    let name = name.trim_end_matches("-W").trim_end_matches("-R");
    let name = name.split(['#', '/']).next()?;
    if !name.starts_with(RUST) && !C.contains(&name) {
        return None;
    }
    let longest: f64 = numbers.get(LONGEST)?.parse().ok()?;
    Some(Class {
        name: name.to_owned(),
        longest: Duration::try_from_secs_f64(longest / 1e6).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::{read, Class};
    use std::time::Duration;

    const TEXT: &str = "lock_stat version 0.4
-----------------------------------------------------------------------------
                              class name    con-bounces    contentions   waittime-min   waittime-max waittime-total   waittime-avg    acq-bounces   acquisitions   holdtime-min   holdtime-max holdtime-total   holdtime-avg
-----------------------------------------------------------------------------

                         &mm->mmap_lock-W:             0              0           0.00           0.00           0.00           0.00              0          12345           0.10     9000000.50        1234.00           0.10
                            dtrace::State:             7             12           0.26         939.10       16371.53          16.28            100            200           0.27     1500000.25     1600000.00           8.00
                          -------------
                            dtrace::State              7          [<ffffffffc0000000>] dtrace_common_lock+0x10/0x20 [dtrace]
                           &rights->lock#2:            0              0           0.00           0.00           0.00           0.00              5             10           0.30          12.00          20.00           2.00
";

    #[test]
    fn the_modules_locks_are_found_among_all() {
        let class = |name: &str, micros| Class {
            name: name.to_owned(),
            longest: Duration::from_nanos(micros),
        };
        assert_eq!(
            read(TEXT),
            [
                class("dtrace::State", 1_500_000_250),
                class("&rights->lock", 12_000)
            ]
        );
    }

    #[test]
    fn what_a_file_has_for_itself_is_not_shared() {
        let is_shared = |name: &str| {
            let longest = Duration::ZERO;
            let name = name.to_owned();
            Class { name, longest }.is_shared()
        };
        assert!(is_shared("dtrace::State"));
        assert!(!is_shared("dtrace::FileState"));
    }
}
