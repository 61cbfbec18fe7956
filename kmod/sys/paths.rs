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

/// What `fill` makes of a record; it returns 0, or what went wrong.
fn read<T: Default>(fill: impl FnOnce(&mut T) -> i32) -> Result<T, Unreachable> {
    let mut out = T::default();
    match fill(&mut out) {
        0 => Ok(out),
        _ => Err(Unreachable),
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
    // SAFETY: `out` is valid for the write. Interrupts are off, so the current task's records stay.
    let raw = read(|out| unsafe { bindings::dtrace_root(out) });
    raw.ok().map(place)
}

/// The `struct dentry` at `addr`.
pub fn dentry(addr: u64) -> Result<Dentry, Unreachable> {
    // SAFETY: `out` is valid for the write; the loads do not fault.
    let raw: bindings::dtrace_dentry = read(|out| unsafe { bindings::dtrace_dentry(out, addr) })?;
    Ok(Dentry {
        parent: raw.parent,
        name: raw.name,
        len: raw.len,
        removed: raw.removed,
    })
}

/// The mount whose `struct vfsmount` is at `addr`.
pub fn mount(addr: u64) -> Result<Mount, Unreachable> {
    // SAFETY: As in `dentry`.
    let raw: bindings::dtrace_mount = read(|out| unsafe { bindings::dtrace_mount(out, addr) })?;
    Ok(Mount {
        root: raw.root,
        above: place(raw.above),
    })
}

/// The file of the `struct dentry` at `addr`, which is in no directory.
pub fn unplaced(addr: u64) -> Result<Unplaced, Unreachable> {
    let raw: bindings::dtrace_unplaced =
        // SAFETY: As in `dentry`.
        read(|out| unsafe { bindings::dtrace_unplaced(out, addr) })?;
    Ok(Unplaced {
        fs: raw.fs,
        inode: raw.inode,
    })
}

/// The `struct kobject` at `addr`.
pub fn kobject(addr: u64) -> Result<Kobject, Unreachable> {
    // SAFETY: As in `dentry`.
    let raw: bindings::dtrace_kobject = read(|out| unsafe { bindings::dtrace_kobject(out, addr) })?;
    Ok(Kobject {
        name: raw.name,
        parent: raw.parent,
    })
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
