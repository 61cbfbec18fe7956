// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Subroutines that follow the kernel's structures of files and devices.
//!
//! A path is the one that the current process would see: it ends at the root directory of that
//! process, and shows mounts where they are mounted. No lock of the file system is taken, because
//! the code that the probe stopped may hold it. So a concurrent rename or unmount may result in a
//! path that never existed. But each step is a checked load and is paid for, so the walk ends
//! whatever it finds.

use super::{arg, result};
use crate::budget::Budget;
use crate::dif::env::{Env, Vm};
use crate::error::Trap;
use crate::machine::{Machine, Place};
use crate::text::upwards::{unplaced, Upwards};
use dtrace_uapi::subr::Subr;

/// Budget units of a step upwards, which takes about six loads.
const STEP: usize = 1 << 10;
/// Room for the name of a file system type.
const FS_NAME: usize = 16;
/// Maximum length of a component's name in file systems.
const NAME_MAX: usize = 255;

pub(super) fn call<M: Machine>(subr: Subr, env: &mut Env<'_, M>) -> Result<u64, Trap> {
    env.check_kernel_memory()?;
    let first = arg(env, 0);
    match subr {
        Subr::Getf => Ok(u32::try_from(first).map_or(0, |fd| env.m.file(fd))),
        Subr::DPath => d_path(env, first),
        // The second argument, a minor number, does not occur in a path of /sys.
        _ => device_path(env, first),
    }
}

/// Returns the path that the `struct path` at `at` names.
fn d_path<M: Machine>(env: &mut Env<'_, M>, at: u64) -> Result<u64, Trap> {
    let mut path = [0; 16];
    env.view().read(at, &mut path)?;
    let here = env.m.place(&path);
    let dentry = env.m.dentry(here.dentry)?;
    let root = dentry.parent == here.dentry;
    if root && env.m.mount(here.mount)?.root != here.dentry {
        return in_no_directory(env, here.dentry);
    }
    upwards(env, |m, text, budget| {
        if dentry.removed && !root {
            text.prepend(b" (deleted)", budget)?;
        }
        let suffix = text.len();
        climb(m, here, text, budget)?;
        if text.len() == suffix {
            text.prepend(b"/", budget)?;
        }
        Ok(())
    })
}

/// Prepends the components from `here` up to the root to `text`.
fn climb<M: Machine>(
    m: &M,
    mut here: Place,
    text: &mut Upwards<'_>,
    budget: &mut Budget,
) -> Result<(), Trap> {
    let root = m.root();
    while Some(here) != root {
        budget.pay(m, STEP)?;
        let dentry = m.dentry(here.dentry)?;
        let mount = m.mount(here.mount)?;
        if here.dentry == mount.root {
            // A mount that is mounted nowhere: the topmost root, or a mount that was detached.
            if mount.above.mount == here.mount {
                break;
            }
            here = mount.above;
        } else if here.dentry == dentry.parent {
            break;
        } else {
            component(m, dentry.name, dentry.len as usize, text, budget)?;
            here.dentry = dentry.parent;
        }
    }
    Ok(())
}

/// Prepends a slash and the name of `len` bytes at `name` to `text`.
fn component<M: Machine>(
    m: &M,
    name: u64,
    len: usize,
    text: &mut Upwards<'_>,
    budget: &mut Budget,
) -> Result<(), Trap> {
    m.load(name, text.before(len.min(NAME_MAX), budget)?)?;
    Ok(text.prepend(b"/", budget)?)
}

/// Returns the substitute for the path of a pipe, a socket and the like.
fn in_no_directory<M: Machine>(env: &mut Env<'_, M>, at: u64) -> Result<u64, Trap> {
    let m = env.m;
    let (file, dentry) = (m.unplaced(at)?, m.dentry(at)?);
    let (mut fs, mut name) = ([0; FS_NAME], [0; NAME_MAX]);
    let fs_len = m.load_str(file.fs, &mut fs)?;
    let name = name.get_mut(..dentry.len as usize).unwrap_or(&mut []);
    m.load(dentry.name, name)?;
    result(env, |_, out| {
        unplaced(fs.get(..fs_len).unwrap_or(&[]), name, file.inode, out);
        true
    })
}

/// Returns the path below /sys of the object of the device model at `at`, for example a `struct
/// device`.
fn device_path<M: Machine>(env: &mut Env<'_, M>, at: u64) -> Result<u64, Trap> {
    upwards(env, |m, text, budget| {
        let mut next = at;
        loop {
            budget.pay(m, STEP)?;
            let object = m.kobject(next)?;
            let mut name = [0; NAME_MAX];
            let len = m.load_str(object.name, &mut name)?;
            text.prepend(name.get(..len).unwrap_or(&[]), budget)?;
            text.prepend(b"/", budget)?;
            match object.parent {
                0 => return Ok(()),
                parent => next = parent,
            }
        }
    })
}

/// Stores a string that `write` produces from its end in scratch memory, and returns its address.
fn upwards<M: Machine>(
    env: &mut Env<'_, M>,
    write: impl FnOnce(&M, &mut Upwards<'_>, &mut Budget) -> Result<(), Trap>,
) -> Result<u64, Trap> {
    let Vm { tmp, budget, .. } = &mut *env.vm;
    let mut text = Upwards::new(&mut tmp[0]);
    write(env.m, &mut text, budget)?;
    let len = text.len();
    result(env, |env, out| {
        out.extend(env.fetched(0, len));
        true
    })
}
