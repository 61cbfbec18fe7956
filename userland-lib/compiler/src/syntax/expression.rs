// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Expressions, parsed by binding power.

use super::ast::{BinaryOp, Expr, ExprKind, Scope, UnaryOp};
use super::lexer::Tok;
use super::parser::Parser;
use crate::diag::{Diagnostic, Result};
use crate::source::Span;

/// Returns a binary operator and its binding power. All are left-associative.
fn binary(token: &Tok) -> Option<(BinaryOp, u8)> {
    let Tok::Punct(text) = token else {
        return None;
    };
    Some(match *text {
        "*" => (BinaryOp::Mul, 12),
        "/" => (BinaryOp::Div, 12),
        "%" => (BinaryOp::Rem, 12),
        "+" => (BinaryOp::Add, 11),
        "-" => (BinaryOp::Sub, 11),
        "<<" => (BinaryOp::Shl, 10),
        ">>" => (BinaryOp::Shr, 10),
        "<" => (BinaryOp::Lt, 9),
        "<=" => (BinaryOp::Le, 9),
        ">" => (BinaryOp::Gt, 9),
        ">=" => (BinaryOp::Ge, 9),
        "==" => (BinaryOp::Eq, 8),
        "!=" => (BinaryOp::Ne, 8),
        "&" => (BinaryOp::And, 7),
        "^" => (BinaryOp::Xor, 6),
        "|" => (BinaryOp::Or, 5),
        "&&" => (BinaryOp::LogAnd, 4),
        "^^" => (BinaryOp::LogXor, 3),
        "||" => (BinaryOp::LogOr, 2),
        _ => return None,
    })
}

/// Returns the arithmetic operator of an assignment operator; the outer `None` is any other token.
fn assignment(token: &Tok) -> Option<Option<BinaryOp>> {
    let Tok::Punct(text) = token else {
        return None;
    };
    Some(match *text {
        "=" => None,
        "+=" => Some(BinaryOp::Add),
        "-=" => Some(BinaryOp::Sub),
        "*=" => Some(BinaryOp::Mul),
        "/=" => Some(BinaryOp::Div),
        "%=" => Some(BinaryOp::Rem),
        "&=" => Some(BinaryOp::And),
        "|=" => Some(BinaryOp::Or),
        "^=" => Some(BinaryOp::Xor),
        "<<=" => Some(BinaryOp::Shl),
        ">>=" => Some(BinaryOp::Shr),
        _ => return None,
    })
}

fn expr(kind: ExprKind, span: Span) -> Expr {
    Expr {
        kind,
        span,
        counted: span.start,
    }
}

impl Parser<'_> {
    /// Makes an operator expression. All its operands must have been read.
    fn operation(&self, kind: ExprKind, span: Span) -> Expr {
        let counted = match self.token {
            // DTrace's token that ends a predicate extends to the brace after it.
            Tok::EndPredicate => self.lexer.next_token() as u32,
            _ => self.span.start,
        };
        Expr {
            kind,
            span,
            counted,
        }
    }

    /// Parses an expression with commas.
    pub(super) fn expression(&mut self) -> Result<Expr> {
        self.chain(|parser| {
            let mut left = parser.assignment()?;
            while parser.at(",") {
                parser.link()?;
                parser.advance()?;
                let right = parser.assignment()?;
                let span = left.span.to(right.span);
                left = parser.operation(ExprKind::Comma(Box::new(left), Box::new(right)), span);
            }
            Ok(left)
        })
    }

    /// Parses an expression without commas.
    pub(super) fn assignment(&mut self) -> Result<Expr> {
        self.nested(|parser| {
            let target = parser.conditional_expression()?;
            let Some(op) = assignment(&parser.token) else {
                return Ok(target);
            };
            parser.advance()?;
            let value = parser.assignment()?;
            let span = target.span.to(value.span);
            Ok(parser.operation(
                ExprKind::Assign {
                    op,
                    target: Box::new(target),
                    value: Box::new(value),
                },
                span,
            ))
        })
    }

    /// Parses an expression without commas and assignments.
    pub(super) fn conditional_expression(&mut self) -> Result<Expr> {
        let condition = self.binary(0)?;
        if !self.eat("?")? {
            return Ok(condition);
        }
        let then = self.nested(Self::expression)?;
        self.expect(":")?;
        let otherwise = self.nested(Self::conditional_expression)?;
        let span = condition.span.to(otherwise.span);
        Ok(self.operation(
            ExprKind::Cond(Box::new(condition), Box::new(then), Box::new(otherwise)),
            span,
        ))
    }

    fn binary(&mut self, least: u8) -> Result<Expr> {
        self.chain(|parser| parser.binary_chain(least))
    }

    fn binary_chain(&mut self, least: u8) -> Result<Expr> {
        let mut left = self.unary()?;
        while let Some((op, power)) = binary(&self.token) {
            if power < least {
                break;
            }
            self.link()?;
            self.advance()?;
            let right = self.nested(|parser| parser.binary(power + 1))?;
            let span = left.span.to(right.span);
            left = self.operation(ExprKind::Binary(op, Box::new(left), Box::new(right)), span);
        }
        Ok(left)
    }

    pub(super) fn unary(&mut self) -> Result<Expr> {
        self.nested(Self::unary_unbounded)
    }

    fn unary_unbounded(&mut self) -> Result<Expr> {
        match self.prefixed()? {
            Some(prefixed) => Ok(prefixed),
            None => self.postfix(),
        }
    }

    /// Parses a prefix operator or a cast with its operand, if there is one here.
    fn prefixed(&mut self) -> Result<Option<Expr>> {
        let start = self.span;
        let op = match &self.token {
            Tok::Punct("-") => Some(UnaryOp::Neg),
            Tok::Punct("+") => Some(UnaryOp::Plus),
            Tok::Punct("~") => Some(UnaryOp::BitNot),
            Tok::Punct("!") => Some(UnaryOp::Not),
            Tok::Punct("*") => Some(UnaryOp::Deref),
            Tok::Punct("&") => Some(UnaryOp::AddressOf),
            _ => None,
        };
        if let Some(op) = op {
            self.advance()?;
            let operand = self.unary()?;
            let span = start.to(operand.span);
            let kind = ExprKind::Unary(op, Box::new(operand));
            return Ok(Some(self.operation(kind, span)));
        }
        if self.at("++") || self.at("--") {
            let up = self.at("++");
            self.advance()?;
            let target = Box::new(self.unary()?);
            let span = start.to(target.span);
            let kind = ExprKind::Step {
                up,
                post: false,
                target,
            };
            return Ok(Some(self.operation(kind, span)));
        }
        if self.at("(") {
            if let Some(ty) = self.parenthesized_type()? {
                let operand = self.unary()?;
                let span = start.to(operand.span);
                let kind = ExprKind::Cast(Box::new(ty), Box::new(operand));
                return Ok(Some(self.operation(kind, span)));
            }
        }
        if self.at_word("sizeof") {
            return self.sizeof(start).map(Some);
        }
        if self.at_word("stringof") {
            self.advance()?;
            let operand = self.unary()?;
            let span = start.to(operand.span);
            let kind = ExprKind::Stringof(Box::new(operand));
            return Ok(Some(self.operation(kind, span)));
        }
        Ok(None)
    }

    fn sizeof(&mut self, start: Span) -> Result<Expr> {
        self.advance()?;
        let kind = match self.at("(") {
            true => match self.parenthesized_type()? {
                Some(ty) => ExprKind::SizeofType(Box::new(ty)),
                None => ExprKind::SizeofExpr(Box::new(self.unary()?)),
            },
            false => ExprKind::SizeofExpr(Box::new(self.unary()?)),
        };
        Ok(self.operation(kind, start.to(self.last)))
    }

    fn postfix(&mut self) -> Result<Expr> {
        self.chain(Self::postfix_chain)
    }

    fn postfix_chain(&mut self) -> Result<Expr> {
        let mut base = self.primary()?;
        loop {
            let start = base.span;
            if matches!(self.token, Tok::Punct("[" | "->" | "." | "++" | "--")) {
                self.link()?;
            }
            if self.eat("[")? {
                let args = self.arguments("]")?;
                base = expr(ExprKind::Index(Box::new(base), args), start.to(self.last));
            } else if self.at("(") {
                // A name followed by `(` was read as a call before, so this is something else.
                let message = "function designator is not of function type";
                return Err(Diagnostic::new("D_FUNC_IDENT", base.span, message));
            } else if self.at("->") || self.at(".") {
                let arrow = self.at("->");
                self.advance()?;
                let name = self.member_name()?;
                base = expr(
                    ExprKind::Member {
                        base: Box::new(base),
                        name,
                        arrow,
                    },
                    start.to(self.last),
                );
            } else if self.at("++") || self.at("--") {
                let up = self.at("++");
                self.advance()?;
                base = expr(
                    ExprKind::Step {
                        up,
                        post: true,
                        target: Box::new(base),
                    },
                    start.to(self.last),
                );
            } else {
                return Ok(base);
            }
        }
    }

    /// Parses a member's name. It may be any word, because C's structures may use D's keywords.
    pub(super) fn member_name(&mut self) -> Result<String> {
        match &self.token {
            Tok::Ident(name) => {
                let name = name.clone();
                self.advance()?;
                Ok(name)
            }
            _ => Err(self.unexpected()),
        }
    }

    /// Parses arguments up to and including `close`.
    fn arguments(&mut self, close: &'static str) -> Result<Vec<Expr>> {
        let mut args = Vec::new();
        if self.eat(close)? {
            return Ok(args);
        }
        loop {
            args.push(self.assignment()?);
            if self.eat(close)? {
                return Ok(args);
            }
            self.expect(",")?;
        }
    }

    fn primary(&mut self) -> Result<Expr> {
        let start = self.span;
        let kind = match self.token.clone() {
            Tok::Int(value, suffix) => {
                self.advance()?;
                ExprKind::Int(value, suffix)
            }
            Tok::Float(value, suffix) => {
                self.advance()?;
                ExprKind::Float(value, suffix)
            }
            Tok::Str(mut bytes) => {
                self.advance()?;
                // Adjacent strings are concatenated.
                while let Tok::Str(more) = &self.token {
                    bytes.extend_from_slice(more);
                    self.advance()?;
                }
                ExprKind::Str(bytes)
            }
            Tok::Agg(name) => {
                self.advance()?;
                let keys = match self.eat("[")? {
                    true => self.arguments("]")?,
                    false => Vec::new(),
                };
                ExprKind::Agg { name, keys }
            }
            Tok::Punct("(") => {
                self.advance()?;
                let inner = self.expression()?;
                self.expect(")")?;
                if let Some(cast) = self.cast_meant(&inner)? {
                    return Ok(cast);
                }
                return Ok(Expr {
                    span: start.to(self.last),
                    ..inner
                });
            }
            Tok::Punct("`") => {
                self.advance()?;
                if !matches!(self.token, Tok::Ident(_)) {
                    let message = "failed to resolve `: Unknown symbol name";
                    return Err(Diagnostic::new("D_IDENT_UNDEF", start, message));
                }
                self.scoped_symbol(String::new())?
            }
            Tok::Ident(word) => self.word(&word)?,
            _ => return Err(self.unexpected()),
        };
        Ok(expr(kind, start.to(self.last)))
    }

    /// Parses a primary expression that begins with a word.
    fn word(&mut self, word: &str) -> Result<ExprKind> {
        match word {
            "self" | "this" => {
                self.advance()?;
                self.expect("->")?;
                let scope = match word {
                    "self" => Scope::Thread,
                    _ => Scope::Clause,
                };
                return Ok(ExprKind::Scoped(scope, self.member_name()?));
            }
            "offsetof" => return self.offsetof(),
            "xlate" => {
                self.advance()?;
                self.expect("<")?;
                let ty = self.type_name()?;
                self.expect(">")?;
                self.expect("(")?;
                let input = self.expression()?;
                self.expect(")")?;
                return Ok(ExprKind::Xlate(Box::new(ty), Box::new(input)));
            }
            _ => (),
        }
        let name_span = self.span;
        let name = self.ident()?;
        if self.eat("`")? {
            return self.scoped_symbol(name);
        }
        if self.eat("(")? {
            let args = self.call_arguments(&name)?;
            return Ok(ExprKind::Call {
                name,
                name_span,
                args,
            });
        }
        Ok(ExprKind::Name { module: None, name })
    }

    fn scoped_symbol(&mut self, module: String) -> Result<ExprKind> {
        let name = self.member_name()?;
        Ok(ExprKind::Name {
            module: Some(module),
            name,
        })
    }

    fn call_arguments(&mut self, name: &str) -> Result<Vec<Expr>> {
        if self.token == Tok::End {
            return Err(Diagnostic::new(
                "D_SYNTAX",
                self.span,
                format!("syntax error near end of input in the arguments of {name}( )"),
            ));
        }
        self.arguments(")")
    }

    fn offsetof(&mut self) -> Result<ExprKind> {
        self.advance()?;
        self.expect("(")?;
        let ty = self.type_name()?;
        self.expect(",")?;
        let member = self.member_name()?;
        self.expect(")")?;
        Ok(ExprKind::Offsetof(Box::new(ty), member))
    }
}
