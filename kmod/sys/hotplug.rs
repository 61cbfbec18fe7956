// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Things that are to run on every CPU, also on those that come later.
//!
//! An [`Everywhere`] is an *instance* of a CPU-hotplug state ([`CpuState`]): a CPU that comes or goes starts or stops its own. The
//! hotplug core could start and stop it on the CPUs that are online, too. It would do that by a thread of each CPU, one after another, and
//! a busy CPU lets its threads wait. Whoever enables a probe holds the framework's mutex meanwhile. So the thing is started by an
//! interrupt of all CPUs at once, and stopped from where it is dropped. That takes for granted that a CPU which is online has all states, as all
//! have but those that are put into another one for a test (`CONFIG_CPU_HOTPLUG_STATE_CONTROL`).
//!
//! Who keeps CPUs from coming and going keeps others from it, and from changes of static keys: a worker does both for users (`patching.rs`).
//!
//! That a thing cannot be started never keeps a CPU from coming: it is told to those alone who start the whole.

use super::patching::patch;
use super::percpu::{self, nr_cpus};
use crate::bindings;
use core::cell::UnsafeCell;
use core::ffi::{c_int, c_uint, c_void};
use core::marker::{PhantomData, PhantomPinned};
use core::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use kernel::prelude::*;
use kernel::sync::Arc;

/// Keeps CPUs from going and coming.
pub(super) struct HotplugLock(());

impl HotplugLock {
    pub(super) fn new() -> Self {
        // SAFETY: Called from process context.
        unsafe { bindings::cpus_read_lock() };
        Self(())
    }

    pub(super) fn online(&self, cpu: u32) -> bool {
        percpu::online(cpu)
    }
}

impl Drop for HotplugLock {
    fn drop(&mut self) {
        // SAFETY: `new` took it.
        unsafe { bindings::cpus_read_unlock() };
    }
}

/// When a thing is started on a CPU that comes.
#[derive(PartialEq, Eq)]
pub enum Stage {
    /// Before the CPU runs anything, on another one; it is stopped when the CPU is dead.
    Prepare,
    /// On the CPU itself, as soon as it runs threads; it is stopped before the last of them ends.
    Online,
}

/// A thing that runs on every CPU.
///
/// Its calls come one at a time for each CPU. It may be started twice, where a CPU comes just when the whole begins, and may be stopped
/// where it was not started; the last call is a stop. As CPUs can neither come nor go meanwhile, the calls must not wait for what asks
/// for that (a static key is one such).
pub trait PerCpu: Send + Sync + 'static {
    /// When it is started.
    const STAGE: Stage = Stage::Online;

    /// Starts it on `cpu`. For [`Stage::Online`] this is called on `cpu`, maybe in an interrupt: it must not sleep.
    fn start(&self, cpu: usize) -> Result;

    /// Stops it on `cpu`. This is called on any CPU, and may sleep.
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
        patch(|| this.add());
        kernel::error::to_result(this.failed.load(Ordering::Relaxed))?;
        Ok(this.into())
    }

    /// Has the hotplug core know it, and starts it.
    fn add(&self) {
        // SAFETY: The instance is in no list, in its box from here on, and removed in drop.
        let error = unsafe {
            bindings::__cpuhp_state_add_instance(self.state.state, self.node.get(), false)
        };
        if error == 0 {
            self.added.store(true, Ordering::Relaxed);
            self.start_online();
        } else {
            self.failed.store(error, Ordering::Relaxed);
        }
    }

    /// Starts it on the CPUs that are online. Those that come from now on start theirs.
    fn start_online(&self) {
        let lock = HotplugLock::new();
        if T::STAGE == Stage::Prepare {
            let online = (0..nr_cpus()).filter(|cpu| lock.online(*cpu as u32));
            return online.for_each(|cpu| self.start_on(cpu));
        }
        let this: *const Self = self;
        // SAFETY: `start_here` gets the pointer to `self` on each CPU. It returns when all have called it.
        unsafe { bindings::dtrace_on_each_cpu(Some(start_here::<T>), this.cast_mut().cast()) };
    }

    fn start_on(&self, cpu: usize) {
        if let Err(error) = self.thing.start(cpu) {
            self.failed.store(error.to_errno(), Ordering::Relaxed);
        }
    }
}

impl<T: PerCpu> Drop for Everywhere<T> {
    fn drop(&mut self) {
        if *self.added.get_mut() {
            let this = &*self;
            patch(|| {
                // SAFETY: It is an instance. No CPU that comes or goes calls it from here on.
                unsafe {
                    bindings::__cpuhp_state_remove_instance(
                        this.state.state,
                        this.node.get(),
                        false,
                    )
                };
            });
            (0..nr_cpus()).for_each(|cpu| self.thing.stop(cpu));
        }
    }
}

/// # Safety
///
/// `this` is an `Everywhere<T>`. Called on each CPU, with interrupts off.
unsafe extern "C" fn start_here<T: PerCpu>(this: *mut c_void) {
    // SAFETY: By the contract. The CPU stays this one as interrupts are off.
    let (this, cpu) = unsafe { (&*this.cast::<Everywhere<T>>(), bindings::dtrace_this_cpu()) };
    this.start_on(cpu as usize);
}

/// # Safety
///
/// Called by the hotplug core with an instance.
unsafe extern "C" fn online<T: PerCpu>(cpu: c_uint, node: *mut bindings::hlist_node) -> c_int {
    // SAFETY: Instances are `Everywhere<T>`, pinned until they are removed.
    if let Some(this) = unsafe { node.cast::<Everywhere<T>>().as_ref() } {
        this.start_on(cpu as usize);
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
