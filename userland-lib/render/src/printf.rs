// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! `printf()`: applies a format's conversions to recorded values.
//!
//! The conversion letter determines the form of a value; the recorded value determines its size and
//! whether it is signed. So `%d` of an unsigned type prints no sign, and `%x` of a negative `char`
//! prints two digits. Records are untrusted: a value that does not fit its conversion is an error,
//! not a panic, and then nothing is printed.

use std::{
    borrow::{Borrow, Cow},
    net::{Ipv4Addr, Ipv6Addr},
};

use thiserror::Error;

use super::{
    float,
    pad::{self, Radix, Spec},
    symbol, Renderer,
};
use dtrace_compiler::format::{Conversion, Count, Format, Item, Size, MAX_COUNT};
use dtrace_consumer::value::{to_f64, Datum, Kind};

/// Why values cannot be printed with a format. Conversions are counted from 1.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum RenderError {
    /// There are fewer values than conversions.
    #[error("format conversion #{0} has no recorded value")]
    Missing(usize),
    /// The conversion (first number) cannot print a value of this size (second number, bytes).
    #[error("format conversion #{0} cannot print a value of {1} bytes")]
    Size(usize, usize),
}

/// The error of a conversion that cannot print its value.
pub(super) struct Unfit;

impl Renderer<'_> {
    /// Appends `format` with `args`. On an error `out` is unchanged.
    pub fn printf<'d, D: Borrow<Datum<'d>>>(
        &self,
        out: &mut Vec<u8>,
        format: &Format,
        args: impl IntoIterator<Item = D>,
    ) -> Result<(), RenderError> {
        let mut args = args.into_iter();
        self.format(out, format, |_, spec, conv, out| {
            let spec = match conv.bare {
                true => Spec::default(),
                false => spec.resolve(&mut args)?,
            };
            let datum = args.next().ok_or(None)?;
            let datum = datum.borrow();
            if conv.bare && common(out, conv.kind, datum) {
                return Ok(());
            }
            self.convert(out, conv.kind, conv.size, &spec, datum)
                .map_err(|Unfit| Some(datum.data.len()))
        })
    }

    /// Appends the literals of `format` and calls `each` for every conversion, numbered from 1.
    /// `each` prints the conversion, or fails with the size of the value that did not fit, or
    /// with `None` if there was no value. On an error `out` is unchanged.
    pub(super) fn format<F>(
        &self,
        out: &mut Vec<u8>,
        format: &Format,
        mut each: F,
    ) -> Result<(), RenderError>
    where
        F: FnMut(usize, Unresolved, &Conversion, &mut Vec<u8>) -> Result<(), Option<usize>>,
    {
        let start = out.len();
        let mut index = 0;
        for item in &format.items {
            match item {
                Item::Literal(text) => match &text[..] {
                    // Fast path: most literals are a single byte between two values.
                    [byte] => out.push(*byte),
                    bytes => out.extend_from_slice(bytes),
                },
                Item::Conv(conv) => {
                    index += 1;
                    if let Err(size) = each(index, Unresolved(conv), conv, out) {
                        out.truncate(start);
                        return Err(match size {
                            Some(size) => RenderError::Size(index, size),
                            None => RenderError::Missing(index),
                        });
                    }
                }
            }
        }
        Ok(())
    }

    /// Appends one value.
    pub(super) fn convert(
        &self,
        out: &mut Vec<u8>,
        kind: char,
        size: Size,
        spec: &Spec,
        datum: &Datum<'_>,
    ) -> Result<(), Unfit> {
        if matches!(datum.kind, Kind::Stack | Kind::Ustack | Kind::StackValue) {
            self.stack(out, datum, Some(spec));
            return Ok(());
        }
        match kind {
            // `%a` and `%A` print addresses, unless the value is a floating-point number.
            'e' | 'E' | 'f' | 'F' | 'g' | 'G' | 'a' | 'A'
                if datum.kind == Kind::Float || !matches!(kind, 'a' | 'A') =>
            {
                let value = to_f64(datum.data).ok_or(Unfit)?;
                float::float(out, spec, value, kind);
            }
            'c' => pad::pad(out, &[low_byte(datum)?], spec.width, spec.flags.left),
            's' | 'S' | 'C' | 'a' | 'A' | 'Y' | 'T' | 'I' | 'P' => {
                // A precision of zero counts for `%a` of a floating-point number alone.
                let precision = spec
                    .precision
                    .filter(|n| *n > 0 || !matches!(kind, 'a' | 'A'));
                let spec = Spec { precision, ..*spec };
                pad::string(out, &spec, &self.textual(kind, size, datum)?);
            }
            _ => integer(out, kind, size, spec, datum)?,
        }
        Ok(())
    }

    /// Returns the text of a conversion that pads text.
    fn textual<'d>(
        &self,
        kind: char,
        size: Size,
        datum: &Datum<'d>,
    ) -> Result<Cow<'d, [u8]>, Unfit> {
        let text = match kind {
            's' if matches!(size, Size::Long | Size::Wide) => wide_text(datum.data),
            's' => return Ok(self.text(datum)),
            'S' => escape(&self.text(datum)),
            'C' => escape(&[low_byte(datum)?]),
            'Y' => self.zone.short(datum.unsigned().ok_or(Unfit)?),
            'T' => self.zone.long(datum.unsigned().ok_or(Unfit)?),
            'I' => internet_address(datum.data)?,
            'P' => self.port(datum)?,
            _ => self.address(kind, datum)?,
        };
        Ok(text.into_bytes().into())
    }

    fn text<'d>(&self, datum: &Datum<'d>) -> Cow<'d, [u8]> {
        match datum.kind {
            Kind::Sym | Kind::Mod | Kind::Usym | Kind::Umod | Kind::Uaddr => {
                self.location(datum).unwrap_or_default().into_bytes().into()
            }
            _ => datum.text().into(),
        }
    }

    /// Returns the text of `%a` and `%A`: symbol and offset, or the object for `mod()` and
    /// `umod()`.
    fn address(&self, kind: char, datum: &Datum<'_>) -> Result<String, Unfit> {
        if matches!(datum.kind, Kind::Mod | Kind::Umod) {
            return self.location(datum).ok_or(Unfit);
        }
        let (pid, pc) = datum.address().ok_or(Unfit)?;
        let location = if pid.is_some() || kind == 'A' {
            self.user(pid, pc)
        } else {
            self.kernel(pc)
        };
        Ok(symbol::address(pc, location.as_ref()))
    }

    fn port(&self, datum: &Datum<'_>) -> Result<String, Unfit> {
        let port = datum.unsigned().ok_or(Unfit)?;
        let name = u16::try_from(port).ok().and_then(|p| self.symbols.port(p));
        Ok(name.unwrap_or_else(|| port.to_string()))
    }
}

/// Fast path for most values: appends strings and signed numbers of bare conversions. Returns
/// `false`, without output, for all others.
#[inline]
fn common(out: &mut Vec<u8>, kind: char, datum: &Datum<'_>) -> bool {
    match (kind, datum.kind) {
        ('s', Kind::Str) => out.extend_from_slice(datum.text()),
        ('d' | 'i', Kind::Int { signed: true }) => match datum.signed() {
            Some(value) => pad::decimal(out, value),
            None => return false,
        },
        _ => return false,
    }
    true
}

/// A conversion whose width and precision may still be arguments (`*`).
pub(super) struct Unresolved<'a>(pub &'a Conversion);

impl Unresolved<'_> {
    /// Takes the values of `*` from `args`. A negative width adjusts to the left; a negative
    /// precision counts as none. Fails with the size of a value that is not an integer, or with
    /// `None` if there is no value.
    pub fn resolve<'d, D: Borrow<Datum<'d>>>(
        self,
        args: &mut impl Iterator<Item = D>,
    ) -> Result<Spec, Option<usize>> {
        let Self(conv) = self;
        let mut star = || -> Result<i64, Option<usize>> {
            let datum = args.next().ok_or(None)?;
            let datum = datum.borrow();
            // An `int`, as in C.
            let value = datum.signed().ok_or(Some(datum.data.len()))?;
            Ok(i64::from(value as i32))
        };
        let cap = |n: u64| usize::try_from(n).unwrap_or(MAX_COUNT).min(MAX_COUNT);
        let mut spec = Spec {
            flags: conv.flags,
            ..Spec::default()
        };
        match conv.width {
            None => {}
            Some(Count::Fixed(n)) => spec.width = n,
            Some(Count::Star) => {
                let width = star()?;
                spec.flags.left |= width < 0;
                spec.width = cap(width.unsigned_abs());
            }
        }
        spec.precision = match conv.precision {
            None => None,
            Some(Count::Fixed(n)) => Some(n),
            Some(Count::Star) => u64::try_from(star()?).ok().map(cap),
        };
        // In D, unlike C, a precision of zero counts as none, except for `%a`, `%e`, `%f` and
        // `%g`.
        spec.precision = spec.precision.filter(|&n| n > 0 || conv.is_float());
        Ok(spec)
    }
}

/// Appends an integer or an address as a number. `hh` and `h` truncate it, as in C.
fn integer(
    out: &mut Vec<u8>,
    kind: char,
    size: Size,
    spec: &Spec,
    datum: &Datum<'_>,
) -> Result<(), Unfit> {
    let radix = match kind {
        'o' | 'O' => Radix::Oct,
        'x' | 'p' => Radix::Hex,
        'X' => Radix::HexUpper,
        _ => Radix::Dec,
    };
    if matches!(kind, 'd' | 'i') && datum.is_signed() {
        let value = datum.signed().ok_or(Unfit)?;
        let value = match size {
            Size::Char => i64::from(value as i8),
            Size::Short => i64::from(value as i16),
            _ => value,
        };
        pad::signed(out, spec, value);
    } else {
        let (_, value) = datum.address().ok_or(Unfit)?;
        let value = match size {
            Size::Char => u64::from(value as u8),
            Size::Short => u64::from(value as u16),
            _ => value,
        };
        pad::unsigned(out, spec, value, radix);
    }
    Ok(())
}

fn low_byte(datum: &Datum<'_>) -> Result<u8, Unfit> {
    datum.unsigned().map(|value| value as u8).ok_or(Unfit)
}

/// Escapes bytes as in a C string literal.
fn escape(text: &[u8]) -> String {
    let mut out = String::with_capacity(text.len());
    for &byte in text {
        match byte {
            0 => out.push_str("\\0"),
            0x07 => out.push_str("\\a"),
            0x08 => out.push_str("\\b"),
            b'\t' => out.push_str("\\t"),
            b'\n' => out.push_str("\\n"),
            0x0b => out.push_str("\\v"),
            0x0c => out.push_str("\\f"),
            b'\r' => out.push_str("\\r"),
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b' '..=b'~' => out.push(byte.into()),
            _ => out.push_str(&format!("\\{byte:03o}")),
        }
    }
    out
}

/// Decodes a string of 4-byte characters up to the first zero. Invalid characters are replaced by
/// U+FFFD.
fn wide_text(data: &[u8]) -> String {
    data.chunks_exact(4)
        .map(|chunk| u32::from_ne_bytes(chunk.try_into().unwrap_or_default()))
        .take_while(|&c| c != 0)
        .map(|c| char::from_u32(c).unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect()
}

/// Formats an IPv4 (4 bytes) or IPv6 (16 bytes) address in network byte order.
fn internet_address(data: &[u8]) -> Result<String, Unfit> {
    if let Ok(v4) = <[u8; 4]>::try_from(data) {
        return Ok(Ipv4Addr::from(v4).to_string());
    }
    let v6: [u8; 16] = data.try_into().map_err(|_| Unfit)?;
    Ok(Ipv6Addr::from(v6).to_string())
}

#[cfg(test)]
mod tests {
    use super::super::{
        testing::{render, Fixture},
        Style, Zone,
    };
    use super::*;

    const SIGNED: Kind = Kind::Int { signed: true };
    const UNSIGNED: Kind = Kind::Int { signed: false };

    fn try_printf(format: &str, args: &[(Kind, &[u8])]) -> (Vec<u8>, Result<(), RenderError>) {
        let format = Format::parse(format).unwrap();
        let args: Vec<_> = args.iter().map(|&(k, d)| Datum::new(k, d)).collect();
        let (style, zone) = (Style::default(), Zone::utc());
        let renderer = Renderer {
            style: &style,
            symbols: &Fixture,
            zone: &zone,
        };
        let mut out = b">".to_vec();
        let result = renderer.printf(&mut out, &format, &args);
        (out, result)
    }

    fn printf(format: &str, args: &[(Kind, &[u8])]) -> String {
        let (out, result) = try_printf(format, args);
        result.unwrap();
        String::from_utf8(out).unwrap()[1..].into()
    }

    #[test]
    fn the_recorded_type_gives_width_and_sign() {
        for (format, kind, data, expected) in [
            ("%d", SIGNED, &(-1i8).to_ne_bytes()[..], "-1"),
            ("%d", UNSIGNED, &(-1i8).to_ne_bytes(), "255"),
            ("%u", SIGNED, &(-1i16).to_ne_bytes(), "65535"),
            ("%x", SIGNED, &(-1i8).to_ne_bytes(), "ff"),
            ("%X", SIGNED, &(-1i32).to_ne_bytes(), "FFFFFFFF"),
            ("%#o", UNSIGNED, &8u64.to_ne_bytes(), "010"),
            (
                "%i",
                SIGNED,
                &i64::MIN.to_ne_bytes(),
                "-9223372036854775808",
            ),
            (
                "%lld",
                UNSIGNED,
                &u64::MAX.to_ne_bytes(),
                "18446744073709551615",
            ),
            ("%hhd", SIGNED, &0x1ffi32.to_ne_bytes(), "-1"),
            ("%hx", SIGNED, &0x12345i32.to_ne_bytes(), "2345"),
            ("%p", UNSIGNED, &0xffff_8880u64.to_ne_bytes(), "ffff8880"),
            ("%?p", UNSIGNED, &0x10u64.to_ne_bytes(), "              10"),
            ("%'d", SIGNED, &1_234_567i32.to_ne_bytes(), "1234567"),
        ] {
            assert_eq!(printf(format, &[(kind, data)]), expected, "{format}");
        }
    }

    #[test]
    fn literals_and_several_values() {
        assert_eq!(
            printf(
                "%s[%d]: 100%%\n",
                &[(Kind::Str, b"sh\0junk"), (SIGNED, &7i32.to_ne_bytes())]
            ),
            "sh[7]: 100%\n"
        );
    }

    #[test]
    fn stars_take_values_of_their_own() {
        let int = |v: i32| v.to_ne_bytes();
        let star = |format, a: i32, b: i32| {
            printf(
                format,
                &[(SIGNED, &int(a)), (SIGNED, &int(b)), (Kind::Str, b"abc\0")],
            )
        };
        assert_eq!(star("%*.*s|", 5, 2), "   ab|");
        assert_eq!(star("%*.*s|", -5, 2), "ab   |");
        assert_eq!(star("%*.*s|", 5, -1), "  abc|");
        assert_eq!(star("%*.*s|", 5, 0), "  abc|");
        let huge = printf("%*d", &[(SIGNED, &int(i32::MIN)), (SIGNED, &int(1))]);
        assert_eq!(huge.len(), MAX_COUNT);
        assert!(huge.starts_with("1 "));
    }

    #[test]
    fn strings_and_characters() {
        for (format, kind, data, expected) in [
            ("%-5s|", Kind::Str, &b"ab\0"[..], "ab   |"),
            ("%5.1s|", Kind::Str, b"ab", "    a|"),
            ("%.0s|", Kind::Str, b"ab", "ab|"),
            ("%s|", Kind::Str, b"\0", "|"),
            ("%s", Kind::Bytes, b"ab\0\0", "ab"),
            (
                "%S",
                Kind::Str,
                b"a\n\"\\\x1b\xff\0",
                "a\\n\\\"\\\\\\033\\377",
            ),
            ("%3c|", SIGNED, b"A", "  A|"),
            ("%c", SIGNED, &0x141i32.to_ne_bytes(), "A"),
            ("%C", SIGNED, b"A", "A"),
            ("%C", SIGNED, b"\0", "\\0"),
            ("%-4C|", SIGNED, &10i32.to_ne_bytes(), "\\n  |"),
        ] {
            assert_eq!(printf(format, &[(kind, data)]), expected, "{format}");
        }
        let (out, result) = try_printf("%s%c", &[(Kind::Str, b"\xff\xfe\0"), (SIGNED, &[0])]);
        assert_eq!((out.as_slice(), result), (&b">\xff\xfe\0"[..], Ok(())));
    }

    #[test]
    fn wide_strings_become_utf8() {
        let text: Vec<u8> = ['ä', 'b', '\0', 'c']
            .iter()
            .flat_map(|&c| u32::from(c).to_ne_bytes())
            .collect();
        assert_eq!(
            printf("%4ws|%ls", &[(Kind::Bytes, &text), (Kind::Bytes, &text)]),
            " äb|äb"
        );
        assert_eq!(printf("%ws", &[(Kind::Bytes, &[0xff; 6])]), "\u{fffd}");
    }

    #[test]
    fn addresses_become_symbols() {
        let kernel = 0x1010u64.to_ne_bytes();
        let user = [42u64.to_ne_bytes(), 0x400008u64.to_ne_bytes()].concat();
        for (format, kind, data, expected) in [
            ("%a", UNSIGNED, &kernel[..], "vmlinux`vfs_read+0x10"),
            ("%-24a|", UNSIGNED, &kernel, "vmlinux`vfs_read+0x10   |"),
            ("%a", Kind::Sym, &kernel, "vmlinux`vfs_read+0x10"),
            ("%a", Kind::Mod, &kernel, "vmlinux"),
            ("%A", UNSIGNED, &kernel, "0x1010"),
            ("%A", Kind::Uaddr, &user, "libc.so.6`malloc+0x8"),
            ("%A", Kind::Umod, &user, "libc.so.6"),
            ("%x", Kind::Uaddr, &user, "400008"),
            ("%s", Kind::Usym, &user, "libc.so.6`malloc"),
        ] {
            assert_eq!(printf(format, &[(kind, data)]), expected, "{format}");
        }
        assert_eq!(
            printf("%k", &[(Kind::Stack, &kernel)]),
            "\nvmlinux`vfs_read+0x10\n"
        );
    }

    #[test]
    fn times_ports_and_internet_addresses() {
        let time = 951_782_400_000_000_000u64.to_ne_bytes();
        assert_eq!(printf("%Y", &[(UNSIGNED, &time)]), "2000 Feb 29 00:00:00");
        assert_eq!(
            printf("%T", &[(UNSIGNED, &time)]),
            "Tue, 29 Feb 2000 00:00:00 UTC"
        );
        assert_eq!(printf("%P", &[(UNSIGNED, &22u16.to_ne_bytes())]), "ssh");
        assert_eq!(printf("%5P", &[(UNSIGNED, &23u16.to_ne_bytes())]), "   23");
        assert_eq!(printf("%I", &[(Kind::Bytes, &[127, 0, 0, 1])]), "127.0.0.1");
        let mut v6 = [0; 16];
        v6[15] = 1;
        assert_eq!(printf("%I", &[(Kind::Bytes, &v6)]), "::1");
    }

    #[test]
    fn floats() {
        assert_eq!(
            printf("%8.2f|", &[(Kind::Float, &(-1.5f64).to_ne_bytes())]),
            "   -1.50|"
        );
        assert_eq!(printf("%g", &[(Kind::Float, &0.5f32.to_ne_bytes())]), "0.5");
        let pi = std::f64::consts::PI.to_ne_bytes();
        for (format, expected) in [
            ("%.0f", "3"),
            ("%#.0e", "3.e+00"),
            ("%a", "0x1.921fb54442d18p+1"),
            ("%12.3A|", "  0X1.922P+1|"),
            ("%E %s", "3.141593E+00 x"),
        ] {
            let args = [(Kind::Float, &pi[..]), (Kind::Str, b"x\0")];
            assert_eq!(printf(format, &args), expected, "{format}");
        }
    }

    #[test]
    fn misfits_are_errors_and_print_nothing() {
        for (format, args, error) in [
            ("a%d", &[][..], RenderError::Missing(1)),
            ("%*d", &[(SIGNED, &[1u8][..])], RenderError::Missing(1)),
            (
                "%d%d",
                &[(SIGNED, &[1]), (SIGNED, &[0; 3])],
                RenderError::Size(2, 3),
            ),
            (
                "%*d",
                &[(SIGNED, &[0; 3]), (SIGNED, &[1])],
                RenderError::Size(1, 3),
            ),
            ("%Y", &[(Kind::Bytes, &[0; 5])], RenderError::Size(1, 5)),
            ("%I", &[(Kind::Bytes, &[0; 5])], RenderError::Size(1, 5)),
            ("%f", &[(Kind::Float, &[0; 5])], RenderError::Size(1, 5)),
            ("%A", &[(Kind::Uaddr, &[0; 8])], RenderError::Size(1, 8)),
            ("%c", &[(SIGNED, &[])], RenderError::Size(1, 0)),
        ] {
            assert_eq!(
                try_printf(format, args),
                (b">".to_vec(), Err(error)),
                "{format}"
            );
        }
    }

    #[test]
    fn rendering_uses_the_styles_zone() {
        let text = render(&Style::default(), |r, out| {
            let format = Format::parse("%Y").unwrap();
            let data = 0u64.to_ne_bytes();
            r.printf(out, &format, [Datum::new(UNSIGNED, &data)])
                .unwrap();
        });
        assert_eq!(text, "1970 Jan  1 00:00:00");
    }
}
