// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! The work of a firing is counted whichever path a clause takes, and charged to the consumer that
//! owns the clause.

mod common;

use common::asm::{asm, asm_with, int, string, var};
use common::{action, bare, clause, config, cpu, Bench, Steps, ERROR, PROBE};
use dtrace_engine::budget::{ANOTHER, FIRING, LIGHT, LOOKUP};
use dtrace_engine::dof::ActionSpec;
use dtrace_engine::{Activity, Clause, Config, Consumer, FaultReport, Which};
use dtrace_uapi::action::Action;
use dtrace_uapi::fault::Fault;
use dtrace_uapi::option::{Opt, BUFPOLICY_RING};
use dtrace_uapi::types::{DifVar, DIFV_KIND_ARRAY};

/// Makes a consumer whose buffer never fills, with one ECB of `clause`.
fn bench(clause: Clause) -> Bench {
    bench_of(vec![clause])
}

fn bench_of(clauses: Vec<Clause>) -> Bench {
    let consumer = Consumer::new(config()).unwrap();
    consumer.set_option(Opt::Bufpolicy, BUFPOLICY_RING).unwrap();
    consumer.set_option(Opt::Bufsize, 1 << 20).unwrap();
    Bench::with(consumer, clauses)
}

fn values(n: usize, text: &str) -> Vec<ActionSpec> {
    let value = || action(Action::Difexpr, asm(text));
    std::iter::repeat_with(value).take(n).collect()
}

/// Makes `n` assignments to a thread-local.
fn assignments(n: usize) -> Vec<ActionSpec> {
    let text = "ldgs timestamp, %r1\n stts %r1, 0x501\n ret %r0";
    let assign = || {
        action(
            Action::Difexpr,
            asm_with(text, int(0), &[var(0x501, 1, int(8))]),
        )
    };
    std::iter::repeat_with(assign).take(n).collect()
}

/// Fires once more at the same time, as if the clause were at the probe many times.
fn again(b: &Bench) -> Option<FaultReport> {
    b.consumer.fire(&cpu(0), b.ecbs[0], &b.m)
}

/// Returns how often a clause runs in one firing until its consumer is killed. Each run takes at
/// least `units`.
fn runs(b: &Bench, units: u64) -> u64 {
    let most = FIRING / units;
    (1..=most + 1)
        .find(|_| {
            let _ = again(b);
            b.consumer.activity() == Activity::Killed
        })
        .unwrap_or_else(|| panic!("still active after {most} runs"))
}

/// Constant parts of a key have no program that pays for them.
#[test]
fn the_parts_of_a_key_are_counted() {
    const N: usize = 1000;
    let mut actions = values(N, "setx 7, %r1\n ret %r1");
    actions.push(bare(Action::Count, N as u32, 0));
    let b = bench(clause(None, actions));
    let many = runs(&b, 8 * N as u64);
    assert!(many > FIRING / (16 * N as u64), "{many}");
}

/// The fixed cost of a subroutine, however short its result is.
#[test]
fn calls_are_counted() {
    const N: usize = 1000;
    let number = "setx -1, %r1\n setx 2, %r2\n flushts\n pushtv ctf, %r0, %r1\n pushtv ctf, %r0, %r2\n call lltostr, %r3\n ret %r3";
    let address = "setx 32, %r1\n allocs %r1, %r1\n flushts\n pushtv ctf, %r0, %r1\n call uuidstr, %r3\n ret %r3";
    let compared = "sets \"\", %r1\n scmp %r1, %r1\n ret %r0";
    for (text, units) in [(number, 288), (address, 160), (compared, 32)] {
        let units = (units * N) as u64;
        let many = runs(&bench(clause(None, values(N, text))), units);
        assert!(many > FIRING / (2 * units), "{many} of {units}");
    }
}

/// All CPUs are asked for room before a variable is dropped.
#[test]
fn variables_that_are_dropped_are_counted() {
    const N: usize = 500;
    const CPUS: usize = 64;
    let array = DifVar {
        kind: DIFV_KIND_ARRAY,
        ..var(0x500, 0, int(8))
    };
    let store = |key| {
        let text = format!(
            "flushts\n setx {key}, %r1\n pushtv ctf, %r0, %r1\n stgaa %r1, 0x500\n ret %r0"
        );
        action(Action::Difexpr, asm_with(&text, int(0), &[array]))
    };
    let ncpus = CPUS;
    let consumer = Consumer::new(Config { ncpus, ..config() }).unwrap();
    consumer.set_option(Opt::Dynvarsize, 1024).unwrap();
    let b = Bench::with(consumer, vec![clause(None, (1..=N).map(store).collect())]);
    again(&b);
    runs(&b, ((N - 64) * (LOOKUP + CPUS * ANOTHER)) as u64);
}

/// The same for thread-locals of a clause that needs no interpreter.
#[test]
fn thread_locals_that_are_dropped_are_counted() {
    // With more of them the machine would be asked in between, which takes the interpreter.
    const N: u32 = 200;
    const CPUS: usize = 64;
    let store = |id| {
        let text = format!("ldgs timestamp, %r1\n stts %r1, {id:#x}\n ret %r0");
        let vars = [var(id, 1, int(8))];
        action(Action::Difexpr, asm_with(&text, int(0), &vars))
    };
    let ncpus = CPUS;
    let consumer = Consumer::new(Config { ncpus, ..config() }).unwrap();
    consumer.set_option(Opt::Dynvarsize, 1024).unwrap();
    let actions = (0x501..0x501 + N).map(store).collect();
    let b = Bench::with(consumer, vec![clause(None, actions)]);
    again(&b);
    runs(&b, ((N as usize - 64) * (LOOKUP + CPUS * ANOTHER)) as u64);
}

/// A string that has no end before an unreadable page has been read nevertheless.
#[test]
fn strings_that_fault_are_counted() {
    const SIZE: u64 = 64 << 10;
    let text = "ldgs arg0, %r1\n flushts\n pushtv ctf, %r0, %r1\n call copyinstr, %r2\n ret %r2";
    let consumer = Consumer::new(config()).unwrap();
    consumer.set_option(Opt::Strsize, SIZE + 1).unwrap();
    let b = Bench::with(consumer, vec![clause(None, values(1, text))]);
    assert_eq!(again(&b).unwrap().fault, Fault::BadAddr);
    runs(&b, SIZE);
}

#[test]
fn the_ways_past_the_interpreter_are_counted() {
    const N: usize = 2000;
    let n = N as u64;
    // Clocks, look-ups of variables, and a load, which takes the interpreter.
    let clocks = values(N, "ldgs walltimestamp, %r1\n ret %r1");
    let (dynamic, loads) = (
        assignments(N),
        "ldgs arg0, %r1\n uldub [%r1], %r1\n ret %r1",
    );
    let cases = [
        (clocks, 32 * n),
        (dynamic, 256 * n),
        (values(N, loads), 32 * n),
    ];
    for (actions, units) in cases {
        let mut b = bench(clause(None, actions));
        b.m.args[0] = 0x40_0000;
        b.m.user.get_mut().insert(0x40_0000, vec![7; 8]);
        let many = runs(&b, units);
        // Nor is the consumer killed much too early.
        assert!(many > FIRING / (2 * units), "{many} of {units}");
        // Each firing starts from zero.
        let b = bench(clause(None, values(N, "ldgs walltimestamp, %r1\n ret %r1")));
        for _ in 0..many {
            b.fire();
        }
        assert_eq!(b.consumer.activity(), Activity::Active);
    }
}

/// A record costs more if old ones must be dropped for it.
#[test]
fn what_a_ring_lets_go_of_is_counted() {
    const N: usize = 4000;
    let large = clause(None, values(N, "ldgs arg0, %r1\n ret %r1"));
    let b = bench_of(vec![clause(None, vec![]), large]);
    let fire = |ecb: usize| {
        let now = b.m.now.get();
        b.m.now.set(now + 1);
        assert!(b.consumer.fire(&cpu(0), b.ecbs[ecb], &b.m).is_none());
        b.consumer.work(&cpu(0), &b.m)
    };
    // Nothing must be dropped yet.
    let price = fire(1);
    // Records of 16 bytes, each counted as at least 8, four times as many as there is room for.
    for _ in 0..4 * (1 << 20) / 8 {
        fire(0);
    }
    let [first, second] = [fire(1), fire(1)];
    let gone = (N * 8 / 16) as u64;
    assert!(
        first >= price + 16 * gone && second >= price + 16 * gone,
        "{price} {first}"
    );
    // Now records of the same size are dropped: one or two at a time.
    for _ in 0..4 * (1 << 20) / (8 * N) {
        fire(1);
    }
    let last = fire(1);
    assert!(last < price + 16 * gone / 2, "{price} {last}");
}

#[test]
fn what_is_light_is_not_counted() {
    let b = bench(clause(None, values(4, "ldgs walltimestamp, %r1\n ret %r1")));
    for _ in 0..FIRING / LIGHT {
        again(&b);
    }
    assert_eq!(b.consumer.activity(), Activity::Active);
    assert_eq!(b.m.toil.get(), 0);
}

#[test]
fn a_clause_of_too_many_moves_faults() {
    let fault = |n| bench(clause(None, assignments(n))).fire()[0].map(|report| report.fault);
    assert_eq!(fault(14_000), None);
    assert_eq!(fault(16_384), Some(Fault::Overrun));
}

/// A string that ends in memory which cannot be read is scanned up to there.
#[test]
fn kernel_strings_that_fault_are_counted() {
    const SIZE: usize = 64 << 10;
    let length = "setx 4096, %r1\n flushts\n pushtv ctf, %r0, %r1\n call strlen, %r3\n ret %r3";
    let recorded = asm_with("setx 4096, %r1\n ret %r1", string(), &[]);
    for difo in [asm(length), recorded] {
        let consumer = Consumer::new(config()).unwrap();
        consumer.set_option(Opt::Strsize, SIZE as u64).unwrap();
        let clause = clause(None, vec![action(Action::Difexpr, difo)]);
        let mut b = Bench::with(consumer, vec![clause]);
        b.m.kernel.insert(4096, vec![b'x'; SIZE - 16]);
        let fault = again(&b).map(|report| report.fault);
        assert_eq!(fault, Some(Fault::BadAddr));
        runs(&b, SIZE as u64 - 16);
    }
}

/// One consumer does nearly all that it may do, another one very little: neither is killed. Then
/// the first one continues, and only it is killed.
#[test]
fn work_is_put_down_to_whose_clause_it_is() {
    let heavy = bench(clause(None, assignments(14_000)));
    let light = bench(clause(None, assignments(8)));
    let most = runs(&bench(clause(None, assignments(14_000))), 256 * 14_000) - 1;
    for _ in 0..most {
        again(&heavy);
        again(&light);
    }
    let activities = |of: [&Bench; 2]| of.map(|b| b.consumer.activity());
    assert_eq!(activities([&heavy, &light]), [Activity::Active; 2]);
    let of = |b: &Bench| b.consumer.work(&cpu(0), &b.m);
    assert!(of(&heavy) > FIRING / 2 && of(&light) < FIRING / 100);
    again(&light);
    again(&heavy);
    assert_eq!(
        activities([&heavy, &light]),
        [Activity::Killed, Activity::Active]
    );
    // In another firing nothing has been done yet.
    light.m.now.set(1);
    assert_eq!(of(&light), 0);
}

#[test]
fn a_firing_that_there_is_no_time_for_is_a_drop() {
    let b = Bench::new(vec![clause(None, vec![])]);
    let drop_two = || b.consumer.drop_firings(&cpu(0), &b.m, 2);
    drop_two();
    assert_eq!(b.read(Which::Principal).1, 2);
    b.consumer.stop();
    drop_two();
    assert_eq!(b.read(Which::Principal).1, 0);
}

#[test]
fn what_is_enabled_of_a_consumers_own_probes_is_known() {
    let c = Consumer::new(config()).unwrap();
    let clauses = [(); 3].map(|()| c.add_clause(&clause(None, vec![])).unwrap());
    let own = |probe| c.own(probe).map(|ecb| ecb.epid).collect::<Vec<_>>();
    c.bind(clauses[0], PROBE).unwrap();
    c.bind(clauses[1], ERROR).unwrap();
    // A binding that is not kept has no effect.
    c.binding().bind(clauses[2], ERROR).unwrap();
    assert_eq!(own(ERROR), [2]);
    c.bind(clauses[2], PROBE).unwrap();
    c.bind(clauses[0], ERROR).unwrap();
    assert_eq!(
        (own(ERROR), own(PROBE), own(common::BEGIN)),
        (vec![2, 4], vec![], vec![])
    );
}

/// The number of EPIDs of a consumer without access to all processes is bounded, because it keeps
/// some memory for probes that have gone.
#[test]
fn a_users_epids_come_to_an_end() {
    let mut of_user = config();
    of_user.privileges.all_users = false;
    for (config, end) in [(of_user, Some(256 << 10)), (config(), None)] {
        let c = Consumer::new(config).unwrap();
        let one = c.add_clause(&clause(None, vec![])).unwrap();
        let refused = (0..300 << 10).find(|_| c.bind(one, PROBE).is_err());
        assert_eq!(refused, end);
    }
}
