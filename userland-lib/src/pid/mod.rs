// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Probes in processes: what a description of the provider `pidN` names.
//!
//! People write names, `pid123:libc:malloc:entry`; a probe in a process is a [`Place`], an offset in a file that the process
//! has mapped. Only the library can tell one from the other, because it takes the symbols of those files. So such a
//! description is resolved before the kernel is asked for its probes, and becomes the one that the probes are called by:
//! with the object's own name for a part of it, and of several names of a function the one that the linker prefers.
//!
//! Parts that are empty or globs name what there is, perhaps nothing. One that is spelled out and is not there is an
//! [`Error`], but for the module, which the process may map later. The function `-` is the whole program as its file has it:
//! there the probe's name is an address. `FILE.c@120` instead of a function is a source line; there too.
//!
//! Invariant: a place is the first byte of an instruction of the program. A breakpoint anywhere else would make the process go
//! wrong. An address outside of all functions, where nobody can tell, is taken as it is given.

mod code;
mod error;
#[cfg(test)]
mod file_tests;
mod lines;
mod linker;
mod module;
#[cfg(test)]
mod module_tests;
mod process;
mod request;
mod sites;
#[cfg(test)]
mod tests;
mod wild;

pub use crate::arch::Instructions;
pub use crate::elf::{Binding, Function};
pub use code::{Code, Text};
pub use error::Error;
pub use linker::tells_at;
pub use module::{Module, Modules, Told};
pub use process::{bare, code, objects, FILE_MAX};
pub use request::{parts, Request};
pub use wild::{all_named, processes};

use crate::diag::nearest;
use crate::world::{ProbePattern, ProcessSource};
use dtrace_uapi::glob;
use lines::Line;
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::rc::Rc;

/// What all providers of this kind are called, before the number of the process.
pub const PROVIDER: &str = "pid";
/// The program, whatever its file is called.
pub(crate) const PROGRAM: &str = "a.out";
/// The kernel's code that it maps into each process.
pub(crate) const VDSO: &str = "vdso";
/// Code that a process has made, or copied to where no file is.
pub(crate) const MADE: &str = "anon";
/// Instead of a function: the probe's name is an address.
const ADDRESS: &str = "-";
/// Places of one description: more than a consumer may have, unless the administrator has raised that, and no more than there is memory for.
const PLACES_MAX: usize = 1 << 20;

/// A file that a process runs code of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// Its name without folders: the module of its probes.
    pub name: String,
    /// Where the process sees it.
    pub path: String,
    /// Where it can be opened, even if it was replaced or deleted since.
    pub file: PathBuf,
    /// It is what the process has executed; all others are libraries.
    pub is_program: bool,
    /// Where the process has its code.
    pub code: Vec<CodeMapping>,
}

/// A part of a file's code that a process has mapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeMapping {
    /// Its addresses in the process.
    pub range: Range<u64>,
    /// Where it begins in the file.
    pub offset: u64,
}

impl Object {
    /// Whether it is a file; all else has a path in brackets.
    pub fn is_file(&self) -> bool {
        !self.path.starts_with('[')
    }

    /// Where the process has the byte of the file at `offset`.
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
    /// When it returns.
    Return,
    /// Before the instruction that is so far from its beginning is executed.
    Offset(u64),
}

/// The name of the probe.
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
    /// The file.
    pub object: Rc<Object>,
    /// The function.
    pub func: Rc<str>,
    /// Where in the file: the function's beginning, or the instruction.
    pub offset: u64,
    /// When it fires.
    pub kind: Kind,
    /// Where in the file the function begins, and its size; nothing of an instruction that is named by its address or its line.
    pub function: Range<u64>,
    /// Where in the file the instructions are that it fires at.
    pub sites: Vec<u64>,
}

/// What a description names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// The description in the words that the probes are called by.
    pub pattern: ProbePattern,
    /// The process.
    pub pid: u32,
    /// The probes.
    pub places: Vec<Place>,
    /// How many more it would name at instructions that cannot be probed, which it does not spell out.
    pub left_out: usize,
    /// What was looked at.
    pub objects: Vec<Object>,
}

impl ProbePattern {
    /// The same of another provider.
    #[must_use]
    pub fn of_provider(&self, provider: String) -> Self {
        Self {
            provider,
            ..self.clone()
        }
    }

    /// Whether what another object that the process maps has may be named.
    pub fn may_name_more(&self) -> bool {
        self.func != ADDRESS && self.module != PROGRAM
    }

    /// Whether probes of a provider may be described.
    pub fn is_of(&self, provider: &str) -> bool {
        fits(&self.provider, provider)
    }

    /// Whether a probe of these names is described.
    pub fn describes(&self, parts: [&str; 4]) -> bool {
        let own = [&self.provider, &self.module, &self.func, &self.name];
        own.into_iter()
            .zip(parts)
            .all(|(own, part)| fits(own, part))
    }
}

/// What the provider of a process' probes is called.
pub fn provider_of(pid: u32) -> String {
    format!("{PROVIDER}{pid}")
}

/// What a probe's name asks for.
enum Wanted<'p> {
    One(Kind),
    Glob(&'p str),
}

/// A description of probes in a process, for what the process maps later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// The process.
    pub pid: u32,
    /// The description as it was written, of this process.
    pub written: ProbePattern,
    /// The one that its clause was enabled for.
    pub enabled: ProbePattern,
    /// What the program enabled it for. Of a child, what it enabled for the parent, or for the parent's parent, and so on.
    pub origin: ProbePattern,
    /// The process is traced because its parent is.
    pub is_child: bool,
    /// What has been looked at for it.
    pub objects: Vec<Object>,
}

/// The probes that `pattern` names in a process; `None` if its provider is of another kind.
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

/// The probes that `pattern` names in these objects of the process `pid`.
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
    // What is in no file is meant by its name alone.
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

/// The process that a provider is called after.
pub(crate) fn process_of(provider: &str) -> Result<Option<u32>, Error> {
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

/// Whether a part of a description names whatever is there.
pub(crate) fn is_open(part: &str) -> bool {
    part.is_empty() || glob::is_glob(part.as_bytes())
}

pub(crate) fn fits(part: &str, text: &str) -> bool {
    part.is_empty() || glob::matches(part.as_bytes(), text.as_bytes())
}

/// What compilers put behind a dot of the name of what they have made of a function, before a number.
const NUMBERED: [&str; 6] = ["clone", "constprop", "isra", "llvm", "lto_priv", "part"];
/// The same, with or without one.
const BARE: [&str; 2] = ["cold", "localalias"];

/// Whether a compiler has made this of a function. Dots are otherwise in names as languages spell them: `main.run` in Go.
pub(crate) fn is_part(name: &str) -> bool {
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

/// The object that a module's name means: the file's own, its path, or the name up to a dot (`libc` for `libc.so.6`).
pub(crate) fn named<'o>(objects: &'o [Object], module: &str) -> Option<&'o Object> {
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

/// The objects that `pattern` names and that are not among those that were looked at for it, if any were.
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

/// `pattern` with the names of the probes at `places`, as far as they share them.
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

/// The looking up of one description.
struct Search<'s, S: ?Sized> {
    source: &'s S,
    pattern: &'s ProbePattern,
    places: Vec<Place>,
    left_out: usize,
}

impl<S: ProcessSource + ?Sized> Search<'_, S> {
    /// Takes the probe's name for an address of the program.
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
            // The kernel alone knows the instruction, and says why there can be no probe.
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

    /// Looks for functions in the objects that the module names.
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
                // A glob need not mean it.
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

    /// Adds the probes of one function that are asked for.
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

    /// Adds a place that can be probed. One that cannot is an error where it is all that is asked for.
    fn add(&mut self, place: Place, can: Result<(), String>) -> Result<(), Error> {
        if self.places.len() >= PLACES_MAX {
            return Err(Error::TooMany(place));
        }
        match can {
            // There is nothing that a pattern would leave out.
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

    /// Whether the description spells out function and name.
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
