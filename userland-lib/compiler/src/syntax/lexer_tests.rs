// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Tests of the lexer.

use super::*;

fn tokens(text: &str) -> Vec<Tok> {
    let macros = Macros::default();
    let mut lexer = Lexer::new(text, &macros);
    let mut tokens = Vec::new();
    loop {
        match lexer.token(false).expect("tokens").0 {
            Tok::End => return tokens,
            token => tokens.push(token),
        }
    }
}

fn error(text: &str) -> String {
    let macros = Macros::default();
    let mut lexer = Lexer::new(text, &macros);
    loop {
        match lexer.token(false) {
            Ok((Tok::End, _)) => panic!("no error in {text}"),
            Ok(_) => (),
            Err(error) => return error.to_string(),
        }
    }
}

#[test]
fn the_longest_operator_wins() {
    assert_eq!(
        tokens("a+++b >>= c^^d"),
        [
            Tok::Ident("a".into()),
            Tok::Punct("++"),
            Tok::Punct("+"),
            Tok::Ident("b".into()),
            Tok::Punct(">>="),
            Tok::Ident("c".into()),
            Tok::Punct("^^"),
            Tok::Ident("d".into()),
        ]
    );
}

#[test]
fn comments_and_control_lines_vanish() {
    assert_eq!(
        tokens("#!/usr/sbin/dtrace -s\n/* a\n b */ 1 /**/ // x /* \" //\n# 3 \"file\"\n2// */"),
        [
            Tok::Int(1, IntSuffix::default()),
            Tok::Int(2, IntSuffix::default())
        ]
    );
}

#[test]
fn predicates_end_where_division_could_not() {
    let macros = Macros::default();
    let mut lexer = Lexer::new("/ 2 /* c */ //* d */\n{", &macros);
    assert_eq!(lexer.token(true).unwrap().0, Tok::Punct("/"));
    assert_eq!(
        lexer.token(true).unwrap().0,
        Tok::Int(2, IntSuffix::default())
    );
    assert_eq!(lexer.token(true).unwrap().0, Tok::EndPredicate);
}

#[test]
fn bad_tokens_are_named() {
    assert_eq!(
        error("x = \"abc\n\""),
        "[D_STR_NL] newline encountered in string literal"
    );
    assert_eq!(error("''"), "[D_CHR_NULL] empty character constant");
    for literal in ["\"caf\u{fffd}\"", "'\u{fffd}'"] {
        assert_eq!(error(literal), "[D_SYNTAX] literal is not valid UTF-8");
    }
    assert_eq!(
        error("0x10000000000000000"),
        "[D_INT_OFLOW] constant 0x10000000000000000 results in integer overflow"
    );
    assert_eq!(
        error("089"),
        "[D_INT_DIGIT] constant 089 contains invalid digit 8"
    );
    assert_eq!(
        error("/* never"),
        "[D_SYNTAX] end-of-file encountered before matching */"
    );
    for line in ["#pragma", "1;\n#pragma D option"] {
        assert_eq!(
            error(line),
            "[D_SYNTAX] end-of-file encountered before end of control line"
        );
    }
    assert_eq!(
        error("#pragma D option\n"),
        "[D_PRAGMA_MALFORM] malformed #pragma option <option>=[<val>]"
    );
    assert_eq!(error("a # b"), "[D_SYNTAX] syntax error near \"#\"");
    assert_eq!(error("$-1"), "[D_SYNTAX] syntax error near \"$\"");
}

#[test]
fn numbers_end_where_their_suffix_does() {
    let suffix = |unsigned, longs| IntSuffix {
        unsigned,
        longs,
        based: false,
    };
    assert_eq!(
        tokens("10ms 1lux 3ULL0 0abc"),
        [
            Tok::Int(10, suffix(false, 0)),
            Tok::Ident("ms".into()),
            Tok::Int(1, suffix(true, 1)),
            Tok::Ident("x".into()),
            Tok::Int(3, suffix(true, 2)),
            Tok::Int(0, IntSuffix::default()),
            Tok::Int(0, IntSuffix::default()),
            Tok::Ident("abc".into()),
        ]
    );
}

#[test]
fn a_process_and_its_module_are_one_name() {
    let macros = Macros {
        named: vec![("target".to_owned(), 12)],
        ..Macros::default()
    };
    let names = |text: &str| {
        let mut lexer = Lexer::new(text, &macros);
        let mut names = Vec::new();
        while let Ok((token, _)) = lexer.token(false) {
            match token {
                Tok::End => break,
                Tok::Ident(name) => names.push(name),
                Tok::Punct("`") => names.push("`".to_owned()),
                other => names.push(format!("{other:?}")),
            }
        }
        names
    };
    assert_eq!(
        names("pid$target`point *p"),
        ["pid12", "`", "point", "Punct(\"*\")", "p"]
    );
    assert_eq!(names("pid7`a.out`point"), ["pid7`a.out", "`", "point"]);
    assert_eq!(names("pid7`libc-2.so.6`x"), ["pid7`libc-2.so.6", "`", "x"]);
    assert_eq!(names("pid7`a b`c"), ["pid7", "`", "a", "b", "`", "c"]);
    assert_eq!(
        names("pid`x pid7 pids`x pid7x`y"),
        ["pid", "`", "x", "pid7", "pids", "`", "x", "pid7x", "`", "y"]
    );
    assert_eq!(names("pid7``x"), ["pid7", "`", "`", "x"]);
}

#[test]
fn macro_arguments_are_numbers_names_or_text() {
    let token = |value| macro_token("1", value, Span::default());
    let int = |value| Tok::Int(value, IntSuffix::default());
    assert_eq!(token("42").unwrap(), int(42));
    assert_eq!(token("+7").unwrap(), int(7));
    assert!(matches!(token("-3"), Ok(Tok::Int(n, _)) if n as i64 == -3));
    assert_eq!(
        token("-1.5").unwrap(),
        Tok::Float(-1.5, FloatSuffix::Double)
    );
    assert_eq!(token("malloc").unwrap(), Tok::Ident("malloc".into()));
    for (value, text) in [
        ("/bin/sh", "/bin/sh"),
        ("\"a b\"", "a b"),
        ("3x", "3x"),
        ("", ""),
    ] {
        assert_eq!(token(value).unwrap(), Tok::Str(text.into()));
    }
    assert_eq!(
        token("99999999999999999999").unwrap_err().to_string(),
        "[D_MACRO_OFLOW] macro argument $1 constant 99999999999999999999 results in integer overflow"
    );
}
