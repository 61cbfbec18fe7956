// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Places in the kernel that report an event: tracepoints, and the two ends of functions.
//!
//! An event that DTrace documents happens at one place in one version of the kernel and at another
//! in the next. So everything that a provider must know about the kernel's names and arguments is
//! here: the submodules, one for each area, name the places, and convert what a place passes into
//! what the event means. [`Places`] attaches them.
//!
//! A function may have several names, because compilers add suffixes to functions that they
//! specialise (`.isra.0`). Only those are named here whose arguments that does not change. A place
//! that the kernel does not have is no error: its event does not happen on that kernel.
//!
//! Invariant: a place is attached exactly while it is wanted. All functions that one call attaches
//! cost one pass of text patching (INV-19).

pub mod io;
pub mod lock;
mod modules;
pub mod net;
pub mod sched;
pub mod statistics;
pub mod task;

use super::ftrace::{Change, FtraceOps, Hooks, Wanted};
use super::functions;
use super::regs::Regs;
use super::symbols;
use super::tracepoint::{Hit, Tracepoints};
use core::ffi::CStr;
use core::ops::Range;
use core::sync::atomic::{AtomicU8, Ordering};
use kernel::alloc::KVVec;
use kernel::prelude::*;
use kernel::sync::Arc;
use modules::InModules;

/// The location of a place.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// A tracepoint, which passes its own arguments.
    Tracepoint(&'static str),
    /// The tracepoint of the second name in the module of the first, which may come and go, or be
    /// built into the kernel. Unlike other places, it can always be attached.
    InModule(&'static str, &'static str),
    /// The entry of the first of these functions that exists. It passes the function's first
    /// [`ARGUMENTS`] arguments.
    Entry(&'static [&'static CStr]),
    /// The entries of all functions of these names.
    Entries(&'static [&'static CStr]),
    /// The return of the first of these functions that exists. It passes the returned value and the
    /// first argument of the call.
    Return(&'static [&'static CStr]),
    /// The returns of all functions of these names.
    Returns(&'static [&'static CStr]),
    /// The entry of the first function, and of the second unless the first one calls it. The first
    /// calls the second (by a call, not by a jump at its end), or a compiler has inlined the second
    /// into the first; other functions call the second as well. The first may not exist.
    NestedEntry([&'static CStr; 2]),
    /// The returns of these two, in the same way.
    NestedReturn([&'static CStr; 2]),
}

/// The number of arguments that the entry of a function passes.
pub const ARGUMENTS: usize = 4;

/// What a place passes.
pub struct Call<'a> {
    /// The words, which the submodules know how to read.
    pub args: &'a [u64],
    /// The address to which a function returns; 0 at a tracepoint.
    pub caller: u64,
}

impl Call<'_> {
    /// Returns word `n`; 0 if there is none.
    #[inline]
    fn word(&self, n: usize) -> u64 {
        self.args.get(n).copied().unwrap_or(0)
    }

    /// Returns word `n`, which is an `int`.
    #[inline]
    fn int(&self, n: usize) -> i32 {
        self.word(n) as i32
    }

    /// Returns word `n`, which is a `bool`.
    #[inline]
    fn flag(&self, n: usize) -> bool {
        self.word(n) as u8 != 0
    }
}

/// Callbacks for places. They run in whatever context the place is passed in.
pub trait Passed: Send + Sync + 'static {
    /// Place number `place` was passed.
    fn passed(&self, place: usize, call: &Call<'_>);

    /// Place number `place` was passed without a call of `passed`, because the return of its
    /// function could not be hooked. Does not happen at other kinds of places.
    fn lost(&self, _place: usize) {}

    /// Place number `place` is wanted, and its module was loaded, but it could not be attached.
    fn missed(&self, place: usize);
}

const ENTRY: u8 = 1;
const RETURN: u8 = 2;

/// A function with a place at one end or at both.
struct Function {
    ip: usize,
    entry: Option<usize>,
    leave: Option<usize>,
    /// The function from which calls do not count.
    outer: Option<Range<usize>>,
    armed: AtomicU8,
}

impl Function {
    /// Whether a call of it that returns to `caller` passes a place.
    #[inline]
    fn counts(&self, caller: u64) -> bool {
        let outer = |outer: &Range<usize>| outer.contains(&(caller as usize));
        !self.outer.as_ref().is_some_and(outer)
    }
}

/// What is to be attached for a place. A place with several functions has several of these.
#[derive(Clone, Copy)]
struct Found {
    place: usize,
    how: How,
}

/// At which of the functions with its names a place is.
#[derive(Clone, Copy)]
enum Which {
    /// The first that exists.
    First,
    /// All.
    All,
    /// All, except calls of one from the one before it.
    Nested,
}

#[derive(Clone, Copy)]
enum How {
    /// The index of a hook.
    Tracepoint(usize),
    /// The index of a function, and the end of it.
    Function(usize, u8),
}

struct PlaceHit<T> {
    passed: Arc<T>,
    place: usize,
}

impl<T: Passed> Hit for PlaceHit<T> {
    #[inline]
    fn hit(&self, args: &[u64]) {
        self.passed.passed(self.place, &Call { args, caller: 0 });
    }
}

struct FunctionHooks<T> {
    passed: Arc<T>,
    functions: KVVec<Function>,
}

impl<T> FunctionHooks<T> {
    /// Finds a function. A linear search, because there are only a few.
    #[inline]
    fn at(&self, ip: usize) -> Option<&Function> {
        self.functions.iter().find(|f| f.ip == ip)
    }
}

impl<T: Passed> Hooks for FunctionHooks<T> {
    fn entry(&self, ip: usize, caller: u64, regs: &Regs) -> Option<Wanted> {
        let function = self.at(ip)?;
        if !function.counts(caller) {
            return None;
        }
        let armed = function.armed.load(Ordering::Relaxed);
        if let (ENTRY, Some(place)) = (armed & ENTRY, function.entry) {
            let args: [u64; ARGUMENTS] = core::array::from_fn(|n| regs.function_arg(n));
            let args = &args;
            self.passed.passed(place, &Call { args, caller });
        }
        (armed & RETURN != 0).then_some(Wanted::whole(ip))
    }

    fn unhooked(&self, ip: usize) {
        if let Some(place) = self.at(ip).and_then(|function| function.leave) {
            self.passed.lost(place);
        }
    }

    fn leave(&self, ip: usize, caller: u64, value: u64, first: u64) {
        let Some(function) = self.at(ip) else {
            return;
        };
        let armed = function.armed.load(Ordering::Relaxed);
        if let (RETURN, Some(place)) = (armed & RETURN, function.leave) {
            let args = &[value, first];
            self.passed.passed(place, &Call { args, caller });
        }
    }
}

/// A set of places and their callbacks. Calls of `attach` and `detach` must not overlap.
pub struct Places<T: Passed> {
    found: KVVec<Found>,
    tracepoints: Tracepoints<PlaceHit<T>>,
    in_modules: Option<InModules<T>>,
    functions: Pin<KBox<FtraceOps<FunctionHooks<T>>>>,
}

impl<T: Passed> Places<T> {
    /// Finds the places. Nothing is attached. May sleep.
    pub fn new(list: impl Iterator<Item = At>, passed: &Arc<T>) -> Result<Self> {
        let mut found = KVVec::new();
        let mut functions = KVVec::new();
        let mut names = KVVec::new();
        let mut in_modules = KVVec::new();
        for (place, at) in list.enumerate() {
            let (list, end, which): (&[&CStr], _, _) = match &at {
                At::Tracepoint(name) => {
                    names.push((*name, place), GFP_KERNEL)?;
                    continue;
                }
                At::InModule(module, name) => {
                    // It may be built into the kernel.
                    names.push((*name, place), GFP_KERNEL)?;
                    in_modules.push((place, *module, *name), GFP_KERNEL)?;
                    continue;
                }
                At::Entry(list) => (list, ENTRY, Which::First),
                At::Entries(list) => (list, ENTRY, Which::All),
                At::Return(list) => (list, RETURN, Which::First),
                At::Returns(list) => (list, RETURN, Which::All),
                At::NestedEntry(list) => (list, ENTRY, Which::Nested),
                At::NestedReturn(list) => (list, RETURN, Which::Nested),
            };
            let mut outer = None;
            for name in list {
                let Some(addr) = symbols::find(name)? else {
                    continue;
                };
                let Some(ip) = functions::traceable_at(addr) else {
                    continue;
                };
                let n = function(&mut functions, ip, place, end)?;
                let how = How::Function(n, end);
                found.push(Found { place, how }, GFP_KERNEL)?;
                match which {
                    Which::First => break,
                    Which::All => {}
                    Which::Nested => {
                        if let Some(function) = functions.get_mut(n) {
                            function.outer = outer;
                        }
                        outer = symbols::extent(addr)?;
                    }
                }
            }
        }
        let tracepoints = Tracepoints::new(|desc, hook| {
            let named = |(name, _): &&(&str, usize)| name.as_bytes() == desc.name;
            let Some((_, place)) = names.iter().find(named) else {
                return Ok(None);
            };
            let place = *place;
            let how = How::Tracepoint(hook);
            found.push(Found { place, how }, GFP_KERNEL)?;
            Ok(Some(PlaceHit {
                passed: passed.clone(),
                place,
            }))
        })?;
        let functions = FtraceOps::new(FunctionHooks {
            passed: passed.clone(),
            functions,
        })?;
        let in_modules = match in_modules.as_slice() {
            [] => None,
            list => Some(InModules::new(list, passed)?),
        };
        Ok(Self {
            found,
            tracepoints,
            in_modules,
            functions,
        })
    }

    /// Whether the kernel has the place, or may get it with a module.
    pub fn has(&self, place: usize) -> bool {
        let in_module = || self.in_modules.as_ref().is_some_and(|m| m.has(place));
        self.found.iter().any(|found| found.place == place) || in_module()
    }

    /// Returns what is to be attached for these places.
    fn each<'a>(&'a self, places: &'a [usize]) -> impl Iterator<Item = &'a Found> + 'a {
        self.found
            .iter()
            .filter(|found| places.contains(&found.place))
    }

    /// Attaches places, none of which may be attached. Calls `failed` for those that cannot be
    /// attached. May sleep.
    pub fn attach(&self, places: &[usize], mut failed: impl FnMut(usize, Error)) {
        for found in self.each(places) {
            if let How::Tracepoint(hook) = found.how {
                if let Err(error) = self.tracepoints.attach(hook) {
                    failed(found.place, error);
                }
            }
        }
        if let Some(in_modules) = &self.in_modules {
            in_modules.attach(places, &mut failed);
        }
        if let Err(error) = self.switch(places, true) {
            for found in self.each(places) {
                if let How::Function(..) = found.how {
                    failed(found.place, error);
                }
            }
        }
    }

    /// Detaches places. Has no effect on those that are not attached. May sleep.
    pub fn detach(&self, places: &[usize]) {
        for found in self.each(places) {
            if let How::Tracepoint(hook) = found.how {
                self.tracepoints.detach(hook);
            }
        }
        if let Some(in_modules) = &self.in_modules {
            in_modules.detach(places);
        }
        if let Err(error) = self.switch(places, false) {
            pr_warn!("places stay traced: {:?}\n", error);
        }
    }

    /// Returns the functions of these places, with the end at which each place is.
    fn functions<'a>(&'a self, places: &'a [usize]) -> impl Iterator<Item = (&'a Function, u8)> {
        let functions = &self.functions.hooks().functions;
        self.each(places).filter_map(|found| match found.how {
            How::Function(n, end) => Some((functions.get(n)?, end)),
            How::Tracepoint(_) => None,
        })
    }

    /// Arms or disarms the functions of `places`, all or none. Disarming cannot fail.
    fn switch(&self, places: &[usize], on: bool) -> Result {
        let wanted = |f: &Function| {
            let same = self.functions(places).filter(|(g, _)| g.ip == f.ip);
            same.fold(f.armed.load(Ordering::Relaxed), |armed, (_, end)| {
                if on {
                    armed | end
                } else {
                    armed & !end
                }
            })
        };
        // On the stack, because disarming must not need memory.
        let mut list = [0; MAX_FUNCTIONS];
        let mut len = 0usize;
        for (f, _) in self.functions(places) {
            let changes = (f.armed.load(Ordering::Relaxed) == 0) != (wanted(f) == 0);
            if changes && !list.get(..len).is_some_and(|list| list.contains(&f.ip)) {
                *list.get_mut(len).ok_or(ENOSPC)? = f.ip;
                len = len.wrapping_add(1);
            }
        }
        let ips = list.get(..len).unwrap_or_default();
        let (add, drop): (&[usize], &[usize]) = if on { (ips, &[]) } else { (&[], ips) };
        let change = Change {
            add,
            drop,
            returns: on && self.functions(places).any(|(_, end)| end == RETURN),
        };
        self.functions.change(&change, || {
            for (f, _) in self.functions(places) {
                f.armed.store(wanted(f), Ordering::Relaxed);
            }
        })
    }
}

/// The most functions that a set of places may have.
const MAX_FUNCTIONS: usize = 64;

/// Notes that the function at `ip` has a place at `end`. Returns the function's index.
fn function(functions: &mut KVVec<Function>, ip: usize, place: usize, end: u8) -> Result<usize> {
    let n = match functions.iter().position(|f| f.ip == ip) {
        Some(n) => n,
        None => {
            let new = Function {
                ip,
                entry: None,
                leave: None,
                outer: None,
                armed: AtomicU8::new(0),
            };
            if functions.len() >= MAX_FUNCTIONS {
                return Err(ENOSPC);
            }
            functions.push(new, GFP_KERNEL)?;
            functions.len().wrapping_sub(1)
        }
    };
    if let Some(function) = functions.get_mut(n) {
        match end {
            ENTRY => function.entry = Some(place),
            _ => function.leave = Some(place),
        }
    }
    Ok(n)
}
