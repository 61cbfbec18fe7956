// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! A consumer that may see events everywhere but may read no memory.

mod common;

use common::asm::asm;
use common::{action, clause, config, Bench};
use dtrace_engine::{Config, Consumer, Privileges};
use dtrace_uapi::action::Action;
use dtrace_uapi::fault::Fault;

const USER: u64 = 0x40_0000;

fn fire(text: &str) -> Option<Fault> {
    let c = Consumer::new(Config {
        privileges: Privileges {
            kernel_memory: false,
            user_memory: false,
            ..Privileges::ALL
        },
        ..config()
    });
    let clauses = vec![clause(None, vec![action(Action::Difexpr, asm(text))])];
    let mut b = Bench::with(c.unwrap(), clauses);
    b.m.user.get_mut().insert(USER, b"user\0\0\0\0".to_vec());
    b.fire()[0].map(|report| report.fault)
}

#[test]
fn what_happens_is_seen() {
    for name in ["curthread", "caller", "stackdepth", "ucaller", "pid"] {
        assert_eq!(fire(&format!("ldgs {name}, %r1\n ret %r1")), None, "{name}");
    }
}

#[test]
fn memory_is_not_read() {
    let call = |subr: &str, rest: &str| {
        let pushed = "flushts\n pushtv ctf, %r0, %r1\n";
        format!("setx {USER}, %r1\n {pushed} {rest} call {subr}, %r1\n ret %r1")
    };
    let size = "setx 4, %r2\n pushtv ctf, %r0, %r2\n";
    for (text, fault) in [
        (
            format!("setx {USER}, %r1\n ldx [%r1], %r1\n ret %r1"),
            Fault::Kpriv,
        ),
        (call("strlen", ""), Fault::Kpriv),
        (call("mutex_owned", ""), Fault::Kpriv),
        (
            format!("setx {USER}, %r1\n uldx [%r1], %r1\n ret %r1"),
            Fault::Upriv,
        ),
        (call("copyin", size), Fault::Upriv),
        (call("copyinstr", ""), Fault::Upriv),
    ] {
        assert_eq!(fire(&text), Some(fault), "{text}");
    }
}
