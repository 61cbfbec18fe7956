// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! From syntax to meaning.

pub mod aggfunc;
pub mod hir;
pub mod printf;
