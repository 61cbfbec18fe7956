// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only OR MIT

//! The flags, and how arithmetic changes them.
//!
//! Each function takes operands that are no wider than their size. It returns the result, no wider
//! either, and all flags after the operation. Flags that the manuals leave undefined keep their
//! values: the auxiliary carry of shifts, and the overflow flag of shifts by more than one.

use super::form::{Arithmetic, Condition, Shift, Size};

/// Carry.
pub const CF: u64 = 1;
/// Parity of the lowest byte.
pub const PF: u64 = 1 << 2;
/// Auxiliary carry: carry out of the lowest four bits.
pub const AF: u64 = 1 << 4;
/// Zero.
pub const ZF: u64 = 1 << 6;
/// Sign.
pub const SF: u64 = 1 << 7;
/// Trap.
pub const TF: u64 = 1 << 8;
/// Direction.
pub const DF: u64 = 1 << 10;
/// Overflow.
pub const OF: u64 = 1 << 11;
/// Nested task.
pub const NT: u64 = 1 << 14;
/// Alignment check.
pub const AC: u64 = 1 << 18;
/// Identification.
pub const ID: u64 = 1 << 21;

/// The flags that arithmetic changes.
pub const ARITHMETIC: u64 = CF | PF | AF | ZF | SF | OF;

fn only(flag: u64, when: bool) -> u64 {
    if when {
        flag
    } else {
        0
    }
}

/// The flags that depend on the result alone.
fn of_result(result: u64, size: Size) -> u64 {
    only(PF, (result as u8).count_ones() & 1 == 0)
        | only(ZF, result == 0)
        | only(SF, result & size.sign() != 0)
}

fn add(a: u64, b: u64, carry: u64, size: Size) -> (u64, u64) {
    let result = a.wrapping_add(b).wrapping_add(carry) & size.mask();
    let carries = a & b | (a | b) & !result;
    let flags = only(CF, carries & size.sign() != 0)
        | (a ^ b ^ result) & AF
        | only(OF, (a ^ result) & (b ^ result) & size.sign() != 0);
    (result, flags | of_result(result, size))
}

fn subtract(a: u64, b: u64, borrow: u64, size: Size) -> (u64, u64) {
    let result = a.wrapping_sub(b).wrapping_sub(borrow) & size.mask();
    let borrows = !a & b | (!a | b) & result;
    let flags = only(CF, borrows & size.sign() != 0)
        | (a ^ b ^ result) & AF
        | only(OF, (a ^ b) & (a ^ result) & size.sign() != 0);
    (result, flags | of_result(result, size))
}

/// Logical operations clear carry and overflow. All processors also clear the auxiliary carry,
/// which the manuals leave undefined.
fn logic(result: u64, size: Size) -> (u64, u64) {
    (result, of_result(result, size))
}

/// Combines `a` and `b`. Returns the result and the flags.
pub(super) fn arithmetic(
    operation: Arithmetic,
    a: u64,
    b: u64,
    size: Size,
    flags: u64,
) -> (u64, u64) {
    let (result, changed) = match operation {
        Arithmetic::Add => add(a, b, 0, size),
        Arithmetic::AddCarry => add(a, b, flags & CF, size),
        Arithmetic::Subtract | Arithmetic::Compare => subtract(a, b, 0, size),
        Arithmetic::SubtractBorrow => subtract(a, b, flags & CF, size),
        Arithmetic::Or => logic(a | b, size),
        Arithmetic::And => logic(a & b, size),
        Arithmetic::Xor => logic(a ^ b, size),
    };
    (result, flags & !ARITHMETIC | changed)
}

/// Increments `a`, or decrements it if `down` is set. The carry does not change.
pub(super) fn step(a: u64, down: bool, size: Size, flags: u64) -> (u64, u64) {
    let (result, changed) = match down {
        false => add(a, 1, 0, size),
        true => subtract(a, 1, 0, size),
    };
    (result, flags & !(ARITHMETIC ^ CF) | changed & !CF)
}

/// Shifts or rotates `a`. Uses the lowest five bits of the count, or six if operands are of 8
/// bytes.
pub(super) fn shift(operation: Shift, a: u64, count: u64, size: Size, flags: u64) -> (u64, u64) {
    let count = count as u32 & if size == Size::Quad { 63 } else { 31 };
    if count == 0 {
        return (a, flags);
    }
    let before = count.wrapping_sub(1);
    let wide = size.extend(a) as i64;
    let rotated = count & size.bits().wrapping_sub(1);
    let back = size.bits().wrapping_sub(rotated) & size.bits().wrapping_sub(1);
    let (result, carry) = match operation {
        Shift::Left => (
            a.wrapping_shl(count),
            a.wrapping_shl(before) & size.sign() != 0,
        ),
        Shift::Right => (a.wrapping_shr(count), a.wrapping_shr(before) & 1 != 0),
        Shift::Arithmetic => {
            let result = wide.wrapping_shr(count) as u64;
            (result, wide.wrapping_shr(before) & 1 != 0)
        }
        Shift::RotateLeft => {
            let result = a.wrapping_shl(rotated) | (a & size.mask()).wrapping_shr(back);
            (result, result & 1 != 0)
        }
        Shift::RotateRight => {
            let result = (a & size.mask()).wrapping_shr(rotated) | a.wrapping_shl(back);
            (result, result & size.sign() != 0)
        }
    };
    let result = result & size.mask();
    let top = result & size.sign() != 0;
    // Defined only for a count of 1.
    let overflow = match operation {
        Shift::Left | Shift::RotateLeft => top != carry,
        Shift::Right => a & size.sign() != 0,
        Shift::Arithmetic => false,
        Shift::RotateRight => top != (result.wrapping_shl(1) & size.sign() != 0),
    };
    let mut changed = only(CF, carry);
    let mut mask = CF;
    if count == 1 {
        changed |= only(OF, overflow);
        mask |= OF;
    }
    if !matches!(operation, Shift::RotateLeft | Shift::RotateRight) {
        changed |= of_result(result, size);
        mask |= PF | ZF | SF;
    }
    (result, flags & !mask | changed)
}

impl Condition {
    /// Whether the condition holds for these flags.
    pub(super) fn holds(self, flags: u64) -> bool {
        let has = |flag| flags & flag != 0;
        let less = has(SF) != has(OF);
        let holds = match self.0 >> 1 {
            0 => has(OF),
            1 => has(CF),
            2 => has(ZF),
            3 => has(CF) || has(ZF),
            4 => has(SF),
            5 => has(PF),
            6 => less,
            _ => less || has(ZF),
        };
        holds != (self.0 & 1 != 0)
    }
}
