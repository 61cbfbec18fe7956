// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Frames of interpreted code in user stacks.
//!
//! An interpreter's records of the functions that it executes are read by its *walker*, a D program
//! in `dlib/walkers`, one per version of the runtime ([`runtime`]). The walkers are enabled
//! together with clauses that record user stacks; the facts that a walker needs about a file are
//! part of the file's unwind table. Thus a new version of a runtime needs a new walker, not a new
//! module. The kernel returns words, whose [`names`] are fetched when they are printed. Where this
//! is cheaper, a word has a position in a line table instead of a line ([`lines`]), or a position
//! in the source ([`sources`]).

mod layout;
mod lines;
pub mod names;
mod runtime;
mod sources;
#[cfg(test)]
mod tests;

pub use runtime::evaluators_of;

use dtrace_compiler::compile::{Compiler, Settings};
use dtrace_compiler::program::{ActionDesc, Clause, Program};
use dtrace_compiler::source::Source;
use dtrace_objects::pattern::ProbePattern;
use dtrace_objects::processes::Nowhere;
use dtrace_uapi::action::{ustack_arg, ustack_frames, ustack_strsize, Action};
use dtrace_uapi::interp::{MODULE, PROVIDER, WORDS_MAX};
use runtime::{Runtime, ALL};

/// Minimum room for frames of interpreted code in a stack, in addition to what its native frames
/// leave unused.
const ROOM_LEAST: u32 = 16;
/// Maximum room in a stack that does not specify its number of native frames.
const ROOM_UNASKED: u32 = 32;

/// Returns all walkers, as clauses.
pub fn walkers() -> Vec<Clause> {
    ALL.iter().map(walker).collect()
}

/// Returns a program's clauses with room in their user stacks for the frames that walkers find.
/// `frames` is the number of frames of a stack that does not specify it.
pub fn with_room(program: &Program, frames: u32) -> Vec<Clause> {
    let mut clauses = program.clauses.clone();
    let actions = clauses.iter_mut().flat_map(|clause| &mut clause.actions);
    actions.for_each(|action| make_room(action, frames));
    clauses
}

/// Returns the numbers of all walkers.
pub fn numbers() -> impl Iterator<Item = u64> {
    ALL.iter().map(Runtime::number)
}

fn make_room(action: &mut ActionDesc, frames: u32) {
    let asked = ustack_frames(action.arg);
    if action.kind == Action::Ustack && ustack_strsize(action.arg) == 0 {
        let room = match asked {
            0 => frames.min(ROOM_UNASKED),
            asked => asked.min(WORDS_MAX as u32),
        };
        let room = room.max(ROOM_LEAST);
        action.arg = ustack_arg(asked, room * 8);
    }
}

/// Compiles the walker of a runtime to a clause.
fn walker(runtime: &Runtime) -> Clause {
    let source = Source::file(runtime.name, runtime.text);
    let settings = Settings {
        walker: true,
        ..Settings::default()
    };
    let compiled = Compiler::new(&Nowhere).compile(&source, &settings);
    let mut clauses = compiled.expect("walkers are tested").clauses;
    let mut clause = clauses.swap_remove(0);
    let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
    clause.probes = ProbePattern {
        provider: text(PROVIDER),
        module: text(MODULE),
        func: format!("{:x}", runtime.number()),
        ..ProbePattern::default()
    };
    clause
}
