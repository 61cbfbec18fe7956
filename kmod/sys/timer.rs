// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Timers in hard interrupts: one on every CPU, or one alone.
//!
//! A [`CpuTimers`] is an *instance* of a CPU-hotplug state ([`CpuState`]): adding the instance makes the hotplug core run its
//! start on every online CPU, a CPU that comes or goes later starts or stops its own timer, and removing the
//! instance stops them all. The hotplug core's locks make that whole; there are none here.
//!
//! A timer is moved forward by whole intervals from when it was due, not from when it ran: it does not drift, and intervals
//! that were missed are passed over.

use super::regs::Regs;
use crate::bindings;
use core::cell::UnsafeCell;
use core::ffi::{c_int, c_uint};
use core::marker::{PhantomData, PhantomPinned};
use kernel::alloc::KVVec;
use kernel::prelude::*;
use kernel::sync::Arc;

/// What is called when a timer expires: in a hard interrupt.
pub trait Tick: Send + Sync + 'static {
    /// `regs`: what the interrupt has stopped, if it is known.
    fn tick(&self, regs: Option<&Regs>);
}

/// One timer, within what owns it.
#[repr(C)]
struct Timer<H> {
    // First, so that a pointer to it is a pointer to the whole.
    timer: UnsafeCell<bindings::hrtimer>,
    interval: i64,
    handler: Arc<H>,
}

impl<H: Tick> Timer<H> {
    /// A timer that is yet to be set up.
    fn new(handler: Arc<H>, interval: i64) -> Self {
        Self {
            timer: UnsafeCell::new(bindings::hrtimer::default()),
            interval,
            handler,
        }
    }

    /// Sets it up, where it stays: the kernel may keep track of timers by their address from here on.
    fn set_up(&self, mode: bindings::hrtimer_mode) {
        // SAFETY: The timer is not in use.
        unsafe {
            bindings::hrtimer_setup(
                self.timer.get(),
                Some(expired::<H>),
                bindings::CLOCK_MONOTONIC as i32,
                mode,
            )
        };
    }

    /// # Safety
    ///
    /// The timer must be set up, and stay where it is until `cancel`.
    unsafe fn start(&self, mode: bindings::hrtimer_mode) {
        // SAFETY: The timer is set up; the rest is the caller's promise.
        unsafe { bindings::hrtimer_start_range_ns(self.timer.get(), self.interval, 0, mode) };
    }

    /// Stops the timer and waits for its handler. A timer that does not run stays so.
    fn cancel(&self) {
        // SAFETY: The timer is set up.
        unsafe { bindings::hrtimer_cancel(self.timer.get()) };
    }
}

/// # Safety
///
/// Called by the hrtimer core with the timer of a `Timer<H>` that was started.
unsafe extern "C" fn expired<H: Tick>(timer: *mut bindings::hrtimer) -> bindings::hrtimer_restart {
    // SAFETY: By the promise given to `start` the timer is there. The interrupt's registers stay until it ends.
    let (this, regs) = unsafe {
        let regs = bindings::dtrace_irq_regs();
        (
            &*timer.cast::<Timer<H>>(),
            (!regs.is_null()).then(|| Regs::from_ptr(regs)),
        )
    };
    this.handler.tick(regs);
    // SAFETY: The callback may forward its own timer.
    unsafe { bindings::dtrace_timer_again(timer, this.interval) }
}

const PINNED: bindings::hrtimer_mode = bindings::hrtimer_mode_HRTIMER_MODE_REL_PINNED_HARD;
const ANY: bindings::hrtimer_mode = bindings::hrtimer_mode_HRTIMER_MODE_REL_HARD;

/// The CPU-hotplug state that timers with handler `H` are instances of.
pub struct CpuState<H: Tick> {
    state: bindings::cpuhp_state,
    _handler: PhantomData<fn(H)>,
}

impl<H: Tick> CpuState<H> {
    /// Registers the state.
    pub fn new() -> Result<Self> {
        // SAFETY: The callbacks fit a state of instances, which are `CpuTimers<H>`.
        let ret = unsafe {
            bindings::__cpuhp_setup_state(
                bindings::cpuhp_state_CPUHP_AP_ONLINE_DYN,
                c"dtrace:timers".as_char_ptr(),
                false,
                core::mem::transmute::<
                    Option<unsafe extern "C" fn(c_uint, *mut bindings::hlist_node) -> c_int>,
                    Option<unsafe extern "C" fn(c_uint) -> c_int>,
                >(Some(online::<H>)),
                core::mem::transmute::<
                    Option<unsafe extern "C" fn(c_uint, *mut bindings::hlist_node) -> c_int>,
                    Option<unsafe extern "C" fn(c_uint) -> c_int>,
                >(Some(offline::<H>)),
                true,
            )
        };
        kernel::error::to_result(ret.min(0))?;
        Ok(Self {
            state: ret as bindings::cpuhp_state,
            _handler: PhantomData,
        })
    }
}

impl<H: Tick> Drop for CpuState<H> {
    fn drop(&mut self) {
        // SAFETY: The state is ours. It has no instances, each of which borrows it through an `Arc`.
        unsafe { bindings::__cpuhp_remove_state(self.state, false) };
    }
}

/// A timer on every online CPU.
#[repr(C)]
pub struct CpuTimers<H: Tick> {
    // First, so that a pointer to it is a pointer to the whole.
    node: UnsafeCell<bindings::hlist_node>,
    timers: KVVec<Timer<H>>,
    state: Arc<CpuState<H>>,
    // Whether it is an instance of the state.
    added: bool,
    _pin: PhantomPinned,
}

// SAFETY: The timers are started and stopped by the hotplug core, one call at a time.
unsafe impl<H: Tick> Send for CpuTimers<H> {}
// SAFETY: As above; `H` is `Sync`.
unsafe impl<H: Tick> Sync for CpuTimers<H> {}

impl<H: Tick> CpuTimers<H> {
    /// Starts them.
    pub fn start(state: Arc<CpuState<H>>, interval: i64, handler: H) -> Result<Pin<KBox<Self>>> {
        // SAFETY: The helper has no preconditions.
        let cpus = unsafe { bindings::dtrace_nr_cpus() };
        let handler = Arc::new(handler, GFP_KERNEL)?;
        let mut timers = KVVec::with_capacity(cpus as usize, GFP_KERNEL)?;
        for _ in 0..cpus {
            timers.push(Timer::new(handler.clone(), interval), GFP_KERNEL)?;
        }
        // The vector is not pushed to any more, so that they stay where they are.
        for timer in &timers {
            timer.set_up(PINNED);
        }
        let mut this = KBox::new(
            Self {
                node: UnsafeCell::new(bindings::hlist_node::default()),
                timers,
                state,
                added: false,
                _pin: PhantomPinned,
            },
            GFP_KERNEL,
        )?;
        // SAFETY: The instance is in no list, pinned in its box from here on, and removed in drop.
        kernel::error::to_result(unsafe {
            bindings::__cpuhp_state_add_instance(this.state.state, this.node.get(), true)
        })?;
        this.added = true;
        Ok(this.into())
    }
}

impl<H: Tick> Drop for CpuTimers<H> {
    fn drop(&mut self) {
        if self.added {
            // SAFETY: It is an instance. Stops the timer of every online CPU; those of the others are stopped.
            unsafe {
                bindings::__cpuhp_state_remove_instance(self.state.state, self.node.get(), true)
            };
        }
    }
}

/// # Safety
///
/// Called by the hotplug core, on `cpu`, with an instance.
unsafe extern "C" fn online<H: Tick>(cpu: c_uint, node: *mut bindings::hlist_node) -> c_int {
    // SAFETY: Instances are `CpuTimers<H>`, pinned until they are removed.
    if let Some(timer) = unsafe { &*node.cast::<CpuTimers<H>>() }
        .timers
        .get(cpu as usize)
    {
        // SAFETY: As above; removal cancels.
        unsafe { timer.start(PINNED) };
    }
    0
}

/// # Safety
///
/// Called by the hotplug core, on `cpu`, with an instance.
unsafe extern "C" fn offline<H: Tick>(cpu: c_uint, node: *mut bindings::hlist_node) -> c_int {
    // SAFETY: Instances are `CpuTimers<H>`, pinned until they are removed.
    if let Some(timer) = unsafe { &*node.cast::<CpuTimers<H>>() }
        .timers
        .get(cpu as usize)
    {
        timer.cancel();
    }
    0
}

/// A single timer, on whichever CPU it was started on or the kernel moved it to.
pub struct OneTimer<H: Tick> {
    timer: Timer<H>,
    _pin: PhantomPinned,
}

// SAFETY: The timer has the hrtimer core's locks.
unsafe impl<H: Tick> Send for OneTimer<H> {}
// SAFETY: As above; `H` is `Sync`.
unsafe impl<H: Tick> Sync for OneTimer<H> {}

impl<H: Tick> OneTimer<H> {
    /// Starts it.
    pub fn start(interval: i64, handler: H) -> Result<Pin<KBox<Self>>> {
        let handler = Arc::new(handler, GFP_KERNEL)?;
        let this = KBox::new(
            Self {
                timer: Timer::new(handler, interval),
                _pin: PhantomPinned,
            },
            GFP_KERNEL,
        )?;
        this.timer.set_up(ANY);
        // SAFETY: The box is pinned from here on, and drop cancels.
        unsafe { this.timer.start(ANY) };
        Ok(this.into())
    }
}

impl<H: Tick> Drop for OneTimer<H> {
    fn drop(&mut self) {
        self.timer.cancel();
    }
}
