// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Files of running processes, and the functions in them.

use super::{bare, code, objects};
use crate::proc::Target;
use crate::symbols::mappings_of;
use dtrace_compiler::compile::ProbeSpec;
use dtrace_compiler::options::EvalTime;
use dtrace_compiler::sema::description;
use dtrace_objects::pid::{resolve, Code, Kind, Object, Resolved, MADE, VDSO};
use dtrace_objects::processes::ProcessSource;
use dtrace_uapi::limits::FUNCNAMELEN;
use nix::sys::wait::{waitid, Id, WaitPidFlag};
use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

#[test]
fn a_file_that_is_no_program_has_no_code() {
    assert!(Code::parse(b"#!/bin/sh\n").is_err());
    use object::write::Object;
    let other = Object::new(
        object::BinaryFormat::Elf,
        object::Architecture::Riscv64,
        object::Endianness::Little,
    );
    let error = Code::parse(&other.write().expect("a file")).unwrap_err();
    assert_eq!(error.to_string(), "code of an unknown machine");
    let large = std::env::temp_dir().join(format!("dtrace-large-{}", std::process::id()));
    let file = fs::File::create(&large).expect("a file");
    file.set_len((1 << 31) + 1).expect("a hole");
    let refused = |file: &Path| {
        let object = dtrace_objects::pid::Object {
            name: String::new(),
            path: String::new(),
            file: file.to_owned(),
            is_program: false,
            code: Vec::new(),
        };
        code(&object).unwrap_err().to_string()
    };
    assert_eq!(refused(&large), "the file is too large");
    assert_eq!(refused(Path::new("/dev/zero")), "it is no file");
    fs::remove_file(&large).expect("no file");
}

/// Symbols of a file are arbitrary bytes; each function still has a printable name by which it is
/// found.
#[test]
fn names_that_do_something_to_a_terminal_are_functions_too() {
    let folder = std::env::temp_dir().join(format!("dtrace-names-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let build = "echo 'int f_11(void) { return 1; } int f_2(void) { return 2; } int f_3(void) { return 3; } int main(void) { return 0; }' >a.c && \
        gcc -O1 -o a a.c && LC_ALL=C sed 's/f_11/f_\\x1b[/; s/f_2/f_\\xf6/; s/f_3/f:\\n/' a >b";
    let mut shell = Command::new("sh");
    let done = shell.args(["-ec", build]).current_dir(&folder).status();
    assert!(done.expect("a shell").success());
    let code = Code::parse(&fs::read(folder.join("b")).expect("a file")).expect("a program");
    fs::remove_dir_all(&folder).expect("no folder");
    for name in ["f_?[", "f_\u{fffd}", "f:?"] {
        assert!(code.function(name).is_some(), "{name:?}");
    }
    let all = code.functions().flatten();
    let mut names = all.map(|function| function.name.as_bytes());
    assert!(names.all(dtrace_uapi::names::is_printable));
}

/// The running processes.
struct Running;

impl ProcessSource for Running {
    fn objects(&self, pid: u32) -> io::Result<Vec<Object>> {
        objects(pid)
    }

    fn code(&self, object: &Object) -> io::Result<Code> {
        code(object)
    }
}

fn resolved(text: &str) -> Resolved {
    let pattern = description(text, ProbeSpec::Name).expect("a description");
    let resolved = resolve(&Running, &pattern);
    resolved.expect("a good description").expect("of a process")
}

/// Returns the file of the code at `address` of this process, and the code's offset in it.
fn in_file(address: u64) -> (String, u64) {
    let all = mappings_of(std::process::id()).expect("mappings");
    let mut all = all.into_iter();
    let mapping = all.find(|mapping| (mapping.start..mapping.end).contains(&address));
    let mapping = mapping.expect("its mapping");
    (mapping.path, address - mapping.start + mapping.offset)
}

/// A process that runs the same program as this one, which has symbols.
fn twin() -> Target {
    let program = std::env::current_exe().expect("a program");
    let command = format!("'{}' --list", program.display());
    Target::create(&command, &[], EvalTime::Main).expect("a twin")
}

#[test]
fn functions_are_where_they_were_mapped_from() {
    let twin = twin();
    let (path, offset) = in_file(twin_address());
    let text = format!("pid{}:a.out:*twin_address*:entry", twin.pid());
    let Resolved {
        pattern, places, ..
    } = resolved(&text);
    let [place] = &places[..] else {
        panic!("one place expected: {places:?}");
    };
    assert_eq!((&place.object.path, place.offset), (&path, offset));
    assert!(place.func.contains("twin_address"), "{}", place.func);
    assert!(place.object.is_program);
    assert_eq!(pattern.module, path.rsplit('/').next().unwrap_or(""));

    let (path, offset) = in_file(nix::libc::getpid as *const () as usize as u64);
    let text = format!("pid{}:libc:getpid:entry", twin.pid());
    let Resolved {
        pattern, places, ..
    } = resolved(&text);
    let found: Vec<_> = places
        .iter()
        .map(|place| (&place.object.path, place.offset))
        .collect();
    assert_eq!(found, [(&path, offset)]);
    // Which of its names is preferred depends on the C library.
    assert!(pattern.func.ends_with("getpid"), "{}", pattern.func);
    assert!(pattern.module.starts_with("libc."), "{}", pattern.module);
    assert!(!places[0].object.is_program);
}

#[inline(never)]
fn twin_address() -> u64 {
    twin_address as *const () as usize as u64
}

#[test]
fn the_kernels_code_for_processes_has_functions() {
    let me = std::process::id();
    let vdso = bare(me, VDSO).expect("one");
    let code = code(&vdso).expect("an image");
    let function = code.function("clock_gettime").expect("a function");
    assert!(vdso
        .address(code.file_offset(function.address).expect("text"))
        .is_some());
    assert!(bare(me, "libc").is_none());
    assert!(super::code(&bare(me, MADE).expect("perhaps none")).is_err());
}

#[test]
fn what_was_replaced_is_read_as_the_process_has_it() {
    let copy = std::env::temp_dir().join(format!("dtrace-replaced-{}", std::process::id()));
    dtrace_files::testing::copy_program("/bin/cat".as_ref(), &copy);
    let command = format!("'{}' /dev/null", copy.display());
    let target = Target::create(&command, &[], EvalTime::Exec).expect("a process");
    fs::remove_file(&copy).expect("no file");
    fs::write(&copy, "another").expect("another file");
    let objects = objects(target.pid()).expect("objects");
    let program = &objects[0];
    let name = copy
        .file_name()
        .map(|name| name.to_string_lossy().into_owned());
    assert_eq!(
        (Some(program.name.clone()), program.is_program),
        (name, true)
    );
    assert!(code(program).is_ok());
    fs::remove_file(&copy).expect("no file");
}

#[test]
fn who_runs_no_program_of_its_own_is_not_looked_at() {
    let why = |pid: u32| objects(pid).expect_err("no objects").to_string();
    assert_eq!(why(std::process::id()), "it is dtrace itself");
    let thread = std::thread::spawn(nix::unistd::gettid)
        .join()
        .expect("a thread");
    assert!(objects(thread.as_raw().unsigned_abs()).is_err());
    let mut child = Command::new("true").spawn().expect("a process");
    let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).expect("a number"));
    waitid(Id::Pid(pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT).expect("its end");
    assert_eq!(why(child.id()), "it runs no program");
    child.wait().expect("its status");
    assert!(objects(child.id()).is_err());
}

#[test]
fn names_that_do_not_fit_are_no_functions() {
    use object::{Object, ObjectSymbol};
    let bytes = fs::read("/proc/self/exe").expect("a program");
    let file = object::File::parse(&*bytes).expect("an ELF file");
    let is_long = |name: &str| name.len() >= FUNCNAMELEN;
    assert!(file
        .symbols()
        .any(|symbol| symbol.name().is_ok_and(is_long)));
    let code = Code::parse(&bytes).expect("code");
    assert!(!code
        .functions()
        .flatten()
        .any(|function| is_long(&function.name)));
}

/// Builds a library with a function that it does not export, and runs commands that derive files
/// from it.
fn built(name: &str, commands: &[&str]) -> Vec<Code> {
    let folder = std::env::temp_dir().join(format!("dtrace-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let source = "__attribute__((noinline)) static int hidden(int n) { __asm__ volatile(\"\"); return n + 1; }\n\
         int shown(int n) { return hidden(n) * hidden(n + 1); }\n";
    fs::write(folder.join("lib.c"), source).unwrap();
    let build = "gcc -O1 -shared -fPIC -o whole lib.c && strip -o bare whole";
    for command in [build].iter().chain(commands) {
        let done = Command::new("sh")
            .args(["-c", command])
            .current_dir(&folder)
            .status();
        assert!(done.expect("a shell").success(), "{command}");
    }
    let code = |name| Code::parse(&fs::read(folder.join(name)).unwrap()).unwrap();
    let all = ["whole", "bare"].map(code).into();
    fs::remove_dir_all(&folder).unwrap();
    all
}

/// Functions that only `.eh_frame` describes are named by their addresses; a symbol takes
/// precedence.
#[test]
fn a_stripped_program_has_functions_by_their_addresses() {
    let [whole, bare] = &built("frames", &[])[..] else {
        panic!("two files");
    };
    let hidden = whole.function("hidden").unwrap();
    let found = bare.function(&format!("{:#x}", hidden.address));
    let found = found.expect("the function without a name");
    assert_eq!((found.address, found.size), (hidden.address, hidden.size));
    assert!(bare.sites(found, Kind::Return).unwrap().len() == 1);
    let shown = whole.function("shown").unwrap();
    assert!(bare.function("shown").is_some() && bare.function("hidden").is_none());
    assert_eq!(bare.function(&format!("{:#x}", shown.address)), None);
    let by_address = whole
        .functions()
        .flatten()
        .filter(|f| f.name.starts_with("0x"));
    assert_eq!(by_address.count(), 0);
}

/// Names in an embedded packed file are as good as those of a symbol table.
#[test]
fn a_stripped_program_may_carry_its_names_packed() {
    let pack = "objcopy --only-keep-debug whole names && strip --strip-debug names && xz names";
    let put = "objcopy --add-section .gnu_debugdata=names.xz bare";
    let [whole, bare] = &built("packed", &[pack, put])[..] else {
        panic!("two files");
    };
    let hidden = whole.function("hidden").unwrap();
    assert_eq!(bare.function("hidden"), Some(hidden));
    assert_eq!(bare.function("shown"), whole.function("shown"));
    let by_address = format!("{:#x}", hidden.address);
    assert_eq!(bare.function(&by_address), None);
}

/// A packed file that cannot be unpacked names nothing; otherwise the file is read as without it.
#[test]
fn what_is_packed_badly_names_nothing() {
    let cut = "objcopy --only-keep-debug whole names && xz names && truncate -s -100 names.xz";
    let text = "echo text >names && xz names";
    let none = "echo nothing >names.xz";
    for pack in [cut, text, none] {
        let put = "objcopy --add-section .gnu_debugdata=names.xz bare";
        let [whole, bare] = &built("damaged", &[pack, put])[..] else {
            panic!("two files");
        };
        let hidden = whole.function("hidden").unwrap();
        assert_eq!(bare.function("hidden"), None, "{pack}");
        let by_address = format!("{:#x}", hidden.address);
        assert!(bare.function(&by_address).is_some(), "{pack}");
        assert!(bare.function("shown").is_some(), "{pack}");
    }
}

#[test]
fn segments_that_have_the_same_text_are_not_read_again_and_again() {
    let mut bytes = std::fs::read("/usr/bin/true").unwrap();
    assert!(Code::parse(&bytes).is_ok());
    // Elf64_Ehdr: offset and number of the program headers. Elf64_Phdr: 56 bytes, flags after the
    // type.
    let word =
        |bytes: &[u8], at: usize| usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]));
    let (first, count) = (word(&bytes, 0x20), word(&bytes, 0x38));
    let headers = || (0..count).map(|n| first + 56 * n);
    let is_text = |at: &usize| bytes[*at] == 1 && bytes[at + 4] & 1 != 0;
    let text = headers().find(is_text).unwrap();
    for at in headers() {
        bytes.copy_within(text..text + 56, at);
    }
    let error = Code::parse(&bytes).unwrap_err();
    assert_eq!(error.to_string(), "more text than the file has");
}
