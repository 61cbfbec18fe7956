// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Prototypes of functions and tracepoints.
//!
//! Functions have records of their own. A tracepoint `x` has none, but for each one the kernel
//! declares the type of its callbacks, `btf_trace_x`: a pointer to a function. The first parameter
//! of that function is private data of the callback; the others are the arguments of the
//! tracepoint. The type does not name its parameters, but the function `__probestub_x` does, unless
//! the compiler has removed it.

use super::{Btf, Kind, Malformed, Proto, Type, TypeId};

/// A function.
#[derive(Clone, Copy, Debug)]
pub struct Function<'a> {
    /// Its number.
    pub id: TypeId,
    /// Its name.
    pub name: &'a str,
    /// Its parameters and return type.
    pub proto: Proto<'a>,
}

impl Btf {
    /// Returns the function of this name.
    pub fn function(&self, name: &str) -> Result<Option<Function<'_>>, Malformed> {
        match self.find(name, Kind::Func)? {
            Some(id) => self.function_at(id).map(Some),
            None => Ok(None),
        }
    }

    /// Returns the function of this number.
    pub fn function_at(&self, id: TypeId) -> Result<Function<'_>, Malformed> {
        let Type::Func { name, proto } = self.get(id)? else {
            return Err(Malformed::Expected(id, "a function"));
        };
        Ok(Function {
            id,
            name,
            proto: self.prototype(proto)?,
        })
    }

    /// Returns the arguments that the tracepoint of this name passes to its callbacks.
    pub fn tracepoint(&self, name: &str) -> Result<Option<Proto<'_>>, Malformed> {
        let Some(id) = self.find(&format!("btf_trace_{name}"), Kind::Typedef)? else {
            return Ok(None);
        };
        let Type::Ptr(target) = self.get(self.resolve(id)?)? else {
            return Err(Malformed::Expected(id, "a pointer to a function"));
        };
        let proto = self.prototype(target)?;
        let named = self
            .function(&format!("__probestub_{name}"))?
            .map(|stub| stub.proto)
            .filter(|stub| stub.params().map(|p| p.ty).eq(proto.params().map(|p| p.ty)));
        Ok(Some(named.unwrap_or(proto).skip(1)))
    }

    /// Returns the type of the variable of this name.
    pub fn variable(&self, name: &str) -> Result<Option<TypeId>, Malformed> {
        let Some(id) = self.find(name, Kind::Var)? else {
            return Ok(None);
        };
        match self.get(id)? {
            Type::Var { ty, .. } => Ok(Some(ty)),
            _ => Err(Malformed::Expected(id, "a variable")),
        }
    }

    fn prototype(&self, id: TypeId) -> Result<Proto<'_>, Malformed> {
        match self.get(self.resolve(id)?)? {
            Type::FuncProto(proto) => Ok(proto),
            _ => Err(Malformed::Expected(id, "a prototype")),
        }
    }
}
