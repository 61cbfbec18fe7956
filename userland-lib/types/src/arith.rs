// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Arithmetic types: C's promotions and conversions, and the compatibility of types.

use super::{Kind, Ty, Types, POINTER_SIZE};

/// Size and signedness of an integer type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IntType {
    /// Size in bytes.
    pub size: u8,
    /// Whether it is signed.
    pub signed: bool,
}

impl IntType {
    /// `int`
    pub const INT: Self = Self {
        size: 4,
        signed: true,
    };

    /// `long`
    pub const LONG: Self = Self {
        size: 8,
        signed: true,
    };

    /// Truncates a value to this type and extends it to 64 bits again.
    pub fn normalize(self, value: u64) -> u64 {
        let drop = 64 - u32::from(self.size.clamp(1, 8)) * 8;
        if self.signed {
            ((value << drop) as i64 >> drop) as u64
        } else {
            value << drop >> drop
        }
    }

    /// Returns the result of a computation in this type: unsigned types wrap, signed ones compute
    /// in 64 bits.
    pub fn wrap(self, value: u64) -> u64 {
        match self.signed {
            true => value,
            false => self.normalize(value),
        }
    }
}

impl Types<'_> {
    /// Returns the size and signedness of an integer or an enumeration.
    pub fn int(&self, ty: Ty) -> Option<IntType> {
        match self.base(ty) {
            Kind::Int { int, .. } => Some(*int),
            Kind::Enum(id) => Some(self.enums[id.0 as usize].int),
            // As after C's integer promotion, a type narrower than `int` counts as signed.
            Kind::Inferred(shown) => self.int(*shown).map(|shown| IntType {
                size: 8,
                signed: shown.signed || shown.size < IntType::INT.size,
            }),
            _ => None,
        }
    }

    /// Whether arrays of `ty` are text.
    pub fn is_char(&self, ty: Ty) -> bool {
        matches!(self.base(ty), Kind::Int { is_char: true, .. })
    }

    /// Whether `ty` is a pointer.
    pub fn is_pointer(&self, ty: Ty) -> bool {
        matches!(self.base(ty), Kind::Pointer { .. })
    }

    /// Returns the size in bytes of a floating-point type, if it has a format in which D computes.
    pub fn float(&self, ty: Ty) -> Option<u8> {
        match self.base(ty) {
            Kind::Float {
                size: size @ (4 | 8 | 16),
                ..
            } => Some(*size),
            _ => None,
        }
    }

    /// Whether `ty` is an integer or a floating-point number.
    pub fn is_number(&self, ty: Ty) -> bool {
        self.int(ty).is_some() || self.float(ty).is_some()
    }

    /// Whether `ty` is a number or a pointer.
    pub fn is_scalar(&self, ty: Ty) -> bool {
        self.is_number(ty) || self.is_pointer(ty)
    }

    /// Whether a register holds a value of type `ty` itself, not its address.
    pub fn fits_register(&self, ty: Ty) -> bool {
        self.is_scalar(ty)
            && self
                .float(ty)
                .is_none_or(|size| u64::from(size) <= POINTER_SIZE)
    }

    /// Whether `ty` is D's string.
    pub fn is_string(&self, ty: Ty) -> bool {
        matches!(self.base(ty), Kind::String)
    }

    /// Whether a value of type `ty` can be used as a string without conversion: strings, and arrays
    /// of and pointers to characters.
    pub fn is_string_like(&self, ty: Ty) -> bool {
        self.is_string(ty)
            || self
                .pointee(ty)
                .is_some_and(|element| self.is_char(element))
    }

    /// Whether the type `ty` is still unknown.
    pub fn is_dynamic(&self, ty: Ty) -> bool {
        matches!(self.base(ty), Kind::Dynamic)
    }

    /// Returns the type in which a single integer is computed: at least an `int`.
    pub fn promote(&self, ty: Ty) -> Ty {
        match self.int(ty) {
            Some(int) if int.size < 4 => Ty::INT,
            Some(int) if matches!(self.base(ty), Kind::Enum(_)) => of_shape(int),
            Some(int) if matches!(self.base(ty), Kind::Inferred(_)) => match int.signed {
                true => Ty::INFERRED_INT,
                false => Ty::INFERRED_UINT,
            },
            _ => ty,
        }
    }

    /// Returns the type of an undeclared integer variable that is assigned values of type `ty`.
    /// Returns `ty` itself if it is not an integer or already has 64 bits.
    pub fn inferred(&mut self, ty: Ty) -> Ty {
        match (self.base(ty), self.int(ty)) {
            (Kind::Inferred(_), _) | (_, None | Some(IntType { size: 8.., .. })) => ty,
            _ => self.enter(Kind::Inferred(ty)),
        }
    }

    /// Returns the type as which a value of type `ty` is shown.
    pub fn shown(&self, ty: Ty) -> Ty {
        match *self.base(ty) {
            Kind::Inferred(shown) => shown,
            _ => ty,
        }
    }

    /// Returns the integer type to which C's conversions bring values of both types. If the two
    /// differ, it is one of C's basic types.
    pub fn joined(&self, left: Ty, right: Ty) -> Option<Ty> {
        let (left, right) = (self.shown(left), self.shown(right));
        match self.int(left)? == self.int(right)? {
            true => Some(left),
            false => self.int(self.usual(left, right)?).map(of_shape),
        }
    }

    /// Returns the type in which two numbers are computed: the larger type, or the unsigned one of
    /// two equally large integers. Any floating-point type counts as larger than all integers. A
    /// result computed from an undeclared variable has 64 bits, as the variable has.
    pub fn usual(&self, left: Ty, right: Ty) -> Option<Ty> {
        let shown = (self.shown(left), self.shown(right));
        if shown != (left, right) {
            let usual = self.usual(shown.0, shown.1)?;
            return Some(match self.int(usual) {
                Some(int) if int.size < 8 && int.signed => Ty::INFERRED_INT,
                Some(int) if int.size < 8 => Ty::INFERRED_UINT,
                _ => usual,
            });
        }
        if self.is_number(left) && self.is_number(right) {
            match (self.float(left), self.float(right)) {
                (None, None) => {}
                (l, r) if l < r => return Some(self.resolve(right)),
                _ => return Some(self.resolve(left)),
            }
        }
        let (left, right) = (self.promote(left), self.promote(right));
        let (l, r) = (self.int(left)?, self.int(right)?);
        Some(match l.size.cmp(&r.size) {
            std::cmp::Ordering::Greater => left,
            std::cmp::Ordering::Less => right,
            std::cmp::Ordering::Equal if l.signed && !r.signed => right,
            std::cmp::Ordering::Equal => left,
        })
    }

    /// Returns the type of the result of an operation on two integers: the larger operand's type,
    /// or the unsigned one of two equally large. D does not promote this type to `int`; the
    /// operation itself is computed in the type that [`Types::usual`] returns.
    pub fn ranked(&self, left: Ty, right: Ty) -> Option<Ty> {
        let (l, r) = (self.int(left)?, self.int(right)?);
        if l.size.max(r.size) >= IntType::INT.size {
            return self.usual(left, right);
        }
        let rank = |int: IntType| (int.size, !int.signed);
        Some(match rank(l) < rank(r) {
            true => right,
            false => left,
        })
    }

    /// Whether two types are the same except for names and qualifiers, at every level.
    pub fn compatible(&self, left: Ty, right: Ty) -> bool {
        let (left, right) = (self.resolve(left), self.resolve(right));
        if left == right {
            return true;
        }
        match (self.kind(left), self.kind(right)) {
            (Kind::Pointer { to: l, .. }, Kind::Pointer { to: r, .. }) => self.compatible(*l, *r),
            (Kind::Array(l, a), Kind::Array(r, b)) => a == b && self.compatible(*l, *r),
            (Kind::Int { int: l, .. }, Kind::Int { int: r, .. }) => l == r,
            (Kind::Record(_), Kind::Record(_)) => {
                // The kernel and a module may each describe the same structure.
                let (l, r) = (self.tag(left), self.tag(right));
                l == r
                    && l.is_some_and(|(_, name)| !name.is_empty())
                    && self.size(left) == self.size(right)
            }
            (
                Kind::Function {
                    ret: l,
                    params: a,
                    variadic: v,
                },
                Kind::Function {
                    ret: r,
                    params: b,
                    variadic: w,
                },
            ) => {
                v == w
                    && self.compatible(*l, *r)
                    && a.len() == b.len()
                    && a.iter().zip(b.iter()).all(|(a, b)| self.compatible(*a, *b))
            }
            _ => false,
        }
    }

    /// Whether two pointers (or an array and a pointer) can be compared and assigned: they point to
    /// the same type, or one of them points to `void`.
    pub fn pointers_agree(&self, left: Ty, right: Ty) -> bool {
        match (self.pointee(left), self.pointee(right)) {
            (Some(l), Some(r)) => {
                let is_void = |ty| matches!(self.base(ty), Kind::Void);
                is_void(l) || is_void(r) || self.compatible(l, r)
            }
            _ => false,
        }
    }

    /// Whether a value of type `from` can be used where `to` is expected: a number for a number, a
    /// pointer for a pointer that agrees with it, a string or an array of characters for a string
    /// or a pointer to characters, and the same structure.
    pub fn assignable(&self, to: Ty, from: Ty) -> bool {
        if self.is_number(to) && self.is_number(from) {
            return true;
        }
        if self.is_string(to) {
            return self.is_string_like(from);
        }
        if self.is_pointer(to) {
            let text = self.is_string(from)
                && self
                    .pointee(to)
                    .is_some_and(|element| self.is_char(element));
            return text || self.pointers_agree(to, from);
        }
        self.compatible(to, from)
    }
}

/// Returns C's basic type of a shape that is at least an `int`'s.
fn of_shape(int: IntType) -> Ty {
    match (int.size > 4, int.signed) {
        (false, true) => Ty::INT,
        (false, false) => Ty::UINT,
        (true, true) => Ty::LONG,
        (true, false) => Ty::ULONG,
    }
}
