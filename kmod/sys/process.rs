// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Processes that probes are made in.
//!
//! A [`Process`] is an address space: a process number means another process when the first has
//! ended, and the same process is another program after `execve()`. A [`Text`] is where an
//! instruction comes from: a file and an offset, whatever path the file has or had, in whichever
//! mount namespace. A [`Reader`] looks up many of them.

use super::births::Child;
use super::pause::Pid;
use crate::bindings;
use core::ffi::{c_long, c_void};
use core::ops::Range;
use core::ptr::{null_mut, NonNull};
use kernel::alloc::KVVec;
use kernel::error::to_result;
use kernel::prelude::*;

/// The address space of a process. It may end while this value exists, which keeps only the
/// structure.
pub struct Process {
    mm: NonNull<bindings::mm_struct>,
    /// The process that had it when it was found.
    owner: Pid,
}

// SAFETY: The structure is reference-counted, and any task may drop the reference.
unsafe impl Send for Process {}
// SAFETY: It is accessed only by functions that take the locks which the access needs.
unsafe impl Sync for Process {}

impl Process {
    /// Returns the process that the current process knows by `pid`. Fails with `ESRCH` if there is
    /// none, or if it has no address space.
    pub fn find(pid: i32) -> Result<Self> {
        let (mut mm, mut owner) = (null_mut(), null_mut());
        // SAFETY: Both are valid for the writes.
        to_result(unsafe { bindings::dtrace_mm_find(pid, &mut mm, &mut owner) })?;
        // SAFETY: On success the helper returns a reference with the pointer.
        let owner = unsafe { Pid::from_raw(owner) };
        Self::counted(NonNull::new(mm), owner).ok_or(ESRCH)
    }

    /// Returns that of the current task. Does not sleep.
    pub fn current() -> Option<Self> {
        // SAFETY: No preconditions; the helper takes a reference.
        let mm = NonNull::new(unsafe { bindings::dtrace_current_mm() });
        Self::counted(mm, Pid::current())
    }

    /// Returns that of a task which has not run yet. Does not sleep.
    pub fn of_child(child: &Child<'_>) -> Option<Self> {
        // SAFETY: The task is alive while a `Child` of it exists; the helper takes a reference.
        let mm = NonNull::new(unsafe { bindings::dtrace_child_mm(child.as_ptr()) });
        Self::counted(mm, Pid::of_child(child))
    }

    /// Takes over references. `None` if one of them is missing.
    fn counted(mm: Option<NonNull<bindings::mm_struct>>, owner: Option<Pid>) -> Option<Self> {
        match (mm, owner) {
            (Some(mm), Some(owner)) => Some(Self { mm, owner }),
            (Some(mm), None) => {
                // SAFETY: The reference was taken, and no `Process` holds it, so it is dropped
                // once.
                unsafe { bindings::dtrace_mm_drop(mm.as_ptr()) };
                None
            }
            (None, _) => None,
        }
    }

    /// Returns a key that distinguishes it from all others that exist at the same time.
    pub fn key(&self) -> usize {
        self.mm.as_ptr() as usize
    }

    /// Returns the pointer for C functions.
    pub(super) fn as_ptr(&self) -> *mut bindings::mm_struct {
        self.mm.as_ptr()
    }

    /// Returns the process that had it when it was found.
    pub(super) fn owner(&self) -> &Pid {
        &self.owner
    }

    /// Whether both are the same.
    pub fn is(&self, other: &Self) -> bool {
        self.mm == other.mm
    }

    /// Whether it is that of the current task.
    pub fn is_current(&self) -> bool {
        // SAFETY: `self` holds a reference to the structure.
        unsafe { bindings::dtrace_mm_is_current(self.mm.as_ptr()) }
    }

    /// Whether no process has it any more.
    pub fn is_over(&self) -> bool {
        // SAFETY: `self` holds a reference to the structure.
        unsafe { bindings::dtrace_mm_is_over(self.mm.as_ptr()) }
    }

    /// Whether its programs are 64-bit programs.
    pub fn is_long(&self) -> bool {
        // SAFETY: `self` holds a reference to the structure.
        unsafe { bindings::dtrace_mm_is_long(self.mm.as_ptr()) }
    }

    /// Returns where the instruction at `addr` comes from. Fails with `EFAULT` if nothing is mapped
    /// there, `EACCES` if that is no text, or text that may be written to, `ESRCH` if the address
    /// space has ended, and `ETIMEDOUT` if its mappings are kept locked for five seconds or the
    /// caller is killed. May sleep.
    pub fn text(&self, addr: u64) -> Result<Text> {
        Ok(self.mapping(addr)?.text_at(addr))
    }

    /// Returns the mapping that an address is in; errors as [`Self::text`].
    fn mapping(&self, addr: u64) -> Result<Mapping> {
        let mut found = bindings::dtrace_mapping::default();
        // SAFETY: `self` holds a reference to the structure; `found` is valid for the write.
        to_result(unsafe { bindings::dtrace_text_at(self.mm.as_ptr(), addr, &mut found) })?;
        Ok(Mapping {
            addresses: found.start..found.end,
            text: Text {
                file: NonNull::new(found.file),
                offset: found.offset,
            },
        })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // SAFETY: `self` holds a reference, which is dropped once.
        unsafe { bindings::dtrace_mm_drop(self.mm.as_ptr()) };
    }
}

/// A place in a file. It keeps the file, and so its file system. Code that a program has generated
/// is in no file.
pub struct Text {
    file: Option<NonNull<bindings::file>>,
    /// The offset in the file; without a file, the address that the code had first.
    offset: u64,
}

// SAFETY: The file is reference-counted, and any task may drop the reference.
unsafe impl Send for Text {}
// SAFETY: The file is only identified, or read at an offset, which needs no lock of ours.
unsafe impl Sync for Text {}

impl Text {
    /// Returns the file; null if it is in none.
    pub(super) fn file(&self) -> *mut bindings::file {
        self.file.map_or(null_mut(), NonNull::as_ptr)
    }

    /// Returns the offset.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Whether it is in a file.
    pub fn has_file(&self) -> bool {
        self.file.is_some()
    }

    /// Whether a program serves the file's contents (FUSE): a task that reads it may wait for ever.
    pub fn is_served(&self) -> bool {
        let is_served = |file: NonNull<bindings::file>| {
            // SAFETY: `self` holds a reference to the file.
            unsafe { bindings::dtrace_file_is_served(file.as_ptr()) }
        };
        self.file.is_some_and(is_served)
    }

    /// Returns the place `bytes` bytes behind it.
    fn behind(&self, bytes: u64) -> Self {
        if let Some(file) = self.file {
            // SAFETY: `self` holds a reference to the file, so another one may be taken.
            unsafe { bindings::get_file(file.as_ptr()) };
        }
        Self {
            file: self.file,
            offset: self.offset.wrapping_add(bytes),
        }
    }
}

impl Text {
    /// Whether `process` has it mapped at `addr`. `true` if that cannot be found out in time,
    /// `false` if the address space has ended. May sleep; the caller must hold the framework's
    /// mutex.
    pub fn is_at(&self, process: &Process, addr: u64) -> bool {
        // SAFETY: `process` holds a reference to its structure; `self` holds one to the file, if
        // there is one.
        unsafe { bindings::dtrace_text_is_at(process.mm.as_ptr(), addr, self.file(), self.offset) }
    }
}

impl Drop for Text {
    fn drop(&mut self) {
        if let Some(file) = self.file {
            // SAFETY: `self` holds a reference, which is dropped once.
            unsafe { bindings::fput(file.as_ptr()) };
        }
    }
}

/// A mapping of text, with the place that it begins with.
struct Mapping {
    addresses: Range<u64>,
    text: Text,
}

impl Mapping {
    fn text_at(&self, addr: u64) -> Text {
        self.text.behind(addr.wrapping_sub(self.addresses.start))
    }
}

/// The length of the longest instruction, bytes.
pub const CODE_MAX: usize = bindings::DTRACE_CODE_MAX as usize;

/// How many bytes of a file are read at once, at a multiple of this.
const PAGE: u64 = 4096;

/// Reads instructions of a process, one after another. As long as they are in one mapping, the
/// mapping is looked up once, and each page of its file is read once. Changes meanwhile, like later
/// ones, are noticed when a breakpoint is set.
pub struct Reader<'a> {
    process: &'a Process,
    mapping: Option<Mapping>,
    /// A page of the mapping's file, and as many bytes behind it as an instruction that begins in
    /// it may need.
    page: KVVec<u8>,
    /// The offset of that page in the file.
    page_at: Option<u64>,
}

impl<'a> Reader<'a> {
    /// Returns a reader that has read nothing yet.
    pub const fn new(process: &'a Process) -> Self {
        Self {
            process,
            mapping: None,
            page: KVVec::new(),
            page_at: None,
        }
    }

    /// Returns the process whose instructions it reads.
    pub const fn process(&self) -> &'a Process {
        self.process
    }

    /// Returns where the instruction at `addr` comes from. Errors as [`Process::text`]. May sleep.
    pub fn text(&mut self, addr: u64) -> Result<Text> {
        let known = self.mapping.as_ref();
        if let Some(mapping) = known.filter(|known| known.addresses.contains(&addr)) {
            return Ok(mapping.text_at(addr));
        }
        self.page_at = None;
        let mapping = self.mapping.insert(self.process.mapping(addr)?);
        Ok(mapping.text_at(addr))
    }

    /// Reads the bytes of that instruction into `code`, as far as there are any; `text` must be
    /// what [`text`](Self::text) returned last. Returns how many bytes were read. May sleep.
    pub fn read(&mut self, text: &Text, addr: u64, code: &mut [u8; CODE_MAX]) -> Result<usize> {
        let Some(file) = text.file else {
            // Code that a program generates may change while it runs, so it is not cached.
            let (mm, to) = (self.process.as_ptr(), code.as_mut_ptr());
            // SAFETY: The process holds a reference to its structure; `code` is valid for a write
            // of that many bytes.
            return length(unsafe { bindings::dtrace_bare_read(mm, addr, to, CODE_MAX) });
        };
        let from = text.offset % PAGE;
        let start = text.offset.wrapping_sub(from);
        if self.page_at != Some(start) {
            self.page_at = None;
            self.page.resize(PAGE as usize + CODE_MAX, 0, GFP_KERNEL)?;
            let (to, size) = (self.page.as_mut_ptr().cast::<c_void>(), self.page.len());
            // SAFETY: `text` holds a reference to the file; the buffer is valid for a write of that
            // many bytes.
            let n = unsafe { bindings::dtrace_text_read(file.as_ptr(), start, to, size) };
            self.page.truncate(length(n)?);
            self.page_at = Some(start);
        }
        let found = self.page.get(from as usize..).unwrap_or_default();
        for (to, from) in code.iter_mut().zip(found) {
            *to = *from;
        }
        Ok(found.len().min(CODE_MAX))
    }
}

/// Returns how many bytes were read, or the error.
fn length(n: c_long) -> Result<usize> {
    usize::try_from(n).map_err(|_| Error::from_errno(n as i32))
}
