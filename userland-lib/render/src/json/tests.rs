// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! JSON of records in handmade buffers. Every line is held to the schema.

use super::testing::held;
use super::*;
use crate::Zone;
use dtrace_compiler::diag::Diagnostic;
use dtrace_compiler::source::{Source, Span};
use dtrace_compiler::statement::{self, Kind as Ty, Statement};
use dtrace_consumer::consume::{ConsumeError, System, Traced};
use dtrace_consumer::testing::{printf, Bench, BEGIN, READ};
use dtrace_machine::proc::{Ended, Ending};
use dtrace_uapi::action::{quantize_bucket, Action, Lquantize, QUANTIZE_NBUCKETS};
use expect_test::{expect, Expect};
use serde_json::Value as Any;

fn json(quote64: bool) -> Json {
    Json::new(Text::new(Zone::utc()), quote64)
}

/// Consumes everything; returns the lines.
fn run(bench: &mut Bench, quote64: bool) -> String {
    let mut out = Vec::new();
    let mut json = json(quote64);
    let mut lines = json.to(&mut out);
    bench.consume(&mut lines).unwrap();
    lines.finish(&End { status: 3 }).unwrap();
    lines.flush().unwrap();
    held(&out);
    String::from_utf8(out).unwrap()
}

fn check(bench: &mut Bench, expected: Expect) {
    expected.assert_eq(&run(bench, false));
}

fn bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_ne_bytes()).collect()
}

#[test]
fn a_record_is_a_line_with_what_its_statements_put_out() {
    let mut bench = Bench::new();
    let float = (Statement::Trace(Ty::Float), Action::Difexpr, &[8][..]);
    bench.probe(
        7,
        READ,
        &[
            (Statement::Trace(Ty::Signed), Action::Difexpr, &[8]),
            (Statement::Trace(Ty::Unsigned), Action::Difexpr, &[8]),
            float.clone(),
            float,
            (
                printf(
                    "%s %*d %p|\n",
                    &[Ty::String, Ty::Signed, Ty::Signed, Ty::Unsigned],
                ),
                Action::Printf,
                &[8, 4, 4, 8],
            ),
            (printf("none", &[]), Action::Printf, &[0]),
            (Statement::Tracemem, Action::Tracemem, &[3]),
            (Statement::Exit, Action::Exit, &[4]),
        ],
    );
    let (four, seven) = (4i32.to_ne_bytes(), 7i32.to_ne_bytes());
    let values: [&[u8]; 10] = [
        &i64::MIN.to_ne_bytes(),
        &u64::MAX.to_ne_bytes(),
        &1.5f64.to_ne_bytes(),
        &f64::INFINITY.to_ne_bytes(),
        b"ab\0\xff\xff\xff\xff\xff",
        &four,
        &seven,
        &0x7f00u64.to_ne_bytes(),
        b"\0\x01\x02",
        &3i32.to_ne_bytes(),
    ];
    bench.record(1, 7, u64::MAX, &values);
    bench.record(0, 7, 5, &values);
    let text = run(&mut bench, false);
    expect![[r#"
        {"type":"probe","timestamp":5,"cpu":0,"id":7,"epid":7,"clause":0,"provider":"syscall","module":"vmlinux","function":"read","name":"entry","output":[{"value":-9223372036854775808},{"value":18446744073709551615},{"value":1.5},{"value":{"float":"inf"}},{"message":"ab    7 7f00|\n","args":["ab",4,7,"0x7f00"]},{"message":"none","args":[]},{"bytes":"AAEC"}]}"#]]
    .assert_eq(text.lines().next().unwrap());
    let last = text.lines().last().unwrap();
    expect![[
        r#"{"type":"end","status":3,"records":2,"aggregations":0,"drops":{},"faults":0,"errors":0}"#
    ]]
    .assert_eq(last);
}

#[test]
fn integers_that_javascript_would_round_are_quoted_on_request() {
    let mut bench = Bench::new();
    let of = |ty| (Statement::Trace(ty), Action::Difexpr, &[8][..]);
    bench.probe(
        1,
        BEGIN,
        &[of(Ty::Signed), of(Ty::Unsigned), of(Ty::Signed)],
    );
    let values: [&[u8]; 3] = [
        &i64::MIN.to_ne_bytes(),
        &u64::MAX.to_ne_bytes(),
        &(1u64 << 53).to_ne_bytes(),
    ];
    bench.record(0, 1, (1 << 53) + 1, &values);
    let text = run(&mut bench, true);
    let line: Any = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!(line["timestamp"], "9007199254740993");
    let output = serde_json::json!([
        {"value": "-9223372036854775808"},
        {"value": "18446744073709551615"},
        {"value": 9007199254740992u64},
    ]);
    assert_eq!(line["output"], output);
}

#[test]
fn a_firing_without_data_is_a_line_unless_quiet() {
    let mut bench = Bench::new();
    bench.probe(1, BEGIN, &[]);
    bench.record(0, 1, 1, &[]);
    assert_eq!(run(&mut bench, false).lines().count(), 2);
    let mut bench = Bench::new();
    bench.set("quiet");
    bench.probe(1, BEGIN, &[]);
    bench.probe(2, READ, &[(printf("x", &[]), Action::Printf, &[0])]);
    bench.record(0, 1, 1, &[]);
    bench.record(0, 2, 2, &[]);
    let text = run(&mut bench, false);
    assert_eq!(text.lines().count(), 2, "{text}");
    assert!(text.contains("\"records\":1,"), "{text}");
}

#[test]
fn hostile_strings_survive() {
    let long = vec![b'\\'; 65_535];
    let texts: [&[u8]; 6] = [
        b"quote\" back\\slash\nline\r\ttab\x01\x7f",
        b"\xff\xfe half \xc3",
        "ä\u{2028}\u{fffd}😀".as_bytes(),
        b"{\"type\":\"end\"}\n{",
        b"",
        &long,
    ];
    for text in texts {
        let mut bench = Bench::new();
        let size = text.len() as u32 + 1;
        let sizes: &'static [u32] = Box::leak(Box::new([size]));
        bench.probe(
            1,
            ["p\"rov", "mod\\", "fn\n", "näme"],
            &[
                (printf("<%s>", &[Ty::String]), Action::Printf, sizes),
                (Statement::Trace(Ty::String), Action::Difexpr, sizes),
            ],
        );
        let field = [text, b"\0"].concat();
        bench.record(0, 1, 1, &[&field, &field]);
        let lines = held(run(&mut bench, false).as_bytes());
        assert_eq!(lines.len(), 2);
        let line = &lines[0];
        assert_eq!(line["provider"], "p\"rov");
        assert_eq!(line["name"], "näme");
        let message = [b"<", text, b">"].concat();
        for (got, expected) in [
            (&line["output"][0]["message"], &message[..]),
            (&line["output"][0]["args"][0], text),
            (&line["output"][1]["value"], text),
        ] {
            match std::str::from_utf8(expected) {
                Ok(text) => assert_eq!(got, text),
                Err(_) => {
                    let mut base64 = Vec::new();
                    Put::to(&mut base64, false).bytes(expected);
                    let base64: Any = serde_json::from_slice(&base64).unwrap();
                    assert_eq!(got, &base64);
                    assert!(got["base64"].is_string());
                }
            }
        }
    }
}

/// Adds an aggregation of one key of 8 bytes, and its entries.
fn aggregate(bench: &mut Bench, func: Action, key: Ty, entries: &[(&[u8; 8], &[u64])]) {
    bench.statements.push(Statement::Aggregate {
        var: 1,
        keys: vec![key],
    });
    let size = entries[0].1.len() as u32 * 8;
    let field = |action: Action, offset, size| dtrace_uapi::ioctl::RecDesc {
        action: action as u32,
        offset,
        size,
        uarg: statement::FIRST + bench.statements.len() as u64 - 1,
        ..Default::default()
    };
    let head = dtrace_uapi::ioctl::AggDesc {
        id: 1,
        size: 16 + size,
        nrecs: 2,
        ..Default::default()
    };
    let records = vec![field(Action::Difexpr, 4, 8), field(func, 16, size)];
    bench.tables.aggregations.insert(1, (head, records));
    let entry = |(key, words): &(&[u8; 8], &[u64])| {
        let id = 1u32.to_ne_bytes();
        [&id[..], *key, &[0; 4], &bytes(words)].concat()
    };
    let data = entries.iter().flat_map(entry).collect();
    bench.tables.aggregated.borrow_mut().insert(0, data);
    bench.consumer.declare(1, func, entries[0].1[0]);
    bench.consumer.describe(1, "lat", &["execname".to_owned()]);
}

#[test]
fn an_aggregation_has_a_line_for_each_key() {
    let mut bench = Bench::new();
    let sum: &[(&[u8; 8], &[u64])] = &[
        (b"d\"d\0....", &[1 << 60]),
        (b"\xff\0......", &[-5i64 as u64]),
    ];
    aggregate(&mut bench, Action::Sum, Ty::String, sum);
    check(
        &mut bench,
        expect![[r#"
            {"type":"aggregation","name":"lat","func":"sum","keys":[{"base64":"/w=="}],"value":-5,"normal":1}
            {"type":"aggregation","name":"lat","func":"sum","keys":["d\"d"],"value":1152921504606846976,"normal":1}
            {"type":"end","status":3,"records":0,"aggregations":2,"drops":{},"faults":0,"errors":0}
        "#]],
    );
}

#[test]
fn buckets_have_both_ends() {
    let mut words = vec![0; QUANTIZE_NBUCKETS];
    for (value, count) in [(i64::MIN, 1), (-5, 1), (0, 2), (4096, 30), (i64::MAX, 4)] {
        words[quantize_bucket(value)] = count;
    }
    let mut bench = Bench::new();
    let key = 7u64.to_ne_bytes();
    aggregate(
        &mut bench,
        Action::Quantize,
        Ty::Unsigned,
        &[(&key, &words)],
    );
    check(
        &mut bench,
        expect![[r#"
            {"type":"aggregation","name":"lat","func":"quantize","keys":[7],"buckets":[{"min":-9223372036854775808,"max":-4611686018427387904,"count":1},{"min":-7,"max":-4,"count":1},{"min":0,"max":0,"count":2},{"min":4096,"max":8191,"count":30},{"min":4611686018427387904,"max":9223372036854775807,"count":4}],"normal":1}
            {"type":"end","status":3,"records":0,"aggregations":1,"drops":{},"faults":0,"errors":0}
        "#]],
    );
    let arg = Lquantize {
        base: 0,
        step: 10,
        levels: 2,
    };
    let mut bench = Bench::new();
    aggregate(
        &mut bench,
        Action::Lquantize,
        Ty::Signed,
        &[(&key, &[arg.pack(), 1, 2, 0, 3])],
    );
    let lines = held(run(&mut bench, false).as_bytes());
    let buckets = serde_json::json!([
        {"max": -1, "count": 1},
        {"min": 0, "max": 9, "count": 2},
        {"min": 20, "count": 3},
    ]);
    assert_eq!(lines[0]["buckets"], buckets);
}

#[test]
fn means_and_deviations_are_not_rounded_and_have_their_parts() {
    let key = 7u64.to_ne_bytes();
    for (func, words, expected) in [
        (
            Action::Avg,
            &[4, 50][..],
            r#""value":12.5,"count":4,"sum":50"#,
        ),
        (
            Action::Stddev,
            &[2, 3, 5, 1],
            r#""value":3037000499.97605,"count":2,"sum":3,"sum_squares":"18446744073709551621""#,
        ),
        (Action::FloatMax, &[0.5f64.to_bits()], r#""value":0.5"#),
        (
            Action::FloatAvg,
            &[2, 5f64.to_bits()],
            r#""value":2.5,"count":2,"sum":5.0"#,
        ),
        (
            Action::FloatStddev,
            &[1, 5f64.to_bits(), 4f64.to_bits()],
            r#""value":2.0,"count":1,"mean":5.0"#,
        ),
    ] {
        let mut bench = Bench::new();
        aggregate(&mut bench, func, Ty::Unsigned, &[(&key, words)]);
        let text = run(&mut bench, false);
        assert!(text.contains(expected), "{func:?}: {text}");
    }
}

#[test]
fn a_printa_writes_its_rows_behind_its_record_and_they_are_not_written_again() {
    let mut bench = Bench::new();
    let key = 7u64.to_ne_bytes();
    aggregate(&mut bench, Action::Count, Ty::Unsigned, &[(&key, &[40])]);
    let printa = Statement::Printa {
        format: None,
        aggs: vec![1],
    };
    bench.probe(
        1,
        BEGIN,
        &[
            (Statement::Normalize(1), Action::Libact, &[8]),
            (printa, Action::Printa, &[0]),
            (printf("x", &[]), Action::Printf, &[0]),
        ],
    );
    bench.record(0, 1, 9, &[&10u64.to_ne_bytes()]);
    check(
        &mut bench,
        expect![[r#"
            {"type":"probe","timestamp":9,"cpu":0,"id":1,"epid":1,"clause":0,"provider":"dtrace","module":"","function":"","name":"BEGIN","output":[{"printa":["lat"]},{"message":"x","args":[]}]}
            {"type":"aggregation","timestamp":9,"name":"lat","func":"count","keys":[7],"value":4,"raw":40,"normal":10}
            {"type":"end","status":3,"records":1,"aggregations":1,"drops":{},"faults":0,"errors":0}
        "#]],
    );
}

#[test]
fn the_parts_of_each_cpu_are_in_the_line() {
    let mut bench = Bench::new();
    bench.set("aggpercpu");
    let key = 7u64.to_ne_bytes();
    aggregate(&mut bench, Action::Count, Ty::Unsigned, &[(&key, &[40])]);
    let lines = held(run(&mut bench, false).as_bytes());
    assert_eq!(
        lines[0]["cpus"],
        serde_json::json!([{"cpu": 0, "value": 40}])
    );
}

#[test]
fn faults_drops_and_failures_are_in_the_stream() {
    let mut bench = Bench::new();
    bench.probe(1, BEGIN, &[(Statement::Normalize(1), Action::Libact, &[8])]);
    let args: &[u32] = &[8, 8, 8, 8, 8];
    let error = ["dtrace", "", "", "ERROR"];
    bench.probe(3, error, &[(Statement::Error, Action::Difexpr, args)]);
    let fault = |fault, addr| [1u64, 1, 12, fault, addr].map(u64::to_ne_bytes).concat();
    bench.record(0, 3, 9, &[&fault(1, 0x10)]);
    bench.record(0, 3, 10, &[&fault(11, -8i64 as u64)]);
    bench.record(0, 1, 11, &[&0u64.to_ne_bytes()]);
    bench.tables.principal.borrow_mut().get_mut(&0).unwrap().1 = 42;
    check(
        &mut bench,
        expect![[r#"
            {"type":"drop","kind":"principal","tag":"DTRACEDROP_PRINCIPAL","cpu":0,"count":42,"total":42,"message":"42 drops on CPU 0"}
            {"type":"fault","timestamp":9,"cpu":0,"epid":1,"id":1,"provider":"dtrace","module":"","function":"","name":"BEGIN","fault":"BADADDR","address":"0x10","action":1,"offset":12,"message":"error on enabled probe ID 1 (ID 1: dtrace:::BEGIN): invalid address (0x10) in action #1 at DIF offset 12"}
            {"type":"fault","timestamp":10,"cpu":0,"epid":1,"id":1,"provider":"dtrace","module":"","function":"","name":"BEGIN","fault":"BADINDEX","index":-8,"action":1,"offset":12,"message":"error on enabled probe ID 1 (ID 1: dtrace:::BEGIN): index out of bounds (-8) in action #1 at DIF offset 12"}
            {"type":"error","epid":1,"id":1,"provider":"dtrace","module":"","function":"","name":"BEGIN","message":"Invalid normalization"}
            {"type":"probe","timestamp":11,"cpu":0,"id":1,"epid":1,"clause":0,"provider":"dtrace","module":"","function":"","name":"BEGIN","output":[]}
            {"type":"end","status":3,"records":1,"aggregations":0,"drops":{"principal":42},"faults":2,"errors":1}
        "#]],
    );
}

#[test]
fn ends_of_processes_and_warnings_are_lines() {
    let (mut out, mut json) = (Vec::new(), json(false));
    let mut lines = json.to(&mut out);
    let endings = [Ending::Exited, Ending::Status(3), Ending::Signal(9)];
    for ending in endings {
        lines.event(Event::Ended(Ended { pid: 411, ending }));
    }
    lines.event(Event::Missing("some probes\n".to_owned()));
    lines.event(Event::Lowered("buffer size lowered to 64m".to_owned()));
    held(&out);
    expect![[r#"
        {"type":"process","pid":411,"ending":"exited","message":"pid 411 has exited"}
        {"type":"process","pid":411,"ending":"exited","status":3,"message":"pid 411 exited with status 3"}
        {"type":"process","pid":411,"ending":"terminated","signal":9,"message":"pid 411 terminated by SIGKILL"}
        {"type":"warning","kind":"missing","message":"some probes"}
        {"type":"warning","kind":"lowered","message":"buffer size lowered to 64m"}
    "#]]
    .assert_eq(&String::from_utf8(out).unwrap());
}

#[test]
fn the_first_line_tells_machine_programs_and_aggregations() {
    let (mut out, mut json) = (Vec::new(), json(false));
    let mut aggregations = Aggregations::default();
    aggregations.declare(1, Action::FloatSum, 0);
    aggregations.describe(1, "lat", &["execname".to_owned(), "\"a\"".to_owned()]);
    let program = Traced {
        name: "x.d".to_owned(),
        matched: 805,
        left_out: String::new(),
    };
    let start = Start {
        system: || System {
            host: "h".to_owned(),
            timestamp: 1,
            walltimestamp: 1_763_880_000_123_456_789,
            ..System::default()
        },
        programs: &[program],
        aggregations: &aggregations,
    };
    json.to(&mut out).start(&start).unwrap();
    held(&out);
    expect![[r#"
        {"type":"start","version":1,"host":"h","boot_id":"","kernel":"","timestamp":1,"walltimestamp":1763880000123456789,"programs":[{"name":"x.d","matched":805,"left_out":""}],"aggregations":[{"name":"lat","func":"sum","keys":["execname","\"a\""]}]}
    "#]]
    .assert_eq(&String::from_utf8(out).unwrap());
}

#[test]
fn errors_of_the_compiler_have_their_place() {
    let source = Source::file("x.d", "BEGIN\n{\n\ttrace(foo);\n}\n");
    let error = Diagnostic::new("D_IDENT_UNDEF", Span::new(15, 18), "failed to resolve foo");
    let error = error.note("did you mean `fop`?");
    let mut text = refusal(&error, &source, "failed to compile script x.d: line 3: …\n");
    text.extend(doubt(&error, &Source::argument("BEGIN { trace(foo); }")));
    text.extend(super::error("no probes matched"));
    list::version(&mut text, "2.0", "0.1.0");
    held(&text);
    expect![[r#"
        {"type":"error","tag":"D_IDENT_UNDEF","file":"x.d","line":3,"col":8,"message":"failed to compile script x.d: line 3: …","notes":["did you mean `fop`?"]}
        {"type":"warning","tag":"D_IDENT_UNDEF","line":1,"col":16,"message":"failed to resolve foo","notes":["did you mean `fop`?"]}
        {"type":"error","message":"no probes matched"}
        {"type":"version","d":"2.0","dtrace":"0.1.0"}
    "#]]
    .assert_eq(&String::from_utf8(text).unwrap());
}

/// An output whose device is full.
struct Full;

impl std::io::Write for Full {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::StorageFull.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Output for Full {
    fn truncate(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_ends_consuming_also_if_an_event_meets_it() {
    let mut bench = Bench::new();
    bench.probe(1, BEGIN, &[]);
    bench.record(0, 1, 1, &[]);
    let mut json = json(false);
    let mut full = Full;
    let consumed = bench.consume(&mut json.to(&mut full));
    assert!(matches!(consumed, Err(ConsumeError::Output(_))));
    let mut lines = json.to(&mut full);
    lines.event(Event::Missing("some".to_owned()));
    assert!(lines.flush().is_err());
    assert!(lines.flush().is_ok());
}

#[test]
fn what_goes_to_a_file_is_text_and_not_in_the_stream() {
    let path = std::env::temp_dir().join(format!("dtrace-json-{}", std::process::id()));
    let name = path.to_str().unwrap();
    let freopen = |format: &str| match printf(format, &[]) {
        Statement::Printf(print) => (Statement::Freopen(print), Action::Freopen, &[0][..]),
        other => panic!("{other:?}"),
    };
    let say = |text: &str| (printf(text, &[]), Action::Printf, &[0][..]);
    let mut bench = Bench::new();
    bench.set("quiet");
    bench.probe(1, BEGIN, &[say("a"), freopen(name), say("b\n")]);
    bench.probe(2, READ, &[say("c\n")]);
    bench.probe(
        3,
        READ,
        &[
            freopen(""),
            say("d"),
            (Statement::Ftruncate, Action::Libact, &[0]),
        ],
    );
    for (number, time) in [(1, 1), (2, 2), (3, 3)] {
        bench.record(0, number, time, &[]);
    }
    let lines = held(run(&mut bench, false).as_bytes());
    assert_eq!(std::fs::read(&path).unwrap(), b"b\nc\n");
    std::fs::remove_file(&path).unwrap();
    let message = |line: &Any| line["output"][0]["message"].as_str().map(str::to_owned);
    let messages: Vec<_> = lines.iter().filter_map(message).collect();
    assert_eq!(messages, ["a", "d"]);
    let error = lines.iter().find(|line| line["type"] == "error").unwrap();
    assert_eq!(
        error["message"],
        "failed to ftruncate(): the output is JSON"
    );
}
