// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Finds types with a name like a given one, for suggestions.
//!
//! This compares all names, which is expensive for those of the kernel. It is done only for
//! programs that have an error.

use super::btf::{Btf, Type, TypeId};
use super::{Tag, Types, VMLINUX};
use dtrace_files::nearest::nearest;

impl Types<'_> {
    /// Returns the name nearest to `name` among the typedefs, or among the tags of one kind: those
    /// of the programs, of D itself and of the kernel.
    pub fn similar(&self, tag: Option<Tag>, name: &str) -> Option<String> {
        let mut names: Vec<&str> = match tag {
            None => self.typedefs.keys().map(String::as_str).collect(),
            // A tag without members may exist only because of an earlier mistake.
            Some(tag) => self
                .tags
                .iter()
                .filter(|((known, _), ty)| *known == tag && self.size(**ty).is_some())
                .map(|((_, name), _)| name.as_str())
                .collect(),
        };
        let kernel = self.world.btf(VMLINUX);
        if let Some(btf) = &kernel {
            let ids = btf.ids().into_iter().flatten();
            names.extend(ids.filter_map(|id| name_of(btf, id, tag)));
        }
        nearest(name, names.into_iter()).map(str::to_owned)
    }
}

/// Returns the name of a kernel type if it is a typedef, or has a tag of the requested kind.
fn name_of(btf: &Btf, id: TypeId, tag: Option<Tag>) -> Option<&str> {
    let fits = match (btf.get(id).ok()?, tag) {
        (Type::Typedef { .. }, tag) => tag.is_none(),
        (Type::Struct(_), tag) => tag == Some(Tag::Struct),
        (Type::Union(_), tag) => tag == Some(Tag::Union),
        (Type::Enum(_), tag) => tag == Some(Tag::Enum),
        _ => false,
    };
    let name = if fits { btf.name(id).ok()? } else { "" };
    (!name.is_empty()).then_some(name)
}
