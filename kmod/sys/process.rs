// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Processes that probes are made in.
//!
//! A [`Process`] is a memory: the number of a process means another one when it has ended, and the same one is another program
//! after `execve()`. A [`Text`] is where an instruction of it comes from, a file and an offset, whatever path it has or had, in
//! whichever mount namespace.

use super::regs::Regs;
use crate::bindings;
use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::marker::PhantomData;
use core::ptr::{null_mut, NonNull};
use kernel::alloc::KVVec;
use kernel::error::to_result;
use kernel::prelude::*;

/// The memory of a process. It may be over while we have this.
pub struct Process(NonNull<bindings::mm_struct>);

// SAFETY: The structure is counted, and its count may be dropped by anybody.
unsafe impl Send for Process {}
// SAFETY: Nothing is done to it but by the kernel's own functions, which lock.
unsafe impl Sync for Process {}

impl Process {
    /// The process that the current one knows by `pid`. `ESRCH`: there is none, or it has no memory.
    pub fn find(pid: i32) -> Result<Self> {
        let mut mm = null_mut();
        // SAFETY: `mm` is valid for the write.
        to_result(unsafe { bindings::dtrace_mm_find(pid, &mut mm) })?;
        NonNull::new(mm).map(Self).ok_or(ESRCH)
    }

    /// Whether both are the same.
    pub fn is(&self, other: &Self) -> bool {
        self.0 == other.0
    }

    /// Whether its programs are of 64 bits.
    pub fn is_long(&self) -> bool {
        // SAFETY: It is counted.
        unsafe { bindings::dtrace_mm_is_long(self.0.as_ptr()) }
    }

    /// Where the instruction at `addr` comes from. `EFAULT`: nothing is there; `EACCES`: no text of a file; `ESRCH`: it is over.
    pub fn text(&self, addr: u64) -> Result<Text> {
        let (mut file, mut offset) = (null_mut(), 0);
        // SAFETY: It is counted; both are valid for the writes.
        to_result(unsafe {
            bindings::dtrace_text_at(self.0.as_ptr(), addr, &mut file, &mut offset)
        })?;
        let file = NonNull::new(file).ok_or(EFAULT)?;
        Ok(Text { file, offset })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // SAFETY: It was counted for us.
        unsafe { bindings::dtrace_mm_drop(self.0.as_ptr()) };
    }
}

/// A place in a file. It keeps the file, and so its file system.
pub struct Text {
    file: NonNull<bindings::file>,
    offset: u64,
}

// SAFETY: The file is counted, and its count may be dropped by anybody.
unsafe impl Send for Text {}
// SAFETY: Nothing is done to it but to read it at an offset, which needs no lock.
unsafe impl Sync for Text {}

impl Text {
    /// Reads what is there as far as the file goes; how many bytes that is.
    pub fn read(&self, out: &mut [u8]) -> Result<usize> {
        let (to, size) = (out.as_mut_ptr().cast::<c_void>(), out.len());
        // SAFETY: The file is open, and `out` is valid for that many bytes.
        let n = unsafe { bindings::dtrace_text_read(self.file.as_ptr(), self.offset, to, size) };
        usize::try_from(n).map_err(|_| Error::from_errno(n as i32))
    }
}

impl Drop for Text {
    fn drop(&mut self) {
        // SAFETY: It was counted for us.
        unsafe { bindings::fput(self.file.as_ptr()) };
    }
}

/// What is done where a breakpoint is hit.
pub trait Hit: Send + Sync + 'static {
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

    /// Calls `f` while the program has other registers, which nobody but us can see.
    pub fn pretend(&mut self, regs: &Regs, f: impl FnOnce(&Regs)) {
        let real = *self.regs();
        // SAFETY: As above.
        unsafe { self.regs.as_ptr().cast::<Regs>().write(*regs) };
        f(self.regs());
        // SAFETY: As above.
        unsafe { self.regs.as_ptr().cast::<Regs>().write(real) };
    }
}

/// A breakpoint that the kernel's uprobes carry, in one process. Dropping it removes it, and waits until nobody is in its handler.
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
    /// Sets one. `process` and `text` are to outlive it.
    pub fn set(process: &Process, text: &Text, handler: H) -> Result<Self> {
        let raw = bindings::dtrace_carrier {
            mm: process.0.as_ptr(),
            hit: Some(on_hit::<H>),
            ..Default::default()
        };
        let mut this = Self {
            hook: KBox::new(UnsafeCell::new(Hook { raw, handler }), GFP_KERNEL)?,
            is_set: false,
        };
        // SAFETY: The hook stays where it is until the breakpoint is removed; the file is open.
        to_result(unsafe {
            bindings::dtrace_carrier_set(this.raw(), text.file.as_ptr(), text.offset)
        })?;
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

/// # Safety
///
/// Called by `processes.c` with the carrier of a `Hook<H>`, and the registers that the current task entered the kernel with.
unsafe extern "C" fn on_hit<H: Hit>(
    carrier: *mut bindings::dtrace_carrier,
    regs: *mut bindings::pt_regs,
) {
    let Some(regs) = NonNull::new(regs) else {
        return;
    };
    // SAFETY: By the caller's promise. The handler is never changed while the breakpoint is set.
    let handler = unsafe { &(*carrier.cast::<Hook<H>>()).handler };
    handler.hit(Stopped {
        regs,
        _stopped: PhantomData,
    });
}
