// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Compares the manual's tables of names with those of the compiler.

use super::{actions, aggfunc, builtin, call};
use crate::manual;
use dtrace_uapi::subr::Subr;
use std::collections::BTreeSet;

fn set<'a>(names: impl Iterator<Item = &'a str>) -> BTreeSet<String> {
    names.map(str::to_owned).collect()
}

#[test]
fn the_manual_tells_of_every_name() {
    let told = |section| manual::names(manual::LANGUAGE, section);
    assert_eq!(told("BUILT-IN VARIABLES"), set(builtin::names()));
    assert_eq!(told("ACTIONS"), set(actions::names()));
    assert_eq!(told("SUBROUTINES"), set(call::names()));
    let destructive = actions::ACTIONS.iter().filter(|row| row.is_destructive());
    let destructive = set(destructive.map(|row| row.name));
    let marked = manual::names_with(manual::LANGUAGE, "ACTIONS", "Destructive.");
    assert_eq!(marked, destructive);
    let destructive =
        call::names().filter(|name| call::find(name).is_some_and(Subr::is_destructive));
    let marked = manual::names_with(manual::LANGUAGE, "SUBROUTINES", "Destructive.");
    assert_eq!(marked, set(destructive));
    let functions = set(aggfunc::NAMES.iter().copied());
    assert_eq!(told("AGGREGATING FUNCTIONS"), functions);
}
