// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Unwind tables and the files that they are compiled from.

use dtrace_unwind::{Frame, Memory, Place, Table, Walk, Word};

/// Maximum number of frames of a walk.
const FRAMES_MAX: usize = 512;

/// Any file is compiled to a valid table, and a walk by any table ends.
pub fn unwind(data: &[u8]) {
    if let Ok(table) = Table::check(data) {
        walk(&table, data);
    }
    if let Some(made) = dtrace::unwind::table_in(data) {
        let table = Table::check(&made).expect("a table");
        walk(&table, data);
    }
}

/// Memory that repeats these bytes.
struct Bytes<'a>(&'a [u8]);

impl Memory for Bytes<'_> {
    fn word(&self, address: u64, word: Word) -> Option<u64> {
        let from = address as usize % self.0.len().max(1);
        let bytes = self.0.get(from..)?.first_chunk::<8>()?;
        let found = u64::from_le_bytes(*bytes);
        Some(match word {
            Word::Four => found & 0xffff_ffff,
            Word::Eight => found,
        })
    }

    fn register(&self, n: u8) -> Option<u64> {
        self.word(n.into(), Word::Eight)
    }
}

fn walk(table: &Table<'_>, data: &[u8]) {
    let memory = Bytes(data);
    let walk = Walk::new(&memory, table.word());
    if let Some(evaluators) = table.evaluators() {
        for n in 0..100 {
            evaluators.cover(n << 12);
            evaluators.constant(n as usize);
        }
    }
    for start in 0..16 {
        let mut frame = Frame {
            ip: start * 0x123,
            sp: start,
            fp: Some(start * 8),
            is_exact: true,
            is_innermost: true,
            is_guess: false,
        };
        for _ in 0..FRAMES_MAX {
            // Most words of the memory are not addresses in the table's file, so reduce them.
            let rule = table.rule(frame.at() % 0x4000);
            let Ok(next) = walk.step(&frame, Place::Rule(rule)) else {
                break;
            };
            assert!(next.sp > frame.sp || next.is_exact);
            frame = next;
        }
    }
}
