// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Types with names like a given one, for suggestions.
//!
//! All names are gone through, which is much work for the kernel's; it is done for programs that are wrong only.

use super::btf::{Btf, Type, TypeId};
use super::{Tag, Types};
use crate::diag::nearest;

impl Types<'_> {
    /// The name nearest to `name` among those of typedefs, or of the tags of one sort: the programs', D's own, and the
    /// kernel's.
    pub fn similar(&self, tag: Option<Tag>, name: &str) -> Option<String> {
        let mut names: Vec<&str> = match tag {
            None => self.typedefs.keys().map(String::as_str).collect(),
            // A tag without members may be there by an earlier mistake alone.
            Some(tag) => self
                .tags
                .iter()
                .filter(|((known, _), ty)| *known == tag && self.size(**ty).is_some())
                .map(|((_, name), _)| name.as_str())
                .collect(),
        };
        let kernel = self.world.btf("vmlinux");
        if let Some(btf) = &kernel {
            let ids = btf.ids().into_iter().flatten();
            names.extend(ids.filter_map(|id| name_of(btf, id, tag)));
        }
        nearest(name, names.into_iter()).map(str::to_owned)
    }
}

/// The name of a type of the kernel's that is a typedef, or has a tag of the sort.
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
