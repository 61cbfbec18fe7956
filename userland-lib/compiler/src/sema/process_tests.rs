// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Descriptions of probes in the fixture's process and in running processes.

use crate::compile::{Compiler, ProbeSpec, Settings};
use crate::fixture::Little;
use crate::sema::description;
use crate::source::Source;
use crate::world::{ArgInfo, ProbeInfo, ProbeSource, Symbol, SymbolSource};
use dtrace_objects::pattern::ProbePattern;
use dtrace_objects::pid::*;
use dtrace_objects::processes::{ProcessSource, Unmade};
use dtrace_types::btf::Btf;
use dtrace_types::TypeSource;
use dtrace_uapi::types::ProbeId;
use std::io;
use std::sync::Arc;

fn pattern(text: &str) -> ProbePattern {
    description(text, ProbeSpec::Name).expect("a description")
}

fn resolved<S: ProcessSource>(source: &S, text: &str) -> Resolved {
    let resolved = resolve(source, &pattern(text));
    resolved.expect("a good description").expect("of a process")
}

/// Returns the resolved description and the places of `text` in the fixture's process.
fn shown(text: &str) -> (String, Vec<String>) {
    let Resolved {
        pattern, places, ..
    } = resolved(&Little::default(), text);
    let place = |place: &Place| {
        let Place { object, func, .. } = place;
        let (name, offset) = (&object.name, place.offset);
        format!("{name}:{func}:{}@{offset:x}", place.kind)
    };
    (pattern.to_string(), places.iter().map(place).collect())
}

#[test]
fn what_is_spelled_out_is_one_place_under_its_own_name() {
    for (text, description, place) in [
        (
            "pid7:a.out:main:entry",
            "pid7:prog:main:entry",
            "prog:main:entry@1000",
        ),
        (
            "pid7:prog:main:return",
            "pid7:prog:main:return",
            "prog:main:return@1000",
        ),
        ("pid7:/bin/prog:go:7", "pid7:prog:go:7", "prog:go:7@100f"),
        (
            "pid7:prog:_go:entry",
            "pid7:prog:go:entry",
            "prog:go:entry@1008",
        ),
        ("pid7::_go:0x4", "pid7::go:4", "prog:go:4@100c"),
        (
            "pid007:libc:_exit:00",
            "pid7:libc.so.6:_exit:0",
            "libc.so.6:_exit:0@1000",
        ),
        (
            "pid7:libc.so:_exit:entry",
            "pid7:libc.so.6:_exit:entry",
            "libc.so.6:_exit:entry@1000",
        ),
        (
            "pid7:libc.so.6:_exit:entry",
            "pid7:libc.so.6:_exit:entry",
            "libc.so.6:_exit:entry@1000",
        ),
        (
            "pid7:prog:main.cold:entry",
            "pid7:prog:main.cold:entry",
            "prog:main.cold:entry@1010",
        ),
        (
            "pid7:a.out:-:401001",
            "pid7:prog:-:401001",
            "prog:-:401001@1001",
        ),
        // This address is outside of all functions.
        (
            "pid7::-:0x40101a",
            "pid7:prog:-:40101a",
            "prog:-:40101a@101a",
        ),
    ] {
        let expected = (description.to_owned(), vec![place.to_owned()]);
        assert_eq!(shown(text), expected, "{text}");
    }
}

#[test]
fn what_is_left_open_is_what_there_is() {
    let main = [
        "return@1000",
        "entry@1000",
        "0@1000",
        "1@1001",
        "4@1004",
        "6@1006",
        "7@1007",
    ];
    let all = main.map(|name| format!("prog:main:{name}"));
    assert_eq!(
        shown("pid7:a.out:main:"),
        ("pid7:prog:main:".to_owned(), all.into())
    );
    for (text, places) in [
        (
            "pid7:::entry",
            &[
                "prog:main:entry@1000",
                "prog:go:entry@1008",
                "libc.so.6:_exit:entry@1000",
            ][..],
        ),
        (
            "pid7:p*:*o:[re]*",
            &["prog:go:return@1008", "prog:go:entry@1008"],
        ),
        (
            "pid7:*:main:[!0-4]",
            &["prog:main:6@1006", "prog:main:7@1007"],
        ),
        (
            "pid7:lib*::[46]",
            &["libc.so.6:_exit:4@1004", "libc.so.6:_exit:6@1006"],
        ),
        ("pid7:prog:_*:entry", &["prog:_go:entry@1008"]),
        ("pid7:libm:sin:entry", &[]),
        ("pid7:lib:_exit:entry", &[]),
        ("pid7::sin:entry", &[]),
        ("pid7:prog:x*:2", &[]),
    ] {
        let (description, found) = shown(text);
        assert_eq!(
            (description.as_str(), found),
            (text, places.iter().map(|p| (*p).to_owned()).collect())
        );
    }
}

#[test]
fn parts_that_compilers_make_are_told_from_names_with_dots() {
    for part in [
        "main.cold",
        "f.cold.3",
        "f.isra.0",
        "f.constprop.0.isra.1",
        "f.part.0.cold",
        "f.llvm.123",
        "read.localalias",
        "_ZN1a1bE.lto_priv.0",
    ] {
        assert!(is_part(part), "{part}");
    }
    for whole in [
        "main",
        "main.main",
        "runtime.(*mheap).alloc",
        "main.part",
        "main.llvm.x",
        "cold",
        "_$LT$a..b$GT$::fmt",
        "",
    ] {
        assert!(!is_part(whole), "{whole}");
    }
}

#[test]
fn only_the_word_and_a_number_name_a_process() {
    for text in [
        "pid:::",
        "pid7x:::",
        "pidgin7:::",
        "p*d7:::",
        "pid[7]:::",
        "mypid7:::",
        "fbt:::",
        ":::",
    ] {
        let resolved = resolve(&Little::default(), &pattern(text)).expect(text);
        assert_eq!(resolved, None, "{text}");
    }
}

/// A kernel that has every probe, including those in processes.
struct Able(Little, Option<Unmade>);

impl ProbeSource for Able {
    fn matching(&self, pattern: &ProbePattern, _limit: usize) -> Vec<ProbeInfo> {
        let pattern = pattern.clone();
        vec![ProbeInfo {
            id: 1,
            provider: pattern.provider,
            module: pattern.module,
            func: pattern.func,
            name: pattern.name,
        }]
    }

    fn argument(&self, _id: ProbeId, _index: u32) -> Option<ArgInfo> {
        None
    }
}

impl TypeSource for Able {
    fn btf(&self, module: &str) -> Option<Arc<Btf>> {
        self.0.btf(module)
    }

    fn modules(&self) -> Vec<String> {
        self.0.modules()
    }
}

impl SymbolSource for Able {
    fn symbol(&self, module: Option<&str>, name: &str) -> Option<Symbol> {
        self.0.symbol(module, name)
    }
}

impl ProcessSource for Able {
    fn objects(&self, pid: u32) -> io::Result<Vec<Object>> {
        self.0.objects(pid)
    }

    fn code(&self, object: &Object) -> io::Result<Code> {
        self.0.code(object)
    }

    fn make(&self, pid: u32, places: &[Place]) -> Result<(), Unmade> {
        assert_eq!((pid, places.is_empty()), (7, false));
        self.1.clone().map_or(Ok(()), Err)
    }
}

#[test]
fn what_is_in_no_file_is_meant_by_its_name_alone() {
    let description = "pid7:anon:-:70000010".to_owned();
    let place = "anon:-:70000010@70000010".to_owned();
    assert_eq!(shown("pid7:anon:-:0x70000010"), (description, vec![place]));
    let refused = |text: &str| resolve(&Little::default(), &pattern(text)).expect_err("none");
    let outside = refused("pid7:anon:-:70001000");
    assert!(matches!(outside, Error::Offset { offset, .. } if offset == 0x7000_1000));
    assert!(matches!(
        refused("pid7:anon:main:entry"),
        Error::Object { .. }
    ));
    assert!(matches!(refused("pid7:vdso:-:0"), Error::AddressModule));
    assert_eq!(shown("pid7:an*:main:entry").1, Vec::<String>::new());
}

#[test]
fn what_the_kernel_refuses_has_its_reason() {
    let why = |is_denied, at, why: &str| {
        let why = why.to_owned();
        let able = Able(
            Little::default(),
            Some(Unmade {
                at,
                why,
                is_denied,
                is_limit: false,
            }),
        );
        let source = Source::argument("pid7:a.out:_go:0x04 { }");
        let refused = Compiler::new(&able).compile(&source, &Settings::default());
        let diagnostic = refused.expect_err("a refusal");
        (diagnostic.tag, diagnostic.message)
    };
    let text = "failed to grab process 7: no right".to_owned();
    assert_eq!(why(true, None, "no right"), ("D_PROC_GRAB", text));
    let text = "failed to create probes at 'go+0x4': a user may have 5 places".to_owned();
    let refused = why(false, Some(0), "a user may have 5 places");
    assert_eq!(refused, ("D_PROC_CREATEFAIL", text));
}

#[test]
fn a_clause_is_for_the_probes_as_the_kernel_calls_them() {
    let able = Able(Little::default(), None);
    let text = "BEGIN, pid7:libc:_exit:entry, pid7:a.out:_go:0x04, pidgin7:a.out::entry { }";
    let program = Compiler::new(&able).compile(&Source::argument(text), &Settings::default());
    let clauses = program.expect("a program").clauses;
    let probes: Vec<String> = clauses.iter().map(|c| c.probes.to_string()).collect();
    let expected = [
        ":::BEGIN",
        "pid7:libc.so.6:_exit:entry",
        "pid7:prog:go:4",
        "pidgin7:a.out::entry",
    ];
    assert_eq!(probes, expected);
}

#[test]
fn a_pattern_is_one_description_for_all_watched_processes() {
    let able = Able(Little::default(), None);
    let settings = Settings {
        processes: vec![7],
        ..Settings::default()
    };
    for (text, enabled) in [
        ("pid*:libc:_exit:entry", "pid*:libc.so.6:_exit:entry"),
        ("p*d7:a.out:_go:0x04", "p*d7:prog:go:4"),
        ("p*:a.out:_go:0x04", "p*:a.out:_go:0x04"),
        ("pid8*:a.out:_go:0x04", "pid8*:a.out:_go:0x04"),
    ] {
        let program = Compiler::new(&able).compile(&Source::argument(text), &settings);
        let program = program.expect("a program");
        let [clause] = &program.clauses[..] else {
            panic!("{text}: one clause expected");
        };
        assert_eq!(clause.probes.to_string(), enabled, "{text}");
        let written: Vec<u32> = program.processes.iter().map(|d| d.pid).collect();
        let is_meant = enabled != text;
        assert_eq!(written, if is_meant { vec![7] } else { vec![] }, "{text}");
    }
}

#[test]
fn what_comes_later_is_what_was_not_there_before() {
    let objects = Little::default().objects(7).expect("objects");
    let new = |text: &str, seen: &[Object]| {
        let new = named_anew(&pattern(text), &objects, seen).into_iter();
        new.map(|object| object.name).collect::<Vec<_>>()
    };
    let program = &objects[..1];
    assert_eq!(new("pid7:libc:go:entry", program), ["libc.so.6"]);
    assert_eq!(new("pid7:libc:go:entry", &objects), [""; 0]);
    assert_eq!(new("pid7:a.out:go:entry", program), [""; 0]);
    assert_eq!(new("pid7:a.out:go:entry", &[]), ["prog"]);
    assert_eq!(new("pid7::-:40", &[]), ["prog"]);
    assert_eq!(new("pid7:lib*:go:entry", program).len(), objects.len() - 1);
}

/// A process whose program is one function with this name and code, at 0x1000 in the file.
struct One(&'static str, Vec<u8>);

impl ProcessSource for One {
    fn objects(&self, pid: u32) -> io::Result<Vec<Object>> {
        Little::default().objects(pid)
    }

    fn code(&self, _object: &Object) -> io::Result<Code> {
        let function = Function {
            name: self.0.to_owned(),
            address: 0x40_1000,
            size: self.1.len() as u64,
            binding: Binding::Global,
        };
        let text = Text {
            address: 0x40_1000,
            offset: 0x1000,
            bytes: self.1.clone(),
        };
        Ok(Code::new(vec![function], vec![text], Instructions::X86(64)))
    }
}

/// Returns such a process with a function `f`.
fn f(code: &[u8]) -> One {
    One("f", code.to_vec())
}

#[test]
fn there_is_an_end_to_what_one_description_may_name() {
    let long = One("long", vec![0x90; PLACES_MAX + 1]);
    let five = resolved(&long, "pid7:a.out:long:????[0-9a-f]");
    assert_eq!(five.places.len(), PLACES_MAX - 0x1_0000);
    let error = resolve(&long, &pattern("pid7:a.out:long:")).unwrap_err();
    assert_eq!(error.tag(), "D_PROC_CREATEFAIL");
    let expected = "failed to create probes at 'long+0xfffff': more probes in one description than are possible";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn a_function_returns_by_each_way_out_of_it() {
    let sites = |code: &[u8]| {
        let found = resolved(&f(code), "pid7:a.out:f:return");
        found.places[0].sites.clone()
    };
    // je to the ret; jmp to elsewhere; ret
    assert_eq!(
        sites(&[0x74, 0x05, 0xe9, 0, 0x10, 0, 0, 0xc3]),
        [0x1002, 0x1007]
    );
    // jmp within; jne to elsewhere; jmp *%rax; ret $8
    assert_eq!(
        sites(&[0xeb, 0x00, 0x75, 0x40, 0xff, 0xe0, 0xc2, 8, 0]),
        [0x1002, 0x1004, 0x1006]
    );
    // notrack jmp *%rax, which uprobes refuse; ret
    assert_eq!(sites(&[0x3e, 0xff, 0xe0, 0xc3]), [0x1000, 0x1003]);
    let error = resolve(&f(&[0xeb, 0xfe]), &pattern("pid7:a.out:f:return")).unwrap_err();
    assert_eq!(error.tag(), "D_PROC_CREATEFAIL");
    assert_eq!(
        error.to_string(),
        "failed to create return probe for 'f': the function never returns"
    );
}

#[test]
fn what_cannot_be_probed_is_refused_or_left_out() {
    // hlt; vmovdqu %ymm0,(%rdi); syscall; ret
    let source = f(&[0xf4, 0xc5, 0xfe, 0x7f, 0x07, 0x0f, 0x05, 0xc3]);
    for (name, why) in [("0", "is privileged"), ("5", "is a system call")] {
        let error = resolve(&source, &pattern(&format!("pid7:a.out:f:{name}"))).unwrap_err();
        assert_eq!(error.tag(), "D_PROC_CREATEFAIL");
        let expected = format!("failed to create probes at 'f+0x{name}': the instruction {why}");
        assert_eq!(error.to_string(), expected);
    }
    let error = resolve(&source, &pattern("pid7:a.out:f:entry")).unwrap_err();
    let expected = "failed to create entry probe for 'f': the instruction is privileged";
    assert_eq!(error.to_string(), expected);
    let error = resolve(&source, &pattern("pid7:a.out:-:401005")).unwrap_err();
    let expected = "failed to create probes at '-+0x401005': the instruction is a system call";
    assert_eq!(error.to_string(), expected);
    let endless = resolved(&f(&[0xeb, 0xfe]), "pid7:a.out::return");
    assert_eq!((endless.places.len(), endless.left_out), (0, 0));
    for (text, left_out) in [("pid7:a.out:f:", 3), ("pid7:a.out::entry", 1)] {
        let found = resolved(&source, text);
        assert_eq!(found.left_out, left_out, "{text}");
        assert!(found.places.iter().all(|place| !place.sites.is_empty()));
    }
}

#[test]
fn the_kernel_is_told_names_and_addresses() {
    let main = resolved(&Little::default(), "pid7:a.out:main:[re]*");
    let places = [
        main.places,
        resolved(&Little::default(), "pid7::-:0x401001").places,
    ]
    .concat();
    let request = Request::new(&places);
    let names = |probe: &dtrace_uapi::process::Probe| {
        let name = |from: u32| {
            let text = &request.text[from as usize..];
            let end = text.iter().position(|c| *c == 0).expect("an end");
            std::str::from_utf8(&text[..end]).expect("text")
        };
        [probe.module, probe.func, probe.name].map(name).join(":")
    };
    let told: Vec<_> = request
        .probes
        .iter()
        .map(|p| (p.kind, names(p), p.start, p.size, p.first, p.nsites))
        .collect();
    let (start, size) = (0x40_1000, 8);
    let expected = [
        (1, "prog:main:return".to_owned(), start, size, 0, 1),
        (0, "prog:main:entry".to_owned(), start, size, 1, 1),
        (3, "prog:-:401001".to_owned(), 0, 0, 2, 1),
    ];
    assert_eq!(told, expected);
    assert_eq!(request.sites, [0x40_1007, 0x40_1000, 0x40_1001]);
    assert_eq!(request.place_of(2), Some(2));
    assert_eq!(request.place_of(3), None);
    // No probe is made in code that the process has not mapped.
    let mut away = places;
    for place in &mut away {
        let mut object = (*place.object).clone();
        object.code.clear();
        place.object = object.into();
    }
    assert_eq!(Request::new(&away), Request::default());
}

#[test]
fn many_are_told_in_parts_of_whole_functions() {
    let many = |name, size| {
        let long = One(name, vec![0x90; size]);
        resolved(&long, &format!("pid7:a.out:{name}:")).places
    };
    let sizes = |places: &[Place]| parts(places).map(<[Place]>::len).collect::<Vec<_>>();
    assert_eq!(sizes(&[]), [0; 0]);
    let mut places = many("one", 10_000);
    assert_eq!(sizes(&places), [10_001]);
    // All of these functions have the same address but different sizes.
    places.extend(many("two", 10_001));
    places.extend(many("three", 40_000));
    places.extend(many("four", 1));
    assert_eq!(sizes(&places), [10_001, 10_002, 16_384, 16_384, 7_235]);
    let whole: Vec<Place> = parts(&places).flatten().cloned().collect();
    assert_eq!(whole, places);
}

#[test]
fn instructions_follow_each_other_as_the_machine_has_it() {
    let function = |size| Function {
        name: "f".to_owned(),
        address: 0x10,
        size,
        binding: Binding::Local,
    };
    let offsets = |bytes: &[u8], size, instructions| -> Vec<u64> {
        let text = Text {
            address: 0x10,
            offset: 0,
            bytes: bytes.to_vec(),
        };
        let code = Code::new(vec![function(size)], vec![text], instructions);
        code.instructions(&function(size)).collect()
    };
    // inc %eax; nop in 32-bit code. In 64-bit code the first byte is a prefix.
    assert_eq!(offsets(&[0x40, 0x90], 2, Instructions::X86(32)), [0, 1]);
    assert_eq!(offsets(&[0x40, 0x90], 2, Instructions::X86(64)), [0]);
    // An invalid or incomplete instruction ends the list.
    assert_eq!(offsets(&[0x90, 0x06, 0x90], 3, Instructions::X86(64)), [0]);
    assert_eq!(offsets(&[0x90, 0xe8, 0, 0], 4, Instructions::X86(64)), [0]);
    assert_eq!(offsets(&[0; 12], 12, Instructions::Words), [0, 4, 8]);
    // A function may claim more code than the text has.
    assert_eq!(
        offsets(&[0x90; 3], u64::MAX, Instructions::X86(64)),
        [0, 1, 2]
    );
}

#[test]
fn an_address_is_of_the_first_function_that_reaches_over_it() {
    let mut random = 7u64;
    let mut next = |most: u64| {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1);
        (random >> 33) % most
    };
    for _ in 0..200 {
        let mut functions = Vec::new();
        for n in 0..next(12) {
            functions.push(Function {
                name: n.to_string(),
                address: 0x100 + next(60),
                size: 1 + next(20) * next(2) + next(4),
                binding: Binding::Local,
            });
        }
        let text = Text {
            address: 0x100,
            offset: 0,
            bytes: vec![0x90; 100],
        };
        let code = Code::new(functions, vec![text], Instructions::X86(64));
        let all: Vec<&Function> = code.functions().flatten().collect();
        for address in 0xf0..0x180 {
            let has = |f: &&&Function| (f.address..f.address + f.size).contains(&address);
            let first = all.iter().find(has).copied();
            assert_eq!(code.function_at(address), first, "{address:#x} in {all:?}");
        }
    }
}
