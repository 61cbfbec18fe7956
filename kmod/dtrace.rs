// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! dtrace.ko: loading and unloading of the module.
//!
//! Loading creates, in this order: the workers and memory of probe context, the tables and walks of
//! stacks, the framework, the providers with their probes, the anonymous enabling if there is one,
//! and last the devices, which admit consumers and programs. Unloading goes the other way. It can
//! begin only when there is no consumer, because an open consumer keeps the module; a program's
//! open file of the helper device does not (INV-23).

#![deny(unsafe_code)]
#![deny(missing_docs)]
// No other crate links to this one, so `pub` means: for other modules of this crate.
#![allow(unreachable_pub)]

use framework::anon;
use framework::deadman;
use framework::device::{self, Device};
use framework::helper::{self, Helper};
use framework::quota;
use framework::Framework;
use kernel::prelude::*;
use kernel::sync::Arc;
use sys::module::parameter;
use sys::patching::Patchers;
use sys::pause::Calls;
use sys::percpu::CpuScratch;
use sys::stack::Walks;
use sys::unwind::Tables;

mod bindings;
mod framework;
mod providers;
mod sys;

module! {
    type: Dtrace,
    name: "dtrace",
    authors: ["The DTrace for Linux authors"],
    description: "DTrace",
    license: "GPL v2",
    params: {
        anon: u32 {
            default: 1,
            description: "Trace what the file of the anonymous enabling asks for (0: do not)",
        },
        deadman_timeout: u32 {
            default: 0,
            description: "Time after which a consumer that starves the machine is killed, ms (0: 10 s)",
        },
        deadman_user: u32 {
            default: 0,
            description: "Time that a consumer may trace without asking for its records, ms (0: 30 s)",
        },
        group: u32 {
            default: u32::MAX,
            description: "Group whose members may trace their own processes (none)",
        },
        user_places: u32 {
            default: 1_000,
            description: "Places in processes that a member of that group may have (1000)",
        },
        user_memory: u32 {
            default: 0,
            description: "Memory that a member's buffers and programs may take, MiB (0: an eighth of the machine's)",
        },
        consumer_places: u32 {
            default: 1_000_000,
            description: "Places in processes that a consumer may have (1000000)",
        },
    },
}

/// The loaded module. The order of the fields is the order in which they are dropped: the programs'
/// device, the consumers' device, calls of the module that tasks have still to make, the providers,
/// the framework into which they fire, the tables of stacks, the walks, the memory of probe
/// context, and the workers for text patching.
struct Dtrace {
    _helper: Helper,
    _device: Pin<KBox<Device>>,
    _calls: Calls,
    _providers: providers::Providers,
    _framework: Arc<Framework>,
    _tables: Tables,
    _walks: Walks,
    _scratch: CpuScratch,
    _patchers: Patchers,
}

impl kernel::Module for Dtrace {
    fn init(module: &'static ThisModule) -> Result<Self> {
        let [consumers, helpers] = sys::layout::paths()?;
        let patchers = Patchers::new()?;
        let scratch = CpuScratch::new()?;
        let tables = Tables::new()?;
        let walks = Walks::new()?;
        let deadman = deadman::Limits::new(
            parameter(module_parameters::deadman_timeout.value()),
            parameter(module_parameters::deadman_user.value()),
        );
        let group = parameter(module_parameters::group.value());
        let places = quota::Limits {
            user: parameter(module_parameters::user_places.value()),
            consumer: parameter(module_parameters::consumer_places.value()),
            memory: match parameter(module_parameters::user_memory.value()) {
                0 => sys::mem::machine_mib() / 8,
                mib => mib,
            },
        };
        let framework = Framework::new(sys::once::parts()?, deadman, group, places)?;
        let providers = providers::register_all(&framework)?;
        // Must exist before the first consumer or program, because processes can be made to wait
        // from then on.
        let calls = Calls::new()?;
        let anonymous = match parameter(module_parameters::anon.value()) {
            0 => None,
            _ => anon::load(&framework, sys::file::anonymous()),
        };
        let helper = helper::register(&framework, helpers)?;
        // The last step: an open file keeps the module, but not if the module's init fails.
        let device = device::register(module, framework.clone(), anonymous, consumers)?;
        Ok(Self {
            _helper: helper,
            _device: device,
            _calls: calls,
            _providers: providers,
            _framework: framework,
            _tables: tables,
            _walks: walks,
            _scratch: scratch,
            _patchers: patchers,
        })
    }
}
