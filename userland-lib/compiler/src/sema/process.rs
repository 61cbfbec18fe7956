// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Types of the `args[]` of probes in processes, from the debugging information of the program.
//!
//! A probe passes words: integer and floating-point registers, and words on the stack. Which word
//! holds a parameter depends on the parameters before it. A parameter that is not passed as a word,
//! or that follows one which may be passed in several ways, is refused rather than guessed.

use super::Sema;
use crate::diag::{Diagnostic, Result};
use crate::source::Span;
use crate::world::ProbeInfo;
use dtrace_files::arch::programs::{word, word_of_32, Class};
use dtrace_objects::pid::is_part;
use dtrace_types::{Kind, Prototype, Ty, Types};
use dtrace_uapi::process::VECTOR_WORD;

/// Reasons why an argument is not available.
const STRUCTURE: &str = "it is a structure, not a pointer to one";
const AFTER: &str = "a structure is passed before it, or returned";
const FLOAT: &str = "it is a floating-point number that has no register of its own";
const PROMOTED: &str = "the function has no prototype, so it comes as a double";
const CHANGED: &str = "the compiler may have changed what the function takes";
const WIDE: &str = "it has more than one register";

impl Sema<'_, '_> {
    /// Returns the type of argument `index` of a probe in the process `pid`, and the index of its
    /// word; `None` if the probe has no such argument. Fails if the argument is not available.
    pub(super) fn process_argument(
        &mut self,
        pid: u32,
        probe: &ProbeInfo,
        index: u32,
        span: Span,
    ) -> Result<Option<(Ty, u32)>> {
        let is_return = match probe.name.as_str() {
            "entry" => false,
            "return" if index == 0 => return Ok(Some((Ty::UINT64_T, 0))),
            "return" => true,
            _ => return Ok(None),
        };
        let ProbeInfo { module, func, .. } = probe;
        let refused = |why: &str| {
            let message = format!("args[{index}] of {func}() cannot be had: {why}");
            Diagnostic::new("D_ARGS_TYPE", span, message)
        };
        if is_part(func) {
            return Err(refused(CHANGED));
        }
        let types = &mut self.state.types;
        let prototype = match types.process_function(pid, module, func) {
            Ok(Some(prototype)) => prototype,
            Ok(None) => return Err(refused(&format!("nothing is told of it in {module}"))),
            Err(why) => return Err(refused(&format!("{module}: {why}"))),
        };
        let found = match is_return {
            true => result(types, &prototype, index),
            false => parameter(types, &prototype, index),
        };
        found.map_err(refused)
    }
}

fn result(
    types: &Types<'_>,
    prototype: &Prototype,
    index: u32,
) -> std::result::Result<Option<(Ty, u32)>, &'static str> {
    let ty = prototype.ret;
    if index != 1 || types.resolve(ty) == Ty::VOID {
        return Ok(None);
    }
    let room = if prototype.is_wide { 8 } else { 4 };
    match class(types, ty) {
        None => Err(STRUCTURE),
        Some(Class::Float(4 | 8)) if prototype.is_wide => Ok(Some((ty, VECTOR_WORD))),
        Some(Class::Float(_)) => Err(FLOAT),
        Some(Class::Integer(size)) if size > room => Err(WIDE),
        Some(Class::Integer(_)) => Ok(Some((ty, 1))),
    }
}

fn parameter(
    types: &Types<'_>,
    prototype: &Prototype,
    index: u32,
) -> std::result::Result<Option<(Ty, u32)>, &'static str> {
    let Some(params) = prototype.params.get(..=index as usize) else {
        return Ok(None);
    };
    let [before @ .., ty] = params else {
        return Ok(None);
    };
    let own = class(types, *ty).ok_or(STRUCTURE)?;
    if prototype.promotes && own == Class::Float(4) {
        return Err(PROMOTED);
    }
    let classes: Option<Vec<Class>> = before.iter().map(|ty| class(types, *ty)).collect();
    let mut classes = classes.ok_or(AFTER)?;
    if types.is_record(prototype.ret) {
        return Err(AFTER);
    }
    classes.push(own);
    let word = match prototype.is_wide {
        true => word(&classes),
        false => word_of_32(&classes),
    };
    match (word, own) {
        // D has no floating-point type shorter than `float`.
        (None, Class::Float(_)) | (_, Class::Float(..=3)) => Err(FLOAT),
        (Some(word), _) => Ok(Some((*ty, word))),
        (None, Class::Integer(_)) => Err(WIDE),
    }
}

/// Returns how a value is passed; `None` if it may be passed in several ways.
fn class(types: &Types<'_>, ty: Ty) -> Option<Class> {
    let size = types.size(ty)?;
    match types.base(ty) {
        Kind::Int { .. } | Kind::Enum(_) | Kind::Pointer { .. } => Some(Class::Integer(size)),
        // Other types of that size than `long double` are passed in registers.
        Kind::Float { name, .. } if size > 8 && &**name != "long double" => None,
        Kind::Float { .. } => Some(Class::Float(size)),
        _ => None,
    }
}
