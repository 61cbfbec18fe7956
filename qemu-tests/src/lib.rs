// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! End to end: the stock kernel in a virtual machine, the module loaded, programs run.
//!
//! [`vm`] boots a machine with virtme-ng and follows it; [`accel`] decides whether by KVM or by emulation;
//! [`console`] reads what the kernel says. [`case`] are the tests as files, [`expect`] compares output with what a case
//! expects, [`session`] runs many cases in one machine and starts another where one has taken it down, and [`blocks`] runs
//! several machines at a time. [`ktap`] reads what the kernel's own unit tests report; [`processors`] writes down how long the computer let
//! a machine run; [`memory`], [`patched`], [`program`] and [`random`] are for programs that run in the machine.
//!
//! Everything here runs inside the build root (`scripts/enter`), whose file system is also the machine's.
//!
//! Invariants: a case has a verdict whatever the machine does; no machine outlives the process that booted it; a
//! kernel warning is a failure of the case during which it was printed.

pub mod accel;
pub mod blocks;
pub mod case;
pub mod console;
pub mod expect;
pub mod ktap;
pub mod memory;
pub mod patched;
pub mod processors;
pub mod program;
pub mod random;
pub mod session;
pub mod suite;
pub mod vm;
