// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Types in C notation, for messages.

use super::{Kind, Ty, Types};

impl Types<'_> {
    /// Returns the type in C notation: `struct task_struct *`, `int (*)(void *)`.
    pub fn name(&self, ty: Ty) -> String {
        self.declaration(ty, "")
    }

    /// Returns a declaration of `name` with the type, in C notation: `char comm[16]`.
    pub fn declaration(&self, ty: Ty, name: &str) -> String {
        let mut inner = name.to_owned();
        let mut qualifiers = String::new();
        let mut at = ty;
        loop {
            at = match self.kind(at) {
                Kind::Const(target) => {
                    qualifiers.push_str("const ");
                    *target
                }
                Kind::Pointer { to, .. } => {
                    let words = std::mem::take(&mut qualifiers);
                    let words = if inner.is_empty() {
                        words.trim_end()
                    } else {
                        &words
                    };
                    inner = format!("*{words}{inner}");
                    if matches!(self.kind(*to), Kind::Array(..) | Kind::Function { .. }) {
                        inner = format!("({inner})");
                    }
                    *to
                }
                Kind::Array(element, count) => {
                    let count = count.map(|count| count.to_string()).unwrap_or_default();
                    inner.push_str(&format!("[{count}]"));
                    *element
                }
                Kind::Function {
                    ret,
                    params,
                    variadic,
                } => {
                    inner.push_str(&self.parameters(params, *variadic));
                    *ret
                }
                kind => {
                    let base = self.base_name(at, kind);
                    let space = if inner.is_empty() { "" } else { " " };
                    return format!("{qualifiers}{base}{space}{inner}");
                }
            };
        }
    }

    fn parameters(&self, params: &[Ty], variadic: bool) -> String {
        let mut texts: Vec<String> = params.iter().map(|&param| self.name(param)).collect();
        if variadic {
            texts.push("...".to_owned());
        } else if texts.is_empty() {
            texts.push("void".to_owned());
        }
        format!("({})", texts.join(", "))
    }

    /// Returns the name of a type that is not formed by a declarator.
    fn base_name(&self, ty: Ty, kind: &Kind) -> String {
        match kind {
            Kind::Void => "void".to_owned(),
            Kind::Int { name, .. } | Kind::Float { name, .. } | Kind::Typedef(name, _) => {
                name.to_string()
            }
            Kind::Inferred(shown) => self.name(*shown),
            Kind::String => "string".to_owned(),
            Kind::Stack(name) => (*name).to_owned(),
            Kind::Symbol => "_symaddr".to_owned(),
            Kind::Usymbol => "_usymaddr".to_owned(),
            Kind::Dynamic => "<DYN>".to_owned(),
            _ => match self.tag(ty) {
                Some((tag, "")) => format!("{} {{...}}", tag.word()),
                Some((tag, name)) => format!("{} {name}", tag.word()),
                None => String::new(),
            },
        }
    }
}
