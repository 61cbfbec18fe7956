// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! The typed tree: expressions with every name resolved, every conversion explicit and every constant folded.
//!
//! Values are what a DIF register holds: an integer, sign- or zero-extended as its type says (the result of signed
//! arithmetic may have more bits until it is stored or converted); a `float` or `double` as it lies in memory; a pointer;
//! or, for strings, records, arrays and `long double` ("objects"), the address of the bytes. [`Expr::user`] tells of an
//! object's address that it is a user-space one.
//!
//! Invariant: the tree is well typed; code generation from it fails only for want of table space.

use crate::source::Span;
use crate::syntax::ast::BinaryOp;
use crate::types::Ty;
use dtrace_uapi::subr::Subr;
use dtrace_uapi::var::Var;

/// A typed expression.
#[derive(Clone, Debug)]
pub struct Expr {
    /// What computes it.
    pub kind: ExprKind,
    /// Its type.
    pub ty: Ty,
    /// Of an object: whether its address is in user space.
    pub user: bool,
    /// Where it was written.
    pub span: Span,
}

/// Where a variable lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VarScope {
    /// Everywhere.
    Global,
    /// `self->`
    Thread,
    /// `this->`
    Clause,
}

/// A variable of the program's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VarRef {
    /// Its name.
    pub name: String,
    /// Where it lives.
    pub scope: VarScope,
    /// Its number.
    pub id: u16,
    /// Type of its value, or of its elements.
    pub ty: Ty,
    /// Whether it is an associative array.
    pub keyed: bool,
}

impl VarRef {
    /// The variable as a program writes it.
    pub fn shown(&self) -> String {
        let scope = match self.scope {
            VarScope::Global => "",
            VarScope::Thread => "self->",
            VarScope::Clause => "this->",
        };
        format!("{scope}{}", self.name)
    }
}

/// A field of bits in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bits {
    /// Size of the word that holds it, bytes.
    pub word: u8,
    /// Its lowest bit in the word.
    pub shift: u8,
    /// Its width.
    pub width: u8,
    /// Whether its highest bit is a sign.
    pub signed: bool,
}

/// Something that can be assigned to.
#[derive(Clone, Debug)]
pub enum Place {
    /// A variable.
    Var(VarRef),
    /// An element of an associative array.
    Element(VarRef, Vec<Expr>),
    /// Memory at an address; scratch memory and variables' own storage, the kernel's is refused at run time.
    Memory {
        /// The address.
        address: Box<Expr>,
        /// The bits, where it is a bit-field.
        bits: Option<Bits>,
    },
}

impl Place {
    /// Whether it is a dynamic variable: a thread's, or an element of an array.
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
    /// A constant.
    Int(u64),
    /// A floating-point constant, which is a number of the expression's type.
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
        /// Whether it is in user space.
        user: bool,
    },
    /// The bit-field at an address.
    LoadBits {
        /// Address of the word.
        address: Box<Expr>,
        /// The bits.
        bits: Bits,
        /// Whether it is in user space.
        user: bool,
    },
    /// The same register under another type.
    Retype(Box<Expr>),
    /// A value seen through a translator: the input's register under the output's type. Reading a member replaces it.
    Translated {
        /// Which translator.
        translator: usize,
        /// What it reads.
        input: Box<Expr>,
    },
    /// An integer cut or extended to the expression's type, or a number that changes between integers and the
    /// floating-point types.
    Convert(Box<Expr>),
    /// `-e`
    Neg(Box<Expr>),
    /// `~e`
    BitNot(Box<Expr>),
    /// `!e`
    Not(Box<Expr>),
    /// Arithmetic; the expression's type tells the signedness.
    Arith(BinaryOp, Box<Expr>, Box<Expr>),
    /// Comparison of integers or pointers.
    Compare {
        /// The operator.
        op: BinaryOp,
        /// Whether as signed numbers.
        signed: bool,
        /// The left operand.
        left: Box<Expr>,
        /// The right operand.
        right: Box<Expr>,
    },
    /// Comparison of floating-point numbers of one type; not by `!=`.
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
    /// `place op= value`, `place++` and its kin; the place is computed once.
    Update {
        /// The place.
        place: Place,
        /// The operator.
        op: BinaryOp,
        /// The type in which it computes.
        wide: Ty,
        /// The right operand, of type `wide`.
        value: Box<Expr>,
        /// Whether the expression's value is the old one.
        post: bool,
    },
    /// A subroutine's result.
    Call(Subr, Vec<Expr>),
    /// An aggregation or an action's call, which has a type to be told of but no value; no code is made from it.
    Valueless,
}

impl Expr {
    /// An expression of kernel-space or no address.
    pub fn new(kind: ExprKind, ty: Ty, span: Span) -> Self {
        Self {
            kind,
            ty,
            user: false,
            span,
        }
    }

    /// An integer constant.
    pub fn int(value: u64, ty: Ty, span: Span) -> Self {
        Self::new(ExprKind::Int(value), ty, span)
    }

    /// The value of an integer or pointer constant, if it is one.
    pub fn constant(&self) -> Option<u64> {
        match &self.kind {
            ExprKind::Int(value) => Some(*value),
            _ => None,
        }
    }

    /// The same under another type.
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

    /// Whether evaluating it can be of use without its value: it changes something, or may fault, as loads do.
    pub fn has_effect(&self) -> bool {
        match &self.kind {
            ExprKind::Assign(..) | ExprKind::Update { .. } => true,
            ExprKind::Load { .. } | ExprKind::LoadBits { .. } => true,
            ExprKind::Call(subr, args) => {
                let changes = matches!(
                    subr,
                    Subr::Copyout
                        | Subr::Copyoutstr
                        | Subr::Copyinto
                        | Subr::Bcopy
                        | Subr::Speculation
                );
                changes || args.iter().any(Self::has_effect)
            }
            _ => self.children().any(Self::has_effect),
        }
    }

    /// Whether evaluating it cannot fault for certain: variables of a register's size and what is computed of them.
    pub fn is_safe(&self) -> bool {
        match &self.kind {
            ExprKind::Int(_) | ExprKind::Float(_) => true,
            ExprKind::Var(var) => !var.keyed,
            ExprKind::Builtin(var) => {
                let args = Var::Arg0 as u16..=Var::Arg9 as u16;
                let own = [
                    Var::Pid,
                    Var::Tid,
                    Var::Uid,
                    Var::Gid,
                    Var::Cpu,
                    Var::Id,
                    Var::Epid,
                    Var::Timestamp,
                ];
                args.contains(&(*var as u16)) || own.contains(var)
            }
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

    /// Whether evaluating it twice is not the same as once.
    pub fn changes(&self) -> bool {
        match &self.kind {
            ExprKind::Assign(..) | ExprKind::Update { .. } => true,
            ExprKind::Load { address, .. } | ExprKind::LoadBits { address, .. } => {
                address.changes()
            }
            ExprKind::Call(subr, args) => {
                let pure = !matches!(subr, Subr::Rand | Subr::Strtok | Subr::Speculation);
                !pure || args.iter().any(Self::changes)
            }
            _ => self.children().any(Self::changes),
        }
    }

    /// How many operators stand in each other, at most. Conversions are none: whoever wrote it did not write them.
    pub fn operators(&self) -> u32 {
        let inner = self.children().map(Self::operators).max().unwrap_or(0);
        let is_conversion = matches!(self.kind, ExprKind::Retype(_) | ExprKind::Convert(_));
        inner.saturating_add(u32::from(!is_conversion))
    }

    /// The operands of an expression.
    fn children(&self) -> impl Iterator<Item = &Self> {
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

    /// The same with every place replaced by `span`: what was written elsewhere, perhaps in another text, stands for
    /// what is written there.
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
