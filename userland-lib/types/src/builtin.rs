// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! D's own types.
//!
//! They are entered first and in a fixed order, so that their numbers are constants. `void` and C's
//! arithmetic types come first, then D's own types; the typedefs after them are those that a D
//! program may use without any kernel type.

use super::{IntType, Kind, Ty, Types};

/// Names, sizes in bytes and signedness of the integers, in the order of their numbers from
/// [`Ty::CHAR`] on.
const INTS: &[(&str, u8, bool)] = &[
    ("char", 1, true),
    ("signed char", 1, true),
    ("unsigned char", 1, false),
    ("short", 2, true),
    ("unsigned short", 2, false),
    ("int", 4, true),
    ("unsigned int", 4, false),
    ("long", 8, true),
    ("unsigned long", 8, false),
    ("long long", 8, true),
    ("unsigned long long", 8, false),
    ("_Bool", 1, false),
];

/// Floating-point types with their sizes in bytes, from [`Ty::FLOAT`] on.
const FLOATS: &[(&str, u8)] = &[("float", 4), ("double", 8), ("long double", 16)];

/// Typedefs and the types that they stand for. The first ones have constants, from [`Ty::INT8_T`]
/// on.
const TYPEDEFS: &[(&str, Ty)] = &[
    ("int8_t", Ty::CHAR),
    ("int16_t", Ty::SHORT),
    ("int32_t", Ty::INT),
    ("int64_t", Ty::LONG),
    ("uint8_t", Ty::UCHAR),
    ("uint16_t", Ty::USHORT),
    ("uint32_t", Ty::UINT),
    ("uint64_t", Ty::ULONG),
    ("intptr_t", Ty::LONG),
    ("uintptr_t", Ty::ULONG),
    ("size_t", Ty::ULONG),
    ("pid_t", Ty::INT),
    ("uid_t", Ty::UINT),
    ("gid_t", Ty::UINT),
    ("ssize_t", Ty::LONG),
    ("id_t", Ty::INT),
    ("uchar_t", Ty::UCHAR),
    ("ushort_t", Ty::USHORT),
    ("uint_t", Ty::UINT),
    ("ulong_t", Ty::ULONG),
    ("longlong_t", Ty::LONGLONG),
    ("u_longlong_t", Ty::ULONGLONG),
    ("u_char", Ty::UCHAR),
    ("u_short", Ty::USHORT),
    ("u_int", Ty::UINT),
    ("u_long", Ty::ULONG),
];

impl Ty {
    /// `void`
    pub const VOID: Self = Self(0);
    /// `char`
    pub const CHAR: Self = Self(1);
    /// `signed char`
    pub const SIGNED_CHAR: Self = Self(2);
    /// `unsigned char`
    pub const UCHAR: Self = Self(3);
    /// `short`
    pub const SHORT: Self = Self(4);
    /// `unsigned short`
    pub const USHORT: Self = Self(5);
    /// `int`
    pub const INT: Self = Self(6);
    /// `unsigned int`
    pub const UINT: Self = Self(7);
    /// `long`
    pub const LONG: Self = Self(8);
    /// `unsigned long`
    pub const ULONG: Self = Self(9);
    /// `long long`
    pub const LONGLONG: Self = Self(10);
    /// `unsigned long long`
    pub const ULONGLONG: Self = Self(11);
    /// `_Bool`
    pub const BOOL: Self = Self(12);
    /// `float`
    pub const FLOAT: Self = Self(13);
    /// `double`
    pub const DOUBLE: Self = Self(14);
    /// `long double`
    pub const LONG_DOUBLE: Self = Self(15);
    /// `string`
    pub const STRING: Self = Self(16);
    /// The type of `stack()` and `ustack()` as actions.
    pub const STACK: Self = Self(17);
    /// The type of `sym()`, `func()` and `mod()`.
    pub const SYMBOL: Self = Self(18);
    /// The type of `usym()`, `ufunc()`, `umod()` and `uaddr()`.
    pub const USYMBOL: Self = Self(19);
    /// A type that is not known yet.
    pub const DYNAMIC: Self = Self(20);
    /// `void *`
    pub const VOID_POINTER: Self = Self(21);
    /// `char *`
    pub const CHAR_POINTER: Self = Self(22);
    /// `int8_t`
    pub const INT8_T: Self = Self(23);
    /// `int16_t`
    pub const INT16_T: Self = Self(24);
    /// `int32_t`
    pub const INT32_T: Self = Self(25);
    /// `int64_t`
    pub const INT64_T: Self = Self(26);
    /// `uint8_t`
    pub const UINT8_T: Self = Self(27);
    /// `uint16_t`
    pub const UINT16_T: Self = Self(28);
    /// `uint32_t`
    pub const UINT32_T: Self = Self(29);
    /// `uint64_t`
    pub const UINT64_T: Self = Self(30);
    /// `intptr_t`
    pub const INTPTR_T: Self = Self(31);
    /// `uintptr_t`
    pub const UINTPTR_T: Self = Self(32);
    /// `size_t`
    pub const SIZE_T: Self = Self(33);
    /// `pid_t`
    pub const PID_T: Self = Self(34);
    /// `uid_t`
    pub const UID_T: Self = Self(35);
    /// `gid_t`
    pub const GID_T: Self = Self(36);
    /// The type of `jstack()`.
    pub const JSTACK: Self = Self(Self::INT8_T.0 + TYPEDEFS.len() as u32);
    /// The type of an undeclared variable that is shown as an `int`, and of expressions of it.
    pub const INFERRED_INT: Self = Self(Self::JSTACK.0 + 1);
    /// The type of an undeclared variable that is shown as an `unsigned int`, and of expressions of
    /// it.
    pub const INFERRED_UINT: Self = Self(Self::JSTACK.0 + 2);
}

impl Types<'_> {
    /// Enters D's own types into the empty table.
    pub(super) fn enter_builtins(&mut self) {
        self.enter(Kind::Void);
        for &(name, size, signed) in INTS {
            self.enter(Kind::Int {
                name: name.into(),
                int: IntType { size, signed },
                is_char: name.ends_with("char"),
            });
        }
        for &(name, size) in FLOATS {
            self.enter(Kind::Float {
                name: name.into(),
                size,
            });
        }
        self.enter(Kind::String);
        self.enter(Kind::Stack(super::stack::NAME));
        for kind in [Kind::Symbol, Kind::Usymbol, Kind::Dynamic] {
            self.enter(kind);
        }
        self.pointer_to(Ty::VOID);
        self.pointer_to(Ty::CHAR);
        for &(name, target) in TYPEDEFS {
            self.declare_typedef(name, target);
        }
        self.enter(Kind::Stack("stack"));
        self.enter(Kind::Inferred(Ty::INT));
        self.enter(Kind::Inferred(Ty::UINT));
    }

    /// Returns the basic type that C's keywords name in any order, such as `long unsigned`; `None`
    /// for words that do not go together.
    pub fn from_words<'a>(words: impl IntoIterator<Item = &'a str>) -> Option<Ty> {
        let (mut sign, mut longs, mut base) = (None, 0, None);
        for word in words {
            match word {
                "signed" | "unsigned" if sign.is_none() => sign = Some(word == "signed"),
                "long" if longs < 2 => longs += 1,
                "short" | "int" | "char" | "void" | "float" | "double" | "_Bool" => {
                    base = match (base, word) {
                        (None, word) => Some(word),
                        // `short int` is `short`
                        (Some("short"), "int") | (Some("int"), "short") => Some("short"),
                        _ => return None,
                    }
                }
                _ => return None,
            }
        }
        let signed = |yes, no| Some(if sign.unwrap_or(true) { yes } else { no });
        match (base, longs, sign) {
            (Some("int"), 0, _) => signed(Ty::INT, Ty::UINT),
            (None, 0, Some(_)) => signed(Ty::INT, Ty::UINT),
            (None | Some("int"), 1, _) => signed(Ty::LONG, Ty::ULONG),
            (None | Some("int"), 2, _) => signed(Ty::LONGLONG, Ty::ULONGLONG),
            (Some("short"), 0, _) => signed(Ty::SHORT, Ty::USHORT),
            (Some("char"), 0, None) => Some(Ty::CHAR),
            (Some("char"), 0, Some(_)) => signed(Ty::SIGNED_CHAR, Ty::UCHAR),
            (Some("void"), 0, None) => Some(Ty::VOID),
            (Some("float"), 0, None) => Some(Ty::FLOAT),
            (Some("double"), 0, None) => Some(Ty::DOUBLE),
            (Some("double"), 1, None) => Some(Ty::LONG_DOUBLE),
            (Some("_Bool"), 0, None) => Some(Ty::BOOL),
            _ => None,
        }
    }
}
