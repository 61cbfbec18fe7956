// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Programs whose trees would be too high to walk are refused, whatever their syntax.

use crate::compile::{Compiler, Settings};
use crate::fixture::Little;
use crate::source::Source;

/// More levels than any stack can hold.
const MANY: usize = 100_000;

fn compile(text: &str) -> Result<(), String> {
    let source = Source::file("deep.d".to_owned(), text.to_owned());
    match Compiler::new(&Little::default()).compile(&source, &Settings::default()) {
        Ok(_) => Ok(()),
        Err(error) => Err(error.message.clone()),
    }
}

/// Asserts that `text`, which repeats something too often, fails with `message`.
fn refused(text: &str, message: &str) {
    let shown: String = text.chars().take(60).collect();
    assert_eq!(compile(text), Err(message.to_owned()), "{shown}");
}

#[test]
fn operators_in_a_row_are_limited() {
    let message = "more than 1000 operators in a row";
    for (first, more) in [
        ("", ", 1"),
        ("", " + 1"),
        ("->p", "->p"),
        ("", ".p"),
        ("", "++"),
        ("", "[1]"),
    ] {
        let chain = format!("x{first}{}", more.repeat(MANY));
        refused(&format!("int x; BEGIN {{ trace(({chain})); }}"), message);
        refused(&format!("int x; BEGIN {{ {chain}; }}"), message);
        refused(&format!("int x; BEGIN /{chain}/ {{ }}"), message);
    }
}

#[test]
fn rows_in_brackets_count_with_what_stands_around_them() {
    for more in [" + x", ", x", "[x]"] {
        let row = format!("{})", more.repeat(900));
        let text = format!(
            "int x; BEGIN {{ trace({}x{}); }}",
            "(".repeat(60),
            row.repeat(60)
        );
        refused(&text, "more than 1000 operators in a row");
    }
    let row = " + x".repeat(900);
    let beside = format!("int x; BEGIN /x{row}, x/ {{ trace(x{row}); y = x{row}; }}");
    assert_eq!(compile(&beside), Ok(()));
}

#[test]
fn rows_of_inlines_count_with_what_stands_around_them() {
    let row = " + x".repeat(900);
    let mut nested = "int x; inline int a0 = x;\n".to_owned();
    for i in 1..100 {
        nested += &format!("inline int a{i} = a{}{row};\n", i - 1);
    }
    let applied = format!(
        "int x; inline int f[int y] = y{row}; BEGIN {{ trace({}x{}); }}",
        "f[".repeat(50),
        "]".repeat(50)
    );
    for text in [nested, applied] {
        refused(&text, "more than 1000 operators in a row");
    }
    let once = format!("int x; inline int a = x{row}; BEGIN {{ trace(a + 1); }}");
    assert_eq!(compile(&once), Ok(()));
}

#[test]
fn other_nesting_is_limited() {
    let repeat = |text: &str| text.repeat(MANY);
    for text in [
        repeat("x ? 1 : "),
        repeat("x ? "),
        repeat("- "),
        repeat("(int)"),
        repeat("sizeof "),
        repeat("x = "),
        repeat("("),
    ] {
        let text = format!("int x; BEGIN {{ trace({text}x) }}");
        refused(&text, "nesting deeper than 300 levels");
    }
    for text in [
        format!("BEGIN {{ {} }}", repeat("if (1) trace(1); else ")),
        format!("BEGIN {{ {} }}", repeat("{")),
        format!("{} x;", repeat("struct { ")),
        format!("int {}x;", repeat("(*")),
    ] {
        refused(&text, "nesting deeper than 300 levels");
    }
}

#[test]
fn arrays_of_arrays_are_limited() {
    let message = "array of more than 64 dimensions";
    refused(&format!("int x{};", "[1]".repeat(MANY)), message);
    let mut types = "typedef int a0;\n".to_owned();
    for i in 1..100 {
        types += &format!("typedef a{} a{i}[1];\n", i - 1);
    }
    refused(&types, message);
}
