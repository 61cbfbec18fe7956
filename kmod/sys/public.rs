// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! A misc device for everybody, which goes when the module does, whoever has it open.
//!
//! An open file of a [`Device`](super::device::Device) keeps the module. That would let everybody keep it, so files of this one have no owner. What
//! the kernel calls for them stands in [`Ops`], which all of them point to and which lies outside of the module. When the device goes,
//! the functions there become the kernel's own: the control call that of a terminal that was hung up, `EIO`. None becomes empty, as
//! the kernel looks whether there is one before it takes it. Then
//!
//! - nobody opens the device any more: misc_open() calls us with the mutex that misc_deregister() waits for;
//! - who has taken one of our functions before has called it when all tasks have slept, as nobody sleeps before a call is counted;
//! - the calls that are counted are waited for. So a call may not wait for what a program can hold up.
//!
//! The last instructions of a call are waited for with those of [`Calls`](super::pause::Calls), which go later.
//!
//! A file has nothing of its own but its place in the count of those that are open. Where there are any, [`Ops`] stay for them, for good:
//! some 300 bytes, each time.

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

/// Who answers the calls.
pub trait Answers: Send + Sync + 'static {
    /// A control call; its result.
    fn ioctl(&self, cmd: u32, arg: usize) -> Result<isize>;
}

/// What files of the device point to.
#[repr(C)]
struct Ops {
    // First, so that the address of a file's operations is that of the whole.
    fops: bindings::file_operations,
    files: Files,
}

/// How many files there were, and how many of them are closed.
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

/// A registered device; dropping it removes the device.
///
/// # Invariants
///
/// `misc` is registered, and its operations are `ops`, which were allocated for it.
#[pin_data(PinnedDrop)]
#[repr(C)]
pub struct Public<T: Answers> {
    // First, so that its address is the device's; see `ioctl`.
    #[pin]
    misc: Opaque<bindings::miscdevice>,
    ops: *mut Ops,
    /// What answers when the device has gone.
    gone: Ioctl,
    answers: T,
    #[pin]
    _pin: PhantomPinned,
}

// SAFETY: `T` is `Send` and `Sync`, and the device may be removed by any thread.
unsafe impl<T: Answers> Send for Public<T> {}
// SAFETY: As above.
unsafe impl<T: Answers> Sync for Public<T> {}

impl<T: Answers> Public<T> {
    /// Registers a device of this name at this path below `/dev`, for everybody.
    pub fn register([name, node]: [&'static CStr; 2], answers: T) -> Result<Pin<KBox<Self>>> {
        let Address(gone) = symbols::lookup(c"hung_up_tty_ioctl")?;
        // SAFETY: That is a function of this type.
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
                // SAFETY: `slot` is ours to write. All that calls use has been initialized before.
                unsafe {
                    slot.write(raw);
                    to_result(bindings::misc_register(slot))
                }
            }),
            _pin: PhantomPinned,
        }? Error);
        KBox::pin_init(device, GFP_KERNEL).inspect_err(|_| {
            // SAFETY: There is no device with them.
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
        // Calls the other one.
        fops.compat_ioctl = bindings::compat_ptr_ioctl;
        Self {
            fops,
            files: Files::default(),
        }
    }

    /// The count that an open file is in.
    ///
    /// # Safety
    ///
    /// It is one of a [`Public`], and stays open for as long as that is used.
    unsafe fn files<'a>(file: *mut bindings::file) -> &'a Files {
        // SAFETY: By the caller's promise its operations are the first field of `Ops`, which stay while a file is open.
        unsafe { &(*(*file).f_op.cast::<Self>()).files }
    }
}

/// # Safety
///
/// Called by misc_open() for a file of a [`Public`].
unsafe extern "C" fn open(_inode: *mut bindings::inode, file: *mut bindings::file) -> c_int {
    // SAFETY: By the caller's promise.
    let files = unsafe { Ops::files(file) };
    files.opened.fetch_add(1, Ordering::Relaxed);
    0
}

/// # Safety
///
/// Called once for what was opened.
unsafe extern "C" fn release(_inode: *mut bindings::inode, file: *mut bindings::file) -> c_int {
    // SAFETY: By the caller's promise.
    let files = unsafe { Ops::files(file) };
    files.closed.fetch_add(1, Ordering::Relaxed);
    0
}

/// # Safety
///
/// A control call of an open file of a [`Public<T>`].
unsafe extern "C" fn ioctl<T: Answers>(
    file: *mut bindings::file,
    cmd: c_uint,
    arg: c_ulong,
) -> c_long {
    // SAFETY: No preconditions. The device stays until the call has ended.
    unsafe { ours::dtrace_call_begun() };
    // SAFETY: misc_open() has put the device there, which is the first field of a `Public<T>`.
    let device = unsafe { &*(*file).private_data.cast::<Public<T>>() };
    let answer = device.answers.ioctl(cmd, arg);
    // SAFETY: It has begun.
    unsafe { ours::dtrace_call_ended() };
    match answer {
        Ok(answer) => answer as c_long,
        Err(error) => error.to_errno() as c_long,
    }
}

#[pinned_drop]
impl<T: Answers> PinnedDrop for Public<T> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: By the type's invariant. Who is about to open the device has done so afterwards.
        unsafe { bindings::misc_deregister(self.misc.get()) };
        let ops = self.ops;
        // SAFETY: They are there, by the type's invariant. Others only load these words, each as a whole.
        unsafe {
            (&raw mut (*ops).fops.unlocked_ioctl).write_volatile(Some(self.gone));
            (&raw mut (*ops).fops.release).write_volatile(Some(bindings::generic_file_open));
        }
        rculist::synchronize_tasks();
        // SAFETY: As above; nobody counts any more.
        let is_unused = unsafe { &(*ops).files }.are_all_closed();
        // SAFETY: No preconditions; may sleep. Nobody queues such calls without end: the device has gone.
        unsafe { ours::dtrace_pauses_wait() };
        if is_unused {
            // Who has just closed a file still looks at them.
            rculist::synchronize_tasks();
            // SAFETY: They were allocated so, and nobody has them any more.
            drop(unsafe { KBox::from_raw(ops) });
        }
    }
}
