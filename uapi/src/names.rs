// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT

//! The valid names of probes. The module refuses other names, no matter who creates the probe. The
//! library converts the names that it reads from programs to valid ones.
//!
//! Names are printed on terminals, and may come from a program or file that any user has made.
//! Therefore names are UTF-8 without characters that control a terminal. The name of a function may
//! be anything that languages use: `main.(*T).run`, `operator/`, `type:.eq.[2]interface {}`. The
//! other three parts contain no colon, so that a printed description can be split in one way only,
//! and no slash.

/// Whether `parts` are valid names of a provider, a module, a function and a probe. Their lengths
/// are not checked here ([`limits`](crate::limits)).
pub fn are_good(parts: [&[u8]; 4]) -> bool {
    let [provider, module, _, name] = parts;
    let is_whole = |part: &[u8]| !part.iter().any(|c| separates(char::from(*c)));
    [provider, module, name].into_iter().all(is_whole) && parts.into_iter().all(is_printable)
}

/// Whether a character is a separator, which only the names of functions may contain.
pub fn separates(c: char) -> bool {
    matches!(c, ':' | '/')
}

/// Whether a text is UTF-8 that does not control a terminal.
pub fn is_printable(text: &[u8]) -> bool {
    // Fast path: nearly all names consist of printable ASCII.
    let is_plain = text.iter().all(|c| matches!(c, b' '..=b'~'));
    is_plain || core::str::from_utf8(text).is_ok_and(|text| !text.contains(misleads))
}

/// Whether a character controls a terminal, changes the order of other characters, or is invisible
/// (Unicode's categories Cc, Cf, Zl and Zp, except for marks of single scripts).
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
            // The same control sequence begins with one byte, or with one character.
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
