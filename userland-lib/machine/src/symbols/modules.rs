// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The address ranges of the kernel's modules, from `/proc/modules`.
//!
//! A line there states where a module's text begins and the size of the whole module; its data are
//! elsewhere. This gives an upper bound: no symbol of the module reaches further, and none reaches
//! into the text of another module.

use std::path::Path;

/// The bound of a symbol's size, in bytes, if nothing better is known.
pub(super) const REACH: u64 = 1 << 20;

/// The loaded modules.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Modules(Vec<Module>);

#[derive(Debug, PartialEq, Eq)]
struct Module {
    name: String,
    start: u64,
    size: u64,
}

impl Modules {
    /// Reads the modules listed in the file `path`. A file that cannot be read counts as empty.
    pub fn read(path: &Path) -> Self {
        let bytes = std::fs::read(path).unwrap_or_default();
        Self::parse(&String::from_utf8_lossy(&bytes))
    }

    fn parse(text: &str) -> Self {
        Self(text.lines().filter_map(module).collect())
    }

    /// Returns the end of the addresses that a symbol at `address` of `module` may name.
    pub fn end(&self, module: &str, address: u64) -> u64 {
        let own = match self.0.iter().find(|known| known.name == module) {
            Some(module) => {
                let end = module.start.saturating_add(module.size);
                match (module.start..end).contains(&address) {
                    true => end,
                    false => address.saturating_add(module.size),
                }
            }
            None => address.saturating_add(REACH),
        };
        let starts = self.0.iter().map(|module| module.start);
        let next = starts.filter(|start| *start > address).min();
        next.map_or(own, |next| own.min(next))
    }
}

/// Parses a line: name, size, number of users, their names, state, and the start of the text, which
/// is zero if the reader may not see addresses.
fn module(line: &str) -> Option<Module> {
    let mut words = line.split_ascii_whitespace();
    let (name, size) = (words.next()?, words.next()?.parse().ok()?);
    let start = words.nth(3)?.strip_prefix("0x")?;
    let start = u64::from_str_radix(start, 16).ok()?;
    (start != 0).then(|| Module {
        name: name.to_owned(),
        start,
        size,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &str = "\
ext4 8192 1 - Live 0xffffffffc0000000 (OE)
jbd2 4096 2 ext4,ocfs2, Live 0xffffffffc0001000
hidden 4096 0 - Live 0x0000000000000000
not a line
";

    #[test]
    fn a_symbol_ends_where_its_module_or_another_ones_text_does() {
        let modules = Modules::parse(LINES);
        let end = |module, address| modules.end(module, address);
        assert_eq!(end("jbd2", 0xffffffffc0001800), 0xffffffffc0002000);
        assert_eq!(end("ext4", 0xffffffffc0000010), 0xffffffffc0001000);
        // Data, which are apart from the text.
        assert_eq!(end("ext4", 0xffffffffd0000000), 0xffffffffd0002000);
        for unknown in ["hidden", "bpf"] {
            assert_eq!(end(unknown, 0xffffffffd0000000), 0xffffffffd0100000);
            assert_eq!(end(unknown, 0xffffffffbfffff00), 0xffffffffc0000000);
        }
        assert_eq!(end("ext4", u64::MAX), u64::MAX);
    }

    #[test]
    fn a_list_that_is_not_there_has_no_modules() {
        let none = Modules::read(Path::new("/nonexistent/modules"));
        assert_eq!(none, Modules::default());
        assert_eq!(none.end("ext4", 0x1000), 0x1000 + REACH);
    }
}
