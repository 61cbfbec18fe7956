// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Files of programs, whose notes name probes.

use dtrace::usdt;

/// Reads a file's notes: whatever it says, they have names that a description spells, and few arguments.
pub fn notes(data: &[u8]) {
    for note in usdt::parse(data) {
        assert!(!note.provider.is_empty() && !note.name.is_empty());
        assert!(note
            .provider
            .bytes()
            .chain(note.name.bytes())
            .all(|c| c.is_ascii_graphic() && c != b'/'));
        assert!(note.arguments.len() <= dtrace_uapi::process::PROBE_ARGS_MAX);
    }
}
