// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Names of types: which are reported as unknown, which are found in which scope, and what is not
//! taken for a type.

use crate::compile::{Compiler, Settings};
use crate::fixture::Little;
use crate::source::Source;

/// Returns what the error of a program says and marks; `None` if the program compiles.
fn error(text: &str) -> Option<(String, String)> {
    let source = Source::file("x.d", text);
    let world = Little::default();
    let settings = Settings {
        allow_zero_matches: true,
        ..Settings::default()
    };
    let error = Compiler::new(&world).compile(&source, &settings).err()?;
    Some((error.to_string(), source.slice(error.span).to_owned()))
}

#[test]
fn an_unknown_type_is_told_by_its_name() {
    for text in [
        "nosuch_t x;",
        "nosuch_t *x;",
        "nosuch_t*x;",
        "nosuch_t *x, y;",
        "const nosuch_t *x;",
        "extern nosuch_t x;",
        "self nosuch_t x;",
        "self nosuch_t *x;",
        "this nosuch_t *x;",
        "inline nosuch_t X = 1;",
        "inline nosuch_t *X = 0;",
        "typedef nosuch_t new_t;",
        "typedef nosuch_t *new_t;",
        "struct s { nosuch_t a; };",
        "struct s { int a; nosuch_t *b; };",
        "int f(nosuch_t);",
        "extern int f(int, nosuch_t *, ...);",
        "nosuch_t *f(int);",
        "int a[nosuch_t, int];",
        "int a[int, nosuch_t];",
        "int a[nosuch_t *];",
        "int a[nosuch_t];",
        "self int a[nosuch_t];",
        "inline int f[nosuch_t x] = 1;",
        "translator nosuch_t < struct task_struct *T > { a = 1; };",
        "struct s { int a; }; translator struct s < nosuch_t *T > { a = 1; };",
        "provider p { probe q(nosuch_t); };",
        "BEGIN { trace((nosuch_t)1); }",
        "BEGIN { trace((nosuch_t)arg0); }",
        "BEGIN { trace((nosuch_t)(arg0)); }",
        "BEGIN { trace((nosuch_t)-1); }",
        "BEGIN { trace((nosuch_t)*arg0); }",
        "BEGIN { trace((nosuch_t)sizeof (int)); }",
        "BEGIN { trace((nosuch_t)self->x); }",
        "BEGIN { trace((nosuch_t *)arg0); }",
        "BEGIN { trace((nosuch_t **)(arg0 + 1)); }",
        "BEGIN { trace((nosuch_t *const)arg0); }",
        "BEGIN { trace((nosuch_t (*)(int))arg0); }",
        "BEGIN { trace(((nosuch_t *)arg0)->member); }",
        "BEGIN /((nosuch_t *)arg0) != 0/ { }",
        "BEGIN { trace(sizeof (nosuch_t)); }",
        "BEGIN { trace(sizeof (nosuch_t *)); }",
        "BEGIN { trace(offsetof(nosuch_t, a)); }",
        "BEGIN { trace(xlate <nosuch_t> (arg0)); }",
        "BEGIN { trace(xlate <nosuch_t *> (arg0)->a); }",
    ] {
        let message = "[D_UNKNOWN] failed to resolve type nosuch_t: Unknown type name";
        let expected = Some((message.to_owned(), "nosuch_t".to_owned()));
        assert_eq!(error(text), expected, "{text}");
    }
}

#[test]
fn the_scope_of_an_unknown_type_is_told_with_it() {
    for (name, why) in [
        ("D`nosuch_t", "Unknown type name"),
        ("C`nosuch_t", "Unknown type name"),
        ("`nosuch_t", "Unknown type name"),
        ("vmlinux`nosuch_t", "Unknown type name"),
        ("nosuch`pid_t", "Unknown module name"),
    ] {
        for text in [
            format!("{name} x;"),
            format!("{name} *x;"),
            format!("self {name} *x;"),
            format!("typedef {name} new_t;"),
            format!("BEGIN {{ trace(({name})1); }}"),
            format!("BEGIN {{ trace(({name} *)arg0); }}"),
            format!("BEGIN {{ trace(sizeof ({name} *)); }}"),
            format!("BEGIN {{ trace(offsetof({name}, a)); }}"),
            format!("BEGIN {{ trace(xlate <{name}> (arg0)); }}"),
        ] {
            let message = format!("[D_UNKNOWN] failed to resolve type {name}: {why}");
            assert_eq!(error(&text), Some((message, name.to_owned())), "{text}");
        }
    }
    let text = "BEGIN { trace((struct nosuch`s *)arg0); }";
    let message = "[D_UNKNOWN] failed to resolve type nosuch`struct s: Unknown module name";
    assert_eq!(error(text).map(|error| error.0), Some(message.to_owned()));
}

#[test]
fn a_type_may_have_a_scope() {
    let own = "typedef unsigned char own_t; struct own { own_t a; };";
    for text in [
        "BEGIN { trace((D`own_t)1); }",
        "BEGIN { trace(*(D`own_t *)arg0); }",
        "BEGIN { trace(*(C`own_t *)arg0); }",
        "BEGIN { trace(((struct D`own *)arg0)->a); }",
        "BEGIN { trace((D`int)arg0); }",
        "BEGIN { trace((D`uint32_t)arg0); }",
        "BEGIN { trace(*(D`long *)arg0); }",
        "BEGIN { trace((D`string)arg0); }",
        "BEGIN { trace(sizeof (D`int) + sizeof (D`own_t *) + sizeof (vmlinux`int)); }",
        "BEGIN { trace(offsetof(struct D`own, a)); }",
        "BEGIN { trace(((struct vmlinux`task_struct *)arg0)->pid); }",
        "BEGIN { trace(((struct `task_struct *)arg0)->pid); }",
        "BEGIN { trace((vmlinux`pid_t)arg0); }",
        "BEGIN { trace(*(`pid_t *)arg0); }",
        "D`own_t x; self D`own_t *y; D`int z[D`own_t, vmlinux`pid_t];",
        "translator struct D`own < struct vmlinux`task_struct *T > { a = T->pid; };\
         BEGIN { trace(xlate <struct D`own> (curthread).a); }",
        "BEGIN /(D`int)arg0 == 1/ { }",
    ] {
        assert_eq!(error(&format!("{own}\n{text}")), None, "{text}");
    }
}

#[test]
fn what_is_an_expression_is_none_of_a_type() {
    for body in [
        "x = 1; y = 2; trace((x) * y);",
        "a = 1; trace((a)-1); trace((a) + 1); trace((a) & 1); trace((a)); trace(((a)) - 1);",
        "self->a_t = 1; trace((self->a_t) - 1);",
        "n_t = 1; trace((n_t)-1); trace((n_t) * n_t); trace(sizeof (n_t)); trace(n_t *n_t);",
        "trace((pid) * 2); trace((arg0)-1); trace((`jiffies_64) - 1);",
        "trace(strlen (execname)); x = 1; (x)++; b[(x), 1] = 1; trace(b[(x), 1]);",
    ] {
        assert_eq!(error(&format!("BEGIN {{ {body} }}")), None, "{body}");
    }
    for text in [
        "inline int max_t = 4; struct s { int a[max_t]; int b[max_t * 2]; };",
        "foo*bar, baz*qux { }",
        "foo*bar[ab]:::entry { }",
        "BEGIN, END { }",
    ] {
        assert_eq!(error(text), None, "{text}");
    }
    // Neither a type nor a variable, and nothing indicates that a type was meant.
    let message = "[D_IDENT_UNDEF] failed to resolve nosuch: Unknown variable name";
    for body in [
        "trace((nosuch) - 1);",
        "trace(sizeof (nosuch));",
        "trace((nosuch));",
    ] {
        let error = error(&format!("BEGIN {{ {body} }}")).map(|error| error.0);
        assert_eq!(error, Some(message.to_owned()), "{body}");
    }
}
