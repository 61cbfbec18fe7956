// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The semantics of D programs: the tests compile them, run them in the engine, and check the
//! output.

use super::session::Session;
use dtrace::compile::{Compiler, Settings};
use dtrace::processes::Nowhere;
use dtrace::source::Source;
use dtrace::types::DataModel;
use expect_test::{expect, Expect};

/// Enables the programs in order, fires `syscall::read:entry` with 3 and with 4, and returns the
/// output.
pub fn run(programs: &[&str]) -> String {
    run_with(&Settings::default(), programs)
}

fn run_with(settings: &Settings, programs: &[&str]) -> String {
    let mut compiler = Compiler::new(&Nowhere);
    let mut session = Session::new(&[("quiet", None)]);
    for text in programs {
        let source = Source::argument(*text);
        let program = compiler
            .compile(&source, settings)
            .unwrap_or_else(|error| panic!("{error}\n{}", error.snippet(&source)));
        session.enable(&program);
    }
    session.go();
    for value in [3, 4] {
        session.device.fire(1, "syscall::read:entry", &[value, 7]);
    }
    session.finish()
}

fn check(text: &str, expected: Expect) {
    expected.assert_eq(&run(&[text]));
}

/// The value of `expression` as a `long`, after `statements`.
pub fn value_of(statements: &str, expression: &str) -> String {
    let text = format!("BEGIN {{ {statements} printf(\"%d\", (long)({expression})); }}");
    let output = run(&[&text]);
    output.trim_start_matches('|').trim_end().to_owned()
}

#[test]
fn integers_are_those_of_c() {
    for (expression, expected) in [
        ("1 + 2 * 3 - 4 / 2 % 3", "5"),
        ("-7 / 2", "-3"),
        ("-7 % 2", "-1"),
        ("7u / 2u", "3"),
        ("2147483647 + 1", "2147483648"),
        ("2147483647 + 1 - 1", "2147483647"),
        ("2147483647 + 1 < 0", "0"),
        ("2147483647 + 1L", "2147483648"),
        ("(int)(2147483647 + 1)", "-2147483648"),
        ("i = 2147483647, i = i + 1", "2147483648"),
        ("4294967295u + 1u", "0"),
        ("-1 < 1u", "0"),
        ("-1 < 1", "1"),
        ("-1L < 1u", "1"),
        ("(char)200", "-56"),
        ("(unsigned char)456", "200"),
        ("~0u >> 28", "15"),
        ("(unsigned short)0 ^ (short)-7821", "-7821"),
        ("0, (unsigned short)0 ^ (short)-7821", "-7821"),
        ("-16 >> 2", "-4"),
        ("1 << 31", "2147483648"),
        ("-(1 << 31)", "-2147483648"),
        ("2147483647 * 2 + 2 > 0", "1"),
        ("-2147483647 - 2", "-2147483649"),
        ("(int)(1 << 31)", "-2147483648"),
        ("1ull << 40", "1099511627776"),
        ("'A' + 1", "66"),
        ("'\\377'", "-1"),
        ("0x7fffffff ^ 0xff & 0xf0 | 1", "2147483407"),
        ("1 ? 2 : 3", "2"),
        ("0 ? 2 : 3u", "3"),
        ("!5 + !0", "1"),
        ("3 && 0 || 1", "1"),
        ("1 ^^ 1", "0"),
        ("(1, 2)", "2"),
        (
            "sizeof (int) + sizeof (long) + sizeof (string) + sizeof (char *)",
            "276",
        ),
        ("sizeof \"abc\"", "4"),
        ("\"abc\" < \"abd\"", "1"),
        ("\"abc\" == \"abc\" && \"a\" != \"b\"", "1"),
    ] {
        assert_eq!(value_of("", expression), expected, "{expression}");
        // The same with operands that the compiler does not know.
        let hidden = expression
            .replace("200", "(x + 200)")
            .replace("1 << 31", "(x + 1) << 31");
        assert_eq!(value_of("x = 0;", &hidden), expected, "{hidden}");
    }
}

#[test]
fn narrow_integers_give_one_of_their_own_type() {
    let declared = "
        unsigned char C; signed char c; unsigned short S; short s; unsigned int I; long l;
        BEGIN { C = 253; c = -3; S = 65533; s = -3; I = -3; l = -3; x = C + C; y = s * s;";
    let text = format!(
        r#"{declared}
            printf("%d %d %d %d %d\n", C + C, C + c, c + C, S + S, S + s);
            printf("%d %d %d %d\n", s + C, C + 1, I + C, l + S);
            printf("%d %d %d %d\n", sizeof (C + C), sizeof (C * s), sizeof (S - s), sizeof (C << 1));
            printf("%d %d %d %d\n", C + C > 500, C - C - C < 0, (C + C) / 2, (long)(C + C));
            printf("%d %d %d %d %.1f\n", x, sizeof (x), y, C + (unsigned char)255, (double)(C + C));
        }}"#
    );
    expect![[r#"
        |250 250 250 65530 65530$
        |250 254 250 65530$
        |1 2 2 4$
        |1 1 253 506$
        |506 8 9 252 506.0$
    "#]]
    .assert_eq(&run(&[&text]));
}

#[test]
fn variables_have_scopes_and_types() {
    check(
        r#"
        int g;
        self int t;
        this char c;
        syscall::read:entry { g += arg0; self->t++; this->c = arg0 + 254; this->u = arg0 * 2; }
        syscall::read:entry { printf("%d %d %d %d\n", g, self->t, this->c, this->u); }
        END { printf("%d %d\n", g, self->t); }
        "#,
        expect![[r#"
            |3 1 1 6$
            |7 2 2 8$
            |7 2$
        "#]],
    );
}

#[test]
fn arrays_have_keys_of_any_types() {
    check(
        r#"
        int declared[int, string];
        syscall::read:entry {
            a[arg0, execname] = arg1;
            declared[arg0, "x"] = arg0;
            s[arg0] = probefunc;
            self->m["k", pid] = arg0;
        }
        END {
            printf("%d %d %d\n", a[3, "bash"], a[4, "bash"], a[5, "bash"]);
            printf("%d %d\n", declared[3, "x"], declared[4, "y"]);
            printf("[%s] [%s]\n", s[3], s[4]);
            a[3, "bash"] = 0;
            printf("%d\n", a[3, "bash"]);
        }
        "#,
        expect![[r#"
            |7 7 0$
            |3 0$
            |[read] [read]$
            |0$
        "#]],
    );
}

#[test]
fn strings_are_values() {
    check(
        r#"
        string s;
        BEGIN {
            s = "hello";
            t = strjoin(s, ", world");
            s = "changed";
            printf("%s %d %s %s\n", t, strlen(t), substr(t, 7), s == "changed" ? "yes" : "no");
            self->s = t;
            trace(self->s);
            printf("\n%c%c %s\n", 'o', 'k', stringof("x"));
        }
        "#,
        expect![[r#"
            |hello, world 12 world yes$
            |hello, world$
            |ok x$
        "#]],
    );
}

#[test]
fn strings_are_addresses_of_their_characters() {
    check(
        r#"
        BEGIN { s = "dtrace"; trace(s[1]); trace(*s); printf(" %s %s", s + 2, 4 + s); }
        BEGIN { x["k"] = strchr(s, 'z'); y = strstr(s, "ra"); }
        BEGIN /x["k"] == (void *)0 && y != (void *)0/ { printf(" %s", y); }
        BEGIN { this->c = execname; printf(" %d", this->c[0] == execname[0]); }
        BEGIN { s = (void *)0; printf(" %d", s == (void *)0); }
        "#,
        expect!["|116100 race ce race 1 1"],
    );
}

#[test]
fn addresses_are_shown_as_text() {
    check(
        r#"
        struct in6_addr { unsigned char b[16]; };
        BEGIN
        {
            p = (struct in6_addr *)alloca(sizeof (struct in6_addr));
            p->b[12] = 192; p->b[14] = 2; p->b[15] = 1;
            printf("%s %s %s", inet_ntoa6(p), inet_ntoa6(p, 0), inet_ntoa6(p, 1));
            p->b[0] = 0xfe; p->b[1] = 0x80;
            printf(" %s %s", inet_ntoa6(p), inet_ntop(10, p));
            q = (uint32_t *)alloca(4);
            *q = htonl(0x7f000001);
            printf(" %s %s", inet_ntoa(q), inet_ntop(2, q));
        }
        "#,
        expect![
            "|192.0.2.1 192.0.2.1 ::192.0.2.1 fe80::c000:201 fe80::c000:201 127.0.0.1 127.0.0.1"
        ],
    );
}

#[test]
fn floating_point_numbers_are_loaded_kept_and_printed() {
    check(
        r#"
        struct mixed { float f; double d; };
        BEGIN
        {
            p = (uint64_t *)alloca(16);
            p[0] = 0xbff80000; p[1] = 0x400921fb54442d18;
            m = (struct mixed *)p;
            printf("%g %f %.3e %d", ((struct mixed *)(p))->d, m->d, m->d, sizeof (m->f));
            x = m->d; self->y[1] = m->d;
            printf(" %.2f %.4f", x, self->y[1]);
            *(uint32_t *)p = 0xbfc00000;
            z = m->f;
            printf(" %g %g", z, m->f);
            @[m->f] = count();
        }
        "#,
        expect![[r#"
            |3.14159 3.141593 3.142e+00 4 3.14 3.1416 -1.5 -1.5             -1.5                1$
        "#]],
    );
}

#[test]
fn objects_are_printed_with_their_members() {
    check(
        r#"
        enum color { RED, GREEN };
        struct point { int x; char name[4]; enum color c; unsigned low : 3; void *p; };
        BEGIN
        {
            t = (struct point *)alloca(sizeof (struct point));
            t->x = -2; t->name[0] = 'a'; t->c = GREEN; t->low = 5; t->p = (void *)0x10;
            print(t);
        }
        "#,
        expect![[r#"
            |0x8dd7000000000000 = *$
            |                                            (struct point) {$
            |                                             .x = (int)-2,$
            |                                             .name = (char [4]) [$
            |                                              (char)'a',$
            |                                             ],$
            |                                             .c = (enum color)GREEN,$
            |                                             .low = (unsigned int)5,$
            |                                             .p = (void *)0x10,$
            |                                            }$
        "#]],
    );
}

#[test]
fn records_live_in_variables() {
    check(
        r#"
        struct point { int x; short y; unsigned f : 3; int g : 5; char name[4]; };
        struct outer { long l; struct point p; };
        struct point p;
        this struct outer o;
        BEGIN {
            p.x = -5; p.y = 70000; p.f = 13; p.g = -3;
            p.name[0] = 'h'; p.name[1] = 'i';
            printf("%d %d %d %d %s\n", p.x, p.y, p.f, p.g, p.name);
            this->o.p = p;
            this->o.p.x++;
            printf("%d %d %d %d\n", this->o.p.x, p.x, sizeof (struct point), offsetof(struct outer, p));
            q = p;
            printf("%d %s\n", q.x, q.name);
        }
        "#,
        expect![[r#"
            |-5 4464 5 -3 hi$
            |-4 -5 12 8$
            |-5 hi$
        "#]],
    );
}

#[test]
fn pointers_count_in_what_they_point_to() {
    check(
        r#"
        BEGIN {
            this->p = (int *)alloca(16);
            this->p[0] = 10; this->p[1] = 20; *(this->p + 2) = 30; this->p[3] = -40;
            printf("%d %d %d %d\n", *this->p, this->p[1], this->p[2], this->p[3]);
            this->q = this->p + 3;
            printf("%d %d %d\n", this->q - this->p, this->q > this->p, *--this->q);
            *this->p += 5; this->p[1]--; 
            printf("%d %d %d\n", this->p[0], this->p[1]++, this->p[1]);
            this->c = (char *)this->p;
            printf("%d\n", this->c[0]);
        }
        "#,
        expect![[r#"
            |10 20 30 -40$
            |3 1 30$
            |15 19 20$
            |15$
        "#]],
    );
}

#[test]
fn conditions_pick_statements() {
    check(
        r#"
        syscall::read:entry /arg0 >= 3/ {
            printf("read ");
            if (arg0 == 3) { printf("three "); if (pid == 1) { printf("init "); } else printf("other "); }
            else if (arg0 == 4) { printf("four "); }
            else { printf("many "); }
            printf("done\n");
        }
        "#,
        expect![[r#"
            |read three other done$
            |read four done$
        "#]],
    );
}

#[test]
fn a_question_may_pick_an_action() {
    check(
        r#"
        syscall::read:entry {
            arg0 == 3 ? printf("three ") : printf("not three ");
            arg0 == 4 ? printf("four ") : arg0 == 3 ? printf("less ") : trace("no");
            arg0 == 4 ? n++ : printf("once ");
            printf("%d\n", n);
        }
        "#,
        expect![[r#"
            |three less once 0$
            |not three four 1$
        "#]],
    );
}

#[test]
fn aggregations_are_printed() {
    check(
        r#"
        syscall::read:entry {
            @ = count();
            @sum[execname, arg0] = sum(arg1);
            @avg = avg(arg0); @min = min(arg0); @max = max(arg0);
            @q = quantize(arg0);
            @l = lquantize(arg0, 0, 10, 2);
            @st[stack()] = count();
        }
        "#,
        expect![[r#"
            |                2$
            |  bash                                                              3                7$
            |  bash                                                              4                7$
            |                3$
            |                3$
            |                4$
            |$
            |           value  ------------- Distribution ------------- count    $
            |               1 |                                         0        $
            |               2 |@@@@@@@@@@@@@@@@@@@@                     1        $
            |               4 |@@@@@@@@@@@@@@@@@@@@                     1        $
            |               8 |                                         0        $
            |$
            |$
            |           value  ------------- Distribution ------------- count    $
            |               0 |                                         0        $
            |               2 |@@@@@@@@@@@@@@@@@@@@                     1        $
            |               4 |@@@@@@@@@@@@@@@@@@@@                     1        $
            |               6 |                                         0        $
            |$
            |$
            |              vmlinux`vfs_read+0x10$
            |              vmlinux`ksys_read+0x20$
            |              vmlinux`do_syscall_64$
            |                2$
        "#]],
    );
}

#[test]
fn actions_act() {
    check(
        r#"
        BEGIN {
            @a[1] = sum(10); @a[2] = sum(20);
            normalize(@a, 2);
            printa("%d=%@d\n", @a);
            denormalize(@a);
            trunc(@a, 1);
            printa(@a);
            clear(@a);
            stack(2);
            sym(0xffffffff81001010);
            printf("\n%a %k", 0xffffffff81002020, stack(1));
            exit(7);
        }
        "#,
        expect![[r#"
            |1=5$
            |2=10$
            |$
            |        2               20$
            |$
            |              vmlinux`vfs_read+0x10$
            |              vmlinux`ksys_read+0x20$
            |  vmlinux`vfs_read                                  $
            |vmlinux`ksys_read+0x20 $
            |vmlinux`vfs_read+0x10$
            = 7
        "#]],
    );
}

#[test]
fn inlines_and_enumerations_are_replaced() {
    check(
        r#"
        enum color { RED, GREEN = 5, BLUE };
        inline int twice[int x] = x + x;
        inline string who = execname;
        typedef unsigned char byte;
        BEGIN { printf("%d %d %s %d\n", BLUE, twice[3] * 2, who, (byte)257); }
        "#,
        expect![[r#"
            |6 12 bash 1$
        "#]],
    );
}

#[test]
fn faults_reach_error_and_tracing_goes_on() {
    check(
        r#"
        BEGIN { printf("%d", *(int *)0); }
        BEGIN { printf("%d\n", 1 / (int)(timestamp - timestamp ? 1 : 0)); }
        ERROR { printf("fault %d at %d: 0x%x\n", (int)arg4, (int)arg3, arg5); }
        "#,
        expect![[r#"
            |fault 1 at 0: 0x0$
            |fault 4 at 36: 0x0$
        "#]],
    );
}

#[test]
fn strtok_goes_on_within_a_firing() {
    check(
        r#"
        BEGIN { printf("%s\n", strtok("a:b:c", ":")); }
        BEGIN { trace(*(int *)0); }
        BEGIN { printf("%s\n", strtok(0, ":")); trace(*(int *)0); }
        BEGIN { printf("%s\n", strtok(0, ":")); }
        syscall::read:entry { trace(strtok(0, ":")); }
        syscall::read:entry { printf("%s of %d\n", strtok("read:4", ":"), (int)arg0); }
        ERROR { printf("%s ", strtok("fault,in", ",")); }
        ERROR { printf("%s %d\n", strtok(0, ","), (int)arg1); }
        "#,
        expect![[r#"
            |fault in 5$
            |read of 3$
            |fault in 5$
            |read of 4$
            |a$
            |fault in 2$
            |fault in 3$
            |c$
        "#]],
    );
}

#[test]
fn as_much_memory_is_read_as_a_computed_size_says() {
    let dump = |bytes: &str| {
        let digits =
            "             0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f  0123456789abcdef";
        format!("|$\n|{digits}$\n|         0: {bytes}$\n")
    };
    let text = |size: &str| {
        format!(
            "BEGIN {{ p = (char *)alloca(8); p[0] = 'd'; p[1] = 't'; tracemem(p, 64, {size}); exit(0); }}
             ERROR {{ printf(\"%d\", arg4); exit(1); }}"
        )
    };
    let two = dump("64 74                                            dt");
    assert_eq!(run(&[&text("2")]), two.clone() + "= 0\n");
    // The size may be an integer of any type.
    assert_eq!(run(&[&text("(char)2")]), two + "= 0\n");
    let all = dump("64 74 00 00 00 00 00 00                          dt......");
    assert_eq!(run(&[&text("8")]), all.clone() + "= 0\n");
    assert!(run(&[&text("0")]).ends_with("= 0\n"));
    // A size beyond the allocated memory is a fault.
    for size in ["9", "64", "100", "-1"] {
        assert!(run(&[&text(size)]).ends_with("= 1\n"), "{size}");
    }
    // The same in a speculation.
    let text = "BEGIN { s = speculation(); }
        BEGIN { speculate(s); p = alloca(8); tracemem(p, 64, 8); }
        BEGIN { commit(s); }
        END { }";
    let none = dump("00 00 00 00 00 00 00 00                          ........");
    assert_eq!(run(&[text]), none);
}

#[test]
fn programs_share_what_they_declare() {
    expect![[r#"
        |5$
        |                5$
    "#]]
    .assert_eq(&run(&[
        "BEGIN { x = 5; @a = sum(2); }",
        "BEGIN { printf(\"%d\\n\", x); @a = sum(3); }",
    ]));
}

#[test]
fn equal_keys_are_one_entry() {
    check(
        r#"
        BEGIN { @[1] = count(); @[(char)1] = count(); @[1ull] = count(); }
        "#,
        expect![[r#"
            |        1                3$
        "#]],
    );
}

#[test]
fn programs_may_be_long_and_deep() {
    let sum = (0..400)
        .map(|n| format!(" + (x * {n})"))
        .collect::<String>();
    assert_eq!(
        value_of("x = 1;", &format!("x{sum}")),
        (1 + 399 * 400 / 2).to_string()
    );
    let all = " && x".repeat(900);
    assert_eq!(value_of("x = 1;", &format!("(x{all})")), "1");
    let deep = (0..40).fold("x".to_owned(), |inner, n| {
        format!("(x + {n} % 3 * ({inner} & 0xffff))")
    });
    let model = (0..64).fold(1i64, |inner, n| 1 + n % 3 * (inner & 0xffff));
    assert_eq!(value_of("x = 1;", &deep), model.to_string());
    let calls = format!("{}execname{}", "strjoin(\"a\", ".repeat(64), ")".repeat(64));
    assert_eq!(value_of("", &format!("strlen({calls})")), "68");
    // Keys whose computation needs the tuple stack while outer keys wait to be pushed.
    let keys = (1..=9).fold("1".to_owned(), |inner, n| {
        format!("a{n}[strjoin(\"k\", lltostr({inner})), {n}, substr(\"key\", 1), pid, tid]")
    });
    let assignments = (1..=9)
        .map(|n| format!("a{n}[\"k{n}\", {n}, \"ey\", pid, tid] = {};", n + 1))
        .collect::<String>();
    assert_eq!(value_of(&assignments, &keys), "10");
}

#[test]
fn many_live_values_are_spilled() {
    let sum = (0..40).fold("arg0".to_owned(), |sum, n| {
        format!("(arg0 + {n}) * ({sum} + {n})")
    });
    let text = format!("syscall::read:entry {{ printf(\"%d\\n\", ({sum}) % 1000003); }}");
    let nested = (0..10)
        .fold("1".to_owned(), |inner, n| {
            format!("strjoin(lltostr({n}), {inner})")
        })
        .replace(", 1)", ", \"\")");
    let strings = format!("BEGIN {{ printf(\"%s\\n\", {nested}); }}");
    expect![[r#"
        |-138784$
        |-991740$
        |9876543210$
    "#]]
    .assert_eq(&run(&[&text, &strings]));
}

#[test]
fn programs_of_32_bits_have_narrow_types_and_addresses_all_the_same() {
    let program = r#"
        struct seen { long a; struct seen *next; size_t b; int c; };
        struct seen seen;
        int *place;
        inline long three = 3;
        BEGIN
        {
            printf("%d %d %d %d|", sizeof(long), sizeof(seen), sizeof(place), sizeof(1L));
            place = alloca(sizeof(int));
            *place = 7;
            seen.next = (struct seen *)0x80000001;
            seen.a = -1;
            printf("%d %x %ld|", *place, (uint64_t)seen.next, seen.a + 2147483647L + three);
        }"#;
    let narrow = Settings {
        model: DataModel::Ilp32,
        ..Settings::default()
    };
    let shown = |settings| run_with(settings, &[program]).trim().to_owned();
    assert_eq!(shown(&narrow), "|4 16 4 4|7 80000001 -2147483647|");
    let wide = "|8 32 8 8|7 80000001 2147483649|";
    assert_eq!(shown(&Settings::default()), wide);
    // An inline of a library uses the kernel's data model, wherever it is used.
    let mut compiler = Compiler::new(&Nowhere);
    let library = Source::library("x.d", "inline int wide = sizeof(long);");
    compiler
        .compile(&library, &Settings::default())
        .expect("a library");
    let source = Source::argument("BEGIN { printf(\"%d %d\", wide, sizeof(long)); }");
    let mut session = Session::new(&[("quiet", None)]);
    session.enable(&compiler.compile(&source, &narrow).expect("a program"));
    session.go();
    assert_eq!(session.finish().trim(), "|8 4");
}
