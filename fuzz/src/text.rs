// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Arbitrary text instead of a program: lexer and parser must end, and the locations that they
//! report must be in the text.

use dtrace::fixture::PIECES;
use dtrace::source::{Source, Span};
use dtrace::syntax::lexer::{Lexer, Tok};
use dtrace::syntax::macros::Macros;
use dtrace::syntax::{self, tree, TypeNames};

/// Maximum length of the text, bytes. Longer text takes too much time.
const LONGEST: usize = 1 << 14;

/// Converts bytes to text. Bytes above ASCII stand for whole tokens.
pub fn text(data: &[u8]) -> String {
    let mut text = String::new();
    for &byte in data {
        match byte.checked_sub(0x80) {
            None => text.push(char::from(byte)),
            Some(piece) => {
                text.push_str(PIECES[usize::from(piece) % PIECES.len()]);
                text.push(' ');
            }
        }
        if text.len() > LONGEST {
            break;
        }
    }
    text
}

/// Macro variables of every kind.
pub fn macros() -> Macros {
    Macros {
        args: ["script", "-3", "name", "two words"]
            .map(str::to_owned)
            .into(),
        named: vec![("target".to_owned(), 7)],
        ..Macros::default()
    }
}

fn lies_in(span: Span, text: &str) -> bool {
    span.start <= span.end
        && text.is_char_boundary(span.start as usize)
        && text.is_char_boundary(span.end as usize)
}

/// Checks that tokens follow each other up to the end of the text.
pub fn lexer(data: &[u8]) {
    let Some((mode, data)) = data.split_first() else {
        return;
    };
    let (text, macros) = (text(data), macros());
    let mut lexer = Lexer::new(&text, &macros);
    let mut last = 0;
    let mut description = mode & 1 == 1;
    loop {
        let before = lexer.position();
        let read = match std::mem::take(&mut description) {
            true => lexer
                .probe_description()
                .map(|(_, span)| (Tok::Punct(""), span)),
            false => lexer.token(mode & 2 != 0),
        };
        let (token, span) = match read {
            Ok(read) => read,
            Err(error) => {
                assert!(lies_in(error.span, &text), "{error}");
                return;
            }
        };
        assert!(lies_in(span, &text) && span.start >= last, "{token:?}");
        last = span.end;
        match token {
            Tok::End => return,
            Tok::Punct("") => (),
            _ => assert!(lexer.position() > before, "{token:?} is read for ever"),
        }
    }
}

/// Treats names with the usual ending as types.
struct Names;

impl TypeNames for Names {
    fn is_type(&mut self, _module: Option<&str>, name: &str) -> bool {
        name.ends_with("_t") || name == "y"
    }

    fn similar_type(&self, _name: &str) -> Option<String> {
        None
    }
}

/// Checks that the parser returns a tree that can be printed, and an optional error.
pub fn parser(data: &[u8]) {
    let Some((mode, data)) = data.split_first() else {
        return;
    };
    let (text, macros) = (text(data), macros());
    let source = match mode & 1 {
        0 => Source::argument(text),
        _ => Source::file("x.d", text),
    };
    let ast = syntax::parse(&source, &macros, mode & 2 != 0, mode & 4 != 0, &mut Names);
    if let Some(error) = &ast.error {
        assert!(lies_in(error.span, &source.text), "{error}");
        assert!(!error.message.is_empty());
        let shown = error.snippet(&source);
        assert!(shown.is_empty() || shown.ends_with('\n'));
    }
    tree::text(&source, &ast);
}
