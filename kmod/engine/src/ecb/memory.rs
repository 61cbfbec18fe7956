// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! `tracemem()` with a size that is computed when the probe fires.
//!
//! The record has room for the maximum size. No more is read than was requested, because no more
//! may be readable at the address; the rest is zeros. The size is the datum of the action before,
//! so it is in the record already.

use super::fire::write;
use super::output::{in_action, Failed};
use super::price::spend;
use super::{Act, Datum, Field, Shape};
use crate::dif::env::Env;
use crate::machine::Machine;
use core::ops::Range;

/// Memory of which as much is recorded as the record says.
#[derive(Debug)]
pub struct Memory {
    /// The memory, and room for its maximum size.
    field: Field,
    /// The range of the record that has the size.
    size: Range<usize>,
}

impl Memory {
    /// Returns the action of a `tracemem()` that writes `field`. `size` is the range in which the
    /// action before recorded how much of it, if it did.
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

    /// Returns the memory, as if its maximum size were requested.
    pub(super) fn field(&self) -> &Field {
        &self.field
    }

    /// Returns the number of bytes that are requested.
    fn asked(&self, record: &[u8]) -> usize {
        let size = match record.get(self.size.clone()).unwrap_or(&[]) {
            [a] => u64::from(*a),
            [a, b] => u64::from(u16::from_ne_bytes([*a, *b])),
            [a, b, c, d] => u64::from(u32::from_ne_bytes([*a, *b, *c, *d])),
            word => word.first_chunk().map_or(0, |b| u64::from_ne_bytes(*b)),
        };
        usize::try_from(size).unwrap_or(usize::MAX)
    }

    /// Writes the memory to `record`, which has its size already.
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
