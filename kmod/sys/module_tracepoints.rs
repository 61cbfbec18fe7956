// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The tracepoints of modules, which come and go with them.
//!
//! Each module has a set of hooks of its own, with a number that no other gets. Invariant: sets are made only while a
//! [`follow`]ed notifier tells of a module, or at its beginning, and that same notifier drops a set before the module's
//! end is over. Who drops the notifier has nothing attached any more. So no hook outlives its tracepoint.

use super::module::{Events, Module, Notifier};
use super::symbols;
use super::tracepoint::{Description, Hit, Tracepoints};
use crate::bindings;
use core::ffi::c_void;
use kernel::alloc::KVVec;
use kernel::prelude::*;
use kernel::sync::{new_mutex, Arc, Mutex};

/// Who wants to know of modules' tracepoints.
pub trait Follow<T: Hit>: Send + Sync + 'static {
    /// A module has started, or was there at the beginning: its hooks may be made.
    fn live(&self, module: &Module, maker: Maker<'_, T>);

    /// A module goes: nothing of its set is attached when this returns.
    fn going(&self, set: u32);
}

/// The right to make the hooks of a module.
pub struct Maker<'a, T: Hit> {
    hooks: &'a ModuleHooks<T>,
    module: &'a Module,
}

impl<T: Hit> Maker<'_, T> {
    /// Makes a hook for each tracepoint of the module of which `make` makes a value, given the set's number and the hook's
    /// index. Nothing is made if the module has its hooks already, or no tracepoints.
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
        // SAFETY: By the invariant of this file.
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
    /// None yet; sets have numbers from 1.
    pub fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                state <- new_mutex!(State { sets: KVVec::new(), next: 1 }, "dtrace::ModuleHooks"),
            }),
            GFP_KERNEL,
        )
    }

    /// Attaches a hook, which is not attached.
    pub fn attach(&self, set: u32, n: usize) -> Result {
        let state = self.state.lock();
        let set = state.sets.iter().find(|s| s.number == set).ok_or(ENOENT)?;
        set.tracepoints.attach(n)
    }

    /// Detaches a hook. One that is not attached stays so.
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
            // Waits until nobody is in its hooks.
            let _ = state.sets.remove(at);
        }
    }
}

/// What the notifier tells.
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

/// A notifier of modules' tracepoints. When it is dropped nothing of them may be attached.
pub type Following<T, F> = Pin<KBox<Notifier<Follower<T, F>>>>;

/// Follows modules, those that are there first.
pub fn follow<T: Hit, F: Follow<T>>(
    hooks: &Arc<ModuleHooks<T>>,
    follow: F,
) -> Result<Following<T, F>> {
    // Before the list is read, so that none is missed; one that starts meanwhile is told twice.
    let notifier = Notifier::new(Follower {
        hooks: hooks.clone(),
        follow,
    })?;
    for held in loaded()? {
        notifier.events().tell(held.module());
    }
    Ok(notifier)
}

/// A module that cannot go.
struct Held(Module);

impl Held {
    fn module(&self) -> &Module {
        &self.0
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: The reference is ours and given up here.
        unsafe { bindings::dtrace_module_put(self.0.as_ptr()) }
    }
}

/// The modules that have started.
fn loaded() -> Result<KVVec<Held>> {
    struct Sink {
        list: KVVec<Held>,
        error: Result,
    }

    /// # Safety
    ///
    /// `data` is a `Sink` that nobody else uses, `module` comes with a reference.
    unsafe extern "C" fn each(data: *mut c_void, module: *mut bindings::module) {
        // SAFETY: By the caller's promise.
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
    // SAFETY: The addresses are those of the list and of the mutex that guards it; `each` gets the sink, which outlives
    // the call.
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
