// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Probe descriptions, the probes that they match, and the types of those probes' arguments.

use super::Sema;
use crate::compile::ProbeSpec;
use crate::diag::{Diagnostic, Result};
use crate::hir::{Expr, ExprKind};
use crate::source::Span;
use crate::world::ProbeInfo;
use dtrace_objects::pattern::ProbePattern;
use dtrace_objects::pid::{self, Described, Resolved};
use dtrace_objects::processes::Unmade;
use dtrace_objects::usdt;
use dtrace_types::Ty;
use dtrace_uapi::limits::{FUNCNAMELEN, MODNAMELEN, NAMELEN, PROVNAMELEN};
use dtrace_uapi::var::Var;

/// Number of matching probes that are checked for agreement on a type.
const AGREE_LIMIT: usize = 16;

/// The probes of the current clause.
#[derive(Clone, Debug, Default)]
pub struct Context {
    /// The description.
    pub pattern: ProbePattern,
    /// The first probe that matches.
    pub first: Option<ProbeInfo>,
}

impl Context {
    /// Whether all the probes are in one process, with whose number the provider's name ends.
    pub fn is_of_process(&self) -> bool {
        let provider = &self.pattern.provider;
        usdt::process_of(provider).is_some() || matches!(pid::process_of(provider), Ok(Some(_)))
    }
}

/// One element of a probe's `args[]`.
struct Argument {
    /// Type that the probe passes.
    native: Ty,
    /// Type that the program sees, if a translator or a conversion applies.
    translated: Option<Ty>,
    /// Index of the native argument.
    mapping: u32,
}

/// Parses a description. Omitted parts are the leading ones.
pub fn parse(text: &str, spec: ProbeSpec, span: Span) -> Result<ProbePattern> {
    if text.bytes().all(|b| b.is_ascii_digit()) {
        let kind = match spec {
            ProbeSpec::Name => None,
            ProbeSpec::Provider => Some("providers"),
            ProbeSpec::Module => Some("modules"),
            ProbeSpec::Func => Some("functions"),
        };
        if let Some(kind) = kind {
            let message = format!("probe identifier {text} not permitted when specifying {kind}");
            return Err(Diagnostic::new("D_PDESC_INVAL", span, message));
        }
        let id = text
            .parse()
            .ok()
            .filter(|id| *id != 0)
            .ok_or_else(|| unknown(text, span))?;
        return Ok(ProbePattern {
            id,
            ..ProbePattern::default()
        });
    }
    let last = spec as usize;
    let parts: Vec<&str> = text.split(':').collect();
    // A colon before the first possible part separates nothing.
    let parts = match &parts[..] {
        ["", rest @ ..] if parts.len() == last + 2 => rest,
        all => all,
    };
    if parts.len() > last + 1 {
        return Err(invalid(text, "Overspecified probe description", span));
    }
    let mut fields: [String; 4] = Default::default();
    let first = last + 1 - parts.len();
    for (field, part) in fields[first..].iter_mut().zip(parts) {
        *field = (*part).to_owned();
    }
    let limits = [PROVNAMELEN, MODNAMELEN, FUNCNAMELEN, NAMELEN];
    if fields
        .iter()
        .zip(limits)
        .any(|(field, limit)| field.len() >= limit)
    {
        return Err(invalid(text, "name is too long", span));
    }
    let [provider, module, func, name] = fields;
    Ok(ProbePattern {
        id: 0,
        provider,
        module,
        func,
        name,
    })
}

fn invalid(text: &str, why: &str, span: Span) -> Box<Diagnostic> {
    Diagnostic::new(
        "D_PDESC_INVAL",
        span,
        format!("invalid probe description \"{text}\": {why}"),
    )
}

/// Returns the error that a description names no probes in a process.
fn refused(error: &pid::Error, span: Span) -> Box<Diagnostic> {
    let diagnostic = Diagnostic::new(error.tag(), span, error.to_string());
    match error.note() {
        Some(note) => diagnostic.note(note),
        None => diagnostic,
    }
}

fn unknown(id: &str, span: Span) -> Box<Diagnostic> {
    let message = format!("invalid probe identifier {id}: Unknown probe identifier");
    Diagnostic::new("D_PDESC_INVAL", span, message)
}

impl Sema<'_, '_> {
    /// Returns the probes that a description is for, as one or several descriptions, depending on
    /// the names of the probes. Fails if there are none, unless the settings allow that.
    pub(super) fn probes(&mut self, text: &str, span: Span) -> Result<Vec<Context>> {
        let pattern = parse(text, self.settings.spec, span)?;
        self.of_programs(&pattern, span)?;
        let mut patterns = self.in_processes(&pattern, span)?;
        if patterns.is_empty() {
            patterns.push(pattern);
        }
        let mut contexts: Vec<Context> = patterns
            .into_iter()
            .map(|pattern| Context {
                first: self.world.matching(&pattern, 1).into_iter().next(),
                pattern,
            })
            .collect();
        if contexts.iter().any(|context| context.first.is_some()) {
            contexts.retain(|context| context.first.is_some() || context.pattern.may_name_more());
            return Ok(contexts);
        }
        let pattern = &contexts[0].pattern;
        if pattern.id != 0 {
            return Err(unknown(text, span));
        }
        if !self.settings.allow_zero_matches {
            let message = format!("probe description {pattern} does not match any probes");
            let error = Diagnostic::new("D_PDESC_ZERO", span, message);
            return Err(match self.similar_probe(pattern) {
                Some(known) => error.note(format!("did you mean `{known}`?")),
                None => error,
            });
        }
        Ok(contexts)
    }

    /// Makes the probes that processes define themselves (USDT) and a description names.
    fn of_programs(&mut self, pattern: &ProbePattern, span: Span) -> Result<()> {
        let (pids, has_to_be) = usdt::processes(&pattern.provider);
        let mut is_meant = false;
        for pid in &pids {
            let pid = *pid;
            let made = match usdt::resolve(self.world, pattern, pid) {
                Ok(points) if points.is_empty() => continue,
                Ok(points) => self.world.make_own(pid, &points),
                // The number may not be that of a process.
                Err(_) => continue,
            };
            is_meant = true;
            match made {
                Err(unmade) if has_to_be && unmade.is_denied => {
                    return Err(refused(
                        &pid::Error::Denied {
                            pid,
                            why: unmade.why,
                        },
                        span,
                    ));
                }
                Err(Unmade { why, .. }) if has_to_be => {
                    let message = format!("failed to create probes of process {pid}: {why}");
                    return Err(Diagnostic::new("D_PROC_USDT", span, message));
                }
                // A process that matches a pattern may have ended.
                _ => {}
            }
        }
        // A pattern that names no process, but whose provider matches probes that exist (those of
        // the kernel), does not apply to processes that start later.
        let of_provider = ProbePattern {
            provider: pattern.provider.clone(),
            ..ProbePattern::default()
        };
        let is_ours = of_provider.provider.starts_with(pid::PROVIDER);
        if is_meant
            || !pids.is_empty() && !is_ours && self.world.matching(&of_provider, 1).is_empty()
        {
            self.program.own.push(pattern.clone());
        }
        Ok(())
    }

    /// Makes the probes in processes that a description names. Returns the descriptions by which
    /// they are enabled; none if the description names no process.
    fn in_processes(&mut self, pattern: &ProbePattern, span: Span) -> Result<Vec<ProbePattern>> {
        let told = |error: pid::Error| refused(&error, span);
        let watched = &self.settings.processes;
        let (pids, is_wild) = pid::processes(&pattern.provider, watched).map_err(told)?;
        let mut found = Vec::new();
        for pid in pids {
            let written = pattern.of_provider(pid::provider_of(pid));
            match pid::resolve(self.world, &written) {
                Ok(resolved) => found.extend(resolved.map(|resolved| (written, resolved))),
                // The process may have ended, or the rest of the pattern may not apply to it.
                Err(error) if is_wild && error.is_of_one() => {}
                Err(error) => return Err(told(error)),
            }
        }
        // One description serves all processes if they agree on the names.
        let mut patterns = Vec::new();
        let agree = found.windows(2).all(|pair| {
            let provider = || pattern.provider.clone();
            pair[0].1.pattern.of_provider(provider()) == pair[1].1.pattern.of_provider(provider())
        });
        for (written, mut resolved) in found {
            if is_wild && agree {
                resolved.pattern = resolved.pattern.of_provider(pattern.provider.clone());
            }
            let described = Described {
                pid: resolved.pid,
                written,
                enabled: resolved.pattern.clone(),
                origin: resolved.pattern.clone(),
                is_child: false,
                objects: std::mem::take(&mut resolved.objects),
            };
            self.program.processes.push(described);
            let enabled = self.make_probes(resolved, span)?;
            if !patterns.contains(&enabled) {
                patterns.push(enabled);
            }
        }
        if is_wild && !agree {
            // The pattern as written may match other providers, and names as they were written.
            patterns.push(pattern.clone());
        }
        Ok(patterns)
    }

    /// Makes the probes in a process that a description has been resolved to. Returns the resolved
    /// description.
    fn make_probes(&mut self, resolved: Resolved, span: Span) -> Result<ProbePattern> {
        let Resolved {
            pattern,
            pid,
            mut places,
            left_out,
            ..
        } = resolved;
        if left_out > 0 {
            let plural = if left_out == 1 { "" } else { "s" };
            let message = format!(
                "{left_out} probe{plural} of {pattern} left out: the instruction{plural} cannot be probed"
            );
            let warning = Diagnostic::new("D_PROC_LEFTOUT", span, message);
            self.program.warnings.push(*warning);
        }
        if places.is_empty() {
            return Ok(pattern);
        }
        self.world.make(pid, &places).map_err(|unmade| {
            let Unmade {
                at, why, is_denied, ..
            } = unmade;
            if is_denied {
                return refused(&pid::Error::Denied { pid, why }, span);
            }
            let place = places.swap_remove(at.unwrap_or(0));
            refused(&pid::Error::Kernel { place, why }, span)
        })?;
        Ok(pattern)
    }

    /// Types `args[number]` of the current probes.
    pub(super) fn probe_argument(&mut self, number: u64, span: Span) -> Result<Expr> {
        let description = self.probe.pattern.to_string();
        if self.probe.first.is_none() {
            return Err(Diagnostic::new(
                "D_ARGS_NONE",
                span,
                format!(
                    "args[ ] may not be referenced because probe description {description} matches an unstable set of probes"
                ),
            ));
        }
        let probes = self.world.matching(&self.probe.pattern, AGREE_LIMIT);
        let mut found: Option<Argument> = None;
        for probe in &probes {
            let argument = self.argument_of(probe, number, span)?;
            if found
                .as_ref()
                .is_some_and(|known| !self.agree(known, &argument))
            {
                return Err(Diagnostic::new(
                    "D_ARGS_MULTI",
                    span,
                    format!(
                        "args[ ] may not be referenced because probe description {description} matches an unstable set of probes"
                    ),
                ));
            }
            found = Some(argument);
        }
        let Some(argument) = found else {
            return Err(self.no_argument(number, span));
        };
        let index = Expr::int(u64::from(argument.mapping), Ty::INT, span);
        let raw = Expr::new(
            ExprKind::BuiltinArray(Var::Args, Box::new(index)),
            Ty::INT64_T,
            span,
        );
        // The register may hold more bits than the type has.
        let cut = |ty| Expr::new(ExprKind::Convert(Box::new(raw.clone())), ty, span);
        let native = match self.is_integer(argument.native) {
            true => cut(argument.native),
            false if self.state.types.size(argument.native) == Some(4) => {
                cut(Ty::UINT32_T).retype(argument.native)
            }
            false => raw.retype(argument.native),
        };
        match argument.translated {
            None => Ok(native),
            Some(output) if self.converts(output, argument.native) => {
                Ok(Expr::new(ExprKind::Convert(Box::new(native)), output, span))
            }
            Some(output) => self.translate(output, native, span),
        }
    }

    fn is_integer(&self, ty: Ty) -> bool {
        self.state.types.int(ty).is_some()
    }

    /// Whether an argument converts to the type that the program sees without a translator, because
    /// both are integers.
    fn converts(&self, output: Ty, native: Ty) -> bool {
        self.is_integer(output) && self.is_integer(native)
    }

    fn agree(&self, left: &Argument, right: &Argument) -> bool {
        let types = &self.state.types;
        left.mapping == right.mapping
            && types.compatible(left.native, right.native)
            && match (left.translated, right.translated) {
                (Some(left), Some(right)) => types.compatible(left, right),
                (left, right) => left == right,
            }
    }

    fn no_argument(&self, number: u64, span: Span) -> Box<Diagnostic> {
        Diagnostic::new(
            "D_ARGS_IDX",
            span,
            format!(
                "index {number} is out of range for {} args[ ]",
                self.probe.pattern
            ),
        )
    }

    /// Returns the types and the position of argument `number` of a probe.
    fn argument_of(&mut self, probe: &ProbeInfo, number: u64, span: Span) -> Result<Argument> {
        let index = u32::try_from(number).unwrap_or(u32::MAX);
        if let Some(native) = self.kernel_argument(probe, index) {
            return Ok(Argument {
                native,
                translated: None,
                mapping: index,
            });
        }
        if let Ok(Some(pid)) = pid::process_of(&probe.provider) {
            let found = self.process_argument(pid, probe, index, span)?;
            let (native, mapping) = found.ok_or_else(|| self.no_argument(number, span))?;
            return Ok(Argument {
                native,
                translated: None,
                mapping,
            });
        }
        let Some(info) = self.world.argument(probe.id, index) else {
            return Err(self.no_argument(number, span));
        };
        let native = self.argument_type(&info.native, number, span)?;
        let translated = match info.translated.is_empty() || info.translated == info.native {
            true => None,
            false => Some(self.argument_type(&info.translated, number, span)?),
        };
        let is_lost = |output: Ty| {
            !self.converts(output, native) && self.translator_for(output, native).is_none()
        };
        if translated.is_some_and(is_lost) {
            return Err(Diagnostic::new(
                "D_ARGS_XLATOR",
                span,
                format!(
                    "translator for args[{number}] from type {} to type {} not found",
                    info.native, info.translated
                ),
            ));
        }
        Ok(Argument {
            native,
            translated,
            mapping: info.mapping,
        })
    }

    fn argument_type(&mut self, text: &str, number: u64, span: Span) -> Result<Ty> {
        self.state.types.parse(text).ok_or_else(|| {
            Diagnostic::new(
                "D_ARGS_TYPE",
                span,
                format!("failed to resolve native type for args[{number}]"),
            )
            .note(format!("the probe's provider calls it `{text}`"))
        })
    }

    /// Returns the type of an argument of a kernel function's entry or return, or of a tracepoint,
    /// by its prototype.
    fn kernel_argument(&mut self, probe: &ProbeInfo, index: u32) -> Option<Ty> {
        let types = &mut self.state.types;
        let ty = match (probe.provider.as_str(), probe.name.as_str(), index) {
            ("fbt", "entry", _) => {
                let (_, params) = types.function(&probe.module, &probe.func)?;
                *params.get(index as usize)?
            }
            // `arg0` of a return is the address that the function returns to.
            ("fbt", "return", 0) => Ty::UINTPTR_T,
            ("fbt", "return", 1) => types.function(&probe.module, &probe.func)?.0,
            // The module of a tracepoint is its subsystem, not the kernel module that defines it.
            ("sdt", name, _) => *types.tracepoint("", name)?.get(index as usize)?,
            _ => return None,
        };
        (types.resolve(ty) != Ty::VOID).then_some(ty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn omitted_parts_are_leading_ones() {
        let read = |text, spec| parse(text, spec, Span::default()).unwrap().to_string();
        assert_eq!(read("BEGIN", ProbeSpec::Name), ":::BEGIN");
        assert_eq!(read("::read:", ProbeSpec::Func), ":read::");
        assert_eq!(read(":a:b:c:d", ProbeSpec::Name), "a:b:c:d");
        assert!(parse("x::read:", ProbeSpec::Func, Span::default()).is_err());
        assert_eq!(read("read*:entry", ProbeSpec::Name), "::read*:entry");
        assert_eq!(read("syscall:::", ProbeSpec::Name), "syscall:::");
        assert_eq!(
            read("vmlinux:vfs_read", ProbeSpec::Func),
            ":vmlinux:vfs_read:"
        );
        assert_eq!(read("fbt", ProbeSpec::Provider), "fbt:::");
        assert_eq!(read("17", ProbeSpec::Name), "17");
        let error = parse("a:b:c:d:e", ProbeSpec::Name, Span::default()).unwrap_err();
        assert_eq!(error.tag, "D_PDESC_INVAL");
    }
}
