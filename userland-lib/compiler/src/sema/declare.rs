// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Declarations: C declarations become types, variables and inlines.
//!
//! A type is built in two steps that follow its syntax: the specifiers give a base type, and the
//! declarator derives a type from it. The parser has already turned declarators inside out,
//! outermost derivation first, so the derivations are applied to the base from last to first.
//!
//! Array sizes, bit-field widths and enumerators need a constant. They are ordinary expressions
//! that must fold to one.

use super::variable::Global;
use super::Sema;
use crate::diag::{Diagnostic, Result};
use crate::hir::VarScope;
use crate::source::Span;
use crate::syntax::ast::{
    self, BaseKind, BaseType, Declaration, Declarator, Derivation, Expr, InitDeclarator,
    MemberDecl, Storage, TypeName,
};
use crate::syntax::TYPE_SUFFIX;
use dtrace_types::{Kind, Tag, Ty, Types};
use dtrace_uapi::var::Var;

/// Largest size of one array dimension.
const DIMENSION_MAX: u64 = i32::MAX as u64;

/// Largest number of dimensions of an array, including those of its element type. Computing the
/// size of an array recurses once per dimension.
const DIMENSIONS_MAX: u32 = 64;

/// Result of applying a declarator to its base type.
struct Derived {
    ty: Ty,
    /// Parameters of an associative array, or of an inline that takes parameters.
    keys: Option<Vec<(String, Ty)>>,
}

pub(super) fn error(tag: &'static str, span: Span, message: impl Into<String>) -> Box<Diagnostic> {
    Diagnostic::new(tag, span, message)
}

/// Returns the declared name as messages show it.
fn shown(name: &str) -> &str {
    if name.is_empty() {
        "(anon)"
    } else {
        name
    }
}

impl Sema<'_, '_> {
    /// Returns the type that `name` spells.
    pub(super) fn type_name(&mut self, name: &TypeName) -> Result<Ty> {
        let base = self.base_type(&name.base)?;
        let derived = self.derive(base, &name.base, &name.declarator)?;
        match derived.keys {
            None => Ok(derived.ty),
            Some(_) => Err(error(
                "D_DECL_ARRSUB",
                name.span,
                "positive integral constant expression expected as array declaration subscript",
            )),
        }
    }

    /// Fails if `ty` is an array without a dimension.
    fn needs_dimension(&self, ty: Ty, declarator: &Declarator) -> Result<()> {
        match self.state.types.base(ty) {
            Kind::Array(_, None) => Err(error(
                "D_DECL_ARRNULL",
                declarator.span,
                format!(
                    "array declaration requires array dimension or tuple signature: {}",
                    declarator.name
                ),
            )),
            _ => Ok(()),
        }
    }

    /// Adds what a declaration declares to the state.
    pub(super) fn declaration(&mut self, declaration: &Declaration) -> Result<()> {
        if let Storage::Foreign(_) = declaration.storage {
            let message = "specified storage class not appropriate in D";
            return Err(error("D_DECL_BADCLASS", declaration.span, message));
        }
        let base = self.base_type(&declaration.base)?;
        if declaration.declarators.is_empty() {
            let declares = matches!(
                &declaration.base.kind,
                BaseKind::Record { tag: Some(_), .. } | BaseKind::Enum { items: Some(_), .. }
            );
            return match declares {
                true => Ok(()),
                false => Err(error(
                    "D_DECL_USELESS",
                    declaration.span,
                    "useless declaration",
                )),
            };
        }
        for declarator in &declaration.declarators {
            self.declare(declaration, base, declarator)?;
        }
        Ok(())
    }

    fn declare(
        &mut self,
        declaration: &Declaration,
        base: Ty,
        init: &InitDeclarator,
    ) -> Result<()> {
        let declarator = &init.declarator;
        let (name, span) = (declarator.name.as_str(), declarator.span);
        let derived = self.derive(base, &declaration.base, declarator)?;
        if declaration.storage != Storage::Extern {
            self.needs_dimension(derived.ty, declarator)?;
        }
        match declaration.storage {
            // A function prototype or an array without a dimension only says that something exists
            // elsewhere. There is nothing to add.
            Storage::Global | Storage::Extern
                if matches!(
                    self.state.types.base(derived.ty),
                    Kind::Function { .. } | Kind::Array(_, None)
                ) =>
            {
                Ok(())
            }
            Storage::Typedef => self.declare_typedef(name, derived.ty, span),
            Storage::Inline => {
                self.declare_inline(init, derived.ty, derived.keys.unwrap_or_default())
            }
            Storage::Thread => self.declare_variable(VarScope::Thread, declarator, derived),
            Storage::Clause => self.declare_variable(VarScope::Clause, declarator, derived),
            Storage::Global | Storage::Extern => {
                self.declare_variable(VarScope::Global, declarator, derived)
            }
            // The caller refuses `Foreign`, and the parser never returns `CFunction`.
            Storage::Foreign(_) | Storage::CFunction => Ok(()),
        }
    }

    fn declare_typedef(&mut self, name: &str, ty: Ty, span: Span) -> Result<()> {
        match self.state.types.declared_typedef(name) {
            Some(known) if !self.state.types.compatible(known, ty) => Err(error(
                "D_DECL_IDRED",
                span,
                format!("typedef redeclared: {name}"),
            )),
            Some(_) => Ok(()),
            None => {
                self.state.types.declare_typedef(name, ty);
                Ok(())
            }
        }
    }

    fn declare_variable(
        &mut self,
        scope: VarScope,
        declarator: &Declarator,
        derived: Derived,
    ) -> Result<()> {
        let (name, span) = (declarator.name.as_str(), declarator.span);
        self.check_object(name, derived.ty, span)?;
        if scope == VarScope::Clause && derived.keys.is_some() {
            let message =
                format!("associative arrays may not be declared as local variables: {name}");
            return Err(error("D_DECL_LOCASSC", span, message));
        }
        let keys: Option<Vec<Ty>> = derived
            .keys
            .map(|keys| keys.into_iter().map(|(_, ty)| ty).collect());
        let redeclared = || {
            error(
                "D_DECL_IDRED",
                span,
                format!("identifier redeclared: {name}"),
            )
        };
        if scope == VarScope::Global {
            if super::builtin::find(name).is_some_and(|var: Var| !super::builtin::is_array(var))
                || super::call::find(name).is_some()
                || super::actions::is_action(name)
                || super::aggfunc::function(name).is_some()
            {
                return Err(error(
                    "D_DECL_IDRED",
                    span,
                    format!("identifier redefined: {name}"),
                ));
            }
            if let Some(Global::Inline { .. }) = self.state.variables.global(name) {
                return Err(redeclared());
            }
        }
        if let Some(known) = self.state.variables.find(scope, name) {
            let known_keys = known.place.keyed.then_some(&known.keys);
            let types = &self.state.types;
            let same_keys = match (known_keys, &keys) {
                (None, None) => true,
                (Some(a), Some(b)) => {
                    let same = |(a, b): (&Ty, &Ty)| types.compatible(types.shown(*a), *b);
                    a.len() == b.len() && a.iter().zip(b).all(same)
                }
                _ => false,
            };
            return match same_keys && types.compatible(types.shown(known.place.ty), derived.ty) {
                true => Ok(()),
                false => Err(redeclared()),
            };
        }
        self.add_variable(scope, name, derived.ty, keys, span)
            .map(|_| ())
    }

    /// Fails if no object can be of type `ty`: `void`, or a structure or union without known
    /// members.
    fn check_object(&mut self, name: &str, ty: Ty, span: Span) -> Result<()> {
        let types = &mut self.state.types;
        if types.resolve(ty) == Ty::VOID {
            let message = format!("cannot have void object: {}", shown(name));
            return Err(error("D_DECL_VOIDOBJ", span, message));
        }
        if types.is_record(ty) && types.record(ty).is_none() {
            // DTrace takes every tag that has no members yet for that of a struct.
            let text = match types.tag(ty) {
                Some((Tag::Union, tag)) if !self.open_records.contains(&ty) => {
                    format!("struct {tag}")
                }
                _ => types.name(ty),
            };
            let message = format!("incomplete struct/union/enum {text}: {}", shown(name));
            return Err(self.incomplete(error("D_DECL_INCOMPLETE", span, message), ty));
        }
        Ok(())
    }

    fn base_type(&mut self, base: &BaseType) -> Result<Ty> {
        let ty = match &base.kind {
            BaseKind::Words(words) => {
                let ty = words_type(words, base.span)?;
                self.state.types.in_model(ty)
            }
            BaseKind::Str => Ty::STRING,
            BaseKind::Named { module, name, span } => {
                let module = module.as_deref();
                match (self.state.types.lookup_typedef(module, name), module) {
                    (Some(ty), None) => self.state.types.in_model(ty),
                    (Some(ty), Some(_)) => ty,
                    (None, _) => return Err(self.unknown_type(module, None, name, *span)),
                }
            }
            BaseKind::Record {
                is_union,
                module,
                tag,
                members,
            } => self.record_type(
                *is_union,
                module.as_deref(),
                tag.as_deref(),
                members.as_deref(),
                base.span,
            )?,
            BaseKind::Enum { module, tag, items } => self.enum_type(
                module.as_deref(),
                tag.as_deref(),
                items.as_deref(),
                base.span,
            )?,
        };
        Ok(if base.is_const {
            self.state.types.const_of(ty)
        } else {
            ty
        })
    }

    fn record_type(
        &mut self,
        is_union: bool,
        module: Option<&str>,
        tag: Option<&str>,
        members: Option<&[MemberDecl]>,
        span: Span,
    ) -> Result<Ty> {
        let kind = if is_union { Tag::Union } else { Tag::Struct };
        let redeclared = |message: String| error("D_DECL_TYPERED", span, message);
        let Some(members) = members else {
            let name = tag.unwrap_or_default();
            return match (self.state.types.lookup_tag(kind, module, name), module) {
                (Some(ty), _) => Ok(ty),
                (None, Some(_)) => Err(self.unknown_type(module, Some(kind), name, span)),
                (None, None) => self
                    .state
                    .types
                    .declare_record(is_union, tag, None)
                    .map_err(redeclared),
            };
        };
        // Declare the tag first, because members may point to the record that contains them.
        if tag.is_some() {
            let open = self
                .state
                .types
                .declare_record(is_union, tag, None)
                .map_err(redeclared)?;
            self.open_records.push(open);
        }
        let mut fields: Vec<(String, Ty, Option<u32>)> = Vec::new();
        for member in members {
            self.members(member, &mut fields)?;
        }
        if tag.is_some() {
            self.open_records.pop();
        }
        self.state
            .types
            .declare_record(is_union, tag, Some(fields))
            .map_err(redeclared)
    }

    /// Adds the members that one declaration within a record declares.
    fn members(
        &mut self,
        member: &MemberDecl,
        fields: &mut Vec<(String, Ty, Option<u32>)>,
    ) -> Result<()> {
        let base = self.base_type(&member.base)?;
        if member.declarators.is_empty() {
            self.check_object("", base, member.span)?;
            fields.push((String::new(), base, None));
        }
        for (declarator, width) in &member.declarators {
            let (name, span) = (declarator.name.as_str(), declarator.span);
            let ty = self.derive(base, &member.base, declarator)?.ty;
            self.needs_dimension(ty, declarator)?;
            if matches!(
                self.state.types.base(ty),
                Kind::Void | Kind::Function { .. }
            ) {
                let message = format!("cannot have void member: {name}");
                return Err(error("D_DECL_VOIDOBJ", span, message));
            }
            self.check_object(name, ty, span)?;
            if !name.is_empty() && fields.iter().any(|(known, ..)| known == name) {
                let message =
                    format!("failed to define member '{name}': Duplicate member or variable name");
                return Err(error("D_UNKNOWN", span, message));
            }
            let width = match width {
                Some(width) => Some(self.width(width, ty, name, span)?),
                None => None,
            };
            fields.push((name.to_owned(), ty, width));
        }
        Ok(())
    }

    /// Returns the width of a bit-field in bits.
    fn width(&mut self, width: &Expr, ty: Ty, name: &str, span: Span) -> Result<u32> {
        let Some(int) = self.state.types.int(ty) else {
            let message = format!("invalid type for bit-field: {}", shown(name));
            return Err(error("D_DECL_BFTYPE", span, message));
        };
        let bits = self.positive(width).ok_or_else(|| {
            let message = "positive integral constant expression expected as bit-field size";
            error("D_DECL_BFCONST", width.span, message)
        })?;
        match u32::try_from(bits) {
            Ok(bits) if bits <= u32::from(int.size) * 8 => Ok(bits),
            _ => {
                let message = format!("bit-field too big for type: {}", shown(name));
                Err(error("D_DECL_BFSIZE", span, message))
            }
        }
    }

    /// Returns the value of an integer constant expression; `None` if it is not one or is below 1.
    fn positive(&mut self, e: &Expr) -> Option<u64> {
        self.constant(e)
            .filter(|value| *value > 0)
            .and_then(|value| value.try_into().ok())
    }

    /// Returns the value of an integer constant expression; `None` if `e` is not one.
    pub(super) fn constant(&mut self, e: &Expr) -> Option<i64> {
        let value = self.expression(e).ok()?;
        self.state.types.int(value.ty)?;
        value.constant().map(|value| value as i64)
    }

    /// Applies the derivations of a declarator to its base type.
    fn derive(&mut self, base: Ty, written: &BaseType, declarator: &Declarator) -> Result<Derived> {
        let mut derived = Derived {
            ty: base,
            keys: None,
        };
        for derivation in declarator.derivations.iter().rev() {
            let ty = derived.ty;
            derived.ty = match derivation {
                Derivation::Pointer => {
                    let types = &mut self.state.types;
                    // Types of a process describe its own memory, so pointers to them are
                    // user-space pointers.
                    let userland = written.userland
                        || types.is_process_scope(written.module())
                        || types.is_of_process(ty);
                    types.declared_pointer_to(ty, userland)
                }
                Derivation::Array(size) => self.array(ty, size.as_ref(), declarator)?,
                Derivation::Function { params, variadic } => {
                    let params = self.parameters("function", params)?;
                    let params: Vec<Ty> = params.into_iter().map(|(_, ty)| ty).collect();
                    self.state.types.function_of(ty, &params, *variadic)
                }
                Derivation::Keys { variadic: true, .. } => {
                    let message = "array prototype may not use a variable-length argument list";
                    return Err(error("D_DECL_PROTO_VARARGS", declarator.span, message));
                }
                Derivation::Keys { keys, .. } => {
                    derived.keys = Some(self.parameters("array", keys)?);
                    ty
                }
            };
        }
        Ok(derived)
    }

    fn array(&mut self, element: Ty, size: Option<&Expr>, declarator: &Declarator) -> Result<Ty> {
        let span = declarator.span;
        self.needs_dimension(element, declarator)?;
        if self.dimensions(element) >= DIMENSIONS_MAX {
            let message = format!("array of more than {DIMENSIONS_MAX} dimensions");
            return Err(error("D_DECL_ARRBIG", span, message));
        }
        let Some(size) = size else {
            return Ok(self.state.types.array_of(element, None));
        };
        let Some(count) = self.positive(size) else {
            let message = "positive integral constant expression or tuple signature expected as array declaration subscript";
            return Err(match &size.kind {
                ast::ExprKind::Name { module, name } if self.is_unknown_type(size, name) => {
                    self.unknown_type(module.as_deref(), None, name, size.span)
                }
                _ => error("D_DECL_ARRSUB", size.span, message),
            });
        };
        match u32::try_from(count) {
            Ok(count) if u64::from(count) <= DIMENSION_MAX => {
                Ok(self.state.types.array_of(element, Some(count)))
            }
            _ => Err(error("D_DECL_ARRBIG", span, "array dimension too big")),
        }
    }

    /// Whether an array size that is a bare name was probably meant as a type: it has a type's
    /// suffix and does not resolve.
    fn is_unknown_type(&mut self, size: &Expr, name: &str) -> bool {
        name.ends_with(TYPE_SUFFIX) && self.expression(size).is_err()
    }

    /// Returns the number of dimensions of `ty`.
    fn dimensions(&self, ty: Ty) -> u32 {
        let (mut count, mut at) = (0, ty);
        while let Kind::Array(element, _) = *self.state.types.base(at) {
            (count, at) = (count + 1, element);
        }
        count
    }

    /// Returns names and types of the parameters of a `kind`, as messages call it. A lone `void`
    /// means no parameters, except that it is an error as the key of an `array`.
    pub(super) fn parameters(
        &mut self,
        kind: &str,
        params: &[TypeName],
    ) -> Result<Vec<(String, Ty)>> {
        let mut list = Vec::new();
        for (index, param) in params.iter().enumerate() {
            let name = &param.declarator.name;
            let refuse = |what: &str| {
                let name = if name.is_empty() { "(anonymous)" } else { name };
                let number = index + 1;
                let message = format!(
                    "{kind} prototype may not use parameter of type {what}: {name}, parameter #{number}"
                );
                Err(error("D_DECL_PROTO_TYPE", param.span, message))
            };
            let keyed = |derivation| matches!(derivation, &Derivation::Keys { .. });
            if param.declarator.derivations.iter().any(keyed) {
                return refuse("dynamic variable");
            }
            let ty = self.type_name(param)?;
            if self.state.types.resolve(ty) == Ty::VOID {
                match (kind, params.len()) {
                    ("array", _) => return refuse("void"),
                    (_, 1) if name.is_empty() => break,
                    (_, 1) => {
                        let message = format!("void parameter may not have a name: {name}");
                        return Err(error("D_DECL_PROTO_NAME", param.span, message));
                    }
                    _ => {
                        let message = "void must be sole parameter";
                        return Err(error("D_DECL_PROTO_VOID", param.span, message));
                    }
                }
            }
            list.push((name.clone(), ty));
        }
        Ok(list)
    }
}

/// Returns the type that C's type words name, or the error that says what is wrong with them.
fn words_type(words: &[&'static str], span: Span) -> Result<Ty> {
    if let Some(ty) = Types::from_words(words.iter().copied()) {
        return Ok(ty);
    }
    let has = |word: &str| words.contains(&word);
    let attributes = ["signed", "unsigned", "short", "long"];
    let (tag, message) = if has("void") && attributes.iter().any(|word| has(word)) {
        (
            "D_DECL_VOIDATTR",
            "invalid type declaration: attributes may not be used with void type",
        )
    } else if has("char") && (has("short") || has("long")) {
        (
            "D_DECL_CHARATTR",
            "invalid type declaration: short and long may not be used with char type",
        )
    } else if (has("float") || has("double")) && (has("signed") || has("unsigned")) {
        (
            "D_DECL_SIGNINT",
            "invalid type declaration: signed and unsigned may only be used with integer type",
        )
    } else if has("float") && has("long") {
        (
            "D_DECL_LONGINT",
            "invalid type declaration: long and long long may only be used with integer or floating-point type",
        )
    } else if has("short") && has("long") && words.iter().all(|word| attributes.contains(word)) {
        let name: String = attributes
            .iter()
            .filter(|attribute| has(attribute))
            .map(|attribute| format!("{attribute} "))
            .collect();
        let message = format!("failed to resolve type {name}: Unknown type name");
        return Err(error("D_UNKNOWN", span, message));
    } else {
        ("D_DECL_COMBO", "invalid type combination")
    };
    Err(error(tag, span, message))
}
