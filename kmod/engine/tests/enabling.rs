// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Enablings that are refused halfway, or abandoned, leave a consumer unchanged (INV-2).

mod common;

use common::asm::{asm, asm_with, int, string, var};
use common::{action, bare, clause, config, cpu, u32_at, u64_at, Steps, PROBE};
use dtrace_engine::dof::ActionSpec;
use dtrace_engine::mem::alloc::{fail_after, live};
use dtrace_engine::mem::Vec as EVec;
use dtrace_engine::{Clause, Config, Consumer, Errno, Pending, Privileges, Reason, Which};
use dtrace_uapi::action::Action;
use dtrace_uapi::option::{Opt, UNSET};
use dtrace_uapi::types::DifType;

fn printf(format: &[u8]) -> ActionSpec {
    ActionSpec {
        format: Some(EVec::copy_of(format).unwrap()),
        ..action(Action::Printf, asm("ldgs pid, %r1\n ret %r1"))
    }
}

/// Makes an action that reads global 0x500, declared with type `ty`.
fn global(ty: DifType) -> ActionSpec {
    let text = "ldgs 0x500, %r1\n ret %r1";
    action(Action::Difexpr, asm_with(text, ty, &[var(0x500, 0, ty)]))
}

/// Makes a clause that adds a format, a string, a variable and an aggregation to a consumer.
fn adding(format: &[u8], ty: DifType) -> Clause {
    let name = asm_with("sets \"a string\", %r1\n ret %r1", string(), &[]);
    clause(
        Some(asm("setx 1, %r1\n ret %r1")),
        vec![
            printf(format),
            global(ty),
            action(Action::Difexpr, name),
            bare(Action::Count, 1, 0),
        ],
    )
}

/// Makes a consumer with a clause that is bound to a probe.
fn consumer() -> Consumer {
    let c = Consumer::new(config()).unwrap();
    let id = c
        .add_clause(&clause(
            None,
            vec![printf(b"%d\n"), bare(Action::Count, 0, 0)],
        ))
        .unwrap();
    c.bind(id, PROBE).unwrap();
    c
}

/// Returns everything that is visible of a consumer that has not started, and its memory.
fn picture(c: &Consumer) -> impl PartialEq + std::fmt::Debug {
    let formats: Vec<_> = (1..)
        .map_while(|n| c.format(n, <[u8]>::to_vec).ok())
        .collect();
    let aggregations: Vec<_> = (1..)
        .map_while(|id| c.aggdesc(id, |desc, recs| (*desc, recs.to_vec())).ok())
        .collect();
    let probes: Vec<_> = (1..)
        .map_while(|epid| c.eprobe(epid, |desc, recs| (*desc, recs.to_vec())).ok())
        .collect();
    let options = [Opt::Bufsize, Opt::Strsize].map(|opt| c.option(opt));
    let memory = live();
    (formats, aggregations, probes, options, memory)
}

const OPTIONS: &[(Opt, u64)] = &[(Opt::Bufsize, 8192)];

/// A caller that is killed in the middle of an image stops at once, and nothing of the image is
/// taken over.
#[test]
fn who_is_killed_is_not_answered() {
    let killed = Config {
        is_killed: || true,
        ..config()
    };
    let c = Consumer::new(killed).unwrap();
    // A clause without programs takes no time, so it is not interrupted.
    assert!(c.prepare(&[], &[clause(None, vec![])]).is_ok());
    let value = action(Action::Difexpr, asm("ldgs pid, %r1\n ret %r1"));
    // A format is compared with all others, which may take time.
    let bare = ActionSpec {
        difo: None,
        ..printf(b"\n")
    };
    for action in [value, bare] {
        let reason = c.prepare(&[], &[clause(None, vec![action])]).map(drop);
        assert_eq!(reason.unwrap_err().errno, Errno::EINTR);
    }
    assert!(!c.has_clauses());
}

#[test]
fn a_refusal_of_the_last_clause_leaves_nothing_of_the_first() {
    let c = consumer();
    let clauses = [adding(b"%x\n", int(8)), adding(b"%o\n", string())];
    let before = picture(&c);
    let reason = c.prepare(OPTIONS, &clauses).map(drop).unwrap_err();
    assert_eq!(reason.errno, Errno::EINVAL);
    assert!(reason.to_string().contains("declared in another way"));
    assert_eq!(picture(&c), before);
    // A bad option after a good one is refused as well.
    let options = [(Opt::Bufsize, 8192), (Opt::Bufpolicy, 77)];
    let reason = c.prepare(&options, &clauses[..1]).map(drop).unwrap_err();
    assert_eq!(reason.errno, Errno::EINVAL);
    assert_eq!(picture(&c), before);
    assert_eq!(c.option(Opt::Bufsize), UNSET);

    // The variable that the refused image declared as a number may be a string, and the ids
    // continue where they were.
    let pending = c.prepare(OPTIONS, &clauses[1..]).unwrap();
    let id = pending.clause(0).unwrap();
    assert_eq!(pending.clause(1), None);
    pending.commit();
    let ecb = c.bind(id, PROBE + 1).unwrap();
    assert_eq!((ecb.epid, c.option(Opt::Bufsize)), (2, 8192));
    c.format(2, |text| assert_eq!(text, b"%o\n")).unwrap();
    c.aggdesc(2, |desc, _| assert_eq!(desc.epid, 2)).unwrap();
    c.go().unwrap();
    c.activate();
    let m = common::machine::TestMachine::default();
    assert_eq!(c.fire(&cpu(0), ecb, &m), None);
    c.switch(&cpu(0), Which::Principal, 1).unwrap();
    c.snapshot(0, Which::Principal, |s| {
        assert_eq!((u32_at(s.data, 0), u64_at(s.data, 16)), (2, 1234))
    })
    .unwrap();
}

#[test]
fn want_of_memory_at_any_allocation_leaves_nothing() {
    let c = consumer();
    let clauses = [adding(b"%x\n", int(8)), adding(b"%o\n", int(8))];
    let before = picture(&c);
    let mut n = 0;
    loop {
        fail_after(Some(n));
        let result = c.prepare(OPTIONS, &clauses);
        fail_after(None);
        match result {
            // A pending image that is abandoned leaves nothing either.
            Ok(pending) => break drop(pending),
            Err(reason) => assert_eq!(reason.errno, Errno::ENOMEM),
        }
        assert_eq!(picture(&c), before, "after {n} allocations");
        n += 1;
    }
    assert!(n > 30, "only {n} allocations");
    assert_eq!(picture(&c), before);
    // Committing a prepared image allocates nothing.
    let pending = c.prepare(OPTIONS, &clauses).unwrap();
    fail_after(Some(0));
    pending.commit();
    fail_after(None);
    c.format(3, |text| assert_eq!(text, b"%o\n")).unwrap();
    c.aggdesc(3, |_, _| ()).unwrap();
}

#[test]
fn epids_that_are_not_kept_are_given_out_again() -> Result<(), Reason> {
    let c = Consumer::new(config())?;
    let id = c.add_clause(&clause(None, vec![]))?;
    let big = c.add_clause(&clause(None, vec![global(string())]))?;
    // Room that was made for EPIDs stays allocated.
    let room = c.bind(id, PROBE)?;
    let before = picture(&c);
    let mut binding = c.binding();
    for n in 1..200 {
        assert_eq!(binding.bind(big, PROBE + n)?.epid, room.epid + n);
    }
    drop(binding);
    assert_eq!(picture(&c), before);
    assert_eq!(c.eprobe(2, |_, _| ()).unwrap_err().errno, Errno::EINVAL);
    let ecb = c.bind(id, PROBE + 7)?;
    assert_eq!(ecb.epid, 2);
    c.eprobe(2, |desc, _| {
        assert_eq!((desc.probeid, desc.size), (PROBE + 7, 12))
    })
}

#[test]
fn want_of_memory_for_epids_is_told() {
    let c = consumer();
    let pending = c.prepare(&[], &[clause(None, vec![])]).unwrap();
    let id = pending.clause(0).unwrap();
    pending.commit();
    let mut binding = c.binding();
    fail_after(Some(0));
    let failed = (0..10_000).find_map(|n| binding.bind(id, n).err());
    fail_after(None);
    assert_eq!(failed.map(|reason| reason.errno), Some(Errno::ENOMEM));
    drop(binding);
    assert_eq!(c.bind(id, PROBE).unwrap().epid, 2);
}

/// The framework binds probes of a module that is being loaded, whatever the consumer is doing.
#[test]
fn probes_are_bound_next_to_other_calls() {
    let c = consumer();
    let id = c.add_clause(&clause(None, vec![])).unwrap();
    let pending: Pending<'_> = c.prepare(OPTIONS, &[clause(None, vec![])]).unwrap();
    assert_eq!(c.go().unwrap_err().errno, Errno::EBUSY);
    assert_eq!(c.bind(id, PROBE).unwrap().epid, 2);
    pending.commit();
    assert_eq!(c.option(Opt::Bufsize), 8192);
}

#[test]
fn rights_cover_those_that_allow_no_more() {
    let none = Privileges {
        kernel: false,
        kernel_memory: false,
        all_users: false,
        user_memory: false,
        destructive: false,
    };
    let one = [
        Privileges {
            kernel: true,
            ..none
        },
        Privileges {
            kernel_memory: true,
            ..none
        },
        Privileges {
            all_users: true,
            ..none
        },
        Privileges {
            user_memory: true,
            ..none
        },
        Privileges {
            destructive: true,
            ..none
        },
    ];
    for (n, some) in one.into_iter().enumerate() {
        assert!(Privileges::ALL.cover(some) && some.cover(some) && some.cover(none));
        assert!(!none.cover(some) && !some.cover(Privileges::ALL));
        assert!(!some.cover(one[(n + 1) % 5]));
    }
}
