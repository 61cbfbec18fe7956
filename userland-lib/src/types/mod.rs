// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! D's types: those of the kernel and of the program.

pub mod btf;
