// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The provider `sdt`: the kernel's tracepoints, `sdt:SUBSYSTEM::EVENT`.
//!
//! `arg0`, `arg1`, … are the arguments of the tracepoint itself, which are those of the `TP_PROTO` in its declaration, not
//! the fields of its trace event. A tracepoint without an event belongs to `vmlinux`.

use super::KERNEL;
use crate::framework::{fire, Args, Failed, FireArgs, Framework, ProbeRef, Provider, Registration};
use crate::sys::tracepoint::{Hit, Tracepoints};
use dtrace_uapi::ioctl::PRIV_KERNEL;
use dtrace_uapi::types::{Attribute, Class, ProviderAttributes, Stability};
use kernel::prelude::*;
use kernel::sync::{Arc, SetOnce};

/// What a tracepoint fires.
struct Event(ProbeRef);

impl Hit for Event {
    #[inline]
    fn hit(&self, args: &[u64]) {
        fire(self.0, &FireArgs::new(Args::Words(args)));
    }
}

/// The provider. A probe's cookie is the index of its tracepoint.
struct SdtProvider {
    tracepoints: SetOnce<Tracepoints<Event>>,
}

impl SdtProvider {
    fn attach(&self, probe: ProbeRef) -> Result {
        let tracepoints = self.tracepoints.as_ref().ok_or(ENODEV)?;
        tracepoints.attach(probe.cookie() as usize)
    }
}

impl Provider for SdtProvider {
    fn name(&self) -> &'static str {
        "sdt"
    }

    fn attributes(&self) -> ProviderAttributes {
        let evolving = Attribute::new(Stability::Evolving, Stability::Evolving, Class::Isa);
        let private = Attribute::new(Stability::Private, Stability::Private, Class::Unknown);
        ProviderAttributes {
            provider: evolving,
            module: private,
            func: private,
            name: evolving,
            args: private,
        }
    }

    fn privileges(&self) -> u32 {
        PRIV_KERNEL
    }

    fn enable(&self, probes: &[ProbeRef], failed: &mut Failed) {
        for probe in probes {
            if let Err(error) = self.attach(probe) {
                failed.add(probe, error);
            }
        }
    }

    fn disable(&self, probes: &[ProbeRef]) {
        if let Some(tracepoints) = self.tracepoints.as_ref() {
            for probe in probes {
                tracepoints.detach(probe.cookie() as usize);
            }
        }
    }
}

/// Registers the provider and creates its probes.
pub fn register(framework: &Arc<Framework>) -> Result<Registration> {
    let provider = Arc::new(
        SdtProvider {
            tracepoints: SetOnce::new(),
        },
        GFP_KERNEL,
    )?;
    let registration = framework.register(provider.clone())?;
    registration.populate(|batch| {
        let tracepoints = Tracepoints::new(|desc, n| {
            let module = desc.system.unwrap_or(KERNEL);
            Ok(Event(batch.create(module, b"", desc.name, n as u64)?))
        })?;
        provider.tracepoints.populate(tracepoints);
        Ok(())
    })?;
    Ok(registration)
}
