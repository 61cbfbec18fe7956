// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The semantics of declarations: types, variables, inlines, translators, and NULL.

use super::language::run;
use expect_test::{expect, Expect};

fn check(text: &str, expected: Expect) {
    expected.assert_eq(&run(&[text]));
}

#[test]
fn null_is_less_than_any_string_and_no_string() {
    check(
        r#"
        inline int NULL = 0;
        BEGIN {
            a = "a"; empty = ""; none = "x"; none = NULL;
            printf("%d%d%d ", none == NULL, NULL != none, a == NULL);
            printf("%d%d%d ", none < empty, empty > none, none <= a);
            printf("%d%d%d ", none == empty, empty == empty, none == none);
            printf("%d%d\n", empty <= NULL, NULL < a);
        }
        "#,
        expect![[r#"
            |100 111 011 01$
        "#]],
    );
}

#[test]
fn zero_frees_what_a_dynamic_variable_holds() {
    check(
        r#"
        struct s { int a; char c; };
        struct s made;
        BEGIN {
            made.a = 7; made.c = 'c';
            held[1] = made; self->held = made; text[1] = "t";
            printf("%d %d %s|", held[1].a, self->held.c, text[1]);
            held[1] = 0; self->held = 0; text[1] = 0;
            made.a = 8;
            held[1] = made;
            printf("%d %d %d\n", held[1].a, held[1].c, text[1] == 0);
        }
        "#,
        expect![[r#"
            |7 99 t|8 99 1$
        "#]],
    );
}

#[test]
fn records_have_members_bits_and_arrays() {
    check(
        r#"
        typedef unsigned int u32;
        struct inner { short low; short high; };
        union word { int whole; struct inner half; char bytes[4]; };
        struct flags { u32 a : 3; int b : 3; u32 : 2; u32 c : 20; unsigned long d : 40; };
        struct all { union word w; struct flags f; int m[2][3]; struct all *next; } x, y;
        this union word local;
        BEGIN {
            x.w.whole = 0x01020304;
            printf("%x %x %d|", x.w.half.low, x.w.half.high, x.w.bytes[2]);
            x.f.a = 13; x.f.b = 7; x.f.c = 0x12345; x.f.d = 0xabcdef0123; x.f.b++;
            printf("%d %d %x %x|", x.f.a, x.f.b, x.f.c, x.f.d);
            x.f.b -= 2; x.f.d <<= 4;
            printf("%d %x|", x.f.b, x.f.d);
            x.m[1][2] = 5; x.m[0][1] = x.m[1][2] + 1; x.next = 0;
            y = x; x.m[1][2] = 0;
            printf("%d %d %d|", y.m[1][2], y.m[0][1], y.f.d == x.f.d);
            this->local = y.w; this->local.half.high = 0;
            printf("%x %d %d %d\n", this->local.whole, sizeof (struct flags), sizeof (x.m),
                offsetof(struct all, m));
        }
        "#,
        expect![[r#"
            |304 102 2|5 0 12345 abcdef0123|-2 bcdef01230|5 6 1|304 16 24 24$
        "#]],
    );
}

#[test]
fn structures_are_keys_by_their_bytes() {
    check(
        r#"
        struct pair { int a; int b; } p, q;
        int seen[struct pair, string];
        BEGIN {
            p.a = 1; p.b = 2; q = p;
            seen[p, "x"] = 3; seen[q, "x"]++; q.b = 5; seen[q, "x"] = 9;
            printf("%d %d %d\n", seen[p, "x"], seen[q, "x"], seen[q, "y"]);
        }
        "#,
        expect![[r#"
            |4 9 0$
        "#]],
    );
}

#[test]
fn enumerations_are_integers() {
    check(
        r#"
        enum e { A, B = A + 3, C, D = B * C, NEG = -1, ZERO };
        typedef enum e kind_t;
        kind_t k;
        BEGIN { k = D; printf("%d %d %d %d %d\n", k, C, NEG, ZERO, sizeof (kind_t)); }
        "#,
        expect![[r#"
            |12 4 -1 0 4$
        "#]],
    );
}

#[test]
fn globals_have_arrays_and_pointers() {
    check(
        r#"
        int a[3], *p; char name[8]; self int mine[2]; this int own[4];
        int (*handler)(int, char *);
        BEGIN {
            a[0] = 1; a[1] = 2; a[2] = a[0] + a[1];
            p = &a[1]; p++; *p += 10; self->mine[1] = 4; this->own[arg0 + 3] = 6;
            name[0] = 'h'; name[1] = 'i'; handler = 0;
            printf("%d %d %s %d %d %d %d\n", a[2], p - &a[0], stringof(name), self->mine[1],
                this->own[3], handler == 0, sizeof (handler));
        }
        "#,
        expect![[r#"
            |13 2 hi 4 6 1 8$
        "#]],
    );
}

#[test]
fn inlines_are_put_in_place() {
    check(
        r#"
        inline int ONE = 1;
        inline int twice[int x] = x * 2;
        inline string both[string a, string b] = strjoin(a, b);
        inline char narrow = 300;
        BEGIN { x = 5; printf("%d %d %s %d\n", twice[x + ONE], twice[twice[2]], both["a", "b"], narrow); }
        "#,
        expect![[r#"
            |12 8 ab 44$
        "#]],
    );
}

#[test]
fn translators_make_members_and_wholes() {
    check(
        r#"
        struct in { int i; char c; } source;
        struct out { int sum; char text[4]; string name; int unset; } result;
        translator struct out < struct in *p > { sum = p->i + p->c; name = "pointer"; };
        translator struct out < struct in s > { sum = s.i - s.c; name = "value"; };
        translator struct out < int n > { sum = n; name = lltostr(n); };
        BEGIN {
            source.i = 100; source.c = 1; result.unset = 9;
            printf("%d %s|", xlate <struct out> (source).sum, xlate <struct out *> (3)->name);
            result = xlate <struct out> (source);
            printf("%d %s %d\n", result.sum, result.name, result.unset);
        }
        "#,
        expect![[r#"
            |99 3|99 value 0$
        "#]],
    );
}

#[test]
fn a_pointer_to_translated_data_shows_as_what_it_is_read_from() {
    check(
        r#"
        struct out { int sum; };
        translator struct out < uintptr_t p > { sum = *(int *)p; };
        inline struct out *given = xlate <struct out *> ((uintptr_t)arg0);
        syscall::read:entry { trace(given); printf("%x %d\n", (int64_t)given, given == (void *)3); }
        "#,
        expect![[r#"
            |33 1$
            |44 0$
        "#]],
    );
}

#[test]
fn branches_nest_and_predicates_may_come_from_bodies() {
    check(
        r#"
        syscall::read:entry
        /counted == 0 || arg0 == 4/
        {
            counted++;
            if (arg0 == 3) { printf("three "); if (arg1 > 6) printf("big "); else printf("small "); }
            else if (arg0 == 4) { printf("four "); if (0) printf("never "); }
            else { printf("other "); }
            printf("%d\n", counted);
        }
        "#,
        expect![[r#"
            |three big 1$
            |four 2$
        "#]],
    );
}

#[test]
fn dynamic_records_come_into_being_with_their_first_member() {
    check(
        r#"
        struct info { int calls; string last; int by[3]; };
        struct info all[string];
        self struct info mine;
        syscall::read:entry {
            all[probefunc].calls++;
            all[probefunc].last = probename;
            all[probefunc].by[1] += arg0;
            self->mine.calls += 2;
            self->mine.last = "text";
        }
        END {
            printf("%d %s %d|", all["read"].calls, all["read"].last, all["read"].by[1]);
            printf("%d %s\n", self->mine.calls, self->mine.last);
        }
        "#,
        expect![[r#"
            |2 entry 7|4 text$
        "#]],
    );
}

#[test]
fn an_index_outside_an_array_is_a_fault() {
    check(
        r#"
        int a[3], grid[2][3], after;
        struct s { int pre; int m[2]; } v;
        self int mine[2];
        int keyed[int][2];
        syscall::read:entry /arg0 == 3/ {
            after = 7; i = 1;
            a[i++] = 5; a[i] = 6; grid[i - 1][i] = 8; v.m[i - 1] = 9; self->mine[i - 1] = 1; keyed[i][i - 1] = 2;
            printf("%d %d %d %d %d %d %d|", a[1], a[2], grid[1][2], v.m[1], i, self->mine[1], keyed[2][1]);
        }
        syscall::read:entry /arg0 == 3/ { a[i + 1] = 1; }
        syscall::read:entry /arg0 == 3/ { a[i - 3] = 1; }
        syscall::read:entry /arg0 == 3/ { trace(grid[0][i + 1]); }
        syscall::read:entry /arg0 == 3/ { v.m[i] = 1; }
        syscall::read:entry /arg0 == 3/ { self->mine[i] = 1; }
        syscall::read:entry /arg0 == 3/ { keyed[i][2] = 1; }
        syscall::read:entry /arg0 == 3/ { keyed[i][i + 1] = 1; }
        ERROR { printf("%d %d|", arg4, (int)arg5); }
        END { printf("%d\n", after); }
        "#,
        expect![[r#"
            |5 6 8 9 2 1 2|11 3|11 -1|11 3|11 2|11 2|1 0|1 0|7$
        "#]],
    );
}
