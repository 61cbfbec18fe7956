// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Breakpoints in processes.
//!
//! The kernel's uprobes carry a breakpoint: they plant it, keep it through `fork()` and in later mappings, execute what it covers, and
//! take it away. Whoever owns it is asked twice when it is hit. First in the exception itself, where much can be done at
//! once and nothing can wait ([`Hit::trap`]); then, unless that has done everything, by uprobes on the way back to the program
//! ([`Hit::hit`]).

use super::process::{Process, Text};
use super::regs::Regs;
use crate::bindings;
use core::cell::UnsafeCell;
use core::marker::PhantomData;
use core::ptr::NonNull;
use kernel::alloc::KVVec;
use kernel::error::to_result;
use kernel::prelude::*;

/// What is done where a breakpoint is hit.
pub trait Hit: Send + Sync + 'static {
    /// Called in the process, with interrupts off: whether all was done, the instruction included. Else the registers are as they were.
    fn trap(&self, _regs: Stopped<'_>) -> bool {
        false
    }

    /// Called in the process, which may sleep, before the instruction is executed.
    fn hit(&self, regs: Stopped<'_>);
}

/// The registers of a program that a breakpoint has stopped.
pub struct Stopped<'a> {
    regs: NonNull<bindings::pt_regs>,
    _stopped: PhantomData<&'a mut bindings::pt_regs>,
}

impl Stopped<'_> {
    /// As the instruction finds them.
    pub fn regs(&self) -> &Regs {
        // SAFETY: They lie on the stack of the current task, and change by `&mut self` alone.
        unsafe { Regs::from_ptr(self.regs.as_ptr()) }
    }

    /// Those with which the program goes on.
    pub fn regs_mut(&mut self) -> &mut Regs {
        // SAFETY: As above.
        unsafe { &mut *self.regs.as_ptr().cast::<Regs>() }
    }
}

/// The right to set breakpoints: what is found in the exception is looked up here.
pub struct Traps(());

impl Traps {
    /// The only ones.
    pub fn new() -> Result<Self> {
        // SAFETY: Called once in the life of the module, whose provider of processes is one.
        to_result(unsafe { bindings::dtrace_traps_init() })?;
        Ok(Self(()))
    }
}

impl Drop for Traps {
    fn drop(&mut self) {
        // SAFETY: Those who set breakpoints have removed them before they give this up.
        unsafe { bindings::dtrace_traps_exit() };
    }
}

/// A breakpoint in one process. Dropping it removes it, and waits until nobody is in its handler.
///
/// To set or remove one takes the lock of each memory that the file is mapped in; to set one also reads the file.
pub struct Carrier<H: Hit> {
    hook: KBox<UnsafeCell<Hook<H>>>,
    is_set: bool,
}

// SAFETY: Set and removed from anywhere; the handler is `Sync`.
unsafe impl<H: Hit> Send for Carrier<H> {}
// SAFETY: As above; nothing can be done by reference.
unsafe impl<H: Hit> Sync for Carrier<H> {}

#[repr(C)]
struct Hook<H> {
    // First, so that a pointer to it is a pointer to the whole.
    raw: bindings::dtrace_carrier,
    handler: H,
}

impl<H: Hit> Carrier<H> {
    /// Sets one at `address`, where `process` has `text`. All three outlive it. Without `traps` it is not asked in the exception.
    ///
    /// `counter`: where in the file the program has a number of two bytes that tells how many breakpoints count there; 0 for none.
    pub fn set(
        traps: Option<&Traps>,
        process: &Process,
        address: u64,
        text: &Text,
        counter: u64,
        handler: H,
    ) -> Result<Self> {
        let trap: unsafe extern "C" fn(_, _) -> bool = on_trap::<H>;
        let raw = bindings::dtrace_carrier {
            spot: bindings::dtrace_spot {
                mm: process.as_ptr(),
                address,
            },
            file: text.file(),
            offset: text.offset(),
            counter,
            hit: Some(on_hit::<H>),
            trap: traps.map(|_| trap),
            ..Default::default()
        };
        let mut this = Self {
            hook: KBox::new(UnsafeCell::new(Hook { raw, handler }), GFP_KERNEL)?,
            is_set: false,
        };
        // SAFETY: The hook stays where it is until the breakpoint is removed; the file is open.
        to_result(unsafe { bindings::dtrace_carrier_set(this.raw()) })?;
        this.is_set = true;
        Ok(this)
    }

    /// Removes many, which is as fast as one.
    pub fn remove(mut all: KVVec<Self>) {
        for one in &mut all {
            one.clear();
        }
        sync();
    }

    fn clear(&mut self) {
        if core::mem::take(&mut self.is_set) {
            // SAFETY: It is set.
            unsafe { bindings::dtrace_carrier_clear(self.raw()) };
        }
    }

    fn raw(&self) -> *mut bindings::dtrace_carrier {
        self.hook.get().cast()
    }
}

/// Waits until nobody is in the handler of a breakpoint that was removed.
fn sync() {
    // SAFETY: No preconditions; nobody holds up a handler.
    unsafe { bindings::dtrace_carriers_sync() };
}

impl<H: Hit> Drop for Carrier<H> {
    fn drop(&mut self) {
        if self.is_set {
            self.clear();
            sync();
        }
    }
}

/// The handler of a breakpoint, and the registers of who has hit it.
///
/// # Safety
///
/// `carrier` is that of a `Hook<H>`; `regs` are those that the current task entered the kernel with, for `'a`.
unsafe fn parts<'a, H: Hit>(
    carrier: *mut bindings::dtrace_carrier,
    regs: *mut bindings::pt_regs,
) -> Option<(&'a H, Stopped<'a>)> {
    let regs = NonNull::new(regs)?;
    // SAFETY: By the caller's promise. The handler is never changed while the breakpoint is set.
    let handler = unsafe { &(*carrier.cast::<Hook<H>>()).handler };
    let stopped = Stopped {
        regs,
        _stopped: PhantomData,
    };
    Some((handler, stopped))
}

/// # Safety
///
/// Called by `traps.c` with what [`parts`] asks for.
unsafe extern "C" fn on_trap<H: Hit>(
    carrier: *mut bindings::dtrace_carrier,
    regs: *mut bindings::pt_regs,
) -> bool {
    // SAFETY: By the caller's promise.
    unsafe { parts::<H>(carrier, regs) }.is_some_and(|(handler, stopped)| handler.trap(stopped))
}

/// # Safety
///
/// Called by `processes.c` with what [`parts`] asks for.
unsafe extern "C" fn on_hit<H: Hit>(
    carrier: *mut bindings::dtrace_carrier,
    regs: *mut bindings::pt_regs,
) {
    // SAFETY: By the caller's promise.
    if let Some((handler, stopped)) = unsafe { parts::<H>(carrier, regs) } {
        handler.hit(stopped);
    }
}
