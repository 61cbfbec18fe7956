// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Variables: where they are stored, and how DIF addresses values by reference.
//!
//! Globals and clause-locals have fixed places ([`statics`]), which are known when a clause is
//! prepared, and are found by id ([`index`]). Thread-locals and elements of associative arrays are
//! created when they are assigned ([`dynamic`]). All memory of the engine that programs can see has
//! addresses that DIF can compute with ([`addr`]).
// Offsets within one allocation, and numbers of items in it.
#![allow(clippy::arithmetic_side_effects)]

pub mod addr;
pub mod dynamic;
pub mod index;
pub mod statics;
