// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Consuming from handmade buffers: their records and events, and inconsistent buffers.

use super::*;
use crate::aggregate::{sorted, Key, Row, Sort};
use crate::testing::{printf, Bench, BEGIN, READ};
use crate::value::{Datum, Kind};
use dtrace_compiler::format::Format;
use dtrace_compiler::options::Setter;
use dtrace_compiler::statement;
use dtrace_uapi::action::Action;
use dtrace_uapi::ioctl::{AggDesc, RecDesc, RecHdr};
use expect_test::{expect, Expect};
use zerocopy::IntoBytes;

/// Notes what it receives, a line for each record, aggregation and event.
#[derive(Default)]
struct Log {
    lines: Vec<String>,
    is_quiet: bool,
}

impl Log {
    fn add(&mut self, text: &str) {
        if let Some(line) = self.lines.last_mut() {
            *line += text;
        }
    }
}

/// A value as text: strings quoted, numbers in their signedness, all else as bytes.
fn shown(datum: Datum<'_>) -> String {
    match (datum.kind, datum.signed(), datum.unsigned()) {
        (Kind::Str, ..) => format!("{:?}", String::from_utf8_lossy(datum.text())),
        (Kind::Int { signed: true }, Some(value), _) => value.to_string(),
        (Kind::Int { .. }, _, Some(value)) => format!("{value:#x}"),
        (kind, ..) => format!("{kind:?} {:?}", datum.data),
    }
}

impl Receiver for Log {
    fn options(&mut self, options: &Options) {
        self.is_quiet = options.is_on(Opt::Quiet);
    }

    fn start(&mut self, _start: &Start<'_>) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self, _end: &End) -> io::Result<()> {
        Ok(())
    }

    fn begin(&mut self, head: &Head<'_>) -> io::Result<()> {
        let (cpu, time, name) = (head.cpu, head.timestamp, &head.enabled.probe);
        let quiet = if self.is_quiet { " quiet" } else { "" };
        self.lines.push(format!("{cpu} {time} {name}{quiet}"));
        Ok(())
    }

    fn value(&mut self, value: Value<'_>, _around: Surroundings<'_>) -> Result<(), Refused> {
        let text = match value {
            Value::Datum(datum) => shown(datum),
            Value::Printf(_, args) => {
                format!("printf({})", args.map(shown).collect::<Vec<_>>().join(", "))
            }
            Value::Printa {
                vars, aggregations, ..
            } => format!("printa({})", rows(aggregations, vars)),
            Value::Exit(status) => format!("exit({status})"),
            value => return Err(Refused::Value(format!("{value:?}"))),
        };
        self.add(&format!(" {text}"));
        Ok(())
    }

    fn end(&mut self, _head: &Head<'_>) -> io::Result<()> {
        self.add(" .");
        Ok(())
    }

    fn aggregations(
        &mut self,
        aggregations: &Aggregations,
        _around: Surroundings<'_>,
    ) -> io::Result<()> {
        self.lines.push(format!("@ {}", rows(aggregations, &[1])));
        Ok(())
    }

    fn event(&mut self, event: Event) {
        self.lines.push(format!("! {event}"));
    }
}

/// The rows of aggregations, sorted.
fn rows(aggregations: &Aggregations, vars: &[AggVarId]) -> String {
    let known = vars.iter().filter_map(|var| aggregations.get(*var));
    let rows = known.flat_map(|aggregation| sorted(aggregation, &Sort::default()));
    let row = |(key, row): (&[Key], &Row)| {
        let keys: Vec<String> = key.iter().map(|key| shown(key.datum())).collect();
        format!("{}={:?}", keys.join(","), row.words)
    };
    rows.map(row).collect::<Vec<_>>().join(" ")
}

/// Consumes everything; returns what a [`Log`] has noted.
fn run(bench: &mut Bench) -> Result<String, ConsumeError> {
    let mut log = Log::default();
    bench.consume(&mut log)?;
    Ok(log.lines.join("\n") + "\n")
}

fn check(bench: &mut Bench, expected: Expect) {
    expected.assert_eq(&run(bench).unwrap());
}

#[test]
fn records_of_all_cpus_stand_in_the_order_of_time() {
    let mut bench = Bench::new();
    bench.probe(1, BEGIN, &[]);
    bench.probe(
        7,
        READ,
        &[(
            Statement::Trace(statement::Kind::Signed),
            Action::Difexpr,
            &[4],
        )],
    );
    bench.record(1, 1, 5, &[]);
    bench.record(0, 7, 20, &[&(-3i32).to_ne_bytes()]);
    bench.record(1, 7, 10, &[&44i32.to_ne_bytes()]);
    check(
        &mut bench,
        expect![[r#"
        1 5 dtrace:::BEGIN .
        1 10 syscall:vmlinux:read:entry 44 .
        0 20 syscall:vmlinux:read:entry -3 .
        @ 
    "#]],
    );
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
                printf(
                    "%d %s|",
                    &[statement::Kind::Signed, statement::Kind::String],
                ),
                Action::Printf,
                &[4, 8],
            ),
            (printf("no argument|", &[]), Action::Printf, &[0]),
            (
                printf("%x\n", &[statement::Kind::Unsigned]),
                Action::Printf,
                &[2],
            ),
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
        0 1 dtrace:::BEGIN quiet printf(7, "ab") printf() printf(0xbeef) exit(3) .
        @ 
    "#]],
    );
    assert_eq!(bench.consumer.exit_status(), Some(3));
}

#[test]
fn records_of_odd_size_are_followed_by_the_next_word() {
    let mut bench = Bench::new();
    bench.set("quiet");
    let statement = printf("%d\n", &[statement::Kind::Unsigned]);
    bench.probe(1, BEGIN, &[(statement, Action::Printf, &[1])]);
    bench.record(0, 1, 1, &[&[7, 0xff, 0xff, 0xff]]);
    bench.record(0, 1, 2, &[&[8]]);
    check(
        &mut bench,
        expect![[r#"
        0 1 dtrace:::BEGIN quiet printf(0x7) .
        0 2 dtrace:::BEGIN quiet printf(0x8) .
        @ 
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
        @ 
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
    let text = run(&mut bench).unwrap();
    assert!(text.starts_with("0 1 dtrace:::BEGIN printf()\n"), "{text}");
    assert!(
        text.contains("\n0 2 dtrace:::BEGIN quiet printf()\n"),
        "{text}"
    );
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
        keys: vec![statement::Kind::String],
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
    check(
        &mut bench,
        expect![[r#"
        @ "cat"=[9] "sshd"=[42]
    "#]],
    );
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
    let mut log = Log::default();
    let (context, consumer, options) = bench.parts();
    let read = consumer.read_records(context, options, None, None, &mut log);
    read.unwrap();
    let expected = [
        "0 1 dtrace:::BEGIN quiet printa(=[5]) .",
        "0 2 dtrace:::BEGIN quiet printa(=[0]) .",
    ];
    assert_eq!(log.lines, expected);
}

#[test]
fn buffers_that_lie_are_errors() {
    let broken = |prepare: fn(&mut Bench)| {
        let mut bench = Bench::new();
        bench.probe(
            1,
            READ,
            &[(
                Statement::Trace(statement::Kind::Signed),
                Action::Difexpr,
                &[8],
            )],
        );
        prepare(&mut bench);
        run(&mut bench).unwrap_err().to_string()
    };
    let inconsistent = "inconsistent data from the kernel";
    assert!(broken(|bench| bench.record(0, 1, 1, &[&[0; 7]])).starts_with(inconsistent));
    assert!(broken(|bench| {
        bench.record(0, 1, 1, &[&[0; 8]]);
        bench.tables.enabled.get_mut(&1).unwrap().0.size = 4;
    })
    .starts_with(inconsistent));
    assert!(broken(|bench| {
        bench.record(0, 1, 1, &[&[0; 8]]);
        bench.tables.enabled.get_mut(&1).unwrap().1[0].offset = 4000;
    })
    .starts_with(inconsistent));
    assert_eq!(
        broken(|bench| bench.record(0, 77, 1, &[&[0; 8]])),
        "Invalid argument"
    );
    assert!(broken(|bench| {
        bench
            .tables
            .aggregated
            .borrow_mut()
            .insert(0, vec![1, 0, 0, 0, 9]);
        let value = RecDesc {
            action: Action::Count as u32,
            offset: 8,
            size: 8,
            ..RecDesc::default()
        };
        let head = AggDesc {
            id: 1,
            size: 16,
            nrecs: 1,
            ..AggDesc::default()
        };
        bench.tables.aggregations.insert(1, (head, vec![value]));
    })
    .starts_with(inconsistent));
}

#[test]
fn a_wrapped_ring_begins_at_its_oldest_record() {
    let mut bench = Bench::new();
    bench.probe(1, READ, &[]);
    let record = |time| RecHdr::new(1, time).as_bytes().to_vec();
    let data: Vec<u8> = [record(3), record(1), record(2), vec![0; 8]].concat();
    // The memory is larger than the snapshot.
    let filled = || Filled {
        room: [&data[..], &[0xff; 64]].concat(),
        len: data.len(),
    };
    let mut layouts = Layouts::default();
    let (context, ..) = bench.parts();
    let mut parse = |oldest| Snapshot::parse(context, &mut layouts, filled(), oldest);
    let snapshot = parse(12).unwrap();
    let times: Vec<u64> = snapshot
        .records
        .iter()
        .map(|record| record.timestamp)
        .collect();
    assert_eq!(times, [1, 2, 3]);
    for oldest in [100, u64::MAX] {
        assert!(parse(oldest).is_err());
    }
}

#[test]
fn memory_that_cannot_be_had_is_an_error() {
    let mut bench = Bench::new();
    let mut read = |size: &str| {
        for name in ["bufsize", "aggsize"] {
            let set = bench.options.set(name, Some(size), Setter::User);
            set.unwrap();
        }
        let which = [Buffer::Principal, Buffer::Aggregation];
        which.map(|which| {
            let read = bench.consumer.read(&bench.tables, &bench.options, which, 1);
            read.err().map(|error| error.to_string())
        })
    };
    assert_eq!(read("64k"), [None, None]);
    assert_eq!(
        read("8388608t"),
        ["principal", "aggregation"].map(|which| Some(format!(
            "no memory to read CPU 1's {which} buffer of 8388608t"
        )))
    );
}
