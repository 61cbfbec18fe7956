// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Translators: structures whose members are computed from something else.
//!
//! A translated value does not exist in memory. `xlate <T *> (e)` has the type `T *` and the
//! register of `e` ([`ExprKind::Translated`]). When a member of it is read, the translator's
//! expression for that member takes its place, with the translator's parameter bound to `e`. So
//! only members that a program reads cost anything. A member whose expression is not valid on this
//! kernel (a field is gone) is an error only for programs that read it.
//!
//! Invariant: while a member's expression is checked, the only binding is the translator's
//! parameter. Names bound where the translator is used are not visible in it.

use super::Sema;
use crate::diag::{Diagnostic, Result};
use crate::hir::{Expr, ExprKind, Place};
use crate::source::Span;
use crate::syntax::ast;
use dtrace_files::nearest::nearest;
use dtrace_types::{DataModel, Kind, Ty, Types};
use dtrace_uapi::subr::Subr;
use std::rc::Rc;

/// A translator.
#[derive(Debug)]
pub struct Translator {
    /// Structure or union that it makes.
    output: Ty,
    /// Type that it reads.
    input: Ty,
    /// Name of the input value in the members' expressions.
    parameter: String,
    /// Members and their expressions.
    members: Vec<(String, ast::Expr)>,
    /// Data model in which the expressions are typed.
    model: DataModel,
}

impl Translator {
    fn member(&self, name: &str) -> Option<&ast::Expr> {
        self.members
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value)
    }
}

impl Sema<'_, '_> {
    /// Adds a translator. The expressions of a library's translator are checked only when they are
    /// used, those of a program's translator also at once.
    pub(super) fn translator(&mut self, declaration: &ast::Translator) -> Result<()> {
        let end = declaration.span.end.saturating_sub(1);
        let output = self.type_name(&declaration.output)?;
        let input = self.type_name(&declaration.input)?;
        let types = &mut self.state.types;
        let refuse =
            |tag, span, message: String| Err(Diagnostic::new(tag, span, message).counted_at(end));
        let span = declaration.output.span;
        if !types.is_record(output) {
            let message = "translator output type must be a struct or union";
            return refuse("D_XLATE_SOU", span, message.to_owned());
        }
        if types.size(output).is_none() {
            let message = format!("incomplete struct/union/enum {}", types.name(output));
            return refuse("D_XLATE_SOU", span, message);
        }
        if matches!(types.base(input), Kind::Dynamic | Kind::Void) {
            let message = format!("translator input type {} cannot be read", types.name(input));
            return refuse("D_XLATE_INCOMPAT", declaration.input.span, message);
        }
        for (name, value) in &declaration.members {
            if types.member(output, name).is_none() {
                let message = format!(
                    "translator member {name} is not a member of {}",
                    types.name(output)
                );
                return refuse("D_XLATE_MEMB", value.span, message);
            }
        }
        let known = self.state.translators.iter().any(|known| {
            let types = &self.state.types;
            types.compatible(known.output, output) && types.compatible(known.input, input)
        });
        if known {
            let types = &self.state.types;
            let message = format!(
                "translator from {} to {} has already been declared",
                types.name(input),
                types.name(output)
            );
            return refuse("D_XLATE_REDECL", declaration.span, message);
        }
        let model = self.state.types.model();
        self.state.translators.push(Rc::new(Translator {
            model,
            output,
            input,
            parameter: declaration.input.declarator.name.clone(),
            members: declaration.members.clone(),
        }));
        match self.is_library {
            true => Ok(()),
            false => self.check_members(declaration, output, input, end),
        }
    }

    /// Checks the expressions of a translator's members, with a parameter that has no value.
    fn check_members(
        &mut self,
        declaration: &ast::Translator,
        output: Ty,
        input: Ty,
        end: u32,
    ) -> Result<()> {
        let parameter = &declaration.input.declarator;
        let value = super::inline::placeholder(&parameter.name, input, parameter.span);
        for (name, written) in &declaration.members {
            let Some(path) = self.state.types.member(output, name) else {
                continue;
            };
            let bindings = vec![(parameter.name.clone(), value.clone())];
            let outer = std::mem::replace(&mut self.bindings, bindings);
            let computed = self.expression(written);
            self.bindings = outer;
            let computed = computed?;
            self.translated_value(computed, path.ty, name, written.span)
                .map_err(|error| error.counted_at(end))?;
        }
        Ok(())
    }

    /// Returns the translator from `input` to `output`, or to what `output` points to. Prefers one
    /// that takes exactly the type `input`; else takes one to whose type an `input` can be
    /// assigned.
    pub(super) fn translator_for(&self, output: Ty, input: Ty) -> Option<usize> {
        let types = &self.state.types;
        let output = match *types.base(output) {
            Kind::Pointer { to, .. } => to,
            _ => output,
        };
        let find = |fits: &dyn Fn(Ty) -> bool| {
            self.state
                .translators
                .iter()
                .position(|known| types.compatible(known.output, output) && fits(known.input))
        };
        find(&|known| types.compatible(known, input))
            .or_else(|| find(&|known| types.assignable(known, input)))
    }

    /// Types `xlate <type> (value)`.
    pub(super) fn xlate(
        &mut self,
        ty: &ast::TypeName,
        value: &ast::Expr,
        span: Span,
    ) -> Result<Expr> {
        let output = self.type_name(ty)?;
        let types = &self.state.types;
        let target = match *types.base(output) {
            Kind::Pointer { to, .. } => to,
            _ => output,
        };
        if !types.is_record(target) {
            let message = "xlate result must be a struct or union, or a pointer to one";
            return Err(Diagnostic::new("D_XLATE_SOU", ty.span, message));
        }
        let input = self.expression(value)?;
        self.translate(output, input, span)
    }

    /// Returns `input` seen as an `output`, which is a structure or union, or a pointer to one.
    pub(super) fn translate(&mut self, output: Ty, input: Expr, span: Span) -> Result<Expr> {
        let Some(translator) = self.translator_for(output, input.ty) else {
            let types = &self.state.types;
            let message = format!(
                "cannot translate from \"{}\" to \"{}\"",
                types.name(input.ty),
                types.name(output)
            );
            return Err(Diagnostic::new("D_XLATE_NONE", span, message));
        };
        Ok(Expr {
            user: input.user,
            kind: ExprKind::Translated {
                translator,
                input: Box::new(input),
            },
            ty: output,
            span,
        })
    }

    /// Builds a translated structure in scratch memory: its members are computed one after another.
    /// Members that the translator does not define are 0.
    pub(super) fn materialized(&mut self, value: Expr) -> Result<Expr> {
        Ok(self.filled(value, false)?.0)
    }

    /// Like [`Self::materialized`], but leaves out members that are not valid on this kernel. Also
    /// returns the names of the other members.
    pub(super) fn translated_object(&mut self, value: Expr) -> Result<(Expr, Vec<String>)> {
        self.filled(value, true)
    }

    fn filled(&mut self, value: Expr, some: bool) -> Result<(Expr, Vec<String>)> {
        let mut names = Vec::new();
        let ExprKind::Translated { translator, .. } = &value.kind else {
            return Ok((value, names));
        };
        let Some(translator) = self.state.translators.get(*translator).cloned() else {
            return Ok((value, names));
        };
        let (ty, span) = (value.ty, value.span);
        let Some(size) = self.state.types.size(ty) else {
            return Ok((value, names));
        };
        let pointer = self.state.types.pointer_to(ty);
        let name = format!("<{} {}>", self.state.types.name(ty), self.hidden);
        self.hidden += 1;
        let var = self.hidden_of_type(&name, pointer, span)?;
        let address = Expr::new(ExprKind::Var(var.clone()), pointer, span);
        let room = ExprKind::Call(Subr::Alloca, vec![Expr::int(size, Ty::SIZE_T, span)]);
        let room = Expr::new(room, pointer, span);
        let assign = ExprKind::Assign(Place::Var(var), Box::new(room));
        let mut steps = Expr::new(assign, pointer, span);
        let object = address.clone().retype(ty);
        let comma = |first: Expr, second: Expr| {
            let ty = second.ty;
            Expr::new(ExprKind::Comma(Box::new(first), Box::new(second)), ty, span)
        };
        for (name, _) in &translator.members {
            let computed = match self.member_in_memory(&value, name, span) {
                Ok(Some(computed)) => computed,
                Ok(None) => continue,
                Err(_) if some => continue,
                Err(error) => return Err(error),
            };
            let to = self.member_of(object.clone(), ty, name, span)?;
            let (place, to) = self.place_of(to, "=", span)?;
            let computed = self.coerce(computed, to, "=", span)?;
            steps = comma(steps, self.store(place, computed, to, span)?);
            names.push(name.clone());
        }
        Ok((comma(steps, object), names))
    }

    /// Like [`Self::translated_member`], but builds a member that is a translated structure in
    /// memory.
    fn member_in_memory(&mut self, base: &Expr, name: &str, span: Span) -> Result<Option<Expr>> {
        let computed = self.translated_member(base, name, span)?;
        let Some(computed) = computed else {
            return Ok(None);
        };
        Ok(Some(match self.state.types.is_record(computed.ty) {
            true => self.materialized(computed)?,
            false => shown(computed, &self.state.types),
        }))
    }

    /// Returns member `name` of the translated value `base`; `None` if `base` is not a translated
    /// value.
    pub(super) fn translated_member(
        &mut self,
        base: &Expr,
        name: &str,
        span: Span,
    ) -> Result<Option<Expr>> {
        let ExprKind::Translated { translator, input } = &base.kind else {
            return Ok(None);
        };
        let Some(translator) = self.state.translators.get(*translator).cloned() else {
            return Ok(None);
        };
        let types = &mut self.state.types;
        let Some(path) = types.member(translator.output, name) else {
            let message = format!(
                "{name} is not a member of {}",
                types.name(translator.output)
            );
            let error = Diagnostic::new("D_TYPE_MEMBER", span, message);
            let names = types.member_names(translator.output);
            return Err(match nearest(name, names.iter().map(String::as_str)) {
                Some(known) => error.note(format!("did you mean `{known}`?")),
                None => error,
            });
        };
        let Some(value) = translator.member(name) else {
            let message = format!("translator does not define conversion for member: {name}");
            return Err(Diagnostic::new("D_XLATE_NOCONV", span, message));
        };
        let bindings = vec![(translator.parameter.clone(), (**input).clone())];
        let outer = std::mem::replace(&mut self.bindings, bindings);
        let computed = self.nested(span, |sema| sema.of_model(value, translator.model));
        self.bindings = outer;
        let computed = computed.map(|computed| computed.placed(span));
        let converted =
            computed.and_then(|computed| self.translated_value(computed, path.ty, name, span));
        converted.map(Some).map_err(|mut error| {
            error.span = span;
            error.counted = None;
            let (output, input) = (translator.output, translator.input);
            let types = &self.state.types;
            error.note(format!(
                "in the translator from {} to {}, member {name}",
                types.name(input),
                types.name(output)
            ))
        })
    }

    /// Converts the computed value of a member to the member's type. Its span is that of the
    /// program, because the translator may be in another source text.
    fn translated_value(&mut self, computed: Expr, ty: Ty, name: &str, span: Span) -> Result<Expr> {
        let types = &self.state.types;
        if !types.assignable(ty, computed.ty) {
            let message = format!(
                "translator member {name} definition uses incompatible types: \"{}\" = \"{}\"",
                types.name(ty),
                types.name(computed.ty)
            );
            return Err(Diagnostic::new("D_XLATE_INCOMPAT", span, message));
        }
        if computed.ty == ty {
            return Ok(Expr { span, ..computed });
        }
        if self.computes_in_float(ty, computed.ty) {
            let value = self.convert_float(computed, ty);
            return Ok(Expr { span, ..value });
        }
        let is_int = types.int(ty).is_some();
        let mut value = match is_int && types.int(ty) != types.int(computed.ty) {
            true => Expr::new(ExprKind::Convert(Box::new(computed)), ty, span),
            false => computed.retype(ty),
        };
        value.span = span;
        Ok(value)
    }
}

/// Returns what is shown of a value. For a pointer to translated data, that is the number from
/// which the data is read.
pub(super) fn shown(value: Expr, types: &Types<'_>) -> Expr {
    let ty = value.ty;
    match value.kind {
        ExprKind::Translated { .. } if types.pointee(ty).is_some() => value.retype(ty),
        _ => value,
    }
}

/// Fails if `value` is translated: it is not in memory, and only its members can be read.
pub(super) fn in_memory(value: &Expr) -> Result<()> {
    match value.kind {
        ExprKind::Translated { .. } => Err(no_value(value.span)),
        _ => Ok(()),
    }
}

/// Returns the error that a translated value is needed as a whole although only its members can be
/// read.
fn no_value(span: Span) -> Box<Diagnostic> {
    let message = "expression cannot evaluate to result of dynamic type";
    Diagnostic::new("D_CG_DYN", span, message)
        .note("only the members of translated data can be read")
}
