// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! `/dev/dtrace`: an open file is a consumer.
//!
//! Opening makes a consumer without enablings; control calls ([`calls`](super::calls)) follow one another under the file's mutex;
//! closing, however it comes about, takes back everything. The reason of the last refusal is kept with the file.

use super::deadman::Deadman;
use super::machine::FEATURES;
use super::snapshot::Cleaner;
use super::text::Text;
use super::tracer::Tracer;
use super::Framework;
use crate::sys::percpu::Losses;
use crate::sys::{clock, device, percpu, privilege};
use dtrace_engine::{Config, Consumer};
use kernel::alloc::KBox;
use kernel::prelude::*;
use kernel::seq_file::SeqFile;
use kernel::seq_print;
use kernel::sync::{new_mutex, Arc, Mutex};

/// The registered `/dev/dtrace`.
pub type Device = device::Device<Open>;

/// Registers `/dev/dtrace`, for root alone until the administrator gives the file to others; [`privilege`] says what they may.
pub fn register(
    module: &'static ThisModule,
    framework: Arc<Framework>,
) -> impl PinInit<Device, Error> {
    Device::register(c"dtrace", 0o600, module, framework)
}

/// An open file: a consumer.
#[pin_data]
pub struct Open {
    pub(super) consumer: Attachment,
    /// Makes the control calls follow one another.
    #[pin]
    control: Mutex<Control>,
}

/// What control calls keep.
pub struct Control {
    /// What was to be said about the last one.
    pub(super) last: Text,
    /// Runs while the consumer traces.
    pub(super) cleaner: Option<Cleaner>,
    /// Likewise.
    pub(super) deadman: Option<Deadman>,
    /// What had been lost on the machine when it began.
    pub(super) lost_before: Losses,
}

impl device::OpenFile for Open {
    type Context = Arc<Framework>;

    fn open(framework: &Self::Context) -> Result<Pin<KBox<Self>>> {
        let privileges = privilege::of_current(framework.group).ok_or(EPERM)?;
        let framework = framework.clone();
        let ends = framework.ends;
        let engine = Consumer::new(Config {
            ncpus: percpu::nr_cpus(),
            privileges,
            user: privilege::user(),
            features: FEATURES,
            begin: ends.begin.id(),
            end: ends.end.id(),
            error: ends.error.id(),
            seed: clock::monotonic(),
        })
        .map_err(|reason| Error::from_errno(reason.errno.0.wrapping_neg()))?;
        let tracer = Arc::new(Tracer::new(engine, ends.error), GFP_KERNEL)?;
        let consumer = Attachment::new(framework, tracer)?;
        let control = Control {
            last: Text::new(),
            cleaner: None,
            deadman: None,
            lost_before: Losses::total(),
        };
        KBox::pin_init(
            pin_init!(Self {
                consumer,
                control <- new_mutex!(control, "dtrace::Open"),
            }),
            GFP_KERNEL,
        )
    }

    fn ioctl(&self, cmd: u32, arg: usize) -> Result<isize> {
        self.call(cmd, arg as u64, &mut self.control.lock())
    }

    fn show(&self, m: &SeqFile) {
        let activity = self.consumer.tracer.engine.activity();
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
    }
}

/// A consumer that the framework knows; dropping it makes the framework forget everything about it.
pub struct Attachment {
    pub(super) framework: Arc<Framework>,
    pub(super) tracer: Arc<Tracer>,
    pub(super) visits: Arc<Visits>,
}

/// Held by whoever visits a consumer's buffers with [`crosscall::on_cpu`](crate::sys::crosscall::on_cpu): a control call, or
/// the cleaner.
pub type Visits = Mutex<()>;

impl Attachment {
    fn new(framework: Arc<Framework>, tracer: Arc<Tracer>) -> Result<Self> {
        let visits = Arc::pin_init(new_mutex!((), "dtrace::Visits"), GFP_KERNEL)?;
        framework.state.lock().attach(tracer.clone())?;
        Ok(Self {
            framework,
            tracer,
            visits,
        })
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        let gone = self.framework.state.lock().detach(&self.tracer);
        // Waits for a grace period, without the framework's mutex.
        drop(gone);
    }
}
