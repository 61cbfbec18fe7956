// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Clauses: probe descriptions, predicates and statements.

use super::ast::{Clause, ExprKind, Stmt};
use super::lexer::Tok;
use super::parser::Parser;
use crate::diag::{Diagnostic, Result};
use crate::source::Span;

impl Parser<'_> {
    /// Parses a clause. The lexer must be at its first description.
    pub(super) fn clause(&mut self) -> Result<Clause> {
        let probes = self.descriptions()?;
        let span = probes
            .iter()
            .fold(probes[0].1, |span, (_, next)| span.to(*next));
        let mut clause = Clause {
            probes,
            predicate: None,
            body: Vec::new(),
            end: self.source.text.len() as u32,
            span,
        };
        let another = !self.lexer.remaining().starts_with(['/', '{']);
        if another && self.is_argument() {
            // The clause has the default action. What follows, if anything, begins another clause.
            return Ok(clause);
        }
        self.advance()?;
        let bare = !self.at("/") && !self.at("{");
        if bare {
            let (text, span) = clause.probes.swap_remove(clause.probes.len() - 1);
            let message = "expected predicate and/or actions following probe description";
            let error = Diagnostic::new("D_SYNTAX", span, message);
            // The text may have been meant as a declaration.
            return Err(match !text.contains(':') && self.at("*") {
                true => error.note(self.no_type(&text)),
                false => error,
            });
        }
        if self.at("/") {
            clause.predicate = Some(self.predicate()?);
        }
        match self.token {
            Tok::Punct("{") => {
                self.begin = self.lexer.position();
                self.advance()?;
                clause.body = self.statements()?;
                if !self.at("}") {
                    return Err(self.unexpected());
                }
                clause.end = self.span.start;
                self.leave_tokens();
            }
            // A predicate without a body: the default action under a condition.
            Tok::End => (),
            Tok::Punct(";") => self.leave_tokens(),
            _ => return Err(self.unexpected()),
        }
        Ok(clause)
    }

    fn descriptions(&mut self) -> Result<Vec<(String, Span)>> {
        let mut probes = Vec::new();
        loop {
            let (text, span) = self.lexer.probe_description()?;
            if span.start == span.end {
                self.advance()?;
                return Err(self.unexpected());
            }
            probes.push((text, span));
            self.lexer.skip_trivia()?;
            if !self.lexer.remaining().starts_with(',') {
                return Ok(probes);
            }
            self.lexer.rewind(self.lexer.position() + 1);
            self.lexer.skip_trivia()?;
            // A comma may follow the last description.
            if self.lexer.remaining().starts_with(['/', '{']) {
                return Ok(probes);
            }
        }
    }

    fn predicate(&mut self) -> Result<super::ast::Expr> {
        self.in_predicate = true;
        self.begin = self.lexer.position();
        let parsed = self.advance().and_then(|()| self.expression());
        self.in_predicate = false;
        let parsed = parsed?;
        if self.token != Tok::EndPredicate {
            return Err(self.unexpected());
        }
        self.advance()?;
        Ok(parsed)
    }

    /// Parses statements up to the closing brace, which is not consumed.
    fn statements(&mut self) -> Result<Vec<Stmt>> {
        let mut statements = Vec::new();
        while !self.at("}") {
            if self.eat(";")? {
                continue;
            }
            let statement = self.nested(Self::statement)?;
            statements.extend(statement);
        }
        Ok(statements)
    }

    fn statement(&mut self) -> Result<Vec<Stmt>> {
        if self.at("{") {
            self.advance()?;
            let block = self.statements()?;
            self.expect("}")?;
            return Ok(block);
        }
        if self.at_word("if") {
            return Ok(vec![self.conditional()?]);
        }
        if self.loops && self.at_word("while") {
            return Ok(vec![self.repeated()?]);
        }
        let expr = self.expression()?;
        // The last statement needs no semicolon.
        if !self.at("}") {
            self.expect(";")?;
        }
        // `a, b;` is two statements, because each may be an action.
        let mut statements = Vec::new();
        split_commas(expr, &mut statements);
        Ok(statements)
    }

    fn conditional(&mut self) -> Result<Stmt> {
        let condition = self.condition()?;
        let then = self.nested(Self::branch)?;
        let otherwise = if self.eat_word("else")? {
            self.nested(Self::branch)?
        } else {
            Vec::new()
        };
        Ok(Stmt::If {
            condition,
            then,
            otherwise,
        })
    }

    fn repeated(&mut self) -> Result<Stmt> {
        let condition = self.condition()?;
        let body = self.nested(Self::branch)?;
        Ok(Stmt::While { condition, body })
    }

    /// Parses the keyword here and the condition in parentheses after it, for `if` and `while`.
    fn condition(&mut self) -> Result<super::ast::Expr> {
        self.advance()?;
        self.expect("(")?;
        let condition = self.expression()?;
        self.expect(")")?;
        Ok(condition)
    }

    fn branch(&mut self) -> Result<Vec<Stmt>> {
        if self.eat(";")? {
            return Ok(Vec::new());
        }
        self.statement()
    }
}

fn split_commas(expr: super::ast::Expr, statements: &mut Vec<Stmt>) {
    match expr.kind {
        ExprKind::Comma(first, second) => {
            split_commas(*first, statements);
            split_commas(*second, statements);
        }
        _ => statements.push(Stmt::Expr(expr)),
    }
}
