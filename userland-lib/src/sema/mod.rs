// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! From syntax to meaning.
//!
//! Names are looked up ([`access`], [`place`], [`variable`], [`builtin`]), expressions are typed and folded ([`expression`],
//! [`operator`]), calls are checked against prototypes ([`call`]), and clauses become the program's clauses, each
//! action with its DIF object and its statement for the consumer ([`clause`], [`action`], [`aggregate`]).
//!
//! [`State`] is what outlives a program: types, variables, aggregations, inlines. [`Sema`] is one program's check.
//!
//! Invariant: an error leaves the state fit for the next program; what the failed one declared may stay.

mod access;
mod action;
mod aggfunc;
mod aggregate;
mod bounds;
mod branch;
mod builtin;
mod call;
mod cast;
mod clause;
mod declare;
#[cfg(test)]
mod deep_tests;
mod distribution;
mod enumeration;
mod expression;
mod float;
pub(crate) mod fold;
#[cfg(test)]
mod function_tests;
pub mod hir;
mod inferred;
mod inline;
#[cfg(test)]
mod manual_tests;
mod narrow;
mod operator;
mod output;
mod place;
mod pragma;
mod printf;
mod probe;
mod process;
mod provider;
mod scratch;
mod shape;
mod size;
mod speculate;
mod suggest;
mod translate;
mod variable;
mod walker;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod type_tests;

use crate::compile::{ProbeSpec, Settings};
use crate::diag::{Diagnostic, Result};
use crate::program::Program;
use crate::source::{Origin, Source, Span};
use crate::statement::AggVar;
use crate::syntax::ast::{Ast, Item};
use crate::syntax::TypeNames;
use crate::types::Types;
use crate::world::{ProbePattern, World};

/// What programs of one compiler share.
#[derive(Clone)]
pub(crate) struct State<'w> {
    pub(crate) types: Types<'w>,
    variables: variable::Table,
    inferred: inferred::Inferred,
    aggregations: Vec<aggregate::Known>,
    translators: Vec<std::rc::Rc<translate::Translator>>,
    statements: u64,
    clauses: u64,
    /// How many hidden clause-local variables there are for conditions and speculations.
    hidden: u32,
}

impl<'w> State<'w> {
    pub(crate) fn new(world: &'w dyn World) -> Self {
        Self {
            types: Types::new(world.types()),
            variables: variable::Table::default(),
            inferred: inferred::Inferred::default(),
            aggregations: Vec::new(),
            translators: Vec::new(),
            statements: 0,
            clauses: 0,
            hidden: 0,
        }
    }

    /// Whether the last program has shown that a type which code relies on was another.
    pub(crate) fn take_learned(&mut self) -> bool {
        self.inferred.take_changed()
    }

    /// Takes over what `later`, which this state became, has learned since; whether that concerns what this state knows.
    pub(crate) fn learn(&mut self, later: &Self) -> bool {
        self.inferred.clone_from(&later.inferred);
        let variables = self.inferred.apply(&mut self.variables, &mut self.types);
        let is_known = |name: &str| self.aggregations.iter().any(|known| known.name == name);
        variables || self.inferred.has_keys_of(is_known)
    }
}

impl TypeNames for State<'_> {
    fn is_type(&mut self, module: Option<&str>, name: &str) -> bool {
        let is_variable = module.is_none()
            && (builtin::find(name).is_some() || self.variables.global(name).is_some());
        !is_variable && self.types.lookup_typedef(module, name).is_some()
    }

    fn similar_type(&self, name: &str) -> Option<String> {
        self.types.similar(None, name)
    }
}

/// The check of one program.
struct Sema<'a, 'w> {
    state: &'a mut State<'w>,
    world: &'w dyn World,
    settings: &'a Settings,
    program: Program,
    /// Whether the program is a D library.
    is_library: bool,
    probe: probe::Context,
    /// What names stand for while an inline or a translator is replaced.
    bindings: Vec<(String, hir::Expr)>,
    /// Structures and unions whose members are being read.
    open_records: Vec<crate::types::Ty>,
    depth: u32,
    /// How many hidden variables the program has.
    hidden: u32,
    /// The first use, in an expression, of what has no value (an action, an aggregation). It is told when code is to be
    /// made, for what the expression is needed for often has a better word about it.
    valueless: Option<Box<Diagnostic>>,
}

/// Checks a parsed program and generates its code.
pub(crate) fn check<'w>(
    state: &mut State<'w>,
    world: &'w dyn World,
    settings: &Settings,
    source: &Source,
    ast: &Ast,
) -> Result<Program> {
    let mut program = Program {
        first_uarg: crate::statement::FIRST + state.statements,
        ..Program::default()
    };
    let is_library = matches!(source.origin, Origin::Library(_));
    pragma::apply(&ast.pragmas, is_library, &mut program)?;
    if settings.strsize != 0 {
        state.types.set_string_size(u64::from(settings.strsize));
    }
    state.types.set_stack_frames(settings.frames("stack"));
    state.types.set_model(settings.model);
    let mut sema = Sema {
        state,
        world,
        settings,
        program,
        is_library,
        probe: probe::Context::default(),
        bindings: Vec::new(),
        open_records: Vec::new(),
        depth: 0,
        hidden: 0,
        valueless: None,
    };
    // A library that lacks what it depends on is left out before it comes here.
    if !is_library {
        sema.fulfilled(&ast.pragmas)?;
    }
    for item in &ast.items {
        match item {
            Item::Declaration(declaration) => sema.declaration(declaration)?,
            Item::Translator(translator) => sema.translator(translator)?,
            Item::Provider(provider) => sema.provider(provider)?,
            Item::Clause(clause) => sema.clause(clause)?,
        }
    }
    if let Some(error) = &ast.error {
        return Err(error.clone());
    }
    sema.used_pragmas(&ast.pragmas)?;
    sema.provider_attributes(&ast.pragmas);
    let mut program = sema.program;
    state.statements += program.statements.len() as u64;
    program.aggs = state
        .aggregations
        .iter()
        .map(|known| AggVar {
            id: known.id,
            name: known.name.clone(),
            func: known.func,
        })
        .collect();
    Ok(program)
}

/// The probes that a description names, if it is one.
pub(crate) fn description(text: &str, spec: ProbeSpec) -> Option<ProbePattern> {
    probe::parse(text, spec, Span::default()).ok()
}
