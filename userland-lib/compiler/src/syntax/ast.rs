// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The abstract syntax of D: what the program says, and where, before any name is looked up.

use crate::diag::Diagnostic;
use crate::source::Span;

/// A parsed program.
#[derive(Clone, Debug, Default)]
pub struct Ast {
    /// Declarations, clauses, translators and providers in order.
    pub items: Vec<Item>,
    /// The `#pragma D` lines in order.
    pub pragmas: Vec<Pragma>,
    /// The error that ended parsing before the end of the text. Errors in the items that were read
    /// come before it in the text.
    pub error: Option<Box<Diagnostic>>,
}

/// A `#pragma D` line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pragma {
    /// `option`, `attributes`, `binding` or `depends_on`.
    pub name: String,
    /// The words that follow the name.
    pub words: Vec<String>,
    /// Its source location.
    pub span: Span,
}

/// An item at the top level of a program.
#[derive(Clone, Debug)]
pub enum Item {
    /// A variable, type or inline.
    Declaration(Declaration),
    /// Probe descriptions with a predicate and statements.
    Clause(Clause),
    /// A translator.
    Translator(Translator),
    /// The definition of an application's provider.
    Provider(Provider),
}

/// `provider name { probes };`
#[derive(Clone, Debug)]
pub struct Provider {
    /// Its name.
    pub name: String,
    /// Its probes.
    pub probes: Vec<ProbeDefinition>,
    /// Its source location.
    pub span: Span,
}

/// `probe name(parameters) : (arguments);`
#[derive(Clone, Debug)]
pub struct ProbeDefinition {
    /// Its name; two underscores stand for a hyphen.
    pub name: String,
    /// The types of the arguments that the application passes.
    pub parameters: Vec<TypeName>,
    /// The types of the arguments that programs see, if they differ.
    pub arguments: Option<Vec<TypeName>>,
    /// Its source location.
    pub span: Span,
}

/// `probes /predicate/ { statements }`
#[derive(Clone, Debug)]
pub struct Clause {
    /// The probe descriptions with their locations; macro variables are already replaced.
    pub probes: Vec<(String, Span)>,
    /// The predicate.
    pub predicate: Option<Expr>,
    /// The statements.
    pub body: Vec<Stmt>,
    /// Offset in bytes of the end of the clause: of its closing brace if it has a body, else of the
    /// end of the text.
    pub end: u32,
    /// The location of the descriptions.
    pub span: Span,
}

/// A statement.
#[derive(Clone, Debug)]
pub enum Stmt {
    /// An expression, a call of an action, or an aggregation.
    Expr(Expr),
    /// `if (condition) … else …`
    If {
        /// The condition.
        condition: Expr,
        /// Runs if the condition is not zero.
        then: Vec<Stmt>,
        /// Runs if the condition is zero.
        otherwise: Vec<Stmt>,
    },
    /// `while (condition) …`, only in walkers.
    While {
        /// The condition.
        condition: Expr,
        /// Runs as long as the condition is not zero.
        body: Vec<Stmt>,
    },
}

/// An expression with its source location.
#[derive(Clone, Debug)]
pub struct Expr {
    /// The expression itself.
    pub kind: ExprKind,
    /// Its source location.
    pub span: Span,
    /// Offset of a byte whose line DTrace reports for errors in this expression. DTrace's parser
    /// knows that an operator has all its operands only after it has read the token after them.
    pub counted: u32,
}

/// The parts of an integer constant that decide its type: its suffix and its base.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IntSuffix {
    /// `u`
    pub unsigned: bool,
    /// The number of `l`.
    pub longs: u8,
    /// Whether it is not written in decimal, so that its type may be unsigned without `u`.
    pub based: bool,
}

/// The suffix of a floating-point constant, which decides its type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FloatSuffix {
    /// No suffix: `double`.
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
    /// A name. `module` is present for `` mod`name ``, and empty for `` `name ``.
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
        /// The name; empty for the aggregation without a name.
        name: String,
        /// The keys.
        keys: Vec<Expr>,
    },
    /// `name(args)`.
    Call {
        /// The function.
        name: String,
        /// The location of the name.
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
        /// Whether the operator is `->`.
        arrow: bool,
    },
    /// `-e`, `~e`, `!e`, `+e`, `*e`, `&e`.
    Unary(UnaryOp, Box<Expr>),
    /// Arithmetic and comparison.
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// `++e`, `e--`, …
    Step {
        /// Whether it is `++`.
        up: bool,
        /// Whether the value is the one before the step.
        post: bool,
        /// The operand.
        target: Box<Expr>,
    },
    /// `target = value` or `target op= value`.
    Assign {
        /// The operator before `=`, if any.
        op: Option<BinaryOp>,
        /// The target of the assignment.
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

/// The scope of a variable that is not global.
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
    /// Returns the operator as written.
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
#[allow(missing_docs)] // `text` shows the operators
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
    /// Returns the operator as written.
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

    /// Whether the operator compares its operands, so that the result is 0 or 1.
    pub const fn is_comparison(self) -> bool {
        matches!(
            self,
            Self::Lt | Self::Le | Self::Gt | Self::Ge | Self::Eq | Self::Ne
        )
    }
}

/// A declaration: specifiers and declarators.
#[derive(Clone, Debug)]
pub struct Declaration {
    /// The storage class, which decides where the variables live.
    pub storage: Storage,
    /// The type from which the declarators derive theirs.
    pub base: BaseType,
    /// The declarators. There may be none if the base is a struct, union or enum.
    pub declarators: Vec<InitDeclarator>,
    /// Its source location.
    pub span: Span,
}

/// A declarator with its value.
#[derive(Clone, Debug)]
pub struct InitDeclarator {
    /// The declarator.
    pub declarator: Declarator,
    /// The value of an inline.
    pub value: Option<Expr>,
}

/// Storage classes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Storage {
    /// None written: a global variable.
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
    /// `inline` with `static` or `extern`, which only C functions have. The parser uses it
    /// internally; no parsed declaration has it.
    CFunction,
    /// `auto`, `static` or `register`, which have no meaning in D.
    Foreign(&'static str),
}

/// The type that specifiers name.
#[derive(Clone, Debug)]
pub struct BaseType {
    /// The type without `const` and `userland`.
    pub kind: BaseKind,
    /// Whether `const` is among the specifiers.
    pub is_const: bool,
    /// Whether `userland` is among the specifiers: pointers derived from the type are user-space
    /// addresses.
    pub userland: bool,
    /// Its source location.
    pub span: Span,
}

impl BaseType {
    /// Returns the module in which the type is named.
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
    /// C's keywords: `unsigned long`.
    Words(Vec<&'static str>),
    /// `string`.
    Str,
    /// A typedef's name, with a module or without.
    Named {
        /// The module; empty for `` `name ``.
        module: Option<String>,
        /// The name.
        name: String,
        /// The location of both.
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
    /// The location of the name.
    pub span: Span,
    /// Offset of the token after the enumerator. DTrace reports errors in the value at that token's
    /// line.
    pub next: u32,
}

/// The members that one member declaration declares.
#[derive(Clone, Debug)]
pub struct MemberDecl {
    /// Their type.
    pub base: BaseType,
    /// The declarators, each with its width if it is a bit-field; none for an anonymous struct or
    /// union.
    pub declarators: Vec<(Declarator, Option<Expr>)>,
    /// Its source location.
    pub span: Span,
}

/// A declared name, and how its type derives from the base. The outermost derivation comes first:
/// `*x[3]` is an array of three pointers.
#[derive(Clone, Debug, Default)]
pub struct Declarator {
    /// The name; empty in a type name.
    pub name: String,
    /// The derivations.
    pub derivations: Vec<Derivation>,
    /// The location of the name.
    pub span: Span,
}

/// A step of a declarator.
#[derive(Clone, Debug)]
pub enum Derivation {
    /// `*`
    Pointer,
    /// `[n]`
    Array(Option<Expr>),
    /// `[type, type]`: the keys of an associative array.
    Keys {
        /// The types of the keys.
        keys: Vec<TypeName>,
        /// Whether the list ends in `…`, which the checker refuses.
        variadic: bool,
    },
    /// `(params)`
    Function {
        /// The parameters.
        params: Vec<TypeName>,
        /// Whether the list ends in `…`.
        variadic: bool,
    },
}

/// A type without a declared name, or a parameter with one.
#[derive(Clone, Debug)]
pub struct TypeName {
    /// The base type.
    pub base: BaseType,
    /// The derivations, with the name of a parameter.
    pub declarator: Declarator,
    /// Its source location.
    pub span: Span,
}

/// `translator output < input name > { member = expression; … };`
#[derive(Clone, Debug)]
pub struct Translator {
    /// The type that it produces.
    pub output: TypeName,
    /// The type that it reads, with the name of the input in the members' expressions.
    pub input: TypeName,
    /// The members with their expressions.
    pub members: Vec<(String, Expr)>,
    /// Its source location.
    pub span: Span,
}
