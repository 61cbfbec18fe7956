// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Every built-in variable is read and every subroutine is called, by both back ends.
//!
//! The engine's code for them has arms `_`, which also take what was forgotten: such a variable
//! would be 0 or "global", and such a subroutine its neighbour. So for each of them there is a
//! value here that no such arm gives. The matches have no arm `_`: a new number without a value is
//! an error of the compiler.

mod common;

use common::asm::{asm, asm_with, call_text, int, string};
use common::differ::{verified_on, Outcome, Rights, AT};
use common::machine::TestMachine;
use common::{action, clause, config, cpu, str_at, u32_at, u64_at, Bench, Steps, PROBE};
use dtrace_engine::dif::env::At;
use dtrace_engine::dif::program::Quick;
use dtrace_engine::dof::Difo;
use dtrace_engine::{Consumer, Place, Which};
use dtrace_uapi::action::Action;
use dtrace_uapi::fault::Fault;
use dtrace_uapi::option::Opt;
use dtrace_uapi::subr::{self, Subr};
use dtrace_uapi::types::DifType;
use dtrace_uapi::var::{self, Var};

/// Addresses of the kernel's memory.
const TEXT: u64 = 0xffff_8000_0000_0000;
const ADDRESS: u64 = TEXT + 0x100;
const MINE: u64 = TEXT + 0x200;
const READ: u64 = TEXT + 0x300;
const WRITTEN: u64 = TEXT + 0x400;
const PATH: u64 = TEXT + 0x500;
const OBJECT: u64 = TEXT + 0x600;
const TASK: u64 = TEXT + 0x700;
const THREE: u64 = TEXT + 0x800;
const HALF: u64 = TEXT + 0x900;
const LEAST: u64 = TEXT + 0xa00;
const GREATEST: u64 = TEXT + 0xb00;
const ITS: u64 = TEXT + 0xc00;

/// Addresses of the process's memory.
const USER: u64 = 0x40_0000;
const ARGUMENTS: u64 = 0x50_0000;

/// The first address of scratch memory.
const SCRATCH: u64 = 0x8dd7_0000_0000_0000;

/// Returns a `long double` as it lies in memory.
fn extended(high: u16, significand: u64) -> Vec<u8> {
    let number = u128::from(high) << 64 | u128::from(significand);
    number.to_le_bytes().to_vec()
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

/// Returns the machine: its structures are those of [`TestMachine`].
fn machine() -> TestMachine {
    let mut m = TestMachine::default();
    let thread = m.thread;
    let address = [192, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    // A directory below the root of the only mount.
    let [mount, root, dir, name] = [0, 0x20, 0x40, 0x60].map(|offset| PATH + 0x10 + offset);
    for (at, bytes) in [
        (TEXT, b"/usr/lib/libc.so.6\0".to_vec()),
        (ADDRESS, address.to_vec()),
        (MINE, words(&[thread | 1])),
        (READ, vec![1, 0, 1]),
        (WRITTEN, vec![0, 1, 0]),
        (PATH, words(&[mount, dir])),
        (mount, words(&[root, mount, root])),
        (root, words(&[root, name, 1, 0])),
        (dir, words(&[root, name, 3, 0])),
        (name, b"srv\0".to_vec()),
        (OBJECT, words(&[OBJECT + 0x10, 0])),
        (OBJECT + 0x10, b"devices\0".to_vec()),
        (TASK, [&words(&[ITS, 0x10, 0x14])[..], &[0; 16]].concat()),
        (ITS + 0x10, b"a\0b\0".to_vec()),
        (THREE, extended(0x4000, 0xc << 60)),
        (HALF, extended(0x3ffe, 1 << 63)),
        (LEAST, extended(0xc000, 0xc << 60)),
        (GREATEST, extended(0x403e, u64::MAX)),
    ] {
        m.kernel.insert(at, bytes);
    }
    let user = m.user.get_mut();
    user.insert(USER, b"from user space\0 and beyond".to_vec());
    user.insert(ARGUMENTS, b"prog\0-a\0".to_vec());
    m.user_args = Some((ARGUMENTS, ARGUMENTS + 8));
    m.root = Some(Place {
        mount,
        dentry: root,
    });
    m
}

/// Runs a program by both back ends, which must do the same.
fn run(program: &Difo, about: &str) -> Outcome {
    let (prepared, reference) = verified_on(machine, program, Rights::All)
        .unwrap_or_else(|refused| panic!("{about}: {refused}"));
    assert_eq!(prepared, reference, "{about}");
    prepared
}

/// Returns why the verifier refuses a program.
fn refusal(text: &str) -> String {
    let program = asm_with(text, int(8), &[]);
    let refused = verified_on(machine, &program, Rights::All);
    refused.expect_err("it is refused")
}

/// What a built-in variable is on this machine.
enum Value {
    /// A number; not 0, which a forgotten variable is.
    Number(u64),
    Text(&'static str),
    /// Element 3 of an array.
    Element(u64),
    /// Only walkers read it. The tests of walkers (`interp.rs`) cannot do without it.
    OfWalkers,
}

/// Returns the value of a variable in a firing.
fn value(var: Var, at: At) -> Value {
    use Value::{Element, Number, OfWalkers, Text};
    match var {
        Var::Args => Element(103),
        Var::Regs => Element(1003),
        Var::Uregs => Element(2003),
        Var::Walk => OfWalkers,
        Var::Curthread => Number(0xffff_8880_0000_1000),
        Var::Timestamp => Number(0x1_0000_0000),
        Var::Vtimestamp => Number(88),
        Var::Ipl => Number(6),
        Var::Epid => Number(at.epid.into()),
        Var::Id => Number(at.probe.into()),
        Var::Arg0 => Number(100),
        Var::Arg1 => Number(101),
        Var::Arg2 => Number(102),
        Var::Arg3 => Number(103),
        Var::Arg4 => Number(104),
        Var::Arg5 => Number(105),
        Var::Arg6 => Number(106),
        Var::Arg7 => Number(107),
        Var::Arg8 => Number(108),
        Var::Arg9 => Number(109),
        Var::Stackdepth => Number(3),
        Var::Caller => Number(0xffff_ffff_8100_0000),
        Var::Probeprov => Text("test"),
        Var::Probemod => Text("vmlinux"),
        Var::Probefunc => Text("do_it"),
        Var::Probename => Text("entry"),
        Var::Pid => Number(1234),
        Var::Tid => Number(1235),
        Var::Execname => Text("tester"),
        Var::Zonename => Text("global"),
        Var::Walltimestamp => Number(77),
        Var::Ustackdepth => Number(2),
        Var::Ucaller => Number(0x40_0000),
        Var::Ppid => Number(1),
        Var::Uid => Number(501),
        Var::Gid => Number(502),
        Var::Errno => Number(2),
        Var::Cpu => Number(at.cpu as u64),
        Var::Execargs => Text("prog -a"),
    }
}

/// The instructions that do nothing and that no preparation takes away.
const KEEP: &str = "not %r1, %r1\n not %r1, %r1\n";

/// Returns the text that begins at an address of scratch memory.
fn text_at(outcome: &Outcome, at: u64) -> &str {
    let at = usize::try_from(at - SCRATCH).unwrap();
    str_at(&outcome.scratch, at)
}

#[test]
fn every_built_in_variable_is_read() {
    let mut texts = Vec::new();
    for (var, name) in var::NAMES {
        let whole = format!("ldgs {name}, %r1\n ret %r1");
        let steps = format!("ldgs {name}, %r1\n {KEEP} ret %r1");
        match value(*var, AT) {
            Value::Number(number) => {
                assert_ne!(number, 0, "{name}");
                for text in [whole, steps] {
                    let outcome = run(&asm_with(&text, int(8), &[]), name);
                    assert_eq!(outcome.result, Ok(number), "{text}");
                }
            }
            Value::Text(known) => {
                assert!(!texts.contains(&known), "{name} is as another one");
                texts.push(known);
                for text in [whole, steps] {
                    let outcome = run(&asm_with(&text, string(), &[]), name);
                    let at = outcome
                        .result
                        .unwrap_or_else(|why| panic!("{name}: {why:?}"));
                    assert_eq!(text_at(&outcome, at), known, "{text}");
                }
            }
            Value::Element(number) => {
                let text = format!("setx 3, %r2\n ldga {name}, %r2, %r1\n ret %r1");
                let outcome = run(&asm_with(&text, int(8), &[]), name);
                assert_eq!(outcome.result, Ok(number), "{text}");
            }
            Value::OfWalkers => {
                let text = format!("setx 3, %r2\n ldga {name}, %r2, %r1\n ret %r1");
                let why = refusal(&text);
                assert!(why.contains("for walkers only"), "{why}");
            }
        }
    }
}

#[test]
fn the_variables_that_cannot_fault_are_the_quick_ones() {
    for (var, name) in var::NAMES {
        assert_eq!(Quick::new(*var).is_some(), var.cannot_fault(), "{name}");
    }
}

/// Fires a clause on the second CPU, as the second of its consumer. Returns its record, if it has
/// one.
fn record(predicate: Option<&str>, text: &str, ty: DifType) -> Option<Vec<u8>> {
    let consumer = Consumer::new(config()).unwrap();
    consumer.set_option(Opt::Strsize, 32).unwrap();
    let other = action(Action::Difexpr, asm_with("ret %r0", int(8), &[]));
    let predicate = predicate.map(|text| asm_with(text, int(8), &[]));
    let one = action(Action::Difexpr, asm_with(text, ty, &[]));
    let bench = Bench::with(
        consumer,
        vec![clause(None, vec![other]), clause(predicate, vec![one])],
    );
    let ecb = bench.ecbs[1];
    assert_eq!((ecb.epid, ecb.probe), (FIRING.epid, FIRING.probe));
    let here = cpu(FIRING.cpu);
    let fault = bench.consumer.fire(&here, ecb, &machine());
    assert_eq!(fault, None, "{text}");
    let which = Which::Principal;
    bench.consumer.switch(&here, which, 1).unwrap();
    let data = bench
        .consumer
        .snapshot(FIRING.cpu, which, |snap| snap.data.to_vec());
    data.ok().filter(|data| !data.is_empty())
}

/// The firing of [`record`].
const FIRING: At = At {
    cpu: 1,
    epid: 2,
    probe: PROBE,
};

/// Simple clauses run without any program: they have ways of their own to read a variable.
#[test]
fn every_built_in_variable_is_recorded_and_tested() {
    for (var, name) in var::NAMES {
        let load = format!("ldgs {name}, %r1\n ret %r1");
        let decide = "bne no\n setx 1, %r1\n ret %r1\n no: ret %r0";
        let predicate = match value(*var, FIRING) {
            Value::Number(number) => {
                let data = record(None, &load, int(8)).unwrap();
                assert_eq!(u64_at(&data, 16), number, "{name}");
                let data = record(None, &load, int(4)).unwrap();
                assert_eq!(u32_at(&data, 12), number as u32, "{name}");
                let differs = number + 1;
                [number, differs].map(|number| {
                    format!("ldgs {name}, %r1\n setx {number}, %r2\n cmp %r1, %r2\n {decide}")
                })
            }
            Value::Text(text) => {
                let data = record(None, &load, string()).unwrap();
                assert_eq!(str_at(&data, 16), text, "{name}");
                [text, "other"].map(|text| {
                    format!("ldgs {name}, %r1\n sets \"{text}\", %r2\n scmp %r1, %r2\n {decide}")
                })
            }
            Value::Element(_) | Value::OfWalkers => continue,
        };
        let holds = predicate.map(|text| record(Some(&text), "ret %r0", int(8)).is_some());
        assert_eq!(holds, [true, false], "{name}");
    }
}

/// What a subroutine does on this machine.
enum Done {
    /// It returns this number.
    Number(u64),
    /// It returns the address of this text or of these bytes in scratch memory.
    Text(&'static str),
    Bytes(Vec<u8>),
    /// It changes the memory of the process to this.
    User(&'static [u8]),
    /// It always faults, with this value.
    Fault(Fault, u64),
    /// Only walkers call it. The tests of walkers (`interp.rs`) cannot do without it.
    OfWalkers,
}

/// Returns arguments for a subroutine, and what it does with them. An argument is a number or a
/// text in quotes; [`SCRATCH`] is the address of 32 bytes of scratch memory.
fn call(subr: Subr) -> (Vec<String>, Done) {
    use Done::{Bytes, Fault as Faults, Number, OfWalkers, Text, User};
    let numbers = |args: &[u64]| args.iter().map(u64::to_string).collect::<Vec<_>>();
    let texts = |args: &[&str]| args.iter().map(|arg| format!("\"{arg}\"")).collect();
    let (bytes, three) = (extended, 0xc << 60);
    match subr {
        // The first number of the generator, whose state the tests begin with 7.
        Subr::Rand => (vec![], Number(3_522_932_607)),
        Subr::MutexOwned => (numbers(&[MINE]), Number(1)),
        Subr::MutexOwner => (numbers(&[MINE]), Number(0xffff_8880_0000_1000)),
        Subr::MutexTypeAdaptive => (numbers(&[MINE]), Number(1)),
        Subr::MutexTypeSpin => (numbers(&[MINE]), Number(0)),
        Subr::RwReadHeld => (numbers(&[READ]), Number(1)),
        Subr::RwWriteHeld => (numbers(&[WRITTEN]), Number(1)),
        // A writer waits.
        Subr::RwIswriter => (numbers(&[READ]), Number(1)),
        Subr::Copyin => (numbers(&[USER + 5, 11]), Text("user space")),
        Subr::Copyinstr => (numbers(&[USER]), Text("from user space")),
        Subr::Speculation => (vec![], Number(1)),
        Subr::Progenyof => (numbers(&[1]), Number(1)),
        Subr::Strlen => (numbers(&[TEXT]), Number(18)),
        Subr::Copyout => (numbers(&[TEXT, USER, 4]), User(b"/usr user space\0")),
        Subr::Copyoutstr => (numbers(&[TEXT, USER, 4]), User(b"/us\0 user space\0")),
        Subr::Alloca => (numbers(&[16]), Number(SCRATCH + 32)),
        Subr::Bcopy => (numbers(&[TEXT, SCRATCH, 4]), Text("/usr")),
        Subr::Copyinto => (numbers(&[USER, 4, SCRATCH]), Text("from")),
        Subr::Msgdsize | Subr::Msgsize => (numbers(&[TEXT]), Faults(Fault::IllOp, TEXT)),
        Subr::Getmajor => (numbers(&[0x0080_0003]), Number(8)),
        Subr::Getminor => (numbers(&[0x0080_0003]), Number(3)),
        Subr::DdiPathname => (numbers(&[OBJECT, 0]), Text("/devices")),
        Subr::Strjoin => (texts(&["ab", "cd"]), Text("abcd")),
        Subr::Lltostr => (numbers(&[42]), Text("42")),
        Subr::Basename => (numbers(&[TEXT]), Text("libc.so.6")),
        Subr::Dirname => (numbers(&[TEXT]), Text("/usr/lib")),
        Subr::Cleanpath => (texts(&["/a/./b//../c"]), Text("/a/c")),
        Subr::Strchr => (numbers(&[TEXT, b'/'.into()]), Number(TEXT)),
        Subr::Strrchr => (numbers(&[TEXT, b'/'.into()]), Number(TEXT + 8)),
        Subr::Strstr => (vec![TEXT.to_string(), "\"lib\"".into()], Number(TEXT + 5)),
        Subr::Strtok => (texts(&["a:b", ":"]), Text("a")),
        Subr::Substr => (vec!["\"abcdef\"".into(), "2".into()], Text("cdef")),
        Subr::Index => (texts(&["banana", "an"]), Number(1)),
        Subr::Rindex => (texts(&["banana", "an"]), Number(3)),
        Subr::Htons | Subr::Ntohs => (numbers(&[0x1234]), Number(0x3412)),
        Subr::Htonl | Subr::Ntohl => (numbers(&[0x1234_5678]), Number(0x7856_3412)),
        Subr::Htonll | Subr::Ntohll => (numbers(&[1]), Number(1 << 56)),
        Subr::InetNtop => (numbers(&[10, ADDRESS]), Text("c000:201::1")),
        Subr::InetNtoa => (numbers(&[ADDRESS]), Text("192.0.2.1")),
        Subr::InetNtoa6 => (numbers(&[ADDRESS]), Text("c000:201::1")),
        Subr::Toupper => (texts(&["MiXed1"]), Text("MIXED1")),
        Subr::Tolower => (texts(&["MiXed1"]), Text("mixed1")),
        Subr::Getf => (numbers(&[2]), Number(0xff02)),
        Subr::Json => (texts(&["{\"a\": 5}", "a"]), Text("5")),
        Subr::Strtoll => (texts(&["-42"]), Number(-42i64 as u64)),
        Subr::DPath => (numbers(&[PATH]), Text("/srv")),
        Subr::LinkNtop => (numbers(&[1, ADDRESS]), Text("c0:00:02:01:00:00")),
        Subr::Uuidstr => (
            numbers(&[ADDRESS]),
            // Strings have 32 bytes.
            Text("c0000201-0000-0000-0000-0000000"),
        ),
        Subr::Strip => (numbers(&[TEXT, 0]), Number(TEXT)),
        Subr::Outside => (numbers(&[7]), Faults(Fault::BadIndex, 7)),
        // A head of four half words, and the frames.
        Subr::Stack => (numbers(&[2]), Bytes(words(&[2, 0, 11, 12]))),
        Subr::Ustack => (
            numbers(&[2, 42]),
            Bytes(words(&[1 << 32 | 2, 42 << 32 | 1234, 21, 22])),
        ),
        Subr::Taskargs => (numbers(&[TASK]), Text("a b")),
        Subr::Frame => (numbers(&[0; 8]), OfWalkers),
        Subr::Caller => (numbers(&[0; 3]), OfWalkers),
        Subr::Scope => (numbers(&[0; 2]), OfWalkers),
        Subr::LdAdd => (numbers(&[THREE, HALF]), Bytes(bytes(0x4000, 0xe << 60))),
        Subr::LdSub => (numbers(&[THREE, HALF]), Bytes(bytes(0x4000, 0xa << 60))),
        Subr::LdMul => (numbers(&[THREE, HALF]), Bytes(bytes(0x3fff, three))),
        Subr::LdDiv => (numbers(&[THREE, HALF]), Bytes(bytes(0x4001, three))),
        Subr::LdEq => (numbers(&[THREE, THREE]), Number(1)),
        Subr::LdLt => (numbers(&[HALF, THREE]), Number(1)),
        Subr::LdLe => (numbers(&[THREE, THREE]), Number(1)),
        Subr::LdValue => (numbers(&[THREE]), Bytes(bytes(0x4000, three))),
        Subr::LdFromDouble => (numbers(&[3f64.to_bits()]), Bytes(bytes(0x4000, three))),
        Subr::LdFromSigned => (numbers(&[-3i64 as u64]), Bytes(bytes(0xc000, three))),
        Subr::LdFromUnsigned => (numbers(&[u64::MAX]), Bytes(bytes(0x403e, u64::MAX))),
        Subr::LdToDouble => (numbers(&[THREE]), Number(3f64.to_bits())),
        Subr::LdToSingle => (numbers(&[THREE]), Number(3f32.to_bits().into())),
        Subr::LdToSigned => (numbers(&[LEAST]), Number(-3i64 as u64)),
        Subr::LdToUnsigned => (numbers(&[GREATEST]), Number(u64::MAX)),
    }
}

/// Returns a program that calls a subroutine.
fn program(subr: Subr, args: &[String]) -> String {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let call = call_text(&(subr as u16).to_string(), &args);
    format!("setx 32, %r1\n allocs %r1, %r1\n {call}")
}

#[test]
fn every_subroutine_is_called() {
    for (subr, name) in subr::NAMES {
        let (args, done) = call(*subr);
        let text = program(*subr, &args);
        if let Done::OfWalkers = done {
            let why = refusal(&text);
            assert!(why.contains("for walkers only"), "{name}: {why}");
            continue;
        }
        let outcome = run(&asm_with(&text, int(8), &[]), name);
        let result = outcome.result.map_err(|stopped| stopped.trap);
        // What is written to memory of the program is behind the first 32 bytes, or in them.
        let at = match result {
            Ok(0) => 0,
            Ok(at) => usize::try_from(at.wrapping_sub(SCRATCH)).unwrap_or(0),
            Err(_) => 0,
        };
        let memory = outcome.scratch.get(at..).unwrap_or(&[]);
        match done {
            Done::Number(number) => assert_eq!(result, Ok(number), "{name}"),
            Done::Text(known) => assert_eq!(str_at(memory, 0), known, "{name}: {result:?}"),
            Done::Bytes(known) => {
                assert_eq!(
                    memory.get(..known.len()),
                    Some(&*known),
                    "{name}: {result:?}"
                );
            }
            Done::User(known) => {
                assert_eq!(result, Ok(0), "{name}");
                assert_eq!(outcome.user[&USER][..known.len()], *known, "{name}");
            }
            Done::Fault(fault, value) => {
                let trap = result.expect_err(name);
                assert_eq!((trap.fault, trap.value), (fault, value), "{name}");
            }
            Done::OfWalkers => {}
        }
    }
}

/// A clause is rehearsed if it has a subroutine that loads memory of the process, and only then
/// (INV-47). Here all of that memory is missing.
#[test]
fn every_subroutine_that_loads_memory_of_the_process_is_rehearsed() {
    let mut m = machine();
    m.user.get_mut().clear();
    let mut loading = Vec::new();
    for (subr, name) in subr::NAMES.iter().filter(|(subr, _)| !subr.is_walkers()) {
        let text = program(*subr, &call(*subr).0);
        let consumer = Consumer::new(config()).unwrap();
        consumer.set_option(Opt::Destructive, 1).unwrap();
        let one = action(Action::Difexpr, asm_with(&text, int(8), &[]));
        let bench = Bench::with(consumer, vec![clause(None, vec![one])]);
        let ecb = bench.ecbs[0];
        let misses = bench.consumer.rehearse(&cpu(0), ecb, &m).is_some();
        let is_rehearsed = bench.consumer.reads_user(ecb.clause, false);
        assert_eq!(is_rehearsed, misses, "{name}");
        loading.extend(misses.then_some(*name));
    }
    assert_eq!(loading, ["copyin", "copyinstr", "copyinto"]);
}

/// Returns the program of [`program`], with another call before it.
fn twice(subr: Subr, first: &[String], second: &[String]) -> String {
    let second = program(subr, second);
    let (begin, call) = second.split_once("flushts").unwrap();
    let first = program(subr, first);
    let first = first.split_once("flushts").unwrap().1;
    let first = first.strip_suffix(" ret %r1").unwrap();
    format!("{begin}flushts{first}flushts{call}")
}

#[test]
fn the_effects_of_subroutines_are_known() {
    let idle = run(&asm("setx 32, %r1\n allocs %r1, %r1\n ret %r1"), "nothing");
    for (subr, name) in subr::NAMES {
        let (args, done) = call(*subr);
        if let Done::OfWalkers = done {
            assert!(subr.has_effect(), "{name} adds to a stack");
            continue;
        }
        let outcome = run(&asm(&program(*subr, &args)), name);
        let has_effect = outcome.user != idle.user
            || outcome.scratch[..32] != idle.scratch[..32]
            || outcome.later != idle.later;
        assert_eq!(has_effect, subr.has_effect(), "{name}");
    }
}

#[test]
fn the_subroutines_whose_values_differ_are_known() {
    for (subr, name) in subr::NAMES.iter().filter(|(subr, _)| !subr.is_walkers()) {
        let (args, done) = call(*subr);
        let is_place = matches!(done, Done::Text(_) | Done::Bytes(_)) || *subr == Subr::Alloca;
        let shown = |outcome: Outcome| match outcome.result {
            // What is there, not where it is.
            Ok(at) if is_place => {
                let at = usize::try_from(at.wrapping_sub(SCRATCH)).unwrap_or(0);
                let memory = outcome.scratch.get(at..).unwrap_or(&[]);
                Ok(memory.iter().take(16).copied().collect())
            }
            Ok(number) => Ok(number.to_ne_bytes().to_vec()),
            Err(stopped) => Err(stopped.trap),
        };
        // `strtok()` goes on if it is not given the string again.
        let next = match subr {
            Subr::Strtok => vec!["0".to_owned(), args[1].clone()],
            _ => args.clone(),
        };
        let once = shown(run(&asm(&program(*subr, &args)), name));
        let again = shown(run(&asm(&twice(*subr, &args, &next)), name));
        assert_eq!(
            again != once,
            subr.may_differ(),
            "{name}: {once:?} {again:?}"
        );
    }
}
