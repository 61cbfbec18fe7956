// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Recognizes names of types, and names that were meant as types but are not.
//!
//! Where an expression is also possible, only the name of a type is read as a type. Where no
//! expression is possible, any name is read as a type: the checker then reports that there is no
//! such type, which is clearer than a syntax error at the next word.
//!
//! Invariant: a name that is not a type is read as one only if the text is wrong either way.

use super::ast::{BaseKind, BaseType, Declarator, Expr, ExprKind, TypeName};
use super::lexer::{Lexer, Tok};
use super::parser::{begins_type, is_reserved, Parser};
use crate::diag::Result;

/// The usual suffix of the names of types in C; hardly any other names have it.
pub const SUFFIX: &str = "_t";

impl Parser<'_> {
    /// Parses `(type)` if it stands here; otherwise consumes nothing.
    pub(super) fn parenthesized_type(&mut self) -> Result<Option<TypeName>> {
        let mark = self.mark();
        self.advance()?;
        if !self.type_ahead()? && !self.pointer_ahead(&[")"])? {
            self.reset(mark);
            return Ok(None);
        }
        let ty = self.type_name()?;
        self.expect(")")?;
        Ok(Some(ty))
    }

    /// Whether a type begins here.
    pub(super) fn type_ahead(&mut self) -> Result<bool> {
        if let Tok::Ident(word) = &self.token {
            if begins_type(word) {
                return Ok(true);
            }
        }
        let Some((module, name, mut ahead)) = self.name_ahead()? else {
            return Ok(false);
        };
        if module.is_some() {
            return Ok(self.is_type(module.as_deref(), &name));
        }
        Ok(match ahead.token(self.in_predicate)?.0 {
            // Only `)`, a star, another word or a separator of types can follow the name of a
            // typedef.
            Tok::Punct(")" | "*" | "," | "]" | ">") | Tok::Ident(_) => self.is_type(None, &name),
            _ => false,
        })
    }

    /// Returns the module and the name that stand here, and a lexer positioned after them; `None`
    /// if there is no name.
    fn name_ahead(&self) -> Result<Option<(Option<String>, String, Lexer<'_>)>> {
        let mut ahead = self.lexer.clone();
        let (module, name) = match &self.token {
            Tok::Punct("`") => (Some(String::new()), None),
            Tok::Ident(word) => {
                let mut scope = ahead.clone();
                match scope.token(self.in_predicate)?.0 {
                    Tok::Punct("`") => {
                        ahead = scope;
                        (Some(word.clone()), None)
                    }
                    _ => (None, Some(word.clone())),
                }
            }
            _ => return Ok(None),
        };
        let name = match name {
            Some(name) => name,
            None => match ahead.token(self.in_predicate)?.0 {
                Tok::Ident(name) => name,
                _ => return Ok(None),
            },
        };
        Ok(Some((module, name, ahead)))
    }

    /// Whether a name, stars and then one of `ends` stand here. No expression looks like this,
    /// whatever the name is. A pointer to a function, `name (*)`, also counts.
    pub(super) fn pointer_ahead(&self, ends: &[&str]) -> Result<bool> {
        let Some((module, name, mut ahead)) = self.name_ahead()? else {
            return Ok(false);
        };
        if module.is_none() && is_reserved(&name) {
            return Ok(false);
        }
        let mut stars = 0u32;
        let mut parentheses = 0u32;
        loop {
            match ahead.token(self.in_predicate)?.0 {
                Tok::Punct("*") => stars += 1,
                Tok::Punct("(") if stars == 0 && parentheses == 0 => parentheses += 1,
                Tok::Punct(")") if stars > 0 && parentheses > 0 => return Ok(true),
                Tok::Ident(word) if stars > 0 && word == "const" => (),
                Tok::Punct(end) => return Ok(stars > 0 && ends.contains(&end)),
                _ => return Ok(false),
            }
        }
    }

    /// Whether a key of an associative array begins here whose type does not exist. In an array's
    /// size, a constant, no comma and no word follows a name.
    pub(super) fn key_ahead(&mut self) -> Result<bool> {
        let Tok::Ident(word) = &self.token else {
            return Ok(false);
        };
        if is_reserved(word) {
            return Ok(false);
        }
        let followed = matches!(self.second()?, Tok::Punct(",") | Tok::Ident(_));
        Ok(followed || self.pointer_ahead(&["]", ","])?)
    }

    /// Parses a cast to a type that does not exist, if `inner`, a name in parentheses, was meant as
    /// that: then an operand follows it. Otherwise consumes nothing.
    pub(super) fn cast_meant(&mut self, inner: &Expr) -> Result<Option<Expr>> {
        let ExprKind::Name { module, name } = &inner.kind else {
            return Ok(None);
        };
        let operand = match &self.token {
            Tok::Int(..) | Tok::Float(..) | Tok::Str(_) | Tok::Punct("`" | "~" | "!") => true,
            Tok::Punct("(") => name.ends_with(SUFFIX),
            Tok::Ident(word) => {
                !is_reserved(word)
                    || matches!(
                        word.as_str(),
                        "self" | "this" | "sizeof" | "offsetof" | "stringof" | "xlate"
                    )
            }
            _ => false,
        };
        if !operand {
            return Ok(None);
        }
        let ty = TypeName {
            base: BaseType {
                kind: BaseKind::Named {
                    module: module.clone(),
                    name: name.clone(),
                    span: inner.span,
                },
                is_const: false,
                userland: false,
                span: inner.span,
            },
            declarator: Declarator::default(),
            span: inner.span,
        };
        let operand = self.unary()?;
        Ok(Some(Expr {
            span: inner.span.to(operand.span),
            counted: inner.span.start,
            kind: ExprKind::Cast(Box::new(ty), Box::new(operand)),
        }))
    }

    /// Whether stars and a name, and then something that only follows a declared name, come after a
    /// word at the top level of a program. No probe description looks like this. `glued` means that
    /// the star directly follows the word, so that all of it may be a pattern.
    pub(super) fn declares_pointer(&self, mut ahead: Lexer<'_>, glued: bool) -> bool {
        let mut next = || ahead.token(false).map(|(token, _)| token);
        let mut token = next();
        while matches!(token, Ok(Tok::Punct("*"))) {
            token = next();
        }
        let named = matches!(token, Ok(Tok::Ident(_)));
        named
            && match next() {
                Ok(Tok::Punct(";" | "=")) => true,
                Ok(Tok::Punct("," | "[" | "(")) => !glued,
                _ => false,
            }
    }
}
