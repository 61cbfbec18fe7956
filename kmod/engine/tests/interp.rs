// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Frames of interpreted code: what walkers may and may not do.

mod common;

use common::asm::{asm_with, bytes, int, var};
use common::{action, bare, clause, config, u64_at, Bench, Steps};
use dtrace_engine::budget::{SOUGHT, UNITS, USER_FRAME};
use dtrace_engine::dif::verify::{verify, Context};
use dtrace_engine::dof::{ActionSpec, Difo};
use dtrace_engine::{Clause, Consumer, Privileges, Unread, Which};
use dtrace_uapi::action::{ustack_arg, Action};
use dtrace_uapi::fault::Fault;
use dtrace_uapi::interp::{NameHead, Word, MODULE, PROVIDER, WALKERS_MAX, WALK_THREAD, WALK_TID};
use dtrace_uapi::option::Opt;
use dtrace_uapi::subr::Subr;
use zerocopy::IntoBytes;

/// Text of a walker that adds a frame for each node of a list. A node is: the next node, the
/// function's name, the line.
const LIST: &str = "setx 16, %r1\n ldga __walk, %r1, %r2\n ldls 0x500, %r1\n tst %r1\n be again\n mov %r1, %r2\n\
    again: tst %r2\n be out\n setx 8, %r3\n add %r2, %r3, %r4\n uldx [%r4], %r4\n add %r2, %r3, %r5\n add %r5, %r3, %r5\n\
    uldx [%r5], %r5\n setx 64, %r6\n flushts\n pushtv ctf, %r0, %r4\n pushtv ctf, %r0, %r6\n pushtv ctf, %r0, %r0\n\
    pushtv ctf, %r0, %r0\n pushtv ctf, %r0, %r5\n pushtv ctf, %r0, %r0\n pushtv ctf, %r0, %r0\n pushtv ctf, %r0, %r0\n\
    call __frame, %r7\n flushts\n uldx [%r2], %r2\n stls %r2, 0x500\n tst %r5\n be out\n loop again\n out: ret %r0";

fn walker(text: &str, number: &[u8]) -> Clause {
    walker_with(asm_with(text, int(8), &[var(0x500, 2, int(8))]), number)
}

fn walker_with(difo: Difo, number: &[u8]) -> Clause {
    let mut walker = clause(None, vec![action(Action::Difexpr, difo)]);
    walker.probe.provider[..PROVIDER.len()].copy_from_slice(PROVIDER);
    walker.probe.module[..MODULE.len()].copy_from_slice(MODULE);
    walker.probe.func[..number.len()].copy_from_slice(number);
    walker
}

/// Makes a consumer with walkers.
fn consumer(walkers: &[Clause]) -> Consumer {
    let consumer = Consumer::new(config()).unwrap();
    let mut pending = consumer.prepare(&[], &[]).unwrap();
    pending.add_walkers(walkers, &consumer).unwrap();
    pending.commit();
    consumer
}

/// Makes a consumer that records user stacks of at most three frames (the test's stack has two),
/// with room for `room` frames of interpreted code.
fn bench(walkers: &[Clause], room: u32) -> Bench {
    let stack = ActionSpec {
        arg: ustack_arg(3, room * 8),
        ..bare(Action::Ustack, 0, 0)
    };
    bench_of(walkers, vec![stack])
}

/// Makes a consumer with one clause, in a process with two evaluators.
fn bench_of(walkers: &[Clause], actions: Vec<ActionSpec>) -> Bench {
    let mut bench = Bench::with(consumer(walkers), vec![clause(None, actions)]);
    let mut user = bench.m.user.borrow_mut();
    // The first list ends with line 0, which means that another evaluator has called the following
    // code.
    let nodes = [(0x1000, 0x1100, 7), (0x1100, 0x1200, 0), (0x1200, 0, 9)];
    for (n, (at, next, line)) in nodes.into_iter().enumerate() {
        let node = [next, 0x2000 + n as u64 * 16, line];
        user.insert(at, node.as_bytes().to_vec());
        user.insert(0x2000 + n as u64 * 16, vec![b'a' + n as u8, 0]);
    }
    drop(user);
    bench.m.evaluators = vec![(0, 0xab, 0x1000), (1, 0xab, 0x1000)];
    bench
}

/// Returns the program counters and the words of the first record.
fn stack(bench: &Bench) -> (Vec<u64>, Vec<u64>) {
    assert_eq!(bench.fire(), [None]);
    let (data, _) = bench.read(Which::Principal);
    // The EPID, the time and the process come first.
    let words: Vec<u64> = (0..data.len() / 8).map(|n| u64_at(&data, n * 8)).collect();
    let at = words.iter().position(|word| *word == 21).unwrap();
    let pcs = words[at..]
        .iter()
        .take_while(|word| Word::decode(**word).is_none());
    let n = pcs.take_while(|word| **word != 0).count();
    (words[at..at + n].to_vec(), words[at + n..].to_vec())
}

/// Returns frame, name and line of each word.
fn told(bench: &Bench, words: &[u64]) -> Vec<(u16, String, u32)> {
    let words = words.iter().map_while(|word| Word::decode(*word));
    words
        .map(|word| {
            let mut names = [0; 200];
            let size = bench.consumer.frame_names(word.name, &mut names).unwrap();
            let head = NameHead {
                walker: 0xab,
                sizes: [1, 0, 0, 0],
                ..NameHead::default()
            };
            assert_eq!(names[..24], *head.as_bytes());
            let name = String::from_utf8(names[24..size].to_vec()).unwrap();
            (word.native, name, word.position)
        })
        .collect()
}

fn frame(native: u16, name: &str, line: u32) -> (u16, String, u32) {
    (native, name.to_owned(), line)
}

#[test]
fn a_walker_goes_on_where_it_was_at_the_next_evaluator() {
    let bench = bench(&[walker(LIST, b"ab")], 8);
    let all = [frame(0, "a", 7), frame(0, "b", 0), frame(1, "c", 9)];
    for _ in 0..2 {
        let (pcs, words) = stack(&bench);
        assert_eq!(pcs, [21, 22]);
        assert_eq!(told(&bench, &words), all);
    }
    assert_eq!(
        bench.consumer.frame_names(0xff_ffff, &mut []),
        Err(Unread::None)
    );
}

#[test]
fn frames_without_room_are_left_out() {
    let bench = bench(&[walker(LIST, b"ab")], 1);
    let (pcs, words) = stack(&bench);
    assert_eq!(pcs, [21, 22]);
    assert_eq!(told(&bench, &words), [frame(0, "a", 7), frame(0, "b", 0)]);
}

/// Makes an action that records the value of a user stack of at most three frames, with room for
/// `room` frames of interpreted code. `call` calls the subroutine.
fn value_by(call: &str, room: u32) -> ActionSpec {
    let text = format!(
        "flushts\n setx 3, %r1\n pushtv ctf, %r0, %r1\n pushtv ctf, %r0, %r0\n\
        setx {room}, %r1\n pushtv ctf, %r0, %r1\n {call} ret %r2"
    );
    let size = 16 + 8 * (3 + room);
    action(Action::Difexpr, asm_with(&text, bytes(size), &[]))
}

fn value(room: u32) -> ActionSpec {
    value_by(&format!("call {}, %r2\n", Subr::Ustack as u16), room)
}

/// Returns the depth, the room of the addresses and what follows, of the first value recorded.
fn value_of(bench: &Bench) -> (u32, Vec<u64>, Vec<u64>) {
    assert_eq!(bench.fire(), [None]);
    let (data, _) = bench.read(Which::Principal);
    // The EPID and the time come first, then the head.
    let words: Vec<u64> = (4..data.len() / 8).map(|n| u64_at(&data, n * 8)).collect();
    let (addresses, words) = words.split_at(3);
    (u64_at(&data, 16) as u32, addresses.to_vec(), words.to_vec())
}

#[test]
fn a_value_has_its_frames_of_interpreted_code_behind_its_addresses() {
    let walkers = [walker(LIST, b"ab")];
    let all = [frame(0, "a", 7), frame(0, "b", 0), frame(1, "c", 9)];
    let bench = bench_of(&walkers, vec![value(8)]);
    for _ in 0..2 {
        let (depth, addresses, words) = value_of(&bench);
        assert_eq!((depth, addresses), (2, vec![21, 22, 0]));
        assert_eq!(told(&bench, &words), all);
        assert_eq!((words.len(), &words[3..]), (8, &[0; 5][..]));
    }
    // What has no room is left out, also where the addresses leave some of theirs.
    for room in 0..3 {
        let bench = bench_of(&walkers, vec![value(room)]);
        let (_, addresses, words) = value_of(&bench);
        assert_eq!(addresses, [21, 22, 0]);
        assert_eq!(told(&bench, &words), all[..room as usize]);
    }
}

#[test]
fn walkers_leave_the_program_that_asks_for_a_value_as_it_was() {
    let call = format!("call {}, %r2\n", Subr::Ustack as u16);
    // The arguments are still on the tuple stack at the second call. The first value is recorded,
    // although the walkers have used scratch memory behind it.
    let twice = format!("{call} call {}, %r3\n", Subr::Ustack as u16);
    let copies = LIST.replace(
        "again: tst",
        "again: setx 8, %r3\n flushts\n pushtv ctf, %r0, %r2\n pushtv ctf, %r0, %r3\n\
        call copyin, %r4\n flushts\n tst",
    );
    let bench = bench_of(&[walker(&copies, b"ab")], vec![value_by(&twice, 8)]);
    let (depth, addresses, words) = value_of(&bench);
    assert_eq!((depth, addresses), (2, vec![21, 22, 0]));
    let all = [frame(0, "a", 7), frame(0, "b", 0), frame(1, "c", 9)];
    assert_eq!(told(&bench, &words), all);
}

#[test]
fn walkers_of_values_tell_callers() {
    let arguments = ["%r3", "%r4", "%r0", "%r0", "%r0", "%r0", "%r0", "%r0"];
    let text = format!(
        "setx 8, %r1\n ldga __walk, %r1, %r2\n setx 4, %r1\n ldga __walk, %r1, %r3\n\
        setx 2, %r1\n ldga __walk, %r1, %r4\n tst %r2\n be out\n\
        add %r3, %r2, %r3\n add %r4, %r2, %r4\n {} call __caller, %r7\n out: ret %r0",
        pushed(arguments, 3)
    );
    let mut bench = bench_of(&[walker(&text, b"ab")], vec![value(4)]);
    bench.m.made = Some(0xab);
    let (depth, addresses, words) = value_of(&bench);
    assert_eq!((depth, addresses, words), (3, vec![21, 23, 24], vec![0; 4]));
}

#[test]
fn walkers_of_values_are_paid_by_the_clause() {
    let endless = walker("again: nop\n loop again\n ret %r0", b"ab");
    let values = (0..5).map(|_| value(8));
    let bench = bench_of(&[endless], values.collect());
    let fault = bench.fire()[0].unwrap();
    // A stack may take a quarter of the budget for its walkers.
    assert_eq!((fault.fault, fault.action), (Fault::Overrun, 4));
}

#[test]
fn a_rehearsal_is_not_about_the_memory_of_interpreters() {
    let string =
        "setx 0x2000, %r1\n flushts\n pushtv ctf, %r0, %r1\n call copyinstr, %r2\n ret %r2";
    let copied = action(
        Action::Difexpr,
        asm_with(string, common::asm::string(), &[]),
    );
    let bench = bench_of(&[walker(LIST, b"ab")], vec![value(8), copied]);
    bench.m.user.borrow_mut().remove(&0x1100);
    let rehearse = || {
        bench
            .consumer
            .rehearse(&common::cpu(0), bench.ecbs[0], &bench.m)
    };
    assert_eq!(rehearse(), None);
    bench.m.user.borrow_mut().remove(&0x2000);
    assert_eq!(rehearse().map(|missing| missing.addr), Some(0x2000));
}

#[test]
fn a_walker_knows_the_thread() {
    // The position is the element of `walk[]`, less an address that differs from run to run.
    let of = |element: u64, less: u64| {
        let text = format!(
            "setx {element}, %r1\n ldga __walk, %r1, %r5\n setx {less:#x}, %r1\n sub %r5, %r1, %r5\n flushts\n\
            pushtv ctf, %r0, %r0\n pushtv ctf, %r0, %r0\n pushtv ctf, %r0, %r0\n pushtv ctf, %r0, %r0\n\
            pushtv ctf, %r0, %r5\n pushtv ctf, %r0, %r0\n pushtv ctf, %r0, %r0\n pushtv ctf, %r0, %r0\n\
            call __frame, %r7\n flushts\n ret %r0"
        );
        let bench = bench(&[walker(&text, b"ab")], 1);
        let (_, words) = stack(&bench);
        let word = Word::decode(words[0]).unwrap();
        (word.position, bench.m.pid, bench.m.thread)
    };
    let (_, pid, thread) = of(0, 0);
    assert_eq!(of(WALK_TID, 0).0, pid + 2);
    assert_eq!(of(WALK_THREAD, thread).0, 8);
}

/// Returns text that pushes the words of a call.
fn pushed(registers: [&str; 8], count: usize) -> String {
    let pushed = registers.iter().take(count);
    let pushed = pushed.map(|register| format!("pushtv ctf, %r0, {register}\n "));
    format!("flushts\n {}", pushed.collect::<String>())
}

#[test]
fn a_walker_tells_callers() {
    let with = |caller: &str, frame: &str| {
        let text = format!(
            "setx 8, %r1\n ldga __walk, %r1, %r2\n setx 4, %r1\n ldga __walk, %r1, %r3\n\
            setx 2, %r1\n ldga __walk, %r1, %r4\n tst %r2\n be frame\n\
            add %r3, %r2, %r3\n add %r4, %r2, %r4\n {caller} ret %r0\n frame: {frame} ret %r0"
        );
        let mut bench = bench(&[walker(&text, b"ab")], 8);
        bench.m.made = Some(0xab);
        let (pcs, words) = stack(&bench);
        let words = words.iter().map_while(|word| Word::decode(*word));
        let words: Vec<(u16, u32)> = words.map(|word| (word.native, word.position)).collect();
        (pcs, words)
    };
    let arguments = ["%r3", "%r4", "%r0", "%r0", "%r0", "%r0", "%r0", "%r0"];
    let caller = format!("{} call __caller, %r7\n", pushed(arguments, 3));
    let line = ["%r0", "%r0", "%r0", "%r0", "%r3", "%r0", "%r0", "%r0"];
    let frame = format!("{} call __frame, %r7\n", pushed(line, 8));
    // The first frame was interrupted, the others have made calls.
    let (pcs, words) = with(&caller, &frame);
    assert_eq!(pcs, [21, 23, 24]);
    assert_eq!(words, [(0, 21), (1, 23), (2, 24)]);
    // The walker finds no caller; then calls that do not match the request fail.
    for (caller, frame, words) in [
        ("", &*frame, vec![(0, 21)]),
        (&*frame, &*frame, vec![(0, 21)]),
        ("", &*caller, vec![]),
    ] {
        assert_eq!(with(caller, frame), (vec![21], words));
    }
}

#[test]
fn other_interpreters_are_passed_by() {
    let bench = bench(&[walker(LIST, b"ac")], 8);
    let (pcs, words) = stack(&bench);
    assert_eq!((pcs, words), (vec![21, 22], vec![0; 9]));
}

#[test]
fn a_walker_that_fails_leaves_what_it_has() {
    let bench = bench(&[walker(LIST, b"ab")], 8);
    // The second node cannot be read.
    bench.m.user.borrow_mut().remove(&0x1100);
    let (_, words) = stack(&bench);
    assert_eq!(told(&bench, &words), [frame(0, "a", 7)]);
    // A circular list fills the room.
    let circle = [0x1000u64, 0x2000, 3];
    bench
        .m
        .user
        .borrow_mut()
        .insert(0x1000, circle.as_bytes().to_vec());
    let (pcs, words) = stack(&bench);
    assert_eq!(pcs, [21, 22]);
    assert_eq!(told(&bench, &words), vec![frame(0, "a", 3); 9]);
    // A walker that adds nothing ends with its budget; the clause has a budget of its own.
    let endless = with("again: nop\n loop again\n ret %r0");
    assert_eq!(stack(&endless).0, [21, 22]);
}

fn with(text: &str) -> Bench {
    bench(&[walker(text, b"ab")], 8)
}

#[test]
fn walkers_are_few_and_well_formed() {
    let consumer = Consumer::new(config()).unwrap();
    let mut pending = consumer.prepare(&[], &[]).unwrap();
    let refused = |pending: &mut dtrace_engine::Pending<'_>, all: &[Clause]| {
        pending.add_walkers(all, &consumer).unwrap_err().text
    };
    let many: Vec<Clause> = (0..=WALKERS_MAX).map(|_| walker("ret %r0", b"1")).collect();
    assert_eq!(refused(&mut pending, &many), "too many walkers");
    pending.add_walkers(&many[..5], &consumer).unwrap();
    assert_eq!(
        refused(&mut pending, &many[..WALKERS_MAX - 4]),
        "too many walkers"
    );
    let nameless = [walker("ret %r0", b"x")];
    assert_eq!(refused(&mut pending, &nameless), "a walker has a number");
    let mut two = walker("ret %r0", b"1");
    two.actions.push(bare(Action::Exit, 0, 0)).unwrap();
    assert_eq!(refused(&mut pending, &[two]), "a walker is one expression");
}

#[test]
fn a_walker_may_not_do_what_others_may() {
    let cx = |walker| Context {
        privileges: Privileges::ALL,
        features: config().features,
        destructive: true,
        strsize: 256,
        loops: true,
        walker,
    };
    let vars = [var(0x500, 0, int(8)), var(0x500, 1, int(8))];
    let ustack = format!(
        "setx 1, %r1\n pushtv ctf, %r0, %r1\n pushtv ctf, %r0, %r1\n call {}, %r1\n ret %r0",
        dtrace_uapi::subr::Subr::Ustack as u16
    );
    for text in [
        "ldgs 0x500, %r1\n ret %r0",
        "stgs %r0, 0x500\n ret %r0",
        "ldts 0x500, %r1\n ret %r0",
        "stts %r0, 0x500\n ret %r0",
        "ldgs ustackdepth, %r1\n ret %r0",
        "ldgs arg0, %r1\n ret %r0",
        "ldga uregs, %r0, %r1\n ret %r0",
        "stx %r1, [%r2]\n ret %r0",
        "copys %r1, %r2, %r3\n ret %r0",
        &ustack,
    ] {
        let difo = asm_with(text, int(8), &vars);
        verify(&difo, &cx(false)).unwrap();
        let refused = verify(&difo, &cx(true)).unwrap_err();
        assert_eq!(refused.text, "a walker cannot do this", "{text}");
    }
    let own = [
        "ldga __walk, %r0, %r1\n ret %r0".to_owned(),
        format!(
            "{} call __frame, %r1\n ret %r0",
            "pushtv ctf, %r0, %r0\n ".repeat(8)
        ),
    ];
    let caller = format!("{} call __caller, %r1\n ret %r0", pushed(["%r0"; 8], 3));
    for text in own.into_iter().chain([caller]) {
        let difo = asm_with(&text, int(8), &vars);
        verify(&difo, &cx(true)).unwrap();
        let refused = verify(&difo, &cx(false)).unwrap_err();
        assert_eq!(refused.text, "for walkers only", "{text}");
    }
}

#[test]
fn memory_that_is_short_is_told_of() {
    let consumer = consumer(&[walker(LIST, b"ab")]);
    let _ = consumer.bind(consumer.add_clause(&clause(None, vec![])).unwrap(), 3);
    let mut allocations = 0;
    loop {
        dtrace_engine::mem::alloc::fail_after(Some(allocations));
        let gone = consumer.go();
        dtrace_engine::mem::alloc::fail_after(None);
        match gone {
            Ok(()) => break,
            Err(reason) => assert_eq!(reason.errno, dtrace_engine::Errno::ENOMEM),
        }
        allocations += 1;
    }
    assert!(allocations > 10, "{allocations}");
}

#[test]
fn variables_of_a_walker_are_small() {
    let consumer = Consumer::new(config()).unwrap();
    let mut pending = consumer.prepare(&[], &[]).unwrap();
    let with = |size| {
        let text = "ldls 0x500, %r1\n ret %r0";
        let difo = asm_with(text, int(8), &[var(0x500, 2, bytes(size))]);
        walker_with(difo, b"ab")
    };
    pending.add_walkers(&[with(2000)], &consumer).unwrap();
    let refused = pending.add_walkers(&[with(4000)], &consumer).unwrap_err();
    assert_eq!(refused.text, "a walker has small variables");
}

#[test]
fn room_for_frames_is_paid() {
    let consumer = Consumer::new(config()).unwrap();
    consumer.set_option(Opt::Aggsize, 32 << 20).unwrap();
    let key = || bare(Action::Ustack, 0, ustack_arg(1, 3 << 20));
    let count = || bare(Action::Count, 1, 0);
    let bench = Bench::with(
        consumer,
        vec![clause(None, vec![key(), count(), key(), count()])],
    );
    let fault = bench.fire()[0].unwrap();
    assert_eq!((fault.fault, fault.action), (Fault::Overrun, 3));
}

#[test]
fn a_search_for_the_owner_of_made_code_is_paid() {
    let consumer = consumer(&[walker(LIST, b"ab")]);
    let stacks = (0..128).map(|_| bare(Action::Ustack, 0, ustack_arg(3, 64)));
    let mut bench = Bench::with(consumer, vec![clause(None, stacks.collect())]);
    assert_eq!(bench.fire(), [None]);
    bench.m.seeks = true;
    let fault = bench.fire()[0].unwrap();
    // Three frames are requested, and there are two.
    let each = SOUGHT + 2 * USER_FRAME + 64;
    let first = (UNITS / each as u64) as u32 + 1;
    assert_eq!((fault.fault, fault.action), (Fault::Overrun, first));
}

#[test]
fn keys_differ_by_frames_of_interpreted_code() {
    let consumer = consumer(&[walker(LIST, b"ab")]);
    let key = bare(Action::Ustack, 0, ustack_arg(3, 64));
    let counted = clause(None, vec![key, bare(Action::Count, 1, 0)]);
    let mut bench = Bench::with(consumer, vec![counted]);
    let node = |name: u64, line: u64| [0, name, line].as_bytes().to_vec();
    let names = [(0x2000, vec![b'a', 0]), (0x2010, vec![b'b', 0])];
    bench.m.user.borrow_mut().extend(names);
    // With two evaluators, without one, with one, with another name, on another line, and each of
    // these again. Nothing of an earlier key remains.
    for (evaluators, name, line) in [
        (2, 0x2000, 1),
        (0, 0x2000, 1),
        (1, 0x2000, 1),
        (1, 0x2010, 1),
        (1, 0x2010, 2),
    ]
    .repeat(2)
    {
        bench.m.evaluators = vec![(0, 0xab, 0x1000); evaluators];
        bench.m.user.borrow_mut().insert(0x1000, node(name, line));
        assert_eq!(bench.fire(), [None]);
    }
    let entries = bench
        .consumer
        .switch(&common::cpu(0), Which::Aggregation, 1);
    entries.unwrap();
    let words = bench
        .consumer
        .snapshot(0, Which::Aggregation, |snap| {
            snap.data
                .chunks_exact(8)
                .filter(|word| Word::decode(u64_at(word, 0)).is_some())
                .count()
        })
        .unwrap();
    assert_eq!(words, 5);
}
