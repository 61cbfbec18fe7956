// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! What other kernel modules may call, so as to be providers: the C interface of `include/linux/dtrace_provider.h`.
//!
//! A provider of theirs is an [`Arc`] that they hold as an opaque pointer from its registration until it is removed; a
//! probe is a reference, as to everybody else, for probes stay until our module goes. Other modules keep ours from going by the
//! symbols that they use. So what they pass is valid as long as they keep to the interface.

use crate::bindings;
use core::ffi::{c_char, c_int, c_void, CStr};
use core::pin::Pin;
use dtrace_uapi::types::{Attribute, ProviderAttributes};
use kernel::prelude::*;
use kernel::sync::Arc;
use kernel::types::ForeignOwnable;

/// A module that has registered a provider, with its functions.
pub struct Client(bindings::dtrace_client);

// SAFETY: The functions may be called by anybody, by the interface.
unsafe impl Send for Client {}
// SAFETY: As above.
unsafe impl Sync for Client {}

impl Client {
    /// Tells that a probe is wanted, and keeps the module from going.
    pub fn enable<P>(&self, probe: &'static P, parg: u64) -> Result {
        // SAFETY: The module is there, for it is registered, though it may be going.
        if !unsafe { bindings::dtrace_module_hold(self.0.owner) } {
            return Err(ENODEV);
        }
        let handle = core::ptr::from_ref(probe).cast();
        // SAFETY: The functions are there as long as the registration.
        let ret = unsafe { bindings::dtrace_client_enable(&self.0, handle, parg as usize) };
        kernel::error::to_result(ret).inspect_err(|_| self.release())
    }

    /// Tells that nobody wants a probe any more that was enabled.
    pub fn disable<P>(&self, probe: &'static P, parg: u64) {
        let handle = core::ptr::from_ref(probe).cast();
        // SAFETY: As in `enable`.
        unsafe { bindings::dtrace_client_disable(&self.0, handle, parg as usize) };
        self.release();
    }

    fn release(&self) {
        // SAFETY: `enable` has taken the reference.
        unsafe { bindings::dtrace_module_put(self.0.owner) };
    }

    /// Argument `n` of a probe: which word it is, its type, and what it is translated to.
    pub fn argument<P>(&self, probe: &'static P, parg: u64, n: u32) -> Option<Argument> {
        let handle = core::ptr::from_ref(probe).cast();
        let mut desc = bindings::dtrace_arg::default();
        // SAFETY: As in `enable`; the description is ours.
        let known = unsafe {
            bindings::dtrace_client_argdesc(&self.0, handle, parg as usize, n, &mut desc)
        };
        known.then_some(Argument(desc))
    }
}

/// An argument, as a module describes it.
pub struct Argument(bindings::dtrace_arg);

impl Argument {
    /// Which of the probe's words it is.
    pub fn mapping(&self) -> i32 {
        self.0.mapping
    }

    /// Its type.
    pub fn native(&self) -> impl Iterator<Item = u8> + '_ {
        text(&self.0.native)
    }

    /// The type that a translator gives it.
    pub fn translated(&self) -> impl Iterator<Item = u8> + '_ {
        text(&self.0.xlate)
    }
}

fn text(field: &[c_char]) -> impl Iterator<Item = u8> + '_ {
    field.iter().map(|c| *c as u8).take_while(|c| *c != 0)
}

/// The parts of a probe's name behind the provider: module, function, name.
pub type Parts<'a> = [&'a [u8]; 3];

/// How the calls are carried out.
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

    /// Removes it, if none of its probes is wanted.
    fn remove(provider: &Self::Provider) -> Result;

    /// Creates a probe.
    fn create(
        provider: &Self::Provider,
        name: Parts<'_>,
        parg: u64,
    ) -> Result<&'static Self::Probe>;

    /// The probe of this name.
    fn lookup(provider: &Self::Provider, name: Parts<'_>) -> Option<&'static Self::Probe>;

    /// What the module gave at the probe's creation.
    fn parg(probe: &'static Self::Probe) -> u64;

    /// Fires it. In any context.
    fn fire(probe: &'static Self::Probe, args: &[u64]);
}

/// The interface in operation. Dropped when no module is left that uses it, which is when ours goes.
pub struct Exports<T: Interface> {
    table: Pin<KBox<bindings::dtrace_exports>>,
    _interface: Arc<T>,
}

// SAFETY: The table is only read.
unsafe impl<T: Interface> Send for Exports<T> {}
// SAFETY: As above.
unsafe impl<T: Interface> Sync for Exports<T> {}

impl<T: Interface> Exports<T> {
    /// Opens the interface. Once, before our module has started.
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
        // SAFETY: The table stays until `drop`, and nobody calls yet.
        unsafe { bindings::dtrace_exports_set(&*this.table) };
        Ok(this)
    }
}

impl<T: Interface> Drop for Exports<T> {
    fn drop(&mut self) {
        // SAFETY: Who could call has gone before us.
        unsafe { bindings::dtrace_exports_set(core::ptr::null()) };
    }
}

/// # Safety
///
/// `text` is a C string that stays for `'a`.
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
/// Called by `exports.c` with what `open` gave it and what a module passed.
unsafe extern "C" fn add<T: Interface>(
    data: *const c_void,
    name: *const c_char,
    attr: *const bindings::dtrace_pattr,
    privileges: u32,
    client: *const bindings::dtrace_client,
    provider: *mut *const c_void,
) -> c_int {
    // SAFETY: By the caller's promise, all are valid.
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
            // SAFETY: As above.
            unsafe { *provider = new.into_foreign() };
            0
        }
        Err(error) => error.to_errno(),
    }
}

/// # Safety
///
/// As [`add`]; `provider` is one that that gave, and not removed.
unsafe extern "C" fn remove<T: Interface>(provider: *const c_void) -> c_int {
    // SAFETY: By the caller's promise.
    if let Err(error) = T::remove(&*unsafe { borrow::<T>(provider) }) {
        return error.to_errno();
    }
    // SAFETY: As above; it is removed now.
    drop(unsafe { Arc::<T::Provider>::from_foreign(provider.cast_mut()) });
    0
}

/// # Safety
///
/// As [`remove`].
unsafe fn borrow<'a, T: Interface>(
    provider: *const c_void,
) -> <Arc<T::Provider> as ForeignOwnable>::Borrowed<'a> {
    // SAFETY: By the caller's promise.
    unsafe { Arc::<T::Provider>::borrow(provider.cast_mut()) }
}

/// # Safety
///
/// As [`remove`].
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
/// As [`remove`].
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
/// `probe` is one that [`create`] or [`lookup`] gave.
unsafe extern "C" fn parg<T: Interface>(probe: *const c_void) -> usize {
    // SAFETY: By the caller's promise; probes stay.
    T::parg(unsafe { &*probe.cast::<T::Probe>() }) as usize
}

/// # Safety
///
/// As [`parg`]; there are as many words as `exports.h` says.
unsafe extern "C" fn fire<T: Interface>(probe: *const c_void, args: *const u64) {
    // SAFETY: By the caller's promise; probes stay.
    let (probe, args) = unsafe {
        (
            &*probe.cast::<T::Probe>(),
            core::slice::from_raw_parts(args, bindings::DTRACE_EXPORTS_ARGS as usize),
        )
    };
    T::fire(probe, args);
}
