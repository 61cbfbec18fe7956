// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Types in C notation.
//!
//! A C declarator is read from the name outwards, and the text is built in the same order. It
//! starts with the innermost part and adds what surrounds it: a pointer on the left, an array or a
//! function on the right. A pointer to an array or a function is put in parentheses.

use super::{Btf, Malformed, Proto, Qualifier, Type, TypeId};

/// Maximum number of types that one text may name or pass through, because prototypes can refer to
/// each other without end.
const MAX_STEPS: u32 = 256;

impl Btf {
    /// Returns the type in C notation: `struct task_struct *`, `int (*)(void *)`.
    pub fn text(&self, id: TypeId) -> Result<String, Malformed> {
        self.declaration(id, "")
    }

    /// Returns a declaration of `name` with the type, in C notation: `char comm[16]`.
    pub fn declaration(&self, id: TypeId, name: &str) -> Result<String, Malformed> {
        self.declare(id, name.to_owned(), &mut { MAX_STEPS })
    }

    /// Declares `inner`. Each type on the way takes one of the remaining `steps`.
    fn declare(&self, id: TypeId, mut inner: String, steps: &mut u32) -> Result<String, Malformed> {
        let mut at = id;
        let mut qualifiers = Vec::new();
        loop {
            *steps = steps.checked_sub(1).ok_or(Malformed::Cycle(id))?;
            let ty = self.get(at)?;
            at = match ty {
                Type::Qualified(qualifier, target) => {
                    qualifiers.extend(word(qualifier));
                    target
                }
                Type::Ptr(target) => {
                    inner = pointer(&mut qualifiers, inner);
                    if matches!(self.get(target)?, Type::Array(_) | Type::FuncProto(_)) {
                        inner = format!("({inner})");
                    }
                    target
                }
                Type::Array(array) => {
                    inner.push_str(&format!("[{}]", array.count));
                    array.element
                }
                Type::FuncProto(proto) => {
                    inner.push_str(&self.parameters(proto, steps)?);
                    proto.ret
                }
                Type::Var { ty, .. } => ty,
                Type::Func { proto, .. } => proto,
                _ => return Ok(join(&qualifiers, &base(ty), &inner)),
            };
        }
    }

    fn parameters(&self, proto: Proto<'_>, steps: &mut u32) -> Result<String, Malformed> {
        let mut texts = proto
            .params()
            .map(|param| self.declare(param.ty, String::new(), steps))
            .collect::<Result<Vec<_>, _>>()?;
        if proto.variadic {
            texts.push("...".to_owned());
        } else if texts.is_empty() {
            texts.push("void".to_owned());
        }
        Ok(format!("({})", texts.join(", ")))
    }
}

/// Returns the keyword of a qualifier. Tags have none in the C that D reads.
fn word(qualifier: Qualifier<'_>) -> Option<&'static str> {
    match qualifier {
        Qualifier::Const => Some("const"),
        Qualifier::Volatile => Some("volatile"),
        Qualifier::Restrict => Some("restrict"),
        Qualifier::Tag(_) => None,
    }
}

/// Puts a pointer with these qualifiers before `inner`.
fn pointer(qualifiers: &mut Vec<&'static str>, inner: String) -> String {
    let words = qualifiers.join(" ");
    qualifiers.clear();
    let space = if words.is_empty() || inner.is_empty() {
        ""
    } else {
        " "
    };
    format!("*{words}{space}{inner}")
}

/// Returns the name of a type that is not formed by a declarator.
fn base(ty: Type<'_>) -> String {
    let tagged = |word: &str, name: &str| match name {
        "" => format!("{word} {{...}}"),
        _ => format!("{word} {name}"),
    };
    match ty {
        Type::Void => "void".to_owned(),
        Type::Int(int) => int.name.to_owned(),
        Type::Float { name, .. } | Type::Typedef { name, .. } | Type::DeclTag { name, .. } => {
            name.to_owned()
        }
        Type::Struct(composite) => tagged("struct", composite.name),
        Type::Union(composite) => tagged("union", composite.name),
        Type::Enum(enumeration) => tagged("enum", enumeration.name),
        Type::Fwd { name, is_union } => tagged(if is_union { "union" } else { "struct" }, name),
        Type::DataSec(section) => section.name.to_owned(),
        _ => "?".to_owned(),
    }
}

fn join(qualifiers: &[&str], base: &str, inner: &str) -> String {
    let mut words = qualifiers.to_vec();
    words.push(base);
    if !inner.is_empty() {
        words.push(inner);
    }
    words.join(" ")
}
