// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Hooks at both ends of kernel functions.
//!
//! A [`Tracer`] has two registrations, however many functions it traces: an `ftrace_ops` for functions whose entry alone is
//! wanted, and an `fgraph_ops` for those whose return is wanted, which sees the entry too. A function is in one of them
//! only, for a second ftrace_ops on it would cost it a walk through the list of all of them.
//!
//! Both filters hold the anchor (`anchor.c`) at all times: an empty filter means every function. The ops stays
//! registered once it was used, because to unregister it is to wait for every task to schedule; with the anchor alone
//! in its filter no kernel code is patched. The graph ops is unregistered when its last function leaves: its registration is
//! cheap, but while it lasts every new task gets a shadow stack.
//!
//! None of ftrace's own guards are asked for (`FTRACE_OPS_FL_RECURSION`, `_RCU`), each of which costs more than the rest
//! together. So [`Hooks::entry`] may run in any context, nested in itself, preemptible, and must find that out itself.

use super::functions;
use super::regs::Regs;
use super::symbols::{self, Address};
use crate::bindings;
use core::cell::UnsafeCell;
use core::ffi::c_int;
use core::marker::PhantomPinned;
use kernel::prelude::*;
use kernel::sync::{new_mutex, Mutex};

/// What is called for traced functions, in whatever context they are called.
pub trait Hooks: Send + Sync + 'static {
    /// A function of the entry set, patched at `ip`, was called from before `caller`.
    fn entry(&self, ip: usize, caller: u64, regs: &Regs);

    /// A function of the return set was called. Whether `leave` is wanted of this call.
    fn enter(&self, ip: usize, caller: u64, regs: &Regs) -> bool;

    /// A call that `enter` wanted returns `value` to `caller`.
    fn leave(&self, ip: usize, caller: u64, value: u64);
}

/// What to change in one go: addresses to add to and to drop from each of the two sets.
#[derive(Default)]
pub struct Change<'a> {
    /// Not in the entry set yet.
    pub add_entry: &'a [usize],
    /// Not in the return set yet.
    pub add_return: &'a [usize],
    /// In the entry set.
    pub drop_entry: &'a [usize],
    /// In the return set.
    pub drop_return: &'a [usize],
}

/// Traces functions for `H`.
///
/// # Invariants
///
/// `ops.private` and `graph.private` point to `hooks`. While either is registered the tracer is pinned and alive.
#[pin_data(PinnedDrop)]
pub struct Tracer<H: Hooks> {
    hooks: H,
    ops: UnsafeCell<bindings::ftrace_ops>,
    graph: UnsafeCell<bindings::fgraph_ops>,
    register_graph: Address,
    unregister_graph: Address,
    anchor: usize,
    #[pin]
    state: Mutex<State>,
    #[pin]
    _pin: PhantomPinned,
}

struct State {
    ops_registered: bool,
    graph_registered: bool,
    returns: usize,
}

// SAFETY: The two ops are touched under the mutex or by ftrace, which has locks of its own.
unsafe impl<H: Hooks> Send for Tracer<H> {}
// SAFETY: As above; `H` is `Sync`.
unsafe impl<H: Hooks> Sync for Tracer<H> {}

impl<H: Hooks> Tracer<H> {
    /// A tracer of no functions.
    pub fn new(hooks: H) -> Result<Pin<KBox<Self>>> {
        let anchor = Address(bindings::dtrace_anchor as usize);
        let anchor = functions::traceable_at(anchor).ok_or(ENODEV)?;
        let register_graph = symbols::lookup(c"register_ftrace_graph")?;
        let unregister_graph = symbols::lookup(c"unregister_ftrace_graph")?;
        let tracer = KBox::pin_init(
            pin_init!(Self {
                hooks,
                ops: UnsafeCell::new(bindings::ftrace_ops::default()),
                graph: UnsafeCell::new(bindings::fgraph_ops::default()),
                register_graph,
                unregister_graph,
                anchor,
                state <- new_mutex!(State {
                    ops_registered: false,
                    graph_registered: false,
                    returns: 0,
                }, "dtrace::Tracer"),
                _pin: PhantomPinned,
            }),
            GFP_KERNEL,
        )?;
        let hooks = core::ptr::from_ref(&tracer.hooks).cast_mut().cast();
        // SAFETY: Nobody else knows the two yet.
        let (ops, graph) = unsafe { (&mut *tracer.ops.get(), &mut *tracer.graph.get()) };
        ops.func = Some(on_entry::<H>);
        ops.private = hooks;
        graph.entryfunc = Some(on_enter::<H>);
        graph.retfunc = Some(on_leave::<H>);
        graph.private = hooks;
        tracer.edit(tracer.ops.get(), &[anchor], false)?;
        tracer.edit(tracer.graph_filter(), &[anchor], false)?;
        Ok(tracer)
    }

    /// What is called.
    pub fn hooks(&self) -> &H {
        &self.hooks
    }

    /// Changes the sets: adds, then calls `switch`, then drops. What moves from one set to the other is in both when `switch`
    /// runs, so that no call is missed. An error leaves all as it was, `switch` not called.
    pub fn change(&self, change: &Change<'_>, switch: impl FnOnce()) -> Result {
        let mut state = self.state.lock();
        self.add_entry(&mut state, change.add_entry)?;
        if let Err(error) = self.add_return(&mut state, change.add_return) {
            self.drop_entry(change.add_entry);
            return Err(error);
        }
        switch();
        self.drop_entry(change.drop_entry);
        self.drop_return(&mut state, change.drop_return);
        Ok(())
    }

    fn graph_filter(&self) -> *mut bindings::ftrace_ops {
        // SAFETY: The field's address is within the structure.
        unsafe { &raw mut (*self.graph.get()).ops }
    }

    fn add_entry(&self, state: &mut State, ips: &[usize]) -> Result {
        self.edit(self.ops.get(), ips, false)?;
        if !ips.is_empty() && !state.ops_registered {
            // SAFETY: The ops is initialised, not registered, and pinned until it is unregistered in drop.
            let ret = unsafe { bindings::register_ftrace_function(self.ops.get()) };
            if let Err(error) = to_result(ret) {
                self.drop_entry(ips);
                return Err(error);
            }
            state.ops_registered = true;
        }
        Ok(())
    }

    fn add_return(&self, state: &mut State, ips: &[usize]) -> Result {
        self.edit(self.graph_filter(), ips, false)?;
        if !ips.is_empty() && !state.graph_registered {
            // SAFETY: `register_ftrace_graph` takes an initialised fgraph_ops that is not registered and is pinned
            // until it is unregistered.
            let ret = unsafe {
                self.register_graph
                    .call([self.graph.get() as usize, 0, 0, 0, 0])
            };
            if let Err(error) = to_result(ret as c_int) {
                self.forget(self.graph_filter(), ips);
                return Err(error);
            }
            state.graph_registered = true;
        }
        state.returns = state.returns.wrapping_add(ips.len());
        Ok(())
    }

    fn drop_entry(&self, ips: &[usize]) {
        self.forget(self.ops.get(), ips);
    }

    fn drop_return(&self, state: &mut State, ips: &[usize]) {
        state.returns = state.returns.saturating_sub(ips.len());
        if !ips.is_empty() && state.returns == 0 && state.graph_registered {
            self.stop_graph(state);
        }
        self.forget(self.graph_filter(), ips);
    }

    fn stop_graph(&self, state: &mut State) {
        // SAFETY: The fgraph_ops is registered.
        unsafe {
            self.unregister_graph
                .call([self.graph.get() as usize, 0, 0, 0, 0])
        };
        state.graph_registered = false;
    }

    /// Adds addresses to a filter, or removes them: all or none.
    fn edit(&self, ops: *mut bindings::ftrace_ops, ips: &[usize], remove: bool) -> Result {
        if ips.is_empty() {
            return Ok(());
        }
        let count = u32::try_from(ips.len()).map_err(|_| EINVAL)?;
        // SAFETY: `ops` is one of our two; the addresses are only read.
        let ret = unsafe {
            bindings::ftrace_set_filter_ips(
                ops,
                ips.as_ptr().cast_mut(),
                count,
                c_int::from(remove),
                0,
            )
        };
        to_result(ret)
    }

    /// Removes addresses from a filter. An address that is gone fails the whole call, so they are then taken one by one.
    fn forget(&self, ops: *mut bindings::ftrace_ops, ips: &[usize]) {
        if self.edit(ops, ips, true).is_ok() {
            return;
        }
        for ip in ips {
            if let Err(error) = self.edit(ops, core::slice::from_ref(ip), true) {
                pr_warn!("function at {:#x} stays traced: {:?}\n", *ip, error);
            }
        }
    }
}

#[pinned_drop]
impl<H: Hooks> PinnedDrop for Tracer<H> {
    fn drop(self: Pin<&mut Self>) {
        let mut state = self.state.lock();
        if state.graph_registered {
            self.stop_graph(&mut state);
        }
        if state.ops_registered {
            // Returns when no task can be in the trampoline or in `on_entry`.
            // SAFETY: The ops is registered.
            unsafe { bindings::unregister_ftrace_function(self.ops.get()) };
        }
        drop(state);
        // `on_enter` and `on_leave` are called with preemption off.
        // SAFETY: No preconditions; may sleep here.
        unsafe { bindings::synchronize_rcu() };
        // SAFETY: Neither is registered; the filters are ours.
        unsafe {
            bindings::ftrace_free_filter(self.ops.get());
            bindings::ftrace_free_filter(self.graph_filter());
        }
    }
}

/// # Safety
///
/// `fregs` is what ftrace gave a callback.
#[inline]
unsafe fn regs<'a>(fregs: *mut bindings::ftrace_regs) -> &'a Regs {
    // SAFETY: By the caller's promise; the architecture's ftrace_regs begin with the pt_regs, which are nobody
    // else's during the callback.
    unsafe { Regs::from_ptr(fregs.cast::<bindings::__arch_ftrace_regs>().cast()) }
}

/// # Safety
///
/// Called by ftrace, with an ops of a `Tracer<H>`.
unsafe extern "C" fn on_entry<H: Hooks>(
    ip: usize,
    parent: usize,
    ops: *mut bindings::ftrace_ops,
    fregs: *mut bindings::ftrace_regs,
) {
    // SAFETY: By the invariant of `Tracer`; `fregs` are ftrace's.
    let (hooks, regs) = unsafe { (&*(*ops).private.cast::<H>(), regs(fregs)) };
    hooks.entry(ip, parent as u64, regs);
}

/// # Safety
///
/// Called by ftrace, with an ops of a `Tracer<H>`.
unsafe extern "C" fn on_enter<H: Hooks>(
    trace: *mut bindings::ftrace_graph_ent,
    ops: *mut bindings::fgraph_ops,
    fregs: *mut bindings::ftrace_regs,
) -> c_int {
    // SAFETY: By the invariant of `Tracer`; `trace` and `fregs` are ftrace's.
    let (hooks, regs, ip) = unsafe { (&*(*ops).private.cast::<H>(), regs(fregs), (*trace).func) };
    // SAFETY: At a function's first instruction the return address is on top of the stack.
    let caller = unsafe { (regs.sp() as *const u64).read() };
    c_int::from(hooks.enter(ip, caller, regs))
}

/// # Safety
///
/// Called by ftrace, with an ops of a `Tracer<H>`.
unsafe extern "C" fn on_leave<H: Hooks>(
    trace: *mut bindings::ftrace_graph_ret,
    ops: *mut bindings::fgraph_ops,
    fregs: *mut bindings::ftrace_regs,
) {
    // SAFETY: By the invariant of `Tracer`; `trace` and `fregs` are ftrace's.
    let (hooks, regs, ip) = unsafe { (&*(*ops).private.cast::<H>(), regs(fregs), (*trace).func) };
    hooks.leave(ip, regs.ip(), regs.return_value());
}

fn to_result(ret: c_int) -> Result {
    kernel::error::to_result(ret)
}
