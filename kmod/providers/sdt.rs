// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The provider `sdt`: the tracepoints of the kernel and of its modules, `sdt:SUBSYSTEM::EVENT`.
//!
//! `arg0`, `arg1`, … are the arguments of the tracepoint itself, which are those of the `TP_PROTO` in its declaration, not
//! the fields of its trace event. A tracepoint without an event belongs to `vmlinux`, or to the module that defines it.
//!
//! Modules' tracepoints come when the module has started and go before it does. Each tracepoint is patched by itself when it is
//! enabled: the kernel's interface takes one at a time.

use super::{attributes, KERNEL, PRIVATE};
use crate::framework::{fire, Args, Failed, FireArgs, Framework, ProbeRef, Provider, Registration};
use crate::sys::module::Module;
use crate::sys::module_tracepoints::{follow, Follow, Following, Maker, ModuleHooks};
use crate::sys::tracepoint::{Hit, Tracepoints};
use dtrace_uapi::ioctl::PRIV_KERNEL;
use dtrace_uapi::types::ProviderAttributes;
use kernel::alloc::KVVec;
use kernel::prelude::*;
use kernel::sync::{new_mutex, Arc, Mutex, SetOnce};

/// What a tracepoint fires.
struct Event(ProbeRef);

impl Hit for Event {
    #[inline]
    fn hit(&self, args: &[u64]) {
        fire(self.0, &FireArgs::new(Args::Words(args)));
    }
}

/// The provider. A probe's cookie is the number of its set, 0 for the kernel's own, over the index of its hook.
struct SdtProvider {
    tracepoints: SetOnce<Tracepoints<Event>>,
    modules: Arc<ModuleHooks<Event>>,
}

/// The bits of a cookie that are the hook's.
const HOOK_BITS: u32 = 32;

fn cookie(set: u32, n: usize) -> Result<u64> {
    Ok(u64::from(set) << HOOK_BITS | u64::from(u32::try_from(n)?))
}

fn decode(probe: ProbeRef) -> (u32, usize) {
    let cookie = probe.cookie();
    ((cookie >> HOOK_BITS) as u32, cookie as u32 as usize)
}

impl SdtProvider {
    fn attach(&self, probe: ProbeRef) -> Result {
        match decode(probe) {
            (0, n) => self.tracepoints.as_ref().ok_or(ENODEV)?.attach(n),
            (set, n) => self.modules.attach(set, n),
        }
    }

    fn detach(&self, probe: ProbeRef) {
        match decode(probe) {
            (0, n) => {
                if let Some(tracepoints) = self.tracepoints.as_ref() {
                    tracepoints.detach(n);
                }
            }
            (set, n) => self.modules.detach(set, n),
        }
    }
}

impl Provider for SdtProvider {
    fn name(&self) -> &'static str {
        "sdt"
    }

    fn attributes(&self) -> ProviderAttributes {
        attributes(PRIVATE)
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
        for probe in probes {
            self.detach(probe);
        }
    }
}

/// The registered provider, following modules.
#[pin_data]
struct Sdts {
    /// Nothing once the provider ends.
    #[pin]
    registration: Mutex<Option<Registration>>,
    /// Those of modules.
    #[pin]
    probes: Mutex<KVVec<ProbeRef>>,
}

/// The registered provider as the notifier owns it.
struct Followed(Arc<Sdts>);

/// The provider in operation. Dropping it ends it.
pub struct Handle {
    sdts: Arc<Sdts>,
    _following: Following<Event, Followed>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        // The probes before the notifier: what is attached to a module must be told of its end.
        let registration = self.sdts.registration.lock().take();
        drop(registration);
    }
}

impl Sdts {
    fn add(&self, module: &Module, maker: Maker<'_, Event>) -> Result {
        let registration = self.registration.lock();
        let Some(registration) = registration.as_ref() else {
            return Ok(());
        };
        registration.populate(|batch| {
            let mut probes = self.probes.lock();
            maker.make(|set, desc, n| {
                let system = desc.system.unwrap_or(module.name());
                probes.reserve(1, GFP_KERNEL)?;
                let probe = batch.create(system, b"", desc.name, cookie(set, n)?)?;
                probes.push_within_capacity(probe).map_err(|_| ENOMEM)?;
                Ok(Some(Event(probe)))
            })
        })
    }

    /// Their module is another one by name where their subsystem is; as a rule it is the same.
    fn miss(&self, module: &Module) {
        if let Some(registration) = self.registration.lock().as_ref() {
            registration.miss(module.name());
        }
    }

    /// One by one: that takes no memory, and so always succeeds.
    fn remove(&self, set: u32) {
        loop {
            let gone = {
                let mut probes = self.probes.lock();
                let at = probes.iter().position(|probe| decode(probe).0 == set);
                at.and_then(|at| probes.remove(at).ok())
            };
            let Some(gone) = gone else {
                return;
            };
            // Not while the list is locked: populating locks the framework first.
            if let Some(registration) = self.registration.lock().as_ref() {
                registration.remove(&[gone]);
            }
        }
    }
}

impl Follow<Event> for Followed {
    fn live(&self, module: &Module, maker: Maker<'_, Event>) {
        if let Err(error) = self.0.add(module, maker) {
            pr_warn!("sdt: no probes for a module: {:?}\n", error);
            self.0.miss(module);
        }
    }

    fn going(&self, set: u32) {
        self.0.remove(set);
    }
}

/// Registers the provider and creates its probes.
pub fn register(framework: &Arc<Framework>) -> Result<Handle> {
    let modules = ModuleHooks::new()?;
    let provider = Arc::new(
        SdtProvider {
            tracepoints: SetOnce::new(),
            modules: modules.clone(),
        },
        GFP_KERNEL,
    )?;
    let registration = framework.register(provider.clone())?;
    registration.populate(|batch| {
        let tracepoints = Tracepoints::new(|desc, n| {
            let module = desc.system.unwrap_or(KERNEL);
            Ok(Some(Event(batch.create(
                module,
                b"",
                desc.name,
                cookie(0, n)?,
            )?)))
        })?;
        provider.tracepoints.populate(tracepoints);
        Ok(())
    })?;
    let sdts = Arc::pin_init(
        pin_init!(Sdts {
            registration <- new_mutex!(Some(registration), "dtrace::sdt"),
            probes <- new_mutex!(KVVec::new(), "dtrace::sdt_probes"),
        }),
        GFP_KERNEL,
    )?;
    let following = follow(&modules, Followed(sdts.clone()))?;
    Ok(Handle {
        sdts,
        _following: following,
    })
}
