// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Tests of the BTF reader.

use super::fixture::{kernel, Builder};
use super::*;

fn parse(bytes: Vec<u8>) -> Result<Btf, Malformed> {
    Btf::parse(bytes, None)
}

/// Calls everything that reads a BTF.
fn exercise(btf: &Btf) {
    let Ok(ids) = btf.ids() else { return };
    for id in ids {
        let _ = (
            btf.text(id),
            btf.declaration(id, "x"),
            btf.size(id),
            btf.resolve(id),
        );
        let _ = (
            btf.name(id),
            btf.function_at(id).map(|f| f.proto.params().count()),
        );
        match btf.get(id) {
            Ok(Type::Struct(c) | Type::Union(c)) => c.members().for_each(drop),
            Ok(Type::Enum(e)) => e.enumerators().for_each(drop),
            Ok(Type::FuncProto(p)) => p.params().for_each(drop),
            Ok(Type::DataSec(s)) => s.vars().for_each(drop),
            _ => {}
        }
    }
    for _ in 0..12 {
        for name in ["int", "task_struct", "printk", "nothing"] {
            let _ = btf.find_any(name, &[Kind::Int, Kind::Struct, Kind::Func]);
        }
    }
    let _ = (btf.tracepoint("sched_switch"), btf.variable("jiffies_64"));
}

#[test]
fn integers() {
    let mut b = Builder::default();
    let int = b.int("int", 4, true);
    let ulong = b.int("long unsigned int", 8, false);
    let char = b.char();
    let btf = b.build();
    let Type::Int(decoded) = btf.get(int).unwrap() else {
        panic!()
    };
    assert_eq!(
        (decoded.name, decoded.size, decoded.bits, decoded.signed),
        ("int", 4, 32, true)
    );
    assert!(!decoded.is_char && !decoded.is_bool);
    assert!(matches!(
        btf.get(ulong).unwrap(),
        Type::Int(Int {
            signed: false,
            size: 8,
            ..
        })
    ));
    assert!(matches!(
        btf.get(char).unwrap(),
        Type::Int(Int {
            is_char: true,
            signed: true,
            ..
        })
    ));
    assert!(matches!(btf.get(TypeId::VOID).unwrap(), Type::Void));
    assert_eq!(
        btf.get(TypeId(4)).unwrap_err(),
        Malformed::Missing(TypeId(4))
    );
}

#[test]
fn members_and_bit_fields() {
    let btf = kernel().build();
    let id = btf.find("task_struct", Kind::Struct).unwrap().unwrap();
    let Type::Struct(task) = btf.get(id).unwrap() else {
        panic!()
    };
    assert_eq!((task.name, task.size), ("task_struct", 80));
    let members: Vec<_> = task
        .members()
        .map(|m| (m.name, m.bit_offset, m.bit_size))
        .collect();
    assert_eq!(
        members[1..4],
        [
            ("in_execve", 32, Some(1)),
            ("in_iowait", 33, Some(2)),
            ("pid", 64, None)
        ]
    );
    assert_eq!(members[8], ("", 448, None));

    // Without the flag, all 32 bits are the offset.
    let mut b = Builder::default();
    let int = b.int("int", 4, true);
    let big = b.record(Kind::Struct, "big", 1 << 28, &[("far", int, 0x4000_0000)]);
    let btf = b.build();
    let Type::Struct(big) = btf.get(big).unwrap() else {
        panic!()
    };
    assert_eq!(big.members().next().unwrap().bit_offset, 0x4000_0000);
}

#[test]
fn enumerations() {
    let mut b = Builder::default();
    let signed = b.enumeration("e", &[("A", 1), ("B", -1)]);
    let wide = b.enum64("w", false, &[("C", 1 << 40), ("D", u64::MAX)]);
    let unsigned = b.raw("u", 6 << 24 | 1, 4, &[1, u32::MAX]);
    let btf = b.build();
    let values = |id| match btf.get(id).unwrap() {
        Type::Enum(e) => e.enumerators().map(|e| e.value).collect::<Vec<_>>(),
        _ => panic!(),
    };
    assert_eq!(values(signed), [1, -1]);
    assert_eq!(values(wide), [1 << 40, -1]);
    assert_eq!(values(unsigned), [0xffff_ffff]);
}

#[test]
fn sizes_and_resolving() {
    let mut b = Builder::default();
    let int = b.int("int", 4, true);
    let row = b.array(int, int, 3);
    let table = b.array(row, int, 5);
    let constant = b.qualified(Kind::Const, table);
    let name = b.typedef("table_t", constant);
    let fwd = b.fwd("opaque", false);
    let huge = b.array(int, int, u32::MAX);
    let huge = b.array(huge, int, u32::MAX);
    let var = b.var("v", name);
    let btf = b.build();
    assert_eq!(btf.size(name), Ok(Some(60)));
    assert_eq!(btf.resolve(name), Ok(table));
    assert_eq!(btf.size(var), Ok(Some(60)));
    assert_eq!(btf.size(fwd), Ok(None));
    assert_eq!(btf.size(TypeId::VOID), Ok(None));
    assert_eq!(btf.size(huge), Err(Malformed::Large));
}

#[test]
fn text() {
    let mut b = Builder::default();
    let int = b.int("int", 4, true);
    let char = b.char();
    let const_char = b.qualified(Kind::Const, char);
    let name = b.ptr(const_char);
    let const_name = b.qualified(Kind::Const, name);
    let void_ptr = b.ptr(TypeId::VOID);
    let proto = b.proto(int, &[("p", void_ptr), ("", TypeId::VOID)]);
    let callback = b.ptr(proto);
    let callbacks = b.array(callback, int, 4);
    let row = b.array(int, int, 3);
    let row_ptr = b.ptr(row);
    let s = b.record(Kind::Struct, "task_struct", 0, &[]);
    let s = b.ptr(s);
    let anonymous = b.record(Kind::Union, "", 0, &[]);
    let getter = b.proto(callback, &[]);
    let getter = b.ptr(getter);
    let tagged = b.type_tag("user", char);
    let tagged = b.ptr(tagged);
    let btf = b.build();
    let text = |id| btf.text(id).unwrap();
    assert_eq!(text(TypeId::VOID), "void");
    assert_eq!(text(s), "struct task_struct *");
    assert_eq!(text(name), "const char *");
    assert_eq!(text(const_name), "const char *const");
    assert_eq!(text(callback), "int (*)(void *, ...)");
    assert_eq!(text(callbacks), "int (*[4])(void *, ...)");
    assert_eq!(text(row), "int [3]");
    assert_eq!(text(row_ptr), "int (*)[3]");
    assert_eq!(text(anonymous), "union {...}");
    assert_eq!(text(getter), "int (*(*)(void))(void *, ...)");
    assert_eq!(text(tagged), "char *");
    assert_eq!(
        btf.declaration(const_name, "fmt").unwrap(),
        "const char *const fmt"
    );
    assert_eq!(btf.declaration(row, "x").unwrap(), "int x[3]");
}

#[test]
fn prototypes() {
    let btf = kernel().build();
    let wake = btf.function("wake_up_process").unwrap().unwrap();
    let params: Vec<_> = wake
        .proto
        .params()
        .map(|p| (p.name, btf.text(p.ty).unwrap()))
        .collect();
    assert_eq!(params, [("p", "struct task_struct *".to_owned())]);
    assert_eq!(btf.text(wake.proto.ret).unwrap(), "int");
    let printk = btf.function("printk").unwrap().unwrap().proto;
    assert!(printk.variadic);
    assert_eq!(printk.params().len(), 1);
    let schedule = btf.function("schedule").unwrap().unwrap().proto;
    assert!(!schedule.variadic);
    assert_eq!(schedule.params().len(), 0);
    assert!(btf.function("task_struct").unwrap().is_none());
    let switch = btf.tracepoint("sched_switch").unwrap().unwrap();
    let names: Vec<_> = switch.params().map(|p| p.name).collect();
    assert_eq!(names, ["preempt", "prev", "next"]);
    assert!(btf.tracepoint("none").unwrap().is_none());
    let jiffies = btf.variable("jiffies_64").unwrap().unwrap();
    assert_eq!(btf.text(jiffies).unwrap(), "u64");
}

#[test]
fn sections_of_variables_and_remarks() {
    let mut b = Builder::default();
    let int = b.int("int", 4, true);
    let var = b.var("counter", int);
    let sec = b.data_sec(".data..percpu", 4096, &[(var, 64, 4)]);
    let whole = b.decl_tag("kfunc", var, None);
    let part = b.decl_tag("x", var, Some(2));
    let float = b.float("double", 8);
    let btf = b.build();
    let Type::DataSec(section) = btf.get(sec).unwrap() else {
        panic!()
    };
    let placed = Placed {
        var,
        offset: 64,
        size: 4,
    };
    assert_eq!(section.vars().collect::<Vec<_>>(), [placed]);
    assert!(matches!(
        btf.get(whole).unwrap(),
        Type::DeclTag {
            name: "kfunc",
            component: None,
            ..
        }
    ));
    assert!(matches!(
        btf.get(part).unwrap(),
        Type::DeclTag {
            component: Some(2),
            ..
        }
    ));
    assert!(matches!(
        btf.get(float).unwrap(),
        Type::Float {
            name: "double",
            size: 8
        }
    ));
}

#[test]
fn a_module_goes_on_from_its_base() {
    let base = kernel().build();
    let task = base.find("task_struct", Kind::Struct).unwrap().unwrap();
    let mut b = Builder::on(&base);
    let pointer = b.ptr(task);
    let inode = b.record(Kind::Struct, "ext4_inode_info", 8, &[("owner", pointer, 0)]);
    let own_int = b.int("int", 4, true);
    let module = b.build();
    assert_eq!(module.text(pointer).unwrap(), "struct task_struct *");
    assert_eq!(
        module.find("ext4_inode_info", Kind::Struct),
        Ok(Some(inode))
    );
    assert_eq!(module.find("task_struct", Kind::Struct), Ok(Some(task)));
    assert_eq!(module.find_own("task_struct", &[Kind::Struct]), Ok(None));
    assert_eq!(module.find("int", Kind::Int), Ok(Some(own_int)));
    assert_eq!(base.find("ext4_inode_info", Kind::Struct), Ok(None));
    assert_eq!(module.ids().unwrap().len(), 3);
}

/// Searching finds the same types in a sorted and an unsorted BTF, by scan and by hash table.
#[test]
fn every_way_of_searching_agrees() {
    let names: Vec<String> = (0..700)
        .map(|i| format!("type_{:03}", i * 3 % 700))
        .collect();
    let build = |names: &[String]| {
        let mut b = Builder::default();
        b.ptr(TypeId::VOID);
        for name in names {
            b.fwd(name, false);
            b.float(name, 8);
        }
        b.build()
    };
    let mut ordered = names.clone();
    ordered.sort();
    let (sorted, unsorted) = (build(&ordered), build(&names));
    for round in 0..SEARCHES {
        let i = round * 31 % names.len();
        for (btf, list) in [(&sorted, &ordered), (&unsorted, &names)] {
            let at = 2 + 2 * i as u32;
            assert_eq!(btf.find(&list[i], Kind::Fwd), Ok(Some(TypeId(at))));
            assert_eq!(btf.find(&list[i], Kind::Float), Ok(Some(TypeId(at + 1))));
            assert_eq!(btf.find(&list[i], Kind::Struct), Ok(None));
            for absent in ["", "type_", "type_0000", "zzz", "a", "type_001\0"] {
                assert_eq!(btf.find(absent, Kind::Fwd), Ok(None));
            }
        }
    }
}

const SEARCHES: usize = 60;

#[test]
fn the_first_of_equals_is_found() {
    let mut b = Builder::default();
    b.fwd("z", false);
    let first = b.fwd("same", false);
    for _ in 0..20 {
        b.fwd("same", false);
    }
    let btf = b.build();
    for _ in 0..20 {
        assert_eq!(btf.find("same", Kind::Fwd), Ok(Some(first)));
    }
}

#[test]
fn wrong_headers() {
    let good = kernel().bytes();
    let with = |at: usize, value: &[u8]| {
        let mut bytes = good.clone();
        bytes[at..at + value.len()].copy_from_slice(value);
        parse(bytes).unwrap_err()
    };
    assert_eq!(parse(Vec::new()).unwrap_err(), Malformed::Short);
    assert_eq!(parse(good[..10].to_vec()).unwrap_err(), Malformed::Short);
    assert_eq!(
        with(0, b"\x7fE"),
        Malformed::Magic(u16::from_ne_bytes(*b"\x7fE"))
    );
    assert_eq!(
        with(0, &0xeb9f_u16.swap_bytes().to_ne_bytes()),
        Malformed::ForeignOrder
    );
    assert_eq!(with(2, &[2]), Malformed::Version(2));
    assert_eq!(with(4, &20_u32.to_ne_bytes()), Malformed::Header(20));
    assert_eq!(
        with(12, &u32::MAX.to_ne_bytes()),
        Malformed::Section("type")
    );
    assert_eq!(with(8, &u32::MAX.to_ne_bytes()), Malformed::Section("type"));
    assert_eq!(
        with(20, &u32::MAX.to_ne_bytes()),
        Malformed::Section("string")
    );
    assert_eq!(with(good.len() - 1, b"x"), Malformed::Strings);
    for cut in 0..good.len() {
        assert!(parse(good[..cut].to_vec()).is_err(), "{cut} bytes");
    }
}

#[test]
fn records_that_are_cut_off_or_unknown() {
    let mut b = Builder::default();
    b.raw("s", 4 << 24 | 3, 12, &[0, 0, 0]);
    assert_eq!(b.build().ids().map(drop), Err(Malformed::Record(TypeId(1))));

    let mut b = Builder::default();
    b.raw("later", 21 << 24 | 1, 0, &[7, 8]);
    let int = b.int("int", 4, true);
    assert_eq!(
        b.build().get(int).unwrap_err(),
        Malformed::Kind(TypeId(1), 21)
    );
    let mut layout = vec![(0, 0); 22];
    layout[21] = (4, 4);
    let btf = parse(b.bytes_with_layout(&layout)).unwrap();
    assert!(matches!(btf.get(TypeId(1)), Ok(Type::Unknown(21))));
    assert!(matches!(btf.get(int), Ok(Type::Int(_))));
}

#[test]
fn rings_end() {
    let mut b = Builder::default();
    let a = b.next();
    b.typedef("a", TypeId(2));
    b.typedef("b", a);
    let array = b.next();
    b.array(array, array, 2);
    let proto = b.next();
    let params = [("", proto); 8];
    b.proto(proto, &params);
    let pointer = b.next();
    b.ptr(pointer);
    let btf = b.build();
    assert_eq!(btf.resolve(a), Err(Malformed::Cycle(a)));
    assert_eq!(btf.size(array), Err(Malformed::Cycle(array)));
    assert!(matches!(btf.text(array), Err(Malformed::Cycle(_))));
    assert!(matches!(btf.text(proto), Err(Malformed::Cycle(_))));
    assert!(matches!(btf.text(pointer), Err(Malformed::Cycle(_))));
    assert!(btf.function_at(proto).is_err());
}

#[test]
fn names_that_do_not_exist() {
    let mut b = Builder::default();
    let int = b.int("int", 4, true);
    let bad = b.raw("", 4 << 24 | 1, 4, &[0x00ff_fff0, int.0, 0]);
    let btf = b.build();
    assert_eq!(btf.get(bad).unwrap_err(), Malformed::Name(0x00ff_fff0));
    assert_eq!(btf.find("nothing", Kind::Struct), Ok(None));

    let mut b = Builder::default();
    let long = b.fwd(&"x".repeat(MAX_NAME + 1), false);
    assert!(matches!(b.build().get(long), Err(Malformed::Name(_))));
}

/// Damaged bytes cause errors or wrong types, but no panics. The sequence is the same in every run.
#[test]
fn damaged_bytes() {
    let good = kernel().bytes();
    let base = kernel().build();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    let mut parsed = 0;
    for round in 0..3000 {
        let mut bytes = good.clone();
        for _ in 0..1 + round % 8 {
            let at = random(bytes.len());
            bytes[at] = match random(3) {
                0 => random(256) as u8,
                1 => bytes[at] ^ 1 << random(8),
                _ => [0, 1, 0x7f, 0x80, 0xff][random(5)],
            };
        }
        for base in [None, Some(base.clone())] {
            if let Ok(btf) = Btf::parse(bytes.clone(), base) {
                parsed += 1;
                exercise(&btf);
            }
        }
    }
    assert!(parsed > 1000, "the damage never got past the header");
}

#[test]
fn a_directory_of_files() {
    let directory = std::env::temp_dir().join(format!("dtrace-btf-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let set = KernelBtf::new(&directory);
    assert!(set.vmlinux().unwrap().is_none());
    let base = kernel();
    std::fs::write(directory.join("vmlinux"), base.bytes()).unwrap();
    let mut b = Builder::on(&base.build());
    let own = b.record(Kind::Struct, "ext4_sb_info", 8, &[]);
    std::fs::write(directory.join("ext4"), b.bytes()).unwrap();
    std::fs::write(directory.join("bad"), b"no BTF").unwrap();

    let set = KernelBtf::new(&directory);
    assert_eq!(set.modules(), ["bad", "ext4"]);
    assert!(set.module("absent").unwrap().is_none());
    assert!(set.module("../ext4").unwrap().is_none());
    assert!(matches!(set.module("bad"), Err(Error::Malformed { .. })));
    let ext4 = set.module("ext4").unwrap().unwrap();
    assert_eq!(ext4.find("ext4_sb_info", Kind::Struct), Ok(Some(own)));
    assert!(Arc::ptr_eq(&ext4, &set.module("ext4").unwrap().unwrap()));
    let (found, _) = set.find("task_struct", &[Kind::Struct]).unwrap().unwrap();
    assert!(found.base().is_none());
    std::fs::remove_file(directory.join("bad")).unwrap();
    let (found, id) = set.find("ext4_sb_info", &[Kind::Struct]).unwrap().unwrap();
    assert_eq!((found.base().is_some(), id), (true, own));
    assert!(set.find("nothing", &[Kind::Struct]).unwrap().is_none());
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn a_module_that_is_not_loaded_has_the_types_in_its_file() {
    let directory = std::env::temp_dir().join(format!("dtrace-files-{}", std::process::id()));
    let [shown, files] = ["btf", "modules"].map(|name| directory.join(name));
    for folder in [&shown, &files] {
        std::fs::create_dir_all(folder).unwrap();
    }
    let base = kernel();
    std::fs::write(shown.join("vmlinux"), base.bytes()).unwrap();
    let types = |name: &str| {
        let mut b = Builder::on(&base.build());
        b.record(Kind::Struct, name, 8, &[]);
        b.bytes()
    };
    let write = |file: &str, sections: &[(&str, Vec<u8>)]| {
        use object::write::Object;
        use object::{Architecture, BinaryFormat, Endianness, SectionKind};
        let mut object = Object::new(BinaryFormat::Elf, Architecture::X86_64, Endianness::Little);
        for (name, bytes) in sections {
            let name = name.as_bytes().to_vec();
            let section = object.add_section(Vec::new(), name, SectionKind::ReadOnlyData);
            object.set_section_data(section, bytes.clone(), 1);
        }
        std::fs::write(files.join(file), object.write().unwrap()).unwrap();
    };
    let list = "ext4.ko: kernel/lib.ko\nnot-loaded.ko.gz:\nown.ko: ext4.ko\nbad.ko:\nold.ko.bz2:\n";
    std::fs::write(files.join("modules.dep"), list).unwrap();
    write("not-loaded.ko", &[(".BTF", types("unloaded"))]);
    let gzip = std::process::Command::new("gzip")
        .arg(files.join("not-loaded.ko"))
        .status();
    assert!(gzip.unwrap().success());
    write(
        "own.ko",
        &[(".BTF", types("unloaded")), (".BTF.base", base.bytes())],
    );
    write("old.ko.bz2", &[(".BTF", types("unloaded"))]);
    write("bad.ko", &[(".BTF", b"no BTF".to_vec())]);
    let set = || KernelBtf::with_files(&shown, Files::new(&files));
    let has = |module: &str| {
        let btf = set().module(module).unwrap();
        btf.is_some_and(|btf| btf.find("unloaded", Kind::Struct).unwrap().is_some())
    };
    // No loaded module shows that the files belong to this kernel.
    assert!(!has("not_loaded"));
    std::fs::write(shown.join("ext4"), types("ext4_sb_info")).unwrap();
    write("ext4.ko", &[(".BTF", types("another"))]);
    assert!(!has("not_loaded"));
    write("ext4.ko", &[(".BTF", types("ext4_sb_info"))]);
    assert!(has("not_loaded"));
    assert_eq!(set().modules(), ["ext4"]);
    for module in ["own", "old", "absent", "ext4"] {
        assert!(!has(module), "{module}");
    }
    assert!(matches!(set().module("bad"), Err(Error::Malformed { .. })));
    assert!(set().find("unloaded", &[Kind::Struct]).unwrap().is_none());
    std::fs::remove_dir_all(&directory).unwrap();
}

/// The BTF of the machine that runs the tests, if it has one: everything in it can be decoded.
#[test]
fn the_running_kernel() {
    let Ok(Some(btf)) = KernelBtf::default().vmlinux() else {
        return;
    };
    for id in btf.ids().unwrap() {
        btf.get(id).unwrap();
    }
    let task = btf.find("task_struct", Kind::Struct).unwrap().unwrap();
    assert!(btf.size(task).unwrap().unwrap() > 1000);
    let wake = btf.function("wake_up_process").unwrap().unwrap();
    let first = wake.proto.params().next().unwrap();
    assert_eq!(btf.text(first.ty).unwrap(), "struct task_struct *");
}
