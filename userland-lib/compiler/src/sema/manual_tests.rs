// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Compares the manual's tables of names with those of the compiler.

use super::{action, aggfunc, builtin, call};
use crate::manual;
use std::collections::BTreeSet;

fn set<'a>(names: impl Iterator<Item = &'a str>) -> BTreeSet<String> {
    names.map(str::to_owned).collect()
}

#[test]
fn the_manual_tells_of_every_name() {
    let told = |section| manual::names(manual::LANGUAGE, section);
    assert_eq!(told("BUILT-IN VARIABLES"), set(builtin::names()));
    assert_eq!(told("ACTIONS"), set(action::names()));
    assert_eq!(told("SUBROUTINES"), set(call::names()));
    let functions = set(aggfunc::NAMES.iter().copied());
    assert_eq!(told("AGGREGATING FUNCTIONS"), functions);
}
