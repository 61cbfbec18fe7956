// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Places at tracepoints of modules, which come and go with the modules.
//!
//! Invariant: a hook is attached exactly while its place is wanted and its module is loaded. So it
//! is also noted that a place is wanted while its module is not loaded.

use super::{Passed, PlaceHit};
use crate::sys::module::Module;
use crate::sys::module_tracepoints::{follow, Follow, Following, Maker, ModuleHooks};
use kernel::alloc::KVVec;
use kernel::prelude::*;
use kernel::sync::{new_mutex, Arc, Mutex};

/// A tracepoint of a module.
struct Tracepoint {
    module: &'static str,
    name: &'static str,
    place: usize,
    wanted: bool,
    /// The set and the index of its hook, while its module is loaded.
    hook: Option<(u32, usize)>,
}

/// The tracepoints and their callbacks.
#[pin_data]
struct Shared<T: Passed> {
    passed: Arc<T>,
    hooks: Arc<ModuleHooks<PlaceHit<T>>>,
    #[pin]
    tracepoints: Mutex<KVVec<Tracepoint>>,
}

/// The reference that the notifier owns.
struct Followed<T: Passed>(Arc<Shared<T>>);

/// Places in modules. When the value is dropped none may be attached.
pub(super) struct InModules<T: Passed> {
    shared: Arc<Shared<T>>,
    _following: Following<PlaceHit<T>, Followed<T>>,
}

impl<T: Passed> InModules<T> {
    /// Follows the modules of these places: the number of each place, its module, and its
    /// tracepoint. Nothing is attached. May sleep.
    pub(super) fn new(
        list: &[(usize, &'static str, &'static str)],
        passed: &Arc<T>,
    ) -> Result<Self> {
        let mut tracepoints = KVVec::with_capacity(list.len(), GFP_KERNEL)?;
        for (place, module, name) in list.iter().copied() {
            let tracepoint = Tracepoint {
                module,
                name,
                place,
                wanted: false,
                hook: None,
            };
            tracepoints.push(tracepoint, GFP_KERNEL)?;
        }
        let hooks = ModuleHooks::new()?;
        let shared = Arc::pin_init(
            pin_init!(Shared {
                passed: passed.clone(),
                hooks,
                tracepoints <- new_mutex!(tracepoints, "dtrace::InModules"),
            }),
            GFP_KERNEL,
        )?;
        let following = follow(&shared.hooks, Followed(shared.clone()))?;
        Ok(Self {
            shared,
            _following: following,
        })
    }

    /// Whether this place is one in a module.
    pub(super) fn has(&self, place: usize) -> bool {
        let tracepoints = self.shared.tracepoints.lock();
        tracepoints.iter().any(|tp| tp.place == place)
    }

    /// Attaches these places, now or when their module is loaded. Calls `failed` for those that
    /// cannot be attached. May sleep.
    pub(super) fn attach(&self, places: &[usize], failed: &mut impl FnMut(usize, Error)) {
        self.shared.each(places, |hooks, tp| {
            tp.wanted = true;
            if let Err(error) = tp.attach(hooks) {
                failed(tp.place, error);
            }
        });
    }

    /// Detaches these places. Has no effect on those that are not attached. May sleep.
    pub(super) fn detach(&self, places: &[usize]) {
        self.shared.each(places, |hooks, tp| {
            tp.wanted = false;
            tp.detach(hooks);
        });
    }
}

impl<T: Passed> Shared<T> {
    fn each(
        &self,
        places: &[usize],
        mut f: impl FnMut(&ModuleHooks<PlaceHit<T>>, &mut Tracepoint),
    ) {
        let mut tracepoints = self.tracepoints.lock();
        for tp in tracepoints
            .iter_mut()
            .filter(|tp| places.contains(&tp.place))
        {
            f(&self.hooks, tp);
        }
    }

    /// Makes the hooks of a module that is loaded, and attaches those that are wanted.
    fn add(&self, module: &Module, maker: Maker<'_, PlaceHit<T>>) -> Result {
        let mut tracepoints = self.tracepoints.lock();
        let of_module = |tp: &&mut Tracepoint| tp.module.as_bytes() == module.name();
        // If a module is reported for the second time, its tracepoints have their hooks.
        let lacks = |tp: &mut Tracepoint| of_module(&tp) && tp.hook.is_none();
        if !tracepoints.iter_mut().any(lacks) {
            return Ok(());
        }
        let made = maker.make(|set, desc, n| {
            let mut of_module = tracepoints.iter_mut().filter(of_module);
            let Some(tp) = of_module.find(|tp| tp.name.as_bytes() == desc.name) else {
                return Ok(None);
            };
            tp.hook = Some((set, n));
            Ok(Some(PlaceHit {
                passed: self.passed.clone(),
                place: tp.place,
            }))
        });
        for tp in tracepoints.iter_mut().filter(of_module) {
            if made.is_err() {
                tp.hook = None;
            }
            let attached = match made {
                Ok(()) if tp.wanted => tp.attach(&self.hooks),
                made => made,
            };
            if let (true, Err(error)) = (tp.wanted, attached) {
                pr_warn!("{} is not traced: {:?}\n", tp.name, error);
                self.passed.missed(tp.place);
            }
        }
        made
    }
}

impl Tracepoint {
    fn attach<T: Passed>(&self, hooks: &ModuleHooks<PlaceHit<T>>) -> Result {
        self.hook.map_or(Ok(()), |(set, n)| hooks.attach(set, n))
    }

    fn detach<T: Passed>(&self, hooks: &ModuleHooks<PlaceHit<T>>) {
        if let Some((set, n)) = self.hook {
            hooks.detach(set, n);
        }
    }
}

impl<T: Passed> Follow<PlaceHit<T>> for Followed<T> {
    fn live(&self, module: &Module, maker: Maker<'_, PlaceHit<T>>) {
        if let Err(error) = self.0.add(module, maker) {
            pr_warn!("places in a module are not traced: {:?}\n", error);
        }
    }

    fn going(&self, set: u32) {
        let mut tracepoints = self.0.tracepoints.lock();
        let of_set = |tp: &&mut Tracepoint| tp.hook.is_some_and(|hook| hook.0 == set);
        for tp in tracepoints.iter_mut().filter(of_set) {
            tp.detach(&self.0.hooks);
            tp.hook = None;
        }
    }
}
