// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Things that run on every CPU, including CPUs that come online later.
//!
//! An [`Everywhere`] is an *instance* of a CPU-hotplug state ([`CpuState`]): a CPU that comes
//! online starts its part, a CPU that goes offline stops it. The hotplug core could also start and
//! stop it on the CPUs that are online. It would do that by a thread of each CPU, one CPU after
//! another, and a busy CPU makes its threads wait, while the task that enables a probe holds the
//! framework's mutex. So the thing is started by an interrupt of all CPUs at once (INV-31), and
//! stopped by the task that drops it. This assumes that every online CPU is in all states. That is
//! true except for CPUs that were put into another state for a test
//! (`CONFIG_CPU_HOTPLUG_STATE_CONTROL`).
//!
//! A task that keeps CPUs from coming and going also delays others that want to do so, and changes
//! of static keys. For members a worker does both (`patching.rs`, INV-32).
//!
//! A failure to start never keeps a CPU from coming online; only the caller of
//! [`Everywhere::start`] learns of it.

use super::patching::patch;
use super::percpu::{self, nr_cpus};
use crate::bindings;
use core::cell::UnsafeCell;
use core::ffi::{c_int, c_uint, c_void};
use core::marker::{PhantomData, PhantomPinned};
use core::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use kernel::prelude::*;
use kernel::sync::Arc;

/// Keeps CPUs from coming and going (`cpus_read_lock()`).
pub(super) struct HotplugLock(());

impl HotplugLock {
    pub(super) fn new() -> Self {
        // SAFETY: Must be called where sleeping is allowed; all callers are in process context.
        unsafe { bindings::cpus_read_lock() };
        Self(())
    }

    pub(super) fn online(&self, cpu: u32) -> bool {
        percpu::online(cpu)
    }
}

impl Drop for HotplugLock {
    fn drop(&mut self) {
        // SAFETY: `new` took the lock, in the same task, because the value is local to its callers.
        unsafe { bindings::cpus_read_unlock() };
    }
}

/// When a thing is started on a CPU that comes online.
#[derive(PartialEq, Eq)]
pub enum Stage {
    /// Before the CPU runs anything, on another CPU. It is stopped when the CPU is dead.
    Prepare,
    /// On the CPU itself, as soon as it runs threads. It is stopped before the last of them ends.
    Online,
}

/// A thing that runs on every CPU.
///
/// For one CPU the calls do not overlap. `start` may be called twice if a CPU comes online just
/// when the thing is started everywhere, and `stop` may be called where it was not started; the
/// last call is a `stop`. CPUs can neither come nor go during the calls, so they must not wait for
/// anything that needs that (a static key does).
pub trait PerCpu: Send + Sync + 'static {
    /// When it is started.
    const STAGE: Stage = Stage::Online;

    /// Starts it on `cpu`. With [`Stage::Online`] this is called on `cpu`, possibly in an
    /// interrupt: then it must not sleep.
    fn start(&self, cpu: usize) -> Result;

    /// Stops it on `cpu`. This may be called on any CPU, and may sleep.
    fn stop(&self, cpu: usize);
}

/// The CPU-hotplug state whose instances are things of type `T`.
pub struct CpuState<T: PerCpu> {
    state: bindings::cpuhp_state,
    _thing: PhantomData<fn(T)>,
}

impl<T: PerCpu> CpuState<T> {
    /// Registers the state. May sleep.
    pub fn new() -> Result<Self> {
        let stage = match T::STAGE {
            Stage::Prepare => bindings::cpuhp_state_CPUHP_BP_PREPARE_DYN,
            Stage::Online => bindings::cpuhp_state_CPUHP_AP_ONLINE_DYN,
        };
        // SAFETY: For a state with instances the kernel calls both callbacks with a CPU and an
        // instance's node, so functions of that type are passed through the parameters' type, as C
        // does by a cast. Instances are nodes of `Everywhere<T>`, as the callbacks demand. Nothing
        // is invoked now.
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
        // SAFETY: `new` registered the state. It has no instances, because each of them holds an
        // `Arc` of it.
        unsafe { bindings::__cpuhp_remove_state(self.state, false) };
    }
}

/// A thing that runs on every online CPU. Dropping it stops it. May sleep.
#[repr(C)]
pub struct Everywhere<T: PerCpu> {
    // Must be first: a pointer to it is a pointer to the whole.
    node: UnsafeCell<bindings::hlist_node>,
    thing: T,
    // Why a CPU could not start it, as a negative errno; if several failed, the last of them. 0:
    // none failed.
    failed: AtomicI32,
    state: Arc<CpuState<T>>,
    // Whether the node is an instance of the state. Atomic, because callbacks have shared
    // references to the whole when it is set.
    added: AtomicBool,
    _pin: PhantomPinned,
}

// SAFETY: Only the hotplug core accesses the node, under a mutex of its own; the rest is `Send`.
unsafe impl<T: PerCpu> Send for Everywhere<T> {}
// SAFETY: As above; `T` is `Sync`.
unsafe impl<T: PerCpu> Sync for Everywhere<T> {}

impl<T: PerCpu> Everywhere<T> {
    /// Starts `thing` on all CPUs that are online, or on none. May sleep.
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

    /// Adds it to the instances of the state, and starts it.
    fn add(&self) {
        // SAFETY: The node is on no list. It stays in its box, and `drop` removes it before the box
        // is freed.
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

    /// Starts it on the CPUs that are online. CPUs that come online from now on start theirs by the
    /// state's callback.
    fn start_online(&self) {
        let lock = HotplugLock::new();
        if T::STAGE == Stage::Prepare {
            let online = (0..nr_cpus()).filter(|cpu| lock.online(*cpu as u32));
            return online.for_each(|cpu| self.start_on(cpu));
        }
        let this: *const Self = self;
        // SAFETY: `start_here` gets a pointer to `self` on each CPU. The call returns when all of
        // them have returned, so `self` outlives them.
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
                // SAFETY: The node is an instance, because `added` is set. After this no CPU that
                // comes or goes calls it.
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
/// `this` must be a live `Everywhere<T>`. Called on each CPU with interrupts off.
unsafe extern "C" fn start_here<T: PerCpu>(this: *mut c_void) {
    // SAFETY: By the caller's promise. Interrupts are off, so `dtrace_this_cpu()` may be called and
    // the CPU stays this one.
    let (this, cpu) = unsafe { (&*this.cast::<Everywhere<T>>(), bindings::dtrace_this_cpu()) };
    this.start_on(cpu as usize);
}

/// # Safety
///
/// Called by the hotplug core with the node of an instance.
unsafe extern "C" fn online<T: PerCpu>(cpu: c_uint, node: *mut bindings::hlist_node) -> c_int {
    // SAFETY: The node is the first field of an `Everywhere<T>`, which stays in place until it has
    // been removed from the instances.
    if let Some(this) = unsafe { node.cast::<Everywhere<T>>().as_ref() } {
        this.start_on(cpu as usize);
    }
    0
}

/// # Safety
///
/// Called by the hotplug core with the node of an instance.
unsafe extern "C" fn offline<T: PerCpu>(cpu: c_uint, node: *mut bindings::hlist_node) -> c_int {
    // SAFETY: As in `online`.
    if let Some(this) = unsafe { node.cast::<Everywhere<T>>().as_ref() } {
        this.thing.stop(cpu as usize);
    }
    0
}
