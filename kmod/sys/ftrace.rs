// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Hooks at both ends of kernel functions.
//!
//! An [`FtraceOps`] is one registration, however many functions it traces: an `ftrace_ops`, called
//! at their entry. If the return of a call is wanted too, the entry hooks it (`returns.c`). So
//! entries fire whether the return can be hooked or not, and a function costs one call by ftrace
//! whatever is wanted of it.
//!
//! The filter always contains the anchor (`anchor.c`), because an empty filter means every
//! function. Once used, the ops stays registered, because unregistering it waits for every task to
//! schedule; with only the anchor in its filter no kernel code is patched. The pool of hooks on
//! returns also stays once it was needed; it is memory and nothing else.
//!
//! The ops is permanent (`FTRACE_OPS_FL_PERMANENT`, as that of a live patch): otherwise the sysctl
//! `kernel.ftrace_enabled` would silence it without notice. Switching that sysctl off fails with
//! `EBUSY` then. While it is off, nothing can be registered, which also fails.
//!
//! None of ftrace's own guards are requested (`FTRACE_OPS_FL_RECURSION`, `_RCU`), because each of
//! them costs more than the rest together. So [`Hooks::entry`] may run in any context, nested in
//! itself, preemptible, and out of RCU's sight, and must find that out itself.
//!
//! If ftrace finds the kernel's text other than it left it, it stops for good: it patches nothing
//! any more and lets no ops go. Functions that were traced then call the module until the machine
//! goes down. So the module stays loaded, if need be by never finishing its removal. An ops that
//! traced no function then is left in memory.

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
    /// What [`leave`](Hooks::leave) gets as `place`.
    pub place: usize,
    /// Whether only members want it; their returns take hooks from a small pool of their own.
    pub of_users: bool,
}

impl Wanted {
    /// Returns one that a consumer wants which sees the whole machine.
    pub fn whole(place: usize) -> Self {
        Self {
            place,
            of_users: false,
        }
    }
}

/// Callbacks for traced functions, which run in whatever context the functions are called in.
pub trait Hooks: Send + Sync + 'static {
    /// Called at the entry of a function that is patched at `ip`; `caller` is the address to which
    /// it will return. Returns whether and for whom its return is wanted.
    fn entry(&self, ip: usize, caller: u64, regs: &Regs) -> Option<Wanted>;

    /// Whether returns may be wanted by [members alone](Wanted::of_users).
    const HAS_USERS: bool = false;

    /// Whether functions may be [deferred](Self::defers). Only system calls may.
    const DEFERS: bool = false;

    /// Whether a system call that has just been entered is to begin with [`detour`](Self::detour)
    /// instead of `entry`.
    fn defers(&self, _ip: usize) -> bool {
        false
    }

    /// Returns what `entry` would return for a call that begins with a detour.
    fn deferred(&self, _ip: usize) -> Option<Wanted> {
        None
    }

    /// Called at the beginning of a call that was deferred. May sleep; that delays only this call.
    fn detour(&self, _ip: usize, _caller: u64) {}

    /// Called if the return of a call, for which `entry` returned `place`, could not be hooked.
    fn unhooked(&self, place: usize);

    /// Called when a call returns for which `entry` returned `place`: `first` was its first
    /// argument, `value` is what it returns, `caller` is the address to which it returns.
    /// Preemption is off.
    fn leave(&self, place: usize, caller: u64, value: u64, first: u64);
}

/// How often removing addresses is tried.
const TRIES: usize = 4;
const BETWEEN_TRIES: Delta = Delta::from_millis(50);

/// Changes to make in one go.
#[derive(Default)]
pub struct Change<'a> {
    /// Addresses that are not traced yet.
    pub add: &'a [usize],
    /// Addresses that are traced.
    pub drop: &'a [usize],
    /// Whether returns may be wanted from now on.
    pub returns: bool,
}

/// An `ftrace_ops`, and with it the functions that are traced for `H`.
///
/// # Invariants
///
/// `ops.private` points to the whole, which is pinned, and alive while `ops` can be called or
/// `returns` is started. `ops` is never freed while it is registered.
#[pin_data(PinnedDrop)]
pub struct FtraceOps<H: Hooks> {
    hooks: H,
    ops: ManuallyDrop<KBox<UnsafeCell<bindings::ftrace_ops>>>,
    is_dead: Address,
    returns: UnsafeCell<bindings::dtrace_returns>,
    #[pin]
    state: Mutex<State>,
    #[pin]
    _pin: PhantomPinned,
}

/// What ftrace has of an ops.
#[derive(Default)]
struct State {
    registered: bool,
    /// The filter may have more than the anchor, although nothing is traced.
    lingers: bool,
    /// The last attempt to remove addresses failed for want of memory.
    in_vain: bool,
    /// The module stays loaded for good.
    stays: bool,
}

// SAFETY: `ops` and `returns` are changed under the mutex. ftrace and probe context read them
// without it, by the rules of ftrace and of `returns.c` (a release store publishes `rethook`).
unsafe impl<H: Hooks> Send for FtraceOps<H> {}
// SAFETY: As above; `H` is `Sync`.
unsafe impl<H: Hooks> Sync for FtraceOps<H> {}

impl<H: Hooks> FtraceOps<H> {
    /// Returns an ops that traces no functions. Fails with `ENODEV` if ftrace has stopped. May
    /// sleep.
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
        let this = KBox::pin_init(
            pin_init!(Self {
                hooks,
                ops: ManuallyDrop::new(ops),
                is_dead,
                returns: UnsafeCell::new(returns),
                state <- new_mutex!(State::default(), "dtrace::FtraceOps"),
                _pin: PhantomPinned,
            }),
            GFP_KERNEL,
        )?;
        if H::DEFERS {
            let find_direct = symbols::find(c"ftrace_find_rec_direct")?;
            // SAFETY: The argument is the address of that function or 0, and no task is sent on a
            // detour before this ops is registered.
            unsafe { bindings::dtrace_detours_begin(find_direct.map_or(0, Address::get)) };
        }
        // SAFETY: ftrace does not know the ops yet, so nothing else accesses it.
        let ops = unsafe { &mut *this.ops.get() };
        ops.func = Some(on_entry::<H>);
        ops.flags = bindings::FTRACE_OPS_FL_PERMANENT as usize;
        ops.private = core::ptr::from_ref(&*this).cast_mut().cast();
        this.edit(&[anchor], false)?;
        Ok(this)
    }

    /// Registers the ops with ftrace, without functions to trace. Of several that trace a function,
    /// the one that was registered first is called last at its entry, and first at its return. May
    /// sleep.
    pub fn register(&self) -> Result {
        self.make_known(&mut self.state.lock())
    }

    fn make_known(&self, state: &mut State) -> Result {
        if !state.registered {
            // SAFETY: The ops is initialized, not registered, and stays in its box until it has
            // been unregistered in `drop`.
            let result = to_result(unsafe { bindings::dtrace_filter_register(self.ops.get()) });
            // If ftrace has stopped in the attempt, the ops stays on one of its lists.
            state.registered = result.is_ok() || has_stopped(self.is_dead);
            result?;
        }
        // ftrace returns no error if it stopped while it applied the filter.
        match has_stopped(self.is_dead) {
            true => Err(ENODEV),
            false => Ok(()),
        }
    }

    /// Returns the callbacks.
    pub fn hooks(&self) -> &H {
        &self.hooks
    }

    /// Changes what is traced: adds addresses, then calls `switch`, then drops addresses. After an
    /// error everything is as before and `switch` was not called, unless ftrace has stopped. Cannot
    /// fail if `add` is empty and no returns are wanted. May sleep.
    pub fn change(&self, change: &Change<'_>, switch: impl FnOnce()) -> Result {
        let mut state = self.state.lock();
        if change.returns {
            // SAFETY: `returns` has the addresses of the functions that the helper calls, and
            // `leave` has the type that the field demands. The mutex keeps calls from overlapping.
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
        // SAFETY: The ops is alive, and the mutex, or that no other task knows it yet, keeps calls
        // from overlapping. The addresses are only read.
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

    /// Removes addresses from the filter. One address that is gone fails the whole call; then they
    /// are removed one by one. Each call copies the filter, so a call that fails for want of memory
    /// is repeated as a whole, but never for each of the addresses, of which there may be very
    /// many. Addresses that stay in the filter lead to no probe; they go when they are dropped the
    /// next time.
    fn forget(&self, state: &mut State, ips: &[usize]) {
        if ips.is_empty() {
            return;
        }
        let mut result = self.edit(ips, true);
        for _ in 1..TRIES {
            // If the last attempt ran out of memory, do not wait again.
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
        // ftrace returns no error here either if it has stopped.
        if has_stopped(self.is_dead) {
            state.lingers = true;
            if !core::mem::replace(&mut state.stays, true) {
                pr_err!("ftrace has stopped, and may call this module for ever: it stays\n");
                // SAFETY: The helper has no preconditions. If the module's removal has begun, the
                // reference has no effect, and `drop` keeps the module instead.
                unsafe { bindings::dtrace_stay() };
            }
        }
    }
}

/// Whether ftrace has stopped, according to `ftrace_is_dead()`.
fn has_stopped(is_dead: Address) -> bool {
    // SAFETY: The address is that of `ftrace_is_dead()`, which takes no arguments and returns an
    // `int`.
    unsafe { is_dead.call([0; 5]) as c_int != 0 }
}

#[pinned_drop]
impl<H: Hooks> PinnedDrop for FtraceOps<H> {
    fn drop(self: Pin<&mut Self>) {
        // A shared reference: ftrace may call the hooks on other CPUs until the ops is
        // unregistered.
        let this = self.as_ref().get_ref();
        let State {
            registered,
            lingers,
            ..
        } = *this.state.lock();
        // SAFETY: The ops is registered: this is called only if `registered` is set.
        let unregister = || unsafe { bindings::unregister_ftrace_function(this.ops.get()) };
        let left = registered && unregister() != 0;
        if left && lingers {
            pr_err!(
                "ftrace has stopped, and may call this module for ever: its removal does not end\n"
            );
            // SAFETY: The helper never returns, so nothing may be held that others wait for: the
            // guard of `state` was a temporary and is gone.
            unsafe { bindings::dtrace_park() };
        }
        if left {
            pr_warn!("ftrace has stopped: its record of this module stays in memory\n");
            // Unregistering waits for that in the kernel; here it has to be done by hand.
            synchronize_tasks();
        }
        // SAFETY: No task may be in ftrace's trampoline any more that could be sent on a detour.
        // Unregistering, or `synchronize_tasks()`, has waited for all of them.
        unsafe { bindings::dtrace_detours_wait() };
        // SAFETY: No task may be in `on_entry`, which could hook a return, or come there.
        // Unregistering has waited for that; with `left` nothing is traced. After the call
        // `on_leave` is not called either.
        unsafe { bindings::dtrace_returns_end(this.returns.get()) };
        if left {
            return;
        }
        // SAFETY: The ops is unregistered, so nothing else uses it, and it is not used again.
        unsafe {
            bindings::ftrace_free_filter(this.ops.get());
            // This moves nothing out of the pinned value: the ops is in a box of its own.
            ManuallyDrop::drop(&mut self.get_unchecked_mut().ops);
        }
    }
}

/// # Safety
///
/// Called by ftrace with the ops of a live `FtraceOps<H>`.
unsafe extern "C" fn on_entry<H: Hooks>(
    ip: usize,
    parent: usize,
    ops: *mut bindings::ftrace_ops,
    fregs: *mut bindings::ftrace_regs,
) {
    let raw = Regs::of_ftrace(fregs);
    // SAFETY: By the invariant of `FtraceOps`, `private` points to a live one. The registers are
    // valid during the callback; no code changes them while `regs` is in use.
    let (this, regs) = unsafe { (&*(*ops).private.cast::<FtraceOps<H>>(), Regs::from_ptr(raw)) };
    // SAFETY: The field was set before the ops was registered and never changes.
    let parent = match unsafe { (*this.returns.get()).trampoline } == parent {
        // SAFETY: The registers are those saved at the entry of a function that the current task
        // has called.
        true => unsafe { bindings::dtrace_returns_caller(this.returns.get(), raw) },
        false => parent,
    };
    // SAFETY: The registers are those with which ftrace goes on. The ops stays alive until no task
    // is on a detour, because `drop` waits for that.
    let detour = || unsafe {
        bindings::dtrace_detour_take(raw, ip, parent, Some(on_detour::<H>), (*ops).private)
    };
    let wanted = match H::DEFERS && this.hooks.defers(ip) && detour() {
        true => this.hooks.deferred(ip),
        false => this.hooks.entry(ip, parent as u64, regs),
    };
    if let Some(Wanted { place, of_users }) = wanted {
        let returns = this.returns.get();
        // SAFETY: The registers are those saved at the entry of a function, and the value, which
        // holds `returns`, is alive.
        let hooked = unsafe { bindings::dtrace_returns_hook(returns, place, raw, of_users) };
        if !hooked {
            this.hooks.unhooked(place);
        }
    }
}

/// # Safety
///
/// Called by `detours.c` with a live `FtraceOps<H>`.
unsafe extern "C" fn on_detour<H: Hooks>(this: *mut c_void, ip: usize, caller: usize) {
    // SAFETY: By the caller's promise.
    let this = unsafe { &*this.cast::<FtraceOps<H>>() };
    this.hooks.detour(ip, caller as u64);
}

/// # Safety
///
/// Called by `returns.c` with the `returns` of a live `FtraceOps<H>`.
unsafe extern "C" fn on_leave<H: Hooks>(
    returns: *mut bindings::dtrace_returns,
    ip: usize,
    caller: usize,
    value: u64,
    first: u64,
) {
    let returns: *mut UnsafeCell<bindings::dtrace_returns> = returns.cast();
    // SAFETY: By the caller's promise it is that field of a live value; an `UnsafeCell` is
    // transparent.
    let this = unsafe { &*kernel::container_of!(returns, FtraceOps<H>, returns) };
    this.hooks.leave(ip, caller as u64, value, first);
}

fn to_result(ret: c_int) -> Result {
    kernel::error::to_result(ret)
}
