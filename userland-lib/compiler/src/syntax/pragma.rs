// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Control lines: `#!`, `#pragma D …`, `#ident`, `#line`, `#error`.
//!
//! The words of a pragma are checked as far as that is possible without looking up names; the
//! checker applies them later. The check happens as soon as the line is read, so an error in a
//! pragma is reported before one that follows it.

use super::ast::Pragma;
use super::macros::Macros;
use crate::diag::{Diagnostic, Result};
use crate::source::Span;
use dtrace_files::nearest::nearest;

/// D's pragmas, except `error`.
const PRAGMAS: &[&str] = &["attributes", "binding", "depends_on", "option"];

/// Parses the control line `line`, which starts at byte `start`. Returns the pragma if it must be
/// kept.
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
        // A line marker of the C preprocessor.
        _ if name.starts_with(|c: char| c.is_ascii_digit()) => Ok(None),
        "error" => Err(stated_error(rest, span)),
        "pragma" => pragma(rest, span, macros),
        _ => Err(Diagnostic::new(
            "D_PRAGCTL_INVAL",
            span,
            format!("invalid control directive: #{name}"),
        )),
    }
}

/// Returns the error that the program itself states. As in DTrace, a blank follows every word.
fn stated_error(text: &str, span: Span) -> Box<Diagnostic> {
    let words: String = words(text).iter().map(|word| format!("{word} ")).collect();
    Diagnostic::new("D_PRAGERR", span, format!("#error: {words}"))
}

fn pragma(text: &str, span: Span, macros: &Macros) -> Result<Option<Pragma>> {
    let (language, text) = split_word(text);
    if language != "D" {
        // Pragmas for C compilers have no meaning here.
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
        return Err(stated_error(text, span));
    }
    if !PRAGMAS.contains(&name) {
        let error = Diagnostic::new("D_PRAGMA_INVAL", span, format!("invalid D pragma: {name}"));
        return Err(match nearest(name, PRAGMAS.iter().copied()) {
            Some(known) => error.note(format!("did you mean `{known}`?")),
            None => error,
        });
    }
    let text = macros.expand_description(text, span)?;
    let words = words(&text);
    check(name, &words).map_err(|(tag, message)| Diagnostic::new(tag, span, message))?;
    Ok(Some(Pragma {
        name: name.to_owned(),
        words,
        span,
    }))
}

/// Checks the words of the pragma `name`. An error is a tag and a message.
fn check(name: &str, words: &[String]) -> Result<(), (&'static str, String)> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let malformed = |shape: &str| Err(("D_PRAGMA_MALFORM", format!("malformed #pragma {shape}")));
    let invalid = |message: String| Err(("D_PRAGMA_INVAL", message));
    match (name, &words[..]) {
        ("option", [option]) if !option.starts_with('=') => Ok(()),
        ("option", [_, _, ..]) => Err((
            "D_PRAGMA_MALFORM",
            "superfluous arguments specified for #pragma option".to_owned(),
        )),
        ("option", _) => malformed("option <option>=[<val>]"),
        ("depends_on", ["library" | "provider" | "module", _]) => Ok(()),
        ("depends_on", [class, _]) => invalid(format!(
            "invalid class {class} specified by #pragma depends_on"
        )),
        ("depends_on", _) => malformed("depends_on <class> <name>"),
        // The name of an object, or `provider`, the provider's name, and a part of its probes'
        // names.
        ("attributes", [attributes, _] | [attributes, "provider", _, _]) => {
            match crate::stability::parse(attributes).is_some() {
                true => Ok(()),
                false => invalid("invalid attributes specified by #pragma attributes".to_owned()),
            }
        }
        ("attributes", _) => malformed("attributes <attributes> <ident>"),
        ("binding", [version, _]) => match is_version(version) {
            true => Ok(()),
            false => invalid("invalid version string specified by #pragma binding".to_owned()),
        },
        _ => malformed("binding <version> <ident>"),
    }
}

/// Whether `text` is two or three numbers separated by dots.
fn is_version(text: &str) -> bool {
    let parts = text.split('.');
    (2..=3).contains(&parts.clone().count())
        && parts.into_iter().all(|part| part.parse::<u16>().is_ok())
}

/// Splits a pragma into words at white space and comments. Quotes protect white space and are
/// removed.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        if c == '"' {
            let end = rest.find('"').unwrap_or(rest.len());
            word.get_or_insert_default().push_str(&rest[..end]);
            rest = rest.get(end + 1..).unwrap_or("");
        } else if c == '/' && rest.starts_with('*') {
            words.extend(word.take());
            rest = rest[1..].split_once("*/").map_or("", |(_, after)| after);
        } else if c.is_whitespace() {
            words.extend(word.take());
        } else {
            word.get_or_insert_default().push(c);
        }
    }
    words.extend(word);
    words
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
        assert_eq!(pragma.name, "option");
        assert_eq!(pragma.words, ["bufsize=8m"]);
        let pragma = read("#pragma D option a=\"b c\" /* why */")
            .unwrap()
            .unwrap();
        assert_eq!(pragma.words, ["a=b c"]);
        assert!(read("#pragma D attributes Stable/Evolving/ISA x").is_ok());
        assert!(read("#pragma D attributes stable/Stable/common provider p args").is_ok());
        assert!(read("#pragma D binding \"1.2\" x").is_ok());
        assert!(read("#pragma D depends_on provider io").is_ok());
        assert_eq!(read("# 1 \"x.h\" 2").unwrap(), None);
        assert_eq!(read("#ident \"x\"").unwrap(), None);
    }

    #[test]
    fn bad_lines_are_named() {
        assert_eq!(
            read("#frob").unwrap_err().message,
            "invalid control directive: #frob"
        );
        assert_eq!(read("#error no").unwrap_err().message, "#error: no ");
        assert_eq!(
            read("#pragma D opton quiet").unwrap_err().notes,
            ["did you mean `option`?"]
        );
        for (line, message) in [
            (
                "option",
                "[D_PRAGMA_MALFORM] malformed #pragma option <option>=[<val>]",
            ),
            (
                "option =3",
                "[D_PRAGMA_MALFORM] malformed #pragma option <option>=[<val>]",
            ),
            (
                "option nspec=2 * 2",
                "[D_PRAGMA_MALFORM] superfluous arguments specified for #pragma option",
            ),
            (
                "attributes",
                "[D_PRAGMA_MALFORM] malformed #pragma attributes <attributes> <ident>",
            ),
            (
                "attributes Stable/Stable x",
                "[D_PRAGMA_INVAL] invalid attributes specified by #pragma attributes",
            ),
            (
                "binding 1.0",
                "[D_PRAGMA_MALFORM] malformed #pragma binding <version> <ident>",
            ),
            (
                "binding one x",
                "[D_PRAGMA_INVAL] invalid version string specified by #pragma binding",
            ),
            (
                "depends_on io",
                "[D_PRAGMA_MALFORM] malformed #pragma depends_on <class> <name>",
            ),
            (
                "depends_on os linux",
                "[D_PRAGMA_INVAL] invalid class os specified by #pragma depends_on",
            ),
            ("error \"a b\" c", "[D_PRAGERR] #error: a b c "),
        ] {
            let error = read(&format!("#pragma D {line}")).unwrap_err();
            assert_eq!(error.to_string(), message);
        }
        assert_eq!(read("#!/bin/sh").unwrap_err().tag, "D_PRAGCTL_INVAL");
    }
}
