// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Parses types from short C texts, such as those in the argument descriptions of probes:
//! `struct task_struct *`.
//!
//! The text consists of specifiers, stars and brackets. More complex types (a pointer to a
//! function, a list of members) come from BTF or from a program, never from such a text.

use super::{Kind, Tag, Ty, Types};

impl Types<'_> {
    /// Parses a type. Returns `None` if the text is not a type, or if it names a type that does not
    /// exist.
    pub fn parse(&mut self, text: &str) -> Option<Ty> {
        let declarator = text.find(['*', '[']).unwrap_or(text.len());
        let (specifiers, mut rest) = text.split_at(declarator);
        let mut userland = false;
        let mut ty = self.specifiers(specifiers, &mut userland)?;
        loop {
            rest = rest.trim_start();
            if let Some(after) = rest.strip_prefix('*') {
                ty = if std::mem::take(&mut userland) {
                    self.user_pointer_to(ty)
                } else {
                    self.pointer_to(ty)
                };
                rest = after;
            } else if let Some(after) = rest.strip_prefix("const") {
                ty = self.const_of(ty);
                rest = after;
            } else {
                return self.brackets(ty, rest);
            }
        }
    }

    fn specifiers(&mut self, text: &str, userland: &mut bool) -> Option<Ty> {
        let mut is_const = false;
        let words: Vec<&str> = text
            .split_whitespace()
            .filter(|&word| match word {
                "const" => {
                    is_const = true;
                    false
                }
                "userland" => {
                    *userland = true;
                    false
                }
                _ => word != "volatile",
            })
            .collect();
        let ty = match words[..] {
            ["struct", name] => self.scoped_tag(Tag::Struct, name),
            ["union", name] => self.scoped_tag(Tag::Union, name),
            ["enum", name] => self.scoped_tag(Tag::Enum, name),
            ["string"] => Some(Ty::STRING),
            _ => match Self::from_words(words.iter().copied()) {
                Some(ty) => Some(ty),
                None if words.len() == 1 => {
                    let (module, name) = scope(words[0]);
                    self.lookup_typedef(module, name)
                }
                None => None,
            },
        }?;
        Some(if is_const { self.const_of(ty) } else { ty })
    }

    fn scoped_tag(&mut self, tag: Tag, text: &str) -> Option<Ty> {
        let (module, name) = scope(text);
        self.lookup_tag(tag, module, name)
    }

    /// Returns the type of the arrays of `ty` whose sizes `text` gives: `[2][3]`.
    fn brackets(&mut self, ty: Ty, text: &str) -> Option<Ty> {
        let text = text.trim();
        let Some(inner) = text.strip_prefix('[') else {
            return text.is_empty().then_some(ty);
        };
        let (count, rest) = inner.split_once(']')?;
        let count = match count.trim() {
            "" => None,
            number => Some(number.parse().ok()?),
        };
        let element = self.brackets(ty, rest)?;
        (!matches!(self.kind(element), Kind::Array(_, None))).then(|| self.array_of(element, count))
    }
}

/// Splits `` module`name `` into the module and the name.
fn scope(text: &str) -> (Option<&str>, &str) {
    match text.split_once('`') {
        Some((module, name)) => (Some(module), name),
        None => (None, text),
    }
}
