// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Frames of interpreted code in user stacks.
//!
//! While the machine walks a stack it notes the frames of evaluators ([`spots`]): functions in which an interpreter executes its
//! language's. Then the walker of that kind of interpreter, a verified program of the consumer's, runs for each of them, innermost first
//! ([`walk`]). It reads the interpreter's structures from the process' memory and puts a frame for each function of the language, whose names are
//! kept once ([`names`]); the frame is a word, so that equal stacks are equal bytes. The contract is `uapi`'s `interp`.
//!
//! Invariants: a walker changes nothing but its own clause-local variables, which last for one stack; what it takes is bounded for each stack, and
//! charged to the clause that asked for it; one that fails leaves a stack that is shorter.

pub mod names;
pub mod spots;
pub mod walk;

use crate::dif::program::Program;
use crate::mem::Vec;
use dtrace_uapi::interp::WALKERS_MAX;
use names::Names;

/// A walker that is ready to run.
#[derive(Debug)]
pub struct Walker {
    /// Its number, which files' tables name.
    pub number: u64,
    /// What runs.
    pub program: Program,
    /// Bytes of its clause-local variables.
    pub locals: usize,
}

/// What all CPUs share.
#[derive(Debug)]
pub struct Interp {
    /// At most [`WALKERS_MAX`].
    pub walkers: Vec<Walker>,
    /// Bytes of the clause-local variables of each.
    pub locals: Vec<usize>,
    /// Of the frames that they put.
    pub names: Names,
}

impl Interp {
    /// The walker of a number, and its index.
    fn find(&self, number: u64) -> Option<(usize, &Walker)> {
        let mut all = self.walkers.iter().take(WALKERS_MAX).enumerate();
        all.find(|(_, walker)| walker.number == number)
    }
}
