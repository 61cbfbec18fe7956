// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The compiler's main interface.
//!
//! A [`Compiler`] lives as long as its consumer: global and thread-local variables, aggregations,
//! types and inlines that one program declares are available to the next, as several `-n` on one
//! command line require. A program may reveal the type of an undeclared variable that earlier
//! programs use as well: [`Compiler::settle`] compiles these again.

use crate::codegen;
use crate::diag::{Diagnostic, Result};
use crate::hir;
use crate::options::{Opt, Options};
use crate::program::Program;
use crate::sema::{self, State};
use crate::source::{Origin, Source, Span};
use crate::stability;
use crate::syntax::{self, macros::Macros};
use crate::world::World;
use dtrace_types::{Container, DataModel};
use dtrace_uapi::limits::{JSTACKFRAMES_DEFAULT, STACKFRAMES_DEFAULT, USTACKFRAMES_DEFAULT};
use dtrace_uapi::types::Attribute;
use std::rc::Rc;

/// Which part of a probe's name a description without colons specifies.
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
    /// The form of probe descriptions.
    pub spec: ProbeSpec,
    /// `-Z`: a description that matches nothing is not an error.
    pub allow_zero_matches: bool,
    /// `-xdefaultargs`: missing macro arguments are 0 or the empty string.
    pub default_args: bool,
    /// `-xargref`: macro arguments need not be used.
    pub argref: bool,
    /// `-xempty`: a program may have no clauses.
    pub empty: bool,
    /// `-xpspec`: at the top level of a program, anything that can be a description is one.
    pub pspec: bool,
    /// `-xtree`: output the syntax tree (bit 0), and the typed program (any other bit).
    pub tree: u64,
    /// `-xamin`: the minimum stability of clauses.
    pub amin: Option<Attribute>,
    /// `-xlinkmode=dynamic` without `-xknodefs`: addresses of kernel symbols are an error.
    pub no_symbols: bool,
    /// `-xscratchsize`, in bytes.
    pub scratchsize: Option<u64>,
    /// `-xmaxframes`.
    pub maxframes: Option<u32>,
    /// `-32`: the data model of the types that the program names.
    pub model: DataModel,
    /// `$0`, `$1`, …
    pub args: Vec<String>,
    /// Values of `$pid`, `$target`, …
    pub macros: Vec<(String, i64)>,
    /// The watched processes, which patterns of providers may match.
    pub processes: Vec<u32>,
    /// `strsize` in bytes; 0 for the default.
    pub strsize: u32,
    /// `stackframes`, unless it is the default.
    pub stackframes: Option<u32>,
    /// `ustackframes`, unless it is the default.
    pub ustackframes: Option<u32>,
    /// `jstackframes`, unless it is the default.
    pub jstackframes: Option<u32>,
    /// Whether values of user stacks have room for frames of interpreted code.
    pub interpreted: bool,
    /// Whether the program is a walker of interpreted code: see `interp` of `dtrace-machine`.
    pub walker: bool,
}

/// The compiler, with the declarations of all programs so far.
pub struct Compiler<'w> {
    world: &'w dyn World,
    now: Memory<'w>,
    /// What was known before the first program that is not a library.
    first: Option<Rc<Memory<'w>>>,
    given: Vec<(Source, Settings)>,
    /// Whether the code of an earlier program relies on the type of a variable that has changed
    /// since.
    is_stale: bool,
}

/// The declarations that programs leave to later ones.
#[derive(Clone)]
struct Memory<'w> {
    state: State<'w>,
    known: stability::Known,
}

impl Settings {
    /// Returns the number of frames that a call of `name` records if it does not specify it.
    pub fn frames(&self, name: &str) -> u32 {
        let (set, default) = match name {
            "stack" => (self.stackframes, STACKFRAMES_DEFAULT),
            "ustack" => (self.ustackframes, USTACKFRAMES_DEFAULT),
            _ => (self.jstackframes, JSTACKFRAMES_DEFAULT),
        };
        let frames = set.unwrap_or(default as u32);
        self.maxframes.map_or(frames, |most| frames.min(most))
    }

    /// Returns the number of frames in the value of such a call. For `ustack` it is the same as for
    /// `stack`, so that both values have one type, unless `ustackframes` differs from its default.
    pub fn value_frames(&self, name: &str) -> u32 {
        let is_asked = |frames: &u32| u64::from(*frames) != USTACKFRAMES_DEFAULT;
        match self.ustackframes.as_ref().is_some_and(is_asked) {
            true => self.frames(name),
            false => self.frames("stack"),
        }
    }

    /// Returns the macro variables.
    pub fn macros(&self) -> Macros {
        Macros {
            args: self.args.clone(),
            default_args: self.default_args,
            named: self.macros.clone(),
            ..Macros::default()
        }
    }

    /// Returns the settings with those of `options` applied. Permissions that are already given
    /// remain.
    #[must_use]
    pub fn under(mut self, options: &Options) -> Self {
        let size = |option| {
            let value = options.get(option);
            value
                .and_then(|value| u32::try_from(value).ok())
                .unwrap_or(u32::MAX)
        };
        self.strsize = size(Opt::Strsize);
        self.stackframes = Some(size(Opt::Stackframes));
        self.ustackframes = Some(size(Opt::Ustackframes));
        self.jstackframes = Some(size(Opt::Jstackframes));
        let options = &options.compile;
        self.allow_zero_matches |= options.zdefs;
        self.default_args |= options.defaultargs;
        self.argref |= options.argref;
        self.empty |= options.empty;
        self.pspec |= options.pspec;
        self.tree |= options.tree;
        self.no_symbols |= options.dynamic_link && !options.knodefs;
        self.amin = options.amin;
        self.scratchsize = options.scratchsize;
        self.maxframes = options.maxframes;
        self.model = options.model;
        self
    }
}

impl<'w> Compiler<'w> {
    /// Creates a compiler that knows only D itself and gets everything else from `world`.
    pub fn new(world: &'w dyn World) -> Self {
        Self {
            world,
            now: Memory {
                state: State::new(world),
                known: stability::Known::default(),
            },
            first: None,
            given: Vec::new(),
            is_stale: false,
        }
    }

    /// Returns those types of a container that were declared or used, as CTF.
    pub fn types_as_ctf(&self, container: Container) -> Vec<u8> {
        self.now.state.types.ctf(container)
    }

    /// Compiles a program. `settings` must already include the options that the program sets
    /// itself.
    pub fn compile(&mut self, source: &Source, settings: &Settings) -> Result<Program> {
        if matches!(source.origin, Origin::Library(_)) {
            return self.compile_once(source, settings);
        }
        let mut before = Rc::new(self.now.clone());
        self.first.get_or_insert_with(|| before.clone());
        loop {
            let program = self.compile_once(source, settings)?;
            if !self.now.state.take_learned() {
                self.given.push((source.clone(), settings.clone()));
                return Ok(program);
            }
            let before = Rc::make_mut(&mut before);
            self.is_stale |= before.state.learn(&self.now.state);
            self.now = before.clone();
        }
    }

    /// Returns the programs that were compiled, except libraries, with their settings.
    pub fn given(&self) -> &[(Source, Settings)] {
        &self.given
    }

    /// Compiles all programs again, except libraries, if types of undeclared variables have changed
    /// since. An error comes with the index of its program.
    pub fn settle(&mut self) -> Result<Option<Vec<Program>>, (usize, Box<Diagnostic>)> {
        let mut settled = None;
        while std::mem::take(&mut self.is_stale) {
            let Some(first) = self.first.as_mut().map(Rc::make_mut) else {
                break;
            };
            first.state.learn(&self.now.state);
            self.now = first.clone();
            let given = std::mem::take(&mut self.given);
            let programs = given
                .iter()
                .enumerate()
                .map(|(number, (source, settings))| {
                    let program = self.compile(source, settings);
                    program.map_err(|error| (number, error))
                });
            settled = Some(programs.collect::<Result<Vec<_>, _>>()?);
        }
        Ok(settled)
    }

    fn compile_once(&mut self, source: &Source, settings: &Settings) -> Result<Program> {
        let Memory { state, known } = &mut self.now;
        let macros = settings.macros();
        let ast = syntax::parse(source, &macros, settings.pspec, settings.walker, state);
        if ast.items.is_empty() && ast.pragmas.is_empty() && ast.error.is_none() && !settings.empty
        {
            return Err(empty(source));
        }
        let typed = sema::check(state, self.world, settings, source, &ast)?;
        let tree = match settings.tree {
            0 | 1 => String::new(),
            _ => hir::text::text(source, &typed, &state.types),
        };
        let mut program = codegen::program(typed, &state.types)?;
        program.tree = tree;
        if !settings.argref {
            macros.check_all_used(end(source))?;
        }
        let pattern = |text: &str| sema::description(text, settings.spec);
        program.attributes = known.check(&ast, self.world, pattern, settings.amin)?;
        if settings.tree & 1 != 0 {
            program
                .tree
                .insert_str(0, &syntax::tree::text(source, &ast));
        }
        Ok(program)
    }
}

/// Returns the error for a program without clauses and declarations, located at its end.
fn empty(source: &Source) -> Box<Diagnostic> {
    let message = "empty D program translation unit";
    Diagnostic::new("D_EMPTY", end(source), message)
}

fn end(source: &Source) -> Span {
    let end = u32::try_from(source.text.len()).unwrap_or(u32::MAX);
    Span::new(end, end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diag::Diagnostic;
    use crate::statement::{Kind, Statement};
    use dtrace_objects::processes::Nowhere;
    use dtrace_uapi::action::Action;

    fn compile(text: &str) -> Result<Program> {
        Compiler::new(&Nowhere).compile(&Source::argument(text), &Settings::default())
    }

    fn refused(text: &str) -> String {
        let error: Box<Diagnostic> = compile(text).expect_err(text);
        error.to_string()
    }

    #[test]
    fn an_action_becomes_a_record_with_a_statement() {
        let program = compile("BEGIN { trace(1); exit(0); }").expect("a program");
        let [clause] = &program.clauses[..] else {
            panic!("one clause expected");
        };
        let kinds: Vec<Action> = clause.actions.iter().map(|action| action.kind).collect();
        assert_eq!(kinds, [Action::Difexpr, Action::Exit]);
        assert_eq!(clause.probes.to_string(), ":::BEGIN");
        assert_eq!(
            program.statement(clause.actions[0].uarg),
            Some(&Statement::Trace(Kind::Signed))
        );
        assert_eq!(
            program.statement(clause.actions[1].uarg),
            Some(&Statement::Exit)
        );
    }

    #[test]
    fn keys_come_before_the_function() {
        let program =
            compile("syscall:::entry { @[execname, pid] = quantize(arg2); }").expect("a program");
        let actions = &program.clauses[0].actions;
        assert_eq!(actions.len(), 3);
        assert_eq!((actions[2].kind, actions[2].ntuple), (Action::Quantize, 2));
        assert_eq!(program.aggs[0].name, "_");
    }

    /// Compiles programs for a module that knows frames of interpreted code in values. Returns the
    /// sizes of the variables of each.
    fn sizes_of_variables(interpreted: bool, texts: &[&str]) -> Vec<Vec<u32>> {
        let mut compiler = Compiler::new(&Nowhere);
        let settings = Settings {
            interpreted,
            ..Settings::default()
        };
        let compiled = texts
            .iter()
            .map(|text| compiler.compile(&Source::argument(*text), &settings));
        let compiled = compiled.collect::<Result<Vec<_>>>().expect("programs");
        let settled = compiler.settle().expect("the same programs");
        let sizes = |program: &Program| {
            let actions = program.clauses.iter().flat_map(|clause| &clause.actions);
            let vars = actions.flat_map(|action| action.difo.iter().flat_map(|difo| &difo.vars));
            vars.map(|var| var.ty.size).collect()
        };
        settled.unwrap_or(compiled).iter().map(sizes).collect()
    }

    #[test]
    fn values_have_room_for_interpreted_code_if_one_is_of_a_user_stack() {
        const SMALL: u32 = 16 + 3 * 8;
        const LARGE: u32 = SMALL + 16 * 8;
        let kernel = "BEGIN { x = stack(3); }";
        let user = "BEGIN { ustack(); y = ustack(3); x = y; }";
        let sizes = |texts: &[&str]| sizes_of_variables(true, texts);
        assert_eq!(sizes(&[kernel]), [[SMALL]]);
        assert_eq!(sizes(&[user]), [[LARGE; 3]]);
        // All values of a tracing have one type, whichever program makes the first.
        let both = [&[LARGE][..], &[LARGE; 3]];
        assert_eq!(sizes(&[kernel, user]), both);
        assert_eq!(
            sizes(&["dt_stack_t x; BEGIN { x = stack(); } END { x = ustack(); }"]),
            [[336; 2]]
        );
        assert_eq!(
            sizes_of_variables(false, &[kernel, user]),
            [&[SMALL][..], &[SMALL; 3]]
        );
    }

    #[test]
    fn an_aggregation_has_its_keys_as_they_were_written_first() {
        let mut compiler = Compiler::new(&Nowhere);
        let mut compile = |text| compiler.compile(&Source::argument(text), &Settings::default());
        let first = "BEGIN { @a[execname, pid +\n\t1, \"x\"] = count(); @b = sum(1); }";
        let first = compile(first).expect("the first");
        assert_eq!(first.aggs[0].keys, ["execname", "pid + 1", "\"x\""]);
        assert!(first.aggs[1].keys.is_empty());
        let second = compile("END { @a[probefunc, 2, \"y\"] = count(); @d[stack(3)] = max(1); }");
        let aggs = second.expect("the second").aggs;
        assert_eq!(aggs[0].keys, first.aggs[0].keys);
        assert_eq!(aggs[2].keys, ["stack(3)"]);
    }

    #[test]
    fn what_one_program_declares_the_next_one_knows() {
        let mut compiler = Compiler::new(&Nowhere);
        let mut compile = |text| compiler.compile(&Source::argument(text), &Settings::default());
        let first = compile("BEGIN { x = 1; @a = count(); }").expect("the first");
        let second = compile("END { trace(x); printa(@a); }").expect("the second");
        assert_eq!(
            second.first_uarg,
            first.first_uarg + first.statements.len() as u64
        );
        assert_eq!(
            second.statements[1],
            Statement::Printa {
                format: None,
                aggs: vec![1]
            }
        );
    }

    #[test]
    fn words_that_declare_nothing_are_descriptions() {
        let text = "define VALUE 5\nBEGIN { trace(1); }";
        let error = Compiler::new(&Nowhere)
            .compile(&Source::file("x.d", text), &Settings::default())
            .expect_err(text);
        let expected = "[D_SYNTAX] expected predicate and/or actions following probe description";
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn errors_are_in_dtraces_words() {
        for (text, message) in [
            ("BEGIN { trace(foo); }", "[D_IDENT_UNDEF] failed to resolve foo: Unknown variable name"),
            ("BEGIN { trace(1 }", "[D_SYNTAX] syntax error near \"}\""),
            ("nosuch_t variable;", "[D_UNKNOWN] failed to resolve type nosuch_t: Unknown type name"),
            ("BEGIN { trace(1/0); }", "[D_DIV_ZERO] expression contains division by zero"),
            ("BEGIN { trace(); }", "[D_PROTO_LEN] trace( ) prototype mismatch: 0 args passed, 1 expected"),
            ("BEGIN { 1 + 2; }", "[D_EXPR_NULL] expression has null effect"),
            ("BEGIN { pid = 3; }", "[D_OP_WRITE] operator = can only be applied to a writable variable"),
            (
                "BEGIN { x = \"a\"; x = 1; }",
                "[D_OP_INCOMPAT] operands have incompatible types: \"string\" = \"int\"",
            ),
            ("BEGIN { printf(\"%d\"); }", "[D_PRINTF_ARG_PROTO] printf( ) prototype mismatch: conversion #1 (%d) is missing a corresponding value argument"),
        ] {
            assert_eq!(refused(text), message, "{text}");
        }
    }
}
