// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Pragmas: records dependencies, and checks the names that attributes and bindings are given to.
//! Options were read earlier.
//!
//! Attributes and bindings state how far a name of the program may be relied on. They do not change
//! the code, but the names must exist.

use super::Sema;
use crate::diag::{Diagnostic, Result};
use crate::program::Program;
use crate::syntax::ast::Pragma;
use dtrace_objects::pattern::ProbePattern;
use dtrace_types::VMLINUX;

/// Records the declared dependencies of a program. Fails if a program that is not a library depends
/// on a library.
pub fn apply(pragmas: &[Pragma], is_library: bool, program: &mut Program) -> Result<()> {
    for pragma in pragmas {
        let ("depends_on", [class, name]) = (pragma.name.as_str(), &pragma.words[..]) else {
            continue;
        };
        if class == "library" && !is_library {
            return Err(Diagnostic::new(
                "D_PRAGMA_DEPEND",
                pragma.span,
                "main program may not explicitly depend on a library",
            ));
        }
        program.depends.push((class.clone(), name.clone()));
    }
    Ok(())
}

impl Sema<'_, '_> {
    /// Fails if the program depends on a provider or a module that does not exist.
    pub(super) fn fulfilled(&self, pragmas: &[Pragma]) -> Result<()> {
        for pragma in pragmas {
            let ("depends_on", [class, name]) = (pragma.name.as_str(), &pragma.words[..]) else {
                continue;
            };
            let of_name = match class.as_str() {
                "provider" => ProbePattern {
                    provider: name.clone(),
                    ..ProbePattern::default()
                },
                "module" => ProbePattern {
                    module: name.clone(),
                    ..ProbePattern::default()
                },
                _ => continue,
            };
            // Some providers create probes on demand, and some modules have no probes.
            let known = match class.as_str() {
                "provider" => self.world.attributes(name).is_some(),
                _ => name == VMLINUX || self.world.modules().contains(name),
            };
            if !known && self.world.matching(&of_name, 1).is_empty() {
                let message = format!("program requires {class} {name}");
                return Err(Diagnostic::new("D_PRAGMA_DEPEND", pragma.span, message));
            }
        }
        Ok(())
    }

    /// Fails if a pragma gives attributes or a binding to a name that no program has declared so
    /// far.
    pub(super) fn used_pragmas(&self, pragmas: &[Pragma]) -> Result<()> {
        for pragma in pragmas {
            let [_, name] = &pragma.words[..] else {
                continue;
            };
            if !matches!(pragma.name.as_str(), "attributes" | "binding")
                || self.state.variables.global(name).is_some()
            {
                continue;
            }
            let (tag, message) = match super::builtin::find(name) {
                Some(_) => (
                    "D_PRAGMA_SCOPE",
                    format!(
                        "#pragma {} cannot modify entity defined outside program scope",
                        pragma.name
                    ),
                ),
                None => ("D_PRAGMA_UNUSED", format!("unused #pragma {}", pragma.name)),
            };
            return Err(Diagnostic::new(tag, pragma.span, message));
        }
        Ok(())
    }
}
