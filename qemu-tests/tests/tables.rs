// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! What the sources say twice, where no type ties one to the other: numbers of probes and their
//! names, structures of C and of the D libraries, lists of all providers, the module's parameters.

use dtrace_uapi::limits;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

type Set = BTreeSet<String>;

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &str) -> String {
    let path = top().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the names of a folder's files with an ending, without it.
fn stems(folder: &str, ending: &str) -> Set {
    let entries = top().join(folder).read_dir().expect("a folder");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let names = names.map(|name| name.to_string_lossy().into_owned());
    names
        .filter_map(|name| Some(name.strip_suffix(ending)?.to_owned()))
        .collect()
}

fn set<'a>(names: impl IntoIterator<Item = &'a str>) -> Set {
    names.into_iter().map(str::to_owned).collect()
}

/// Returns what stands between `begin` and the next `end`.
fn between<'t>(text: &'t str, begin: &str, end: &str) -> &'t str {
    let (_, rest) = text.split_once(begin).unwrap_or_else(|| panic!("{begin}"));
    let (inner, _) = rest.split_once(end).unwrap_or_else(|| panic!("{end}"));
    inner
}

/// Returns the constants of a source that number something.
fn numbers(source: &str) -> Vec<(&str, usize)> {
    let lines = source.lines();
    let constants = lines.filter_map(|line| {
        let (name, value) = line.strip_prefix("const ")?.split_once(": usize = ")?;
        Some((name, value.strip_suffix(';')?.parse().ok()?))
    });
    constants.collect()
}

/// The constants with which a provider fires its probes are their places in `PROBES`, where the
/// names are. A constant is named as its probe.
#[test]
fn the_numbers_of_probes_are_their_places() {
    let mut providers = 0;
    for name in stems("kmod/providers", ".rs") {
        let source = read(&format!("kmod/providers/{name}.rs"));
        if !source.contains("\nstatic PROBES: [Event;") {
            continue;
        }
        let probes = between(&source, "\nstatic PROBES: [Event;", "];");
        let names = probes.split("Event::new(").skip(1);
        let names: Vec<String> = names
            .map(|rest| between(rest, "\"", "\"").replace('-', "_").to_uppercase())
            .collect();
        let places = names.iter().map(String::as_str).zip(0..);
        let mut numbers = numbers(&source);
        numbers.retain(|(name, _)| names.iter().any(|probe| probe == name));
        assert_eq!(numbers, places.collect::<Vec<_>>(), "{name}");
        providers += 1;
    }
    assert!(providers >= 9, "{providers}");
}

/// Returns the members of a structure, type and name, as far as the layout depends on them: what a
/// pointer leads to does not count. D's names have a prefix.
fn members(text: &str, structure: &str) -> Vec<(String, String)> {
    let body = between(text, &format!("struct {structure} {{"), "\n}");
    let mut plain = String::new();
    for (n, piece) in body.split("/*").enumerate() {
        let code = match n {
            0 => piece,
            _ => piece.split_once("*/").map_or("", |(_, code)| code),
        };
        plain += code;
    }
    let members = plain.split(';').map(str::trim);
    let members = members.filter(|member| !member.is_empty()).map(|member| {
        let end = member.rfind([' ', '*']).expect("a type and a name");
        let (ty, name) = member.split_at(end + 1);
        let ty = match ty.contains('*') {
            true => "pointer",
            false => ty.trim(),
        };
        let ty = match ty.strip_suffix("_t").and_then(|ty| ty.split_once("int")) {
            Some(("u", bits)) if bits.parse::<u8>().is_ok() => format!("u{bits}"),
            Some(("", bits)) if bits.parse::<u8>().is_ok() => format!("s{bits}"),
            _ => ty.to_owned(),
        };
        (ty, name.to_owned())
    });
    members.collect()
}

#[test]
fn structures_for_translators_are_those_of_the_kernel_half() {
    let libraries = stems("userland-lib/dlib", ".d");
    let libraries = libraries
        .iter()
        .map(|name| read(&format!("userland-lib/dlib/{name}.d")));
    let known: usize = libraries
        .map(|text| text.matches("struct dtrace_").count())
        .sum();
    assert_eq!(known, 3, "a structure that is not compared");
    for (structure, header, library, names) in [
        (
            "dtrace_io",
            "places",
            "io",
            "bio bdev inode dentry offset sector bytes left done flags error dev",
        ),
        (
            "dtrace_ip",
            "net",
            "ip",
            "header=header source=saddr destination=daddr bytes=plength version",
        ),
        (
            "dtrace_tcp",
            "net",
            "tcp",
            "any=sk whole now=state resends rto",
        ),
    ] {
        let c = members(&read(&format!("kmod/helpers/{header}.h")), structure);
        let d = members(&read(&format!("userland-lib/dlib/{library}.d")), structure);
        let types = |members: &[(String, String)]| -> Vec<String> {
            members.iter().map(|(ty, _)| ty.clone()).collect()
        };
        assert_eq!(types(&c), types(&d), "{structure}");
        let names = names.split_whitespace();
        let names = names.map(|name| name.split_once('=').unwrap_or((name, name)));
        let names: Vec<_> = names.collect();
        assert_eq!(names.len(), c.len(), "{structure}");
        for (n, (in_d, in_c)) in names.into_iter().enumerate() {
            assert_eq!(c[n].1, in_c, "{structure}");
            assert!(d[n].1.ends_with(&format!("_{in_d}")), "{structure}");
        }
    }
}

/// The flags of a transfer are those that programs know.
#[test]
fn flags_of_transfers_are_those_of_the_library() {
    let (header, library) = (
        read("kmod/helpers/places.h"),
        read("userland-lib/dlib/io.d"),
    );
    let number = |text: &str| {
        let digits = text.trim().trim_end_matches(';').trim_start_matches("0x");
        u32::from_str_radix(digits, 16).expect("a number")
    };
    for (ours, theirs) in [
        ("READ", "READ"),
        ("WRITE", "WRITE"),
        ("ASYNC", "ASYNC"),
        ("PAGES", "PAGEIO"),
        ("DIRECT", "PHYS"),
        ("ERROR", "ERROR"),
    ] {
        let ours = number(between(
            &header,
            &format!("#define DTRACE_IO_{ours} "),
            "\n",
        ));
        let theirs = number(between(
            &library,
            &format!("inline int B_{theirs} = "),
            "\n",
        ));
        assert_eq!(ours, theirs);
    }
    let ours = header.matches("#define DTRACE_IO_").count();
    assert_eq!(ours, 6, "a flag that is not compared");
}

/// Returns the providers that the module registers, and `dtrace`.
fn providers() -> Set {
    let source = read("kmod/providers/mod.rs");
    let all = between(&source, "    Ok(Providers {", "    })");
    let fields = all.lines().filter_map(|line| line.trim().split_once(':'));
    let mut names = set(fields.map(|(field, _)| field.trim_start_matches('_')));
    assert!(names.remove("foreign"), "other modules");
    names.insert("dtrace".to_owned());
    names
}

/// Returns the providers whose probes have documented names.
fn documented() -> Set {
    let mut names = stems("kmod/providers", ".rs");
    names.retain(|name| {
        let source = read(&format!("kmod/providers/{name}.rs"));
        source.contains(": Definition = Definition {")
    });
    names
}

/// Returns the texts between backquotes in the first column of the table below a heading.
fn first_column(text: &str, heading: &str) -> Set {
    let table = text.split_once(heading).expect(heading).1;
    let rows = table.lines().skip_while(|line| !line.starts_with('|'));
    let rows = rows.skip(2).take_while(|line| line.starts_with('|'));
    let cells = rows.filter_map(|row| row.trim_start_matches("| ").split(" | ").next());
    set(cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)))
}

fn without(names: &Set, others: &[&str]) -> Set {
    names
        .difference(&set(others.iter().copied()))
        .cloned()
        .collect()
}

fn with(names: &Set, others: &[&str]) -> Set {
    names.union(&set(others.iter().copied())).cloned().collect()
}

#[test]
fn documents_tell_of_every_provider() {
    let all = providers();
    let pages = stems("docs/providers", ".md");
    // Probes that programs define, and those of other modules, have no provider of that name.
    assert_eq!(pages, with(&all, &["README", "modules", "usdt"]));
    let index = read("docs/providers/README.md");
    let linked = index.split("](").skip(1);
    let linked = set(linked.filter_map(|rest| rest.split_once(".md)").map(|(page, _)| page)));
    assert_eq!(linked, without(&pages, &["README"]));
    let named = with(&without(&all, &["pid"]), &["pidN", "nameN"]);
    let told = first_column(&read("README.md"), "\n## What is there\n");
    assert_eq!(told, named, "README.md");
    let told = first_column(&read("ARCHITECTURE.md"), "\n## How things fire\n");
    assert_eq!(told, named, "ARCHITECTURE.md");
}

/// Returns the first word of each line, after `@re`.
fn first_words(text: &str) -> Set {
    let lines = text.lines();
    set(lines.filter_map(|line| line.trim_start_matches("@re ").split(' ').next()))
}

#[test]
fn cases_know_every_provider() {
    let all = providers();
    let listed = first_words(&read("qemu-tests/cases/providers/list.out"));
    // Their probes are made on request: none is listed.
    assert_eq!(listed, without(&all, &["kinst", "pid"]));
    let case = read("qemu-tests/cases/providers/list.sh");
    let words = between(&case, "\ndocumented=\"", "\"").split(' ');
    assert_eq!(set(words), documented());
    let examples = first_words(&read("qemu-tests/cases/providers/documented.out"));
    assert_eq!(examples, stems("docs/providers", ".md"));
}

/// Whether a program has a probe of a provider.
fn has(program: &str, provider: &str) -> bool {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut places = program.match_indices(provider);
    places.any(|(at, _)| {
        let (before, after) = (&program[..at], &program[at + provider.len()..]);
        !before.ends_with(is_name) && after.starts_with([':', '-'])
    })
}

#[test]
fn checks_use_every_provider() {
    let all = providers();
    let used = |text: &str| -> Set { all.iter().filter(|name| has(text, name)).cloned().collect() };
    // `dtrace` shows nothing, and `pid` has a row of its own.
    let source = read("qemu-tests/src/bin/device-check/sight.rs");
    let sight = between(&source, "\nconst OF_KERNEL", "\nconst DESTRUCTIVE");
    assert_eq!(used(sight), without(&all, &["dtrace", "pid"]));
    let kernels = between(&source, "\nconst OF_KERNEL", "\n];");
    let text = read("ARCHITECTURE.md");
    let row = between(&text, "\n| `kernel-probes` | ", " | ");
    let told = set(row.split('`').skip(1).step_by(2));
    assert_eq!(used(kernels), told, "the row of kernel-probes");
    let source = read("qemu-tests/src/bin/shortage-check/main.rs");
    let program = between(&source, "\nconst PROGRAM: &str = r#\"", "\"#;");
    let others = ["dtrace", "kinst", "pid"];
    assert_eq!(used(program), without(&all, &others), "PROGRAM");
    let source = read("qemu-tests/src/bin/soak/mixed.rs");
    let mixed = used(between(&source, "\nconst ALL", "\n];"));
    let missing: Vec<_> = documented().difference(&mixed).cloned().collect();
    assert_eq!(missing, [""; 0], "ALL");
}

/// Returns the module's parameters, and the number that is the default of some.
fn parameters() -> BTreeMap<String, Option<u64>> {
    let source = read("kmod/dtrace.rs");
    let params = between(&source, "    params: {", "\n    },\n");
    let number = |text: &str| text.replace('_', "").parse().ok();
    let mut found = BTreeMap::new();
    for param in params
        .split("\n        }")
        .filter(|text| text.contains('{'))
    {
        let name = between(param, "\n        ", ":")
            .trim()
            .trim_start_matches(',');
        let default = number(between(param, "default: ", ","));
        found.insert(name.trim().to_owned(), default);
    }
    for name in stems("kmod/helpers", ".c") {
        let source = read(&format!("kmod/helpers/{name}.c"));
        for rest in source.split("\nmodule_param(").skip(1) {
            let name = rest.split(',').next().unwrap_or_default();
            let value = source.split_once(&format!(" {name} = "));
            let value = value.and_then(|(_, value)| value.split(';').next());
            let value = value.and_then(|value| match value.split_once("UL << ") {
                Some((number, shift)) => {
                    Some(number.parse::<u64>().ok()? << shift.parse::<u32>().ok()?)
                }
                None => value.parse().ok(),
            });
            found.insert(name.to_owned(), value);
        }
    }
    // 0 stands for a limit of the contract.
    found.insert("deadman_timeout".to_owned(), Some(limits::DEADMAN_TIMEOUT));
    found.insert("deadman_user".to_owned(), Some(limits::DEADMAN_USER));
    found
}

#[test]
fn the_manual_tells_the_parameters_and_their_defaults() {
    let page = read("docs/man/dtrace.8.md");
    let parameters = parameters();
    let told = first_column(&page, "\n## THE MODULE\n");
    assert_eq!(told, set(parameters.keys().map(String::as_str)));
    let mut checked = Vec::new();
    for (name, default) in &parameters {
        let row = between(&page, &format!("\n| `{name}` | "), " |\n");
        let told = row.split_once("The default is ").map(|(_, rest)| rest);
        let told = told.and_then(|rest| rest.split('.').next()).unwrap_or("");
        let (amount, unit) = told.split_once(' ').unwrap_or((told, ""));
        let unit = match unit {
            "MB" => 1 << 20,
            "s" => 1_000_000_000,
            _ => 1,
        };
        if let Ok(amount) = amount.replace(',', "").parse::<u64>() {
            assert_eq!(Some(amount * unit), *default, "{name}");
            checked.push(name.as_str());
        }
    }
    let expected = [
        "consumer_places",
        "deadman_timeout",
        "deadman_user",
        "unwind_tables",
        "user_places",
    ];
    assert_eq!(checked, expected);
}
