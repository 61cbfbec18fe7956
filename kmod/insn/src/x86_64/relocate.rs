// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only OR MIT

//! Relocation of an instruction to a slot, where there is no breakpoint.
//!
//! A slot holds the instruction and, behind it, a jump to the next instruction of the program. So
//! one exception is enough, and nothing has to be done afterwards. The displacement of an
//! instruction that addresses memory relative to itself is adjusted, so the slot must be within 2
//! GiB of that memory. Branches, calls and returns are not relocated, because they are emulated.
//!
//! Three differences remain visible. `fnstenv` and `fxsave` store the slot's address as that of the
//! last x87 instruction. The siginfo of an exception in a slot has the slot's address, until the
//! owner of the slot replaces it. `popf` that sets the trap flag traps one instruction too early,
//! after the jump.

use super::insn::{put, Insn, Mode};
use super::refusal::{refusal, Refusal};
use super::Flow;

/// The most bytes that [`Insn::relocate`] writes.
pub const SLOT: usize = 32;

/// Why an instruction cannot be relocated to a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unmovable {
    /// It can have no probe at all.
    Refused(Refusal),
    /// It may continue elsewhere than at the next instruction.
    Branches,
    /// The memory that it addresses relative to itself is more than 2 GiB away from the slot.
    Distant,
    /// The output is too small for the instruction and the jump.
    Room,
}

impl Insn {
    /// Whether it can be executed in a slot, if there is one within reach of its memory operand.
    pub fn is_movable(&self) -> bool {
        refusal(self).is_none() && self.flow(0) == Flow::Next
    }

    /// Writes the bytes of a slot at the address `slot` that stands for the instruction at `from`:
    /// the instruction with its displacement adjusted, and a jump to the instruction after `from`.
    /// Returns their number.
    pub fn relocate(&self, from: u64, slot: u64, out: &mut [u8]) -> Result<usize, Unmovable> {
        if let Some(refusal) = refusal(self) {
            return Err(Unmovable::Refused(refusal));
        }
        if self.flow(from) != Flow::Next {
            return Err(Unmovable::Branches);
        }
        let length = usize::from(self.length);
        put(out, self.bytes()).ok_or(Unmovable::Room)?;
        if self.is_ip_relative() {
            let distance = self.distance(from, slot).ok_or(Unmovable::Distant)?;
            let field = out.get_mut(usize::from(self.displacement_at)..);
            let field = field.ok_or(Unmovable::Room)?;
            put(field, &distance.to_le_bytes()).ok_or(Unmovable::Room)?;
        }
        let behind = slot.wrapping_add(u64::from(self.length));
        let rest = out.get_mut(length..).ok_or(Unmovable::Room)?;
        let jump = jump(self.mode, behind, self.next(from), rest).ok_or(Unmovable::Room)?;
        Ok(length.wrapping_add(jump))
    }

    /// The displacement in the slot that addresses the same memory.
    fn distance(&self, from: u64, slot: u64) -> Option<i32> {
        let moved = (from as i64).wrapping_sub(slot as i64);
        if self.prefixes.address() {
            // With an address-size prefix the sum is truncated to 32 bits, so any distance is
            // within reach.
            return Some(self.displacement.wrapping_add(moved as i32));
        }
        let distance = i64::from(self.displacement).checked_add(moved)?;
        i32::try_from(distance).ok()
    }
}

/// Writes a jump from `at` to `to` and returns its length.
fn jump(mode: Mode, at: u64, to: u64, out: &mut [u8]) -> Option<usize> {
    let distance = to.wrapping_sub(at.wrapping_add(5)) as i64;
    let near = match mode {
        Mode::Long => i32::try_from(distance).ok(),
        Mode::Compatible => Some(distance as i32),
    };
    match near {
        Some(distance) => {
            let [a, b, c, d] = distance.to_le_bytes();
            put(out, &[0xe9, a, b, c, d])
        }
        None => {
            // An indirect jump through the address that is stored behind it.
            let jump = put(out, &[0xff, 0x25, 0, 0, 0, 0])?;
            let address = put(out.get_mut(jump..)?, &to.to_le_bytes())?;
            jump.checked_add(address)
        }
    }
}
