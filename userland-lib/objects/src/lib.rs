// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Probes in programs and libraries: functions and instructions ([`pid`]), and the probes that
//! programs define themselves ([`usdt`]).
//!
//! A description of such probes is resolved here to places in files. The processes that have mapped
//! the files are reached through an interface ([`processes`]); nothing here reads `/proc`.

#![forbid(unsafe_code)]

pub mod pattern;
pub mod pid;
pub mod processes;
pub mod usdt;
