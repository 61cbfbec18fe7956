// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Breakpoints in processes.
//!
//! One whose instruction can be done in the exception, or executed in a slot, is our own: its byte is written into the memory of that process. Any
//! other is carried by the kernel's uprobes, if they can, which plant it in the file, execute what it covers, and take it away; so is one of ours
//! from the moment on where more is asked for than that. Who sets a breakpoint does not know which it is. One that is kept from them
//! ([`Spot::is_kept`]) cannot be set, or is lost, where they alone could carry it.
//!
//! Whoever owns it is asked first in the exception itself, where much can be done at once and nothing can wait ([`Hit::trap`]); then, unless
//! that has done everything, by uprobes on the way back to the program ([`Hit::hit`]).

use super::arch::program::SLOT;
use super::faults::Span;
use super::process::{Process, Text};
use super::regs::Regs;
use crate::bindings;
use core::cell::UnsafeCell;
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ptr::NonNull;
use kernel::alloc::KVVec;
use kernel::error::to_result;
use kernel::prelude::*;

/// What is done where a breakpoint is hit.
pub trait Hit: Send + Sync + 'static {
    /// Called in the process, with interrupts off: whether all was done, the instruction included, or the program is to come again. Else
    /// the registers are as they were. `rest` can do what this cannot.
    fn trap(&self, _regs: Stopped<'_>, _rest: Rest) -> bool {
        false
    }

    /// What is executed at `slot` in place of the instruction; `None`: it cannot be executed there.
    fn moved(&self, _slot: u64) -> Option<[u8; SLOT]> {
        None
    }

    /// Called in the process, with interrupts off, where a debugger has a breakpoint at the same instruction, which he will have the program
    /// execute: whether all was done that comes with it, or the program is to come again.
    fn meet(&self, _regs: Stopped<'_>) -> bool {
        true
    }

    /// Called in the process, which may sleep, before the instruction is executed.
    fn hit(&self, regs: Stopped<'_>);

    /// The breakpoint had to be taken away: nobody can do what the exception could not.
    fn lose(&self) {}

    /// It could not be taken away in time, and is left behind: it is dropped when it has gone.
    fn leave(&self) {}
}

/// Who can do what a handler of a breakpoint cannot do in the exception.
#[derive(Clone, Copy)]
pub struct Rest(u64);

impl Rest {
    /// Nobody yet.
    pub fn is_nobody(self) -> bool {
        self.0 == u64::from(bindings::DTRACE_REST_NOBODY)
    }

    /// The program itself, where it goes on at this address.
    pub fn slot(self) -> Option<Slot> {
        (self.0 > u64::from(bindings::DTRACE_REST_UPROBES)).then_some(Slot(self.0))
    }
}

/// Where a program can execute an instruction that a breakpoint covers.
#[derive(Clone, Copy)]
pub struct Slot(u64);

impl Slot {
    /// Its address.
    pub fn address(self) -> u64 {
        self.0
    }

    /// Whether the current program was interrupted when it was about to execute the instruction here, and comes to the breakpoint again
    /// with the same registers.
    pub fn resumes(self, regs: &Regs) -> bool {
        // SAFETY: The registers are valid for reads.
        unsafe { bindings::dtrace_slot_resumes(self.0, regs.as_ptr()) }
    }
}

/// Whether the kernel takes the current program back to the beginning of a sequence if it is interrupted at an address (`rseq(2)`); somewhere
/// else it would not.
pub enum Restarts {
    /// It does.
    Yes,
    /// It does not.
    No,
    /// This memory is missing, which tells.
    Missing(Span),
}

impl Restarts {
    /// At this address.
    pub fn at(address: u64) -> Self {
        let mut addr = 0;
        // SAFETY: `addr` is valid for the write.
        match unsafe { bindings::dtrace_user_restarts(address, &mut addr) } {
            0 => Self::No,
            1.. => Self::Yes,
            _ => Self::Missing(Span { addr, size: 8 }),
        }
    }
}

/// The registers of a program that a breakpoint has stopped.
pub struct Stopped<'a> {
    regs: NonNull<bindings::pt_regs>,
    _stopped: PhantomData<&'a mut bindings::pt_regs>,
}

impl Stopped<'_> {
    /// As the instruction finds them.
    pub fn regs(&self) -> &Regs {
        // SAFETY: They lie on the stack of the current task, and change by `&mut self` alone.
        unsafe { Regs::from_ptr(self.regs.as_ptr()) }
    }

    /// Those with which the program goes on.
    pub fn regs_mut(&mut self) -> &mut Regs {
        // SAFETY: As above.
        unsafe { &mut *self.regs.as_ptr().cast::<Regs>() }
    }
}

/// The right to set breakpoints: what is found in the exception is looked up here.
pub struct Traps(());

impl Traps {
    /// The only ones.
    pub fn new() -> Result<Self> {
        // SAFETY: Called once in the life of the module, whose provider of processes is one.
        to_result(unsafe { bindings::dtrace_traps_init() })?;
        Ok(Self(()))
    }
}

impl Drop for Traps {
    fn drop(&mut self) {
        // SAFETY: Those who set breakpoints have removed them before they give this up.
        unsafe { bindings::dtrace_traps_exit() };
    }
}

/// A breakpoint in one process. Dropping it removes it, and waits until nobody is in its handler; where its program cannot be waited for as long,
/// it is left behind, and its handler with it, until it can be removed.
///
/// To set one that uprobes carry, and to remove it, takes the lock of each memory that the file is mapped in, and reads the file.
pub struct Carrier<H: Hit> {
    // Made of a box.
    hook: NonNull<UnsafeCell<Hook<H>>>,
    is_set: bool,
    _hook: PhantomData<KBox<UnsafeCell<Hook<H>>>>,
}

/// Where a breakpoint is to be, and what is known of it.
pub struct Spot<'a> {
    /// The process.
    pub process: &'a Process,
    /// Where that has `text`.
    pub address: u64,
    /// The file, and where there.
    pub text: &'a Text,
    /// Where in the file the program has a number of two bytes that tells how many breakpoints count there; 0 for none.
    pub counter: u64,
    /// The instruction, if a breakpoint of our own may be there.
    pub code: Option<&'a [u8]>,
    /// Whether the exception can do it as a rule.
    pub is_done: bool,
    /// Whether it can be executed in a slot.
    pub is_movable: bool,
    /// Whether uprobes may have it.
    pub is_carried: bool,
    /// Whether they never have one there.
    pub is_barred: bool,
    /// Whether it is a user's.
    pub is_users: bool,
    /// Whether they are to have it only where somebody else has one there: to give it to them can keep everybody from forking.
    pub is_kept: bool,
}

// SAFETY: Set and removed from anywhere; the handler is `Sync`.
unsafe impl<H: Hit> Send for Carrier<H> {}
// SAFETY: As above; nothing can be done by reference.
unsafe impl<H: Hit> Sync for Carrier<H> {}

#[repr(C)]
struct Hook<H> {
    // First, so that a pointer to it is a pointer to the whole.
    raw: bindings::dtrace_carrier,
    handler: H,
    _uncharged: Option<Uncharged>,
}

/// So many bytes that are charged to nobody, until it is dropped.
struct Uncharged(usize);

impl Uncharged {
    fn new(bytes: usize) -> Option<Self> {
        // SAFETY: No preconditions.
        let may_be = unsafe { bindings::dtrace_uncharged_add(bytes) };
        may_be.then(|| Self(bytes))
    }
}

impl Drop for Uncharged {
    fn drop(&mut self) {
        // SAFETY: So many were added.
        unsafe { bindings::dtrace_uncharged_sub(self.0) };
    }
}

/// Memory for what is kept of a breakpoint. That of users is charged to their groups of processes, if that can be done without waiting: locks are held
/// that everybody needs. Of what is not charged there is a limit.
fn room<T>(is_users: bool) -> Result<(KBox<MaybeUninit<T>>, Option<Uncharged>)> {
    if !is_users {
        return Ok((KBox::new_uninit(GFP_KERNEL)?, None));
    }
    let account = GFP_KERNEL_ACCOUNT & !GFP_KERNEL;
    if let Ok(room) = KBox::new_uninit(GFP_NOWAIT | account | __GFP_NOWARN) {
        return Ok((room, None));
    }
    let uncharged = Uncharged::new(size_of::<T>()).ok_or(ENOMEM)?;
    Ok((KBox::new_uninit(GFP_KERNEL)?, Some(uncharged)))
}

impl<H: Hit> Carrier<H> {
    /// One that is not set. Process and text outlive it.
    pub fn new(_traps: &Traps, spot: &Spot<'_>, handler: H) -> Result<Self> {
        let mut raw = bindings::dtrace_carrier {
            spot: bindings::dtrace_spot {
                mm: spot.process.as_ptr(),
                address: spot.address,
            },
            file: spot.text.file(),
            offset: spot.text.offset(),
            counter: spot.counter,
            hit: Some(on_hit::<H>),
            trap: Some(on_trap::<H>),
            meet: Some(on_meet::<H>),
            move_: Some(on_move::<H>),
            lose: Some(on_lose::<H>),
            free: Some(on_free::<H>),
            error: ENOMEM.to_errno(),
            uncarried: !spot.is_carried || !spot.text.has_file(),
            barred: spot.is_barred || !spot.text.has_file(),
            kept: spot.is_kept,
            does: spot.is_done,
            moves: spot.is_movable,
            ..Default::default()
        };
        if let Some(code) = spot.code {
            for (to, from) in raw.code.iter_mut().zip(code) {
                *to = *from;
            }
            raw.length = code.len() as u8;
        }
        let (room, uncharged) = room(spot.is_users)?;
        let hook = Hook {
            raw,
            handler,
            _uncharged: uncharged,
        };
        let hook = KBox::write(room, UnsafeCell::new(hook));
        Ok(Self {
            hook: NonNull::from(KBox::leak(hook)),
            is_set: false,
            _hook: PhantomData,
        })
    }

    /// Sets those of one process that are not set yet, which are given in the order of their addresses. [`Carrier::error`] tells of each that
    /// could not be. `ENOMEM`: none is.
    pub fn set(all: &mut [&mut Self]) -> Result {
        let mut raw = KVVec::with_capacity(all.len(), GFP_KERNEL)?;
        for one in all.iter().filter(|one| !one.is_set) {
            raw.push(one.raw(), GFP_KERNEL)?;
        }
        if raw.is_empty() {
            return Ok(());
        }
        // SAFETY: The hooks stay where they are until the breakpoints are removed; the files are open.
        unsafe { bindings::dtrace_carriers_set(raw.as_mut_ptr(), raw.len()) };
        for one in all.iter_mut().filter(|one| !one.is_set) {
            // SAFETY: It has just been tried.
            one.is_set = unsafe { (*one.raw()).error } == 0;
        }
        Ok(())
    }

    /// Whether it is set.
    pub fn is_set(&self) -> bool {
        self.is_set
    }

    /// Whether it had to be taken away since it was set ([`Hit::lose`]). It does not come back.
    pub fn is_lost(&self) -> bool {
        // SAFETY: It is a carrier; what this looks at may change meanwhile.
        self.is_set && unsafe { bindings::dtrace_carrier_is_lost(self.raw()) }
    }

    /// Why it could not be, or was not tried: `ENOMEM`.
    pub fn error(&self) -> Error {
        // SAFETY: It is changed only while it is being set.
        Error::from_errno(unsafe { (*self.raw()).error })
    }

    /// Removes many, which is as fast as one.
    pub fn remove(mut all: KVVec<Self>) {
        let mut raw = KVVec::new();
        for one in all.iter_mut().filter(|one| one.is_set) {
            if raw.push(one.raw(), GFP_KERNEL).is_ok() {
                one.is_set = false;
            }
        }
        clear(&raw);
        // Those that found no room go one by one.
    }

    fn raw(&self) -> *mut bindings::dtrace_carrier {
        // `UnsafeCell` and `Hook` begin with what they hold.
        self.hook.as_ptr().cast()
    }
}

/// Removes breakpoints that are set, and waits until nobody is in their handlers; or marks them as left behind.
fn clear(raw: &[*mut bindings::dtrace_carrier]) {
    if raw.is_empty() {
        return;
    }
    // SAFETY: They are set, and their hooks are where they were.
    unsafe {
        let uprobes = bindings::dtrace_carriers_clear(raw.as_ptr().cast_mut(), raw.len());
        bindings::dtrace_carriers_sync(uprobes);
    }
}

impl<H: Hit> Drop for Carrier<H> {
    fn drop(&mut self) {
        if self.is_set {
            clear(&[self.raw()]);
        }
        // SAFETY: The box is as it was made; nobody else has it until it is left behind.
        unsafe {
            if (*self.raw()).stays {
                // The handler is never changed.
                (*self.hook.as_ptr().cast::<Hook<H>>()).handler.leave();
                bindings::dtrace_carrier_leave(self.raw());
            } else {
                bindings::dtrace_carrier_settle(self.raw());
                drop(KBox::from_raw(self.hook.as_ptr()));
            }
        }
    }
}

/// The handler of a breakpoint, and the registers of who has hit it.
///
/// # Safety
///
/// `carrier` is that of a `Hook<H>`; `regs` are those that the current task entered the kernel with, for `'a`.
unsafe fn parts<'a, H: Hit>(
    carrier: *mut bindings::dtrace_carrier,
    regs: *mut bindings::pt_regs,
) -> Option<(&'a H, Stopped<'a>)> {
    let regs = NonNull::new(regs)?;
    // SAFETY: By the caller's promise. The handler is never changed while the breakpoint is set.
    let handler = unsafe { &(*carrier.cast::<Hook<H>>()).handler };
    let stopped = Stopped {
        regs,
        _stopped: PhantomData,
    };
    Some((handler, stopped))
}

/// # Safety
///
/// Called by `traps.c` with what [`parts`] asks for.
unsafe extern "C" fn on_trap<H: Hit>(
    carrier: *mut bindings::dtrace_carrier,
    regs: *mut bindings::pt_regs,
    rest: u64,
) -> bool {
    // SAFETY: By the caller's promise.
    let parts = unsafe { parts::<H>(carrier, regs) };
    parts.is_some_and(|(handler, stopped)| handler.trap(stopped, Rest(rest)))
}

/// # Safety
///
/// Called by `traps.c` with what [`parts`] asks for.
unsafe extern "C" fn on_meet<H: Hit>(
    carrier: *mut bindings::dtrace_carrier,
    regs: *mut bindings::pt_regs,
) -> bool {
    // SAFETY: By the caller's promise.
    let parts = unsafe { parts::<H>(carrier, regs) };
    parts.is_some_and(|(handler, stopped)| handler.meet(stopped))
}

/// # Safety
///
/// Called by `slots.c` with the carrier of a `Hook<H>`, and room for [`SLOT`] bytes.
unsafe extern "C" fn on_move<H: Hit>(
    carrier: *mut bindings::dtrace_carrier,
    slot: u64,
    bytes: *mut u8,
) -> bool {
    // SAFETY: By the caller's promise. The handler is never changed.
    let handler = unsafe { &(*carrier.cast::<Hook<H>>()).handler };
    let moved = handler.moved(slot);
    if let Some(moved) = moved {
        // SAFETY: By the caller's promise.
        unsafe { bytes.cast::<[u8; SLOT]>().write(moved) };
    }
    moved.is_some()
}

/// # Safety
///
/// Called by `own.c` with the carrier of a `Hook<H>`.
unsafe extern "C" fn on_lose<H: Hit>(carrier: *mut bindings::dtrace_carrier) {
    // SAFETY: By the caller's promise. The handler is never changed while the breakpoint is set.
    unsafe { &(*carrier.cast::<Hook<H>>()).handler }.lose();
}

/// # Safety
///
/// Called by `patience.c` with the carrier of a `Hook<H>` that was left behind, once, when nobody can be in its handlers any more.
unsafe extern "C" fn on_free<H: Hit>(carrier: *mut bindings::dtrace_carrier) {
    // SAFETY: By the caller's promise; it was made of such a box.
    drop(unsafe { KBox::from_raw(carrier.cast::<UnsafeCell<Hook<H>>>()) });
}

/// # Safety
///
/// Called by `processes.c` with what [`parts`] asks for.
unsafe extern "C" fn on_hit<H: Hit>(
    carrier: *mut bindings::dtrace_carrier,
    regs: *mut bindings::pt_regs,
) {
    // SAFETY: By the caller's promise.
    if let Some((handler, stopped)) = unsafe { parts::<H>(carrier, regs) } {
        handler.hit(stopped);
    }
}
