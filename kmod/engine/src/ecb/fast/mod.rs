// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Fast paths.
//!
//! Most firings of most clauses do next to nothing. A condition on one built-in variable does not
//! hold; or a counter is incremented that has no key, or whose key is one built-in variable or a
//! stack that came before; or some built-in variables are recorded. None of this takes memory or
//! budget, or can fault, except by an argument that lies in memory. So it is done before per-firing
//! state is set up, and the general path is for clauses that need it, and for those that fault.
//! Clauses that time something, and stacks that did not come before, need a part of that state and
//! are done by themselves.
//!
//! A clause has one [`Condition`] and one [`Body`]. A body other than [`Body::Actions`] is all that
//! the clause does; only [`Timing`] may have a condition that takes a program, which it tests
//! itself.

pub mod condition;
pub mod count;
pub(super) mod execname;
pub mod record;
pub mod stacks;
pub mod timing;

use super::Action;
use crate::budget::{LIGHT, PORTION};
use crate::error::NoMem;
use condition::Condition;
use count::{Count, CountByNumber};
use record::Values;
use stacks::CountByStack;
use timing::Timing;

/// What a clause does when its condition holds.
#[derive(Debug)]
pub enum Body {
    /// Counts, without a key or by the name of the process. [`Actions`](Self::Actions) if the key
    /// differs from the last one, or there was none.
    Count(Count),
    /// Counts by a number. [`Actions`](Self::Actions) if the number is new or cannot
    /// be loaded.
    CountByNumber(CountByNumber),
    /// Counts by a stack.
    CountByStack(CountByStack),
    /// Records values. [`Actions`](Self::Actions) if an argument cannot be loaded.
    Record(Values),
    /// Sets thread-local variables that are numbers, and aggregates without a key.
    Timing(Timing),
    /// Whatever the clause's actions are.
    Actions,
}

/// What decides which body a clause may have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    /// Size of the record, in bytes.
    pub record: usize,
    /// Its room in the principal buffer, in bytes.
    pub principal: usize,
    /// What the clause takes from the budget, in units.
    pub price: usize,
}

impl Body {
    /// Returns the body of a clause with this condition and these actions.
    pub(super) fn of(
        condition: &Condition,
        actions: &[Action],
        extent: Extent,
    ) -> Result<Self, NoMem> {
        // A clause that takes long must check in between whether it may go on, which these paths
        // do not.
        if extent.price > PORTION as usize {
            return Ok(Self::Actions);
        }
        let program = condition.program();
        if extent.record != 0 {
            let records = program.is_none() && extent.principal != 0;
            let values = if records { Values::of(actions)? } else { None };
            return Ok(values.map_or(Self::Actions, Self::Record));
        }
        if program.is_none() {
            if let Some(body) = Self::counting(actions, extent.price) {
                return Ok(body);
            }
        }
        let timing = Timing::of(program, actions)?;
        Ok(timing.map_or(Self::Actions, Self::Timing))
    }

    fn counting(actions: &[Action], price: usize) -> Option<Self> {
        let is_light = price <= LIGHT as usize;
        let by_number = || CountByNumber::of(actions).map(Self::CountByNumber);
        let by_stack = || CountByStack::of(actions).filter(|_| is_light);
        (Count::of(actions).map(Self::Count))
            .or_else(by_number)
            .or_else(|| by_stack().map(Self::CountByStack))
    }
}
