// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Objects with probes that are calls, as the compiler makes them, from there to a program that is linked.

use super::{
    header, in_file, replace, Definition, Form, Parameter, Provider, Replaced, ATTRIBUTES,
};
use crate::dof::{emit_for_application, Use};
use crate::object;
use crate::program::Program;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCE: &str = r#"
#define DTRACE_DOF
#include "shop.h"
extern void __dtrace_shop___open(void);
__attribute__((noipa)) static int hidden(int n)
{
    SHOP_SOLD_OUT(n, "pear", 1.5);
    return n + 1;
}
__attribute__((noipa)) int asks(void)
{
    return SHOP_SOLD_OUT_ENABLED() ? 2 : 0;
}
/* The compiler jumps to what is called last. */
__attribute__((noipa)) void last(void)
{
    __dtrace_shop___open();
}
int main(void)
{
    SHOP_OPEN();
    last();
    return hidden(-1) + asks();
}
"#;

fn shop() -> Provider {
    let parameter = |ty: &str, form| Parameter {
        ty: ty.to_owned(),
        form,
    };
    let definition = |name: &str, parameters: Vec<Parameter>| Definition {
        name: name.to_owned(),
        arguments: (0u8..)
            .zip(&parameters)
            .map(|(n, p)| (p.ty.clone(), n))
            .collect(),
        parameters,
    };
    let sold = vec![
        parameter("int", Form::Int(4, true)),
        parameter("char *", Form::Pointer),
        parameter("double", Form::Float(8)),
    ];
    Provider {
        name: "shop".to_owned(),
        probes: vec![
            definition("open", Vec::new()),
            definition("sold__out", sold),
        ],
        attributes: ATTRIBUTES,
    }
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("dtrace-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        Self(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn run(&self, command: &str) {
        let done = Command::new("sh")
            .args(["-ec", command])
            .current_dir(&self.0)
            .status();
        assert!(done.expect("a shell").success(), "{command}");
    }

    /// An object of the source, as the compiler makes it.
    fn compiled(&self, flags: &str) -> Vec<u8> {
        let text = header(&[shop()], "shop.h").expect("a header");
        fs::write(self.path("shop.h"), text).expect("a header");
        fs::write(self.path("main.c"), SOURCE).expect("a source");
        self.run(&format!("gcc -Wall -Wextra -Werror {flags} -c main.c"));
        self.read("main.o")
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).expect("a file")
    }

    /// Writes what -G makes of it.
    fn link(&self, brought: &Replaced) {
        let program = Program {
            providers: vec![shop()],
            ..Program::default()
        };
        let to = Use {
            linked: true,
            strip: false,
        };
        let dof = emit_for_application(&program, &[], &brought.sites, to).expect("DOF");
        let object = object::write(&[], Some(&dof)).expect("an object");
        fs::write(self.path("shop.o"), object).expect("an object");
        if let Some(object) = &brought.object {
            fs::write(self.path("main.o"), object).expect("an object");
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// `name func asks instruction`, in order.
fn found(path: &Path) -> Vec<String> {
    let data = fs::read(path).expect("a program");
    let notes = in_file::parse(&*data);
    let mut found: Vec<String> = notes
        .iter()
        .map(|note| {
            let asks = if note.asks { " asks" } else { "" };
            let instruction = data[note.offset as usize];
            format!("{} {}{asks} {instruction:x}", note.name, note.func)
        })
        .collect();
    found.sort();
    found
}

const SITES: [&str; 4] = [
    "open last c3",
    "open main 90",
    "sold-out asks asks 90",
    "sold-out hidden 90",
];

fn brought(data: &[u8]) -> Replaced {
    replace(data, &[shop()], false).expect("an object")
}

#[test]
fn calls_become_sites_of_whatever_is_linked() {
    let folder = Folder::new("calls");
    for (compile, link) in [
        ("-O2", "gcc -o program main.o shop.o && ./program"),
        ("-O2 -fPIC -fno-plt", "gcc -shared -o program main.o shop.o"),
        (
            "-O2 -ffunction-sections",
            "gcc -Wl,--gc-sections -o program main.o shop.o && ./program",
        ),
        (
            "-O2 -fno-pie",
            "gcc -no-pie -o program main.o shop.o && ./program",
        ),
        (
            "-O2",
            "gcc -static-pie -z text -o program main.o shop.o && ./program",
        ),
        (
            "-O2 -g",
            "ld -r -o both.o main.o shop.o && gcc -o program both.o && ./program",
        ),
    ] {
        let whole = folder.compiled(compile);
        let first = brought(&whole);
        folder.link(&first);
        folder.run(link);
        assert_eq!(found(&folder.path("program")), SITES, "{compile}: {link}");
        // It may be linked with again.
        let again = brought(&folder.read("main.o"));
        assert_eq!(again.sites, first.sites, "{compile}");
        assert!(again.object.is_none());
    }
}

/// A function that two objects bring, and functions of one name.
#[test]
fn objects_may_bring_the_same_functions() {
    let folder = Folder::new("twice");
    let text = header(&[shop()], "shop.h").expect("a header");
    fs::write(folder.path("shop.h"), text).expect("a header");
    let source = r##"
#define DTRACE_DOF
#include "shop.h"
__attribute__((weak, noipa, section(".text.shared,\"axG\",@progbits,shared,comdat#")))
int shared(int n) { SHOP_SOLD_OUT(n, "x", 0); return n; }
__attribute__((noipa)) static void own(void) { SHOP_OPEN(); }
int NAME(int n) { own(); return shared(n); }
"##;
    fs::write(folder.path("both.c"), source).expect("a source");
    let main = "int one(int); int two(int); int main(void) { return one(0) + two(0); }\n";
    fs::write(folder.path("main.c"), main).expect("a source");
    let mut all = Replaced {
        sites: Vec::new(),
        object: None,
    };
    for name in ["one", "two"] {
        folder.run(&format!(
            "gcc -O2 -fPIC -DNAME={name} -c both.c -o {name}.o"
        ));
        let brought = brought(&folder.read(&format!("{name}.o")));
        all.sites.extend(brought.sites);
        let object = brought.object.expect("calls");
        fs::write(folder.path(&format!("{name}.o")), object).expect("an object");
    }
    folder.link(&all);
    for link in ["gcc", "gcc -shared -fPIC", "gcc -no-pie"] {
        folder.run(&format!("{link} -O2 -o program main.c one.o two.o shop.o"));
        let sites = found(&folder.path("program"));
        let expected = ["open own 90", "open own 90", "sold-out shared 90"];
        assert_eq!(sites, expected, "{link}");
    }
}

#[test]
fn what_is_not_defined_is_told_or_left() {
    let folder = Folder::new("undefined");
    let whole = folder.compiled("-O2");
    let mut less = shop();
    less.probes.remove(0);
    let refused = replace(&whole, std::slice::from_ref(&less), false);
    assert_eq!(
        refused.err().as_deref(),
        Some("probe shop:::open is not defined")
    );
    let left = replace(&whole, &[less], true).expect("an object");
    assert_eq!(left.sites.len(), 2);
    // Of another provider nothing is said.
    let others = Provider {
        name: "store".to_owned(),
        ..shop()
    };
    let others = replace(&whole, &[others], false).expect("an object");
    assert!(others.sites.is_empty() && others.object.is_none());
}

#[test]
fn a_call_that_cannot_be_replaced_is_told() {
    let folder = Folder::new("refused");
    for (text, why) in [
        (
            "call *__dtrace_shop___open@GOTPCREL(%rip)",
            "is not called in a way that can be replaced",
        ),
        (
            "lea __dtrace_shop___open(%rip), %rax",
            "is not called in a way that can be replaced",
        ),
    ] {
        let source = format!(".globl f\n.type f, @function\nf:\n\t{text}\n\tret\n.size f, .-f\n");
        fs::write(folder.path("f.s"), source).expect("a source");
        folder.run("as -o f.o f.s");
        let refused = replace(&folder.read("f.o"), &[shop()], false).err();
        assert_eq!(refused, Some(format!("probe shop:::open {why}")), "{text}");
    }
    fs::write(folder.path("f.s"), "call __dtrace_shop___open\n").expect("a source");
    folder.run("as -o f.o f.s");
    let refused = replace(&folder.read("f.o"), &[shop()], false).err();
    assert_eq!(
        refused.as_deref(),
        Some("probe shop:::open is in no function")
    );
    folder.run("as --32 -o f.o f.s");
    let refused = replace(&folder.read("f.o"), &[shop()], false).err();
    let why = "probes can be called in objects of 64 bits for x86 alone";
    assert_eq!(refused.as_deref(), Some(why));
}

#[test]
fn an_object_that_is_cut_or_changed_anywhere_is_read_or_not() {
    let folder = Folder::new("damaged");
    let whole = folder.compiled("-O1");
    for len in (0..whole.len()).step_by(7) {
        let _ = replace(&whole[..len], &[shop()], false);
    }
    for at in 0..whole.len() {
        for value in [0, 1, 0x80, 0xff] {
            let mut changed = whole.clone();
            changed[at] = value;
            let _ = replace(&changed, &[shop()], true);
        }
    }
}
