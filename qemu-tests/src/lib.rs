// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! End-to-end tests: boots the stock kernel in a virtual machine, loads the module and runs
//! programs.
//!
//! [`vm`] boots a machine with virtme-ng and follows it; [`accel`] decides between KVM and
//! emulation; [`console`] finds trouble in the kernel's log. [`case`] reads the test cases,
//! [`expect`] compares an output with the expected one, [`session`] runs many cases in one machine
//! and boots another if a case takes the machine down, and [`blocks`] runs several machines at a
//! time. [`suite`] runs the test suite of the other DTrace for Linux. [`ktap`] reads the results of
//! the kernel's own unit tests; [`processors`] records how long the computer let a machine's
//! processors run; [`memory`], [`patched`], [`program`] and [`random`] are for programs that run in
//! the machine.
//!
//! Everything here runs inside the build root (`scripts/enter`), whose file system is also the
//! machine's.
//!
//! Invariants: every case gets a verdict, whatever happens to the machine; no machine outlives the
//! process that booted it; a kernel warning fails the case during which it was printed.

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
