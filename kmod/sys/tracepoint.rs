// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The kernel's tracepoints: their list, and hooks on them.
//!
//! Tracepoints are found by the kernel's own walk over them, which also works for those that are
//! not exported. Their subsystems are in the list of trace events, and the numbers of their
//! arguments in the table for BPF's raw tracepoints.
//!
//! A hook must outlive its registration: after detaching, a late call on another CPU may still read
//! it. So detaching does not wait, and dropping the whole set waits once.

use super::module::Module;
use super::symbols;
use crate::bindings;
use core::ffi::{c_char, c_void, CStr};
use core::sync::atomic::{AtomicBool, Ordering};
use dtrace_engine::mem::sort::sort;
use kernel::alloc::KVVec;
use kernel::prelude::*;

/// The callback of a tracepoint. It runs in any context in which the kernel has tracepoints; RCU
/// watches the CPU, and preemption may be on. It must not sleep.
pub trait Hit: Send + Sync + 'static {
    /// The tracepoint was passed with these arguments. The upper bits of arguments that are
    /// narrower than 64 bits mean nothing.
    fn hit(&self, args: &[u64]);
}

/// A tracepoint that may get a hook.
pub struct Description<'a> {
    /// Its subsystem, if it has a trace event.
    pub system: Option<&'a [u8]>,
    /// Its name.
    pub name: &'a [u8],
}

/// A hook, which the C trampoline calls.
#[repr(C)]
struct Hook<T> {
    // Must be first: a pointer to it is a pointer to the whole.
    raw: bindings::dtrace_tracepoint_hook,
    tp: *mut bindings::tracepoint,
    /// Whether it is registered: the kernel warns if a hook is removed that is not there.
    attached: AtomicBool,
    value: T,
}

/// Hooks on tracepoints of the kernel or of one module. All must be detached before the value is
/// dropped. They do not move while one is attached, because the vector does not grow after `new`.
pub struct Tracepoints<T: Hit> {
    hooks: KVVec<Hook<T>>,
}

// SAFETY: Tracepoints outlive their hooks. Apart from `attached`, which is atomic, hooks change
// only while none is attached.
unsafe impl<T: Hit> Send for Tracepoints<T> {}
// SAFETY: As above.
unsafe impl<T: Hit> Sync for Tracepoints<T> {}

impl<T: Hit> Tracepoints<T> {
    /// Makes a hook for each of the kernel's tracepoints for which `make` returns a value; `make`
    /// gets the tracepoint and the hook's index. Nothing is attached. May sleep.
    pub fn new(make: impl FnMut(&Description<'_>, usize) -> Result<Option<T>>) -> Result<Self> {
        let end = symbols::lookup(c"_end")?.get();
        let systems = systems(|system| system < end)?;
        let counts = argument_counts(kernel_maps()?)?;
        Self::hook(&found(each_of_kernel)?, &systems, &counts, make)
    }

    /// Does the same for a module's tracepoints.
    ///
    /// # Safety
    ///
    /// When the module is unloaded, the returned value must be dropped before the notification of
    /// that returns.
    pub(super) unsafe fn of_module(
        module: &Module,
        make: impl FnMut(&Description<'_>, usize) -> Result<Option<T>>,
    ) -> Result<Self> {
        let module = module.as_ptr();
        // SAFETY: The module, and so its table of that many entries, is alive as long as it is
        // borrowed.
        let maps = unsafe {
            match (*module).num_bpf_raw_events as usize {
                0 => &[],
                n => core::slice::from_raw_parts((*module).bpf_raw_events, n),
            }
        };
        let each = |each, data| {
            // SAFETY: The module is alive as long as it is borrowed; `each` takes what `data`
            // points to, because `found` passes both.
            unsafe { bindings::dtrace_each_tracepoint(module, each, data) }
        };
        // SAFETY: The module is alive as long as it is borrowed; the address is only compared.
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
            // SAFETY: The tracepoint and its name are alive: they are the kernel's, or those of a
            // module that is borrowed by `of_module`.
            let name = unsafe { CStr::from_char_ptr((*tp).name.cast()) }.to_bytes();
            let system = by_tracepoint(systems, tp).map(|system| {
                // SAFETY: `systems` keeps only strings of the kernel, or of the tracepoint's own
                // module, which are alive as above.
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

    /// Whether there are no hooks.
    pub fn is_empty(&self) -> bool {
        self.hooks.is_empty()
    }

    /// Attaches hook `n`, which must not be attached. May sleep.
    pub fn attach(&self, n: usize) -> Result {
        let hook = self.hooks.get(n).ok_or(EINVAL)?;
        // SAFETY: The tracepoint outlives the hook. The hook stays in place until `drop` has
        // waited, and is detached before that.
        kernel::error::to_result(unsafe {
            bindings::dtrace_tracepoint_register(hook.tp, raw(hook))
        })?;
        hook.attached.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Detaches hook `n`. Has no effect if it is not attached. A call of the hook may still be
    /// running afterwards. May sleep.
    pub fn detach(&self, n: usize) {
        let hook = self.hooks.get(n);
        if let Some(hook) = hook.filter(|h| h.attached.swap(false, Ordering::Relaxed)) {
            // SAFETY: As in `attach`; the hook is registered, as `attached` says.
            unsafe { bindings::dtrace_tracepoint_unregister(hook.tp, raw(hook)) };
        }
    }
}

impl<T: Hit> Drop for Tracepoints<T> {
    fn drop(&mut self) {
        // All hooks are detached, but calls of them may still be running.
        // SAFETY: No preconditions; may sleep.
        unsafe { bindings::dtrace_tracepoint_sync() };
    }
}

/// Hooks that stay attached until this is dropped. Dropping it waits until none of them is being
/// called. May sleep.
pub struct Attached<T: Hit>(Tracepoints<T>);

impl<T: Hit> Attached<T> {
    /// Attaches hooks to the kernel's tracepoints of these names. `last`: each is to be called
    /// after all other probes of its tracepoint. Fails with `ENODEV` if the kernel does not have
    /// all of them. May sleep.
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
/// Called by the C trampoline with a live `Hook<T>` and as many words as its `nargs` says.
unsafe extern "C" fn on_hit<T: Hit>(hook: *mut bindings::dtrace_tracepoint_hook, args: *const u64) {
    // SAFETY: By the caller's promise. `raw` is the first field, and hooks are only read while they
    // are attached.
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
    // SAFETY: `each` takes what `data` points to, because `found` passes both.
    unsafe { bindings::for_each_kernel_tracepoint(each, data) }
}

/// Returns the tracepoints that `walk` passes to the function that it gets.
fn found(walk: impl FnOnce(Option<Each>, *mut c_void)) -> Result<KVVec<*mut bindings::tracepoint>> {
    type Found = Sink<*mut bindings::tracepoint>;

    /// # Safety
    ///
    /// `data` must point to a `Found` that nothing else uses during the call.
    unsafe extern "C" fn each(tp: *mut bindings::tracepoint, data: *mut c_void) {
        // SAFETY: By the caller's promise.
        unsafe { &mut *data.cast::<Found>() }.push(tp);
    }

    let mut found = Found::new();
    walk(Some(each), core::ptr::from_mut(&mut found).cast());
    found.error?;
    Ok(found.list)
}

/// Returns the subsystems of the tracepoints that have events, sorted by tracepoint. Keeps only
/// names at addresses for which `lasts` returns `true`; the others may belong to modules that go.
fn systems(lasts: impl Fn(usize) -> bool) -> Result<ByTracepoint<*const c_char>> {
    type Found = Sink<(usize, *const c_char)>;

    /// # Safety
    ///
    /// `data` must point to a `Found` that nothing else uses during the call.
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
    // SAFETY: The helper needs the addresses of the kernel's list of events and of the mutex that
    // guards it, which were looked up by name. `each` gets the sink, which outlives the call. It
    // may run in another task, for which this one waits, so nothing else uses the sink meanwhile.
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

/// Returns the table in which the kernel describes its own tracepoints to BPF.
fn kernel_maps() -> Result<&'static [bindings::bpf_raw_event_map]> {
    let start = symbols::lookup(c"__start__bpf_raw_tp")?.as_ptr::<bindings::bpf_raw_event_map>();
    let stop = symbols::lookup(c"__stop__bpf_raw_tp")?.as_ptr::<bindings::bpf_raw_event_map>();
    // SAFETY: The two symbols bound one array, which is constant and stays for ever.
    Ok(unsafe {
        let len = usize::try_from(stop.offset_from(start)).map_err(|_| EINVAL)?;
        core::slice::from_raw_parts(start, len)
    })
}

/// Returns the numbers of arguments of tracepoints, sorted by tracepoint.
fn argument_counts(maps: &[bindings::bpf_raw_event_map]) -> Result<ByTracepoint<u32>> {
    let mut list = KVVec::with_capacity(maps.len(), GFP_KERNEL)?;
    for map in maps {
        list.push((map.tp as usize, map.num_args), GFP_KERNEL)?;
    }
    sort(&mut list, |a, b| a.0 < b.0);
    Ok(list)
}
