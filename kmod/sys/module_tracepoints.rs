// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The tracepoints of modules, which come and go with the modules.
//!
//! Each module has a set of hooks with a number that no other set gets. Invariant: sets are made
//! only while a [`follow`]ed notifier reports a module, or at its beginning, and the same notifier
//! drops a set before the notification of the module's end returns. When the notifier is dropped,
//! nothing is attached any more. So no hook outlives its tracepoint.

use super::module::{Events, Module, Notifier};
use super::symbols;
use super::tracepoint::{Description, Hit, Tracepoints};
use crate::bindings;
use core::ffi::c_void;
use kernel::alloc::KVVec;
use kernel::prelude::*;
use kernel::sync::{new_mutex, Arc, Mutex};

/// Callbacks for modules with tracepoints.
pub trait Follow<T: Hit>: Send + Sync + 'static {
    /// A module has started, or was loaded at the beginning: its hooks may be made. Called a second
    /// time for a module that starts just at the beginning.
    fn live(&self, module: &Module, maker: Maker<'_, T>);

    /// A module is being unloaded: nothing of its set may be attached when this returns.
    fn going(&self, set: u32);
}

/// The right to make the hooks of a module.
pub struct Maker<'a, T: Hit> {
    hooks: &'a ModuleHooks<T>,
    module: &'a Module,
}

impl<T: Hit> Maker<'_, T> {
    /// Makes a hook for each tracepoint of the module for which `make` returns a value; `make` gets
    /// the set's number, the tracepoint, and the hook's index. Makes nothing if the module has its
    /// hooks already, or has no tracepoints.
    pub fn make(
        self,
        mut make: impl FnMut(u32, &Description<'_>, usize) -> Result<Option<T>>,
    ) -> Result {
        let mut state = self.hooks.state.lock();
        let module = self.module.as_ptr() as usize;
        if state.sets.iter().any(|set| set.module == module) {
            return Ok(());
        }
        let number = state.next;
        state.sets.reserve(1, GFP_KERNEL)?;
        let make = |desc: &Description<'_>, n: usize| make(number, desc, n);
        // SAFETY: The set must be dropped before the module's end has been notified. By the
        // invariant of this file, `Follower::going` does that.
        let tracepoints = unsafe { Tracepoints::of_module(self.module, make) }?;
        if tracepoints.is_empty() {
            return Ok(());
        }
        state.next = number.checked_add(1).ok_or(ENOSPC)?;
        let set = Set {
            number,
            module,
            tracepoints,
        };
        state.sets.push_within_capacity(set).map_err(|_| ENOMEM)
    }
}

struct Set<T: Hit> {
    number: u32,
    module: usize,
    tracepoints: Tracepoints<T>,
}

struct State<T: Hit> {
    sets: KVVec<Set<T>>,
    next: u32,
}

/// The hooks of all modules.
#[pin_data]
pub struct ModuleHooks<T: Hit> {
    #[pin]
    state: Mutex<State<T>>,
}

impl<T: Hit> ModuleHooks<T> {
    /// Returns no sets yet. Sets are numbered from 1.
    pub fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                state <- new_mutex!(State { sets: KVVec::new(), next: 1 }, "dtrace::ModuleHooks"),
            }),
            GFP_KERNEL,
        )
    }

    /// Attaches a hook that is not attached. May sleep.
    pub fn attach(&self, set: u32, n: usize) -> Result {
        let state = self.state.lock();
        let set = state.sets.iter().find(|s| s.number == set).ok_or(ENOENT)?;
        set.tracepoints.attach(n)
    }

    /// Detaches a hook. Has no effect if it is not attached. May sleep.
    pub fn detach(&self, set: u32, n: usize) {
        let state = self.state.lock();
        if let Some(set) = state.sets.iter().find(|s| s.number == set) {
            set.tracepoints.detach(n);
        }
    }

    fn number(&self, module: &Module) -> Option<u32> {
        let module = module.as_ptr() as usize;
        let state = self.state.lock();
        Some(state.sets.iter().find(|s| s.module == module)?.number)
    }

    fn remove(&self, number: u32) {
        let mut state = self.state.lock();
        if let Some(at) = state.sets.iter().position(|s| s.number == number) {
            // Dropping the set waits until no CPU is in its hooks.
            let _ = state.sets.remove(at);
        }
    }
}

/// What the notifier calls.
pub struct Follower<T: Hit, F: Follow<T>> {
    hooks: Arc<ModuleHooks<T>>,
    follow: F,
}

impl<T: Hit, F: Follow<T>> Follower<T, F> {
    fn tell(&self, module: &Module) {
        let hooks = &self.hooks;
        self.follow.live(module, Maker { hooks, module });
    }
}

impl<T: Hit, F: Follow<T>> Events for Follower<T, F> {
    fn live(&self, module: &Module) {
        self.tell(module);
    }

    fn going(&self, module: &Module) {
        if let Some(set) = self.hooks.number(module) {
            self.follow.going(set);
            self.hooks.remove(set);
        }
    }
}

/// A notifier for modules' tracepoints. When it is dropped none of their hooks may be attached.
pub type Following<T, F> = Pin<KBox<Notifier<Follower<T, F>>>>;

/// Follows modules; those that are loaded are reported first. May sleep.
pub fn follow<T: Hit, F: Follow<T>>(
    hooks: &Arc<ModuleHooks<T>>,
    follow: F,
) -> Result<Following<T, F>> {
    // Registered before the list is read, so that no module is missed. One that starts meanwhile is
    // reported twice.
    let notifier = Notifier::new(Follower {
        hooks: hooks.clone(),
        follow,
    })?;
    for held in loaded()? {
        notifier.events().tell(held.module());
    }
    Ok(notifier)
}

/// A module that cannot be unloaded.
struct Held(Module);

impl Held {
    fn module(&self) -> &Module {
        &self.0
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: `each` got this reference with the module, and it is dropped once.
        unsafe { bindings::dtrace_module_put(self.0.as_ptr()) }
    }
}

/// Returns the modules that have started, without our own.
fn loaded() -> Result<KVVec<Held>> {
    struct Sink {
        list: KVVec<Held>,
        error: Result,
    }

    /// # Safety
    ///
    /// `data` must point to a `Sink` that nothing else uses during the call; `module` must come
    /// with a reference, which this takes over.
    unsafe extern "C" fn each(data: *mut c_void, module: *mut bindings::module) {
        // SAFETY: By the caller's promise; the reference, which `Held` keeps, keeps the module as
        // long as the value.
        let (sink, held) = unsafe { (&mut *data.cast::<Sink>(), Held(Module::new(module))) };
        if sink.error.is_ok() {
            sink.error = sink.list.push(held, GFP_KERNEL).map_err(Into::into);
        }
    }

    let modules = symbols::lookup(c"modules")?;
    let lock = symbols::lookup(c"module_mutex")?;
    let mut sink = Sink {
        list: KVVec::new(),
        error: Ok(()),
    };
    // SAFETY: The helper needs the addresses of the kernel's list of modules and of the mutex that
    // guards it, which were looked up by name. `each` gets the sink, which outlives the call and
    // which nothing else uses meanwhile.
    unsafe {
        bindings::dtrace_each_module(
            modules.as_ptr(),
            lock.as_ptr(),
            Some(each),
            core::ptr::from_mut(&mut sink).cast(),
        )
    };
    sink.error?;
    Ok(sink.list)
}
