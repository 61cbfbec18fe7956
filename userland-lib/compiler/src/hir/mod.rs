// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The typed tree: every name is resolved, every conversion is explicit and every constant
//! expression is folded.
//!
//! A value is what a DIF register holds: an integer, sign- or zero-extended as its type says (the
//! result of signed arithmetic may have more bits than its type until it is stored or converted); a
//! `float` or `double` as it lies in memory; a pointer; or, for strings, records, arrays and
//! `long double` ("objects"), the address of the bytes. [`Expr::user`] says whether the address of
//! an object is a user-space address.
//!
//! Invariant: the tree is well typed. Code generation from it can fail only because a table of the
//! DIF object is full.

pub mod program;
pub mod text;

pub use program::{Action, Clause, Code, Program, Purpose};

use crate::source::Span;
use crate::syntax::ast::BinaryOp;
use dtrace_types::Ty;
use dtrace_uapi::subr::Subr;
use dtrace_uapi::var::Var;

/// A typed expression.
#[derive(Clone, Debug)]
pub struct Expr {
    /// The operation.
    pub kind: ExprKind,
    /// Type of the value.
    pub ty: Ty,
    /// For an object, whether its address is in user space.
    pub user: bool,
    /// Place in the source.
    pub span: Span,
}

/// Scope of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VarScope {
    /// Global: written without a prefix.
    Global,
    /// `self->`
    Thread,
    /// `this->`
    Clause,
}

/// A variable of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VarRef {
    /// Name without the prefix of its scope.
    pub name: String,
    /// Scope.
    pub scope: VarScope,
    /// Number among the variables of its scope.
    pub id: u16,
    /// Type of its value, or of its elements.
    pub ty: Ty,
    /// Whether it is an associative array.
    pub keyed: bool,
}

impl VarRef {
    /// Returns the variable as a program writes it, with the prefix of its scope.
    pub fn shown(&self) -> String {
        let scope = match self.scope {
            VarScope::Global => "",
            VarScope::Thread => "self->",
            VarScope::Clause => "this->",
        };
        format!("{scope}{}", self.name)
    }
}

/// A bit-field in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bits {
    /// Size in bytes of the word that holds the field.
    pub word: u8,
    /// Lowest bit of the field in the word.
    pub shift: u8,
    /// Width in bits.
    pub width: u8,
    /// Whether the field is signed.
    pub signed: bool,
}

/// Target of an assignment.
#[derive(Clone, Debug)]
pub enum Place {
    /// A variable.
    Var(VarRef),
    /// An element of an associative array.
    Element(VarRef, Vec<Expr>),
    /// Memory at an address: scratch memory or the storage of a variable. Stores to other kernel
    /// memory are refused at run time.
    Memory {
        /// The address.
        address: Box<Expr>,
        /// The bits, if the target is a bit-field.
        bits: Option<Bits>,
    },
}

impl Place {
    /// Whether the target is a dynamic variable: a thread-local variable or an element of an
    /// associative array.
    pub fn is_dynamic(&self) -> bool {
        match self {
            Self::Var(var) => var.scope == VarScope::Thread,
            Self::Element(..) => true,
            Self::Memory { .. } => false,
        }
    }
}

/// Kinds of typed expressions.
#[derive(Clone, Debug)]
pub enum ExprKind {
    /// An integer or pointer constant.
    Int(u64),
    /// A floating-point constant, already rounded to the type of the expression.
    Float(f64),
    /// A string constant.
    Str(Vec<u8>),
    /// A built-in variable.
    Builtin(Var),
    /// An element of a built-in array.
    BuiltinArray(Var, Box<Expr>),
    /// A variable's value.
    Var(VarRef),
    /// An element of an associative array.
    Element(VarRef, Vec<Expr>),
    /// The scalar at an address.
    Load {
        /// The address.
        address: Box<Expr>,
        /// Whether the address is in user space.
        user: bool,
    },
    /// The bit-field at an address.
    LoadBits {
        /// Address of the word.
        address: Box<Expr>,
        /// The bits.
        bits: Bits,
        /// Whether the address is in user space.
        user: bool,
    },
    /// The same register value under another type.
    Retype(Box<Expr>),
    /// A value seen through a translator: the register of the input under the type of the output.
    /// Reading a member replaces this node by the translator's expression for that member.
    Translated {
        /// Index of the translator.
        translator: usize,
        /// The value that the translator reads.
        input: Box<Expr>,
    },
    /// An integer truncated or extended to the type of the expression, or a number converted
    /// between integers and floating-point types or between floating-point types.
    Convert(Box<Expr>),
    /// `-e`
    Neg(Box<Expr>),
    /// `~e`
    BitNot(Box<Expr>),
    /// `!e`
    Not(Box<Expr>),
    /// Arithmetic. The type of the expression determines the signedness.
    Arith(BinaryOp, Box<Expr>, Box<Expr>),
    /// Comparison of integers or pointers.
    Compare {
        /// The operator.
        op: BinaryOp,
        /// Whether the operands are compared as signed numbers.
        signed: bool,
        /// The left operand.
        left: Box<Expr>,
        /// The right operand.
        right: Box<Expr>,
    },
    /// Comparison of floating-point numbers of one type. The operator is never `!=`.
    CompareFloat(BinaryOp, Box<Expr>, Box<Expr>),
    /// Comparison of strings.
    CompareStr(BinaryOp, Box<Expr>, Box<Expr>),
    /// `&&`, `||`, `^^`
    Logic(BinaryOp, Box<Expr>, Box<Expr>),
    /// `c ? a : b`
    Cond(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `a, b`
    Comma(Box<Expr>, Box<Expr>),
    /// `while (c) e`, whose value is 0.
    While(Box<Expr>, Box<Expr>),
    /// `place = value`
    Assign(Place, Box<Expr>),
    /// `place op= value`, `place++`, `++place`, `place--` and `--place`. The place is evaluated
    /// once.
    Update {
        /// The place.
        place: Place,
        /// The operator.
        op: BinaryOp,
        /// Type in which the operation is computed.
        wide: Ty,
        /// The right operand: of type `wide`, except that a shift count keeps its own type and the
        /// operand of pointer arithmetic is a number of bytes.
        value: Box<Expr>,
        /// Whether the value of the expression is the old value of the place.
        post: bool,
    },
    /// The result of a subroutine.
    Call(Subr, Vec<Expr>),
    /// An aggregation or a call of an action: it has a type, for error messages, but no value. No
    /// code is generated from it.
    Valueless,
}

impl Expr {
    /// Creates an expression whose value is not the address of an object in user space.
    pub fn new(kind: ExprKind, ty: Ty, span: Span) -> Self {
        Self {
            kind,
            ty,
            user: false,
            span,
        }
    }

    /// Creates an integer constant.
    pub fn int(value: u64, ty: Ty, span: Span) -> Self {
        Self::new(ExprKind::Int(value), ty, span)
    }

    /// Returns the value if the expression is an integer or pointer constant.
    pub fn constant(&self) -> Option<u64> {
        match &self.kind {
            ExprKind::Int(value) => Some(*value),
            _ => None,
        }
    }

    /// Returns the same value under another type.
    pub fn retype(self, ty: Ty) -> Self {
        let (span, user) = (self.span, self.user);
        match self.kind {
            ExprKind::Int(value) => Self::int(value, ty, span),
            kind => Self {
                kind: ExprKind::Retype(Box::new(Self {
                    kind,
                    ty: self.ty,
                    user,
                    span,
                })),
                ty,
                user,
                span,
            },
        }
    }

    /// Whether evaluating the expression matters even if its value is unused: it changes something,
    /// or it may fault as a load does.
    pub fn has_effect(&self) -> bool {
        match &self.kind {
            ExprKind::Assign(..) | ExprKind::Update { .. } => true,
            ExprKind::Load { .. } | ExprKind::LoadBits { .. } => true,
            ExprKind::Call(subr, args) => subr.has_effect() || args.iter().any(Self::has_effect),
            _ => self.children().any(Self::has_effect),
        }
    }

    /// Whether evaluating the expression may change more than what belongs to the consumer: a
    /// subroutine writes to the traced process.
    pub fn is_destructive(&self) -> bool {
        let calls = matches!(&self.kind, ExprKind::Call(subr, _) if subr.is_destructive());
        calls || self.children().any(Self::is_destructive)
    }

    /// Whether evaluating the expression certainly cannot fault. Holds for numeric constants,
    /// variables that are not arrays, some built-in variables, and what is computed from them. A
    /// divisor must be a constant other than 0.
    pub fn is_safe(&self) -> bool {
        match &self.kind {
            ExprKind::Int(_) | ExprKind::Float(_) => true,
            ExprKind::Var(var) => !var.keyed,
            ExprKind::Builtin(var) => var.cannot_fault(),
            ExprKind::Arith(BinaryOp::Div | BinaryOp::Rem, value, by) => {
                by.constant().is_some_and(|by| by != 0) && value.is_safe()
            }
            ExprKind::Retype(_)
            | ExprKind::Convert(_)
            | ExprKind::Neg(_)
            | ExprKind::BitNot(_)
            | ExprKind::Not(_)
            | ExprKind::Arith(..)
            | ExprKind::Compare { .. }
            | ExprKind::Logic(..)
            | ExprKind::Cond(..) => self.children().all(Self::is_safe),
            _ => false,
        }
    }

    /// Whether evaluating the expression twice may differ from evaluating it once.
    pub fn changes(&self) -> bool {
        match &self.kind {
            ExprKind::Assign(..) | ExprKind::Update { .. } => true,
            ExprKind::Load { address, .. } | ExprKind::LoadBits { address, .. } => {
                address.changes()
            }
            ExprKind::Call(subr, args) => subr.may_differ() || args.iter().any(Self::changes),
            _ => self.children().any(Self::changes),
        }
    }

    /// Returns the height of the tree, operands included. Conversions do not count, because the
    /// compiler inserts them.
    pub fn operators(&self) -> u32 {
        let inner = self.children().map(Self::operators).max().unwrap_or(0);
        let is_conversion = matches!(self.kind, ExprKind::Retype(_) | ExprKind::Convert(_));
        inner.saturating_add(u32::from(!is_conversion))
    }

    /// Returns the operands of the expression.
    pub(crate) fn children(&self) -> impl Iterator<Item = &Self> {
        let (boxed, keys): ([Option<&Self>; 3], &[Self]) = match &self.kind {
            ExprKind::Element(_, keys) | ExprKind::Call(_, keys) => ([None; 3], keys),
            ExprKind::Assign(place, e)
            | ExprKind::Update {
                place, value: e, ..
            } => match place {
                Place::Var(_) => ([Some(e), None, None], &[]),
                Place::Element(_, keys) => ([Some(e), None, None], keys),
                Place::Memory { address, .. } => ([Some(e), Some(address), None], &[]),
            },
            ExprKind::BuiltinArray(_, e)
            | ExprKind::Load { address: e, .. }
            | ExprKind::LoadBits { address: e, .. }
            | ExprKind::Retype(e)
            | ExprKind::Convert(e)
            | ExprKind::Neg(e)
            | ExprKind::BitNot(e)
            | ExprKind::Not(e)
            | ExprKind::Translated { input: e, .. } => ([Some(e), None, None], &[]),
            ExprKind::Arith(_, a, b)
            | ExprKind::CompareFloat(_, a, b)
            | ExprKind::CompareStr(_, a, b)
            | ExprKind::Logic(_, a, b)
            | ExprKind::Comma(a, b)
            | ExprKind::While(a, b)
            | ExprKind::Compare {
                left: a, right: b, ..
            } => ([Some(a), Some(b), None], &[]),
            ExprKind::Cond(a, b, c) => ([Some(a), Some(b), Some(c)], &[]),
            _ => ([None; 3], &[]),
        };
        boxed.into_iter().flatten().chain(keys)
    }

    /// Returns the same expression with all spans replaced by `span`: it was written elsewhere,
    /// perhaps in another source text, and stands for what is written at `span`.
    pub fn placed(mut self, span: Span) -> Self {
        self.place(span);
        self
    }

    fn place(&mut self, span: Span) {
        self.span = span;
        match &mut self.kind {
            ExprKind::Int(_)
            | ExprKind::Float(_)
            | ExprKind::Str(_)
            | ExprKind::Builtin(_)
            | ExprKind::Var(_)
            | ExprKind::Valueless => {}
            ExprKind::Element(_, many) | ExprKind::Call(_, many) => {
                many.iter_mut().for_each(|e| e.place(span));
            }
            ExprKind::BuiltinArray(_, e)
            | ExprKind::Load { address: e, .. }
            | ExprKind::LoadBits { address: e, .. }
            | ExprKind::Retype(e)
            | ExprKind::Translated { input: e, .. }
            | ExprKind::Convert(e)
            | ExprKind::Neg(e)
            | ExprKind::BitNot(e)
            | ExprKind::Not(e) => e.place(span),
            ExprKind::Arith(_, a, b)
            | ExprKind::CompareFloat(_, a, b)
            | ExprKind::CompareStr(_, a, b)
            | ExprKind::Logic(_, a, b)
            | ExprKind::Comma(a, b)
            | ExprKind::While(a, b)
            | ExprKind::Compare {
                left: a, right: b, ..
            } => [a, b].into_iter().for_each(|e| e.place(span)),
            ExprKind::Cond(a, b, c) => [a, b, c].into_iter().for_each(|e| e.place(span)),
            ExprKind::Assign(place, value) | ExprKind::Update { place, value, .. } => {
                value.place(span);
                match place {
                    Place::Var(_) => {}
                    Place::Element(_, keys) => keys.iter_mut().for_each(|e| e.place(span)),
                    Place::Memory { address, .. } => address.place(span),
                }
            }
        }
    }
}
