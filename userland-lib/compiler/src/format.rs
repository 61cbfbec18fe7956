// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The parser of D's printf formats.
//!
//! The compiler checks a format's conversions against the types of the arguments, and the consumer
//! prints records with it. Both use the same parsed form, so the consumer can print with every
//! format that was compiled. A format is a sequence of [`Item`]s: literal text (the lexer has
//! already resolved escapes) and conversions. In addition to C, D has the conversions `%a` (kernel
//! address), `%A` (user address), `%k` (stack), `%S` (escaped string), `%P` (port), `%T` and `%Y`
//! (times), the width `?` (the number of digits of a pointer) and the flag `@` (the value of an
//! aggregation).
//!
//! Invariant: every `Conversion::kind` is a member of [`KINDS`].

use serde::{Deserialize, Serialize};
use std::fmt;

/// The conversion letters of D.
pub const KINDS: &str = "aAcCdeEfFgGIikoOpPsSTuxXY";

/// The width that `?` stands for: the number of hexadecimal digits of a pointer.
pub const POINTER_DIGITS: usize = 16;

/// The maximum width or precision, which limits the memory for the output.
pub const MAX_COUNT: usize = 1 << 24;

/// A parsed format. It is serialized as its text, so that reading it back parses it again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub struct Format {
    /// Literals and conversions in order.
    pub items: Vec<Item>,
}

/// A part of a format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// Bytes that are printed unchanged.
    Literal(Vec<u8>),
    /// A conversion, where an argument is printed.
    Conv(Conversion),
}

/// A width or a precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// A number in the format.
    Fixed(usize),
    /// `*`: a separate argument.
    Star,
}

/// The size prefix of a conversion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Size {
    /// No prefix: the argument's own size applies.
    #[default]
    Natural,
    /// `hh`
    Char,
    /// `h`
    Short,
    /// `l`
    Long,
    /// `ll`
    LongLong,
    /// `L`
    LongDouble,
    /// `w`: wide characters, which D treats as plain ones
    Wide,
}

/// The flags of a conversion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// `-`: pad on the right
    pub left: bool,
    /// `+`: always a sign
    pub plus: bool,
    /// ` `: a space in place of a plus sign
    pub space: bool,
    /// `#`: the alternate form
    pub alt: bool,
    /// `0`: pad with zeros
    pub zero: bool,
    /// `'`: group thousands
    pub group: bool,
}

/// One conversion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conversion {
    /// Its flags.
    pub flags: Flags,
    /// The minimum number of characters.
    pub width: Option<Count>,
    /// The maximum number of digits or characters.
    pub precision: Option<Count>,
    /// The size prefix.
    pub size: Size,
    /// `@`: prints the value of an aggregation instead of a key.
    pub agg: bool,
    /// The conversion letter, one of [`KINDS`].
    pub kind: char,
    /// Whether it consists only of its letter, apart from `@`.
    pub bare: bool,
}

impl Conversion {
    /// Returns the number of arguments that this conversion takes: one for the value and one for
    /// each `*`.
    pub fn args(&self) -> usize {
        let star = |c: Option<Count>| usize::from(c == Some(Count::Star));
        1 + star(self.width) + star(self.precision)
    }

    /// Whether it prints a signed integer.
    pub fn is_signed(&self) -> bool {
        matches!(self.kind, 'd' | 'i')
    }

    /// Whether it prints any integer.
    pub fn is_integer(&self) -> bool {
        matches!(self.kind, 'd' | 'i' | 'o' | 'O' | 'u' | 'x' | 'X' | 'p')
    }

    /// Whether it prints a floating-point number.
    pub fn is_float(&self) -> bool {
        matches!(self.kind, 'a' | 'A' | 'e' | 'E' | 'f' | 'F' | 'g' | 'G')
    }

    /// Returns the name for error messages: size prefix and letter.
    pub fn name(&self) -> String {
        let prefix = match self.size {
            Size::Natural => "",
            Size::Char => "hh",
            Size::Short => "h",
            Size::Long => "l",
            Size::LongLong => "ll",
            Size::LongDouble => "L",
            Size::Wide => "w",
        };
        format!("{prefix}{}", self.kind)
    }
}

/// Formats the conversion in D's syntax.
impl fmt::Display for Conversion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Flags {
            left,
            plus,
            space,
            alt,
            zero,
            group,
        } = self.flags;
        let flags = [left, plus, space, alt, zero, group, self.agg];
        f.write_str("%")?;
        for (_, letter) in flags.iter().zip("-+ #0'@".chars()).filter(|(on, _)| **on) {
            write!(f, "{letter}")?;
        }
        let count = |count| match count {
            Count::Fixed(number) => number.to_string(),
            Count::Star => "*".to_owned(),
        };
        f.write_str(&self.width.map_or(String::new(), count))?;
        if let Some(precision) = self.precision {
            write!(f, ".{}", count(precision))?;
        }
        f.write_str(&self.name())
    }
}

/// A format in D's syntax: text, or bytes if it is not valid UTF-8.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    Text(String),
    Bytes(Vec<u8>),
}

impl From<Format> for Written {
    fn from(format: Format) -> Self {
        let mut bytes = Vec::new();
        for item in &format.items {
            match item {
                Item::Literal(text) => {
                    for &byte in text {
                        bytes.extend(std::iter::repeat_n(byte, 1 + usize::from(byte == b'%')));
                    }
                }
                Item::Conv(conversion) => bytes.extend(conversion.to_string().bytes()),
            }
        }
        String::from_utf8(bytes).map_or_else(|error| Self::Bytes(error.into_bytes()), Self::Text)
    }
}

impl TryFrom<Written> for Format {
    type Error = FormatError;

    fn try_from(written: Written) -> Result<Self, FormatError> {
        match written {
            Written::Text(text) => Self::parse(text),
            Written::Bytes(bytes) => Self::parse(bytes),
        }
    }
}

/// Why a format is rejected; conversions are counted from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormatError {
    /// The number of the conversion.
    pub index: usize,
    /// What is wrong with it.
    pub kind: FormatErrorKind,
}

/// What is wrong with a conversion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FormatErrorKind {
    /// The format ends within it.
    Truncated,
    /// D has no conversion with this letter.
    Undefined(char),
    /// `%%` with flags, width or size.
    Percent,
    /// `%n$`.
    Positional,
    /// A second `.`.
    Dots,
    /// A second `*` in the width or the precision, as named.
    Stars(&'static str),
    /// A width or precision above [`MAX_COUNT`].
    Count,
}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "format conversion #{} ", self.index)?;
        match &self.kind {
            FormatErrorKind::Truncated => write!(f, "name expected before end of format string"),
            FormatErrorKind::Undefined(c) => write!(f, "is undefined: %{c}"),
            FormatErrorKind::Percent => write!(f, "cannot be combined with other format flags: %%"),
            FormatErrorKind::Positional => write!(f, "uses unsupported positional format (%n$)"),
            FormatErrorKind::Dots => write!(f, "has more than one '.' specified"),
            FormatErrorKind::Stars(what) => {
                write!(f, "has more than one '*' specified for the output {what}")
            }
            FormatErrorKind::Count => write!(f, "has a width or precision out of range"),
        }
    }
}

impl std::error::Error for FormatError {}

impl Format {
    /// Parses `text`.
    pub fn parse(text: impl AsRef<[u8]>) -> Result<Self, FormatError> {
        let mut items = Vec::new();
        let mut literal = Vec::new();
        let mut scanner = Scanner {
            rest: text.as_ref(),
            index: 0,
        };
        while let Some(byte) = scanner.next() {
            if byte != b'%' {
                literal.push(byte);
                continue;
            }
            if scanner.eat(b'%') {
                literal.push(b'%');
                continue;
            }
            if !literal.is_empty() {
                items.push(Item::Literal(std::mem::take(&mut literal)));
            }
            items.push(Item::Conv(scanner.conversion()?));
        }
        if !literal.is_empty() {
            items.push(Item::Literal(literal));
        }
        Ok(Self { items })
    }

    /// Returns the conversions, in order.
    pub fn conversions(&self) -> impl Iterator<Item = &Conversion> {
        self.items.iter().filter_map(|item| match item {
            Item::Conv(conversion) => Some(conversion),
            Item::Literal(_) => None,
        })
    }
}

/// The rest of the text, and the number of conversions seen.
struct Scanner<'a> {
    rest: &'a [u8],
    index: usize,
}

impl Scanner<'_> {
    fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    fn eat(&mut self, byte: u8) -> bool {
        let hit = self.peek() == Some(byte);
        if hit {
            self.next();
        }
        hit
    }

    fn error(&self, kind: FormatErrorKind) -> FormatError {
        FormatError {
            index: self.index,
            kind,
        }
    }

    /// Whether a `$` follows, with or without digits before it.
    fn digits_and_dollar(&self) -> bool {
        let mut rest = self.rest.iter().skip_while(|byte| byte.is_ascii_digit());
        rest.next() == Some(&b'$')
    }

    /// Parses a conversion after its `%`.
    fn conversion(&mut self) -> Result<Conversion, FormatError> {
        self.index += 1;
        let mut agg = false;
        let flags = self.flags(&mut agg);
        let width = self.count("width")?;
        agg |= self.eat(b'@');
        let precision = if self.eat(b'.') {
            Some(self.count("precision")?.unwrap_or(Count::Fixed(0)))
        } else {
            None
        };
        agg |= self.eat(b'@');
        let size = self.size();
        let here = self.rest;
        let kind = match self.next() {
            None => return Err(self.error(FormatErrorKind::Truncated)),
            Some(b'.') => return Err(self.error(FormatErrorKind::Dots)),
            Some(b'$') => return Err(self.error(FormatErrorKind::Positional)),
            Some(b'%') => return Err(self.error(FormatErrorKind::Percent)),
            // After a `*`: the number of the argument to which it refers.
            Some(b'0'..=b'9') if self.digits_and_dollar() => {
                return Err(self.error(FormatErrorKind::Positional))
            }
            Some(byte) if KINDS.as_bytes().contains(&byte) => char::from(byte),
            Some(_) => {
                let text = String::from_utf8_lossy(here);
                let letter = text.chars().next().unwrap_or_default();
                return Err(self.error(FormatErrorKind::Undefined(letter)));
            }
        };
        Ok(Conversion {
            flags,
            width,
            precision,
            size,
            agg,
            kind,
            bare: width.is_none()
                && precision.is_none()
                && size == Size::Natural
                && flags == Flags::default(),
        })
    }

    fn flags(&mut self, agg: &mut bool) -> Flags {
        let mut flags = Flags::default();
        loop {
            match self.peek() {
                Some(b'-') => flags.left = true,
                Some(b'+') => flags.plus = true,
                Some(b' ') => flags.space = true,
                Some(b'#') => flags.alt = true,
                Some(b'0') => flags.zero = true,
                Some(b'\'') => flags.group = true,
                Some(b'@') => *agg = true,
                _ => return flags,
            }
            self.next();
        }
    }

    fn count(&mut self, what: &'static str) -> Result<Option<Count>, FormatError> {
        if self.eat(b'*') {
            return if self.eat(b'*') {
                Err(self.error(FormatErrorKind::Stars(what)))
            } else {
                Ok(Some(Count::Star))
            };
        }
        if self.eat(b'?') {
            return Ok(Some(Count::Fixed(POINTER_DIGITS)));
        }
        let mut value = None;
        while let Some(digit) = self.peek().and_then(|byte| char::from(byte).to_digit(10)) {
            self.next();
            let next = value
                .unwrap_or(0usize)
                .saturating_mul(10)
                .saturating_add(digit as usize);
            value = Some(next);
        }
        if value.is_some_and(|value| value > MAX_COUNT) {
            return Err(self.error(FormatErrorKind::Count));
        }
        Ok(value.map(Count::Fixed))
    }

    fn size(&mut self) -> Size {
        if self.eat(b'h') {
            return if self.eat(b'h') {
                Size::Char
            } else {
                Size::Short
            };
        }
        if self.eat(b'l') {
            return if self.eat(b'l') {
                Size::LongLong
            } else {
                Size::Long
            };
        }
        if self.eat(b'L') {
            return Size::LongDouble;
        }
        if self.eat(b'w') {
            return Size::Wide;
        }
        Size::Natural
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conv(text: &str) -> Conversion {
        let format = Format::parse(text).unwrap();
        let [Item::Conv(conversion)] = &format.items[..] else {
            panic!("{text}: {format:?}")
        };
        conversion.clone()
    }

    #[test]
    fn literals_are_bytes() {
        let format = Format::parse(b"\xc0%d\xff%%").unwrap();
        assert_eq!(format.items[0], Item::Literal(b"\xc0".into()));
        assert_eq!(format.items[2], Item::Literal(b"\xff%".into()));
        for text in [&b"\xc0%d\xff%%"[..], b"100%% \xc3\xa9 %-5s"] {
            let format = Format::parse(text).unwrap();
            let kept = serde_json::to_string(&format).unwrap();
            assert_eq!(serde_json::from_str::<Format>(&kept).unwrap(), format);
            assert_eq!(kept.starts_with('"'), std::str::from_utf8(text).is_ok());
        }
        let error = Format::parse("%\u{e9}").unwrap_err();
        assert_eq!(
            error.to_string(),
            "format conversion #1 is undefined: %\u{e9}"
        );
        let error = Format::parse(b"%\xff").unwrap_err();
        assert_eq!(error.kind, FormatErrorKind::Undefined('\u{fffd}'));
    }

    #[test]
    fn literals_and_conversions_alternate() {
        let format = Format::parse("a%d%%b%-5s\n").unwrap();
        assert_eq!(format.items.len(), 5);
        assert_eq!(format.items[0], Item::Literal("a".into()));
        assert_eq!(format.items[4], Item::Literal("\n".into()));
        let Item::Conv(last) = &format.items[3] else {
            panic!()
        };
        assert_eq!(
            (last.kind, last.flags.left, last.width),
            ('s', true, Some(Count::Fixed(5)))
        );
    }

    #[test]
    fn what_is_more_than_its_letter_is_not_bare() {
        let bare = |text| conv(text).bare;
        assert!(bare("%d") && bare("%s") && bare("%@d"));
        for text in ["%5d", "%*d", "%.5d", "%-d", "%ld"] {
            assert!(!bare(text), "{text}");
        }
    }

    #[test]
    fn literal_percent_joins_its_neighbours() {
        assert_eq!(
            Format::parse("a%%b").unwrap().items,
            [Item::Literal("a%b".into())]
        );
    }

    #[test]
    fn flags_width_precision_and_size() {
        let c = conv("%+ #0'-12.3lld");
        assert!(
            c.flags.plus
                && c.flags.space
                && c.flags.alt
                && c.flags.zero
                && c.flags.group
                && c.flags.left
        );
        assert_eq!(
            (c.width, c.precision, c.size),
            (
                Some(Count::Fixed(12)),
                Some(Count::Fixed(3)),
                Size::LongLong
            )
        );
        assert_eq!(c.name(), "lld");
        let c = conv("%*.*hhx");
        assert_eq!(
            (c.width, c.precision, c.args()),
            (Some(Count::Star), Some(Count::Star), 3)
        );
        assert_eq!(conv("%.s").precision, Some(Count::Fixed(0)));
        assert_eq!(conv("%?p").width, Some(Count::Fixed(16)));
    }

    #[test]
    fn the_aggregation_flag_may_stand_before_or_after_the_width() {
        for text in ["%@8u", "%8@u", "%@-8u", "%-8@u"] {
            let c = conv(text);
            assert!(
                c.agg && c.kind == 'u' && c.width == Some(Count::Fixed(8)),
                "{text}"
            );
        }
        assert!(!conv("%8u").agg);
    }

    #[test]
    fn bad_formats_say_which_conversion_and_why() {
        for (text, message) in [
            ("%d %", "#2 name expected before end of format string"),
            ("%ll", "#1 name expected before end of format string"),
            ("%d %Z", "#2 is undefined: %Z"),
            ("%n", "#1 is undefined: %n"),
            ("%1$d", "#1 uses unsupported positional format (%n$)"),
            ("%5%", "#1 cannot be combined with other format flags: %%"),
            ("%.3.2d", "#1 has more than one '.' specified"),
            (
                "%**d",
                "#1 has more than one '*' specified for the output width",
            ),
            (
                "%.**d",
                "#1 has more than one '*' specified for the output precision",
            ),
            (
                "%99999999999999999999999d",
                "#1 has a width or precision out of range",
            ),
        ] {
            let error = Format::parse(text).unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("format conversion {message}"),
                "{text}"
            );
        }
    }
}
