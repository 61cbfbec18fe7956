// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Providers that applications define: whether their names and prototypes are such as probes can have.
//!
//! Nothing is kept of them but that there are any: a definition speaks of probes that the application brings, not of those
//! that the program enables.

use super::Sema;
use crate::diag::{Diagnostic, Result};
use crate::source::Span;
use crate::syntax::ast::{ProbeDefinition, Provider, TypeName};
use dtrace_uapi::limits::{NAMELEN, PROVNAMELEN};
use std::collections::HashSet;

/// The most parameters and arguments of a probe.
const ARGUMENTS_MAX: usize = u8::MAX as usize;

impl Sema<'_, '_> {
    /// Checks the definition of a provider.
    pub(super) fn provider(&mut self, provider: &Provider) -> Result<()> {
        self.program.defines_probes = true;
        let name = &provider.name;
        name_fits("provider", name, PROVNAMELEN, provider.span)?;
        if name.ends_with(|last: char| last.is_ascii_digit()) {
            let message = format!("provider name may not end with a digit: {name}");
            return Err(Diagnostic::new("D_PROV_BADNAME", provider.span, message));
        }
        let mut names = HashSet::new();
        for probe in &provider.probes {
            self.probe_definition(probe)?;
            let name = hyphenated(&probe.name);
            if !names.insert(name.clone()) {
                let message = format!("probe redeclared: {}:{name}", provider.name);
                return Err(Diagnostic::new("D_PROV_PRDUP", probe.span, message));
            }
        }
        Ok(())
    }

    fn probe_definition(&mut self, probe: &ProbeDefinition) -> Result<()> {
        let name = hyphenated(&probe.name);
        name_fits("probe", &name, NAMELEN, probe.span)?;
        let parameters = self.parameters("probe input", &probe.parameters)?;
        count_fits(&name, "input", parameters.len(), probe.span)?;
        let Some(arguments) = &probe.arguments else {
            return Ok(());
        };
        let known: Vec<String> = parameters.into_iter().map(|(name, _)| name).collect();
        let types = self.parameters("probe output", arguments)?;
        for (index, argument) in arguments.iter().take(types.len()).enumerate() {
            names_parameter(argument, &known, index + 1)?;
        }
        count_fits(&name, "output", types.len(), probe.span)
    }
}

/// Each argument is made of a parameter, which it names.
fn names_parameter(argument: &TypeName, known: &[String], number: usize) -> Result<()> {
    let name = &argument.declarator.name;
    let (tag, message) = if name.is_empty() {
        let message = format!("parameter declaration requires a name: parameter #{number}");
        ("D_DECL_PROTO_NAME", message)
    } else if !known.contains(name) {
        let message = format!(
            "parameter is not declared in probe output prototype: {name}, parameter #{number}"
        );
        ("D_DECL_PROTO_FORM", message)
    } else {
        return Ok(());
    };
    Err(Diagnostic::new(tag, argument.span, message))
}

/// The name of a probe: a C name has two underscores where it has a hyphen.
fn hyphenated(name: &str) -> String {
    name.replace("__", "-")
}

/// Whether a name has room in `size` bytes with its NUL.
fn name_fits(what: &str, name: &str, size: usize, span: Span) -> Result<()> {
    if name.len() < size {
        return Ok(());
    }
    let most = size - 1;
    let message = format!("{what} name may not exceed {most} characters: {name}");
    Err(Diagnostic::new("D_PROV_BADNAME", span, message))
}

fn count_fits(name: &str, side: &str, count: usize, span: Span) -> Result<()> {
    if count <= ARGUMENTS_MAX {
        return Ok(());
    }
    let message = format!(
        "probe {name} {side} prototype exceeds {ARGUMENTS_MAX} parameters: {count} params used"
    );
    Err(Diagnostic::new("D_PROV_PRARGLEN", span, message))
}

#[cfg(test)]
mod tests {
    use crate::compile::{Compiler, Settings};
    use crate::source::Source;
    use crate::world::Nowhere;

    fn compile(text: &str) -> Result<(), String> {
        let result = Compiler::new(&Nowhere).compile(&Source::argument(text), &Settings::default());
        result.map(drop).map_err(|error| error.to_string())
    }

    #[test]
    fn definitions_with_and_without_arguments() {
        for text in [
            "provider p { };",
            "provider p { probe a(); probe b__c(void); };",
            "provider p { probe a(int, char *); probe b(int x, char *s) : (char *s, int x, long x); };",
            "provider p { probe a(); }; BEGIN { exit(0); }",
        ] {
            assert_eq!(compile(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn wrong_definitions() {
        let long = "n".repeat(64);
        let many = vec!["int"; 256].join(", ");
        for (text, message) in [
            ("provider p { probe a() };", "[D_SYNTAX] syntax error near \"}\""),
            ("provider p { a(); };", "[D_SYNTAX] syntax error near \"a\""),
            ("provider p { probe a(); }", "[D_SYNTAX] syntax error near end of input"),
            (
                "provider p1 { probe a(); };",
                "[D_PROV_BADNAME] provider name may not end with a digit: p1",
            ),
            (
                &format!("provider {long} {{ probe a(); }};"),
                &format!("[D_PROV_BADNAME] provider name may not exceed 63 characters: {long}"),
            ),
            (
                "provider p { probe a(); probe a(int); };",
                "[D_PROV_PRDUP] probe redeclared: p:a",
            ),
            (
                "provider p { probe a(int) : (int); };",
                "[D_DECL_PROTO_NAME] parameter declaration requires a name: parameter #1",
            ),
            (
                "provider p { probe a(int x) : (int x, int y); };",
                "[D_DECL_PROTO_FORM] parameter is not declared in probe output prototype: y, parameter #2",
            ),
            (
                "provider p { probe a(void, int); };",
                "[D_DECL_PROTO_VOID] void must be sole parameter",
            ),
            (
                &format!("provider p {{ probe a({many}); }};"),
                "[D_PROV_PRARGLEN] probe a input prototype exceeds 255 parameters: 256 params used",
            ),
        ] {
            assert_eq!(compile(text), Err(message.to_owned()), "{text}");
        }
    }
}
