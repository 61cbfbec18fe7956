// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Many cases in several machines.
//!
//! A case waits more than it works, so as many machines run at a time as there are processors. Each takes a block of cases
//! that follow one another, and the next when that is done; a new block has a new machine.

use std::io;
use std::sync::mpsc::channel;
use std::sync::{Mutex, PoisonError};

use crate::accel;
use crate::session::{self, Ending, Work};
use crate::vm::Setup;

/// Runs the works in blocks of at most `size`; `report` is told each ending as it comes, by the work's place in `works`.
/// `runner` is what [`session::run`] takes.
pub fn run(
    setup: &Setup,
    runner: Option<&str>,
    works: &[Work],
    size: usize,
    report: &mut dyn FnMut(usize, Ending),
) -> io::Result<()> {
    let processors = std::thread::available_parallelism()?.get();
    let size = size.min(works.len().div_ceil(processors)).max(1);
    let machines = processors.min(works.len().div_ceil(size));
    let blocks = Mutex::new(works.chunks(size).enumerate());
    let take = || blocks.lock().unwrap_or_else(PoisonError::into_inner).next();
    // Found once, before the machines would find it each for itself.
    let setup = &Setup {
        accel: Some(match setup.accel {
            Some(accel) => accel,
            None => accel::choose(setup)?,
        }),
        // They have each other to wait for.
        machines: u32::try_from(machines).unwrap_or(1).max(1),
        ..setup.clone()
    };
    let (to, from) = channel();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..machines)
            .map(|_| {
                let (to, take) = (to.clone(), &take);
                scope.spawn(move || {
                    while let Some((number, block)) = take() {
                        session::run(setup, runner, block, &mut |at, ending| {
                            // The receiver lives as long as this scope.
                            let _ = to.send((number * size + at, ending));
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
