// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Tests: inlined functions at addresses of running processes, whatever has happened to their
//! files.

use super::Inlines;
use crate::proc::Target;
use crate::symbols::{demangled, mappings_of, UserSymbols};
use dtrace_compiler::options::EvalTime;
use dtrace_files::testing::{address, chain_text, Folder, INLINED};
use object::{Object as _, ObjectSegment as _};
use std::fs;
use std::path::Path;

const CHAIN: [&str; 3] = ["inner prog.c:4", "middle prog.c:10", "outer prog.c:14"];

/// A running program, and the file offsets of its labels `here` and `there`.
struct Run {
    target: Target,
    places: [u64; 2],
}

/// Returns the file offsets of the symbols `here` and `there` of the file `whole`.
fn places(whole: &Path) -> [u64; 2] {
    let bytes = fs::read(whole).expect("a file");
    let file = object::File::parse(&*bytes).expect("a program");
    ["here", "there"].map(|name| {
        let at = address(whole, name);
        let mut segments = file.segments();
        let is_in = |start: u64, size: u64| (start..start + size).contains(&at);
        let segment = segments.find(|s| is_in(s.address(), s.size()));
        let segment = segment.expect("a segment");
        at - segment.address() + segment.file_range().0
    })
}

impl Run {
    /// Starts `prog` of the folder; `whole` is the file that has its symbols.
    fn new(folder: &Folder, whole: &str) -> Self {
        let command = folder.0.join("prog").display().to_string();
        Self {
            target: Target::create(&command, &[], EvalTime::Exec).expect("a process"),
            places: places(&folder.0.join(whole)),
        }
    }

    /// Returns the chains of inlined functions at the two labels.
    fn chains(&self, symbols: &UserSymbols) -> [Vec<String>; 2] {
        let all = mappings_of(self.target.pid()).expect("mappings");
        self.places.map(|place| {
            let mut code = all.iter().filter(|m| m.is_code && m.object() == "prog");
            let code = code.find(|m| (m.offset..m.offset + (m.end - m.start)).contains(&place));
            let code = code.expect("its code");
            let address = code.start + (place - code.offset);
            chain_text(&symbols.inlined(self.target.pid(), address))
        })
    }
}

#[test]
fn a_process_is_looked_up_by_what_it_has_mapped() {
    for (number, layout) in ["-pie", "-no-pie", "-static"].into_iter().enumerate() {
        let folder = Folder::new(&format!("inlines-{number}"));
        folder.compile(INLINED, &["-O2", "-g", layout]);
        let run = Run::new(&folder, "prog");
        let symbols = UserSymbols::default();
        symbols.watch(run.target.pid());
        if number == 0 {
            fs::remove_file(folder.0.join("prog")).expect("no file");
        }
        // The second time the result comes from the cache.
        for _ in 0..2 {
            let [here, there] = run.chains(&symbols);
            assert_eq!(here, CHAIN, "{layout}");
            assert!(there.is_empty(), "{layout}");
        }
        assert!(symbols.inlined(run.target.pid(), 0).is_empty());
    }
}

#[test]
fn what_was_stripped_is_in_the_file_that_was_made_of_it_or_nowhere() {
    let folder = Folder::new("inlines-apart");
    let chain = || {
        let run = Run::new(&folder, "whole");
        let [here, there] = run.chains(&UserSymbols::default());
        assert!(there.is_empty());
        here
    };
    folder.compile(INLINED, &["-O2", "-g"]);
    folder.run("cp", &["prog", "whole"]);
    folder.run("objcopy", &["--only-keep-debug", "prog", "prog.debug"]);
    folder.run("strip", &["prog"]);
    assert!(chain().is_empty());
    folder.run("objcopy", &["--add-gnu-debuglink=prog.debug", "prog"]);
    assert_eq!(chain(), CHAIN);
    // A debug file whose checksum does not match, here a truncated one, is not used.
    folder.run("truncate", &["-s", "-1", "prog.debug"]);
    assert!(chain().is_empty());
}

#[test]
fn what_is_known_needs_no_room() {
    let folder = Folder::new("inlines-room");
    let program = folder.compile(INLINED, &["-O2", "-g"]);
    let file = fs::File::open(&program).expect("a file");
    let inlines = Inlines::default();
    let here = address(&program, "here");
    let at = |has_room| inlines.at(&file, "/prog", here, || has_room).len();
    assert_eq!([at(false), at(true), at(false)], [0, 3, 3]);
    assert!(inlines.kept() > 0);
}

#[test]
fn names_are_those_of_the_linker() {
    let folder = Folder::new("inlines-names");
    let source = "\
        namespace space {\n\
        template<typename T> struct Box {\n\
        \t__attribute__((always_inline)) static void put(T &n) { __asm__ volatile(\".globl here; here: nop\"); n++; }\n\
        };\n\
        }\n\
        int main(int argc, char **) {\n\
        \tspace::Box<int>::put(argc);\n\
        \t__asm__ volatile(\".globl there; there: nop\");\n\
        \treturn argc;\n\
        }\n";
    folder.compile_by("clang-19", source, &["-O2", "-g", "-x", "c++"]);
    let run = Run::new(&folder, "prog");
    let [here, _] = run.chains(&UserSymbols::default());
    assert_eq!(here, ["_ZN5space3BoxIiE3putERi prog.c:3"]);
    let name = here[0].split(' ').next().expect("a name");
    assert_eq!(demangled(name), "space::Box<int>::put(int&)");
}
