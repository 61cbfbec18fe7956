// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The output of D programs.

use dtrace::{
    consume::{self, Event},
    handle::{Error, Given, Handle, KernelWorld, Progress},
    options::Oformat,
    render::{Form, Zone},
    source::Source,
    symbols::KernelSymbols,
};
use expect_test::{expect, Expect};

use super::device::EngineDevice;

/// The symbols of the kernel: the functions of `STACK`.
const KALLSYMS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/engine/kallsyms");

/// Probes to fire: CPU, name, arguments.
pub type Firings<'a> = &'a [(u32, &'a str, &'a [u64])];

/// Runs `programs` with `options` while `firings` happen. Returns the output, the events and the
/// exit status. Everything is done a second time with JSON, whose lines must be as the schema says.
pub fn run(options: &[(&str, Option<&str>)], programs: &[&str], firings: Firings<'_>) -> String {
    let traced = trace(Oformat::Text, options, programs, firings);
    super::json::run(options, programs, firings);
    let Traced {
        output,
        events,
        status,
    } = match traced {
        Ok(traced) => traced,
        Err(message) => return message,
    };
    let mut shown = super::session::visible(&output);
    for event in events {
        shown += &format!("! {event}\n");
    }
    match status {
        0 => shown,
        status => format!("{shown}= {status}\n"),
    }
}

/// What a run has left.
pub struct Traced {
    /// The output.
    pub output: Vec<u8>,
    /// The events that are not in it.
    pub events: Vec<String>,
    /// The exit status.
    pub status: i32,
}

/// Runs programs. The error is the message.
pub fn trace(
    format: Oformat,
    options: &[(&str, Option<&str>)],
    programs: &[&str],
    firings: Firings<'_>,
) -> Result<Traced, String> {
    let device = EngineDevice::new();
    {
        let mut kernel = device.platform.kernel.borrow_mut();
        kernel.insert(0x5000, b"kernel text\0".to_vec());
        let mut user = device.platform.user.borrow_mut();
        user.insert(0x7000, b"user text\0".to_vec());
    }
    let symbols = KernelSymbols::at(KALLSYMS);
    let world = KernelWorld::with(&device, symbols, "/nowhere");
    let mut handle = Handle::new(&world).expect("a handle");
    for (name, value) in options {
        handle.set_option(name, *value).expect("a good option");
    }
    let mut output = Vec::new();
    let mut events = Vec::new();
    let mut enabled = Vec::new();
    for program in programs {
        let source = Source::argument(*program);
        let read = handle.read(&source, Given::default());
        let compiled = read.and_then(|script| handle.compile(&script));
        let compiled = compiled.map_err(|error| match error {
            Error::Compile(error) => error.headline(&source, true),
            error => error.to_string(),
        })?;
        let matched = handle.enable(&compiled);
        let matched = matched.map_err(|error| error.to_string())?;
        enabled.push(consume::Traced {
            name: (*program).to_owned(),
            matched: matched.probes,
            left_out: matched.left_out,
        });
    }
    handle.go().map_err(|error| error.to_string())?;
    for &(cpu, probe, args) in firings {
        device.fire(cpu, probe, args);
    }
    let mut event = |event: Event| events.push(event.to_string());
    let mut form = Form::new(format, Zone::utc());
    let mut sink = form.to(&mut output, &mut event);
    let to = sink.receiver();
    handle.tell_start(&enabled, to).expect("a start");
    handle.work(to).expect("work");
    handle.stop().expect("an end");
    while handle.work(to).expect("work") != Progress::Done {}
    handle.yield_aggregations(to).expect("aggregations");
    handle.tell_end(to).expect("an end");
    drop(sink);
    Ok(Traced {
        output,
        events,
        status: handle.exit_status(),
    })
}

fn check(program: &str, firings: Firings<'_>, expected: Expect) {
    let options = [("quiet", None), ("temporal", None)];
    expected.assert_eq(&run(&options, &[program], firings));
}

const READ: &str = "syscall::read:entry";
const READ_RETURN: &str = "syscall::read:return";
const WRITE: &str = "syscall::write:entry";

#[test]
fn the_first_program() {
    let text = run(
        &[],
        &["BEGIN { trace(1); trace(\"hello\"); exit(2); }"],
        &[],
    );
    expect![[r#"
        |CPU     ID                    FUNCTION:NAME$
        |  0      1                           :BEGIN           1  hello                            $
        = 2
    "#]]
    .assert_eq(&text);
}

#[test]
fn formats() {
    check(
        r#"BEGIN { printf("%d %s|%5d|%-5s|%x %c%%\n", 1, "a", 42, "b", 255, 'z'); }"#,
        &[],
        expect![[r#"
            |1 a|   42|b    |ff z%$
        "#]],
    );
    check(
        r#"BEGIN { printf("%Y %p %hd %lld\n", walltimestamp, arg0, (short)-1, (long long)-2); }"#,
        &[],
        expect![[r#"
            |2000 Feb 29 00:00:00 0 -1 -2$
        "#]],
    );
}

#[test]
fn arithmetic() {
    check(
        r#"BEGIN { x = 7; printf("%d %d %d %d %d\n", x / 2, -x % 4, x << 3, x > 3 ? 1 : 0, ~x); }"#,
        &[],
        expect![[r#"
            |3 -3 56 1 -8$
        "#]],
    );
    check(
        r#"BEGIN { c = (char)300; u = (uint8_t)255; printf("%d %d %d\n", c, u + 1, (uint8_t)(u + 1)); }"#,
        &[],
        expect![[r#"
            |44 256 0$
        "#]],
    );
}

#[test]
fn predicates_and_variables_of_threads() {
    check(
        r#"
        syscall::read:entry { self->size = arg2; }
        syscall::read:return /self->size/ { printf("%d of %d\n", arg0, self->size); self->size = 0; }
        "#,
        &[
            (0, READ_RETURN, &[1]),
            (0, READ, &[3, 0, 100]),
            (1, READ_RETURN, &[60]),
            (1, READ_RETURN, &[61]),
        ],
        expect![[r#"
            |60 of 100$
        "#]],
    );
}

#[test]
fn associative_arrays_and_globals() {
    check(
        r#"
        syscall:::entry { calls[probefunc, arg0]++; total += 1; }
        END { printf("%d %d %d of %d\n", calls["read", 3], calls["write", 3], calls["read", 4], total); }
        "#,
        &[(0, READ, &[3]), (1, READ, &[3]), (0, WRITE, &[3])],
        expect![[r#"
            |2 1 0 of 3$
        "#]],
    );
}

#[test]
fn strings() {
    check(
        r#"BEGIN {
            printf("%d %s %s %s %d\n", strlen("abc"), substr("abcdef", 2, 3), strjoin("a", "b"),
                execname, execname == "bash");
            printf("%s %s %s\n", strchr("a/b", '/'), basename("/a/b"), strtok("a:b", ":"));
        }"#,
        &[],
        expect![[r#"
            |3 cde ab bash 1$
            |/b b a$
        "#]],
    );
    check(
        r#"syscall::read:entry { printf("%s %s\n", copyinstr(arg1), stringof(arg0)); }"#,
        &[(0, READ, &[0x5000, 0x7000])],
        expect![[r#"
            |user text kernel text$
        "#]],
    );
}

#[test]
fn strsize_counts_the_nul() {
    let text = run(
        &[("quiet", None), ("strsize", Some("6"))],
        &[
            "BEGIN { x = \"abcdefgh\"; printf(\"%s %s %d %d\", x, x + 3, strlen(x), sizeof (x)); }",
            "BEGIN { p = (string *)alloca(sizeof (string)); *p = \"ab\"; printf(\" %s\", *p); }",
            "struct two { string a; string b; }; this struct two t; \
             BEGIN { this->t.b = \"12345\"; this->t.a = \"abcdefgh\"; printf(\" %s %s\", this->t.a, this->t.b); }",
        ],
        &[],
    );
    expect!["|abcde de 5 6 ab abcde 12345"].assert_eq(&text);
}

#[test]
fn aggregations() {
    check(
        r#"
        syscall:::entry { @calls[probefunc] = count(); @sizes = quantize(arg2); @sum[pid] = sum(arg2); }
        "#,
        &[
            (0, READ, &[3, 0, 10]),
            (1, READ, &[3, 0, 20]),
            (1, WRITE, &[3, 0, 30]),
        ],
        expect![[r#"
            |  write                                                             1$
            |  read                                                              2$
            |$
            |           value  ------------- Distribution ------------- count    $
            |               4 |                                         0        $
            |               8 |@@@@@@@@@@@@@                            1        $
            |              16 |@@@@@@@@@@@@@@@@@@@@@@@@@@@              2        $
            |              32 |                                         0        $
            |$
            |     1234               60$
        "#]],
    );
    check(
        r#"
        syscall:::entry { @a[probefunc] = avg(arg2); @b[probefunc] = max(arg2); @l = lquantize(arg2, 0, 40, 10); }
        END { printa("%-8s %@8d %@8d\n", @a, @b); normalize(@b, 10); printa(@b); clear(@a); printa(@a);
            trunc(@b, 1); printa("%s\n", @b); }
        "#,
        &[
            (0, READ, &[3, 0, 10]),
            (1, READ, &[3, 0, 20]),
            (1, WRITE, &[3, 0, 30]),
        ],
        expect![[r#"
            |read           15       20$
            |write          30       30$
            |$
            |  read                                                              2$
            |  write                                                             3$
            |$
            |  read                                                              0$
            |  write                                                             0$
            |write$
            |$
            |           value  ------------- Distribution ------------- count    $
            |               0 |                                         0        $
            |              10 |@@@@@@@@@@@@@                            1        $
            |              20 |@@@@@@@@@@@@@                            1        $
            |              30 |@@@@@@@@@@@@@                            1        $
            |           >= 40 |                                         0        $
            |$
        "#]],
    );
}

#[test]
fn faults() {
    check(
        r#"
        BEGIN { trace(*(int *)0x10); }
        ERROR { printf("ERROR %d %x\n", arg4, arg5); exit(1); }
        "#,
        &[],
        expect![[r#"
            |ERROR 1 10$
            ! error on enabled probe ID 1 (ID 1: dtrace:::BEGIN): invalid address (0x10) in action #1 at DIF offset 4
            ! at line 2: *(int *)0x10
            = 1
        "#]],
    );
    check(
        "BEGIN { x = 0; trace(5 / x); }",
        &[],
        expect![[r#"
            ! error on enabled probe ID 1 (ID 1: dtrace:::BEGIN): divide-by-zero in action #2 at DIF offset 8
            ! at 5 / x
        "#]],
    );
}

/// Faults in clauses that record nothing or share their records with others have a source location,
/// too.
#[test]
fn faults_have_a_place_wherever_they_are() {
    let programs = [
        "BEGIN { x = 1; }\nBEGIN / *(int *)0x20 / { @ = count(); }",
        "BEGIN { @a[x, *(int *)0x30] = count(); }",
        "BEGIN { @b[x] = sum(x); @b[x] = sum(*(int *)0x40); }",
        "BEGIN { y = 1; y = *(int *)0x50; }",
        "BEGIN { if (x) { trace(1); } else { trace(2); } trace(*(int *)0x60); }",
        "BEGIN, END { @c = max(*(int *)0x70); }",
        "BEGIN { this->s = speculation(); speculate(this->s); trace(*(int *)0x80); }",
    ];
    let text = run(&[("quiet", None)], &programs, &[]);
    let places: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("! at"))
        .collect();
    expect![[r#"
        ! at line 2: *(int *)0x20
        ! at *(int *)0x30
        ! at *(int *)0x40
        ! at *(int *)0x50
        ! at *(int *)0x60
        ! at *(int *)0x70
        ! at *(int *)0x80
        ! at *(int *)0x70"#]]
    .assert_eq(&places.join("\n"));
}

#[test]
fn programs_of_one_command_share_their_variables() {
    let programs = [
        "BEGIN { x = 5; @a = count(); }",
        "END { printf(\"%d\\n\", x); printa(@a); }",
    ];
    expect![[r#"
        |5$
        |$
        |                1$
    "#]]
    .assert_eq(&run(&[("quiet", None)], &programs, &[]));
}

#[test]
fn flow() {
    let text = run(
        &[("flowindent", None)],
        &["syscall::read:, fbt::: { trace(pid); }"],
        &[
            (0, READ, &[]),
            (0, "fbt::vfs_read:entry", &[]),
            (0, "fbt::vfs_read:return", &[]),
            (0, READ_RETURN, &[]),
        ],
    );
    expect![[r#"
        |CPU FUNCTION                                 $
        |  0  => read                                         1234$
        |  0    -> vfs_read                                   1234$
        |  0    <- vfs_read                                   1234$
        |  0  <= read                                         1234$
    "#]]
    .assert_eq(&text);
}

#[test]
fn loops_over_conditions() {
    check(
        r#"
        BEGIN { i = 0; }
        syscall::read:entry /i < 2/ { i++; this->twice = i * 2; printf("%d %d\n", i, this->twice); }
        syscall::read:entry /i == 2/ { @done = count(); }
        "#,
        &[(0, READ, &[]), (0, READ, &[]), (0, READ, &[])],
        expect![[r#"
            |1 2$
            |2 4$
            |                2$
        "#]],
    );
}

#[test]
fn structures_of_the_programs_own() {
    check(
        r#"
        struct pair { int first; char tag[4]; unsigned low : 3; unsigned high : 5; };
        BEGIN {
            p = (struct pair *)alloca(sizeof (struct pair));
            p->first = -7;
            p->tag[0] = 'o'; p->tag[1] = 'k'; p->tag[2] = 0;
            p->low = 5; p->high = 9;
            printf("%d %s %d %d %d\n", p->first, stringof(p->tag), p->low, p->high, sizeof (struct pair));
        }
        "#,
        &[],
        expect![[r#"
            |-7 ok 5 9 12$
        "#]],
    );
}

#[test]
fn inlines_and_enumerations() {
    check(
        r#"
        enum color { RED, GREEN = 5, BLUE };
        inline int LIMIT = GREEN + 1;
        typedef unsigned short word_t;
        BEGIN { x = (word_t)70000; printf("%d %d %d\n", BLUE == LIMIT, x, sizeof (word_t)); }
        "#,
        &[],
        expect![[r#"
            |1 4464 2$
        "#]],
    );
}

#[test]
fn destructive_actions_ask_for_permission() {
    let program = ["BEGIN { system(\"true\"); }"];
    let text = run(&[], &program, &[]);
    assert_eq!(text, "Destructive actions not allowed");
}

#[test]
fn output_goes_to_a_file_and_back() {
    let path = std::env::temp_dir().join(format!("dtrace-text-{}", std::process::id()));
    let program = format!(
        "BEGIN {{ printf(\"a\"); freopen(\"{}\"); printf(\"b\"); freopen(\"\"); printf(\"c\"); }}",
        path.display()
    );
    let options = [("quiet", None), ("destructive", None)];
    let text = run(&options, &[&program], &[]);
    let file = std::fs::read_to_string(&path).expect("the file");
    std::fs::remove_file(&path).expect("the file");
    assert_eq!((text.as_str(), file.as_str()), ("|ac", "b"));
}

#[test]
fn output_is_moved_by_clauses_that_do_nothing_else() {
    let path = std::env::temp_dir().join(format!("dtrace-moved-{}", std::process::id()));
    let file = |number: &str| format!("{}.{number}", path.display());
    let programs = [
        format!(
            "BEGIN {{ i = 0; }} tick-1s {{ freopen(\"{}\", i); printf(\"%d\\n\", i) }}",
            file("%d")
        ),
        "tick-1s /++i == 2/ { freopen(\"\"); }".to_owned(),
        "tick-1s /i == 2/ { printf(\"%d\\n\", i); exit(0); }".to_owned(),
    ];
    let programs: Vec<&str> = programs.iter().map(String::as_str).collect();
    let options = [("quiet", None), ("destructive", None)];
    let tick = (0, "profile:::tick-1s", &[][..]);
    let text = run(&options, &programs, &[tick, tick]);
    assert_eq!(text, "|2$\n");
    for number in ["0", "1"] {
        let file = file(number);
        assert_eq!(
            std::fs::read_to_string(&file).expect("a file"),
            format!("{number}\n")
        );
        std::fs::remove_file(&file).expect("a file");
    }
}

#[test]
fn stacks_and_memory() {
    check(
        r#"fbt::vfs_read:entry { stack(2); tracemem(0x5000, 6); @[stack(1)] = count(); @s[sym(caller)] = count(); }"#,
        &[(0, "fbt::vfs_read:entry", &[])],
        expect![[r#"
            |$
            |              vmlinux`vfs_read+0x10$
            |              vmlinux`ksys_read+0x20$
            |$
            |             0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f  0123456789abcdef$
            |         0: 6b 65 72 6e 65 6c                                kernel$
            |$
            |              vmlinux`vfs_read+0x10$
            |                1$
            |  vmlinux`ksys_read                                                 1$
        "#]],
    );
}

#[test]
fn a_stack_without_a_number_has_as_many_frames_as_the_option_says() {
    let program = r#"
        #pragma D option stackframes=1
        dt_stack_t declared;
        fbt::vfs_read:entry { x = stack(); declared = x; printf("%d", sizeof (x.addrs) / 8); trace(declared); }"#;
    let expected = "|1$\n|              vmlinux`vfs_read+0x10$\n";
    let fires: Firings<'_> = &[(0, "fbt::vfs_read:entry", &[])];
    assert_eq!(run(&[("quiet", None)], &[program], fires), expected);
    let most = program.replace("stackframes=1", r#""maxframes=1""#);
    assert_eq!(run(&[("quiet", None)], &[&most], fires), expected);
    let stated = "dt_stack_t declared; BEGIN { stack(2000); x = stack(2000); declared = x; }";
    let options = [("quiet", None), ("maxframes", Some("5"))];
    assert!(run(&options, &[stated], &[]).starts_with("|$\n|    "));
    for frames in ["0", "1025"] {
        let options = [("quiet", None), ("stackframes", Some(frames))];
        let text = run(&options, &["BEGIN { x = stack(); }"], &[]);
        assert!(
            text.contains("stack( ) size must be from 1 to 1024"),
            "{text}"
        );
    }
}

#[test]
fn no_stack_has_more_frames_than_the_option_allows() {
    let program = r#"fbt::vfs_read:entry {
        stack(); stack(2); x = stack(2); printf("%d %d", stackdepth, sizeof (x.addrs) / 8); @[stack()] = count(); }"#;
    let options = [("quiet", None), ("maxframes", Some("1"))];
    let frame = "|              vmlinux`vfs_read+0x10$\n";
    assert_eq!(
        run(&options, &[program], &[(0, "fbt::vfs_read:entry", &[])]),
        format!("|$\n{frame}|$\n{frame}|1 1$\n{frame}|                1$\n")
    );
}

#[test]
fn frames_that_are_not_there_are_not_read() {
    for text in [
        "i = -1; trace(ustack(2, 7).addrs[i]);",
        "i = 2; trace(stack(2).addrs[i]);",
        "i = 2; x = stack(2); trace((1, x).addrs[i]);",
        "i = 2; trace((x = stack(2)).addrs[i]);",
        "trace(stack(1).addrs[stack(2).depth]);",
    ] {
        let program = format!("fbt::vfs_read:entry {{ {text} }}");
        let shown = run(
            &[("quiet", None)],
            &[&program],
            &[(0, "fbt::vfs_read:entry", &[])],
        );
        assert!(shown.contains("index out of bounds"), "{text}: {shown}");
    }
}

#[test]
fn kept_stacks_and_new_ones_are_equal_keys() {
    let program = r#"fbt::vfs_read:entry { x = stack(2); @[x] = count(); @[stack(2)] = count(); }"#;
    let shown = run(
        &[("quiet", None)],
        &[program],
        &[(0, "fbt::vfs_read:entry", &[])],
    );
    assert!(
        shown.ends_with("|              vmlinux`ksys_read+0x20$\n|                2$\n"),
        "{shown}"
    );
}

#[test]
fn options_are_set_to_what_a_program_computes() {
    let program = r#"BEGIN { setopt("stackindent", lltostr(strlen("two") - 1)); }
        fbt::vfs_read:entry { stack(1); setopt(strjoin("stack", "high"), lltostr(9)); }"#;
    let text = run(
        &[("quiet", None)],
        &[program],
        &[(0, "fbt::vfs_read:entry", &[])],
    );
    assert!(text.contains("\n|  vmlinux`vfs_read+0x10$"), "{text}");
    let constant =
        r#"BEGIN { setopt("stackindent", "0000000002"); } fbt::vfs_read:entry { stack(1); }"#;
    let options = [("quiet", None), ("strsize", Some("4"))];
    let whole = run(&options, &[constant], &[(0, "fbt::vfs_read:entry", &[])]);
    assert!(whole.contains("\n|  vmlinux`vfs_read+0x10$"), "{whole}");
    let refused = "couldn't set option \"stackhigh\" to \"9\": Invalid option name";
    assert!(text.contains(refused), "{text}");
}

#[test]
fn stacks_are_kept_and_have_parts() {
    check(
        r#"
        fbt::vfs_read:entry
        {
            self->at = stack(2); seen[1] = stack(2); last = stack(2); this->all = stack();
            printf("%d of %d", this->all.depth, sizeof (this->all.addrs) / 8);
        }
        syscall::read:entry
        {
            printf("%k", self->at); trace(seen[1]); @[last] = count(); @[self->at] = count();
            printf("%d %d %d %d", last.depth, last.is_user, last.pid, last.strsz);
            func(self->at.addrs[1]); func(stack(2).addrs[0]);
            last.depth = 1; trace(last); last.depth = 1 << 30; trace(last);
        }"#,
        &[
            (0, "fbt::vfs_read:entry", &[]),
            (0, "syscall::read:entry", &[]),
        ],
        expect![[r#"
            |3 of 20$
            |vmlinux`vfs_read+0x10$
            |vmlinux`ksys_read+0x20$
            |$
            |              vmlinux`vfs_read+0x10$
            |              vmlinux`ksys_read+0x20$
            |2 0 0 0  vmlinux`ksys_read                                   vmlinux`vfs_read                                  $
            |              vmlinux`vfs_read+0x10$
            |$
            |              vmlinux`vfs_read+0x10$
            |              vmlinux`ksys_read+0x20$
            |$
            |              vmlinux`vfs_read+0x10$
            |              vmlinux`ksys_read+0x20$
            |                2$
        "#]],
    );
}

#[test]
fn what_is_wrong_is_refused() {
    for (program, expected) in [
        ("BEGIN { trace(nothing); }", "D_IDENT_UNDEF"),
        ("BEGIN { trace(); }", "D_PROTO_LEN"),
        ("nowhere:::nothing { }", "D_PDESC_ZERO"),
        ("BEGIN {", "D_SYNTAX"),
        ("BEGIN { printf(\"%d\", \"x\"); }", "D_PRINTF_ARG_TYPE"),
    ] {
        let text = run(&[], &[program], &[]);
        assert!(text.contains(expected), "{program}: {text}");
    }
}

#[test]
fn what_may_be_text_is_traced_as_that() {
    let run = |text: &str| super::language::run(&[text]);
    let array = |values: &str| run(&format!("char n[4]; BEGIN {{ {values} trace(n); }}"));
    assert_eq!(array("n[0] = 'a'; n[1] = 'b';").trim(), "|ab");
    let dumped = array("n[0] = 'a'; n[2] = 'b';");
    assert!(dumped.contains(": 61 00 62 00"), "{dumped}");
    for (member, place) in [("int8_t x", "x"), ("char x[1]", "x[0]")] {
        let text =
            format!("struct {{ {member}; }} one; BEGIN {{ one.{place} = '4'; trace(one); }}");
        assert_eq!(run(&text).trim(), "|4");
    }
    let dumped = run("struct { int x; } four; BEGIN { four.x = 0x64636261; trace(four); }");
    assert!(dumped.contains(": 61 62 63 64"), "{dumped}");
}
