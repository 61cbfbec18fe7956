// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Semantic analysis: turns the syntax tree of a program into a typed program ([`hir`]).
//!
//! Names are resolved ([`access`], [`place`], [`variable`], [`builtin`]), expressions are typed and
//! constant-folded ([`expression`], [`operator`]), and calls are checked against prototypes
//! ([`call`]). Each clause of the source becomes one or more clauses of the program. Each action
//! gets the expression that it needs and a statement that tells the consumer what to do with its
//! record ([`clause`], [`action`], [`aggregate`]).
//!
//! [`State`] holds what outlives a program: types, variables, aggregations, inlines, translators.
//! [`Sema`] is the check of one program.
//!
//! Invariant: after an error the state is still usable for the next program. Declarations of the
//! failed program may remain in it.

mod access;
mod action;
mod actions;
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
mod inferred;
mod inline;
#[cfg(test)]
mod manual_tests;
mod narrow;
mod operator;
#[cfg(test)]
mod order_tests;
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
mod process_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod type_tests;

pub use aggfunc::name as function_name;

use crate::compile::{ProbeSpec, Settings};
use crate::diag::{Diagnostic, Result};
use crate::hir;
use crate::program::Program;
use crate::source::{Origin, Source, Span};
use crate::statement::AggVar;
use crate::syntax::ast::{Ast, Item};
use crate::syntax::TypeNames;
use crate::world::World;
use dtrace_objects::pattern::ProbePattern;
use dtrace_types::Types;

/// State shared by all programs of one compiler.
#[derive(Clone)]
pub(crate) struct State<'w> {
    pub(crate) types: Types<'w>,
    variables: variable::Table,
    inferred: inferred::Inferred,
    aggregations: Vec<aggregate::Known>,
    translators: Vec<std::rc::Rc<translate::Translator>>,
    statements: u64,
    clauses: u64,
    /// Number of hidden clause-local variables created so far for conditions and speculations.
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

    /// Whether an inferred type has changed since the last call, so that code generated with the
    /// old type may be wrong. Resets the flag.
    pub(crate) fn take_learned(&mut self) -> bool {
        self.inferred.take_changed()
    }

    /// Adopts the types that `later`, a successor of this state, has inferred. Returns whether they
    /// concern a variable or an aggregation that this state knows.
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
    source: &'a Source,
    /// The program as far as it is not code.
    program: Program,
    /// Its clauses so far.
    clauses: Vec<hir::Clause>,
    /// Whether the program is a D library.
    is_library: bool,
    probe: probe::Context,
    /// Values of bound names: parameters while an inline or a translator is expanded, and earlier
    /// enumerators while an enumeration is declared.
    bindings: Vec<(String, hir::Expr)>,
    /// Structures and unions whose members are being declared.
    open_records: Vec<dtrace_types::Ty>,
    depth: u32,
    /// Number of hidden variables that this program uses for indices and translated structures. The
    /// next program reuses them.
    hidden: u32,
    /// First use, in an expression, of something without a value (an action, an aggregation). The
    /// error is reported only when code is generated, because the context of the expression often
    /// has a more specific one.
    valueless: Option<Box<Diagnostic>>,
}

/// Checks a parsed program. The result has everything that code generation needs.
pub(crate) fn check<'w>(
    state: &mut State<'w>,
    world: &'w dyn World,
    settings: &Settings,
    source: &Source,
    ast: &Ast,
) -> Result<hir::Program> {
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
        source,
        program,
        clauses: Vec::new(),
        is_library,
        probe: probe::Context::default(),
        bindings: Vec::new(),
        open_records: Vec::new(),
        depth: 0,
        hidden: 0,
        valueless: None,
    };
    // Libraries with unmet dependencies have been skipped before this point.
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
    let (clauses, mut program) = (sema.clauses, sema.program);
    state.statements += program.statements.len() as u64;
    program.aggs = state
        .aggregations
        .iter()
        .map(|known| AggVar {
            id: known.id,
            name: known.name.clone(),
            func: known.func,
            keys: known.written.clone(),
        })
        .collect();
    Ok(hir::Program {
        clauses,
        outline: program,
    })
}

/// Parses a probe description. Returns `None` if `text` is not a valid one.
pub fn description(text: &str, spec: ProbeSpec) -> Option<ProbePattern> {
    probe::parse(text, spec, Span::default()).ok()
}
