// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! BTF made in memory, for tests.
//!
//! A [`Builder`] appends records and returns their numbers; [`Builder::next`] returns a number
//! before its record is made, which types that refer to each other need. The builder checks
//! nothing, because some tests need malformed BTF.

use super::{Btf, Kind, TypeId};
use std::sync::Arc;

/// A BTF under construction.
pub struct Builder {
    first: u32,
    count: u32,
    first_string: u32,
    types: Vec<u8>,
    strings: Vec<u8>,
    base: Option<Arc<Btf>>,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            first: 1,
            count: 0,
            first_string: 0,
            types: Vec::new(),
            strings: vec![0],
            base: None,
        }
    }
}

impl Builder {
    /// Starts a BTF that continues where `base` ends.
    pub fn on(base: &Arc<Btf>) -> Self {
        Self {
            first: base.end().unwrap(),
            first_string: base.end_string(),
            strings: Vec::new(),
            base: Some(base.clone()),
            ..Self::default()
        }
    }

    /// Returns the number that the next record will get.
    pub fn next(&self) -> TypeId {
        TypeId(self.first + self.count)
    }

    /// Appends a string and returns its offset.
    pub fn string(&mut self, text: &str) -> u32 {
        if text.is_empty() {
            return 0;
        }
        let at = self.first_string + self.strings.len() as u32;
        self.strings.extend_from_slice(text.as_bytes());
        self.strings.push(0);
        at
    }

    /// Appends a record of any kind. All methods that append a record return its number.
    pub fn raw(&mut self, name: &str, info: u32, word: u32, tail: &[u32]) -> TypeId {
        let id = self.next();
        let name = self.string(name);
        for value in [name, info, word].iter().chain(tail) {
            self.types.extend_from_slice(&value.to_ne_bytes());
        }
        self.count += 1;
        id
    }

    fn counted(
        &mut self,
        kind: Kind,
        flag: bool,
        name: &str,
        word: u32,
        tail: &[Vec<u32>],
    ) -> TypeId {
        let info = u32::from(flag) << 31 | (kind as u32) << 24 | tail.len() as u32;
        self.raw(name, info, word, &tail.concat())
    }

    fn plain(&mut self, kind: Kind, name: &str, word: u32, tail: &[u32]) -> TypeId {
        self.raw(name, (kind as u32) << 24, word, tail)
    }

    /// Appends an integer of `size` bytes.
    pub fn int(&mut self, name: &str, size: u32, signed: bool) -> TypeId {
        self.plain(
            Kind::Int,
            name,
            size,
            &[(u32::from(signed) << 24) | (size * 8)],
        )
    }

    /// Appends a signed character, as on x86.
    pub fn char(&mut self) -> TypeId {
        self.plain(Kind::Int, "char", 1, &[3 << 24 | 8])
    }

    /// Appends a pointer.
    pub fn ptr(&mut self, target: TypeId) -> TypeId {
        self.plain(Kind::Ptr, "", target.0, &[])
    }

    /// Appends a qualified type: `Const`, `Volatile` or `Restrict`.
    pub fn qualified(&mut self, kind: Kind, target: TypeId) -> TypeId {
        self.plain(kind, "", target.0, &[])
    }

    /// Appends a tagged type.
    pub fn type_tag(&mut self, tag: &str, target: TypeId) -> TypeId {
        self.plain(Kind::TypeTag, tag, target.0, &[])
    }

    /// Appends an array.
    pub fn array(&mut self, element: TypeId, index: TypeId, count: u32) -> TypeId {
        self.plain(Kind::Array, "", 0, &[element.0, index.0, count])
    }

    /// Appends a `Struct` or `Union` of members (name, type, bit offset).
    pub fn record(
        &mut self,
        kind: Kind,
        name: &str,
        size: u32,
        members: &[(&str, TypeId, u32)],
    ) -> TypeId {
        let tail: Vec<_> = members
            .iter()
            .map(|&(name, ty, offset)| vec![self.string(name), ty.0, offset])
            .collect();
        self.counted(kind, false, name, size, &tail)
    }

    /// Appends a `Struct` or `Union` with bit-fields. Members are name, type, bit offset, and width
    /// or 0.
    pub fn bit_fields(
        &mut self,
        kind: Kind,
        name: &str,
        size: u32,
        members: &[(&str, TypeId, u32, u32)],
    ) -> TypeId {
        let tail: Vec<_> = members
            .iter()
            .map(|&(name, ty, offset, width)| vec![self.string(name), ty.0, width << 24 | offset])
            .collect();
        self.counted(kind, true, name, size, &tail)
    }

    /// Appends an enumeration of 32-bit values.
    pub fn enumeration(&mut self, name: &str, items: &[(&str, i32)]) -> TypeId {
        let tail: Vec<_> = items
            .iter()
            .map(|&(name, value)| vec![self.string(name), value as u32])
            .collect();
        let signed = items.iter().any(|item| item.1 < 0);
        self.counted(Kind::Enum, signed, name, 4, &tail)
    }

    /// Appends an enumeration of 64-bit values.
    pub fn enum64(&mut self, name: &str, signed: bool, items: &[(&str, u64)]) -> TypeId {
        let tail: Vec<_> = items
            .iter()
            .map(|&(name, value)| vec![self.string(name), value as u32, (value >> 32) as u32])
            .collect();
        self.counted(Kind::Enum64, signed, name, 8, &tail)
    }

    /// Appends a forward declaration of a structure or union.
    pub fn fwd(&mut self, name: &str, is_union: bool) -> TypeId {
        self.counted(Kind::Fwd, is_union, name, 0, &[])
    }

    /// Appends a typedef.
    pub fn typedef(&mut self, name: &str, target: TypeId) -> TypeId {
        self.plain(Kind::Typedef, name, target.0, &[])
    }

    /// Appends a prototype of parameters (name, type); `("", VOID)` at the end stands for `…`.
    pub fn proto(&mut self, ret: TypeId, params: &[(&str, TypeId)]) -> TypeId {
        let tail: Vec<_> = params
            .iter()
            .map(|&(name, ty)| vec![self.string(name), ty.0])
            .collect();
        self.counted(Kind::FuncProto, false, "", ret.0, &tail)
    }

    /// Appends a function with its prototype.
    pub fn func(&mut self, name: &str, ret: TypeId, params: &[(&str, TypeId)]) -> TypeId {
        let proto = self.proto(ret, params);
        self.plain(Kind::Func, name, proto.0, &[])
    }

    /// Appends a tracepoint of parameters (name, type) as the kernel describes it: the type of its
    /// callbacks and a stub with named parameters.
    pub fn tracepoint(&mut self, name: &str, params: &[(&str, TypeId)]) {
        let data = self.ptr(TypeId::VOID);
        let mut all = vec![("__data", data)];
        all.extend_from_slice(params);
        self.func(&format!("__probestub_{name}"), TypeId::VOID, &all);
        let nameless: Vec<_> = all.iter().map(|param| ("", param.1)).collect();
        let proto = self.proto(TypeId::VOID, &nameless);
        let pointer = self.ptr(proto);
        self.typedef(&format!("btf_trace_{name}"), pointer);
    }

    /// Appends a variable.
    pub fn var(&mut self, name: &str, ty: TypeId) -> TypeId {
        self.plain(Kind::Var, name, ty.0, &[1])
    }

    /// Appends a section of variables (variable, offset, size).
    pub fn data_sec(&mut self, name: &str, size: u32, vars: &[(TypeId, u32, u32)]) -> TypeId {
        let tail: Vec<_> = vars
            .iter()
            .map(|&(var, at, size)| vec![var.0, at, size])
            .collect();
        self.counted(Kind::DataSec, false, name, size, &tail)
    }

    /// Appends a floating-point type.
    pub fn float(&mut self, name: &str, size: u32) -> TypeId {
        self.plain(Kind::Float, name, size, &[])
    }

    /// Appends a declaration tag for a type or one of its components.
    pub fn decl_tag(&mut self, name: &str, target: TypeId, component: Option<u32>) -> TypeId {
        self.plain(
            Kind::DeclTag,
            name,
            target.0,
            &[component.unwrap_or(u32::MAX)],
        )
    }

    /// Returns the bytes, with a header of 24 bytes.
    pub fn bytes(&self) -> Vec<u8> {
        self.assemble(24, &[])
    }

    /// Returns the bytes, with a layout section (fixed, each) in the order of the kinds' numbers.
    pub fn bytes_with_layout(&self, layout: &[(u8, u8)]) -> Vec<u8> {
        let layout: Vec<u8> = layout
            .iter()
            .flat_map(|&(fixed, each)| [fixed, each, 0, 0])
            .collect();
        self.assemble(32, &layout)
    }

    fn assemble(&self, header: u32, layout: &[u8]) -> Vec<u8> {
        let (types, layouts) = (self.types.len() as u32, layout.len() as u32);
        let mut bytes = 0xeb9f_u16.to_ne_bytes().to_vec();
        bytes.extend_from_slice(&[1, 0]);
        let strings = self.strings.len() as u32;
        let words = [header, 0, types, types + layouts, strings, types, layouts];
        for word in words.iter().take(header as usize / 4 - 1) {
            bytes.extend_from_slice(&word.to_ne_bytes());
        }
        bytes.extend_from_slice(&self.types);
        bytes.extend_from_slice(layout);
        bytes.extend_from_slice(&self.strings);
        bytes
    }

    /// Parses the bytes. Panics if they are malformed.
    pub fn build(&self) -> Arc<Btf> {
        Arc::new(Btf::parse(self.bytes(), self.base.clone()).unwrap())
    }
}

/// Builds a small kernel: C's integers, `task_struct` and the types that it needs, a few other
/// structures, some functions and tracepoints.
pub fn kernel() -> Builder {
    let mut b = Builder::default();
    let int = b.int("int", 4, true);
    let long = b.int("long int", 8, true);
    let ulong = b.int("long unsigned int", 8, false);
    let uint = b.int("unsigned int", 4, false);
    let char = b.char();
    b.int("unsigned char", 1, false);
    let pid_t = b.typedef("__kernel_pid_t", int);
    let pid_t = b.typedef("pid_t", pid_t);
    let u64_ = b.int("long long unsigned int", 8, false);
    let u64_ = b.typedef("u64", u64_);
    let comm = b.array(char, ulong, 16);
    let list_ptr = b.next();
    b.ptr(TypeId(list_ptr.0 + 1));
    let list = b.record(
        Kind::Struct,
        "list_head",
        16,
        &[("next", list_ptr, 0), ("prev", list_ptr, 64)],
    );
    let rcu = b.record(
        Kind::Union,
        "",
        8,
        &[("rcu_users", uint, 0), ("rcu_word", ulong, 0)],
    );
    let task_ptr = b.next();
    let task = TypeId(task_ptr.0 + 1);
    b.ptr(task);
    b.bit_fields(
        Kind::Struct,
        "task_struct",
        80,
        &[
            ("__state", uint, 0, 0),
            ("in_execve", uint, 32, 1),
            ("in_iowait", uint, 33, 2),
            ("pid", pid_t, 64, 0),
            ("tgid", pid_t, 96, 0),
            ("parent", task_ptr, 128, 0),
            ("comm", comm, 192, 0),
            ("tasks", list, 320, 0),
            ("", rcu, 448, 0),
            ("start_time", u64_, 512, 0),
        ],
    );
    b.record(
        Kind::Struct,
        "request",
        16,
        &[("__data_len", uint, 0), ("__sector", u64_, 64)],
    );
    b.enumeration(
        "pid_type",
        &[("PIDTYPE_PID", 0), ("PIDTYPE_TGID", 1), ("PIDTYPE_MAX", 2)],
    );
    b.enumeration("", &[("TASK_DEAD_FLAG", 128), ("TASK_NEGATIVE", -1)]);
    let const_char = b.qualified(Kind::Const, char);
    let name = b.ptr(const_char);
    b.func("wake_up_process", int, &[("p", task_ptr)]);
    b.func("printk", int, &[("fmt", name), ("", TypeId::VOID)]);
    b.func("schedule", TypeId::VOID, &[]);
    let bool_ = b.plain(Kind::Int, "_Bool", 1, &[4 << 24 | 8]);
    b.tracepoint(
        "sched_switch",
        &[("preempt", bool_), ("prev", task_ptr), ("next", task_ptr)],
    );
    b.var("jiffies_64", u64_);
    b.var("current_task", task_ptr);
    b.var("total_forks", long);
    let name = b.array(char, ulong, 56);
    b.record(Kind::Struct, "module", 64, &[("name", name, 64)]);
    b
}
