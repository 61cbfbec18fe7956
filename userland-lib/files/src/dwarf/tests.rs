// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Reads back the output of compilers: the tests compile programs with every supported form of
//! debug information.

use super::*;
use crate::testing::{address, Folder};
use std::fs;
use std::os::unix::fs::{chown, PermissionsExt as _};
use std::path::PathBuf;

pub const SOURCE: &str = "\
typedef unsigned long word;
enum colour { RED, GREEN = 7, NONE = -1 };
struct leaf;
struct point {
	int x : 3, y : 13;
	char name[4][2];
	const struct point *next;
	union { long wide; float real; };
	word (*call)(int, ...);
	struct leaf *leaf;
	long end;
};
__attribute__((used)) word area(const struct point *at, enum colour colour, double scale, volatile char c)
{
	return at->x * scale + colour + c;
}
static __attribute__((noinline)) void nothing(void)
{
	__asm__ volatile(\"nop\");
}
static inline __attribute__((always_inline)) int twice(int n)
{
	__asm__ volatile(\"nop\");
	return n * 2;
}
int main(int argc, char **argv)
{
	nothing();
	int sum = twice(argc);
	sum += twice(sum + argv[0][0]);

	return sum;
}
";
/// Line of the second `nop`.
const INLINED: u64 = 23;

/// Short text for a type.
fn shown(debug: &DebugInfo, ty: Option<TypeId>) -> String {
    let Some(id) = ty else {
        return "void".to_owned();
    };
    match debug.ty(id).expect("a type") {
        Type::Number(name, size, _) => format!("{name}:{size}"),
        Type::Pointer(to, size) => format!("{}*{size}", shown(debug, to)),
        Type::Array(of, counts) => format!("{}{counts:?}", shown(debug, of)),
        Type::Typedef(name, to) => format!("{name}={}", shown(debug, to)),
        Type::Const(to) => format!("const {}", shown(debug, to)),
        Type::Same(to) => shown(debug, to),
        Type::Function(ret, params, variadic) => {
            let params: Vec<String> = params.iter().map(|ty| shown(debug, *ty)).collect();
            format!("{}({}){variadic}", shown(debug, ret), params.join(","))
        }
        Type::Record(name, is_union, size) => format!("{name}/{is_union}/{size:?}"),
        Type::Enum(name, size, items) => format!("{name}:{size}{items:?}"),
        Type::Other => "?".to_owned(),
    }
}

pub fn check_all(debug: &DebugInfo, program: &Path) {
    let area = debug.function(address(program, "area")).expect("readable");
    let area = area.expect("a function");
    assert_eq!(shown(debug, area.ret), "word=long unsigned int:8");
    let names: Vec<&str> = area.params.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["at", "colour", "scale", "c"]);
    let types: Vec<String> = area.params.iter().map(|p| shown(debug, p.1)).collect();
    let expected = [
        "const point/false/Some(56)*8",
        "colour:4[(\"RED\", 0), (\"GREEN\", 7), (\"NONE\", -1)]",
        "double:8",
        "char:1",
    ];
    assert_eq!(types, expected);
    let nothing = debug.function(address(program, "nothing"));
    assert_eq!(nothing.expect("readable"), Some(Prototype::default()));
    assert_eq!(debug.function(1).expect("readable"), None);
    assert_eq!(debug.function(u64::MAX).expect("readable"), None);

    let point = debug.named(Tag::Struct, "point").expect("a structure");
    let members = debug.members(point).expect("members").into_iter();
    let members = members.map(|m| {
        let ty = shown(debug, m.ty);
        format!("{} {} {} {ty}", m.name, m.bit_offset, m.bits)
    });
    let expected = [
        "x 0 3 int:4",
        "y 3 13 int:4",
        "name 16 0 char:1[Some(4), Some(2)]",
        "next 128 0 const point/false/Some(56)*8",
        " 192 0 /true/Some(8)",
        "call 256 0 word=long unsigned int:8(int:4)true*8",
        "leaf 320 0 leaf/false/None*8",
        "end 384 0 long int:8",
    ];
    let size = debug.ty(point).expect("a type");
    let members: Vec<String> = members.collect();
    assert_eq!(members[..], expected, "{size:?}");
    assert_eq!(debug.named(Tag::Union, "point"), None);
    assert!(debug.named(Tag::Enum, "colour").is_some());
    assert!(debug.named(Tag::Typedef, "word").is_some());

    let lines = debug.lines("prog.c", INLINED);
    assert_eq!(lines.addresses.len(), 2, "both copies: {lines:x?}");
    let main = address(program, "main");
    assert!(lines
        .addresses
        .iter()
        .all(|at| (main..main + 200).contains(at)));
    let nothing = debug.lines("prog.c", 19).addresses;
    assert!(nothing.contains(&address(program, "nothing")));
    let empty = debug.lines("prog.c", 31);
    assert!(empty.has_file && empty.addresses.is_empty());
    assert!(empty.nearest == Some(32), "{empty:?}");
    assert_eq!(debug.lines("prog.c", 1 << 40).nearest, Some(32));
    let other = debug.lines("rog.c", 20);
    assert!(!other.has_file && other.files.contains("prog.c"));
}

/// Builds a stripped program and its separate debug file.
fn split(folder: &Folder, options: &[&str]) -> PathBuf {
    folder.compile(SOURCE, &[&["-gdwarf-5"], options].concat());
    folder.run("objcopy", &["--only-keep-debug", "prog", "prog.debug"]);
    folder.run("strip", &["prog"]);
    folder.0.join("prog")
}

#[test]
fn a_file_of_its_own_has_the_build_id_of_the_program() {
    let folder = Folder::new("id");
    let id = "0123456789abcdef0123";
    let program = split(&folder, &[&format!("-Wl,--build-id=0x{id}")]);
    let find = || file::find_in(&folder.0, &program, "/nowhere/prog", file::FILE_MAX);
    assert!(matches!(find(), Err(Error::None)));
    let place = folder.0.join(".build-id/01");
    fs::create_dir_all(&place).expect("a folder");
    let place = place.join(format!("{}.debug", &id[2..]));
    fs::rename(folder.0.join("prog.debug"), &place).expect("moved");
    assert!(find().is_ok());
    split(&folder, &["-Wl,--build-id=0x0123ff"]);
    fs::rename(folder.0.join("prog.debug"), &place).expect("moved");
    split(&folder, &[&format!("-Wl,--build-id=0x{id}")]);
    assert!(matches!(find(), Err(Error::None)), "of another program");
}

#[test]
fn a_file_that_is_named_has_the_checksum() {
    let folder = Folder::new("link");
    let program = split(&folder, &["-Wl,--build-id=none"]);
    folder.run("objcopy", &["--add-gnu-debuglink=prog.debug", "prog"]);
    let path = program.to_string_lossy();
    let find = || file::find_in(Path::new("/nowhere"), &program, &path, file::FILE_MAX);
    let debug = DebugInfo::parse(find().expect("beside").own).expect("readable");
    assert!(debug.named(Tag::Struct, "point").is_some());
    let beside = folder.0.join("prog.debug");
    let mut bytes = fs::read(&beside).expect("a file");
    fs::create_dir(folder.0.join(".debug")).expect("a folder");
    fs::rename(&beside, folder.0.join(".debug/prog.debug")).expect("moved");
    let moved = folder.0.join(".debug/prog.debug");
    assert!(find().is_ok(), "in the folder");
    // The checksum is no secret, and other users may run the program at a path where they control
    // the files.
    let mode = |mode| fs::set_permissions(&moved, fs::Permissions::from_mode(mode)).expect("ours");
    mode(0o666);
    assert!(matches!(find(), Err(Error::None)), "anybody's");
    mode(0o644);
    if chown(&moved, Some(65534), None).is_ok() {
        assert!(matches!(find(), Err(Error::None)), "another user's");
        chown(&program, Some(65534), None).expect("root may");
        assert!(find().is_ok(), "the user's own");
    }
    *bytes.last_mut().expect("bytes") ^= 1;
    fs::write(folder.0.join(".debug/prog.debug"), bytes).expect("written");
    assert!(matches!(find(), Err(Error::None)), "another checksum");
}

#[test]
fn what_is_not_understood_is_refused() {
    let folder = Folder::new("other");
    let open = |program: &Path| DebugInfo::open(program, "/prog");
    assert!(matches!(
        open(&folder.compile(SOURCE, &["-g0"])),
        Err(Error::None)
    ));
    assert!(matches!(open(Path::new("/dev/zero")), Err(Error::Io(_))));
    fs::write(folder.0.join("text"), "text").expect("written");
    assert!(matches!(open(&folder.0.join("text")), Err(Error::Damaged)));
}

/// Truncation or corruption only makes information unavailable; it has no other effect.
#[test]
fn damage_is_survived() {
    let folder = Folder::new("damage");
    let program = folder.compile(SOURCE, &["-gdwarf-5", "-nostartfiles", "-static"]);
    let (area, bytes) = (
        address(&program, "area"),
        fs::read(&program).expect("a file"),
    );
    for at in (0..bytes.len()).step_by(13) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x81;
        let Ok(debug) = DebugInfo::parse(damaged.into()) else {
            continue;
        };
        if let Ok(Some(found)) = debug.function(area) {
            let types = found.params.iter().filter_map(|param| param.1);
            for id in types.chain(found.ret) {
                let _ = (debug.ty(id), debug.members(id));
            }
        }
        let _ = (
            debug.named(Tag::Struct, "point"),
            debug.lines("prog.c", INLINED),
        );
    }
}

#[test]
fn every_form_tells_the_same() {
    let folder = Folder::new("forms");
    for options in [
        &["-gdwarf-5"][..],
        &["-gdwarf-4"],
        &["-gdwarf-4", "-gstrict-dwarf"],
        &["-gdwarf-4", "-fdebug-types-section"],
        &["-gdwarf-5", "-gz=zlib"],
        &["-gdwarf-5", "-gz=zstd"],
        &["-gdwarf-5", "-fdebug-types-section"],
        &["-gdwarf-5", "-flto"],
        &["-gdwarf-5", "-gsplit-dwarf"],
        &["-gdwarf-4", "-gsplit-dwarf"],
        &["-gdwarf-5", "-gsplit-dwarf", "-gz=zlib"],
        &["-gdwarf-5", "-gsplit-dwarf", "-fdebug-types-section"],
        &["-gdwarf-4", "-gsplit-dwarf", "-fdebug-types-section"],
        &["-gdwarf-5", "-static", "-gz=zlib"],
    ] {
        let program = folder.compile(SOURCE, options);
        let path = program.to_string_lossy();
        let debug = DebugInfo::open(&program, &path).unwrap_or_else(|e| panic!("{options:?}: {e}"));
        println!("{options:?}");
        check_all(&debug, &program);
    }
}

/// C++ has the functions of a class in the declaration of the class, whose definition is in a type
/// unit.
#[test]
fn a_declaration_leads_to_the_unit_of_the_type() {
    let folder = Folder::new("signed");
    let source = "\
namespace outer {
	struct point {
		int x;
		int y;
		__attribute__((noinline)) int sum() const { return x + y; }
	};
}
extern \"C\" __attribute__((used)) int area(const outer::point &at) { return at.sum(); }
int main() { return 0; }
";
    for version in ["-gdwarf-4", "-gdwarf-5"] {
        let options = [version, "-fdebug-types-section"];
        let program = folder.compile_by("clang++-19", source, &options);
        let debug = DebugInfo::open(&program, "/prog").expect("readable");
        let found = debug.function(address(&program, "_ZNK5outer5point3sumEv"));
        let found = found.expect("readable").expect("a function");
        let mut ty = found.params[0].1.expect("a type");
        while let Type::Pointer(to, _) | Type::Const(to) = debug.ty(ty).expect("a type") {
            ty = debug.defined(to.expect("more"));
        }
        let point = Type::Record("point".to_owned(), false, Some(8));
        assert_eq!(debug.ty(ty).ok(), Some(point), "{version}");
        assert_eq!(debug.members(ty).map(|all| all.len()).ok(), Some(2));
    }
}
