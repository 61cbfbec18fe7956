// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! A misc device with a context, a file mode and an owner.
//!
//! [`kernel::miscdevice`] leaves `file_operations::owner` empty, so an open file would not keep the
//! module: the module's text could be unloaded under a running control call. This registration
//! copies the abstraction's operations and sets the owner. Then misc_open() takes a reference to
//! the module and the last fput() drops it, both in the kernel's own text.
//!
//! The abstraction also does not pass the registrant's data to `open`. So the type that it knows,
//! [`Opened`], is private and is registered only here: its device is always the first field of a
//! [`Device`], which holds the context.

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
    /// What opening a file needs.
    type Context: Send + Sync;

    /// Opens the device.
    fn open(context: &Self::Context) -> Result<Pin<KBox<Self>>>;

    /// Handles a control call and returns its result.
    fn ioctl(&self, cmd: u32, arg: usize) -> Result<isize>;

    /// Whether the file is readable; `table` is to be registered with whatever announces a change
    /// of that.
    fn poll(&self, file: &File, table: PollTable<'_>) -> bool;

    /// Prints the lines for `/proc/PID/fdinfo`.
    fn show(&self, m: &SeqFile);
}

/// An [`OpenFile`] in the form that the abstraction knows.
struct Opened<T>(Pin<KBox<T>>);

#[vtable]
impl<T: OpenFile> MiscDevice for Opened<T> {
    type Ptr = KBox<Self>;

    fn open(_file: &File, misc: &MiscDeviceRegistration<Self>) -> Result<Self::Ptr> {
        // SAFETY: Devices of this type are registered only by `Device::register`, so `misc` is the
        // address of the first field of a `Device<T>`. misc_open() keeps the device registered, and
        // so alive and initialized, during this call.
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
/// Called as a file operation of an open file of a [`Device<T>`]; `table` must be null or valid for
/// the call.
unsafe extern "C" fn poll<T: OpenFile>(
    file: *mut bindings::file,
    table: *mut bindings::poll_table_struct,
) -> bindings::__poll_t {
    // SAFETY: `private_data` holds what `into_foreign()` returned for the value made by
    // `Opened::open`, from before the first file operation until after the last, so it may be
    // borrowed for this call. `file` is open, and no other code uses the position of such a file.
    let (opened, file) = unsafe {
        (
            <KBox<Opened<T>> as ForeignOwnable>::borrow((*file).private_data),
            File::from_raw_file(file),
        )
    };
    // SAFETY: By the caller's promise `table` is null or valid for this call.
    let table = unsafe { PollTable::from_raw(table) };
    match opened.0.poll(file, table) {
        true => bindings::POLLIN | bindings::POLLRDNORM,
        false => 0,
    }
}

/// A registered device. Dropping it removes the device.
///
/// # Invariants
///
/// `misc` is registered and its operations are `fops`.
#[pin_data(PinnedDrop)]
#[repr(C)]
pub struct Device<T: OpenFile> {
    // Must be first: its address is that of the whole; see `Opened::open`.
    #[pin]
    misc: Opaque<bindings::miscdevice>,
    #[pin]
    fops: Opaque<bindings::file_operations>,
    context: T::Context,
    #[pin]
    _pin: PhantomPinned,
}

// SAFETY: The context is `Send` and `Sync`, and any thread may remove the device.
unsafe impl<T: OpenFile> Send for Device<T> {}
// SAFETY: As above.
unsafe impl<T: OpenFile> Sync for Device<T> {}

impl<T: OpenFile> Device<T> {
    /// Registers a device called `name` at the path `node` below `/dev`, with `mode`. May sleep.
    pub fn register(
        [name, node]: [&'static CStr; 2],
        mode: u16,
        module: &'static ThisModule,
        context: T::Context,
    ) -> impl PinInit<Self, Error> {
        let raw = MiscDeviceOptions { name }.into_raw::<Opened<T>>();
        try_pin_init!(&this in Self {
            fops <- Opaque::ffi_init(move |slot: *mut bindings::file_operations| {
                // SAFETY: `raw.fops` points to the abstraction's constant operations, which may be
                // copied; `slot` is valid for writes.
                unsafe {
                    slot.write(core::ptr::read(raw.fops));
                    (*slot).owner = module.as_ptr();
                    (*slot).poll = Some(poll::<T>);
                }
            }),
            context,
            misc <- Opaque::try_ffi_init(move |slot: *mut bindings::miscdevice| {
                // SAFETY: `slot` is valid for writes and pinned, and `this` points to the value
                // being initialized. `open` may be called as soon as misc_register() has succeeded;
                // `fops` and `context`, which it uses, are initialized before.
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
        // SAFETY: By the type's invariant the device is registered.
        unsafe { bindings::misc_deregister(self.misc.get()) };
    }
}
