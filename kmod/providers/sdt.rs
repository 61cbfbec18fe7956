// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The provider `sdt`: the tracepoints of the kernel and of its modules, `sdt:SUBSYSTEM::EVENT`.
//!
//! `arg0`, `arg1`, … are the arguments of the tracepoint itself, as the `TP_PROTO` of its
//! declaration lists them; they are not the fields of its trace event. A tracepoint without an
//! event belongs to `vmlinux`, or to the module that defines it.
//!
//! The tracepoints of a module appear when the module has started and go before it does. Enabling
//! patches each tracepoint separately, because the kernel's interface takes one at a time.

use super::{attributes, KERNEL, PRIVATE};
use crate::framework::{
    fire, Args, Batch, Failed, FireArgs, Framework, ProbeRef, Provider, Registration,
};
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

/// The provider. A probe's cookie has the number of its set in the upper half (0 for the kernel's
/// own tracepoints) and the index of its hook in the lower half.
struct SdtProvider {
    tracepoints: SetOnce<Tracepoints<Event>>,
    modules: Arc<ModuleHooks<Event>>,
}

/// How many bits of a cookie hold the index of the hook.
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

/// The registered provider, which follows modules.
#[pin_data]
struct Sdts {
    /// `None` once the provider has ended.
    #[pin]
    registration: Mutex<Option<Registration>>,
    /// The probes of modules.
    #[pin]
    probes: Mutex<KVVec<ProbeRef>>,
}

/// The registered provider, as the notifier owns it.
struct Followed(Arc<Sdts>);

/// The provider in operation. Dropping it ends it.
pub struct Handle {
    sdts: Arc<Sdts>,
    _following: Following<Event, Followed>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        // Disarm the probes before the notifier goes: what is attached to a module's tracepoint
        // needs the notification that the module goes.
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
                let Some(probe) = create(batch, system, desc.name, cookie(set, n)?)? else {
                    return Ok(None);
                };
                probes.push_within_capacity(probe).map_err(|_| ENOMEM)?;
                Ok(Some(Event(probe)))
            })
        })
    }

    /// Counts the probes as missed for descriptions of this module. The probes' module part is
    /// their subsystem, which may have another name than the module; usually both are the same.
    fn miss(&self, module: &Module) {
        if let Some(registration) = self.registration.lock().as_ref() {
            registration.miss(module.name());
        }
    }

    /// Removes the probes of a set. One at a time, because that allocates nothing and cannot fail.
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
            // The list is unlocked here: removing takes the framework's mutex, which comes first.
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

/// Creates a probe. `None`: its name is too long for the contract, or has characters that none may
/// have; it is left out.
fn create(
    batch: &mut Batch<'_>,
    system: &[u8],
    name: &[u8],
    cookie: u64,
) -> Result<Option<ProbeRef>> {
    match batch.create(system, b"", name, cookie) {
        Err(error) if error == E2BIG || error == EINVAL => {
            pr_info!("sdt: a tracepoint is left out, its name cannot be a probe's\n");
            Ok(None)
        }
        created => created.map(Some),
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
            Ok(create(batch, module, desc.name, cookie(0, n)?)?.map(Event))
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
