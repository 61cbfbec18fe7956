// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Demangles the linker's names of C++ and Rust symbols.
//!
//! Names come from untrusted files, and a short mangled name may stand for a very long one. A name
//! that is too long stays mangled.

use cpp_demangle::{DemangleOptions, ParseOptions, Symbol};
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::{self, Write};

/// Maximum length in bytes of a mangled and of a demangled name.
const NAME_MAX: usize = 4096;
/// Maximum nesting depth of a name. The time to demangle doubles with each level.
const DEPTH_MAX: u32 = 48;
/// Maximum number of cached names.
const KNOWN_MAX: usize = 1 << 14;

thread_local! {
    /// Demangled names; `None` for names that are not mangled.
    static KNOWN: RefCell<HashMap<String, Option<String>>> = RefCell::default();
}

/// Returns the source name for the linker's `name`, without the hash that distinguishes versions of
/// a crate. Returns any other name as it is.
pub fn demangled(name: &str) -> Cow<'_, str> {
    // A fast path, because nearly all names are those of C functions.
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

/// Text of at most [`NAME_MAX`] bytes.
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

    /// Each level doubles the meaning of the previous one.
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
        // An invalid name that looks like many nested ones.
        let none = "_Z1f".to_owned() + &"St1aI".repeat(30) + "!";
        assert_eq!(demangled(&none), none);
    }
}
