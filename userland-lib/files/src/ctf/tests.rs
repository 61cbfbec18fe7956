// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Reads back the output of compiler and linker, and data that no linker would write.

use super::*;
use crate::dwarf::{Tag, Type};
use crate::testing::{address, Folder};
use flate2::write::ZlibEncoder;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;

const SOURCE: &str = "\
typedef unsigned long word;
enum colour { RED, GREEN = 7, NONE = -1 };
struct leaf;
struct point {
	int x : 3, y : 13;
	char name[4];
	const struct point *next;
	union { long wide; float real; };
	word (*call)(int, ...);
	struct leaf *leaf;
	long end;
};
int counter;
word area(const struct point *at, enum colour colour, double scale, volatile char c)
{
	return at->x * scale + colour + c;
}
static __attribute__((noinline)) void hidden(void)
{
	__asm__ volatile(\"nop\");
}
int main(int argc, char **argv)
{
	hidden();
	return argc + counter;
}
";
/// A source with other types under the same names, which also calls an external function.
const OTHER: &str = "\
extern int puts(const char *);
struct point { short other; };
struct leaf { int only; };
int other(struct point *point, const struct leaf *leaf)
{
	return puts(\"\") + point->other + leaf->only;
}
";

/// Compiles sources with these options, for example to a library that exports everything.
fn compile(folder: &Folder, sources: &[&str], options: &[&str]) -> PathBuf {
    let names: Vec<String> = (0..sources.len()).map(|n| format!("part{n}.c")).collect();
    for (name, source) in names.iter().zip(sources) {
        fs::write(folder.0.join(name), source).expect("a source");
    }
    let mut all = vec!["-O1", "-gctf", "-o", "prog"];
    all.extend(options);
    all.extend(names.iter().map(String::as_str));
    folder.run("gcc", &all);
    folder.0.join("prog")
}

fn open(program: &Path) -> Result<Ctf, Error> {
    Ctf::open(program, Some(&program.to_string_lossy()))
}

/// Short text for a type.
fn shown(ctf: &Ctf, ty: Option<TypeId>) -> String {
    let Some(id) = ty else {
        return "void".to_owned();
    };
    match ctf.ty(id).expect("a type") {
        Type::Number(name, size, _) => format!("{name}:{size}"),
        Type::Pointer(to, size) => format!("{}*{size}", shown(ctf, to)),
        Type::Array(of, counts) => format!("{}{counts:?}", shown(ctf, of)),
        Type::Typedef(name, to) => format!("{name}={}", shown(ctf, to)),
        Type::Const(to) => format!("const {}", shown(ctf, to)),
        Type::Same(to) => shown(ctf, to),
        Type::Function(ret, params, variadic) => {
            let params: Vec<String> = params.iter().map(|ty| shown(ctf, *ty)).collect();
            format!("{}({}){variadic}", shown(ctf, ret), params.join(","))
        }
        Type::Record(name, is_union, size) => format!("{name}/{is_union}/{size:?}"),
        Type::Enum(name, size, items) => format!("{name}:{size}{items:?}"),
        Type::Other => "?".to_owned(),
    }
}

/// Text for the prototype of a function.
fn prototype(ctf: &Ctf, program: &Path, name: &str) -> Option<String> {
    let found = ctf.function(address(program, name))?;
    let params: Vec<String> = found.params.iter().map(|p| shown(ctf, p.1)).collect();
    Some(format!(
        "{} {name}({})",
        shown(ctf, found.ret),
        params.join(", ")
    ))
}

fn members(ctf: &Ctf, id: TypeId) -> Vec<String> {
    let members = ctf.members(id).expect("members").into_iter();
    let members = members.map(|m| {
        let ty = shown(ctf, m.ty);
        format!("{} {} {} {ty}", m.name, m.bit_offset, m.bits)
    });
    members.collect()
}

const AREA: &str = "word=long unsigned int:8 area(const point/false/Some(48)*8, \
                    colour:4[(\"RED\", 0), (\"GREEN\", 7), (\"NONE\", -1)], double:8, char:1)";

fn check_all(ctf: &Ctf, program: &Path) {
    assert_eq!(prototype(ctf, program, "area").as_deref(), Some(AREA));
    let main = prototype(ctf, program, "main");
    assert_eq!(main.as_deref(), Some("int:4 main(int:4, char:1*8*8)"));
    assert_eq!(ctf.function(1), None);
    let point = ctf.named(Tag::Struct, "point").expect("a structure");
    let expected = [
        "x 0 3 int:4",
        "y 3 13 int:4",
        "name 16 0 char:1[Some(4)]",
        "next 64 0 const point/false/Some(48)*8",
        " 128 0 /true/Some(8)",
        "call 192 0 word=long unsigned int:8(int:4)true*8",
        "leaf 256 0 leaf/false/None*8",
        "end 320 0 long int:8",
    ];
    assert_eq!(members(ctf, point), expected);
    assert_eq!(ctf.named(Tag::Union, "point"), None);
    assert!(ctf.named(Tag::Enum, "colour").is_some());
    assert!(ctf.named(Tag::Typedef, "word").is_some());
}

#[test]
fn what_is_exported_has_types() {
    let folder = Folder::new("ctf");
    for options in [&["-shared", "-fPIC"][..], &["-rdynamic"]] {
        let program = compile(&folder, &[SOURCE], options);
        let ctf = open(&program).expect("readable");
        check_all(&ctf, &program);
        assert_eq!(prototype(&ctf, &program, "hidden"), None, "{options:?}");
        let symbols = fs::read(&program).expect("a file");
        folder.run("strip", &["prog"]);
        assert!(open(&program).is_ok(), "stripped");
        fs::write(&program, symbols).expect("written");
    }
    // With DWARF 4 the compiler describes a bit-field's position by its type (a slice).
    let program = compile(&folder, &[SOURCE], &["-shared", "-fPIC", "-gdwarf-4"]);
    let ctf = open(&program).expect("readable");
    check_all(&ctf, &program);
    let program = compile(&folder, &[SOURCE], &["-fno-pie", "-no-pie"]);
    let ctf = open(&program).expect("readable");
    assert_eq!(prototype(&ctf, &program, "area"), None, "not exported");
    assert!(ctf.named(Tag::Struct, "point").is_some());
    let none = compile(&folder, &[SOURCE], &["-gctf0"]);
    assert!(matches!(open(&none), Err(Error::None)));
}

/// Some distributions remove from a stripped program everything that is not needed to run it.
#[test]
fn what_was_taken_away_is_in_a_file_of_its_own() {
    let folder = Folder::new("ctf-apart");
    let id = "0123456789abcdef0123";
    let by_id = format!(".build-id/01/{}.debug", &id[2..]);
    let id = format!("-Wl,--build-id=0x{id}");
    let program = compile(&folder, &[SOURCE], &["-shared", "-fPIC", &id]);
    // Addresses are taken from a copy that still has all symbols.
    let whole = folder.0.join("whole");
    fs::copy(&program, &whole).expect("copied");
    folder.run("objcopy", &["--only-keep-debug", "prog", "prog.debug"]);
    folder.run("objcopy", &["--strip-all", "--remove-section=.ctf", "prog"]);
    let path = program.to_string_lossy();
    let open = || Ctf::open_in(&folder.0, &program, Some(&path));
    assert!(matches!(open(), Err(Error::None)));
    let place = folder.0.join(by_id);
    fs::create_dir_all(place.parent().expect("a folder")).expect("made");
    fs::rename(folder.0.join("prog.debug"), &place).expect("moved");
    check_all(&open().expect("by build-id"), &whole);
    let alone = Ctf::open_in(&folder.0, &program, None);
    assert!(matches!(alone, Err(Error::None)));
    fs::rename(&place, folder.0.join("prog.debug")).expect("moved");
    folder.run("objcopy", &["--add-gnu-debuglink=prog.debug", "prog"]);
    check_all(&open().expect("by name"), &whole);
}

/// An archive has one dictionary for each source with types of its own. A name with several
/// meanings is not found.
#[test]
fn each_source_has_its_own_types() {
    let folder = Folder::new("ctf-archive");
    let program = compile(&folder, &[SOURCE, OTHER], &["-shared", "-fPIC"]);
    let ctf = open(&program).expect("readable");
    assert_eq!(ctf.dicts.len(), 3);
    assert_eq!(ctf.named(Tag::Struct, "point"), None);
    let leaf = ctf.named(Tag::Struct, "leaf").expect("a structure");
    assert_eq!(members(&ctf, leaf), ["only 0 0 int:4"]);
    assert!(ctf.named(Tag::Typedef, "word").is_some());
    let other = prototype(&ctf, &program, "other").expect("a function");
    assert!(
        other.starts_with("int:4 other(point/false/None*8, "),
        "{other}"
    );
    let main = prototype(&ctf, &program, "main");
    assert_eq!(main.as_deref(), Some("int:4 main(int:4, char:1*8*8)"));
    let points = ctf.dicts.iter().enumerate().flat_map(|(number, dict)| {
        let ids = (1..=dict.len() as u32).map(move |own| TypeId::of(number, own));
        ids.filter(
            |id| matches!(ctf.ty(*id), Ok(Type::Record(name, _, Some(_))) if name == "point"),
        )
    });
    let points: Vec<usize> = points.map(|id| members(&ctf, id).len()).collect();
    assert_eq!(points, [8, 1], "what is of a child is its own");
}

/// Returns the range of the section in the bytes of a program.
fn section(program: &[u8]) -> std::ops::Range<usize> {
    let file = object::File::parse(program).expect("a program");
    let section = file.section_by_name(SECTION).expect("the section");
    let (start, size) = section.file_range().expect("a range");
    start as usize..(start + size) as usize
}

/// Returns the dictionary with the data after its header compressed.
fn packed(dict: &[u8]) -> Vec<u8> {
    let (header, rest) = dict.split_at(52);
    let mut packed = ZlibEncoder::new(header.to_vec(), flate2::Compression::best());
    packed.write_all(rest).expect("packed");
    let mut packed = packed.finish().expect("packed");
    packed[3] |= 1;
    packed
}

/// Builds a copy of a program with another section.
fn with(folder: &Folder, program: &Path, section: &[u8]) -> PathBuf {
    fs::write(folder.0.join("section"), section).expect("written");
    let name = program
        .file_name()
        .and_then(|name| name.to_str())
        .expect("a name");
    let update = ["--update-section", ".ctf=section", name, "made"];
    folder.run("objcopy", &update);
    folder.0.join("made")
}

#[test]
fn what_is_packed_tells_the_same() {
    let folder = Folder::new("ctf-packed");
    let program = compile(&folder, &[SOURCE], &["-shared", "-fPIC"]);
    let bytes = fs::read(&program).expect("a file");
    let dict = &bytes[section(&bytes)];
    let made = with(&folder, &program, &packed(dict));
    check_all(&open(&made).expect("readable"), &made);
    let mut endless = packed(dict);
    endless[48..52].copy_from_slice(&u32::MAX.to_le_bytes());
    let made = with(&folder, &program, &endless);
    assert!(open(&made).is_err());
}

/// Functions listed by name, as the linker does if few of them have types. The list is sorted by
/// name and not in the order of the symbols.
#[test]
fn functions_may_be_listed_by_name() {
    let folder = Folder::new("ctf-names");
    let many: String = (0..200)
        .map(|n| format!("int plain{n}(void) {{ return {n}; }}\n"))
        .collect();
    fs::write(folder.0.join("many.c"), many).expect("a source");
    folder.run("gcc", &["-c", "-fPIC", "-g0", "many.c"]);
    let program = compile(&folder, &[SOURCE], &["-shared", "-fPIC", "many.o"]);
    let ctf = open(&program).expect("readable");
    assert!(ctf.dicts[0].function_names().is_some());
    check_all(&ctf, &program);
    assert_eq!(prototype(&ctf, &program, "plain7"), None);
}

/// Corruption only makes information unavailable; it has no other effect.
#[test]
fn damage_is_survived() {
    let folder = Folder::new("ctf-damage");
    let program = compile(&folder, &[SOURCE, OTHER], &["-shared", "-fPIC"]);
    let bytes = fs::read(&program).expect("a file");
    let area = address(&program, "area");
    for at in section(&bytes) {
        for bit in [0x01, 0x80] {
            let mut damaged = bytes.clone();
            damaged[at] ^= bit;
            let Ok(ctf) = Ctf::parse(&damaged) else {
                continue;
            };
            let _ = (ctf.function(area), ctf.named(Tag::Struct, "leaf"));
            for (number, dict) in ctf.dicts.iter().enumerate() {
                for own in 0..=dict.len() as u32 + 1 {
                    let id = TypeId::of(number, own);
                    let _ = (ctf.ty(id), ctf.members(id));
                }
            }
        }
    }
}

/// An archive that names one dictionary repeatedly is read only until the budget is used up.
#[test]
fn an_archive_is_not_any_size() {
    let folder = Folder::new("ctf-large");
    let program = compile(&folder, &[SOURCE], &["-shared", "-fPIC"]);
    let bytes = fs::read(&program).expect("a file");
    let parent = &bytes[section(&bytes)];
    let mut child = parent.to_vec();
    // Mark it as a child; the parent's name does not matter.
    child[8] = 1;
    let count = 10_000_u64;
    let (names, size) = (40 + 16 * count, parent.len() as u64);
    let (first, second) = (0, 8 + size);
    let mut made = vec![ARCHIVE, 2, count, names, names + 16];
    made.extend([0, first]);
    made.extend((1..count).flat_map(|_| [5, second]));
    let mut made: Vec<u8> = made.into_iter().flat_map(u64::to_le_bytes).collect();
    made.extend(b".ctf\0part\0\0\0\0\0\0\0");
    for dict in [parent, &child] {
        made.extend(size.to_le_bytes());
        made.extend(dict);
    }
    let room = 1 << 20;
    let budget = Budget::new(u64::MAX, room);
    let dicts = archive(&made, &budget).expect("readable");
    assert!(budget.is_spent() && budget.kept() <= room);
    assert!((2..count).contains(&(dicts.len() as u64)));
    let budget = Budget::new(u64::MAX, u64::MAX);
    let dicts = archive(&made, &budget).expect("readable");
    assert_eq!(dicts.len() as u64, count);
    made[56..64].copy_from_slice(&[0xff; 8]);
    let dicts = archive(&made, &budget).expect("readable");
    assert_eq!(dicts.len(), 1, "a name that is nowhere ends the list");
}
