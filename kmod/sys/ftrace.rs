// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Hooks at both ends of kernel functions.
//!
//! A [`Tracer`] has one registration, however many functions it traces: an `ftrace_ops`, called at their entry. Where the
//! return of a call is wanted too, the entry plants a hook on it (`returns.c`), so that entries fire whether the return
//! can be hooked or not, and a function costs one call of ftrace's whatever is wanted of it.
//!
//! The filter holds the anchor (`anchor.c`) at all times: an empty filter means every function. The ops stays
//! registered once it was used, because to unregister it is to wait for every task to schedule; with the anchor alone
//! in its filter no kernel code is patched. So is the pool of hooks on returns kept once there was a use for it: it
//! is memory and nothing else.
//!
//! Registered it is permanent (`FTRACE_OPS_FL_PERMANENT`, as a live patch's is): the sysctl `kernel.ftrace_enabled` would silence it
//! without a word, and so is refused to be switched off (`EBUSY`). While that is off nothing can be registered, which fails alike.
//!
//! None of ftrace's own guards are asked for (`FTRACE_OPS_FL_RECURSION`, `_RCU`), each of which costs more than the rest
//! together. So [`Hooks::entry`] may run in any context, nested in itself, preemptible, and must find that out itself.
//!
//! An ftrace that finds the kernel's text other than it left it stops for good: it patches nothing any more, and lets nobody go. Functions
//! that were traced then call us until the machine goes down, so the module stays, if need be by never coming to the end of its removal.
//! An ops that traced none is left where it lies.

use super::functions;
use super::rculist::synchronize_tasks;
use super::regs::Regs;
use super::symbols::{self, Address};
use crate::bindings;
use core::cell::UnsafeCell;
use core::ffi::{c_int, c_void};
use core::marker::PhantomPinned;
use core::mem::ManuallyDrop;
use kernel::prelude::*;
use kernel::sync::{new_mutex, Mutex};
use kernel::time::delay::fsleep;
use kernel::time::Delta;

/// A call whose return is wanted.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// What [`leave`](Hooks::leave) is told.
    pub place: usize,
    /// By users alone, who may have few of them.
    pub of_users: bool,
}

impl Wanted {
    /// By somebody who sees the whole machine.
    pub fn whole(place: usize) -> Self {
        Self {
            place,
            of_users: false,
        }
    }
}

/// What is called for traced functions, in whatever context they are called.
pub trait Hooks: Send + Sync + 'static {
    /// A function, patched at `ip`, was called from before `caller`. Whether its return is wanted.
    fn entry(&self, ip: usize, caller: u64, regs: &Regs) -> Option<Wanted>;

    /// Whether returns may be wanted by [users](Wanted::of_users) alone.
    const HAS_USERS: bool = false;

    /// Whether functions may be [deferred](Self::defers). Only such may that are system calls.
    const DEFERS: bool = false;

    /// Whether a system call that was called is to begin with [`detour`](Self::detour) in place of `entry`.
    fn defers(&self, _ip: usize) -> bool {
        false
    }

    /// What `entry` would say of a call that begins with a detour.
    fn deferred(&self, _ip: usize) -> Option<Wanted> {
        None
    }

    /// A call begins, which may sleep. Nothing is held up by that but this call.
    fn detour(&self, _ip: usize, _caller: u64) {}

    /// The return of a call that `entry` wanted, for which it said `place`, could not be hooked.
    fn unhooked(&self, place: usize);

    /// A call that `entry` wanted, for which it said `place`, with `first` as its first argument, returns `value` to `caller`.
    /// Preemption is off.
    fn leave(&self, place: usize, caller: u64, value: u64, first: u64);
}

/// How often it is tried to remove addresses.
const TRIES: usize = 4;
const BETWEEN_TRIES: Delta = Delta::from_millis(50);

/// What to change in one go.
#[derive(Default)]
pub struct Change<'a> {
    /// Addresses that are not traced yet.
    pub add: &'a [usize],
    /// Addresses that are traced.
    pub drop: &'a [usize],
    /// Whether returns may be wanted from now on.
    pub returns: bool,
}

/// Traces functions for `H`.
///
/// # Invariants
///
/// `ops.private` points to the tracer, which is pinned and alive while `ops` is called or `returns` is started. `ops` is never freed
/// while it is registered.
#[pin_data(PinnedDrop)]
pub struct Tracer<H: Hooks> {
    hooks: H,
    ops: ManuallyDrop<KBox<UnsafeCell<bindings::ftrace_ops>>>,
    is_dead: Address,
    returns: UnsafeCell<bindings::dtrace_returns>,
    #[pin]
    state: Mutex<State>,
    #[pin]
    _pin: PhantomPinned,
}

/// What ftrace has of a tracer.
#[derive(Default)]
struct State {
    registered: bool,
    /// Perhaps more than the anchor, whatever is traced.
    lingers: bool,
    /// Addresses could not be removed for want of memory, when that was last tried.
    in_vain: bool,
    /// The module stays.
    stays: bool,
}

// SAFETY: Ops and returns are changed under the mutex, and read by ftrace and probe context, which have rules of their own.
unsafe impl<H: Hooks> Send for Tracer<H> {}
// SAFETY: As above; `H` is `Sync`.
unsafe impl<H: Hooks> Sync for Tracer<H> {}

impl<H: Hooks> Tracer<H> {
    /// A tracer of no functions.
    pub fn new(hooks: H) -> Result<Pin<KBox<Self>>> {
        let is_dead = symbols::lookup(c"ftrace_is_dead")?;
        if has_stopped(is_dead) {
            pr_err!("ftrace has stopped: nothing can be traced\n");
            return Err(ENODEV);
        }
        let anchor = Address(bindings::dtrace_anchor as usize);
        let anchor = functions::traceable_at(anchor).ok_or(ENODEV)?;
        let returns = bindings::dtrace_returns {
            leave: Some(on_leave::<H>),
            has_users: H::HAS_USERS,
            alloc: symbols::lookup(c"rethook_alloc")?.get(),
            hook: symbols::lookup(c"rethook_hook")?.get(),
            stop: symbols::lookup(c"rethook_stop")?.get(),
            free: symbols::lookup(c"rethook_free")?.get(),
            find: symbols::lookup(c"rethook_find_ret_addr")?.get(),
            trampoline: symbols::lookup(c"arch_rethook_trampoline")?.get(),
            ..Default::default()
        };
        let ops = KBox::new(UnsafeCell::new(bindings::ftrace_ops::default()), GFP_KERNEL)?;
        let tracer = KBox::pin_init(
            pin_init!(Self {
                hooks,
                ops: ManuallyDrop::new(ops),
                is_dead,
                returns: UnsafeCell::new(returns),
                state <- new_mutex!(State::default(), "dtrace::Tracer"),
                _pin: PhantomPinned,
            }),
            GFP_KERNEL,
        )?;
        if H::DEFERS {
            let find_direct = symbols::find(c"ftrace_find_rec_direct")?;
            // SAFETY: It is that function's address, or 0. Nobody is sent on a detour yet.
            unsafe { bindings::dtrace_detours_begin(find_direct.map_or(0, Address::get)) };
        }
        // SAFETY: Nobody else knows the ops yet.
        let ops = unsafe { &mut *tracer.ops.get() };
        ops.func = Some(on_entry::<H>);
        ops.flags = bindings::FTRACE_OPS_FL_PERMANENT as usize;
        ops.private = core::ptr::from_ref(&*tracer).cast_mut().cast();
        tracer.edit(&[anchor], false)?;
        Ok(tracer)
    }

    /// Has ftrace know it, without anything to trace. Of the tracers of a function the one that ftrace has known for longest is called last
    /// where the function is entered, and first where it returns.
    pub fn register(&self) -> Result {
        self.make_known(&mut self.state.lock())
    }

    fn make_known(&self, state: &mut State) -> Result {
        if !state.registered {
            // SAFETY: The ops is initialised, not registered, and pinned until it is unregistered in drop.
            let result = to_result(unsafe { bindings::dtrace_filter_register(self.ops.get()) });
            // What it stops at stays on one of its lists.
            state.registered = result.is_ok() || has_stopped(self.is_dead);
            result?;
        }
        // It does not say when what was done to the filter is what it stopped at.
        match has_stopped(self.is_dead) {
            true => Err(ENODEV),
            false => Ok(()),
        }
    }

    /// What is called.
    pub fn hooks(&self) -> &H {
        &self.hooks
    }

    /// Changes what is traced: adds, then calls `switch`, then drops. An error, which there is none of if nothing is added and no
    /// returns are wanted, leaves all as it was, but where ftrace has stopped, `switch` not called.
    pub fn change(&self, change: &Change<'_>, switch: impl FnOnce()) -> Result {
        let mut state = self.state.lock();
        if change.returns {
            // SAFETY: The addresses are those of the functions asked for, and `leave` fits. Under the mutex it is called once
            // at a time.
            to_result(unsafe { bindings::dtrace_returns_start(self.returns.get()) })?;
        }
        self.edit(change.add, false)?;
        if !change.add.is_empty() {
            if let Err(error) = self.make_known(&mut state) {
                self.forget(&mut state, change.add);
                return Err(error);
            }
        }
        switch();
        self.forget(&mut state, change.drop);
        Ok(())
    }

    /// Adds addresses to the filter, or removes them: all or none.
    fn edit(&self, ips: &[usize], remove: bool) -> Result {
        if ips.is_empty() {
            return Ok(());
        }
        let count = u32::try_from(ips.len()).map_err(|_| EINVAL)?;
        // SAFETY: The ops is ours; the addresses are only read.
        let ret = unsafe {
            bindings::dtrace_filter_set(
                self.ops.get(),
                ips.as_ptr().cast_mut(),
                count,
                c_int::from(remove),
                0,
            )
        };
        to_result(ret)
    }

    /// Removes addresses from the filter. An address that is gone fails the whole call, so they are then taken one by one. Each call
    /// copies the filter: what fails for want of memory is tried again, but never for each address, of which there may be very many.
    /// Those that stay lead to no probe, and go when they are dropped the next time.
    fn forget(&self, state: &mut State, ips: &[usize]) {
        if ips.is_empty() {
            return;
        }
        let mut result = self.edit(ips, true);
        for _ in 1..TRIES {
            // Where it was in vain for some it would be for the next.
            if result != Err(ENOMEM) || state.in_vain {
                break;
            }
            fsleep(BETWEEN_TRIES);
            result = self.edit(ips, true);
        }
        if matches!(result, Err(EINVAL | ENOENT)) {
            result = ips.iter().try_for_each(|ip| match self.edit(&[*ip], true) {
                Err(EINVAL | ENOENT) => Ok(()),
                result => result,
            });
        }
        state.in_vain = result == Err(ENOMEM);
        if let Err(error) = result {
            pr_warn!("up to {} functions stay traced: {:?}\n", ips.len(), error);
            state.lingers = true;
        }
        // Nor does it say so here.
        if has_stopped(self.is_dead) {
            state.lingers = true;
            if !core::mem::replace(&mut state.stays, true) {
                pr_err!("ftrace has stopped, and may call this module for ever: it stays\n");
                // SAFETY: The helper has no preconditions. While the module goes already this changes nothing, and `drop` sees to it.
                unsafe { bindings::dtrace_stay() };
            }
        }
    }
}

/// Whether ftrace has stopped, by `ftrace_is_dead`.
fn has_stopped(is_dead: Address) -> bool {
    // SAFETY: The function takes nothing and returns an int.
    unsafe { is_dead.call([0; 5]) as c_int != 0 }
}

#[pinned_drop]
impl<H: Hooks> PinnedDrop for Tracer<H> {
    fn drop(self: Pin<&mut Self>) {
        // Shared, as ftrace may call on other CPUs until all is unregistered.
        let this = self.as_ref().get_ref();
        let State {
            registered,
            lingers,
            ..
        } = *this.state.lock();
        // SAFETY: The ops is registered.
        let unregister = || unsafe { bindings::unregister_ftrace_function(this.ops.get()) };
        let left = registered && unregister() != 0;
        if left && lingers {
            pr_err!(
                "ftrace has stopped, and may call this module for ever: its removal does not end\n"
            );
            // SAFETY: The lock is not held.
            unsafe { bindings::dtrace_park() };
        }
        if left {
            pr_warn!("ftrace has stopped: its record of this module stays in memory\n");
            // For that is what the kernel does where it can be unregistered.
            synchronize_tasks();
        }
        // SAFETY: No task is in the trampoline, so that none comes to be sent on a detour.
        unsafe { bindings::dtrace_detours_wait() };
        // SAFETY: No task is in the trampoline or in `on_entry`, and none comes there that could hook a return: with `left`, as nothing
        // is traced then. When it returns `on_leave` is not called either.
        unsafe { bindings::dtrace_returns_end(this.returns.get()) };
        if left {
            return;
        }
        // SAFETY: The ops is nobody's but ours, and not used again.
        unsafe {
            bindings::ftrace_free_filter(this.ops.get());
            // Nothing is moved out of what is pinned.
            ManuallyDrop::drop(&mut self.get_unchecked_mut().ops);
        }
    }
}

/// # Safety
///
/// Called by ftrace, with the ops of a `Tracer<H>`.
unsafe extern "C" fn on_entry<H: Hooks>(
    ip: usize,
    parent: usize,
    ops: *mut bindings::ftrace_ops,
    fregs: *mut bindings::ftrace_regs,
) {
    // The architecture's ftrace_regs begin with the pt_regs.
    let raw = fregs.cast::<bindings::__arch_ftrace_regs>().cast();
    // SAFETY: By the invariant of `Tracer`; the registers are nobody else's during the callback, and not changed while they are
    // referred to.
    let (tracer, regs) = unsafe { (&*(*ops).private.cast::<Tracer<H>>(), Regs::from_ptr(raw)) };
    // SAFETY: The field never changes.
    let parent = match unsafe { (*tracer.returns.get()).trampoline } == parent {
        // SAFETY: The registers are those of a function's entry, of the current task.
        true => unsafe { bindings::dtrace_returns_caller(tracer.returns.get(), raw) },
        false => parent,
    };
    // SAFETY: The registers are those that ftrace goes on with. The tracer stays until nobody is on a detour.
    let detour = || unsafe {
        bindings::dtrace_detour_take(raw, ip, parent, Some(on_detour::<H>), (*ops).private)
    };
    let wanted = match H::DEFERS && tracer.hooks.defers(ip) && detour() {
        true => tracer.hooks.deferred(ip),
        false => tracer.hooks.entry(ip, parent as u64, regs),
    };
    if let Some(Wanted { place, of_users }) = wanted {
        let returns = tracer.returns.get();
        // SAFETY: The registers are those of a function's entry.
        let hooked = unsafe { bindings::dtrace_returns_hook(returns, place, raw, of_users) };
        if !hooked {
            tracer.hooks.unhooked(place);
        }
    }
}

/// # Safety
///
/// Called by `detours.c` with a `Tracer<H>`.
unsafe extern "C" fn on_detour<H: Hooks>(tracer: *mut c_void, ip: usize, caller: usize) {
    // SAFETY: By the caller's promise.
    let tracer = unsafe { &*tracer.cast::<Tracer<H>>() };
    tracer.hooks.detour(ip, caller as u64);
}

/// # Safety
///
/// Called with the `returns` of a `Tracer<H>`.
unsafe extern "C" fn on_leave<H: Hooks>(
    returns: *mut bindings::dtrace_returns,
    ip: usize,
    caller: usize,
    value: u64,
    first: u64,
) {
    let returns: *mut UnsafeCell<bindings::dtrace_returns> = returns.cast();
    // SAFETY: It is that field, in a tracer that is alive; an `UnsafeCell` is transparent.
    let tracer = unsafe { &*kernel::container_of!(returns, Tracer<H>, returns) };
    tracer.hooks.leave(ip, caller as u64, value, first);
}

fn to_result(ret: c_int) -> Result {
    kernel::error::to_result(ret)
}
