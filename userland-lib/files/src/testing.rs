// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Programs for tests.

use crate::dwarf::Inlined;
use object::{Object as _, ObjectSymbol as _};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A folder for the files of one test; it is removed when dropped.
pub struct Folder(pub PathBuf);

impl Folder {
    /// Makes a folder for the test of this name.
    pub fn new(name: &str) -> Self {
        let name = format!("dtrace-test-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).expect("a folder");
        Self(folder)
    }

    /// Runs a tool in the folder. It must succeed.
    pub fn run(&self, tool: &str, args: &[&str]) {
        let done = Command::new(tool).args(args).current_dir(&self.0).output();
        let done = done.unwrap_or_else(|error| panic!("{tool}: {error}"));
        assert!(done.status.success(), "{tool} {args:?}: {done:?}");
    }

    /// Compiles a C program, with these options, and returns its path.
    pub fn compile(&self, source: &str, options: &[&str]) -> PathBuf {
        self.compile_by("gcc", source, options)
    }

    /// Compiles a C program by this compiler, with these options, and returns its path.
    pub fn compile_by(&self, compiler: &str, source: &str, options: &[&str]) -> PathBuf {
        fs::write(self.0.join("prog.c"), source).expect("a source");
        let all = [&["-O1", "-o", "prog"], options, &["prog.c"]].concat();
        self.run(compiler, &all);
        self.0.join("prog")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Copies a program that is to be executed. A separate process does the copying, because processes
/// that other tests start meanwhile would inherit a file that is open here, and the kernel does not
/// execute a file that is open for writing.
pub fn copy_program(from: &Path, to: &Path) {
    let copied = Command::new("cp").args([from, to]).status();
    assert!(copied.expect("cp").success(), "{}", from.display());
}

/// Address of a symbol.
pub fn address(file: &Path, name: &str) -> u64 {
    let bytes = fs::read(file).expect("a file");
    let file = object::File::parse(&*bytes).expect("a program");
    let symbol = file.symbols().find(|symbol| symbol.name() == Ok(name));
    symbol.expect(name).address()
}

/// A program with a chain of three functions inlined at `here`, and none at `there`.
pub const INLINED: &str = "\
static volatile int sink;
static inline __attribute__((always_inline)) void inner(int n)
{
	__asm__ volatile(\".globl here; here: nop\");
	sink += n;
}
static inline __attribute__((always_inline)) void middle(int n)
{
	sink--;
	inner(n * 2);
}
static inline __attribute__((always_inline)) void outer(int n)
{
	middle(n + 1);
	sink++;
}
__attribute__((noinline)) void real(int n)
{
	outer(n);
	__asm__ volatile(\".globl there; there: nop\");
}
int main(int argc, char **argv)
{
	(void)argv;
	real(argc);
	return 0;
}
";

/// Functions and lines of a chain, as text.
pub fn chain_text(chain: &[Inlined]) -> Vec<String> {
    let source = |inlined: &Inlined| {
        let source = inlined.source.as_ref();
        source.map_or_else(String::new, |(file, line)| format!(" {file}:{line}"))
    };
    chain
        .iter()
        .map(|inlined| inlined.name.clone() + &source(inlined))
        .collect()
}
