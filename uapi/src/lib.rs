// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note

#![no_std]
//! The contract.
