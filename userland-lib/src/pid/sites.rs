// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! At which instructions a probe fires.
//!
//! A function is entered at its first instruction, and left at every return and every jump that may go elsewhere; whether one of the
//! latter did is known when it has. Some instructions cannot be stopped at, and say why: the module does not do them, and the kernel would
//! refuse them, or execute them as something else.

use super::{Code, Function, Kind};
use crate::arch::LONGEST;

impl Code {
    /// Where in a function the probes of a kind fire, from its beginning on; or why there can be none. Nowhere: it never returns.
    pub fn sites(&self, function: &Function, kind: Kind) -> Result<Vec<u64>, String> {
        match kind {
            Kind::Entry => self.site(function.address).map(|()| vec![0]),
            Kind::Offset(offset) => {
                let at = function.address.wrapping_add(offset);
                self.site(at).map(|()| vec![offset])
            }
            Kind::Return => self.exits(function),
        }
    }

    /// Whether the instruction at `address` can be stopped at.
    pub fn site(&self, address: u64) -> Result<(), String> {
        self.instructions.probed(self.longest(address))
    }

    fn exits(&self, function: &Function) -> Result<Vec<u64>, String> {
        let Function { address, size, .. } = *function;
        let range = address..address.saturating_add(size);
        let mut exits = Vec::new();
        for offset in self.instructions(function) {
            let at = address.wrapping_add(offset);
            let code = self.longest(at);
            if self.instructions.leaves(code, at, &range)? {
                exits.push(offset);
            }
        }
        Ok(exits)
    }

    /// What the instruction at `address` may be.
    fn longest(&self, address: u64) -> &[u8] {
        self.bytes(address, LONGEST).unwrap_or_default()
    }
}
