// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Frames of interpreted code in stacks that are values.

use super::session::Session;
use dtrace::compile::{Compiler, Settings};
use dtrace::processes::Nowhere;
use dtrace::program::Clause;
use dtrace::source::Source;
use expect_test::expect;

/// Number of the walker.
const NUMBER: u64 = 0xab;

/// A walker that finds so many frames in each evaluator. The line of the first is the evaluator's
/// program counter.
fn walker(frames: u32) -> Clause {
    let text = format!(
        "this uint64_t n; dtrace:walker::ab {{
            this->n = 0;
            while (this->n < {frames}) {{
                __frame(0, 0, 0, 0, __walk[4] + this->n, 0, 0, 0);
                this->n++;
            }}
        }}"
    );
    let settings = Settings {
        walker: true,
        ..Settings::default()
    };
    let compiled = Compiler::new(&Nowhere).compile(&Source::argument(&*text), &settings);
    let compiled = compiled.unwrap_or_else(|error| panic!("{error}"));
    let mut clause = compiled.clauses.into_iter().next().expect("a walker");
    clause.probes.func = std::mem::take(&mut clause.probes.name);
    clause
}

/// The output of a program in a process with a user stack of two evaluators. Each executes so
/// many frames. `syscall::read:entry` fires, then `syscall::read:return`.
fn run(frames: u32, text: &str) -> String {
    let settings = Settings {
        interpreted: true,
        ..Settings::default()
    };
    let compiled = Compiler::new(&Nowhere).compile(&Source::argument(text), &settings);
    let mut program = compiled.unwrap_or_else(|error| panic!("{error}"));
    program.walkers = vec![walker(frames)];
    let mut session = Session::new(&[("quiet", None)]);
    session.device.platform.walker.set(Some(NUMBER));
    session.enable(&program);
    session.go();
    session.device.fire(1, "syscall::read:entry", &[]);
    session.device.fire(1, "syscall::read:return", &[]);
    session.finish()
}

#[test]
fn values_have_the_frames_that_were_found_when_they_were_made() {
    let text = r#"
        syscall::read:entry { self->at = ustack(3); kernel = stack(3); }
        syscall::read:return {
            trace(self->at);
            printf("%k%d %d", self->at, self->at.depth, self->at.addrs[2]);
            printf("%k", kernel);
            @[self->at] = count();
            @[ustack(3)] = count();
        }"#;
    expect![[r#"
        |$
        |              0x1100$
        |                [ line 4352 ]$
        |                [ line 4353 ]$
        |              0x2200$
        |                [ line 8704 ]$
        |                [ line 8705 ]$
        |$
        |0x1100$
        |  [ line 4352 ]$
        |  [ line 4353 ]$
        |0x2200$
        |  [ line 8704 ]$
        |  [ line 8705 ]$
        |2 0$
        |vmlinux`vfs_read+0x10$
        |vmlinux`ksys_read+0x20$
        |vmlinux`do_syscall_64$
        |$
        |              0x1100$
        |                [ line 4352 ]$
        |                [ line 4353 ]$
        |              0x2200$
        |                [ line 8704 ]$
        |                [ line 8705 ]$
        |                2$
    "#]]
    .assert_eq(&run(2, text));
}

#[test]
fn what_has_no_room_is_left_out() {
    for (stack, lines) in [
        ("trace(ustack(1))", 16),
        ("trace(ustack(18))", 18),
        ("trace(ustack(1024))", 40),
        // The action has room as it says, and where its addresses leave some.
        ("ustack(3, 8)", 2),
    ] {
        let text = run(20, &format!("syscall::read:entry {{ {stack}; }}"));
        assert_eq!(text.matches("[ line").count(), lines, "{text}");
    }
}
