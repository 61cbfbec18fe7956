// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The provider `fbt`: entry and return of every function that the kernel can patch, in the kernel
//! itself and in loaded modules.
//!
//! `arg0`, `arg1`, … of an entry are the function's arguments. Of a return, `arg0` is the address
//! that the function returns to, and `arg1` is its value. An entry fires even if the return of the
//! call cannot be hooked. Such a return is counted (`returns.c` lists the reasons).
//!
//! A function has a probe for each of its addresses: several static functions of one name make
//! several probes of one name. Names are those of `available_filter_functions`; if an address has
//! several names, it is the first. A function whose name is longer than the field in `uapi` is left
//! out; the number of these functions goes to the kernel's log.
//!
//! The functions of a module appear when the module has started, and go before its code does.

use super::function::{FunctionProbes, Shape, Site};
use super::{attributes, KERNEL, PRIVATE};
use crate::framework::{
    fire, Args, Batch, Failed, FireArgs, Framework, ProbeRef, Provider, Registration,
};
use crate::sys::functions::{never_ends, Functions};
use crate::sys::module::{Events, Module, Notifier};
use crate::sys::regs::Regs;
use dtrace_uapi::ioctl::PRIV_KERNEL;
use dtrace_uapi::types::ProviderAttributes;
use kernel::alloc::KVVec;
use kernel::prelude::*;
use kernel::sync::{new_mutex, Arc, Mutex};

/// How kernel functions fire.
pub struct Fbt;

impl Shape for Fbt {
    #[inline]
    fn entry(_kind: usize, probe: ProbeRef, caller: u64, regs: &Regs) {
        fire(probe, &FireArgs::new(Args::Function(regs)).caller(caller));
    }

    #[inline]
    fn leave(probe: ProbeRef, caller: u64, value: u64) {
        fire(
            probe,
            &FireArgs::new(Args::Words(&[caller, value])).caller(caller),
        );
    }
}

/// The provider.
struct FbtProvider {
    functions: Arc<FunctionProbes<Fbt>>,
}

impl Provider for FbtProvider {
    fn name(&self) -> &'static str {
        "fbt"
    }

    fn attributes(&self) -> ProviderAttributes {
        attributes(PRIVATE)
    }

    fn privileges(&self) -> u32 {
        PRIV_KERNEL
    }

    fn enable(&self, probes: &[ProbeRef], failed: &mut Failed) {
        self.functions.enable(probes, failed);
    }

    fn disable(&self, probes: &[ProbeRef]) {
        self.functions.disable(probes);
    }
}

/// The probes of one module.
struct Loaded {
    module: KVVec<u8>,
    probes: KVVec<ProbeRef>,
}

/// The registered provider, which follows modules.
#[pin_data]
struct Fbts {
    registration: Registration,
    provider: Arc<FbtProvider>,
    #[pin]
    loaded: Mutex<KVVec<Loaded>>,
}

/// The provider in operation. Dropping it ends it.
pub struct Handle {
    _notifier: Pin<KBox<Notifier<Followed>>>,
}

/// The registered provider, as the notifier owns it.
struct Followed(Arc<Fbts>);

/// Creates the set of functions to hook, without sites.
pub fn functions() -> Result<Arc<FunctionProbes<Fbt>>> {
    Ok(Arc::new(FunctionProbes::new(None)?, GFP_KERNEL)?)
}

/// Registers the provider and creates its probes.
pub fn register(framework: &Arc<Framework>, functions: Arc<FunctionProbes<Fbt>>) -> Result<Handle> {
    let provider = Arc::new(FbtProvider { functions }, GFP_KERNEL)?;
    let registration = framework.register(provider.clone())?;
    let fbts = Arc::pin_init(
        pin_init!(Fbts {
            registration,
            provider,
            loaded <- new_mutex!(KVVec::new(), "dtrace::fbt"),
        }),
        GFP_KERNEL,
    )?;
    // The notifier first: a module that starts meanwhile is seen twice, and the second time its
    // probes already exist.
    let notifier = Notifier::new(Followed(fbts.clone()))?;
    fbts.populate(Functions::all)?;
    Ok(Handle {
        _notifier: notifier,
    })
}

impl Fbts {
    /// Creates the probes of functions that have none yet. `functions` is called with the
    /// framework's mutex held, so a module that goes meanwhile is removed afterwards. An error
    /// leaves no probe behind.
    fn populate(&self, functions: impl FnOnce() -> Result<Functions>) -> Result {
        self.registration.populate(|batch| {
            let functions = functions()?;
            let mut new = KVVec::new();
            let mut sites = KVVec::new();
            let mut too_long = 0u32;
            functions.for_each(|ip, module, func| {
                if self.provider.functions.contains(ip) {
                    return Ok(());
                }
                match create(batch, &mut new, ip, module, func) {
                    Ok(site) => sites.push(site, GFP_KERNEL)?,
                    Err(error) if error == E2BIG => too_long = too_long.wrapping_add(1),
                    Err(error) => return Err(error),
                }
                Ok(())
            })?;
            if too_long > 0 {
                pr_info!(
                    "fbt: {} functions left out, their names are too long\n",
                    too_long
                );
            }
            let mut loaded = self.loaded.lock();
            loaded.reserve(new.len(), GFP_KERNEL)?;
            self.provider.functions.add(sites)?;
            for module in new {
                loaded.push(module, GFP_KERNEL)?;
            }
            Ok(())
        })
    }

    /// Removes the probes of a module. The list may have two entries for a module that was seen
    /// twice.
    fn forget(&self, module: &[u8]) {
        while let Some(gone) = self.take(module) {
            self.registration.remove(&gone.probes);
            for probe in gone.probes.iter() {
                self.provider.functions.remove(probe);
            }
        }
    }

    /// Takes a module off the list. The list is unlocked on return, because populating takes the
    /// framework's mutex first.
    fn take(&self, module: &[u8]) -> Option<Loaded> {
        let mut loaded = self.loaded.lock();
        let at = loaded.iter().position(|l| *l.module == *module)?;
        loaded.remove(at).ok()
    }
}

fn create(
    batch: &mut Batch<'_>,
    loaded: &mut KVVec<Loaded>,
    ip: usize,
    module: Option<&[u8]>,
    func: &[u8],
) -> Result<Site> {
    let site = Site::create(batch, ip, 0, module.unwrap_or(KERNEL), func)?;
    if let Some(module) = module {
        // Functions come sorted by address, so it is nearly always the last entry.
        let at = match loaded.iter().rposition(|l| *l.module == *module) {
            Some(at) => at,
            None => {
                let mut name = KVVec::new();
                name.extend_from_slice(module, GFP_KERNEL)?;
                let new = Loaded {
                    module: name,
                    probes: KVVec::new(),
                };
                loaded.push(new, GFP_KERNEL)?;
                loaded.len().wrapping_sub(1)
            }
        };
        if let Some(list) = loaded.get_mut(at) {
            list.probes.extend_from_slice(&site.probes(), GFP_KERNEL)?;
        }
    }
    Ok(match module {
        None if never_ends(func) => site.endless(),
        _ => site,
    })
}

impl Events for Followed {
    fn live(&self, module: &Module) {
        if let Err(error) = self.0.populate(|| Functions::of_module(module)) {
            pr_warn!("fbt: no probes for a new module: {:?}\n", error);
            self.0.registration.miss(module.name());
        }
    }

    fn going(&self, module: &Module) {
        self.0.forget(module.name());
    }
}
