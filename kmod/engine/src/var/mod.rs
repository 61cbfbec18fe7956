// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Variables: where they live and how DIF addresses what is by reference.
//!
//! Globals and clause-locals have a place of their own ([`statics`]), known when a clause is prepared, and
//! are found by their ids ([`index`]). Thread-locals and
//! associative arrays are made as they are assigned ([`dynamic`]). Whatever the engine owns has an address that DIF can
//! compute with ([`addr`]).
// Offsets within one allocation, and numbers of what lies there.
#![allow(clippy::arithmetic_side_effects)]

pub mod addr;
pub mod dynamic;
pub mod index;
pub mod statics;
