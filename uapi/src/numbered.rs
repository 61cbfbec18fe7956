// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT

//! Conversions of every numbered enumeration of this interface.
//!
//! A number that comes from the other side becomes an enumeration only by `from_raw`, which derives
//! the valid numbers from the type itself. An enumeration with names has a table of names beside
//! it, in the order of its numbers.

/// Implements `from_raw` for an enumeration and, if there is a table of names, `name` and `named`.
macro_rules! numbered {
    ($enum:ident: $raw:ident, $what:literal) => {
        impl $enum {
            #[doc = concat!("The ", $what, " that `raw` numbers, or `None`.")]
            pub fn from_raw(raw: $raw) -> Option<Self> {
                zerocopy::TryFromBytes::try_read_from_bytes(&raw.to_ne_bytes()).ok()
            }
        }
    };
    ($enum:ident: $raw:ident, $what:literal, $names:ident) => {
        $crate::numbered::numbered!($enum: $raw, $what);

        impl $enum {
            #[doc = concat!("The name of the ", $what, " in D.")]
            pub fn name(self) -> &'static str {
                let named = $names.iter().find(|(known, _)| *known == self);
                named.map_or("", |(_, name)| name)
            }

            #[doc = concat!("The ", $what, " of this name, or `None`.")]
            pub fn named(name: &str) -> Option<Self> {
                let named = $names.iter().find(|(_, known)| *known == name);
                named.map(|(found, _)| *found)
            }
        }
    };
}

pub(crate) use numbered;

#[cfg(test)]
mod tests {
    use crate::option::Opt;
    use crate::subr::Subr;
    use crate::types::Class;
    use crate::var::Var;

    /// Checks that each value of the table converts to its number and to its name and back, and
    /// that the table is complete.
    macro_rules! check {
        ($enum:ident, $names:path) => {
            for (value, name) in $names {
                assert_eq!($enum::from_raw(*value as _), Some(*value));
                assert_eq!((value.name(), $enum::named(name)), (*name, Some(*value)));
            }
            let numbers = (0..=u16::MAX).filter(|n| $enum::from_raw((*n).into()).is_some());
            assert_eq!(numbers.count(), $names.len());
            assert_eq!($enum::named("no such"), None);
        };
    }

    #[test]
    fn names_are_complete_and_unique() {
        check!(Subr, crate::subr::NAMES);
        check!(Var, crate::var::NAMES);
        check!(Opt, crate::option::NAMES);
    }

    #[test]
    fn unknown_numbers_are_none() {
        assert_eq!(Class::from_raw(0), Some(Class::Unknown));
        assert_eq!(Class::from_raw(6), None);
    }
}
