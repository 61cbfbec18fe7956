// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! `tracemem()` whose size is computed when the probe fires.
//!
//! The record has room for the most that there may be. No more is read than was asked for, as the address may be good for no
//! more; the rest is zeros. The size is the datum of the action before, so the record has it already.

use super::fire::{in_action, write, Failed};
use super::price::spend;
use super::{Act, Datum, Field, Shape};
use crate::dif::env::Env;
use crate::machine::Machine;
use core::ops::Range;

/// Memory of which as much is recorded as the record says.
#[derive(Debug)]
pub struct Memory {
    /// The memory, and room for the most of it.
    field: Field,
    /// Where the record has the size.
    size: Range<usize>,
}

impl Memory {
    /// What `tracemem()` does that writes `field`; `size` is where the action before recorded how much of it, if it did.
    pub(super) fn act(field: Field, size: Option<Range<usize>>) -> Act {
        let bytes = matches!(
            field.datum,
            Datum::Expr {
                shape: Shape::Bytes | Shape::UserBytes,
                ..
            }
        );
        match size.filter(|_| bytes) {
            Some(size) => Act::Memory(Self { field, size }),
            None => Act::Record(field),
        }
    }

    /// The memory, as if all of it were asked for.
    pub(super) fn field(&self) -> &Field {
        &self.field
    }

    /// How many bytes are asked for.
    fn asked(&self, record: &[u8]) -> usize {
        let size = match record.get(self.size.clone()).unwrap_or(&[]) {
            [a] => u64::from(*a),
            [a, b] => u64::from(u16::from_ne_bytes([*a, *b])),
            [a, b, c, d] => u64::from(u32::from_ne_bytes([*a, *b, *c, *d])),
            word => word.first_chunk().map_or(0, |b| u64::from_ne_bytes(*b)),
        };
        usize::try_from(size).unwrap_or(usize::MAX)
    }

    /// Writes the memory to `record`, where its size is already.
    #[inline(never)]
    pub(super) fn write<M: Machine>(
        &self,
        record: &mut [u8],
        env: &mut Env<'_, M>,
    ) -> Result<(), Failed> {
        let Field {
            offset,
            size,
            action,
            ..
        } = self.field;
        let asked = self.asked(record).min(size);
        let room = record
            .get_mut(offset..offset.wrapping_add(size))
            .unwrap_or(&mut []);
        let Some((to, rest)) = room.split_at_mut_checked(asked) else {
            return Ok(());
        };
        spend(env, rest.len()).map_err(in_action(action))?;
        rest.fill(0);
        write(&self.field.datum, to, env).map_err(in_action(action))
    }
}
