// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Arithmetic types: C's promotions and conversions, and which types go together.

use super::{Kind, Ty, Types, POINTER_SIZE};

/// Size and sign of an integer type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IntType {
    /// Bytes.
    pub size: u8,
    /// Whether it has a sign.
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
}

impl Types<'_> {
    /// Size and sign of an integer or an enumeration.
    pub fn int(&self, ty: Ty) -> Option<IntType> {
        match self.base(ty) {
            Kind::Int { int, .. } => Some(*int),
            Kind::Enum(id) => Some(self.enums[id.0 as usize].int),
            // As after C's promotion: a type narrower than `int` has become a signed one.
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

    /// Bytes of a floating-point number of a format that D computes in.
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

    /// Whether a register holds a value of type `ty`, and not its address.
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

    /// Whether a string can be made of a value of type `ty` as it stands: strings, arrays of and pointers to
    /// characters.
    pub fn is_string_like(&self, ty: Ty) -> bool {
        self.is_string(ty)
            || self
                .pointee(ty)
                .is_some_and(|element| self.is_char(element))
    }

    /// Whether nothing is known of `ty` yet.
    pub fn is_dynamic(&self, ty: Ty) -> bool {
        matches!(self.base(ty), Kind::Dynamic)
    }

    /// The type in which a single integer computes: at least an `int`.
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

    /// The type of an integer variable that nobody declared and that is given values of type `ty`; `ty` itself where that
    /// is no integer, or has 64 bits already.
    pub fn inferred(&mut self, ty: Ty) -> Ty {
        match (self.base(ty), self.int(ty)) {
            (Kind::Inferred(_), _) | (_, None | Some(IntType { size: 8.., .. })) => ty,
            _ => self.enter(Kind::Inferred(ty)),
        }
    }

    /// The type as which a value of type `ty` is shown.
    pub fn shown(&self, ty: Ty) -> Ty {
        match *self.base(ty) {
            Kind::Inferred(shown) => shown,
            _ => ty,
        }
    }

    /// The integer type that has the values of both as C's conversions make them: one of C's own where they differ.
    pub fn joined(&self, left: Ty, right: Ty) -> Option<Ty> {
        let (left, right) = (self.shown(left), self.shown(right));
        match self.int(left)? == self.int(right)? {
            true => Some(left),
            false => self.int(self.usual(left, right)?).map(of_shape),
        }
    }

    /// The type in which two numbers compute: the larger, and the unsigned of two equally large integers. Any
    /// floating-point type is larger than all integers. What is computed of an undeclared variable has 64 bits as that has.
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

    /// The type of what two integers give together: the larger of theirs, and the unsigned of two equally large. D has
    /// no promotion to `int` there; what is computed is computed in the type that [`Types::usual`] tells.
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

    /// Whether two types are the same but for names and qualifiers, at every level.
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
                // The kernel may have the same structure once for itself and once for a module.
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

    /// Whether two pointers (or an array and a pointer) can be compared and assigned: they point to the same type, or
    /// one of them to `void`.
    pub fn pointers_agree(&self, left: Ty, right: Ty) -> bool {
        match (self.pointee(left), self.pointee(right)) {
            (Some(l), Some(r)) => {
                let is_void = |ty| matches!(self.base(ty), Kind::Void);
                is_void(l) || is_void(r) || self.compatible(l, r)
            }
            _ => false,
        }
    }

    /// Whether a value of type `from` can be given where `to` is expected: numbers to numbers, pointers that agree,
    /// what strings are made of to strings, the same structure.
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

/// C's own type of a shape that is at least an `int`'s.
fn of_shape(int: IntType) -> Ty {
    match (int.size > 4, int.signed) {
        (false, true) => Ty::INT,
        (false, false) => Ty::UINT,
        (true, true) => Ty::LONG,
        (true, false) => Ty::ULONG,
    }
}
