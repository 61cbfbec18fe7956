// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! The abstract syntax of D: what was written, and where, before any name is looked up.

use crate::diag::Diagnostic;
use crate::source::Span;

/// A parsed program.
#[derive(Clone, Debug, Default)]
pub struct Ast {
    /// Declarations and clauses in order.
    pub items: Vec<Item>,
    /// Control lines that matter, in order.
    pub pragmas: Vec<Pragma>,
    /// What ended the reading, if it was not the end of the text: mistakes in what was read come before it.
    pub error: Option<Box<Diagnostic>>,
}

/// A `#pragma D` line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pragma {
    /// `option`, `attributes`, `binding`, `depends_on`, …
    pub name: String,
    /// The words that follow the name.
    pub words: Vec<String>,
    /// Where.
    pub span: Span,
}

/// Something at the top of a program.
#[derive(Clone, Debug)]
pub enum Item {
    /// A variable, type or inline.
    Declaration(Declaration),
    /// Probes and what happens when they fire.
    Clause(Clause),
    /// A translator.
    Translator(Translator),
    /// A provider that an application has.
    Provider(Provider),
}

/// `provider name { probes };`
#[derive(Clone, Debug)]
pub struct Provider {
    /// Its name.
    pub name: String,
    /// Its probes.
    pub probes: Vec<ProbeDefinition>,
    /// Where.
    pub span: Span,
}

/// `probe name(parameters) : (arguments);`
#[derive(Clone, Debug)]
pub struct ProbeDefinition {
    /// Its name; two underscores stand for a hyphen.
    pub name: String,
    /// What the application passes.
    pub parameters: Vec<TypeName>,
    /// What programs see, if that is something else.
    pub arguments: Option<Vec<TypeName>>,
    /// Where.
    pub span: Span,
}

/// `probes /predicate/ { statements }`
#[derive(Clone, Debug)]
pub struct Clause {
    /// The descriptions, macro variables already replaced.
    pub probes: Vec<(String, Span)>,
    /// The condition.
    pub predicate: Option<Expr>,
    /// The statements.
    pub body: Vec<Stmt>,
    /// The byte where the clause ends: its closing brace's, if it has a body.
    pub end: u32,
    /// The descriptions' place.
    pub span: Span,
}

/// A statement.
#[derive(Clone, Debug)]
pub enum Stmt {
    /// An expression, a call of an action, an aggregation.
    Expr(Expr),
    /// `if (condition) … else …`
    If {
        /// The condition.
        condition: Expr,
        /// If it is not zero.
        then: Vec<Stmt>,
        /// If it is zero.
        otherwise: Vec<Stmt>,
    },
    /// `while (condition) …`, in walkers.
    While {
        /// The condition.
        condition: Expr,
        /// As long as it is not zero.
        body: Vec<Stmt>,
    },
}

/// An expression with its place.
#[derive(Clone, Debug)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// Where.
    pub span: Span,
    /// The byte whose line DTrace counts errors of it at: an operator is known to have all its operands when the token
    /// after them is read.
    pub counted: u32,
}

/// An integer constant's suffix and base decide its type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IntSuffix {
    /// `u`
    pub unsigned: bool,
    /// How many `l`.
    pub longs: u8,
    /// Not written in decimal, so that it may become unsigned.
    pub based: bool,
}

/// A floating-point constant's suffix decides its type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FloatSuffix {
    /// None: `double`.
    #[default]
    Double,
    /// `f`
    Float,
    /// `l`
    LongDouble,
}

/// Kinds of expressions.
#[derive(Clone, Debug)]
pub enum ExprKind {
    /// An integer constant.
    Int(u64, IntSuffix),
    /// A floating-point constant.
    Float(f64, FloatSuffix),
    /// A string constant.
    Str(Vec<u8>),
    /// A name; `module` is there for `` mod`name ``, empty for `` `name ``.
    Name {
        /// The module.
        module: Option<String>,
        /// The name.
        name: String,
    },
    /// `self->name`, `this->name`.
    Scoped(Scope, String),
    /// `@name[keys]`.
    Agg {
        /// The name, empty for the one without.
        name: String,
        /// The keys.
        keys: Vec<Expr>,
    },
    /// `name(args)`.
    Call {
        /// The function.
        name: String,
        /// Place of the name.
        name_span: Span,
        /// Its arguments.
        args: Vec<Expr>,
    },
    /// `base[args]`.
    Index(Box<Expr>, Vec<Expr>),
    /// `base.name` or `base->name`.
    Member {
        /// The record, or the pointer to it.
        base: Box<Expr>,
        /// The member.
        name: String,
        /// Whether it was `->`.
        arrow: bool,
    },
    /// `-e`, `~e`, `!e`, `+e`, `*e`, `&e`.
    Unary(UnaryOp, Box<Expr>),
    /// Arithmetic and comparison.
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// `++e`, `e--`, …
    Step {
        /// `+1` or `-1`.
        up: bool,
        /// Whether the value is the old one.
        post: bool,
        /// What is stepped.
        target: Box<Expr>,
    },
    /// `target = value` or `target op= value`.
    Assign {
        /// The operator before `=`.
        op: Option<BinaryOp>,
        /// What is assigned to.
        target: Box<Expr>,
        /// The value.
        value: Box<Expr>,
    },
    /// `c ? a : b`.
    Cond(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `a, b`.
    Comma(Box<Expr>, Box<Expr>),
    /// `(type)e`.
    Cast(Box<TypeName>, Box<Expr>),
    /// `sizeof (type)`.
    SizeofType(Box<TypeName>),
    /// `sizeof e`.
    SizeofExpr(Box<Expr>),
    /// `offsetof(type, member)`.
    Offsetof(Box<TypeName>, String),
    /// `stringof e`.
    Stringof(Box<Expr>),
    /// `xlate <type> (e)`.
    Xlate(Box<TypeName>, Box<Expr>),
}

/// Scope of a variable that is not global.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// `self->`
    Thread,
    /// `this->`
    Clause,
}

/// Unary operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnaryOp {
    /// `-`
    Neg,
    /// `+`
    Plus,
    /// `~`
    BitNot,
    /// `!`
    Not,
    /// `*`
    Deref,
    /// `&`
    AddressOf,
}

impl UnaryOp {
    /// The operator as written.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Neg => "-",
            Self::Plus => "+",
            Self::BitNot => "~",
            Self::Not => "!",
            Self::Deref => "*",
            Self::AddressOf => "&",
        }
    }
}

/// Binary operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // the operators themselves are their best description: see `text`
pub enum BinaryOp {
    Mul,
    Div,
    Rem,
    Add,
    Sub,
    Shl,
    Shr,
    Lt,
    Le,
    Gt,
    Ge,
    Eq,
    Ne,
    And,
    Xor,
    Or,
    LogAnd,
    LogXor,
    LogOr,
}

impl BinaryOp {
    /// The operator as written.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Mul => "*",
            Self::Div => "/",
            Self::Rem => "%",
            Self::Add => "+",
            Self::Sub => "-",
            Self::Shl => "<<",
            Self::Shr => ">>",
            Self::Lt => "<",
            Self::Le => "<=",
            Self::Gt => ">",
            Self::Ge => ">=",
            Self::Eq => "==",
            Self::Ne => "!=",
            Self::And => "&",
            Self::Xor => "^",
            Self::Or => "|",
            Self::LogAnd => "&&",
            Self::LogXor => "^^",
            Self::LogOr => "||",
        }
    }

    /// Whether the result is 0 or 1 by comparing.
    pub const fn is_comparison(self) -> bool {
        matches!(
            self,
            Self::Lt | Self::Le | Self::Gt | Self::Ge | Self::Eq | Self::Ne
        )
    }
}

/// A declaration: specifiers and what they declare.
#[derive(Clone, Debug)]
pub struct Declaration {
    /// Where the declared live.
    pub storage: Storage,
    /// The type that the declarators refine.
    pub base: BaseType,
    /// What is declared; may be none where a struct, union or enum is.
    pub declarators: Vec<InitDeclarator>,
    /// Where.
    pub span: Span,
}

/// A declarator with its value.
#[derive(Clone, Debug)]
pub struct InitDeclarator {
    /// What is declared.
    pub declarator: Declarator,
    /// The value of an inline.
    pub value: Option<Expr>,
}

/// Storage classes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Storage {
    /// None is written: a global variable.
    #[default]
    Global,
    /// `extern`
    Extern,
    /// `typedef`
    Typedef,
    /// `self`
    Thread,
    /// `this`
    Clause,
    /// `inline`
    Inline,
    /// `inline` with `static` or `extern`: of functions in C, and of nothing in D. No declaration that is parsed has it.
    CFunction,
    /// `auto`, `static` or `register`: D has no use for them.
    Foreign(&'static str),
}

/// The type that specifiers name.
#[derive(Clone, Debug)]
pub struct BaseType {
    /// What is named.
    pub kind: BaseKind,
    /// `const` is among the specifiers.
    pub is_const: bool,
    /// `userland` is among the specifiers: pointers made of it are user-space addresses.
    pub userland: bool,
    /// Where.
    pub span: Span,
}

impl BaseType {
    /// The module that the type is named in.
    pub fn module(&self) -> Option<&str> {
        match &self.kind {
            BaseKind::Named { module, .. }
            | BaseKind::Record { module, .. }
            | BaseKind::Enum { module, .. } => module.as_deref(),
            _ => None,
        }
    }
}

/// What specifiers name.
#[derive(Clone, Debug)]
pub enum BaseKind {
    /// C's words: `unsigned long`.
    Words(Vec<&'static str>),
    /// `string`.
    Str,
    /// A typedef's name, perhaps of one module.
    Named {
        /// The module, empty for `` `name ``.
        module: Option<String>,
        /// The name.
        name: String,
        /// Place of both.
        span: Span,
    },
    /// `struct` or `union`.
    Record {
        /// Whether it is a union.
        is_union: bool,
        /// The module, for ``struct mod`tag``.
        module: Option<String>,
        /// The tag.
        tag: Option<String>,
        /// The members, if they are given here.
        members: Option<Vec<MemberDecl>>,
    },
    /// `enum`.
    Enum {
        /// The module, for ``enum mod`tag``.
        module: Option<String>,
        /// The tag.
        tag: Option<String>,
        /// The enumerators, if they are given here.
        items: Option<Vec<Enumerator>>,
    },
}

/// `NAME = value` in an enumeration.
#[derive(Clone, Debug)]
pub struct Enumerator {
    /// Its name.
    pub name: String,
    /// Its value, where one is given.
    pub value: Option<Expr>,
    /// Place of the name.
    pub span: Span,
    /// The byte behind the enumerator where the next token begins.
    pub next: u32,
}

/// Members of one type.
#[derive(Clone, Debug)]
pub struct MemberDecl {
    /// Their type.
    pub base: BaseType,
    /// Each with its width where it is a bit-field; none for an anonymous struct or union.
    pub declarators: Vec<(Declarator, Option<Expr>)>,
    /// Where.
    pub span: Span,
}

/// A declared name and how its type derives from the base, outermost first: `*x[3]` is an array of three pointers.
#[derive(Clone, Debug, Default)]
pub struct Declarator {
    /// The name; empty in a type name.
    pub name: String,
    /// The derivations.
    pub derivations: Vec<Derivation>,
    /// Place of the name.
    pub span: Span,
}

/// A step of a declarator.
#[derive(Clone, Debug)]
pub enum Derivation {
    /// `*`
    Pointer,
    /// `[n]`
    Array(Option<Expr>),
    /// `[type, type]`: an associative array.
    Keys {
        /// The types.
        keys: Vec<TypeName>,
        /// Whether it ends in `…`, which the checker refuses.
        variadic: bool,
    },
    /// `(params)`
    Function {
        /// The parameters.
        params: Vec<TypeName>,
        /// Whether it ends in `…`.
        variadic: bool,
    },
}

/// A type without a declared name, or a parameter with one.
#[derive(Clone, Debug)]
pub struct TypeName {
    /// Its base.
    pub base: BaseType,
    /// What is derived from it.
    pub declarator: Declarator,
    /// Where.
    pub span: Span,
}

/// `translator output < input name > { member = expression; … };`
#[derive(Clone, Debug)]
pub struct Translator {
    /// The type that it makes.
    pub output: TypeName,
    /// The type that it reads, with the name it has in the members' expressions.
    pub input: TypeName,
    /// The members.
    pub members: Vec<(String, Expr)>,
    /// Where.
    pub span: Span,
}
