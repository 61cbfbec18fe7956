// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Floating-point numbers: folding by the compiler, and computation by the engine without a
//! floating-point unit.

use super::language::run;
use super::session::Session;
use dtrace::compile::{Compiler, Settings};
use dtrace::processes::Nowhere;
use dtrace::source::Source;
use expect_test::expect;
use proptest::prelude::*;

/// The bits of the value of each expression as a `double`, after `statements`.
fn bits_of(statements: &str, expressions: &[String]) -> Vec<u64> {
    let print = |expression: &String| {
        format!("*this->d = {expression}; printf(\"%x \", *(uint64_t *)this->d);")
    };
    let prints: String = expressions.iter().map(print).collect();
    let text = format!("BEGIN {{ {statements} this->d = (double *)alloca(8); {prints} }}");
    let output = run(&[&text]);
    let words = output.trim_start_matches('|').split_whitespace();
    words
        .map(|word| u64::from_str_radix(word, 16).unwrap_or_else(|_| panic!("{text}: {output}")))
        .collect()
}

/// The output of `printf(format, expression)` after `statements`.
fn printed(format: &str, statements: &str, expression: &str) -> String {
    let text = format!("BEGIN {{ {statements} printf(\"{format}\", {expression}); }}");
    run(&[&text]).trim_start_matches('|').trim_end().to_owned()
}

/// Checks the value of each expression, which has type `int`, twice: with `A`, `B` and `C` replaced
/// by constants, and as variables.
fn both(expressions: &[(&str, &str)], values: [&str; 3]) {
    let [a, b, c] = values;
    for (expression, expected) in expressions {
        let folded: String = expression
            .chars()
            .map(|letter| match letter {
                'A' => format!("({a})"),
                'B' => format!("({b})"),
                'C' => format!("({c})"),
                _ => letter.to_string(),
            })
            .collect();
        let set = format!("A = {a}; self->B = {b}; this->C = {c};");
        let computed = expression.replace('B', "self->B").replace('C', "this->C");
        assert_eq!(printed("%d", "", &folded), *expected, "{folded}");
        assert_eq!(printed("%d", &set, &computed), *expected, "{computed}");
    }
}

#[test]
fn numbers_are_compared_as_in_c() {
    let expressions = [
        ("A == B", "0"),
        ("A == A", "1"),
        ("A != B", "1"),
        ("A < B", "1"),
        ("A <= B", "1"),
        ("B < A", "0"),
        ("B <= A", "0"),
        ("A > B", "0"),
        ("A >= B", "0"),
        ("B >= B", "1"),
        ("A == 1.5", "1"),
        ("A > 1", "1"),
        ("2 > A", "1"),
        ("!A", "0"),
        ("!C", "1"),
        ("!!B", "1"),
        ("A && B", "1"),
        ("A && C", "0"),
        ("C || B", "1"),
        ("C || !A", "0"),
        ("A ^^ C", "1"),
        ("A ^^ B", "0"),
        ("A ? 3 : 4", "3"),
        ("C ? 3 : 4", "4"),
        ("A < B ? 3 : 4", "3"),
        ("A > 1.4f && B <= 2.25 && C == 0", "1"),
    ];
    both(&expressions, ["1.5", "2.25", "0.0"]);
    both(&expressions, ["1.5f", "2.25f", "-0.0f"]);
    both(&expressions, ["1.5", "2.25f", "-0.0"]);
}

#[test]
fn nan_is_unlike_everything() {
    let expressions = [
        ("A == A", "0"),
        ("A != A", "1"),
        ("A < B", "0"),
        ("A <= B", "0"),
        ("A > B", "0"),
        ("A >= B", "0"),
        ("B != A", "1"),
        ("!(A < B)", "1"),
        ("A ? 3 : 4", "3"),
        ("C > B", "1"),
        ("-C < B", "1"),
        ("(int)A", "0"),
        ("(long)C == 0x7fffffffffffffff", "1"),
        ("(long)-C == 1 << 63", "1"),
        ("(unsigned long)C == -1", "1"),
        ("(unsigned long)-C", "0"),
    ];
    both(&expressions, ["0.0 / 0.0", "1.0", "1 / 0.0"]);
    both(&expressions, ["0.0f / 0", "1.0f", "1 / 0.0f"]);
}

#[test]
fn conversions_are_those_of_c() {
    let expressions = [
        ("(int)A", "-2"),
        ("(long)B", "3000000000"),
        ("(unsigned)B", "3000000000"),
        ("(char)C", "44"),
        ("(unsigned char)A", "254"),
        ("(int)(A + 0.75)", "-2"),
        ("7 / 2 + A == 0.25", "1"),
        ("7 / 2.0 + A == 0.75", "1"),
        ("(int)(C - 300)", "0"),
        ("C - 300 == 0.5", "1"),
        ("sizeof (A + 1)", "8"),
        ("sizeof (1.0f + 1L)", "4"),
        ("sizeof (1 + 1.0)", "8"),
        ("sizeof (1.0f * 1.0)", "8"),
        ("(int)(1 ? 2.5 : 1)", "2"),
        ("(0 ? 2 : 1) / 2", "0"),
        ("(1 ? 1 : 2.5) / 2 == 0.5", "1"),
    ];
    both(&expressions, ["-2.75", "3e9", "300.5"]);
}

#[test]
fn numbers_are_assigned_and_stepped() {
    for (statements, expression, expected) in [
        ("x = 1.5; x += 2;", "x", "3.5"),
        ("x = 1.5; x -= 0.25f;", "x", "1.25"),
        ("x = 1.5; x *= x;", "x", "2.25"),
        ("x = 1.0; x /= 8;", "x", "0.125"),
        ("x = 1.0; x /= 0;", "x", "inf"),
        ("x = 1.5; y = x++;", "x + y", "4"),
        ("x = 1.5; y = ++x;", "x + y", "5"),
        ("x = 1.5f; y = x--;", "x + y", "2"),
        ("x += 0.5;", "x", "0.5"),
        ("i = 7; i *= 1.5;", "(double)i", "10"),
        ("i = 7; i += 0.9;", "(double)i", "7"),
        ("i = 7; i = 2.9;", "(double)i", "2"),
        ("this->f = 0.1f; this->f += 0.2;", "this->f", "0.3"),
        (
            "self->d = 2.5; self->d = self->d * self->d;",
            "self->d",
            "6.25",
        ),
        ("x[1.5] = 2.5; x[2] = 3;", "x[1.5] + x[2.0]", "5.5"),
        ("x[1] = 2.5;", "x[1.9]", "2.5"),
        ("self->x[1] = 2.5; self->x[1]++;", "self->x[1]", "3.5"),
        ("x = 2.5, y = x + 1;", "y", "3.5"),
        ("x = 0.5; y = (z = 1.75f) + x;", "y", "2.25"),
        ("x = 2.5; x = 0;", "x", "0"),
        ("x = 1.5;", "-x", "-1.5"),
        ("x = 0.0;", "-x", "-0"),
        ("x = 1.5f;", "-x + +x", "0"),
    ] {
        assert_eq!(
            printed("%g", statements, expression),
            expected,
            "{statements}"
        );
    }
}

#[test]
fn members_and_elements_are_numbers() {
    let text = r#"
        struct mixed { float f; double d; int i; unsigned b : 5; float a[3]; };
        struct mixed m;
        BEGIN
        {
            m.f = 1.5; m.d = m.f * 2; m.i = m.d + 0.75; m.b = m.d * 9.99;
            m.a[0] = 0.1; m.a[1] = m.a[0] * 3; m.a[2] = m.a[1]++;
            m.d++; m.f /= 4; m.b += 1.5;
            printf("%g %g %d %d %.9g %.9g %.9g", m.f, m.d, m.i, m.b, m.a[0], m.a[1], m.a[2]);
            p = (struct mixed *)alloca(sizeof (struct mixed));
            p->d = 0.5; *(&p->d) += 1; p->f -= p->d;
            printf(" %g %g", p->d, p->f);
        }
    "#;
    assert_eq!(
        run(&[text]),
        "|0.375 4 3 30 0.100000001 1.29999995 0.300000012 1.5 -1.5"
    );
}

#[test]
fn objects_and_traces_show_the_digits_that_tell_a_number() {
    let text = r#"
        struct mixed { float f; double d; };
        BEGIN
        {
            p = (struct mixed *)alloca(sizeof (struct mixed));
            p->f = 0.1; p->d = 0.1f;
            trace(p->f); trace(" "); trace(p->d); trace(" "); trace(1e16 / 3);
            print(p);
        }
    "#;
    expect![[r#"
        |0.1 0.10000000149011612 3333333333333333.50x8dd7000000000000 = *$
        |                                            (struct mixed) {$
        |                                             .f = (float)0.1,$
        |                                             .d = (double)0.10000000149011612,$
        |                                            }$
    "#]]
    .assert_eq(&run(&[text]));
}

#[test]
fn translators_convert_numbers() {
    let text = r#"
        struct raw { int milli; double share; };
        typedef struct info { double seconds; int percent; float half; long double whole; } info_t;
        translator info_t < struct raw *r >
        {
            seconds = r->milli / 1000.0;
            percent = r->share * 100;
            half = r->share / 2;
            whole = r->milli;
        };
        BEGIN
        {
            p = (struct raw *)alloca(sizeof (struct raw));
            p->milli = 1500; p->share = 0.378;
            printf("%g", xlate <info_t *> (p)->seconds);
            printf(" %d", xlate <info_t *> (p)->percent);
            printf(" %g", xlate <info_t *> (p)->half);
            printf(" %Lg", xlate <info_t *> (p)->whole * 2);
        }
    "#;
    assert_eq!(run(&[text]), "|1.5 37 0.189 3000");
}

#[test]
fn predicates_and_branches_ask_for_more_than_zero() {
    let text = r#"
        double zero, half;
        inline double twice[double x] = 2 * x;
        BEGIN { half = 0.5; }
        BEGIN /half/ { printf("half "); }
        BEGIN /zero/ { printf("zero "); }
        BEGIN /-zero/ { printf("minus "); }
        BEGIN /half > 0.25 && half < 1/ { printf("between "); }
        BEGIN { if (zero) { printf("yes "); } else { printf("no "); } }
        BEGIN { if (twice[half] == 1) { printf("%g", twice[3]); } }
    "#;
    assert_eq!(run(&[text]), "|half between no 6");
}

/// Generates the bits of finite numbers of many kinds.
fn number() -> impl Strategy<Value = u64> {
    let special = [
        0.0,
        1.0,
        1.5,
        2.0,
        0.1,
        1e308,
        f64::MAX,
        f64::MIN_POSITIVE,
        5e-324,
        1e15,
        9_007_199_254_740_993.0,
    ];
    let special = prop::sample::select(special.to_vec()).prop_map(f64::to_bits);
    let near = (1000u64..1050, any::<u64>())
        .prop_map(|(exponent, fraction)| exponent << 52 | fraction >> 12);
    let all = any::<u64>().prop_filter("a number", |bits| f64::from_bits(*bits).is_finite());
    let magnitude = prop_oneof![special, near, all];
    (magnitude, any::<bool>()).prop_map(|(bits, sign)| bits & !(1 << 63) | u64::from(sign) << 63)
}

/// The number as a constant in D.
fn constant(bits: u64, single: bool) -> String {
    let value = f64::from_bits(bits);
    match single {
        true => format!("{:e}f", value as f32),
        false => format!("{value:e}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The host's floating-point unit, the compiler and the engine give the same bits.
    #[test]
    fn arithmetic_is_exact(a in number(), b in number(), kind in 0usize..4, singles in any::<[bool; 2]>()) {
        let (x, y) = (f64::from_bits(a), f64::from_bits(b));
        prop_assume!(!singles[0] || (x as f32).is_finite());
        prop_assume!(!singles[1] || (y as f32).is_finite());
        let as_typed = |value: f64, single| if single { f64::from(value as f32) } else { value };
        let (x, y) = (as_typed(x, singles[0]), as_typed(y, singles[1]));
        let value = match kind {
            0 => x + y,
            1 => x - y,
            2 => x * y,
            _ => x / y,
        };
        let value = as_typed(value, singles == [true; 2]);
        let op = ["+", "-", "*", "/"][kind];
        let (left, right) = (constant(a, singles[0]), constant(b, singles[1]));
        let set = format!("x = {left}; self->y = {right};");
        let texts = [format!("({left}) {op} ({right})"), format!("x {op} self->y")];
        let expected = if value.is_nan() { 0x7ff8_0000_0000_0000 } else { value.to_bits() };
        prop_assert_eq!(bits_of(&set, &texts), [expected; 2], "{} {} {}", left, op, right);
    }

    #[test]
    fn integers_become_the_nearest_number(n in any::<i64>(), cut in 0u32..60) {
        let n = n >> cut;
        let set = format!("i = (int64_t){n}; u = (uint64_t){}u;", n as u64);
        let texts = [
            format!("(double)({n})"),
            format!("(float)({n})"),
            format!("(double)({}u)", n as u64),
            format!("(float)({}u)", n as u64),
        ];
        let expected = [n as f64, (n as f32).into(), n as u64 as f64, (n as u64 as f32).into()];
        let expected = expected.map(f64::to_bits);
        prop_assert_eq!(bits_of(&set, &texts), expected, "{} folded", n);
        let texts = ["i", "(float)i", "u", "(float)u"].map(String::from);
        prop_assert_eq!(bits_of(&set, &texts), expected, "{} computed", n);
    }

    #[test]
    fn numbers_become_integers_by_losing_their_fraction(bits in number()) {
        let (value, text) = (f64::from_bits(bits), constant(bits, false));
        let casts = ["(long)", "(unsigned long)", "(int)", "(unsigned short)"];
        let all = |number: &str| casts.map(|cast| format!("(long){cast}({number})")).join(", ");
        let format = ["%d"; 8].join(" ");
        let (set, args) = (format!("x = {text};"), format!("{}, {}", all(&text), all("x")));
        let expected = [
            value as i64,
            value as u64 as i64,
            value as i64 as i32 as i64,
            value as i64 as u16 as i64,
        ];
        let expected = expected.map(|n| n.to_string()).join(" ");
        prop_assert_eq!(printed(&format, &set, &args), format!("{expected} {expected}"), "{}", text);
    }
}

#[test]
fn numbers_are_aggregated() {
    let text = r#"
        float f;
        BEGIN
        {
            f = 0.25;
            @sum["a"] = sum(0.5); @sum["a"] = sum(f); @sum["a"] = sum(2); @sum["b"] = sum(-0.1);
            @low = min(f); @low = min(-1e300); @low = min(0.0 / 0);
            @high = max(1.5); @high = max(-2);
            @mean = avg(1.5); @mean = avg(2); @mean = avg(f * 10);
            @deviation = stddev(1e9 + 0.5); @deviation = stddev(1e9 - 0.5);
            @n = count();
            @q = quantize(7.9); @q = quantize(8.1, 2.5);
            @l = lquantize(19.99, 0, 100, 10);
            @ll = llquantize(-99.9, 10, 0, 3, 10);
            @keyed[f, 0.1] = sum(1.5f); @keyed[1, 0.1f] = sum(0.1);
            @plain = sum(3);
            normalize(@mean, 2);
            printa("%s %@g %@.3f %@e\n", @sum);
            printa("%@g %@.2f %@A %@d\n", @low, @mean, @high, @n);
            printa(@keyed);
            printa(@low, @high, @n);
        }
    "#;
    expect![[r#"
        |b -0.1 -0.100 -1.000000e-01$
        |a 2.75 2.750 2.750000e+00$
        |-1e+300 1.00 0X1.8P+0 1$
        |$
        |                1 0.10000000149011612              0.1$
        |             0.25              0.1              1.5$
        |$
        |          -1e+300              1.5                1$
        |              0.5$
        |$
        |           value  ------------- Distribution ------------- count    $
        |               2 |                                         0        $
        |               4 |@@@@@@@@@@@@@                            1        $
        |               8 |@@@@@@@@@@@@@@@@@@@@@@@@@@@              2        $
        |              16 |                                         0        $
        |$
        |$
        |           value  ------------- Distribution ------------- count    $
        |               0 |                                         0        $
        |              10 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 1        $
        |              20 |                                         0        $
        |$
        |$
        |           value  ------------- Distribution ------------- count    $
        |            -100 |                                         0        $
        |             -90 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 1        $
        |             -80 |                                         0        $
        |$
        |                3$
    "#]]
    .assert_eq(&run(&[text]));
}

#[test]
fn processors_parts_of_an_aggregation_are_put_together() {
    let text = r#"
        syscall::read:entry
        {
            @sum = sum(arg0 / 2.0); @low = min(arg0 / 2.0); @high = max(arg0 / 2.0);
            @mean = avg(arg0 / 2.0); @deviation = stddev(arg0 / 2.0);
        }
    "#;
    let program = Compiler::new(&Nowhere).compile(&Source::argument(text), &Settings::default());
    let mut session = Session::new(&[("quiet", None)]);
    session.enable(&program.expect("a program"));
    session.go();
    for (cpu, value) in [(0, 4), (1, 8), (0, 10), (1, 2), (1, 16)] {
        session.device.fire(cpu, "syscall::read:entry", &[value]);
    }
    expect![[r#"
        |               20$
        |                1$
        |                8$
        |                4$
        | 2.449489742783178$
    "#]]
    .assert_eq(&session.finish());
}

/// `long double` is x87's extended format. The expected values are those of C on the same machine.
#[test]
fn long_doubles_are_computed_with() {
    for (statements, expression, expected) in [
        ("x = 1.0L; x /= 3;", "x * 3 == 1", "1"),
        ("x = 1.0L; y = 1.0; x /= 3; y /= 3;", "x == y", "0"),
        ("x = 1.0L; x /= 3;", "(double)x == 1.0 / 3", "1"),
        (
            "x = 9007199254740993L; y = (long double)x;",
            "(long)y",
            "9007199254740993",
        ),
        (
            "x = (long double)0xffffffffffffffffull;",
            "(unsigned long)x == -1",
            "1",
        ),
        (
            "x = -(long double)0x7fffffffffffffff;",
            "(long)x",
            "-9223372036854775807",
        ),
        (
            "x = 1e300L; x *= 1e300;",
            "x > 1e308 && (double)(x / 1e300) == 1e300",
            "1",
        ),
        ("x = 1e300L * 1e300L;", "(float)x == 1 / 0.0f", "1"),
        (
            "x = 2.5L;",
            "x < 3 && x <= 2.5f && x >= 2.5 && x > 1L && x != 0",
            "1",
        ),
        ("x = 2.5L; y = x++;", "x == 3.5 && y == 2.5", "1"),
        (
            "x = 2.5L; y = ++x; x -= 2.75f;",
            "x == 0.75 && y == 3.5",
            "1",
        ),
        ("x = 2.5L;", "-x + 2.5 == 0 && +x == 2.5", "1"),
        ("x = 0.0L;", "!x && !-x && (x ? 0 : 1)", "1"),
        (
            "self->x += 1.5L; self->x *= self->x;",
            "self->x == 2.25",
            "1",
        ),
        (
            "x[1.5L] = 2.5L; x[2.5] = 3; x[1.5]++;",
            "x[1.5f] == 3.5 && x[2.5L] == 3",
            "1",
        ),
        (
            "this->x = 1.5L; this->y = this->x; this->x = 2;",
            "this->y == 1.5",
            "1",
        ),
        ("i = 7; i *= 1.5L;", "i", "10"),
        (
            "f = 0.5f; f += 0.25L; d = 1.5; d = 2 * (f + 1.0L);",
            "d == 3.5 && f == 0.75",
            "1",
        ),
        (
            "x = 0.0L; x /= x;",
            "x != x && !(x == x) && !(x < 1) && (int)x == 0",
            "1",
        ),
        (
            "",
            "sizeof (1.0L + 1) == 16 && sizeof (1 ? 1 : 1.0L) == 16",
            "1",
        ),
        ("x = 1 ? 1.5L : 2;", "x == 1.5", "1"),
    ] {
        assert_eq!(
            printed("%d", statements, expression),
            expected,
            "{statements} {expression}"
        );
    }
}

#[test]
fn long_doubles_are_loaded_printed_and_aggregated() {
    let text = r#"
        struct wide { int i; long double n; };
        long double total;
        struct wide w;
        self long double never, none;
        BEGIN
        {
            p = (uint64_t *)alloca(32);
            /* -3 and one third, with what a compiler leaves behind the number. */
            p[0] = 0xc000000000000000; p[1] = 0xdeadbeef0000c000;
            p[2] = 0xaaaaaaaaaaaaaaab; p[3] = 0x1234567800003ffd;
            n = (long double *)p;
            printf("%Lg %.4Lf %Le %d", n[0], n[1] * 2, *n + n[1], n[1] * 3 == 1);
            w.n = n[1]; w.n -= 1; total += *n; total += n[1];
            *n = total; n[1]++;
            printf(" %Lg %g %Lg %g\n", w.n, total, n[0], n[1]);
            printf("%Lg %Lg\n", self->never, self->none + 1.0L);
            trace(*n); trace(-n[1]);
            @[*n] = count(); p[1] = p[1] ^ 0x7777777700000000; @[n[0]] = count();
            @sum = sum(n[1]); @sum = sum(0.25f);
        }
    "#;
    expect![[r#"
        |-3 0.6667 -2.666667e+00 1 -0.666667 -2.66667 -2.66667 1.33333$
        |0 1$
        |-2.6666666666666665-1.3333333333333333 -2.6666666666666665                2$
        | 1.5833333333333333$
    "#]]
    .assert_eq(&run(&[text]));
}

#[test]
fn numbers_of_a_process_are_read_where_they_are() {
    let text = r#"
        struct sample { double d; float f; int n; long double l; };
        syscall::read:entry
        {
            this->s = (userland struct sample *)arg1;
            printf("%g %g %Lg", this->s->d * 2, this->s->f + this->s->n, this->s->l * 3);
            printf(" %g %Lg %d\n", this->s->d, this->s->l, this->s->l > this->s->d);
            total += this->s->l;
            this->l = this->s->l;
            x[this->s->l]++; x[this->l]++;
            @[this->s->f] = max(this->s->l);
        }
        END { printf("%Lg %d\n", total, x[0.25L]); }
    "#;
    let program = Compiler::new(&Nowhere).compile(&Source::argument(text), &Settings::default());
    let mut session = Session::new(&[("quiet", None)]);
    session.enable(&program.expect("a program"));
    session.go();
    // A `double`, a `float`, an `int`, and a `long double` of one half or one quarter with its
    // padding.
    for (at, d, exponent) in [(0x1_0000, 0.1f64, 0x3ffeu16), (0x2_0000, 0.75, 0x3ffd)] {
        let parts = [
            &d.to_le_bytes()[..],
            &1.25f32.to_le_bytes(),
            &7i32.to_le_bytes(),
            &(1u64 << 63).to_le_bytes(),
            &exponent.to_le_bytes(),
            &[0xaa; 6],
        ];
        let mut user = session.device.platform.user.borrow_mut();
        user.insert(at, parts.concat());
        drop(user);
        session.device.fire(1, "syscall::read:entry", &[3, at]);
    }
    expect![[r#"
        |0.2 8.25 1.5 0.1 0.5 1$
        |1.5 8.25 0.75 0.75 0.25 0$
        |0.75 2$
        |             1.25              0.5$
    "#]]
    .assert_eq(&session.finish());
}

#[test]
fn a_precision_of_zero_counts_for_floating_point_alone() {
    let text = r#"
        BEGIN { printf("%.0a %.0A %.0e %.0f %.0g %.0d %.0x\n", 1.75, 1.75, 1.75, 1.75, 1.75, 0, 0);
            printf("%.0a %.*A\n", (uintptr_t)0x1234, 0, (uintptr_t)0x1234); }
    "#;
    expect![[r#"
        |0x2p+0 0X2P+0 2e+00 2 2 0 0$
        |0x1234 0x1234$
    "#]]
    .assert_eq(&run(&[text]));
}
