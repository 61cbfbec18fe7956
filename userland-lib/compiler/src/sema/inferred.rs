// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Types of undeclared integer variables, of the keys of aggregations, and of stack values.
//!
//! An undeclared integer variable has 64 bits, so that no value assigned to it is truncated.
//! Whether it is signed, and as which type it is shown, follows from all assignments to it in all
//! programs of a compiler: C's conversions join the types of the values. Code generated before the
//! last assignment is known may be wrong. [`Inferred`] therefore notes what it has learned, and the
//! [compiler](crate::compile) starts again with that. Types only grow, so this ends.
//!
//! So do the types of stack values: if a program makes a value of a user stack, they all have room
//! for frames of interpreted code.

use super::variable::Table;
use super::Sema;
use crate::hir::{Place, VarRef, VarScope};
use dtrace_types::{Ty, Types};
use std::collections::HashMap;

/// Types that differ from those of the first use. They are C's own types, which every table of
/// types has.
#[derive(Clone, Debug, Default)]
pub(crate) struct Inferred {
    variables: HashMap<(VarScope, String), Ty>,
    /// By aggregation and index of the key: the type as which the key is shown, and whether it has
    /// 64 bits whatever that type is.
    keys: HashMap<(String, usize), (Ty, bool)>,
    /// Whether stack values have room for frames of interpreted code.
    stack_room: bool,
    /// Whether something was learned since the last call of [`Inferred::take_changed`].
    changed: bool,
}

impl Inferred {
    /// Whether something was learned since the last call.
    pub(crate) fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// Returns the type of a new variable whose first value is of type `ty`.
    pub(super) fn variable(&self, scope: VarScope, name: &str, ty: Ty) -> Ty {
        let known = self.variables.get(&(scope, name.to_owned()));
        known.copied().unwrap_or(ty)
    }

    /// Returns the type of key `index` of an aggregation whose first value for it is of type `ty`.
    pub(super) fn key(&self, types: &mut Types<'_>, name: &str, index: usize, ty: Ty) -> Ty {
        match self.keys.get(&(name.to_owned(), index)) {
            Some(&(shown, true)) if types.int(ty).is_some() => types.inferred(shown),
            Some(&(shown, false)) if types.int(ty).is_some() => shown,
            _ => ty,
        }
    }

    /// Gives existing variables the types learned since they were added, and stack values the room
    /// that they need. Returns whether a type changed.
    pub(super) fn apply(&self, variables: &mut Table, types: &mut Types<'_>) -> bool {
        let mut changed = self.stack_room && !types.has_stack_room() && types.has_stacks();
        if self.stack_room {
            types.set_stack_room();
        }
        for ((scope, name), ty) in &self.variables {
            changed |= variables.widen(*scope, name, types.inferred(*ty));
        }
        changed
    }

    /// Whether a key type was learned for an aggregation that `known` accepts.
    pub(super) fn has_keys_of(&self, mut known: impl FnMut(&str) -> bool) -> bool {
        self.keys.keys().any(|(name, _)| known(name))
    }
}

impl Sema<'_, '_> {
    /// Notes that a user stack is a value.
    pub(super) fn note_user_stack(&mut self) {
        if self.settings.interpreted && !self.state.types.has_stack_room() {
            self.state.inferred.stack_room = true;
            self.state.inferred.changed = true;
        }
    }

    /// Notes that the variable `place` is assigned a value of type `ty`. Has no effect on declared
    /// variables.
    pub(super) fn note_type(&mut self, place: &Place, ty: Ty) {
        let (Place::Var(VarRef { name, scope, .. })
        | Place::Element(VarRef { name, scope, .. }, _)) = place
        else {
            return;
        };
        let Some(known) = self.state.variables.find(*scope, name) else {
            return;
        };
        if !known.is_inferred {
            return;
        }
        let known = self.state.inferred.variable(*scope, name, known.place.ty);
        let types = &self.state.types;
        let (Some(joined), Some(int)) = (types.joined(known, ty), types.int(types.shown(known)))
        else {
            return;
        };
        if types.int(joined) != Some(int) {
            let inferred = &mut self.state.inferred;
            inferred.variables.insert((*scope, name.clone()), joined);
            inferred.changed = true;
        }
    }

    /// Notes that key `index` of an aggregation, which is of type `known`, gets a value of type
    /// `ty`.
    pub(super) fn note_key(&mut self, name: &str, index: usize, known: Ty, ty: Ty) {
        let types = &self.state.types;
        let (Some(old), Some(new)) = (types.int(known), types.int(ty)) else {
            return;
        };
        if new.size <= old.size && types.size(types.shown(ty)) <= types.size(types.shown(known)) {
            return;
        }
        let is_inferred = |ty: Ty| types.shown(ty) != ty;
        let (Some(joined), open) = (
            types.joined(known, ty),
            is_inferred(known) || is_inferred(ty),
        ) else {
            return;
        };
        let keys = &mut self.state.inferred.keys;
        let learned = (c_type(types, joined), open);
        if keys.insert((name.to_owned(), index), learned) != Some(learned) {
            self.state.inferred.changed = true;
        }
    }
}

/// Returns C's own type of the size and signedness of `ty`; types smaller than `int` become `int`.
fn c_type(types: &Types<'_>, ty: Ty) -> Ty {
    match types.int(ty).map(|int| (int.size, int.signed)) {
        Some((8, false)) => Ty::ULONG,
        Some((8, true)) => Ty::LONG,
        Some((4, false)) => Ty::UINT,
        _ => Ty::INT,
    }
}
