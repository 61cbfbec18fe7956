// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Speculations in D: committed records are printed once and in order; discarded records are not
//! printed.

use super::session::Session;
use dtrace::compile::{Compiler, Settings};
use dtrace::processes::Nowhere;
use dtrace::source::Source;
use expect_test::{expect, Expect};

fn session(text: &str) -> Result<Session, String> {
    let source = Source::argument(text);
    let program = Compiler::new(&Nowhere)
        .compile(&source, &Settings::default())
        .map_err(|error| error.headline(&source, true))?;
    let mut session = Session::new(&[("quiet", None), ("destructive", None), ("nspec", Some("2"))]);
    session.enable(&program);
    session.go();
    Ok(session)
}

/// Checks the output of a program. An event fires the probe of this name on a CPU, or runs the
/// cleaner (`clean`).
fn check(text: &str, events: &[(u32, &str)], expected: Expect) {
    let session = session(text).unwrap_or_else(|error| panic!("{error}"));
    for (cpu, event) in events {
        match *event {
            "clean" => session.device.clean(),
            name => session.device.fire(*cpu, &format!("syscall::{name}"), &[]),
        }
    }
    expected.assert_eq(&session.finish());
}

const PROGRAM: &str = r#"
    BEGIN { spec = speculation(); n = 0; }
    syscall::read:entry { speculate(spec); printf("read %d on %d\n", n++, cpu); }
    syscall::write:entry { printf("write %d on %d\n", n++, cpu); }
    syscall::read:return { commit(spec); }
    syscall::write:return { discard(spec); }
    END { printf("%d\n", speculation()); }
"#;

const READ: &str = "read:entry";
const WRITE: &str = "write:entry";
const COMMIT: &str = "read:return";
const DISCARD: &str = "write:return";

#[test]
fn what_is_committed_comes_where_it_was_committed() {
    let events = [(0, READ), (0, WRITE), (0, READ), (0, COMMIT), (0, WRITE)];
    let expected = expect![[r#"
        |write 1 on 0$
        |read 0 on 0$
        |read 2 on 0$
        |write 3 on 0$
        |1$
    "#]];
    check(PROGRAM, &events, expected);
}

#[test]
fn what_is_discarded_is_not_seen() {
    let events = [(0, READ), (0, WRITE), (0, DISCARD), (0, COMMIT), (0, READ)];
    let expected = expect![[r#"
        |write 1 on 0$
        |1$
    "#]];
    check(PROGRAM, &events, expected);
}

#[test]
fn records_of_several_cpus_are_committed_by_the_cleaner() {
    let events = [
        (0, READ),
        (1, READ),
        (1, COMMIT),
        (0, READ),
        (0, WRITE),
        (0, "clean"),
    ];
    let expected = expect![[r#"
        |read 1 on 1$
        |write 2 on 0$
        |read 0 on 0$
        |1$
    "#]];
    check(PROGRAM, &events, expected);
    // Without a run of the cleaner, the records are committed when tracing ends.
    let events = [(0, READ), (1, COMMIT), (0, WRITE)];
    let expected = expect![[r#"
        |write 1 on 0$
        |2$
        |read 0 on 0$
    "#]];
    check(PROGRAM, &events, expected);
}

#[test]
fn records_of_several_cpus_are_discarded_by_the_cleaner() {
    let program = r#"
        BEGIN { spec = speculation(); }
        syscall::read:entry { speculate(spec); printf("read on %d\n", cpu); }
        syscall::read:return { commit(spec); }
        syscall::write:return { discard(spec); }
        syscall::write:entry { printf("%d\n", spec = speculation()); }
    "#;
    let events = [
        (0, READ),
        (1, READ),
        (1, DISCARD),
        (0, WRITE),
        (0, WRITE),
        (0, "clean"),
    ];
    let mut all = events.to_vec();
    // The first speculation is free again and empty.
    all.extend([(0, WRITE), (0, READ), (0, COMMIT)]);
    let expected = expect![[r#"
        |2$
        |0$
        |1$
        |read on 0$
    "#]];
    check(program, &all, expected);
}

#[test]
fn a_clause_speculates_in_all_its_branches() {
    let program = r#"
        BEGIN { spec = speculation(); n = 0; }
        syscall::read:entry {
            n++;
            speculate(spec);
            printf("read %d", n);
            if (n % 2 == 0) { printf(" even"); } else { printf(" odd"); }
            if (n > 1) { n = 10; }
            printf(" done\n");
        }
        syscall::read:return { commit(spec); }
        END { printf("%d\n", n); }
    "#;
    let expected = expect![[r#"
        |10$
    "#]];
    check(program, &[(0, READ), (0, READ)], expected);
    let expected = expect![[r#"
        |read 1 odd done$
        |read 2 even done$
        |10$
    "#]];
    check(program, &[(0, READ), (0, READ), (0, COMMIT)], expected);
}

#[test]
fn what_a_branch_speculates_with_ends_with_it() {
    let program = r#"
        BEGIN { spec = speculation(); n = 0; }
        syscall::read:entry {
            printf("read %d:", ++n);
            if (n == 1) { speculate(spec); }
            if (n == 2) {
                speculate(spec);
                printf(" kept");
                if (n > 1) { printf(" within"); } else { printf(" never"); }
                printf(" back\n");
            } else {
                printf(" at once");
            }
            printf(" done\n");
        }
        syscall::read:return { commit(spec); }
    "#;
    let expected = expect![[r#"
        |read 1: at once done$
        |read 2: done$
        |read 3: at once done$
        | kept within back$
    "#]];
    check(
        program,
        &[(0, READ), (0, READ), (0, READ), (0, COMMIT)],
        expected,
    );
}

#[test]
fn clauses_that_only_speculate_record_their_probe() {
    let program = r#"
        BEGIN { spec = speculation(); speculate(spec); printf("x"); }
        BEGIN { discard(spec); spec = speculation(); }
        BEGIN { speculate(spec); }
        BEGIN { commit(spec); }
        BEGIN { exit(0); }
    "#;
    let source = Source::argument(program);
    let compiled = Compiler::new(&Nowhere).compile(&source, &Settings::default());
    let mut session = Session::new(&[("nspec", Some("2"))]);
    session.enable(&compiled.unwrap_or_else(|error| panic!("{error}")));
    session.go();
    let expected = expect![[r#"
        |CPU     ID                    FUNCTION:NAME$
        |  0      1                           :BEGIN $
        |  0      1                           :BEGIN $
        = 0
    "#]];
    expected.assert_eq(&session.finish());
}

#[test]
fn ids_that_are_none() {
    let program = r#"
        BEGIN { speculate(0); printf("not seen\n"); }
        BEGIN { speculate(3); printf("not seen\n"); }
        BEGIN { speculate(1); printf("not seen\n"); }
        BEGIN { speculate(-1); printf("not seen\n"); }
        BEGIN { commit(0); discard(0); commit(1); discard(1); n = 1; }
        BEGIN { commit(3); n = 2; }
        BEGIN { discard(-1); n = 3; }
        END { printf("%d: %d %d %d\n", n, speculation(), speculation(), speculation()); }
    "#;
    let expected = expect![[r#"
        |1: 1 2 0$
    "#]];
    check(program, &[], expected);
}

#[test]
fn order_is_checked() {
    for (body, expected) in [
        (
            "speculate(1); speculate(2);",
            "[D_SPEC_SPEC] in action list: speculate( ) may not follow speculate( )",
        ),
        (
            "commit(1); speculate(1);",
            "[D_SPEC_COMM] in action list: speculate( ) may not follow commit( )",
        ),
        (
            "trace(1); speculate(1);",
            "[D_SPEC_DREC] in action list: speculate( ) may not follow data-recording action(s)",
        ),
        (
            "trace(1); commit(1);",
            "[D_COMM_DREC] in action list: commit( ) may not follow data-recording action(s)",
        ),
        (
            "commit(1); trace(1);",
            "[D_DREC_COMM] in action list: data-recording actions may not follow commit( )",
        ),
        (
            "commit(1); exit(0);",
            "[D_DREC_COMM] in action list: data-recording actions may not follow commit( )",
        ),
        (
            "commit(1); @ = count();",
            "[D_AGG_COMM] in action list: aggregating actions may not follow commit( )",
        ),
        (
            "speculate(1); @ = count();",
            "[D_AGG_SPEC] in action list: aggregating actions may not follow speculate( )",
        ),
        (
            "speculate(1); exit(0);",
            "[D_EXIT_SPEC] in action list: exit( ) may not follow speculate( )",
        ),
        (
            "speculate(1); stop();",
            "[D_ACT_SPEC] in action list: destructive actions may not follow speculate( )",
        ),
        (
            "speculate(1); system(\"x\");",
            "[D_ACT_SPEC] in action list: destructive actions may not follow speculate( )",
        ),
        (
            "speculate(1); x = (copyoutstr(\"a\", 1, 2), 1);",
            "[D_ACT_SPEC] in action list: destructive actions may not follow speculate( )",
        ),
        (
            "if (1) { speculate(1); trace(1); speculate(2); }",
            "[D_SPEC_SPEC] in action list: speculate( ) may not follow speculate( )",
        ),
        (
            "speculate(1); if (1) { speculate(2); }",
            "[D_SPEC_SPEC] in action list: speculate( ) may not follow speculate( )",
        ),
        (
            "speculate();",
            "[D_PROTO_LEN] in action list: speculate( ) prototype mismatch: 0 args passed, 1 expected",
        ),
    ] {
        let refused = session(&format!("BEGIN {{ {body} }}")).err();
        assert_eq!(refused.as_deref(), Some(expected), "{body}");
    }
    for body in [
        "commit(1); commit(2); discard(1);",
        "discard(1); trace(1);",
        "trace(1); discard(1); exit(0);",
        "commit(1); stop();",
        "speculate(1); trace(1); discard(1); x = 1;",
        "x = 1; copyoutstr(\"a\", 1, 2); speculate(1);",
    ] {
        assert_eq!(
            session(&format!("BEGIN {{ {body} }}")).err(),
            None,
            "{body}"
        );
    }
}
