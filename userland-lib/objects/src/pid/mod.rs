// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Resolves descriptions of probes in processes (provider `pidN`).
//!
//! Users write names, as in `pid123:libc:malloc:entry`. A probe in a process is a [`Place`]: an
//! offset in a file that the process has mapped. Only the library can translate one to the other,
//! because this needs the symbols of those files, which the kernel does not read. So a description
//! is resolved before the kernel is asked for its probes. It is replaced by the description that
//! the probes have: a module that was abbreviated gets the object's full name, and a function with
//! several names gets the one that the linker prefers.
//!
//! Parts that are empty or globs match whatever exists, perhaps nothing. A part that is spelled out
//! but does not exist is an [`Error`], except for the module, which the process may map later. The
//! function `-` stands for the whole program in its file's numbering, and the probe's name is then
//! an address. `FILE.c@120` in place of a function is a source line; the probe's name is an address
//! as well.
//!
//! Invariant: a place is the first byte of an instruction of the program. A breakpoint anywhere
//! else would make the process fail. An address outside of all functions is accepted as given,
//! because instruction boundaries are not known there.

mod code;
mod error;
mod lines;
mod module;
#[cfg(test)]
mod module_tests;
mod request;
mod sites;
mod wild;

pub use code::{Code, Text, FILE_MAX};
pub use dtrace_files::arch::Instructions;
pub use dtrace_files::elf::{Binding, Function};
pub use error::Error;
pub use module::{Module, Modules, Told};
pub use request::{parts, Request};
pub use wild::{all_named, processes};

use crate::pattern::{fits, is_open, ProbePattern, ADDRESS, PROGRAM};
use crate::processes::ProcessSource;
use dtrace_files::nearest::nearest;
use lines::Line;
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::rc::Rc;

/// Prefix of the provider's name; the process id follows.
pub const PROVIDER: &str = "pid";
/// Module name of the code that the kernel maps into each process.
pub const VDSO: &str = "vdso";
/// Module name of code in memory without a file, which the process generated or copied there.
pub const MADE: &str = "anon";
/// Most places of one description. This exceeds what a consumer may have unless the administrator
/// raised that limit, and bounds the memory that is needed.
pub const PLACES_MAX: usize = 1 << 20;

/// A file, or other object, from which a process runs code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// File name without directories; the module of its probes.
    pub name: String,
    /// Path at which the process sees it.
    pub path: String,
    /// Path at which it can be opened, even if it was replaced or deleted since.
    pub file: PathBuf,
    /// Whether it is the program that the process executes; all others are libraries.
    pub is_program: bool,
    /// Where the process has mapped its code.
    pub code: Vec<CodeMapping>,
}

/// A part of an object's code that a process has mapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeMapping {
    /// Addresses in the process.
    pub range: Range<u64>,
    /// Offset of its beginning in the file.
    pub offset: u64,
}

impl Object {
    /// Whether it is a file. Other objects have a path in brackets.
    pub fn is_file(&self) -> bool {
        !self.path.starts_with('[')
    }

    /// Returns the address in the process of the byte at `offset` in the file.
    pub fn address(&self, offset: u64) -> Option<u64> {
        self.code.iter().find_map(|mapping| {
            let within = offset.checked_sub(mapping.offset)?;
            let address = mapping.range.start.checked_add(within)?;
            mapping.range.contains(&address).then_some(address)
        })
    }
}

/// When a probe fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// When the function is called.
    Entry,
    /// When the function returns.
    Return,
    /// Before one instruction is executed. The number is its offset in the function; for the
    /// function `-` and for a source line it is the instruction's address in the file's numbering.
    Offset(u64),
}

/// Formats the name of the probe.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Entry => f.write_str("entry"),
            Self::Return => f.write_str("return"),
            Self::Offset(offset) => write!(f, "{offset:x}"),
        }
    }
}

/// One probe in a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The object.
    pub object: Rc<Object>,
    /// Function name of the probe.
    pub func: Rc<str>,
    /// Offset in the file of the function or instruction.
    pub offset: u64,
    /// When the probe fires.
    pub kind: Kind,
    /// Range of the function in the file; empty for an instruction that is given by its address or
    /// source line.
    pub function: Range<u64>,
    /// Offsets in the file of the instructions at which the probe fires.
    pub sites: Vec<u64>,
}

/// Result of resolving a description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// The description in the names that the probes have.
    pub pattern: ProbePattern,
    /// Process id.
    pub pid: u32,
    /// The probes.
    pub places: Vec<Place>,
    /// Number of further probes that a pattern matches but that are left out, because their
    /// instructions cannot be probed.
    pub left_out: usize,
    /// The objects that were searched.
    pub objects: Vec<Object>,
}

/// Returns the provider's name for a process.
pub fn provider_of(pid: u32) -> String {
    format!("{PROVIDER}{pid}")
}

/// What the name of a probe requests.
enum Wanted<'p> {
    One(Kind),
    Glob(&'p str),
}

/// A description of probes in a process, kept for objects that the process maps later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// Process id.
    pub pid: u32,
    /// The description as written, with the provider of this process.
    pub written: ProbePattern,
    /// The description for which its clause was enabled.
    pub enabled: ProbePattern,
    /// The description for which the program enabled the clause. For a child this is the one of the
    /// parent, of the parent's parent, and so on.
    pub origin: ProbePattern,
    /// Whether the process is traced because its parent is.
    pub is_child: bool,
    /// The objects that were already searched for it.
    pub objects: Vec<Object>,
}

/// Resolves the description `pattern`. Returns `None` if its provider is not of the form `pidN`.
pub fn resolve<S: ProcessSource + ?Sized>(
    source: &S,
    pattern: &ProbePattern,
) -> Result<Option<Resolved>, Error> {
    let Some(pid) = process_of(&pattern.provider)? else {
        return Ok(None);
    };
    let objects = source
        .objects(pid)
        .map_err(|error| Error::Grab { pid, error })?;
    resolve_in(source, pattern, pid, objects).map(Some)
}

/// Resolves the description `pattern` in these objects of the process `pid`.
pub fn resolve_in<S: ProcessSource + ?Sized>(
    source: &S,
    pattern: &ProbePattern,
    pid: u32,
    objects: Vec<Object>,
) -> Result<Resolved, Error> {
    let mut search = Search {
        source,
        pattern,
        places: Vec::new(),
        left_out: 0,
    };
    // An object that is not a file must be named exactly, and files take precedence.
    let mut all = objects.clone();
    if named(&objects, &pattern.module).is_none() {
        all.extend(source.bare(pid, &pattern.module));
    }
    if pattern.func == ADDRESS {
        search.address(&all)?;
    } else {
        search.functions(all)?;
    }
    let Search {
        places, left_out, ..
    } = search;
    Ok(Resolved {
        pattern: canonical(pid, pattern, &places),
        pid,
        places,
        left_out,
        objects,
    })
}

/// Returns the process that a provider's name contains; `None` for providers of other kinds.
pub fn process_of(provider: &str) -> Result<Option<u32>, Error> {
    let Some(digits) = provider.strip_prefix(PROVIDER) else {
        return Ok(None);
    };
    if digits.is_empty() || !digits.bytes().all(|c| c.is_ascii_digit()) {
        return Ok(None);
    }
    match digits.parse::<i32>() {
        Ok(pid @ 1..) => Ok(Some(pid.unsigned_abs())),
        _ => Err(Error::Pid(provider.to_owned())),
    }
}

/// Suffixes that compilers append, after a dot and before a number, to the name of a function that
/// they derive from another.
const NUMBERED: [&str; 6] = ["clone", "constprop", "isra", "llvm", "lto_priv", "part"];
/// Such suffixes that need not be followed by a number.
const BARE: [&str; 2] = ["cold", "localalias"];

/// Whether a compiler derived this function from another. Dots alone do not show that: languages
/// use them in names too, as in Go's `main.run`.
pub fn is_part(name: &str) -> bool {
    let words: Vec<&str> = name.split('.').skip(1).collect();
    let is_number = |word: &&str| !word.is_empty() && word.bytes().all(|c| c.is_ascii_digit());
    words.iter().enumerate().any(|(at, word)| {
        let next = words.get(at + 1);
        BARE.contains(word) || NUMBERED.contains(word) && next.is_some_and(is_number)
    })
}

fn wanted(name: &str) -> Result<Wanted<'_>, Error> {
    Ok(match name {
        "entry" => Wanted::One(Kind::Entry),
        "return" => Wanted::One(Kind::Return),
        name if is_open(name) => Wanted::Glob(name),
        name => {
            let digits = name.strip_prefix("0x").unwrap_or(name);
            let offset = u64::from_str_radix(digits, 16);
            Wanted::One(Kind::Offset(
                offset.map_err(|_| Error::Name(name.to_owned()))?,
            ))
        }
    })
}

/// Returns the object that a module's name stands for: by its own name, its path, or its name up to
/// a dot (`libc` for `libc.so.6`).
pub fn named<'o>(objects: &'o [Object], module: &str) -> Option<&'o Object> {
    let find = |is_it: &dyn Fn(&Object) -> bool| objects.iter().find(|object| is_it(object));
    find(&|object| object.is_program && module == PROGRAM)
        .or_else(|| find(&|object| object.name == module || object.path == module))
        .or_else(|| {
            find(&|object| {
                let rest = object.name.strip_prefix(module);
                rest.is_some_and(|rest| rest.starts_with('.'))
            })
        })
}

/// Returns the objects that `pattern` names and that are not in `seen`, the objects that were
/// searched for it before. If `seen` is not empty, a description that cannot match more yields
/// none.
pub fn named_anew(pattern: &ProbePattern, objects: &[Object], seen: &[Object]) -> Vec<Object> {
    if !seen.is_empty() && !pattern.may_name_more() {
        return Vec::new();
    }
    let is_new = |object: &&Object| !seen.contains(object);
    if pattern.func == ADDRESS {
        let mut all = objects.iter().filter(is_new);
        return all
            .find(|object| object.is_program)
            .cloned()
            .into_iter()
            .collect();
    }
    if is_open(&pattern.module) {
        let mut all: Vec<Object> = objects.iter().filter(is_new).cloned().collect();
        all.retain(|object| fits(&pattern.module, &object.name));
        return all;
    }
    let one = named(objects, &pattern.module);
    one.filter(is_new).cloned().into_iter().collect()
}

/// Returns `pattern` with the names that the probes at `places` have, as far as these agree.
pub fn canonical(pid: u32, pattern: &ProbePattern, places: &[Place]) -> ProbePattern {
    let mut pattern = ProbePattern {
        provider: provider_of(pid),
        ..pattern.clone()
    };
    let Some(first) = places.first() else {
        return pattern;
    };
    let all = |same: &dyn Fn(&Place) -> bool| places.iter().all(same);
    let is_one = |part: &str| part == ADDRESS || !is_open(part);
    if pattern.func == ADDRESS || !is_open(&pattern.module) {
        pattern.module.clone_from(&first.object.name);
    }
    if is_one(&pattern.func) && all(&|place| place.func == first.func) {
        pattern.func = first.func.to_string();
    }
    if !is_open(&pattern.name) {
        pattern.name = first.kind.to_string();
    }
    pattern
}

/// Search for the places of one description.
struct Search<'s, S: ?Sized> {
    source: &'s S,
    pattern: &'s ProbePattern,
    places: Vec<Place>,
    left_out: usize,
}

impl<S: ProcessSource + ?Sized> Search<'_, S> {
    /// Adds the probe at an address of the program.
    fn address(&mut self, objects: &[Object]) -> Result<(), Error> {
        let module = match self.pattern.module.as_str() {
            "" => PROGRAM,
            module => module,
        };
        let program = named(objects, module)
            .filter(|object| object.is_program || !object.is_file())
            .ok_or(Error::AddressModule)?;
        let address = match wanted(&self.pattern.name)? {
            Wanted::One(Kind::Offset(address)) => address,
            Wanted::One(_) => return Err(Error::Name(self.pattern.name.clone())),
            Wanted::Glob(_) => return Err(Error::AddressName),
        };
        let outside = || Error::Offset {
            offset: address,
            func: ADDRESS.to_owned(),
        };
        if program.name == MADE && !program.is_file() {
            // Only the kernel can read the instruction, and it reports if that cannot be probed.
            program.address(address).ok_or_else(outside)?;
            return self.add_address(program, address, address, Ok(()));
        }
        let code = self.read(program)?;
        let offset = code.file_offset(address).ok_or_else(outside)?;
        if let Some(func) = code.function_at(address) {
            let within = address - func.address;
            if !code.instructions(func).any(|offset| offset == within) {
                return Err(Error::Align(address));
            }
        }
        self.add_address(program, address, offset, code.site(address))
    }

    fn add_address(
        &mut self,
        object: &Object,
        address: u64,
        offset: u64,
        can: Result<(), String>,
    ) -> Result<(), Error> {
        let place = Place {
            object: Rc::new(object.clone()),
            func: ADDRESS.into(),
            offset,
            kind: Kind::Offset(address),
            function: 0..0,
            sites: vec![offset],
        };
        self.add(place, can)
    }

    /// Searches for functions in the objects that the module names.
    fn functions(&mut self, objects: Vec<Object>) -> Result<(), Error> {
        let module = &self.pattern.module;
        let is_open = is_open(module);
        let line = Line::of(&self.pattern.func);
        let objects: Vec<Object> = if is_open {
            let fitting = objects.into_iter();
            fitting
                .filter(|object| fits(module, &object.name))
                .collect()
        } else {
            named(&objects, module).cloned().into_iter().collect()
        };
        if let Some(line) = line {
            return self.line(line, objects);
        }
        for object in objects {
            let code = match self.read(&object) {
                Ok(code) => code,
                // A glob need not include an object that cannot be read.
                Err(_) if is_open => continue,
                Err(error) => return Err(error),
            };
            self.functions_of(Rc::new(object), &code)?;
        }
        Ok(())
    }

    fn functions_of(&mut self, object: Rc<Object>, code: &Code) -> Result<(), Error> {
        let func = &self.pattern.func;
        if is_open(func) {
            for names in code.functions() {
                let mut fitting = names.iter().filter(|f| !is_part(&f.name));
                if let Some(function) = fitting.find(|f| fits(func, &f.name)) {
                    self.function(&object, code, function)?;
                }
            }
            return Ok(());
        }
        match code.function(func) {
            Some(function) => self.function(&object, code, function),
            None if is_open(&self.pattern.module) => Ok(()),
            None => {
                let names = code.functions().flatten();
                let near = nearest(func, names.map(|function| function.name.as_str()));
                Err(Error::Func {
                    func: func.clone(),
                    module: self.pattern.module.clone(),
                    near: near.map(str::to_owned),
                })
            }
        }
    }

    /// Adds the requested probes of one function.
    fn function(
        &mut self,
        object: &Rc<Object>,
        code: &Code,
        function: &Function,
    ) -> Result<(), Error> {
        let pattern = self.pattern;
        let name: Rc<str> = function.name.as_str().into();
        let Some(start) = code.file_offset(function.address) else {
            return Ok(());
        };
        let mut add = |kind: Kind| {
            let (sites, can) = match code.sites(function, kind) {
                Ok(sites) => (sites, Ok(())),
                Err(why) => (Vec::new(), Err(why)),
            };
            let within = match kind {
                Kind::Offset(offset) => offset,
                _ => 0,
            };
            let place = Place {
                object: object.clone(),
                func: name.clone(),
                offset: start + within,
                kind,
                function: start..start.saturating_add(function.size),
                sites: sites.iter().map(|site| start + site).collect(),
            };
            self.add(place, can)
        };
        match wanted(&pattern.name)? {
            Wanted::One(Kind::Offset(offset)) => {
                if offset >= function.size {
                    let func = function.name.clone();
                    return Err(Error::Offset { offset, func });
                }
                if !code.instructions(function).any(|known| known == offset) {
                    return Err(Error::Align(offset));
                }
                add(Kind::Offset(offset))
            }
            Wanted::One(kind) => add(kind),
            Wanted::Glob(glob) => {
                let offsets = code.instructions(function).map(Kind::Offset);
                [Kind::Return, Kind::Entry]
                    .into_iter()
                    .chain(offsets)
                    .filter(|kind| fits(glob, &kind.to_string()))
                    .try_for_each(add)
            }
        }
    }

    /// Adds a place. If it cannot be probed, this is an error when the description names it alone;
    /// otherwise the place is counted as left out.
    fn add(&mut self, place: Place, can: Result<(), String>) -> Result<(), Error> {
        if self.places.len() >= PLACES_MAX {
            return Err(Error::TooMany(place));
        }
        match can {
            // The function never returns, so a pattern has nothing to leave out here.
            Ok(()) if place.sites.is_empty() && !self.is_one() => {}
            Ok(()) if place.sites.is_empty() => {
                let why = "the function never returns".to_owned();
                return Err(Error::Instruction { place, why });
            }
            Ok(()) => self.places.push(place),
            Err(why) if self.is_one() => return Err(Error::Instruction { place, why }),
            Err(_) => self.left_out += 1,
        }
        Ok(())
    }

    /// Whether both function and name are spelled out.
    fn is_one(&self) -> bool {
        let func = &self.pattern.func;
        (func == ADDRESS || !is_open(func)) && !is_open(&self.pattern.name)
    }

    fn read(&self, object: &Object) -> Result<Code, Error> {
        self.source.code(object).map_err(|error| Error::Object {
            module: object.name.clone(),
            error,
        })
    }
}
