// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! D's types: C's, the program's own, and the kernel's.
//!
//! A type is a [`Ty`], a number in one table ([`Types`]) that only grows and lives as long as the compiler. What C
//! derives (pointers, arrays, functions, qualified types, typedefs) is entered once, so that equal numbers mean the
//! same type; structures, unions and enumerations are what they are by declaration, each with its own number.
//!
//! The kernel's types enter the table when somebody names them, one at a time: a structure comes in as its name
//! alone, and its members when they are asked for ([`Types::record`]). So rings of structures need no care, and a
//! program pays for those types only that it touches.
//!
//! Names are looked for in the program's declarations, then among those of D itself, then in the kernel's BTF, and
//! tags in its modules' too; `` mod`name `` asks one of them.

pub mod btf;

mod arith;
mod builtin;
mod ctf;
mod kernel;
mod model;
mod parse;
mod process;
mod record;
mod similar;
mod stack;
#[cfg(test)]
mod tests;
mod text;

pub use arith::IntType;
pub use ctf::Container;
pub use model::DataModel;
pub use process::Prototype;
pub use record::{Member, Path, Record};

use crate::statement;
use crate::world::TypeSource;
use dtrace_uapi::limits::STACKFRAMES_DEFAULT;
use dtrace_uapi::types::{DifType, DIF_TF_BYREF, DIF_TYPE_CTF, DIF_TYPE_STRING};
use kernel::Kernel;
use process::Processes;
use record::RecordEntry;
use std::collections::HashMap;
use std::rc::Rc;

/// Bytes of a pointer: the kernel's.
pub const POINTER_SIZE: u64 = 8;

/// Bytes of a string with its NUL, unless the option `strsize` says otherwise.
pub const STRING_SIZE: u64 = 256;

/// How deep types may nest: what is deeper is damaged.
const MAX_DEPTH: u32 = 64;

/// A type: its number in a [`Types`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ty(u32);

/// A structure or union of a [`Types`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RecordId(u32);

/// An enumeration of a [`Types`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EnumId(u32);

/// What sort of type a type is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `void`
    Void,
    /// An integer.
    Int {
        /// Its name, as D writes it.
        name: Rc<str>,
        /// Its size and sign.
        int: IntType,
        /// Whether arrays of it are text.
        is_char: bool,
    },
    /// A floating-point number.
    Float {
        /// Its name.
        name: Rc<str>,
        /// Bytes.
        size: u8,
    },
    /// A pointer.
    Pointer {
        /// What it points to.
        to: Ty,
        /// Whether that is in user space.
        userland: bool,
        /// Bytes that it takes in memory.
        size: u8,
    },
    /// An array; without a count where C's `[]` leaves it open.
    Array(Ty, Option<u32>),
    /// A structure or union.
    Record(RecordId),
    /// An enumeration.
    Enum(EnumId),
    /// An integer variable that nobody declared: it has 64 bits, and is shown as a value of this type wherever it is one.
    Inferred(Ty),
    /// Another name of a type.
    Typedef(Rc<str>, Ty),
    /// A type whose objects are not to be assigned to.
    Const(Ty),
    /// A function.
    Function {
        /// What it returns.
        ret: Ty,
        /// Its parameters.
        params: Rc<[Ty]>,
        /// Whether more may follow.
        variadic: bool,
    },
    /// D's string.
    String,
    /// A stack trace, by the name that messages give it: can be recorded and printed, but not computed with, as all that
    /// follow.
    Stack(&'static str),
    /// A kernel address that is shown as a symbol.
    Symbol,
    /// A user address that is shown as a symbol.
    Usymbol,
    /// What is known when it is used: variables not yet assigned.
    Dynamic,
}

/// Which name space a tag is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tag {
    /// `struct`
    Struct,
    /// `union`
    Union,
    /// `enum`
    Enum,
}

impl Tag {
    /// C's word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Struct => "struct",
            Self::Union => "union",
            Self::Enum => "enum",
        }
    }
}

/// An enumeration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enum {
    /// Its tag; empty where it has none.
    pub name: String,
    /// The integer that holds its values.
    pub int: IntType,
    /// Its constants.
    pub items: Vec<(String, i64)>,
}

/// The table of types.
#[derive(Clone)]
pub struct Types<'w> {
    world: &'w dyn TypeSource,
    kinds: Vec<Kind>,
    numbers: HashMap<Kind, Ty>,
    records: Vec<RecordEntry>,
    enums: Vec<Rc<Enum>>,
    /// Typedefs of D itself and of programs.
    typedefs: HashMap<String, Ty>,
    /// Tags that programs declared.
    tags: HashMap<(Tag, String), Ty>,
    /// Enumeration constants that programs declared.
    constants: HashMap<String, (Ty, i64)>,
    string_size: u64,
    /// Stacks that are values, by the frames that they have.
    stacks: HashMap<u32, Ty>,
    /// The frames of those that a program names.
    stack_frames: u32,
    model: DataModel,
    kernel: Kernel,
    processes: Processes,
}

impl<'w> Types<'w> {
    /// The types that D has by itself, and those of `world` when they are asked for.
    pub fn new(world: &'w dyn TypeSource) -> Self {
        let mut types = Self {
            world,
            kinds: Vec::new(),
            numbers: HashMap::new(),
            records: Vec::new(),
            enums: Vec::new(),
            typedefs: HashMap::new(),
            tags: HashMap::new(),
            constants: HashMap::new(),
            string_size: STRING_SIZE,
            stacks: HashMap::new(),
            stack_frames: STACKFRAMES_DEFAULT as u32,
            model: DataModel::default(),
            kernel: Kernel::default(),
            processes: Processes::default(),
        };
        types.enter_builtins();
        types
    }

    /// How many bytes strings take with their NUL, from now on.
    pub fn set_string_size(&mut self, size: u64) {
        self.string_size = size;
    }

    /// The type's kind.
    pub fn kind(&self, ty: Ty) -> &Kind {
        &self.kinds[ty.0 as usize]
    }

    /// The number of a type of this kind, a new one if there is none.
    fn enter(&mut self, kind: Kind) -> Ty {
        if let Some(&ty) = self.numbers.get(&kind) {
            return ty;
        }
        let ty = Ty(self.kinds.len() as u32);
        self.numbers.insert(kind.clone(), ty);
        self.kinds.push(kind);
        ty
    }

    /// A pointer to `to`.
    pub fn pointer_to(&mut self, to: Ty) -> Ty {
        self.enter(Kind::Pointer {
            to,
            userland: false,
            size: DataModel::Lp64.long(),
        })
    }

    /// A pointer to `to` in user space.
    pub fn user_pointer_to(&mut self, to: Ty) -> Ty {
        self.enter(Kind::Pointer {
            to,
            userland: true,
            size: DataModel::Lp64.long(),
        })
    }

    /// A pointer to `to` as the program at hand declares it.
    pub fn declared_pointer_to(&mut self, to: Ty, userland: bool) -> Ty {
        let size = self.model.long();
        self.enter(Kind::Pointer { to, userland, size })
    }

    /// An array of `element`.
    pub fn array_of(&mut self, element: Ty, count: Option<u32>) -> Ty {
        self.enter(Kind::Array(element, count))
    }

    /// A function.
    pub fn function_of(&mut self, ret: Ty, params: &[Ty], variadic: bool) -> Ty {
        self.enter(Kind::Function {
            ret,
            params: params.into(),
            variadic,
        })
    }

    /// `target`, not to be assigned to.
    pub fn const_of(&mut self, target: Ty) -> Ty {
        match self.kind(target) {
            Kind::Const(_) => target,
            _ => self.enter(Kind::Const(target)),
        }
    }

    /// Declares the typedef `name`. A program's later declaration of the same name takes its place.
    pub fn declare_typedef(&mut self, name: &str, target: Ty) -> Ty {
        let ty = self.enter(Kind::Typedef(name.into(), target));
        self.typedefs.insert(name.to_owned(), ty);
        ty
    }

    /// Declares an enumeration and its constants. The error says which of them exists already.
    pub fn declare_enum(
        &mut self,
        tag: Option<&str>,
        items: Vec<(String, i64)>,
    ) -> Result<Ty, String> {
        if let Some(tag) = tag.filter(|tag| self.declared_tag(Tag::Enum, tag).is_some()) {
            return Err(format!("enum redeclared: enum {tag}"));
        }
        let mut names = std::collections::HashSet::new();
        for (name, _) in &items {
            if self.constants.contains_key(name) || !names.insert(name) {
                return Err(format!("identifier redeclared: {name}"));
            }
        }
        let wide = items.iter().any(|item| i32::try_from(item.1).is_err());
        let ty = self.new_enum(Enum {
            name: tag.unwrap_or_default().to_owned(),
            int: if wide { IntType::LONG } else { IntType::INT },
            items: items.clone(),
        });
        if let Some(tag) = tag {
            self.tags.insert((Tag::Enum, tag.to_owned()), ty);
        }
        self.constants
            .extend(items.into_iter().map(|(name, value)| (name, (ty, value))));
        Ok(ty)
    }

    fn new_enum(&mut self, enumeration: Enum) -> Ty {
        let id = EnumId(self.enums.len() as u32);
        self.enums.push(Rc::new(enumeration));
        self.enter(Kind::Enum(id))
    }

    /// The tag that a program has declared.
    pub fn declared_tag(&self, tag: Tag, name: &str) -> Option<Ty> {
        self.tags.get(&(tag, name.to_owned())).copied()
    }

    /// The typedef that a program, or D itself, has declared.
    pub fn declared_typedef(&self, name: &str) -> Option<Ty> {
        self.typedefs.get(name).copied()
    }

    /// The enumeration constant that a program has declared, with its type.
    pub fn declared_constant(&self, name: &str) -> Option<(Ty, i64)> {
        self.constants.get(name).copied()
    }

    /// `ty` without typedefs and qualifiers.
    pub fn resolve(&self, ty: Ty) -> Ty {
        let mut at = ty;
        // Every number refers to smaller ones only, so this ends.
        while let Kind::Typedef(_, target) | Kind::Const(target) = *self.kind(at) {
            at = target;
        }
        at
    }

    /// The kind of `ty` without typedefs and qualifiers.
    pub fn base(&self, ty: Ty) -> &Kind {
        self.kind(self.resolve(ty))
    }

    /// Whether `ty` is `const`.
    pub fn is_const(&self, ty: Ty) -> bool {
        let mut at = ty;
        while let Kind::Typedef(_, target) = *self.kind(at) {
            at = target;
        }
        matches!(self.kind(at), Kind::Const(_))
    }

    /// Whether `ty` is a pointer into user space.
    pub fn is_userland(&self, ty: Ty) -> bool {
        matches!(self.base(ty), Kind::Pointer { userland: true, .. })
    }

    /// What `ty` points to, or an array of `ty` is made of.
    pub fn pointee(&self, ty: Ty) -> Option<Ty> {
        match *self.base(ty) {
            Kind::Pointer { to: target, .. } | Kind::Array(target, _) => Some(target),
            _ => None,
        }
    }

    /// The enumeration that `ty` is.
    pub fn enumeration(&self, ty: Ty) -> Option<Rc<Enum>> {
        match *self.base(ty) {
            Kind::Enum(EnumId(id)) => Some(self.enums[id as usize].clone()),
            _ => None,
        }
    }

    /// Bytes of a value; `None` for what has no size: `void`, functions, structures without members.
    pub fn size(&self, ty: Ty) -> Option<u64> {
        match self.base(ty) {
            Kind::Int { int, .. } => Some(u64::from(int.size)),
            Kind::Float { size, .. } => Some(u64::from(*size)),
            Kind::Pointer { size, .. } => Some(u64::from(*size)),
            Kind::Array(element, count) => self
                .size(*element)?
                .checked_mul(u64::from(count.unwrap_or(0))),
            Kind::Record(id) => self.record_size(*id),
            Kind::Enum(EnumId(id)) => Some(u64::from(self.enums[*id as usize].int.size)),
            Kind::String => Some(self.string_size),
            Kind::Symbol | Kind::Usymbol | Kind::Inferred(_) => Some(8),
            _ => None,
        }
    }

    /// How the kernel is told of a value of this type; strings, arrays and structures go by reference.
    pub fn dif_type(&self, ty: Ty) -> DifType {
        let (kind, flags) = match self.base(ty) {
            Kind::String => (DIF_TYPE_STRING, DIF_TF_BYREF),
            Kind::Array(..) | Kind::Record(_) | Kind::Float { size: 9.., .. } => {
                (DIF_TYPE_CTF, DIF_TF_BYREF)
            }
            _ => (DIF_TYPE_CTF, 0),
        };
        let size = match self.is_pointer(ty) {
            // Whatever it takes elsewhere: it may be any address.
            true => POINTER_SIZE,
            false => self.size(ty).unwrap_or(0),
        };
        DifType {
            kind,
            flags,
            size: u32::try_from(size).unwrap_or(u32::MAX),
            ..DifType::default()
        }
    }

    /// How the consumer is told of a value of this type.
    pub fn record_kind(&self, ty: Ty) -> statement::Kind {
        match self.base(ty) {
            Kind::String => statement::Kind::String,
            Kind::Array(element, _) if self.is_char(*element) => statement::Kind::Chars,
            Kind::Record(_) if self.frames_of(ty).is_some() => statement::Kind::Stack,
            Kind::Array(..) | Kind::Record(_) => statement::Kind::Bytes,
            Kind::Float { .. } => statement::Kind::Float,
            Kind::Stack(_) | Kind::Symbol | Kind::Usymbol | Kind::Dynamic => {
                statement::Kind::Action
            }
            Kind::Inferred(shown) => {
                self.int(*shown)
                    .map_or(statement::Kind::Signed, |int| statement::Kind::Fitted {
                        size: int.size,
                        signed: int.signed,
                    })
            }
            _ if self.int(ty).is_some_and(|int| int.signed) => statement::Kind::Signed,
            _ => statement::Kind::Unsigned,
        }
    }
}
