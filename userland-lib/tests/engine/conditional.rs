// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Statements under a condition: `if`, and `?:` as a statement.

use super::language::run;
use super::session::Session;
use dtrace::compile::{Compiler, Settings};
use dtrace::processes::Nowhere;
use dtrace::program::Program;
use dtrace::source::Source;
use expect_test::{expect, Expect};

fn check(text: &str, expected: Expect) {
    expected.assert_eq(&run(&[text]));
}

fn compile(text: &str) -> Program {
    let source = Source::argument(text);
    Compiler::new(&Nowhere)
        .compile(&source, &Settings::default())
        .unwrap_or_else(|error| panic!("{error}\n{}", error.snippet(&source)))
}

/// The output with `options` instead of `quiet`.
fn shown(options: &[(&str, Option<&str>)], text: &str) -> String {
    let mut session = Session::new(options);
    session.enable(&compile(text));
    session.go();
    for value in [3, 4] {
        session.device.fire(1, "syscall::read:entry", &[value, 7]);
    }
    session.finish()
}

#[test]
fn a_branch_may_be_a_bare_value() {
    check(
        r#"
        syscall::read:entry {
            arg0 == 3 ? printf("three ") : 1;
            arg0 == 3 ? 1 : printf("four ");
            arg0 == 3 ? trace("traced ") : 1;
            arg0 > 2 ? (arg1 == 7 ? printf("seven ") : 1) : printf("less ");
            arg0 == 2 ? printf("a ") : arg0 == 3 ? printf("b ") : 1;
            arg0 == 4 ? (printf("two "), n++, printf("of them ")) : 1;
            printf("%d\n", n);
        }
        "#,
        expect![[r#"
            |three traced seven b 0$
            |four seven two of them 1$
        "#]],
    );
}

#[test]
fn a_branch_may_assign_or_aggregate() {
    check(
        r#"
        syscall::read:entry {
            arg0 == 3 ? this->x = 5 : 1;
            arg0 == 3 ? self->s = "three" : 1;
            arg0 == 4 ? 0 : (a[arg0] = 9);
            arg0 == 4 ? @k[arg0] = sum(arg1) : 1;
            arg0 == 4 ? g++ : arg0;
            arg0 == 4 ? g += 10 : "text";
            arg0 == 3 && (b = 8);
            printf("%d %s %d %d %d\n", this->x, self->s, a[3], g, b);
        }
        "#,
        expect![[r#"
            |5 three 9 0 8$
            |5 three 9 11 8$
            |                4                7$
        "#]],
    );
}

#[test]
fn a_constant_picks_at_compile_time() {
    let text = r#"
        inline int YES = 1;
        inline int NO = 0;
        syscall::read:entry /arg0 == 3/ {
            YES ? printf("yes ") : printf("no ");
            NO ? printf("yes ") : printf("no ");
            NO ? printf("never") : 1;
            NO ? system("never") : 1;
            NO ? @a[arg0] = count() : 1;
            if (NO) { raise(9); } else { printf("else "); }
            printf("end\n");
        }
        END { printa(@a); }
    "#;
    let program = compile(text);
    assert_eq!(program.clauses.len(), 2);
    assert!(!program.is_destructive);
    expect![[r#"
        |yes no else end$
        |$
    "#]]
    .assert_eq(&run(&[text]));
}

#[test]
fn what_does_nothing_is_no_default_action() {
    let text = "inline int NO = 0; syscall::read:entry { NO ? trace(1) : 1; }";
    assert_eq!(compile(text).clauses.len(), 1);
    assert_eq!(shown(&[], text), "");
}

#[test]
fn all_actions_may_be_picked() {
    for body in [
        "stack()",
        "ustack()",
        "exit(1)",
        "stop()",
        "raise(9)",
        "system(\"true\")",
        "chill(10)",
        "speculate(1)",
        "commit(1)",
        "discard(1)",
        "setopt(\"quiet\")",
        "ftruncate()",
        "freopen(\"\")",
        "clear(@a)",
        "trunc(@a)",
        "trunc(@a, 5)",
        "denormalize(@a)",
        "normalize(@a, 2)",
        "printa(@a)",
        "tracemem(curthread, 8)",
        "print((struct in6 *)arg0)",
        "sym(arg0)",
        "@b = quantize(arg0)",
        "self->x = 0",
        "copyoutstr(\"x\", arg0, 1)",
    ] {
        for condition in ["0", "1", "arg0 > 3"] {
            for text in [
                format!("{condition} ? {body} : 1"),
                format!("({condition}) ? 1 : ({body})"),
                format!("{condition} ? (pid ? 2 : ({body})) : ({body})"),
            ] {
                compile(&format!(
                    "struct in6 {{ int x; }}; BEGIN {{ @a = count(); }} BEGIN {{ {text}; }}"
                ));
            }
        }
    }
}

#[test]
fn a_condition_is_evaluated_once() {
    check(
        r#"
        syscall::read:entry {
            n++ ? printf("again ") : printf("first ");
            printf("%d\n", n);
        }
        "#,
        expect![[r#"
            |first 1$
            |again 2$
        "#]],
    );
}

#[test]
fn a_firing_has_one_line() {
    let text = r#"
        syscall::read:entry /arg0 > 3/ {
            printf("a");
            arg0 == 4 ? printf(" b") : 1;
            arg0 == 3 ? printf(" c") : 1;
            if (arg0 == 4) { printf(" d"); }
        }
        syscall::read:entry { arg0 == 3 ? printf("next") : 1; }
        syscall::read:entry { printf("last"); }
    "#;
    expect![[r#"
        |CPU     ID                    FUNCTION:NAME$
        |  1      4                       read:entry next$
        |  1      4                       read:entry last$
        |  1      4                       read:entry a b d$
        |  1      4                       read:entry last$
    "#]]
    .assert_eq(&shown(&[], text));
    expect![[r#"
        |CPU FUNCTION                                 $
        |  1  => read                                  next$
        |  1   | read:entry                            last$
        |  1   | read:entry                            a b d$
        |  1   | read:entry                            last$
    "#]]
    .assert_eq(&shown(&[("flowindent", None)], text));
}

#[test]
fn a_fault_ends_the_clause() {
    check(
        r#"
        syscall::read:entry {
            printf("begin ");
            *(int *)(arg0 == 3 ? 0 : arg1 - 7) ? printf("never ") : printf("nor ");
            printf("never\n");
        }
        syscall::read:entry {
            arg0 == 3 ? trace(*(int *)0) : 1;
            arg0 == 4 ? printf("fine ") : 1;
            printf("%d\n", arg0);
        }
        ERROR { arg4 == 1 ? printf("fault ") : printf("other "); }
        "#,
        expect![[r#"
            |fault fault fault fine 4$
        "#]],
    );
}

#[test]
fn a_branch_may_exit() {
    check(
        r#"
        syscall::read:entry { arg0 == 3 ? exit(5) : 1; }
        syscall::read:entry { printf("never\n"); }
        END { printf("end\n"); }
        "#,
        expect![[r#"
            |end$
            = 5
        "#]],
    );
}

#[test]
fn what_has_no_effect_is_refused() {
    for body in [
        "1;",
        "arg0 ? 1 : 2;",
        "0 ? 1 : 2;",
        "arg0 ? (pid ? 1 : 2) : 3;",
        "(1, 2);",
        "if (arg0) { 1; }",
        "arg0 && pid;",
    ] {
        let source = Source::argument(format!("BEGIN {{ {body} }}"));
        let refused = Compiler::new(&Nowhere).compile(&source, &Settings::default());
        let tag = refused.err().map(|error| error.tag);
        assert_eq!(tag, Some("D_EXPR_NULL"), "{body}");
    }
}

#[test]
fn the_branch_not_taken_is_checked() {
    for (body, tag) in [
        ("0 ? printf(\"%d\") : 1;", "D_PRINTF_ARG_PROTO"),
        ("1 ? 1 : trace(nobody);", "D_IDENT_UNDEF"),
        ("0 ? @a : 1;", "D_AGG_NULL"),
        ("if (0) { y = nobody; }", "D_IDENT_UNDEF"),
        ("x = 1; arg0 ? 1 : x = 2;", "D_OP_LVAL"),
        ("x = arg0 ? trace(1) : 1;", "D_OP_ACT"),
        ("\"text\" ? trace(1) : 1;", "D_OP_SCALAR"),
    ] {
        let source = Source::argument(format!("BEGIN {{ {body} }}"));
        let refused = Compiler::new(&Nowhere).compile(&source, &Settings::default());
        assert_eq!(refused.err().map(|error| error.tag), Some(tag), "{body}");
    }
}

/// NULL takes the other operand's type, and with it the memory that it points to.
#[test]
fn a_choice_of_null_is_read_where_the_other_is() {
    let text = r#"
        struct pair { int first; int second; };
        syscall::read:entry
        {
            trace((arg0 ? (struct pair *)0 : (userland struct pair *)arg1)->second);
            trace((arg0 ? 0 : (userland struct pair *)arg1)->second);
            trace((!arg0 ? (userland struct pair *)arg1 : 0)->second);
        }
    "#;
    let mut session = Session::new(&[("quiet", None)]);
    session.enable(&compile(text));
    session.go();
    let pair = [1i32.to_le_bytes(), 7i32.to_le_bytes()].concat();
    session
        .device
        .platform
        .user
        .borrow_mut()
        .insert(0x1_0000, pair);
    session
        .device
        .fire(1, "syscall::read:entry", &[0, 0x1_0000]);
    expect!["|777"].assert_eq(&session.finish());
}

/// What comes before `speculate()` in a branch that is chosen when the program is compiled may be
/// destructive.
#[test]
fn a_constant_choice_keeps_the_order_of_speculations() {
    compile("inline int HALT = 1; self int s; BEGIN { HALT ? (stop(), speculate(self->s)) : 1; }");
}
