// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The text and the events of records in handmade buffers.

use super::{Text, Zone};
use dtrace_compiler::format::Format;
use dtrace_compiler::statement::{self, Kind, Statement};
use dtrace_consumer::consume::Event;
use dtrace_consumer::testing::{printf, Bench, BEGIN, READ};
use dtrace_uapi::action::Action;
use dtrace_uapi::ioctl::{AggDesc, RecDesc};
use expect_test::{expect, Expect};

/// Consumes everything; returns the text, and then the events as lines with `! `.
fn run(bench: &mut Bench) -> String {
    let (mut out, mut events) = (Vec::new(), String::new());
    let mut event = |event: Event| events += &format!("! {event}\n");
    let mut text = Text::new(Zone::utc());
    let consumed = bench.consume(&mut text.to(&mut out, &mut event));
    consumed.unwrap();
    String::from_utf8(out).unwrap() + &events
}

fn check(bench: &mut Bench, expected: Expect) {
    expected.assert_eq(&run(bench));
}

#[test]
fn records_of_all_cpus_stand_in_the_order_of_time_under_one_header() {
    let mut bench = Bench::new();
    bench.probe(1, BEGIN, &[]);
    bench.probe(
        7,
        READ,
        &[(Statement::Trace(Kind::Signed), Action::Difexpr, &[4])],
    );
    bench.record(1, 1, 5, &[]);
    bench.record(0, 7, 20, &[&(-3i32).to_ne_bytes()]);
    bench.record(1, 7, 10, &[&44i32.to_ne_bytes()]);
    let text = run(&mut bench);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "CPU     ID                    FUNCTION:NAME");
    assert_eq!(lines[1], "  1      1                           :BEGIN ");
    assert!(
        lines[2].starts_with("  1      7                       read:entry ")
            && lines[2].ends_with(" 44")
    );
    assert!(lines[3].starts_with("  0      7 ") && lines[3].ends_with(" -3"));
    assert_eq!(lines.len(), 4);
}

#[test]
fn printf_takes_the_fields_of_its_statement_and_exit_gives_the_status() {
    let mut bench = Bench::new();
    bench.set("quiet");
    bench.probe(
        1,
        BEGIN,
        &[
            (
                printf("%d %s|", &[Kind::Signed, Kind::String]),
                Action::Printf,
                &[4, 8],
            ),
            (printf("no argument|", &[]), Action::Printf, &[0]),
            (printf("%x\n", &[Kind::Unsigned]), Action::Printf, &[2]),
            (Statement::Exit, Action::Exit, &[4]),
        ],
    );
    let values: [&[u8]; 4] = [
        &7i32.to_ne_bytes(),
        b"ab\0\xff\xff\xff\xff\xff",
        &[0xef, 0xbe],
        &3i32.to_ne_bytes(),
    ];
    bench.record(0, 1, 1, &values);
    check(
        &mut bench,
        expect![[r#"
        7 ab|no argument|beef
    "#]],
    );
    assert_eq!(bench.consumer.exit_status(), Some(3));
}

#[test]
fn records_of_odd_size_are_followed_by_the_next_word() {
    let mut bench = Bench::new();
    bench.set("quiet");
    let statement = printf("%d\n", &[Kind::Unsigned]);
    bench.probe(1, BEGIN, &[(statement, Action::Printf, &[1])]);
    bench.record(0, 1, 1, &[&[7, 0xff, 0xff, 0xff]]);
    bench.record(0, 1, 2, &[&[8]]);
    check(
        &mut bench,
        expect![[r#"
        7
        8
    "#]],
    );
}

#[test]
fn faults_and_drops_are_events() {
    let mut bench = Bench::new();
    bench.probe(1, BEGIN, &[]);
    let args: &[u32] = &[8, 8, 8, 8, 8];
    bench.probe(
        3,
        ["dtrace", "", "", "ERROR"],
        &[(Statement::Error, Action::Difexpr, args)],
    );
    let args = [1u64, 1, 12, 1, 0].map(u64::to_ne_bytes).concat();
    bench.record(0, 3, 9, &[&args]);
    bench.tables.principal.borrow_mut().get_mut(&0).unwrap().1 = 42;
    check(
        &mut bench,
        expect![[r#"
        ! 42 drops on CPU 0
        ! error on enabled probe ID 1 (ID 1: dtrace:::BEGIN): invalid address (0x0) in action #1 at DIF offset 12
    "#]],
    );
}

#[test]
fn setopt_acts_at_once_and_says_what_it_cannot_do() {
    let mut bench = Bench::new();
    let setopt = |sizes: &'static [u32]| (Statement::Setopt, Action::Libact, sizes);
    bench.probe(
        1,
        BEGIN,
        &[
            (printf("seen", &[]), Action::Printf, &[0]),
            setopt(&[8]),
            setopt(&[8]),
            setopt(&[8, 4]),
        ],
    );
    let names: &[&[u8]] = &[b"quiet\0\0\0", b"Nixon\0xx", b"bufsize\0", b"1m\0x"];
    bench.record(0, 1, 1, names);
    bench.record(0, 1, 2, names);
    let text = run(&mut bench);
    assert_eq!(text.matches("BEGIN seen").count(), 1, "{text}");
    assert!(
        text.contains("couldn't set option \"Nixon\" to \"1\": Invalid option name\n\n"),
        "{text}"
    );
    assert!(
        text.contains("\"bufsize\" to \"1m\": Operation illegal when tracing is active\n"),
        "{text}"
    );
}

#[test]
fn aggregations_of_all_cpus_add_up_and_are_printed_at_the_end() {
    let mut bench = Bench::new();
    bench.statements.push(Statement::Aggregate {
        var: 1,
        keys: vec![Kind::String],
    });
    let field = |action: Action, offset, size| RecDesc {
        action: action as u32,
        offset,
        size,
        uarg: statement::FIRST,
        ..RecDesc::default()
    };
    let head = AggDesc {
        id: 1,
        size: 24,
        nrecs: 2,
        ..AggDesc::default()
    };
    let records = vec![field(Action::Difexpr, 4, 8), field(Action::Count, 16, 8)];
    bench.tables.aggregations.insert(1, (head, records));
    let entry = |key: &[u8; 8], count: u64| {
        [&1u32.to_ne_bytes()[..], key, &[0; 4], &count.to_ne_bytes()].concat()
    };
    let padding = vec![0; 4];
    let buffers = [
        (
            0,
            [
                padding,
                entry(b"sshd\0\0\0\0", 2),
                entry(b"cat\0\0\0\0\0", 9),
            ]
            .concat(),
        ),
        (1, entry(b"sshd\0\0\0\0", 40)),
    ];
    bench.tables.aggregated.borrow_mut().extend(buffers);
    let text = run(&mut bench);
    let rows: Vec<Vec<&str>> = text
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(rows, [["cat", "9"], ["sshd", "42"]]);
}

#[test]
fn a_record_that_prints_an_aggregation_sees_what_was_aggregated_before_it() {
    let mut bench = Bench::new();
    bench.set("quiet");
    let printa = Statement::Printa {
        format: Some(Format::parse("%@d|").unwrap()),
        aggs: vec![9],
    };
    bench.probe(
        1,
        BEGIN,
        &[
            (printa, Action::Printa, &[0]),
            (Statement::Clear(9), Action::Libact, &[0]),
        ],
    );
    bench.statements.push(Statement::Aggregate {
        var: 9,
        keys: Vec::new(),
    });
    let value = RecDesc {
        action: Action::Sum as u32,
        offset: 8,
        size: 8,
        uarg: statement::FIRST + 2,
        ..RecDesc::default()
    };
    let head = AggDesc {
        id: 1,
        size: 16,
        nrecs: 1,
        ..AggDesc::default()
    };
    bench.tables.aggregations.insert(1, (head, vec![value]));
    bench.record(0, 1, 1, &[]);
    bench.record(0, 1, 2, &[]);
    let entry = [1u64.to_ne_bytes(), 5u64.to_ne_bytes()].concat();
    bench.tables.aggregated.borrow_mut().insert(1, entry);
    // Reads only the records: the record that prints the aggregation must read it.
    let mut out = Vec::new();
    let mut text = Text::new(Zone::utc());
    let mut event = |_| {};
    let (context, consumer, options) = bench.parts();
    let mut printer = text.to(&mut out, &mut event);
    let read = consumer.read_records(context, options, None, None, &mut printer);
    read.unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), "5|0|");
}
