// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Places in the kernel that tell of an event: tracepoints, and the two ends of functions.
//!
//! An event that DTrace documents happens at one place in one version of the kernel and at another in the next. So all that
//! a provider must know of the kernel's own names and arguments stands here: the submodules name the places, an
//! area each, and turn what a place passes into what the event means. [`Places`] attaches them.
//!
//! A function may have several names, as compilers add suffixes to those that they specialise (`.isra.0`); only such are
//! named whose arguments this leaves alone. A place that the kernel does not have is no error: what it tells of does
//! not happen here.
//!
//! Invariant: a place is attached while it is wanted and at no other time. All functions that one call attaches cost one
//! pass of text patching.

pub mod io;
pub mod lock;
mod modules;
pub mod net;
pub mod sched;
pub mod statistics;
pub mod task;

use super::ftrace::{Change, Hooks, Tracer, Wanted};
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

/// Where a place is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// A tracepoint, which passes its own arguments.
    Tracepoint(&'static str),
    /// The tracepoint of the second name in the module of the first, which may come and go, or be a part of the kernel. Unlike
    /// other places, it is always there to be wanted.
    InModule(&'static str, &'static str),
    /// The entry of the function that has the first of these names that there is; it passes [`ARGUMENTS`] of its arguments.
    Entry(&'static [&'static CStr]),
    /// The entries of all functions of these names.
    Entries(&'static [&'static CStr]),
    /// The return of the function that has the first of these names that there is; it passes the value, and the
    /// argument that came first.
    Return(&'static [&'static CStr]),
    /// The returns of all functions of these names.
    Returns(&'static [&'static CStr]),
    /// The entry of the first function, and of the second where nothing of the first calls it: the first calls the second, or a
    /// compiler has put the second into the first, which another calls as well. The first may be missing.
    NestedEntry([&'static CStr; 2]),
    /// The returns of these two likewise.
    NestedReturn([&'static CStr; 2]),
}

/// How many arguments a function's entry passes.
pub const ARGUMENTS: usize = 4;

/// What a place passes.
pub struct Call<'a> {
    /// The words, as the submodules know how to read them.
    pub args: &'a [u64],
    /// The address that a function returns to; 0 at a tracepoint.
    pub caller: u64,
}

impl Call<'_> {
    /// Word `n`.
    #[inline]
    fn word(&self, n: usize) -> u64 {
        self.args.get(n).copied().unwrap_or(0)
    }

    /// Word `n`, which is an `int`.
    #[inline]
    fn int(&self, n: usize) -> i32 {
        self.word(n) as i32
    }

    /// Word `n`, which is a `bool`.
    #[inline]
    fn flag(&self, n: usize) -> bool {
        self.word(n) as u8 != 0
    }
}

/// Who is told. Called in whatever context the place is passed.
pub trait Passed: Send + Sync + 'static {
    /// Place number `place` was passed.
    fn passed(&self, place: usize, call: &Call<'_>);

    /// A passage of place number `place` was lost: the return of its function could not be hooked.
    /// At other places that does not happen.
    fn lost(&self, _place: usize) {}

    /// Place number `place` is wanted, and its module has come, but it could not be attached.
    fn missed(&self, place: usize);
}

const ENTRY: u8 = 1;
const RETURN: u8 = 2;

/// A function with a place at one end or at both.
struct Function {
    ip: usize,
    entry: Option<usize>,
    leave: Option<usize>,
    /// The function around it, whose calls do not count.
    outer: Option<Range<usize>>,
    armed: AtomicU8,
}

impl Function {
    /// Whether a call of it, from `caller`, passes a place.
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

/// Which of the functions with a place's names it is at.
#[derive(Clone, Copy)]
enum Which {
    /// The first that there is.
    First,
    /// All.
    All,
    /// All, but for calls of one from the one before it.
    Nested,
}

#[derive(Clone, Copy)]
enum How {
    /// The index of a hook.
    Tracepoint(usize),
    /// The index of a function, and the end.
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
    /// There are but a few.
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

/// A set of places, and who is told of them. Attaching and detaching are never called at once.
pub struct Places<T: Passed> {
    found: KVVec<Found>,
    tracepoints: Tracepoints<PlaceHit<T>>,
    in_modules: Option<InModules<T>>,
    functions: Pin<KBox<Tracer<FunctionHooks<T>>>>,
}

impl<T: Passed> Places<T> {
    /// Finds the places; nothing is attached.
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
                    // The kernel may have it built in.
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
        let functions = Tracer::new(FunctionHooks {
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

    /// Whether the kernel has the place.
    pub fn has(&self, place: usize) -> bool {
        let in_module = || self.in_modules.as_ref().is_some_and(|m| m.has(place));
        self.found.iter().any(|found| found.place == place) || in_module()
    }

    /// What is to be attached for these places.
    fn each<'a>(&'a self, places: &'a [usize]) -> impl Iterator<Item = &'a Found> + 'a {
        self.found
            .iter()
            .filter(|found| places.contains(&found.place))
    }

    /// Attaches places, none of which is attached. One that cannot be attached is told to `failed`.
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

    /// Detaches places. One that is not attached stays so.
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

    /// The functions of these places, with the end that each place has of them.
    fn functions<'a>(&'a self, places: &'a [usize]) -> impl Iterator<Item = (&'a Function, u8)> {
        let functions = &self.functions.hooks().functions;
        self.each(places).filter_map(|found| match found.how {
            How::Function(n, end) => Some((functions.get(n)?, end)),
            How::Tracepoint(_) => None,
        })
    }

    /// Arms or disarms the functions of `places`, all or none.
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
        // To switch off must not need memory.
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

/// Notes that the function at `ip` has a place at `end`; its index.
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
