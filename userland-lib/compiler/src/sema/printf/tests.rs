// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;
use dtrace_objects::processes::Nowhere;
use expect_test::{expect, Expect};

const CALL: Call<'_> = Call {
    name: "printf",
    before: 1,
    span: Span::new(0, 0),
};

fn printf(format: &str, args: &[Arg]) -> Result<Vec<statement::Kind>> {
    let types = Types::new(&Nowhere);
    check_printf(&types, CALL, &Format::parse(format).unwrap(), args)
}

fn values(types: &[Ty]) -> Vec<Arg> {
    types.iter().copied().map(Arg::Value).collect()
}

#[test]
fn conversions_take_their_types() {
    for (format, good, bad) in [
        (
            "%d",
            &[Ty::CHAR, Ty::UINT64_T, Ty::BOOL][..],
            &[Ty::STRING, Ty::CHAR_POINTER][..],
        ),
        ("%c", &[Ty::CHAR, Ty::INT], &[Ty::LONG, Ty::STRING]),
        ("%hd", &[Ty::SHORT], &[Ty::USHORT, Ty::INT]),
        ("%hx", &[Ty::SHORT, Ty::USHORT], &[Ty::INT]),
        ("%lu", &[Ty::ULONG, Ty::UINT64_T], &[Ty::LONG, Ty::UINT]),
        ("%llx", &[Ty::LONGLONG, Ty::UINT64_T], &[Ty::INT]),
        ("%s", &[Ty::STRING], &[Ty::CHAR_POINTER, Ty::INT]),
        (
            "%p",
            &[Ty::VOID_POINTER, Ty::INT],
            &[Ty::STACK, Ty::STRING, Ty::DOUBLE],
        ),
        ("%a", &[Ty::SYMBOL, Ty::ULONG, Ty::DOUBLE], &[Ty::USYMBOL]),
        ("%A", &[Ty::USYMBOL, Ty::ULONG], &[Ty::SYMBOL]),
        ("%k", &[Ty::STACK], &[Ty::LONG]),
        ("%Y", &[Ty::UINT64_T], &[Ty::INT]),
        ("%f", &[Ty::DOUBLE, Ty::FLOAT], &[Ty::INT]),
        ("%lf", &[Ty::DOUBLE, Ty::FLOAT], &[Ty::LONG]),
        ("%A", &[Ty::FLOAT], &[Ty::STRING]),
        ("%Lf", &[Ty::LONG_DOUBLE], &[Ty::DOUBLE]),
    ] {
        for &ty in good {
            assert!(printf(format, &values(&[ty])).is_ok(), "{format}");
        }
        for &ty in bad {
            let error = printf(format, &values(&[ty])).unwrap_err();
            assert_eq!(error.tag, "D_PRINTF_ARG_TYPE", "{format}");
        }
    }
}

#[test]
fn arguments_become_records_of_their_kind() {
    let args = values(&[Ty::INT, Ty::STRING, Ty::UINT64_T]);
    let kinds = printf("%*s %u", &args).unwrap();
    use statement::Kind::{Signed, String, Unsigned};
    assert_eq!(kinds, [Signed, String, Unsigned]);
}

fn refused(result: Result<Vec<statement::Kind>>, expected: Expect) {
    let error = result.unwrap_err();
    expected.assert_eq(&format!("[{}] {}", error.tag, error.message));
}

#[test]
fn what_is_wrong_is_told_in_d_words() {
    let int = values(&[Ty::INT]);
    let string = values(&[Ty::STRING]);
    refused(
        printf("", &[]),
        expect!["[D_PRINTF_FMT_EMPTY] printf( ) format string is empty"],
    );
    refused(printf("%d %lu", &int), expect!["[D_PRINTF_ARG_PROTO] printf( ) prototype mismatch: conversion #2 (%lu) is missing a corresponding value argument"]);
    refused(printf("x", &int), expect!["[D_PRINTF_ARG_EXTRA] printf( ) prototype mismatch: only 0 arguments required by this format string"]);
    refused(
        printf("%*.*d", &[]),
        expect![[
            r#"[D_PRINTF_DYN_PROTO] printf( ) prototype mismatch: conversion #1 (%d) is missing a corresponding "*" argument"#
        ]],
    );
    refused(
        printf("%*.*d", &int),
        expect![[
            r#"[D_PRINTF_DYN_PROTO] printf( ) prototype mismatch: conversion #1 (%d) is missing a corresponding ".*" argument"#
        ]],
    );
    refused(
        printf("%*d", &string),
        expect![[r#"
        [D_PRINTF_DYN_TYPE] printf( ) argument #2 is incompatible with conversion #1 prototype:
        	conversion: % * d
        	 prototype: int
        	  argument: string"#]],
    );
    refused(
        printf("%d", &string),
        expect![[r#"
        [D_PRINTF_ARG_TYPE] printf( ) argument #2 is incompatible with conversion #1 prototype:
        	conversion: %d
        	 prototype: char, short, int, long, or long long
        	  argument: string"#]],
    );
    refused(
        printf("%d", &[Arg::Aggregation]),
        expect![[r#"
        [D_PRINTF_ARG_TYPE] printf( ) argument #2 is incompatible with conversion #1 prototype:
        	conversion: %d
        	 prototype: char, short, int, long, or long long
        	  argument: aggregation"#]],
    );
    refused(printf("%@d", &int), expect!["[D_PRINTF_AGG_CONV] %@ conversion requires an aggregation and is not for use with printf( )"]);
    refused(
        printf("%hs", &string),
        expect!["[D_SYNTAX] format conversion #1 is undefined: %hs"],
    );
}

#[test]
fn printa_takes_keys_and_values() {
    let types = Types::new(&Nowhere);
    let call = Call {
        name: "printa",
        ..CALL
    };
    let check = |format, keys: &[Ty]| {
        let format = Format::parse(format).unwrap();
        check_printa(&types, call, &format, keys, &[Ty::INT64_T, Ty::DOUBLE]).map(|()| Vec::new())
    };
    assert!(check("%@d %@f %@x %@g\n", &[]).is_ok());
    assert!(check("%@u\n", &[]).is_ok());
    assert!(check("%s %@d", &[Ty::STRING, Ty::INT]).is_ok());
    assert!(check("%*d", &[Ty::INT, Ty::INT]).is_ok());
    refused(check("%d", &[]), expect!["[D_PRINTF_ARG_PROTO] printa( ) prototype mismatch: conversion #1 (%d) is missing a corresponding value argument"]);
    refused(
        check("%p", &[Ty::STACK]),
        expect![[r#"
        [D_PRINTF_ARG_TYPE] printa( ) argument #2 is incompatible with conversion #1 prototype:
        	conversion: %p
        	 prototype: pointer or integer
        	  argument: dt_stack_t"#]],
    );
    refused(
        check("%p", &[Ty::JSTACK]),
        expect![[r#"
        [D_PRINTF_ARG_TYPE] printa( ) argument #2 is incompatible with conversion #1 prototype:
        	conversion: %p
        	 prototype: pointer or integer
        	  argument: stack"#]],
    );
    refused(
        check("%@d %@d", &[]),
        expect![[r#"
        [D_PRINTF_ARG_TYPE] printa( ) aggregating action is incompatible with conversion #2 prototype:
        	conversion: %d
        	 prototype: char, short, int, long, or long long
        	  argument: double"#]],
    );
    refused(
        check("%@s", &[]),
        expect![[r#"
        [D_PRINTF_ARG_TYPE] printa( ) aggregating action is incompatible with conversion #1 prototype:
        	conversion: %s
        	 prototype: char [] or string (or use stringof)
        	  argument: int64_t"#]],
    );
}

#[test]
fn joined_aggregations_have_the_same_keys() {
    let types = Types::new(&Nowhere);
    let check = |a: &[Ty], b: &[Ty]| {
        let first = Keyed {
            name: "foo",
            keys: a,
        };
        let other = Keyed {
            name: "bar",
            keys: b,
        };
        same_keys(&types, first, other, Span::default()).map(|()| Vec::new())
    };
    assert!(check(&[Ty::INT, Ty::STRING], &[Ty::INT32_T, Ty::STRING]).is_ok());
    refused(check(&[Ty::INT], &[]), expect!["[D_PRINTA_AGGKEY] printa( ): @foo and @bar do not have matching key signatures: @foo has 1 key, @bar has 0 keys"]);
    refused(
        check(&[Ty::INT], &[Ty::STRING]),
        expect![[r#"
        [D_PRINTA_AGGPROTO] printa( ): @bar[ ] key #1 is incompatible with @foo:
              foo key #1: int
              bar key #1: string"#]],
    );
}
