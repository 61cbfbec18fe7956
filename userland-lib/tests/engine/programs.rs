// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The output of programs that are built by hand.

use dtrace::device::Device;
use dtrace::statement::Statement;
use dtrace_uapi::{action::Action, option::Opt, var::Var};
use expect_test::expect;

use super::{
    build::{int, load, string, text_var, var, Builder},
    session::Session,
};

const QUIET: &[(&str, Option<&str>)] = &[("quiet", None)];

#[test]
fn values_stand_behind_their_probe() {
    let mut program = Builder::default();
    program
        .clause("dtrace:::BEGIN")
        .trace(&int(4, -1))
        .trace(&string("hello"))
        .clause("syscall::read:entry")
        .trace(&var(8, Var::Arg0))
        .trace(&text_var(Var::Execname))
        .clause("dtrace:::END")
        .exit(3);
    let mut session = Session::new(&[]);
    session.enable(&program.finish());
    session.go();
    session.device.fire(1, "syscall::read:entry", &[42]);
    session.device.fire(1, "syscall::write:entry", &[43]);
    expect![[r#"
        |CPU     ID                    FUNCTION:NAME$
        |  1      4                       read:entry                    42  bash                             $
        |  0      1                           :BEGIN          -1  hello                            $
        |  0      2                             :END $
        = 3
    "#]].assert_eq(&session.finish());
}

#[test]
fn records_of_all_cpus_are_in_the_order_of_their_times() {
    let mut program = Builder::default();
    program
        .clause("dtrace:::")
        .printf("%s\n", &[&text_var(Var::Probename)])
        .clause("syscall::read:entry")
        .printf("%d on %d\n", &[&var(8, Var::Arg0), &var(4, Var::Cpu)]);
    let mut session = Session::new(&[("quiet", None), ("temporal", None)]);
    session.enable(&program.finish());
    session.go();
    for (value, cpu) in [(1, 1), (2, 0), (3, 1), (4, 0)] {
        session.device.fire(cpu, "syscall::read:entry", &[value]);
    }
    expect![[r#"
        |BEGIN$
        |1 on 1$
        |2 on 0$
        |3 on 1$
        |4 on 0$
        |END$
    "#]]
    .assert_eq(&session.finish());
}

#[test]
fn what_a_full_buffer_loses_is_counted() {
    let mut program = Builder::default();
    program
        .clause("syscall::read:entry")
        .trace(&string("a long record"));
    let mut session = Session::new(&[("quiet", None), ("bufsize", Some("1k"))]);
    session.enable(&program.finish());
    session.go();
    for _ in 0..5 {
        session.device.fire(1, "syscall::read:entry", &[]);
    }
    expect![[r#"
        |a long recorda long recorda long record! 2 drops on CPU 1
    "#]]
    .assert_eq(&session.finish());
}

#[test]
fn the_kernel_tells_its_options_and_leaves_out_what_nobody_set() {
    let mut program = Builder::default();
    program.clause("dtrace:::BEGIN").trace(&int(4, 1));
    let mut session = Session::new(&[("bufsize", Some("1k")), ("quiet", None)]);
    session.enable(&program.finish());
    session.go();
    let told = session.device.options().expect("options");
    assert!(told.contains(&(Opt::Bufsize, 1 << 10)));
    assert!(told.contains(&(Opt::Aggsize, 4 << 20)));
    assert!(!told
        .iter()
        .any(|(opt, _)| matches!(opt, Opt::Quiet | Opt::Zone)));
}

#[test]
fn rings_keep_the_latest_and_fills_the_first() {
    let run = |policy| {
        let mut program = Builder::default();
        program
            .clause("syscall::read:entry")
            .printf("%d\n", &[&var(8, Var::Arg0)]);
        let mut session = Session::new(&[
            ("quiet", None),
            ("bufsize", Some("1k")),
            ("bufpolicy", Some(policy)),
        ]);
        session.enable(&program.finish());
        session.go();
        for value in 0..1000 {
            session.device.fire(1, "syscall::read:entry", &[value]);
        }
        let text = session.finish();
        let numbers: Vec<u64> = text
            .lines()
            .filter_map(|line| line.strip_prefix('|')?.strip_suffix('$')?.parse().ok())
            .collect();
        assert!(
            numbers.windows(2).all(|pair| pair[1] == pair[0] + 1),
            "{text}"
        );
        assert!(numbers.len() > 20, "{text}");
        (numbers[0], numbers[numbers.len() - 1])
    };
    assert_eq!(run("ring").1, 999);
    assert_eq!(run("fill").0, 0);
}

#[test]
fn keys_of_all_sizes_keep_their_places() {
    let mut program = Builder::default();
    let keys = [
        int(1, 7),
        string("a key"),
        int(2, -2),
        int(8, -8),
        int(4, -4),
    ];
    let keys: Vec<_> = keys.iter().collect();
    program
        .clause("syscall::read:entry")
        .aggregate(1, &keys, Action::Max, 0, Some(&var(8, Var::Arg0)))
        .clause("dtrace:::END")
        .printa(Some("%d|%s|%d|%d|%d: %@d\n"), &[1])
        .printa(None, &[1]);
    let mut session = Session::new(QUIET);
    session.enable(&program.finish());
    session.go();
    session.device.fire(0, "syscall::read:entry", &[5]);
    session.device.fire(1, "syscall::read:entry", &[6]);
    expect![[r#"
        |7|a key|-2|-8|-4: 6$
        |$
        |   7  a key                                              65534               -8       -4                6$
    "#]].assert_eq(&session.finish());
}

#[test]
fn nothing_is_recorded_after_exit_but_the_end() {
    let mut program = Builder::default();
    program
        .clause("syscall::read:entry")
        .trace(&var(8, Var::Arg0))
        .exit(4)
        .clause("dtrace:::END")
        .trace(&string("end"));
    let mut session = Session::new(&[]);
    session.enable(&program.finish());
    session.go();
    session.device.fire(0, "syscall::read:entry", &[1]);
    session.device.fire(0, "syscall::read:entry", &[2]);
    session.device.fire(1, "syscall::read:entry", &[3]);
    expect![[r#"
        |CPU     ID                    FUNCTION:NAME$
        |  0      4                       read:entry                     1$
        |  0      2                             :END   end                              $
        = 4
    "#]]
    .assert_eq(&session.finish());
}

#[test]
fn conditions_hold_clauses_back() {
    let mut program = Builder::default();
    program
        .clause("syscall:::entry")
        .when(&var(8, Var::Arg0))
        .printf(
            "%s:%s %d\n",
            &[
                &text_var(Var::Probefunc),
                &text_var(Var::Probename),
                &var(8, Var::Arg0),
            ],
        );
    let mut session = Session::new(QUIET);
    session.enable(&program.finish());
    session.go();
    session.device.fire(0, "syscall::read:entry", &[1]);
    session.device.fire(0, "syscall::read:entry", &[0]);
    session.device.fire(0, "syscall::write:entry", &[2]);
    session.work();
    session.device.fire(0, "syscall::read:entry", &[3]);
    expect![[r#"
        |read:entry 1$
        |write:entry 2$
        |read:entry 3$
    "#]]
    .assert_eq(&session.finish());
}

#[test]
fn aggregations_of_two_cpus_add_up() {
    let mut program = Builder::default();
    let name = text_var(Var::Probefunc);
    program
        .clause("syscall:::entry")
        .aggregate(1, &[&name], Action::Count, 0, None)
        .aggregate(2, &[&name], Action::Avg, 0, Some(&var(8, Var::Arg0)))
        .aggregate(3, &[], Action::Quantize, 0, Some(&var(8, Var::Arg0)))
        .clause("dtrace:::END")
        .printa(Some("%-6s %@3d %@5d\n"), &[1, 2])
        .printa(None, &[2]);
    let mut session = Session::new(QUIET);
    session.enable(&program.finish());
    session.go();
    for (cpu, size) in [(0, 10), (1, 20), (0, 30)] {
        session.device.fire(cpu, "syscall::read:entry", &[size]);
    }
    session.device.fire(1, "syscall::write:entry", &[100]);
    session.work();
    session.device.fire(1, "syscall::read:entry", &[1]);
    expect![[r#"
        |write    1   100$
        |read     4    15$
        |$
        |  read                                                             15$
        |  write                                                           100$
        |$
        |           value  ------------- Distribution ------------- count    $
        |               0 |                                         0        $
        |               1 |@@@@@@@@                                 1        $
        |               2 |                                         0        $
        |               4 |                                         0        $
        |               8 |@@@@@@@@                                 1        $
        |              16 |@@@@@@@@@@@@@@@@                         2        $
        |              32 |                                         0        $
        |              64 |@@@@@@@@                                 1        $
        |             128 |                                         0        $
        |$
    "#]]
    .assert_eq(&session.finish());
}

#[test]
fn stacks_are_named() {
    let mut program = Builder::default();
    program.clause("fbt::vfs_read:entry").stack(2).stack(5);
    let mut session = Session::new(&[]);
    session.enable(&program.finish());
    session.go();
    session.device.fire(0, "fbt::vfs_read:entry", &[]);
    expect![[r#"
        |CPU     ID                    FUNCTION:NAME$
        |  0      8                   vfs_read:entry $
        |              vmlinux`vfs_read+0x10$
        |              vmlinux`ksys_read+0x20$
        |$
        |              vmlinux`vfs_read+0x10$
        |              vmlinux`ksys_read+0x20$
        |              vmlinux`do_syscall_64$
        |$
    "#]]
    .assert_eq(&session.finish());
}

#[test]
fn calls_are_indented() {
    let mut program = Builder::default();
    program.clause("syscall::read:").clause("fbt:::");
    let mut session = Session::new(&[("flowindent", None)]);
    session.enable(&program.finish());
    session.go();
    for probe in [
        "syscall::read:entry",
        "fbt::vfs_read:entry",
        "fbt::vfs_read:return",
        "syscall::read:return",
    ] {
        session.device.fire(0, probe, &[]);
    }
    expect![[r#"
        |CPU FUNCTION                                 $
        |  0  => read                                  $
        |  0    -> vfs_read                            $
        |  0    <- vfs_read                            $
        |  0  <= read                                  $
    "#]]
    .assert_eq(&session.finish());
}

#[test]
fn faults_are_told_and_fire_their_probe() {
    let mut program = Builder::default();
    program
        .clause("dtrace:::BEGIN")
        .trace(&int(8, 1))
        .trace(&load(0x1000))
        .clause("dtrace:::ERROR")
        .printf(
            "fault %d at %x\n",
            &[&var(8, Var::Arg4), &var(8, Var::Arg5)],
        );
    program.clause("dtrace:::ERROR");
    let arguments = [Var::Arg1, Var::Arg2, Var::Arg3, Var::Arg4, Var::Arg5];
    for argument in arguments {
        program.act(Action::Difexpr, Statement::Error, Some(&var(8, argument)));
    }
    let mut session = Session::new(QUIET);
    session.enable(&program.finish());
    session.go();
    expect![[r#"
        |fault 1 at 1000$
        ! error on enabled probe ID 1 (ID 1: dtrace:::BEGIN): invalid address (0x1000) in action #2 at DIF offset 4
    "#]].assert_eq(&session.finish());
}
