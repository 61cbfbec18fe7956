// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Processes that probes are made in.
//!
//! A [`Process`] is a memory: the number of a process means another one when it has ended, and the same one is another program
//! after `execve()`. A [`Text`] is where an instruction of it comes from, a file and an offset, whatever path it has or had, in
//! whichever mount namespace. A [`Reader`] looks up many of them.

use super::births::Child;
use super::pause::Pid;
use crate::bindings;
use core::ffi::{c_long, c_void};
use core::ops::Range;
use core::ptr::{null_mut, NonNull};
use kernel::alloc::KVVec;
use kernel::error::to_result;
use kernel::prelude::*;

/// The memory of a process. It may be over while we have this.
pub struct Process {
    mm: NonNull<bindings::mm_struct>,
    /// Who had it when it was found.
    owner: Pid,
}

// SAFETY: The structure is counted, and its count may be dropped by anybody.
unsafe impl Send for Process {}
// SAFETY: Nothing is done to it but by the kernel's own functions, which lock.
unsafe impl Sync for Process {}

impl Process {
    /// The process that the current one knows by `pid`. `ESRCH`: there is none, or it has no memory.
    pub fn find(pid: i32) -> Result<Self> {
        let (mut mm, mut owner) = (null_mut(), null_mut());
        // SAFETY: Both are valid for the writes.
        to_result(unsafe { bindings::dtrace_mm_find(pid, &mut mm, &mut owner) })?;
        // SAFETY: It was counted for us.
        let owner = unsafe { Pid::from_raw(owner) };
        Self::counted(NonNull::new(mm), owner).ok_or(ESRCH)
    }

    /// That of the current task. Does not sleep.
    pub fn current() -> Option<Self> {
        // SAFETY: The task is current; the memory is counted for us.
        let mm = NonNull::new(unsafe { bindings::dtrace_current_mm() });
        Self::counted(mm, Pid::current())
    }

    /// That of a task which has not run yet. Does not sleep.
    pub fn of_child(child: &Child<'_>) -> Option<Self> {
        // SAFETY: The task lives while it is passed; the memory is counted for us.
        let mm = NonNull::new(unsafe { bindings::dtrace_child_mm(child.as_ptr()) });
        Self::counted(mm, Pid::of_child(child))
    }

    /// Of what was counted for us.
    fn counted(mm: Option<NonNull<bindings::mm_struct>>, owner: Option<Pid>) -> Option<Self> {
        match (mm, owner) {
            (Some(mm), Some(owner)) => Some(Self { mm, owner }),
            (Some(mm), None) => {
                // SAFETY: It was counted.
                unsafe { bindings::dtrace_mm_drop(mm.as_ptr()) };
                None
            }
            (None, _) => None,
        }
    }

    /// What tells it from all others that there are at the same time.
    pub fn key(&self) -> usize {
        self.mm.as_ptr() as usize
    }

    /// What C knows it by.
    pub(super) fn as_ptr(&self) -> *mut bindings::mm_struct {
        self.mm.as_ptr()
    }

    /// Who had it when it was found.
    pub(super) fn owner(&self) -> &Pid {
        &self.owner
    }

    /// Whether both are the same.
    pub fn is(&self, other: &Self) -> bool {
        self.mm == other.mm
    }

    /// Whether it is that of the current task.
    pub fn is_current(&self) -> bool {
        // SAFETY: It is counted.
        unsafe { bindings::dtrace_mm_is_current(self.mm.as_ptr()) }
    }

    /// Whether no process has it any more.
    pub fn is_over(&self) -> bool {
        // SAFETY: It is counted.
        unsafe { bindings::dtrace_mm_is_over(self.mm.as_ptr()) }
    }

    /// Whether its programs are of 64 bits.
    pub fn is_long(&self) -> bool {
        // SAFETY: It is counted.
        unsafe { bindings::dtrace_mm_is_long(self.mm.as_ptr()) }
    }

    /// Where the instruction at `addr` comes from. `EFAULT`: nothing is there; `EACCES`: no text, or some that may be written to; `ESRCH`: it is
    /// over.
    pub fn text(&self, addr: u64) -> Result<Text> {
        Ok(self.mapping(addr)?.text_at(addr))
    }

    /// The mapping that an address is in; errors as above.
    fn mapping(&self, addr: u64) -> Result<Mapping> {
        let mut found = bindings::dtrace_mapping::default();
        // SAFETY: The memory is counted; `found` is valid for the write.
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
        // SAFETY: It was counted for us.
        unsafe { bindings::dtrace_mm_drop(self.mm.as_ptr()) };
    }
}

/// A place in a file. It keeps the file, and so its file system. Code that a program has made is in none.
pub struct Text {
    file: Option<NonNull<bindings::file>>,
    /// In the file; or the address that it first had.
    offset: u64,
}

// SAFETY: The file is counted, and its count may be dropped by anybody.
unsafe impl Send for Text {}
// SAFETY: Nothing is done to it but to read it at an offset, which needs no lock.
unsafe impl Sync for Text {}

impl Text {
    /// The file; null if it is in none.
    pub(super) fn file(&self) -> *mut bindings::file {
        self.file.map_or(null_mut(), NonNull::as_ptr)
    }

    /// Where in the file.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Whether it is in a file.
    pub fn has_file(&self) -> bool {
        self.file.is_some()
    }

    /// Whether a program answers for what the file holds: who reads it may wait for ever.
    pub fn is_served(&self) -> bool {
        let is_served = |file: NonNull<bindings::file>| {
            // SAFETY: The file is open.
            unsafe { bindings::dtrace_file_is_served(file.as_ptr()) }
        };
        self.file.is_some_and(is_served)
    }

    /// What is so many bytes behind it.
    fn behind(&self, bytes: u64) -> Self {
        if let Some(file) = self.file {
            // SAFETY: The file is open.
            unsafe { bindings::get_file(file.as_ptr()) };
        }
        Self {
            file: self.file,
            offset: self.offset.wrapping_add(bytes),
        }
    }
}

impl Text {
    /// Whether `process` has it at `addr`, which is believed where that cannot be seen in time. One that is over has nothing.
    pub fn is_at(&self, process: &Process, addr: u64) -> bool {
        // SAFETY: The memory is counted; the file is open if there is one.
        unsafe { bindings::dtrace_text_is_at(process.mm.as_ptr(), addr, self.file(), self.offset) }
    }
}

impl Drop for Text {
    fn drop(&mut self) {
        if let Some(file) = self.file {
            // SAFETY: It was counted for us.
            unsafe { bindings::fput(file.as_ptr()) };
        }
    }
}

/// A mapping of text, and what it begins with.
struct Mapping {
    addresses: Range<u64>,
    text: Text,
}

impl Mapping {
    fn text_at(&self, addr: u64) -> Text {
        self.text.behind(addr.wrapping_sub(self.addresses.start))
    }
}

/// Longest instruction, bytes.
pub const CODE_MAX: usize = 15;

/// Bytes of a file that are read at once, at a multiple of that.
const PAGE: u64 = 4096;

/// Reads instructions of a process, one after the other. As long as they are in one mapping it is looked up once, and a page of its file is
/// read once. What changes meanwhile is found when a breakpoint is set, as what changes later is.
pub struct Reader<'a> {
    process: &'a Process,
    mapping: Option<Mapping>,
    /// A page of the mapping's file, and as many bytes behind it as an instruction that begins there may have.
    page: KVVec<u8>,
    /// Where in the file it is.
    page_at: Option<u64>,
}

impl<'a> Reader<'a> {
    /// Reads none yet.
    pub const fn new(process: &'a Process) -> Self {
        Self {
            process,
            mapping: None,
            page: KVVec::new(),
            page_at: None,
        }
    }

    /// Whose instructions it reads.
    pub const fn process(&self) -> &'a Process {
        self.process
    }

    /// Where the instruction at `addr` comes from; errors as those of [`Process::text`].
    pub fn text(&mut self, addr: u64) -> Result<Text> {
        let known = self.mapping.as_ref();
        if let Some(mapping) = known.filter(|known| known.addresses.contains(&addr)) {
            return Ok(mapping.text_at(addr));
        }
        self.page_at = None;
        let mapping = self.mapping.insert(self.process.mapping(addr)?);
        Ok(mapping.text_at(addr))
    }

    /// Reads that one, which is what [`text`](Self::text) gave last, as far as it goes; how many bytes that is.
    pub fn read(&mut self, text: &Text, addr: u64, code: &mut [u8; CODE_MAX]) -> Result<usize> {
        let Some(file) = text.file else {
            // What a program makes it may change while it runs.
            let (mm, to) = (self.process.as_ptr(), code.as_mut_ptr());
            // SAFETY: The memory is counted; `code` is valid for that many bytes.
            return length(unsafe { bindings::dtrace_bare_read(mm, addr, to, CODE_MAX) });
        };
        let from = text.offset % PAGE;
        let start = text.offset.wrapping_sub(from);
        if self.page_at != Some(start) {
            self.page_at = None;
            self.page.resize(PAGE as usize + CODE_MAX, 0, GFP_KERNEL)?;
            let (to, size) = (self.page.as_mut_ptr().cast::<c_void>(), self.page.len());
            // SAFETY: The file is open, and the page is valid for that many bytes.
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

/// How much was read, or why nothing.
fn length(n: c_long) -> Result<usize> {
    usize::try_from(n).map_err(|_| Error::from_errno(n as i32))
}
