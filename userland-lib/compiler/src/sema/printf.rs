// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Checks of formats against the types of what they print, for `printf()`, `printa()` and similar
//! actions.
//!
//! Every conversion says which types it takes. Unlike C's compilers, D's enforces this, because the
//! consumer prints what was recorded without another check. A `*` takes an integer argument of its
//! own before the value. In `printa()` plain conversions take the keys in turn (keys may be left
//! over), and those with `@` take the values.

use super::shape::record_kind;
use crate::diag::{Diagnostic, Result};
use crate::format::{Conversion, Count, Format, Size};
use crate::source::Span;
use crate::statement;
use dtrace_types::{IntType, Kind, Ty, Types};

/// An argument of a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arg {
    /// A value of this type.
    Value(Ty),
    /// The null pointer, which may also be printed as a number.
    Null,
    /// An aggregation, which no conversion of `printf()` prints.
    Aggregation,
}

/// The call whose format is checked.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// Name of the function.
    pub name: &'a str,
    /// Number of arguments before those that the format prints.
    pub before: usize,
    /// Place in the source.
    pub span: Span,
}

/// Name and keys of an aggregation, for [`same_keys`].
#[derive(Clone, Copy, Debug)]
pub struct Keyed<'a> {
    /// The aggregation's name.
    pub name: &'a str,
    /// Types of its keys.
    pub keys: &'a [Ty],
}

/// Checks that `format` prints all of `args`. Returns what the records of the arguments are.
pub fn check_printf(
    types: &Types<'_>,
    call: Call<'_>,
    format: &Format,
    args: &[Arg],
) -> Result<Vec<statement::Kind>> {
    let checker = Checker {
        types,
        call,
        args,
        values: &[],
    };
    let used = checker.check(format, false)?;
    if used < args.len() {
        return Err(call.error(
            "D_PRINTF_ARG_EXTRA",
            format!("prototype mismatch: only {used} arguments required by this format string"),
        ));
    }
    let kind = |arg: &Arg| match arg {
        Arg::Value(ty) => record_kind(types, *ty),
        Arg::Null => statement::Kind::Unsigned,
        Arg::Aggregation => statement::Kind::Bytes,
    };
    Ok(args.iter().map(kind).collect())
}

/// Checks that `format` prints the `keys` of an aggregation, its value, and the values of the
/// aggregations joined with it. `values` are the types of all these values.
pub fn check_printa(
    types: &Types<'_>,
    call: Call<'_>,
    format: &Format,
    keys: &[Ty],
    values: &[Ty],
) -> Result<()> {
    let args: Vec<Arg> = keys.iter().copied().map(Arg::Value).collect();
    let args = &args;
    let checker = Checker {
        types,
        call,
        args,
        values,
    };
    checker.check(format, true).map(drop)
}

/// Checks that two aggregations of one `printa()` have keys that can be joined.
pub fn same_keys(types: &Types<'_>, first: Keyed<'_>, other: Keyed<'_>, span: Span) -> Result<()> {
    let count = |keyed: Keyed<'_>| {
        let n = keyed.keys.len();
        format!(
            "@{} has {n} key{}",
            keyed.name,
            if n == 1 { "" } else { "s" }
        )
    };
    let (a, b) = (first.name, other.name);
    if first.keys.len() != other.keys.len() {
        let (in_first, in_other) = (count(first), count(other));
        return Err(Diagnostic::new(
            "D_PRINTA_AGGKEY",
            span,
            format!(
                "printa( ): @{a} and @{b} do not have matching key signatures: {in_first}, {in_other}"
            ),
        ));
    }
    for (i, (&left, &right)) in first.keys.iter().zip(other.keys).enumerate() {
        if !types.compatible(types.shown(left), types.shown(right)) {
            let key = i + 1;
            let how = types.stacks_differ(left, right);
            let (left, right) = (types.name(left), types.name(right));
            let error = Diagnostic::new(
                "D_PRINTA_AGGPROTO",
                span,
                format!(
                    "printa( ): @{b}[ ] key #{key} is incompatible with @{a}:\n\
                     {a:>9} key #{key}: {left}\n{b:>9} key #{key}: {right}"
                ),
            );
            return Err(error.notes(how));
        }
    }
    Ok(())
}

impl Call<'_> {
    fn error(&self, tag: &'static str, text: String) -> Box<Diagnostic> {
        Diagnostic::new(tag, self.span, format!("{}( ) {text}", self.name))
    }
}

/// The types that a conversion takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    Integer,
    Character,
    /// An integer of exactly this size, and sign if it matters.
    Exactly(u8, Option<bool>),
    Float,
    LongDouble,
    Address,
    /// An address to be shown as a symbol, or a floating-point number to be shown as by C's `%a`.
    Symbol,
    /// The same for a user-space address.
    UserAddress,
    String,
    Wide,
    Stack,
    Time,
    Internet,
}

/// Returns what `conv` takes if a `long` has `long` bytes, and D's words for it; `None` if there is
/// no such conversion.
fn wanted(conv: &Conversion, long: u8) -> Option<(Wanted, &'static str)> {
    const INTEGERS: &str = "char, short, int, long, or long long";
    const FLOATS: &str = "float, double, or long double";
    let sized = |size: u8, names: [&'static str; 2]| match conv.kind {
        'd' | 'i' => Some((Wanted::Exactly(size, Some(true)), names[0])),
        'o' | 'u' => Some((Wanted::Exactly(size, Some(false)), names[1])),
        'x' | 'X' => Some((Wanted::Exactly(size, None), names[0])),
        _ => None,
    };
    match (conv.size, conv.kind) {
        (Size::Long | Size::Wide, 'c') => Some((Wanted::Exactly(4, Some(true)), "int")),
        (Size::Long | Size::Wide, 's') => Some((Wanted::Wide, "wchar_t []")),
        (Size::Short, _) => sized(2, ["short", "unsigned short"]),
        // As in C, `l` has no effect on these.
        (Size::Long, 'e' | 'E' | 'f' | 'F' | 'g' | 'G') => Some((Wanted::Float, FLOATS)),
        (Size::Long, _) => sized(long, ["long", "unsigned long"]),
        (Size::LongLong, _) => sized(8, ["long long", "unsigned long long"]),
        (Size::LongDouble, 'e' | 'E' | 'f' | 'F' | 'g' | 'G') => {
            Some((Wanted::LongDouble, "long double"))
        }
        (Size::Natural, kind) => Some(match kind {
            'a' => (Wanted::Symbol, "pointer or integer"),
            'p' => (Wanted::Address, "pointer or integer"),
            'A' => (
                Wanted::UserAddress,
                "pointer or integer (with -p/-c) or _usymaddr (without -p/-c)",
            ),
            'c' | 'C' => (Wanted::Character, "char, short, or int"),
            'e' | 'E' | 'f' | 'F' | 'g' | 'G' => (Wanted::Float, FLOATS),
            'k' => (Wanted::Stack, "stack"),
            's' | 'S' => (Wanted::String, "char [] or string (or use stringof)"),
            'T' | 'Y' => (Wanted::Time, "int64_t"),
            'I' => (Wanted::Internet, "in_addr or in6_addr"),
            _ => (Wanted::Integer, INTEGERS),
        }),
        _ => None,
    }
}

struct Checker<'a, 'w> {
    types: &'a Types<'w>,
    call: Call<'a>,
    args: &'a [Arg],
    values: &'a [Ty],
}

impl Checker<'_, '_> {
    /// Checks every conversion. Returns how many arguments they take.
    fn check(&self, format: &Format, aggregates: bool) -> Result<usize> {
        if format.items.is_empty() {
            let text = "format string is empty".into();
            return Err(self.call.error("D_PRINTF_FMT_EMPTY", text));
        }
        let mut used = 0;
        // After the last value, the first one follows again.
        let mut values = self.values.iter().copied().cycle();
        for (i, conv) in format.conversions().enumerate() {
            let value = match conv.agg {
                true => values.next().unwrap_or(Ty::INT64_T),
                false => Ty::VOID,
            };
            self.conversion(i + 1, conv, aggregates.then_some(value), &mut used)?;
        }
        Ok(used)
    }

    fn conversion(
        &self,
        index: usize,
        conv: &Conversion,
        value: Option<Ty>,
        used: &mut usize,
    ) -> Result<()> {
        let name = conv.name();
        let Some((wanted, prototype)) = wanted(conv, self.types.model().long()) else {
            return Err(Diagnostic::new(
                "D_SYNTAX",
                self.call.span,
                format!("format conversion #{index} is undefined: %{name}"),
            ));
        };
        for (count, star) in [(conv.width, "*"), (conv.precision, ".*")] {
            if count == Some(Count::Star) {
                self.star(index, &name, star, used)?;
            }
        }
        if conv.agg {
            return self.aggregated(index, &name, wanted, prototype, value);
        }
        let Some(&arg) = self.args.get(*used) else {
            return Err(self.call.error(
                "D_PRINTF_ARG_PROTO",
                format!(
                    "prototype mismatch: conversion #{index} (%{name}) is missing a corresponding \
                     value argument"
                ),
            ));
        };
        *used += 1;
        if self.takes(wanted, arg) {
            return Ok(());
        }
        let argument = format!("argument #{}", *used + self.call.before);
        let conversion = format!("%{name}");
        let found = self.describe(arg);
        Err(self.mismatch(
            "D_PRINTF_ARG_TYPE",
            &argument,
            index,
            &conversion,
            prototype,
            &found,
        ))
    }

    /// Checks that there is an integer argument for a `*` width or precision.
    fn star(&self, index: usize, name: &str, star: &str, used: &mut usize) -> Result<()> {
        let Some(&arg) = self.args.get(*used) else {
            return Err(self.call.error(
                "D_PRINTF_DYN_PROTO",
                format!(
                    "prototype mismatch: conversion #{index} (%{name}) is missing a corresponding \
                     \"{star}\" argument"
                ),
            ));
        };
        *used += 1;
        if self.takes(Wanted::Integer, arg) {
            return Ok(());
        }
        let argument = format!("argument #{}", *used + self.call.before);
        let conversion = format!("% {star} {name}");
        let found = self.describe(arg);
        Err(self.mismatch(
            "D_PRINTF_DYN_TYPE",
            &argument,
            index,
            &conversion,
            "int",
            &found,
        ))
    }

    /// Checks a conversion of an aggregation's value, which is a 64-bit integer or a `double`.
    fn aggregated(
        &self,
        index: usize,
        name: &str,
        wanted: Wanted,
        prototype: &str,
        value: Option<Ty>,
    ) -> Result<()> {
        let Some(value) = value else {
            let text = format!(
                "%@ conversion requires an aggregation and is not for use with {}( )",
                self.call.name
            );
            return Err(Diagnostic::new("D_PRINTF_AGG_CONV", self.call.span, text));
        };
        // The conversion decides the sign of an integer.
        let unsigned = value == Ty::INT64_T && self.takes(wanted, Arg::Value(Ty::UINT64_T));
        if unsigned || self.takes(wanted, Arg::Value(value)) {
            return Ok(());
        }
        let found = self.types.name(value);
        let conversion = format!("%{name}");
        Err(self.mismatch(
            "D_PRINTF_ARG_TYPE",
            "aggregating action",
            index,
            &conversion,
            prototype,
            &found,
        ))
    }

    fn mismatch(
        &self,
        tag: &'static str,
        argument: &str,
        index: usize,
        conversion: &str,
        prototype: &str,
        found: &str,
    ) -> Box<Diagnostic> {
        self.call.error(
            tag,
            format!(
                "{argument} is incompatible with conversion #{index} prototype:\n\
                 \tconversion: {conversion}\n\t prototype: {prototype}\n\t  argument: {found}"
            ),
        )
    }

    fn describe(&self, arg: Arg) -> String {
        match arg {
            Arg::Value(ty) => self.types.name(ty),
            Arg::Null => self.types.name(Ty::VOID_POINTER),
            Arg::Aggregation => "aggregation".into(),
        }
    }

    fn takes(&self, wanted: Wanted, arg: Arg) -> bool {
        let ty = match arg {
            Arg::Value(ty) => self.types.shown(ty),
            Arg::Null if wanted == Wanted::Integer => return true,
            Arg::Null => Ty::VOID_POINTER,
            Arg::Aggregation => return false,
        };
        let types = self.types;
        let int = types.int(ty);
        let is_symbol = |kind: &Kind| *types.base(ty) == *kind;
        let address = int.is_some() || types.is_pointer(ty);
        let float = matches!(types.base(ty), Kind::Float { .. });
        match wanted {
            Wanted::Integer => int.is_some(),
            Wanted::Character => int.is_some_and(|int| int.size <= 4),
            Wanted::Exactly(bytes, sign) => int.is_some_and(|IntType { size, signed }| {
                size == bytes && sign.is_none_or(|sign| sign == signed)
            }),
            Wanted::Float => float,
            Wanted::LongDouble => types.resolve(ty) == Ty::LONG_DOUBLE,
            Wanted::Address => address || is_symbol(&Kind::Symbol),
            Wanted::Symbol => address || float || is_symbol(&Kind::Symbol),
            Wanted::UserAddress => address || float || is_symbol(&Kind::Usymbol),
            // A pointer to characters needs copyinstr() or stringof() first.
            Wanted::String => types.is_string_like(ty) && !types.is_pointer(ty),
            Wanted::Wide => match types.base(ty) {
                Kind::Array(element, _) => types.int(*element).is_some_and(|int| int.size == 4),
                _ => false,
            },
            Wanted::Stack => {
                matches!(types.base(ty), Kind::Stack(_)) || types.frames_of(ty).is_some()
            }
            Wanted::Time => int.is_some_and(|int| int.size == 8),
            Wanted::Internet => matches!(types.size(ty), Some(4 | 16)),
        }
    }
}

#[cfg(test)]
mod tests;
