// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! A program or library of a process, with its functions and types.
//!
//! Each file is read once, when it is first needed.

use super::{named, Code, Object};
use crate::processes::ProcessSource;
use dtrace_files::ctf::Ctf;
use dtrace_files::dwarf::{DebugInfo, Error, Member, Prototype, Tag, Type, TypeId};
use std::cell::RefCell;
use std::collections::HashMap;
use std::path::PathBuf;
use std::rc::Rc;

/// A source of types. Each source has its own type ids.
pub trait Told {
    /// Returns the prototype of the function that begins at `address` (in the file's numbering).
    fn function(&self, address: u64) -> Result<Option<Prototype>, Error>;
    /// Returns the type of this name.
    fn named(&self, tag: Tag, name: &str) -> Option<TypeId>;
    /// Returns the type that a declaration stands for; for any other type, `id` itself.
    fn defined(&self, id: TypeId) -> TypeId;
    /// Returns the type of an id.
    fn ty(&self, id: TypeId) -> Result<Type, Error>;
    /// Returns the members of a structure or union.
    fn members(&self, id: TypeId) -> Result<Vec<Member>, Error>;
}

impl Told for DebugInfo {
    fn function(&self, address: u64) -> Result<Option<Prototype>, Error> {
        self.function(address)
    }

    fn named(&self, tag: Tag, name: &str) -> Option<TypeId> {
        self.named(tag, name)
    }

    fn defined(&self, id: TypeId) -> TypeId {
        self.defined(id)
    }

    fn ty(&self, id: TypeId) -> Result<Type, Error> {
        self.ty(id)
    }

    fn members(&self, id: TypeId) -> Result<Vec<Member>, Error> {
        self.members(id)
    }
}

impl Told for Ctf {
    fn function(&self, address: u64) -> Result<Option<Prototype>, Error> {
        Ok(self.function(address))
    }

    fn named(&self, tag: Tag, name: &str) -> Option<TypeId> {
        self.named(tag, name)
    }

    fn defined(&self, id: TypeId) -> TypeId {
        id
    }

    fn ty(&self, id: TypeId) -> Result<Type, Error> {
        self.ty(id)
    }

    fn members(&self, id: TypeId) -> Result<Vec<Member>, Error> {
        self.members(id)
    }
}

/// A function's prototype and the source that has it.
pub type Known<'m> = (&'m Rc<dyn Told>, Prototype);

/// Functions and types of a file.
pub struct Module {
    /// Functions.
    pub code: Code,
    /// Sources of types, at least one. An earlier one takes precedence.
    pub told: Vec<Rc<dyn Told>>,
}

impl Module {
    /// Returns the prototype of a function and its source, or `None` if no source has it.
    pub fn prototype(&self, func: &str) -> Result<Option<Known<'_>>, Error> {
        let Some(function) = self.code.function(func) else {
            return Ok(None);
        };
        let mut trouble = None;
        for told in &self.told {
            match told.function(function.address) {
                Ok(Some(found)) => return Ok(Some((told, found))),
                Ok(None) => {}
                Err(why) => trouble = trouble.or(Some(why)),
            }
        }
        trouble.map_or(Ok(None), Err)
    }

    /// Returns the type of this name in the first of these name spaces that has it, and its source.
    pub fn named(&self, tags: &[Tag], name: &str) -> Option<(&Rc<dyn Told>, TypeId)> {
        let mut found = self.told.iter().flat_map(|told| {
            let ids = tags.iter().filter_map(|tag| told.named(*tag, name));
            ids.map(move |id| (told, id))
        });
        found.next()
    }
}

type MaybeCtf = Option<Rc<Ctf>>;

/// Cache of the files that were read.
#[derive(Default)]
pub struct Modules {
    debug: RefCell<HashMap<PathBuf, Rc<DebugInfo>>>,
    /// By file, and whether its separate debug file was searched too.
    ctf: RefCell<HashMap<(PathBuf, bool), MaybeCtf>>,
    modules: RefCell<HashMap<(u32, String), Rc<Module>>>,
}

impl Modules {
    /// Returns the module `name` of a process.
    pub fn get<S: ProcessSource + ?Sized>(
        &self,
        source: &S,
        pid: u32,
        name: &str,
    ) -> Result<Rc<Module>, Error> {
        let key = (pid, name.to_owned());
        if let Some(known) = self.modules.borrow().get(&key) {
            return Ok(known.clone());
        }
        let objects = source.objects(pid)?;
        let object = named(&objects, name).ok_or(Error::Module)?;
        let debug = source.debug(object).and_then(|debug| {
            debug.whole()?;
            Ok(debug)
        });
        let mut told: Vec<Rc<dyn Told>> = Vec::new();
        let ctf = source.ctf(object, debug.is_err());
        told.extend(ctf.map(|ctf| ctf as Rc<dyn Told>));
        match debug {
            Ok(debug) => told.insert(0, debug),
            Err(why) if told.is_empty() => return Err(why),
            Err(_) => {}
        }
        let module = Rc::new(Module {
            code: source.code(object)?,
            told,
        });
        self.modules.borrow_mut().insert(key, module.clone());
        Ok(module)
    }

    /// Returns the DWARF of an object.
    pub fn debug(&self, object: &Object) -> Result<Rc<DebugInfo>, Error> {
        if let Some(known) = self.debug.borrow().get(&object.file) {
            return Ok(known.clone());
        }
        let debug = Rc::new(DebugInfo::open(&object.file, &object.path)?);
        let mut all = self.debug.borrow_mut();
        all.insert(object.file.clone(), debug.clone());
        Ok(debug)
    }

    /// Returns the CTF of an object, from its own file or, with `apart`, also from its separate
    /// debug file.
    pub fn ctf(&self, object: &Object, apart: bool) -> Option<Rc<Ctf>> {
        let mut all = self.ctf.borrow_mut();
        let known = all.entry((object.file.clone(), apart));
        let apart = apart.then_some(&*object.path);
        let open = || Ctf::open(&object.file, apart).ok().map(Rc::new);
        known.or_insert_with(open).clone()
    }
}
