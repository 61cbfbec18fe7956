// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Tests: symbols of this program, and of running copies of it that are replaced or have ended.

use super::super::maps::mappings_of;
use super::*;
use crate::proc::Target;
use dtrace_compiler::options::EvalTime;
use dtrace_files::testing::copy_program;

#[inline(never)]
fn landmark() -> u64 {
    landmark as *const () as usize as u64
}

/// Starts a process that runs a copy of this program at `path`. Returns it and the address of its
/// `landmark()`.
fn twin(path: &std::path::Path) -> (Target, u64) {
    let here = mappings_of(std::process::id()).expect("mappings");
    let here = here.iter().find(|m| m.contains(landmark())).expect("text");
    let command = format!("'{}' --list", path.display());
    let twin = Target::create(&command, &[], EvalTime::Exec).expect("a twin");
    let there = mappings_of(twin.pid()).expect("mappings");
    let mut there = there.iter();
    let there = there.find(|m| m.is_code && m.offset == here.offset);
    let address = landmark() - here.start + there.expect("its text").start;
    (twin, address)
}

fn copy(name: &str) -> std::path::PathBuf {
    let path = std::env::temp_dir().join(format!("dtrace-{name}-{}", std::process::id()));
    let own = std::env::current_exe().expect("a program");
    copy_program(&own, &path);
    path
}

fn name(symbols: &UserSymbols, pid: u32, address: u64) -> String {
    let symbol = symbols.by_address(pid, address);
    symbol.function.map_or_else(String::new, |(name, _)| name)
}

#[test]
fn this_process_has_symbols_and_one_that_is_gone_has_none() {
    let symbols = UserSymbols::default();
    let symbol = symbols.by_address(std::process::id(), landmark());
    assert!(symbol.object.unwrap().starts_with("dtrace"));
    let (name, offset) = symbol.function.unwrap();
    assert!(name.contains("landmark"), "{name}");
    assert_eq!(offset, 0);
    assert_eq!(
        symbols.by_address(u32::MAX - 1, landmark()),
        UserSymbol::default()
    );
}

#[test]
fn what_no_function_has_is_not_named_by_a_version() {
    let symbols = UserSymbols::default();
    let maps = std::fs::read_to_string("/proc/self/maps").expect("maps");
    let is_linker = |line: &&str| line.contains("r-xp") && line.contains("/ld-linux");
    let text = maps.lines().find(is_linker).expect("the dynamic linker");
    let (start, rest) = text.split_once('-').expect("a range");
    let end = rest.split(' ').next().expect("its end");
    let number = |text| u64::from_str_radix(text, 16).expect("an address");
    for address in (number(start)..number(end)).step_by(256) {
        let name = name(&symbols, std::process::id(), address);
        assert!(!name.starts_with("GLIBC_"), "{address:#x}: {name}");
    }
}

#[test]
fn variables_have_names_in_whatever_memory_they_are() {
    static ZERO: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    static DATA: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(7);
    let symbols = UserSymbols::default();
    for (variable, name) in [(&ZERO, "ZERO"), (&DATA, "DATA")] {
        let address = std::ptr::from_ref(variable) as usize as u64;
        let symbol = symbols.by_address(std::process::id(), address);
        let (found, offset) = symbol.function.expect(name);
        assert!(found.contains(name), "{found}");
        assert_eq!(offset, 0);
    }
    let memory = Box::new(1);
    let address = std::ptr::from_ref(&*memory) as usize as u64;
    assert_eq!(
        symbols.by_address(std::process::id(), address).function,
        None
    );
}

#[test]
fn a_watched_process_keeps_its_symbols_when_it_is_gone() {
    let (twin, address) = twin(&std::env::current_exe().expect("a program"));
    let pid = twin.pid();
    let symbols = UserSymbols::default();
    symbols.watch(pid);
    drop(twin);
    symbols.watch(pid);
    for other in 1..2 * PROCESSES_MAX as u32 {
        symbols.by_address(u32::MAX - other, 0);
    }
    let (name, offset) = symbols.by_address(pid, address).function.expect("a name");
    assert!(name.contains("landmark"), "{name}");
    assert_eq!(offset, 0);
}

#[test]
fn of_many_processes_that_come_by_the_last_are_remembered() {
    let symbols = UserSymbols::default();
    let (watched, lives) = (u32::MAX, std::process::id());
    symbols.watch(watched);
    symbols.meet(lives);
    symbols.meet(watched);
    let last = (ENDED_MAX + 3 * PROCESSES_MAX) as u32;
    for n in 1..=last {
        symbols.meet(watched - n);
    }
    let known = symbols.processes.borrow();
    assert!(known.len() <= 2 + ENDED_MAX + PROCESSES_MAX);
    for pid in [watched, lives, watched - last] {
        assert!(known.contains_key(&pid), "{pid}");
    }
    assert!(!known.contains_key(&(watched - 1)));
}

#[test]
fn a_file_that_was_replaced_or_deleted_is_read_as_it_was() {
    for is_replaced in [false, true] {
        let path = copy(if is_replaced { "replaced" } else { "deleted" });
        let (twin, address) = twin(&path);
        let pid = twin.pid();
        std::fs::remove_file(&path).expect("no file");
        let symbols = UserSymbols::default();
        symbols.watch(pid);
        drop(twin);
        if is_replaced {
            std::fs::copy("/bin/sh", &path).expect("another file");
        }
        let found = name(&symbols, pid, address);
        let _ = std::fs::remove_file(&path);
        assert!(found.contains("landmark"), "{found}");
    }
}

/// A process that ended unseen, or whose file could not be opened, has no names, and certainly not
/// those of whatever file is at its path.
#[test]
fn a_path_names_nothing() {
    let path = std::env::current_exe().expect("a program");
    let (twin, address) = twin(&path);
    let symbols = UserSymbols::default();
    symbols.watch(twin.pid());
    for range in &mut symbols
        .processes
        .borrow_mut()
        .get_mut(&twin.pid())
        .unwrap()
        .ranges
    {
        range.file = None;
    }
    let symbol = symbols.by_address(twin.pid(), address);
    assert!(symbol.object.is_some());
    assert_eq!(symbol.function, None);
}

/// Another program under the same process ID: an address that both used has no name, any other
/// address keeps its own.
#[test]
fn an_address_that_was_two_things_has_no_name() {
    let path = std::env::current_exe().expect("a program");
    let (first, address) = twin(&path);
    let symbols = UserSymbols::default();
    symbols.watch(first.pid());
    let known = name(&symbols, first.pid(), address);
    assert!(known.contains("landmark"), "{known}");
    let other = std::process::Command::new("sleep").arg("60").spawn();
    let mut other = other.expect("a process");
    let read = |pid| {
        let mut process = ProcessSymbols::default();
        while process.ranges.len() < 2 {
            process.read(pid, &symbols.files);
        }
        process.ranges
    };
    let mut successor = read(other.id());
    other.kill().expect("an end");
    other.wait().expect("an end");
    let mut later = |start, end| {
        let mut processes = symbols.processes.borrow_mut();
        let process = processes.get_mut(&first.pid()).expect("a process");
        let mut range = successor.pop().expect("a mapping");
        (range.mapping.start, range.mapping.end) = (start, end);
        process.known.clear();
        process.ranges.push(range);
    };
    later(1 << 20, 2 << 20);
    assert_eq!(name(&symbols, first.pid(), address), known);
    later(address, address + 1);
    assert_eq!(
        symbols.by_address(first.pid(), address),
        UserSymbol::default()
    );
}

/// A process that executes another program is read again.
#[test]
fn who_executes_another_program_is_seen_to() {
    let mut child = std::process::Command::new("sh")
        .args(["-c", "read x; exec sleep 60"])
        .stdin(std::process::Stdio::piped())
        .spawn()
        .expect("a process");
    let pid = child.id();
    let symbols = UserSymbols::default();
    let has = |object: &str| {
        std::thread::sleep(2 * FRESH);
        symbols.note(pid);
        let processes = symbols.processes.borrow();
        let mut ranges = processes[&pid].ranges.iter();
        ranges.any(|range| range.mapping.object() == object)
    };
    assert!(!has("sleep"));
    let mut stdin = child.stdin.take().expect("a pipe");
    std::io::Write::write_all(&mut stdin, b"x\n").expect("a line");
    while !has("sleep") {}
    let _ = child.kill();
    let _ = child.wait();
}

#[test]
fn the_code_that_the_kernel_gives_has_names() {
    let all = all_mappings_of(std::process::id()).expect("mappings");
    let mut all = all.iter();
    let Some(vdso) = all.find(|mapping| mapping.backing == Backing::Vdso) else {
        return;
    };
    let symbols = UserSymbols::default();
    let named = (vdso.start..vdso.end).step_by(16).any(|address| {
        let symbol = symbols.by_address(std::process::id(), address);
        assert_eq!(symbol.object.as_deref(), Some("[vdso]"));
        symbol
            .function
            .is_some_and(|(name, _)| name.contains("clock_gettime"))
    });
    assert!(named);
}

/// A program that has code, waits for a line, and then maps a jitdump that names the code.
const MAKER: &str = r#"
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
int main(void)
{
	char *code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint32_t header[10] = { 0x4a695444, 1, 40, 62 };
	uint32_t head[4] = { 0, 16 + 40 + 5 + 16 };
	uint64_t body[5] = { 0, (long)code, (long)code, 16 };
	char name[64];
	FILE *file;

	printf("%lx\n", (long)code);
	fflush(stdout);
	getchar();
	snprintf(name, sizeof(name), "jit-%d.dump", getpid());
	file = fopen(name, "w+");
	fwrite(header, sizeof(header), 1, file);
	fwrite(head, sizeof(head), 1, file);
	fwrite(body, sizeof(body), 1, file);
	fwrite("made", 5, 1, file);
	fwrite(code, 16, 1, file);
	fflush(file);
	mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(file), 0);
	puts("mapped");
	fflush(stdout);
	getchar();
	return 0;
}
"#;

#[test]
fn a_list_from_between_code_and_its_names_is_read_again() {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::process::{Command, Stdio};
    let folder = dtrace_files::testing::Folder::new("made");
    let mut child = Command::new(folder.compile(MAKER, &[]))
        .current_dir(&folder.0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a process");
    let pid = child.id();
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut told = || lines.next().expect("a line").expect("a line");
    let code = u64::from_str_radix(&told(), 16).expect("an address");
    let mut stdin = child.stdin.take().expect("a pipe");
    let symbols = UserSymbols::default();
    symbols.note(pid);
    stdin.write_all(b"\n").expect("a line");
    assert_eq!(told(), "mapped");
    symbols.taken();
    assert_eq!(name(&symbols, pid, code + 4), "made");
    drop(stdin);
    let _ = child.wait();
}

#[test]
fn files_of_a_process_are_opened_as_it_sees_them() {
    let folder = dtrace_files::testing::Folder::new("seen");
    let path = |name: &str| folder.0.join(name).to_str().expect("a path").to_owned();
    std::fs::write(path("file"), "text").expect("written");
    std::os::unix::fs::symlink(path("file"), path("link")).expect("a link");
    nix::unistd::mkfifo(&folder.0.join("pipe"), nix::sys::stat::Mode::S_IRUSR).expect("a pipe");
    let symbols = UserSymbols::default();
    let (target, _) = twin(&std::env::current_exe().expect("a program"));
    let pid = target.pid();
    let opens = |path: &str| symbols.open_seen(pid, path).is_ok();
    assert!(opens(&path("file")));
    // A symbolic link, a pipe without a writer, a directory, a file that does not exist, and below
    // a file that the kernel generates on reading.
    for other in ["link", "pipe", ".", "none"] {
        assert!(!opens(&path(other)), "{other}");
    }
    assert!(!opens("/proc/version"));
    drop(target);
    assert!(opens(&path("file")));
    assert!(UserSymbols::default()
        .open_seen(pid, &path("file"))
        .is_err());
}
