// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The life of tasks, and their signals.
//!
//! Threads of the kernel are no processes: of them nothing is told here.

use super::{At, Call};
use crate::bindings;

/// A task, by its address. Alive, for the place that passes it is at work on it.
#[derive(Clone, Copy)]
pub struct Task(*const bindings::task_struct);

impl Task {
    pub(super) fn new(addr: u64) -> Self {
        Self(addr as *const _)
    }

    /// The task that runs on this CPU.
    #[inline]
    pub fn current() -> Self {
        // SAFETY: No preconditions.
        Self(unsafe { bindings::dtrace_current() })
    }

    /// Its address.
    #[inline]
    pub fn addr(self) -> u64 {
        self.0 as u64
    }

    /// Whether it is the first thread of its process.
    pub fn leads(self) -> bool {
        // SAFETY: The task is alive.
        unsafe { bindings::dtrace_task_leads(self.0) }
    }

    /// The task, unless it is a thread of the kernel.
    fn of_process(self) -> Option<Self> {
        // SAFETY: The task is alive.
        (!unsafe { bindings::dtrace_task_is_kernel(self.0) }).then_some(self)
    }

    pub(super) fn as_ptr(self) -> *const bindings::task_struct {
        self.0
    }
}

/// The current task has made another.
pub const CREATED: At = At::Tracepoint("task_newtask");

/// The new task.
#[inline]
pub fn created(call: &Call<'_>) -> Option<Task> {
    Task::new(call.word(0)).of_process()
}

/// A task runs for the first time. It has not returned to its program yet.
pub const STARTED: At = At::Entry(&[c"schedule_tail"]);

/// The current task, which starts.
#[inline]
pub fn started(_: &Call<'_>) -> Option<Task> {
    Task::current().of_process()
}

/// The current task ends.
pub const ENDED: At = At::Tracepoint("sched_process_exit");

/// What of a process ends.
pub enum End {
    /// A thread; others live on.
    Thread,
    /// The last thread, and so the process, for this reason (`CLD_EXITED`, `CLD_KILLED` or `CLD_DUMPED`).
    Process(i32),
}

/// What ends.
#[inline]
pub fn ended(call: &Call<'_>) -> Option<End> {
    let task = Task::new(call.word(0)).of_process()?;
    // SAFETY: The task is the current one.
    let reason = unsafe { bindings::dtrace_task_exit_reason(task.as_ptr()) };
    Some(match call.flag(1) {
        true => End::Process(reason),
        false => End::Thread,
    })
}

/// The current task is about to execute a file.
pub const EXEC: At = At::Entry(&[c"alloc_bprm"]);

/// The address of the file's name.
#[inline]
pub fn exec(call: &Call<'_>) -> u64 {
    // SAFETY: The second argument of the function is a name, or an error in its place.
    unsafe { bindings::dtrace_filename(call.word(1) as *const _) as u64 }
}

/// The current task executes another program.
pub const EXECUTED: At = At::Tracepoint("sched_process_exec");

/// A system call comes back from executing, which it does in vain only.
pub const EXEC_RETURNED: At = At::Return(&[c"do_execveat_common", c"do_execveat_common.isra.0"]);

/// The same, where the kernel executes a helper.
pub const HELPER_EXEC_RETURNED: At = At::Return(&[c"kernel_execve"]);

/// The error, if there was any.
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
    /// To whom.
    pub task: Task,
    /// What became of it.
    pub fate: Fate,
    /// The address of what is known of it (`struct kernel_siginfo`); 0 if there is nothing.
    pub info: u64,
    /// What fault of the current task it reports, if it does.
    pub fault: Option<Fault>,
}

/// What becomes of a signal.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is, or was, pending.
    Sent,
    /// The task ignores it.
    Ignored,
    /// There was no memory for it, and the sender is told so.
    Failed,
}

/// The machine faults, in the numbers of DTrace's documentation (`FLTILL`, ...).
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
    /// Memory that may not be accessed so.
    Access = 5,
    /// No memory there.
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
    /// The fault that a signal of the kernel's own making reports.
    fn of(signal: i32, code: i32) -> Option<Self> {
        // What a program sends to itself has a code that is 0 or negative.
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

/// The numbers of `TRACE_SIGNAL_IGNORED` and `TRACE_SIGNAL_OVERFLOW_FAIL`, which stand in no header.
const IGNORED: i32 = 1;
const OVERFLOW_FAIL: i32 = 3;

/// The signal.
#[inline]
pub fn signalled(call: &Call<'_>) -> Signal {
    let task = Task::new(call.word(2));
    let (mut number, mut code) = (0, 0);
    // SAFETY: The second argument is what is known of the signal, or one of the two numbers that stand for nothing.
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

/// The current task is about to do what a signal asks of it.
pub const DELIVERED: At = At::Tracepoint("signal_deliver");

/// `SIGKILL` (include/uapi/asm-generic/signal.h).
const KILL: i32 = 9;

/// A signal's number, the address of what is known of it (0: nothing), and of its handler (0: the default). Of a thread that
/// ends with its process the kernel says `SIGKILL`, whatever signal ended that: here it is that signal.
#[inline]
pub fn delivered(call: &Call<'_>) -> (i32, u64, u64) {
    let (mut number, mut code) = (0, 0);
    let (info, action) = (call.word(1), call.word(2));
    // SAFETY: The second argument is as above, the third is the signal's action.
    let (known, handler) = unsafe {
        (
            bindings::dtrace_signal_info(info as *const _, &mut number, &mut code),
            bindings::dtrace_signal_handler(action as *const _),
        )
    };
    // SAFETY: The kernel delivers signals to the current task under its siglock (`get_signal()`).
    let fatal = unsafe { bindings::dtrace_fatal_signal() };
    match call.int(0) {
        KILL if !known && fatal != 0 => (fatal, 0, handler as u64),
        number => (number, if known { info } else { 0 }, handler as u64),
    }
}

/// The current task has waited for a signal (`sigtimedwait(2)` and its kin). A kernel that has no calls of 32-bit programs may have
/// inlined that into the one that is left, whose value is the same.
pub const WAITED: At = At::Return(&[
    c"do_sigtimedwait",
    c"do_sigtimedwait.isra.0",
    c"__x64_sys_rt_sigtimedwait",
]);

/// The signal that it got.
#[inline]
pub fn waited(call: &Call<'_>) -> Option<i32> {
    Some(call.int(0)).filter(|signal| *signal > 0)
}
