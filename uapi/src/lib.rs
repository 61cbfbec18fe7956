// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note

#![no_std]
// As in the engine: what runs in the kernel does not index, slice or unwrap.
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::unreachable
    )
)]
//! The contract between `dtrace.ko` and its consumers.
//!
//! Everything that crosses `/dev/dtrace` is defined here and nowhere else: the encoding of DIF ([`dif`]) with
//! its variables ([`var`]), subroutines ([`subr`]) and actions ([`action`]); the DOF container that carries an
//! enabling into the kernel ([`dof`]); the control calls and their structures ([`ioctl`]); options ([`option`]),
//! faults ([`fault`]) and limits ([`limits`]); what a probe may be called ([`names`]) and what a glob in its description
//! stands for ([`glob`]). Module and library
//! compile this very source; a C header is generated from it.
//!
//! Numbers and layouts are those of illumos and FreeBSD DTrace wherever the two agree, so that what is known
//! about them stays true here. Where they disagree illumos' numbers hold up to its maximum, and what is Linux'
//! own starts at 200.
//!
//! Invariants: every structure has the layout that its `const` assertion states, has no implicit padding, and
//! may be read from any bytes (`FromBytes`); every number that comes from the other side is turned into an
//! enumeration only by its checked `from_raw`.

pub mod action;
pub mod dif;
pub mod disasm;
pub mod dof;
pub mod fault;
pub mod glob;
pub mod hold;
pub mod interp;
pub mod ioctl;
pub mod limits;
pub mod names;
mod numbered;
pub mod option;
pub mod process;
pub mod remains;
pub mod subr;
pub mod types;
pub mod unwind;
pub mod var;
