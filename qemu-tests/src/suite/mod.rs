// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Runs the test suite of the other DTrace for Linux against this one.
//!
//! The suite has about two thousand programs with their expected output. It is fetched when it is
//! needed (`scripts/suite`) and laid over the machine's `/usr` for as long as the machine runs.
//! This repository contains nothing of it but the names of cases: which class they belong to
//! ([`lists`]), and which are known to fail, and why.
//!
//! [`options`] reads a case's options, [`plan`] derives from them what the machine runs, [`judge`]
//! decides whether the case passed and which differences between the systems to ignore, [`board`]
//! counts.

pub mod board;
pub mod judge;
pub mod lists;
pub mod options;
pub mod plan;
