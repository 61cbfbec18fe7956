// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Functions with probes of which many objects bring copies: inline functions of C++, and others in
//! COMDAT groups.
//!
//! The linker keeps the copy of one object. The DOF covers all objects and is linked with whichever
//! copy that is, so the sites must be the same in all copies.

use super::calls::{Replaced, Site};
use std::collections::{BTreeMap, BTreeSet};

/// Identifies the copies of a function: its name, and its group if the name is local to the object.
type Function<'s> = (&'s str, Option<&'s str>);
/// The sites of a copy: provider, probe, offset, and whether it is an is-enabled site.
type Copy<'s> = BTreeSet<(&'s str, &'s str, u32, bool)>;

/// Returns a function of which two objects bring copies with different sites, and the indices of
/// these objects.
pub fn differing(objects: &[Replaced]) -> Option<(&str, [usize; 2])> {
    let all: Vec<BTreeMap<Function<'_>, Copy<'_>>> = objects.iter().map(copies).collect();
    for (n, object) in objects.iter().enumerate() {
        for site in &object.sites {
            let Some(group) = &site.group else {
                continue;
            };
            let function = function(site);
            let is_brought = |other: &Replaced| {
                other.groups.contains(group)
                    || !site.is_local && other.functions.contains(&site.func)
            };
            let mut others = objects.iter().zip(&all);
            let differs = others.position(|(other, copies)| {
                is_brought(other) && copies.get(&function) != all[n].get(&function)
            });
            if let Some(other) = differs {
                return Some((&site.func, [n.min(other), n.max(other)]));
            }
        }
    }
    None
}

fn function(site: &Site) -> Function<'_> {
    let group = site.group.as_deref().filter(|_| site.is_local);
    (&site.func, group)
}

/// The sites of those functions of an object of which other objects may bring copies.
fn copies(object: &Replaced) -> BTreeMap<Function<'_>, Copy<'_>> {
    let mut copies: BTreeMap<Function<'_>, Copy<'_>> = BTreeMap::new();
    let is_shared = |site: &&Site| !site.is_local || site.group.is_some();
    for site in object.sites.iter().filter(is_shared) {
        let copy = copies.entry(function(site)).or_default();
        copy.insert((&site.provider, &site.probe, site.offset, site.asks));
    }
    copies
}
