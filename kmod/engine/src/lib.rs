// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

#![cfg_attr(not(feature = "std"), no_std)]
#![deny(unsafe_code)]
// Overflow checks are on in the kernel, and a panic is an oops. Nothing here may index, slice or unwrap what could fail.
// Arithmetic that could overflow is written out as checked, saturating or wrapping where numbers come from programs or from
// outside; the modules that compute with sizes and offsets which were checked when they were made say so at their heads.
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::unreachable
    )
)]
//! The portable heart of dtrace.ko: from a DOF image to records in buffers.
//!
//! The way through the crate: [`Enabling::parse`] reads a DOF image into clauses and options; a [`Consumer`] verifies
//! and prepares each clause once and binds it to any number of probes; [`Consumer::go`] allocates all that firing will
//! need; [`Consumer::fire`] is the whole of probe context for one ECB; snapshots take the records out.
//!
//! The crate knows the kernel only through [`Machine`] and two platform functions for memory
//! (`dtrace_engine_alloc`, `dtrace_engine_free`), so the same source runs in the module and in host tests.
//!
//! Invariants:
//! - nothing is allocated, freed or waited for while a probe fires;
//! - nothing that comes from outside (DOF, DIF, addresses) can make it panic, loop or touch memory that is not its own;
//! - `unsafe` stands in [`mem`] alone, and the caller owes one promise: that of [`Cpu::claim`].

#[cfg(any(feature = "std", test))]
extern crate std;

pub mod budget;
pub mod buf;
pub mod consumer;
pub mod dif;
pub mod dof;
pub mod ecb;
pub mod error;
pub mod frames;
pub mod hash;
pub mod interp;
pub mod ledger;
pub mod machine;
pub mod mem;
pub mod softfloat;
pub mod spec;
pub mod subr;
pub mod text;
pub mod var;

pub use consumer::{
    Activity, Binding, ClauseId, Config, Consumer, Ecb, FaultReport, Features, Pending, Privileges,
    Snapshot, Which,
};
pub use dof::{Clause, Enabling};
pub use ecb::rehearsal::Missing;
pub use error::{Errno, Reason, Trap};
pub use interp::names::Unread;
pub use interp::spots::{Caller, Pause, Spot, Spots};
pub use machine::{
    BadAddr, Dentry, Kobject, Machine, Mount, Place, ProbeName, RwLock, TaskArgs, Unplaced,
    UserWalk,
};
pub use mem::sync::Cpu;
