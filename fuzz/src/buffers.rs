// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Buffers of any size and policy under any sequence of records: the guarantees of each policy must
//! hold.

use crate::common::tracing::{filled, ring, switched};

/// Maximum number of firings. More than needed to wrap around the largest buffer several times.
const LONGEST: usize = 400;

/// The input: policy, size (2 bytes), the sizes of three clauses' records, then one byte for each
/// firing.
pub fn buffers(data: &[u8]) {
    let [policy, low, high, a, b, c, firings @ ..] = data else {
        return;
    };
    let size = u64::from(u16::from_le_bytes([*low, *high]) % 1024);
    let extra = [a, b, c].map(|n| u32::from(*n) + 1);
    let firings = firings.iter().take(LONGEST);
    let firings: Vec<(usize, bool)> = firings
        .map(|byte| (usize::from(byte % 3), byte >= &224))
        .collect();
    match policy % 3 {
        0 => switched(size, &extra, &firings),
        1 => filled(size, &extra, &firings),
        _ => ring(size, &extra, &firings),
    }
}
