// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! ARCHITECTURE.md says what is true: the paths that it names exist, a folder imports what the map allows it, and `unsafe`
//! stands where INV-39 says.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Folders of the kernel's sources, which the text names as well.
const KERNEL: [&str; 8] = [
    "arch/x86/",
    "fs/",
    "include/linux/",
    "kernel/",
    "kprobes/",
    "mm/",
    "rust/",
    "security/",
];
/// The documents whose paths are checked.
const DOCUMENTS: [&str; 3] = ["ARCHITECTURE.md", "CONTRIBUTING.md", "README.md"];
/// The parts of the kernel half that are modules of one crate there, and import by these names.
const MODULES: [&str; 3] = ["kmod/framework", "kmod/providers", "kmod/sys"];

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: impl AsRef<Path>) -> String {
    let path = top().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the paths of all files below `folder`, relative to the repository, except for what builds leave.
fn files(folder: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in top().join(&folder).read_dir().expect("a folder") {
            let entry = entry.expect("an entry");
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = match folder.as_str() {
                "" => name.clone(),
                folder => format!("{folder}/{name}"),
            };
            match entry.file_type().expect("a type").is_dir() {
                true if name == ".git" || name == "target" => {}
                true => folders.push(path),
                false => found.push(path),
            }
        }
    }
    found
}

/// The texts of a document that stand between backquotes.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .flat_map(|line| line.split('`').skip(1).step_by(2))
}

/// Whether a quoted text is a path in the repository, or the end of one. Examples of commands have other characters.
fn is_path(text: &str) -> bool {
    let is_plain = text
        .bytes()
        .all(|c| c.is_ascii_alphanumeric() || b"/._-".contains(&c));
    let first = text.split('/').next().unwrap_or_default();
    let is_ours = top().join(first).is_dir()
        || [".rs", ".c", ".h", ".S", ".d"]
            .iter()
            .any(|end| text.ends_with(end));
    let is_kernels = KERNEL.iter().any(|folder| text.starts_with(folder));
    is_plain && is_ours && !is_kernels && text.contains('/') && !text.starts_with(['/', '.'])
}

/// Returns the paths of a text that lead to nothing.
fn lost<'t>(text: &'t str, files: &[String]) -> Vec<&'t str> {
    let exists = |path: &&str| {
        let path = path.trim_end_matches('/');
        let end = format!("/{path}");
        let below = format!("{path}/");
        let inner = format!("/{path}/");
        files.iter().any(|file| {
            file == path
                || file.ends_with(&end)
                || file.starts_with(&below)
                || file.contains(&inner)
        })
    };
    quoted(text)
        .filter(|text| is_path(text))
        .filter(|path| !exists(path))
        .collect()
}

#[test]
fn paths_lead_somewhere() {
    let files = files("");
    for document in DOCUMENTS {
        let text = read(document);
        assert!(quoted(&text).any(is_path), "{document} names no path");
        assert_eq!(lost(&text, &files), [""; 0], "{document}");
    }
    assert_eq!(
        lost("`kmod/gone.rs` `symbols/gone.rs` `fs/exec.c`", &files),
        ["kmod/gone.rs", "symbols/gone.rs"]
    );
}

/// Returns the rows of the map: the folder, and the names of those that it may know.
fn map(text: &str) -> BTreeMap<String, BTreeSet<String>> {
    let (_, rest) = text.split_once("\n## Map\n").expect("the map");
    let rows = rest
        .lines()
        .skip_while(|line| !line.starts_with('|'))
        .skip(2)
        .take_while(|line| line.starts_with('|'));
    let names = |cell: &str| quoted(cell).map(str::to_owned).collect::<BTreeSet<_>>();
    let mut map = BTreeMap::new();
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").collect();
        let (Some(folders), Some(known)) = (cells.first(), cells.get(2)) else {
            continue;
        };
        for folder in names(folders) {
            map.insert(folder.trim_end_matches('/').to_owned(), names(known));
        }
    }
    map
}

/// The name by which the map's last column calls a folder.
fn name_of(folder: &str) -> &str {
    folder.rsplit('/').next().unwrap_or(folder)
}

/// Returns the folders of the workspace's crates by the crates' names.
fn crates() -> BTreeMap<String, String> {
    let text = read("Cargo.toml");
    let entries = text.lines().filter_map(|line| {
        let (name, rest) = line.split_once(" = { path = \"")?;
        let (path, _) = rest.split_once('"')?;
        Some((name.to_owned(), path.to_owned()))
    });
    let mut all: BTreeMap<String, String> = entries.collect();
    all.insert("dtrace-fuzz".to_owned(), "fuzz".to_owned());
    assert!(all.len() > 12);
    all
}

/// Returns the names of the crates of ours that a manifest depends on, except for its tests.
fn dependencies(manifest: &str, crates: &BTreeMap<String, String>) -> BTreeSet<String> {
    let (_, rest) = manifest
        .split_once("\n[dependencies]\n")
        .unwrap_or(("", ""));
    let entries = rest.lines().take_while(|line| !line.starts_with('['));
    let names = entries.filter_map(|line| line.split(['.', ' ', '=']).next());
    names
        .filter_map(|name| crates.get(name))
        .map(|folder| name_of(folder).to_owned())
        .collect()
}

/// Returns what a source of the kernel half imports of ours.
fn imports(source: &str) -> BTreeSet<String> {
    let code = source
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default());
    let words = code
        .flat_map(|line| line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != ':'));
    let known = ["sys", "framework", "providers", "bindings"];
    let imported = words.filter_map(|word| {
        let mut parts = word.split("::");
        match parts.next()? {
            "crate" => parts.next().filter(|name| known.contains(name)),
            name => parts.next().and(name.strip_prefix("dtrace_")),
        }
    });
    imported.map(str::to_owned).collect()
}

fn is_test(path: &str) -> bool {
    path.ends_with("tests.rs") || path.ends_with("kunit.rs") || path.contains("/tests/")
}

#[test]
fn the_map_says_who_may_know_whom() {
    let text = read("ARCHITECTURE.md");
    let (map, crates) = (map(&text), crates());
    for folder in crates.values() {
        // The names that host tests need in place of the `kernel` crate are not the framework's.
        let known = map
            .get(folder.as_str())
            .unwrap_or_else(|| panic!("{folder} is not on the map"));
        let manifest = read(Path::new(folder).join("Cargo.toml"));
        let used = dependencies(&manifest, &crates);
        let unknown: Vec<_> = used.difference(known).collect();
        assert_eq!(unknown, Vec::<&String>::new(), "{folder} depends on");
        // What the map allows and nobody needs is a floor that can be closed.
        if folder.starts_with("userland-lib") {
            let unused: Vec<_> = known.difference(&used).collect();
            assert_eq!(unused, Vec::<&String>::new(), "{folder} does not depend on");
        }
    }
    for folder in MODULES {
        let known = &map[folder];
        for file in files(folder)
            .iter()
            .filter(|file| file.ends_with(".rs") && !is_test(file))
        {
            let mut used = imports(&read(file));
            used.remove(name_of(folder));
            let unknown: Vec<_> = used.difference(known).collect();
            assert_eq!(unknown, Vec::<&String>::new(), "{file} imports");
        }
    }
}

#[test]
fn what_is_imported_is_seen() {
    let source = "use crate::bindings::a; // crate::providers::b\nlet x = dtrace_engine::mem::c(); super::sys::d();";
    let expected = ["bindings", "engine"].map(str::to_owned);
    assert_eq!(imports(source), BTreeSet::from(expected));
    let manifest = "[package]\n\n[dependencies]\ndtrace-uapi.workspace = true\nnix = \"1\"\n\n[dev-dependencies]\ndtrace-engine.workspace = true\n";
    assert_eq!(
        dependencies(manifest, &crates()),
        BTreeSet::from(["uapi".to_owned()])
    );
}

/// Whether a source has code that is `unsafe`, other than an attribute.
fn has_unsafe(source: &str) -> bool {
    let code = source
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default());
    let mut code = code.filter(|line| !line.trim_start().starts_with('#'));
    code.any(|line| {
        [
            "unsafe {",
            "unsafe fn",
            "unsafe impl",
            "unsafe trait",
            "unsafe extern",
        ]
        .iter()
        .any(|word| line.contains(word))
    })
}

#[test]
fn unsafe_is_where_it_may_be() {
    let text = read("ARCHITECTURE.md");
    let (_, rest) = text.split_once("**INV-39.").expect("the invariant");
    let paragraph = rest.split("\n\n").next().unwrap_or_default();
    let allowed: Vec<String> = quoted(paragraph).map(str::to_owned).collect();
    let may = |file: &str| {
        let mut allowed = allowed.iter().filter(|path| path.contains('/'));
        allowed.any(|path| file == path || file.starts_with(&format!("{path}/")))
    };
    let sources = files("").into_iter().filter(|file| file.ends_with(".rs"));
    // Tests may do it to stand for the kernel.
    let sources = sources.filter(|file| !is_test(file) && !may(file));
    let wrong: Vec<String> = sources.filter(|file| has_unsafe(&read(file))).collect();
    assert_eq!(wrong, Vec::<String>::new());
    assert!(
        has_unsafe("fn a() { unsafe { b() } }")
            && !has_unsafe("#![forbid(unsafe_code)] // unsafe {")
    );
}
