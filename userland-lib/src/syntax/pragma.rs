// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Control lines: `#!`, `#pragma D …`, `#ident`, `#line`, `#error`.

use super::ast::Pragma;
use super::macros::Macros;
use crate::diag::{nearest, Diagnostic, Result};
use crate::source::Span;

/// The pragmas of D.
const PRAGMAS: &[&str] = &["attributes", "binding", "depends_on", "option"];

/// Parses the control line `line` that starts at byte `start`; gives the pragma if it is one to keep.
pub fn parse(line: &str, start: usize, span: Span, macros: &Macros) -> Result<Option<Pragma>> {
    let body = line[1..].trim_start();
    if body.starts_with('!') {
        if start == 0 {
            return Ok(None);
        }
        return Err(Diagnostic::new(
            "D_PRAGCTL_INVAL",
            span,
            "#! may only appear on the first line of a program",
        ));
    }
    let (name, rest) = split_word(body);
    match name {
        "" | "ident" | "line" => Ok(None),
        // A linemarker of the C preprocessor.
        _ if name.starts_with(|c: char| c.is_ascii_digit()) => Ok(None),
        "error" => Err(Diagnostic::new(
            "D_PRAGERR",
            span,
            format!("#error: {rest}"),
        )),
        "pragma" => pragma(rest, span, macros),
        _ => Err(Diagnostic::new(
            "D_PRAGCTL_INVAL",
            span,
            format!("invalid control directive: #{name}"),
        )),
    }
}

fn pragma(text: &str, span: Span, macros: &Macros) -> Result<Option<Pragma>> {
    let (language, text) = split_word(text);
    if language != "D" {
        // C compilers' own pragmas mean nothing here.
        return match language {
            "" => Err(Diagnostic::new(
                "D_PRAGMA_MALFORM",
                span,
                "malformed #pragma directive",
            )),
            _ => Ok(None),
        };
    }
    let (name, text) = split_word(text);
    if name == "error" {
        return Err(Diagnostic::new(
            "D_PRAGERR",
            span,
            format!("#error: {text}"),
        ));
    }
    if !PRAGMAS.contains(&name) {
        let error = Diagnostic::new("D_PRAGMA_INVAL", span, format!("invalid D pragma: {name}"));
        return Err(match nearest(name, PRAGMAS.iter().copied()) {
            Some(known) => error.note(format!("did you mean `{known}`?")),
            None => error,
        });
    }
    let text = macros.expand_description(text.trim_end(), span)?;
    let malformed = match name {
        "option" => text.is_empty() || text.starts_with('='),
        "depends_on" => text.split_whitespace().count() != 2,
        "attributes" | "binding" => text.split_whitespace().count() < 2,
        _ => false,
    };
    if malformed {
        let shape = match name {
            "option" => "option <option>=[<val>]",
            "depends_on" => "depends_on <class> <name>",
            "attributes" => "attributes <attr> <identifier>",
            _ => "binding <version> <identifier>",
        };
        return Err(Diagnostic::new(
            "D_PRAGMA_MALFORM",
            span,
            format!("malformed #pragma {shape}"),
        ));
    }
    Ok(Some(Pragma {
        name: name.to_owned(),
        text,
        span,
    }))
}

fn split_word(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    (&text[..end], text[end..].trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Option<Pragma>> {
        parse(line, 7, Span::default(), &Macros::default())
    }

    #[test]
    fn options_are_kept_and_foreign_lines_skipped() {
        let pragma = read("#pragma D option bufsize=8m").unwrap().unwrap();
        assert_eq!(
            (pragma.name.as_str(), pragma.text.as_str()),
            ("option", "bufsize=8m")
        );
        assert_eq!(read("# 1 \"x.h\" 2").unwrap(), None);
        assert_eq!(read("#ident \"x\"").unwrap(), None);
    }

    #[test]
    fn bad_lines_are_named() {
        assert_eq!(
            read("#frob").unwrap_err().message,
            "invalid control directive: #frob"
        );
        assert_eq!(read("#error no").unwrap_err().message, "#error: no");
        assert_eq!(
            read("#pragma D opton quiet").unwrap_err().notes,
            ["did you mean `option`?"]
        );
        assert_eq!(
            read("#pragma D option").unwrap_err().tag,
            "D_PRAGMA_MALFORM"
        );
        assert_eq!(read("#!/bin/sh").unwrap_err().tag, "D_PRAGCTL_INVAL");
    }
}
