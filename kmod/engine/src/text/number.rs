// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! `lltostr()` and `strtoll()`.

use super::Out;

/// The bases that are supported.
pub const BASES: core::ops::RangeInclusive<i64> = 2..=36;

/// Maximum number of digits of a 64-bit number: those in base 2.
const DIGITS_MAX: usize = 64;

/// Writes `value` in `base`: signed in base 10, unsigned in all others. C's prefixes mark
/// hexadecimal numbers and nonzero octal ones. Writes nothing if `base` is not one of [`BASES`].
pub fn lltostr(value: i64, base: i64, out: &mut Out<'_>) {
    if !BASES.contains(&base) {
        return;
    }
    let mut rest = if base == 10 {
        value.unsigned_abs()
    } else {
        value as u64
    };
    match base {
        10 if value < 0 => out.push(b'-'),
        8 if value != 0 => out.push(b'0'),
        16 => out.extend(b"0x"),
        _ => {}
    }
    let mut digits = [0u8; DIGITS_MAX];
    let mut first = DIGITS_MAX;
    for place in digits.iter_mut().rev() {
        *place = digit(rest.checked_rem(base as u64).unwrap_or(0) as u8);
        rest = rest.checked_div(base as u64).unwrap_or(0);
        first = first.saturating_sub(1);
        if rest == 0 {
            break;
        }
    }
    out.extend(digits.get(first..).unwrap_or(&[]));
}

/// Returns the character of a digit below 36.
pub(super) fn digit(value: u8) -> u8 {
    char::from_digit(value.into(), 36).map_or(b'?', |digit| digit as u8)
}

/// Returns the number at the beginning of `text` in `base`, one of [`BASES`]: white space, a sign,
/// `0x` if the base is 16, then digits. Returns 0 if there is no number. Numbers beyond 64 bits
/// wrap around.
pub fn strtoll(text: &[u8], base: i64) -> i64 {
    let text = text.trim_ascii_start();
    let (negative, text) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    let digits = match text {
        [b'0', b'x' | b'X', rest @ ..] if base == 16 => rest,
        rest => rest,
    };
    let mut value = 0i64;
    for &byte in digits {
        match (byte as char).to_digit(36) {
            Some(digit) if i64::from(digit) < base => {
                value = value.wrapping_mul(base).wrapping_add(digit.into());
            }
            _ => break,
        }
    }
    if negative {
        value.wrapping_neg()
    } else {
        value
    }
}

#[cfg(test)]
mod tests {
    use super::super::written;
    use super::*;

    #[test]
    fn lltostr_knows_bases_and_signs() {
        for (value, base, text) in [
            (0, 10, "0"),
            (-5, 10, "-5"),
            (i64::MIN, 10, "-9223372036854775808"),
            (255, 16, "0xff"),
            (-1, 16, "0xffffffffffffffff"),
            (8, 8, "010"),
            (0, 8, "0"),
            (0, 16, "0x0"),
            (35, 36, "z"),
            (1, 1, ""),
            (1, 37, ""),
        ] {
            assert_eq!(written(|out| lltostr(value, base, out)), text);
        }
        assert_eq!(written(|out| lltostr(-1, 2, out)).len(), 64);
    }

    #[test]
    fn strtoll_reads_what_it_can() {
        for (text, base, value) in [
            ("42", 10, 42),
            ("  -42x", 10, -42),
            ("0x1F", 16, 31),
            ("0x1F", 10, 0),
            ("zz", 36, 35 * 36 + 35),
            ("", 10, 0),
            ("+7", 8, 7),
            ("9", 8, 0),
            ("-9223372036854775808", 10, i64::MIN),
        ] {
            assert_eq!(strtoll(text.as_bytes(), base), value, "{text}");
        }
    }
}
