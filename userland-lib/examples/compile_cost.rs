// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Measures the CPU time of compilations in milliseconds: the D libraries alone, and the libraries
//! followed by a script of 200 lines. The types are those of the running kernel, which each
//! compilation reads anew.

use dtrace::compile::{Compiler, Settings};
use dtrace::fixture::Little;
use dtrace::libraries::{libraries, Library};
use dtrace::pattern::ProbePattern;
use dtrace::pid::{Code, Object};
use dtrace::processes::ProcessSource;
use dtrace::source::Source;
use dtrace::types::btf::{Btf, KernelBtf};
use dtrace::types::TypeSource;
use dtrace::world::{ArgInfo, ProbeInfo, ProbeSource, Symbol, SymbolSource};
use dtrace_uapi::types::ProbeId;
use std::fmt::Write;
use std::io;
use std::sync::Arc;

const LINES: usize = 200;
const ROUNDS: u32 = 100;

/// The types of the running kernel, and made-up probes and symbols of any name.
struct Running(KernelBtf, Little);

impl ProbeSource for Running {
    fn matching(&self, pattern: &ProbePattern, limit: usize) -> Vec<ProbeInfo> {
        self.1.matching(pattern, limit)
    }

    fn argument(&self, id: ProbeId, index: u32) -> Option<ArgInfo> {
        self.1.argument(id, index)
    }
}

impl TypeSource for Running {
    fn btf(&self, module: &str) -> Option<Arc<Btf>> {
        TypeSource::btf(&self.0, module)
    }

    fn modules(&self) -> Vec<String> {
        TypeSource::modules(&self.0)
    }
}

impl ProcessSource for Running {
    fn objects(&self, pid: u32) -> io::Result<Vec<Object>> {
        self.1.objects(pid)
    }

    fn code(&self, object: &Object) -> io::Result<Code> {
        self.1.code(object)
    }
}

impl SymbolSource for Running {
    fn symbol(&self, module: Option<&str>, name: &str) -> Option<Symbol> {
        self.1.symbol(module, name)
    }
}

/// CPU time of this thread, ns.
fn cpu_time() -> u64 {
    let text =
        std::fs::read_to_string("/proc/thread-self/schedstat").expect("the scheduler's statistics");
    let time = text.split_whitespace().next().map(str::parse);
    time.expect("a time").expect("a number")
}

/// Makes a script of statements that are typical of scripts.
fn script() -> String {
    let mut text = String::from("#pragma D option quiet\n\n");
    let mut clause = 0;
    while text.lines().count() < LINES {
        let _ = write!(
            text,
            "syscall::call{clause}:entry\n/pid != $pid && execname != \"sh\"/\n{{\n\
             \tself->start{clause} = timestamp;\n\
             \tself->path{clause} = copyinstr(arg0);\n}}\n\n\
             syscall::call{clause}:return\n/self->start{clause}/\n{{\n\
             \tthis->took = (timestamp - self->start{clause}) / 1000;\n\
             \t@calls{clause}[execname, errno != 0 ? \"failed\" : \"done\"] = count();\n\
             \t@took{clause}[self->path{clause}] = quantize(this->took);\n\
             \tprintf(\"%6d %-16s %8u %s\\n\", pid, curthread->comm, this->took, basename(self->path{clause}));\n\
             \tself->start{clause} = 0;\n\
             \tself->path{clause} = 0;\n}}\n\n",
        );
        clause += 1;
    }
    text
}

/// Compiles the libraries, and the script if there is one, [`ROUNDS`] times. Returns the CPU time
/// of one round in milliseconds.
fn cost(own: &[Library], script: Option<&Source>) -> f64 {
    let start = cpu_time();
    for _ in 0..ROUNDS {
        let world = Running(KernelBtf::default(), Little::default());
        let mut compiler = Compiler::new(&world);
        for library in own {
            let source = Source::library(library.path.clone(), library.text.clone());
            let settings = Settings {
                empty: true,
                ..Settings::default()
            };
            compiler.compile(&source, &settings).expect("a library");
        }
        let settings = Settings {
            macros: vec![("pid".to_owned(), 7)],
            ..Settings::default()
        };
        if let Some(source) = script {
            if let Err(error) = compiler.compile(source, &settings) {
                panic!("{}", error.headline(source, true));
            }
        }
    }
    (cpu_time() - start) as f64 / f64::from(ROUNDS) / 1e6
}

fn main() {
    let own = libraries(&Default::default(), |_| true).expect("the libraries");
    let lines: usize = own.iter().map(|library| library.text.lines().count()).sum();
    let script = Source::file("x.d", script());
    let alone = cost(&own, None);
    let both = cost(&own, Some(&script));
    println!(
        "compiling, ms of CPU: libraries ({lines} lines) {alone:.1}, with a script of {LINES} lines {both:.1}"
    );
}
