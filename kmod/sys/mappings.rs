// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Files that processes map for execution: programs, and libraries when the dynamic linker loads
//! them.
//!
//! The kernel calls `uprobe_mmap()` for every mapping of a file, and that function is traced here.
//! The task that maps the file calls it, before it can execute what it has mapped.

use super::audience::{Crowd, Source};
use super::places::{At, Call, Passed, Places};
use super::process::Text;
use crate::bindings;
use kernel::prelude::*;
use kernel::sync::Arc;

/// Identifies a file with its present contents: after a write it is another one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileId {
    device: u32,
    inode: u64,
    generation: u32,
    changed: u64,
}

impl FileId {
    /// Returns the identity of the file that a text is in; `None` if it is in no file.
    pub fn of(text: &Text) -> Option<Self> {
        let mut id = bindings::dtrace_file_id::default();
        if !text.has_file() {
            return None;
        }
        // SAFETY: The text keeps its file open; `id` is valid for the write.
        unsafe { bindings::dtrace_file_identify(text.file(), &mut id) };
        Some(Self::from(id))
    }

    /// Returns the identity of the file that the current task has mapped at `vma`, if that is text
    /// to execute.
    fn mapped(vma: u64) -> Option<Self> {
        let mut id = bindings::dtrace_file_id::default();
        // SAFETY: `vma` is the argument of `uprobe_mmap()`: a mapping whose memory's lock the
        // caller of that function holds, so mapping and file stay. `id` is valid for the write.
        let is_text = unsafe {
            bindings::dtrace_mapped_text(vma as *const bindings::vm_area_struct, &mut id)
        };
        is_text.then(|| Self::from(id))
    }
}

impl From<bindings::dtrace_file_id> for FileId {
    fn from(id: bindings::dtrace_file_id) -> Self {
        Self {
            device: id.device,
            inode: id.inode,
            generation: id.generation,
            changed: id.changed,
        }
    }
}

/// A listener for mapped files. It is called by the task that has mapped one, with the lock of its
/// mappings held; it must not sleep.
pub trait Maps: Send + Sync + 'static {
    /// From now on the current process can execute the text of this file.
    fn mapped(&self, file: FileId);
}

struct Told<M>(Arc<Crowd<M>>);

impl<M: Maps> Passed for Told<M> {
    fn passed(&self, _place: usize, call: &Call<'_>) {
        if self.0.is_empty() {
            return;
        }
        let vma = call.args.first().copied().unwrap_or(0);
        if let Some(file) = FileId::mapped(vma) {
            self.0.each(|maps| maps.mapped(file));
        }
    }

    fn missed(&self, _place: usize) {}
}

/// The hook: calls each member of a crowd for each file. Dropping it waits until none of them is
/// being called.
pub struct Mappings<M: Maps>(Places<Told<M>>);

impl<M: Maps> Source for Mappings<M> {
    type Ear = M;

    /// Fails with `ENOENT` if the kernel does not have the function.
    fn begin(crowd: &Arc<Crowd<M>>) -> Result<Self> {
        let told = Arc::new(Told(crowd.clone()), GFP_KERNEL)?;
        let place = At::Entry(&[c"uprobe_mmap"]);
        let places = Places::new(core::iter::once(place), &told)?;
        if !places.has(0) {
            return Err(ENOENT);
        }
        let mut mappings = Self(places);
        mappings.wake(crowd)?;
        Ok(mappings)
    }

    fn rest(self) -> Option<Self> {
        self.0.detach(&[0]);
        Some(self)
    }

    fn wake(&mut self, _crowd: &Arc<Crowd<M>>) -> Result {
        let mut failed = None;
        self.0.attach(&[0], |_, error| failed = Some(error));
        failed.map_or(Ok(()), Err)
    }
}

impl<M: Maps> Drop for Mappings<M> {
    fn drop(&mut self) {
        self.0.detach(&[0]);
    }
}
