// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! The running kernel as the compiler sees it: probes from the device, types from BTF, symbols from kallsyms.
//!
//! All of it is lazy. A program without kernel types never opens BTF, one without symbols never reads kallsyms:
//! the two are most of what starting a tracer costs.

use super::device::{fill, text, Device};
use crate::symbols::KernelSymbols;
use crate::types::btf::{Btf, KernelBtf};
use crate::world::{
    ArgInfo, ProbeInfo, ProbePattern, ProbeSource, Symbol, SymbolSource, TypeSource,
};
use dtrace_uapi::ioctl::ProbeDesc;
use dtrace_uapi::types::ProbeId;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use zerocopy::FromZeros;

/// The probes, types and symbols behind a device.
pub struct KernelWorld<'d> {
    device: &'d dyn Device,
    symbols: Rc<KernelSymbols>,
    btf: KernelBtf,
}

impl<'d> KernelWorld<'d> {
    /// The running kernel, reached through `device`.
    pub fn new(device: &'d dyn Device) -> Self {
        Self::with(device, KernelSymbols::default(), "/sys/kernel/btf")
    }

    /// A kernel whose symbols and types are kept elsewhere.
    pub fn with(device: &'d dyn Device, symbols: KernelSymbols, btf: impl Into<PathBuf>) -> Self {
        Self {
            device,
            symbols: Rc::new(symbols),
            btf: KernelBtf::new(btf),
        }
    }

    /// The device.
    pub fn device(&self) -> &'d dyn Device {
        self.device
    }

    /// The kernel's symbols, which rendering shares.
    pub fn symbols(&self) -> &Rc<KernelSymbols> {
        &self.symbols
    }
}

/// The device's form of `pattern`; `None` if a part is too long for any probe.
pub fn probe_desc(pattern: &ProbePattern) -> Option<ProbeDesc> {
    Some(ProbeDesc {
        id: pattern.id.saturating_sub(1),
        provider: fill(&pattern.provider)?,
        module: fill(&pattern.module)?,
        func: fill(&pattern.func)?,
        name: fill(&pattern.name)?,
    })
}

/// Walks the probes that match `pattern`, in the order of their numbers.
pub fn probes<'d>(
    device: &'d dyn Device,
    pattern: &ProbePattern,
) -> impl Iterator<Item = ProbeDesc> + 'd {
    let wanted = pattern.id;
    let mut next = match wanted {
        0 => probe_desc(pattern),
        id => {
            let mut any = ProbeDesc::new_zeroed();
            any.id = id - 1;
            Some(any)
        }
    };
    std::iter::from_fn(move || {
        let found = device.next_probe(next.as_ref()?).ok().flatten()?;
        if wanted != 0 {
            next = None;
            return Some(found).filter(|found| found.id == wanted);
        }
        // A device that does not go forward would be asked for ever.
        let pattern = next.as_mut()?;
        if found.id <= pattern.id {
            next = None;
            return None;
        }
        pattern.id = found.id;
        Some(found)
    })
}

impl ProbeSource for KernelWorld<'_> {
    fn matching(&self, pattern: &ProbePattern, limit: usize) -> Vec<ProbeInfo> {
        let info = |desc: ProbeDesc| ProbeInfo {
            id: desc.id,
            provider: text(&desc.provider),
            module: text(&desc.module),
            func: text(&desc.func),
            name: text(&desc.name),
        };
        probes(self.device, pattern).take(limit).map(info).collect()
    }

    fn argument(&self, id: ProbeId, index: u32) -> Option<ArgInfo> {
        let desc = self.device.argument(id, index).ok().flatten()?;
        Some(ArgInfo {
            mapping: u32::try_from(desc.mapping).ok()?,
            native: text(&desc.native),
            translated: text(&desc.xlate),
        })
    }
}

impl TypeSource for KernelWorld<'_> {
    fn btf(&self, module: &str) -> Option<Arc<Btf>> {
        TypeSource::btf(&self.btf, module)
    }

    fn modules(&self) -> Vec<String> {
        self.btf.modules()
    }
}

impl SymbolSource for KernelWorld<'_> {
    fn symbol(&self, module: Option<&str>, name: &str) -> Option<Symbol> {
        let symbol = self.symbols.by_name(module, name)?;
        Some(Symbol {
            address: symbol.address,
            module: symbol.module.to_owned(),
        })
    }
}
