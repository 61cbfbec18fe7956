// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Generates DIF from the typed program ([`program`](program())).
//!
//! An expression is lowered to a [`Func`](ir::Func) of three-address code over an unlimited number
//! of virtual registers ([`ir`]). Instructions without effect are removed (`optimize`). The virtual
//! registers are assigned to DIF's seven registers; those that do not fit are spilled to
//! clause-local variables ([`regs`]). The result is written as a DIF object with its tables
//! ([`asm`]).

pub mod asm;
mod condition;
mod float;
pub mod ir;
pub mod lower;
mod optimize;
mod place;
mod program;
pub mod regs;
mod width;

pub use program::program;
