// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Stability of programs: the attributes of the names that a program uses, computed through its
//! clauses.
//!
//! Every name has an attribute of three parts: the stability of the name itself, the stability of
//! its meaning, and the class of machines that have it. A construct is as stable as the least
//! stable name in it, part by part. A clause comprises its probe description, its predicate and its
//! statements. A variable is as stable as the values assigned to it.
//!
//! Types play no role: attributes are computed from the syntax tree ([`walk`]) after the program
//! has been found valid. [`Known`] outlives a program, so that a later program finds the attributes
//! of an earlier one's variables and of the libraries' inlines, which `#pragma D attributes` sets.

mod pragma;
mod walk;

use crate::diag::{Diagnostic, Result};
use crate::syntax::ast::{Ast, Clause, Item};
use crate::world::World;
use dtrace_objects::pattern::ProbePattern;
use dtrace_uapi::types::{Attribute, Class, Stability};
use std::collections::{HashMap, HashSet};

pub use pragma::parse;

/// The attribute of D's own names and of variables.
const STABLE: Attribute = Attribute::new(Stability::Stable, Stability::Stable, Class::Common);
/// The attribute of functions that depend on the kernel's implementation.
const EVOLVING: Attribute = Attribute::new(Stability::Evolving, Stability::Evolving, Class::Common);
/// The attribute of the kernel's symbols and types.
const PRIVATE: Attribute = Attribute::new(Stability::Private, Stability::Private, Class::Unknown);
/// The attribute of a probe description that leaves the provider open.
const ANY_PROVIDER: Attribute =
    Attribute::new(Stability::Unstable, Stability::Unstable, Class::Common);
/// The attribute of nothing: the neutral element of [`minimum`].
const GREATEST: Attribute = Attribute::new(Stability::Standard, Stability::Standard, Class::Common);

/// The attributes of D's own names that are not [`STABLE`].
const OWN: &[(&str, Attribute)] = &[
    (
        "curthread",
        Attribute::new(Stability::Stable, Stability::Private, Class::Common),
    ),
    ("ddi_pathname", EVOLVING),
    ("getmajor", EVOLVING),
    ("getminor", EVOLVING),
    ("htonl", EVOLVING),
    ("htonll", EVOLVING),
    ("htons", EVOLVING),
    ("mutex_owned", EVOLVING),
    ("mutex_owner", EVOLVING),
    ("mutex_type_adaptive", EVOLVING),
    ("mutex_type_spin", EVOLVING),
    ("ntohl", EVOLVING),
    ("ntohll", EVOLVING),
    ("ntohs", EVOLVING),
    ("rw_iswriter", EVOLVING),
    ("rw_read_held", EVOLVING),
    ("rw_write_held", EVOLVING),
];

/// The attributes of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// The minimum of the probe descriptions.
    pub description: Attribute,
    /// The minimum of predicates and statements.
    pub statement: Attribute,
}

impl Default for Report {
    fn default() -> Self {
        Self {
            description: GREATEST,
            statement: GREATEST,
        }
    }
}

/// The attributes of the declarations of all programs so far.
#[derive(Clone, Debug, Default)]
pub struct Known {
    names: HashMap<String, Attribute>,
    /// Names whose attributes a pragma has set, so that no assignment changes them.
    fixed: HashSet<String>,
    /// Types that programs have declared; all others are the kernel's.
    types: HashSet<String>,
}

impl Known {
    /// Returns the attributes of the program `ast`. Fails if a clause has less than `least`.
    pub fn check(
        &mut self,
        ast: &Ast,
        probes: &dyn World,
        descriptions: impl Fn(&str) -> Option<ProbePattern>,
        least: Option<Attribute>,
    ) -> Result<Report> {
        let mut report = Report::default();
        self.declare(ast);
        for item in &ast.items {
            let Item::Clause(clause) = item else { continue };
            let described = clause
                .probes
                .iter()
                .filter_map(|(text, _)| descriptions(text));
            let description = described
                .map(|pattern| of_description(&pattern, probes))
                .fold(GREATEST, minimum);
            let arguments = clause.probes.iter().filter_map(|(text, _)| {
                let provider = provider_of(&descriptions(text)?, probes)?;
                Some(probes.attributes(&provider)?.args)
            });
            let arguments = arguments.fold(STABLE, minimum);
            let statement = self.clause(clause, arguments);
            check(clause, minimum(description, statement), least)?;
            report.description = minimum(report.description, description);
            report.statement = minimum(report.statement, statement);
        }
        Ok(report)
    }

    /// Returns the attribute of a name. An undeclared name is D's own.
    fn name(&self, name: &str) -> Attribute {
        let own = || OWN.iter().find(|(known, _)| *known == name);
        let declared = self.names.get(name).copied();
        declared.unwrap_or_else(|| own().map_or(STABLE, |(_, attribute)| *attribute))
    }
}

fn check(clause: &Clause, attribute: Attribute, least: Option<Attribute>) -> Result<()> {
    let Some(least) = least else { return Ok(()) };
    if minimum(attribute, least) == least {
        return Ok(());
    }
    Err(Diagnostic::new(
        "D_ATTR_MIN",
        clause.span,
        format!(
            "attributes for clause ({}) are less than predefined minimum",
            text(attribute)
        ),
    ))
}

/// Returns the name of the provider of a description, if it is unambiguous.
fn provider_of(pattern: &ProbePattern, probes: &dyn World) -> Option<String> {
    if pattern.id != 0 {
        return probes
            .matching(pattern, 1)
            .pop()
            .map(|probe| probe.provider);
    }
    let provider = &pattern.provider;
    (!provider.is_empty() && !provider.contains(['*', '?', '['])).then(|| provider.clone())
}

/// Returns the minimum over the parts of the name that a description specifies.
fn of_description(pattern: &ProbePattern, probes: &dyn World) -> Attribute {
    let provider = provider_of(pattern, probes);
    let Some(known) = provider.and_then(|provider| probes.attributes(&provider)) else {
        return ANY_PROVIDER;
    };
    let all = pattern.id != 0;
    let parts = [
        (&pattern.module, known.module),
        (&pattern.func, known.func),
        (&pattern.name, known.name),
    ];
    let given = parts
        .into_iter()
        .filter(|(text, _)| all || !text.is_empty())
        .map(|(_, attribute)| attribute);
    given.fold(known.provider, minimum)
}

/// Returns the minimum of two attributes, part by part.
pub fn minimum(a: Attribute, b: Attribute) -> Attribute {
    Attribute {
        name: a.name.min(b.name),
        data: a.data.min(b.data),
        class: a.class.min(b.class),
    }
}

/// Returns the name of a stability: `Stable`, `Evolving`, …
pub fn stability_name(raw: u8) -> String {
    Stability::from_raw(raw).map_or("Unknown".to_owned(), |stability| format!("{stability:?}"))
}

/// Returns the name of a class: `Common`, `ISA`, …
pub fn class_name(raw: u8) -> String {
    match Class::from_raw(raw) {
        Some(Class::Isa) => "ISA".to_owned(),
        Some(Class::Cpu) => "CPU".to_owned(),
        Some(class) => format!("{class:?}"),
        None => "Unknown".to_owned(),
    }
}

/// Returns an attribute in its textual form: `Stable/Evolving/ISA`.
pub fn text(attribute: Attribute) -> String {
    format!(
        "{}/{}/{}",
        stability_name(attribute.name),
        stability_name(attribute.data),
        class_name(attribute.class)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::{Compiler, Settings};
    use crate::options::Options;
    use crate::source::Source;
    use dtrace_objects::processes::Nowhere;

    fn report(program: &str) -> String {
        let mut compiler = Compiler::new(&Nowhere);
        let program = compiler
            .compile(&Source::file("x.d", program), &Settings::default())
            .expect(program);
        let Report {
            description,
            statement,
        } = program.attributes;
        format!("{} {}", text(description), text(statement))
    }

    #[test]
    fn the_least_of_what_is_named_counts() {
        let any = "Unstable/Unstable/Common";
        for (program, statement) in [
            ("BEGIN { printf(\"%d\", 2); }", "Stable/Stable/Common"),
            ("BEGIN { trace(htons(1)); }", "Evolving/Evolving/Common"),
            ("BEGIN /curthread != 0/ { }", "Stable/Private/Common"),
            (
                "BEGIN { x = curthread; y = x; trace(y); }",
                "Stable/Private/Common",
            ),
            (
                "BEGIN { if (mutex_owned(0)) { trace(1); } }",
                "Evolving/Evolving/Common",
            ),
            (
                "#pragma D attributes Evolving/Unstable/ISA secret\n\
                 inline int secret = 1; BEGIN { trace(secret); }",
                "Evolving/Unstable/ISA",
            ),
            ("BEGIN { @[execname] = count(); }", "Stable/Stable/Common"),
        ] {
            assert_eq!(report(program), format!("{any} {statement}"), "{program}");
        }
    }

    #[test]
    fn less_than_the_least_is_refused() {
        let compile = |text: &str| {
            let (source, settings) = (Source::file("x.d", text), Settings::default());
            let mut options = Options::default();
            let read = options.read(&source, &settings.macros());
            read.and_then(|()| Compiler::new(&Nowhere).compile(&source, &settings.under(&options)))
                .map(|_| ())
                .map_err(|error| error.to_string())
        };
        let amin = "#pragma D option amin=Evolving/Evolving/Common\n";
        assert_eq!(
            compile(&format!("{amin}BEGIN {{ exit(0); }}")),
            Err(
                "[D_ATTR_MIN] attributes for clause (Unstable/Unstable/Common) are less than \
                 predefined minimum"
                    .into()
            )
        );
        let amin = "#pragma D option amin=Unstable/Unstable/Common\n";
        assert_eq!(compile(&format!("{amin}BEGIN {{ exit(0); }}")), Ok(()));
    }
}
