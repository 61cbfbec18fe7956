// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Lists that probe context reads while others change them.
//!
//! A [`Head`] is a list's beginning, at a probe. Its nodes belong to somebody else: each consumer keeps all of its own in
//! one [`Links`], a few large blocks, however many lists they are on; they wait there until it [publishes](Links::publish)
//! them. A change is one store of one pointer, made by whoever holds the [`Writer`]; a reader sees the list before or
//! after it. An unlinked node still leads on, so a reader that stands on it finds its way; it is freed after every reader
//! of that time has gone.
//!
//! Why consumers can go in any order: a node that is unlinked but not freed may still point to one that is unlinked later.
//! A reader that follows it began before the first unlinking, so the grace period of the second one waits for it as well. Nor does
//! an owner have to go to get its memory back: a block of which nothing is on a list goes after a grace period too
//! ([`shed`](Links::shed)).

use super::percpu::NoGracePeriod;
use crate::bindings;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU8, Ordering};
use kernel::alloc::KVVec;
use kernel::prelude::*;

/// The right to change lists. There is one; a mutex guards it.
pub struct Writer(());

impl Writer {
    /// The right.
    ///
    /// # Safety
    ///
    /// Must be called once in the module's life.
    pub const unsafe fn new() -> Self {
        Self(())
    }
}

/// Appends to lists. As long as it is there nobody unlinks, so that what it has appended to the same list before needs no looking
/// for: a list of any length takes no longer.
struct Appender<'w, T: 'static> {
    _writer: &'w mut Writer,
    /// The list that was last appended to, and the node.
    last: Option<(&'static Head<T>, *mut Node<T>)>,
}

impl<T: Sync + Send + 'static> Appender<'_, T> {
    /// Links a node.
    ///
    /// # Safety
    ///
    /// `at` is alive, stays where it is until it has been unlinked, and is on no list.
    unsafe fn append(&mut self, at: *mut Node<T>) {
        // SAFETY: By the caller's promise.
        let node = unsafe { &*at };
        let end = match self.last {
            // SAFETY: What was appended is linked still, and so alive.
            Some((list, last)) if ptr::eq(list, node.head) => unsafe { &(*last).next },
            _ => node.head.end(),
        };
        node.enter(Stage::Linked);
        end.store(at, Ordering::Release);
        self.last = Some((node.head, at));
    }
}

/// A list's beginning.
pub struct Head<T: 'static> {
    first: AtomicPtr<Node<T>>,
}

/// # Invariants
///
/// A node that a list reaches is alive, and so is every node that its `next` leads to, until a grace period after it
/// has been unlinked.
struct Node<T: 'static> {
    next: AtomicPtr<Node<T>>,
    head: &'static Head<T>,
    stage: AtomicU8,
    value: T,
}

/// Where a node is in its life; readers do not ask.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Stage {
    /// It is to be linked when its owner publishes.
    Waiting,
    /// It is on its list.
    Linked,
    /// It is on its list, and its owner is about to take it off.
    Going,
    /// It is on no list any more, or never will be.
    Off,
    /// It is on no list: its owner knows of it by another way, and has it until it is taken off as the others are.
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

// SAFETY: A head gives away only `&T`.
unsafe impl<T: Sync + Send> Sync for Head<T> {}
// SAFETY: As above.
unsafe impl<T: Sync + Send> Send for Head<T> {}

impl<T: Sync + Send> Head<T> {
    /// An empty list.
    pub const fn new() -> Self {
        Self {
            first: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// The values, oldest first.
    #[inline]
    pub fn iter<'a>(&self, _guard: &'a impl NoGracePeriod) -> impl Iterator<Item = &'a T> {
        let mut at = self.first.load(Ordering::Acquire);
        core::iter::from_fn(move || {
            // SAFETY: By the invariant of `Node`; no grace period ends during `'a`.
            let node: &'a Node<T> = unsafe { at.as_ref() }?;
            at = node.next.load(Ordering::Acquire);
            Some(&node.value)
        })
    }

    /// Empties the list, and tells the values that were on it. The nodes stay with their owners.
    pub fn unlink_all(&self, _writer: &mut Writer, mut gone: impl FnMut(&T)) {
        let mut at = self.first.swap(ptr::null_mut(), Ordering::Release);
        // SAFETY: By the invariant of `Node`: nodes are freed by the holder of the writer only.
        while let Some(node) = unsafe { at.as_ref() } {
            node.enter(Stage::Off);
            gone(&node.value);
            at = node.next.load(Ordering::Relaxed);
        }
    }

    /// The pointer that ends the list.
    fn end(&self) -> &AtomicPtr<Node<T>> {
        let mut slot = &self.first;
        // SAFETY: By the invariant of `Node`, and the callers hold the writer.
        while let Some(node) = unsafe { slot.load(Ordering::Relaxed).as_ref() } {
            slot = &node.next;
        }
        slot
    }

    /// Takes the nodes off that are going.
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

/// Nodes that are allocated, and freed, together.
struct Block<T: 'static> {
    nodes: KVVec<Node<T>>,
    /// Begun when none of them was on a list any more.
    grace: Option<GracePeriod>,
}

impl<T> Block<T> {
    fn is_off(&self) -> bool {
        self.nodes.iter().all(|node| node.is(Stage::Off))
    }

    /// Whether nobody can be standing on one of the nodes, and nobody will; if not, that is asked for.
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

/// One owner's nodes. They must be [unlinked](Self::unlink_if) before the links are dropped; what is still
/// linked then is leaked rather than freed under a reader.
pub struct Links<T: Sync + Send + 'static> {
    blocks: KVVec<Block<T>>,
    /// How many of the blocks have been published.
    published: usize,
}

impl<T: Sync + Send + 'static> Links<T> {
    /// No nodes.
    pub const fn new() -> Self {
        Self {
            blocks: KVVec::new(),
            published: 0,
        }
    }

    /// Makes room for `n` more nodes, so that as many [`add`](Self::add) succeed.
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

    /// Makes a node of `value`, which waits to be linked to the list `head`.
    pub fn add(&mut self, head: &'static Head<T>, value: T) -> Result {
        self.make(head, value, Stage::Waiting)
    }

    /// Makes a node of `value`, which will never be linked to `head`.
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

    /// Links the nodes that wait, each at the end of its list, in the order in which they were added; `each` is told them.
    pub fn publish(&mut self, writer: &mut Writer, mut each: impl FnMut(&T)) {
        let mut by = Appender {
            _writer: writer,
            last: None,
        };
        for block in self.blocks.iter_mut().skip(self.published) {
            // Pointers to nodes come from the block's own pointer, not from a reference to one node.
            let nodes = block.nodes.as_mut_ptr();
            for n in 0..block.nodes.len() {
                let at = nodes.wrapping_add(n);
                // SAFETY: The block has that many nodes. They never move, since it is not added to any more, and are dropped when
                // they have been unlinked.
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

    /// The values of the nodes that have not been taken off.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        let nodes = self.blocks.iter().flat_map(|block| &block.nodes);
        let kept = nodes.filter(|node| !node.is(Stage::Going) && !node.is(Stage::Off));
        kept.map(|node| &node.value)
    }

    /// How many nodes are linked.
    pub fn linked(&self) -> usize {
        let nodes = self.blocks.iter().flat_map(|block| &block.nodes);
        nodes.filter(|node| node.is(Stage::Linked)).count()
    }

    /// Takes the nodes for which `which` holds off their lists, each of which is walked once, however many nodes it has. Those that wait
    /// never come to be linked. Nodes that were added [apart](Self::add_apart) are taken off too.
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

    /// Frees the blocks of which no node is on a list or waits to be. A block goes at a later call than the one that finds it
    /// so, when a grace period has passed. Not to be called between [`reserve`](Self::reserve) and what that was for.
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

    /// How many blocks there are.
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

/// Waits until every CPU has left the probe context that it is in.
pub fn synchronize() {
    // SAFETY: Called from process context, without locks that an RCU reader may take.
    unsafe { bindings::synchronize_rcu() };
}

/// Waits until every task has slept or been in user space, and every CPU has left the interrupt or the idle loop that it was in.
pub fn synchronize_tasks() {
    // SAFETY: As above.
    unsafe {
        bindings::synchronize_rcu_tasks_rude();
        bindings::synchronize_rcu_tasks();
    }
}

/// A grace period that has been asked for: when it has ended, every CPU has left the probe context that it was in when it began.
#[derive(Clone, Copy)]
pub struct GracePeriod(usize);

impl GracePeriod {
    /// Asks for one. Does not wait.
    pub fn begin() -> Self {
        // SAFETY: Called from process context, with interrupts on.
        Self(unsafe { bindings::start_poll_synchronize_rcu() })
    }

    /// Whether it has ended. Whoever learns so sees what was done in probe context before that.
    pub fn has_ended(self) -> bool {
        // SAFETY: The number came from the kernel.
        unsafe { bindings::poll_state_synchronize_rcu(self.0) }
    }
}
