// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Properties that must hold for any input.
//!
//! A target is a function of bytes that panics if a property is violated. That it returns at all is
//! also a property. Most targets read their bytes as choices (of an instruction, of an expression),
//! so that most inputs of a mutator get past the first checks. Each target also accepts raw input.
//!
//! [`live`] makes images of the same kind for a running kernel.
//!
//! `make fuzz` runs the targets under libFuzzer, which searches for inputs that reach new code.
//! `tests/smoke.rs` runs them on the stored corpus and on a few thousand mutations of it, with any
//! compiler.

mod buffers;
mod compiler;
mod ctf;
mod dif;
mod dof;
mod dwarf;
mod dynamics;
mod frames;
mod instructions;
pub mod live;
mod program;
mod text;
mod unwind;
mod usdt;

/// The shared code of the engine's own tests: machines, an assembler, and the properties that they
/// check.
#[path = "../../kmod/engine/tests/common/mod.rs"]
mod common;

/// A property that must hold for any input.
pub struct Target {
    /// Name of the target and of its corpus.
    pub name: &'static str,
    /// Panics if the property does not hold for the input.
    pub run: fn(&[u8]),
    /// Number of inputs of the smoke test, chosen so that it ends soon.
    pub smoke: u32,
}

/// All targets.
pub const TARGETS: &[Target] = &[
    Target {
        name: "lexer",
        run: text::lexer,
        smoke: 4000,
    },
    Target {
        name: "parser",
        run: text::parser,
        smoke: 1000,
    },
    Target {
        name: "compiler",
        run: compiler::compiler,
        smoke: 300,
    },
    Target {
        name: "usdt",
        run: usdt::notes,
        smoke: 4000,
    },
    Target {
        name: "programs",
        run: usdt::programs,
        smoke: 20_000,
    },
    Target {
        name: "dof",
        run: dof::dof,
        smoke: 200,
    },
    Target {
        name: "dif",
        run: dif::dif,
        smoke: 1000,
    },
    Target {
        name: "assembly",
        run: dif::assembly,
        smoke: 4000,
    },
    Target {
        name: "buffers",
        run: buffers::buffers,
        smoke: 300,
    },
    Target {
        name: "dynamics",
        run: dynamics::dynamics,
        smoke: 1000,
    },
    Target {
        name: "dwarf",
        run: dwarf::dwarf,
        smoke: 4000,
    },
    Target {
        name: "ctf",
        run: ctf::ctf,
        smoke: 20_000,
    },
    Target {
        name: "unwind",
        run: unwind::unwind,
        smoke: 4000,
    },
    Target {
        name: "frames",
        run: frames::frames,
        smoke: 20_000,
    },
    Target {
        name: "instructions",
        run: instructions::instructions,
        smoke: 100_000,
    },
];

/// Returns the target `name`.
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}
