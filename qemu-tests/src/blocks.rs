// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Runs many cases in several machines.
//!
//! Each machine takes a block of consecutive cases; each block gets a new machine. A block ends
//! early after a case that leaves its machine unusable. As many machines run at a time as have
//! processors of their own. One more would cost much and gain little: the processors of a machine
//! wait for each other busily when text is changed or translations are flushed, and longest for a
//! processor that the computer does not run at that moment.

use std::io;
use std::ops::Range;
use std::sync::mpsc::channel;
use std::sync::{Mutex, PoisonError};

use crate::accel;
use crate::session::{self, Ending, Work};
use crate::vm::Setup;

/// Runs the works in blocks of at most `size`. Calls `report` with each ending as it comes, and
/// with the work's index in `works`. `runner` is passed to [`session::run`].
pub fn run(
    setup: &Setup,
    runner: Option<&str>,
    works: &[Work],
    size: usize,
    report: &mut dyn FnMut(usize, Ending),
) -> io::Result<()> {
    let processors = std::thread::available_parallelism()?.get();
    let at_once = at_once(processors, setup.cpus);
    let size = size.min(works.len().div_ceil(at_once)).max(1);
    let blocks = blocks(works, size);
    let machines = at_once.min(blocks.len());
    let blocks = Mutex::new(blocks.into_iter());
    let take = || blocks.lock().unwrap_or_else(PoisonError::into_inner).next();
    // Decided once here, because otherwise each machine would do it for itself.
    let setup = &Setup {
        accel: Some(match setup.accel {
            Some(accel) => accel,
            None => accel::choose(setup)?,
        }),
        ..setup.clone()
    };
    let (to, from) = channel();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..machines)
            .map(|_| {
                let (to, take) = (to.clone(), &take);
                scope.spawn(move || {
                    while let Some(block) = take() {
                        let first = block.start;
                        session::run(setup, runner, &works[block], &mut |at, ending| {
                            // The receiver lives as long as this scope.
                            let _ = to.send((first + at, ending));
                        })?;
                    }
                    Ok(())
                })
            })
            .collect();
        drop(to);
        for (at, ending) in from {
            report(at, ending);
        }
        workers.into_iter().try_for_each(|worker| {
            worker
                .join()
                .unwrap_or_else(|_| Err(io::Error::other("a machine's thread panicked")))
        })
    })
}

/// How many machines of `cpus` processors each run at a time on a computer with `processors`.
fn at_once(processors: usize, cpus: u32) -> usize {
    let cpus = usize::try_from(cpus).unwrap_or(usize::MAX).max(1);
    (processors / cpus).max(1)
}

/// The index ranges of the blocks.
fn blocks(works: &[Work], size: usize) -> Vec<Range<usize>> {
    let mut blocks = Vec::new();
    let mut first = 0;
    for (at, work) in works.iter().enumerate() {
        let end = at + 1;
        if end - first == size || work.last || end == works.len() {
            blocks.push(first..end);
            first = end;
        }
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn blocks_hold_each_work_once_and_end_where_the_machine_is_spoilt() {
        let works: Vec<Work> = (0..8)
            .map(|at| Work {
                name: at.to_string(),
                command: String::new(),
                limit: Duration::ZERO,
                last: at == 4,
            })
            .collect();
        assert_eq!(blocks(&works, 3), [0..3, 3..5, 5..8]);
        assert_eq!(blocks(&works[..7], 4), [0..4, 4..5, 5..7]);
        assert!(blocks(&[], 8).is_empty());
    }

    #[test]
    fn machines_have_processors_of_their_own_but_for_the_only_one() {
        assert_eq!(at_once(8, 2), 4);
        assert_eq!(at_once(3, 2), 1);
        assert_eq!(at_once(1, 2), 1);
    }
}
