// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Undeclared integers: no value is truncated, whatever was assigned first and in whichever
//! program.

use super::language::value_of;
use super::session::Session;
use dtrace::compile::{Compiler, Settings};
use dtrace::processes::Nowhere;
use dtrace::source::Source;
use expect_test::{expect, Expect};

/// The output of the programs of one command. `syscall::read:entry` fires with 2^40 and with 5.
fn run(options: &[(&str, Option<&str>)], texts: &[&str]) -> String {
    let mut compiler = Compiler::new(&Nowhere);
    let mut compile = |text: &&str| {
        let program = compiler.compile(&Source::argument(*text), &Settings::default());
        program.unwrap_or_else(|error| panic!("{error}"))
    };
    let programs: Vec<_> = texts.iter().map(&mut compile).collect();
    let settled = compiler.settle().expect("the same programs");
    let mut session = Session::new(options);
    for program in settled.unwrap_or(programs) {
        session.enable(&program);
    }
    session.go();
    for value in [1 << 40, 5] {
        session.device.fire(1, "syscall::read:entry", &[value]);
    }
    session.finish()
}

fn check(texts: &[&str], expected: Expect) {
    expected.assert_eq(&run(&[("quiet", None)], texts));
}

#[test]
fn what_is_assigned_later_is_not_cut() {
    check(
        &[r#"
        BEGIN { x = 0; self->x = 0; this->x = 0; a[1] = 0; self->a["k"] = 0; }
        syscall::read:entry {
            x = arg0; self->x = arg0; this->x = 0; this->x = arg0; a[1] = arg0; self->a["k"] = arg0;
            printf("%d %d %d %d %d\n", x, self->x, this->x, a[1], self->a["k"]);
        }
        "#],
        expect![[r#"
            |1099511627776 1099511627776 1099511627776 1099511627776 1099511627776$
            |5 5 5 5 5$
        "#]],
    );
}

#[test]
fn what_is_computed_is_not_cut() {
    for (statements, expected) in [
        ("x = 0; x += 5000000000;", "5000000000"),
        ("x = 2147483647; x++;", "2147483648"),
        ("x = 2147483647; x = x + 1;", "2147483648"),
        ("x = 5; x = x * 1000000000;", "5000000000"),
        ("x = 5; x *= 1000000000;", "5000000000"),
        ("x = 1; x <<= 40;", "1099511627776"),
        ("x = -1; x -= 5000000000;", "-5000000001"),
        ("x = (char)100; x += x;", "200"),
        ("n = 31; x = 1 << n;", "2147483648"),
        ("n = 31; x = -(1 << n);", "-2147483648"),
    ] {
        assert_eq!(value_of(statements, "x"), expected, "{statements}");
    }
}

#[test]
fn a_later_program_says_what_an_earlier_one_prints() {
    let first = "BEGIN { x = -1; } syscall::read:entry { printf(\"%d %d|\", x, x > 0); trace(x); }";
    check(&[first], expect!["|-1 0|-1-1 0|-1"]);
    let second = "syscall::read:entry { x = arg0; } END { trace(x); }";
    check(
        &[first, second],
        expect!["|-1 0|-11099511627776 1|10995116277765"],
    );
    let third = "END { x = (uint64_t)0; }";
    check(
        &[first, third],
        expect!["|18446744073709551615 1|1844674407370955161518446744073709551615 1|18446744073709551615"],
    );
}

#[test]
fn types_pass_from_variable_to_variable() {
    check(
        &[
            "BEGIN { z = 0; y = 0; x = -1; } syscall::read:entry { z = y; y = x; } END { printf(\"%d\", z > 0); }",
            "END { x = (uint64_t)1; }",
        ],
        expect!["|1"],
    );
}

#[test]
fn columns_are_those_of_the_narrow_type_until_a_value_is_wider() {
    let narrow = "syscall::read:entry { x = (int)arg0; trace(x); }";
    let count = "BEGIN { y = 0; } syscall::read:entry { trace(y++); trace(y); y = 2147483647; }";
    expect![[r#"
        |CPU     ID                    FUNCTION:NAME$
        |  1      4                       read:entry           0$
        |  1      4                       read:entry           0          1$
        |  1      4                       read:entry           5$
        |  1      4                       read:entry  2147483647          2147483648$
    "#]]
    .assert_eq(&run(&[], &[narrow, count]));
    expect![[r#"
        |CPU     ID                    FUNCTION:NAME$
        |  1      4                       read:entry                     0$
        |  1      4                       read:entry                     5$
    "#]]
    .assert_eq(&run(&[], &[narrow, "END { x = timestamp; }"]));
}

#[test]
fn what_is_computed_of_a_narrow_one_is_shown_as_narrow() {
    let text = "BEGIN { x = 7; trace(x % 5); trace(x * 1000000000); @[x + 1] = count(); printf(\"%x %c\", ~x, x + 58); y = 0; y |= ~(x & y); printf(\" %x\", y); }";
    expect![[r#"
        |CPU     ID                    FUNCTION:NAME$
        |  0      1                           :BEGIN           2          7000000000fffffff8 A ffffffff$
        |        8                1$
    "#]]
    .assert_eq(&run(&[], &[text]));
}

#[test]
fn hexadecimal_numbers_have_the_digits_of_the_narrow_type() {
    check(
        &["BEGIN { x = -1; printf(\"%x %x\", x, x - 4294967296); }"],
        expect!["|ffffffff fffffffeffffffff"],
    );
}

#[test]
fn keys_are_not_cut_and_find_the_same_elements() {
    check(
        &[
            r#"BEGIN { a[1] = 10; a[-1] = 11; x = 1; a[4294967297] = 12; printf("%d %d", a[x], a[4294967297]); }"#,
            r#"BEGIN { x = -1; y = (short)-1; printf(" %d %d", a[x], a[y]); x = timestamp; }"#,
        ],
        expect!["|10 12 11 11"],
    );
    check(
        &[
            "BEGIN { @[1] = count(); x = 1; @[x] = count(); }",
            "END { x = 4294967297; @[x] = count(); }",
        ],
        expect![[r#"
            |       4294967297                1$
            |                1                2$
        "#]],
    );
    check(
        &["BEGIN { @[1] = count(); } syscall::read:entry { @[arg0] = count(); }"],
        expect![[r#"
            |                1                1$
            |                5                1$
            |    1099511627776                1$
        "#]],
    );
}

#[test]
fn constants_that_leave_int_are_long() {
    for (expression, expected) in [
        ("1 << 31", "2147483648"),
        ("-(1 << 31)", "-2147483648"),
        ("3 * 1000000000", "3000000000"),
        ("sizeof (3 * 1000000000)", "8"),
        ("sizeof (1 << 30)", "4"),
        ("4294967295u + 1u", "0"),
        ("1 << 63 >> 63", "-1"),
    ] {
        assert_eq!(value_of("", expression), expected, "{expression}");
    }
    check(
        &["int64_t v; BEGIN { v = 1 << 31; trace(v); }"],
        expect!["|2147483648"],
    );
}

/// The warnings of a program.
fn warnings(text: &str) -> Vec<String> {
    let program = Compiler::new(&Nowhere).compile(&Source::argument(text), &Settings::default());
    let warnings = program.expect(text).warnings;
    warnings
        .into_iter()
        .map(|warning| warning.message)
        .collect()
}

#[test]
fn declared_variables_that_cut_are_told_once() {
    assert_eq!(
        warnings("int x; self int y; BEGIN { x = timestamp; x += timestamp; self->y = arg0; }"),
        [
            "x is declared \"int\" and cuts values of type \"uint64_t\"",
            "self->y is declared \"int\" and cuts values of type \"int64_t\"",
        ]
    );
    assert_eq!(
        warnings("this short s[1]; short a[int]; BEGIN { a[1] = 70000; }").len(),
        1
    );
    for text in [
        "int x; BEGIN { x = 1; x = (int)timestamp; x = timestamp & 0xff; x = timestamp % 10; x++; x = 1L; }",
        "int x; BEGIN { x = timestamp >> 32; x = timestamp > 5; y = 0; x = y; }",
        "char c; BEGIN { c = c + 1; c = 'a'; c = -1; c += 2; }",
        "int64_t x; BEGIN { x = timestamp; y = 0; y = timestamp; }",
    ] {
        assert_eq!(warnings(text), Vec::<String>::new(), "{text}");
    }
}
