// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Which processes a consumer may trace that may not trace all of them (INV-36).
//!
//! The rule is the kernel's own for a debugger that attaches, evaluated with the credentials of the
//! consumer's opener (`rights.c` says when, and what makes an answer void). [`Rights::may_trace`]
//! asks the kernel where waiting is allowed. [`Rights::may_see`] is for probe context, and goes by
//! earlier answers. What is not known is not allowed.
//!
//! The first firings of a process of which nothing is known would be left out. So while a consumer
//! has anything enabled, [`Watch`] has each process examined that begins, or executes another
//! program, before that process executes anything. All consumers are notified of those by the same
//! [hooks](Hooks) (INV-37).

use super::audience::{Audience, Crowd, Listener, Source};
use super::births::{Births, Child, Telling};
use super::places::{At, Call, Passed, Places};
use super::process::Process;
use super::symbols::{self, Address};
use crate::bindings;
use core::ffi::c_int;
use core::ptr::{null, NonNull};
use kernel::error::to_result;
use kernel::prelude::*;
use kernel::sync::{Arc, SetOnce};

/// What a consumer may trace.
pub struct Rights(NonNull<bindings::dtrace_rights>);

// SAFETY: The structure is reference-counted, and all functions but the closing one may be called
// by any task.
unsafe impl Send for Rights {}
// SAFETY: As above; the functions lock what changes.
unsafe impl Sync for Rights {}

impl Rights {
    /// Returns those of the current task as it is now. May sleep.
    pub fn of_current() -> Result<Arc<Self>> {
        static MAY_ACCESS: SetOnce<Address> = SetOnce::new();

        let may_access = match MAY_ACCESS.as_ref() {
            Some(found) => *found,
            None => {
                let found = symbols::lookup(c"ptrace_may_access")?;
                MAY_ACCESS.populate(found);
                found
            }
        };
        // A kernel without Yama does not have this variable.
        let scope = symbols::find(c"ptrace_scope")?;
        let scope = scope.map_or(null(), |at| at.as_ptr::<c_int>().cast_const());
        // SAFETY: The first argument is the address of `ptrace_may_access()`. The second is null or
        // that of Yama's variable, which exists as long as the kernel.
        let raw = unsafe { bindings::dtrace_rights_open(may_access.get(), scope) };
        let raw = kernel::error::from_err_ptr(raw)?;
        let this = Self(NonNull::new(raw).ok_or(ENOMEM)?);
        Ok(Arc::new(this, GFP_KERNEL)?)
    }

    /// Declares the current task to be the consumer's: from now on the kernel is asked in this
    /// task. Takes locks, so not for probe context.
    pub fn sit(&self) {
        // SAFETY: `self` keeps the structure.
        unsafe { bindings::dtrace_rights_sit(self.0.as_ptr()) };
    }

    /// Returns the user who pays for what the consumer has: its opener, or the user who has made
    /// the user namespace that the opener is in.
    pub fn payer(&self) -> u32 {
        // SAFETY: `self` keeps the structure.
        unsafe { bindings::dtrace_rights_payer(self.0.as_ptr()) }
    }

    /// Returns the same of the current task.
    pub fn payer_of_current() -> u32 {
        // SAFETY: No preconditions.
        unsafe { bindings::dtrace_payer_of_current() }
    }

    /// Whether the consumer may trace a process. Fails with `ESRCH` if the process has ended or
    /// executed another program. Fails with `EAGAIN` if the answer is not known and the current
    /// task is not the consumer's, or if the process is executing another program and the caller
    /// does not `wait` for the end of that; with `EINTR` if the caller is killed while it waits.
    /// May sleep.
    pub fn may_trace(&self, process: &Process, wait: bool) -> Result<bool> {
        let (owner, mm) = (process.owner().as_ptr(), process.as_ptr());
        // SAFETY: `self` and `process` keep all three structures.
        let may = unsafe { bindings::dtrace_rights_may(self.0.as_ptr(), owner, mm, wait) };
        to_result(may.min(0))?;
        Ok(may > 0)
    }

    /// Asks about all processes that exist. The current task must be the consumer's. May sleep.
    fn ask_all(&self) -> Result {
        // SAFETY: `self` keeps the structure; may sleep.
        to_result(unsafe { bindings::dtrace_rights_ask_all(self.0.as_ptr()) })
    }

    /// Whether the current process may turn out to be one that the consumer may trace. Does not
    /// sleep.
    pub fn is_likely(&self) -> bool {
        // SAFETY: `self` keeps the structure.
        unsafe { bindings::dtrace_rights_likely(self.0.as_ptr()) }
    }

    /// Returns how often it was not known in time whether the consumer may see something.
    pub fn unanswered(&self) -> u64 {
        // SAFETY: `self` keeps the structure.
        unsafe { bindings::dtrace_rights_unanswered(self.0.as_ptr()) }
    }

    /// Whether the consumer may see what happens in the current thread. For probe context. If that
    /// is not known, queues a question for the thread's way to user mode, and returns `false`.
    pub fn may_see(&self) -> bool {
        // SAFETY: `self` keeps the structure. The call does not wait.
        unsafe { bindings::dtrace_rights_known(self.0.as_ptr()) }
    }
}

impl Drop for Rights {
    fn drop(&mut self) {
        // SAFETY: `self` holds a reference, which is dropped once. The last users of the value are
        // done.
        unsafe { bindings::dtrace_rights_close(self.0.as_ptr()) };
    }
}

/// A listener for processes that begin, and for processes that change what others may do to them.
#[derive(Clone)]
pub struct Ear(Arc<Rights>);

impl Births for Ear {
    fn forked(&self, _child: &Child<'_>) {}

    fn made(&self, child: &Child<'_>) {
        // SAFETY: The `Arc` keeps the rights. The child is alive and has not run yet.
        unsafe { bindings::dtrace_rights_begun(self.0 .0.as_ptr(), child.as_ptr()) };
    }

    fn executed(&self) {
        // SAFETY: The `Arc` keeps the rights. The task is the current one.
        unsafe { bindings::dtrace_rights_begun(self.0 .0.as_ptr(), bindings::dtrace_current()) };
    }
}

impl Passed for Crowd<Ear> {
    fn passed(&self, place: usize, call: &Call<'_>) {
        let first = call.args.first().copied().unwrap_or(0);
        self.each(|ear| {
            let rights = ear.0 .0.as_ptr();
            match place {
                // SAFETY: The ear keeps the rights.
                CONTROL => unsafe { bindings::dtrace_rights_control(rights, first as c_int) },
                // SAFETY: The ear keeps the rights. The place is the entry of `commit_creds()`,
                // whose first argument is the new credentials, which its caller keeps.
                _ => unsafe {
                    bindings::dtrace_rights_changes(rights, first as *const bindings::cred)
                },
            }
        });
    }

    fn missed(&self, _place: usize) {}
}

/// Where a process says what others may do to it. prctl() itself does a part of that, and security
/// modules do another; this function, which asks them, is called before either.
const CONTROL: usize = 0;
/// Where a thread gets other credentials.
const CHANGE: usize = 1;
const PLACES: [At; 2] = [
    At::Entry(&[c"security_task_prctl"]),
    At::Entry(&[c"commit_creds"]),
];

/// The hooks by which consumers are notified of processes.
pub struct Hooks {
    births: Option<Telling<Arc<Crowd<Ear>>>>,
    controls: Places<Crowd<Ear>>,
}

impl Source for Hooks {
    type Ear = Ear;

    fn begin(crowd: &Arc<Crowd<Ear>>) -> Result<Self> {
        let controls = Places::new(PLACES.into_iter(), crowd)?;
        if !controls.has(CONTROL) || !controls.has(CHANGE) {
            return Err(ENOENT);
        }
        let mut hooks = Self {
            births: None,
            controls,
        };
        hooks.wake(crowd)?;
        Ok(hooks)
    }

    fn rest(mut self) -> Option<Self> {
        self.quiet();
        Some(self)
    }

    fn wake(&mut self, crowd: &Arc<Crowd<Ear>>) -> Result {
        let mut failed = None;
        self.controls
            .attach(&[CONTROL, CHANGE], |_, error| failed = Some(error));
        let births = failed.map_or_else(|| Telling::begin(crowd), Err);
        self.births = Some(births.inspect_err(|_| self.quiet())?);
        Ok(())
    }
}

impl Hooks {
    fn quiet(&mut self) {
        self.births = None;
        self.controls.detach(&[CONTROL, CHANGE]);
    }
}

impl Drop for Hooks {
    fn drop(&mut self) {
        self.quiet();
    }
}

/// Keeps the answers of a consumer up to date. Dropping it waits until its ear is not being called.
/// May sleep.
pub struct Watch {
    _listener: Listener<Hooks>,
}

impl Watch {
    /// Begins to listen, and asks about all processes that exist. The current task must be the
    /// consumer's. May sleep.
    pub fn begin(rights: &Arc<Rights>, watchers: &Arc<Audience<Hooks>>) -> Result<Self> {
        let this = Self {
            _listener: watchers.join(Ear(rights.clone()), false)?,
        };
        rights.ask_all()?;
        Ok(this)
    }
}
