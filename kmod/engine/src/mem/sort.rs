// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Sorting without recursion, allocation or panics. The sort of `core` recurses, for which a kernel
//! stack is too small, and objtool does not know that its panic functions do not return.
//!
//! Most input is in order except for a few items, which insertion sort moves to their places. If
//! that takes too many steps, heap sort does the rest.

/// Average number of insertion steps per item above which heap sort is cheaper.
const STEPS: usize = 4;

/// Sorts `items`, so that `before(a, b)` holds for no `a` that is placed after `b`. The order of
/// equal items is unspecified.
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

/// Sorts by insertion. Returns `false` if that takes too many steps; the items are then only partly
/// in order.
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

/// Moves the item at `root` down the heap that ends before `end`, until no child of it belongs
/// above it.
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
