// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Tests: tables are found again, and invalid entries are refused.

use super::super::folder::tests::Base;
use super::super::rows::Rows;
use super::super::{table_in, table_of};
use super::*;
use crate::symbols::mappings_of;
use dtrace_files::elf::Text;
use dtrace_unwind::{Cfa, FramePointer, Rule, Word};
use object::{Object as _, ObjectSection as _};
use std::fs::{self, File};
use std::os::unix::fs::{symlink, FileExt as _};

const KEY: Key = Key([0xa5; 32]);

/// Builds a table whose rows depend on `offset`.
fn table(offset: i32) -> Vec<u8> {
    let (address, size) = (0, 0x1000);
    let mut rows = Rows::new(vec![Text {
        address,
        size,
        offset: 0,
    }]);
    let cfa = Cfa::At(dtrace_unwind::Base::Sp, offset);
    let fp = FramePointer::Same;
    rows.add(0x10, 0x20, Rule { cfa, fp });
    rows.into_table(Word::Eight).unwrap()
}

/// Returns the contents of a large library that every machine has.
fn libc() -> Vec<u8> {
    let maps = mappings_of(std::process::id()).unwrap();
    let libc = maps
        .iter()
        .find(|mapping| mapping.object().starts_with("libc.so"));
    fs::read(&libc.unwrap().path).unwrap()
}

/// Returns the same file with one rule changed.
fn altered(library: &[u8]) -> Vec<u8> {
    let file = object::File::parse(library).unwrap();
    let (offset, size) = file
        .section_by_name(".eh_frame")
        .unwrap()
        .file_range()
        .unwrap();
    let (from, size) = (offset as usize, size as usize);
    // DW_CFA_def_cfa_offset 16.
    let frames = &library[from..from + size];
    let at = frames.windows(2).position(|two| two == [0x0e, 16]).unwrap();
    let mut altered = library.to_vec();
    altered[from + at + 1] = 24;
    let other = object::File::parse(&*altered).unwrap();
    assert_eq!(file.build_id().unwrap(), other.build_id().unwrap());
    assert!(file.build_id().unwrap().is_some());
    altered
}

fn open(base: &Base, name: &str, bytes: &[u8]) -> File {
    let path = base.0.join(name);
    fs::write(&path, bytes).unwrap();
    File::open(path).unwrap()
}

#[test]
fn a_table_is_made_once() {
    let base = Base::new("once");
    let cache = Cache::below(&base.0).unwrap();
    let bytes = libc();
    let file = open(&base, "library", &bytes);
    let made = table_in(&bytes);
    assert!(made.is_some());
    assert_eq!(table_of(&file, Some(&cache)), made);
    let names = base.names();
    assert_eq!(names.len(), 1);
    assert_eq!(table_of(&file, Some(&cache)), made);
    assert_eq!(base.names(), names);
    // Replacing the cached entry shows that the table comes from the cache.
    let path = base.files().join(&names[0]);
    let entry = fs::read(&path).unwrap();
    let key = Key(entry[HEADER - 32..HEADER].try_into().unwrap());
    cache.store(&key, &table(8));
    assert_eq!(table_of(&file, Some(&cache)), Some(table(8)));
    assert_eq!(table_of(&file, None), made);
}

#[test]
fn a_small_file_is_not_kept() {
    let base = Base::new("small");
    let cache = Cache::below(&base.0).unwrap();
    let bytes = fs::read("/bin/true").unwrap();
    let file = open(&base, "program", &bytes);
    let made = table_of(&file, Some(&cache));
    assert!(made.is_some());
    assert_eq!(made, table_in(&bytes));
    assert!(base.names().is_empty());
}

#[test]
fn who_takes_anothers_build_id_has_his_own_table() {
    let good = libc();
    let bad = altered(&good);
    let tables = [&good, &bad].map(|bytes| table_in(bytes).unwrap());
    assert_ne!(tables[0], tables[1]);
    for order in [[0, 1, 0], [1, 0, 1]] {
        let base = Base::new("build-id");
        let cache = Cache::below(&base.0).unwrap();
        for n in order {
            let file = open(&base, "library", [&good, &bad][n]);
            assert!(table_of(&file, Some(&cache)).as_ref() == Some(&tables[n]));
        }
        assert_eq!(base.names().len(), 2);
    }
}

/// Writes an entry, changes it with `change`, and loads it: the entry must be removed, and storing
/// a new one must work.
fn is_refused(name: &str, change: impl FnOnce(&Base, &Path)) {
    let base = Base::new("damage");
    let cache = Cache::below(&base.0).unwrap();
    cache.store(&KEY, &table(8));
    assert_eq!(cache.load(&KEY), Some(table(8)), "{name}");
    let path = base.files().join(KEY.to_string());
    change(&base, &path);
    assert_eq!(cache.load(&KEY), None, "{name}");
    assert!(path.symlink_metadata().is_err(), "{name} stays");
    cache.store(&KEY, &table(8));
    assert_eq!(cache.load(&KEY), Some(table(8)), "{name}");
}

#[test]
fn an_entry_with_any_other_byte_is_refused() {
    let size = HEADER + table(8).len();
    for at in 0..size {
        is_refused(&format!("byte {at}"), |_, path| {
            let file = File::options().read(true).write(true).open(path).unwrap();
            let mut byte = [0];
            file.read_exact_at(&mut byte, at as u64).unwrap();
            file.write_all_at(&[byte[0] ^ 0x10], at as u64).unwrap();
        });
    }
    for len in (0..size).chain([size + 1]) {
        is_refused(&format!("{len} bytes"), |_, path| {
            let file = File::options().write(true).open(path).unwrap();
            file.set_len(len as u64).unwrap();
        });
    }
}

#[test]
fn what_is_whole_and_not_the_entry_is_refused() {
    is_refused("of another key", |base, path| {
        let other = Key([1; 32]);
        Cache::below(&base.0).unwrap().store(&other, &table(16));
        fs::rename(base.files().join(other.to_string()), path).unwrap();
    });
    is_refused("no table", |base, _| {
        Cache::below(&base.0).unwrap().store(&KEY, b"no table");
    });
    is_refused("a link", |base, path| {
        let elsewhere = base.0.join("elsewhere");
        fs::rename(path, &elsewhere).unwrap();
        symlink(&elsewhere, path).unwrap();
    });
}

#[test]
fn without_a_place_tables_are_made_all_the_same() {
    let base = Base::new("gone");
    let cache = Cache::below(&base.0).unwrap();
    let bytes = libc();
    let file = open(&base, "library", &bytes);
    let made = table_of(&file, Some(&cache));
    let [name] = &base.names()[..] else {
        panic!("{:?}", base.names());
    };
    // A directory takes the place of the entry.
    fs::remove_file(base.files().join(name)).unwrap();
    fs::create_dir(base.files().join(name)).unwrap();
    assert_eq!(table_of(&file, Some(&cache)), made);
    fs::remove_dir_all(base.files()).unwrap();
    assert_eq!(table_of(&file, Some(&cache)), made);
    assert!(Cache::below(&base.0.join("none")).is_none());
}

#[test]
fn the_superuser_has_nobody_elses_place() {
    let of = |user, caches: &str, home: &str| {
        let set = |text: &str| (!text.is_empty()).then(|| text.into());
        let found = super::base(Uid::from_raw(user), [set(caches), set(home)]);
        found.map(|path| path.to_str().unwrap().to_owned())
    };
    let some = |path: &str| Some(path.to_owned());
    assert_eq!(of(0, "", ""), some("/var/cache"));
    assert_eq!(of(0, "/home/a/caches", "/home/a"), some("/var/cache"));
    assert_eq!(of(7, "/home/a/caches", "/home/a"), some("/home/a/caches"));
    assert_eq!(of(7, "", "/home/a"), some("/home/a/.cache"));
    assert_eq!(of(7, "caches", "/home/a"), some("/home/a/.cache"));
    assert_eq!(of(7, "", "a"), None);
    assert_eq!(of(7, "", ""), None);
}
