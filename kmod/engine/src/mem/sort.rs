// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Sorting without recursion, allocation or panics: a heap sort. The sort of `core` recurses, which a kernel stack is
//! too small to be asked for, and its panics are unknown to objtool.

/// Sorts `items`, so that `before(a, b)` is true of no `b` that comes before an `a`.
pub fn sort<T>(items: &mut [T], before: impl Fn(&T, &T) -> bool) {
    let len = items.len();
    for root in (0..len / 2).rev() {
        sift_down(items, root, len, &before);
    }
    for end in (1..len).rev() {
        items.swap(0, end);
        sift_down(items, 0, end, &before);
    }
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
    }
}
