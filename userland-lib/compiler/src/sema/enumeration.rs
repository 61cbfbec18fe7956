// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Enumerations: an enumerator is one more than its predecessor, or a constant expression that may
//! name earlier enumerators.

use super::declare::error;
use super::Sema;
use crate::diag::Result;
use crate::source::Span;
use crate::syntax::ast::Enumerator;
use dtrace_types::{Tag, Ty};
use std::collections::HashSet;

impl Sema<'_, '_> {
    /// Returns the type of an enumeration, which is declared if `items` are given.
    pub(super) fn enum_type(
        &mut self,
        module: Option<&str>,
        tag: Option<&str>,
        items: Option<&[Enumerator]>,
        span: Span,
    ) -> Result<Ty> {
        let Some(items) = items else {
            let name = tag.unwrap_or_default();
            return self
                .state
                .types
                .lookup_tag(Tag::Enum, module, name)
                .ok_or_else(|| self.unknown_type(module, Some(Tag::Enum), name, span));
        };
        // Earlier enumerators are bound as names for the expressions that follow. The bindings of
        // an enclosing inline or translator are not visible.
        let outer = std::mem::take(&mut self.bindings);
        let values = self.enumerators(items);
        self.bindings = outer;
        self.state
            .types
            .declare_enum(tag, values?)
            .map_err(|message| error("D_DECL_TYPERED", span, message))
    }

    fn enumerators(&mut self, items: &[Enumerator]) -> Result<Vec<(String, i64)>> {
        let mut values = Vec::new();
        let mut names = HashSet::new();
        let mut next = 0i64;
        for Enumerator {
            name,
            value,
            span,
            next: end,
        } in items
        {
            if let Some(value) = value {
                next = self.constant(value).ok_or_else(|| {
                    let message = format!(
                        "enumerator '{name}' must be assigned to an integral constant expression"
                    );
                    error("D_DECL_ENCONST", value.span, message).counted_at(*end)
                })?;
            }
            if i32::try_from(next).is_err() {
                let message = format!("enumerator '{name}' value overflows INT_MAX ({})", i32::MAX);
                return Err(error("D_DECL_ENOFLOW", *span, message).counted_at(*end));
            }
            if !names.insert(name) {
                let message = format!(
                    "failed to define enumerator '{name}': Duplicate member or variable name"
                );
                return Err(error("D_UNKNOWN", *span, message));
            }
            if self.state.types.declared_constant(name).is_some() {
                let message = format!("identifier redeclared: {name}");
                return Err(error("D_DECL_IDRED", *span, message));
            }
            values.push((name.clone(), next));
            let constant = crate::hir::Expr::int(next as u64, Ty::INT, *span);
            self.bindings.push((name.clone(), constant));
            next += 1;
        }
        Ok(values)
    }
}
