// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

use super::super::testing::visible;
use super::*;
use dtrace_uapi::action::{quantize_bucket, Llquantize, Lquantize, QUANTIZE_NBUCKETS};
use expect_test::{expect, Expect};

/// The data of a distribution after `increments` (value, increment).
fn words(func: Action, arg: u64, increments: &[(i64, i64)]) -> Vec<u64> {
    let (mut words, offset) = match func {
        Action::Quantize => (vec![0; QUANTIZE_NBUCKETS], 0),
        Action::Lquantize => (vec![0; Lquantize::unpack(arg).words()], 1),
        _ => (vec![0; Llquantize::unpack(arg).words()], 1),
    };
    if offset == 1 {
        words[0] = arg;
    }
    for &(value, increment) in increments {
        let bucket = match func {
            Action::Quantize => quantize_bucket(value),
            Action::Lquantize => Lquantize::unpack(arg).bucket(value),
            _ => Llquantize::unpack(arg).bucket(value),
        };
        let word: &mut u64 = &mut words[bucket + offset];
        *word = word.wrapping_add(increment as u64);
    }
    words
}

fn check(func: Action, arg: u64, increments: &[(i64, i64)], expected: Expect) {
    let mut out = Vec::new();
    print(
        &mut out,
        func,
        &words(func, arg, increments),
        1,
        &Style::default(),
    );
    expected.assert_eq(&visible(&String::from_utf8(out).unwrap()));
}

#[test]
fn quantize() {
    check(
        Action::Quantize,
        0,
        &[(0, 1), (1, 3), (5, 10), (1000, 2)],
        expect![[r#"
            |$
            |           value  ------------- Distribution ------------- count    $
            |              -1 |                                         0        $
            |               0 |@@@                                      1        $
            |               1 |@@@@@@@@                                 3        $
            |               2 |                                         0        $
            |               4 |@@@@@@@@@@@@@@@@@@@@@@@@@                10       $
            |               8 |                                         0        $
            |              16 |                                         0        $
            |              32 |                                         0        $
            |              64 |                                         0        $
            |             128 |                                         0        $
            |             256 |                                         0        $
            |             512 |@@@@@                                    2        $
            |            1024 |                                         0        $
        "#]],
    );
}

#[test]
fn quantize_at_its_ends() {
    check(
        Action::Quantize,
        0,
        &[(i64::MIN, 1)],
        expect![[r#"
            |$
            |           value  ------------- Distribution ------------- count    $
            |-4611686018427387904 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 1        $
            |-2305843009213693952 |                                         0        $
        "#]],
    );
    check(
        Action::Quantize,
        0,
        &[(i64::MAX, 1)],
        expect![[r#"
            |$
            |           value  ------------- Distribution ------------- count    $
            |2305843009213693952 |                                         0        $
            |4611686018427387904 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 1        $
        "#]],
    );
}

#[test]
fn quantize_without_data() {
    check(
        Action::Quantize,
        0,
        &[],
        expect![[r#"
            |$
            |           value  ------------- Distribution ------------- count    $
            |              -1 |                                         0        $
            |               0 |                                         0        $
            |               1 |                                         0        $
        "#]],
    );
}

#[test]
fn negative_counts_grow_to_the_left() {
    check(
        Action::Quantize,
        0,
        &[(1, -1), (2, -3)],
        expect![[r#"
            |$
            |           value  ------------- Distribution ------------- count    $
            |               0                                         | 0        $
            |               1                               @@@@@@@@@@| -1       $
            |               2           @@@@@@@@@@@@@@@@@@@@@@@@@@@@@@| -3       $
            |               4                                         | 0        $
        "#]],
    );
    check(
        Action::Quantize,
        0,
        &[(1, -1), (2, 3)],
        expect![[r#"
            |$
            |           value  ------------- Distribution ------------- count    $
            |               0                     |                     0        $
            |               1                @@@@@|                     -1       $
            |               2                     |@@@@@@@@@@@@@@@      3        $
            |               4                     |                     0        $
        "#]],
    );
}

#[test]
fn lquantize_has_open_ends() {
    let arg = Lquantize {
        base: -10,
        step: 10,
        levels: 3,
    };
    check(
        Action::Lquantize,
        arg.pack(),
        &[(-11, 1), (0, 2), (20, 1)],
        expect![[r#"
            |$
            |           value  ------------- Distribution ------------- count    $
            |           < -10 |@@@@@@@@@@                               1        $
            |             -10 |                                         0        $
            |               0 |@@@@@@@@@@@@@@@@@@@@                     2        $
            |              10 |                                         0        $
            |           >= 20 |@@@@@@@@@@                               1        $
        "#]],
    );
    check(
        Action::Lquantize,
        arg.pack(),
        &[(5, 1)],
        expect![[r#"
            |$
            |           value  ------------- Distribution ------------- count    $
            |             -10 |                                         0        $
            |               0 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 1        $
            |              10 |                                         0        $
        "#]],
    );
    check(
        Action::Lquantize,
        arg.pack(),
        &[],
        expect![[r#"
            |$
            |           value  ------------- Distribution ------------- count    $
            |           < -10 |                                         0        $
            |             -10 |                                         0        $
            |               0 |                                         0        $
        "#]],
    );
}

#[test]
fn llquantize_has_steps_within_magnitudes() {
    let arg = Llquantize {
        factor: 10,
        low: 0,
        high: 2,
        nsteps: 20,
    };
    check(
        Action::Llquantize,
        arg.pack(),
        &[(0, 1), (1, 1), (12, 1), (15, 3), (1000, 2)],
        expect![[r#"
            |$
            |           value  ------------- Distribution ------------- count    $
            |              -1 |                                         0        $
            |               0 |@@@@@                                    1        $
            |               1 |@@@@@                                    1        $
            |               2 |                                         0        $
            |               3 |                                         0        $
            |               4 |                                         0        $
            |               5 |                                         0        $
            |               6 |                                         0        $
            |               7 |                                         0        $
            |               8 |                                         0        $
            |               9 |                                         0        $
            |              10 |@@@@@                                    1        $
            |              15 |@@@@@@@@@@@@@@@                          3        $
            |              20 |                                         0        $
            |              25 |                                         0        $
            |              30 |                                         0        $
            |              35 |                                         0        $
            |              40 |                                         0        $
            |              45 |                                         0        $
            |              50 |                                         0        $
            |              55 |                                         0        $
            |              60 |                                         0        $
            |              65 |                                         0        $
            |              70 |                                         0        $
            |              75 |                                         0        $
            |              80 |                                         0        $
            |              85 |                                         0        $
            |              90 |                                         0        $
            |              95 |                                         0        $
            |             100 |                                         0        $
            |             150 |                                         0        $
            |             200 |                                         0        $
            |             250 |                                         0        $
            |             300 |                                         0        $
            |             350 |                                         0        $
            |             400 |                                         0        $
            |             450 |                                         0        $
            |             500 |                                         0        $
            |             550 |                                         0        $
            |             600 |                                         0        $
            |             650 |                                         0        $
            |             700 |                                         0        $
            |             750 |                                         0        $
            |             800 |                                         0        $
            |             850 |                                         0        $
            |             900 |                                         0        $
            |             950 |                                         0        $
            |         >= 1000 |@@@@@@@@@@                               2        $
        "#]],
    );
}

#[test]
fn llquantize_mirrors_negative_values() {
    let arg = Llquantize {
        factor: 4,
        low: 1,
        high: 1,
        nsteps: 4,
    };
    let all = [(-99, 1), (-8, 1), (-3, 1), (3, 1), (7, 1), (99, 1)];
    check(
        Action::Llquantize,
        arg.pack(),
        &all,
        expect![[r#"
        |$
        |           value  ------------- Distribution ------------- count    $
        |          <= -16 |@@@@@@@                                  1        $
        |             -12 |                                         0        $
        |              -8 |@@@@@@@                                  1        $
        |              -4 |                                         0        $
        |       abs() < 4 |@@@@@@@@@@@@@                            2        $
        |               4 |@@@@@@@                                  1        $
        |               8 |                                         0        $
        |              12 |                                         0        $
        |           >= 16 |@@@@@@@                                  1        $
    "#]],
    );
    check(
        Action::Llquantize,
        arg.pack(),
        &[(4, 1)],
        expect![[r#"
        |$
        |           value  ------------- Distribution ------------- count    $
        |             < 4 |                                         0        $
        |               4 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 1        $
        |               8 |                                         0        $
    "#]],
    );
    check(
        Action::Llquantize,
        arg.pack(),
        &[(1, 1)],
        expect![[r#"
        |$
        |           value  ------------- Distribution ------------- count    $
        |              -4 |                                         0        $
        |       abs() < 4 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 1        $
        |               4 |                                         0        $
    "#]],
    );
    check(
        Action::Llquantize,
        arg.pack(),
        &[],
        expect![[r#"
        |$
        |           value  ------------- Distribution ------------- count    $
        |             < 4 |                                         0        $
        |               4 |                                         0        $
        |               8 |                                         0        $
    "#]],
    );
}

#[test]
fn zoom_and_normalisation() {
    let data = words(Action::Quantize, 0, &[(1, 100), (2, 50)]);
    let mut out = Vec::new();
    let style = Style {
        aggzoom: true,
        ..Style::default()
    };
    print(&mut out, Action::Quantize, &data, 10, &style);
    expect![[r#"
        |$
        |           value  ------------- Distribution ------------- count    $
        |               0 |                                         0        $
        |               1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@   10       $
        |               2 |@@@@@@@@@@@@@@@@@@@                      5        $
        |               4 |                                         0        $
    "#]]
    .assert_eq(&visible(&String::from_utf8(out).unwrap()));
}

#[test]
fn bars_of_utf8_end_in_eighths_where_they_grow_to_the_right_alone() {
    let style = Style {
        eighths: true,
        ..Style::default()
    };
    let column = |counts: [i64; 3]| {
        let buckets = counts.map(|count| Bucket {
            label: Label::Value(0),
            count,
        });
        let scale = Scale::new(&buckets, style.aggzoom);
        buckets.map(|bucket| bar(&scale, bucket.count, style.eighths))
    };
    let blocks = |n, rest: &str| format!("|{:<40}", "█".repeat(n) + rest);
    // The column has 320 eighths: 96, 3 and 221 of them.
    assert_eq!(
        column([96, 3, 221]),
        [blocks(12, ""), blocks(0, "▍"), blocks(27, "▋")]
    );
    // Less than half an eighth is rounded to nothing.
    assert_eq!(
        column([0, 1, 999]),
        [blocks(0, ""), blocks(0, ""), blocks(40, "")]
    );
    let [left, ..] = column([-1, 0, 1]);
    assert_eq!(left, format!("{:>20}|{:20}", "@".repeat(10), ""));
}

#[test]
fn data_of_a_wrong_size_is_not_printed() {
    let invalid = Llquantize {
        factor: 0,
        low: 0,
        high: u16::MAX,
        nsteps: 0,
    };
    for (func, words) in [
        (Action::Quantize, vec![0; 126]),
        (Action::Lquantize, vec![]),
        (Action::Lquantize, vec![u64::MAX; 3]),
        (Action::Llquantize, vec![invalid.pack(), 0, 0]),
        (Action::Count, vec![1]),
    ] {
        let mut out = Vec::new();
        print(&mut out, func, &words, 1, &Style::default());
        assert!(out.is_empty(), "{func:?}");
    }
}
