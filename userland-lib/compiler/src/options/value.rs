// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The syntax of option values: switches, numbers, sizes and rates.
//!
//! Every parser accepts the whole text or nothing. A value that exceeds 64 bits is refused, not
//! wrapped.

use dtrace_files::text::parse_number;

/// Words that switch an option on and off.
const WORDS: &[(&str, &str)] = &[
    ("yes", "no"),
    ("enable", "disable"),
    ("enabled", "disabled"),
    ("true", "false"),
    ("on", "off"),
    ("set", "unset"),
    ("1", "0"),
];

/// Units of time in nanoseconds.
const UNITS: &[(&str, u64)] = &[
    ("ns", 1),
    ("nsec", 1),
    ("us", 1_000),
    ("usec", 1_000),
    ("ms", 1_000_000),
    ("msec", 1_000_000),
    ("s", 1_000_000_000),
    ("sec", 1_000_000_000),
    ("m", 60_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("hour", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
    ("day", 86_400_000_000_000),
];

const SECOND: u64 = 1_000_000_000;

/// Parses a switch. Without a value it is on.
pub fn parse_flag(text: Option<&str>) -> Option<bool> {
    let Some(text) = text else { return Some(true) };
    let is = |word: &str| word.eq_ignore_ascii_case(text);
    WORDS.iter().find_map(|(on, off)| {
        if is(on) {
            Some(true)
        } else {
            is(off).then_some(false)
        }
    })
}

/// Parses a number of bytes with an optional suffix k, m, g or t.
pub fn parse_size(text: &str) -> Option<u64> {
    let shift = match text.as_bytes().last()?.to_ascii_lowercase() {
        b'k' => 10,
        b'm' => 20,
        b'g' => 30,
        b't' => 40,
        _ => return parse_number(text),
    };
    parse_number(&text[..text.len() - 1])?.checked_mul(1 << shift)
}

/// Formats a number of bytes so that [`parse_size`] can read it, with the greatest suffix that
/// represents it exactly.
pub fn size_text(bytes: u64) -> String {
    let units = [('t', 40), ('g', 30), ('m', 20), ('k', 10)];
    let exact = units
        .iter()
        .find(|(_, shift)| bytes != 0 && bytes % (1 << shift) == 0);
    match exact {
        Some((suffix, shift)) => format!("{}{suffix}", bytes >> shift),
        None => bytes.to_string(),
    }
}

/// Parses the time between two events and returns it in nanoseconds: a number with a unit of time
/// or `hz`, or nanoseconds without a unit.
pub fn parse_rate(text: &str) -> Option<u64> {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let value = text[..end].parse::<u64>().ok().filter(|value| *value > 0)?;
    let unit = text[end..].to_ascii_lowercase();
    if unit == "hz" {
        return Some(SECOND / value).filter(|interval| *interval > 0);
    }
    let scale = if unit.is_empty() {
        1
    } else {
        UNITS.iter().find(|(name, _)| *name == unit)?.1
    };
    value.checked_mul(scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags() {
        assert_eq!(parse_flag(None), Some(true));
        for (on, off) in WORDS {
            assert_eq!(
                (parse_flag(Some(on)), parse_flag(Some(off))),
                (Some(true), Some(false))
            );
        }
        assert_eq!(parse_flag(Some("On")), Some(true));
        assert_eq!(parse_flag(Some("um, no")), None);
        assert_eq!(parse_flag(Some("")), None);
    }

    #[test]
    fn sizes() {
        assert_eq!(parse_size("512"), Some(512));
        assert_eq!(parse_size("64k"), Some(65536));
        assert_eq!(parse_size("4M"), Some(4 << 20));
        assert_eq!(parse_size("1t"), Some(1 << 40));
        for bad in ["", "k", "4mb", "4 m", "-4m", "18446744073709551615k", "ä"] {
            assert_eq!(parse_size(bad), None, "{bad}");
        }
    }

    #[test]
    fn sizes_as_they_are_written() {
        for text in ["0", "512", "1k", "1000", "1536k", "4m", "3g", "5t"] {
            assert_eq!(size_text(parse_size(text).unwrap()), text);
        }
    }

    #[test]
    fn rates() {
        assert_eq!(parse_rate("10hz"), Some(100_000_000));
        assert_eq!(parse_rate("1sec"), Some(SECOND));
        assert_eq!(parse_rate("250us"), Some(250_000));
        assert_eq!(parse_rate("2Min"), Some(120 * SECOND));
        assert_eq!(parse_rate("77"), Some(77));
        for bad in [
            "",
            "hz",
            "0hz",
            "0",
            "0.5hz",
            "5 hz",
            "5parsecs",
            "2000000000hz",
            "99999999999999d",
        ] {
            assert_eq!(parse_rate(bad), None, "{bad}");
        }
    }
}
