// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Timers in hard interrupts: one on every CPU, or one alone.
//!
//! A timer is moved forward by whole intervals from when it was due, not from when it ran: it does not drift, and intervals
//! that were missed are passed over.

use super::hotplug::PerCpu;
use super::regs::Regs;
use crate::bindings;
use core::cell::UnsafeCell;
use core::marker::PhantomPinned;
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

/// A timer on every CPU, for [`Everywhere`](super::hotplug::Everywhere).
pub struct CpuTimers<H: Tick>(KVVec<Timer<H>>);

// SAFETY: The timers are started and stopped by `Everywhere`, one call at a time for each.
unsafe impl<H: Tick> Send for CpuTimers<H> {}
// SAFETY: As above; `H` is `Sync`.
unsafe impl<H: Tick> Sync for CpuTimers<H> {}

impl<H: Tick> CpuTimers<H> {
    /// Timers that do not run yet.
    pub fn new(interval: i64, handler: H) -> Result<Self> {
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
        Ok(Self(timers))
    }
}

impl<H: Tick> PerCpu for CpuTimers<H> {
    fn start(&self, cpu: usize) -> Result {
        let timer = self.0.get(cpu).ok_or(EINVAL)?;
        // SAFETY: The vector is never pushed to again, and the last call is a stop, which cancels. To start it twice moves it.
        unsafe { timer.start(PINNED) };
        Ok(())
    }

    fn stop(&self, cpu: usize) {
        if let Some(timer) = self.0.get(cpu) {
            timer.cancel();
        }
    }
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
        // Its memory first: drop cancels a timer, which must have been set up for that.
        let memory = KBox::new_uninit(GFP_KERNEL)?;
        let this = KBox::write(
            memory,
            Self {
                timer: Timer::new(handler, interval),
                _pin: PhantomPinned,
            },
        );
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
