// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The kernel's types, imported from BTF into the table on first use.
//!
//! Every imported BTF type is recorded by its BTF and number, so each is imported once. A `vmlinux`
//! type that a module refers to is recorded as a type of `vmlinux`. A type that a damaged BTF fails
//! to describe becomes `void`; a program that uses its members gets the error that it has none.

use super::btf::{self, Btf, Proto, Qualifier, Type, TypeId};
use super::record::{Body, RecordEntry};
use super::TypeSource;
use super::{Enum, IntType, Kind, Member, Path, Record, Tag, Ty, Types, MAX_DEPTH};
use crate::is_own_scope;
use crate::OWN_SCOPES;
use crate::VMLINUX;
use dtrace_files::dwarf;
use std::collections::HashMap;
use std::sync::Arc;

/// D's own type that is not a typedef of a C type.
const STRING: &str = "string";

/// What has been imported from the kernel.
#[derive(Clone, Default)]
pub(super) struct Kernel {
    /// Numbers of the BTFs by name; `None` for a name without a BTF.
    by_name: HashMap<String, Option<u32>>,
    btfs: Vec<Arc<Btf>>,
    imported: HashMap<Origin, Ty>,
}

/// A type of a BTF: the number of the BTF that defines the type (never one that only builds on it),
/// and the type's number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Origin {
    btf: u32,
    id: TypeId,
}

impl Kernel {
    fn number(&mut self, btf: &Arc<Btf>) -> u32 {
        let known = self.btfs.iter().position(|known| Arc::ptr_eq(known, btf));
        known.unwrap_or_else(|| {
            self.btfs.push(btf.clone());
            self.btfs.len() - 1
        }) as u32
    }

    /// Returns the number of a module's BTF, which it loads on first use.
    fn module(&mut self, world: &dyn TypeSource, name: &str) -> Option<u32> {
        if let Some(&known) = self.by_name.get(name) {
            return known;
        }
        let number = world.btf(name).map(|btf| self.number(&btf));
        self.by_name.insert(name.to_owned(), number);
        number
    }
}

impl Types<'_> {
    /// Whether the types of this module are known. An empty name stands for the kernel and all its
    /// modules.
    pub fn knows_module(&self, module: Option<&str>) -> bool {
        if self.is_process_scope(module) {
            return self.process_scope_error(module).is_none();
        }
        is_own_scope(module)
            || module.is_some_and(|name| name.is_empty() || self.world.btf(name).is_some())
    }

    /// Looks up the typedef `name`: in `module`, or, without a module, among D's own and the
    /// kernel's. An empty module stands for the kernel and all its modules.
    pub fn lookup_typedef(&mut self, module: Option<&str>, name: &str) -> Option<Ty> {
        // C's basic types have the same meaning in every module.
        let word = module.and_then(|_| Self::from_words([name]));
        if word.is_some() && self.knows_module(module) {
            return word;
        }
        if self.is_process_scope(module) {
            // Languages without tags name their structures by the name alone.
            let tags = [
                dwarf::Tag::Typedef,
                dwarf::Tag::Struct,
                dwarf::Tag::Union,
                dwarf::Tag::Enum,
            ];
            return self.type_of_process(module, &tags, name);
        }
        if let Some(declared) = is_own_scope(module)
            .then(|| self.declared_typedef(name))
            .flatten()
        {
            return Some(declared);
        }
        if is_own_scope(module) && name == STRING {
            return Some(Ty::STRING);
        }
        if is_own_scope(module) && name == super::stack::NAME {
            return Some(self.stack_of(self.stack_frames));
        }
        // A name in parentheses may not be a type at all, so it is not worth reading the types of
        // all modules.
        self.kernel_type(module.or(Some(VMLINUX)), name, &[btf::Kind::Typedef])
    }

    /// Looks up the structure, union or enumeration with this tag: in `module`, or, without a
    /// module, among D's own, the kernel's and those of all its modules. An empty module stands for
    /// the kernel and all its modules.
    pub fn lookup_tag(&mut self, tag: Tag, module: Option<&str>, name: &str) -> Option<Ty> {
        if let Some(declared) = is_own_scope(module)
            .then(|| self.declared_tag(tag, name))
            .flatten()
        {
            return Some(declared);
        }
        if self.is_process_scope(module) {
            let tag = match tag {
                Tag::Struct => dwarf::Tag::Struct,
                Tag::Union => dwarf::Tag::Union,
                Tag::Enum => dwarf::Tag::Enum,
            };
            return self.type_of_process(module, &[tag], name);
        }
        let kinds: &[btf::Kind] = match tag {
            Tag::Struct => &[btf::Kind::Struct],
            Tag::Union => &[btf::Kind::Union],
            Tag::Enum => &[btf::Kind::Enum, btf::Kind::Enum64],
        };
        self.kernel_type(module, name, kinds)
    }

    /// Returns the type of the kernel variable `name` if BTF describes it. No module, or an empty
    /// one, stands for the kernel and all its modules, here and in the functions below.
    pub fn variable(&mut self, module: Option<&str>, name: &str) -> Option<Ty> {
        self.search(module, |types, number, btf| {
            let ty = btf.variable(name).ok()??;
            Some(types.import(number, ty))
        })
    }

    /// Returns the return type and the parameter types of the kernel function `name`.
    pub fn function(&mut self, module: &str, name: &str) -> Option<(Ty, Vec<Ty>)> {
        self.search(Some(module), |types, number, btf| {
            Some(types.import_proto(number, btf.function(name).ok()??.proto))
        })
    }

    /// Returns the types of the arguments that the kernel tracepoint `name` passes.
    pub fn tracepoint(&mut self, module: &str, name: &str) -> Option<Vec<Ty>> {
        self.search(Some(module), |types, number, btf| {
            Some(types.import_proto(number, btf.tracepoint(name).ok()??).1)
        })
    }

    /// Returns the type and value of the enumeration constant `name` of the program or of the
    /// kernel proper. For the kernel this searches all enumerations, so call it only when nothing
    /// else has the name.
    pub fn enumerator(&mut self, name: &str) -> Option<(Ty, i64)> {
        if let Some(declared) = self.declared_constant(name) {
            return Some(declared);
        }
        let number = self.kernel.module(self.world, VMLINUX)?;
        let btf = self.kernel.btfs.get(number as usize)?.clone();
        let (id, value) = btf.enumerator(name).ok()??;
        Some((self.import(number, id), value))
    }

    fn kernel_type(&mut self, module: Option<&str>, name: &str, kinds: &[btf::Kind]) -> Option<Ty> {
        self.search(module, |types, number, btf| {
            let id = btf.find_any(name, kinds).ok()??;
            Some(types.import(number, id))
        })
    }

    /// Returns the first result of `ask`, called for the BTF of `module`, or for the kernel's and
    /// then those of all modules.
    fn search<T>(
        &mut self,
        module: Option<&str>,
        mut ask: impl FnMut(&mut Self, u32, &Btf) -> Option<T>,
    ) -> Option<T> {
        let mut ask_one = |types: &mut Self, name: &str| {
            let number = types.kernel.module(types.world, name)?;
            let btf = types.kernel.btfs.get(number as usize)?.clone();
            ask(types, number, &btf)
        };
        match module {
            Some(module) if OWN_SCOPES.contains(&module) => None,
            Some(module) if !module.is_empty() => ask_one(self, module),
            _ => ask_one(self, VMLINUX).or_else(|| {
                let modules = self.world.modules();
                modules.iter().find_map(|name| ask_one(self, name))
            }),
        }
    }

    fn import_proto(&mut self, number: u32, proto: Proto<'_>) -> (Ty, Vec<Ty>) {
        let params = proto
            .params()
            .map(|param| self.import(number, param.ty))
            .collect();
        (self.import(number, proto.ret), params)
    }

    fn import(&mut self, number: u32, id: TypeId) -> Ty {
        self.import_at(number, id, MAX_DEPTH)
    }

    /// Returns the number in the table of a BTF type; imports the type if it is new.
    fn import_at(&mut self, number: u32, id: TypeId, depth: u32) -> Ty {
        let Some(depth) = depth.checked_sub(1) else {
            return Ty::VOID;
        };
        if id == TypeId::VOID {
            return Ty::VOID;
        }
        let Some(mut btf) = self.kernel.btfs.get(number as usize).cloned() else {
            return Ty::VOID;
        };
        let mut number = number;
        while let Some(base) = btf.base().filter(|_| id < btf.first()).cloned() {
            number = self.kernel.number(&base);
            btf = base;
        }
        let origin = Origin { btf: number, id };
        if let Some(&known) = self.kernel.imported.get(&origin) {
            return known;
        }
        let ty = match btf.get(id) {
            Ok(ty) => self.convert(origin, &btf, ty, depth),
            Err(_) => Ty::VOID,
        };
        self.kernel.imported.insert(origin, ty);
        ty
    }

    fn convert(&mut self, origin: Origin, btf: &Btf, ty: Type<'_>, depth: u32) -> Ty {
        match ty {
            Type::Int(int) => self.integer(&int),
            Type::Float { name, size } => self.enter(Kind::Float {
                name: name.into(),
                size: u8::try_from(size).unwrap_or(u8::MAX),
            }),
            Type::Ptr(target) => {
                let user = matches!(
                    btf.get(target),
                    Ok(Type::Qualified(Qualifier::Tag("user"), _))
                );
                let target = self.import_at(origin.btf, target, depth);
                if user {
                    self.user_pointer_to(target)
                } else {
                    self.pointer_to(target)
                }
            }
            Type::Array(array) => {
                let element = self.import_at(origin.btf, array.element, depth);
                self.array_of(element, Some(array.count))
            }
            Type::Typedef { name, target } => {
                let target = self.import_at(origin.btf, target, depth);
                self.enter(Kind::Typedef(name.into(), target))
            }
            Type::Qualified(qualifier, target) => {
                let target = self.import_at(origin.btf, target, depth);
                match qualifier {
                    Qualifier::Const => self.const_of(target),
                    _ => target,
                }
            }
            Type::FuncProto(proto) => self.prototype(origin.btf, proto, depth),
            Type::Struct(record) | Type::Union(record) => self.new_record(RecordEntry {
                name: record.name.to_owned(),
                is_union: matches!(ty, Type::Union(_)),
                is_of_process: false,
                body: Body::Kernel(origin, u64::from(record.size)),
            }),
            Type::Fwd { name, is_union } => self.forward(origin, btf, name, is_union, depth),
            Type::Enum(e) => self.new_enum(Enum {
                name: e.name.to_owned(),
                int: IntType {
                    size: u8::try_from(e.size).unwrap_or(8).clamp(1, 8),
                    signed: e.signed,
                },
                items: e
                    .enumerators()
                    .map(|e| (e.name.to_owned(), e.value))
                    .collect(),
            }),
            _ => Ty::VOID,
        }
    }

    /// Returns the type of an integer: D's own type if one has the same name and size.
    fn integer(&mut self, int: &btf::Int<'_>) -> Ty {
        if let Some(own) = Self::from_words(int.name.split(' ')) {
            if self.size(own) == Some(u64::from(int.size)) {
                return own;
            }
        }
        self.enter(Kind::Int {
            name: int.name.into(),
            int: IntType {
                size: u8::try_from(int.size).unwrap_or(16),
                signed: int.signed,
            },
            is_char: int.is_char,
        })
    }

    fn prototype(&mut self, number: u32, proto: Proto<'_>, depth: u32) -> Ty {
        let params: Vec<Ty> = proto
            .params()
            .map(|param| self.import_at(number, param.ty, depth))
            .collect();
        let ret = self.import_at(number, proto.ret, depth);
        self.function_of(ret, &params, proto.variadic)
    }

    /// Returns the type of a structure that is only declared here: the definition in the same BTF
    /// or its base, if there is one.
    fn forward(&mut self, origin: Origin, btf: &Btf, name: &str, is_union: bool, depth: u32) -> Ty {
        let kind = if is_union {
            btf::Kind::Union
        } else {
            btf::Kind::Struct
        };
        match btf.find(name, kind) {
            Ok(Some(id)) => self.import_at(origin.btf, id, depth),
            _ => self.new_record(RecordEntry {
                name: name.to_owned(),
                is_union,
                is_of_process: false,
                body: Body::Incomplete,
            }),
        }
    }

    /// Imports the members of a kernel structure.
    pub(super) fn import_record(&mut self, origin: Origin) -> Option<Record> {
        let btf = self.kernel.btfs.get(origin.btf as usize)?.clone();
        let ty = btf.get(origin.id).ok()?;
        let (Type::Struct(composite) | Type::Union(composite)) = ty else {
            return None;
        };
        let members = composite
            .members()
            .map(|member| Member {
                name: member.name.to_owned(),
                path: self.import_path(origin.btf, &btf, &member),
            })
            .collect();
        Some(Record {
            name: composite.name.to_owned(),
            is_union: matches!(ty, Type::Union(_)),
            size: u64::from(composite.size),
            members,
        })
    }

    fn import_path(&mut self, number: u32, btf: &Btf, member: &btf::Member<'_>) -> Path {
        let mut path = Path {
            ty: self.import(number, member.ty),
            bit_offset: u64::from(member.bit_offset),
            bits: member.bit_size.map_or(0, u32::from),
        };
        // Old encoders give the width of a bit-field in an integer type of its own.
        let int = btf.resolve(member.ty).and_then(|id| btf.get(id));
        if let (0, Ok(Type::Int(int))) = (path.bits, int) {
            if u32::from(int.bits) < int.size.saturating_mul(8) && int.bits > 0 && !int.is_bool {
                path.bit_offset += u64::from(int.bit_offset);
                path.bits = u32::from(int.bits);
            }
        }
        path
    }
}
