// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The output of D programs as JSON. [`run`] holds every line to the schema, also those of all
//! programs of `text`.

use super::text::{trace, Firings, Traced};
use dtrace::options::Oformat;
use dtrace::render::json::testing::held;
use expect_test::{expect, Expect};
use serde_json::Value;

/// Runs `programs` with `options` while `firings` happen. Returns the lines of the output; those of
/// a program that is refused are none.
pub fn run(
    options: &[(&str, Option<&str>)],
    programs: &[&str],
    firings: Firings<'_>,
) -> Vec<String> {
    let Ok(Traced { output, events, .. }) = trace(Oformat::Json, options, programs, firings) else {
        return Vec::new();
    };
    assert!(events.is_empty(), "{events:?}");
    let lines = held(&output);
    let kind = |line: Option<&Value>| line.map(|line| line["type"].clone());
    assert_eq!(kind(lines.first()), Some("start".into()));
    assert_eq!(kind(lines.last()), Some("end".into()));
    let of = |kind: &str| lines.iter().filter(|line| line["type"] == kind).count();
    let end = lines.last().expect("a line");
    let counts = ["probe", "aggregation", "fault", "error"].map(of);
    let told = ["records", "aggregations", "faults", "errors"].map(|name| end[name].clone());
    assert_eq!(told, counts.map(Value::from));
    let text = String::from_utf8(output).expect("UTF-8");
    text.lines().map(str::to_owned).collect()
}

/// Checks the lines of a quiet program, except the first.
fn check(program: &str, firings: Firings<'_>, expected: Expect) {
    let options = [("quiet", None), ("temporal", None)];
    let lines = run(&options, &[program], firings);
    assert!(lines.len() > 1, "the program is refused");
    let lines = lines.iter().skip(1).map(|line| format!("{line}\n"));
    // Times of the engine's machine may change with the program.
    let times = |line: String| match line.split_once("\"timestamp\":") {
        Some((before, after)) => {
            let rest = after.trim_start_matches(|digit: char| digit.is_ascii_digit());
            format!("{before}\"timestamp\":0{rest}")
        }
        None => line,
    };
    expected.assert_eq(&lines.map(times).collect::<String>());
}

const READ: &str = "syscall::read:entry";

#[test]
fn the_first_line_names_programs_and_aggregations() {
    let lines = run(
        &[],
        &[
            "BEGIN { @lat[execname, pid +\n1] = quantize(arg0); @ = count(); }",
            "syscall:::entry",
        ],
        &[],
    );
    let start: Value = serde_json::from_str(&lines[0]).expect("JSON");
    assert_eq!(start["programs"][0]["matched"], 1);
    assert_eq!(start["programs"][1]["name"], "syscall:::entry");
    let expected = serde_json::json!([
        {"name": "lat", "func": "quantize", "keys": ["execname", "pid + 1"]},
        {"name": "_", "func": "count", "keys": []},
    ]);
    assert_eq!(start["aggregations"], expected);
    assert!(start["walltimestamp"]
        .as_u64()
        .is_some_and(|time| time > 1 << 60));
}

#[test]
fn what_programs_put_out() {
    check(
        r#"BEGIN {
            trace(1); trace("a\"b\n"); printf("%d %s|%p\n", -3, "x\xff", (void *)16);
            trace((uint64_t)-1); trace((int64_t)1 << 63); trace(1.5); stack(2);
            exit(2);
        }"#,
        &[],
        expect![[r#"
            {"type":"probe","timestamp":0,"cpu":0,"id":1,"epid":1,"clause":0,"provider":"dtrace","module":"","function":"","name":"BEGIN","output":[{"value":1},{"value":"a\"b\n"},{"message":{"base64":"LTMgeP98MTAK"},"args":[-3,{"base64":"eP8="},"0x10"]},{"value":18446744073709551615},{"value":-9223372036854775808},{"value":1.5},{"stack":[{"address":"0xffffffff81001010","module":"vmlinux","name":"vfs_read","offset":16},{"address":"0xffffffff81002020","module":"vmlinux","name":"ksys_read","offset":32}]}]}
            {"type":"end","status":2,"records":1,"aggregations":0,"drops":{},"faults":0,"errors":0}
        "#]],
    );
}

#[test]
fn a_clause_that_is_split_is_one_line() {
    check(
        r#"syscall::read:entry {
            if (arg0) { printf("yes %d", arg0); } else { printf("no"); }
            printf("after");
        }"#,
        &[(0, READ, &[3]), (0, READ, &[0])],
        expect![[r#"
            {"type":"probe","timestamp":0,"cpu":0,"id":4,"epid":5,"clause":0,"provider":"syscall","module":"vmlinux","function":"read","name":"entry","output":[{"message":"yes 3","args":[3]},{"message":"after","args":[]}]}
            {"type":"probe","timestamp":0,"cpu":0,"id":4,"epid":5,"clause":0,"provider":"syscall","module":"vmlinux","function":"read","name":"entry","output":[{"message":"no","args":[]},{"message":"after","args":[]}]}
            {"type":"end","status":0,"records":2,"aggregations":0,"drops":{},"faults":0,"errors":0}
        "#]],
    );
}

#[test]
fn aggregations_by_key() {
    check(
        r#"
        syscall::read:entry { @n[probefunc, arg0] = sum(arg0); @m["\xff"] = avg(arg0); @l[stack(1)] = max(arg0); }
        END { normalize(@m, 2); printa(@n); clear(@n); printa("%@d", @n); }
        "#,
        &[(0, READ, &[3]), (1, READ, &[4]), (1, READ, &[3])],
        expect![[r#"
            {"type":"probe","timestamp":0,"cpu":0,"id":2,"epid":2,"clause":1,"provider":"dtrace","module":"","function":"","name":"END","output":[{"printa":["n"]},{"printa":["n"]}]}
            {"type":"aggregation","timestamp":0,"name":"n","func":"sum","keys":["read",4],"value":4,"normal":1}
            {"type":"aggregation","timestamp":0,"name":"n","func":"sum","keys":["read",3],"value":6,"normal":1}
            {"type":"aggregation","timestamp":0,"name":"n","func":"sum","keys":["read",3],"value":0,"normal":1}
            {"type":"aggregation","timestamp":0,"name":"n","func":"sum","keys":["read",4],"value":0,"normal":1}
            {"type":"aggregation","name":"m","func":"avg","keys":[{"base64":"/w=="}],"value":1.6666666666666667,"count":3,"sum":10,"normal":2}
            {"type":"aggregation","name":"l","func":"max","keys":[{"stack":[{"address":"0xffffffff81001010","module":"vmlinux","name":"vfs_read","offset":16}]}],"value":4,"normal":1}
            {"type":"end","status":0,"records":1,"aggregations":6,"drops":{},"faults":0,"errors":0}
        "#]],
    );
}

#[test]
fn structures() {
    check(
        r#"
        struct point { int x; unsigned low : 3; union { uint8_t byte; uint64_t word; }; char name[4]; };
        BEGIN {
            p = (struct point *)alloca(sizeof (struct point));
            p->x = -2; p->low = 5; p->word = -1; p->name[0] = 'a';
            print(*p);
        }"#,
        &[],
        expect![[r#"
            {"type":"probe","timestamp":0,"cpu":0,"id":1,"epid":1,"clause":0,"provider":"dtrace","module":"","function":"","name":"BEGIN","output":[{"print":{"type":"struct point","value":{"x":-2,"low":5,"byte":255,"word":18446744073709551615,"name":"a"}}}]}
            {"type":"end","status":0,"records":1,"aggregations":0,"drops":{},"faults":0,"errors":0}
        "#]],
    );
}

#[test]
fn faults_have_their_place() {
    check(
        "BEGIN { trace(*(int *)0x10); } END { trace(1 / (arg0 - arg0)); } END { setopt(\"nosuch\"); }",
        &[],
        expect![[r#"
            {"type":"fault","timestamp":0,"cpu":0,"epid":1,"id":1,"provider":"dtrace","module":"","function":"","name":"BEGIN","fault":"BADADDR","address":"0x10","action":1,"offset":4,"line":1,"col":15,"source":"*(int *)0x10","message":"error on enabled probe ID 1 (ID 1: dtrace:::BEGIN): invalid address (0x10) in action #1 at DIF offset 4"}
            {"type":"fault","timestamp":0,"cpu":0,"epid":2,"id":2,"provider":"dtrace","module":"","function":"","name":"END","fault":"DIVZERO","action":1,"offset":16,"line":1,"col":44,"source":"1 / (arg0 - arg0)","message":"error on enabled probe ID 2 (ID 2: dtrace:::END): divide-by-zero in action #1 at DIF offset 16"}
            {"type":"error","epid":3,"id":2,"provider":"dtrace","module":"","function":"","name":"END","line":1,"col":72,"source":"setopt(\"nosuch\")","message":"couldn't set option \"nosuch\" to \"1\": Invalid option name"}
            {"type":"end","status":0,"records":0,"aggregations":0,"drops":{},"faults":2,"errors":1}
        "#]],
    );
}

#[test]
fn commands_and_files_are_not_in_the_stream() {
    let path = std::env::temp_dir().join(format!("json-freopen-{}", std::process::id()));
    let program = format!(
        "BEGIN {{ printf(\"a\"); system(\"echo not in the stream\"); freopen(\"{}\"); \
         printf(\"b\\n\"); freopen(\"\"); printf(\"c\"); }}",
        path.display()
    );
    let options = [("quiet", None), ("destructive", None)];
    let lines = run(&options, &[&program], &[]);
    assert_eq!(std::fs::read(&path).expect("a file"), b"b\n");
    std::fs::remove_file(&path).expect("a file");
    let record: Value = serde_json::from_str(&lines[1]).expect("JSON");
    let expected = serde_json::json!([
        {"message": "a", "args": []},
        {"system": "echo not in the stream"},
        {"message": "c", "args": []},
    ]);
    assert_eq!(record["output"], expected);
}

#[test]
fn comma_separated_values_are_aggregations_alone() {
    let program =
        "syscall::read:entry { printf(\"no\"); @n[\"a,b\", arg0] = count(); @q = quantize(arg0); }";
    let firings: Firings<'_> = &[(0, READ, &[3]), (1, READ, &[4]), (1, READ, &[3])];
    let traced =
        trace(Oformat::Csv, &[], &[program], firings).unwrap_or_else(|error| panic!("{error}"));
    expect![[r#"
        aggregation,"""a,b""",arg0,count
        n,"a,b",4,1
        n,"a,b",3,2
        aggregation,min,max,count
        q,2,3,2
        q,4,7,1
    "#]]
    .assert_eq(&String::from_utf8(traced.output).expect("text"));
}
