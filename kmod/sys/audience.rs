// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Hooks in the kernel that all listeners share.
//!
//! Unregistering from ftrace waits for all tasks with ftrace's lock held, and a task that loads a
//! module waits for that lock. A task of the least priority (`SCHED_IDLE`) that computes in the
//! kernel can prolong that wait for hours. So what is registered with ftrace stays registered until
//! the module goes, and only its filter changes. Changing the filter stops all processors for a
//! moment, and a member must not be able to cause that at will. So an [`Audience`] has its hooks
//! ([`Source`]) once, for all listeners (INV-37). The listeners are on a list, the [`Crowd`], which
//! the hooks read. A listener that joins or leaves changes that list; leaving waits for one RCU
//! grace period, without the lock.
//!
//! Hooks without listeners must cost nothing, so they rest: at once if the last listener was
//! [trusted](Audience::join), else [some time](LINGER) after it has left. However often other
//! listeners come and go, the hooks come and go at most once in that time.
//!
//! Invariant: the list has listeners only while the hooks are awake. One mutex covers making hooks,
//! taking them away, and changes of the list. No task waits for that mutex for long while there are
//! listeners, because hooks are taken away only when there are none.

use super::common::{Common, Of};
use super::deferred::{Chore, Delayed};
use super::rculist::synchronize;
use core::ptr::{null_mut, NonNull};
use core::sync::atomic::{AtomicPtr, Ordering};
use kernel::alloc::flags::GFP_KERNEL_ACCOUNT;
use kernel::prelude::*;
use kernel::sync::{rcu, Arc};

/// How long hooks stay awake without listeners, ns.
const LINGER: u64 = 10_000_000_000;

/// Hooks, which exist as long as the value lives.
pub trait Source: Sized + Send + Unpin + 'static {
    /// What a hook calls for one listener.
    type Ear: Send + Sync + 'static;

    /// Makes the hooks, awake: they call each member of the crowd. Dropping the value waits until
    /// no CPU is in a hook.
    fn begin(crowd: &Arc<Crowd<Self::Ear>>) -> Result<Self>;

    /// Makes the hooks cost nothing, because there are no listeners. Returns what is left of them;
    /// returns `None` (the default) if taking them away completely cannot take long. A hook may
    /// still be called for a while.
    fn rest(self) -> Option<Self> {
        None
    }

    /// Makes hooks that rest call the crowd again. After an error they still rest.
    fn wake(&mut self, _crowd: &Arc<Crowd<Self::Ear>>) -> Result {
        Ok(())
    }
}

/// The hooks, or what is left of them.
struct Stage<S> {
    source: Option<S>,
    is_awake: bool,
}

impl<S: Source> Stage<S> {
    fn wake(&mut self, crowd: &Arc<Crowd<S::Ear>>) -> Result {
        match &mut self.source {
            _ if self.is_awake => {}
            Some(source) => source.wake(crowd)?,
            None => self.source = Some(S::begin(crowd)?),
        }
        self.is_awake = true;
        Ok(())
    }

    fn rest(&mut self) {
        if core::mem::replace(&mut self.is_awake, false) {
            self.source = self.source.take().and_then(S::rest);
        }
    }
}

/// One listener's node on the list.
struct Seat<E> {
    next: AtomicPtr<Seat<E>>,
    ear: E,
}

/// The list of listeners.
///
/// # Invariants
///
/// Every seat that the list reaches is alive, and stays alive for a grace period after it was
/// removed.
pub struct Crowd<E> {
    first: AtomicPtr<Seat<E>>,
}

impl<E: Send + Sync> Crowd<E> {
    /// Whether there are no listeners.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.first.load(Ordering::Relaxed).is_null()
    }

    /// Calls `tell` for each listener. RCU must be watching this CPU; `tell` must not sleep.
    #[inline]
    pub fn each(&self, mut tell: impl FnMut(&E)) {
        if self.is_empty() {
            return;
        }
        let _reading = rcu::read_lock();
        let mut at = self.first.load(Ordering::Acquire);
        // SAFETY: The read lock is held, and by the invariant a seat that was reached stays alive
        // until a grace period that begins after its removal has ended, which waits for this
        // reader.
        while let Some(seat) = unsafe { at.as_ref() } {
            tell(&seat.ear);
            at = seat.next.load(Ordering::Acquire);
        }
    }

    /// Puts a seat on the list.
    ///
    /// # Safety
    ///
    /// The audience's mutex must be held. The seat must stay alive until a grace period after it
    /// was [removed](Self::remove) has ended.
    unsafe fn add(&self, seat: NonNull<Seat<E>>) {
        let first = self.first.load(Ordering::Relaxed);
        // SAFETY: By the caller's promise the seat is alive.
        unsafe { seat.as_ref() }
            .next
            .store(first, Ordering::Relaxed);
        self.first.store(seat.as_ptr(), Ordering::Release);
    }

    /// Takes a seat off the list. The seat still points to the next one, so a reader that stands on
    /// it can go on.
    ///
    /// # Safety
    ///
    /// The audience's mutex must be held.
    unsafe fn remove(&self, seat: NonNull<Seat<E>>) {
        let mut slot = &self.first;
        // SAFETY: By the invariant seats on the list are alive, and the mutex keeps other tasks
        // from removing any meanwhile.
        while let Some(one) = unsafe { slot.load(Ordering::Relaxed).as_ref() } {
            if core::ptr::eq(one, seat.as_ptr()) {
                slot.store(one.next.load(Ordering::Relaxed), Ordering::Release);
                return;
            }
            slot = &one.next;
        }
    }
}

/// The hooks and their listeners.
struct Hall<S: Source> {
    crowd: Arc<Crowd<S::Ear>>,
    stage: Common<Stage<S>>,
}

/// Makes the hooks rest if there are no listeners.
struct Close<S: Source>(Arc<Hall<S>>);

impl<S: Source> Chore for Close<S> {
    fn run(&self) {
        let mut stage = self.0.stage.lock();
        if self.0.crowd.is_empty() {
            stage.rest();
        }
    }
}

/// All listeners to hooks of one kind. Dropping it takes the hooks away.
pub struct Audience<S: Source> {
    // Dropped before `hall`, so that the delayed work has ended when the hooks go.
    closing: Pin<KBox<Delayed<Close<S>>>>,
    hall: Arc<Hall<S>>,
}

impl<S: Source> Audience<S> {
    /// Returns an audience without listeners and without hooks.
    pub fn new() -> Result<Arc<Self>> {
        let crowd = Crowd {
            first: AtomicPtr::new(null_mut()),
        };
        let crowd = Arc::new(crowd, GFP_KERNEL)?;
        let stage = Stage {
            source: None,
            is_awake: false,
        };
        let stage = Common::new(Of::Audience, stage)?;
        let hall = Arc::new(Hall { crowd, stage }, GFP_KERNEL)?;
        let closing = KBox::pin_init(Delayed::new(Close(hall.clone())), GFP_KERNEL)?;
        Ok(Arc::new(Self { closing, hall }, GFP_KERNEL)?)
    }

    /// Adds a listener: `ear` is called from now on. `trusted`: the listener may have hooks made
    /// and taken away as often as it likes. After an error nothing is left behind. May sleep.
    pub fn join(self: &Arc<Self>, ear: S::Ear, trusted: bool) -> Result<Listener<S>> {
        let seat = Seat {
            next: AtomicPtr::new(null_mut()),
            ear,
        };
        let seat = KBox::new(seat, GFP_KERNEL_ACCOUNT)?;
        let mut stage = self.hall.stage.lock();
        stage.wake(&self.hall.crowd)?;
        let seat = NonNull::from(KBox::leak(seat));
        // SAFETY: The mutex is held. `Listener::drop` frees the seat only after it has removed it
        // and waited for a grace period.
        unsafe { self.hall.crowd.add(seat) };
        drop(stage);
        Ok(Listener {
            audience: self.clone(),
            seat,
            trusted,
        })
    }
}

/// A listener. Dropping it waits until no hook is calling its ear. May sleep.
pub struct Listener<S: Source> {
    audience: Arc<Audience<S>>,
    seat: NonNull<Seat<S::Ear>>,
    trusted: bool,
}

// SAFETY: Only the listener owns the seat, and the ear is `Send` and `Sync`.
unsafe impl<S: Source> Send for Listener<S> {}
// SAFETY: A shared reference gives no access to anything.
unsafe impl<S: Source> Sync for Listener<S> {}

impl<S: Source> Drop for Listener<S> {
    fn drop(&mut self) {
        let hall = &self.audience.hall;
        let mut stage = hall.stage.lock();
        // SAFETY: The mutex is held.
        unsafe { hall.crowd.remove(self.seat) };
        if hall.crowd.is_empty() {
            if self.trusted {
                stage.rest();
            } else {
                self.audience.closing.ask_in(LINGER);
            }
        }
        drop(stage);
        synchronize();
        // SAFETY: `join` leaked this box. The seat is off the list and a grace period has passed,
        // so no reader can reach it.
        drop(unsafe { KBox::from_raw(self.seat.as_ptr()) });
    }
}
