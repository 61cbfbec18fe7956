// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Lists that probe context reads while others change them (INV-20).
//!
//! A [`Head`] is the beginning of a list, at a probe. Its nodes belong to others: each consumer
//! keeps all of its nodes in one [`Links`], in a few large blocks, however many lists they are on.
//! New nodes wait there until the consumer [publishes](Links::publish) them. A change is one store
//! of one pointer, made by the holder of the [`Writer`]; a reader sees the list before or after it.
//! An unlinked node still points to the next one, so a reader that stands on it can go on; it is
//! freed after every reader of that time has left.
//!
//! Why consumers can go in any order: a node that is unlinked but not freed may still point to a
//! node that is unlinked later. A reader that follows that pointer began before the first
//! unlinking, so the grace period of the second one waits for it as well. An owner does not have to
//! go to get memory back either: a block with no node on a list is also freed after a grace period
//! ([`shed`](Links::shed)).

use super::percpu::NoGracePeriod;
use crate::bindings;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU8, Ordering};
use kernel::alloc::KVVec;
use kernel::prelude::*;

/// The right to change lists. There is one, and a mutex guards it.
pub struct Writer(());

impl Writer {
    /// Returns the right.
    ///
    /// # Safety
    ///
    /// While the value lives, there must be no other one for the same lists.
    pub const unsafe fn new() -> Self {
        Self(())
    }
}

/// Appends to lists. While it exists no node is unlinked, because it borrows the writer. So the end
/// of the list that was appended to last is known, and a list of any length takes no longer.
struct Appender<'w, T: 'static> {
    _writer: &'w mut Writer,
    /// The list that was appended to last, and the node.
    last: Option<(&'static Head<T>, *mut Node<T>)>,
}

impl<T: Sync + Send + 'static> Appender<'_, T> {
    /// Links a node.
    ///
    /// # Safety
    ///
    /// The node at `at` must be alive, stay where it is until a grace period after it was unlinked,
    /// and be on no list.
    unsafe fn append(&mut self, at: *mut Node<T>) {
        // SAFETY: By the caller's promise.
        let node = unsafe { &*at };
        let end = match self.last {
            // SAFETY: That node was appended and is still linked, so it is alive.
            Some((list, last)) if ptr::eq(list, node.head) => unsafe { &(*last).next },
            _ => node.head.end(),
        };
        node.enter(Stage::Linked);
        end.store(at, Ordering::Release);
        self.last = Some((node.head, at));
    }
}

/// The beginning of a list.
pub struct Head<T: 'static> {
    first: AtomicPtr<Node<T>>,
}

/// # Invariants
///
/// A node that a list reaches is alive, and so is every node that its `next` leads to, until a
/// grace period after it has been unlinked.
struct Node<T: 'static> {
    next: AtomicPtr<Node<T>>,
    head: &'static Head<T>,
    stage: AtomicU8,
    value: T,
}

/// The stages in the life of a node. Readers do not look at them.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Stage {
    /// It is to be linked when its owner publishes.
    Waiting,
    /// It is on its list.
    Linked,
    /// It is on its list, and about to be unlinked.
    Going,
    /// It is on no list any more, or will never be.
    Off,
    /// It is on no list, because its owner finds it in another way. It stays until it is taken off
    /// like the others.
    Apart,
}

impl<T> Node<T> {
    fn is(&self, stage: Stage) -> bool {
        self.stage.load(Ordering::Relaxed) == stage as u8
    }

    fn enter(&self, stage: Stage) {
        self.stage.store(stage as u8, Ordering::Relaxed);
    }
}

// SAFETY: A head gives out only `&T`, and `T` is `Sync`; its pointer is atomic.
unsafe impl<T: Sync + Send> Sync for Head<T> {}
// SAFETY: As above.
unsafe impl<T: Sync + Send> Send for Head<T> {}

impl<T: Sync + Send> Head<T> {
    /// Returns an empty list.
    pub const fn new() -> Self {
        Self {
            first: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// Returns the values, oldest first.
    #[inline]
    pub fn iter<'a>(&self, _guard: &'a impl NoGracePeriod) -> impl Iterator<Item = &'a T> {
        let mut at = self.first.load(Ordering::Acquire);
        core::iter::from_fn(move || {
            // SAFETY: By the invariant of `Node`, and because the guard proves that no grace period
            // ends during `'a` that begins meanwhile. The acquire loads pair with the release
            // stores that link nodes.
            let node: &'a Node<T> = unsafe { at.as_ref() }?;
            at = node.next.load(Ordering::Acquire);
            Some(&node.value)
        })
    }

    /// Empties the list, and calls `gone` for the values that were on it. The nodes stay with their
    /// owners.
    pub fn unlink_all(&self, _writer: &mut Writer, mut gone: impl FnMut(&T)) {
        let mut at = self.first.swap(ptr::null_mut(), Ordering::Release);
        // SAFETY: By the invariant of `Node`: only the holder of the writer frees nodes, which is
        // the caller.
        while let Some(node) = unsafe { at.as_ref() } {
            node.enter(Stage::Off);
            gone(&node.value);
            at = node.next.load(Ordering::Relaxed);
        }
    }

    /// Returns the pointer that ends the list. The caller must hold the writer.
    fn end(&self) -> &AtomicPtr<Node<T>> {
        let mut slot = &self.first;
        // SAFETY: By the invariant of `Node`; no node is freed meanwhile, because the caller holds
        // the writer.
        while let Some(node) = unsafe { slot.load(Ordering::Relaxed).as_ref() } {
            slot = &node.next;
        }
        slot
    }

    /// Unlinks the nodes in the stage [`Stage::Going`]. The caller must hold the writer.
    fn let_go(&self) {
        let mut slot = &self.first;
        // SAFETY: As in `end`.
        while let Some(node) = unsafe { slot.load(Ordering::Relaxed).as_ref() } {
            if node.is(Stage::Going) {
                node.enter(Stage::Off);
                slot.store(node.next.load(Ordering::Relaxed), Ordering::Release);
            } else {
                slot = &node.next;
            }
        }
    }
}

/// Nodes that are allocated and freed together.
struct Block<T: 'static> {
    nodes: KVVec<Node<T>>,
    /// The grace period that began when none of them was on a list any more.
    grace: Option<GracePeriod>,
}

impl<T> Block<T> {
    fn is_off(&self) -> bool {
        self.nodes.iter().all(|node| node.is(Stage::Off))
    }

    /// Whether no reader can be on one of the nodes, now or later. If that is not known yet, begins
    /// a grace period once all nodes are off.
    fn is_done(&mut self) -> bool {
        match self.grace {
            Some(grace) => grace.has_ended() && self.is_off(),
            None => {
                self.grace = self.is_off().then(GracePeriod::begin);
                false
            }
        }
    }
}

/// The nodes of one owner. They must be [unlinked](Self::unlink_if) before the value is dropped; if
/// some are still linked then, their memory is leaked, because readers may use it.
pub struct Links<T: Sync + Send + 'static> {
    blocks: KVVec<Block<T>>,
    /// The number of blocks that have been published.
    published: usize,
}

impl<T: Sync + Send + 'static> Links<T> {
    /// Returns no nodes.
    pub const fn new() -> Self {
        Self {
            blocks: KVVec::new(),
            published: 0,
        }
    }

    /// Makes room for `n` more nodes, so that as many [`add`](Self::add) succeed. May sleep.
    pub fn reserve(&mut self, n: usize) -> Result {
        if n == 0 {
            return Ok(());
        }
        let block = Block {
            nodes: KVVec::with_capacity(n, GFP_KERNEL)?,
            grace: None,
        };
        self.blocks.push(block, GFP_KERNEL)?;
        Ok(())
    }

    /// Makes a node of `value`, to be linked to the list `head`. Fails with `ENOSPC` if there is no
    /// reserved room.
    pub fn add(&mut self, head: &'static Head<T>, value: T) -> Result {
        self.make(head, value, Stage::Waiting)
    }

    /// Makes a node of `value` that will never be linked to `head`. Errors as [`add`](Self::add).
    pub fn add_apart(&mut self, head: &'static Head<T>, value: T) -> Result {
        self.make(head, value, Stage::Apart)
    }

    fn make(&mut self, head: &'static Head<T>, value: T, stage: Stage) -> Result {
        let unseen = self.blocks.get_mut(self.published..).unwrap_or_default();
        let node = Node {
            next: AtomicPtr::new(ptr::null_mut()),
            head,
            stage: AtomicU8::new(stage as u8),
            value,
        };
        let block = unseen.last_mut().ok_or(ENOSPC)?;
        block.nodes.push_within_capacity(node).map_err(|_| ENOSPC)
    }

    /// Links the waiting nodes, each at the end of its list, in the order in which they were added,
    /// and calls `each` for them.
    pub fn publish(&mut self, writer: &mut Writer, mut each: impl FnMut(&T)) {
        let mut by = Appender {
            _writer: writer,
            last: None,
        };
        for block in self.blocks.iter_mut().skip(self.published) {
            // Pointers to nodes are derived from the block's own pointer, not from a reference to
            // one node.
            let nodes = block.nodes.as_mut_ptr();
            for n in 0..block.nodes.len() {
                let at = nodes.wrapping_add(n);
                // SAFETY: The block has that many nodes, so `at` is valid. They stay in place,
                // because nothing is added to the block after this, and they are dropped only after
                // they have been unlinked and a grace period has passed.
                unsafe {
                    if (*at).is(Stage::Waiting) {
                        by.append(at);
                        each(&(*at).value);
                    }
                }
            }
        }
        self.published = self.blocks.len();
    }

    /// Returns the values of the nodes that have not been taken off.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        let nodes = self.blocks.iter().flat_map(|block| &block.nodes);
        let kept = nodes.filter(|node| !node.is(Stage::Going) && !node.is(Stage::Off));
        kept.map(|node| &node.value)
    }

    /// Returns the number of linked nodes.
    pub fn linked(&self) -> usize {
        let nodes = self.blocks.iter().flat_map(|block| &block.nodes);
        nodes.filter(|node| node.is(Stage::Linked)).count()
    }

    /// Takes the nodes for which `which` returns `true` off their lists. Waiting nodes are then
    /// never linked. Nodes that were added [apart](Self::add_apart) are taken off too. Each list is
    /// walked once, however many of the nodes it has.
    pub fn unlink_if(&mut self, _writer: &mut Writer, mut which: impl FnMut(&T) -> bool) {
        for node in self.blocks.iter().flat_map(|block| &block.nodes) {
            if (node.is(Stage::Waiting) || node.is(Stage::Apart)) && which(&node.value) {
                node.enter(Stage::Off);
            } else if node.is(Stage::Linked) && which(&node.value) {
                node.enter(Stage::Going);
            }
        }
        for node in self.blocks.iter().flat_map(|block| &block.nodes) {
            if node.is(Stage::Going) {
                node.head.let_go();
            }
        }
    }

    /// Frees the blocks of which no node is on a list or waits to be. A block is freed by a later
    /// call than the one that finds it so, when a grace period has passed. Must not be called
    /// between [`reserve`](Self::reserve) and the `add` calls that it was for.
    pub fn shed(&mut self, _writer: &mut Writer) {
        let (mut published, mut at) = (self.published, 0usize);
        self.blocks.retain(|block| {
            let (done, was_published) = (block.is_done(), at < self.published);
            at = at.wrapping_add(1);
            if done && was_published {
                published = published.wrapping_sub(1);
            }
            !done
        });
        self.published = published;
    }

    /// Returns the number of blocks.
    #[cfg(test)]
    pub fn blocks(&self) -> usize {
        self.blocks.len()
    }
}

impl<T: Sync + Send + 'static> Drop for Links<T> {
    fn drop(&mut self) {
        if self.linked() > 0 {
            pr_err!("enabled probes dropped while linked\n");
            core::mem::forget(core::mem::take(&mut self.blocks));
        } else if self.published > 0 {
            synchronize();
        }
    }
}

/// Waits until every CPU has left the RCU read-side critical sections that it is in, probe context
/// included. May sleep.
pub fn synchronize() {
    // SAFETY: Must be called in process context, without locks that an RCU reader may take; all
    // callers keep to that.
    unsafe { bindings::synchronize_rcu() };
}

/// Waits until every task has slept or been in user space, and every CPU has left the interrupt or
/// the idle loop that it was in. May sleep, for long.
pub fn synchronize_tasks() {
    // SAFETY: As in `synchronize`.
    unsafe {
        bindings::synchronize_rcu_tasks_rude();
        bindings::synchronize_rcu_tasks();
    }
}

/// A grace period. When it has ended, every CPU has left the probe context that it was in when the
/// grace period began.
#[derive(Clone, Copy)]
pub struct GracePeriod(usize);

impl GracePeriod {
    /// Begins one. Does not wait.
    pub fn begin() -> Self {
        // SAFETY: Must be called with interrupts on, because it may wake RCU's threads; all callers
        // are in process context.
        Self(unsafe { bindings::start_poll_synchronize_rcu() })
    }

    /// Whether it has ended. If it has, the caller sees what was done in probe context before that.
    pub fn has_ended(self) -> bool {
        // SAFETY: The number came from `start_poll_synchronize_rcu()`.
        unsafe { bindings::poll_state_synchronize_rcu(self.0) }
    }
}
