// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The parts of the framework that know nothing of the kernel, as a crate of their own, so that their tests run on the host.

#[path = "glob.rs"]
pub mod glob;
