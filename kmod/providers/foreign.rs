// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Providers in other kernel modules, which use the C interface of
//! `include/linux/dtrace_provider.h`.
//!
//! A module cannot be unloaded while one of its probes is armed, because each armed probe holds a
//! reference to the module. Removing a provider is refused while any of its probes is armed. Calls
//! that come after the removal, from consumers that still know the provider, find it without its
//! module and fail.
//!
//! Invariant: the module's functions are called only while the provider is registered and its lock
//! (`Foreign::module`) is held. The framework's mutex is taken before that lock.

use super::put_text;
use crate::framework::{
    fire, Args, Failed, FireArgs, Framework, Probe, ProbeRef, Provider, Registration,
};
use crate::sys::exports::{Client, Exports, Interface, Parts};
use dtrace_uapi::ioctl::ArgDesc;
use dtrace_uapi::limits::PROVNAMELEN;
use dtrace_uapi::types::ProviderAttributes;
use kernel::prelude::*;
use kernel::sync::{new_mutex, Arc, Mutex};

/// A provider in another module.
#[pin_data]
pub struct Foreign {
    name: &'static str,
    attributes: ProviderAttributes,
    privileges: u32,
    /// `None` once the module has removed the provider.
    #[pin]
    module: Mutex<Option<Module>>,
    #[pin]
    registration: Mutex<Option<Registration>>,
}

struct Module {
    client: Client,
    /// The number of armed probes.
    armed: usize,
}

impl Provider for Foreign {
    fn name(&self) -> &'static str {
        self.name
    }

    fn attributes(&self) -> ProviderAttributes {
        self.attributes
    }

    fn privileges(&self) -> u32 {
        self.privileges
    }

    fn enable(&self, probes: &[ProbeRef], failed: &mut Failed) {
        let mut guard = self.module.lock();
        let module: &mut Option<Module> = &mut guard;
        for probe in probes {
            let result = module.as_mut().ok_or(ENODEV).and_then(|module| {
                module.client.enable(*probe, probe.cookie())?;
                module.armed = module.armed.wrapping_add(1);
                Ok(())
            });
            if let Err(error) = result {
                failed.add(probe, error);
            }
        }
    }

    fn disable(&self, probes: &[ProbeRef]) {
        let mut guard = self.module.lock();
        let module: &mut Option<Module> = &mut guard;
        if let Some(module) = module {
            for probe in probes {
                module.client.disable(*probe, probe.cookie());
                module.armed = module.armed.wrapping_sub(1);
            }
        }
    }

    fn argdesc(&self, probe: ProbeRef, n: u32, desc: &mut ArgDesc) -> bool {
        let module = self.module.lock();
        let known = module.as_ref();
        let Some(arg) = known.and_then(|m| m.client.argument(probe, probe.cookie(), n)) else {
            return false;
        };
        desc.mapping = arg.mapping();
        put_text(&mut desc.native, arg.native());
        put_text(&mut desc.xlate, arg.translated());
        true
    }
}

/// Handles the calls of other modules.
pub struct Foreigners {
    framework: Arc<Framework>,
}

impl Interface for Foreigners {
    type Provider = Foreign;
    type Probe = Probe;

    fn add(
        &self,
        name: &[u8],
        attributes: ProviderAttributes,
        privileges: u32,
        client: Client,
    ) -> Result<Arc<Foreign>> {
        let usable = |c: &u8| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-' | b'.');
        if name.is_empty() || name.len() >= PROVNAMELEN || !name.iter().all(usable) {
            return Err(EINVAL);
        }
        let name = core::str::from_utf8(self.framework.intern(name)?).map_err(|_| EINVAL)?;
        let module = Module { client, armed: 0 };
        let foreign = Arc::pin_init(
            pin_init!(Foreign {
                name,
                attributes,
                privileges,
                module <- new_mutex!(Some(module), "dtrace::Foreign"),
                registration <- new_mutex!(None, "dtrace::foreign_registration"),
            }),
            GFP_KERNEL,
        )?;
        let registration = self.framework.register(foreign.clone())?;
        *foreign.registration.lock() = Some(registration);
        Ok(foreign)
    }

    fn remove(foreign: &Foreign) -> Result {
        {
            let mut module = foreign.module.lock();
            if module.as_ref().is_some_and(|module| module.armed > 0) {
                return Err(EBUSY);
            }
            *module = None;
        }
        // Dropping the registration takes the framework's mutex, so it must not happen under a lock
        // that the provider's functions take.
        let registration = foreign.registration.lock().take();
        drop(registration);
        Ok(())
    }

    fn create(foreign: &Foreign, name: Parts<'_>, parg: u64) -> Result<ProbeRef> {
        let [module, func, name] = name;
        let registration = foreign.registration.lock();
        let registration = registration.as_ref().ok_or(ENODEV)?;
        registration.populate(|batch| match batch.find(module, func, name) {
            Some(_) => Err(EEXIST),
            None => batch.create(module, func, name, parg),
        })
    }

    fn lookup(foreign: &Foreign, name: Parts<'_>) -> Option<ProbeRef> {
        let [module, func, name] = name;
        let registration = foreign.registration.lock();
        let found = registration
            .as_ref()?
            .populate(|batch| Ok(batch.find(module, func, name)));
        found.ok()?
    }

    fn parg(probe: ProbeRef) -> u64 {
        probe.cookie()
    }

    #[inline]
    fn fire(probe: ProbeRef, args: &[u64]) {
        fire(probe, &FireArgs::new(Args::Words(args)));
    }
}

/// Opens the interface to other modules.
pub fn open(framework: &Arc<Framework>) -> Result<Exports<Foreigners>> {
    let framework = framework.clone();
    Exports::open(Arc::new(Foreigners { framework }, GFP_KERNEL)?)
}
