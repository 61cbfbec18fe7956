// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

#![cfg_attr(not(feature = "std"), no_std)]
#![deny(unsafe_code)]
// In the kernel overflow checks are on, and a panic is an oops. So nothing here may index, slice or
// unwrap where that could fail. Arithmetic that could overflow is written as checked, saturating or
// wrapping where its numbers come from programs or from outside. Modules that compute with sizes
// and offsets that were checked when they were made say so in their heads.
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
//! The portable core of dtrace.ko: from a DOF image to records in buffers.
//!
//! Data passes through the crate in this order: [`Enabling::parse`] reads a DOF image into clauses
//! and options; a [`Consumer`] verifies and prepares each clause once and binds it to any number of
//! probes; [`Consumer::go`] allocates all that firing will need; [`Consumer::fire`] does all the
//! work of probe context for one ECB; snapshots take the records out.
//!
//! The crate knows the kernel only through [`Machine`] and two platform functions for memory
//! (`dtrace_engine_alloc`, `dtrace_engine_free`), so the same source runs in the module and in host
//! tests.
//!
//! Invariants:
//! - While a probe fires, nothing is allocated or freed, and nothing waits (INV-4).
//! - No input from outside (DOF, DIF, addresses) can make the crate panic, loop without end, or
//!   touch memory that is not its own.
//! - `unsafe` occurs in [`mem`] only, and the caller owes one promise: that of [`Cpu::claim`]
//!   (INV-39).

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
