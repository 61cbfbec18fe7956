// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! A recorded value: its bytes and their type in the D program.
//!
//! The kernel describes a value only by its size. Only the compiler knows whether four bytes are a
//! signed number or an address. A [`Datum`] combines both. Whoever renders values takes one, so
//! that values of `trace()`, arguments of `printf()` and keys of aggregations are treated alike.

use dtrace_uapi::action::Action;
use dtrace_uapi::types::StackHead;
use zerocopy::FromBytes;

use dtrace_compiler::statement;

/// The type of recorded bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// An integer of 1, 2, 4 or 8 bytes. Pointers are unsigned integers.
    Int {
        /// Whether D's type is signed.
        signed: bool,
    },
    /// A floating-point number of 4, 8 or 16 bytes.
    Float,
    /// A D string: the bytes before the first NUL.
    Str,
    /// An array or structure that may be text, such as an array of characters.
    Chars,
    /// An array or structure.
    Bytes,
    /// Memory that `tracemem()` recorded.
    Memory,
    /// Kernel addresses.
    Stack,
    /// A process id, addresses, and frames of interpreted code.
    Ustack,
    /// A [`StackHead`], which names the stack's owner and depth, and addresses.
    StackValue,
    /// A kernel address, shown as its symbol.
    Sym,
    /// A kernel address, shown as its module.
    Mod,
    /// A process id and an address, shown as its symbol.
    Usym,
    /// A process id and an address, shown as its object.
    Umod,
    /// A process id and an address, shown as symbol and offset.
    Uaddr,
}

impl Kind {
    /// Returns the kind of a record of the D type `declared`, or that of its `action` if the type
    /// leaves it to the action.
    pub fn of_record(declared: statement::Kind, action: Option<Action>) -> Self {
        match declared {
            statement::Kind::Signed => Self::Int { signed: true },
            statement::Kind::Unsigned => Self::Int { signed: false },
            // An unsigned type narrower than `int` is promoted to `int`, which is signed.
            statement::Kind::Fitted { size, signed } => Self::Int {
                signed: signed || size < 4,
            },
            statement::Kind::Float => Self::Float,
            statement::Kind::String => Self::Str,
            statement::Kind::Chars => Self::Chars,
            statement::Kind::Bytes => Self::Bytes,
            statement::Kind::Stack => Self::StackValue,
            statement::Kind::Action => action.and_then(Self::of_action).unwrap_or(Self::Bytes),
        }
    }

    /// Returns the kind that a recording action implies, or `None` if the value's D type decides.
    pub fn of_action(action: Action) -> Option<Self> {
        Some(match action {
            Action::Tracemem | Action::TracememDynsize => Self::Memory,
            Action::Stack => Self::Stack,
            Action::Ustack | Action::Jstack => Self::Ustack,
            Action::Sym => Self::Sym,
            Action::Mod => Self::Mod,
            Action::Usym => Self::Usym,
            Action::Umod => Self::Umod,
            Action::Uaddr => Self::Uaddr,
            _ => return None,
        })
    }
}

/// A recorded value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datum<'a> {
    /// Their type.
    pub kind: Kind,
    /// The bytes.
    pub data: &'a [u8],
}

impl<'a> Datum<'a> {
    /// Makes a value of `kind`.
    pub const fn new(kind: Kind, data: &'a [u8]) -> Self {
        Self { kind, data }
    }

    /// Narrows the integer to `size` bytes and the given signedness if that keeps its value;
    /// otherwise returns it unchanged.
    #[inline]
    pub fn fitted(self, size: u8, signed: bool) -> Self {
        let kind = Kind::Int { signed };
        let low = match cfg!(target_endian = "little") {
            true => self.data.get(..size.into()),
            false => self
                .data
                .len()
                .checked_sub(size.into())
                .and_then(|at| self.data.get(at..)),
        };
        let narrow = low.map(|data| Self { kind, data });
        let value = |datum: &Self| match signed {
            true => datum.signed(),
            false => datum.unsigned().map(|value| value as i64),
        };
        narrow
            .filter(|narrow| value(narrow) == self.signed())
            .unwrap_or(self)
    }

    /// Returns the value as an unsigned integer of its own size; `None` unless 1, 2, 4 or 8 bytes.
    #[inline]
    pub fn unsigned(&self) -> Option<u64> {
        let data = self.data;
        Some(match data.len() {
            1 => u64::from(data[0]),
            2 => u64::from(u16::from_ne_bytes(data.try_into().ok()?)),
            4 => u64::from(u32::from_ne_bytes(data.try_into().ok()?)),
            8 => u64::from_ne_bytes(data.try_into().ok()?),
            _ => return None,
        })
    }

    /// Returns the value as a signed integer of its own size; `None` unless 1, 2, 4 or 8 bytes.
    #[inline]
    pub fn signed(&self) -> Option<i64> {
        let bits = 64 - 8 * u32::try_from(self.data.len()).ok()?.min(8);
        Some((self.unsigned()? << bits) as i64 >> bits)
    }

    /// Whether its D type is a signed integer.
    pub fn is_signed(&self) -> bool {
        self.kind == Kind::Int { signed: true }
    }

    /// Returns the bytes before the first NUL.
    #[inline]
    pub fn text(&self) -> &'a [u8] {
        until_nul(self.data)
    }

    /// Returns the process to which the value's addresses belong, if it holds user addresses.
    pub fn process(&self) -> Option<u32> {
        match self.kind {
            Kind::Usym | Kind::Umod | Kind::Uaddr | Kind::Ustack => {
                words(self.data).next().map(|pid| pid as u32)
            }
            Kind::StackValue => {
                let (head, _) = StackHead::read_from_prefix(self.data).ok()?;
                (head.is_user != 0).then_some(head.pid)
            }
            _ => None,
        }
    }

    /// Returns the value as an address, with the process to which it belongs if it names one.
    pub fn address(&self) -> Option<(Option<u32>, u64)> {
        match self.kind {
            Kind::Usym | Kind::Umod | Kind::Uaddr => {
                let mut words = words(self.data);
                let pid = words.next()?;
                Some((Some(pid as u32), words.next()?))
            }
            _ => Some((None, self.unsigned()?)),
        }
    }
}

/// Returns the bytes before the first NUL.
#[inline]
pub fn until_nul(data: &[u8]) -> &[u8] {
    data.split(|&b| b == 0).next().unwrap_or_default()
}

/// Returns the 8-byte words of `data`; an incomplete last word is ignored.
pub fn words(data: &[u8]) -> impl Iterator<Item = u64> + Clone + '_ {
    data.chunks_exact(8)
        .map(|chunk| u64::from_ne_bytes(chunk.try_into().unwrap_or_default()))
}

/// Returns the number of 4, 8 or 16 recorded bytes; `None` for other sizes. 16 bytes hold the x87
/// extended format, which is converted to an `f64`.
pub fn to_f64(data: &[u8]) -> Option<f64> {
    match data.len() {
        4 => Some(f32::from_ne_bytes(data.try_into().ok()?).into()),
        8 => Some(f64::from_ne_bytes(data.try_into().ok()?)),
        16 => {
            let mantissa = u64::from_le_bytes(data[..8].try_into().ok()?);
            let high = u16::from_le_bytes(data[8..10].try_into().ok()?);
            Some(extended(mantissa, high))
        }
        _ => None,
    }
}

fn extended(mantissa: u64, high: u16) -> f64 {
    let sign = if high & 0x8000 == 0 { 1.0 } else { -1.0 };
    let exponent = i32::from(high & 0x7fff);
    if exponent == 0x7fff {
        // The mantissa without its integer bit is 0 for infinity and other than 0 for NaN.
        return if mantissa << 1 == 0 {
            sign * f64::INFINITY
        } else {
            f64::NAN
        };
    }
    let exponent = exponent - 16383 - 63;
    // Scale in two steps: the scale may exceed the range of an f64 even if the product does not.
    sign * mantissa as f64 * 2f64.powi(exponent / 2) * 2f64.powi(exponent - exponent / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    const INT: Kind = Kind::Int { signed: true };

    #[test]
    fn integers_have_the_sign_of_their_own_size() {
        for (data, signed, unsigned) in [
            (&[0xff][..], Some(-1), Some(0xff)),
            (&(-2i16).to_ne_bytes(), Some(-2), Some(0xfffe)),
            (
                &i32::MIN.to_ne_bytes(),
                Some(i32::MIN.into()),
                Some(1 << 31),
            ),
            (&i64::MIN.to_ne_bytes(), Some(i64::MIN), Some(1 << 63)),
            (&7i64.to_ne_bytes(), Some(7), Some(7)),
            (&[], None, None),
            (&[1, 2, 3], None, None),
            (&[0; 16], None, None),
        ] {
            let datum = Datum::new(INT, data);
            assert_eq!((datum.signed(), datum.unsigned()), (signed, unsigned));
        }
    }

    #[test]
    fn the_declared_type_decides_and_then_the_action() {
        for (declared, action, kind) in [
            (statement::Kind::Signed, None, INT),
            (statement::Kind::String, Some(Action::Difexpr), Kind::Str),
            (statement::Kind::Action, Some(Action::Jstack), Kind::Ustack),
            (statement::Kind::Action, Some(Action::Mod), Kind::Mod),
            (statement::Kind::Action, Some(Action::Difexpr), Kind::Bytes),
            (statement::Kind::Action, None, Kind::Bytes),
        ] {
            assert_eq!(Kind::of_record(declared, action), kind);
        }
    }

    #[test]
    fn text_ends_at_the_first_nul_or_at_the_end() {
        let text = |data| Datum::new(Kind::Str, data).text();
        assert_eq!(text(b"ab\0c"), b"ab");
        assert_eq!(text(b"abc"), b"abc");
        assert_eq!(text(b""), b"");
    }

    #[test]
    fn addresses_carry_their_process() {
        let user: Vec<u8> = [42u64, 0x1234]
            .iter()
            .flat_map(|w| w.to_ne_bytes())
            .collect();
        let address = |kind, data| Datum::new(kind, data).address();
        assert_eq!(address(Kind::Usym, &user), Some((Some(42), 0x1234)));
        assert_eq!(address(Kind::Usym, &user[..8]), None);
        assert_eq!(address(Kind::Sym, &user[8..]), Some((None, 0x1234)));
    }

    #[test]
    fn recorded_bytes_become_numbers() {
        assert_eq!(to_f64(&1.5f32.to_ne_bytes()), Some(1.5));
        assert_eq!(to_f64(&(-2.25f64).to_ne_bytes()), Some(-2.25));
        assert_eq!(to_f64(&[0; 3]), None);
        let x87 = |mantissa: u64, high: u16| {
            let mut data = [0; 16];
            data[..8].copy_from_slice(&mantissa.to_le_bytes());
            data[8..10].copy_from_slice(&high.to_le_bytes());
            to_f64(&data).unwrap()
        };
        assert_eq!(x87(1 << 63, 16383), 1.0);
        assert_eq!(x87(3 << 62, 0xc000), -3.0);
        assert_eq!(x87(0, 0), 0.0);
        assert_eq!(x87(1 << 63, 0x7fff), f64::INFINITY);
        assert!(x87(3 << 62, 0x7fff).is_nan());
    }
}
