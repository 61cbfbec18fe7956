// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Breakpoints in processes.
//!
//! If the exception can do the covered instruction, or a slot can execute it, the breakpoint is our
//! own: its byte is written into the memory of that process alone. Otherwise the kernel's uprobes
//! carry it, if they can: they write it wherever the file is mapped, execute the covered
//! instruction, and take the breakpoint away. One of our own is given to uprobes when it needs more
//! than the exception or a slot can do. The code that sets a breakpoint does not know which kind it
//! is. A breakpoint that is kept from uprobes ([`Spot::is_kept`]) cannot be set, or is lost, where
//! only uprobes could carry it (INV-43).
//!
//! The owner's handler runs first in the exception itself, where much can be done at once and
//! nothing can wait ([`Hit::trap`]). If that has not done everything, uprobes call it on the way
//! back to the program ([`Hit::hit`]).

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

/// What happens when a breakpoint is hit.
pub trait Hit: Send + Sync + 'static {
    /// Called in the exception, in the process, with interrupts off. Returns whether all was done,
    /// including the instruction, or the program is to come to the breakpoint again. Otherwise it
    /// has left the registers as they were, and what `rest` says takes over.
    fn trap(&self, _regs: Stopped<'_>, _rest: Rest) -> bool {
        false
    }

    /// Returns what is executed at `slot` in place of the instruction. `None`: the instruction
    /// cannot be executed there.
    fn moved(&self, _slot: u64) -> Option<[u8; SLOT]> {
        None
    }

    /// Called in the exception, in the process, with interrupts off, if a debugger has a breakpoint
    /// at the same instruction; the debugger will have the program execute the instruction. Returns
    /// whether all was done except for the instruction. `false`: the program is to come to the
    /// breakpoint again.
    fn meet(&self, _regs: Stopped<'_>) -> bool {
        true
    }

    /// Called by uprobes in the process, before the instruction is executed. May sleep.
    fn hit(&self, regs: Stopped<'_>);

    /// The breakpoint had to be taken away, because neither uprobes nor a slot can do what the
    /// exception could not, or because a debugger wrote another instruction there.
    fn lose(&self) {}

    /// The breakpoint could not be taken away in time and is left behind. The handler is dropped
    /// when the breakpoint has gone.
    fn leave(&self) {}
}

/// What takes over if a handler cannot finish in the exception: nothing yet, uprobes, or a slot.
#[derive(Clone, Copy)]
pub struct Rest(u64);

impl Rest {
    /// Whether nothing can take over yet.
    pub fn is_nobody(self) -> bool {
        self.0 == u64::from(bindings::DTRACE_REST_NOBODY)
    }

    /// Returns the slot in which the program itself can execute the instruction, if there is one.
    pub fn slot(self) -> Option<Slot> {
        (self.0 > u64::from(bindings::DTRACE_REST_UPROBES)).then_some(Slot(self.0))
    }
}

/// A slot: an address at which a program can execute an instruction that a breakpoint covers.
#[derive(Clone, Copy)]
pub struct Slot(u64);

impl Slot {
    /// Returns its address.
    pub fn address(self) -> u64 {
        self.0
    }

    /// Whether the current thread was interrupted when it was about to execute the instruction in
    /// this slot, and comes to the breakpoint again with the same registers. Each such interruption
    /// is reported once. Only for [`Hit::trap`].
    pub fn resumes(self, regs: &Regs) -> bool {
        // SAFETY: The registers are valid for reads, because they are borrowed.
        unsafe { bindings::dtrace_slot_resumes(self.0, regs.as_ptr()) }
    }
}

/// Whether the kernel sends the current thread back to the beginning of a restartable sequence
/// (`rseq(2)`) if it is interrupted at an address. It would not do so if the instruction were
/// executed at another address.
pub enum Restarts {
    /// It does.
    Yes,
    /// It does not.
    No,
    /// Unknown: this memory, which has the answer, is not present.
    Missing(Span),
}

impl Restarts {
    /// Looks up `address`. Only in the exception of a breakpoint: user memory is read without
    /// checks of the address space. Does not sleep.
    pub fn at(address: u64) -> Self {
        let mut addr = 0;
        // SAFETY: `addr` is valid for the write; the loads do not fault.
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
    /// Returns the registers as the instruction finds them.
    pub fn regs(&self) -> &Regs {
        // SAFETY: They lie on the kernel stack of the current task for the lifetime of `self`, and
        // are changed only through `&mut self`.
        unsafe { Regs::from_ptr(self.regs.as_ptr()) }
    }

    /// Returns the registers with which the program goes on.
    pub fn regs_mut(&mut self) -> &mut Regs {
        // SAFETY: As in `regs`; the borrow is exclusive, and `Regs` has the layout of `pt_regs`.
        unsafe { &mut *self.regs.as_ptr().cast::<Regs>() }
    }
}

/// The right to set breakpoints. It stands for the table in which the exception looks them up.
pub struct Traps(());

impl Traps {
    /// Sets up the table. Must be called at most once in the life of the module. May sleep.
    pub fn new() -> Result<Self> {
        // SAFETY: The helper must be called once in the life of the module, before any breakpoint
        // is set. The only caller is the provider for processes, which exists once.
        to_result(unsafe { bindings::dtrace_traps_init() })?;
        Ok(Self(()))
    }
}

impl Drop for Traps {
    fn drop(&mut self) {
        // SAFETY: `Carrier::new` needs a reference to this value, and its owner has dropped all
        // carriers before it drops this. Those left behind are waited for by the helper itself. May
        // sleep.
        unsafe { bindings::dtrace_traps_exit() };
    }
}

/// A breakpoint in one process. Dropping it removes it and waits until no CPU is in its handler. If
/// its program cannot be waited for that long, breakpoint and handler are left behind until the
/// breakpoint can be removed (INV-46). The caller must hold the framework's mutex when a carrier is
/// set or dropped.
///
/// Setting and removing a breakpoint that uprobes carry takes the lock of each memory that has
/// mapped the file; setting it also reads the file.
pub struct Carrier<H: Hit> {
    // From a leaked box.
    hook: NonNull<UnsafeCell<Hook<H>>>,
    is_set: bool,
    _hook: PhantomData<KBox<UnsafeCell<Hook<H>>>>,
}

/// The place where a breakpoint is to be, and what is known about it.
pub struct Spot<'a> {
    /// The process.
    pub process: &'a Process,
    /// The address of the instruction in that process.
    pub address: u64,
    /// The file and the offset of the instruction in it.
    pub text: &'a Text,
    /// The offset in the file of the program's two-byte counter of the breakpoints that listen
    /// here; 0 if there is none.
    pub counter: u64,
    /// The instruction, if the breakpoint may be our own. At most
    /// [`CODE_MAX`](super::process::CODE_MAX) bytes.
    pub code: Option<&'a [u8]>,
    /// Whether the exception can usually do the instruction.
    pub is_done: bool,
    /// Whether the instruction can be executed in a slot.
    pub is_movable: bool,
    /// Whether uprobes may have the breakpoint.
    pub is_carried: bool,
    /// Whether uprobes can never have a breakpoint at this place.
    pub is_barred: bool,
    /// Whether the breakpoint is a member's.
    pub is_users: bool,
    /// Whether uprobes may have it only if another tracer has a uprobe at the place: giving it to
    /// uprobes can keep every process from forking.
    pub is_kept: bool,
}

// SAFETY: The functions that set and remove a carrier may be called by any task, and the handler is
// `Send`.
unsafe impl<H: Hit> Send for Carrier<H> {}
// SAFETY: By shared reference only `is_set`, `is_lost` and `error` can be called, which read; the
// handler is `Sync`.
unsafe impl<H: Hit> Sync for Carrier<H> {}

#[repr(C)]
struct Hook<H> {
    // Must be first: a pointer to it is a pointer to the whole.
    raw: bindings::dtrace_carrier,
    handler: H,
    _uncharged: Option<Uncharged>,
}

/// So many bytes of a member's that are charged to no control group, until this is dropped.
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
        // SAFETY: `new` has added as many.
        unsafe { bindings::dtrace_uncharged_sub(self.0) };
    }
}

/// Allocates memory for what is kept of a breakpoint. For members it is charged to their control
/// groups if that needs no waiting, because the caller holds locks that all consumers need. There
/// is a limit for what is not charged (INV-46). Fails with `ENOMEM`.
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
    /// Makes a breakpoint that is not set yet. The caller must keep the process until the
    /// breakpoint has been removed, and `handler` must own the text's file, or the caller must keep
    /// it as long: the pointers are stored without a lifetime.
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

    /// Sets those of `all` that are not set yet. All must be of one process, in the order of their
    /// addresses. [`Carrier::error`] says why one could not be set. Fails with `ENOMEM`, in which
    /// case none was tried. May sleep; the caller must hold the framework's mutex.
    pub fn set(all: &mut [&mut Self]) -> Result {
        let mut raw = KVVec::with_capacity(all.len(), GFP_KERNEL)?;
        for one in all.iter().filter(|one| !one.is_set) {
            raw.push(one.raw(), GFP_KERNEL)?;
        }
        if raw.is_empty() {
            return Ok(());
        }
        // SAFETY: The hooks are boxed and stay in place until the breakpoints are removed. The
        // files are open, as the caller of `new` has promised.
        unsafe { bindings::dtrace_carriers_set(raw.as_mut_ptr(), raw.len()) };
        for one in all.iter_mut().filter(|one| !one.is_set) {
            // SAFETY: The hook is alive, and `dtrace_carriers_set()` has just returned, so nothing
            // writes `error`.
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
        // SAFETY: The pointer is to a live carrier; the helper reads its state once, which may
        // change at the same time.
        self.is_set && unsafe { bindings::dtrace_carrier_is_lost(self.raw()) }
    }

    /// Returns why it could not be set; `ENOMEM` if it has not been tried.
    pub fn error(&self) -> Error {
        // SAFETY: The hook is alive. `error` is written only by `dtrace_carriers_set()`, which
        // needs `&mut self`.
        Error::from_errno(unsafe { (*self.raw()).error })
    }

    /// Removes many breakpoints, with one wait for all. May sleep.
    pub fn remove(mut all: KVVec<Self>) {
        let mut raw = KVVec::new();
        for one in all.iter_mut().filter(|one| one.is_set) {
            if raw.push(one.raw(), GFP_KERNEL).is_ok() {
                one.is_set = false;
            }
        }
        clear(&raw);
        // Those that `raw` had no memory for are removed one by one when `all` is dropped.
    }

    fn raw(&self) -> *mut bindings::dtrace_carrier {
        // `UnsafeCell<Hook>` is transparent, and `raw` is the first field of `Hook`.
        self.hook.as_ptr().cast()
    }
}

/// Removes breakpoints that are set and waits until no CPU is in their handlers, or marks them as
/// left behind (`stays`). May sleep.
fn clear(raw: &[*mut bindings::dtrace_carrier]) {
    if raw.is_empty() {
        return;
    }
    // SAFETY: The carriers are set, and their hooks have not moved. The helpers only read the
    // array.
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
        // SAFETY: The hook was leaked by `new`, and C uses it only while the breakpoint is set. If
        // it `stays`, it now belongs to C, which frees it by `on_free`. Otherwise no CPU is in its
        // handler, so the box can be taken back.
        unsafe {
            if (*self.raw()).stays {
                // Not through the `UnsafeCell`: the handler is never written, and C uses the rest
                // of the hook.
                (*self.hook.as_ptr().cast::<Hook<H>>()).handler.leave();
                bindings::dtrace_carrier_leave(self.raw());
            } else {
                bindings::dtrace_carrier_settle(self.raw());
                drop(KBox::from_raw(self.hook.as_ptr()));
            }
        }
    }
}

/// Returns the handler of a breakpoint and the registers of the thread that has hit it.
///
/// # Safety
///
/// `carrier` must be that of a `Hook<H>` that stays for `'a`. `regs` must be null or those with
/// which the current task entered the kernel, valid and used by nothing else for `'a`.
unsafe fn parts<'a, H: Hit>(
    carrier: *mut bindings::dtrace_carrier,
    regs: *mut bindings::pt_regs,
) -> Option<(&'a H, Stopped<'a>)> {
    let regs = NonNull::new(regs)?;
    // SAFETY: By the caller's promise. The handler is never written while the breakpoint is set, so
    // a shared reference to it alone is sound.
    let handler = unsafe { &(*carrier.cast::<Hook<H>>()).handler };
    let stopped = Stopped {
        regs,
        _stopped: PhantomData,
    };
    Some((handler, stopped))
}

/// # Safety
///
/// Called by `traps.c`, with interrupts off, with what [`parts`] requires.
unsafe extern "C" fn on_trap<H: Hit>(
    carrier: *mut bindings::dtrace_carrier,
    regs: *mut bindings::pt_regs,
    rest: u64,
) -> bool {
    // SAFETY: The caller fulfils what `parts` requires.
    let parts = unsafe { parts::<H>(carrier, regs) };
    parts.is_some_and(|(handler, stopped)| handler.trap(stopped, Rest(rest)))
}

/// # Safety
///
/// Called by `traps.c`, with interrupts off, with what [`parts`] requires.
unsafe extern "C" fn on_meet<H: Hit>(
    carrier: *mut bindings::dtrace_carrier,
    regs: *mut bindings::pt_regs,
) -> bool {
    // SAFETY: The caller fulfils what `parts` requires.
    let parts = unsafe { parts::<H>(carrier, regs) };
    parts.is_some_and(|(handler, stopped)| handler.meet(stopped))
}

/// # Safety
///
/// Called by `slots.c` with the carrier of a live `Hook<H>` and room for [`SLOT`] bytes at `bytes`.
unsafe extern "C" fn on_move<H: Hit>(
    carrier: *mut bindings::dtrace_carrier,
    slot: u64,
    bytes: *mut u8,
) -> bool {
    // SAFETY: By the caller's promise. The handler is never written, so a shared reference to it is
    // sound.
    let handler = unsafe { &(*carrier.cast::<Hook<H>>()).handler };
    let moved = handler.moved(slot);
    if let Some(moved) = moved {
        // SAFETY: By the caller's promise `bytes` is valid for a write of `SLOT` bytes; an array of
        // bytes needs no alignment.
        unsafe { bytes.cast::<[u8; SLOT]>().write(moved) };
    }
    moved.is_some()
}

/// # Safety
///
/// Called by `lift.c` with the carrier of a live `Hook<H>`.
unsafe extern "C" fn on_lose<H: Hit>(carrier: *mut bindings::dtrace_carrier) {
    // SAFETY: By the caller's promise. The handler is never written while the breakpoint is set.
    unsafe { &(*carrier.cast::<Hook<H>>()).handler }.lose();
}

/// # Safety
///
/// Called by `patience.c`, once, with the carrier of a `Hook<H>` that was left behind, when no CPU
/// can be in its handlers any more.
unsafe extern "C" fn on_free<H: Hit>(carrier: *mut bindings::dtrace_carrier) {
    // SAFETY: The hook came from such a box in `Carrier::new`, `Carrier::drop` has left it to C,
    // and by the caller's promise nothing uses it any more.
    drop(unsafe { KBox::from_raw(carrier.cast::<UnsafeCell<Hook<H>>>()) });
}

/// # Safety
///
/// Called by `processes.c` with what [`parts`] requires. May sleep.
unsafe extern "C" fn on_hit<H: Hit>(
    carrier: *mut bindings::dtrace_carrier,
    regs: *mut bindings::pt_regs,
) {
    // SAFETY: The caller fulfils what `parts` requires.
    if let Some((handler, stopped)) = unsafe { parts::<H>(carrier, regs) } {
        handler.hit(stopped);
    }
}
