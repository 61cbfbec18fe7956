// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Names as they were written, from those that compilers of C++ and Rust give the linker.
//!
//! A name comes from a file that anybody may have made, and a short one may stand for a very long one. What is too long stays as it is.

use cpp_demangle::{DemangleOptions, ParseOptions, Symbol};
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::{self, Write};

/// Bytes of a name that is made, and of one that it is made of.
const NAME_MAX: usize = 4096;
/// How deep parts of a name may lie in others. A name takes time that doubles with each level.
const DEPTH_MAX: u32 = 48;
/// Names that are remembered.
const KNOWN_MAX: usize = 1 << 14;

thread_local! {
    /// What names stand for, or that they stand for themselves.
    static KNOWN: RefCell<HashMap<String, Option<String>>> = RefCell::default();
}

/// What the linker's `name` stands for, without what tells versions of a crate apart. Any other name is what it was.
pub fn demangled(name: &str) -> Cow<'_, str> {
    // Nearly all names are C's.
    let may_be_mangled = ["_Z", "__Z", "_R", "__R", "R", "Z"]
        .iter()
        .any(|start| name.starts_with(start));
    if !may_be_mangled || name.len() > NAME_MAX {
        return Cow::Borrowed(name);
    }
    KNOWN.with_borrow_mut(|known| {
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        let whole = known.entry(name.to_owned());
        let whole = whole.or_insert_with(|| rust(name).or_else(|| cpp(name)));
        whole.clone().map_or(Cow::Borrowed(name), Cow::Owned)
    })
}

fn rust(name: &str) -> Option<String> {
    let symbol = rustc_demangle::try_demangle(name).ok()?;
    limited(|text| write!(text, "{symbol:#}"))
}

fn cpp(name: &str) -> Option<String> {
    let options = ParseOptions::default().recursion_limit(DEPTH_MAX);
    let symbol = Symbol::new_with_options(name, &options).ok()?;
    limited(|text| symbol.structured_demangle(text, &DemangleOptions::new()))
}

fn limited(write: impl FnOnce(&mut Limited) -> fmt::Result) -> Option<String> {
    let mut text = Limited(String::new());
    write(&mut text).ok()?;
    Some(text.0)
}

/// Text that takes no more than [`NAME_MAX`].
struct Limited(String);

impl Write for Limited {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        if self.0.len() + more.len() > NAME_MAX {
            return Err(fmt::Error);
        }
        self.0.push_str(more);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_each_language() {
        for (name, expected) in [
            ("malloc", "malloc"),
            ("_Zero", "_Zero"),
            (
                "_ZNSt6vectorIiSaIiEE9push_backERKi",
                "std::vector<int, std::allocator<int> >::push_back(int const&)",
            ),
            ("_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write"),
            ("_RNvCs1234_6kernel12pr_something", "kernel::pr_something"),
            (
                "_RNvMNtCsdfL5hQ9GxPl_6kernel4taskNtB2_4Task3pid",
                "<kernel::task::Task>::pid",
            ),
        ] {
            assert_eq!(demangled(name), expected);
        }
    }

    /// Each level doubles what the one before means.
    #[test]
    fn a_name_that_would_be_endless_stays() {
        let mut name = "_Z1fI".to_owned() + &"St4pairI".repeat(60) + "ii";
        name.push_str(&"ES".repeat(30));
        assert_eq!(demangled(&name), name);
        let mut bomb = "_Z1fSt4pairIiiE".to_owned();
        for level in 0..30 {
            let last = [
                "S0_".to_owned(),
                format!("S{}_", char::from(b'0' + (level % 10))),
            ];
            bomb.push_str(&format!("St4pairI{}{}E", last[0], last[0]));
        }
        assert!(demangled(&bomb).len() <= NAME_MAX.max(bomb.len()));
        // One that is none, but seems to be many.
        let none = "_Z1f".to_owned() + &"St1aI".repeat(30) + "!";
        assert_eq!(demangled(&none), none);
    }
}
