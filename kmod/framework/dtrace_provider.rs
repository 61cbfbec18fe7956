// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! `dtrace:::BEGIN`, `END` and `ERROR`: a consumer's own events.
//!
//! Their provider `dtrace` is part of the framework, which fires each of them for one consumer at a
//! time. So there is nothing to arm.

use super::probe::ProbeRef;
use super::provider::{Batch, Failed, Provider};
use dtrace_uapi::types::{Attribute, Class, ProviderAttributes, Stability};
use kernel::prelude::*;

/// The three probes.
#[derive(Clone, Copy)]
pub struct Ends {
    /// `dtrace:::BEGIN`.
    pub begin: ProbeRef,
    /// `dtrace:::END`.
    pub end: ProbeRef,
    /// `dtrace:::ERROR`.
    pub error: ProbeRef,
}

impl Ends {
    /// Creates the three probes, in a batch of the provider.
    pub fn create(batch: &mut Batch<'_>) -> Result<Self> {
        Ok(Self {
            begin: batch.create(b"", b"", b"BEGIN", 0)?,
            end: batch.create(b"", b"", b"END", 0)?,
            error: batch.create(b"", b"", b"ERROR", 0)?,
        })
    }
}

/// The provider `dtrace`.
pub struct DtraceProvider;

impl Provider for DtraceProvider {
    fn name(&self) -> &'static str {
        "dtrace"
    }

    fn attributes(&self) -> ProviderAttributes {
        let stable = Attribute::new(Stability::Stable, Stability::Stable, Class::Common);
        let private = Attribute::new(Stability::Private, Stability::Private, Class::Unknown);
        ProviderAttributes {
            provider: stable,
            module: private,
            func: private,
            name: stable,
            args: stable,
        }
    }

    fn privileges(&self) -> u32 {
        0
    }

    fn enable(&self, _probes: &[ProbeRef], _failed: &mut Failed) {}

    fn disable(&self, _probes: &[ProbeRef]) {}
}
