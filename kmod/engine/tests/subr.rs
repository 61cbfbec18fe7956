// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Subroutines and faults. Each is called from a program as compiled code would call it.

mod common;

use common::asm::{asm, asm_with, bytes, call_text, int, string};
use common::{action, clause, config, str_at, u64_at, Bench, Steps};
use dtrace_engine::{Activity, Consumer, FaultReport, Machine, Privileges, Which};
use dtrace_uapi::action::Action;
use dtrace_uapi::fault::Fault;
use dtrace_uapi::option::Opt;
use dtrace_uapi::subr::Subr;

const KSTR: u64 = 0xffff_8000_0001_0000;
const USTR: u64 = 0x40_0000;

fn bench(text: &str, is_string: bool) -> Bench {
    let ty = if is_string { string() } else { int(8) };
    let c = Consumer::new(config()).unwrap();
    c.set_option(Opt::Strsize, 32).unwrap();
    c.set_option(Opt::Destructive, 1).unwrap();
    let mut b = Bench::with(
        c,
        vec![clause(
            None,
            vec![action(Action::Difexpr, asm_with(text, ty, &[]))],
        )],
    );
    b.m.kernel.insert(KSTR, b"/usr/lib/libc.so.6\0".to_vec());
    b.m.kernel.insert(
        KSTR + 0x100,
        vec![192, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
    );
    b.m.kernel.insert(
        KSTR + 0x200,
        b"this string is longer than strsize allows\0".to_vec(),
    );
    for (at, text) in [
        (0x300, "[{\"a\": \"abcdefghijklmnopqrstuv\"}, 2]\0"),
        (0x400, "/abcdefgh/klmnopqrstuvwxyzabcdef/beyond\0"),
        (0x500, ",,,,,,,,abcdefghijklmnopqrstuvwxyz\0"),
    ] {
        b.m.kernel.insert(KSTR + at, text.into());
    }
    b.m.user
        .get_mut()
        .insert(USTR, b"from user space\0 and beyond".to_vec());
    b
}

fn str_of(subr: &str, args: &[&str]) -> String {
    let b = bench(&call_text(subr, args), true);
    assert_eq!(b.fire(), [None], "{subr} {args:?}");
    str_at(&b.read(Which::Principal).0, 16).to_string()
}

fn int_of(subr: &str, args: &[&str]) -> i64 {
    let b = bench(&call_text(subr, args), false);
    assert_eq!(b.fire(), [None], "{subr} {args:?}");
    u64_at(&b.read(Which::Principal).0, 16) as i64
}

fn fault_of(text: &str) -> FaultReport {
    bench(text, false).fire()[0].unwrap()
}

#[test]
fn strings() {
    let k = &KSTR.to_string()[..];
    assert_eq!(int_of("strlen", &[k]), 18);
    assert_eq!(int_of("strlen", &["\"\""]), 0);
    assert_eq!(str_of("strjoin", &["\"a, b\"", "\"cd\""]), "a, bcd");
    assert_eq!(str_of("basename", &[k]), "libc.so.6");
    assert_eq!(str_of("dirname", &[k]), "/usr/lib");
    assert_eq!(str_of("cleanpath", &["\"/a/./b//../c\""]), "/a/c");
    assert_eq!(str_of("strchr", &["\"hello\"", "108"]), "llo");
    assert_eq!(str_of("strrchr", &[k, "47"]), "/libc.so.6");
    assert_eq!(int_of("strchr", &["\"hello\"", "120"]), 0);
    assert_eq!(str_of("strstr", &[k, "\"lib/\""]), "lib/libc.so.6");
    assert_eq!(int_of("strstr", &[k, "\"nope\""]), 0);
    assert_eq!(str_of("substr", &["\"abcdef\"", "2"]), "cdef");
    assert_eq!(str_of("substr", &["\"abcdef\"", "-3", "2"]), "de");
    assert_eq!(int_of("index", &["\"banana\"", "\"an\""]), 1);
    assert_eq!(int_of("index", &["\"banana\"", "\"an\"", "2"]), 3);
    assert_eq!(int_of("rindex", &["\"banana\"", "\"an\""]), 3);
    assert_eq!(int_of("index", &["\"banana\"", "\"x\""]), -1);
    assert_eq!(str_of("toupper", &["\"MiXed1\""]), "MIXED1");
    assert_eq!(str_of("tolower", &["\"MiXed1\""]), "mixed1");
    assert_eq!(
        str_of(
            "json",
            &[
                "\"{'a': {'b': 5}}\"".replace('\'', "\"").as_str(),
                "\"a.b\""
            ]
        ),
        "5"
    );
}

#[test]
fn results_are_cut_off_at_strsize() {
    let long = (KSTR + 0x200).to_string();
    assert_eq!(int_of("strlen", &[&long]), 31);
    let joined = str_of("strjoin", &[&long, "\"x\""]);
    assert_eq!(joined, "this string is longer than strs");
}

/// `strsize` is 32 here, and includes the NUL of a result. An argument of which the result is a
/// part is read up to its 32nd character.
#[test]
fn parts_of_long_strings_keep_their_last_character() {
    let [long, list, path, token] = [0x200, 0x300, 0x400, 0x500].map(|at| (KSTR + at).to_string());
    for (subr, args, expected) in [
        ("substr", [&*long, "1"], "his string is longer than strsi"),
        ("substr", [&*long, "28"], "trsi"),
        ("substr", [&*long, "-1"], "i"),
        (
            "json",
            [&*list, "\"[0]\""],
            r#"{"a": "abcdefghijklmnopqrstuv"}"#,
        ),
        ("strtok", [&*token, "\",\""], "abcdefghijklmnopqrstuvwx"),
    ] {
        assert_eq!(str_of(subr, &args), expected, "{subr} {args:?}");
    }
    assert_eq!(str_of("basename", &[&path]), "klmnopqrstuvwxyzabcdef");
    assert_eq!(int_of("index", &[&long, "\"si\""]), 30);
    assert_eq!(int_of("rindex", &[&long, "\"i\""]), 31);
    assert_eq!(int_of("strrchr", &[&path, "102"]), (KSTR + 0x41f) as i64);
    assert_eq!(
        int_of("strstr", &[&path, "\"zabcdef\""]),
        (KSTR + 0x419) as i64
    );
    assert_eq!(int_of("strlen", &[&long]), 31);
}

#[test]
fn strtok_goes_on_where_it_was() {
    let next = |n: usize| {
        let mut text = "sets \"a:bb::ccc\", %r1\n sets \":\", %r2\n".to_string();
        for _ in 0..n {
            text += "flushts\n pushtv ctf, %r0, %r1\n pushtv ctf, %r0, %r2\n call strtok, %r3\n mov %r0, %r1\n";
        }
        text + "ret %r3"
    };
    for (n, want) in [(1, "a"), (2, "bb"), (3, "ccc")] {
        let b = bench(&next(n), true);
        assert_eq!(b.fire(), [None]);
        assert_eq!(str_at(&b.read(Which::Principal).0, 16), want);
    }
    for n in [4, 5] {
        let b = bench(&next(n), false);
        assert_eq!(b.fire(), [None]);
        assert_eq!(u64_at(&b.read(Which::Principal).0, 16), 0);
    }
    // It continues before the delimiter, in any clause of the probe.
    let first = call_text("strtok", &["\"ab,c;d\"", "\",\""]);
    let then = call_text("strtok", &["0", "\";\""]);
    let one = |text: &str| {
        clause(
            None,
            vec![action(Action::Difexpr, asm_with(text, string(), &[]))],
        )
    };
    let b = Bench::with(
        Consumer::new(config()).unwrap(),
        vec![one(&first), one(&then), one(&then)],
    );
    assert_eq!(b.fire(), [None, None, None]);
    let (data, _) = b.read(Which::Principal);
    let size = data.len() / 3;
    let tokens = [0, 1, 2].map(|n| str_at(&data, n * size + 16).to_string());
    assert_eq!(tokens, ["ab", ",c", "d"]);
    // A string of another firing cannot be continued.
    let b = Bench::with(
        Consumer::new(config()).unwrap(),
        vec![one(&then), one(&first)],
    );
    for _ in 0..2 {
        let faults = b.fire();
        let fault = faults[0].unwrap();
        assert_eq!((fault.fault, fault.value), (Fault::BadAddr, 0));
        assert_eq!(faults[1], None);
    }
    // Nor can a string that was never started.
    let fault = fault_of(&then);
    assert_eq!((fault.fault, fault.value), (Fault::BadAddr, 0));
}

#[test]
fn numbers() {
    assert_eq!(str_of("lltostr", &["-42"]), "-42");
    assert_eq!(str_of("lltostr", &["255", "16"]), "0xff");
    assert_eq!(int_of("strtoll", &["\"-0042abc\""]), -42);
    assert_eq!(int_of("strtoll", &["\"ff\"", "16"]), 255);
    assert_eq!(int_of("htons", &["0x1234"]), 0x3412);
    assert_eq!(int_of("ntohl", &["0x12345678"]), 0x7856_3412);
    assert_eq!(int_of("htonll", &["1"]), 1 << 56);
    assert_eq!(int_of("getmajor", &["0x00800003"]), 8);
    assert_eq!(int_of("getminor", &["0x00800003"]), 3);
    assert_eq!(int_of("progenyof", &["1"]), 1);
    assert_eq!(int_of("progenyof", &["77"]), 0);
    let b = bench(&call_text("rand", &[]), false);
    b.fire();
    b.fire();
    let data = b.read(Which::Principal).0;
    assert_ne!(u64_at(&data, 16), u64_at(&data, 40));
}

#[test]
fn addresses() {
    let k = &(KSTR + 0x100).to_string()[..];
    assert_eq!(str_of("inet_ntoa", &[k]), "192.0.2.1");
    assert_eq!(str_of("inet_ntop", &["2", k]), "192.0.2.1");
    assert_eq!(str_of("inet_ntop", &["10", k]), "c000:201::1");
    assert_eq!(
        str_of("link_ntop", &["1", k]),
        str_of("link_ntop", &["1", k]).to_lowercase()
    );
    assert_eq!(
        fault_of(&call_text("inet_ntop", &["7", k])).fault,
        Fault::IllOp
    );
    assert_eq!(
        fault_of(&call_text("lltostr", &["1", "99"])).fault,
        Fault::IllOp
    );
}

#[test]
fn user_memory() {
    let u = &USTR.to_string()[..];
    assert_eq!(str_of("copyinstr", &[u]), "from user space");
    assert_eq!(str_of("copyinstr", &[u, "5"]), "from");
    assert_eq!(str_of("copyin", &[u, "16"]), "from user space");
    let f = fault_of(&call_text("copyinstr", &["0x666"]));
    assert_eq!((f.fault, f.value), (Fault::BadAddr, 0x666));
    let f = fault_of(&call_text("copyin", &["0x666", "4"]));
    assert_eq!((f.fault, f.value), (Fault::BadAddr, 0x666));
    assert_eq!(
        fault_of(&call_text("copyin", &[u, "0x10000000"])).fault,
        Fault::NoScratch
    );
    let load = format!("setx {u}, %r1\n uldub [%r1], %r2\n ret %r2");
    let b = bench(&load, false);
    assert_eq!(b.fire(), [None]);
    assert_eq!(u64_at(&b.read(Which::Principal).0, 16), u64::from(b'f'));
    // alloca, copyinto, bcopy.
    let text = format!(
        "setx 32, %r1\n flushts\n pushtv ctf, %r0, %r1\n call alloca, %r2\n setx {u}, %r3\n setx 5, %r4\n\
         flushts\n pushtv ctf, %r0, %r3\n pushtv ctf, %r0, %r4\n pushtv ctf, %r0, %r2\n call copyinto, %r5\n\
         setx 16, %r5\n add %r2, %r5, %r5\n\
         flushts\n pushtv ctf, %r0, %r2\n pushtv ctf, %r0, %r5\n pushtv ctf, %r0, %r4\n call bcopy, %r6\n ret %r5"
    );
    let b = bench(&text, true);
    assert_eq!(b.fire(), [None]);
    assert_eq!(str_at(&b.read(Which::Principal).0, 16), "from ");
    // Neither range may exceed the allocated memory. A bad address is reported before a bad size.
    let scratch = |offset: u64| (0x8dd7_0000_0000_0000 + offset).to_string();
    let fault = |args: [&str; 3]| {
        let call = call_text("bcopy", &args).replace(
            "flushts",
            "setx 32, %r4\n allocs %r4, %r4\n setx 8, %r4\n allocs %r4, %r4\n flushts",
        );
        let fault = fault_of(&call);
        (fault.fault, fault.value)
    };
    let (low, high, top) = (scratch(0), scratch(32), scratch(40));
    for (args, value) in [
        ([&low, &high, "9"], 9),
        ([&high, &low, "9"], 9),
        ([&low, &low, "41"], 41),
        ([&low, &high, "-1"], u64::MAX),
    ] {
        assert_eq!(fault(args), (Fault::BadSize, value), "{args:?}");
    }
    for (args, address) in [
        ([&low[..], &top, "1"], &top),
        ([&top, &low, "1"], &top),
        (["0", &low, "1"], &"0".to_owned()),
    ] {
        let at = address.parse().unwrap();
        assert_eq!(fault(args), (Fault::BadAddr, at), "{args:?}");
    }
    // Only scratch memory can be written to.
    let k = KSTR.to_string();
    let f = fault_of(&call_text("bcopy", &[u, &k, "4"]));
    assert_eq!((f.fault, f.value), (Fault::BadAddr, KSTR));
    assert_eq!(
        fault_of(&call_text("copyinto", &[u, "4", &k])).fault,
        Fault::BadAddr
    );
}

#[test]
fn what_is_copied_may_overlap() {
    // More bytes than a string has, so that they are copied in up to three pieces; 27 of them are
    // checked, from `at` on.
    let pattern: Vec<u8> = (0..100).map(|n| b'!' + n % 90).collect();
    for (from, to, at) in [(0, 3, 3), (0, 3, 43), (0, 3, 56), (3, 0, 0), (3, 0, 53)] {
        let text = format!(
            "setx {USTR}, %r1\n setx 100, %r2\n flushts\n pushtv ctf, %r0, %r1\n pushtv ctf, %r0, %r2\n call copyin, %r3\n\
             setx {from}, %r4\n add %r3, %r4, %r4\n setx {to}, %r5\n add %r3, %r5, %r5\n setx 80, %r6\n\
             flushts\n pushtv ctf, %r0, %r4\n pushtv ctf, %r0, %r5\n pushtv ctf, %r0, %r6\n call bcopy, %r7\n\
             setx {at}, %r5\n add %r3, %r5, %r5\n ret %r5"
        );
        let mut b = bench(&text, true);
        b.m.user.get_mut().insert(USTR, pattern.clone());
        assert_eq!(b.fire(), [None]);
        let start = at + from - to;
        let (data, _) = b.read(Which::Principal);
        assert_eq!(data[16..43], pattern[start..start + 27], "{from} {to} {at}");
    }
}

#[test]
fn copyout_writes_to_the_user() {
    let u = &(USTR + 5).to_string()[..];
    let b = bench(&call_text("copyoutstr", &["\"USER\"", u, "32"]), false);
    assert_eq!(b.fire(), [None]);
    assert_eq!(&b.m.user.borrow()[&USTR][..11], b"from USER\0s");
}

#[test]
fn every_kind_of_fault() {
    for (text, fault, value, offset) in [
        (
            "setx 0x10, %r1\n ldub [%r1], %r1\n ret %r1",
            Fault::BadAddr,
            0x10,
            4,
        ),
        (
            "setx 0x8dd70f0000000000, %r1\n ldub [%r1], %r1\n ret %r1",
            Fault::BadAddr,
            0x8dd7_0f00_0000_0000,
            4,
        ),
        (
            "setx 8, %r1\n allocs %r1, %r1\n setx 1, %r2\n add %r1, %r2, %r1\n stw %r1, [%r1]\n ret %r1",
            Fault::BadAlign,
            0x8dd7_0000_0000_0001,
            16,
        ),
        // No memory is there, so this is a bad address, aligned or not.
        (
            "setx 0x8dd7000000000001, %r1\n stw %r1, [%r1]\n ret %r1",
            Fault::BadAddr,
            0x8dd7_0000_0000_0001,
            4,
        ),
        (
            "setx 0x1001, %r1\n stx %r1, [%r1]\n ret %r1",
            Fault::BadAddr,
            0x1001,
            4,
        ),
        (
            "setx 0x1000, %r1\n stx %r1, [%r1]\n ret %r1",
            Fault::BadAddr,
            0x1000,
            4,
        ),
        (
            "sets \"const\", %r1\n stb %r1, [%r1]\n ret %r1",
            Fault::BadAddr,
            0x8dd7_0100_0000_0001,
            4,
        ),
        (
            "setx 9, %r1\n ldga regs, %r1, %r1\n ret %r1",
            Fault::IllOp,
            9,
            4,
        ),
        ("urem %r1, %r0, %r1\n ret %r1", Fault::DivZero, 0, 0),
        (
            "setx 0x7fffffffffffffff, %r1\n allocs %r1, %r1\n ret %r1",
            Fault::NoScratch,
            0,
            4,
        ),
        ("rldub [%r0], %r1\n ret %r1", Fault::Kpriv, 0, 0),
    ] {
        let f = fault_of(text);
        assert_eq!(
            (f.fault, f.value, f.offset),
            (fault, value, offset),
            "{text}"
        );
    }
    let overflow = "pushtv ctf, %r0, %r0\n".repeat(9) + "ret %r0";
    let f = fault_of(&overflow);
    assert_eq!((f.fault, f.offset), (Fault::TupOflow, 32));
}

#[test]
fn stacks_are_values() {
    let value = |subr: &str, args: &[&str], frames: u32| {
        let size = 16 + 8 * frames;
        let program = asm_with(&call_text(subr, args), bytes(size), &[]);
        let consumer = Consumer::new(config()).unwrap();
        let mut b = Bench::with(
            consumer,
            vec![clause(None, vec![action(Action::Difexpr, program)])],
        );
        b.m.owned = true;
        assert_eq!(b.fire(), [None], "{subr} {args:?}");
        let data = b.read(Which::Principal).0;
        let words = (0..frames as usize).map(|n| u64_at(&data, 32 + 8 * n));
        let head: Vec<u32> = data[16..32]
            .chunks_exact(4)
            .map(|word| u32::from_ne_bytes(word.try_into().unwrap()))
            .collect();
        (head, words.collect::<Vec<_>>())
    };
    let pid = Bench::with(Consumer::new(config()).unwrap(), vec![])
        .m
        .pid();
    let (stack, ustack) = (Subr::Stack as u16, Subr::Ustack as u16);
    let (stack, ustack) = (&stack.to_string()[..], &ustack.to_string()[..]);
    assert_eq!(value(stack, &["2"], 2), (vec![2, 0, 0, 0], vec![11, 12]));
    assert_eq!(
        value(stack, &["5"], 5),
        (vec![3, 0, 0, 0], vec![11, 12, 13, 0, 0])
    );
    assert_eq!(
        value(ustack, &["3", "42"], 3),
        (vec![2, 1, pid, 42], vec![21, 22, 0])
    );
    // The room for frames of interpreted code holds nothing: no walkers are enabled.
    assert_eq!(
        value(stack, &["2", "3"], 5),
        (vec![2, 0, 0, 0], vec![11, 12, 0, 0, 0])
    );
    assert_eq!(
        value(ustack, &["3", "42", "256"], 259).1,
        [vec![21, 22], vec![0; 257]].concat()
    );
    for (subr, args) in [(stack, &["2", "257"][..]), (ustack, &["2", "0", "257"])] {
        let f = fault_of(&call_text(subr, args));
        assert_eq!((f.fault, f.value), (Fault::BadSize, 257));
    }
    for frames in ["0", "1025", "18446744073709551615"] {
        let f = fault_of(&call_text(stack, &[frames]));
        assert_eq!(
            (f.fault, f.value),
            (Fault::BadSize, frames.parse().unwrap())
        );
    }
}

#[test]
fn without_privileges_the_kernel_and_other_users_are_out_of_reach() {
    let powerless = || {
        let privileges = Privileges {
            kernel: false,
            kernel_memory: false,
            all_users: false,
            user_memory: true,
            destructive: false,
        };
        Consumer::new(dtrace_engine::Config {
            privileges,
            ..config()
        })
        .unwrap()
    };
    // At `END`, which fires for the consumer in whichever process it is called.
    let fire = |text: &str, owned: bool| {
        let c = powerless();
        let mut b = Bench::with(
            c,
            vec![clause(None, vec![action(Action::Difexpr, asm(text))])],
        );
        b.m.owned = owned;
        b.m.user.get_mut().insert(USTR, b"user\0\0\0\0".to_vec());
        b.ecbs[0].probe = common::END;
        b.consumer.cool_down();
        b.fire()[0].map(|f| f.fault)
    };
    assert_eq!(
        fire("setx 0x1234, %r1\n ldx [%r1], %r1\n ret %r1", true),
        Some(Fault::Kpriv)
    );
    assert_eq!(
        fire(&call_text("strlen", &["0x1234"]), true),
        Some(Fault::Kpriv)
    );
    for name in ["curthread", "caller", "stackdepth"] {
        assert_eq!(
            fire(&format!("ldgs {name}, %r1\n ret %r1"), true),
            Some(Fault::Kpriv)
        );
    }
    let stack = |subr: Subr, args: &[&str]| call_text(&(subr as u16).to_string(), args);
    let (kernel, user) = (stack(Subr::Stack, &["1"]), stack(Subr::Ustack, &["1", "0"]));
    assert_eq!(fire(&kernel, true), Some(Fault::Kpriv));
    assert_eq!(
        (fire(&user, true), fire(&user, false)),
        (None, Some(Fault::Upriv))
    );
    let load = format!("setx {USTR}, %r1\n uldx [%r1], %r1\n ret %r1");
    assert_eq!(
        (fire(&load, true), fire(&load, false)),
        (None, Some(Fault::Upriv))
    );
    let copyin = call_text("copyinstr", &[&USTR.to_string()]);
    assert_eq!(
        (fire(&copyin, true), fire(&copyin, false)),
        (None, Some(Fault::Upriv))
    );
    // The engine's own memory can be read.
    assert_eq!(fire(&call_text("strlen", &["\"text\""]), false), None);
    // In a process that the consumer may not trace, only the consumer's own probes and those that
    // are about no process fire.
    let fire = |text: &str, owned: bool, of_nobody: bool| {
        let c = powerless();
        let one = action(Action::Difexpr, asm(text));
        let mut b = Bench::with(c, vec![clause(None, vec![one])]);
        (b.m.owned, b.m.of_nobody) = (owned, of_nobody);
        b.m.user.get_mut().insert(USTR, b"user\0\0\0\0".to_vec());
        let fault = b.fire()[0].map(|f| f.fault);
        (fault, b.read(Which::Principal).0.len())
    };
    let pid = "ldgs pid, %r1\n ret %r1";
    assert_eq!(fire(pid, true, false), (None, 24));
    assert_eq!(fire(pid, false, false), (None, 0));
    assert_eq!(fire(pid, false, true), (None, 24));
    assert_eq!(fire(&load, true, true), (None, 24));
    for text in [&load, &copyin, &user] {
        assert_eq!(fire(text, false, true).0, Some(Fault::Upriv));
    }
    assert_eq!(fire(&kernel, false, true).0, Some(Fault::Kpriv));
}

#[test]
fn a_string_ends_where_memory_does() {
    let b = bench("setx 0x9000, %r1\n ret %r1", true);
    let mut b = b;
    b.m.kernel.insert(0x9000, b"no nul".to_vec());
    let f = b.fire()[0].unwrap();
    assert_eq!((f.fault, f.value), (Fault::BadAddr, 0x9006));
}

/// Makes a clause that evaluates `text`, and another clause. There are two strings in kernel
/// memory: the first contains the second except for its last byte.
fn long_strings(text: &str) -> Bench {
    with_long_strings(&[text, "setx 7, %r1\n ret %r1"], false)
}

/// Makes clauses that evaluate `texts`, with these strings.
fn with_long_strings(texts: &[&str], destructive: bool) -> Bench {
    let c = Consumer::new(config()).unwrap();
    c.set_option(Opt::Strsize, 64 << 10).unwrap();
    c.set_option(Opt::Destructive, destructive.into()).unwrap();
    let one = |text: &&str| clause(None, vec![action(Action::Difexpr, asm(text))]);
    let mut b = Bench::with(c, texts.iter().map(one).collect());
    let mut hay = vec![b'a'; 60_000];
    hay.push(0);
    let mut needle = hay[..30_000].to_vec();
    needle.extend(b"b\0");
    b.m.kernel.insert(KSTR, hay);
    b.m.kernel.insert(KSTR + 0x10_0000, needle);
    b
}

#[test]
fn a_firing_that_would_take_too_long_faults() {
    let (hay, needle) = (KSTR.to_string(), (KSTR + 0x10_0000).to_string());
    let strlen = call_text("strlen", &[&hay]);
    let (strlen, ret) = strlen.split_at(strlen.len() - " ret %r1".len());
    for text in [
        call_text("strstr", &[&hay, &needle]),
        call_text("index", &[&hay, &needle]),
        call_text("rindex", &[&hay, &needle]),
        strlen.repeat(100) + ret,
        // Walks of a stack, and from parent to parent; a single instruction does each.
        "ldgs stackdepth, %r1\n ".repeat(20_000) + ret,
        "ldgs ustackdepth, %r1\n ".repeat(24_000) + ret,
        "ldgs caller, %r1\n ".repeat(24_000) + ret,
        "ldgs ucaller, %r1\n ".repeat(24_000) + ret,
        call_text("progenyof", &["77"]).replace(ret, "").repeat(70) + ret,
    ] {
        let b = long_strings(&text);
        for _ in 0..2 {
            let faults = b.fire();
            let first = faults[0].map(|report| report.fault);
            // The next clause has a budget of its own.
            assert_eq!(
                (first, faults[1]),
                (Some(Fault::Overrun), None),
                "{text:.60}"
            );
        }
    }
    for text in [call_text("strstr", &[&hay, &hay]), strlen.repeat(50) + ret] {
        assert_eq!(long_strings(&text).fire(), [None, None], "{text:.60}");
    }
}

#[test]
fn a_firing_of_many_heavy_clauses_ends_the_consumer() {
    let heavy = call_text(
        "strstr",
        &[&KSTR.to_string(), &(KSTR + 0x10_0000).to_string()],
    );
    let after = |clauses: usize, destructive: bool, firings: usize| {
        let b = with_long_strings(&vec![&*heavy; clauses], destructive);
        let faults = (0..firings).flat_map(|_| b.fire());
        (faults.flatten().count(), b.consumer.activity())
    };
    assert_eq!(after(16, false, 3), (48, Activity::Active));
    assert_eq!(after(17, false, 3), (17, Activity::Killed));
    assert_eq!(after(40, false, 1), (17, Activity::Killed));
    assert_eq!(after(40, true, 2), (80, Activity::Active));
}

#[test]
fn scratch_memory_is_what_was_allocated_of_it() {
    let alloca = |then: &str| {
        format!(
            "setx 20, %r1\n allocs %r1, %r2\n setx 10, %r1\n allocs %r1, %r3\n {then}\n ret %r1"
        )
    };
    let bad = |then: &str| fault_of(&alloca(then)).fault;
    // The last allocation ends 10 bytes after its start, far below the end of scratch memory.
    for then in [
        "setx 10, %r4\n add %r3, %r4, %r3\n ldub [%r3], %r1",
        "setx 8, %r4\n add %r3, %r4, %r3\n ldx [%r3], %r1",
        "setx 16, %r4\n add %r3, %r4, %r3\n stx %r1, [%r3]",
        "setx 20, %r4\n copys %r3, %r4, %r2",
        "setx 20, %r4\n copys %r2, %r4, %r3",
    ] {
        assert_eq!(bad(then), Fault::BadAddr, "{then}");
    }
    for then in [
        "setx 8, %r4\n add %r3, %r4, %r3\n lduh [%r3], %r1",
        "setx 16, %r4\n add %r2, %r4, %r2\n ldx [%r2], %r1",
        "setx 10, %r4\n copys %r2, %r4, %r3",
    ] {
        assert_eq!(bench(&alloca(then), false).fire(), [None], "{then}");
    }
    // Memory that one clause has allocated is gone in the next.
    let c = Consumer::new(config()).unwrap();
    let global = [common::asm::var(0x500, 0, int(8))];
    let one = |text: &str| {
        clause(
            None,
            vec![action(Action::Difexpr, asm_with(text, int(8), &global))],
        )
    };
    let b = Bench::with(
        c,
        vec![
            one("setx 20, %r1\n allocs %r1, %r2\n stgs %r2, 0x500\n ret %r2"),
            one("ldgs 0x500, %r1\n ldub [%r1], %r1\n ret %r1"),
        ],
    );
    let faults: Vec<_> = b.fire().iter().map(|f| f.map(|f| f.fault)).collect();
    assert_eq!(faults, [None, Some(Fault::BadAddr)]);
}

#[test]
fn the_state_of_locks_is_read() {
    let lock = KSTR + 0x1000;
    let at = lock.to_string();
    let ask = |subr: &str, memory: &[u8]| {
        let mut b = bench(&call_text(subr, &[&at]), false);
        b.m.kernel.insert(lock, memory.to_vec());
        assert_eq!(b.fire(), [None], "{subr}");
        u64_at(&b.read(Which::Principal).0, 16)
    };
    let me = common::machine::TestMachine::default().thread;
    let [mine, others, free] = [me | 1, me + 0x40, 0].map(|word: u64| word.to_ne_bytes());
    let mutex = |subr: &str| [&mine, &others, &free].map(|memory| ask(subr, memory));
    assert_eq!(mutex("mutex_owned"), [1, 0, 0]);
    assert_eq!(mutex("mutex_owner"), [me, me + 0x40, 0]);
    assert_eq!(mutex("mutex_type_adaptive"), [1, 1, 1]);
    assert_eq!(mutex("mutex_type_spin"), [0, 0, 0]);
    let rw =
        |subr: &str| [[0, 0, 0], [1, 0, 0], [1, 0, 1], [0, 1, 0]].map(|memory| ask(subr, &memory));
    assert_eq!(rw("rw_read_held"), [0, 1, 1, 0]);
    assert_eq!(rw("rw_write_held"), [0, 0, 0, 1]);
    assert_eq!(rw("rw_iswriter"), [0, 0, 1, 1]);
    for subr in ["mutex_owner", "mutex_type_adaptive", "rw_iswriter"] {
        let fault = fault_of(&call_text(subr, &["64"]));
        assert_eq!((fault.fault, fault.value), (Fault::BadAddr, 64), "{subr}");
    }
}
