// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! The default form of a value: what `trace()` and keys of aggregations look like.
//!
//! The column is chosen by the value's size, not by its type: 4- and 8-byte integers are printed signed, 1- and
//! 2-byte ones unsigned, as DTrace does. Without `quiet` a space goes before every column.

use super::{bytes, Datum, Kind, Renderer};

/// Width of a string in the output of `trace()`.
const TRACE_WIDTH: usize = 33;
/// Width of a string among an aggregation's keys.
const KEY_WIDTH: usize = 50;

impl Renderer<'_> {
    /// Appends the value of a `trace()`, `tracemem()`, `stack()`, `ustack()`, `sym()` … statement.
    pub fn trace(&self, out: &mut Vec<u8>, datum: &Datum<'_>) {
        self.default_form(out, datum, TRACE_WIDTH, self.style.quiet);
    }

    /// Appends a key of an aggregation; keys have their columns in quiet mode too.
    pub(super) fn key(&self, out: &mut Vec<u8>, datum: &Datum<'_>) {
        self.default_form(out, datum, KEY_WIDTH, false);
    }

    fn default_form(&self, out: &mut Vec<u8>, datum: &Datum<'_>, width: usize, quiet: bool) {
        match datum.kind {
            Kind::Str => bytes::string_column(out, datum.text(), width, quiet),
            Kind::Memory => bytes::dump(out, datum.data),
            Kind::Stack | Kind::Ustack { .. } => self.stack(out, datum, None),
            Kind::Sym | Kind::Mod | Kind::Usym | Kind::Umod | Kind::Uaddr => {
                self.location_column(out, datum);
            }
            Kind::Int { .. } | Kind::Float | Kind::Bytes => {
                match (datum.data.len(), datum.signed(), datum.unsigned()) {
                    (8, Some(value), _) if quiet => put!(out, "{value}"),
                    (8, Some(value), _) => put!(out, " {value:16}"),
                    (4, Some(value), _) if quiet => put!(out, "{value}"),
                    (4, Some(value), _) => put!(out, " {value:8}"),
                    (1 | 2, _, Some(value)) if quiet => put!(out, "{value}"),
                    (2, _, Some(value)) => put!(out, " {value:5}"),
                    (1, _, Some(value)) => put!(out, " {value:3}"),
                    _ => self.bytes(out, datum.data, width, quiet),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{testing::render, Style};
    use super::*;

    const INT: Kind = Kind::Int { signed: true };

    fn trace(kind: Kind, data: &[u8], quiet: bool) -> String {
        let style = Style {
            quiet,
            ..Style::default()
        };
        render(&style, |r, out| r.trace(out, &Datum::new(kind, data)))
    }

    #[test]
    fn integers_have_columns_by_size() {
        for (data, column, alone) in [
            (&5u8.to_ne_bytes()[..], "   5", "5"),
            (&(-1i8).to_ne_bytes(), " 255", "255"),
            (&(-1i16).to_ne_bytes(), " 65535", "65535"),
            (&7u16.to_ne_bytes(), "     7", "7"),
            (&(-1i32).to_ne_bytes(), "       -1", "-1"),
            (&i32::MIN.to_ne_bytes(), " -2147483648", "-2147483648"),
            (&42u64.to_ne_bytes(), "               42", "42"),
            (
                &i64::MIN.to_ne_bytes(),
                " -9223372036854775808",
                "-9223372036854775808",
            ),
            (&u64::MAX.to_ne_bytes(), "               -1", "-1"),
        ] {
            assert_eq!(trace(INT, data, false), column);
            assert_eq!(trace(INT, data, true), alone);
        }
    }

    #[test]
    fn strings_fill_their_column_and_may_be_empty() {
        assert_eq!(
            trace(Kind::Str, b"sh\0junk", false),
            format!("  {:<33}", "sh")
        );
        assert_eq!(trace(Kind::Str, b"\0", false), " ".repeat(35));
        assert_eq!(trace(Kind::Str, b"sh\0", true), "sh");
        assert_eq!(trace(Kind::Str, "ä\0".as_bytes(), true), "ä");
    }

    #[test]
    fn strings_among_keys_have_a_wider_column_even_in_quiet_mode() {
        let style = Style {
            quiet: true,
            ..Style::default()
        };
        let text = render(&style, |r, out| r.key(out, &Datum::new(Kind::Str, b"sh\0")));
        assert_eq!(text, format!("  {:<50}", "sh"));
    }

    #[test]
    fn memory_is_dumped_even_if_it_is_text() {
        assert!(trace(Kind::Memory, b"abcdefgh", true).contains(": 61 62"));
        assert_eq!(trace(Kind::Bytes, b"abcdef", true), "abcdef");
    }
}
