// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! `json()`: one element of a JSON text.
//!
//! The text is read once and nothing is built: a cursor descends along the path and skips every
//! other value. Values are skipped by counting brackets, so nesting takes no stack. Every step
//! consumes input, so a malformed text ends the walk early and cannot prolong it. Brackets are
//! counted whatever their kind.

use super::Out;

/// Writes the element of `text` at `path`: `name`, `name.inner`, `list[2].name`, `[0]`. An index
/// may also be written like a name: `list.2.name`, `0`.
///
/// A string is written without its quotes and with its escapes as they are; every other value is
/// written as it is, an object or an array up to its last bracket. Returns `false`, and leaves
/// `out` unchanged, if there is no such element, or if the part of the text that was read is not
/// JSON.
pub fn find(text: &[u8], path: &[u8], out: &mut Out<'_>) -> bool {
    match descend(text, path) {
        Some(value) => {
            out.extend(value);
            true
        }
        None => false,
    }
}

fn descend<'a>(text: &'a [u8], path: &[u8]) -> Option<&'a [u8]> {
    if path.is_empty() {
        return None;
    }
    let mut cursor = Cursor { rest: text };
    let mut path = path;
    cursor.skip_blanks();
    while !path.is_empty() {
        path = if let Some(tail) = path.strip_prefix(b"[") {
            let end = tail.iter().position(|&b| b == b']')?;
            cursor.enter_array(decimal(tail.get(..end)?)?)?;
            tail.get(end.checked_add(1)?..)?
        } else {
            let name = path.strip_prefix(b".").unwrap_or(path);
            let end = name
                .iter()
                .position(|&b| b == b'.' || b == b'[')
                .unwrap_or(name.len());
            cursor.enter(name.get(..end)?)?;
            name.get(end..)?
        };
    }
    match cursor.rest.first()? {
        b'"' => cursor.string(),
        b'{' | b'[' => cursor.nested(),
        _ => cursor.word(),
    }
}

fn decimal(digits: &[u8]) -> Option<usize> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0usize, |acc, &b| {
        let digit = (b as char).to_digit(10)?;
        acc.checked_mul(10)?.checked_add(digit as usize)
    })
}

/// Returns the length of an escape without its backslash; `rest` is the text after the backslash.
fn escape(rest: &[u8]) -> Option<usize> {
    match rest.first()? {
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(1),
        b'u' if rest.get(1..5)?.iter().all(u8::is_ascii_hexdigit) => Some(5),
        _ => None,
    }
}

/// Whether `word`, a run of letters, digits and signs, is a value: one of JSON's words, or a run of
/// the characters of a decimal number.
fn is_value(word: &[u8]) -> bool {
    let numeric = |b: &u8| b.is_ascii_digit() || matches!(b, b'+' | b'-' | b'.' | b'e' | b'E');
    match word {
        b"true" | b"false" | b"null" => true,
        [b'0'..=b'9', rest @ ..] | [b'-', b'0'..=b'9', rest @ ..] => rest.iter().all(numeric),
        _ => false,
    }
}

/// The unread part of the text.
struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_ascii_start();
    }

    /// Consumes `byte` and the white space after it.
    fn take(&mut self, byte: u8) -> Option<()> {
        self.rest = self.rest.strip_prefix(&[byte])?;
        self.skip_blanks();
        Some(())
    }

    fn advance(&mut self, n: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(n)?;
        self.rest = rest;
        Some(taken)
    }

    /// Consumes a string and returns the text between its quotes.
    fn string(&mut self) -> Option<&'a [u8]> {
        let body = self.rest.strip_prefix(b"\"")?;
        let mut rest = body;
        loop {
            let (byte, after) = rest.split_first()?;
            rest = match byte {
                b'"' => break,
                b'\\' => after.get(escape(after)?..)?,
                _ => after,
            };
        }
        let len = body.len().checked_sub(rest.len())?;
        self.advance(len.checked_add(2)?)?;
        body.get(..len)
    }

    /// Consumes a number or a word.
    fn word(&mut self) -> Option<&'a [u8]> {
        let is_word = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.');
        let end = self
            .rest
            .iter()
            .position(|b| !is_word(b))
            .unwrap_or(self.rest.len());
        self.advance(end).filter(|word| is_value(word))
    }

    /// Consumes an object or an array and returns all of it.
    fn nested(&mut self) -> Option<&'a [u8]> {
        let whole = self.rest;
        let mut depth = 0usize;
        loop {
            match self.rest.first()? {
                b'"' => {
                    self.string()?;
                }
                b'{' | b'[' => {
                    depth = depth.saturating_add(1);
                    self.advance(1)?;
                }
                b'}' | b']' => {
                    depth = depth.checked_sub(1)?;
                    self.advance(1)?;
                }
                b',' | b':' => {
                    self.advance(1)?;
                }
                _ => {
                    self.word()?;
                }
            }
            if depth == 0 {
                return whole.get(..whole.len().checked_sub(self.rest.len())?);
            }
            self.skip_blanks();
        }
    }

    /// Skips one value of any kind.
    fn skip_value(&mut self) -> Option<()> {
        match self.rest.first()? {
            b'"' => self.string()?,
            b'{' | b'[' => self.nested()?,
            _ => self.word()?,
        };
        self.skip_blanks();
        Some(())
    }

    /// Moves to the value of member `name` of the object at the cursor, or, if an array is there,
    /// to its element with that index.
    fn enter(&mut self, name: &[u8]) -> Option<()> {
        if self.rest.first() == Some(&b'[') {
            return self.enter_array(decimal(name)?);
        }
        self.enter_object(name)
    }

    /// Moves to the value of member `name` of the object at the cursor.
    fn enter_object(&mut self, name: &[u8]) -> Option<()> {
        self.take(b'{')?;
        loop {
            let key = self.string()?;
            self.skip_blanks();
            self.take(b':')?;
            if key == name {
                return Some(());
            }
            self.skip_value()?;
            self.take(b',')?;
        }
    }

    /// Moves to element `index` of the array at the cursor.
    fn enter_array(&mut self, index: usize) -> Option<()> {
        self.take(b'[')?;
        for _ in 0..index {
            self.skip_value()?;
            self.take(b',')?;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::written;
    use super::*;

    const TEXT: &str = r#" { "name": "a \"b\"", "n": -1.5e3, "t":true, "o": {"x": [1, [2, 3], {"y": null}]}, "e": "" } "#;

    fn get(text: &str, path: &str) -> Option<std::string::String> {
        let mut found = false;
        let value = written(|out| found = find(text.as_bytes(), path.as_bytes(), out));
        found.then_some(value)
    }

    #[test]
    fn elements_are_found_along_their_path() {
        for (path, value) in [
            ("name", r#"a \"b\""#),
            ("n", "-1.5e3"),
            ("t", "true"),
            ("o.x[0]", "1"),
            ("o.x[1][1]", "3"),
            ("o.x[2].y", "null"),
            ("e", ""),
        ] {
            assert_eq!(get(TEXT, path).as_deref(), Some(value), "{path}");
        }
        assert_eq!(get("[\"a\", 7]", "[1]").as_deref(), Some("7"));
    }

    #[test]
    fn an_index_may_look_like_a_name() {
        for (text, path, value) in [
            ("[1,5]", "1", "5"),
            (" [ 1 , 5 ] ", "1", "5"),
            (r#"[{"a":9}]"#, "0.a", "9"),
            (r#"[{"a":9}]"#, "[0].a", "9"),
            ("[[1,2],[3,4]]", "1.0", "3"),
            (TEXT, "o.x.1[0]", "2"),
            (TEXT, "o.x.2.y", "null"),
            (r#"{"1":"one"}"#, "1", "one"),
        ] {
            assert_eq!(get(text, path).as_deref(), Some(value), "{text} {path}");
        }
        for path in ["2", "a", "", "-1", "0x1", "0.0"] {
            assert_eq!(get("[1,5]", path), None, "{path}");
        }
    }

    #[test]
    fn objects_and_arrays_are_found_whole() {
        for (path, value) in [
            ("o", r#"{"x": [1, [2, 3], {"y": null}]}"#),
            ("o.x", r#"[1, [2, 3], {"y": null}]"#),
            ("o.x[1]", "[2, 3]"),
            ("o.x[2]", r#"{"y": null}"#),
        ] {
            assert_eq!(get(TEXT, path).as_deref(), Some(value), "{path}");
        }
        assert_eq!(get(r#"{"o":{"x":1}}"#, "o").as_deref(), Some(r#"{"x":1}"#));
        // A bracket in a string does not end a value; a missing bracket makes the text malformed.
        let text = r#"{"o":["}]",{}],"p":[[1]"#;
        assert_eq!(get(text, "o").as_deref(), Some(r#"["}]",{}]"#));
        assert_eq!(get(text, "p.0").as_deref(), Some("[1]"));
        assert_eq!(get(text, "p"), None);
    }

    #[test]
    fn bad_values_are_none() {
        for value in [
            "0x1f",
            "-0x1",
            "1f",
            "-",
            "+1",
            ".5",
            "yes",
            "nul",
            "nullx",
            "TRUE",
            "NaN",
            "\"\\u12\"",
            "\"\\u12g4\"",
            "\"\\x41\"",
            "[0x1]",
            "{\"a\":maybe}",
        ] {
            let text = std::format!("{{\"a\":{value},\"b\":1}}");
            assert_eq!(get(&text, "a"), None, "{text}");
            // Values that are skipped are checked too.
            assert_eq!(get(&text, "b"), None, "{text}");
        }
        for value in ["0", "-0.5E-7", "10e+2"] {
            assert_eq!(get(&std::format!("[{value}]"), "0").as_deref(), Some(value));
        }
        let escapes = r#"\"\\\/\b\f\n\r\t\u12Ab"#;
        let text = std::format!("[\"{escapes}\"]");
        assert_eq!(get(&text, "[0]").as_deref(), Some(escapes));
    }

    #[test]
    fn what_is_not_there_is_not_found() {
        for path in [
            "x",
            "o.x[3]",
            "o.x.3",
            "o.y",
            "o.x[",
            "o.x[]",
            "name.x",
            "[0]",
            "o.x[99999999999999999999]",
            "",
        ] {
            assert_eq!(get(TEXT, path), None, "{path}");
        }
    }

    #[test]
    fn a_malformed_text_ends_the_walk() {
        for text in [
            "",
            "{",
            "{\"a\"",
            "{\"a\":",
            "{\"b\":]",
            "{\"b\" 1,\"a\":2}",
            "[[[[[[",
            "{\"b\":\"\\",
        ] {
            assert_eq!(get(text, "a"), None, "{text}");
        }
    }
}
