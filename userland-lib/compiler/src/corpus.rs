// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Tests on a corpus of programs with their expected results: `tests/ok/NAME.d` must yield the
//! listing `NAME.out`, and `tests/err/TAG.NAME.d` must be rejected with that tag and the message
//! `TAG.NAME.out`. `UPDATE_EXPECT=1` rewrites the expected results.

use crate::compile::{Compiler, Settings};
use crate::disassemble;
use crate::fixture::{Little, PIECES};
use crate::options::Options;
use crate::source::Source;
use expect_test::expect_file;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Returns the programs in a folder of `tests/`.
fn programs(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../tests")
        .join(folder);
    let entries = folder.read_dir().expect("a folder of programs");
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "d"))
        .collect();
    files.sort();
    assert!(!files.is_empty());
    files
}

fn compile(path: &Path) -> (Source, crate::diag::Result<crate::program::Program>) {
    let world = Little::default();
    let text = std::fs::read_to_string(path).expect("a program");
    let source = Source::file(path.display().to_string(), text);
    let args = ["script", "42", "word", "99999999999999999999"];
    let settings = Settings {
        args: args.map(str::to_owned).into(),
        macros: vec![("target".to_owned(), 7)],
        argref: !source.text.contains("@argref=no"),
        ..Settings::default()
    };
    let mut options = Options::default();
    let read = options.read(&source, &settings.macros());
    let program = read.and_then(|()| {
        let settings = settings.under(&options);
        Compiler::new(&world).compile(&source, &settings)
    });
    (source, program)
}

#[test]
fn good_programs_become_code() {
    for path in programs("ok") {
        let (source, program) = compile(&path);
        let program = program.unwrap_or_else(|error| {
            panic!(
                "{}: {}\n{}",
                path.display(),
                error.headline(&source, true),
                error.snippet(&source)
            )
        });
        let mut listing = Vec::new();
        disassemble::program(&program, &mut listing).expect("a listing");
        let listing = String::from_utf8_lossy(&listing);
        expect_file![path.with_extension("out")].assert_eq(&listing);
    }
}

#[test]
fn bad_programs_are_refused_in_dtraces_words() {
    let mut others = Vec::new();
    for path in programs("err") {
        let (source, program) = compile(&path);
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or("");
        let Err(error) = program else {
            others.push(format!("{name} compiles"));
            continue;
        };
        let tag = name.split('.').next().unwrap_or("");
        if error.tag != tag {
            others.push(format!("{name}: {error}"));
            continue;
        }
        let text = format!(
            "{}\n{}",
            error.headline(&source, true),
            error.snippet(&source)
        );
        expect_file![path.with_extension("out")].assert_eq(&text);
    }
    assert_eq!(others, Vec::<String>::new());
}

/// `tests/tags`: each tag, and for tags without a program the reason why there is none.
fn tags() -> BTreeMap<&'static str, &'static str> {
    let lines = include_str!("../../tests/tags").lines();
    let lines = lines.filter(|line| !line.starts_with('#') && !line.is_empty());
    lines
        .map(|line| line.split_once(' ').unwrap_or((line, "")))
        .collect()
}

#[test]
fn every_tag_has_a_program() {
    let shown: BTreeSet<String> = programs("err")
        .iter()
        .filter_map(|path| Some(path.file_name()?.to_str()?.split('.').next()?.to_owned()))
        .collect();
    let known = tags();
    for (tag, why_not) in &known {
        assert_eq!(shown.contains(*tag), why_not.is_empty(), "{tag}");
    }
    for tag in shown {
        assert!(
            known.contains_key(tag.as_str()),
            "{tag} is not in tests/tags"
        );
    }
}

/// Every tag that the compiler can raise must be listed, so that none is without a program by
/// oversight.
#[test]
fn every_tag_of_the_source_is_known() {
    let library = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let crates = library.read_dir().expect("the library's crates");
    let sources = crates.map(|entry| entry.expect("an entry").path().join("src"));
    let mut folders: Vec<PathBuf> = sources.filter(|folder| folder.is_dir()).collect();
    folders.push(library.join("src"));
    let mut found = BTreeSet::new();
    while let Some(folder) = folders.pop() {
        for entry in folder.read_dir().expect("a folder of source") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("source");
            let words = text.split('"').filter(|word| {
                let is_tag = |c: char| c.is_ascii_uppercase() || c == '_';
                word.starts_with("D_") && !word.ends_with('_') && word.chars().all(is_tag)
            });
            found.extend(words.map(str::to_owned));
        }
    }
    let known = tags();
    let unknown: Vec<&String> = found
        .iter()
        .filter(|tag| !known.contains_key(tag.as_str()))
        .collect();
    assert_eq!(unknown, Vec::<&String>::new());
    for (tag, why_not) in known {
        let raised = found.contains(tag);
        assert_eq!(raised, !why_not.starts_with("never: "), "{tag}");
    }
}

/// Generated, because no file should contain so many variables.
#[test]
fn variables_end_with_their_numbers() {
    use std::fmt::Write;
    let mut text = String::new();
    for number in 0..=u16::MAX - dtrace_uapi::var::OTHER_UBASE + 1 {
        let _ = write!(text, "int v{number};");
    }
    let world = Little::default();
    let source = Source::file("many.d", text);
    let error = Compiler::new(&world).compile(&source, &Settings::default());
    let error = error.expect_err("too many");
    assert_eq!(
        error.to_string(),
        "[D_ID_OFLOW] cannot create v64256: too many variables"
    );
}

/// Compiles a program after the system's libraries, as in normal use. It must be valid.
pub fn compiles(source: &Source, settings: &Settings) {
    let world = Little::default();
    let mut compiler = Compiler::new(&world);
    for library in crate::libraries::libraries(&Default::default(), |_| true).expect("libraries") {
        let settings = Settings {
            empty: true,
            ..Settings::default()
        };
        let library = Source::library(library.path, library.text);
        compiler.compile(&library, &settings).expect("a library");
    }
    let mut options = Options::default();
    let read = options.read(source, &settings.macros());
    read.expect("good options");
    if let Err(error) = compiler.compile(source, &settings.clone().under(&options)) {
        let headline = error.headline(source, true);
        panic!("{:?}: {headline}\n{}", source.origin, error.snippet(source));
    }
}

/// The demonstrations compile with the arguments that users give.
#[test]
fn demonstrations_compile() {
    let demonstrations = programs("../demo");
    assert!(demonstrations.len() >= 30);
    for path in demonstrations {
        let text = std::fs::read_to_string(&path).expect("a program");
        // Programs with default arguments take numbers, the others the name of a function.
        let argument = match text.contains("defaultargs") {
            true => "7",
            false => "vfs_read",
        };
        let macros = ["pid", "target"].map(|name| (name.to_owned(), 7));
        let settings = Settings {
            args: [&path.display().to_string(), argument, "main"]
                .map(str::to_owned)
                .to_vec(),
            macros: macros.into(),
            argref: true,
            // There is no process here in which the probes could exist.
            allow_zero_matches: text.contains("$target:"),
            ..Settings::default()
        };
        compiles(&Source::file(path.display().to_string(), text), &settings);
    }
}

/// A field that a kernel lacks disables only those members of a translator that read it.
#[test]
fn a_member_whose_field_is_gone_is_an_error_where_it_is_read() {
    let world = Little::default();
    let mut compiler = Compiler::new(&world);
    let mut compile = |source: &Source| {
        let settings = Settings {
            empty: true,
            ..Settings::default()
        };
        let program = compiler.compile(source, &settings);
        program
            .map(drop)
            .map_err(|error| error.headline(source, true))
    };
    let library = "typedef struct seen {\n\tint there;\n\tint gone;\n} seen_t;\n\n\
                   translator seen_t < struct task_struct *T > {\n\
                   \tthere = T->pid;\n\tgone = T->gone;\n};\n\
                   inline seen_t seen = xlate <seen_t> (curthread);\n";
    assert_eq!(compile(&Source::library("seen.d", library)), Ok(()));
    let there = "BEGIN\n{\n\ttrace(seen.there);\n}\n";
    assert_eq!(compile(&Source::file("x.d", there)), Ok(()));
    let gone = "BEGIN\n{\n\ttrace(seen.gone);\n}\n";
    let error = compile(&Source::file("x.d", gone)).unwrap_err();
    assert_eq!(
        error,
        "[D_TYPE_MEMBER] line 3: gone is not a member of struct task_struct"
    );
}

/// Under `-xlinkmode=dynamic` nothing fills in the address of a symbol later.
#[test]
fn symbols_that_are_left_open_are_refused() {
    let world = Little::default();
    let source = Source::argument("BEGIN { trace((uint64_t)&`jiffies_64); }");
    let compile = |no_symbols| {
        let settings = Settings {
            no_symbols,
            ..Settings::default()
        };
        let program = Compiler::new(&world).compile(&source, &settings);
        program.map_err(|error| error.to_string())
    };
    assert!(compile(false).is_ok());
    assert_eq!(
        compile(true).unwrap_err(),
        "[D_ASRELO] relocation remains against kernel symbol vmlinux`jiffies_64 \
         (offset 0xffffffff82000000)"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Any text yields a program or a message with a location in the text.
    #[test]
    fn nonsense_is_refused_and_nothing_worse(pieces in prop::collection::vec(prop::sample::select(PIECES), 0..40)) {
        survives(&pieces.join(" "));
        survives(&pieces.concat());
    }

    /// The same holds for valid programs in which something was removed, duplicated or inserted.
    #[test]
    fn damage_is_refused_and_nothing_worse(
        which in any::<prop::sample::Index>(),
        [from, to, at] in any::<[prop::sample::Index; 3]>(),
        piece in prop::sample::select(PIECES),
        cut in any::<bool>(),
    ) {
        let texts = texts();
        let text = which.get(texts);
        let place = |index: prop::sample::Index| {
            let mut place = index.index(text.len() + 1);
            while !text.is_char_boundary(place) {
                place -= 1;
            }
            place
        };
        let (from, to, at) = (place(from), place(to), place(at));
        let (from, to) = (from.min(to), from.max(to));
        if cut {
            survives(&[&text[..from], piece, &text[to..]].concat());
        } else {
            survives(&[&text[..at], &text[from..to], piece, &text[at..]].concat());
        }
    }

    #[test]
    fn any_text_is_read(text in ".{0,60}") {
        survives(&text);
        survives(&format!("BEGIN {{ {text} }}"));
    }
}

/// Returns all programs of `tests/`.
fn texts() -> &'static [String] {
    static TEXTS: std::sync::OnceLock<Vec<String>> = std::sync::OnceLock::new();
    TEXTS.get_or_init(|| {
        let paths = ["ok", "err"].into_iter().flat_map(programs);
        paths
            .map(|path| std::fs::read_to_string(path).expect("a program"))
            .collect()
    })
}

fn survives(text: &str) {
    let world = Little::default();
    let source = Source::argument(text);
    let settings = Settings {
        args: vec!["script".to_owned(), "-3".to_owned()],
        ..Settings::default()
    };
    if let Err(error) = Compiler::new(&world).compile(&source, &settings) {
        assert!(!error.message.is_empty());
        assert!(error.span.start as usize <= text.len() && error.span.start <= error.span.end);
        let shown = error.snippet(&source);
        assert!(shown.is_empty() || shown.ends_with('\n'));
    }
}
