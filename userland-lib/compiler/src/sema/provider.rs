// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Providers that applications define: checks that probes can have their names and prototypes.
//!
//! A definition describes probes that the application provides, not probes that the program
//! enables.

use super::Sema;
use crate::diag::{Diagnostic, Result};
use crate::source::Span;
use crate::stability;
use crate::syntax::ast::{Pragma, ProbeDefinition, Provider, TypeName};
use dtrace_objects::usdt::{self, Definition, Form, Parameter};
use dtrace_types::{Kind, Ty};
use dtrace_uapi::limits::{NAMELEN, PROVNAMELEN};
use std::collections::HashSet;

/// Maximum number of parameters, and of arguments, of a probe.
const ARGUMENTS_MAX: usize = u8::MAX as usize;

impl Sema<'_, '_> {
    /// Checks the definition of a provider.
    pub(super) fn provider(&mut self, provider: &Provider) -> Result<()> {
        let name = &provider.name;
        name_fits("provider", name, PROVNAMELEN, provider.span)?;
        if name.ends_with(|last: char| last.is_ascii_digit()) {
            let message = format!("provider name may not end with a digit: {name}");
            return Err(Diagnostic::new("D_PROV_BADNAME", provider.span, message));
        }
        let mut names = HashSet::new();
        let mut probes = Vec::new();
        for probe in &provider.probes {
            probes.push(self.probe_definition(probe)?);
            let name = hyphenated(&probe.name);
            if !names.insert(name.clone()) {
                let message = format!("probe redeclared: {}:{name}", provider.name);
                return Err(Diagnostic::new("D_PROV_PRDUP", probe.span, message));
            }
        }
        self.program.providers.push(usdt::Provider {
            name: name.clone(),
            probes,
            attributes: usdt::ATTRIBUTES,
        });
        Ok(())
    }

    /// Applies the pragmas `attributes NAME/DATA/CLASS provider PROVIDER PART` to the providers.
    pub(super) fn provider_attributes(&mut self, pragmas: &[Pragma]) {
        for pragma in pragmas.iter().filter(|p| p.name == "attributes") {
            let [attribute, _, name, part] = &pragma.words[..] else {
                continue;
            };
            let Some(attribute) = stability::parse(attribute) else {
                continue;
            };
            let mut providers = self.program.providers.iter_mut();
            let Some(provider) = providers.find(|provider| provider.name == *name) else {
                continue;
            };
            let parts = &mut provider.attributes;
            match part.as_str() {
                "provider" => parts.provider = attribute,
                "module" => parts.module = attribute,
                "function" => parts.func = attribute,
                "name" => parts.name = attribute,
                "args" => parts.args = attribute,
                _ => {}
            }
        }
    }

    fn probe_definition(&mut self, probe: &ProbeDefinition) -> Result<Definition> {
        let name = hyphenated(&probe.name);
        name_fits("probe", &name, NAMELEN, probe.span)?;
        let parameters = self.parameters("probe input", &probe.parameters)?;
        count_fits(&name, "input", parameters.len(), probe.span)?;
        let (known, passed): (Vec<String>, Vec<Ty>) = parameters.into_iter().unzip();
        let mut seen = Vec::new();
        match &probe.arguments {
            None => {
                for (index, ty) in passed.iter().enumerate() {
                    seen.push((self.written(*ty), index as u8));
                }
            }
            Some(arguments) => {
                let types = self.parameters("probe output", arguments)?;
                for (number, (argument, (_, ty))) in arguments.iter().zip(&types).enumerate() {
                    let index = parameter_of(argument, &known, number + 1)?;
                    seen.push((self.written(*ty), index as u8));
                }
                count_fits(&name, "output", types.len(), probe.span)?;
            }
        }
        let parameters = passed.into_iter().map(|ty| Parameter {
            ty: self.written(ty),
            form: self.form(ty),
        });
        Ok(Definition {
            name: probe.name.clone(),
            parameters: parameters.collect(),
            arguments: seen,
        })
    }

    /// Returns a type as C writes it.
    fn written(&self, ty: Ty) -> String {
        match self.state.types.resolve(ty) {
            Ty::STRING => "char *".to_owned(),
            _ => self.state.types.name(ty),
        }
    }

    fn form(&self, ty: Ty) -> Form {
        let types = &self.state.types;
        if let Some(int) = types.int(ty) {
            return Form::Int(u64::from(int.size), int.signed);
        }
        if let Some(size) = types.float(ty) {
            return Form::Float(size);
        }
        let is_array = matches!(types.base(ty), Kind::Array(..));
        match is_array || types.is_pointer(ty) || types.resolve(ty) == Ty::STRING {
            true => Form::Pointer,
            false => Form::None,
        }
    }
}

/// Returns the index of the parameter that an output argument names.
fn parameter_of(argument: &TypeName, known: &[String], number: usize) -> Result<usize> {
    let name = &argument.declarator.name;
    let (tag, message) = if name.is_empty() {
        let message = format!("parameter declaration requires a name: parameter #{number}");
        ("D_DECL_PROTO_NAME", message)
    } else if let Some(index) = known.iter().position(|known| known == name) {
        return Ok(index);
    } else {
        let message = format!(
            "parameter is not declared in probe output prototype: {name}, parameter #{number}"
        );
        ("D_DECL_PROTO_FORM", message)
    };
    Err(Diagnostic::new(tag, argument.span, message))
}

/// Returns the name of a probe. Two underscores in its C name stand for a hyphen.
fn hyphenated(name: &str) -> String {
    name.replace("__", "-")
}

/// Fails if a name with its NUL does not fit `size` bytes.
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
    use dtrace_objects::processes::Nowhere;

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
