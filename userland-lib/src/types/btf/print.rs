// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Types as C writes them.
//!
//! C's declarators are written from the name outwards, and so is the text: it starts with the innermost part and
//! wraps what is around it, a pointer before it, an array or a function behind it, in parentheses where a pointer is
//! followed by either.

use super::{Btf, Malformed, Proto, Qualifier, Type, TypeId};

/// How many types one text may name or pass: prototypes of prototypes could go on for ever.
const MAX_STEPS: u32 = 256;

impl Btf {
    /// The type as C text: `struct task_struct *`, `int (*)(void *)`.
    pub fn text(&self, id: TypeId) -> Result<String, Malformed> {
        self.declaration(id, "")
    }

    /// A declaration of `name` with the type, as C text: `char comm[16]`.
    pub fn declaration(&self, id: TypeId, name: &str) -> Result<String, Malformed> {
        self.declare(id, name.to_owned(), &mut { MAX_STEPS })
    }

    /// Declares `inner`, taking from `steps` for every type on the way.
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

/// The word of a qualifier. Tags have none in C as D reads it.
fn word(qualifier: Qualifier<'_>) -> Option<&'static str> {
    match qualifier {
        Qualifier::Const => Some("const"),
        Qualifier::Volatile => Some("volatile"),
        Qualifier::Restrict => Some("restrict"),
        Qualifier::Tag(_) => None,
    }
}

/// `inner` as what a pointer, of these qualifiers, points with.
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

/// The name of a type that no declarator makes.
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
