// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Where a value of a C type lies in recorded bytes, and the integer that it is. The record may end
//! before.

use dtrace_compiler::shape::Shape;

/// The position of a value in the recorded bytes.
#[derive(Clone, Copy, Default)]
pub struct Place {
    /// Offset of its first bit.
    pub bit: u64,
    /// Width of a bit-field, 0 for a plain value.
    pub bits: u32,
}

impl Place {
    /// Returns the place of a plain value so many bits behind this one.
    pub fn beyond(self, bits: u64) -> Self {
        Self {
            bit: self.bit.saturating_add(bits),
            bits: 0,
        }
    }

    /// Returns the recorded bytes from the first of the value on.
    pub fn rest(self, data: &[u8]) -> &[u8] {
        let start = usize::try_from(self.bit / 8).unwrap_or(usize::MAX);
        data.get(start..).unwrap_or_default()
    }

    /// Returns the integer, read as unsigned and as signed; `None` if it is wider than 64 bits, has
    /// none, or was not recorded.
    pub fn number(self, shape: &Shape, data: &[u8]) -> Option<(u64, i64)> {
        let width = match self.bits {
            0 => u32::try_from(shape.size.checked_mul(8)?).ok()?,
            bits => bits,
        };
        let value = integer(self.rest(data), (self.bit % 8) as u32, width)?;
        let unused = 64 - width;
        Some((value, (value << unused) as i64 >> unused))
    }

    /// Whether a value here is wider than any D integer.
    pub fn is_wide(self, shape: &Shape) -> bool {
        match self.bits {
            0 => shape.size > 8,
            bits => bits > 64,
        }
    }
}

/// Returns the name of an enumerator; `None` if the type has none of this value.
pub fn enumerator(items: &[(String, i64)], value: i64) -> Option<&str> {
    let mut items = items.iter();
    let (name, _) = items.find(|(_, constant)| *constant == value)?;
    Some(name)
}

/// Returns the `width` bits at bit offset `shift` of little-endian `data`; `None` if `width` is 0
/// or above 64, or beyond the end of `data`. `shift` must be less than 64.
fn integer(data: &[u8], shift: u32, width: u32) -> Option<u64> {
    if width == 0 || width > 64 {
        return None;
    }
    let size = (shift + width).div_ceil(8) as usize;
    let mut bytes = [0; 16];
    bytes[..size].copy_from_slice(data.get(..size)?);
    let value = (u128::from_le_bytes(bytes) >> shift) as u64;
    Some(value << (64 - width) >> (64 - width))
}
