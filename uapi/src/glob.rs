// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT

//! Globs as in DTrace's probe descriptions. The module matches them with its probes, and the
//! library with the names in processes, so that a description means the same to both.
//!
//! `*` matches any text, `?` any byte, `[abc]`, `[a-z]` and `[!a-z]` are sets, and `\` makes the
//! next byte literal. A `[` without a closing bracket is literal. The matcher remembers only one
//! position to return to, the last `*`. That is sufficient: if the text after a later star does not
//! match, moving an earlier star does not help. Therefore the matcher needs no recursion, and its
//! number of steps is at most the product of the lengths of pattern and text.

/// Whether `pattern` contains special characters.
pub fn is_glob(pattern: &[u8]) -> bool {
    pattern.iter().any(stands_for_others)
}

fn stands_for_others(c: &u8) -> bool {
    matches!(c, b'*' | b'?' | b'[' | b'\\')
}

/// Whether `pattern` matches the whole `text`.
pub fn matches(pattern: &[u8], text: &[u8]) -> bool {
    matches_in(pattern, text, &mut 0)
}

/// As [`matches()`], and adds the number of steps taken to `steps`. Each member of a set that may
/// be compared counts as a step.
pub fn matches_in(pattern: &[u8], text: &[u8], steps: &mut u64) -> bool {
    let (mut p, mut t) = (pattern, text);
    // Fast path: most texts differ from the pattern in its literal prefix.
    while let Some((byte, rest)) = p.split_first().filter(|(byte, _)| !stands_for_others(byte)) {
        *steps = steps.saturating_add(1);
        match t.split_first() {
            Some((c, text)) if c == byte => (p, t) = (rest, text),
            _ => return false,
        }
    }
    // State after the last star: the rest of the pattern, and the text that the star has not
    // consumed.
    let mut star: Option<(&[u8], &[u8])> = None;
    loop {
        *steps = steps.saturating_add(1);
        if let Some((b'*', rest)) = p.split_first() {
            if rest.is_empty() {
                return true;
            }
            star = Some((rest, t));
            p = rest;
            continue;
        }
        let one = one(p);
        if let Some((One::Set { members, .. }, _)) = &one {
            *steps = steps.saturating_add(members.len() as u64);
        }
        match (t.split_first(), one) {
            (None, _) if p.is_empty() => return true,
            (Some((c, text)), Some((set, rest))) if set.has(*c) => {
                t = text;
                p = rest;
            }
            _ => {
                // Let the star consume one more byte.
                let Some((after, from)) = star else {
                    return false;
                };
                let Some((_, from)) = from.split_first() else {
                    return false;
                };
                star = Some((after, from));
                p = after;
                t = from;
            }
        }
    }
}

/// The meaning of one position of a pattern.
enum One<'a> {
    Any,
    Byte(u8),
    Set { not: bool, members: &'a [u8] },
}

impl One<'_> {
    fn has(&self, c: u8) -> bool {
        match self {
            One::Any => true,
            One::Byte(b) => *b == c,
            One::Set { not, members } => in_set(members, c) != *not,
        }
    }
}

/// The first position of `p`, which must not be a star, and the rest of `p`.
fn one(p: &[u8]) -> Option<(One<'_>, &[u8])> {
    let (first, rest) = p.split_first()?;
    Some(match first {
        b'?' => (One::Any, rest),
        b'\\' => match rest.split_first() {
            Some((c, rest)) => (One::Byte(*c), rest),
            None => (One::Byte(b'\\'), rest),
        },
        b'[' => match set(rest) {
            Some(found) => found,
            None => (One::Byte(b'['), rest),
        },
        c => (One::Byte(*c), rest),
    })
}

/// Parses the set whose opening bracket precedes `p`. Returns `None` if the bracket is not closed.
fn set(p: &[u8]) -> Option<(One<'_>, &[u8])> {
    let (not, p) = match p.split_first() {
        Some((b'!', rest)) => (true, rest),
        _ => (false, p),
    };
    let mut escaped = false;
    let end = p.iter().enumerate().position(|(i, c)| {
        // A bracket at the very beginning is a member.
        let closes = *c == b']' && i > 0 && !escaped;
        escaped = *c == b'\\' && !escaped;
        closes
    })?;
    let (members, rest) = p.split_at(end);
    Some((One::Set { not, members }, rest.get(1..)?))
}

fn in_set(mut members: &[u8], c: u8) -> bool {
    while let Some((low, rest)) = member(members) {
        members = rest;
        let high = match rest.split_first() {
            Some((b'-', after)) => member(after),
            _ => None,
        };
        match high {
            Some((high, after)) => {
                if (low..=high).contains(&c) {
                    return true;
                }
                members = after;
            }
            None if low == c => return true,
            None => {}
        }
    }
    false
}

fn member(members: &[u8]) -> Option<(u8, &[u8])> {
    match members {
        [b'\\', c, rest @ ..] | [c, rest @ ..] => Some((*c, rest)),
        [] => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{matches, matches_in};

    fn check(pattern: &str, yes: &[&str], no: &[&str]) {
        for text in yes {
            assert!(
                matches(pattern.as_bytes(), text.as_bytes()),
                "{pattern} {text}"
            );
        }
        for text in no {
            assert!(
                !matches(pattern.as_bytes(), text.as_bytes()),
                "{pattern} {text}"
            );
        }
    }

    #[test]
    fn stars() {
        check("*", &["", "a", "vfs_read"], &[]);
        check("vfs_*", &["vfs_", "vfs_read"], &["vfs", "xvfs_read"]);
        check("*read", &["read", "vfs_read", "readread"], &["reads"]);
        check(
            "a*b*c",
            &["abc", "aXbYc", "abcbc", "abbcc"],
            &["acb", "ab", "abcX"],
        );
        check("*a*", &["a", "xax"], &["", "x"]);
        check("**a", &["a", "ba"], &["b"]);
    }

    #[test]
    fn steps_are_counted() {
        let steps = |pattern: &str, text: &str| {
            let mut steps = 0;
            matches_in(pattern.as_bytes(), text.as_bytes(), &mut steps);
            steps
        };
        // One step for each byte, and one for the end.
        assert_eq!(steps("entry", "entry"), 6);
        assert_eq!(steps("entry", "return"), 1);
        // Six bytes at three positions, and a set of six members at each.
        assert!(steps("*[abcdef]x", "aaaaaa") > 6 * 6);
        assert!(steps("*aab", &"a".repeat(100)) > 200);
    }

    #[test]
    fn single_places() {
        check("?", &["a"], &["", "ab"]);
        check("sys_?ead", &["sys_read"], &["sys_ead", "sys_rread"]);
        check("tick-?", &["tick-1"], &["tick-10"]);
    }

    #[test]
    fn sets() {
        check("[ab]x", &["ax", "bx"], &["cx", "x", "abx"]);
        check("[a-c][0-9]", &["a0", "c9"], &["d0", "aa"]);
        check("[!a-c]", &["d", "!"], &["a", "b", ""]);
        check("[]a]", &["]", "a"], &["b"]);
        check("[a-]", &["a", "-"], &["b"]);
        check("[\\]x]", &["]", "x"], &["\\"]);
        check("[z-a]", &[], &["z", "a", "m"]);
        check("[abc", &["[abc"], &["a"]);
        check("[", &["["], &[""]);
    }

    #[test]
    fn escapes() {
        check("a\\*b", &["a*b"], &["aXb", "a\\*b"]);
        check("a\\?", &["a?"], &["ab"]);
        check("\\", &["\\"], &[""]);
        check("*\\[", &["x["], &["x"]);
    }

    #[test]
    fn plain_text_is_compared_whole() {
        check("entry", &["entry"], &["entr", "entryx", "Entry"]);
        check("", &[""], &["a"]);
    }

    #[test]
    fn hostile_patterns_end_soon() {
        let text = [b'a'; 191];
        let mut pattern = b"a*".repeat(90);
        pattern.push(b'b');
        assert!(!matches(&pattern, &text));
    }
}
