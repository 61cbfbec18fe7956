// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Writes JSON piece by piece, in the order in which the pieces come, without a tree of values.
//!
//! Integers are exact. JavaScript keeps them only up to 2^53: with `quote64`, greater ones are
//! strings. Bytes that are no UTF-8 become `{"base64":"…"}`, so that nothing is lost and no string
//! is taken for something else. A number that JSON lacks becomes `{"float":"inf"}`.

use base64::engine::general_purpose::STANDARD;
use base64::Engine;

/// The greatest integer up to which a double holds every one.
const SAFE: u128 = 1 << 53;

/// Appends one JSON value to text.
pub struct Put<'o> {
    out: &'o mut Vec<u8>,
    quote64: bool,
}

impl<'o> Put<'o> {
    /// Appends to `out`. With `quote64`, integers beyond 2^53 are strings.
    pub fn to(out: &'o mut Vec<u8>, quote64: bool) -> Self {
        Self { out, quote64 }
    }

    /// Appends an object with the members that `fill` puts into it.
    pub fn object(&mut self, fill: impl FnOnce(&mut Object<'_, 'o>)) {
        self.out.push(b'{');
        fill(&mut Object {
            put: self,
            is_begun: false,
        });
        self.out.push(b'}');
    }

    /// Appends an array with the items that `fill` puts into it.
    pub fn array(&mut self, fill: impl FnOnce(&mut Array<'_, 'o>)) {
        self.out.push(b'[');
        fill(&mut Array {
            put: self,
            is_begun: false,
        });
        self.out.push(b']');
    }

    /// Appends an array of strings.
    pub fn texts<'t>(&mut self, texts: impl IntoIterator<Item = &'t str>) {
        self.array(|array| {
            for text in texts {
                array.item().text(text);
            }
        });
    }

    /// Appends a string.
    pub fn text(&mut self, text: &str) {
        // Writing to a Vec cannot fail.
        let _ = serde_json::to_writer(&mut *self.out, text);
    }

    /// Appends text that may hold any bytes.
    pub fn bytes(&mut self, bytes: &[u8]) {
        match std::str::from_utf8(bytes) {
            Ok(text) => self.text(text),
            Err(_) => self.object(|object| object.member("base64").base64(bytes)),
        }
    }

    /// Appends bytes in base 64 (RFC 4648, section 4), as a string.
    pub fn base64(&mut self, bytes: &[u8]) {
        put!(self.out, "\"{}\"", STANDARD.encode(bytes));
    }

    /// Appends an integer.
    pub fn integer(&mut self, value: impl Into<i128>) {
        let value = value.into();
        let quote = match self.quote64 && value.unsigned_abs() > SAFE {
            true => "\"",
            false => "",
        };
        put!(self.out, "{quote}{value}{quote}");
    }

    /// Appends an address: a string of hexadecimal digits.
    pub fn address(&mut self, address: u64) {
        put!(self.out, "\"{address:#x}\"");
    }

    /// Appends a floating-point number.
    pub fn float(&mut self, value: f64) {
        if value.is_finite() {
            let _ = serde_json::to_writer(&mut *self.out, &value);
        } else {
            self.unwritable(value);
        }
    }

    /// Appends a floating-point number of 4 bytes, with the digits that distinguish it from others
    /// of its size.
    pub fn single(&mut self, value: f32) {
        if value.is_finite() {
            let _ = serde_json::to_writer(&mut *self.out, &value);
        } else {
            self.unwritable(value.into());
        }
    }

    fn unwritable(&mut self, value: f64) {
        let text = match value {
            _ if value.is_nan() => "nan",
            _ if value > 0.0 => "inf",
            _ => "-inf",
        };
        self.object(|object| object.member("float").text(text));
    }

    /// Appends `true` or `false`.
    pub fn flag(&mut self, flag: bool) {
        put!(self.out, "{flag}");
    }

    /// Appends `null`.
    pub fn null(&mut self) {
        self.out.extend_from_slice(b"null");
    }

    /// Appends what is JSON already.
    pub fn raw(&mut self, json: &[u8]) {
        self.out.extend_from_slice(json);
    }
}

/// An object that is being written.
pub struct Object<'p, 'o> {
    put: &'p mut Put<'o>,
    is_begun: bool,
}

impl<'o> Object<'_, 'o> {
    /// Begins a member. The caller must append its value.
    pub fn member(&mut self, name: &str) -> &mut Put<'o> {
        if std::mem::replace(&mut self.is_begun, true) {
            self.put.out.push(b',');
        }
        self.put.text(name);
        self.put.out.push(b':');
        self.put
    }
}

/// An array that is being written.
pub struct Array<'p, 'o> {
    put: &'p mut Put<'o>,
    is_begun: bool,
}

impl<'o> Array<'_, 'o> {
    /// Begins an item. The caller must append its value.
    pub fn item(&mut self) -> &mut Put<'o> {
        if std::mem::replace(&mut self.is_begun, true) {
            self.put.out.push(b',');
        }
        self.put
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(quote64: bool, f: impl FnOnce(&mut Put<'_>)) -> String {
        let mut out = Vec::new();
        f(&mut Put::to(&mut out, quote64));
        String::from_utf8(out).expect("JSON is UTF-8")
    }

    #[test]
    fn integers_are_exact_and_quoted_on_request() {
        for (value, plain, quoted) in [
            (
                i128::from(u64::MAX),
                "18446744073709551615",
                "\"18446744073709551615\"",
            ),
            (
                i64::MIN.into(),
                "-9223372036854775808",
                "\"-9223372036854775808\"",
            ),
            (1 << 53, "9007199254740992", "9007199254740992"),
            ((1 << 53) + 1, "9007199254740993", "\"9007199254740993\""),
            (-7, "-7", "-7"),
        ] {
            assert_eq!(put(false, |put| put.integer(value)), plain);
            assert_eq!(put(true, |put| put.integer(value)), quoted);
        }
    }

    #[test]
    fn text_survives_whatever_is_in_it() {
        for (bytes, json) in [
            (&b"a\"b\\c\n\0\x7f"[..], "\"a\\\"b\\\\c\\n\\u0000\x7f\""),
            ("ä\u{2028}😀".as_bytes(), "\"ä\u{2028}😀\""),
            (b"", "\"\""),
            (b"\xff\xfe\0", "{\"base64\":\"//4A\"}"),
            (b"\xed\xa0\x80", "{\"base64\":\"7aCA\"}"),
        ] {
            assert_eq!(put(false, |put| put.bytes(bytes)), json);
        }
    }

    #[test]
    fn base_64_is_padded() {
        for (bytes, json) in [
            (&b""[..], "\"\""),
            (b"\0", "\"AA==\""),
            (b"\0\x01", "\"AAE=\""),
            (b"\0\x01\x02", "\"AAEC\""),
            (b"\xfb\xff\xbf\xff", "\"+/+//w==\""),
        ] {
            assert_eq!(put(false, |put| put.base64(bytes)), json);
        }
    }

    #[test]
    fn numbers_have_the_digits_that_they_need() {
        assert_eq!(put(false, |put| put.float(12.5)), "12.5");
        assert_eq!(put(false, |put| put.single(-0.1)), "-0.1");
        assert_eq!(put(false, |put| put.float(f64::NAN)), "{\"float\":\"nan\"}");
        let below = put(false, |put| put.single(f32::NEG_INFINITY));
        assert_eq!(below, "{\"float\":\"-inf\"}");
    }

    #[test]
    fn commas_stand_between() {
        let json = put(false, |put| {
            put.object(|object| {
                object.member("a").texts(["x", "y"]);
                object.member("b").array(|_| {});
                object.member("c").object(|_| {});
                object.member("d").null();
                object.member("e").flag(true);
                object.member("f").address(255);
            });
        });
        assert_eq!(
            json,
            r#"{"a":["x","y"],"b":[],"c":{},"d":null,"e":true,"f":"0xff"}"#
        );
    }
}
