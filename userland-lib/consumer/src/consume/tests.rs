// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Consuming from handmade buffers: their text and events, and inconsistent buffers.

use super::*;
use crate::device::fill;
use dtrace_compiler::format::Format;
use dtrace_compiler::options::Setter;
use dtrace_compiler::statement::{self, Kind, Print};
use dtrace_render::{NoSymbols, Zone};
use dtrace_uapi::action::Action;
use dtrace_uapi::ioctl::{
    AggDesc, ArgDesc, BufDesc, Conf, EprobeDesc, ProbeDesc, ProviderDesc, RecDesc, RecHdr,
};
use dtrace_uapi::types::{AggId, Epid, ProbeId};
use expect_test::{expect, Expect};
use std::cell::RefCell;
use std::collections::HashMap;
use zerocopy::IntoBytes;

/// A device made of tables. Requests for anything else fail with `EINVAL`.
#[derive(Default)]
struct Tables {
    probes: Vec<ProbeDesc>,
    enabled: HashMap<Epid, (EprobeDesc, Vec<RecDesc>)>,
    aggregations: HashMap<AggId, (AggDesc, Vec<RecDesc>)>,
    principal: RefCell<HashMap<u32, (Vec<u8>, u64)>>,
    aggregated: RefCell<HashMap<u32, Vec<u8>>>,
}

fn missing<T>() -> io::Result<T> {
    Err(Errno::EINVAL.into())
}

impl Device for Tables {
    fn conf(&self) -> io::Result<Conf> {
        missing()
    }
    fn cpus(&self) -> u32 {
        2
    }
    fn provider(&self, _name: &str) -> io::Result<Option<ProviderDesc>> {
        missing()
    }
    fn next_probe(&self, pattern: &ProbeDesc) -> io::Result<Option<ProbeDesc>> {
        Ok(self
            .probes
            .iter()
            .find(|probe| probe.id > pattern.id)
            .copied())
    }
    fn argument(&self, _probe: ProbeId, _index: u32) -> io::Result<Option<ArgDesc>> {
        missing()
    }
    fn enable(&self, _dof: &[u8]) -> io::Result<u32> {
        missing()
    }
    fn enabled_probe(&self, epid: Epid) -> io::Result<(EprobeDesc, Vec<RecDesc>)> {
        self.enabled.get(&epid).cloned().map_or_else(missing, Ok)
    }
    fn aggregation(&self, id: AggId) -> io::Result<(AggDesc, Vec<RecDesc>)> {
        self.aggregations.get(&id).cloned().map_or_else(missing, Ok)
    }
    fn go(&self) -> io::Result<u32> {
        missing()
    }
    fn stop(&self) -> io::Result<u32> {
        missing()
    }
    fn status(&self) -> io::Result<Status> {
        missing()
    }
    fn snapshot(&self, which: Buffer, cpu: u32, room: &mut [u8]) -> io::Result<Option<BufDesc>> {
        let taken = match which {
            Buffer::Principal => self.principal.borrow_mut().remove(&cpu),
            Buffer::Aggregation => self
                .aggregated
                .borrow_mut()
                .remove(&cpu)
                .map(|data| (data, 0)),
        };
        let Some((data, drops)) = taken else {
            return Ok(None);
        };
        room[..data.len()].copy_from_slice(&data);
        Ok(Some(BufDesc {
            size: data.len() as u64,
            cpu,
            drops,
            ..BufDesc::default()
        }))
    }
    fn reason(&self) -> String {
        String::new()
    }
}

/// A test's device, statements, options and consumer.
struct Bench {
    tables: Tables,
    statements: Vec<Statement>,
    options: Options,
    consumer: Consumer,
}

impl Bench {
    fn new() -> Self {
        let mut options = Options::default();
        options.set("temporal", None, Setter::User).unwrap();
        Self {
            tables: Tables::default(),
            statements: Vec::new(),
            options,
            consumer: Consumer::default(),
        }
    }

    fn set(&mut self, name: &str) {
        self.options.set(name, None, Setter::User).unwrap();
    }

    /// Adds probe `id` and an enabled probe of the same id, with fields of these statements,
    /// actions and sizes.
    fn probe(&mut self, id: u32, name: [&str; 4], fields: &[(Statement, Action, &[u32])]) {
        let [provider, module, func, name] = name;
        self.tables.probes.push(ProbeDesc {
            id,
            provider: fill(provider).unwrap(),
            module: fill(module).unwrap(),
            func: fill(func).unwrap(),
            name: fill(name).unwrap(),
        });
        let mut offset = size_of::<RecHdr>() as u32;
        let mut records = Vec::new();
        for (statement, action, sizes) in fields {
            self.statements.push(statement.clone());
            for size in *sizes {
                let uarg = statement::FIRST + self.statements.len() as u64 - 1;
                records.push(RecDesc {
                    action: *action as u32,
                    size: *size,
                    offset,
                    uarg,
                    ..RecDesc::default()
                });
                offset += size;
            }
        }
        let nrecs = records.len() as i32;
        let head = EprobeDesc {
            epid: id,
            probeid: id,
            size: offset,
            nrecs,
            ..EprobeDesc::default()
        };
        self.tables.enabled.insert(id, (head, records));
    }

    fn record(&mut self, cpu: u32, epid: u32, time: u64, data: &[&[u8]]) {
        let mut buffers = self.tables.principal.borrow_mut();
        let (buffer, _) = buffers.entry(cpu).or_default();
        buffer.extend(RecHdr::new(epid, time).as_bytes());
        buffer.extend(data.concat());
    }

    /// Consumes everything; returns the text, and then the events as lines with `! `.
    fn run(&mut self) -> Result<String, ConsumeError> {
        let context = Context {
            places: &Places::default(),
            device: &self.tables,
            statements: &self.statements,
            symbols: &NoSymbols,
            zone: &Zone::utc(),
            wait: &until_readable,
        };
        let mut out = Vec::new();
        let mut events = String::new();
        let mut sink = Sink {
            out: &mut out,
            event: &mut |event| events += &format!("! {event}\n"),
        };
        self.consumer
            .read_aggregations(context, &self.options, &mut sink)?;
        self.consumer
            .read_records(context, &mut self.options, None, Some(0), &mut sink)?;
        self.consumer
            .print_aggregations(context, &self.options, &mut sink)?;
        Ok(String::from_utf8(out).unwrap() + &events)
    }

    fn check(&mut self, expected: Expect) {
        expected.assert_eq(&self.run().unwrap());
    }
}

const BEGIN: [&str; 4] = ["dtrace", "", "", "BEGIN"];
const READ: [&str; 4] = ["syscall", "vmlinux", "read", "entry"];

fn printf(format: &str, args: &[Kind]) -> Statement {
    Statement::Printf(Print {
        format: Format::parse(format).unwrap(),
        args: args.to_vec(),
    })
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
    let text = bench.run().unwrap();
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
    bench.check(expect![[r#"
        7 ab|no argument|beef
    "#]]);
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
    bench.check(expect![[r#"
        7
        8
    "#]]);
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
    bench.check(expect![[r#"
        ! 42 drops on CPU 0
        ! error on enabled probe ID 1 (ID 1: dtrace:::BEGIN): invalid address (0x0) in action #1 at DIF offset 12
    "#]]);
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
    let text = bench.run().unwrap();
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
    let text = bench.run().unwrap();
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
    let context = Context {
        places: &Places::default(),
        device: &bench.tables,
        statements: &bench.statements,
        symbols: &NoSymbols,
        zone: &Zone::utc(),
        wait: &until_readable,
    };
    let mut out = Vec::new();
    let mut sink = Sink {
        out: &mut out,
        event: &mut |_| {},
    };
    let read = bench
        .consumer
        .read_records(context, &mut bench.options, None, None, &mut sink);
    read.unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), "5|0|");
}

#[test]
fn buffers_that_lie_are_errors() {
    let broken = |prepare: fn(&mut Bench)| {
        let mut bench = Bench::new();
        bench.probe(
            1,
            READ,
            &[(Statement::Trace(Kind::Signed), Action::Difexpr, &[8])],
        );
        prepare(&mut bench);
        bench.run().unwrap_err().to_string()
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
    let context = Context {
        places: &Places::default(),
        device: &bench.tables,
        statements: &bench.statements,
        symbols: &NoSymbols,
        zone: &Zone::utc(),
        wait: &until_readable,
    };
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
