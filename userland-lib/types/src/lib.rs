// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! D's types: those of C, of the program and of the kernel.
//!
//! A type is a [`Ty`], a number in one table ([`Types`]). The table only grows and lives as long as
//! the compiler. Derived types (pointers, arrays, functions, qualified types, typedefs) are entered
//! once, so equal numbers mean the same type. Structures, unions and enumerations are distinguished
//! by their declaration: each has its own number.
//!
//! A kernel type enters the table on its first use. A structure enters with its name and size only;
//! its members are imported when [`Types::record`] first needs them. Structures that refer to each
//! other therefore need no special care, and a program pays only for the types that it touches.
//!
//! A name is looked up among the program's declarations, then among D's own, then in the kernel's
//! BTF; a tag is also looked up in the modules' BTF. `` mod`name `` is looked up in that module
//! only.

#![deny(unsafe_code)]

pub mod btf;

mod arith;
mod builtin;
mod ctf;
mod kernel;
mod model;
mod parse;
mod process;
mod record;
mod scope;
mod similar;
mod source;
mod stack;
#[cfg(test)]
mod tests;
mod text;

pub use arith::IntType;
pub use ctf::Container;
pub use model::DataModel;
pub use process::Prototype;
pub use record::{Member, Path, Record};
pub use scope::{is_own_scope, OWN_SCOPES, VMLINUX};
pub use source::TypeSource;

use dtrace_uapi::limits::STACKFRAMES_DEFAULT;
use dtrace_uapi::types::{DifType, DIF_TF_BYREF, DIF_TYPE_CTF, DIF_TYPE_STRING};
use kernel::Kernel;
use process::Processes;
use record::RecordEntry;
use std::collections::HashMap;
use std::rc::Rc;

/// Size of a pointer in bytes, as in the kernel.
pub const POINTER_SIZE: u64 = 8;

/// Size of a string in bytes with its NUL, unless the option `strsize` sets another.
pub const STRING_SIZE: u64 = 256;

/// Maximum nesting of types; a type that nests deeper is treated as damaged.
const MAX_DEPTH: u32 = 64;

/// A type: its number in a [`Types`] table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ty(u32);

/// Number of a structure or union in a [`Types`] table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RecordId(u32);

/// Number of an enumeration in a [`Types`] table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EnumId(u32);

/// The kind of a type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `void`
    Void,
    /// An integer.
    Int {
        /// Its name, as D writes it.
        name: Rc<str>,
        /// Its size and signedness.
        int: IntType,
        /// Whether arrays of it are text.
        is_char: bool,
    },
    /// A floating-point number.
    Float {
        /// Its name.
        name: Rc<str>,
        /// Its size in bytes.
        size: u8,
    },
    /// A pointer.
    Pointer {
        /// What it points to.
        to: Ty,
        /// Whether that is in user space.
        userland: bool,
        /// Size of the pointer in memory, in bytes.
        size: u8,
    },
    /// An array; the count is absent for C's `[]`.
    Array(Ty, Option<u32>),
    /// A structure or union.
    Record(RecordId),
    /// An enumeration.
    Enum(EnumId),
    /// An integer variable without a declaration. It has 64 bits; a value in the range of this type
    /// is shown as one of this type.
    Inferred(Ty),
    /// Another name for a type.
    Typedef(Rc<str>, Ty),
    /// A `const` type: its objects cannot be assigned to.
    Const(Ty),
    /// A function.
    Function {
        /// Its return type.
        ret: Ty,
        /// Its parameters.
        params: Rc<[Ty]>,
        /// Whether it takes further arguments (`...`).
        variadic: bool,
    },
    /// D's string.
    String,
    /// A stack trace, with its name for messages. Like the variants below, it can be recorded and
    /// printed but not computed with.
    Stack(&'static str),
    /// A kernel address that is printed as a symbol.
    Symbol,
    /// A user address that is printed as a symbol.
    Usymbol,
    /// The type of a variable that has not been assigned yet.
    Dynamic,
}

/// The kinds of tags; each kind is a name space of its own.
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
    /// Returns C's keyword for it.
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
    /// Its tag; empty if it has none.
    pub name: String,
    /// The integer type of its values.
    pub int: IntType,
    /// Its constants, with their values.
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
    /// Typedefs of D itself and of the programs.
    typedefs: HashMap<String, Ty>,
    /// Tags that the programs declared.
    tags: HashMap<(Tag, String), Ty>,
    /// Enumeration constants that the programs declared.
    constants: HashMap<String, (Ty, i64)>,
    string_size: u64,
    /// The types of stack values, by their number of frames.
    stacks: HashMap<u32, Ty>,
    /// Number of frames of `dt_stack_t` where a program names it.
    stack_frames: u32,
    /// Whether types of stack values have room for frames of interpreted code.
    has_stack_room: bool,
    model: DataModel,
    kernel: Kernel,
    processes: Processes,
}

impl<'w> Types<'w> {
    /// Creates a table with D's own types; the types of `world` are added on first use.
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
            has_stack_room: false,
            model: DataModel::default(),
            kernel: Kernel::default(),
            processes: Processes::default(),
        };
        types.enter_builtins();
        types
    }

    /// Sets the size of strings in bytes with their NUL.
    pub fn set_string_size(&mut self, size: u64) {
        self.string_size = size;
    }

    /// Returns the kind of a type.
    pub fn kind(&self, ty: Ty) -> &Kind {
        &self.kinds[ty.0 as usize]
    }

    /// Returns the number of the type of this kind; adds it if the table has none.
    fn enter(&mut self, kind: Kind) -> Ty {
        if let Some(&ty) = self.numbers.get(&kind) {
            return ty;
        }
        let ty = Ty(self.kinds.len() as u32);
        self.numbers.insert(kind.clone(), ty);
        self.kinds.push(kind);
        ty
    }

    /// Returns the type of a pointer to `to`.
    pub fn pointer_to(&mut self, to: Ty) -> Ty {
        self.enter(Kind::Pointer {
            to,
            userland: false,
            size: DataModel::Lp64.long(),
        })
    }

    /// Returns the type of a pointer to `to` in user space.
    pub fn user_pointer_to(&mut self, to: Ty) -> Ty {
        self.enter(Kind::Pointer {
            to,
            userland: true,
            size: DataModel::Lp64.long(),
        })
    }

    /// Returns the type of a pointer to `to`, of the size that the current data model gives it.
    pub fn declared_pointer_to(&mut self, to: Ty, userland: bool) -> Ty {
        let size = self.model.long();
        self.enter(Kind::Pointer { to, userland, size })
    }

    /// Returns the type of an array of `element`.
    pub fn array_of(&mut self, element: Ty, count: Option<u32>) -> Ty {
        self.enter(Kind::Array(element, count))
    }

    /// Returns the type of a function.
    pub fn function_of(&mut self, ret: Ty, params: &[Ty], variadic: bool) -> Ty {
        self.enter(Kind::Function {
            ret,
            params: params.into(),
            variadic,
        })
    }

    /// Returns `target` with `const` added.
    pub fn const_of(&mut self, target: Ty) -> Ty {
        match self.kind(target) {
            Kind::Const(_) => target,
            _ => self.enter(Kind::Const(target)),
        }
    }

    /// Declares the typedef `name`. A later declaration of the same name by a program replaces it.
    pub fn declare_typedef(&mut self, name: &str, target: Ty) -> Ty {
        let ty = self.enter(Kind::Typedef(name.into(), target));
        self.typedefs.insert(name.to_owned(), ty);
        ty
    }

    /// Declares an enumeration and its constants. Fails with a message if the tag, or one of the
    /// constants, already exists.
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

    /// Returns the tag's type if a program has declared it.
    pub fn declared_tag(&self, tag: Tag, name: &str) -> Option<Ty> {
        self.tags.get(&(tag, name.to_owned())).copied()
    }

    /// Returns the typedef's type if a program, or D itself, has declared it.
    pub fn declared_typedef(&self, name: &str) -> Option<Ty> {
        self.typedefs.get(name).copied()
    }

    /// Returns the enumeration constant and its type if a program has declared it.
    pub fn declared_constant(&self, name: &str) -> Option<(Ty, i64)> {
        self.constants.get(name).copied()
    }

    /// Returns `ty` without typedefs and qualifiers.
    pub fn resolve(&self, ty: Ty) -> Ty {
        let mut at = ty;
        // A type refers only to types with smaller numbers, so the loop ends.
        while let Kind::Typedef(_, target) | Kind::Const(target) = *self.kind(at) {
            at = target;
        }
        at
    }

    /// Returns the kind of `ty` without typedefs and qualifiers.
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

    /// Returns the type that `ty` points to, or the element type if `ty` is an array.
    pub fn pointee(&self, ty: Ty) -> Option<Ty> {
        match *self.base(ty) {
            Kind::Pointer { to: target, .. } | Kind::Array(target, _) => Some(target),
            _ => None,
        }
    }

    /// Returns the enumeration if `ty` is one.
    pub fn enumeration(&self, ty: Ty) -> Option<Rc<Enum>> {
        match *self.base(ty) {
            Kind::Enum(EnumId(id)) => Some(self.enums[id as usize].clone()),
            _ => None,
        }
    }

    /// Returns the size of a value in bytes; `None` for `void`, functions and structures without
    /// members, which have no size.
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

    /// Returns the description of the type for the kernel. Strings, arrays, structures and
    /// floating-point numbers over 8 bytes are passed by reference.
    pub fn dif_type(&self, ty: Ty) -> DifType {
        let (kind, flags) = match self.base(ty) {
            Kind::String => (DIF_TYPE_STRING, DIF_TF_BYREF),
            Kind::Array(..) | Kind::Record(_) | Kind::Float { size: 9.., .. } => {
                (DIF_TYPE_CTF, DIF_TF_BYREF)
            }
            _ => (DIF_TYPE_CTF, 0),
        };
        let size = match self.is_pointer(ty) {
            // In a register a pointer has 64 bits whatever its size in memory: it may hold any
            // address.
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
}
