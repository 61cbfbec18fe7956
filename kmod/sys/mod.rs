// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Safe wrappers over what the `kernel` crate lacks.
//!
//! It knows [`bindings`](crate::bindings), and of the engine the claim on a CPU, which only [`percpu`] can make, its memory,
//! which [`mem`] provides, the accounts that [`vtime`] keeps, and the rights and records that [`paths`] and [`remote`] read for it;
//! nothing of what is built on top.
//!
//! This folder and `bindings` hold all of the module's `unsafe` code but the engine's own memory. Everything above relies on
//! two proofs that are values: a [`percpu::CpuGuard`] means probe context on this CPU, and a [`rculist::Writer`] means
//! the right to change what probe context reads. Lines that depend on the kernel's version or on the
//! architecture are here too.

#![allow(unsafe_code)]

pub mod arch;
pub mod arena;
pub mod audience;
pub mod births;
pub mod breakpoint;
pub mod clock;
pub mod common;
pub mod control;
pub mod crosscall;
pub mod deferred;
pub mod device;
pub mod exports;
pub mod faults;
pub mod file;
pub mod ftrace;
pub mod functions;
pub mod hotplug;
pub mod instruction;
pub mod ipmap;
#[cfg(CONFIG_KUNIT = "y")]
pub mod kunit;
pub mod layout;
pub mod locks;
pub mod mappings;
pub mod mem;
pub mod module;
pub mod module_tracepoints;
pub mod nofault;
pub mod once;
pub mod patching;
pub mod paths;
pub mod pause;
pub mod percpu;
pub mod perf;
pub mod periodic;
pub mod places;
pub mod privilege;
pub mod process;
pub mod public;
pub mod random;
pub mod rculist;
pub mod remains;
pub mod remote;
pub mod rights;
pub mod shared;
pub mod stack;
pub mod staticref;
pub mod symbols;
pub mod syscalls;
pub mod task;
pub mod timer;
pub mod tracepoint;
pub mod turn;
pub mod unwind;
pub mod vtime;

pub use arch::regs;
