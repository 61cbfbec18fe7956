// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! The suite of the other DTrace for Linux, run against this one.
//!
//! It knows about two thousand programs and what they must print. It is fetched when it is needed (`scripts/suite`), lies
//! over the machine's `/usr` for as long as the machine runs, and nothing of it is in this repository but the names of cases:
//! which class they belong to ([`lists`]) and which of them are known to fail, and why.
//!
//! [`options`] reads what a case says of itself, [`plan`] makes of it what the machine runs, [`judge`] says whether it passed
//! and which differences between the systems are none, [`board`] counts.

pub mod board;
pub mod judge;
pub mod lists;
pub mod options;
pub mod plan;
