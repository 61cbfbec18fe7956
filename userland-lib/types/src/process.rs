// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Types of the programs and libraries of a process, imported from their debugging information
//! (DWARF or CTF) into the table on first use.
//!
//! Each type is imported once per file. Every pointer in these types points into user space, so
//! data that a program reaches through it are read from the process, never from the kernel. A type
//! that a damaged file fails to describe becomes `void`.

use super::record::{Body, RecordEntry};
use super::{Enum, IntType, Kind, Member, Path, Record, Ty, Types, MAX_DEPTH};
use dtrace_files::dwarf::{self, Base, Type, TypeId};
use dtrace_objects::pattern::PROGRAM;
use dtrace_objects::pid::{self, Told};
use std::collections::HashMap;
use std::rc::Rc;

/// What has been imported from processes.
#[derive(Clone, Default)]
pub(super) struct Processes {
    told: Vec<Rc<dyn Told>>,
    imported: HashMap<Origin, Ty>,
}

/// A type of a file: the number of the source that describes it, and the type's number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Origin {
    told: u32,
    id: TypeId,
}

/// The parameter types and the return type of a function of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prototype {
    /// Its return type.
    pub ret: Ty,
    /// The types of its parameters.
    pub params: Vec<Ty>,
    /// Whether the program is a 64-bit program.
    pub is_wide: bool,
    /// Whether the caller passes a `float` as a `double`.
    pub promotes: bool,
}

/// Returns the process and the module that a scope names: `` pid12`libc `` names the library,
/// `pid12` the program itself.
fn scope(module: Option<&str>) -> Option<(u32, &str)> {
    let scope = module?.strip_prefix(pid::PROVIDER)?;
    let (pid, module) = scope.split_once('`').unwrap_or((scope, PROGRAM));
    Some((pid.parse().ok()?, module))
}

impl Types<'_> {
    /// Returns why the module of a process that a scope names cannot be read; `None` if it can, or
    /// if the scope does not name a process.
    pub fn process_scope_error(&self, module: Option<&str>) -> Option<dwarf::Error> {
        let (pid, module) = scope(module)?;
        self.world.process_module(pid, module).err()
    }

    /// Whether a scope names a process.
    pub fn is_process_scope(&self, module: Option<&str>) -> bool {
        scope(module).is_some()
    }

    /// Whether `ty` is a structure or union of a process.
    pub fn is_of_process(&self, ty: Ty) -> bool {
        let Kind::Record(id) = *self.base(ty) else {
            return false;
        };
        let entry = self.records.get(id.0 as usize);
        entry.is_some_and(|entry| entry.is_of_process)
    }

    /// Looks up `name` in the module of a process that the scope names. Within each source of types
    /// the kinds in `tags` are tried in order.
    pub(super) fn type_of_process(
        &mut self,
        module: Option<&str>,
        tags: &[dwarf::Tag],
        name: &str,
    ) -> Option<Ty> {
        let (pid, module) = scope(module)?;
        let module = self.world.process_module(pid, module).ok()?;
        let (told, id) = module.named(tags, name)?;
        let number = self.told(told);
        Some(self.import_told(number, Some(id), MAX_DEPTH))
    }

    /// Returns the parameter types and the return type of the function `func` in a module of the
    /// process `pid`; `None` if no debugging information describes the function.
    pub fn process_function(
        &mut self,
        pid: u32,
        module: &str,
        func: &str,
    ) -> Result<Option<Prototype>, dwarf::Error> {
        let module = self.world.process_module(pid, module)?;
        let Some((told, found)) = module.prototype(func)? else {
            return Ok(None);
        };
        let number = self.told(told);
        let params = found.params.iter();
        let params = params.map(|(_, ty)| self.import_told(number, *ty, MAX_DEPTH));
        Ok(Some(Prototype {
            params: params.collect(),
            ret: self.import_told(number, found.ret, MAX_DEPTH),
            is_wide: module.code.is_wide(),
            promotes: found.promotes,
        }))
    }

    /// Returns the number of a source of types; adds the source if it is new.
    fn told(&mut self, told: &Rc<dyn Told>) -> u32 {
        let all = &mut self.processes.told;
        let is_it = |known: &Rc<dyn Told>| std::ptr::addr_eq(Rc::as_ptr(known), Rc::as_ptr(told));
        let known = all.iter().position(is_it);
        known.unwrap_or_else(|| {
            all.push(told.clone());
            all.len() - 1
        }) as u32
    }

    /// Returns the number in the table of a type of a process; imports the type if it is new. No
    /// type is `void`.
    fn import_told(&mut self, told: u32, id: Option<TypeId>, depth: u32) -> Ty {
        let (Some(id), Some(depth)) = (id, depth.checked_sub(1)) else {
            return Ty::VOID;
        };
        let named = Origin { told, id };
        if let Some(&known) = self.processes.imported.get(&named) {
            return known;
        }
        let Some(from) = self.processes.told.get(told as usize).cloned() else {
            return Ty::VOID;
        };
        // `id` may be one of many declarations of the same type.
        let id = from.defined(id);
        let origin = Origin { told, id };
        let known = self.processes.imported.get(&origin).copied();
        let ty = known.unwrap_or_else(|| {
            let ty = from.ty(id);
            ty.map_or(Ty::VOID, |ty| self.convert_told(origin, &*from, ty, depth))
        });
        self.processes.imported.insert(origin, ty);
        self.processes.imported.insert(named, ty);
        ty
    }

    fn convert_told(&mut self, origin: Origin, from: &dyn Told, ty: Type, depth: u32) -> Ty {
        let number = origin.told;
        match ty {
            Type::Number(name, size, base) => self.number_told(&name, size, base),
            Type::Pointer(target, size) => {
                let to = self.import_told(number, target, depth);
                let size = u8::try_from(size).unwrap_or(8).clamp(1, 8);
                self.enter(Kind::Pointer {
                    to,
                    userland: true,
                    size,
                })
            }
            Type::Array(element, counts) => {
                let element = self.import_told(number, element, depth);
                // The first dimension is the outermost one, and only that may be left open.
                let mut ty = element;
                for (at, count) in counts.iter().enumerate().rev() {
                    let count = count.and_then(|count| u32::try_from(count).ok());
                    let count = if at == 0 { count } else { count.or(Some(0)) };
                    ty = self.array_of(ty, count);
                }
                ty
            }
            Type::Typedef(name, target) => {
                let target = self.import_told(number, target, depth);
                self.enter(Kind::Typedef(name.into(), target))
            }
            Type::Const(target) => {
                let target = self.import_told(number, target, depth);
                self.const_of(target)
            }
            Type::Same(target) => self.import_told(number, target, depth),
            Type::Function(ret, params, variadic) => {
                let params: Vec<Ty> = params
                    .into_iter()
                    .map(|param| self.import_told(number, param, depth))
                    .collect();
                let ret = self.import_told(number, ret, depth);
                self.function_of(ret, &params, variadic)
            }
            Type::Record(name, is_union, size) => {
                self.record_told(origin, from, name, is_union, size, depth)
            }
            Type::Enum(name, size, items) => self.new_enum(Enum {
                name,
                int: IntType {
                    size: u8::try_from(size).unwrap_or(8).clamp(1, 8),
                    signed: items.iter().any(|item| item.1 < 0),
                },
                items,
            }),
            Type::Other => Ty::VOID,
        }
    }

    /// Returns the type of a number: D's own type if one has the same name and size.
    fn number_told(&mut self, name: &str, size: u64, base: Base) -> Ty {
        if let Some(own) = Self::from_words(name.split(' ')) {
            if self.size(own) == Some(size) {
                return own;
            }
        }
        let size = u8::try_from(size).unwrap_or(u8::MAX);
        let name = name.into();
        match base {
            Base::Int(signed, is_char) => self.enter(Kind::Int {
                name,
                int: IntType {
                    size: size.min(16),
                    signed,
                },
                is_char,
            }),
            Base::Float => self.enter(Kind::Float { name, size }),
        }
    }

    /// Returns the type of a structure or union. If it is only declared here, this is the
    /// definition elsewhere in the file, if there is one.
    fn record_told(
        &mut self,
        origin: Origin,
        from: &dyn Told,
        name: String,
        is_union: bool,
        size: Option<u64>,
        depth: u32,
    ) -> Ty {
        if size.is_none() && !name.is_empty() {
            let tag = if is_union {
                dwarf::Tag::Union
            } else {
                dwarf::Tag::Struct
            };
            let whole = from.named(tag, &name).filter(|id| *id != origin.id);
            if let Some(id) = whole {
                return self.import_told(origin.told, Some(id), depth);
            }
        }
        self.new_record(RecordEntry {
            name,
            is_union,
            is_of_process: true,
            body: match size {
                Some(size) => Body::Process(origin, size),
                None => Body::Incomplete,
            },
        })
    }

    /// Imports the members of a structure of a process.
    pub(super) fn record_of_process(
        &mut self,
        origin: Origin,
        entry: &RecordEntry,
        size: u64,
    ) -> Option<Record> {
        let from = self.processes.told.get(origin.told as usize)?.clone();
        let told = from.members(origin.id).ok()?;
        let members = told.into_iter().map(|member| Member {
            path: Path {
                ty: self.import_told(origin.told, member.ty, MAX_DEPTH),
                bit_offset: member.bit_offset,
                bits: member.bits,
            },
            name: member.name,
        });
        Some(Record {
            name: entry.name.clone(),
            is_union: entry.is_union,
            size,
            members: members.collect(),
        })
    }
}
