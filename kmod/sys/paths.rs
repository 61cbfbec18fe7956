// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! What the kernel's records of files and devices say, one record at a time.
//!
//! Whoever asks may have an address from anywhere: each word is loaded as in [`nofault`](super::nofault). To walk from record
//! to record, and to end, is the caller's business.

use super::nofault::Unreachable;
use super::percpu::CpuGuard;
use crate::bindings;
use dtrace_engine::{Dentry, Kobject, Mount, Place, Unplaced};

fn checked<T>(ret: i32, out: T) -> Result<T, Unreachable> {
    if ret == 0 {
        Ok(out)
    } else {
        Err(Unreachable)
    }
}

fn place(raw: bindings::dtrace_place) -> Place {
    Place {
        mount: raw.mount,
        dentry: raw.dentry,
    }
}

/// What the bytes of a `struct path` name.
pub fn place_of(path: &[u8; 16]) -> Place {
    const _: () = assert!(size_of::<kernel::bindings::path>() == 16);
    let mut out = bindings::dtrace_place::default();
    let mut words = [0u64; 2];
    for (word, bytes) in words.iter_mut().zip(path.chunks_exact(8)) {
        *word = bytes.try_into().map_or(0, u64::from_ne_bytes);
    }
    // SAFETY: The words are as many bytes as a `struct path` has, and aligned as it is; any of them are valid for it.
    unsafe { bindings::dtrace_place_of(&mut out, words.as_ptr().cast()) };
    place(out)
}

/// The root directory of the current process.
pub fn root(_here: &CpuGuard) -> Option<Place> {
    let mut out = bindings::dtrace_place::default();
    // SAFETY: `out` is valid for the write. Interrupts are off, so the current task's records stay.
    let ret = unsafe { bindings::dtrace_root(&mut out) };
    (ret == 0).then(|| place(out))
}

/// The `struct dentry` at `addr`.
pub fn dentry(addr: u64) -> Result<Dentry, Unreachable> {
    let mut out = bindings::dtrace_dentry::default();
    // SAFETY: `out` is valid for the write; the loads do not fault.
    let ret = unsafe { bindings::dtrace_dentry(&mut out, addr) };
    checked(
        ret,
        Dentry {
            parent: out.parent,
            name: out.name,
            len: out.len,
            removed: out.removed,
        },
    )
}

/// The mount whose `struct vfsmount` is at `addr`.
pub fn mount(addr: u64) -> Result<Mount, Unreachable> {
    let mut out = bindings::dtrace_mount::default();
    // SAFETY: As in `dentry`.
    let ret = unsafe { bindings::dtrace_mount(&mut out, addr) };
    checked(
        ret,
        Mount {
            root: out.root,
            above: place(out.above),
        },
    )
}

/// The file of the `struct dentry` at `addr`, which is in no directory.
pub fn unplaced(addr: u64) -> Result<Unplaced, Unreachable> {
    let mut out = bindings::dtrace_unplaced::default();
    // SAFETY: As in `dentry`.
    let ret = unsafe { bindings::dtrace_unplaced(&mut out, addr) };
    checked(
        ret,
        Unplaced {
            fs: out.fs,
            inode: out.inode,
        },
    )
}

/// The `struct kobject` at `addr`.
pub fn kobject(addr: u64) -> Result<Kobject, Unreachable> {
    let mut out = bindings::dtrace_kobject::default();
    // SAFETY: As in `dentry`.
    let ret = unsafe { bindings::dtrace_kobject(&mut out, addr) };
    checked(
        ret,
        Kobject {
            name: out.name,
            parent: out.parent,
        },
    )
}

/// Address of the `struct file` of a descriptor of the current process, 0 where there is none.
pub fn file(_here: &CpuGuard, fd: u32) -> u64 {
    // SAFETY: Interrupts are off, so the current task's records stay; the loads do not fault.
    unsafe { bindings::dtrace_file(fd) }
}

/// Begin and end of the arguments of the current process, in its own memory.
pub fn user_args(_here: &CpuGuard) -> Option<(u64, u64)> {
    let (mut begin, mut end) = (0, 0);
    // SAFETY: Both are valid for the write. The current task's address space stays as long as it runs.
    let has = unsafe { bindings::dtrace_user_args(&mut begin, &mut end) };
    has.then_some((begin, end))
}
