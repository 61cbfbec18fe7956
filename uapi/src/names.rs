// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note

//! What the parts of a probe's name may be. The module refuses others, whoever creates the probe; the library writes what it reads
//! of programs so that it is one.
//!
//! A name is printed where people read it, and a program or a file that anybody has made may be where it comes from: so it is UTF-8, and does
//! nothing to a terminal. A function may be called as languages like: `main.(*T).run`, `operator/`, `type:.eq.[2]interface {}`. In the other
//! three parts there is no colon, so that a description that is printed can be taken apart in one way only, and no slash.

/// Whether a provider, a module, a function and a probe may be called so. How long they may be is said elsewhere
/// ([`limits`](crate::limits)).
pub fn are_good(parts: [&[u8]; 4]) -> bool {
    let [provider, module, _, name] = parts;
    let is_whole = |part: &[u8]| !part.iter().any(|c| separates(char::from(*c)));
    [provider, module, name].into_iter().all(is_whole) && parts.into_iter().all(is_printable)
}

/// Whether a character separates what only functions have in their names.
pub fn separates(c: char) -> bool {
    matches!(c, ':' | '/')
}

/// Whether a text does nothing to a terminal.
pub fn is_printable(text: &[u8]) -> bool {
    // Nearly all names are of ASCII's letters and signs.
    let is_plain = text.iter().all(|c| matches!(c, b' '..=b'~'));
    is_plain || core::str::from_utf8(text).is_ok_and(|text| !text.contains(misleads))
}

/// Whether a character does something to a terminal or to how others stand, or is not seen (Unicode's categories Cc, Cf, Zl and Zp, but
/// for marks of single scripts).
pub fn misleads(c: char) -> bool {
    let is_unseen = matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}');
    c.is_control() || is_unseen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_as_languages_have_them_are_good() {
        for func in [
            "",
            "main",
            "_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE",
            "operator/",
            "std::operator<< <char>(int, ...)",
            "main.(*T).run",
            "type:.eq.[2]interface {}",
            "github.com/a/b.F[...]",
            "größe",
            "関数",
            "a?b",
            "back\\slash",
        ] {
            let parts = ["pid1", "größe.so.6", func, "entry"];
            assert!(are_good(parts.map(str::as_bytes)), "{func}");
        }
    }

    #[test]
    fn what_a_terminal_takes_for_more_is_no_name() {
        let bad: [&[u8]; 8] = [
            b"\x1b[2J",
            b"a\nb",
            b"a\tb",
            b"\x7f",
            // The same sequence begins with one byte, or with one character.
            b"\x9b2J",
            "\u{9b}2J".as_bytes(),
            "\u{202e}".as_bytes(),
            b"cut\xc3",
        ];
        for (text, at) in bad.iter().flat_map(|text| (0..4).map(move |at| (text, at))) {
            let mut parts: [&[u8]; 4] = [b"p"; 4];
            parts[at] = text;
            assert!(!are_good(parts), "{parts:?}");
        }
    }

    #[test]
    fn what_is_not_seen_misleads() {
        let unseen = [
            '\u{ad}',
            '\u{61c}',
            '\u{180e}',
            '\u{200b}',
            '\u{200f}',
            '\u{2028}',
            '\u{202e}',
            '\u{2060}',
            '\u{206f}',
            '\u{feff}',
            '\u{fff9}',
            '\u{fffb}',
            '\u{e0001}',
            '\u{e007f}',
        ];
        assert!(unseen.into_iter().all(misleads));
        assert!(!['a', ' ', 'ö', '\u{301}', '関', '\u{1f600}']
            .into_iter()
            .any(misleads));
    }

    #[test]
    fn a_description_has_four_parts() {
        for text in [&b"a:b"[..], b"a/b"] {
            assert!(are_good([b"p", b"m", text, b"n"]));
            assert!(!are_good([text, b"m", b"f", b"n"]));
            assert!(!are_good([b"p", text, b"f", b"n"]));
            assert!(!are_good([b"p", b"m", b"f", text]));
        }
    }
}
