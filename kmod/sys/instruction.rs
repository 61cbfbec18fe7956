// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Instructions of the kernel, and breakpoints at them.
//!
//! An instruction is named by its function and the number of bytes between the function's first
//! byte and the instruction. The kernel's kprobes know where instructions begin, and at which of
//! the kernel's own no breakpoint may be; both questions go to them and nowhere else.
//!
//! Invariant: nothing stays planted at an instruction unless a [`Breakpoint`] stands for it, except
//! where the kernel could not remove a kprobe; that one then leads to nothing, and the module stays
//! (`instruction.c`).

use super::regs::Regs;
use super::symbols::{self, Address};
use crate::bindings;
use core::ffi::CStr;
use kernel::error::to_result;
use kernel::prelude::*;

/// Callbacks of a breakpoint, which run in whatever context the instruction is executed in.
pub trait Hit: Send + Sync + 'static {
    /// Called before the instruction is executed. `regs`: all registers, as the instruction finds
    /// them.
    fn hit(&self, regs: &Regs);

    /// The instruction was executed `n` times, at least once, without a call of `hit`, while
    /// another breakpoint was being handled. Called before the next `hit`, and by
    /// [`Breakpoint::settle`].
    fn missed(&self, n: u64);
}

/// Functions of the kernel whose loads and stores may fault in probe context. Such a fault in the
/// handling of one breakpoint would meet the second breakpoint, set here, and a breakpoint in the
/// fault's own handling would be a third, which kprobes treat as fatal (`reenter_kprobe()` of Linux
/// 7.2).
const CAREFUL: [&CStr; 4] = [
    c"copy_from_kernel_nofault",
    c"copy_from_user_nofault",
    c"copy_to_user_nofault",
    c"rep_movs_alternative",
];

/// The address of an instruction.
#[derive(Clone, Copy)]
pub struct Instruction(Address);

impl Instruction {
    /// Returns the instruction that begins `offset` bytes behind the first byte of function `func`
    /// of `module` (`None`: of the kernel itself). Returns `None` if there is no such function, or
    /// it ends before that. Whether an instruction begins there is not checked; see
    /// [`Self::can_stop`].
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

    /// Whether it is a load or store, in one of the [careful](CAREFUL) functions, that is expected
    /// to fault.
    fn may_fault(self) -> Result<bool> {
        // SAFETY: `search_exception_tables()` takes any address, and returns a pointer, null if no
        // fault is expected there. The pointer is only compared with null.
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

    /// Whether a breakpoint can be set at it. Fails with `ENOMEM` if there was no memory to find
    /// out. May sleep.
    pub fn can_stop(self) -> Result<bool> {
        if self.may_fault()? {
            return Ok(false);
        }
        // SAFETY: The helper takes any number as address, because kprobes check it.
        match to_result(unsafe { bindings::dtrace_breakpoint_try(self.0.get()) }) {
            Err(ENOMEM) => Err(ENOMEM),
            tried => Ok(tried.is_ok()),
        }
    }
}

#[repr(C)]
struct Hook<H> {
    // Must be first: a pointer to it is a pointer to the whole.
    raw: bindings::dtrace_instruction,
    handler: H,
}

/// How many breakpoints are removed with one wait: a task that loads a module waits meanwhile.
const AT_ONCE: usize = 64;

/// A breakpoint that is set. Dropping it removes it, and waits until no CPU is in its handler. May
/// sleep.
pub struct Breakpoint<H: Hit> {
    // Null if it has been removed already.
    raw: *mut bindings::dtrace_breakpoint,
    // Outlives the breakpoint, which is removed first.
    hook: KBox<Hook<H>>,
}

// SAFETY: Breakpoints may be set and removed by any task; the handler is `Send` and `Sync`.
unsafe impl<H: Hit> Send for Breakpoint<H> {}
// SAFETY: As above.
unsafe impl<H: Hit> Sync for Breakpoint<H> {}

impl<H: Hit> Breakpoint<H> {
    /// Sets a breakpoint. May sleep.
    pub fn set(at: Instruction, handler: H) -> Result<Self> {
        let hit = Some(on_hit::<H> as unsafe extern "C" fn(_, _, _));
        let raw = bindings::dtrace_instruction { hit };
        let hook = KBox::new(Hook { raw, handler }, GFP_KERNEL)?;
        let ptr = core::ptr::from_ref(&*hook).cast_mut().cast();
        // SAFETY: The hook stays in its box until the breakpoint has been removed, and begins with
        // the `dtrace_instruction`.
        let raw = unsafe { bindings::dtrace_breakpoint_set(at.0.get(), ptr) };
        Ok(Self {
            raw: kernel::error::from_err_ptr(raw)?,
            hook,
        })
    }

    /// Calls `missed` for the executions that have not been reported yet.
    pub fn settle(&self) {
        // SAFETY: The breakpoint is set: `raw` is null only in values that `remove` is about to
        // drop.
        let lost = unsafe { bindings::dtrace_breakpoint_lost(self.raw) };
        if lost > 0 {
            self.hook.handler.missed(lost);
        }
    }

    /// Removes many breakpoints, with a wait for each [`AT_ONCE`] of them. May sleep.
    pub fn remove(mut all: KVVec<Self>) {
        let mut raw = KVVec::new();
        for one in all.iter_mut() {
            // One that `raw` has no memory for is removed by its own `drop`.
            if raw.push(one.raw, GFP_KERNEL).is_ok() {
                one.raw = core::ptr::null_mut();
            }
        }
        for some in raw.chunks_mut(AT_ONCE) {
            // SAFETY: The breakpoints are set, and each is removed once, because its `raw` is null
            // now. Their hooks are dropped after the call, when no CPU is in their handlers.
            unsafe { bindings::dtrace_breakpoints_remove(some.as_mut_ptr(), some.len()) };
        }
    }
}

impl<H: Hit> Drop for Breakpoint<H> {
    fn drop(&mut self) {
        if !self.raw.is_null() {
            // SAFETY: The breakpoint is set, and is removed once. The hook is dropped afterwards.
            unsafe { bindings::dtrace_breakpoints_remove(&mut self.raw, 1) };
        }
    }
}

/// # Safety
///
/// Called by `instruction.c` with the hook of a live `Breakpoint<H>`, and registers that stay valid
/// and unchanged during the call.
unsafe extern "C" fn on_hit<H: Hit>(
    hook: *mut bindings::dtrace_instruction,
    regs: *mut bindings::pt_regs,
    lost: u64,
) {
    // SAFETY: By the caller's promise; the hook begins with its `raw`.
    let (hook, regs) = unsafe { (&*hook.cast::<Hook<H>>(), Regs::from_ptr(regs)) };
    if lost > 0 {
        hook.handler.missed(lost);
    }
    hook.handler.hit(regs);
}
