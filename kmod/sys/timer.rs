// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Timers that expire in hard interrupts: one on every CPU, or a single one.
//!
//! A timer is moved forward by whole intervals from the time at which it was due, not from when it
//! ran: it does not drift, and intervals that were missed are skipped.

use super::hotplug::PerCpu;
use super::regs::Regs;
use crate::bindings;
use core::cell::UnsafeCell;
use core::marker::PhantomPinned;
use kernel::alloc::KVVec;
use kernel::prelude::*;
use kernel::sync::Arc;

/// The callback of a timer. It runs in a hard interrupt.
pub trait Tick: Send + Sync + 'static {
    /// The timer has expired. `regs`: the code that the interrupt has stopped, if it is known.
    fn tick(&self, regs: Option<&Regs>);
}

/// One timer, within the value that owns it.
#[repr(C)]
struct Timer<H> {
    // Must be first: a pointer to it is a pointer to the whole.
    timer: UnsafeCell<bindings::hrtimer>,
    interval: i64,
    handler: Arc<H>,
}

impl<H: Tick> Timer<H> {
    /// Returns a timer that is not set up yet.
    fn new(handler: Arc<H>, interval: i64) -> Self {
        Self {
            timer: UnsafeCell::new(bindings::hrtimer::default()),
            interval,
            handler,
        }
    }

    /// Sets the timer up. It must not move from here on, because the kernel may track timers by
    /// their address.
    fn set_up(&self, mode: bindings::hrtimer_mode) {
        // SAFETY: The timer is not in use, and the function is one for timers in a `Timer<H>`.
        unsafe {
            bindings::hrtimer_setup(
                self.timer.get(),
                Some(expired::<H>),
                bindings::CLOCK_MONOTONIC as i32,
                mode,
            )
        };
    }

    /// Starts the timer, or starts it anew.
    ///
    /// # Safety
    ///
    /// The timer must be set up, and must stay where it is until `cancel` has been called.
    unsafe fn start(&self, mode: bindings::hrtimer_mode) {
        // SAFETY: By the caller's promise the timer is set up and stays in place.
        unsafe { bindings::hrtimer_start_range_ns(self.timer.get(), self.interval, 0, mode) };
    }

    /// Stops the timer and waits for its handler. Has no effect on a timer that does not run.
    fn cancel(&self) {
        // SAFETY: The timer is set up: all callers have set it up when they made it.
        unsafe { bindings::hrtimer_cancel(self.timer.get()) };
    }
}

/// # Safety
///
/// Called by the hrtimer code, in a hard interrupt, with the timer of a `Timer<H>` that was
/// started.
unsafe extern "C" fn expired<H: Tick>(timer: *mut bindings::hrtimer) -> bindings::hrtimer_restart {
    // SAFETY: By the promise given to `start` the timer is still in place. The registers of the
    // interrupt, if there are any, stay valid and unchanged until it ends.
    let (this, regs) = unsafe {
        let regs = bindings::dtrace_irq_regs();
        (
            &*timer.cast::<Timer<H>>(),
            (!regs.is_null()).then(|| Regs::from_ptr(regs)),
        )
    };
    this.handler.tick(regs);
    // SAFETY: The function of a timer may move that timer forward.
    unsafe { bindings::dtrace_timer_again(timer, this.interval) }
}

const PINNED: bindings::hrtimer_mode = bindings::hrtimer_mode_HRTIMER_MODE_REL_PINNED_HARD;
const ANY: bindings::hrtimer_mode = bindings::hrtimer_mode_HRTIMER_MODE_REL_HARD;

/// A timer on every CPU, for [`Everywhere`](super::hotplug::Everywhere).
pub struct CpuTimers<H: Tick>(KVVec<Timer<H>>);

// SAFETY: The timers are protected by locks of the hrtimer code; `H` is `Send` and `Sync`.
unsafe impl<H: Tick> Send for CpuTimers<H> {}
// SAFETY: As above. For one timer the calls of `start` and `stop` do not overlap, as `PerCpu`
// promises.
unsafe impl<H: Tick> Sync for CpuTimers<H> {}

impl<H: Tick> CpuTimers<H> {
    /// Returns timers that do not run yet. `interval` is in ns.
    pub fn new(interval: i64, handler: H) -> Result<Self> {
        // SAFETY: No preconditions.
        let cpus = unsafe { bindings::dtrace_nr_cpus() };
        let handler = Arc::new(handler, GFP_KERNEL)?;
        let mut timers = KVVec::with_capacity(cpus as usize, GFP_KERNEL)?;
        for _ in 0..cpus {
            timers.push(Timer::new(handler.clone(), interval), GFP_KERNEL)?;
        }
        // The vector does not grow any more, so the timers stay where they are.
        for timer in &timers {
            timer.set_up(PINNED);
        }
        Ok(Self(timers))
    }
}

impl<H: Tick> PerCpu for CpuTimers<H> {
    fn start(&self, cpu: usize) -> Result {
        let timer = self.0.get(cpu).ok_or(EINVAL)?;
        // SAFETY: The timer was set up in `new`. The vector never grows, and the last call is a
        // `stop`, which cancels. Starting a timer a second time only moves its expiry.
        unsafe { timer.start(PINNED) };
        Ok(())
    }

    fn stop(&self, cpu: usize) {
        if let Some(timer) = self.0.get(cpu) {
            timer.cancel();
        }
    }
}

/// A single timer, on the CPU on which it was started or to which the kernel has moved it.
pub struct OneTimer<H: Tick> {
    timer: Timer<H>,
    _pin: PhantomPinned,
}

// SAFETY: The timer is protected by locks of the hrtimer code; `H` is `Send` and `Sync`.
unsafe impl<H: Tick> Send for OneTimer<H> {}
// SAFETY: As above; a shared reference gives no access to anything.
unsafe impl<H: Tick> Sync for OneTimer<H> {}

impl<H: Tick> OneTimer<H> {
    /// Starts a timer. `interval` is in ns.
    pub fn start(interval: i64, handler: H) -> Result<Pin<KBox<Self>>> {
        let handler = Arc::new(handler, GFP_KERNEL)?;
        // Allocated first, because dropping the value cancels the timer, which must have been set
        // up for that.
        let memory = KBox::new_uninit(GFP_KERNEL)?;
        let this = KBox::write(
            memory,
            Self {
                timer: Timer::new(handler, interval),
                _pin: PhantomPinned,
            },
        );
        this.timer.set_up(ANY);
        // SAFETY: The timer was just set up. It stays in its box, and `drop` cancels it.
        unsafe { this.timer.start(ANY) };
        Ok(this.into())
    }
}

impl<H: Tick> Drop for OneTimer<H> {
    fn drop(&mut self) {
        self.timer.cancel();
    }
}
