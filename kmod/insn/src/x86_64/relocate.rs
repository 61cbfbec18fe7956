// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Moving an instruction to where there is no breakpoint.
//!
//! A slot holds the instruction and, behind it, a jump to where the program goes on: one exception, and nothing to do
//! afterwards. An instruction that reaches memory by the distance from itself gets the distance from the slot, so a slot lies
//! within 2 GiB of what it reaches. What jumps, calls or returns is not moved, as it can be done.
//!
//! The last x87 instruction's address, which `fnstenv` and `fxsave` store, is that of the slot; so is that in the siginfo of
//! an exception at a slot, until whoever owns the slot puts the program's in its place. `popf` with the trap flag traps one
//! instruction too early.

use super::insn::{put, Insn, Mode};
use super::refusal::{refusal, Refusal};
use super::Flow;

/// The most that [`Insn::relocate`] writes.
pub const SLOT: usize = 32;

/// Why an instruction cannot be moved to a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unmovable {
    /// It can have no probe at all.
    Refused(Refusal),
    /// It goes elsewhere than to the instruction behind it.
    Branches,
    /// The memory that it reaches by distance is further than 2 GiB from the slot.
    Distant,
    /// The slot is too small for it and a jump.
    Room,
}

impl Insn {
    /// Whether it can be executed somewhere else, if there is a place within reach of what it reaches.
    pub fn is_movable(&self) -> bool {
        refusal(self).is_none() && self.flow(0) == Flow::Next
    }

    /// Writes it, as it is to be executed at `slot` in place of `from`, and a jump to the instruction behind `from`. Says how
    /// many bytes that are.
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

    /// From the slot to what is reached from the program.
    fn distance(&self, from: u64, slot: u64) -> Option<i32> {
        let moved = (from as i64).wrapping_sub(slot as i64);
        if self.prefixes.address() {
            // The sum is cut to 32 bits.
            return Some(self.displacement.wrapping_add(moved as i32));
        }
        let distance = i64::from(self.displacement).checked_add(moved)?;
        i32::try_from(distance).ok()
    }
}

/// A jump from `at` to `to`.
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
            // By the address that lies behind the jump.
            let jump = put(out, &[0xff, 0x25, 0, 0, 0, 0])?;
            let address = put(out.get_mut(jump..)?, &to.to_le_bytes())?;
            jump.checked_add(address)
        }
    }
}
