// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Types of a program that has CTF for one source file and DWARF for another.

use super::{Code, Module, Modules, Object};
use crate::processes::ProcessSource;
use dtrace_files::ctf::Ctf;
use dtrace_files::dwarf::{DebugInfo, Error, Tag, Type};
use dtrace_files::testing::Folder;
use std::fs;
use std::io;
use std::path::Path;
use std::rc::Rc;

const SHORT: &str = "\
struct point { int x; };
int area(const struct point *at, char c)
{
	return at->x + c;
}
int main(void)
{
	return 0;
}
";
const LONG: &str = "\
struct size { long y; };
long far(struct size *size)
{
	return size->y;
}
";

/// A process whose program the test has compiled.
struct Compiled(Object);

impl Compiled {
    fn new(path: &Path) -> Self {
        Self(Object {
            name: "prog".to_owned(),
            path: path.to_string_lossy().into_owned(),
            file: path.into(),
            is_program: true,
            code: Vec::new(),
        })
    }

    fn module(&self) -> Result<Rc<Module>, Error> {
        Modules::default().get(self, 7, "a.out")
    }
}

impl ProcessSource for Compiled {
    fn objects(&self, _pid: u32) -> io::Result<Vec<Object>> {
        Ok(vec![self.0.clone()])
    }

    fn code(&self, object: &Object) -> io::Result<Code> {
        Code::parse(&fs::read(&object.file)?)
    }

    fn debug(&self, object: &Object) -> Result<Rc<DebugInfo>, Error> {
        Modules::default().debug(object)
    }

    fn ctf(&self, object: &Object, apart: bool) -> Option<Rc<Ctf>> {
        Modules::default().ctf(object, apart)
    }
}

/// Returns name and size of the structure to which the first parameter of a function points.
fn pointed(module: &Module, func: &str) -> Option<(String, u64)> {
    let (told, found) = module.prototype(func).expect("readable")?;
    let mut ty = found.params.first()?.1?;
    loop {
        ty = match told.ty(ty).expect("a type") {
            Type::Pointer(to, _) | Type::Const(to) => to?,
            Type::Record(name, _, size) => return Some((name, size?)),
            _ => return None,
        };
    }
}

#[test]
fn each_function_has_what_is_told_of_it() {
    let folder = Folder::new("module");
    for (name, source) in [("short.c", SHORT), ("long.c", LONG)] {
        fs::write(folder.0.join(name), source).expect("a source");
    }
    let program = folder.0.join("prog");
    for (short, long, expected) in [
        ("-gctf", "-gdwarf-5", [true, true]),
        ("-gctf", "-g0", [true, false]),
        ("-g0", "-gdwarf-5", [false, true]),
    ] {
        folder.run("gcc", &["-c", short, "short.c"]);
        folder.run("gcc", &["-c", long, "long.c"]);
        folder.run("gcc", &["-rdynamic", "-o", "prog", "short.o", "long.o"]);
        let module = Compiled::new(&program).module().expect("types");
        let area = expected[0].then(|| ("point".to_owned(), 4));
        assert_eq!(pointed(&module, "area"), area, "{short} {long}");
        let far = expected[1].then(|| ("size".to_owned(), 8));
        assert_eq!(pointed(&module, "far"), far, "{short} {long}");
        let names = ["point", "size"].map(|name| module.named(&[Tag::Struct], name).is_some());
        assert_eq!(names, expected);
    }
    folder.run("strip", &["--strip-all", "--remove-section=.ctf", "prog"]);
    let module = Compiled::new(&program).module();
    assert!(matches!(module.err(), Some(Error::None)));
}

#[test]
fn a_separate_file_is_found_after_a_look_without_it() {
    let folder = Folder::new("module-apart");
    fs::write(folder.0.join("short.c"), SHORT).expect("a source");
    folder.run("gcc", &["-gctf", "-rdynamic", "-o", "prog", "short.c"]);
    folder.run("objcopy", &["--only-keep-debug", "prog", "prog.debug"]);
    folder.run("strip", &["--strip-debug", "--remove-section=.ctf", "prog"]);
    folder.run("objcopy", &["--add-gnu-debuglink=prog.debug", "prog"]);
    let object = Compiled::new(&folder.0.join("prog")).0;
    let modules = Modules::default();
    assert!(modules.ctf(&object, false).is_none());
    assert!(modules.ctf(&object, true).is_some());
}
