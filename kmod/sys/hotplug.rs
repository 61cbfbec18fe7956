// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Things that are to run on every CPU, also on those that come later.
//!
//! An [`Everywhere`] is an *instance* of a CPU-hotplug state ([`CpuState`]): adding the instance makes the hotplug core start
//! the thing on every online CPU, a CPU that comes or goes later starts or stops its own, and removing the instance stops them
//! all. The hotplug core's locks make that whole; there are none here.
//!
//! That a thing cannot be started never keeps a CPU from coming: it is told to those alone who start the whole.

use crate::bindings;
use core::cell::UnsafeCell;
use core::ffi::{c_int, c_uint};
use core::marker::{PhantomData, PhantomPinned};
use core::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use kernel::prelude::*;
use kernel::sync::Arc;

/// When a thing is started on a CPU that comes.
pub enum Stage {
    /// Before the CPU runs anything, on another one; it is stopped when the CPU is dead.
    Prepare,
    /// On the CPU itself, as soon as it runs threads; it is stopped before the last of them ends.
    Online,
}

/// A thing that runs on every CPU.
///
/// Its calls come one at a time for each CPU, and each start is followed by its stop. As CPUs can neither come nor go meanwhile, they
/// must not wait for what asks for that (a static key is one such).
pub trait PerCpu: Send + Sync + 'static {
    /// When it is started.
    const STAGE: Stage = Stage::Online;

    /// Starts it on `cpu`.
    fn start(&self, cpu: usize) -> Result;

    /// Stops it on `cpu`, where it may not have started.
    fn stop(&self, cpu: usize);
}

/// The CPU-hotplug state that things of type `T` are instances of.
pub struct CpuState<T: PerCpu> {
    state: bindings::cpuhp_state,
    _thing: PhantomData<fn(T)>,
}

impl<T: PerCpu> CpuState<T> {
    /// Registers the state.
    pub fn new() -> Result<Self> {
        let stage = match T::STAGE {
            Stage::Prepare => bindings::cpuhp_state_CPUHP_BP_PREPARE_DYN,
            Stage::Online => bindings::cpuhp_state_CPUHP_AP_ONLINE_DYN,
        };
        // SAFETY: The callbacks fit a state of instances, which are `Everywhere<T>`.
        let ret = unsafe {
            bindings::__cpuhp_setup_state(
                stage,
                c"dtrace:percpu".as_char_ptr(),
                false,
                core::mem::transmute::<
                    Option<unsafe extern "C" fn(c_uint, *mut bindings::hlist_node) -> c_int>,
                    Option<unsafe extern "C" fn(c_uint) -> c_int>,
                >(Some(online::<T>)),
                core::mem::transmute::<
                    Option<unsafe extern "C" fn(c_uint, *mut bindings::hlist_node) -> c_int>,
                    Option<unsafe extern "C" fn(c_uint) -> c_int>,
                >(Some(offline::<T>)),
                true,
            )
        };
        kernel::error::to_result(ret.min(0))?;
        Ok(Self {
            state: ret as bindings::cpuhp_state,
            _thing: PhantomData,
        })
    }
}

impl<T: PerCpu> Drop for CpuState<T> {
    fn drop(&mut self) {
        // SAFETY: The state is ours. It has no instances, each of which borrows it through an `Arc`.
        unsafe { bindings::__cpuhp_remove_state(self.state, false) };
    }
}

/// A thing that runs on every online CPU. Dropping it stops it.
#[repr(C)]
pub struct Everywhere<T: PerCpu> {
    // First, so that a pointer to it is a pointer to the whole.
    node: UnsafeCell<bindings::hlist_node>,
    thing: T,
    // Why a CPU could not start it, as a negative errno; of several the last that said so.
    failed: AtomicI32,
    state: Arc<CpuState<T>>,
    // Whether it is an instance of the state. Callbacks have references to the whole when that is known.
    added: AtomicBool,
    _pin: PhantomPinned,
}

// SAFETY: The node is the hotplug core's, which touches it one call at a time; the rest is `Send`.
unsafe impl<T: PerCpu> Send for Everywhere<T> {}
// SAFETY: As above; `T` is `Sync`.
unsafe impl<T: PerCpu> Sync for Everywhere<T> {}

impl<T: PerCpu> Everywhere<T> {
    /// Starts `thing`, on all CPUs that are online or on none.
    pub fn start(state: Arc<CpuState<T>>, thing: T) -> Result<Pin<KBox<Self>>> {
        let this = KBox::new(
            Self {
                node: UnsafeCell::new(bindings::hlist_node::default()),
                thing,
                failed: AtomicI32::new(0),
                state,
                added: AtomicBool::new(false),
                _pin: PhantomPinned,
            },
            GFP_KERNEL,
        )?;
        // SAFETY: The instance is in no list, pinned in its box from here on, and removed in drop.
        kernel::error::to_result(unsafe {
            bindings::__cpuhp_state_add_instance(this.state.state, this.node.get(), true)
        })?;
        this.added.store(true, Ordering::Relaxed);
        kernel::error::to_result(this.failed.load(Ordering::Relaxed))?;
        Ok(this.into())
    }
}

impl<T: PerCpu> Drop for Everywhere<T> {
    fn drop(&mut self) {
        if *self.added.get_mut() {
            // SAFETY: It is an instance. Stops it on every online CPU; on the others it has been stopped.
            unsafe {
                bindings::__cpuhp_state_remove_instance(self.state.state, self.node.get(), true)
            };
        }
    }
}

/// # Safety
///
/// Called by the hotplug core with an instance.
unsafe extern "C" fn online<T: PerCpu>(cpu: c_uint, node: *mut bindings::hlist_node) -> c_int {
    // SAFETY: Instances are `Everywhere<T>`, pinned until they are removed.
    if let Some(this) = unsafe { node.cast::<Everywhere<T>>().as_ref() } {
        if let Err(error) = this.thing.start(cpu as usize) {
            this.failed.store(error.to_errno(), Ordering::Relaxed);
        }
    }
    0
}

/// # Safety
///
/// Called by the hotplug core with an instance.
unsafe extern "C" fn offline<T: PerCpu>(cpu: c_uint, node: *mut bindings::hlist_node) -> c_int {
    // SAFETY: Instances are `Everywhere<T>`, pinned until they are removed.
    if let Some(this) = unsafe { node.cast::<Everywhere<T>>().as_ref() } {
        this.thing.stop(cpu as usize);
    }
    0
}
