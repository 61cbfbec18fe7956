// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Tests of the table of types.

use super::btf::fixture::{self, Builder};
use super::btf::{self as b, Btf, TypeId};
use super::TypeSource;
use super::*;
use dtrace_objects::processes::Nowhere;
use std::cell::Cell;
use std::sync::Arc;

/// A kernel with one module; counts the requests for BTF.
struct World {
    vmlinux: Arc<Btf>,
    module: Arc<Btf>,
    asked: Cell<u32>,
}

impl World {
    fn new() -> Self {
        let vmlinux = fixture::kernel().build();
        let task = vmlinux
            .find("task_struct", b::Kind::Struct)
            .unwrap()
            .unwrap();
        let int = vmlinux.find("int", b::Kind::Int).unwrap().unwrap();
        let mut builder = Builder::on(&vmlinux);
        let task = builder.ptr(task);
        let sb = builder.record(
            b::Kind::Struct,
            "ext4_sb_info",
            16,
            &[("s_task", task, 0), ("s_flags", int, 64)],
        );
        let sb = builder.ptr(sb);
        builder.func("ext4_sync_fs", int, &[("sb", sb)]);
        Self {
            module: builder.build(),
            vmlinux,
            asked: Cell::new(0),
        }
    }
}

impl TypeSource for World {
    fn btf(&self, module: &str) -> Option<Arc<Btf>> {
        self.asked.set(self.asked.get() + 1);
        match module {
            "vmlinux" => Some(self.vmlinux.clone()),
            "ext4" => Some(self.module.clone()),
            _ => None,
        }
    }

    fn modules(&self) -> Vec<String> {
        vec!["ext4".to_owned()]
    }
}

fn world_of(builder: &Builder) -> World {
    World {
        vmlinux: builder.build(),
        ..World::new()
    }
}

#[test]
fn the_constants_are_what_they_say() {
    let types = Types::new(&Nowhere);
    for (ty, name) in [
        (Ty::VOID, "void"),
        (Ty::CHAR, "char"),
        (Ty::USHORT, "unsigned short"),
        (Ty::ULONGLONG, "unsigned long long"),
        (Ty::BOOL, "_Bool"),
        (Ty::LONG_DOUBLE, "long double"),
        (Ty::STRING, "string"),
        (Ty::STACK, "dt_stack_t"),
        (Ty::JSTACK, "stack"),
        (Ty::SYMBOL, "_symaddr"),
        (Ty::USYMBOL, "_usymaddr"),
        (Ty::DYNAMIC, "<DYN>"),
        (Ty::VOID_POINTER, "void *"),
        (Ty::CHAR_POINTER, "char *"),
        (Ty::INT8_T, "int8_t"),
        (Ty::UINT64_T, "uint64_t"),
        (Ty::UINTPTR_T, "uintptr_t"),
        (Ty::SIZE_T, "size_t"),
        (Ty::PID_T, "pid_t"),
        (Ty::GID_T, "gid_t"),
    ] {
        assert_eq!(types.name(ty), name);
    }
    assert_eq!(types.size(Ty::STRING), Some(256));
    assert_eq!(types.size(Ty::VOID), None);
    assert_eq!(types.resolve(Ty::UINT64_T), Ty::ULONG);
}

#[test]
fn words_in_any_order() {
    let ty = |text: &str| Types::from_words(text.split(' '));
    assert_eq!(ty("long unsigned int"), Some(Ty::ULONG));
    assert_eq!(ty("unsigned"), Some(Ty::UINT));
    assert_eq!(ty("int short signed"), Some(Ty::SHORT));
    assert_eq!(ty("long long unsigned"), Some(Ty::ULONGLONG));
    assert_eq!(ty("signed char"), Some(Ty::SIGNED_CHAR));
    assert_eq!(ty("long double"), Some(Ty::LONG_DOUBLE));
    for wrong in [
        "",
        "unsigned signed",
        "long char",
        "long long long",
        "void unsigned",
        "short char",
        "foo",
    ] {
        assert_eq!(ty(wrong), None, "{wrong}");
    }
}

#[test]
fn derived_types_are_entered_once() {
    let mut types = Types::new(&Nowhere);
    assert_eq!(types.pointer_to(Ty::CHAR), Ty::CHAR_POINTER);
    let a = types.array_of(Ty::INT, Some(3));
    assert_eq!(types.array_of(Ty::INT, Some(3)), a);
    assert_ne!(types.array_of(Ty::INT, Some(4)), a);
    let c = types.const_of(Ty::CHAR);
    assert_eq!(types.const_of(c), c);
    let named = types.declare_typedef("letter", c);
    assert!(types.is_const(named) && !types.is_const(Ty::CHAR));
    assert_eq!(types.resolve(named), Ty::CHAR);
    let user = types.user_pointer_to(Ty::CHAR);
    assert_ne!(user, Ty::CHAR_POINTER);
    assert!(types.is_userland(user) && !types.is_userland(Ty::CHAR_POINTER));
    assert!(types.compatible(user, Ty::CHAR_POINTER));
}

#[test]
fn texts() {
    let mut types = Types::new(&Nowhere);
    let constant = types.const_of(Ty::CHAR);
    let pointer = types.pointer_to(constant);
    let fixed = types.const_of(pointer);
    let function = types.function_of(Ty::INT, &[Ty::VOID_POINTER], true);
    let callback = types.pointer_to(function);
    let row = types.array_of(callback, Some(2));
    let tag = types.declare_record(false, Some("foo"), None).unwrap();
    let open = types.array_of(tag, None);
    assert_eq!(types.name(pointer), "const char *");
    assert_eq!(types.declaration(fixed, "p"), "const char *const p");
    assert_eq!(types.name(fixed), "const char *const");
    assert_eq!(types.name(row), "int (*[2])(void *, ...)");
    assert_eq!(types.declaration(open, "v"), "struct foo v[]");
    let anonymous = types.declare_record(true, None, None).unwrap();
    assert_eq!(types.name(anonymous), "union {...}");
}

#[test]
fn kernel_structures_come_in_as_they_are_used() {
    let world = World::new();
    let mut types = Types::new(&world);
    let before = types.kinds.len();
    let task = types.lookup_tag(Tag::Struct, None, "task_struct").unwrap();
    assert_eq!(
        types.kinds.len(),
        before + 1,
        "members before they were asked for"
    );
    assert_eq!(types.size(task), Some(80));
    assert_eq!(
        types.lookup_tag(Tag::Struct, None, "task_struct"),
        Some(task)
    );
    let parent = types.member(task, "parent").unwrap();
    assert_eq!(
        (parent.bit_offset / 8, types.name(parent.ty)),
        (16, "struct task_struct *".to_owned())
    );
    assert_eq!(
        types.pointee(parent.ty),
        Some(task),
        "a ring has one structure"
    );
    let comm = types.member(task, "comm").unwrap();
    assert_eq!(types.name(comm.ty), "char [16]");
    assert!(types.is_string_like(comm.ty));
    let iowait = types.member(task, "in_iowait").unwrap();
    assert_eq!((iowait.bit_offset, iowait.bits), (33, 2));
    let hidden = types.member(task, "rcu_word").unwrap();
    assert_eq!((hidden.bit_offset / 8, hidden.ty), (56, Ty::ULONG));
    assert!(types.member(task, "nothing").is_none());
    assert!(types.member_names(task).contains(&"rcu_users".to_owned()));
    assert_eq!(types.align(task), 8);
    assert!(types.lookup_tag(Tag::Union, None, "task_struct").is_none());
}

#[test]
fn modules_and_scopes() {
    let world = World::new();
    let mut types = Types::new(&world);
    let sb = types.lookup_tag(Tag::Struct, None, "ext4_sb_info").unwrap();
    assert_eq!(
        types.lookup_tag(Tag::Struct, Some("ext4"), "ext4_sb_info"),
        Some(sb)
    );
    assert_eq!(
        types.lookup_tag(Tag::Struct, Some("vmlinux"), "ext4_sb_info"),
        None
    );
    assert_eq!(
        types.lookup_tag(Tag::Struct, Some("absent"), "ext4_sb_info"),
        None
    );
    let task = types
        .lookup_tag(Tag::Struct, Some("vmlinux"), "task_struct")
        .unwrap();
    let field = types.member(sb, "s_task").unwrap();
    assert_eq!(
        types.pointee(field.ty),
        Some(task),
        "a module's types are its base's"
    );
    assert_eq!(
        types.lookup_tag(Tag::Struct, Some("ext4"), "task_struct"),
        Some(task)
    );

    let own = types
        .declare_record(false, Some("task_struct"), None)
        .unwrap();
    assert_eq!(
        types.lookup_tag(Tag::Struct, None, "task_struct"),
        Some(own)
    );
    assert_eq!(
        types.lookup_tag(Tag::Struct, Some("D"), "task_struct"),
        Some(own)
    );
    assert_eq!(
        types.lookup_tag(Tag::Struct, Some(""), "task_struct"),
        Some(task)
    );
    assert_eq!(types.lookup_tag(Tag::Struct, Some("D"), "list_head"), None);
}

#[test]
fn a_missing_module_is_asked_for_once() {
    let world = World::new();
    let mut types = Types::new(&world);
    for _ in 0..5 {
        assert!(types.lookup_typedef(Some("absent"), "u64").is_none());
    }
    assert_eq!(world.asked.get(), 1);
    types.lookup_typedef(None, "uint64_t").unwrap();
    assert_eq!(world.asked.get(), 1, "D's own name needs no BTF");
}

#[test]
fn typedefs_variables_and_constants() {
    let world = World::new();
    let mut types = Types::new(&world);
    let u64_ = types.lookup_typedef(None, "u64").unwrap();
    assert_eq!(
        (types.name(u64_), types.resolve(u64_)),
        ("u64".to_owned(), Ty::ULONGLONG)
    );
    assert_eq!(types.lookup_typedef(None, "pid_t"), Some(Ty::PID_T));
    assert_eq!(types.variable(None, "jiffies_64"), Some(u64_));
    assert_eq!(
        types.variable(Some("vmlinux"), "total_forks"),
        Some(Ty::LONG)
    );
    assert!(types.variable(None, "printk").is_none());
    let (ty, value) = types.enumerator("PIDTYPE_TGID").unwrap();
    assert_eq!((types.name(ty), value), ("enum pid_type".to_owned(), 1));
    let (ty, value) = types.enumerator("TASK_NEGATIVE").unwrap();
    assert_eq!((types.int(ty), value), (Some(IntType::INT), -1));
    assert!(types.enumerator("PIDTYPE_NONE").is_none());
    let own = types
        .declare_enum(Some("color"), vec![("RED".to_owned(), 3)])
        .unwrap();
    assert_eq!(types.enumerator("RED"), Some((own, 3)));
    assert_eq!(types.size(own), Some(4));
    assert_eq!(types.lookup_tag(Tag::Enum, None, "color"), Some(own));
}

#[test]
fn signatures() {
    let world = World::new();
    let mut types = Types::new(&world);
    let (ret, params) = types.function("ext4", "ext4_sync_fs").unwrap();
    assert_eq!(
        (ret, types.name(params[0])),
        (Ty::INT, "struct ext4_sb_info *".to_owned())
    );
    assert_eq!(types.function("", "ext4_sync_fs"), Some((ret, params)));
    assert!(types.function("vmlinux", "ext4_sync_fs").is_none());
    assert_eq!(types.function("vmlinux", "printk").unwrap().1.len(), 1);
    let switch = types.tracepoint("vmlinux", "sched_switch").unwrap();
    let texts: Vec<_> = switch.iter().map(|&ty| types.name(ty)).collect();
    assert_eq!(
        texts,
        ["_Bool", "struct task_struct *", "struct task_struct *"]
    );
    assert!(types.tracepoint("", "nothing").is_none());
}

#[test]
fn short_texts() {
    let world = World::new();
    let mut types = Types::new(&world);
    for text in [
        "int",
        "unsigned long",
        "struct task_struct *",
        "struct ext4_sb_info **",
        "const char *",
        "char *const",
        "string",
        "uint64_t",
        "u64",
        "int [2][3]",
        "struct list_head [4]",
        "void *",
    ] {
        let ty = types.parse(text).unwrap_or_else(|| panic!("{text}"));
        assert_eq!(types.name(ty), text);
    }
    let user = types.parse("userland char *").unwrap();
    assert!(types.is_userland(user));
    let scoped = types.parse("struct vmlinux`task_struct *").unwrap();
    assert_eq!(types.name(scoped), "struct task_struct *");
    for wrong in [
        "",
        "struct",
        "struct nothing *",
        "foo_t",
        "int [x]",
        "int [2",
        "int x",
        "int (*)(void)",
        "*",
        "struct task_struct foo",
    ] {
        assert_eq!(types.parse(wrong), None, "{wrong}");
    }
}

#[test]
fn forward_declarations_find_their_structure() {
    let mut builder = Builder::default();
    let forward = builder.fwd("late", false);
    let pointer = builder.ptr(forward);
    builder.typedef("late_t", pointer);
    let nowhere = builder.fwd("nowhere", true);
    let nowhere = builder.ptr(nowhere);
    builder.typedef("nowhere_t", nowhere);
    builder.record(b::Kind::Struct, "late", 4, &[]);
    let world = world_of(&builder);
    let mut types = Types::new(&world);
    let late = types.lookup_typedef(None, "late_t").unwrap();
    let late = types.pointee(late).unwrap();
    assert_eq!(types.size(late), Some(4));
    let nowhere = types.lookup_typedef(None, "nowhere_t").unwrap();
    let nowhere = types.pointee(nowhere).unwrap();
    assert_eq!(
        (types.name(nowhere), types.size(nowhere)),
        ("union nowhere".to_owned(), None)
    );
    assert!(types.record(nowhere).is_none());
}

#[test]
fn damaged_btf_ends() {
    let mut builder = Builder::default();
    let ring = builder.next();
    builder.ptr(ring);
    builder.typedef("ring", ring);
    let inner = builder.next();
    builder.record(b::Kind::Struct, "self", 4, &[("", inner, 0)]);
    builder.typedef("missing", TypeId(4000));
    let world = world_of(&builder);
    let mut types = Types::new(&world);
    types.lookup_typedef(None, "ring").unwrap();
    let inner = types.lookup_tag(Tag::Struct, None, "self").unwrap();
    assert!(types.member(inner, "x").is_none());
    assert!(types.member_names(inner).is_empty());
    assert_eq!(types.align(inner), 1);
    let missing = types.lookup_typedef(None, "missing").unwrap();
    assert_eq!(types.resolve(missing), Ty::VOID);
}

fn members(list: &[(&str, Ty, Option<u32>)]) -> Option<Vec<(String, Ty, Option<u32>)>> {
    Some(
        list.iter()
            .map(|&(name, ty, width)| (name.to_owned(), ty, width))
            .collect(),
    )
}

#[test]
fn declared_structures_are_laid_out_as_c_does() {
    let mut types = Types::new(&Nowhere);
    let ty = types.declare_record(false, Some("x"), None).unwrap();
    assert_eq!(types.size(ty), None);
    let list = members(&[
        ("c", Ty::CHAR, None),
        ("l", Ty::LONG, None),
        ("s", Ty::SHORT, None),
        ("a", Ty::UINT, Some(3)),
        ("b", Ty::UINT, Some(20)),
        ("", Ty::UINT, Some(0)),
        ("d", Ty::CHAR, None),
    ]);
    assert_eq!(types.declare_record(false, Some("x"), list.clone()), Ok(ty));
    assert_eq!((types.size(ty), types.align(ty)), (Some(32), 8));
    let record = types.record(ty).unwrap();
    let offsets: Vec<_> = record
        .members
        .iter()
        .map(|m| (m.name.as_str(), m.path.bit_offset, m.path.bits))
        .collect();
    // As gcc does: `l` at byte 8, `s` at 16, `a` in the bits after `s`, `b` in the next unit, `d`
    // after it.
    assert_eq!(
        offsets,
        [
            ("c", 0, 0),
            ("l", 64, 0),
            ("s", 128, 0),
            ("a", 144, 3),
            ("b", 160, 20),
            ("d", 192, 0)
        ]
    );
    assert!(types
        .declare_record(false, Some("x"), list)
        .unwrap_err()
        .contains("redeclared"));

    let open = types.array_of(Ty::CHAR, None);
    let list = members(&[("i", Ty::INT, None), ("x", ty, None), ("tail", open, None)]);
    let union = types.declare_record(true, None, list).unwrap();
    assert_eq!(types.size(union), Some(32));
    let inner = members(&[("k", Ty::CHAR, None), ("", union, None)]);
    let outer = types.declare_record(false, Some("outer"), inner).unwrap();
    let path = types.member(outer, "i").unwrap();
    assert_eq!((path.bit_offset, path.ty), (64, Ty::INT));
}

#[test]
fn wrong_declarations() {
    let mut types = Types::new(&Nowhere);
    for (list, text) in [
        (
            members(&[("d", Ty::CHAR, None), ("d", Ty::INT, None)]),
            "redeclared: d",
        ),
        (members(&[("v", Ty::VOID, None)]), "incomplete"),
        (members(&[("w", Ty::CHAR, Some(9))]), "bit-field"),
        (members(&[("w", Ty::CHAR, Some(0))]), "bit-field"),
        (members(&[("w", Ty::CHAR_POINTER, Some(9))]), "bit-field"),
    ] {
        let error = types.declare_record(false, Some("bad"), list).unwrap_err();
        assert!(error.contains(text), "{error}");
    }
    let bad = types.declare_record(false, Some("bad"), None).unwrap();
    let own = members(&[("self", bad, None)]);
    assert!(
        types.declare_record(false, Some("bad"), own).is_err(),
        "a structure within itself"
    );
    let row = types.array_of(Ty::LONG, Some(u32::MAX));
    let row = types.array_of(row, Some(u32::MAX));
    assert!(types
        .declare_record(false, None, members(&[("r", row, None)]))
        .is_err());
    let items = |names: &[&str]| {
        names
            .iter()
            .map(|name| (name.to_string(), 1))
            .collect::<Vec<_>>()
    };
    types.declare_enum(Some("e"), items(&["A"])).unwrap();
    assert!(types.declare_enum(Some("e"), items(&["B"])).is_err());
    assert!(types.declare_enum(None, items(&["A"])).is_err());
    assert!(types.declare_enum(None, items(&["C", "C"])).is_err());
}

#[test]
fn conversions() {
    let types = Types::new(&Nowhere);
    assert_eq!(types.usual(Ty::CHAR, Ty::SHORT), Some(Ty::INT));
    assert_eq!(types.usual(Ty::INT, Ty::UINT), Some(Ty::UINT));
    assert_eq!(types.usual(Ty::UINT, Ty::LONG), Some(Ty::LONG));
    assert_eq!(types.usual(Ty::LONG, Ty::UINT64_T), Some(Ty::UINT64_T));
    assert_eq!(types.usual(Ty::LONG, Ty::STRING), None);
    assert_eq!(types.promote(Ty::BOOL), Ty::INT);
    assert_eq!(types.promote(Ty::UINT8_T), Ty::INT);
    assert_eq!(types.promote(Ty::UINT64_T), Ty::UINT64_T);
}

#[test]
fn what_goes_together() {
    let mut types = Types::new(&Nowhere);
    let constant = types.const_of(Ty::CHAR);
    let text = types.pointer_to(constant);
    let int_pointer = types.pointer_to(Ty::INT);
    let long_pointer = types.pointer_to(Ty::LONG);
    let chars = types.array_of(Ty::CHAR, Some(8));
    assert!(types.compatible(text, Ty::CHAR_POINTER));
    assert!(!types.compatible(int_pointer, long_pointer));
    assert!(types.pointers_agree(Ty::VOID_POINTER, long_pointer));
    assert!(types.pointers_agree(chars, text));
    assert!(types.assignable(Ty::STRING, chars) && types.assignable(Ty::STRING, text));
    assert!(!types.assignable(Ty::STRING, Ty::INT));
    assert!(types.assignable(Ty::CHAR, Ty::ULONG));
    assert!(!types.assignable(int_pointer, long_pointer));
    assert!(!types.assignable(int_pointer, Ty::INT));
    let (a, b) = (
        types.declare_record(false, None, None).unwrap(),
        types.declare_record(false, None, None).unwrap(),
    );
    assert!(types.assignable(a, a) && !types.assignable(a, b));
}

#[test]
fn what_kernel_and_consumer_are_told() {
    let mut types = Types::new(&Nowhere);
    let ints = types.array_of(Ty::INT, Some(8));
    let string = types.dif_type(Ty::STRING);
    assert_eq!(
        (string.kind, string.flags, string.size),
        (DIF_TYPE_STRING, DIF_TF_BYREF, 256)
    );
    let array = types.dif_type(ints);
    assert_eq!(
        (array.kind, array.flags, array.size),
        (DIF_TYPE_CTF, DIF_TF_BYREF, 32)
    );
    let int = types.dif_type(Ty::UINT16_T);
    assert_eq!((int.kind, int.flags, int.size), (DIF_TYPE_CTF, 0, 2));
}
