// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Access to data in expressions: names, members, elements and addresses.

use super::variable::{Global, Variable};
use super::{builtin, Sema};
use crate::diag::{Diagnostic, Result};
use crate::hir::{Bits, Expr, ExprKind, VarScope};
use crate::source::Span;
use crate::syntax::ast;
use dtrace_files::arch::HOST;
use dtrace_files::nearest::nearest;
use dtrace_types::{Kind, Path, Ty};
use dtrace_uapi::var::Var;

/// Returns the scope that `self->` or `this->` names.
pub(super) fn scope(scope: ast::Scope) -> VarScope {
    match scope {
        ast::Scope::Thread => VarScope::Thread,
        ast::Scope::Clause => VarScope::Clause,
    }
}

impl Sema<'_, '_> {
    /// Types a name without a scope.
    pub(super) fn name(&mut self, name: &str, span: Span) -> Result<Expr> {
        let bound = self.bindings.iter().rev().find(|(known, _)| known == name);
        if let Some((_, value)) = bound {
            return Ok(Expr {
                span,
                ..value.clone()
            });
        }
        match self.state.variables.global(name).cloned() {
            Some(Global::Variable(variable)) => return self.variable_value(variable, span),
            Some(Global::Inline {
                ty,
                params,
                value,
                model,
            }) => {
                if !params.is_empty() {
                    return Err(self.needs_keys(name, span));
                }
                return self.inline(ty, (&value, model), Vec::new(), span);
            }
            None => (),
        }
        if let Some(var) = builtin::find(name) {
            if builtin::is_array(var) {
                return Err(self.needs_keys(name, span));
            }
            let ty = builtin::ty(var, &mut self.state.types);
            let value = Expr::new(ExprKind::Builtin(var), ty, span);
            return Ok(match (var, self.settings.maxframes) {
                (Var::Stackdepth | Var::Ustackdepth, Some(most)) => at_most(value, most),
                _ => value,
            });
        }
        if let Some((ty, value)) = self.state.types.enumerator(name) {
            return Ok(Expr::int(value as u64, ty, span));
        }
        Err(match self.meaning(name) {
            // Variables were handled above, so the name is that of a function.
            Some(kind) => not_as(&kind, name, "scalar", span),
            None => self.unknown_variable(VarScope::Global, name, span),
        })
    }

    /// Types `self->name` or `this->name`.
    pub(super) fn scoped(&mut self, which: ast::Scope, name: &str, span: Span) -> Result<Expr> {
        let scope = scope(which);
        match self.state.variables.scoped(scope, name).cloned() {
            Some(variable) => self.variable_value(variable, span),
            None => Err(self.unknown_variable(scope, name, span)),
        }
    }

    fn variable_value(&mut self, variable: Variable, span: Span) -> Result<Expr> {
        if variable.place.keyed {
            return Err(self.needs_keys(&variable.place.name, span));
        }
        let ty = variable.place.ty;
        Ok(Expr::new(ExprKind::Var(variable.place), ty, span))
    }

    pub(super) fn needs_keys(&self, name: &str, span: Span) -> Box<Diagnostic> {
        not_as("associative array ", name, "scalar", span)
    }

    /// Types `` module`name ``, a variable of the kernel.
    pub(super) fn symbol(&mut self, module: &str, name: &str, span: Span) -> Result<Expr> {
        let scope = Some(module).filter(|module| !module.is_empty());
        if scope.is_some_and(|scope| scope == "D" || scope == "C") {
            return self.name(name, span);
        }
        let Some(symbol) = self.world.symbol(scope, name) else {
            return Err(Diagnostic::new(
                "D_IDENT_UNDEF",
                span,
                format!("failed to resolve {module}`{name}: Unknown symbol name"),
            ));
        };
        if self.settings.no_symbols {
            let message = format!(
                "relocation remains against kernel symbol {}`{name} (offset {:#x})",
                symbol.module, symbol.address
            );
            return Err(Diagnostic::new("D_ASRELO", span, message));
        }
        let ty = self.state.types.variable(Some(&symbol.module), name);
        let address = Expr::int(symbol.address, Ty::UINTPTR_T, span);
        match ty {
            Some(ty) => self.object_at(address, ty, false, span),
            // Only the address is known. The program must apply a cast or `&`.
            None => Ok(address.retype(Ty::DYNAMIC)),
        }
    }

    /// Fails if the type of `e` is unknown (a kernel symbol without a type); else returns `e`.
    pub(super) fn typed(&self, e: Expr) -> Result<Expr> {
        if !self.state.types.is_dynamic(e.ty) || matches!(e.kind, ExprKind::Valueless) {
            return Ok(e);
        }
        Err(Diagnostic::new(
            "D_SYM_NOTYPES",
            e.span,
            "no symbolic type information is available for the symbol",
        )
        .note("say what it is with a cast: (int)`symbol reads an int, &`symbol is its address"))
    }

    /// Returns the object or scalar of type `ty` at `address`.
    pub(super) fn object_at(
        &mut self,
        address: Expr,
        ty: Ty,
        user: bool,
        span: Span,
    ) -> Result<Expr> {
        let types = &self.state.types;
        match types.base(ty) {
            Kind::Record(_) | Kind::Array(..) | Kind::String | Kind::Function { .. } => {
                let mut object = address.retype(ty);
                object.user = user;
                object.span = span;
                Ok(object)
            }
            Kind::Void => Err(Diagnostic::new(
                "D_DEREF_VOID",
                span,
                "cannot dereference pointer to void",
            )),
            // A number that does not fit a register (`long double`) is an object.
            Kind::Float { .. } if !types.fits_register(ty) => {
                let mut object = address.retype(ty);
                (object.user, object.span) = (user, span);
                Ok(object)
            }
            _ if types.is_scalar(ty) => {
                let address = Box::new(address);
                Ok(Expr::new(ExprKind::Load { address, user }, ty, span))
            }
            _ => Err(Diagnostic::new(
                "D_TYPE_ERR",
                span,
                format!("cannot read a value of type \"{}\"", types.name(ty)),
            )),
        }
    }

    /// Converts a string to the address of its first character; returns other values unchanged.
    fn characters(&self, value: Expr) -> Expr {
        match self.state.types.is_string(value.ty) {
            true => value.retype(Ty::CHAR_POINTER),
            false => value,
        }
    }

    /// Types `*pointer`.
    pub(super) fn deref(&mut self, pointer: Expr, span: Span) -> Result<Expr> {
        let pointer = self.characters(self.typed(pointer)?);
        let Some(target) = self.state.types.pointee(pointer.ty) else {
            return Err(Diagnostic::new(
                "D_DEREF_NONPTR",
                span,
                "cannot dereference non-pointer type",
            ));
        };
        if let ExprKind::Translated { .. } = pointer.kind {
            return Ok(Expr {
                ty: target,
                ..pointer
            });
        }
        let user = pointer.user || self.state.types.is_userland(pointer.ty);
        self.object_at(pointer, target, user, span)
    }

    /// Types `&operand`.
    pub(super) fn address_of(&mut self, operand: &ast::Expr, span: Span) -> Result<Expr> {
        let refuse = |tag, message| Err(Diagnostic::new(tag, span, message));
        if let ast::ExprKind::Agg { .. } = operand.kind {
            return refuse("D_ADDROF_VAR", "cannot take address of dynamic variable");
        }
        let operand = self.expression(operand)?;
        super::translate::in_memory(&operand)?;
        let (ty, user) = (operand.ty, operand.user);
        let types = &mut self.state.types;
        let pointer = |types: &mut dtrace_types::Types<'_>, user| match user {
            true => types.user_pointer_to(ty),
            false => types.pointer_to(ty),
        };
        match operand.kind {
            ExprKind::Load { address, user } => Ok(address.retype(pointer(types, user))),
            ExprKind::LoadBits { .. } => {
                refuse("D_ADDROF_BITFIELD", "cannot take address of bit-field")
            }
            // The DIF machine does not expose where it stores a variable.
            ExprKind::Var(_) | ExprKind::Element(..) | ExprKind::Builtin(_) => {
                refuse("D_ADDROF_VAR", "cannot take address of dynamic variable")
            }
            _ if types.is_dynamic(ty) => {
                let void = types.pointer_to(Ty::VOID);
                Ok(operand.retype(void))
            }
            ExprKind::Str(_) | ExprKind::Call(..) | ExprKind::Cond(..) => {
                refuse("D_ADDROF_LVAL", "unacceptable operand for unary & operator")
            }
            _ if types.is_record(ty)
                || types.is_string(ty)
                || matches!(types.base(ty), Kind::Array(..) | Kind::Function { .. }) =>
            {
                Ok(operand.retype(pointer(types, user)))
            }
            _ => refuse("D_ADDROF_LVAL", "unacceptable operand for unary & operator"),
        }
    }

    /// Returns location and type of member `name` in the record type `record`.
    pub(super) fn path(&mut self, record: Ty, name: &str, span: Span) -> Result<Path> {
        if let Some(path) = self.state.types.member(record, name) {
            return Ok(path);
        }
        let type_name = self.state.types.name(record);
        let error = Diagnostic::new(
            "D_TYPE_MEMBER",
            span,
            format!("{name} is not a member of {type_name}"),
        );
        let names = self.state.types.member_names(record);
        Err(match nearest(name, names.iter().map(String::as_str)) {
            Some(known) => error.note(format!("did you mean `{known}`?")),
            None => error,
        })
    }

    /// Types `base.name` or `base->name`.
    pub(super) fn member(
        &mut self,
        base: &ast::Expr,
        name: &str,
        arrow: bool,
        span: Span,
    ) -> Result<Expr> {
        let base = self.expression(base)?;
        if let Some(translated) = self.translated_member(&base, name, span)? {
            return Ok(translated);
        }
        let base = self.typed(base)?;
        let op = if arrow { "->" } else { "." };
        let types = &self.state.types;
        let (record, user) = if arrow {
            let Some(target) = types.pointee(base.ty) else {
                return Err(Diagnostic::new(
                    "D_OP_PTR",
                    span,
                    "operator -> must be applied to a pointer",
                ));
            };
            (target, base.user || types.is_userland(base.ty))
        } else {
            (base.ty, base.user)
        };
        if !types.is_record(record) {
            let (what, must) = match arrow {
                true => ("pointer to ", " pointer"),
                false => ("", ""),
            };
            let name = types.name(record);
            return Err(Diagnostic::new(
                "D_OP_SOU",
                span,
                format!("operator {op} cannot be applied to {what}type \"{name}\"; must be applied to a struct or union{must}"),
            ));
        }
        if types.size(record).is_none() {
            let name = types.name(record);
            let message = format!(
                "operator {op} cannot be applied to a forward declaration: no {name} definition is available"
            );
            let error = Diagnostic::new("D_OP_INCOMPLETE", span, message);
            return Err(self.incomplete(error, record));
        }
        let mut object = base;
        object.user = user;
        self.member_of(object, record, name, span)
    }

    /// Returns member `name` of the record whose address is the value of `base`.
    pub(super) fn member_of(
        &mut self,
        base: Expr,
        record: Ty,
        name: &str,
        span: Span,
    ) -> Result<Expr> {
        // The expression ends with the member's name.
        let name_span = Span::new(span.end.saturating_sub(name.len() as u32), span.end);
        let path = self.path(record, name, name_span)?;
        let user = base.user;
        let base = match base.constant() {
            Some(value) => Expr::int(value, Ty::UINTPTR_T, span),
            None => base.retype(Ty::UINTPTR_T),
        };
        if path.bits != 0 {
            return Ok(self.bit_field(base, &path, user, span));
        }
        let address = self.displaced(base, path.bit_offset / 8);
        self.object_at(address, path.ty, user, span)
    }

    fn bit_field(&mut self, base: Expr, path: &Path, user: bool, span: Span) -> Expr {
        let int = self.state.types.int(path.ty);
        let unit = int.map_or(8, |int| u64::from(int.size)).clamp(1, 8);
        // Use the aligned word of the member's type, or the next larger one that holds the whole
        // field.
        let mut word = unit;
        while word < 8 && path.bit_offset % (word * 8) + u64::from(path.bits) > word * 8 {
            word *= 2;
        }
        let offset = path.bit_offset / (word * 8) * word;
        let bits = Bits {
            word: word as u8,
            shift: (path.bit_offset % (word * 8)) as u8,
            width: path.bits as u8,
            signed: int.is_some_and(|int| int.signed),
        };
        let address = Box::new(self.displaced(base, offset));
        Expr::new(
            ExprKind::LoadBits {
                address,
                bits,
                user,
            },
            path.ty,
            span,
        )
    }

    /// Types `base[args]`.
    pub(super) fn index(
        &mut self,
        base: &ast::Expr,
        args: &[ast::Expr],
        span: Span,
    ) -> Result<Expr> {
        if let Some((scope, name)) = variable_name(base) {
            if let Some(variable) = self.state.variables.find(scope, name).cloned() {
                if variable.place.keyed {
                    let keys = self.keys(&variable, args, span)?;
                    let ty = variable.place.ty;
                    return Ok(Expr::new(ExprKind::Element(variable.place, keys), ty, span));
                }
            } else if scope == VarScope::Global {
                if let Some(found) = self.array_name(name, args, span)? {
                    return Ok(found);
                }
            } else {
                return Err(self.unknown_variable(scope, name, base.span));
            }
        }
        one_tuple_of_keys(base, span)?;
        let [index] = args else {
            let what = match variable_name(base) {
                Some((_, name)) => format!("scalar {name}"),
                None => "a scalar".to_owned(),
            };
            return Err(Diagnostic::new(
                "D_ARR_BADREF",
                span,
                format!("cannot access {what} as an associative array"),
            ));
        };
        let (base, index) = (self.expression(base)?, self.expression(index)?);
        let base = self.characters(self.typed(base)?);
        let types = &self.state.types;
        if types.pointee(base.ty).is_none() || types.int(index.ty).is_none() {
            return Err(Diagnostic::new(
                "D_OP_ARRFUN",
                span,
                format!(
                    "operator [ ] cannot be applied to type \"{}\" with an index of type \"{}\"",
                    types.name(base.ty),
                    types.name(index.ty)
                ),
            ));
        }
        let element = self.element(base, index, span)?;
        self.deref(element, span)
    }

    /// Returns an element of a built-in array or of an inline with parameters; `None` if `name` is
    /// neither but is known.
    fn array_name(&mut self, name: &str, args: &[ast::Expr], span: Span) -> Result<Option<Expr>> {
        if let Some(Global::Inline {
            ty,
            params,
            value,
            model,
        }) = self.state.variables.global(name).cloned()
        {
            if params.is_empty() {
                return Ok(None);
            }
            let types: Vec<Ty> = params.iter().map(|(_, ty)| *ty).collect();
            let values = self.checked_keys(name, &types, args, span)?;
            let names = params.into_iter().map(|(name, _)| name);
            let bound = names.zip(values).collect();
            return self.inline(ty, (&value, model), bound, span).map(Some);
        }
        let Some(var) = builtin::find(name).filter(|var| builtin::is_array(*var)) else {
            let known = builtin::find(name).is_some()
                || self.bindings.iter().any(|(bound, _)| bound == name)
                || self.state.variables.global(name).is_some();
            return match known {
                true => Ok(None),
                false => Err(self.unknown_variable(VarScope::Global, name, span)),
            };
        };
        if var == Var::Walk && !self.settings.walker {
            return Err(self.unknown_variable(VarScope::Global, name, span));
        }
        let number = self.builtin_index(name, args, span)?;
        if var == Var::Args {
            return self.probe_argument(number, span).map(Some);
        }
        if var != Var::Walk {
            check_register(var, number as i64, span)?;
        }
        let index = Expr::int(number, Ty::INT64_T, span);
        let ty = builtin::ty(var, &mut self.state.types);
        let kind = ExprKind::BuiltinArray(var, Box::new(index));
        Ok(Some(Expr::new(kind, ty, span)))
    }

    /// Returns the index of a built-in array, which must be a constant.
    fn builtin_index(&mut self, name: &str, args: &[ast::Expr], span: Span) -> Result<u64> {
        let [arg] = args else {
            super::call::check_count(name, args.len(), 1, Some(1), span).map_err(|mut error| {
                error.message = error.message.replacen("( )", "[ ]", 1);
                error
            })?;
            return Err(self.needs_keys(name, span));
        };
        let index = self.expression(arg)?;
        let is_int = self.state.types.int(index.ty).is_some();
        match self.convert(index.clone(), Ty::INT64_T).constant() {
            Some(constant) if is_int => Ok(constant),
            _ => {
                let given = self.state.types.name(index.ty);
                let message = format!(
                    "{name}[ ] argument #1 is incompatible with prototype:\n\tprototype: integer constant\n\t argument: {given}"
                );
                Err(Diagnostic::new("D_PROTO_ARG", arg.span, message))
            }
        }
    }

    pub(super) fn keys(
        &mut self,
        variable: &Variable,
        args: &[ast::Expr],
        span: Span,
    ) -> Result<Vec<Expr>> {
        let keys = variable.keys.clone();
        self.checked_keys(&variable.place.name, &keys, args, span)
    }

    /// Checks the keys `args` of the array `name` and converts them to its key types.
    fn checked_keys(
        &mut self,
        name: &str,
        types: &[Ty],
        args: &[ast::Expr],
        span: Span,
    ) -> Result<Vec<Expr>> {
        if types.len() != args.len() {
            let s = if args.len() == 1 { "" } else { "s" };
            return Err(Diagnostic::new(
                "D_PROTO_LEN",
                span,
                format!(
                    "{name}[ ] prototype mismatch: {} key{s} passed, {} expected",
                    args.len(),
                    types.len()
                ),
            ));
        }
        let mut keys = Vec::with_capacity(args.len());
        for (number, (ty, arg)) in types.iter().zip(args).enumerate() {
            let key = self.expression(arg)?;
            let key_ty = key.ty;
            keys.push(self.coerce(key, *ty, "=", arg.span).map_err(|_| {
                let error = Diagnostic::new(
                    "D_PROTO_ARG",
                    arg.span,
                    format!(
                        "{name}[ ] key #{} is incompatible with prototype:\n\tprototype: {}\n\t      key: {}",
                        number + 1,
                        self.state.types.name(*ty),
                        self.state.types.name(key_ty)
                    ),
                );
                error.notes(self.state.types.stacks_differ(*ty, key_ty))
            })?);
        }
        Ok(keys)
    }
}

/// Returns the unsigned number `value`, limited to `most`.
fn at_most(value: Expr, most: u32) -> Expr {
    let (ty, span) = (value.ty, value.span);
    let most = Expr::int(most.into(), ty, span);
    let more = ExprKind::Compare {
        op: ast::BinaryOp::Gt,
        signed: false,
        left: Box::new(value.clone()),
        right: Box::new(most.clone()),
    };
    let more = Box::new(Expr::new(more, Ty::INT, span));
    Expr::new(
        ExprKind::Cond(more, Box::new(most), Box::new(value)),
        ty,
        span,
    )
}

/// Fails if `base` is an aggregation: its keys cannot be indexed again.
pub(super) fn one_tuple_of_keys(base: &ast::Expr, span: Span) -> Result<()> {
    let ast::ExprKind::Agg { name, .. } = &base.kind else {
        return Ok(());
    };
    let message = format!("aggregation @{name} may not be used as a multi-dimensional array");
    Err(Diagnostic::new("D_AGG_MDIM", span, message))
}

/// Returns the variable that an expression names directly.
pub(super) fn variable_name(e: &ast::Expr) -> Option<(VarScope, &str)> {
    match &e.kind {
        ast::ExprKind::Name { module: None, name } => Some((VarScope::Global, name)),
        ast::ExprKind::Scoped(which, name) => Some((scope(*which), name)),
        _ => None,
    }
}

/// Returns the error that `name`, which is a `kind`, is used as `other`.
pub(super) fn not_as(kind: &str, name: &str, other: &str, span: Span) -> Box<Diagnostic> {
    let kind = kind.trim_end_matches("inline").trim_end();
    let message = format!("{kind} '{name}' may not be referenced as {other}");
    Diagnostic::new("D_IDENT_BADREF", span, message)
}

/// Fails if the machine has no such register.
fn check_register(var: Var, number: i64, span: Span) -> Result<()> {
    let name = if var == Var::Uregs { "uregs" } else { "regs" };
    let (tag, message) = match u64::try_from(number) {
        Err(_) => (
            "D_REGS_IDX",
            format!("index {number} is out of range for array {name}"),
        ),
        Ok(number) if number >= HOST.registers => (
            "D_UNKNOWN",
            format!("{name}[]: index out of bounds ({number})"),
        ),
        Ok(_) => return Ok(()),
    };
    Err(Diagnostic::new(tag, span, message))
}
