// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The kernel's records of files and devices, one record at a time.
//!
//! An address may come from anywhere, so each word is loaded as in [`nofault`](super::nofault).
//! Walking from record to record, and ending the walk, is up to the caller.

use super::nofault::Unreachable;
use super::percpu::CpuGuard;
use crate::bindings;
use dtrace_engine::{Dentry, Kobject, Mount, Place, Unplaced};

/// Returns the record that `fill` fills in; `fill` returns 0, or an error.
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

/// Returns what the bytes of a `struct path` name.
pub fn place_of(path: &[u8; 16]) -> Place {
    const _: () = assert!(size_of::<kernel::bindings::path>() == 16);
    let mut out = bindings::dtrace_place::default();
    let mut words = [0u64; 2];
    for (word, bytes) in words.iter_mut().zip(path.chunks_exact(8)) {
        *word = bytes.try_into().map_or(0, u64::from_ne_bytes);
    }
    // SAFETY: The helper reads a `struct path`, which consists of two pointers. `words` has its
    // size and alignment, and any bits are valid for it.
    unsafe { bindings::dtrace_place_of(&mut out, words.as_ptr().cast()) };
    place(out)
}

/// Returns the root directory of the current process.
pub fn root(_here: &CpuGuard) -> Option<Place> {
    // SAFETY: `out` is valid for the write. Interrupts are off, so the current task's `fs_struct`
    // is not freed meanwhile.
    let raw = read(|out| unsafe { bindings::dtrace_root(out) });
    raw.ok().map(place)
}

/// Reads the `struct dentry` at `addr`.
pub fn dentry(addr: u64) -> Result<Dentry, Unreachable> {
    // SAFETY: `out` is valid for the write; faults of the loads are caught.
    let raw: bindings::dtrace_dentry = read(|out| unsafe { bindings::dtrace_dentry(out, addr) })?;
    Ok(Dentry {
        parent: raw.parent,
        name: raw.name,
        len: raw.len,
        removed: raw.removed,
    })
}

/// Reads the mount whose `struct vfsmount` is at `addr`.
pub fn mount(addr: u64) -> Result<Mount, Unreachable> {
    // SAFETY: As in `dentry`.
    let raw: bindings::dtrace_mount = read(|out| unsafe { bindings::dtrace_mount(out, addr) })?;
    Ok(Mount {
        root: raw.root,
        above: place(raw.above),
    })
}

/// Reads what names the file of the `struct dentry` at `addr`, which is in no directory.
pub fn unplaced(addr: u64) -> Result<Unplaced, Unreachable> {
    let raw: bindings::dtrace_unplaced =
        // SAFETY: As in `dentry`.
        read(|out| unsafe { bindings::dtrace_unplaced(out, addr) })?;
    Ok(Unplaced {
        fs: raw.fs,
        inode: raw.inode,
    })
}

/// Reads the `struct kobject` at `addr`.
pub fn kobject(addr: u64) -> Result<Kobject, Unreachable> {
    // SAFETY: As in `dentry`.
    let raw: bindings::dtrace_kobject = read(|out| unsafe { bindings::dtrace_kobject(out, addr) })?;
    Ok(Kobject {
        name: raw.name,
        parent: raw.parent,
    })
}

/// Returns the address of the `struct file` of a descriptor of the current process, 0 if there is
/// none.
pub fn file(_here: &CpuGuard, fd: u32) -> u64 {
    // SAFETY: Interrupts are off, so the current task's file table is not freed meanwhile; faults
    // of the loads are caught.
    unsafe { bindings::dtrace_file(fd) }
}

/// Returns the begin and the end of the arguments of the current process, in its own memory. `None`
/// in a kernel thread.
pub fn user_args(_here: &CpuGuard) -> Option<(u64, u64)> {
    let (mut begin, mut end) = (0, 0);
    // SAFETY: Both are valid for the writes. The current task keeps its address space while it
    // runs.
    let has = unsafe { bindings::dtrace_user_args(&mut begin, &mut end) };
    has.then_some((begin, end))
}
