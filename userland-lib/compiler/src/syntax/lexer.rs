// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! From characters to tokens.
//!
//! D is read in two modes. At the top level of a program, a run of characters such as
//! `syscall::open*:entry` is a probe description. Inside clauses and declarations the tokens are
//! C's with D's additions. The parser knows the mode and requests one or the other, so the lexer
//! keeps no state except its position and the pragmas that it has read. It resolves one ambiguity:
//! a `/` in a predicate closes it if what follows cannot continue an expression.
//!
//! Invariant: each token advances the lexer or is the end of the text; an error carries the
//! location of the offending text.

use super::ast::{FloatSuffix, IntSuffix, Pragma};
use super::macros::Macros;
use super::{float, literal};
use crate::diag::{Diagnostic, Result};
use crate::source::Span;
use dtrace_objects::pid::PROVIDER;

/// A token.
#[derive(Clone, Debug, PartialEq)]
pub enum Tok {
    /// A name or keyword.
    Ident(String),
    /// An integer or character constant.
    Int(u64, IntSuffix),
    /// A floating-point constant.
    Float(f64, FloatSuffix),
    /// A string constant.
    Str(Vec<u8>),
    /// `@name`; the name may be empty.
    Agg(String),
    /// An operator or separator.
    Punct(&'static str),
    /// The `/` that ends a predicate.
    EndPredicate,
    /// The end of the text.
    End,
}

/// Operators and separators, longest first, because the lexer takes the first match.
const PUNCTUATORS: &[&str] = &[
    "<<=", ">>=", "...", "^^=", "->", "++", "--", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||",
    "^^", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "+", "-", "*", "/", "%", "&", "|", "^",
    "~", "!", "<", ">", "=", "?", ":", ";", ",", ".", "(", ")", "[", "]", "{", "}", "`",
];

/// Reads tokens.
#[derive(Clone)]
pub struct Lexer<'a> {
    text: &'a str,
    pos: usize,
    macros: &'a Macros,
    /// The `#pragma D` lines read so far.
    pub pragmas: Vec<Pragma>,
}

/// Returns the pragmas of `text`. Malformed pragmas and text that is not a token are skipped. Fails
/// if a pragma uses an undefined macro variable.
pub fn pragmas(text: &str, macros: &Macros) -> Result<Vec<Pragma>> {
    let mut lexer = Lexer::new(text, macros);
    // No control line begins after the last `#`.
    let end = text.rfind('#').map_or(0, |last| last + 1);
    while lexer.pos < end {
        let before = lexer.pos;
        match lexer.token(false) {
            Ok((Tok::End, _)) => break,
            Err(error) if error.tag == "D_MACRO_UNDEF" && begins_control(text, error.span) => {
                return Err(error)
            }
            _ if lexer.pos == before => break,
            _ => (),
        }
    }
    Ok(lexer.pragmas)
}

/// Whether a control line begins at `span`.
fn begins_control(text: &str, span: Span) -> bool {
    text.as_bytes().get(span.start as usize) == Some(&b'#')
}

/// Separates a module from a name in it.
const SCOPE: char = '`';

impl<'a> Lexer<'a> {
    /// Starts a lexer at the beginning of `text`.
    pub fn new(text: &'a str, macros: &'a Macros) -> Self {
        Self {
            text,
            pos: 0,
            macros,
            pragmas: Vec::new(),
        }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.pos..]
    }

    fn byte(&self, ahead: usize) -> u8 {
        *self.text.as_bytes().get(self.pos + ahead).unwrap_or(&0)
    }

    /// Returns the span from `start` to the position of the lexer.
    pub fn span_from(&self, start: usize) -> Span {
        Span::new(start as u32, self.pos as u32)
    }

    /// Skips white space, comments and control lines.
    pub fn skip_trivia(&mut self) -> Result<()> {
        loop {
            let rest = self.rest();
            let blank = rest.len()
                - rest
                    .trim_start_matches([' ', '\t', '\n', '\r', '\x0b', '\x0c'])
                    .len();
            self.pos += blank;
            let rest = self.rest();
            if let Some(comment) = rest.strip_prefix("/*") {
                let Some(end) = comment.find("*/") else {
                    let span = Span::new(self.pos as u32, self.pos as u32 + 2);
                    self.pos = self.text.len();
                    let message = "end-of-file encountered before matching */";
                    let error = Diagnostic::new("D_SYNTAX", span, message);
                    return Err(error.counted_at(self.text.len() as u32));
                };
                self.pos += end + 4;
            } else if rest.starts_with("//") && !rest.starts_with("//*") {
                // `//*` is a slash, which may end a predicate, before a comment.
                self.pos += rest.find('\n').unwrap_or(rest.len());
            } else if rest.starts_with('#') && self.at_line_start() {
                self.control_line()?;
            } else if rest.starts_with("\\\n") {
                self.pos += 2;
            } else {
                return Ok(());
            }
        }
    }

    fn at_line_start(&self) -> bool {
        let before = &self.text[..self.pos];
        let line = before.rfind('\n').map_or(0, |at| at + 1);
        before[line..].trim().is_empty()
    }

    fn control_line(&mut self) -> Result<()> {
        let start = self.pos;
        let mut line = String::new();
        loop {
            let rest = self.rest();
            let end = rest.find('\n').unwrap_or(rest.len());
            self.pos += end;
            let part = rest[..end].trim_end_matches('\r');
            match part.strip_suffix('\\') {
                Some(part) if end < rest.len() => {
                    line.push_str(part);
                    line.push(' ');
                    self.pos += 1;
                }
                _ => {
                    line.push_str(part);
                    break;
                }
            }
        }
        let span = self.span_from(start);
        let pragma = super::pragma::parse(&line, start, span, self.macros);
        let pragma = pragma.map_err(|error| match error.tag {
            // At the end of the file the line may have been cut off, so that is the error.
            "D_PRAGMA_MALFORM" if self.rest().is_empty() => {
                let message = "end-of-file encountered before end of control line";
                Diagnostic::new("D_SYNTAX", span, message).note(error.message)
            }
            _ => error,
        })?;
        self.pragmas.extend(pragma);
        Ok(())
    }

    /// Reads a probe description: the run of characters that may be part of one, with macro
    /// variables replaced. It is empty if there is none.
    pub fn probe_description(&mut self) -> Result<(String, Span)> {
        self.skip_trivia()?;
        let start = self.pos;
        let mut bracket = false;
        let length = self
            .rest()
            .char_indices()
            .find(|(_, c)| {
                match c {
                    '[' => bracket = true,
                    ']' => bracket = false,
                    _ => (),
                }
                let plain = c.is_ascii_alphanumeric() || "-:_.?*\\[]!$`+@<>".contains(*c);
                let inside = bracket && !c.is_whitespace() && *c != ';';
                !(plain || inside || !c.is_ascii())
            })
            .map_or(self.rest().len(), |(at, _)| at);
        // The number of a probe ends with its digits; what follows begins another description.
        let digits = self.rest()[..length]
            .bytes()
            .take_while(u8::is_ascii_digit)
            .count();
        let length = if digits > 0 { digits } else { length };
        let raw = &self.rest()[..length];
        self.pos += length;
        let span = self.span_from(start);
        Ok((self.macros.expand_description(raw, span)?, span))
    }

    /// Returns the position of the lexer in bytes.
    pub fn position(&self) -> usize {
        self.pos
    }

    /// Returns the position at which the next token begins.
    pub fn next_token(&self) -> usize {
        let mut ahead = self.clone();
        match ahead.skip_trivia() {
            Ok(()) => ahead.pos,
            Err(_) => self.pos,
        }
    }

    /// Moves the lexer to another position.
    pub fn rewind(&mut self, position: usize) {
        self.pos = position;
    }

    /// Returns the text that has not been read.
    pub fn remaining(&self) -> &'a str {
        self.rest()
    }

    /// Reads a token. With `in_predicate`, a `/` may end the predicate.
    pub fn token(&mut self, in_predicate: bool) -> Result<(Tok, Span)> {
        self.skip_trivia()?;
        let start = self.pos;
        let Some(first) = self.rest().chars().next() else {
            return Ok((Tok::End, self.span_from(start)));
        };
        let token = match first {
            'a'..='z' | 'A'..='Z' | '_' => {
                let word = self.word();
                match self.process_scope(word)? {
                    Some(scope) => Tok::Ident(scope),
                    None => Tok::Ident(word.to_owned()),
                }
            }
            '0'..='9' => self.number()?,
            '.' if float::length(self.rest()).is_some() => self.number()?,
            '"' => self.string()?,
            '\'' => self.character()?,
            '$' => return self.macro_variable(start),
            '@' => {
                self.pos += 1;
                Tok::Agg(self.word().to_owned())
            }
            '/' if in_predicate && self.closes_predicate() => {
                self.pos += 1;
                Tok::EndPredicate
            }
            _ => self.punctuator(first)?,
        };
        Ok((token, self.span_from(start)))
    }

    fn word(&mut self) -> &'a str {
        let rest = self.rest();
        let end = rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
            .unwrap_or(rest.len());
        self.pos += end;
        &rest[..end]
    }

    /// Reads the scope of a process if `word` begins one, that is, if a backquote follows the
    /// process' provider. Returns `pid12`, or `` pid12`module `` if a module and another backquote
    /// follow. The last backquote is not consumed.
    fn process_scope(&mut self, word: &str) -> Result<Option<String>> {
        let Some(digits) = word.strip_prefix(PROVIDER) else {
            return Ok(None);
        };
        let mut ahead = self.clone();
        let mut pid = digits.to_owned();
        if digits.is_empty() && ahead.byte(0) == b'$' {
            let start = ahead.pos;
            ahead.pos += 1;
            let name = ahead.word();
            pid = ahead.macros.value(name, false, ahead.span_from(start))?;
        }
        let is_number = !pid.is_empty() && pid.bytes().all(|c| c.is_ascii_digit());
        let Some(rest) = ahead.rest().strip_prefix(SCOPE).filter(|_| is_number) else {
            return Ok(None);
        };
        self.pos = ahead.pos;
        let scope = format!("{PROVIDER}{pid}");
        // A module is named after its file, so its name may have these characters.
        let is_part = |c: char| c.is_ascii_alphanumeric() || "._+-".contains(c);
        let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        if length == 0 || !rest[length..].starts_with(SCOPE) {
            return Ok(Some(scope));
        }
        self.pos += 1 + length;
        Ok(Some(format!("{scope}{SCOPE}{}", &rest[..length])))
    }

    fn punctuator(&mut self, first: char) -> Result<Tok> {
        match PUNCTUATORS.iter().find(|p| self.rest().starts_with(**p)) {
            Some(punctuator) => {
                self.pos += punctuator.len();
                Ok(Tok::Punct(punctuator))
            }
            None => {
                let start = self.pos;
                self.pos += first.len_utf8();
                Err(Diagnostic::new(
                    "D_SYNTAX",
                    self.span_from(start),
                    format!("syntax error near \"{first}\""),
                ))
            }
        }
    }

    /// Whether the `/` here is followed by something that cannot continue an expression.
    fn closes_predicate(&self) -> bool {
        let mut ahead = self.clone();
        ahead.pos += 1;
        match ahead.skip_trivia() {
            Ok(()) => matches!(ahead.byte(0), 0 | b'{' | b';' | b'/'),
            Err(_) => false,
        }
    }

    fn number(&mut self) -> Result<Tok> {
        let start = self.pos;
        let rest = self.rest();
        // Another token may follow the number directly: `10ms` is two tokens.
        let float = float::length(rest);
        let word = &rest[..float.unwrap_or_else(|| literal::length(rest))];
        self.pos += word.len();
        let span = self.span_from(start);
        match float {
            Some(_) => float::value(word, span).map(|(value, suffix)| Tok::Float(value, suffix)),
            None => literal::integer(word, span).map(|(value, suffix)| Tok::Int(value, suffix)),
        }
    }

    fn quoted(&mut self, quote: u8, what: [&'static str; 3]) -> Result<Vec<u8>> {
        let start = self.pos;
        self.pos += 1;
        let body = self.pos;
        loop {
            match self.byte(0) {
                0 if self.rest().is_empty() => {
                    return Err(Diagnostic::new("D_SYNTAX", self.span_from(start), what[2]))
                }
                b'\\' if self.pos + 1 < self.text.len() => {
                    self.pos += 1;
                    self.pos += self.rest().chars().next().map_or(1, char::len_utf8);
                }
                b'\n' => {
                    let next_line = self.pos as u32 + 1;
                    return Err(Diagnostic::new(what[0], self.span_from(start), what[1])
                        .counted_at(next_line));
                }
                c if c == quote => break,
                _ => self.pos += 1,
            }
        }
        let quoted = &self.text[body..self.pos];
        self.pos += 1;
        // Invalid UTF-8 was replaced when the text was read, so the original bytes are not known
        // here.
        if quoted.contains(char::REPLACEMENT_CHARACTER) {
            let message = "literal is not valid UTF-8";
            let error = Diagnostic::new("D_SYNTAX", self.span_from(start), message);
            return Err(error.note("its bytes can be written as \\x and two digits"));
        }
        Ok(literal::unescape(quoted))
    }

    fn string(&mut self) -> Result<Tok> {
        self.quoted(
            b'"',
            [
                "D_STR_NL",
                "newline encountered in string literal",
                "end-of-file encountered before end of string literal",
            ],
        )
        .map(Tok::Str)
    }

    fn character(&mut self) -> Result<Tok> {
        let start = self.pos;
        let bytes = self.quoted(
            b'\'',
            [
                "D_CHR_NL",
                "newline encountered in character constant",
                "end-of-file encountered before end of character constant",
            ],
        )?;
        let value = literal::character(&bytes, self.span_from(start))?;
        Ok(Tok::Int(value, IntSuffix::default()))
    }

    fn macro_variable(&mut self, start: usize) -> Result<(Tok, Span)> {
        self.pos += 1;
        let quoted = self.byte(0) == b'$';
        if quoted {
            self.pos += 1;
        }
        let name = self.word();
        let span = self.span_from(start);
        if name.is_empty() {
            return Err(Diagnostic::new("D_SYNTAX", span, "syntax error near \"$\""));
        }
        let value = self.macros.value(name, quoted, span)?;
        let token = match quoted {
            true => Tok::Str(value.into_bytes()),
            false => macro_token(name, &value, span)?,
        };
        Ok((token, span))
    }
}

/// Converts the value of the macro variable `$name` to a token: a name, a number, or else a string,
/// whose quotes, if any, are removed.
fn macro_token(name: &str, value: &str, span: Span) -> Result<Tok> {
    let is_name = value.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && value.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if is_name {
        return Ok(Tok::Ident(value.to_owned()));
    }
    let digits = value.strip_prefix(['-', '+']).unwrap_or(value);
    if float::length(digits) == Some(digits.len()) {
        let (number, suffix) = float::value(digits, span)?;
        let sign = if value.starts_with('-') { -1.0 } else { 1.0 };
        return Ok(Tok::Float(sign * number, suffix));
    }
    if digits.is_empty() || literal::length(digits) < digits.len() {
        let text = value
            .strip_prefix('"')
            .and_then(|inner| inner.strip_suffix('"'))
            .unwrap_or(value);
        return Ok(Tok::Str(text.as_bytes().to_vec()));
    }
    let (number, suffix) = literal::integer(digits, span).map_err(|mut error| {
        if error.tag == "D_INT_OFLOW" {
            error.tag = "D_MACRO_OFLOW";
            error.message =
                format!("macro argument ${name} constant {value} results in integer overflow");
        }
        error
    })?;
    if !value.starts_with('-') {
        return Ok(Tok::Int(number, suffix));
    }
    // A negative number is one token. Its type has at least the size of `long`.
    let suffix = IntSuffix {
        longs: suffix.longs.max(1),
        ..suffix
    };
    Ok(Tok::Int(number.wrapping_neg(), suffix))
}

#[cfg(test)]
#[path = "lexer_tests.rs"]
mod tests;
