// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Splits the command of `-c` into words at blanks. Quotes and backslashes have the meaning of the
//! shell; none of its other syntax is supported.

/// Returns the words of `text`, or `None` if a quote is not closed or a backslash ends the text.
pub fn split(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            c if c.is_ascii_whitespace() => words.extend(word.take()),
            '\'' => quoted(&mut chars, '\'', word.get_or_insert_default())?,
            '"' => quoted(&mut chars, '"', word.get_or_insert_default())?,
            '\\' => word.get_or_insert_default().push(chars.next()?),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Some(words)
}

/// Appends the text up to the closing `quote` to `word`.
fn quoted(chars: &mut std::str::Chars<'_>, quote: char, word: &mut String) -> Option<()> {
    loop {
        match chars.next()? {
            c if c == quote => return Some(()),
            '\\' if quote == '"' => match chars.next()? {
                c @ ('"' | '\\') => word.push(c),
                c => word.extend(['\\', c]),
            },
            c => word.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_quotes_and_backslashes() {
        for (text, words) in [
            ("", &[][..]),
            (" a\tb  c ", &["a", "b", "c"]),
            (
                "sh -c 'echo \"x y\"; exit 3'",
                &["sh", "-c", "echo \"x y\"; exit 3"],
            ),
            (r#"a\ b "c \"d\" \n" ''"#, &["a b", r#"c "d" \n"#, ""]),
            ("x'y z'w", &["xy zw"]),
        ] {
            assert_eq!(split(text).unwrap(), words, "{text}");
        }
        for text in ["'", "a \"b", "a\\"] {
            assert_eq!(split(text), None, "{text}");
        }
    }
}
