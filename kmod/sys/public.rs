// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! A misc device for every user, which goes when the module does, even if files of it are open.
//!
//! An open file of a [`Device`](super::device::Device) keeps the module. Every user could keep it
//! that way, so files of this device have no owner. The functions that the kernel calls for them
//! are in [`Ops`], to which all of the files point, and which lies outside of the module. When the
//! device goes, these functions are replaced by functions of the kernel; the one for control calls
//! is that of a terminal that was hung up, and returns `EIO` (`ENOTTY` for the command
//! `TIOCSPGRP`). None of the pointers becomes null, because the kernel tests a pointer before it
//! loads it again. Then:
//!
//! - No task opens the device any more: misc_open() calls us with the mutex that misc_deregister()
//!   waits for.
//! - A task that loaded one of our functions earlier has called it when all tasks have slept,
//!   because no task sleeps between that and being counted.
//! - Calls that are counted are waited for. So a call must not wait for anything that a program can
//!   delay.
//!
//! The last instructions of a call, after it has been counted down, are waited for with those of
//! [`Calls`](super::pause::Calls), which go later.
//!
//! A file has nothing of its own but its part in the count of open files. If there are open files
//! when the device goes, [`Ops`] stay for them for good: some 300 bytes each time.

use super::rculist;
use super::symbols::{self, Address};
use crate::bindings as ours;
use core::ffi::CStr;
use core::marker::PhantomPinned;
use core::sync::atomic::{AtomicUsize, Ordering};
use kernel::bindings;
use kernel::error::to_result;
use kernel::ffi::{c_int, c_long, c_uint, c_ulong};
use kernel::prelude::*;
use kernel::types::Opaque;

type Ioctl = unsafe extern "C" fn(*mut bindings::file, c_uint, c_ulong) -> c_long;

/// The handler of the device's calls.
pub trait Answers: Send + Sync + 'static {
    /// Handles a control call and returns its result.
    fn ioctl(&self, cmd: u32, arg: usize) -> Result<isize>;
}

/// What files of the device point to.
#[repr(C)]
struct Ops {
    // Must be first: the address of a file's operations is that of the whole.
    fops: bindings::file_operations,
    files: Files,
}

/// How many files were opened, and how many of them were closed.
#[derive(Default)]
struct Files {
    opened: AtomicUsize,
    closed: AtomicUsize,
}

impl Files {
    fn are_all_closed(&self) -> bool {
        self.opened.load(Ordering::Relaxed) == self.closed.load(Ordering::Relaxed)
    }
}

/// A registered device. Dropping it removes the device. May sleep.
///
/// # Invariants
///
/// `misc` is registered, and its operations are `ops`, which were allocated for it.
#[pin_data(PinnedDrop)]
#[repr(C)]
pub struct Public<T: Answers> {
    // Must be first: its address is that of the whole; see `ioctl`.
    #[pin]
    misc: Opaque<bindings::miscdevice>,
    ops: *mut Ops,
    /// The handler of control calls once the device has gone.
    gone: Ioctl,
    answers: T,
    #[pin]
    _pin: PhantomPinned,
}

// SAFETY: `T` is `Send` and `Sync`, `ops` is only used by functions that any task may call, and any
// thread may remove the device.
unsafe impl<T: Answers> Send for Public<T> {}
// SAFETY: As above.
unsafe impl<T: Answers> Sync for Public<T> {}

impl<T: Answers> Public<T> {
    /// Registers a device called `name` at the path `node` below `/dev`, with mode 0666. May sleep.
    pub fn register([name, node]: [&'static CStr; 2], answers: T) -> Result<Pin<KBox<Self>>> {
        let Address(gone) = symbols::lookup(c"hung_up_tty_ioctl")?;
        // SAFETY: The address is that of `hung_up_tty_ioctl()`, which has this type.
        let gone = unsafe { core::mem::transmute::<usize, Ioctl>(gone) };
        let ops = KBox::new(Ops::new::<T>(), GFP_KERNEL)?;
        let mut raw: bindings::miscdevice = pin_init::zeroed();
        raw.minor = bindings::MISC_DYNAMIC_MINOR as c_int;
        raw.name = name.as_char_ptr();
        raw.nodename = node.as_char_ptr();
        raw.mode = 0o666;
        raw.fops = (&raw const *ops).cast();
        let ops = KBox::into_raw(ops);
        let device = try_pin_init!(Self {
            ops,
            gone,
            answers,
            misc <- Opaque::try_ffi_init(move |slot: *mut bindings::miscdevice| {
                // SAFETY: `slot` is valid for writes and pinned. Calls may come as soon as
                // misc_register() has succeeded; everything that they use is initialized before.
                unsafe {
                    slot.write(raw);
                    to_result(bindings::misc_register(slot))
                }
            }),
            _pin: PhantomPinned,
        }? Error);
        KBox::pin_init(device, GFP_KERNEL).inspect_err(|_| {
            // SAFETY: The device was not registered, so nothing points to `ops`, which came from
            // `into_raw()`.
            drop(unsafe { KBox::from_raw(ops) });
        })
    }
}

impl Ops {
    fn new<T: Answers>() -> Self {
        let mut fops: bindings::file_operations = pin_init::zeroed();
        fops.open = Some(open);
        fops.release = Some(release);
        fops.unlocked_ioctl = Some(ioctl::<T>);
        // That of the kernel calls `unlocked_ioctl`.
        fops.compat_ioctl = bindings::compat_ptr_ioctl;
        Self {
            fops,
            files: Files::default(),
        }
    }

    /// Returns the count that an open file is part of.
    ///
    /// # Safety
    ///
    /// `file` must be an open file of a [`Public`], and stay open for `'a`.
    unsafe fn files<'a>(file: *mut bindings::file) -> &'a Files {
        // SAFETY: By the caller's promise the file's operations are the first field of an `Ops`,
        // which stays while a file is open.
        unsafe { &(*(*file).f_op.cast::<Self>()).files }
    }
}

/// # Safety
///
/// Called by misc_open() for a file of a [`Public`].
unsafe extern "C" fn open(_inode: *mut bindings::inode, file: *mut bindings::file) -> c_int {
    // SAFETY: By the caller's promise; the file stays open during the call.
    let files = unsafe { Ops::files(file) };
    files.opened.fetch_add(1, Ordering::Relaxed);
    0
}

/// # Safety
///
/// Called once for a file for which [`open`] was called.
unsafe extern "C" fn release(_inode: *mut bindings::inode, file: *mut bindings::file) -> c_int {
    // SAFETY: By the caller's promise; the file's operations are used until this returns.
    let files = unsafe { Ops::files(file) };
    files.closed.fetch_add(1, Ordering::Relaxed);
    0
}

/// # Safety
///
/// Called as a control call of an open file of a [`Public<T>`].
unsafe extern "C" fn ioctl<T: Answers>(
    file: *mut bindings::file,
    cmd: c_uint,
    arg: c_ulong,
) -> c_long {
    // SAFETY: No preconditions. From here on the device stays until the call is counted down.
    unsafe { ours::dtrace_call_begun() };
    // SAFETY: misc_open() has set `private_data` to the device, which is the first field of a
    // `Public<T>`. That is alive, because the call is counted.
    let device = unsafe { &*(*file).private_data.cast::<Public<T>>() };
    let answer = device.answers.ioctl(cmd, arg);
    // SAFETY: Matches the `dtrace_call_begun()` above. `device` is not used any more.
    unsafe { ours::dtrace_call_ended() };
    match answer {
        Ok(answer) => answer as c_long,
        Err(error) => error.to_errno() as c_long,
    }
}

#[pinned_drop]
impl<T: Answers> PinnedDrop for Public<T> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: By the type's invariant the device is registered. A task that is just opening it
        // has finished when this returns.
        unsafe { bindings::misc_deregister(self.misc.get()) };
        let ops = self.ops;
        // SAFETY: By the type's invariant `ops` is valid. Other CPUs only load these words, each as
        // a whole, and volatile writes of aligned words are not torn.
        unsafe {
            (&raw mut (*ops).fops.unlocked_ioctl).write_volatile(Some(self.gone));
            (&raw mut (*ops).fops.release).write_volatile(Some(bindings::generic_file_open));
        }
        rculist::synchronize_tasks();
        // SAFETY: As above; `Files` are atomics. No function of ours changes the counts any more.
        let is_unused = unsafe { &(*ops).files }.are_all_closed();
        // SAFETY: No preconditions; may sleep. It ends, because no further calls can begin.
        unsafe { ours::dtrace_pauses_wait() };
        if is_unused {
            // A task that has just closed a file may still look at the operations.
            rculist::synchronize_tasks();
            // SAFETY: `ops` came from `KBox::into_raw()`. All files are closed and all tasks have
            // slept since, so nothing uses it any more.
            drop(unsafe { KBox::from_raw(ops) });
        }
    }
}
