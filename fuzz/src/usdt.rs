// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Programs that declare their probes by notes in their files, or by DOF.

use dtrace::usdt::{self, Note};
use dtrace_uapi::process::PROBE_ARGS_MAX;

/// Reads the notes of a file. For any file, their names can be written in a description, and they
/// have few arguments.
pub fn notes(data: &[u8]) {
    usdt::parse(data).iter().for_each(check);
    usdt::parse_dof(data).iter().for_each(check);
}

/// The same for DOF that a program has registered, and for a section that consists of DOF.
pub fn programs(data: &[u8]) {
    let registered = usdt::dof::parse(data, 0x5555_0000_0000);
    registered.unwrap_or_default().iter().for_each(check);
    usdt::dof::parse_all(data).iter().for_each(check);
}

fn check(note: &Note) {
    assert!(!note.provider.is_empty() && !note.name.is_empty());
    assert!(note
        .provider
        .bytes()
        .chain(note.name.bytes())
        .all(|c| c.is_ascii_graphic() && c != b'/'));
    assert!(note.arguments.len() <= PROBE_ARGS_MAX);
    for (own, seen) in &note.types {
        assert!(!own.is_empty() && !seen.is_empty());
    }
}
