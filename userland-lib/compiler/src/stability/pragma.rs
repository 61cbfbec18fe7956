// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! `#pragma D attributes`, and the textual form of attributes.

use super::Known;
use crate::syntax::ast::Ast;
use dtrace_uapi::types::{Attribute, Class, Stability};

const STABILITIES: [Stability; 8] = [
    Stability::Internal,
    Stability::Private,
    Stability::Obsolete,
    Stability::External,
    Stability::Unstable,
    Stability::Evolving,
    Stability::Stable,
    Stability::Standard,
];

const CLASSES: [Class; 6] = [
    Class::Unknown,
    Class::Cpu,
    Class::Platform,
    Class::Group,
    Class::Isa,
    Class::Common,
];

/// Parses `name/data/class`, case-insensitively.
pub fn parse(text: &str) -> Option<Attribute> {
    let stability = |word: &str| {
        let is = |known: &&Stability| format!("{known:?}").eq_ignore_ascii_case(word);
        STABILITIES.iter().find(is).copied()
    };
    let class = |word: &str| {
        let is = |known: &&Class| format!("{known:?}").eq_ignore_ascii_case(word);
        CLASSES.iter().find(is).copied()
    };
    let mut parts = text.split('/');
    let attribute = Attribute::new(
        stability(parts.next()?)?,
        stability(parts.next()?)?,
        class(parts.next()?)?,
    );
    parts.next().is_none().then_some(attribute)
}

impl Known {
    /// Applies the program's attribute pragmas. Their words have been checked.
    pub(super) fn pragmas(&mut self, ast: &Ast) {
        let attributes = ast.pragmas.iter().filter(|p| p.name == "attributes");
        for pragma in attributes {
            // The form with more words is about a provider that the program declares; it is handled
            // where its probes are created.
            let [attribute, name] = &pragma.words[..] else {
                continue;
            };
            if let Some(attribute) = parse(attribute) {
                self.names.insert(name.clone(), attribute);
                self.fixed.insert(name.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn attributes_are_read_as_they_are_written() {
        for (text, expected) in [
            ("Stable/Evolving/ISA", Some("Stable/Evolving/ISA")),
            ("private/PRIVATE/unknown", Some("Private/Private/Unknown")),
            ("Stable/Stable", None),
            ("Stable/Stable/Common/Common", None),
            ("Good/Stable/Common", None),
            ("", None),
        ] {
            let read = parse(text).map(super::super::text);
            assert_eq!(read.as_deref(), expected, "{text}");
        }
    }
}
