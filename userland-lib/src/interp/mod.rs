// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Frames of interpreted code in user stacks.
//!
//! What an interpreter keeps of the functions that it executes is known by its *walker*, a D program in `dlib/walkers`, one a version of the
//! runtime ([`runtime`]). The program is enabled with what asks for user stacks; what it has to know of a file goes with the file's table for
//! unwinding. So a new version of a runtime wants a new text, not a new module. The kernel hands back words, whose [`names`] are asked for
//! when they are printed; where it costs less, a word has a place in a table of lines instead of a line ([`lines`]), or one in the source ([`sources`]).

mod layout;
mod lines;
pub mod names;
mod runtime;
mod sources;
#[cfg(test)]
mod tests;

pub use runtime::evaluators_of;

use crate::compile::{Compiler, Settings};
use crate::program::{ActionDesc, Clause, Program};
use crate::source::Source;
use crate::world::{Nowhere, ProbePattern};
use dtrace_uapi::action::{ustack_arg, ustack_frames, ustack_strsize, Action};
use dtrace_uapi::interp::{MODULE, PROVIDER, WORDS_MAX};
use runtime::{Runtime, ALL};

/// The least room for frames of interpreted code in a stack, beside what its native frames leave of theirs.
const ROOM_LEAST: u32 = 16;
/// The most where a stack does not say how many native frames it has.
const ROOM_UNASKED: u32 = 32;

/// The walkers that there are, as clauses.
pub fn walkers() -> Vec<Clause> {
    ALL.iter().map(walker).collect()
}

/// A program's clauses with room in their user stacks for the frames that walkers find. `frames` is how many a stack has that does not say so.
pub fn with_room(program: &Program, frames: u32) -> Vec<Clause> {
    let mut clauses = program.clauses.clone();
    let actions = clauses.iter_mut().flat_map(|clause| &mut clause.actions);
    actions.for_each(|action| make_room(action, frames));
    clauses
}

/// The numbers of the walkers that there are.
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

/// The walker of a runtime, as a clause.
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
