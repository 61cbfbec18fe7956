// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Determines the instructions at which a probe fires.
//!
//! A function is entered at its first instruction. It may be left at each return and at each jump
//! whose target may be elsewhere; whether such a jump does leave is known only once it has been
//! executed. Some instructions cannot be probed: our module does not emulate them, and the kernel
//! would refuse them or execute something else. The error says why.

use super::{Code, Function, Kind};
use dtrace_files::arch::LONGEST;

impl Code {
    /// Returns the offsets in a function at which probes of a kind fire, or why there can be none.
    /// An empty list means that the function never returns.
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

    /// Checks whether the instruction at `address` can be probed.
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

    /// Returns the bytes that the instruction at `address` may consist of.
    fn longest(&self, address: u64) -> &[u8] {
        self.bytes(address, LONGEST).unwrap_or_default()
    }
}
