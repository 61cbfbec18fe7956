// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! A misc device with a context, a mode, and an owner.
//!
//! [`kernel::miscdevice`] leaves `file_operations::owner` empty, so an open file would not keep the module: its text could be
//! unloaded under a running control call. This registration lends the abstraction's own operations and fills in
//! the owner, which makes misc_open() take a reference to the module and the last fput() give it back, both in the
//! kernel's own text.

use core::marker::PhantomPinned;
use kernel::bindings;
use kernel::error::to_result;
use kernel::miscdevice::{MiscDevice, MiscDeviceOptions, MiscDeviceRegistration};
use kernel::prelude::*;
use kernel::types::Opaque;

/// A device whose opener needs something to work on.
pub trait WithContext: MiscDevice {
    /// What that is.
    type Context: Send + Sync;
}

/// A registered device; dropping it removes the device.
///
/// # Invariants
///
/// `misc` is registered and its operations are `fops`.
#[pin_data(PinnedDrop)]
#[repr(C)]
pub struct Device<T: WithContext> {
    // First, so that its address is the device's; see `context`.
    #[pin]
    misc: Opaque<bindings::miscdevice>,
    #[pin]
    fops: Opaque<bindings::file_operations>,
    context: T::Context,
    #[pin]
    _pin: PhantomPinned,
}

// SAFETY: The context is `Send` and `Sync`, and the device may be removed by any thread.
unsafe impl<T: WithContext> Send for Device<T> {}
// SAFETY: As above.
unsafe impl<T: WithContext> Sync for Device<T> {}

impl<T: WithContext> Device<T> {
    /// Registers `/dev/<name>` with `mode`.
    pub fn register(
        name: &'static CStr,
        mode: u16,
        module: &'static ThisModule,
        context: T::Context,
    ) -> impl PinInit<Self, Error> {
        let raw = MiscDeviceOptions { name }.into_raw::<T>();
        try_pin_init!(&this in Self {
            fops <- Opaque::ffi_init(move |slot: *mut bindings::file_operations| {
                // SAFETY: `raw.fops` are the abstraction's own constant operations; `slot` is ours to write.
                unsafe {
                    slot.write(core::ptr::read(raw.fops));
                    (*slot).owner = module.as_ptr();
                }
            }),
            context,
            misc <- Opaque::try_ffi_init(move |slot: *mut bindings::miscdevice| {
                // SAFETY: `slot` is ours to write, and `this` is where it lies. Everything that `open` uses has been
                // initialized before.
                unsafe {
                    slot.write(raw);
                    (*slot).mode = mode;
                    (*slot).fops = (&raw const (*this.as_ptr()).fops).cast();
                    to_result(bindings::misc_register(slot))
                }
            }),
            _pin: PhantomPinned,
        })
    }

    /// The context of the device that `misc`, as given to [`MiscDevice::open`], is part of.
    ///
    /// # Panics
    ///
    /// Never; but `T` must be registered by [`Device::register`] only, which is this crate's only way.
    pub fn context(misc: &MiscDeviceRegistration<T>) -> &T::Context {
        // SAFETY: `misc` is the address of the raw device, which is the first field of a `Device<T>` that lives as long as the
        // device is registered, thus for the whole of the call to `open`.
        unsafe { &(*misc.as_raw().cast::<Self>()).context }
    }
}

#[pinned_drop]
impl<T: WithContext> PinnedDrop for Device<T> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: By the type's invariant.
        unsafe { bindings::misc_deregister(self.misc.get()) };
    }
}
