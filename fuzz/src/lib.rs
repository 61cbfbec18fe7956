// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! What must hold for any input at all.
//!
//! A target is a function of bytes that panics where a promise is broken; that it returns at all is a promise too. Most
//! targets read their bytes as choices (which instruction, which expression), so that what a mutator makes is mostly
//! something that gets past the first checks; each also takes bytes as they are.
//!
//! [`live`] makes images of the same kind for a kernel that runs.
//!
//! `make fuzz` runs the targets under libFuzzer, which looks for inputs that reach new code. `tests/smoke.rs` runs them
//! on the kept corpus and a few thousand mutations of it, with any compiler.

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

/// What the engine's own tests share: machines, assembler, and the properties that they check.
#[path = "../../kmod/engine/tests/common/mod.rs"]
mod common;

/// Something that must hold for any input.
pub struct Target {
    /// Its name, also that of its corpus.
    pub name: &'static str,
    /// Panics where it does not hold.
    pub run: fn(&[u8]),
    /// How many inputs the smoke test takes, so that it ends soon.
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

/// The target `name`.
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}
