// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The functions that ftrace can patch, according to the kernel's own records.
//!
//! A record is an address, not a function: that of the patchable call, a few bytes behind the
//! function's first. This address (`ip`) identifies a function everywhere in the providers, because
//! names come and go with aliases. Records of functions that the linker dropped in favour of a
//! stronger one of the same name are left out, because no symbol begins there.

use super::symbols::{self, Address, Names};
use crate::bindings;
use core::ffi::{c_int, c_void};
use dtrace_engine::mem::sort::sort;
use kernel::prelude::*;

/// A module that cannot be unloaded as long as the value lives.
pub struct ModuleRef(*mut kernel::bindings::module);

impl ModuleRef {
    fn of_text(addr: usize) -> Result<Option<Self>> {
        let lookup = symbols::lookup(c"__module_text_address")?;
        // SAFETY: The helper needs the address of `__module_text_address()`, which `lookup` is. It
        // takes any `addr`.
        let module = unsafe { bindings::dtrace_module_get(lookup.get(), addr) };
        Ok((!module.is_null()).then_some(Self(module)))
    }

    fn is_init_text(&self, addr: usize) -> bool {
        // SAFETY: The reference that `self` holds keeps the module.
        unsafe { bindings::dtrace_module_init_text(self.0, addr) }
    }
}

impl Drop for ModuleRef {
    fn drop(&mut self) {
        // SAFETY: `of_text` took this reference, and it is dropped once.
        unsafe { bindings::dtrace_module_put(self.0) }
    }
}

/// Whether calls of this function of the kernel proper never return, in tasks that never end: a
/// hook on its return would be lost for good. An idle task calls these functions anew each time its
/// CPU comes online, the second one in a guest of Xen (`arch/x86/xen/smp_pv.c`).
pub fn never_ends(name: &[u8]) -> bool {
    matches!(name, b"cpu_startup_entry" | b"cpu_bringup_and_idle")
}

/// Traceable functions with their names, sorted by address.
pub struct Functions {
    ips: KVVec<usize>,
    names: Names,
    // Keeps modules loaded, because `names` was looked up in their symbols.
    _modules: KVVec<ModuleRef>,
}

impl Functions {
    /// Returns all functions of the kernel, and of the modules that are loaded and not being
    /// unloaded. May sleep.
    pub fn all() -> Result<Self> {
        Self::collect(core::ptr::null_mut())
    }

    /// Returns the functions of a module that a notifier reports. May sleep.
    pub fn of_module(module: &super::module::Module) -> Result<Self> {
        Self::collect(module.as_ptr())
    }

    /// Calls `f` with address, module (`None`: the kernel itself) and name of each function that
    /// has a name. Stops at the first error.
    pub fn for_each(&self, mut f: impl FnMut(usize, Option<&[u8]>, &[u8]) -> Result) -> Result {
        for (n, ip) in self.ips.iter().enumerate() {
            if let Some((module, name)) = self.names.get(n) {
                f(*ip, module, name)?;
            }
        }
        Ok(())
    }

    fn collect(only: *mut kernel::bindings::module) -> Result<Self> {
        let mut ips = traceable(only)?;
        sort(&mut ips, |a, b| a < b);
        let modules = keep_modules(&mut ips)?;
        // SAFETY: No preconditions.
        let offset = unsafe { bindings::dtrace_traceable_offset() };
        let names = symbols::name_all(&ips, offset)?;
        Ok(Self {
            ips,
            names,
            _modules: modules,
        })
    }
}

/// Returns the address that ftrace patches for the function at `addr`, if the function is
/// traceable.
pub fn traceable_at(addr: Address) -> Option<usize> {
    let location = symbols::lookup(c"ftrace_location").ok()?;
    // SAFETY: `ftrace_location()` takes any number.
    let ip = unsafe { location.call([addr.get(), 0, 0, 0, 0]) };
    (ip != 0).then_some(ip)
}

/// Checks whether ftrace (still) patches an address.
pub struct Validity(Address);

impl Validity {
    /// Looks up what the checks need.
    pub fn new() -> Result<Self> {
        Ok(Self(symbols::lookup(c"ftrace_location")?))
    }

    /// Whether ftrace patches `ip`.
    pub fn check(&self, ip: usize) -> bool {
        // SAFETY: `ftrace_location()` takes any number.
        ip != 0 && unsafe { self.0.call([ip, 0, 0, 0, 0]) } == ip
    }
}

fn traceable(only: *mut kernel::bindings::module) -> Result<KVVec<usize>> {
    struct Sink {
        ips: KVVec<usize>,
        error: Result,
    }

    /// # Safety
    ///
    /// `data` must point to a `Sink` that nothing else uses during the call.
    unsafe extern "C" fn push(data: *mut c_void, ip: usize) -> c_int {
        // SAFETY: By the caller's promise.
        let sink = unsafe { &mut *data.cast::<Sink>() };
        sink.error = sink.ips.push(ip, GFP_KERNEL).map_err(Into::into);
        c_int::from(sink.error.is_err())
    }

    let start = symbols::lookup(c"ftrace_rec_iter_start")?;
    let next = symbols::lookup(c"ftrace_rec_iter_next")?;
    let record = symbols::lookup(c"ftrace_rec_iter_record")?;
    let lock = symbols::lookup(c"ftrace_lock")?;
    let mut sink = Sink {
        ips: KVVec::new(),
        error: Ok(()),
    };
    sink.ips.reserve(1 << 16, GFP_KERNEL)?;
    // SAFETY: The helper needs the addresses of these functions and of ftrace's mutex, which were
    // looked up by name. `push` gets the sink, which outlives the call and which nothing else uses
    // meanwhile.
    unsafe {
        bindings::dtrace_each_traceable(
            start.get(),
            next.get(),
            record.get(),
            lock.as_ptr(),
            only,
            Some(push),
            core::ptr::from_mut(&mut sink).cast(),
        )
    };
    sink.error?;
    Ok(sink.ips)
}

/// Takes a reference to each module that has functions in `ips`. Removes from `ips` the functions
/// of modules that are being unloaded, code that is freed after a module's start, and our own code.
fn keep_modules(ips: &mut KVVec<usize>) -> Result<KVVec<ModuleRef>> {
    let text_end = symbols::lookup(c"_etext")?.get();
    let mut modules: KVVec<ModuleRef> = KVVec::new();
    let mut error = Ok(());
    ips.retain(|ip| {
        if *ip < text_end || error.is_err() {
            return true;
        }
        // SAFETY: The helper takes any number.
        if unsafe { bindings::dtrace_own_text(*ip) } {
            return false;
        }
        match ModuleRef::of_text(*ip) {
            Err(e) => {
                error = Err(e);
                true
            }
            // Kernel text outside of the main section, or a module that is being loaded or
            // unloaded.
            Ok(None) => kernel_text(*ip),
            Ok(Some(module)) => {
                let keep = !module.is_init_text(*ip);
                if modules.last().map(|m| m.0) != Some(module.0) {
                    if let Err(e) = modules.push(module, GFP_KERNEL) {
                        error = Err(e.into());
                    }
                }
                keep
            }
        }
    });
    error?;
    Ok(modules)
}

/// Whether an address above the kernel's main text is nevertheless in the kernel image.
fn kernel_text(ip: usize) -> bool {
    symbols::lookup(c"_end").is_ok_and(|end| ip < end.get())
}
