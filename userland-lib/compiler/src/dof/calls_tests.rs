// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Objects with probes as calls, from what the compiler makes to a linked program.

use super::{emit_for_application, Use};
use crate::object;
use crate::program::Program;
use dtrace_files::testing::Folder;
use dtrace_objects::usdt::{
    differing, header, parse_dof, replace, Definition, Form, Parameter, Provider, Replaced, Site,
    ATTRIBUTES,
};
use std::fs;
use std::path::{Path, PathBuf};

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

/// A folder in which objects are compiled and linked.
struct Workshop(Folder);

impl Workshop {
    fn new(name: &str) -> Self {
        Self(Folder::new(name))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0 .0.join(name)
    }

    fn shell(&self, command: &str) {
        self.0.run("sh", &["-ec", command]);
    }

    /// Compiles a source to an object.
    fn object(&self, name: &str, source: &str, flags: &str) -> Vec<u8> {
        let text = header(&[shop()], "shop.h").expect("a header");
        fs::write(self.path("shop.h"), text).expect("a header");
        fs::write(self.path("source.c"), source).expect("a source");
        self.shell(&format!(
            "gcc -Wall -Wextra -Werror {flags} -c source.c -o {name}.o"
        ));
        self.read(&format!("{name}.o"))
    }

    fn compiled(&self, flags: &str) -> Vec<u8> {
        self.object("main", SOURCE, flags)
    }

    /// Assembles a source to an object.
    fn assembled(&self, name: &str, source: &str) -> Vec<u8> {
        fs::write(self.path("source.s"), source).expect("a source");
        self.shell(&format!("as -o {name}.o source.s"));
        self.read(&format!("{name}.o"))
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).expect("a file")
    }

    /// Does what `-G` does with these objects.
    fn link(&self, names: &[&str]) {
        let mut sites = Vec::new();
        for name in names {
            let file = format!("{name}.o");
            let brought = brought(&self.read(&file));
            sites.extend(brought.sites);
            if let Some(object) = &brought.object {
                fs::write(self.path(&file), object).expect("an object");
            }
        }
        self.write_dof(&sites);
    }

    fn write_dof(&self, sites: &[Site]) {
        let program = Program {
            providers: vec![shop()],
            ..Program::default()
        };
        let to = Use {
            linked: true,
            strip: false,
        };
        let dof = emit_for_application(&program, &[], sites, to).expect("DOF");
        let object = object::write(&[], Some(&dof)).expect("an object");
        fs::write(self.path("shop.o"), object).expect("an object");
    }
}

/// The sites in a file, sorted, as `name func [asks] first byte of the instruction`.
fn found(path: &Path) -> Vec<String> {
    let data = fs::read(path).expect("a program");
    let notes = parse_dof(&*data);
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
    let folder = Workshop::new("calls");
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
        folder.link(&["main"]);
        folder.shell(link);
        assert_eq!(found(&folder.path("program")), SITES, "{compile}: {link}");
        // The object may be linked again.
        let again = brought(&folder.read("main.o"));
        assert_eq!(again.sites, first.sites, "{compile}");
        assert!(again.object.is_none());
    }
}

/// Two objects with the same function in a COMDAT group, and with local functions of the same name.
#[test]
fn objects_may_bring_the_same_functions() {
    let folder = Workshop::new("twice");
    let source = r##"
#define DTRACE_DOF
#include "shop.h"
__attribute__((weak, noipa, section(".text.shared,\"axG\",@progbits,shared,comdat#")))
int shared(int n) { SHOP_SOLD_OUT(n, "x", 0); return n; }
__attribute__((noipa)) static void own(void) { SHOP_OPEN(); }
int NAME(int n) { own(); return shared(n); }
"##;
    let main = "int one(int); int two(int); int main(void) { return one(0) + two(0); }\n";
    fs::write(folder.path("main.c"), main).expect("a source");
    for name in ["one", "two"] {
        folder.object(name, source, &format!("-O2 -fPIC -DNAME={name}"));
    }
    folder.link(&["one", "two"]);
    for link in ["gcc", "gcc -shared -fPIC", "gcc -no-pie"] {
        folder.shell(&format!("{link} -O2 -o program main.c one.o two.o shop.o"));
        let sites = found(&folder.path("program"));
        let expected = ["open own 90", "open own 90", "sold-out shared 90"];
        assert_eq!(sites, expected, "{link}");
    }
}

/// Returns the source of a function in a COMDAT group, of which the linker keeps one object's copy.
/// `first` are instructions before its site, `bind` is the assembler's directive for its symbol.
fn shared(name: &str, bind: &str, first: &str) -> String {
    format!(
        ".section .text.{name},\"axG\",@progbits,group,comdat
        .type {name}, @function
        {bind} {name}
        {name}: {first}
        call __dtrace_shop___open
        ret
        .size {name}, .-{name}\n"
    )
}

/// Returns the source of a function that is in no group and jumps to another.
fn caller(name: &str, called: &str) -> String {
    format!(
        ".text
        .globl {name}
        .type {name}, @function
        {name}: jmp {called}
        .size {name}, .-{name}\n"
    )
}

#[test]
fn a_group_may_have_functions_of_its_own() {
    let folder = Workshop::new("group");
    let main = "void one(void); void two(void); int main(void) { one(); two(); return 0; }\n";
    fs::write(folder.path("main.c"), main).expect("a source");
    for name in ["one", "two"] {
        let source = shared("part", ".local", "nop") + &shared("whole", ".weak", "call part");
        folder.assembled(name, &(source + &caller(name, "whole")));
    }
    folder.link(&["one", "two"]);
    for link in ["gcc", "gcc -shared -fPIC"] {
        folder.shell(&format!("{link} -o program main.c one.o two.o shop.o"));
        let sites = found(&folder.path("program"));
        assert_eq!(sites, ["open part 90", "open whole 90"], "{link}");
    }
    folder.shell("gcc -o program main.c one.o two.o shop.o && ./program");
}

#[test]
fn copies_of_a_function_that_differ_are_told() {
    let folder = Workshop::new("copies");
    let object = |source: String| brought(&folder.assembled("object", &source));
    let differ = |objects: &[Replaced]| differing(objects).map(|(f, n)| (f.to_owned(), n));
    for bind in [".weak", ".local"] {
        let alone = || object(caller("g", "f"));
        let copy = |first| object(shared("f", bind, first));
        assert_eq!(differ(&[copy("nop"), alone(), copy("nop")]), None, "{bind}");
        let without = shared("f", bind, "").replace("call __dtrace_shop___open", "");
        // The last object has the same group with another function.
        let others = [
            copy("nop\nnop"),
            object(without),
            object(shared("other", bind, "")),
        ];
        for other in others {
            let found = differ(&[other, alone(), copy("nop")]);
            assert_eq!(found.map(|found| found.1), Some([0, 2]), "{bind}");
        }
    }
    // The linker keeps the function that is in no group.
    let strong = caller("f", "g");
    let objects = [object(shared("f", ".weak", "nop")), object(strong.clone())];
    assert_eq!(differ(&objects), Some(("f".to_owned(), [0, 1])));
    // A local function is another function.
    let own = strong.replace(".globl", ".local");
    let objects = [object(shared("f", ".weak", "nop")), object(own)];
    assert_eq!(differ(&objects), None);
}

/// If an object was linked that `-G` did not see, the linker may have kept other code.
#[test]
fn a_site_that_is_in_other_code_is_none() {
    let folder = Workshop::new("others");
    fs::write(
        folder.path("main.c"),
        "void g(void); int main(void) { g(); return 0; }\n",
    )
    .expect("a source");
    folder.assembled("object", &(shared("f", ".weak", "nop") + &caller("g", "f")));
    folder.link(&["object"]);
    folder.shell("gcc -o program main.c object.o shop.o");
    assert_eq!(found(&folder.path("program")), ["open f 90"]);
    let other = shared("f", ".weak", "mov $1, %eax").replace("call __dtrace_shop___open", "");
    folder.assembled("other", &other);
    folder.shell("gcc -o program main.c other.o object.o shop.o && ./program");
    assert!(found(&folder.path("program")).is_empty());
}

/// At an is-enabled site the result is already 0.
#[test]
fn a_question_has_an_answer_without_a_tracer() {
    let folder = Workshop::new("question");
    folder.compiled("-O2");
    folder.link(&["main"]);
    folder.shell("gcc -o program main.o shop.o");
    let sites = found(&folder.path("program"));
    let data = folder.read("program");
    let asks = parse_dof(&*data);
    let asks = asks.iter().find(|note| note.asks).expect("a question");
    let at = asks.offset as usize;
    assert_eq!(data[at - 2..at], [0x33, 0xc0]);
    for (bytes, is_there) in [([0x31, 0xc0], true), ([0x90, 0x90], false)] {
        let mut changed = data.clone();
        changed[at - 2..at].copy_from_slice(&bytes);
        assert_eq!(parse_dof(&*changed).len() == sites.len(), is_there);
    }
    for (code, is_there) in [
        (&[0x0f, 0x1f, 0x00][..], true),
        (&[0x66, 0x90], true),
        (&[0x74, 0x90], false),
        (&[0xcc], false),
    ] {
        let mut changed = data.clone();
        changed[at..at + code.len()].copy_from_slice(code);
        assert_eq!(parse_dof(&*changed).len() == sites.len(), is_there);
    }
}

/// An object that was linked from two may have two local functions of one name.
#[test]
fn functions_of_one_name_in_one_object_are_two() {
    let folder = Workshop::new("same");
    let main = "void one(void); void two(void); int main(void) { one(); two(); return 0; }\n";
    fs::write(folder.path("main.c"), main).expect("a source");
    for (name, first) in [
        ("one", ""),
        ("two", "mov $1, %eax\nmov $2, %eax\nmov $3, %eax"),
    ] {
        let own =
            shared("own", ".local", first).replace("\"axG\",@progbits,group,comdat", "\"ax\"");
        folder.assembled(name, &(own + &caller(name, "own")));
    }
    folder.shell("ld -r -o object.o one.o two.o");
    folder.link(&["object"]);
    folder.shell("gcc -o program main.c object.o shop.o && ./program");
    let expected = ["open own 90", "open own 90"];
    assert_eq!(found(&folder.path("program")), expected);
    let notes = parse_dof(&*folder.read("program"));
    assert_ne!(notes[0].offset, notes[1].offset);
}

/// `__dtrace_shop____open` is `open` of `shop_`, or `_open` of `shop`.
#[test]
fn names_may_end_as_what_is_between_them_begins() {
    let folder = Workshop::new("names");
    let text = "call __dtrace_shop____open";
    let source = format!(".globl f\n.type f, @function\nf:\n\t{text}\n\tret\n.size f, .-f\n");
    let object = folder.assembled("f", &source);
    let provider = |name: &str, probe: &str| {
        let mut provider = shop();
        provider.name = name.to_owned();
        provider.probes[0].name = probe.to_owned();
        provider
    };
    let [long, short] = [provider("shop_", "open"), provider("shop", "_open")];
    let other = provider("shop_", "close");
    for (providers, expected) in [
        (vec![long.clone()], ("shop_", "open")),
        (vec![short.clone(), long], ("shop_", "open")),
        (vec![short.clone()], ("shop", "_open")),
        (vec![other.clone(), short], ("shop", "_open")),
    ] {
        let brought = replace(&object, &providers, false).expect("an object");
        let sites: Vec<_> = brought.sites.iter().collect();
        let [site] = sites[..] else {
            panic!("{sites:?}");
        };
        assert_eq!((&*site.provider, &*site.probe), expected);
    }
    let refused = replace(&object, &[other], false).err();
    let why = "probe shop_:::open is not defined";
    assert_eq!(refused.as_deref(), Some(why));
}

#[test]
fn what_an_object_defines_itself_is_no_probe() {
    let folder = Workshop::new("itself");
    let name = "__dtrace_shop___other";
    // In another section, so that there is a relocation.
    let own = shared(name, ".weak", "").replace("call __dtrace_shop___open", "");
    let source = caller("f", name) + &own;
    let brought = brought(&folder.assembled("f", &source));
    assert!(brought.sites.is_empty() && brought.object.is_none());
}

#[test]
fn what_is_not_defined_is_told_or_left() {
    let folder = Workshop::new("undefined");
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
    // Calls of other providers' probes are not errors.
    let others = Provider {
        name: "store".to_owned(),
        ..shop()
    };
    let others = replace(&whole, &[others], false).expect("an object");
    assert!(others.sites.is_empty() && others.object.is_none());
}

#[test]
fn a_call_that_cannot_be_replaced_is_told() {
    let folder = Workshop::new("refused");
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
        let refused = replace(&folder.assembled("f", &source), &[shop()], false).err();
        assert_eq!(refused, Some(format!("probe shop:::open {why}")), "{text}");
    }
    let alone = folder.assembled("f", "call __dtrace_shop___open\n");
    let refused = replace(&alone, &[shop()], false).err();
    assert_eq!(
        refused.as_deref(),
        Some("probe shop:::open is in no function")
    );
    folder.shell("as --32 -o f.o source.s");
    let refused = replace(&folder.read("f.o"), &[shop()], false).err();
    let why = "probes can be called in objects of 64 bits for x86 alone";
    assert_eq!(refused.as_deref(), Some(why));
}

#[test]
fn an_object_that_is_cut_or_changed_anywhere_is_read_or_not() {
    let folder = Workshop::new("damaged");
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
