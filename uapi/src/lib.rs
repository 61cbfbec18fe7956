// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT

#![no_std]
// As in the engine: code that runs in the kernel must not index, slice or unwrap.
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
//! The interface between `dtrace.ko` and its consumers.
//!
//! Everything that crosses `/dev/dtrace` is defined here and nowhere else: the encoding of DIF
//! ([`dif`]) with its variables ([`var`]), subroutines ([`subr`]) and actions ([`action`]); the DOF
//! container, which carries an enabling into the kernel ([`dof`]); DIF as text ([`disasm`], and
//! `asm`); the ioctls and their structures ([`ioctl`]); options ([`option`]), faults ([`fault`])
//! and limits ([`limits`]); the valid names of probes ([`names`]) and the globs in probe
//! descriptions ([`glob`]). The module and the library compile this same source; a C header is
//! generated from it.
//!
//! Numbers and layouts are those of illumos and FreeBSD DTrace where the two agree, so that
//! knowledge about these systems applies here. Where they disagree, the numbers of illumos are used
//! up to its maximum. Numbers that are specific to Linux start at 200.
//!
//! Invariants: every structure has the layout that its `const` assertion states, has no implicit
//! padding, and can be read from any bytes (`FromBytes`). A number that comes from the other side
//! becomes an enumeration only by the checked `from_raw`.

pub mod action;
#[cfg(any(test, feature = "asm"))]
pub mod asm;
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
