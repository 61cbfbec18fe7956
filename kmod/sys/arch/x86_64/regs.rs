// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Saved registers, read according to the calling conventions of kernel functions and of system
//! calls.
//!
//! Only this module knows the names of an architecture's registers.

use crate::sys::nofault;
use dtrace_uapi::process::VECTOR_WORD;
use kernel::bindings;

/// The code segment of 32-bit programs: `__USER32_CS` of arch/x86/include/asm/segment.h.
const USER32_CS: u16 = 4 * 8 + 3;

/// The code segment of 64-bit programs: `__USER_CS`.
const USER_CS: u16 = 6 * 8 + 3;

/// The indices of the general registers in the words of the set, in the processor's own order.
const GENERAL: [usize; 16] = {
    macro_rules! words {
        ($($name:ident)*) => { [$(core::mem::offset_of!(bindings::pt_regs, $name) / 8),*] };
    }
    words!(ax cx dx bx sp bp si di r8 r9 r10 r11 r12 r13 r14 r15)
};

/// The flag for single steps: `X86_EFLAGS_TF` of arch/x86/include/uapi/asm/processor-flags.h.
const TRAP_FLAG: u64 = 1 << 8;

/// The flag that disables the processor's breakpoints for one instruction: `X86_EFLAGS_RF`.
const RESUME_FLAG: u64 = 1 << 16;

/// The general register, in the processor's own order, for each DWARF number (System V ABI, AMD64
/// §3.6.2).
const DWARF: [u8; 16] = [0, 2, 1, 3, 6, 7, 5, 4, 8, 9, 10, 11, 12, 13, 14, 15];

/// The index of the instruction pointer in the words of the set.
const IP: u64 = core::mem::offset_of!(bindings::pt_regs, ip) as u64 / 8;

/// Returns the lowest 8 bytes of vector register `n` of the current program, which a breakpoint has
/// stopped.
pub fn user_vector(n: u8) -> u64 {
    // SAFETY: No preconditions.
    unsafe { crate::bindings::dtrace_user_vector(u32::from(n)) }
}

/// Returns argument `n` of a function of the current program, if that argument is a vector
/// register.
pub fn vector_arg(n: usize) -> Option<u64> {
    let n = n.checked_sub(VECTOR_WORD as usize)?;
    Some(user_vector(u8::try_from(n).ok()?))
}

/// A saved register set (`struct pt_regs`). In an ftrace callback only those registers are valid
/// that carry arguments, and the instruction, stack and frame pointers.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Regs(bindings::pt_regs);

impl Regs {
    /// Converts a pointer from the kernel.
    ///
    /// # Safety
    ///
    /// `ptr` must be valid for reads for `'a`, and nothing may write to the registers meanwhile.
    #[inline]
    pub unsafe fn from_ptr<'a>(ptr: *const bindings::pt_regs) -> &'a Self {
        // SAFETY: By the caller's promise; `Self` is transparent, so the layouts are the same.
        unsafe { &*ptr.cast() }
    }

    /// Makes registers of the kernel's code, for tests.
    #[cfg(CONFIG_KUNIT = "y")]
    pub fn in_kernel(ip: u64, sp: u64) -> Self {
        // SAFETY: All bits are valid for registers.
        let mut regs: bindings::pt_regs = unsafe { core::mem::zeroed() };
        regs.ip = ip as usize;
        regs.sp = sp as usize;
        // The code segment of kernel mode.
        regs.__bindgen_anon_1.cs = 0x10;
        Self(regs)
    }

    /// Returns the registers that ftrace hands to a callback, which its structure begins with.
    #[inline]
    pub fn of_ftrace(fregs: *mut bindings::ftrace_regs) -> *mut bindings::pt_regs {
        fregs.cast::<bindings::__arch_ftrace_regs>().cast()
    }

    /// Returns the pointer for C functions.
    #[inline]
    pub fn as_ptr(&self) -> *const bindings::pt_regs {
        &self.0
    }

    /// Returns argument `n` of a C function at whose first instruction the registers were saved.
    /// Arguments on the stack are loaded without faulting; what cannot be loaded is 0.
    #[inline]
    pub fn function_arg(&self, n: usize) -> u64 {
        match n {
            0 => self.0.di as u64,
            1 => self.0.si as u64,
            2 => self.0.dx as u64,
            3 => self.0.cx as u64,
            4 => self.0.r8 as u64,
            5 => self.0.r9 as u64,
            // The others are on the stack above the return address.
            _ => {
                let slot = (n as u64).wrapping_sub(5).wrapping_mul(8);
                nofault::load_u64(self.sp().wrapping_add(slot)).unwrap_or(0)
            }
        }
    }

    /// Returns argument `n` of the system call with which the registers entered the kernel; 0
    /// beyond the sixth.
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

    /// Returns the arguments of the system call with which the registers entered the kernel,
    /// according to the convention of 32-bit programs.
    #[inline]
    pub fn compat_args(&self) -> [u64; 6] {
        let r = &self.0;
        [r.bx, r.cx, r.dx, r.si, r.di, r.bp].map(|value| u64::from(value as u32))
    }

    /// Returns argument `n` of a function of the current program at whose first instruction the
    /// registers were saved; what cannot be loaded without faulting is 0. (System V ABI, AMD64
    /// §3.2.3 and i386 §2.2.3: integers and pointers.)
    pub fn called_arg(&self, n: usize) -> u64 {
        let r = &self.0;
        let in_register = [r.di, r.si, r.dx, r.cx, r.r8, r.r9];
        // Arguments on the stack are above the return address.
        if !self.is_long() {
            return self.user_word(n.wrapping_add(1)).unwrap_or(0);
        }
        match in_register.get(n) {
            Some(value) => *value as u64,
            None => self.user_word(n.wrapping_sub(5)).unwrap_or(0),
        }
    }

    /// Returns word `n` of the user stack of the current program.
    fn user_word(&self, n: usize) -> Option<u64> {
        let mut word = [0; 8];
        let size = if self.is_long() { 8 } else { 4 };
        let at = self.sp().wrapping_add((n as u64).wrapping_mul(size as u64));
        nofault::user_load(at, word.get_mut(..size)?).ok()?;
        Some(u64::from_le_bytes(word))
    }

    /// Returns the results of a function of a program: its first and its second result register.
    pub fn results(&self) -> [u64; 2] {
        let both = [self.0.ax as u64, self.0.dx as u64];
        if self.is_long() {
            return both;
        }
        both.map(|value| value & 0xffff_ffff)
    }

    /// Whether the code is 64-bit code; not that of a 32-bit program.
    pub fn is_long(&self) -> bool {
        // SAFETY: As in `user_mode`.
        unsafe { self.0.__bindgen_anon_1.cs != USER32_CS }
    }

    /// Whether the code segment is the kernel's standard one for 64-bit programs.
    #[inline]
    pub fn is_flat_long(&self) -> bool {
        // SAFETY: As in `user_mode`.
        unsafe { self.0.__bindgen_anon_1.cs == USER_CS }
    }

    /// Returns word `n` of the set, in the order of `struct pt_regs`.
    pub fn get(&self, n: u64) -> Option<u64> {
        const REGS: usize = size_of::<bindings::pt_regs>() / 8;
        let n = usize::try_from(n).ok().filter(|n| *n < REGS)?;
        // SAFETY: The set consists of `REGS` initialized words, and `n` is below that.
        Some(unsafe { core::ptr::from_ref(&self.0).cast::<u64>().add(n).read() })
    }

    /// Returns the address at which the current program is, which has these registers. In a slot
    /// ([`Slot`](crate::sys::breakpoint::Slot)) that is the address that the slot stands for.
    pub fn user_ip(&self) -> u64 {
        // SAFETY: No preconditions.
        unsafe { crate::bindings::dtrace_program_address(self.ip()) }
    }

    /// Returns word `n` of the set as the current program would see it, so with
    /// [`user_ip`](Self::user_ip).
    pub fn user(&self, n: u64) -> Option<u64> {
        match n {
            IP => Some(self.user_ip()),
            _ => self.get(n),
        }
    }

    /// Returns general register `n` in the processor's own order; only the lowest 4 bits of `n`
    /// count.
    #[inline]
    pub fn general(&self, n: u8) -> u64 {
        let word = GENERAL[usize::from(n & 15)];
        // SAFETY: `word` is the index of a field of the set, which consists of initialized words.
        unsafe { core::ptr::from_ref(&self.0).cast::<u64>().add(word).read() }
    }

    /// Returns the general register with a DWARF number. With 32 bits these numbers are the
    /// processor's own.
    pub fn dwarf(&self, n: u8) -> Option<u64> {
        let own = match self.is_long() {
            true => *DWARF.get(usize::from(n))?,
            false => Some(n).filter(|n| *n < 8)?,
        };
        Some(self.general(own))
    }

    /// Sets general register `n`; as [`general`](Self::general).
    #[inline]
    pub fn set_general(&mut self, n: u8, value: u64) {
        let word = GENERAL[usize::from(n & 15)];
        // SAFETY: `word` is the index of a field of the set, which is borrowed exclusively.
        unsafe {
            core::ptr::from_mut(&mut self.0)
                .cast::<u64>()
                .add(word)
                .write(value)
        };
    }

    /// Returns the flags.
    pub fn flags(&self) -> u64 {
        self.0.flags as u64
    }

    /// Returns a hash of the registers that does not depend on whether the program is stepped
    /// through. Other registers rarely have the same hash.
    pub fn digest(&self) -> u32 {
        let flags = self.flags() & !(TRAP_FLAG | RESUME_FLAG);
        let general = (0..GENERAL.len() as u8).map(|n| self.general(n));
        // The multiplier of FNV-1a.
        let mix = |digest: u64, word: u64| (digest ^ word).wrapping_mul(0x0100_0000_01b3);
        let digest = general.fold(flags, |digest, word| mix(digest, word).rotate_left(29));
        (digest >> 32) as u32
    }

    /// Sets the flags.
    pub fn set_flags(&mut self, flags: u64) {
        self.0.flags = flags as usize;
    }

    /// Sets the instruction pointer.
    pub fn set_ip(&mut self, ip: u64) {
        self.0.ip = ip as usize;
    }

    /// Sets the stack pointer.
    #[inline]
    pub fn set_sp(&mut self, sp: u64) {
        self.0.sp = sp as usize;
    }

    /// Returns the instruction pointer.
    #[inline]
    pub fn ip(&self) -> u64 {
        self.0.ip as u64
    }

    /// Whether the registers belong to user code.
    #[inline]
    pub fn user_mode(&self) -> bool {
        // SAFETY: Every member of the union is an integer whose first two bytes are the selector,
        // so any of them may be read.
        unsafe { self.0.__bindgen_anon_1.cs & 3 == 3 }
    }

    /// Returns the stack pointer.
    #[inline]
    pub fn sp(&self) -> u64 {
        self.0.sp as u64
    }

    /// Returns the frame pointer, if the code keeps one.
    #[inline]
    pub fn fp(&self) -> u64 {
        self.0.bp as u64
    }
}
