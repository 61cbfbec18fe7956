// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The compiler's front door.
//!
//! A [`Compiler`] lives as long as its consumer: global and thread-local variables, aggregations, types and inlines
//! that one program declares are there for the next, as several `-n` of one command line expect.

use crate::diag::Result;
use crate::program::Program;
use crate::sema::{self, State};
use crate::source::Source;
use crate::syntax::macros::Macros;
use crate::world::World;

/// Which part of a probe's name a description without colons stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProbeSpec {
    /// `-P`
    Provider,
    /// `-m`: `[provider:]module`
    Module,
    /// `-f`: `[[provider:]module:]func`
    Func,
    /// `-n` and scripts: `[[[provider:]module:]func:]name`
    #[default]
    Name,
}

/// How to compile one program.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// What descriptions are.
    pub spec: ProbeSpec,
    /// `-Z`: a description that matches nothing is no error.
    pub allow_zero_matches: bool,
    /// `-xdefaultargs`: macro arguments that are missing are 0 or the empty string.
    pub default_args: bool,
    /// `$0`, `$1`, …
    pub args: Vec<String>,
    /// Values of `$pid`, `$target`, …
    pub macros: Vec<(String, i64)>,
    /// `strsize`; 0 for the default.
    pub strsize: u32,
}

/// The compiler, with all that programs have declared so far.
pub struct Compiler<'w> {
    world: &'w dyn World,
    state: State<'w>,
}

impl<'w> Compiler<'w> {
    /// A compiler that knows D itself and asks `world` for the rest.
    pub fn new(world: &'w dyn World) -> Self {
        Self {
            world,
            state: State::new(world),
        }
    }

    /// Compiles a program.
    pub fn compile(&mut self, source: &Source, settings: &Settings) -> Result<Program> {
        let macros = Macros {
            args: settings.args.clone(),
            // The pragma that allows missing arguments may come after the first of them.
            default_args: settings.default_args || source.text.contains("defaultargs"),
            named: settings.macros.clone(),
        };
        let ast = crate::syntax::parse(source, &macros, &mut self.state)?;
        sema::check(&mut self.state, self.world, settings, source, &ast)
    }
}
