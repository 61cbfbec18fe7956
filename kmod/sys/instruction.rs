// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Instructions of the kernel, and breakpoints at them.
//!
//! An instruction is named by its function and by how many bytes behind the function's first one it begins. The kernel's kprobes
//! know where instructions begin, and which of the kernel's own must not be stopped at; both are asked there and
//! nowhere else.
//!
//! Invariant: nothing stays planted for an instruction that no [`Breakpoint`] stands for.

use super::regs::Regs;
use super::symbols::{self, Address};
use crate::bindings;
use core::ffi::CStr;
use kernel::error::to_result;
use kernel::prelude::*;

/// What is called before an instruction is executed, in whatever context that is.
pub trait Hit: Send + Sync + 'static {
    /// `regs`: all registers, as the instruction finds them.
    fn hit(&self, regs: &Regs);

    /// It was executed `n` times, 1 at least, without a call of `hit`: in the midst of another breakpoint's handling. Called before the
    /// next `hit`, and by [`Breakpoint::settle`].
    fn missed(&self, n: u64);
}

/// Functions of the kernel's whose loads and stores may fault in probe context. A breakpoint there would be the second of two that are handled,
/// one within the other, and one in what handles the fault a third, which kprobes take for the end (`reenter_kprobe()` of Linux 7.2).
const CAREFUL: [&CStr; 4] = [
    c"copy_from_kernel_nofault",
    c"copy_from_user_nofault",
    c"copy_to_user_nofault",
    c"rep_movs_alternative",
];

/// An instruction's address.
#[derive(Clone, Copy)]
pub struct Instruction(Address);

impl Instruction {
    /// What begins `offset` bytes behind the first of function `func` of `module` (`None`: of the kernel itself). `None`: there is no
    /// such function, or it ends before.
    pub fn find(module: Option<&[u8]>, func: &[u8], offset: usize) -> Result<Option<Self>> {
        let mut name = KVec::new();
        if let Some(module) = module {
            name.extend_from_slice(module, GFP_KERNEL)?;
            name.push(b':', GFP_KERNEL)?;
        }
        name.extend_from_slice(func, GFP_KERNEL)?;
        name.push(0, GFP_KERNEL)?;
        let Ok(name) = CStr::from_bytes_with_nul(&name) else {
            return Ok(None);
        };
        let Some(start) = symbols::find(name)? else {
            return Ok(None);
        };
        if module.is_none() && !symbols::is_kernel_text(start)? {
            return Ok(None);
        }
        let Some(addr) = start.get().checked_add(offset).map(Address) else {
            return Ok(None);
        };
        let is_inside = symbols::extent(addr)?.is_some_and(|extent| extent.start == start.get());
        Ok(is_inside.then_some(Self(addr)))
    }

    /// Whether it is one of the loads and stores of what is [careful](CAREFUL).
    fn may_fault(self) -> Result<bool> {
        // SAFETY: The function takes an address and returns a pointer, to nothing where no fault is expected there.
        let expected = unsafe {
            symbols::lookup(c"search_exception_tables")?.call([self.0.get(), 0, 0, 0, 0])
        };
        let Some(extent) = symbols::extent(self.0)?.filter(|_| expected != 0) else {
            return Ok(false);
        };
        for name in CAREFUL {
            if symbols::find(name)?.is_some_and(|start| start.get() == extent.start) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a breakpoint can be set at it. `ENOMEM`: nobody knows.
    pub fn can_stop(self) -> Result<bool> {
        if self.may_fault()? {
            return Ok(false);
        }
        // SAFETY: kprobes take any number for an address.
        match to_result(unsafe { bindings::dtrace_breakpoint_try(self.0.get()) }) {
            Err(ENOMEM) => Err(ENOMEM),
            tried => Ok(tried.is_ok()),
        }
    }
}

#[repr(C)]
struct Hook<H> {
    // First, so that a pointer to it is a pointer to the whole.
    raw: bindings::dtrace_instruction,
    handler: H,
}

/// How many are removed with one wait: whoever loads a module waits meanwhile.
const AT_ONCE: usize = 64;

/// A breakpoint that is set. Dropping it removes it, and waits until no CPU is in its handler.
pub struct Breakpoint<H: Hit> {
    // Null where it has been removed already.
    raw: *mut bindings::dtrace_breakpoint,
    // Outlives the breakpoint, which is removed first.
    hook: KBox<Hook<H>>,
}

// SAFETY: Breakpoints are set and removed from anywhere; the handler is `Sync`.
unsafe impl<H: Hit> Send for Breakpoint<H> {}
// SAFETY: As above.
unsafe impl<H: Hit> Sync for Breakpoint<H> {}

impl<H: Hit> Breakpoint<H> {
    /// Sets one.
    pub fn set(at: Instruction, handler: H) -> Result<Self> {
        let hit = Some(on_hit::<H> as unsafe extern "C" fn(_, _, _));
        let raw = bindings::dtrace_instruction { hit };
        let hook = KBox::new(Hook { raw, handler }, GFP_KERNEL)?;
        let ptr = core::ptr::from_ref(&*hook).cast_mut().cast();
        // SAFETY: The hook stays until the breakpoint is removed.
        let raw = unsafe { bindings::dtrace_breakpoint_set(at.0.get(), ptr) };
        Ok(Self {
            raw: kernel::error::from_err_ptr(raw)?,
            hook,
        })
    }

    /// Calls `missed` for what it has not been told yet.
    pub fn settle(&self) {
        // SAFETY: It is set.
        let lost = unsafe { bindings::dtrace_breakpoint_lost(self.raw) };
        if lost > 0 {
            self.hook.handler.missed(lost);
        }
    }

    /// Removes many, as fast as a few.
    pub fn remove(mut all: KVVec<Self>) {
        let mut raw = KVVec::new();
        for one in all.iter_mut() {
            // One that finds no room is removed by itself.
            if raw.push(one.raw, GFP_KERNEL).is_ok() {
                one.raw = core::ptr::null_mut();
            }
        }
        for some in raw.chunks_mut(AT_ONCE) {
            // SAFETY: They were set, and are removed once. Their hooks are dropped when this has returned.
            unsafe { bindings::dtrace_breakpoints_remove(some.as_mut_ptr(), some.len()) };
        }
    }
}

impl<H: Hit> Drop for Breakpoint<H> {
    fn drop(&mut self) {
        if !self.raw.is_null() {
            // SAFETY: It was set, and is removed once.
            unsafe { bindings::dtrace_breakpoints_remove(&mut self.raw, 1) };
        }
    }
}

/// # Safety
///
/// Called by `instruction.c` with the hook of a `Breakpoint<H>`, and registers that stay during the call.
unsafe extern "C" fn on_hit<H: Hit>(
    hook: *mut bindings::dtrace_instruction,
    regs: *mut bindings::pt_regs,
    lost: u64,
) {
    // SAFETY: By the caller's promise.
    let (hook, regs) = unsafe { (&*hook.cast::<Hook<H>>(), Regs::from_ptr(regs)) };
    if lost > 0 {
        hook.handler.missed(lost);
    }
    hook.handler.hit(regs);
}
