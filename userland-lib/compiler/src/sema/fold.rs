// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Arithmetic on constants, with the results that the DIF machine and C's types would give.

use crate::syntax::ast::BinaryOp;
use dtrace_types::IntType;

/// Computes `left op right` in the type `int`; `None` for a division by zero.
pub fn arith(op: BinaryOp, int: IntType, left: u64, right: u64) -> Option<u64> {
    let (sl, sr) = (left as i64, right as i64);
    let value = match op {
        BinaryOp::Mul => left.wrapping_mul(right),
        BinaryOp::Div | BinaryOp::Rem if right == 0 => return None,
        BinaryOp::Div if int.signed => sl.wrapping_div(sr) as u64,
        BinaryOp::Div => left / right,
        BinaryOp::Rem if int.signed => sl.wrapping_rem(sr) as u64,
        BinaryOp::Rem => left % right,
        BinaryOp::Add => left.wrapping_add(right),
        BinaryOp::Sub => left.wrapping_sub(right),
        BinaryOp::Shl => left.wrapping_shl(right as u32),
        BinaryOp::Shr if int.signed => sl.wrapping_shr(right as u32) as u64,
        BinaryOp::Shr => left.wrapping_shr(right as u32),
        BinaryOp::And => left & right,
        BinaryOp::Xor => left ^ right,
        BinaryOp::Or => left | right,
        _ => u64::from(compare(op, int.signed, left, right)),
    };
    Some(int.wrap(value))
}

/// Evaluates `left op right` for a comparison or a logical operator.
pub fn compare(op: BinaryOp, signed: bool, left: u64, right: u64) -> bool {
    let order = if signed {
        (left as i64).cmp(&(right as i64))
    } else {
        left.cmp(&right)
    };
    match op {
        BinaryOp::Lt => order.is_lt(),
        BinaryOp::Le => order.is_le(),
        BinaryOp::Gt => order.is_gt(),
        BinaryOp::Ge => order.is_ge(),
        BinaryOp::Eq => order.is_eq(),
        BinaryOp::Ne => order.is_ne(),
        BinaryOp::LogAnd => left != 0 && right != 0,
        BinaryOp::LogOr => left != 0 || right != 0,
        BinaryOp::LogXor => (left != 0) != (right != 0),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INT: IntType = IntType::INT;
    const UINT: IntType = IntType {
        size: 4,
        signed: false,
    };
    const LONG: IntType = IntType::LONG;

    #[test]
    fn types_cut_and_extend() {
        assert_eq!(INT.normalize(0xffff_ffff), u64::MAX);
        assert_eq!(UINT.normalize(u64::MAX), 0xffff_ffff);
        assert_eq!(arith(BinaryOp::Add, INT, i32::MAX as u64, 1), Some(1 << 31));
        assert_eq!(arith(BinaryOp::Sub, UINT, 0, 1), Some(0xffff_ffff));
    }

    #[test]
    fn division_keeps_the_sign_and_refuses_zero() {
        assert_eq!(
            arith(BinaryOp::Div, INT, -7i64 as u64, 2),
            Some(-3i64 as u64)
        );
        assert_eq!(
            arith(BinaryOp::Rem, INT, -7i64 as u64, 2),
            Some(-1i64 as u64)
        );
        assert_eq!(
            arith(BinaryOp::Div, LONG, i64::MIN as u64, u64::MAX),
            Some(i64::MIN as u64)
        );
        assert_eq!(arith(BinaryOp::Rem, UINT, 1, 0), None);
    }

    #[test]
    fn comparison_knows_signs() {
        assert!(compare(BinaryOp::Lt, true, u64::MAX, 0));
        assert!(!compare(BinaryOp::Lt, false, u64::MAX, 0));
        assert!(compare(BinaryOp::LogXor, false, 5, 0));
    }
}
