// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The kernel's tracepoints: their list, and probes on them.
//!
//! Tracepoints are found by the kernel's own walk over them, which works for those that are not exported too. Their subsystems
//! stand in the list of trace events, the numbers of their arguments in the table for BPF's raw tracepoints.
//!
//! A hook is memory of its tracepoint for good: detached, a late call on another CPU may still read it. So detaching does
//! not wait, and the whole set waits once when it is dropped.

use super::module::Module;
use super::symbols;
use crate::bindings;
use core::ffi::{c_char, c_void, CStr};
use core::sync::atomic::{AtomicBool, Ordering};
use dtrace_engine::mem::sort::sort;
use kernel::alloc::KVVec;
use kernel::prelude::*;

/// What is called when a tracepoint is passed. Any context but an NMI's beginning; RCU watches.
pub trait Hit: Send + Sync + 'static {
    /// The tracepoint was passed with these arguments. Of those narrower than 64 bits the upper bits mean nothing.
    fn hit(&self, args: &[u64]);
}

/// A tracepoint to be described.
pub struct Description<'a> {
    /// Its subsystem, if it has an event.
    pub system: Option<&'a [u8]>,
    /// Its name.
    pub name: &'a [u8],
}

/// A hook, called through the C trampoline.
#[repr(C)]
struct Hook<T> {
    // First, so that a pointer to it is a pointer to the whole.
    raw: bindings::dtrace_tracepoint_hook,
    tp: *mut bindings::tracepoint,
    /// The kernel warns of who takes away what is not there.
    attached: AtomicBool,
    value: T,
}

/// Hooks on tracepoints of the kernel or of one module. They are not moved while one is attached: the vector never grows
/// after `new`.
pub struct Tracepoints<T: Hit> {
    hooks: KVVec<Hook<T>>,
}

// SAFETY: Tracepoints live as long as their hooks, and hooks change only while nothing is attached.
unsafe impl<T: Hit> Send for Tracepoints<T> {}
// SAFETY: As above.
unsafe impl<T: Hit> Sync for Tracepoints<T> {}

impl<T: Hit> Tracepoints<T> {
    /// A hook for each of the kernel's tracepoints of which `make` makes a value, from the description and the hook's index;
    /// nothing is attached.
    pub fn new(make: impl FnMut(&Description<'_>, usize) -> Result<Option<T>>) -> Result<Self> {
        let end = symbols::lookup(c"_end")?.get();
        let systems = systems(|system| system < end)?;
        let counts = argument_counts(kernel_maps()?)?;
        Self::hook(&found(each_of_kernel)?, &systems, &counts, make)
    }

    /// The same of a module's tracepoints.
    ///
    /// # Safety
    ///
    /// When the module goes what is returned must be dropped before its notification is over.
    pub(super) unsafe fn of_module(
        module: &Module,
        make: impl FnMut(&Description<'_>, usize) -> Result<Option<T>>,
    ) -> Result<Self> {
        let module = module.as_ptr();
        // SAFETY: The module is alive, as long as it is borrowed.
        let maps = unsafe {
            match (*module).num_bpf_raw_events as usize {
                0 => &[],
                n => core::slice::from_raw_parts((*module).bpf_raw_events, n),
            }
        };
        let each = |each, data| {
            // SAFETY: As above; `each` and `data` belong together.
            unsafe { bindings::dtrace_each_tracepoint(module, each, data) }
        };
        // SAFETY: As above; the other address is only compared.
        let systems = systems(|system| unsafe { bindings::dtrace_module_owns(module, system) })?;
        Self::hook(&found(each)?, &systems, &argument_counts(maps)?, make)
    }

    fn hook(
        found: &[*mut bindings::tracepoint],
        systems: &ByTracepoint<*const c_char>,
        counts: &ByTracepoint<u32>,
        mut make: impl FnMut(&Description<'_>, usize) -> Result<Option<T>>,
    ) -> Result<Self> {
        let mut hooks = KVVec::new();
        for tp in found.iter().copied() {
            // SAFETY: The tracepoint and its name are alive, by the promise of `of_module` or because they are the kernel's.
            let name = unsafe { CStr::from_char_ptr((*tp).name.cast()) }.to_bytes();
            let system = by_tracepoint(systems, tp).map(|system| {
                // SAFETY: A string of the tracepoint's own module, or of the kernel.
                unsafe { CStr::from_char_ptr(system.cast()) }.to_bytes()
            });
            let desc = Description { system, name };
            let Some(value) = make(&desc, hooks.len())? else {
                continue;
            };
            let hook = Hook {
                raw: bindings::dtrace_tracepoint_hook {
                    hit: Some(on_hit::<T>),
                    last: false,
                    nargs: by_tracepoint(counts, tp)
                        .unwrap_or(0)
                        .min(bindings::DTRACE_TRACEPOINT_ARGS),
                },
                tp,
                attached: AtomicBool::new(false),
                value,
            };
            hooks.push(hook, GFP_KERNEL)?;
        }
        Ok(Self { hooks })
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.hooks.is_empty()
    }

    /// Attaches hook `n`, which is not attached.
    pub fn attach(&self, n: usize) -> Result {
        let hook = self.hooks.get(n).ok_or(EINVAL)?;
        // SAFETY: The tracepoint lives as long as the hook, and that until `drop`, before which it is detached, has waited.
        kernel::error::to_result(unsafe {
            bindings::dtrace_tracepoint_register(hook.tp, raw(hook))
        })?;
        hook.attached.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Detaches hook `n`. A hook that is not attached stays so.
    pub fn detach(&self, n: usize) {
        let hook = self.hooks.get(n);
        if let Some(hook) = hook.filter(|h| h.attached.swap(false, Ordering::Relaxed)) {
            // SAFETY: As in `attach`; it is registered.
            unsafe { bindings::dtrace_tracepoint_unregister(hook.tp, raw(hook)) };
        }
    }
}

impl<T: Hit> Drop for Tracepoints<T> {
    fn drop(&mut self) {
        // The framework has had all probes disarmed; what it has detached may still be running.
        // SAFETY: No preconditions; may sleep.
        unsafe { bindings::dtrace_tracepoint_sync() };
    }
}

/// Hooks that are attached until this is dropped, which waits until none of them is being called.
pub struct Attached<T: Hit>(Tracepoints<T>);

impl<T: Hit> Attached<T> {
    /// Hooks on the kernel's tracepoints of these names; `last`: each to be called after all others there. `ENODEV`: the
    /// kernel has not all of them.
    pub fn new<const N: usize>(named: [(&[u8], T); N], last: bool) -> Result<Self> {
        let mut named = named.map(|(name, value)| (name, Some(value)));
        let points = Tracepoints::new(|point, _| {
            let mut wanted = named.iter_mut();
            let value = wanted.find_map(|(name, value)| value.take_if(|_| *name == point.name));
            Ok(value)
        })?;
        if named.iter().any(|(_, value)| value.is_some()) {
            return Err(ENODEV);
        }
        let mut this = Self(points);
        for hook in &mut this.0.hooks {
            hook.raw.last = last;
        }
        for n in 0..N {
            this.0.attach(n)?;
        }
        Ok(this)
    }
}

impl<T: Hit> Drop for Attached<T> {
    fn drop(&mut self) {
        for n in 0..self.0.hooks.len() {
            self.0.detach(n);
        }
    }
}

fn raw<T>(hook: &Hook<T>) -> *mut bindings::dtrace_tracepoint_hook {
    core::ptr::from_ref(hook).cast_mut().cast()
}

/// # Safety
///
/// Called by the C trampoline with a `Hook<T>` and as many words as it counts.
unsafe extern "C" fn on_hit<T: Hit>(hook: *mut bindings::dtrace_tracepoint_hook, args: *const u64) {
    // SAFETY: `raw` is the first field of a hook that is only read; there are `nargs` words.
    let (hook, args) = unsafe {
        let hook = &*hook.cast::<Hook<T>>();
        (
            hook,
            core::slice::from_raw_parts(args, hook.raw.nargs as usize),
        )
    };
    hook.value.hit(args);
}

type ByTracepoint<V> = KVVec<(usize, V)>;

fn by_tracepoint<V: Copy>(list: &ByTracepoint<V>, tp: *mut bindings::tracepoint) -> Option<V> {
    let at = list.binary_search_by_key(&(tp as usize), |e| e.0).ok()?;
    Some(list.get(at)?.1)
}

/// A vector that C fills by calls.
struct Sink<V> {
    list: KVVec<V>,
    error: Result,
}

impl<V> Sink<V> {
    fn new() -> Self {
        Self {
            list: KVVec::new(),
            error: Ok(()),
        }
    }

    fn push(&mut self, value: V) {
        if self.error.is_ok() {
            self.error = self.list.push(value, GFP_KERNEL).map_err(Into::into);
        }
    }
}

type Each = unsafe extern "C" fn(*mut bindings::tracepoint, *mut c_void);

fn each_of_kernel(each: Option<Each>, data: *mut c_void) {
    // SAFETY: `each` and `data` belong together.
    unsafe { bindings::for_each_kernel_tracepoint(each, data) }
}

/// The tracepoints that `walk` passes to the function it is given.
fn found(walk: impl FnOnce(Option<Each>, *mut c_void)) -> Result<KVVec<*mut bindings::tracepoint>> {
    type Found = Sink<*mut bindings::tracepoint>;

    /// # Safety
    ///
    /// `data` is a `Found` that nobody else uses.
    unsafe extern "C" fn each(tp: *mut bindings::tracepoint, data: *mut c_void) {
        // SAFETY: By the caller's promise.
        unsafe { &mut *data.cast::<Found>() }.push(tp);
    }

    let mut found = Found::new();
    walk(Some(each), core::ptr::from_mut(&mut found).cast());
    found.error?;
    Ok(found.list)
}

/// The subsystems of tracepoints that have events, sorted by tracepoint; those at addresses that `lasts` says are not about
/// to go.
fn systems(lasts: impl Fn(usize) -> bool) -> Result<ByTracepoint<*const c_char>> {
    type Found = Sink<(usize, *const c_char)>;

    /// # Safety
    ///
    /// `data` is a `Found` that nobody else uses.
    unsafe extern "C" fn each(
        data: *mut c_void,
        tp: *mut bindings::tracepoint,
        system: *const c_char,
    ) {
        // SAFETY: By the caller's promise.
        unsafe { &mut *data.cast::<Found>() }.push((tp as usize, system));
    }

    let events = symbols::lookup(c"ftrace_events")?;
    let lock = symbols::lookup(c"event_mutex")?;
    let mut found = Found::new();
    // SAFETY: The addresses are those of the list and the mutex that guards it; `each` gets the sink, which outlives the call. It may be called in
    // another task, for which this one waits.
    unsafe {
        bindings::dtrace_each_event(
            events.as_ptr(),
            lock.as_ptr(),
            Some(each),
            core::ptr::from_mut(&mut found).cast(),
        )
    };
    found.error?;
    found.list.retain(|(_, system)| lasts(*system as usize));
    sort(&mut found.list, |a, b| a.0 < b.0);
    Ok(found.list)
}

/// What the kernel tells BPF of its own tracepoints.
fn kernel_maps() -> Result<&'static [bindings::bpf_raw_event_map]> {
    let start = symbols::lookup(c"__start__bpf_raw_tp")?.as_ptr::<bindings::bpf_raw_event_map>();
    let stop = symbols::lookup(c"__stop__bpf_raw_tp")?.as_ptr::<bindings::bpf_raw_event_map>();
    // SAFETY: The two symbols bound the array, which is constant.
    Ok(unsafe {
        let len = usize::try_from(stop.offset_from(start)).map_err(|_| EINVAL)?;
        core::slice::from_raw_parts(start, len)
    })
}

/// The numbers of arguments of tracepoints, sorted by tracepoint.
fn argument_counts(maps: &[bindings::bpf_raw_event_map]) -> Result<ByTracepoint<u32>> {
    let mut list = KVVec::with_capacity(maps.len(), GFP_KERNEL)?;
    for map in maps {
        list.push((map.tp as usize, map.num_args), GFP_KERNEL)?;
    }
    sort(&mut list, |a, b| a.0 < b.0);
    Ok(list)
}
