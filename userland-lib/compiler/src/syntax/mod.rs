// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! From program text to syntax tree.
//!
//! [`lexer`] makes tokens. [`parse`] builds the tree of [`ast`] by recursive descent, and
//! expressions by binding power. D's grammar depends on one thing outside of the text: whether a
//! name is a type, for `(name)x` and `sizeof (name)`. The parser asks this through [`TypeNames`],
//! and only where it makes a difference.
//!
//! Invariant: nothing here looks up a variable, a function or a probe.

pub mod ast;
mod clause;
mod declaration;
mod expression;
mod float;
pub mod lexer;
pub mod literal;
pub mod macros;
mod parser;
mod pragma;
mod provider;
mod translator;
pub mod tree;
mod type_name;

pub use lexer::pragmas;
pub use parser::{parse, TypeNames, MAX_CHAIN};
pub use type_name::SUFFIX as TYPE_SUFFIX;
