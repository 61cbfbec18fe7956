// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Hooks in the kernel that all who listen share.
//!
//! To unregister with ftrace is to wait for all tasks with ftrace's lock held, and whoever loads a module waits for that lock. A task of the least
//! priority (`SCHED_IDLE`) that computes in the kernel can keep that waiting for hours, so what is registered stays so until the module goes, and
//! only its filter changes. To change it stops all processors for a moment. A user who
//! may only trace his own processes is not to have that done as often as he likes. So an [`Audience`] has its hooks ([`Source`]) once, for
//! all listeners. These are on a list, the [`Crowd`], that is read where the hooks are passed. Who listens or leaves changes the list, and
//! waits for a grace period of RCU at most, without a lock.
//!
//! Hooks that nobody listens to are to cost nothing, so they rest: at once where the last listener is [trusted](Audience::join) with
//! that, else [some time](LINGER) after it. However often others come and go, the hooks come and go once in that time.
//!
//! Invariant: the list has listeners only while there are hooks. Hooks are made and taken away, and the list is changed, under one mutex.
//! Nobody waits for it while there are listeners, for hooks are taken away when there are none.

use super::common::{Common, Of};
use super::deferred::{Chore, Delayed};
use super::rculist::synchronize;
use core::ptr::{null_mut, NonNull};
use core::sync::atomic::{AtomicPtr, Ordering};
use kernel::alloc::flags::GFP_KERNEL_ACCOUNT;
use kernel::prelude::*;
use kernel::sync::{rcu, Arc};

/// How long hooks stay that nobody listens to, ns.
const LINGER: u64 = 10_000_000_000;

/// Hooks, as long as the value lives.
pub trait Source: Sized + Send + Unpin + 'static {
    /// What one listener is told by.
    type Ear: Send + Sync + 'static;

    /// Makes them. They tell each of the crowd. Dropping them waits until they are not passed any more.
    fn begin(crowd: &Arc<Crowd<Self::Ear>>) -> Result<Self>;

    /// Has them cost nothing, as nobody listens: what is left of them, nothing where nobody can keep waiting who takes them away. They may be
    /// passed for a while.
    fn rest(self) -> Option<Self> {
        None
    }

    /// Has them tell again after they have rested. After an error they rest.
    fn wake(&mut self, _crowd: &Arc<Crowd<Self::Ear>>) -> Result {
        Ok(())
    }
}

/// Hooks, or what is left of them.
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

/// One listener's place on the list.
struct Seat<E> {
    next: AtomicPtr<Seat<E>>,
    ear: E,
}

/// Who listens.
///
/// # Invariants
///
/// What the list reaches is alive, and stays so for a grace period after it was taken off.
pub struct Crowd<E> {
    first: AtomicPtr<Seat<E>>,
}

impl<E: Send + Sync> Crowd<E> {
    /// Whether nobody listens.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.first.load(Ordering::Relaxed).is_null()
    }

    /// Tells each, where RCU watches. `tell` may not sleep.
    #[inline]
    pub fn each(&self, mut tell: impl FnMut(&E)) {
        if self.is_empty() {
            return;
        }
        let _reading = rcu::read_lock();
        let mut at = self.first.load(Ordering::Acquire);
        // SAFETY: By the invariant; no grace period ends that begins from now on.
        while let Some(seat) = unsafe { at.as_ref() } {
            tell(&seat.ear);
            at = seat.next.load(Ordering::Acquire);
        }
    }

    /// Puts a seat on the list.
    ///
    /// # Safety
    ///
    /// The audience's mutex is held. The seat is alive until a grace period after it was [taken off](Self::remove).
    unsafe fn add(&self, seat: NonNull<Seat<E>>) {
        let first = self.first.load(Ordering::Relaxed);
        // SAFETY: By the caller's promise.
        unsafe { seat.as_ref() }
            .next
            .store(first, Ordering::Relaxed);
        self.first.store(seat.as_ptr(), Ordering::Release);
    }

    /// Takes a seat off. Whoever reads it still finds the way on.
    ///
    /// # Safety
    ///
    /// The audience's mutex is held.
    unsafe fn remove(&self, seat: NonNull<Seat<E>>) {
        let mut slot = &self.first;
        // SAFETY: By the invariant; under the mutex none is taken off but by us.
        while let Some(one) = unsafe { slot.load(Ordering::Relaxed).as_ref() } {
            if core::ptr::eq(one, seat.as_ptr()) {
                slot.store(one.next.load(Ordering::Relaxed), Ordering::Release);
                return;
            }
            slot = &one.next;
        }
    }
}

/// The hooks, and who listens.
struct Hall<S: Source> {
    crowd: Arc<Crowd<S::Ear>>,
    stage: Common<Stage<S>>,
}

/// Has the hooks rest if nobody listens.
struct Close<S: Source>(Arc<Hall<S>>);

impl<S: Source> Chore for Close<S> {
    fn run(&self) {
        let mut stage = self.0.stage.lock();
        if self.0.crowd.is_empty() {
            stage.rest();
        }
    }
}

/// All who listen to hooks of one kind. Dropping it takes the hooks away.
pub struct Audience<S: Source> {
    // Before the hooks: it is over when they go.
    closing: Pin<KBox<Delayed<Close<S>>>>,
    hall: Arc<Hall<S>>,
}

impl<S: Source> Audience<S> {
    /// Nobody, and no hooks.
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

    /// Has `ear` told from now on. `trusted`: who may have hooks made and taken away as often as he likes. An error leaves nothing behind.
    pub fn join(self: &Arc<Self>, ear: S::Ear, trusted: bool) -> Result<Listener<S>> {
        let seat = Seat {
            next: AtomicPtr::new(null_mut()),
            ear,
        };
        let seat = KBox::new(seat, GFP_KERNEL_ACCOUNT)?;
        let mut stage = self.hall.stage.lock();
        stage.wake(&self.hall.crowd)?;
        let seat = NonNull::from(KBox::leak(seat));
        // SAFETY: The mutex is held; the listener frees the seat as is asked for.
        unsafe { self.hall.crowd.add(seat) };
        drop(stage);
        Ok(Listener {
            audience: self.clone(),
            seat,
            trusted,
        })
    }
}

/// Somebody listens. Dropping it waits until he is not being told.
pub struct Listener<S: Source> {
    audience: Arc<Audience<S>>,
    seat: NonNull<Seat<S::Ear>>,
    trusted: bool,
}

// SAFETY: The seat is the listener's own, and an ear may be sent and shared.
unsafe impl<S: Source> Send for Listener<S> {}
// SAFETY: There is nothing to do with a shared reference.
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
        // SAFETY: `join` has leaked it, and nobody reads it any more.
        drop(unsafe { KBox::from_raw(self.seat.as_ptr()) });
    }
}
