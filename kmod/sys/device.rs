// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! A misc device with a context, a mode, and an owner.
//!
//! [`kernel::miscdevice`] leaves `file_operations::owner` empty, so an open file would not keep the module: its text could be
//! unloaded under a running control call. This registration lends the abstraction's own operations and fills in
//! the owner, which makes misc_open() take a reference to the module and the last fput() give it back, both in the
//! kernel's own text.
//!
//! The abstraction also tells an opener nothing of who registered the device. So the type that it knows, [`Opened`], is ours
//! and registered here alone: its device is always the first field of a [`Device`], where the context is.

use core::marker::PhantomPinned;
use kernel::bindings;
use kernel::error::to_result;
use kernel::fs::File;
use kernel::miscdevice::{MiscDevice, MiscDeviceOptions, MiscDeviceRegistration};
use kernel::prelude::*;
use kernel::seq_file::SeqFile;
use kernel::sync::poll::PollTable;
use kernel::types::{ForeignOwnable, Opaque};

/// An open file of a device.
pub trait OpenFile: Sized + Send + Sync + 'static {
    /// What opening needs to work on.
    type Context: Send + Sync;

    /// Opens the device.
    fn open(context: &Self::Context) -> Result<Pin<KBox<Self>>>;

    /// A control call; its result.
    fn ioctl(&self, cmd: u32, arg: usize) -> Result<isize>;

    /// Whether it is readable; `table` is to be told where that can change.
    fn poll(&self, file: &File, table: PollTable<'_>) -> bool;

    /// Tells of itself in `/proc/PID/fdinfo`.
    fn show(&self, m: &SeqFile);
}

/// An [`OpenFile`] as the abstraction knows it.
struct Opened<T>(Pin<KBox<T>>);

#[vtable]
impl<T: OpenFile> MiscDevice for Opened<T> {
    type Ptr = KBox<Self>;

    fn open(_file: &File, misc: &MiscDeviceRegistration<Self>) -> Result<Self::Ptr> {
        // SAFETY: Devices of this type are registered by `Device::register` only, so that `misc` is the address of the first
        // field of a `Device<T>`, which lives as long as it is registered, thus for the whole of this call.
        let context = unsafe { &(*misc.as_raw().cast::<Device<T>>()).context };
        Ok(KBox::new(Self(T::open(context)?), GFP_KERNEL)?)
    }

    fn ioctl(this: &Self, _file: &File, cmd: u32, arg: usize) -> Result<isize> {
        this.0.ioctl(cmd, arg)
    }

    fn show_fdinfo(this: &Self, m: &SeqFile, _file: &File) {
        this.0.show(m);
    }
}

/// # Safety
///
/// A file operation of a [`Device<T>`]'s open file; `table` is null or good for the call.
unsafe extern "C" fn poll<T: OpenFile>(
    file: *mut bindings::file,
    table: *mut bindings::poll_table_struct,
) -> bindings::__poll_t {
    // SAFETY: The abstraction keeps there what `Opened::open` has made, from before the first call until after the last. Nobody else
    // uses the position of such a file.
    let (opened, file) = unsafe {
        (
            <KBox<Opened<T>> as ForeignOwnable>::borrow((*file).private_data),
            File::from_raw_file(file),
        )
    };
    // SAFETY: By the caller's promise.
    let table = unsafe { PollTable::from_raw(table) };
    match opened.0.poll(file, table) {
        true => bindings::POLLIN | bindings::POLLRDNORM,
        false => 0,
    }
}

/// A registered device; dropping it removes the device.
///
/// # Invariants
///
/// `misc` is registered and its operations are `fops`.
#[pin_data(PinnedDrop)]
#[repr(C)]
pub struct Device<T: OpenFile> {
    // First, so that its address is the device's; see `Opened::open`.
    #[pin]
    misc: Opaque<bindings::miscdevice>,
    #[pin]
    fops: Opaque<bindings::file_operations>,
    context: T::Context,
    #[pin]
    _pin: PhantomPinned,
}

// SAFETY: The context is `Send` and `Sync`, and the device may be removed by any thread.
unsafe impl<T: OpenFile> Send for Device<T> {}
// SAFETY: As above.
unsafe impl<T: OpenFile> Sync for Device<T> {}

impl<T: OpenFile> Device<T> {
    /// Registers a device of this name at this path below `/dev`, with `mode`.
    pub fn register(
        [name, node]: [&'static CStr; 2],
        mode: u16,
        module: &'static ThisModule,
        context: T::Context,
    ) -> impl PinInit<Self, Error> {
        let raw = MiscDeviceOptions { name }.into_raw::<Opened<T>>();
        try_pin_init!(&this in Self {
            fops <- Opaque::ffi_init(move |slot: *mut bindings::file_operations| {
                // SAFETY: `raw.fops` are the abstraction's own constant operations; `slot` is ours to write.
                unsafe {
                    slot.write(core::ptr::read(raw.fops));
                    (*slot).owner = module.as_ptr();
                    (*slot).poll = Some(poll::<T>);
                }
            }),
            context,
            misc <- Opaque::try_ffi_init(move |slot: *mut bindings::miscdevice| {
                // SAFETY: `slot` is ours to write, and `this` is where it lies. Everything that `open` uses has been
                // initialized before.
                unsafe {
                    slot.write(raw);
                    (*slot).nodename = node.as_char_ptr().cast();
                    (*slot).mode = mode;
                    (*slot).fops = (&raw const (*this.as_ptr()).fops).cast();
                    to_result(bindings::misc_register(slot))
                }
            }),
            _pin: PhantomPinned,
        })
    }
}

#[pinned_drop]
impl<T: OpenFile> PinnedDrop for Device<T> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: By the type's invariant.
        unsafe { bindings::misc_deregister(self.misc.get()) };
    }
}
