// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Programs in files, with what the compiler makes of them: `tests/ok/NAME.d` gives the listing `NAME.out`,
//! `tests/err/TAG.NAME.d` is refused with that tag and the message `TAG.NAME.out`. `UPDATE_EXPECT=1` writes them anew.

use crate::compile::{Compiler, Settings};
use crate::disassemble;
use crate::source::Source;
use crate::types::btf::{fixture, Btf};
use crate::world::{
    ArgInfo, ProbeInfo, ProbePattern, ProbeSource, Symbol, SymbolSource, TypeSource,
};
use dtrace_uapi::types::ProbeId;
use expect_test::expect_file;
use proptest::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A little kernel: the types of [`fixture::kernel`], a few symbols, and every probe but those named `nosuch` or `entyr`.
struct Little(Arc<Btf>);

impl ProbeSource for Little {
    fn matching(&self, pattern: &ProbePattern, limit: usize) -> Vec<ProbeInfo> {
        if ["nosuch", "entyr"].contains(&pattern.name.as_str()) || pattern.id > 100 {
            return Vec::new();
        }
        let probe = |func: &str| ProbeInfo {
            id: 1,
            provider: pattern.provider.clone(),
            module: "vmlinux".to_owned(),
            func: func.to_owned(),
            name: match pattern.name.as_str() {
                "" => "entry".to_owned(),
                name => name.to_owned(),
            },
        };
        let mut probes = vec![probe(&pattern.func)];
        if pattern.func == "*" {
            probes = vec![probe("wake_up_process"), probe("printk")];
        }
        probes.truncate(limit);
        probes
    }

    fn argument(&self, _id: ProbeId, index: u32) -> Option<ArgInfo> {
        (index < 2).then(|| ArgInfo {
            mapping: 1 - index,
            native: ["struct task_struct *", "int"][index as usize].to_owned(),
            translated: String::new(),
        })
    }
}

impl TypeSource for Little {
    fn btf(&self, module: &str) -> Option<Arc<Btf>> {
        (module == "vmlinux").then(|| self.0.clone())
    }

    fn modules(&self) -> Vec<String> {
        Vec::new()
    }
}

impl SymbolSource for Little {
    fn symbol(&self, _module: Option<&str>, name: &str) -> Option<Symbol> {
        ["jiffies_64", "current_task", "total_forks", "untyped"]
            .contains(&name)
            .then(|| Symbol {
                address: 0xffff_ffff_8200_0000,
                module: "vmlinux".to_owned(),
            })
    }
}

/// The programs of a folder of `tests/`.
fn programs(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests")
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
    let world = Little(fixture::kernel().build());
    let text = std::fs::read_to_string(path).expect("a program");
    let source = Source::file(path.display().to_string(), text);
    let settings = Settings {
        args: vec!["script".to_owned(), "42".to_owned(), "word".to_owned()],
        macros: vec![("target".to_owned(), 7)],
        argref: true,
        ..Settings::default()
    };
    let program = Compiler::new(&world).compile(&source, &settings);
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
    for path in programs("err") {
        let (source, program) = compile(&path);
        let Err(error) = program else {
            panic!("{} compiles", path.display());
        };
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or("");
        let tag = name.split('.').next().unwrap_or("");
        assert_eq!(error.tag, tag, "{name}: {error}");
        let text = format!(
            "{}\n{}",
            error.headline(&source, true),
            error.snippet(&source)
        );
        expect_file![path.with_extension("out")].assert_eq(&text);
    }
}

/// The demonstrations compile as people run them: after the system's libraries.
#[test]
fn demonstrations_compile() {
    let world = Little(fixture::kernel().build());
    let own = crate::handle::libraries(&Default::default(), |_| true).expect("libraries");
    let demonstrations = programs("../demo");
    assert!(demonstrations.len() >= 30);
    for path in demonstrations {
        let mut compiler = Compiler::new(&world);
        for library in own.clone() {
            let settings = Settings {
                empty: true,
                ..Settings::default()
            };
            let library = Source::library(library.path, library.text);
            compiler.compile(&library, &settings).expect("a library");
        }
        let text = std::fs::read_to_string(&path).expect("a program");
        // Those that do with fewer arguments take numbers, the others a function's name.
        let argument = match text.contains("defaultargs") {
            true => "7",
            false => "vfs_read",
        };
        let macros = ["pid", "target"].map(|name| (name.to_owned(), 7));
        let settings = Settings {
            args: vec![path.display().to_string(), argument.to_owned()],
            macros: macros.into(),
            argref: true,
            ..Settings::default()
        };
        let source = Source::file(path.display().to_string(), text);
        if let Err(error) = compiler.compile(&source, &settings) {
            let headline = error.headline(&source, true);
            panic!("{}: {headline}\n{}", path.display(), error.snippet(&source));
        }
    }
}

/// A field that a kernel has not disables the members that read it, and them alone.
#[test]
fn a_member_whose_field_is_gone_is_an_error_where_it_is_read() {
    let world = Little(fixture::kernel().build());
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

/// Under `-xlinkmode=dynamic` nobody would ever fill in the address of a symbol.
#[test]
fn symbols_that_are_left_open_are_refused() {
    let world = Little(fixture::kernel().build());
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

/// Pieces that programs are made of, and pieces that they are not.
const PIECES: &[&str] = &[
    "BEGIN",
    "syscall::read:entry",
    "/",
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    ";",
    ",",
    "@",
    "@a",
    "=",
    "+=",
    "++",
    "->",
    ".",
    "*",
    "&",
    "-",
    "!",
    "?",
    ":",
    "==",
    "<",
    "<<",
    "&&",
    "^^",
    "self->x",
    "this->y",
    "x",
    "y",
    "pid",
    "execname",
    "curthread",
    "args",
    "arg0",
    "1",
    "0x7f",
    "077",
    "'c'",
    "\"s\"",
    "\"%d %s\"",
    "count",
    "sum",
    "quantize",
    "lquantize",
    "printf",
    "printa",
    "trace",
    "exit",
    "stack",
    "strlen",
    "copyinstr",
    "int",
    "char",
    "struct",
    "task_struct",
    "union",
    "enum",
    "typedef",
    "string",
    "inline",
    "translator",
    "xlate",
    "sizeof",
    "offsetof",
    "stringof",
    "if",
    "else",
    "`",
    "jiffies_64",
    "$1",
    "$$1",
    "$target",
    "#pragma D option quiet\n",
    "#pragma D attributes Stable/Stable/Common x\n",
    "extern",
    "self",
    "this",
    "const",
    "unsigned",
    "long",
    "translator struct s < int i > { a = i; };",
    "struct s { int a : 3; struct s *next; char c[4]; };",
    "enum e { A, B = 3 };",
    "inline int f[int x] = x;",
    "int a[2], b[int];",
    "xlate <struct s> (1).a",
    "offsetof(struct s, c)",
    "uregs[",
    "...",
    "else if (x)",
    "/*",
    "*/",
    "\n",
    "\\",
    "\"",
    "'",
    "#",
    "\u{e9}",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Whatever the text is, there is a program or a message with a place in the text.
    #[test]
    fn nonsense_is_refused_and_nothing_worse(pieces in prop::collection::vec(prop::sample::select(PIECES), 0..40)) {
        survives(&pieces.join(" "));
        survives(&pieces.concat());
    }

    /// Nor is anything worse for programs that were right before something was cut out, doubled or put in.
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

/// All programs of `tests/`.
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
    let world = Little(fixture::kernel().build());
    let source = Source::argument(text);
    let settings = Settings {
        args: vec!["script".to_owned(), "-3".to_owned()],
        ..Settings::default()
    };
    if let Err(error) = Compiler::new(&world).compile(&source, &settings) {
        assert!(!error.message.is_empty());
        assert!(error.span.start as usize <= text.len() && error.span.start <= error.span.end);
        assert!(!error.snippet(&source).is_empty());
    }
}
