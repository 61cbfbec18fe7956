// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! ARCHITECTURE.md says what is true: the paths that it names exist, a folder imports what the map
//! allows it, and `unsafe` stands where INV-39 says. A processor is named where CONTRIBUTING.md
//! says. And each side reads the options that are its own.

use dtrace_uapi::option::{self, Opt};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// How paths begin that are not ours: those of the machine, of the kernel's sources, and of what is
/// installed.
const ELSEWHERE: [&str; 14] = [
    "/",
    "../lib/",
    "Evolving/",
    "PREFIX/",
    "Private/",
    "arch/x86/",
    "fs/",
    "include/linux/",
    "kernel/",
    "kprobes/",
    "mm/",
    "rust/",
    "security/",
    "sys/sdt.h",
];
/// The documents whose paths are checked.
const DOCUMENTS: [&str; 3] = ["ARCHITECTURE.md", "CONTRIBUTING.md", "README.md"];
/// The parts of the kernel half that are modules of one crate there.
const MODULES: [&str; 3] = ["kmod/framework", "kmod/providers", "kmod/sys"];
/// The modules of that crate.
const IN_KERNEL: [&str; 4] = ["bindings", "framework", "providers", "sys"];

/// The folders whose code does not name a processor, outside of what CONTRIBUTING.md lists.
const NEUTRAL: [&str; 4] = ["kmod", "uapi", "userland-lib", "dtrace-cmd"];
/// Words that only x86 has. They are compared with the parts of an identifier between underscores,
/// in small letters: the processor, its registers, bits of its registers and page tables, its
/// instructions and exceptions, and what the kernel has for it alone.
const WORDS: [&str; 68] = [
    "x86",
    "x64",
    "x87",
    "ia32",
    "i386",
    "386",
    "amd64",
    "rip",
    "rsp",
    "rbp",
    "rax",
    "rbx",
    "rcx",
    "rdx",
    "rsi",
    "rdi",
    "eip",
    "ebp",
    "eax",
    "ebx",
    "ecx",
    "edx",
    "esi",
    "edi",
    "rflags",
    "eflags",
    "cr0",
    "cr2",
    "cr3",
    "cr4",
    "dr6",
    "dr7",
    "xmm",
    "ymm",
    "xmm0",
    "ymm0",
    "fsbase",
    "gsbase",
    "pcd",
    "pwt",
    "msr",
    "rdmsr",
    "rdmsrq",
    "rdmsrl",
    "wrmsr",
    "wrmsrq",
    "wrmsrl",
    "rdtsc",
    "cpuid",
    "pushf",
    "pushfq",
    "popf",
    "popfq",
    "iretq",
    "swapgs",
    "sysret",
    "savesegment",
    "endbr",
    "endbr64",
    "nop5",
    "nop10",
    "int3",
    "0xcc",
    "blockstep",
    "shstk",
    "fixaddr",
    "vsyscall",
    "orc",
];
/// The same for whole identifiers.
const IDENTIFIERS: [&str; 6] = [
    "CALL_INSN_SIZE",
    "JMP8_INSN_SIZE",
    "JMP32_INSN_SIZE",
    "unsafe_try_cmpxchg_user",
    "_PAGE_USER",
    "_PAGE_SPECIAL",
];
/// Members of the kernel's registers of x86 (`struct pt_regs`), behind `regs->` or `regs.`.
const MEMBERS: [&str; 12] = [
    "ax", "bx", "cx", "dx", "si", "di", "bp", "sp", "ip", "cs", "ss", "flags",
];
/// Headers below `asm/` that every architecture has.
const EVERYWHERE: [&str; 2] = ["asm/irq_regs.h", "asm/syscall.h"];
/// Files and folders where such words stand all the same: which word, if not all, and why.
const EXCEPTIONS: [(&str, &str, &str); 7] = [
    ("kmod/engine/src", "x87", "the format of C's `long double`"),
    ("kmod/unwind/src/lib.rs", "x86", "names the module for it"),
    (
        "userland-lib/dlib/regs-x86_64.d",
        "",
        "uregs[]: each processor has such a file",
    ),
    (
        "userland-lib/dlib/sched.d",
        "x86",
        "the kernel's structure with the socket of a CPU",
    ),
    (
        "userland-lib/include/dtrace/site.h",
        "x86",
        "the header needs no other, and asks the compiler",
    ),
    (
        "userland-lib/machine/src/unwind/stopped.rs",
        "",
        "tests alone: programs of this machine",
    ),
    (
        "userland-lib/compiler/src/fixture.rs",
        "x86",
        "tests alone: code of a program",
    ),
];

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: impl AsRef<Path>) -> String {
    let path = top().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the paths of all files below `folder`, relative to the repository, except for what builds
/// leave.
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

/// Whether a quoted text is a path in the repository, or the end of one. Commands and examples have
/// other characters.
fn is_path(text: &str) -> bool {
    let is_plain = |c: u8| c.is_ascii_alphanumeric() || b"/._-".contains(&c);
    let is_others = ELSEWHERE.iter().any(|start| text.starts_with(start));
    text.contains('/') && text.bytes().all(is_plain) && !is_others
}

/// Returns the paths of a text that lead to nothing.
fn lost<'t>(text: &'t str, files: &[String]) -> Vec<&'t str> {
    let exists = |path: &&str| {
        let path = format!("/{}", path.trim_end_matches('/'));
        let inside = format!("{path}/");
        let mut files = files.iter().map(|file| format!("/{file}"));
        files.any(|file| file.ends_with(&path) || file.contains(&inside) || is_case(&file, &path))
    };
    let paths = quoted(text).filter(|text| is_path(text));
    paths.filter(|path| !exists(path)).collect()
}

/// Whether a file is the case of this name.
fn is_case(file: &str, name: &str) -> bool {
    file.starts_with("/qemu-tests/cases/") && file.ends_with(&format!("{name}.sh"))
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
    let (_, rest) = text.split_once("members = [").expect("members");
    let members = rest.split(']').next().unwrap_or_default();
    let folders = members.split('"').skip(1).step_by(2);
    let crates = folders.map(|folder| {
        let manifest = read(Path::new(folder).join("Cargo.toml"));
        let (_, rest) = manifest.split_once("name = \"").expect("a name");
        let name = rest.split('"').next().unwrap_or_default();
        (name.to_owned(), folder.to_owned())
    });
    crates.collect()
}

/// Returns the names of the crates of ours that a manifest depends on, except for its tests.
fn dependencies(manifest: &str, crates: &BTreeMap<String, String>) -> BTreeSet<String> {
    let mut is_list = false;
    let mut found = BTreeSet::new();
    for line in manifest.lines() {
        let table = line
            .strip_prefix('[')
            .and_then(|line| line.strip_suffix(']'));
        let mut name = None;
        if let Some(table) = table {
            is_list = table == "dependencies" || table.ends_with(".dependencies");
            // A table of its own: `[dependencies.NAME]`.
            name = table.rsplit_once("dependencies.").map(|(_, name)| name);
            name = name.filter(|_| !table.starts_with("dev-"));
        } else if is_list {
            let renamed = line.split_once("package = \"").map(|(_, rest)| rest);
            let renamed = renamed.and_then(|rest| rest.split('"').next());
            name = renamed.or_else(|| line.split(['.', ' ', '=']).next());
        }
        let folder = name.and_then(|name| crates.get(name));
        found.extend(folder.map(|folder| name_of(folder).to_owned()));
    }
    found
}

/// Returns what a source of the kernel half imports of ours: the modules of the kernel's crate, and
/// the crates `dtrace_*`. `depth` is the number of modules that the source's module lies in.
fn imports(source: &str, depth: usize, crates: &BTreeMap<String, String>) -> BTreeSet<String> {
    let lines = source.lines();
    let code: Vec<&str> = lines
        .map(|line| line.split("//").next().unwrap_or_default())
        .collect();
    let code = code.join(" ");
    let mut found = BTreeSet::new();
    let top = ["crate::".to_owned(), "super::".repeat(depth)];
    for start in top {
        for (at, _) in code.match_indices(&start) {
            let is_longer = code[..at].ends_with("super::") || code[..at].ends_with("crate::");
            if !is_longer {
                found.extend(first_names(&code[at + start.len()..]).map(str::to_owned));
            }
        }
    }
    found.retain(|name| IN_KERNEL.contains(&name.as_str()));
    // `dtrace` alone is the module of the provider.
    let crates = crates
        .iter()
        .filter(|(name, _)| name.starts_with("dtrace-"));
    for (name, folder) in crates {
        if code.contains(&format!("{}::", name.replace('-', "_"))) {
            found.insert(name_of(folder).to_owned());
        }
    }
    found
}

/// Returns the first name of a path, or of each path of a group in braces.
fn first_names(path: &str) -> impl Iterator<Item = &str> {
    let end = match path.starts_with('{') {
        true => path.find(';').unwrap_or(path.len()),
        false => 0,
    };
    let mut depth = 0;
    let group = path[..end]
        .split_inclusive([',', '{', '}'])
        .filter(move |word| {
            let is_first = depth == 1;
            match word.chars().last() {
                Some('{') => depth += 1,
                Some('}') => depth -= 1,
                _ => {}
            }
            is_first
        });
    let single = std::iter::once(path).filter(move |_| end == 0);
    single.chain(group).map(|word| {
        let word = word.trim_start();
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        &word[..word.find(|c| !is_name(c)).unwrap_or(word.len())]
    })
}

/// How many modules the module of a source in `kmod/` lies in.
fn depth(path: &str) -> usize {
    let parts = path.trim_start_matches("kmod/").split('/').count();
    parts - usize::from(path.ends_with("/mod.rs"))
}

fn is_test(path: &str) -> bool {
    path.ends_with("tests.rs") || path.ends_with("kunit.rs") || path.contains("/tests/")
}

#[test]
fn the_map_says_who_may_know_whom() {
    let text = read("ARCHITECTURE.md");
    let (map, crates) = (map(&text), crates());
    for folder in crates.values() {
        let known = map.get(folder.as_str());
        let known = known.unwrap_or_else(|| panic!("{folder} is not on the map"));
        let manifest = read(Path::new(folder).join("Cargo.toml"));
        let used = dependencies(&manifest, &crates);
        let unknown: Vec<_> = used.difference(known).collect();
        assert_eq!(unknown, Vec::<&String>::new(), "{folder} depends on");
        // What the map allows and nobody needs is a floor that can be closed.
        if !MODULES.contains(&folder.as_str()) {
            let unused: Vec<_> = known.difference(&used).collect();
            assert_eq!(unused, Vec::<&String>::new(), "{folder} does not depend on");
        }
    }
    for folder in MODULES {
        let known = &map[folder];
        let sources = files(folder)
            .into_iter()
            .filter(|file| file.ends_with(".rs"));
        for file in sources.filter(|file| !is_test(file)) {
            let mut used = imports(&read(&file), depth(&file), &crates);
            used.remove(name_of(folder));
            let unknown: Vec<_> = used.difference(known).collect();
            assert_eq!(unknown, Vec::<&String>::new(), "{file} imports");
        }
    }
}

#[test]
fn what_is_imported_is_seen() {
    let crates = crates();
    let seen = |source: &str| {
        let found = imports(source, depth("kmod/framework/probe.rs"), &crates);
        found.into_iter().collect::<Vec<_>>().join(" ")
    };
    for (source, names) in [
        ("use crate::bindings::a; // crate::providers::b", "bindings"),
        ("let x = dtrace_engine::mem::c();", "engine"),
        (
            "use crate::{\n    sys::{a, bindings},\n    providers::b,\n};",
            "providers sys",
        ),
        ("use super::super::sys::a;", "sys"),
        (
            "use super::sys::a; use crate::framework::sys; fn dtrace_sys() {}",
            "framework",
        ),
    ] {
        assert_eq!(seen(source), names, "{source}");
    }
    let manifest = "[package]\n\n[dependencies]\ndtrace-uapi.workspace = true\nnix = \"1\"\n\
        kernel = { package = \"dtrace-host-kernel\", path = \"x\" }\n\n\
        [dev-dependencies]\ndtrace-engine.workspace = true\n\n\
        [target.'cfg(loom)'.dependencies]\ndtrace-insn.workspace = true\n\n\
        [dependencies.dtrace-unwind]\npath = \"y\"\n";
    let found: Vec<String> = dependencies(manifest, &crates).into_iter().collect();
    assert_eq!(found, ["host", "insn", "uapi", "unwind"]);
}

/// Whether a source has code that is `unsafe`.
fn has_unsafe(source: &str) -> bool {
    let mut lines = source.lines();
    lines.any(|line| {
        let code = line.split("//").next().unwrap_or_default();
        let words = ["{", "fn ", "impl", "trait ", "extern "];
        words
            .iter()
            .any(|word| code.contains(&format!("unsafe {word}")))
    })
}

#[test]
fn unsafe_is_where_it_may_be() {
    let text = read("ARCHITECTURE.md");
    let (_, rest) = text.split_once("**INV-39.").expect("the invariant");
    let paragraph = rest.split("\n\n").next().unwrap_or_default();
    let allowed: Vec<&str> = quoted(paragraph)
        .filter(|text| text.contains('/'))
        .collect();
    let may = |file: &str| {
        let mut allowed = allowed.iter();
        allowed.any(|path| file == *path || file.starts_with(&format!("{path}/")))
    };
    let sources = files("").into_iter().filter(|file| file.ends_with(".rs"));
    // Tests may do it to stand for the kernel.
    let sources = sources.filter(|file| !is_test(file) && !may(file));
    let wrong: Vec<String> = sources.filter(|file| has_unsafe(&read(file))).collect();
    assert_eq!(wrong, Vec::<String>::new());
    let none = "#![forbid(unsafe_code)] // unsafe {";
    assert!(has_unsafe("fn a() { unsafe { b() } }") && !has_unsafe(none));
}

/// Returns the options that a source names outside of its tests.
fn options_of(source: &str) -> BTreeSet<String> {
    let code = source.split("#[cfg(test)]\nmod tests {").next();
    let lines = code.unwrap_or_default().lines();
    let code = lines.filter(|line| !line.trim_start().starts_with("//"));
    let names = code.flat_map(|line| line.split("Opt::").skip(1));
    let names = names.flat_map(|rest| first_names(rest).next());
    let is_option = |name: &&str| name.starts_with(|c: char| c.is_ascii_uppercase());
    names.filter(is_option).map(str::to_owned).collect()
}

/// Returns the options that the code in some folders names, in files that are not `left_out`.
fn options_in(folders: &[&str], left_out: impl Fn(&str) -> bool) -> BTreeSet<String> {
    let files = folders.iter().flat_map(|folder| files(folder));
    let sources = files.filter(|file| file.ends_with(".rs") && !is_test(file));
    let sources = sources.filter(|file| !left_out(file));
    sources.flat_map(|file| options_of(&read(file))).collect()
}

/// Where the engine checks the values of options.
const CHECKS: &str = "kmod/engine/src/consumer/options.rs";

/// Returns the options of which something holds, as code names them.
fn options(hold: impl Fn(Opt) -> bool) -> BTreeSet<String> {
    let held = option::NAMES.iter().filter(|(opt, _)| hold(*opt));
    held.map(|(opt, _)| format!("{opt:?}")).collect()
}

#[test]
fn the_kernel_reads_the_options_that_are_its_own() {
    let read = options_in(
        &[
            "kmod/engine/src",
            "kmod/framework",
            "kmod/providers",
            "kmod/sys",
        ],
        |file| file == CHECKS,
    );
    assert_eq!(read, options(Opt::is_kernels));
}

/// What clauses are built by must not change once there are clauses.
#[test]
fn clauses_fix_the_options_by_which_they_are_built() {
    let checks = read(CHECKS);
    let (_, rest) = checks.split_once("let shapes = matches!(").expect("them");
    let fixed = options_of(rest.split(");").next().unwrap_or_default());
    let building = ["kmod/engine/src/ecb", "kmod/engine/src/consumer"];
    let is_other =
        |file: &str| file.starts_with(building[1]) && !file.ends_with("/consumer/pending.rs");
    assert_eq!(options_in(&building, is_other), fixed);
}

#[test]
fn the_library_reads_the_other_options() {
    let tables = "userland-lib/compiler/src/options/";
    let folders = ["userland-lib", "dtrace-cmd/src"];
    let read = options_in(&folders, |file| file.starts_with(tables));
    let others = options(|opt| opt.is_read() && !opt.is_kernels());
    let unread: Vec<_> = others.difference(&read).collect();
    assert_eq!(unread, Vec::<&String>::new());
}

/// Returns a source without its comments, and without the tests at its end.
fn code_of(path: &str, source: &str) -> String {
    let source = source.split("#[cfg(test)]\nmod tests {").next();
    let mut rest = source.unwrap_or_default();
    let mut code = String::new();
    if !path.ends_with(".rs") {
        while let Some((before, comment)) = rest.split_once("/*") {
            code.push_str(before);
            rest = comment.split_once("*/").map_or("", |(_, rest)| rest);
        }
    }
    code.push_str(rest);
    let is_d = path.ends_with(".d");
    let lines = code.lines().map(|line| match is_d {
        true => line,
        false => line.split("//").next().unwrap_or_default(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the words of x86 in a source.
fn words_of(path: &str, source: &str) -> BTreeSet<String> {
    let code = code_of(path, source);
    let is_in_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut found = BTreeSet::new();
    let names: BTreeSet<&str> = code.split(|c| !is_in_name(c)).collect();
    for name in names {
        let parts = name.split('_').map(str::to_ascii_lowercase);
        found.extend(parts.filter(|part| WORDS.contains(&part.as_str())));
        found.extend(IDENTIFIERS.contains(&name).then(|| name.to_owned()));
    }
    for start in ["regs->", "regs."] {
        for (at, _) in code.match_indices(start) {
            let member = first_names(&code[at + start.len()..])
                .next()
                .unwrap_or_default();
            let is_call = code[at + start.len() + member.len()..].starts_with('(');
            if MEMBERS.contains(&member) && !is_call {
                found.insert(format!("{start}{member}"));
            }
        }
    }
    for (at, _) in code.match_indices("<asm/") {
        let header = code[at + 1..].split('>').next().unwrap_or_default();
        found.extend((!EVERYWHERE.contains(&header)).then(|| header.to_owned()));
    }
    // Programs that are traced, and their headers, have assembly.
    if path.starts_with("kmod/") {
        let assembly = ["asm!(", "asm volatile", "asm goto"];
        found.extend(
            assembly
                .iter()
                .filter(|text| code.contains(**text))
                .map(|text| (*text).to_owned()),
        );
    }
    found
}

#[test]
fn processors_are_named_where_they_may_be() {
    let text = read("CONTRIBUTING.md").replace("\n  ", " ");
    let (_, rest) = text
        .split_once("Lines that know a processor")
        .expect("the rule");
    let rule = rest.lines().next().unwrap_or_default();
    let seam: Vec<&str> = quoted(rule).filter(|text| text.contains('/')).collect();
    assert!(seam.contains(&"kmod/arch"), "{seam:?}");
    let is_within = |file: &str, path: &str| file == path || file.starts_with(&format!("{path}/"));
    let is_source = |file: &str| {
        [".rs", ".c", ".h", ".S", ".d"]
            .iter()
            .any(|end| file.ends_with(end))
    };
    let mut needed = BTreeSet::new();
    let mut wrong = Vec::new();
    for file in NEUTRAL.iter().flat_map(|folder| files(folder)) {
        let is_apart = is_test(&file) || seam.iter().any(|path| is_within(&file, path));
        if is_apart || !is_source(&file) {
            continue;
        }
        for word in words_of(&file, &read(&file)) {
            let mut exceptions = EXCEPTIONS.iter();
            let is_known = |(path, one, _): &(&str, &str, &str)| {
                is_within(&file, path) && (word == *one || one.is_empty())
            };
            match exceptions.position(is_known) {
                Some(n) => {
                    needed.insert(n);
                }
                None => wrong.push(format!("{file}: {word}")),
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    // An exception that nobody needs is one that can go.
    assert_eq!(needed.len(), EXCEPTIONS.len(), "{needed:?}");
}

#[test]
fn what_only_x86_has_is_seen() {
    let seen = |path: &str, source: &str| {
        let found = words_of(path, source).into_iter();
        found.collect::<Vec<_>>().join(" ")
    };
    for (path, source, words) in [
        ("kmod/a.rs", "let a = c\"__x64_sys_read\"; // rip", "x64"),
        ("kmod/a.rs", "let UINT32_T = print3(regs.ip());", ""),
        (
            "kmod/a.rs",
            "regs.ip = 1;\n#[cfg(test)]\nmod tests {\nrip",
            "regs.ip",
        ),
        (
            "kmod/a.rs",
            "unsafe { core::arch::asm!(\"pushfq\") }",
            "asm!( pushfq",
        ),
        (
            "kmod/a.c",
            "if (event != DIE_INT3) /* cr3\n rip */ regs->di = 0;",
            "int3 regs->di",
        ),
        (
            "kmod/a.c",
            "#include <asm/syscall.h>\n#include <asm/msr.h>",
            "asm/msr.h msr",
        ),
        (
            "kmod/a.h",
            "#define A (B == 0xcc || CALL_INSN_SIZE)",
            "0xcc CALL_INSN_SIZE",
        ),
        ("userland-lib/a.rs", "r_type == elf::R_X86_64_64", "x86"),
        (
            "userland-lib/a.d",
            "((struct cpuinfo_x86 *)a) // no comment: rsp",
            "rsp x86",
        ),
    ] {
        assert_eq!(seen(path, source), words, "{source}");
    }
}
