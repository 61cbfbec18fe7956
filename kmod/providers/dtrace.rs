// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! `dtrace:::BEGIN`, `END` and `ERROR`: a consumer's own events.
//!
//! The framework fires them itself, each for one consumer: there is nothing to arm.

use crate::framework::{Failed, ProbeRef, Provider};
use dtrace_uapi::types::{Attribute, Class, ProviderAttributes, Stability};

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
