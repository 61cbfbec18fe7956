// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Kernel modules that are loaded and unloaded.

use crate::bindings;
use core::borrow::Borrow;
use core::cell::UnsafeCell;
use core::ffi::{c_int, c_void, CStr};
use core::marker::PhantomPinned;
use kernel::prelude::*;

/// A module that a notification is about.
pub struct Module(*mut bindings::module);

impl Module {
    /// Returns its name.
    pub fn name(&self) -> &[u8] {
        // SAFETY: The module is valid during the notification (or as long as the creator of the
        // value has promised), and its name is a C string within it.
        unsafe { CStr::from_char_ptr((&raw const (*self.0).name).cast()) }.to_bytes()
    }

    /// Returns the module at `module`.
    ///
    /// # Safety
    ///
    /// The module must stay at least as long as the returned value.
    pub(super) unsafe fn new(module: *mut bindings::module) -> Self {
        Self(module)
    }

    pub(super) fn as_ptr(&self) -> *mut bindings::module {
        self.0
    }
}

/// Returns the value of a parameter of this module, which kernels before 7.3 pass by reference.
pub fn parameter<T: Copy>(value: impl Borrow<T>) -> T {
    *value.borrow()
}

/// Callbacks for module events. They run in process context and may sleep.
pub trait Events: Send + Sync + 'static {
    /// Whether `going` is called only after kprobes have given up their probes in the module.
    const AFTER_KPROBES: bool = false;

    /// The module has started. Its initialization code is still there.
    fn live(&self, module: &Module);

    /// The module has ended, or failed to start; its code is still there. May be called without
    /// `live`.
    fn going(&self, module: &Module);
}

/// Before the kernel's own tracing, which has the priorities 0 and 1: it must find a module that
/// goes without our hooks.
const FIRST: c_int = 2;
/// After the kernel's own tracing.
const LAST: c_int = -1;

/// A registration for module events. They may arrive before `new` returns, and none arrives once
/// the value is dropped. Dropping it may sleep.
#[pin_data(PinnedDrop)]
pub struct Notifier<T: Events> {
    block: UnsafeCell<bindings::notifier_block>,
    events: T,
    #[pin]
    _pin: PhantomPinned,
}

// SAFETY: Only the kernel's notifier chain accesses the block, under its lock.
unsafe impl<T: Events> Send for Notifier<T> {}
// SAFETY: As above; `T` is `Sync`.
unsafe impl<T: Events> Sync for Notifier<T> {}

impl<T: Events> Notifier<T> {
    /// Registers for events. May sleep.
    pub fn new(events: T) -> Result<Pin<KBox<Self>>> {
        let notifier = KBox::pin_init(
            pin_init!(Self {
                block: UnsafeCell::new(bindings::notifier_block {
                    notifier_call: Some(on_event::<T>),
                    next: core::ptr::null_mut(),
                    priority: if T::AFTER_KPROBES { LAST } else { FIRST },
                }),
                events,
                _pin: PhantomPinned,
            }),
            GFP_KERNEL,
        )?;
        // SAFETY: The block is pinned, and `drop` unregisters it. The call fails only for a block
        // that is registered already.
        kernel::error::to_result(unsafe {
            bindings::register_module_notifier(notifier.block.get())
        })?;
        Ok(notifier)
    }

    /// Returns the callbacks.
    pub(super) fn events(&self) -> &T {
        &self.events
    }
}

#[pinned_drop]
impl<T: Events> PinnedDrop for Notifier<T> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: The block is registered, or the registration failed and the call finds nothing.
        // It waits for callbacks that are running.
        unsafe { bindings::unregister_module_notifier(self.block.get()) };
    }
}

/// # Safety
///
/// Called by the module notifier chain with the block of a live `Notifier<T>`; `data` must be the
/// module.
unsafe extern "C" fn on_event<T: Events>(
    block: *mut bindings::notifier_block,
    event: usize,
    data: *mut c_void,
) -> c_int {
    let block: *mut UnsafeCell<bindings::notifier_block> = block.cast();
    // SAFETY: By the caller's promise the block is that field of a live `Notifier<T>`; an
    // `UnsafeCell` is transparent.
    let notifier = unsafe { &*kernel::container_of!(block, Notifier<T>, block) };
    let module = Module(data.cast());
    match event as u32 {
        bindings::module_state_MODULE_STATE_LIVE => notifier.events.live(&module),
        bindings::module_state_MODULE_STATE_GOING => notifier.events.going(&module),
        _ => {}
    }
    bindings::NOTIFY_DONE as c_int
}
