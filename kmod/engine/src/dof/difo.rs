// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! A DIF object as it came: text, integers, strings and variables, not verified yet.

use crate::mem::Vec;
use dtrace_uapi::dif::Instr;
use dtrace_uapi::types::{DifType, DifVar};

/// A DIF object.
#[derive(Debug, Default)]
pub struct Difo {
    /// Instructions.
    pub text: Vec<Instr>,
    /// The integers that `setx` names.
    pub ints: Vec<u64>,
    /// The strings that `sets` names, each ending with NUL.
    pub strings: Vec<u8>,
    /// The variables that it uses.
    pub vars: Vec<DifVar>,
    /// The type of what it returns.
    pub rtype: DifType,
}
