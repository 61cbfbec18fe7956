// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only OR MIT

//! The processor that runs the tests, as a machine for single instructions.
//!
//! All registers are loaded from [`STATE`], and the instruction is jumped to. Whatever follows it
//! stores the registers to the state again: a stub after the instruction, a stub at its target, or
//! the handler of the signal that it raises. The state is within reach of the code, so only the
//! instruction itself uses registers.
//!
//! Code below 4 GiB is that of a 32-bit program. A far jump enters it, and another one leaves it.
//!
//! Invariant: one thread at a time owns the machine ([`Machine::take`]).

#![allow(dead_code)]

use nix::libc;
use nix::sys::mman::{mmap_anonymous, mprotect, MapFlags, ProtFlags};
use std::arch::{asm, global_asm};
use std::ffi::c_void;
use std::mem::offset_of;
use std::num::NonZeroUsize;
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};

pub const PAGE: usize = 4096;

/// Bytes of operand memory, at each of two places. The memory around it is not accessible.
pub const DATA: usize = 4 * PAGE;

/// Bytes of code memory, at each of two places.
pub const CODE: usize = 8 * PAGE;

/// Below 2 GiB, so that a 32-bit address reaches it.
const LOW: usize = 0x1000_0000;

/// The components that `xsave` saves, as far as the processor has them: x87, SSE, AVX, AVX-512. Not
/// the protection keys.
const COMPONENTS: u64 = 0xe7;

#[repr(C, align(64))]
struct State {
    general: [u64; 16],
    flags: u64,
    entry: u64,
    /// The stub that was reached; `u64::MAX` for a signal.
    landed: u64,
    host_stack: u64,
    /// Where vectors are loaded from and stored to, or null.
    vectors: *mut u8,
    signal: u64,
    fault_ip: u64,
    /// The address at which stubs leave.
    back: u64,
    /// The address and segment of 32-bit code.
    far: u64,
}

static mut STATE: State = State {
    general: [0; 16],
    flags: 0,
    entry: 0,
    landed: 0,
    host_stack: 0,
    vectors: std::ptr::null_mut(),
    signal: 0,
    fault_ip: 0,
    back: 0,
    far: 0,
};

// Offsets are those of `State`. Registers have the processor's numbers: rax rcx rdx rbx rsp rbp rsi
// rdi r8…r15.
global_asm!(
    ".pushsection .text",
    ".globl dtrace_insn_run",
    "dtrace_insn_run:",
    "push rbx; push rbp; push r12; push r13; push r14; push r15; pushfq",
    "mov [rip + {s} + 152], rsp",
    "mov rcx, [rip + {s} + 160]",
    "test rcx, rcx",
    "jz 2f",
    "mov eax, {components}; xor edx, edx",
    "xrstor64 [rcx]",
    "2:",
    "lea rsp, [rip + {s} + 128]",
    "popfq",
    "mov rax, [rip + {s}]",
    "mov rcx, [rip + {s} + 8]",
    "mov rdx, [rip + {s} + 16]",
    "mov rbx, [rip + {s} + 24]",
    "mov rsp, [rip + {s} + 32]",
    "mov rbp, [rip + {s} + 40]",
    "mov rsi, [rip + {s} + 48]",
    "mov rdi, [rip + {s} + 56]",
    "mov r8, [rip + {s} + 64]",
    "mov r9, [rip + {s} + 72]",
    "mov r10, [rip + {s} + 80]",
    "mov r11, [rip + {s} + 88]",
    "mov r12, [rip + {s} + 96]",
    "mov r13, [rip + {s} + 104]",
    "mov r14, [rip + {s} + 112]",
    "mov r15, [rip + {s} + 120]",
    "jmp [rip + {s} + 136]",
    ".globl dtrace_insn_enter",
    "dtrace_insn_enter:",
    "jmp fword ptr [rip + {s} + 192]",
    ".globl dtrace_insn_back",
    "dtrace_insn_back:",
    "mov [rip + {s} + 32], rsp",
    "lea rsp, [rip + {s} + 136]",
    "pushfq",
    "mov [rip + {s}], rax",
    "mov [rip + {s} + 8], rcx",
    "mov [rip + {s} + 16], rdx",
    "mov [rip + {s} + 24], rbx",
    "mov [rip + {s} + 40], rbp",
    "mov [rip + {s} + 48], rsi",
    "mov [rip + {s} + 56], rdi",
    "mov [rip + {s} + 64], r8",
    "mov [rip + {s} + 72], r9",
    "mov [rip + {s} + 80], r10",
    "mov [rip + {s} + 88], r11",
    "mov [rip + {s} + 96], r12",
    "mov [rip + {s} + 104], r13",
    "mov [rip + {s} + 112], r14",
    "mov [rip + {s} + 120], r15",
    "mov rcx, [rip + {s} + 160]",
    "test rcx, rcx",
    "jz 2f",
    "mov eax, {components}; xor edx, edx",
    "xsave64 [rcx]",
    "2:",
    "mov rsp, [rip + {s} + 152]",
    "popfq; pop r15; pop r14; pop r13; pop r12; pop rbp; pop rbx",
    "ret",
    ".popsection",
    s = sym STATE,
    components = const COMPONENTS,
);

extern "C" {
    fn dtrace_insn_run();
    fn dtrace_insn_enter();
    fn dtrace_insn_back();
}

/// The kernel's code segments for 64-bit and 32-bit programs, and their data segment.
const CODE_64: u16 = 0x33;
const CODE_32: u16 = 0x23;
const DATA_SEGMENT: u16 = 0x2b;

/// Where an instruction led.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Landed {
    /// To the stub of this number.
    Stub(u64),
    /// To this signal, raised at this address.
    Signal(i32, u64),
}

/// General registers and flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Regs {
    pub general: [u64; 16],
    pub flags: u64,
}

/// Vector registers, in the layout of `xsave`.
#[repr(C, align(64))]
#[derive(Clone)]
pub struct Vectors(pub [u8; 4096]);

/// The processor and the memory that its instructions may use.
pub struct Machine {
    low: usize,
    near: usize,
    code: usize,
    low_code: usize,
    _owner: MutexGuard<'static, ()>,
}

static OWNER: Mutex<()> = Mutex::new(());

/// The most bytes of a stub.
pub const STUB: usize = 20;

/// Offsets in the code below 4 GiB: where stubs store their number, and how they leave. The thunk
/// is a 6-byte jump, and the address behind it is aligned.
const CELL: usize = 0;
const THUNK: usize = 18;

impl Machine {
    /// Takes the machine for this thread.
    pub fn take() -> Self {
        let owner = OWNER.lock().unwrap_or_else(PoisonError::into_inner);
        static PLACES: Mutex<Option<(usize, usize, usize)>> = Mutex::new(None);
        let mut places = PLACES.lock().unwrap_or_else(PoisonError::into_inner);
        let (low, near, code) = *places.get_or_insert_with(|| {
            let all = ProtFlags::PROT_WRITE | ProtFlags::PROT_EXEC;
            let low = map(&[LOW], PAGE + DATA + PAGE + CODE, all);
            protect(low);
            let here = (&raw const STATE) as usize & !(PAGE - 1);
            let places: Vec<usize> = (1..12).map(|i| here - (i << 27)).collect();
            let near = map(&places, PAGE + DATA + PAGE + CODE, all);
            protect(near);
            (low + PAGE, near + PAGE, near + PAGE + DATA + PAGE)
        });
        take_signals();
        let back = dtrace_insn_back as *const () as u64;
        // SAFETY: this thread owns the machine; 64-bit programs do not use these segments.
        unsafe {
            STATE.back = back;
            asm!("mov ds, {0:e}", "mov es, {0:e}", in(reg) u32::from(DATA_SEGMENT));
        }
        let mut machine = Self {
            low,
            near,
            code,
            low_code: low + DATA + PAGE,
            _owner: owner,
        };
        let thunk = [&[0xff, 0x25, 0, 0, 0, 0][..], &back.to_le_bytes()].concat();
        machine.put((machine.low_code + THUNK) as u64, &thunk);
        machine
    }

    /// The start of the memory that 32-bit addresses reach.
    pub fn low(&self) -> u64 {
        self.low as u64
    }

    /// The start of the memory that code reaches by relative addresses.
    pub fn near(&self) -> u64 {
        self.near as u64
    }

    /// The start of 64-bit code.
    pub fn code(&self) -> u64 {
        self.code as u64
    }

    /// The start of 32-bit code.
    pub fn low_code(&self) -> u64 {
        (self.low_code + PAGE) as u64
    }

    /// One of the two operand memories.
    pub fn data(&mut self, address: u64) -> &mut [u8; DATA] {
        assert!(address == self.low() || address == self.near());
        // SAFETY: mapped for as long as the program runs, writable, and used by the machine's owner
        // only.
        unsafe { &mut *(address as *mut [u8; DATA]) }
    }

    /// Writes code.
    pub fn put(&mut self, address: u64, bytes: &[u8]) {
        let code = if address >> 32 == 0 {
            self.low_code
        } else {
            self.code
        };
        let offset = address as usize - code;
        assert!(offset + bytes.len() <= CODE);
        // SAFETY: as in `data`; nothing executes this code at the same time.
        let code = unsafe { &mut *(code as *mut [u8; CODE]) };
        code[offset..offset + bytes.len()].copy_from_slice(bytes);
    }

    /// Writes a stub. Code that reaches it lands there.
    pub fn put_stub(&mut self, address: u64, number: u32) {
        if address >> 32 == 0 {
            return self.put_low_stub(address, number);
        }
        let mut stub = [0; 16];
        let state = (&raw const STATE) as u64;
        let distance = |field: usize, behind: u64| {
            let field = state + field as u64;
            let distance = field.wrapping_sub(address + behind) as i64;
            i32::try_from(distance).expect("near").to_le_bytes()
        };
        stub[..2].copy_from_slice(&[0xc7, 0x05]);
        stub[2..6].copy_from_slice(&distance(offset_of!(State, landed), 10));
        stub[6..10].copy_from_slice(&number.to_le_bytes());
        stub[10..12].copy_from_slice(&[0xff, 0x25]);
        stub[12..16].copy_from_slice(&distance(offset_of!(State, back), 16));
        self.put(address, &stub);
    }

    fn put_low_stub(&mut self, address: u64, number: u32) {
        let mut stub = [0; 17];
        stub[..2].copy_from_slice(&[0xc7, 0x05]);
        stub[2..6].copy_from_slice(&((self.low_code + CELL) as u32).to_le_bytes());
        stub[6..10].copy_from_slice(&number.to_le_bytes());
        stub[10] = 0xea;
        stub[11..15].copy_from_slice(&((self.low_code + THUNK) as u32).to_le_bytes());
        stub[15..17].copy_from_slice(&CODE_64.to_le_bytes());
        self.put(address, &stub);
    }

    /// Executes the code at `entry` with these registers and vectors until it reaches a stub or
    /// raises a signal.
    pub fn run(&mut self, entry: u64, regs: &mut Regs, vectors: Option<&mut Vectors>) -> Landed {
        let vectors = vectors.map_or(std::ptr::null_mut(), |vectors| vectors.0.as_mut_ptr());
        // SAFETY: this thread owns the machine. The assembler code follows the calling convention.
        // The code in between can change only the machine's memory, because operands are chosen so.
        unsafe {
            STATE.general = regs.general;
            STATE.flags = regs.flags;
            STATE.entry = match entry >> 32 {
                0 => dtrace_insn_enter as *const () as u64,
                _ => entry,
            };
            STATE.far = entry & 0xffff_ffff | u64::from(CODE_32) << 32;
            STATE.vectors = vectors;
            STATE.landed = 0;
            dtrace_insn_run();
            STATE.entry = 0;
            regs.general = STATE.general;
            regs.flags = STATE.flags;
            match STATE.landed {
                u64::MAX => Landed::Signal(STATE.signal as i32, STATE.fault_ip),
                0 => Landed::Stub(((self.low_code + CELL) as *const u32).read().into()),
                stub => Landed::Stub(stub),
            }
        }
    }
}

fn map(places: &[usize], length: usize, protection: ProtFlags) -> usize {
    let length = NonZeroUsize::new(length).expect("a length");
    for place in places {
        // SAFETY: the call fails if something is mapped there already.
        let mapped = unsafe {
            mmap_anonymous(
                NonZeroUsize::new(*place),
                length,
                protection | ProtFlags::PROT_READ,
                MapFlags::MAP_PRIVATE | MapFlags::MAP_FIXED_NOREPLACE,
            )
        };
        if let Ok(mapped) = mapped {
            return mapped.as_ptr() as usize;
        }
    }
    panic!("no memory at {places:x?}")
}

/// Makes the pages around the operand memory of a mapping inaccessible.
fn protect(mapped: usize) {
    for page in [mapped, mapped + PAGE + DATA] {
        let page = NonNull::new(page as *mut c_void).expect("mapped");
        // SAFETY: a page of the machine that nothing uses.
        unsafe { mprotect(page, PAGE, ProtFlags::PROT_NONE) }.expect("a page that is mapped");
    }
}

const SIGNALS: [i32; 5] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGILL,
    libc::SIGFPE,
    libc::SIGTRAP,
];

extern "C" fn handler(signal: i32, info: *mut libc::siginfo_t, context: *mut c_void) {
    let _ = info;
    // SAFETY: the context is the kernel's for this signal. If an instruction of the machine raised
    // it, the machine's owner is this thread.
    unsafe {
        let registers = &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs;
        let ip = registers[libc::REG_RIP as usize] as u64;
        if STATE.entry == 0 {
            libc::signal(signal, libc::SIG_DFL);
            return;
        }
        STATE.landed = u64::MAX;
        STATE.signal = signal as u64;
        STATE.fault_ip = ip;
        registers[libc::REG_RIP as usize] = dtrace_insn_back as *const () as i64;
        let segments = &mut registers[libc::REG_CSGSFS as usize];
        *segments = *segments & !0xffff | i64::from(CODE_64);
    }
}

fn take_signals() {
    static STACK: Mutex<[u8; 1 << 16]> = Mutex::new([0; 1 << 16]);
    let stack = STACK
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .as_mut_ptr();
    // SAFETY: the stack is used only by the handler of the one thread that owns the machine; all
    // fields are set.
    unsafe {
        let stack = libc::stack_t {
            ss_sp: stack.cast(),
            ss_flags: 0,
            ss_size: 1 << 16,
        };
        assert_eq!(libc::sigaltstack(&stack, std::ptr::null_mut()), 0);
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
        for signal in SIGNALS {
            assert_eq!(libc::sigaction(signal, &action, std::ptr::null_mut()), 0);
        }
    }
}

/// The base of `%fs` in this thread.
pub fn fs_base() -> u64 {
    let mut base = 0_u64;
    // SAFETY: the kernel writes one word (ARCH_GET_FS).
    let result = unsafe { libc::syscall(libc::SYS_arch_prctl, 0x1003, &mut base) };
    assert_eq!(result, 0);
    base
}

/// Sets the base of `%gs`, which nothing else uses.
pub fn set_gs_base(base: u64) {
    // SAFETY: nothing else uses `%gs` (ARCH_SET_GS).
    let result = unsafe { libc::syscall(libc::SYS_arch_prctl, 0x1001, base) };
    assert_eq!(result, 0);
}
