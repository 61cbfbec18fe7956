// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Writes types as CTF (`-xctypes`, `-xdtypes`), for tools that read that format.
//!
//! A CTF file is a header, the types one after another, and their names. A type is three words
//! (name, kind, and either its size or the type that it refers to), followed by data that depend on
//! the kind. Types refer to each other by number; they are numbered from 1 in the order of the
//! file. The layout is that of version 3, as in `ctf.h` of binutils.
//!
//! D has two containers. C's holds C's basic types and the types of the kernel and of processes
//! that programs used. D's holds the types that D, its libraries and the programs declare. Each
//! file is self-contained: it holds every type that its types refer to. A structure whose members
//! were never used is declared but not defined, which keeps the file as small as what was used.
//!
//! Invariant: a type gets its number before anything that it refers to is written, so that types
//! may refer to each other.

use super::record::Body;
use super::{Enum, Kind, Record, Ty, Types};
use std::collections::{HashMap, VecDeque};

const MAGIC: u16 = 0xdff2;
/// The stored value of `CTF_VERSION_3`.
const VERSION_3: u8 = 4;
/// Size of the header in bytes.
const HEADER: usize = 52;

// The kinds of types.
const INTEGER: u32 = 1;
const FLOAT: u32 = 2;
const POINTER: u32 = 3;
const ARRAY: u32 = 4;
const FUNCTION: u32 = 5;
const STRUCT: u32 = 6;
const UNION: u32 = 7;
const ENUM: u32 = 8;
const FORWARD: u32 = 9;
const TYPEDEF: u32 = 10;
const CONST: u32 = 12;
/// A bit-field: a range of the bits of an integer type.
const SLICE: u32 = 14;

// The encoding bits of an integer.
const SIGNED: u32 = 1;
const CHAR: u32 = 2;
const BOOL: u32 = 4;

/// Maximum number of members or constants of a type.
const LENGTH_MAX: usize = 0xff_ffff;
/// Structures of this size in bytes and more use another member format.
const LARGE: u64 = 0x2000_0000;

/// Selects a set of types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Container {
    /// C's basic types, and the types of the kernel and of processes that were used.
    C,
    /// The types that D, its libraries and the programs declare.
    D,
}

impl Types<'_> {
    /// Returns the CTF file of a container.
    pub fn ctf(&self, container: Container) -> Vec<u8> {
        let mut roots: Vec<Ty> = match container {
            Container::C => self.of_c(),
            Container::D => {
                let declared = self.typedefs.values().chain(self.tags.values());
                declared.copied().collect()
            }
        };
        roots.sort_unstable_by_key(|ty| ty.0);
        let mut writer = Writer::new(self);
        for root in roots {
            writer.number(root);
        }
        writer.finish()
    }

    fn of_c(&self) -> Vec<Ty> {
        let all = (0..self.kinds.len() as u32).map(Ty);
        let is_declared = |ty: &Ty| {
            self.typedefs.values().any(|known| known == ty)
                || self.tags.values().any(|known| known == ty)
        };
        let is_c = |ty: &Ty| match self.kind(*ty) {
            Kind::Int { .. } | Kind::Float { .. } => true,
            Kind::Enum(_) | Kind::Typedef(..) => !is_declared(ty),
            Kind::Record(id) => {
                let body = &self.records[id.0 as usize].body;
                matches!(body, Body::Complete(_)) && !is_declared(ty)
            }
            _ => false,
        };
        all.filter(is_c).collect()
    }
}

struct Writer<'a, 'w> {
    types: &'a Types<'w>,
    /// CTF numbers of the types in the table; 0, which no type has, for types that C cannot
    /// express.
    numbers: HashMap<Ty, u32>,
    /// Types that have a number and are still to be written, in order.
    waiting: VecDeque<Waiting>,
    /// How many numbers have been assigned.
    given: u32,
    text: Vec<u8>,
    names: Vec<u8>,
    known: HashMap<String, u32>,
}

/// An entry that is still to be written.
enum Waiting {
    Type(Ty),
    /// The given number of bits of an integer type.
    Slice(Ty, u32),
}

impl<'a, 'w> Writer<'a, 'w> {
    fn new(types: &'a Types<'w>) -> Self {
        Self {
            types,
            numbers: HashMap::new(),
            waiting: VecDeque::new(),
            given: 0,
            text: Vec::new(),
            // Offset 0 is the empty name.
            names: vec![0],
            known: HashMap::from([(String::new(), 0)]),
        }
    }

    /// Returns the number of a type. A type without a number gets one and is queued for writing.
    fn number(&mut self, ty: Ty) -> u32 {
        if let Some(&known) = self.numbers.get(&ty) {
            return known;
        }
        let is_c = !matches!(
            self.types.kind(ty),
            Kind::Stack(_) | Kind::Symbol | Kind::Usymbol | Kind::Dynamic
        );
        let number = match is_c {
            true => self.enqueue(Waiting::Type(ty)),
            false => 0,
        };
        self.numbers.insert(ty, number);
        number
    }

    fn enqueue(&mut self, waiting: Waiting) -> u32 {
        self.waiting.push_back(waiting);
        self.given += 1;
        self.given
    }

    fn finish(mut self) -> Vec<u8> {
        while let Some(waiting) = self.waiting.pop_front() {
            match waiting {
                Waiting::Type(ty) => self.define(ty),
                Waiting::Slice(ty, bits) => {
                    let size = self.types.size(ty).unwrap_or(0);
                    self.begin("", SLICE, 0, size as u32);
                    let whole = self.number(ty);
                    self.word(whole);
                    // Offset and width in bits. The offset is 0 because the member states it.
                    let halves = [0, bits as u16].map(u16::to_ne_bytes);
                    self.text.extend(halves.as_flattened());
                }
            }
        }
        let mut file = Vec::with_capacity(HEADER + self.text.len() + self.names.len());
        file.extend(MAGIC.to_ne_bytes());
        file.extend([VERSION_3, 0]);
        // Three names that are absent, then the offsets of seven sections: six empty ones and the
        // types, all of which begin at 0.
        for word in [0; 10] {
            file.extend(u32::to_ne_bytes(word));
        }
        for length in [self.text.len(), self.names.len()] {
            file.extend((length as u32).to_ne_bytes());
        }
        file.append(&mut self.text);
        file.append(&mut self.names);
        file
    }

    fn word(&mut self, word: u32) {
        self.text.extend(word.to_ne_bytes());
    }

    /// Returns the offset of a name in the name section; adds the name if it is new.
    fn name(&mut self, name: &str) -> u32 {
        if let Some(&known) = self.known.get(name) {
            return known;
        }
        let place = self.names.len() as u32;
        self.names.extend(name.bytes().filter(|byte| *byte != 0));
        self.names.push(0);
        self.known.insert(name.to_owned(), place);
        place
    }

    /// Writes the three words with which every type begins.
    fn begin(&mut self, name: &str, kind: u32, length: usize, size_or_type: u32) {
        /// The type can be looked up by its name.
        const ROOT: u32 = 1 << 25;
        let name = self.name(name);
        self.word(name);
        self.word(kind << 26 | ROOT | length as u32);
        self.word(size_or_type);
    }

    fn define(&mut self, ty: Ty) {
        let types = self.types;
        match types.kind(ty) {
            // Written as an integer of no bits, as compilers do, because readers take the type 0
            // for an error.
            Kind::Void => {
                self.begin("void", INTEGER, 0, 0);
                self.word(0);
            }
            Kind::Int { name, int, is_char } => {
                let format = [
                    (int.signed, SIGNED),
                    (*is_char, CHAR),
                    (&**name == "_Bool", BOOL),
                ];
                let format = format.iter().filter(|(is, _)| *is).map(|(_, bit)| bit);
                self.begin(name, INTEGER, 0, int.size.into());
                self.word(format.sum::<u32>() << 24 | u32::from(int.size) * 8);
            }
            Kind::Float { name, size } => {
                let format = match size {
                    4 => 1,
                    8 => 2,
                    _ => 6,
                };
                self.begin(name, FLOAT, 0, (*size).into());
                self.word(format << 24 | u32::from(*size) * 8);
            }
            Kind::Pointer { to, .. } => self.refer("", POINTER, *to),
            Kind::Typedef(name, target) => self.refer(name, TYPEDEF, *target),
            Kind::Const(target) => self.refer("", CONST, *target),
            // Only variables have this type, and variables are not written.
            Kind::Inferred(shown) => self.refer("", TYPEDEF, *shown),
            Kind::Array(element, count) => self.array("", *element, count.unwrap_or(0)),
            Kind::String => {
                let count = types.size(ty).and_then(|size| size.try_into().ok());
                self.array("string", Ty::CHAR, count.unwrap_or(u32::MAX));
            }
            Kind::Function {
                ret,
                params,
                variadic,
            } => {
                let ret = self.number(*ret);
                // The type 0 at the end marks a variadic function.
                let mut params: Vec<u32> = params.iter().map(|ty| self.number(*ty)).collect();
                params.extend(variadic.then_some(0));
                // The list is padded to an even number of words.
                self.begin("", FUNCTION, params.len(), ret);
                params.resize(params.len().next_multiple_of(2), 0);
                params.into_iter().for_each(|param| self.word(param));
            }
            Kind::Enum(id) => self.enumeration(&types.enums[id.0 as usize]),
            Kind::Record(id) => {
                let entry = &types.records[id.0 as usize];
                match &entry.body {
                    Body::Complete(record)
                        if record.size < LARGE && record.members.len() <= LENGTH_MAX =>
                    {
                        self.record(record);
                    }
                    _ => {
                        let kind = if entry.is_union { UNION } else { STRUCT };
                        self.begin(&entry.name, FORWARD, 0, kind);
                    }
                }
            }
            // These types have no numbers.
            Kind::Stack(_) | Kind::Symbol | Kind::Usymbol | Kind::Dynamic => {}
        }
    }

    fn refer(&mut self, name: &str, kind: u32, target: Ty) {
        let target = self.number(target);
        self.begin(name, kind, 0, target);
    }

    fn array(&mut self, name: &str, element: Ty, count: u32) {
        self.begin(name, ARRAY, 0, 0);
        for number in [self.number(element), self.number(Ty::ULONG), count] {
            self.word(number);
        }
    }

    fn enumeration(&mut self, items: &Enum) {
        let named = items.items.iter().take(LENGTH_MAX);
        self.begin(&items.name, ENUM, named.len(), items.int.size.into());
        for (name, value) in named {
            let name = self.name(name);
            self.word(name);
            // The format has only 32 bits for a value.
            self.word(*value as u32);
        }
    }

    fn record(&mut self, record: &Record) {
        let kind = if record.is_union { UNION } else { STRUCT };
        let length = record.members.len();
        self.begin(&record.name, kind, length, record.size as u32);
        for member in &record.members {
            let path = member.path;
            let ty = match path.bits {
                0 => self.number(path.ty),
                bits => self.enqueue(Waiting::Slice(path.ty, bits)),
            };
            let name = self.name(&member.name);
            for word in [name, path.bit_offset as u32, ty] {
                self.word(word);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tag;
    use dtrace_objects::processes::Nowhere;

    fn words(file: &[u8]) -> Vec<u32> {
        let words = file.chunks_exact(4);
        words
            .map(|word| u32::from_ne_bytes([word[0], word[1], word[2], word[3]]))
            .collect()
    }

    /// Returns the name at offset `place` of the names.
    fn name(file: &[u8], place: u32) -> &str {
        let header = words(&file[..HEADER]);
        let names = &file[HEADER + header[11] as usize..];
        let name = &names[place as usize..];
        let end = name.iter().position(|byte| *byte == 0).unwrap();
        std::str::from_utf8(&name[..end]).unwrap()
    }

    #[test]
    fn the_header_says_where_types_and_names_are() {
        let types = Types::new(&Nowhere);
        for container in [Container::C, Container::D] {
            let file = types.ctf(container);
            assert_eq!(file[..4], [0xf2, 0xdf, 4, 0]);
            let header = words(&file[..HEADER]);
            assert_eq!(header[1..11], [0; 10]);
            let (types, names) = (header[11] as usize, header[12] as usize);
            assert_eq!(HEADER + types + names, file.len());
            assert_eq!((file[HEADER + types], file.last()), (0, Some(&0)));
        }
        // The first type of C's container is `char`.
        let file = types.ctf(Container::C);
        let first = words(&file[HEADER..HEADER + 16]);
        assert_eq!(name(&file, first[0]), "char");
        assert_eq!(first[1] >> 26, INTEGER);
        assert_eq!(first[2..], [1, (SIGNED | CHAR) << 24 | 8]);
    }

    #[test]
    fn what_a_program_declares_is_written_with_what_it_refers_to() {
        let mut types = Types::new(&Nowhere);
        let node = types.declare_record(false, Some("node"), None).unwrap();
        let next = types.pointer_to(node);
        let members = [("next", next, None), ("flag", Ty::UINT, Some(3))];
        let members = members.map(|(name, ty, bits)| (name.to_owned(), ty, bits));
        types
            .declare_record(false, Some("node"), Some(members.into()))
            .unwrap();
        assert!(types.declared_tag(Tag::Struct, "node").is_some());
        let file = types.ctf(Container::D);
        let header = words(&file[..HEADER]);
        let body = words(&file[HEADER..HEADER + header[11] as usize]);
        let at = (0..body.len() - 8)
            .find(|at| body[at + 1] == STRUCT << 26 | 1 << 25 | 2)
            .expect("the structure");
        assert_eq!(name(&file, body[at]), "node");
        assert_eq!(body[at + 2], 16);
        assert_eq!(name(&file, body[at + 3]), "next");
        assert_eq!(name(&file, body[at + 6]), "flag");
        assert_eq!([body[at + 4], body[at + 7]], [0, 64]);
        // The pointer and the bit-field got consecutive numbers.
        assert_eq!(body[at + 5] + 1, body[at + 8]);
        let slice = [SLICE << 26 | 1 << 25, 4];
        let at = (0..body.len() - 4)
            .find(|at| body[at + 1..at + 3] == slice)
            .expect("the bits");
        assert_eq!(body[at + 4] >> 16, 3);
    }
}
