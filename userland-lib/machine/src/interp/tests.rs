// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

use super::names::{self, Frames};
use super::*;
use dtrace_compiler::options::Options;
use dtrace_engine::{Config, Consumer, Enabling, Features, Privileges};
use dtrace_uapi::interp::{NameHead, Word};
use zerocopy::IntoBytes as _;

/// The engine accepts every walker.
#[test]
fn walkers_are_verified() {
    let program = Compiler::new(&Nowhere)
        .compile(
            &Source::argument("BEGIN { ustack(); @[ustack(5), jstack(), ustack(90)] = count(); }"),
            &Settings::default(),
        )
        .unwrap();
    let furnished = Program {
        clauses: with_room(&program, 100),
        walkers: walkers(),
        ..Program::default()
    };
    let sizes = |program: &Program| -> Vec<u64> {
        let actions = &program.clauses[0].actions;
        actions.iter().map(|action| action.arg).collect()
    };
    assert_eq!(
        sizes(&program)[..4],
        [0, ustack_arg(5, 0), 0, ustack_arg(90, 0)]
    );
    assert_eq!(
        sizes(&furnished)[..4],
        [
            ustack_arg(0, 256),
            ustack_arg(5, 128),
            0,
            ustack_arg(90, 720)
        ]
    );
    let image = dtrace_compiler::dof::emit(&furnished, &Options::default().for_kernel());
    let enabling = Enabling::parse(&image).unwrap();
    assert_eq!(enabling.walkers().len(), ALL.len());
    let consumer = Consumer::new(Config {
        ncpus: 1,
        privileges: Privileges::ALL,
        features: Features {
            ustack: true,
            ..Features::default()
        },
        begin: 1,
        end: 2,
        error: 3,
        seed: 1,
        secret: 1,
        is_killed: || false,
    })
    .unwrap();
    let mut pending = consumer.prepare(&[], enabling.clauses()).unwrap();
    pending.add_walkers(enabling.walkers(), &consumer).unwrap();
}

struct Kept(Vec<u8>);

impl names::Source for Kept {
    fn names(&self, number: u32) -> Option<Vec<u8>> {
        (number == 5).then(|| self.0.clone())
    }
}

#[test]
fn names_are_shown_with_file_and_line() {
    let of = |walker: &str, [function, file, table]: [u16; 3], bytes: &[u8], word: Word| {
        let walker = ALL.iter().find(|runtime| runtime.name == walker);
        let head = NameHead {
            walker: walker.expect("a walker").number(),
            first: 10,
            sizes: [function, file, table, 0],
            ..NameHead::default()
        };
        let frames = Frames::default();
        frames.ask(Some(Box::new(Kept([head.as_bytes(), bytes].concat()))));
        frames.text(1, word, |_, path| std::fs::File::open(path))
    };
    let text = |sizes, bytes: &[u8], word| of("cpython-3.13.d", sizes, bytes, word);
    let word = Word {
        native: 0,
        position: 7,
        name: 5,
    };
    // A table that could not be read, and a format without one.
    assert_eq!(text([4, 4, 0], b"mainx.py", word), "main x.py");
    assert_eq!(
        of("php-8.4.d", [4, 5, 0], b"mainx.php", word),
        "main x.php:7"
    );
    assert_eq!(
        of("php-8.4.d", [4, 5, 5], b"mainx.phpThing", word),
        "Thing::main x.php:7"
    );
    assert_eq!(text([3, 0, 0], b"a\xc3\xbc", word), "aü");
    assert_eq!(text([2, 0, 0], b"a\xc3", word), "a");
    assert_eq!(text([4, 0, 0], "a\u{202e}".as_bytes(), word), "a?");
    assert_eq!(text([4, 0, 0], b"main", word), "main");
    assert_eq!(text([0, 4, 0], b"x.py", word), "? x.py");
    // Two units of line 10, eight of line 11.
    let table = b"mainx.py\x81\xdf\x00\x00";
    assert_eq!(text([4, 4, 4], table, word), "main x.py:11");
    let far = Word {
        position: 70,
        ..word
    };
    assert_eq!(text([4, 4, 4], table, far), "main x.py");
    assert_eq!(text([3, 0, 0], b"a\x1bb", word), "a?b");
    assert_eq!(text([4, 0, 0], b"gr\xfc\xdf", word), "grüß");
    assert_eq!(text([6, 0, 0], "grüß".as_bytes(), word), "grüß");
    assert_eq!(text([40, 0, 0], b"short", word), "?");
    let unknown = Word { name: 6, ..word };
    assert_eq!(text([4, 0, 0], b"main", unknown), "?");
}

#[test]
fn a_function_of_java_has_its_class() {
    let walker = ALL.iter().find(|runtime| runtime.name == "hotspot-21.d");
    let head = NameHead {
        walker: walker.expect("a walker").number(),
        sizes: [3, 6, 4, 9],
        ..NameHead::default()
    };
    let names = [head.as_bytes(), b"runA.java\xff\x01\x23\x00", b"a/b/C$Key"].concat();
    let frames = Frames::default();
    frames.ask(Some(Box::new(Kept(names))));
    let text = |position| {
        let word = Word {
            native: 0,
            position,
            name: 5,
        };
        frames.text(1, word, |_, path| std::fs::File::open(path))
    };
    assert_eq!(text(1), "a.b.C$Key.run A.java:17");
    assert_eq!(text(0), "a.b.C$Key.run A.java");
}

#[test]
fn loops_and_what_walkers_have_are_for_them_alone() {
    let refused = |text: &str| {
        let source = dtrace_compiler::source::Source::argument(text);
        let refused = Compiler::new(&Nowhere).compile(&source, &Settings::default());
        refused.unwrap_err().to_string()
    };
    assert!(refused("BEGIN { while (1) trace(1); }").starts_with("[D_SYNTAX]"));
    assert_eq!(
        refused("BEGIN { trace(__walk[0]); }"),
        "[D_IDENT_UNDEF] failed to resolve __walk: Unknown variable name"
    );
    assert_eq!(
        refused("BEGIN { __frame(0, 0, 0, 0, 0, 0, 0, 0); }"),
        "[D_FUNC_UNDEF] undefined function name: __frame"
    );
    let walker = |text: &str| {
        let source = dtrace_compiler::source::Source::argument(text);
        let settings = Settings {
            walker: true,
            ..Settings::default()
        };
        Compiler::new(&Nowhere).compile(&source, &settings)
    };
    let predicate = walker("dtrace:walker:: /1/ { __walk[0]; }").unwrap_err();
    assert_eq!(predicate.message, "a walker has no predicate");
    let loops =
        walker("dtrace:walker:: { while (__walk[0] < 3) { while (__walk[1]) ; } }").unwrap();
    let text = &loops.clauses[0].actions[0].difo.as_ref().unwrap().text;
    let count = text
        .iter()
        .filter(|i| i.op() == Some(dtrace_uapi::dif::Op::Loop));
    assert_eq!(count.count(), 2);
}

/// What V8's library has in addition to its exported numbers.
const V8: &str = r#"
int v8dbg_SmiShiftSize = 31;
const int size = 16;
__asm__(".text\n"
	".globl blob\n"
	"blob: .fill 16, 1, 0x90\n"
	".globl _ZN2v88internal23DefaultEmbeddedBlobCodeEv\n"
	"_ZN2v88internal23DefaultEmbeddedBlobCodeEv: lea blob(%rip), %rax\n"
	"ret\n"
	".globl _ZN2v88internal27DefaultEmbeddedBlobCodeSizeEv\n"
	"_ZN2v88internal27DefaultEmbeddedBlobCodeSizeEv: lea size(%rip), %rax\n"
	"ret\n");
"#;

#[test]
fn a_file_says_what_its_walker_wants() {
    let v8 = ALL
        .iter()
        .find(|runtime| runtime.name == "v8-11.d")
        .unwrap();
    let folder = dtrace_files::testing::Folder::new("v8");
    let numbers = v8
        .text
        .lines()
        .filter_map(|line| line.strip_prefix("#pragma walker numbers "));
    let names: Vec<&str> = numbers.flat_map(str::split_whitespace).collect();
    let source = |scope: i32| {
        let numbers = names.iter().enumerate().map(|(n, name)| match *name {
            "v8dbg_type_ScopeInfo__SCOPE_INFO_TYPE" => format!("int {name} = {scope};\n"),
            _ => format!("int {name} = {};\n", 2 * n as i32 - 3),
        });
        let mut numbers: Vec<String> = numbers.collect();
        numbers.sort();
        numbers.dedup();
        format!("{}{V8}", numbers.concat())
    };
    let told = |scope| {
        let file = folder.compile(&source(scope), &["-shared", "-fPIC", "-Wl,-Bsymbolic"]);
        let bytes = std::fs::read(file).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        let blob = object::Object::symbol_by_name(&file, "blob").unwrap();
        let blob = object::ObjectSymbol::address(&blob);
        (evaluators_of(&file), blob)
    };
    assert_eq!(told(0x106).0, None);
    let (bytes, blob) = told(0x105);
    let bytes = bytes.expect("it is V8");
    let evaluators = dtrace_unwind::Evaluators::new(&bytes).unwrap();
    assert_eq!(evaluators.walker(), v8.number());
    // The library's text is at the same offset in the file as in memory.
    let covered = [blob - 1, blob, blob + 15, blob + 16].map(|at| evaluators.cover(at));
    assert_eq!(covered, [false, true, true, false]);
    assert!(evaluators.have_made());
    let constants = [0, 1, 12].map(|n| evaluators.constant(n).map(|word| word as i64));
    assert_eq!(constants, [-3, -1, 21].map(Some));
    assert_eq!(evaluators.constant(names.len()), None);
}
