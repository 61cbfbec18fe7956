// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! A program or library of a process with what its compiler has told of it.
//!
//! Files are read when somebody asks, each once.

use super::{named, Code, Object};
use crate::dwarf::{DebugInfo, Error, Prototype};
use crate::world::ProcessSource;
use std::cell::RefCell;
use std::collections::HashMap;
use std::path::PathBuf;
use std::rc::Rc;

/// Functions and types of a file.
pub struct Module {
    /// Functions.
    pub code: Code,
    /// Types.
    pub debug: Rc<DebugInfo>,
}

impl Module {
    /// What a function takes and returns; nothing, if nobody tells.
    pub fn prototype(&self, func: &str) -> Result<Option<Prototype>, Error> {
        match self.code.function(func) {
            Some(function) => self.debug.function(function.address),
            None => Ok(None),
        }
    }
}

/// The files that were read.
#[derive(Default)]
pub struct Modules {
    debug: RefCell<HashMap<PathBuf, Rc<DebugInfo>>>,
    modules: RefCell<HashMap<(u32, String), Rc<Module>>>,
}

impl Modules {
    /// The module of a process that is called so.
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
        let module = Rc::new(Module {
            debug: source.debug(object)?,
            code: source.code(object)?,
        });
        self.modules.borrow_mut().insert(key, module.clone());
        Ok(module)
    }

    /// What the compiler has told of a file.
    pub fn debug(&self, object: &Object) -> Result<Rc<DebugInfo>, Error> {
        if let Some(known) = self.debug.borrow().get(&object.file) {
            return Ok(known.clone());
        }
        let debug = Rc::new(DebugInfo::open(&object.file, &object.path)?);
        let mut all = self.debug.borrow_mut();
        all.insert(object.file.clone(), debug.clone());
        Ok(debug)
    }
}
