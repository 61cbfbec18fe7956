// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Units in files of their own: where the files may be, and which ones belong to another program.

use super::tests::{check_all, SOURCE};
use super::*;
use crate::testing::{address, Folder};
use std::fs;
use std::path::PathBuf;

const OTHER: &str =
    "struct other { int only; };\nint far(struct other *at)\n{\n\treturn at->only;\n}\n";

/// Compiles a program of two units in `folder`.
fn compile(folder: &Folder, options: &[&str]) -> PathBuf {
    fs::write(folder.0.join("other.c"), OTHER).expect("a source");
    folder.compile(SOURCE, &[&["-gsplit-dwarf", "other.c"], options].concat())
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let all = fs::read_dir(folder)
        .expect("a folder")
        .map(|file| file.expect("a file").path());
    let mut all: Vec<PathBuf> = all
        .filter(|path| path.extension().is_some_and(|e| e == "dwo"))
        .collect();
    all.sort();
    all
}

fn open(program: &Path) -> DebugInfo {
    DebugInfo::open(program, &program.to_string_lossy()).expect("readable")
}

fn is_missing(debug: &DebugInfo, program: &Path) -> bool {
    let found = debug.function(address(program, "area"));
    matches!(found, Err(Error::Unsupported(_)))
}

/// Checks both units: one is found by its function, the other by a type's name.
fn check_both(program: &Path) {
    let debug = open(program);
    check_all(&debug, program);
    let other = debug.named(Tag::Struct, "other").expect("a structure");
    assert_eq!(debug.members(other).expect("members").len(), 1);
    let far = debug
        .function(address(program, "far"))
        .expect("readable")
        .expect("a function");
    let Some(Ok(Type::Pointer(to, _))) = far.params[0].1.map(|ty| debug.ty(ty)) else {
        panic!("{far:?}");
    };
    assert_eq!(to, Some(other));
}

#[test]
fn files_are_where_they_were_made_or_beside_the_program() {
    let folder = Folder::new("apart");
    let program = compile(&folder, &["-gdwarf-5"]);
    check_both(&program);
    let elsewhere = Folder::new("apart-moved");
    let moved = elsewhere.0.join("prog");
    fs::copy(&program, &moved).expect("copied");
    check_both(&moved);
    let made = files(&folder.0);
    assert_eq!(made.len(), 2);
    for file in &made {
        let beside = elsewhere.0.join(file.file_name().expect("a name"));
        fs::rename(file, beside).expect("moved");
    }
    check_both(&moved);
    assert!(is_missing(&open(&program), &program));
    // The line program is in the program itself.
    assert!(open(&program).lines("prog.c", 20).has_file);
}

#[test]
fn a_file_of_another_build_is_none() {
    let folder = Folder::new("apart-other");
    let kept = Folder::new("apart-kept");
    let program = compile(&folder, &["-gdwarf-5"]);
    let moved = kept.0.join("prog");
    fs::copy(&program, &moved).expect("copied");
    folder.compile(
        &SOURCE.replace("leaf", "fael"),
        &["-gsplit-dwarf", "other.c", "-gdwarf-5"],
    );
    let debug = open(&moved);
    assert!(is_missing(&debug, &moved) && is_missing(&debug, &moved));
    assert_eq!(debug.named(Tag::Struct, "point"), None);
    assert!(
        debug.named(Tag::Struct, "other").is_some(),
        "it is the same"
    );
}

#[test]
fn a_package_has_all_files() {
    let folder = Folder::new("apart-package");
    for options in [
        &["-gdwarf-5"][..],
        &["-gdwarf-4"],
        &["-gdwarf-5", "-fdebug-types-section"],
        &["-gdwarf-4", "-fdebug-types-section"],
    ] {
        let program = compile(&folder, options);
        folder.run("llvm-dwp-19", &["-e", "prog", "-o", "prog.dwp"]);
        for file in files(&folder.0) {
            fs::remove_file(file).expect("removed");
        }
        println!("{options:?}");
        check_both(&program);
        fs::remove_file(folder.0.join("prog.dwp")).expect("removed");
        assert!(is_missing(&open(&program), &program), "{options:?}");
    }
}

/// An index may claim any number of units if it has no slots, because units without slots take no
/// bytes.
#[test]
fn a_package_has_not_any_number_of_units() {
    use object::{Object as _, ObjectSection as _};
    let folder = Folder::new("apart-endless");
    let program = compile(&folder, &["-gdwarf-5", "-fdebug-types-section"]);
    folder.run("llvm-dwp-19", &["-e", "prog", "-o", "prog.dwp"]);
    for file in files(&folder.0) {
        fs::remove_file(file).expect("removed");
    }
    assert!(!is_missing(&open(&program), &program));
    let package = folder.0.join("prog.dwp");
    let mut bytes = fs::read(&package).expect("a file");
    let index = {
        let file = object::File::parse(&*bytes).expect("a package");
        let index = file.section_by_name(".debug_tu_index").expect("types");
        index.file_range().expect("bytes").0 as usize
    };
    // Columns, units, slots.
    let counts = [0_u32, u32::MAX, 0].map(u32::to_le_bytes).concat();
    bytes[index + 4..index + 16].copy_from_slice(&counts);
    fs::write(&package, bytes).expect("written");
    let debug = open(&program);
    assert!(is_missing(&debug, &program));
    assert_eq!(debug.named(Tag::Struct, "point"), None);
}

/// For a stripped program, split units are found beside its debug file, or where the compiler put
/// them.
#[test]
fn what_was_made_of_a_program_has_units_apart_too() {
    let folder = Folder::new("apart-stripped");
    let program = compile(&folder, &["-gdwarf-5"]);
    let area = address(&program, "area");
    folder.run("llvm-dwp-19", &["-e", "prog", "-o", "prog.debug.dwp"]);
    folder.run("objcopy", &["--only-keep-debug", "prog", "prog.debug"]);
    folder.run("strip", &["prog"]);
    folder.run("objcopy", &["--add-gnu-debuglink=prog.debug", "prog"]);
    let is_known = || {
        open(&program)
            .function(area)
            .is_ok_and(|found| found.is_some())
    };
    assert!(is_known());
    for file in files(&folder.0) {
        fs::remove_file(file).expect("removed");
    }
    assert!(is_known());
    fs::remove_file(folder.0.join("prog.debug.dwp")).expect("removed");
    assert!(!is_known());
}

/// Corruption of such a file only makes information unavailable; it has no other effect.
#[test]
fn damage_is_survived() {
    let folder = Folder::new("apart-damage");
    let program = folder.compile(SOURCE, &["-gdwarf-5", "-gsplit-dwarf"]);
    let area = address(&program, "area");
    let file = files(&folder.0).remove(0);
    let package = folder.0.join("prog.dwp");
    let look = || {
        let path = program.to_string_lossy();
        let debug = DebugInfo::open_unasked(&program, &path).expect("readable");
        if let Ok(Some(found)) = debug.function(area) {
            let types = found.params.iter().filter_map(|param| param.1);
            for id in types.chain(found.ret) {
                let _ = (debug.ty(id), debug.members(id));
            }
        }
        let _ = (debug.named(Tag::Struct, "point"), debug.inlined(area));
    };
    let whole = fs::read(&file).expect("a file");
    for at in (0..whole.len()).step_by(7) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x81;
        fs::write(&file, damaged).expect("written");
        look();
    }
    fs::write(&file, &whole).expect("written");
    folder.run("llvm-dwp-19", &["-e", "prog", "-o", "prog.dwp"]);
    fs::remove_file(&file).expect("removed");
    let whole = fs::read(&package).expect("a file");
    for at in (0..whole.len()).step_by(7) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x81;
        fs::write(&package, damaged).expect("written");
        look();
    }
}
