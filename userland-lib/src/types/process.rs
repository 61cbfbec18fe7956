// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Types of a process' programs and libraries, taken from their debugging information into the table as they are asked for.
//!
//! A type comes in once a file. Every pointer among them is one into user space, so whatever is reached through one is read
//! from the process, never from the kernel. What a damaged file fails to describe is `void`.

use super::record::{Body, RecordEntry};
use super::{Enum, IntType, Kind, Member, Path, Record, Ty, Types, MAX_DEPTH};
use crate::dwarf::{self, Base, Type, TypeId};
use crate::pid::{self, Told};
use std::collections::HashMap;
use std::rc::Rc;

/// What came from processes so far.
#[derive(Clone, Default)]
pub(super) struct Processes {
    told: Vec<Rc<dyn Told>>,
    imported: HashMap<Origin, Ty>,
}

/// A type of a file: who tells it, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Origin {
    told: u32,
    id: TypeId,
}

/// What a function of a process takes and returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prototype {
    /// What it returns.
    pub ret: Ty,
    /// What it takes.
    pub params: Vec<Ty>,
    /// Whether the program has 64 bits.
    pub is_wide: bool,
    /// A `float` comes as a `double`.
    pub promotes: bool,
}

/// The process and the module that a scope names: `` pid12`libc `` is the library's, `pid12` the program's.
fn scope(module: Option<&str>) -> Option<(u32, &str)> {
    let scope = module?.strip_prefix(pid::PROVIDER)?;
    let (pid, module) = scope.split_once('`').unwrap_or((scope, pid::PROGRAM));
    Some((pid.parse().ok()?, module))
}

impl Types<'_> {
    /// Why nothing is known of the process' module that a scope names; nothing, if something is, or if it names no process.
    pub fn process_scope_error(&self, module: Option<&str>) -> Option<dwarf::Error> {
        let (pid, module) = scope(module)?;
        self.world.process_module(pid, module).err()
    }

    /// Whether a scope is a process'.
    pub fn is_process_scope(&self, module: Option<&str>) -> bool {
        scope(module).is_some()
    }

    /// Whether `ty` is a structure or union of a process.
    pub fn is_of_process(&self, ty: Ty) -> bool {
        let Kind::Record(id) = *self.base(ty) else {
            return false;
        };
        let entry = self.records.get(id.0 as usize);
        entry.is_some_and(|entry| matches!(entry.body, Body::Process(..)))
    }

    /// The type that a process' module, which the scope names, has under this name: the first of these kinds.
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

    /// What the function `func` of a module of the process `pid` takes and returns; nothing, if nobody tells of that function.
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

    /// The number of who tells of types.
    fn told(&mut self, told: &Rc<dyn Told>) -> u32 {
        let all = &mut self.processes.told;
        let is_it = |known: &Rc<dyn Told>| std::ptr::addr_eq(Rc::as_ptr(known), Rc::as_ptr(told));
        let known = all.iter().position(is_it);
        known.unwrap_or_else(|| {
            all.push(told.clone());
            all.len() - 1
        }) as u32
    }

    /// The table's number of a type that is told; of none, `void`.
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
        // What is named may be a declaration, of which there are many.
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
                // The first dimension is the outermost; only that may be open.
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

    /// A number; under D's own name where D has it.
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

    /// A structure or union. One that is only named here is the one that the file has elsewhere, if any.
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
            body: match size {
                Some(size) => Body::Process(origin, size),
                None => Body::Incomplete,
            },
        })
    }

    /// The members of a structure of a process.
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
