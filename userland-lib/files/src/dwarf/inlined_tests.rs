// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Inlined functions, in programs that the tests compile and in files that are crafted to be
//! expensive to read.

use super::budget::{Budget, ROOM_MAX};
use super::*;
use crate::testing::{address, chain_text, Folder, INLINED};
use std::fs;
use std::path::PathBuf;

#[test]
fn every_form_tells_the_chain() {
    let folder = Folder::new("inlined");
    for (compiler, options) in [
        ("gcc", &["-gdwarf-5"][..]),
        ("gcc", &["-gdwarf-4"]),
        ("gcc", &["-gdwarf-4", "-gstrict-dwarf"]),
        ("gcc", &["-gdwarf-5", "-gz=zlib"]),
        ("gcc", &["-gdwarf-5", "-fdebug-types-section"]),
        ("gcc", &["-gdwarf-5", "-flto"]),
        ("gcc", &["-gdwarf-5", "-gsplit-dwarf"]),
        ("gcc", &["-gdwarf-4", "-gsplit-dwarf"]),
        ("clang-19", &["-gdwarf-5"]),
        ("clang-19", &["-gdwarf-5", "-gsplit-dwarf"]),
        (
            "clang-19",
            &["-gdwarf-4", "-gsplit-dwarf", "-fno-split-dwarf-inlining"],
        ),
        ("clang-19", &["-gdwarf-4", "-ffunction-sections"]),
    ] {
        folder.compile_by(compiler, INLINED, &[&["-O2"], options].concat());
        let program = folder.0.join("prog");
        let path = program.to_string_lossy();
        let debug = DebugInfo::open_unasked(&program, &path).expect("readable");
        let at = |name| chain_text(&debug.inlined(address(&program, name)));
        let chain = ["inner prog.c:4", "middle prog.c:10", "outer prog.c:14"];
        assert_eq!(at("here"), chain, "{compiler} {options:?}");
        for other in ["there", "main"] {
            assert!(at(other).is_empty(), "{compiler} {options:?}: {other}");
        }
        for nowhere in [0, 1, u64::MAX] {
            assert!(debug.inlined(nowhere).is_empty());
        }
        assert!(!debug.is_spent() && debug.kept() > 0);
    }
}

/// For a stripped program, the separate debug file supplies the chain.
#[test]
fn a_file_of_its_own_tells_the_chain() {
    let folder = Folder::new("inlined-id");
    let id = ["-O2", "-gdwarf-5", "-Wl,--build-id=0x0123456789"];
    let program = folder.compile(INLINED, &id);
    let here = address(&program, "here");
    fs::create_dir_all(folder.0.join(".build-id/01")).expect("a folder");
    let apart = ".build-id/01/23456789.debug";
    folder.run("objcopy", &["--only-keep-debug", "prog", apart]);
    folder.run("strip", &["prog"]);
    let found = file::find_in(&folder.0, &program, "/nowhere/prog", ROOM_MAX).expect("a file");
    let debug = DebugInfo::parse_unasked(found.own).expect("readable");
    assert_eq!(debug.inlined(here).len(), 3);
    let too_large = file::find_in(&folder.0, &program, "/nowhere/prog", 1000);
    assert!(too_large.is_err());
}

/// No function is inlined at `there`, with split units or without optimization. With minimal debug
/// information (`-g1`) no name is empty.
#[test]
fn what_is_elsewhere_is_not_told() {
    let folder = Folder::new("elsewhere");
    for options in [&["-gdwarf-5", "-gsplit-dwarf"][..], &["-gdwarf-5", "-O0"]] {
        let program = folder.compile(INLINED, options);
        let debug = DebugInfo::open_unasked(&program, "/prog").expect("readable");
        let at = debug.inlined(address(&program, "there"));
        assert!(at.is_empty(), "{options:?}");
    }
    let program = folder.compile(INLINED, &["-g1", "-O2"]);
    let debug = DebugInfo::open_unasked(&program, "/prog").expect("readable");
    let chain = debug.inlined(address(&program, "here"));
    assert!(chain.iter().all(|inlined| !inlined.name.is_empty()));
}

/// Truncation or corruption only makes information unavailable; it has no other effect.
#[test]
fn damage_is_survived() {
    let folder = Folder::new("inlined-damage");
    let program = folder.compile(INLINED, &["-O2", "-gdwarf-5", "-nostartfiles", "-static"]);
    let here = address(&program, "here");
    let bytes = fs::read(&program).expect("a file");
    let look = |bytes: Vec<u8>| {
        let debug = DebugInfo::parse_unasked(bytes.into());
        debug.map_or(0, |debug| debug.inlined(here).len())
    };
    assert_eq!(look(bytes.clone()), 3);
    for at in (0..bytes.len()).step_by(7) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x81;
        look(damaged);
        look(bytes[..at].to_vec());
    }
}

/// Builds a program with these abbreviations and entries, and with further sections in `rest`.
/// Returns it and the address of its 16 bytes of code.
fn made(folder: &Folder, abbreviations: &str, entries: &str, rest: &str) -> (PathBuf, u64) {
    let source = format!(
        ".text\n.globl code\ncode: .fill 16, 1, 0x90\n\
         .section .debug_abbrev\n{abbreviations}\n.byte 0\n\
         .section .debug_info\n.long ended - started\nstarted: .short 4\n.long 0\n.byte 8\n\
         .byte 1\n.quad code\n.long 16\n{entries}\n.byte 0\nended:\n{rest}\n"
    );
    fs::write(folder.0.join("made.s"), source).expect("a source");
    let link = ["-nostdlib", "-static", "-Wl,-ecode", "-o", "made", "made.s"];
    folder.run("gcc", &link);
    let program = folder.0.join("made");
    let code = address(&program, "code");
    (program, code)
}

/// Abbreviations: `UNIT` for a unit with its first address and size; `COPY` for an inlined copy
/// with a name, the same two, and children; `RANGED` for a copy with a name and ranges.
const UNIT: &str = ".byte 1, 0x11, 1, 0x11, 1, 0x12, 6, 0, 0\n";
const COPY: &str = ".byte 2, 0x1d, 1, 3, 8, 0x11, 1, 0x12, 6, 0, 0\n";
const RANGED: &str = ".byte 3, 0x1d, 0, 3, 8, 0x55, 0x17, 0, 0\n";

fn read(program: &Path, steps: u64, room: u64) -> DebugInfo {
    let bytes = fs::read(program).expect("a file");
    DebugInfo::parse_within(Found::alone(bytes.into()), Budget::new(steps, room), true)
        .expect("readable")
}

#[test]
fn no_depth_is_too_deep() {
    let folder = Folder::new("deep");
    let copy = ".byte 2, 'a', 0\n.quad code\n.long 16\n";
    let entries = format!(".rept 200000\n{copy}.endr");
    let (program, code) = made(&folder, &(UNIT.to_owned() + COPY), &entries, "");
    let debug = DebugInfo::open_unasked(&program, "/made").expect("readable");
    assert_eq!(debug.inlined(code + 1).len(), 64);
}

/// Each entry refers to the same long list of ranges, which are all empty or all nonempty.
#[test]
fn a_list_that_is_read_over_and_over_ends_with_the_budget() {
    let folder = Folder::new("lists");
    let entries = ".rept 100000\n.byte 3, 'a', 0\n.long ranges\n.endr";
    for (range, is_empty) in [("1, 1", true), ("0, 8", false)] {
        let ranges = format!(
            ".section .debug_ranges\nranges:\n.rept 100000\n.quad {range}\n.endr\n.quad 0, 0"
        );
        let (program, code) = made(&folder, &(UNIT.to_owned() + RANGED), entries, &ranges);
        let by_steps = read(&program, 1 << 20, ROOM_MAX);
        by_steps.inlined(code);
        assert!(by_steps.is_spent());
        assert!(by_steps.inlined(code + 8).is_empty());
        if !is_empty {
            let by_room = read(&program, u64::MAX, 1 << 24);
            by_room.inlined(code);
            assert!(by_room.is_spent() && by_room.kept() <= 1 << 24);
        }
    }
}

/// Units that refer to different offsets of one long table: each offset begins a table of its own,
/// almost as long as the whole.
#[test]
fn tables_that_overlap_end_with_the_budget() {
    let folder = Folder::new("tables");
    let part = ".uleb128 number\n.byte 0x1d, 0, 0, 0\nnumber = number + 1\n";
    let table = format!("{UNIT}number = 0x100\n.rept 10000\n{part}.endr");
    let unit = ".long 8\n.short 4\n.long place\n.byte 8, 1\nplace = place + 6\n";
    let units = format!("place = 9\n.rept 10000\n{unit}.endr");
    let (program, code) = made(&folder, &table, "", &units);
    let debug = read(&program, 1 << 24, u64::MAX);
    debug.inlined(code);
    assert!(debug.is_spent());
    let debug = read(&program, u64::MAX, 1 << 24);
    debug.inlined(code);
    assert!(debug.is_spent());
}

/// An abbreviation with too many attributes, none of which takes a byte of the entry.
#[test]
fn an_entry_has_not_any_number_of_attributes() {
    let folder = Folder::new("attributes");
    for (count, is_read) in [(200, true), (300, false)] {
        let many =
            format!(".byte 4, 0x1d, 0\n.rept {count}\n.byte 0x3f, 0x19\n.endr\n.byte 0, 0\n");
        let entry = ".byte 2, 'a', 0\n.quad code\n.long 16\n.byte 4, 0";
        let (program, code) = made(&folder, &(UNIT.to_owned() + COPY + &many), entry, "");
        let debug = DebugInfo::open_unasked(&program, "/made").expect("readable");
        assert_eq!(debug.inlined(code).len(), usize::from(is_read), "{count}");
    }
}

/// A copy that ends before the block with another copy: that one is in the block, not in the first
/// copy.
#[test]
fn what_a_block_has_is_not_in_the_copy_before_it() {
    let folder = Folder::new("block");
    let copy = |name, at| format!(".byte 2, '{name}', 0\n.quad code + {at}\n.long 8\n.byte 0\n");
    let block = ".byte 4, 0x0b, 1, 0, 0\n";
    let entries = copy('a', 0) + ".byte 4\n" + &copy('b', 8) + ".byte 0\n";
    let (program, code) = made(&folder, &(UNIT.to_owned() + COPY + block), &entries, "");
    let debug = DebugInfo::open_unasked(&program, "/made").expect("readable");
    assert_eq!(chain_text(&debug.inlined(code)), ["a"]);
    assert_eq!(chain_text(&debug.inlined(code + 8)), ["b"]);
}

/// A program whose functions are inlined dozens of levels deep.
const RUST: &str = "use std::collections::{BTreeMap, HashMap};
fn main() {
    let mut all: HashMap<String, Vec<usize>> = HashMap::new();
    let mut sizes = BTreeMap::new();
    for (number, line) in std::io::stdin().lines().enumerate() {
        for word in line.unwrap_or_default().split_whitespace() {
            all.entry(word.to_owned()).or_default().push(number);
            *sizes.entry(word.len()).or_insert(0) += 1;
        }
    }
    let mut all: Vec<_> = all.into_iter().collect();
    all.sort_by(|a, b| a.1.len().cmp(&b.1.len()).then_with(|| a.0.cmp(&b.0)));
    println!(\"{all:?} {sizes:?}\");
}
";

/// Returns the addresses of a program that the test looks up.
fn sampled(program: &Path) -> Vec<u64> {
    use object::{Object as _, ObjectSection as _};
    let bytes = fs::read(program).expect("a file");
    let file = object::File::parse(&*bytes).expect("a program");
    let text = file.section_by_name(".text").expect("instructions");
    let samples = (text.address()..text.address() + text.size()).step_by(61);
    samples.collect()
}

/// Runs llvm-addr2line. Returns a function and a line for each member of each chain, without the
/// last, which is not inlined.
fn by_llvm(folder: &Folder, addresses: &[u64]) -> Vec<Vec<String>> {
    let list: Vec<String> = addresses.iter().map(|at| format!("{at:#x}")).collect();
    fs::write(folder.0.join("list"), list.join("\n")).expect("a list");
    let command = "llvm-addr2line-19 -aif --basenames -e prog <list >chains";
    folder.run("sh", &["-c", command]);
    let text = fs::read_to_string(folder.0.join("chains")).expect("an answer");
    let mut chains: Vec<Vec<String>> = Vec::new();
    let mut lines = text.lines();
    while let Some(name) = lines.next() {
        if name.starts_with("0x") {
            chains.push(Vec::new());
            continue;
        }
        let source = lines.next().expect("a line");
        let source = source.split(' ').next().expect("a word");
        let is_known = !source.ends_with(":0") && !source.ends_with(":?");
        let source = if is_known {
            format!(" {source}")
        } else {
            String::new()
        };
        let chain = chains.last_mut().expect("an address");
        chain.push(name.to_owned() + &source);
    }
    for chain in &mut chains {
        chain.pop();
    }
    chains
}

#[test]
fn chains_are_those_of_another_reader() {
    let folder = Folder::new("llvm");
    fs::write(folder.0.join("prog.rs"), RUST).expect("a source");
    folder.run("rustc", &["-O", "-g", "prog.rs"]);
    let program = folder.0.join("prog");
    let debug = DebugInfo::open_unasked(&program, "/prog").expect("readable");
    let all = sampled(&program);
    let ours = all.iter().map(|at| chain_text(&debug.inlined(*at)));
    let ours: Vec<Vec<String>> = ours.collect();
    assert!(ours.iter().any(|chain| chain.len() > 10));
    assert_eq!(ours, by_llvm(&folder, &all));
}
