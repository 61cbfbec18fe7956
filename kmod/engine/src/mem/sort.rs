// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Sorting without recursion, allocation or panics. The sort of `core` recurses, which a kernel stack is too small to be asked for, and
//! its panics are unknown to objtool.
//!
//! Most of what is sorted is in order but for a few, which are inserted where they belong; what is not is sorted by a heap.

/// How many steps an item may be moved by insertion, on average, before a heap is cheaper.
const STEPS: usize = 4;

/// Sorts `items`, so that `before(a, b)` is true of no `b` that comes before an `a`.
pub fn sort<T>(items: &mut [T], before: impl Fn(&T, &T) -> bool) {
    if insert_all(items, &before) {
        return;
    }
    let len = items.len();
    for root in (0..len / 2).rev() {
        sift_down(items, root, len, &before);
    }
    for end in (1..len).rev() {
        items.swap(0, end);
        sift_down(items, 0, end, &before);
    }
}

/// Moves each item before those that it belongs before; `false`: that takes too many steps, and was not done for all.
fn insert_all<T>(items: &mut [T], before: &impl Fn(&T, &T) -> bool) -> bool {
    let mut left = items.len().saturating_mul(STEPS);
    for end in 1..items.len() {
        let mut at = end;
        while let (Some(item), Some(previous)) = (items.get(at), items.get(at.wrapping_sub(1))) {
            if !before(item, previous) {
                break;
            }
            if left == 0 {
                return false;
            }
            left -= 1;
            items.swap(at, at - 1);
            at -= 1;
        }
    }
    true
}

/// Moves `root` down until none of its children, up to `end`, belongs above it.
fn sift_down<T>(items: &mut [T], mut root: usize, end: usize, before: &impl Fn(&T, &T) -> bool) {
    loop {
        let left = 2 * root + 1;
        let right = left + 1;
        let (Some(mut child), mut at) = (items.get(left).filter(|_| left < end), left) else {
            return;
        };
        if let Some(other) = items.get(right).filter(|_| right < end) {
            if before(child, other) {
                (child, at) = (other, right);
            }
        }
        match items.get(root) {
            Some(parent) if before(parent, child) => items.swap(root, at),
            _ => return,
        }
        root = at;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: if cfg!(miri) { 3 } else { 256 },
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        #[test]
        fn sorts_like_core(mut items in prop::collection::vec(any::<u16>(), 0..200)) {
            let mut want = items.clone();
            want.sort_unstable();
            sort(&mut items, |a, b| a < b);
            prop_assert_eq!(items, want);
        }

        #[test]
        fn sorts_what_is_nearly_in_order(
            len in 1..2000_usize,
            odd in prop::collection::vec((any::<prop::sample::Index>(), any::<u16>()), 0..6),
        ) {
            let mut items: Vec<u16> = (0..len as u16).collect();
            for (at, item) in odd {
                items[at.index(len)] = item;
            }
            let mut want = items.clone();
            want.sort_unstable();
            sort(&mut items, |a, b| a < b);
            prop_assert_eq!(items, want);
        }
    }
}
