// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! A small kernel for tests: the types of [`fixture::kernel`], a few symbols, probes of any name,
//! and one process.
//!
//! It never changes, so that expected results of compilation can be kept beside the programs. It
//! also has the pieces of text from which random programs are generated.

use crate::world::{ArgInfo, ProbeInfo, ProbeSource, Symbol, SymbolSource};
use dtrace_objects::pattern::ProbePattern;
use dtrace_objects::pid::{Binding, Code, CodeMapping, Function, Instructions, Object, Text, MADE};
use dtrace_objects::processes::ProcessSource;
use dtrace_types::btf::{fixture, Btf};
use dtrace_types::TypeSource;
use dtrace_uapi::types::ProbeId;
use std::io;
use std::sync::Arc;

/// A kernel with every probe except those of the provider `nosuch`, those named `entyr`, and those
/// in its process. Probes of the provider `strange` have arguments that cannot be read.
pub struct Little(Arc<Btf>);

/// Number of `strange:::type`, whose argument has a type that does not exist.
const TYPE: ProbeId = 2;
/// Number of `strange:::translated`, whose argument has no translator.
const TRANSLATED: ProbeId = 3;
/// The provider of probes in the process, and the process ID.
const PROCESS: (&str, u32) = ("pid7", 7);

impl Default for Little {
    fn default() -> Self {
        Self(fixture::kernel().build())
    }
}

impl ProbeSource for Little {
    fn matching(&self, pattern: &ProbePattern, limit: usize) -> Vec<ProbeInfo> {
        let parts = [&pattern.provider, &pattern.module, &pattern.name];
        let unknown = parts.iter().any(|part| *part == "nosuch") || pattern.name == "entyr";
        if unknown || pattern.id > 100 || pattern.provider == PROCESS.0 {
            return Vec::new();
        }
        let probe = |func: &str| ProbeInfo {
            id: match (pattern.provider.as_str(), pattern.name.as_str()) {
                ("strange", "type") => TYPE,
                ("strange", "translated") => TRANSLATED,
                _ => 1,
            },
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

    fn argument(&self, id: ProbeId, index: u32) -> Option<ArgInfo> {
        let (native, translated) = match (id, index) {
            (TYPE, 0) => ("struct nowhere *", ""),
            (TRANSLATED, 0) => ("struct task_struct *", "struct list_head"),
            (_, 0) => ("struct task_struct *", ""),
            (_, 1) => ("int", ""),
            _ => return None,
        };
        Some(ArgInfo {
            mapping: 1 - index,
            native: native.to_owned(),
            translated: translated.to_owned(),
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

/// The process has a program with `main()` and with `go()`, which has the weak alias `_go`, and a
/// library with `_exit()`, of a few instructions each; a library that cannot be read; and a page of
/// code that it generated.
impl ProcessSource for Little {
    fn objects(&self, pid: u32) -> io::Result<Vec<Object>> {
        if pid != PROCESS.1 {
            return Err(io::Error::from_raw_os_error(
                nix::errno::Errno::ESRCH as i32,
            ));
        }
        let object = |path: &str| Object {
            name: path.rsplit('/').next().unwrap_or(path).to_owned(),
            path: path.to_owned(),
            file: path.into(),
            is_program: path == "/bin/prog",
            code: vec![CodeMapping {
                range: 0x40_0000..0x50_0000,
                offset: 0,
            }],
        };
        let paths = ["/bin/prog", "/lib/libc.so.6", "/lib/libcrypt.so.1"];
        Ok(paths.map(object).into())
    }

    fn bare(&self, _pid: u32, name: &str) -> Option<Object> {
        let range = 0x7000_0000..0x7000_1000;
        (name == MADE).then(|| Object {
            name: name.to_owned(),
            path: format!("[{name}]"),
            file: "/nowhere".into(),
            is_program: false,
            code: vec![CodeMapping {
                offset: range.start,
                range,
            }],
        })
    }

    fn code(&self, object: &Object) -> io::Result<Code> {
        if !object.is_file() {
            return Err(io::Error::other("nobody tells its functions"));
        }
        // push %rbp; mov %rsp,%rbp; xor %eax,%eax; pop %rbp; ret
        let code = [0x55, 0x48, 0x89, 0xe5, 0x31, 0xc0, 0x5d, 0xc3];
        let size = code.len() as u64;
        let function = |name: &str, index: u64, binding| Function {
            name: name.to_owned(),
            address: 0x401000 + index * size,
            size,
            binding,
        };
        let functions = match object.name.as_str() {
            "prog" => vec![
                function("main", 0, Binding::Global),
                function("_go", 1, Binding::Weak),
                function("go", 1, Binding::Global),
                function("main.cold", 2, Binding::Local),
            ],
            "libc.so.6" => vec![function("_exit", 0, Binding::Global)],
            _ => return Err(io::Error::other("not an ELF file")),
        };
        let text = Text {
            address: 0x401000,
            offset: 0x1000,
            bytes: code.repeat(4),
        };
        Ok(Code::new(functions, vec![text], Instructions::X86(64)))
    }
}

/// Pieces of programs, and some that are not valid anywhere.
pub const PIECES: &[&str] = &[
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
