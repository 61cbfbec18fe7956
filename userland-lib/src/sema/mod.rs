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
mod builtin;
mod call;
mod clause;
mod declare;
mod expression;
mod fold;
pub mod hir;
mod operator;
mod output;
mod place;
mod printf;
mod probe;
mod shape;
mod translate;
mod variable;

#[cfg(test)]
mod tests;

use crate::compile::Settings;
use crate::diag::{Diagnostic, Result};
use crate::program::{OptionPragma, Program};
use crate::source::{Origin, Source};
use crate::statement::AggVar;
use crate::syntax::ast::{Ast, Item};
use crate::syntax::TypeNames;
use crate::types::Types;
use crate::world::World;

/// What programs of one compiler share.
pub(crate) struct State<'w> {
    pub(crate) types: Types<'w>,
    variables: variable::Table,
    aggregations: Vec<aggregate::Known>,
    translators: Vec<std::rc::Rc<translate::Translator>>,
    statements: u64,
}

impl<'w> State<'w> {
    pub(crate) fn new(world: &'w dyn World) -> Self {
        Self {
            types: Types::new(world.types()),
            variables: variable::Table::default(),
            aggregations: Vec::new(),
            translators: Vec::new(),
            statements: 0,
        }
    }
}

impl TypeNames for State<'_> {
    fn is_type(&mut self, module: Option<&str>, name: &str) -> bool {
        let is_variable = module.is_none()
            && (builtin::find(name).is_some() || self.variables.global(name).is_some());
        !is_variable && self.types.lookup_typedef(module, name).is_some()
    }
}

/// The check of one program.
struct Sema<'a, 'w> {
    state: &'a mut State<'w>,
    world: &'w dyn World,
    settings: &'a Settings,
    program: Program,
    probe: probe::Context,
    /// What names stand for while an inline or a translator is replaced.
    bindings: Vec<(String, hir::Expr)>,
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
    let mut settings = settings.clone();
    let mut program = Program {
        first_uarg: crate::statement::FIRST + state.statements,
        ..Program::default()
    };
    pragmas(ast, &mut program, &mut settings);
    if settings.strsize != 0 {
        state.types.set_string_size(u64::from(settings.strsize));
    }
    let mut sema = Sema {
        state,
        world,
        settings: &settings,
        program,
        probe: probe::Context::default(),
        bindings: Vec::new(),
        depth: 0,
        hidden: 0,
        valueless: None,
    };
    let mut index = 0;
    for item in &ast.items {
        match item {
            Item::Declaration(declaration) => sema.declaration(declaration)?,
            Item::Translator(translator) => sema.translator(translator)?,
            Item::Clause(clause) => {
                sema.clause(clause, index)?;
                index += 1;
            }
        }
    }
    let mut program = sema.program;
    if index == 0
        && source.origin == Origin::Argument
        && ast.items.is_empty()
        && ast.pragmas.is_empty()
    {
        return Err(Diagnostic::new(
            "D_EMPTY",
            crate::source::Span::default(),
            "empty D program translation unit",
        ));
    }
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

/// Sorts the control lines; options that concern compiling hold for this program at once.
fn pragmas(ast: &Ast, program: &mut Program, settings: &mut Settings) {
    for pragma in &ast.pragmas {
        match pragma.name.as_str() {
            "option" => {
                let (name, value) = match pragma.text.split_once('=') {
                    Some((name, value)) => (name.trim(), Some(value.trim())),
                    None => (pragma.text.trim(), None),
                };
                match (name, value) {
                    ("zdefs", _) => settings.allow_zero_matches = true,
                    ("defaultargs", _) => settings.default_args = true,
                    ("strsize", Some(value)) => {
                        if let Some(size) = size(value) {
                            settings.strsize = size;
                        }
                    }
                    _ => (),
                }
                program.options.push(OptionPragma {
                    name: name.to_owned(),
                    value: value.map(str::to_owned),
                    span: pragma.span,
                });
            }
            "depends_on" => {
                let mut words = pragma.text.split_whitespace();
                if let (Some(class), Some(name)) = (words.next(), words.next()) {
                    program.depends.push((class.to_owned(), name.to_owned()));
                }
            }
            // Attributes and bindings say how far names may be relied on; they change no code.
            _ => (),
        }
    }
}

/// A size with its suffix; one that is wrong is the option's own parser's to refuse.
fn size(text: &str) -> Option<u32> {
    let (digits, shift) = match text.as_bytes().last()? {
        b'k' | b'K' => (&text[..text.len() - 1], 10),
        b'm' | b'M' => (&text[..text.len() - 1], 20),
        b'g' | b'G' => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    digits.parse::<u32>().ok()?.checked_mul(1 << shift)
}
