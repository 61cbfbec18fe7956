// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Whose processes a consumer may trace that may not trace everybody's.
//!
//! The rule is the kernel's own for a debugger that attaches, asked with the credentials of the consumer's opener (`rights.c` says when,
//! and what makes an answer void). [`Rights::may_trace`] asks where that may wait; [`Rights::may_see`] is for probe context, and goes by
//! what has been answered. What is not known is not allowed.
//!
//! A process of which nothing is known would have its first firings left out. So while a consumer has anything enabled, [`Watch`] has
//! each process asked about that begins, or becomes another program, before it executes anything. All consumers hear of those by the same
//! [hooks](Hooks).

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

// SAFETY: They are counted, and all functions but the last may be called by anybody.
unsafe impl Send for Rights {}
// SAFETY: As above: what changes is locked.
unsafe impl Sync for Rights {}

impl Rights {
    /// Those of the current task, as it is now.
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
        // A kernel without Yama has none.
        let scope = symbols::find(c"ptrace_scope")?;
        let scope = scope.map_or(null(), |at| at.as_ptr::<c_int>().cast_const());
        // SAFETY: The first is the address of the function, the last that of Yama's number, which is always there.
        let raw = unsafe { bindings::dtrace_rights_open(may_access.get(), scope) };
        let raw = kernel::error::from_err_ptr(raw)?;
        let this = Self(NonNull::new(raw).ok_or(ENOMEM)?);
        Ok(Arc::new(this, GFP_KERNEL)?)
    }

    /// The current task is the consumer's: it is the one that is asked.
    pub fn sit(&self) {
        // SAFETY: They are there.
        unsafe { bindings::dtrace_rights_sit(self.0.as_ptr()) };
    }

    /// The user who pays for what the consumer has: its opener, or who has made the user namespace that the opener is in.
    pub fn payer(&self) -> u32 {
        // SAFETY: They are there.
        unsafe { bindings::dtrace_rights_payer(self.0.as_ptr()) }
    }

    /// The same of the current task.
    pub fn payer_of_current() -> u32 {
        // SAFETY: It can be called in every process.
        unsafe { bindings::dtrace_payer_of_current() }
    }

    /// Whether the consumer may trace a process. `ESRCH`: it has ended or executed another program; `EAGAIN`: nobody knows, for the current
    /// task is not the consumer's, or the process executes another program, which who does not `wait` is not told the end of. May sleep.
    pub fn may_trace(&self, process: &Process, wait: bool) -> Result<bool> {
        let (owner, mm) = (process.owner().as_ptr(), process.as_ptr());
        // SAFETY: All are counted.
        let may = unsafe { bindings::dtrace_rights_may(self.0.as_ptr(), owner, mm, wait) };
        to_result(may.min(0))?;
        Ok(may > 0)
    }

    /// Asks about all processes that there are. The current task is the consumer's.
    fn ask_all(&self) -> Result {
        // SAFETY: They are there; may sleep.
        to_result(unsafe { bindings::dtrace_rights_ask_all(self.0.as_ptr()) })
    }

    /// Whether the current process may turn out to be one that the consumer may trace. Does not sleep.
    pub fn is_likely(&self) -> bool {
        // SAFETY: They are there.
        unsafe { bindings::dtrace_rights_likely(self.0.as_ptr()) }
    }

    /// How often it was not known in time whether the consumer may see something.
    pub fn unanswered(&self) -> u64 {
        // SAFETY: They are there.
        unsafe { bindings::dtrace_rights_unanswered(self.0.as_ptr()) }
    }

    /// Whether what happens in the current thread is for the consumer to see; in probe context.
    pub fn may_see(&self) -> bool {
        // SAFETY: They are there; it neither waits nor takes a lock.
        unsafe { bindings::dtrace_rights_known(self.0.as_ptr()) }
    }
}

impl Drop for Rights {
    fn drop(&mut self) {
        // SAFETY: They are there, and nobody uses them by us any more.
        unsafe { bindings::dtrace_rights_close(self.0.as_ptr()) };
    }
}

/// Who hears of processes that begin, and of those that change what others may do to them.
#[derive(Clone)]
pub struct Ear(Arc<Rights>);

impl Births for Ear {
    fn forked(&self, _child: &Child<'_>) {}

    fn made(&self, child: &Child<'_>) {
        // SAFETY: The task has been made, and has not run.
        unsafe { bindings::dtrace_rights_begun(self.0 .0.as_ptr(), child.as_ptr()) };
    }

    fn executed(&self) {
        // SAFETY: The task is current.
        unsafe { bindings::dtrace_rights_begun(self.0 .0.as_ptr(), bindings::dtrace_current()) };
    }
}

impl Passed for Crowd<Ear> {
    fn passed(&self, place: usize, call: &Call<'_>) {
        let first = call.args.first().copied().unwrap_or(0);
        self.each(|ear| {
            let rights = ear.0 .0.as_ptr();
            match place {
                // SAFETY: They are there.
                CONTROL => unsafe { bindings::dtrace_rights_control(rights, first as c_int) },
                // SAFETY: As above. Whoever calls the function passes new credentials.
                _ => unsafe {
                    bindings::dtrace_rights_changes(rights, first as *const bindings::cred)
                },
            }
        });
    }

    fn missed(&self, _place: usize) {}
}

/// Where a process says what others may do to it. prctl() itself does some of its work, and modules do some; they are asked first.
const CONTROL: usize = 0;
/// Where a thread gets other credentials.
const CHANGE: usize = 1;
const PLACES: [At; 2] = [
    At::Entry(&[c"security_task_prctl"]),
    At::Entry(&[c"commit_creds"]),
];

/// The hooks by which consumers hear of processes.
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

/// Keeps what is known up to date. Dropping it waits until nobody is being told.
pub struct Watch {
    _listener: Listener<Hooks>,
}

impl Watch {
    /// Watches, and asks about all processes that there are. The current task is the consumer's.
    pub fn begin(rights: &Arc<Rights>, watchers: &Arc<Audience<Hooks>>) -> Result<Self> {
        let this = Self {
            _listener: watchers.join(Ear(rights.clone()), false)?,
        };
        rights.ask_all()?;
        Ok(this)
    }
}
