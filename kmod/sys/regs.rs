// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Saved registers, read by the calling conventions of kernel functions and of system calls.
//!
//! This is the one place that knows the names of an architecture's registers.

use super::nofault;
use kernel::bindings;

/// A saved register set (`struct pt_regs`); of an ftrace callback only those are valid that carry
/// arguments, and those that tell where the code is: instruction, stack and frame pointer.
#[repr(transparent)]
pub struct Regs(bindings::pt_regs);

impl Regs {
    /// Registers behind a pointer that the kernel gave.
    ///
    /// # Safety
    ///
    /// `ptr` must be valid for reads for `'a`, and nobody writes to it meanwhile.
    #[inline]
    pub unsafe fn from_ptr<'a>(ptr: *const bindings::pt_regs) -> &'a Self {
        // SAFETY: By the caller's promise; `Self` is transparent.
        unsafe { &*ptr.cast() }
    }

    /// The set as C knows it.
    #[inline]
    pub fn as_ptr(&self) -> *const bindings::pt_regs {
        &self.0
    }

    /// Argument `n` of a C function at whose first instruction the registers were saved. Those on the stack are
    /// loaded without faulting; what cannot be loaded is 0.
    #[inline]
    pub fn function_arg(&self, n: usize) -> u64 {
        match n {
            0 => self.0.di as u64,
            1 => self.0.si as u64,
            2 => self.0.dx as u64,
            3 => self.0.cx as u64,
            4 => self.0.r8 as u64,
            5 => self.0.r9 as u64,
            // Above the return address.
            _ => {
                let slot = (n as u64).wrapping_sub(5).wrapping_mul(8);
                nofault::load_u64(self.sp().wrapping_add(slot)).unwrap_or(0)
            }
        }
    }

    /// Argument `n` of the system call that the registers entered the kernel with; 0 beyond the sixth.
    #[inline]
    pub fn syscall_arg(&self, n: usize) -> u64 {
        match n {
            0 => self.0.di as u64,
            1 => self.0.si as u64,
            2 => self.0.dx as u64,
            3 => self.0.r10 as u64,
            4 => self.0.r8 as u64,
            5 => self.0.r9 as u64,
            _ => 0,
        }
    }

    /// The arguments of the system call that the registers entered the kernel with by the convention of 32-bit programs.
    #[inline]
    pub fn ia32_args(&self) -> [u64; 6] {
        let r = &self.0;
        [r.bx, r.cx, r.dx, r.si, r.di, r.bp].map(|value| u64::from(value as u32))
    }

    /// Register `n`, in the order of `struct pt_regs`.
    pub fn get(&self, n: u64) -> Option<u64> {
        const REGS: usize = size_of::<bindings::pt_regs>() / 8;
        let n = usize::try_from(n).ok().filter(|n| *n < REGS)?;
        // SAFETY: The set consists of that many words.
        Some(unsafe { core::ptr::from_ref(&self.0).cast::<u64>().add(n).read() })
    }

    /// The instruction pointer.
    #[inline]
    pub fn ip(&self) -> u64 {
        self.0.ip as u64
    }

    /// Whether it was user code that the registers belong to.
    #[inline]
    pub fn user_mode(&self) -> bool {
        // SAFETY: Every member of the union is an integer that shares its first two bytes with the selector.
        unsafe { self.0.__bindgen_anon_1.cs & 3 == 3 }
    }

    /// The stack pointer.
    #[inline]
    pub fn sp(&self) -> u64 {
        self.0.sp as u64
    }

    /// The frame pointer, where the code keeps one.
    #[inline]
    pub fn fp(&self) -> u64 {
        self.0.bp as u64
    }
}
