// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! `print()` of values: structures, their members, and the results of translators.

use super::language::run;
use super::session::Session;
use dtrace::compile::{Compiler, Settings};
use dtrace::processes::Nowhere;
use dtrace::source::Source;
use expect_test::{expect, Expect};

fn check(text: &str, expected: Expect) {
    expected.assert_eq(&run(&[text]));
}

#[test]
fn a_structure_is_printed_with_all_members() {
    check(
        r#"
        enum color { RED, GREEN };
        typedef int (*handler_t)(int);
        struct point { int x; int y; };
        struct all {
            int n; char name[6]; char raw[3]; enum color c; enum color odd;
            unsigned low : 3; int high : 5; _Bool flag : 1; _Bool yes;
            union { uint8_t byte; uint64_t word; };
            struct { void *p; } in;
            struct point list[2]; short m[2][2]; handler_t call; double d;
        };
        BEGIN {
            p = (struct all *)alloca(sizeof (struct all));
            p->n = -2; p->name[0] = 'a'; p->name[1] = '"'; p->raw[0] = 'x'; p->raw[1] = 1; p->c = GREEN;
            *(int *)&p->odd = 7;
            p->low = 5; p->high = -3; p->flag = 1; p->yes = 1; p->word = 0x1234; p->in.p = (void *)0x10;
            p->list[1].y = 9; p->m[1][0] = 3; p->call = (handler_t)0x40; p->d = 1.5;
            print(*p);
        }
        "#,
        expect![[r#"
            |struct all {$
            |    int n = 0xfffffffe$
            |    char [6] name = [ "a\"" ]$
            |    char [3] raw = [ 'x', '\001', '\0' ]$
            |    enum color c = GREEN$
            |    enum color odd = 7$
            |    unsigned int low :3 = 0x5$
            |    int high :5 = 0x1d$
            |    _Bool flag :1 = 0x1$
            |    _Bool yes = 0x1$
            |    union {$
            |        uint8_t byte = 0x34$
            |        uint64_t word = 0x1234$
            |    }$
            |    struct in = {$
            |        void *p = 0x10$
            |    }$
            |    struct point [2] list = [$
            |        struct point {$
            |            int x = 0$
            |            int y = 0$
            |        },$
            |        struct point {$
            |            int x = 0$
            |            int y = 0x9$
            |        }$
            |    ]$
            |    short [2][2] m = [ [ 0, 0 ], [ 0x3, 0 ] ]$
            |    handler_t call = 0x40$
            |    double d = 1.5$
            |}$
        "#]],
    );
}

#[test]
fn parts_are_printed_with_their_types() {
    check(
        r#"
        struct point { int x; int y; };
        struct all { char name[4]; struct point at; struct point list[2]; int n[2]; unsigned f : 3; char c; int *p; double d; } g;
        self struct point held;
        struct point a[int];
        BEGIN {
            p = (struct all *)alloca(sizeof (struct all));
            p->name[0] = 'o'; p->name[1] = 'k'; p->at.x = 1; p->n[1] = 255; p->f = 6; p->c = 'c';
            print(p->name); print(p->at); print(p->list); print(p->n); print(p->f); print(p->c);
            print(p->at.x); print(p->d); print(p->list[0].y);
            g = *p; print(g.at); self->held = p->at; print(self->held); a[1] = p->at; print(a[1]);
            print((struct point)p->at); s = "text"; print(s); print(execname);
        }
        "#,
        expect![[r#"
            |char [4] "ok"$
            |struct point {$
            |    int x = 0x1$
            |    int y = 0$
            |}$
            |struct point [2] [$
            |    struct point {$
            |        int x = 0$
            |        int y = 0$
            |    },$
            |    struct point {$
            |        int x = 0$
            |        int y = 0$
            |    }$
            |]$
            |int [2] [ 0, 0xff ]$
            |unsigned int 0x6$
            |char 'c'$
            |int 0x1$
            |double 0$
            |int 0$
            |struct point {$
            |    int x = 0x1$
            |    int y = 0$
            |}$
            |struct point {$
            |    int x = 0x1$
            |    int y = 0$
            |}$
            |struct point {$
            |    int x = 0x1$
            |    int y = 0$
            |}$
            |struct point {$
            |    int x = 0x1$
            |    int y = 0$
            |}$
            |string "text"$
            |string "bash"$
        "#]],
    );
}

#[test]
fn translated_structures_are_printed_whole() {
    let declarations = r#"
        struct in { int i; char c; struct in *next; };
        struct deep { short s; };
        struct out { int i; string name; char letters[4]; uint64_t big; struct deep *far; int none; struct deep near; int later; };
        translator struct deep < struct in *q > { s = q->c; };
        translator struct out < struct in *p > {
            i = p->i; name = strjoin("n", "ame"); big = p->c + 1ull;
            near = xlate <struct deep> (p); later = p->i * 2;
        };
    "#;
    let whole = expect![[r#"
        |struct out {$
        |    int i = 0x5$
        |    string name = [ "name" ]$
        |    uint64_t big = 0x8$
        |    struct deep near = {$
        |        short s = 0x7$
        |    }$
        |    int later = 0xa$
        |}$
    "#]];
    for printed in [
        "*xlate <struct out *> (p)",
        "xlate <struct out> (p)",
        "xlate <struct out *> (p)",
    ] {
        let program = format!(
            "{declarations} BEGIN {{ p = (struct in *)alloca(sizeof (struct in)); p->i = 5; p->c = 7; print({printed}); }}"
        );
        whole.assert_eq(&run(&[&program]));
    }
}

/// A library's translator may use members that this kernel does not have. `print()` omits what
/// cannot be translated.
#[test]
fn members_that_cannot_be_translated_are_left_out() {
    let library = r#"
        struct in { int i; };
        struct deep { int j; int k; };
        struct out { int first; int gone; struct deep deep; int last; };
        translator struct deep < struct in *q > { j = q->i; k = q->gone; };
        translator struct out < struct in *p > {
            first = p->i; gone = p->gone; deep = xlate <struct deep> (p); last = 2 * p->i;
        };
    "#;
    let program = r#"
        BEGIN { p = (struct in *)alloca(sizeof (struct in)); p->i = 3; print(*xlate <struct out *> (p)); }
    "#;
    let settings = Settings::default();
    let mut compiler = Compiler::new(&Nowhere);
    let mut session = Session::new(&[("quiet", None)]);
    for source in [Source::library("out.d", library), Source::argument(program)] {
        let made = compiler.compile(&source, &settings);
        session.enable(&made.unwrap_or_else(|error| panic!("{error}\n{}", error.snippet(&source))));
    }
    session.go();
    expect![[r#"
        |struct out {$
        |    int first = 0x3$
        |    int last = 0x6$
        |}$
    "#]]
    .assert_eq(&session.finish());
}

#[test]
fn a_fault_of_a_member_is_one_of_the_whole() {
    check(
        r#"
        struct in { int i; };
        struct out { int i; int j; };
        translator struct out < struct in *p > { i = 1; j = p->i; };
        BEGIN { print(*xlate <struct out *> ((struct in *)arg9)); printf("not reached"); }
        ERROR { printf("fault %d", arg4); }
        "#,
        expect!["|fault 1"],
    );
}

#[test]
fn what_is_beyond_printsize_becomes_dots() {
    check(
        r#"
        struct point { int x; int y; };
        struct big { int a; struct point list[3]; long l; };
        BEGIN {
            p = (struct big *)alloca(sizeof (struct big));
            p->a = 1; p->list[0].x = 2;
            setopt("printsize", "16");
            print(*p);
            setopt("printsize", "4");
            print(*p);
        }
        "#,
        expect![[r#"
            |struct big {$
            |    int a = 0x1$
            |    struct point [3] list = [$
            |        struct point {$
            |            int x = 0x2$
            |            int y = 0$
            |        },$
            |        struct point {$
            |            int x = 0$
            |            ...$
            |        },$
            |        ...$
            |    ]$
            |    ...$
            |}$
            |struct big {$
            |    int a = 0x1$
            |    ...$
            |}$
        "#]],
    );
}
