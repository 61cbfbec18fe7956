// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The life of tasks, and their signals.
//!
//! Kernel threads are no processes, so nothing is reported here about them.

use super::{At, Call};
use crate::bindings;
use crate::sys::arch;

/// A task, by its address. It is alive while the place that passes it is handled, because the place
/// is at work on it. The value must not be kept longer.
#[derive(Clone, Copy)]
pub struct Task(*const bindings::task_struct);

impl Task {
    pub(super) fn new(addr: u64) -> Self {
        Self(addr as *const _)
    }

    /// Returns the task that runs on this CPU.
    #[inline]
    pub fn current() -> Self {
        // SAFETY: No preconditions.
        Self(unsafe { bindings::dtrace_current() })
    }

    /// Returns its address.
    #[inline]
    pub fn addr(self) -> u64 {
        self.0 as u64
    }

    /// Whether it is the first thread of its process.
    pub fn leads(self) -> bool {
        // SAFETY: The task is alive, as the type says.
        unsafe { bindings::dtrace_task_leads(self.0) }
    }

    /// Returns the task, unless it is a kernel thread.
    fn of_process(self) -> Option<Self> {
        // SAFETY: The task is alive, as the type says.
        (!unsafe { bindings::dtrace_task_is_kernel(self.0) }).then_some(self)
    }

    pub(super) fn as_ptr(self) -> *const bindings::task_struct {
        self.0
    }
}

/// The current task has made another.
pub const CREATED: At = At::Tracepoint("task_newtask");

/// Returns the new task.
#[inline]
pub fn created(call: &Call<'_>) -> Option<Task> {
    Task::new(call.word(0)).of_process()
}

/// A task runs for the first time. It has not returned to its program yet.
pub const STARTED: At = At::Entry(&[c"schedule_tail"]);

/// Returns the current task, which starts.
#[inline]
pub fn started(_: &Call<'_>) -> Option<Task> {
    Task::current().of_process()
}

/// The current task ends.
pub const ENDED: At = At::Tracepoint("sched_process_exit");

/// What ends with a task.
pub enum End {
    /// A thread; others of the process go on.
    Thread,
    /// The last thread, and so the process, for this reason (`CLD_EXITED`, `CLD_KILLED` or
    /// `CLD_DUMPED`).
    Process(i32),
}

/// Returns what ends.
#[inline]
pub fn ended(call: &Call<'_>) -> Option<End> {
    let task = Task::new(call.word(0)).of_process()?;
    // SAFETY: The task is the current one, so it is alive and still has its signal structure.
    let reason = unsafe { bindings::dtrace_task_exit_reason(task.as_ptr()) };
    Some(match call.flag(1) {
        true => End::Process(reason),
        false => End::Thread,
    })
}

/// The current task is about to execute a file.
pub const EXEC: At = At::Entry(&[c"alloc_bprm"]);

/// Returns the address of the file's name.
#[inline]
pub fn exec(call: &Call<'_>) -> u64 {
    // SAFETY: The second argument of the function is a live `struct filename`, or an error pointer,
    // which the helper checks.
    unsafe { bindings::dtrace_filename(call.word(1) as *const _) as u64 }
}

/// The current task executes another program.
pub const EXECUTED: At = At::Tracepoint("sched_process_exec");

/// A system call for executing a program returns, which means that it has failed.
pub const EXEC_RETURNED: At = At::Return(&[c"do_execveat_common", c"do_execveat_common.isra.0"]);

/// The same, if the kernel executes a helper program.
pub const HELPER_EXEC_RETURNED: At = At::Return(&[c"kernel_execve"]);

/// Returns the error, if there was one.
#[inline]
pub fn exec_returned(call: &Call<'_>) -> Option<i32> {
    let error = call.int(0).wrapping_neg();
    (error > 0).then_some(error)
}

/// A signal is sent to a task, or is not because the task ignores it.
pub const SIGNALLED: At = At::Tracepoint("signal_generate");

/// A signal that is sent.
pub struct Signal {
    /// Its number.
    pub number: i32,
    /// The task that gets it.
    pub task: Task,
    /// What became of it.
    pub fate: Fate,
    /// The address of its details (`struct kernel_siginfo`); 0 if there are none.
    pub info: u64,
    /// The machine fault of the current task that it reports, if it does.
    pub fault: Option<Fault>,
}

/// What became of a signal.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is pending, or was already.
    Sent,
    /// The task ignores it.
    Ignored,
    /// There was no memory for it, and the sender gets an error.
    Failed,
}

/// Machine faults, in the numbers of DTrace's documentation (`FLTILL`, ...).
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum Fault {
    /// Illegal instruction.
    Illegal = 1,
    /// Privileged instruction.
    Privileged = 2,
    /// Breakpoint.
    Breakpoint = 3,
    /// Single step.
    Trace = 4,
    /// Access that the memory does not allow.
    Access = 5,
    /// Access where nothing is mapped.
    Bounds = 6,
    /// Integer overflow.
    IntegerOverflow = 7,
    /// Integer division by zero.
    DivideByZero = 8,
    /// Floating-point exception.
    FloatingPoint = 9,
    /// Watchpoint.
    Watchpoint = 12,
}

impl Fault {
    /// Returns the fault that a signal reports which the kernel has made for it.
    fn of(signal: i32, code: i32) -> Option<Self> {
        // Signals that programs send have a code that is 0 or negative.
        if code <= 0 {
            return None;
        }
        let code = code as u32;
        Some(match signal as u32 {
            bindings::SIGILL => match code {
                bindings::ILL_PRVOPC | bindings::ILL_PRVREG => Self::Privileged,
                _ => Self::Illegal,
            },
            bindings::SIGTRAP => match code {
                bindings::TRAP_TRACE => Self::Trace,
                bindings::TRAP_HWBKPT => Self::Watchpoint,
                _ => Self::Breakpoint,
            },
            bindings::SIGBUS => Self::Access,
            bindings::SIGSEGV => match code {
                bindings::SEGV_MAPERR | bindings::SI_KERNEL => Self::Bounds,
                _ => Self::Access,
            },
            bindings::SIGFPE => match code {
                bindings::FPE_INTOVF => Self::IntegerOverflow,
                bindings::FPE_INTDIV => Self::DivideByZero,
                _ => Self::FloatingPoint,
            },
            _ => return None,
        })
    }
}

/// `TRACE_SIGNAL_IGNORED` and `TRACE_SIGNAL_OVERFLOW_FAIL`, which are in no header that bindgen
/// reads.
const IGNORED: i32 = 1;
const OVERFLOW_FAIL: i32 = 3;

/// Returns the signal.
#[inline]
pub fn signalled(call: &Call<'_>) -> Signal {
    let task = Task::new(call.word(2));
    let (mut number, mut code) = (0, 0);
    // SAFETY: The second argument is a live `struct kernel_siginfo`, or one of the two small
    // numbers that mean that there is none, which the helper checks. The numbers are valid for the
    // writes.
    let known =
        unsafe { bindings::dtrace_signal_info(call.word(1) as *const _, &mut number, &mut code) };
    let own = known && task.addr() == Task::current().addr();
    Signal {
        number: call.int(0),
        task,
        fate: match call.int(4) {
            IGNORED => Fate::Ignored,
            OVERFLOW_FAIL => Fate::Failed,
            _ => Fate::Sent,
        },
        info: if known { call.word(1) } else { 0 },
        fault: Fault::of(number, code).filter(|_| own),
    }
}

/// The current task is about to act on a signal.
pub const DELIVERED: At = At::Tracepoint("signal_deliver");

/// `SIGKILL` (include/uapi/asm-generic/signal.h).
const KILL: i32 = 9;

/// Returns a signal's number, the address of its details (0: none), and that of its handler (0: the
/// default). For a thread that ends with its process the kernel reports `SIGKILL`, whatever signal
/// ended the process; this returns that signal.
#[inline]
pub fn delivered(call: &Call<'_>) -> (i32, u64, u64) {
    let (mut number, mut code) = (0, 0);
    let (info, action) = (call.word(1), call.word(2));
    // SAFETY: The second argument is as in `signalled`; the third is the signal's action, which the
    // task has. The numbers are valid for the writes.
    let (known, handler) = unsafe {
        (
            bindings::dtrace_signal_info(info as *const _, &mut number, &mut code),
            bindings::dtrace_signal_handler(action as *const _),
        )
    };
    // SAFETY: Must be called with the siglock of the current process held. The tracepoint is passed
    // with it held (`get_signal()`).
    let fatal = unsafe { bindings::dtrace_fatal_signal() };
    match call.int(0) {
        KILL if !known && fatal != 0 => (fatal, 0, handler as u64),
        number => (number, if known { info } else { 0 }, handler as u64),
    }
}

/// The current task has waited for a signal (`sigtimedwait(2)` and its variants). A kernel without
/// system calls of 32-bit programs may have inlined the function into the only system call that is
/// left, whose value is the same.
pub const WAITED: At = At::Return(&[
    c"do_sigtimedwait",
    c"do_sigtimedwait.isra.0",
    arch::syscalls::SIGTIMEDWAIT,
]);

/// Returns the signal that it got.
#[inline]
pub fn waited(call: &Call<'_>) -> Option<i32> {
    Some(call.int(0)).filter(|signal| *signal > 0)
}
