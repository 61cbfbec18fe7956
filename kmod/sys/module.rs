// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Kernel modules that come and go.

use crate::bindings;
use core::borrow::Borrow;
use core::cell::UnsafeCell;
use core::ffi::{c_int, c_void, CStr};
use core::marker::PhantomPinned;
use kernel::prelude::*;

/// A module, as a notification names it.
pub struct Module(*mut bindings::module);

impl Module {
    /// Its name.
    pub fn name(&self) -> &[u8] {
        // SAFETY: The module is valid during the notification, and its name is a C string within it.
        unsafe { CStr::from_char_ptr((&raw const (*self.0).name).cast()) }.to_bytes()
    }

    /// The module at `module`.
    ///
    /// # Safety
    ///
    /// It must stay as long as what is returned.
    pub(super) unsafe fn new(module: *mut bindings::module) -> Self {
        Self(module)
    }

    pub(super) fn as_ptr(&self) -> *mut bindings::module {
        self.0
    }
}

/// The value of a parameter of this module, which kernels before 7.3 give by reference.
pub fn parameter<T: Copy>(value: impl Borrow<T>) -> T {
    *value.borrow()
}

/// Who wants to know.
pub trait Events: Send + Sync + 'static {
    /// Whether it is told of a module's end only after kprobes are, which have given up their probes in it then.
    const AFTER_KPROBES: bool = false;

    /// The module has started. Its initial code is still there.
    fn live(&self, module: &Module);

    /// The module has ended, or failed to start; its code is still there. May come without `live`.
    fn going(&self, module: &Module);
}

/// Before the kernel's own tracing, which must find a module that goes without hooks of ours, and has the priorities 0 and 1.
const FIRST: c_int = 2;
/// After it.
const LAST: c_int = -1;

/// A registration for module events. They may come at once, and none comes any more when it is dropped.
#[pin_data(PinnedDrop)]
pub struct Notifier<T: Events> {
    block: UnsafeCell<bindings::notifier_block>,
    events: T,
    #[pin]
    _pin: PhantomPinned,
}

// SAFETY: The block is touched by the kernel's chain only, under its lock.
unsafe impl<T: Events> Send for Notifier<T> {}
// SAFETY: As above; `T` is `Sync`.
unsafe impl<T: Events> Sync for Notifier<T> {}

impl<T: Events> Notifier<T> {
    /// Registers.
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
        // SAFETY: The block is pinned and unregistered in drop. The call fails only for a block that is registered.
        kernel::error::to_result(unsafe {
            bindings::register_module_notifier(notifier.block.get())
        })?;
        Ok(notifier)
    }

    /// Who is told.
    pub(super) fn events(&self) -> &T {
        &self.events
    }
}

#[pinned_drop]
impl<T: Events> PinnedDrop for Notifier<T> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: The block is registered, or its registration failed and this finds nothing. Waits for running calls.
        unsafe { bindings::unregister_module_notifier(self.block.get()) };
    }
}

/// # Safety
///
/// Called by the module notifier chain with the block of a `Notifier<T>`.
unsafe extern "C" fn on_event<T: Events>(
    block: *mut bindings::notifier_block,
    event: usize,
    data: *mut c_void,
) -> c_int {
    let block: *mut UnsafeCell<bindings::notifier_block> = block.cast();
    // SAFETY: The block is that field of a `Notifier<T>`; an `UnsafeCell` is transparent.
    let notifier = unsafe { &*kernel::container_of!(block, Notifier<T>, block) };
    let module = Module(data.cast());
    match event as u32 {
        bindings::module_state_MODULE_STATE_LIVE => notifier.events.live(&module),
        bindings::module_state_MODULE_STATE_GOING => notifier.events.going(&module),
        _ => {}
    }
    bindings::NOTIFY_DONE as c_int
}
