// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Finds variables by id and scope.
//!
//! An image may declare as many variables as there are ids, and use one in each instruction. So the
//! look-up is a tree over the bits of id and scope: all keys below a node agree with its key in the
//! bits up to it. Whatever was declared, and in whichever order, no path is longer than the number
//! of these bits. A hash table could be filled so that all keys collide.

use crate::error::NoMem;
use crate::mem::Vec;

/// Maps variables to their numbers.
#[derive(Debug, Default)]
pub struct Index {
    nodes: Vec<Node>,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    key: u64,
    number: u32,
    /// The child nodes by the next bit. 0 means none, because node 0 is the root.
    next: [u32; 2],
}

/// Combines id and scope. The lowest bits, which are used first, differ most.
fn key(id: u32, scope: u8) -> u64 {
    u64::from(scope) << 32 | u64::from(id)
}

/// Where a missing variable would be attached.
/// The node above it.
struct Vacancy {
    /// The side of that node.
    node: usize,
    side: usize,
}

impl Index {
    /// Returns a copy to add variables to.
    pub fn copy(&self) -> Result<Self, NoMem> {
        let nodes = Vec::copy_of(&self.nodes)?;
        Ok(Self { nodes })
    }

    /// Returns the number of a variable.
    pub fn find(&self, id: u32, scope: u8) -> Option<usize> {
        self.look(key(id, scope)).ok()
    }

    /// Adds a variable with its number. If the variable is there already, nothing changes, and the
    /// number that it has is returned.
    pub fn add(&mut self, id: u32, scope: u8, number: usize) -> Result<Option<usize>, NoMem> {
        let key = key(id, scope);
        let place = match self.look(key) {
            Ok(known) => return Ok(Some(known)),
            Err(place) => place,
        };
        let at = u32::try_from(self.nodes.len()).map_err(|_| NoMem)?;
        self.nodes.push(Node {
            key,
            number: u32::try_from(number).map_err(|_| NoMem)?,
            next: [0; 2],
        })?;
        let above = self.nodes.get_mut(place.node).filter(|_| at != 0);
        if let Some(next) = above.and_then(|node| node.next.get_mut(place.side)) {
            *next = at;
        }
        Ok(None)
    }

    fn look(&self, key: u64) -> Result<usize, Vacancy> {
        let mut place = Vacancy { node: 0, side: 0 };
        let mut bits = key;
        while let Some(node) = self.nodes.get(place.node) {
            if node.key == key {
                return Ok(node.number as usize);
            }
            place.side = (bits & 1) as usize;
            bits >>= 1;
            match node.next.get(place.side) {
                Some(0) | None => break,
                Some(next) => place.node = *next as usize,
            }
        }
        Err(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: if cfg!(miri) { 3 } else { 64 },
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        /// Ids are taken from a few or from all, so that both repeated and new ones occur.
        #[test]
        fn finds_what_a_map_finds(
            vars in prop::collection::vec((prop_oneof![0..9_u32, any::<u32>()], 0..4_u8), 0..300),
            others in prop::collection::vec((any::<u32>(), any::<u8>()), 20),
        ) {
            let mut map = BTreeMap::new();
            let mut index = Index::default();
            for (number, (id, scope)) in vars.iter().enumerate() {
                let known = map.get(&(*id, *scope)).copied();
                map.entry((*id, *scope)).or_insert(number);
                prop_assert_eq!(index.add(*id, *scope, number), Ok(known));
            }
            for (id, scope) in vars.into_iter().chain(others) {
                prop_assert_eq!(index.find(id, scope), map.get(&(id, scope)).copied());
            }
        }
    }

    /// All ids of one scope, in ascending order, which makes an unbalanced tree of comparisons
    /// long.
    #[test]
    fn no_way_is_longer_than_an_id() {
        let mut index = Index::default();
        let ids = 0..if cfg!(miri) { 100 } else { 0x10000 };
        for id in ids.clone() {
            index.add(id, 1, id as usize).unwrap();
        }
        let depth = |id: u32| {
            let (mut at, mut bits, mut depth) = (0, key(id, 1), 0);
            while index.nodes[at].key != key(id, 1) {
                at = index.nodes[at].next[(bits & 1) as usize] as usize;
                (bits, depth) = (bits >> 1, depth + 1);
            }
            depth
        };
        assert!(ids.map(depth).max().unwrap() <= 17);
    }

    #[test]
    fn a_copy_knows_nothing_of_what_comes_later() {
        let mut index = Index::default();
        index.add(0x500, 0, 0).unwrap();
        let copy = index.copy().unwrap();
        index.add(0x501, 0, 1).unwrap();
        assert_eq!((copy.find(0x500, 0), copy.find(0x501, 0)), (Some(0), None));
        assert_eq!(index.find(0x501, 0), Some(1));
    }
}
