// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Errors about types, modules and probes that do not exist, with the nearest name that does.

use super::Sema;
use crate::diag::Diagnostic;
use crate::source::Span;
use crate::syntax::TYPE_SUFFIX;
use dtrace_files::nearest::nearest;
use dtrace_objects::pattern::ProbePattern;
use dtrace_types::VMLINUX;
use dtrace_types::{Tag, Ty};

/// Maximum number of probes that are searched for a similar name.
const PROBES_MAX: usize = 200_000;

impl Sema<'_, '_> {
    /// Returns the error that no typedef, or no type with the tag, has this name.
    pub(super) fn unknown_type(
        &self,
        module: Option<&str>,
        tag: Option<Tag>,
        name: &str,
        span: Span,
    ) -> Box<Diagnostic> {
        let word = tag
            .map(|tag| format!("{} ", tag.word()))
            .unwrap_or_default();
        let scope = module
            .map(|module| format!("{module}`"))
            .unwrap_or_default();
        let what = format!("failed to resolve type {scope}{word}{name}");
        if let Some(error) = self.state.types.process_scope_error(module) {
            return Diagnostic::new("D_UNKNOWN", span, format!("{what}: {error}"));
        }
        if self.state.types.is_process_scope(module) {
            return Diagnostic::new("D_UNKNOWN", span, format!("{what}: Unknown type name"));
        }
        if !self.state.types.knows_module(module) {
            return self.unknown_module(&what, module.unwrap_or_default(), span);
        }
        let error = Diagnostic::new("D_UNKNOWN", span, format!("{what}: Unknown type name"));
        match self.state.types.similar(tag, name) {
            Some(known) => error.note(format!("did you mean `{word}{known}`?")),
            None => error,
        }
    }

    /// Returns the error that `module`, in which `what` was looked up, does not exist.
    fn unknown_module(&self, what: &str, module: &str, span: Span) -> Box<Diagnostic> {
        let error = Diagnostic::new("D_UNKNOWN", span, format!("{what}: Unknown module name"));
        let modules = self.world.types().modules();
        let known = modules.iter().map(String::as_str).chain([VMLINUX]);
        match nearest(module, known) {
            Some(known) => error.note(format!("did you mean `{known}`?")),
            None => error,
        }
    }

    /// Returns `error`, which says that the `name` in the parentheses at `span` is no variable. If
    /// the name ends like that of a type, returns the error for an unknown type instead.
    pub(super) fn type_meant(
        &self,
        module: Option<&str>,
        name: &str,
        span: Span,
        error: Box<Diagnostic>,
    ) -> Box<Diagnostic> {
        let written = module.map_or(0, |module| module.len() + 1) + name.len();
        let in_parentheses = (span.end - span.start) as usize > written;
        if error.tag != "D_IDENT_UNDEF" || !name.ends_with(TYPE_SUFFIX) || !in_parentheses {
            return error;
        }
        self.unknown_type(module, None, name, Span::new(span.start + 1, span.end - 1))
    }

    /// Returns `error`, which says that the members of `ty` are not known, with a note of the type
    /// that may have been meant.
    pub(super) fn incomplete(&self, error: Box<Diagnostic>, ty: Ty) -> Box<Diagnostic> {
        let types = &self.state.types;
        let Some((tag, name)) = types.tag(ty) else {
            return error;
        };
        match types.similar(Some(tag), name) {
            Some(known) => error.note(format!("did you mean `{} {known}`?", tag.word())),
            None => error,
        }
    }

    /// Returns a description similar to `pattern`, which matches nothing, that matches something.
    /// One part is replaced by a similar name.
    pub(super) fn similar_probe(&self, pattern: &ProbePattern) -> Option<String> {
        let parts = |pattern: &ProbePattern| {
            [
                pattern.func.clone(),
                pattern.name.clone(),
                pattern.module.clone(),
                pattern.provider.clone(),
            ]
        };
        let written = parts(pattern);
        (0..written.len()).find_map(|index| {
            let word = &written[index];
            if word.is_empty() || word.contains(['*', '?', '[']) {
                return None;
            }
            let with = |text: &str| {
                let mut pattern = pattern.clone();
                match index {
                    0 => pattern.func = text.to_owned(),
                    1 => pattern.name = text.to_owned(),
                    2 => pattern.module = text.to_owned(),
                    _ => pattern.provider = text.to_owned(),
                }
                pattern
            };
            let probes = self.world.matching(&with(""), PROBES_MAX);
            let names = probes.iter().map(|probe| match index {
                0 => probe.func.as_str(),
                1 => probe.name.as_str(),
                2 => probe.module.as_str(),
                _ => probe.provider.as_str(),
            });
            nearest(word, names).map(|known| with(known).to_string())
        })
    }
}
