// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! `/dev/dtrace`, or `/dev/dtrace/dtrace`: an open file is a consumer (INV-23).
//!
//! Opening the device makes a consumer without enablings. Control calls ([`ioctl`](super::ioctl))
//! at one file are serialised by the file's turn. Closing the file, in whatever way, takes back
//! everything that the consumer has. The file keeps the reason of the last refusal.

use super::anon::{Anonymous, Unclaimed};
use super::claim::Claimable;
use super::consumer::OwnedConsumer;
use super::holder::Holding;
use super::ioctl::{Calls, FileState};
use super::Framework;
use crate::sys::device;
use crate::sys::percpu::Losses;
use crate::sys::turn::Turn;
use core::ffi::CStr;
use kernel::alloc::KBox;
use kernel::fs::File;
use kernel::prelude::*;
use kernel::seq_file::SeqFile;
use kernel::seq_print;
use kernel::sync::poll::PollTable;
use kernel::sync::{new_mutex, Arc, Mutex};

/// The registered device `/dev/dtrace`.
pub type Device = device::Device<DeviceFile>;

/// Registers the device at this path below `/dev`. Only root can open it until the administrator
/// changes the mode of the file; [`privilege`](crate::sys::privilege) decides what an opener may
/// do.
pub fn register(
    module: &'static ThisModule,
    framework: Arc<Framework>,
    anonymous: Option<Anonymous>,
    node: &'static CStr,
) -> Result<Pin<KBox<Device>>> {
    let unclaimed = Arc::pin_init(new_mutex!(anonymous, "dtrace::Unclaimed"), GFP_KERNEL)?;
    let context = Context {
        framework,
        unclaimed,
    };
    KBox::pin_init(
        Device::register([c"dtrace", node], 0o600, module, context),
        GFP_KERNEL,
    )
}

/// What `open()` needs.
pub struct Context {
    framework: Arc<Framework>,
    unclaimed: Arc<Unclaimed>,
}

/// An open file: a consumer.
#[pin_data]
pub struct DeviceFile {
    /// The processes that wait for the consumer. The first field, so they go on before anything
    /// else is dropped.
    #[pin]
    holding: Mutex<Holding>,
    consumer: Claimable<OwnedConsumer>,
    unclaimed: Arc<Unclaimed>,
    /// State of the control calls. This mutex is never contended, because its holder has the turn.
    #[pin]
    state: Mutex<FileState>,
    /// Serialises the control calls. Taken before the turn of a user.
    turn: Turn,
}

impl device::OpenFile for DeviceFile {
    type Context = Context;

    fn open(context: &Self::Context) -> Result<Pin<KBox<Self>>> {
        let consumer = Claimable::new(OwnedConsumer::open(context.framework.clone())?);
        let unclaimed = context.unclaimed.clone();
        let state = FileState::new();
        KBox::pin_init(
            pin_init!(Self {
                holding <- new_mutex!(Holding::new(), "dtrace::Holding"),
                consumer,
                unclaimed,
                state <- new_mutex!(state, "dtrace::FileState"),
                turn: Turn::of_file()?,
            }? Error),
            GFP_KERNEL,
        )
    }

    fn ioctl(&self, cmd: u32, arg: usize) -> Result<isize> {
        // This wait may be long, because earlier calls may wait for their user's turn. It is
        // killable, and the kernel does not take the task for hung.
        let _turn = self.turn.take()?;
        let mut state = self.state.lock();
        let mut calls = Calls {
            consumer: &self.consumer,
            holding: &self.holding,
            unclaimed: &self.unclaimed,
            state: &mut state,
        };
        calls.call(cmd, arg as u64)
    }

    fn poll(&self, file: &File, table: PollTable<'_>) -> bool {
        self.holding.lock().poll(file, table)
    }

    fn show(&self, m: &SeqFile) {
        let activity = self.consumer.shared.engine.activity();
        seq_print!(m, "dtrace-activity:\t{activity:?}\n");
        let lost = Losses::total();
        seq_print!(
            m,
            "dtrace-lost:\trecursion {} nmi {} unwatched {} returns {}\n",
            lost.recursion,
            lost.nmi,
            lost.unwatched,
            lost.returns
        );
        seq_print!(
            m,
            "dtrace-slow:\twaits {} in-vain {} carried {}\n",
            lost.waits,
            lost.waits_in_vain,
            lost.carried
        );
    }
}
