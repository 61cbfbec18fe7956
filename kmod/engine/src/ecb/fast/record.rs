// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Clauses that only record values which cannot fault.

use super::execname;
use crate::buf::principal::Principal;
use crate::buf::{set_half, set_word};
use crate::dif::builtins::quick;
use crate::dif::env::At;
use crate::dif::program::{Program, Quick};
use crate::ecb::output::{begin, End};
use crate::ecb::{Act, Action, Datum, Field, Prepared, Shape};
use crate::error::NoMem;
use crate::machine::{BadAddr, Machine};
use crate::mem::Vec;
use dtrace_uapi::var::Var;

/// A value that cannot fault, and takes no memory on its way to a record or a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// The name of the process.
    Execname,
    /// A variable in eight bytes.
    Word(Quick),
    /// A variable in four bytes.
    Half(Quick),
}

/// Such a value and its offset from the beginning of the record or of the entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Placed {
    pub value: Value,
    pub offset: usize,
}

impl Placed {
    /// Returns the value that `field` is, if it is one.
    pub fn of(field: &Field) -> Option<Self> {
        let Datum::Expr { program, shape } = &field.datum else {
            return None;
        };
        let value = match (program, shape) {
            (Program::Quick(var), Shape::Value(8)) => Value::Word(*var),
            (Program::Quick(var), Shape::Value(4)) => Value::Half(*var),
            (
                Program::Builtin {
                    var: Var::Execname, ..
                },
                Shape::String,
            ) if field.size >= execname::SIZE => Value::Execname,
            _ => return None,
        };
        Some(Self {
            value,
            offset: field.offset,
        })
    }

    /// Writes it to its place in the record at `base`.
    #[inline(always)]
    fn write<M: Machine>(&self, mem: &mut [u8], base: usize, m: &M, at: At) -> Result<(), BadAddr> {
        let place = base.wrapping_add(self.offset);
        match self.value {
            Value::Execname => {
                execname::write(mem.get_mut(place..).unwrap_or(&mut []), m);
            }
            Value::Word(var) => set_word(mem, place, quick(m, at, var)?),
            Value::Half(var) => set_half(mem, place, quick(m, at, var)? as u32),
        }
        Ok(())
    }
}

/// Values that cannot fault, which are all that a clause records.
#[derive(Debug)]
pub struct Values(Vec<Placed>);

impl Values {
    /// Returns the values that `actions` record, if they do nothing else.
    pub fn of(actions: &[Action]) -> Result<Option<Self>, NoMem> {
        let mut values = Vec::new();
        for action in actions {
            let value = match &action.act {
                Act::Record(field) => Placed::of(field),
                Act::Nothing => continue,
                _ => None,
            };
            match value {
                Some(value) => values.push(value)?,
                None => return Ok(None),
            }
        }
        Ok(Some(Self(values)))
    }

    /// Writes them to the record at `base`.
    #[inline(always)]
    pub fn write<M: Machine>(
        &self,
        mem: &mut [u8],
        base: usize,
        m: &M,
        at: At,
    ) -> Result<(), BadAddr> {
        self.0
            .iter()
            .try_for_each(|value| value.write(mem, base, m, at))
    }
}

/// Records `values`, which is all that the clause does. If an argument cannot be loaded, there is
/// no record.
#[inline(always)]
pub fn record<M: Machine>(
    clause: &Prepared,
    values: &Values,
    m: &M,
    at: At,
    principal: &mut Principal,
    last: bool,
    size_at: impl Fn(&[u8]) -> usize,
) -> Result<End, BadAddr> {
    let Some(room) = begin(clause, m, at, principal, last, size_at) else {
        return Ok(End::Dropped);
    };
    values.write(principal.bytes(), room.at, m, at)?;
    principal.commit(room);
    Ok(End::Done)
}
