// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! From typed syntax to DIF.
//!
//! An expression is lowered to a [`Func`](ir::Func) of three-address code over as many virtual registers as it likes
//! ([`ir`]); what makes no difference is left out (`optimize`); virtual registers are then given the seven that DIF has, the
//! rest living in clause-local variables for a while ([`regs`]); and the result is written as a DIF object with its tables
//! ([`asm`]).

pub mod asm;
mod condition;
mod float;
pub mod ir;
pub mod lower;
mod optimize;
mod place;
pub mod regs;
mod width;
