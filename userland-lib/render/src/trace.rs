// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The default form of a value, as printed by `trace()` and for keys of aggregations.
//!
//! The columns of `trace()` depend on the D type: a column fits the digits of every value of the
//! type, so an unsigned 8-byte integer has one column more than a signed one. A negative number of
//! full length is one column too wide. Columns of keys depend on the size alone and may be
//! narrower, and keys of 1 and 2 bytes are printed unsigned. A floating-point number has as many
//! digits as it needs. An array of characters is shown as a string if it looks like one, otherwise
//! dumped. `trace()` dumps all other arrays; keys treat them like arrays of characters. With the
//! option `rawbytes`, `trace()` dumps everything except stacks and symbols.

use std::fmt::Display;

use super::{bytes, float, Renderer};
use dtrace_consumer::value::{Datum, Kind};

/// Width of a string in the output of `trace()`, columns.
const TRACE_WIDTH: usize = 33;
/// Width of a string among an aggregation's keys, columns.
const KEY_WIDTH: usize = 50;
/// Widths of integers of 1, 2, 4 and 8 bytes among an aggregation's keys.
const KEY_COLUMNS: [usize; 4] = [3, 5, 8, 16];

impl Renderer<'_> {
    /// Appends the value of a `trace()`, `tracemem()`, `stack()`, `ustack()`, `sym()` … statement.
    pub fn trace(&self, out: &mut Vec<u8>, datum: &Datum<'_>) {
        let quiet = self.style.quiet;
        match (datum.kind, datum.signed(), datum.unsigned()) {
            (Kind::Str, ..) if self.style.rawbytes => {
                // The bytes behind the string's NUL are undefined: dump zeros instead.
                let mut data = datum.text().to_vec();
                data.resize(datum.data.len(), 0);
                bytes::dump(out, &data);
            }
            (Kind::Int { .. } | Kind::Float, ..) if self.style.rawbytes => {
                bytes::dump(out, datum.data);
            }
            (Kind::Int { signed: true }, Some(value), _) => {
                number(out, value, datum.data.len(), &[3, 5, 10, 19], quiet);
            }
            (Kind::Int { .. }, _, Some(value)) => {
                number(out, value, datum.data.len(), &[3, 5, 10, 20], quiet);
            }
            (Kind::Float, ..) => number_text(out, datum, [15, 24], quiet),
            (Kind::Str, ..) => bytes::string_column(out, datum.text(), TRACE_WIDTH, quiet),
            (Kind::Chars, ..) => self.bytes(out, datum.data, TRACE_WIDTH, quiet),
            _ => self.action(out, datum),
        }
    }

    /// Appends a key of an aggregation. Keys are padded to columns in quiet mode too.
    pub(super) fn key(&self, out: &mut Vec<u8>, datum: &Datum<'_>) {
        let size = datum.data.len();
        match (datum.kind, size, datum.signed(), datum.unsigned()) {
            (Kind::Int { .. }, 4 | 8, Some(value), _) => {
                number(out, value, size, &KEY_COLUMNS, false);
            }
            (Kind::Int { .. }, _, _, Some(value)) => {
                number(out, value, size, &KEY_COLUMNS, false);
            }
            (Kind::Str, ..) => bytes::string_column(out, datum.text(), KEY_WIDTH, false),
            (Kind::Float, ..) => number_text(out, datum, [16, 16], false),
            (Kind::Chars | Kind::Bytes, ..) => self.bytes(out, datum.data, KEY_WIDTH, false),
            _ => self.action(out, datum),
        }
    }

    /// Appends a value whose form is the same in `trace()` and among keys.
    fn action(&self, out: &mut Vec<u8>, datum: &Datum<'_>) {
        match datum.kind {
            Kind::Stack | Kind::Ustack | Kind::StackValue => {
                self.stack(out, datum, None);
            }
            Kind::Sym | Kind::Mod | Kind::Usym | Kind::Umod | Kind::Uaddr => {
                self.location_column(out, datum);
            }
            _ => bytes::dump(out, datum.data),
        }
    }
}

/// Appends a floating-point number with as many digits as distinguish it from all others of its
/// type. `columns` are the widths for 4 bytes and for larger sizes.
fn number_text(out: &mut Vec<u8>, datum: &Datum<'_>, columns: [usize; 2], quiet: bool) {
    let Some(text) = float::text(datum.data) else {
        return bytes::dump(out, datum.data);
    };
    let [single, double] = columns;
    let width = if datum.data.len() == 4 {
        single
    } else {
        double
    };
    match quiet {
        true => put!(out, "{text}"),
        false => put!(out, " {text:>width$}"),
    }
}

/// Appends a number. `columns` are the widths for sizes of 1, 2, 4 and 8 bytes.
fn number(out: &mut Vec<u8>, value: impl Display, size: usize, columns: &[usize; 4], quiet: bool) {
    if quiet {
        put!(out, "{value}");
        return;
    }
    let [byte, short, int, long] = *columns;
    let width = match size {
        1 => byte,
        2 => short,
        4 => int,
        _ => long,
    };
    put!(out, " {value:>width$}");
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

    fn key(kind: Kind, data: &[u8]) -> String {
        let style = Style {
            quiet: true,
            ..Style::default()
        };
        render(&style, |r, out| r.key(out, &Datum::new(kind, data)))
    }

    #[test]
    fn traced_integers_have_columns_by_type() {
        const UNSIGNED: Kind = Kind::Int { signed: false };
        for (kind, data, column, alone) in [
            (INT, &(-1i8).to_ne_bytes()[..], "  -1", "-1"),
            (UNSIGNED, &(-1i8).to_ne_bytes(), " 255", "255"),
            (INT, &(-1i16).to_ne_bytes(), "    -1", "-1"),
            (UNSIGNED, &(-1i16).to_ne_bytes(), " 65535", "65535"),
            (INT, &(-1i32).to_ne_bytes(), "         -1", "-1"),
            (
                UNSIGNED,
                &(-1i32).to_ne_bytes(),
                " 4294967295",
                "4294967295",
            ),
            (INT, &(-1i64).to_ne_bytes(), "                  -1", "-1"),
            (UNSIGNED, &5u64.to_ne_bytes(), "                    5", "5"),
            (
                INT,
                &i64::MIN.to_ne_bytes(),
                " -9223372036854775808",
                "-9223372036854775808",
            ),
        ] {
            assert_eq!(trace(kind, data, false), column);
            assert_eq!(trace(kind, data, true), alone);
        }
    }

    #[test]
    fn integers_among_keys_have_columns_by_size() {
        for (data, column) in [
            (&(-1i8).to_ne_bytes()[..], " 255"),
            (&(-1i16).to_ne_bytes(), " 65535"),
            (&(-1i32).to_ne_bytes(), "       -1"),
            (&i32::MIN.to_ne_bytes(), " -2147483648"),
            (&42u64.to_ne_bytes(), "               42"),
            (&u64::MAX.to_ne_bytes(), "               -1"),
        ] {
            for signed in [false, true] {
                assert_eq!(key(Kind::Int { signed }, data), column);
            }
        }
    }

    #[test]
    fn floating_point_numbers_have_the_digits_that_they_need() {
        let (single, double) = ((-0.1f32).to_ne_bytes(), 2.5e-300f64.to_ne_bytes());
        assert_eq!(trace(Kind::Float, &single, true), "-0.1");
        assert_eq!(trace(Kind::Float, &single, false), "            -0.1");
        assert_eq!(
            trace(Kind::Float, &double, false),
            format!(" {:>24}", "2.5e-300")
        );
        assert_eq!(key(Kind::Float, &double), "         2.5e-300");
        let longest = (-f64::MIN_POSITIVE).to_ne_bytes();
        assert_eq!(trace(Kind::Float, &longest, false).len(), 25);
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
        assert_eq!(key(Kind::Str, b"sh\0"), format!("  {:<50}", "sh"));
        assert_eq!(key(Kind::Bytes, b"sh\0"), format!("  {:<50}", "sh"));
    }

    #[test]
    fn memory_and_arrays_are_dumped_even_if_they_are_text() {
        for kind in [Kind::Memory, Kind::Bytes] {
            assert!(trace(kind, b"abcdefgh", true).contains(": 61 62"));
        }
        assert!(trace(Kind::Bytes, &[0x34], false).contains(" 34 "));
    }

    #[test]
    fn characters_are_text_as_long_as_nothing_else_is_among_them() {
        for (data, shown) in [
            (&b"4"[..], format!("  {:<33}", "4")),
            (b"load", format!("  {:<33}", "load")),
            (b"load\0\0", format!("  {:<33}", "load")),
        ] {
            assert_eq!(trace(Kind::Chars, data, false), shown);
        }
        assert_eq!(trace(Kind::Chars, b"load\0", true), "load");
        assert!(trace(Kind::Chars, b"lo\0d\0", false).contains(": 6c 6f 00 64 00"));
        assert!(trace(Kind::Chars, b"lo\x05d", true).contains(": 6c 6f 05 64"));
    }

    #[test]
    fn rawbytes_dumps_what_is_traced() {
        let style = Style {
            rawbytes: true,
            ..Style::default()
        };
        let text = render(&style, |r, out| {
            r.trace(out, &Datum::new(Kind::Str, b"sh\0\0\0\0\0\0stale"))
        });
        assert!(text.contains(": 73 68 00 00 00 00 00 00 00 00 00 00 00  "));
    }
}
