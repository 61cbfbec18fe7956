// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Translators: structures whose members are computed from something else.
//!
//! A translated value does not exist in memory. `xlate <T *> (e)` has the type `T *` and the register of `e`
//! ([`ExprKind::Translated`]); when a member of it is read, the translator's expression for that member stands in its
//! place, with the translator's parameter bound to `e`. So only members that a program reads cost anything, and a
//! member whose expression does not hold on this kernel (a field is gone) is an error for those programs alone that
//! read it.
//!
//! Invariant: while a member's expression is checked, the only binding is the translator's parameter: nothing of the
//! place that uses the translator is visible in it.

use super::hir::{Expr, ExprKind, Place};
use super::Sema;
use crate::diag::{nearest, Diagnostic, Result};
use crate::source::Span;
use crate::syntax::ast;
use crate::types::{DataModel, Kind, Ty, Types};
use dtrace_uapi::subr::Subr;
use std::rc::Rc;

/// A translator.
#[derive(Debug)]
pub struct Translator {
    /// The structure that it makes.
    output: Ty,
    /// The type that it reads.
    input: Ty,
    /// The name that the read value has in the members' expressions.
    parameter: String,
    /// The members.
    members: Vec<(String, ast::Expr)>,
    /// How large the types are that these name.
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
    /// Takes a translator's declaration. A library's expressions for members are looked at when they are used, a
    /// program's also at once.
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

    /// Checks the expressions for a translator's members, with a parameter that has no value.
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

    /// The translator that makes `output`, or what it points to, of an `input`: one that takes just that type, or else
    /// one that takes a type which an `input` can be given for.
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

    /// `xlate <type> (value)`
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

    /// `input` seen as an `output`, which is a structure or a pointer to one.
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

    /// A translated structure in memory: its members are computed one after another into scratch memory. Those that the
    /// translator does not define are 0.
    pub(super) fn materialized(&mut self, value: Expr) -> Result<Expr> {
        Ok(self.filled(value, false)?.0)
    }

    /// The same of the members that can be had: what does not hold on this kernel is left out. Their names come with it.
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

    /// The same as [`Self::translated_member`], but a structure that is translated itself is made in memory.
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

    /// The member `name` of the translated value `base`; `None` if `base` is no translated value.
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

    /// A member's computed value under the member's type. Places are those of the program, not of the translator,
    /// which may be in another text.
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

/// What is shown of a value: of a pointer to translated data the number, which is that of what it is read from.
pub(super) fn shown(value: Expr, types: &Types<'_>) -> Expr {
    let ty = value.ty;
    match value.kind {
        ExprKind::Translated { .. } if types.pointee(ty).is_some() => value.retype(ty),
        _ => value,
    }
}

/// Refuses what a translator makes, which is in no memory: it is read by its members alone.
pub(super) fn in_memory(value: &Expr) -> Result<()> {
    match value.kind {
        ExprKind::Translated { .. } => Err(no_value(value.span)),
        _ => Ok(()),
    }
}

/// The error that a translated value is wanted as a whole where only its members can be had.
fn no_value(span: Span) -> Box<Diagnostic> {
    let message = "expression cannot evaluate to result of dynamic type";
    Diagnostic::new("D_CG_DYN", span, message)
        .note("only the members of translated data can be read")
}
