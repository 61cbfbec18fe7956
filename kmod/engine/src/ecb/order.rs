// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! The order of actions: which actions of a clause may follow `speculate()` and `commit()`, and
//! which may not come before them.
//!
//! A clause has one record. It goes to the principal buffer or, if there is a `speculate()`, to a
//! speculation. So `speculate()` comes before anything is recorded, and decides for the whole
//! clause. What cannot be taken back is not speculative: aggregations, `exit()`, destructive
//! actions. The records of a committed speculation go where the clause's own would, so a clause
//! with `commit()` has none.

use crate::error::Reason;
use dtrace_uapi::action::Action as Kind;

/// What the actions so far have done.
#[derive(Debug, Default)]
pub(super) struct Order {
    recorded: bool,
    speculated: bool,
    committed: bool,
    discarded: bool,
}

fn refuse(name: &'static str, text: &'static str) -> Result<(), Reason> {
    Err(Reason::invalid(text).about(name))
}

impl Order {
    /// Whether the record goes to a speculation.
    pub(super) fn speculated(&self) -> bool {
        self.speculated
    }

    /// Whether there are actions on speculations.
    pub(super) fn speculates(&self) -> bool {
        self.speculated || self.committed || self.discarded
    }

    /// Notes that an aggregation follows; an error if it may not.
    pub(super) fn aggregate(&self) -> Result<(), Reason> {
        match (self.speculated, self.committed) {
            (true, _) => refuse("speculate", "aggregating action may not follow"),
            (_, true) => refuse("commit", "aggregating action may not follow"),
            _ => Ok(()),
        }
    }

    /// Notes that an action of this kind follows; an error if it may not. `records` says whether it
    /// has data, `destroys` whether its expression is destructive.
    pub(super) fn action(
        &mut self,
        kind: Kind,
        records: bool,
        destroys: bool,
    ) -> Result<(), Reason> {
        match kind {
            Kind::Speculate if self.recorded || self.speculated || self.committed => {
                return refuse("speculate", "may not follow what records")
            }
            Kind::Commit if self.recorded || self.speculated => {
                return refuse("commit", "may not follow what records")
            }
            Kind::Exit if self.speculated => return refuse("exit", "may not follow speculate"),
            _ if (destroys || kind.is_destructive()) && self.speculated => {
                return refuse("speculate", "destructive action may not follow")
            }
            _ if records && self.committed => {
                return refuse("commit", "what records may not follow")
            }
            Kind::Speculate => self.speculated = true,
            Kind::Commit => self.committed = true,
            Kind::Discard => self.discarded = true,
            _ => self.recorded |= records,
        }
        Ok(())
    }
}
