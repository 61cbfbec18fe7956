// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Files that share common information, as made by dwz.

use super::tests::check_all;
use super::*;
use crate::testing::{address, Folder};
use std::fs;
use std::path::PathBuf;

/// A program and the file that it shares with another, in GNU's form and in that of DWARF 5.
const FORMS: [(&str, &[u8], &[u8]); 2] = [
    (
        "gnu",
        include_bytes!("../../../tests/dwz/gnu/prog"),
        include_bytes!("../../../tests/dwz/gnu/common"),
    ),
    (
        "sup",
        include_bytes!("../../../tests/dwz/sup/prog"),
        include_bytes!("../../../tests/dwz/sup/common"),
    ),
];

/// Writes a file into the folder.
fn put(folder: &Folder, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.0.join(name);
    fs::create_dir_all(path.parent().expect("a folder")).expect("made");
    fs::write(&path, bytes).expect("written");
    path
}

fn open(folder: &Folder, program: &Path) -> Result<DebugInfo, Error> {
    let path = program.to_string_lossy();
    let found = file::find_in(&folder.0, program, &path, file::FILE_MAX)?;
    DebugInfo::parse_within(found, Budget::limited(), true)
}

fn build_id(bytes: &[u8]) -> String {
    use object::Object as _;
    let file = object::File::parse(bytes).expect("a file");
    crate::elf::separate::hexadecimal(file.build_id().expect("notes").expect("a build-id"))
}

#[test]
fn what_is_shared_is_found_by_its_name_and_known_by_its_number() {
    for (form, prog, common) in FORMS {
        let folder = Folder::new(form);
        let program = put(&folder, "bin/prog", prog);
        let is_whole = || open(&folder, &program).expect("readable").whole().is_ok();
        assert!(!is_whole(), "{form}");
        for place in ["bin/common", ".dwz/common"] {
            let place = put(&folder, place, common);
            println!("{form} {place:?}");
            check_all(&open(&folder, &program).expect("readable"), &program);
            let other = FORMS.iter().find(|other| other.0 != form).expect("another");
            fs::write(&place, other.2).expect("written");
            assert!(!is_whole(), "{form}: of another");
            fs::remove_file(place).expect("removed");
        }
    }
}

/// Without the shared file types are refused, because half of them would be wrong. Lines are
/// available.
#[test]
fn what_is_shared_and_missing_is_no_type() {
    for (form, prog, _) in FORMS {
        let folder = Folder::new(&format!("missing-{form}"));
        let program = put(&folder, "prog", prog);
        let debug = open(&folder, &program).expect("readable");
        let area = debug.function(address(&program, "area"));
        assert!(matches!(area, Err(Error::Unsupported(_))), "{area:?}");
        assert!(debug.lines("prog.c", 20).has_file);
        let alone = DebugInfo::parse(prog.into()).expect("readable");
        assert!(alone.whole().is_err(), "{form}");
    }
}

/// As in distributions: the stripped program has a debug file by build-id, which is a symbolic
/// link, and the name of the shared file is relative to the link's target.
#[test]
fn a_file_of_its_own_shares_too() {
    let (_, prog, common) = FORMS[0];
    let folder = Folder::new("both");
    let program = put(&folder, "bin/prog", prog);
    fs::create_dir_all(folder.0.join("bin/debug")).expect("a folder");
    let keep = ["--only-keep-debug", "bin/prog", "bin/debug/prog.debug"];
    folder.run("objcopy", &keep);
    folder.run("objcopy", &["--strip-debug", "bin/prog"]);
    assert!(matches!(open(&folder, &program), Err(Error::None)));
    let (first, rest) = (&build_id(prog)[..2], &build_id(prog)[2..]);
    let link = format!(".build-id/{first}/{rest}.debug");
    fs::create_dir_all(folder.0.join(".build-id").join(first)).expect("a folder");
    std::os::unix::fs::symlink("../../bin/debug/prog.debug", folder.0.join(link)).expect("a link");
    let is_whole = || open(&folder, &program).expect("readable").whole().is_ok();
    assert!(!is_whole());
    let (first, rest) = (&build_id(common)[..2], &build_id(common)[2..]);
    for place in [
        "bin/debug/common".to_owned(),
        format!(".build-id/{first}/{rest}.debug"),
    ] {
        let place = put(&folder, &place, common);
        check_all(&open(&folder, &program).expect("readable"), &program);
        fs::remove_file(place).expect("removed");
    }
}

/// Corruption of either file only makes information unavailable; it has no other effect.
#[test]
fn damage_is_survived() {
    let (_, prog, common) = FORMS[1];
    let folder = Folder::new("shared-damage");
    let program = put(&folder, "prog", prog);
    let area = address(&program, "area");
    let look = |own: &[u8], shared: &[u8]| {
        let Ok(debug) = DebugInfo::parse_both(own.into(), shared.into()) else {
            return;
        };
        if let Ok(Some(found)) = debug.function(area) {
            let types = found.params.iter().filter_map(|param| param.1);
            for id in types.chain(found.ret) {
                let _ = (debug.ty(id), debug.members(id));
            }
        }
        let _ = debug.named(Tag::Struct, "point");
    };
    for at in (0..prog.len()).step_by(5) {
        let mut damaged = prog.to_vec();
        damaged[at] ^= 0x81;
        look(&damaged, common);
    }
    for at in 0..common.len() {
        let mut damaged = common.to_vec();
        damaged[at] ^= 0x81;
        look(prog, &damaged);
        look(prog, &common[..at]);
    }
}
