// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Fast paths, which run before per-firing state is set up.
//!
//! Most firings of most clauses do next to nothing. A condition on one built-in variable does not
//! hold; or a counter is incremented that has no key, or whose key is one built-in variable or a
//! stack that came before; or some built-in variables are recorded. None of this takes memory or
//! budget, or can fault, except by an argument that lies in memory. So it is done first, and the
//! general path is for clauses that need it, and for those that fault. A
//! [`Guard`](condition::Guard) is the whole condition of its clause, which then has no other. The
//! others are all that their clause does, which has no condition but a guard.

pub mod condition;
pub mod count;
pub(super) mod execname;
pub mod record;
pub mod stacks;
pub mod timing;
