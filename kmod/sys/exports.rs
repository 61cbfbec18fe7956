// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The functions that other kernel modules call in order to be providers: the C interface of
//! `include/linux/dtrace_provider.h`.
//!
//! A module holds its provider as an opaque pointer to an [`Arc`], from registration until removal.
//! A probe is a plain reference, as everywhere, because the memory of probes stays until our module
//! goes. Other modules keep ours loaded by the symbols that they use. What they pass is valid as
//! long as they keep to the interface.

use crate::bindings;
use core::ffi::{c_char, c_int, c_void, CStr};
use core::pin::Pin;
use dtrace_uapi::types::{Attribute, ProviderAttributes};
use kernel::prelude::*;
use kernel::sync::Arc;
use kernel::types::ForeignOwnable;

/// A module that has registered a provider, with its functions.
pub struct Client(bindings::dtrace_client);

// SAFETY: By the interface, a client's functions may be called by any task.
unsafe impl Send for Client {}
// SAFETY: As above.
unsafe impl Sync for Client {}

impl Client {
    /// Calls the module's function for enabling a probe, and keeps the module loaded. Fails with
    /// `ENODEV` if the module is being unloaded, and with the errors of that function. May sleep.
    pub fn enable<P>(&self, probe: &'static P, parg: u64) -> Result {
        // SAFETY: `owner` must point to a module, or be null for built-in code. A provider's module
        // has not been freed while the provider is registered, though it may be going.
        if !unsafe { bindings::dtrace_module_hold(self.0.owner) } {
            return Err(ENODEV);
        }
        let handle = core::ptr::from_ref(probe).cast();
        // SAFETY: The module's functions are present while the provider is registered, and the
        // reference just taken keeps them.
        let ret = unsafe { bindings::dtrace_client_enable(&self.0, handle, parg as usize) };
        kernel::error::to_result(ret).inspect_err(|_| self.release())
    }

    /// Calls the module's function for disabling a probe that was enabled, and lets the module go
    /// again. May sleep.
    pub fn disable<P>(&self, probe: &'static P, parg: u64) {
        let handle = core::ptr::from_ref(probe).cast();
        // SAFETY: The reference taken by `enable` keeps the module's functions present.
        unsafe { bindings::dtrace_client_disable(&self.0, handle, parg as usize) };
        self.release();
    }

    fn release(&self) {
        // SAFETY: `enable` took this reference.
        unsafe { bindings::dtrace_module_put(self.0.owner) };
    }

    /// Describes argument `n` of a probe: which word it is, its type, and the type that a
    /// translator gives it. `None`: the module does not describe it.
    pub fn argument<P>(&self, probe: &'static P, parg: u64, n: u32) -> Option<Argument> {
        let handle = core::ptr::from_ref(probe).cast();
        let mut desc = bindings::dtrace_arg::default();
        // SAFETY: The module's functions are present while the provider is registered; `desc` is
        // valid for the write.
        let known = unsafe {
            bindings::dtrace_client_argdesc(&self.0, handle, parg as usize, n, &mut desc)
        };
        known.then_some(Argument(desc))
    }
}

/// A module's description of an argument.
pub struct Argument(bindings::dtrace_arg);

impl Argument {
    /// Returns the index of the probe's word that the argument is.
    pub fn mapping(&self) -> i32 {
        self.0.mapping
    }

    /// Returns its type.
    pub fn native(&self) -> impl Iterator<Item = u8> + '_ {
        text(&self.0.native)
    }

    /// Returns the type that a translator gives it.
    pub fn translated(&self) -> impl Iterator<Item = u8> + '_ {
        text(&self.0.xlate)
    }
}

fn text(field: &[c_char]) -> impl Iterator<Item = u8> + '_ {
    field.iter().map(|c| *c as u8).take_while(|c| *c != 0)
}

/// The parts of a probe's name after the provider: module, function, name.
pub type Parts<'a> = [&'a [u8]; 3];

/// The implementation of the interface's functions.
pub trait Interface: Send + Sync + 'static {
    /// A provider.
    type Provider: Send + Sync + 'static;
    /// A probe.
    type Probe: Sync + 'static;

    /// Registers a provider.
    fn add(
        &self,
        name: &[u8],
        attributes: ProviderAttributes,
        privileges: u32,
        client: Client,
    ) -> Result<Arc<Self::Provider>>;

    /// Removes a provider, if none of its probes is enabled.
    fn remove(provider: &Self::Provider) -> Result;

    /// Creates a probe.
    fn create(
        provider: &Self::Provider,
        name: Parts<'_>,
        parg: u64,
    ) -> Result<&'static Self::Probe>;

    /// Returns the probe of this name.
    fn lookup(provider: &Self::Provider, name: Parts<'_>) -> Option<&'static Self::Probe>;

    /// Returns the value that the module passed when it created the probe.
    fn parg(probe: &'static Self::Probe) -> u64;

    /// Fires a probe. May be called in any context.
    fn fire(probe: &'static Self::Probe, args: &[u64]);
}

/// The open interface. It is dropped when no other module uses it any more, which is when ours
/// goes.
pub struct Exports<T: Interface> {
    table: Pin<KBox<bindings::dtrace_exports>>,
    _interface: Arc<T>,
}

// SAFETY: The table is only read; the interface is `Send` and `Sync`.
unsafe impl<T: Interface> Send for Exports<T> {}
// SAFETY: As above.
unsafe impl<T: Interface> Sync for Exports<T> {}

impl<T: Interface> Exports<T> {
    /// Opens the interface. Must be called once, before our module has started.
    pub fn open(interface: Arc<T>) -> Result<Self> {
        let table = bindings::dtrace_exports {
            data: Arc::as_ptr(&interface).cast(),
            add: Some(add::<T>),
            remove: Some(remove::<T>),
            create: Some(create::<T>),
            lookup: Some(lookup::<T>),
            parg: Some(parg::<T>),
            fire: Some(fire::<T>),
        };
        let this = Self {
            table: KBox::pin(table, GFP_KERNEL)?,
            _interface: interface,
        };
        // SAFETY: The table must stay until it is replaced, which `drop` does. No other module can
        // call yet, because none can be loaded that uses our symbols before our module has started.
        unsafe { bindings::dtrace_exports_set(&*this.table) };
        Ok(this)
    }
}

impl<T: Interface> Drop for Exports<T> {
    fn drop(&mut self) {
        // SAFETY: No call may be under way or follow: every module that uses our symbols has gone
        // before ours.
        unsafe { bindings::dtrace_exports_set(core::ptr::null()) };
    }
}

/// # Safety
///
/// `text` must be a C string that is valid and unchanged for `'a`.
unsafe fn bytes<'a>(text: *const c_char) -> &'a [u8] {
    // SAFETY: By the caller's promise.
    unsafe { CStr::from_char_ptr(text.cast()) }.to_bytes()
}

fn attribute(raw: &bindings::dtrace_attribute) -> Attribute {
    Attribute {
        name: raw.name,
        data: raw.data,
        class: raw.dclass,
    }
}

/// # Safety
///
/// Called by `exports.c` with the data that `open` set and valid arguments of a module.
unsafe extern "C" fn add<T: Interface>(
    data: *const c_void,
    name: *const c_char,
    attr: *const bindings::dtrace_pattr,
    privileges: u32,
    client: *const bindings::dtrace_client,
    provider: *mut *const c_void,
) -> c_int {
    // SAFETY: By the caller's promise `data` is the `T` that `Exports` keeps alive, and the other
    // pointers are valid for reads.
    let (interface, name, attr, client) =
        unsafe { (&*data.cast::<T>(), bytes(name), &*attr, client.read()) };
    let attributes = ProviderAttributes {
        provider: attribute(&attr.provider),
        module: attribute(&attr.mod_),
        func: attribute(&attr.func),
        name: attribute(&attr.name),
        args: attribute(&attr.args),
    };
    match interface.add(name, attributes, privileges, Client(client)) {
        Ok(new) => {
            // SAFETY: By the caller's promise `provider` is valid for the write.
            unsafe { *provider = new.into_foreign() };
            0
        }
        Err(error) => error.to_errno(),
    }
}

/// # Safety
///
/// As [`add`]. `provider` must have come from `add` and must not have been removed.
unsafe extern "C" fn remove<T: Interface>(provider: *const c_void) -> c_int {
    // SAFETY: By the caller's promise the pointer came from `into_foreign()` in `add`.
    if let Err(error) = T::remove(&*unsafe { borrow::<T>(provider) }) {
        return error.to_errno();
    }
    // SAFETY: As above. The provider is removed now, so the module uses the pointer no more and
    // this happens once.
    drop(unsafe { Arc::<T::Provider>::from_foreign(provider.cast_mut()) });
    0
}

/// # Safety
///
/// As [`remove`]; the provider must not be removed during `'a`.
unsafe fn borrow<'a, T: Interface>(
    provider: *const c_void,
) -> <Arc<T::Provider> as ForeignOwnable>::Borrowed<'a> {
    // SAFETY: By the caller's promise the pointer came from `into_foreign()`, and `from_foreign()`
    // is called after `'a` at the earliest.
    unsafe { Arc::<T::Provider>::borrow(provider.cast_mut()) }
}

/// # Safety
///
/// As [`remove`]; the strings must be valid.
unsafe extern "C" fn create<T: Interface>(
    provider: *const c_void,
    module: *const c_char,
    func: *const c_char,
    name: *const c_char,
    parg: usize,
) -> *const c_void {
    // SAFETY: By the caller's promise.
    let (provider, parts) = unsafe {
        (
            borrow::<T>(provider),
            [bytes(module), bytes(func), bytes(name)],
        )
    };
    match T::create(&provider, parts, parg as u64) {
        Ok(probe) => core::ptr::from_ref(probe).cast(),
        Err(_) => core::ptr::null(),
    }
}

/// # Safety
///
/// As [`create`].
unsafe extern "C" fn lookup<T: Interface>(
    provider: *const c_void,
    module: *const c_char,
    func: *const c_char,
    name: *const c_char,
) -> *const c_void {
    // SAFETY: By the caller's promise.
    let (provider, parts) = unsafe {
        (
            borrow::<T>(provider),
            [bytes(module), bytes(func), bytes(name)],
        )
    };
    T::lookup(&provider, parts).map_or(core::ptr::null(), |probe| core::ptr::from_ref(probe).cast())
}

/// # Safety
///
/// `probe` must have come from [`create`] or [`lookup`].
unsafe extern "C" fn parg<T: Interface>(probe: *const c_void) -> usize {
    // SAFETY: By the caller's promise it came from a `&'static T::Probe`.
    T::parg(unsafe { &*probe.cast::<T::Probe>() }) as usize
}

/// # Safety
///
/// As [`parg`]; `args` must be valid for `DTRACE_EXPORTS_ARGS` words.
unsafe extern "C" fn fire<T: Interface>(probe: *const c_void, args: *const u64) {
    // SAFETY: By the caller's promise; the probe came from a `&'static T::Probe`.
    let (probe, args) = unsafe {
        (
            &*probe.cast::<T::Probe>(),
            core::slice::from_raw_parts(args, bindings::DTRACE_EXPORTS_ARGS as usize),
        )
    };
    T::fire(probe, args);
}
