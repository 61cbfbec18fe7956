// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Safe wrappers over the kernel interfaces that the `kernel` crate lacks.
//!
//! This layer uses [`bindings`](crate::bindings), `uapi`, the crates `dtrace_insn` and
//! `dtrace_unwind`, and these parts of the engine: the claim on a CPU, which only [`percpu`] and
//! [`crosscall`] make; its memory, which [`mem`] provides; the accounts that [`vtime`] keeps; and
//! the rights, records and stacks that [`privilege`], [`paths`], [`remote`] and [`unwind`] hand to
//! it. It uses nothing that is built on top of it.
//!
//! This folder, `bindings` and the engine's `mem` hold the module's `unsafe` code (INV-39).
//! Everything above relies on two proofs that are values: a [`percpu::CpuGuard`] proves probe
//! context on this CPU, and a [`rculist::Writer`] is the right to change what probe context reads.
//! Lines that depend on the kernel's version or on the architecture belong here too.

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
