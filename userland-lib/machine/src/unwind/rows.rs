// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Converts rules for address ranges to a table of file offsets.

use dtrace_files::elf::Text;
use dtrace_unwind::table::{MAGIC, PAGE, RULES_MAX, SIZE_MAX, VERSION};
use dtrace_unwind::{Rule, Word};
use std::collections::HashMap;

/// Maximum gap in bytes between two functions that counts as alignment padding. The first
/// function's rule extends over it.
const PADDING: u64 = 15;

/// Maximum number of address ranges with rules: ten times as many as the largest programs have.
const SPANS_MAX: usize = 4 << 20;

/// Maximum number of file pages from the first row to the last.
const PAGES_MAX: u64 = 1 << 20;

/// A range of file offsets, `end` exclusive, and the rule of its instructions.
struct Span {
    start: u64,
    end: u64,
    rule: [u8; dtrace_unwind::rule::SIZE],
}

/// The rows of a table under construction.
pub(super) struct Rows {
    places: Vec<Text>,
    spans: Vec<Span>,
}

impl Rows {
    /// Creates an empty set of rows for a file whose code is in `places`.
    pub fn new(places: Vec<Text>) -> Self {
        let spans = Vec::new();
        Self { places, spans }
    }

    /// Adds the rule of the instructions in an address range, `end` exclusive. Ranges outside of
    /// the file's code, and those over the limit, are ignored.
    pub fn add(&mut self, start: u64, end: u64, rule: Rule) {
        // A rule that has no encoding becomes an unknown one, so that no neighbour's rule covers
        // its instructions.
        let rule = rule.encode().or_else(|| Rule::UNKNOWN.encode());
        let place = self.places.iter().find(|place| {
            let from = start.wrapping_sub(place.address);
            from < place.size && end.wrapping_sub(start) <= place.size - from
        });
        let has_room = start < end && self.spans.len() < SPANS_MAX;
        if let (Some(place), Some(rule), true) = (place, rule, has_room) {
            let moved = |address: u64| {
                address
                    .wrapping_sub(place.address)
                    .wrapping_add(place.offset)
            };
            let (start, end) = (moved(start), moved(end));
            self.spans.push(Span { start, end, rule });
        }
    }

    /// Builds the table. `None` if there are no rules or the table would exceed its limits.
    pub fn into_table(mut self, word: Word) -> Option<Vec<u8>> {
        self.spans.sort_by_key(|span| span.start);
        self.spans.first()?;
        let unknown = Rule::UNKNOWN.encode()?;
        // The offset from which each rule applies, and the rule.
        let mut rows: Vec<(u64, [u8; 8])> = Vec::new();
        let mut end = 0;
        let mut put = |start, rule| {
            if rows.last().is_none_or(|last| last.1 != rule) {
                rows.push((start, rule));
            }
        };
        for span in &self.spans {
            // Where ranges overlap, the one that starts first wins.
            let start = span.start.max(end);
            if start >= span.end {
                continue;
            }
            if end > 0 && start - end > PADDING {
                put(end, unknown);
            }
            put(start, span.rule);
            end = span.end;
        }
        put(end, unknown);
        encode(&rows, word)
    }
}

/// Encodes a table of these rows, which must be in ascending order of offset.
fn encode(rows: &[(u64, [u8; 8])], word: Word) -> Option<Vec<u8>> {
    let first_page = rows.first()?.0 / PAGE;
    let pages = rows.last()?.0 / PAGE - first_page + 1;
    // A file may claim to have code at offsets that lie beyond its end.
    if pages > PAGES_MAX {
        return None;
    }
    let mut rules: Vec<u8> = Vec::new();
    let mut known = HashMap::new();
    let mut index = Vec::new();
    let mut body = Vec::with_capacity(rows.len() * 4);
    for (n, (offset, rule)) in rows.iter().enumerate() {
        let page = offset / PAGE - first_page;
        while index.len() as u64 <= page {
            index.push(n as u32);
        }
        let next = known.len();
        let number = *known.entry(*rule).or_insert_with(|| {
            rules.extend(rule);
            next
        });
        if number >= RULES_MAX {
            return None;
        }
        body.extend(((offset % PAGE) as u16).to_le_bytes());
        body.extend((number as u16).to_le_bytes());
    }
    index.push(rows.len() as u32);
    let mut table = Vec::from(MAGIC);
    table.extend(VERSION.to_le_bytes());
    table.extend([word.bytes() as u8, 0]);
    for number in [first_page, pages, rows.len() as u64, known.len() as u64] {
        table.extend(u32::try_from(number).ok()?.to_le_bytes());
    }
    index.iter().for_each(|n| table.extend(n.to_le_bytes()));
    table.extend(body);
    table.extend(rules);
    (table.len() <= SIZE_MAX).then_some(table)
}
