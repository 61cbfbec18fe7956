// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! `/dev/dtrace`, or `/dev/dtrace/dtrace`: an open file is a consumer.
//!
//! Opening makes a consumer without enablings; control calls ([`calls`](super::calls)) follow one another, by the file's turn;
//! closing, however it comes about, takes back everything. The reason of the last refusal is kept with the file.

use super::anon::{Anonymous, Unclaimed};
use super::deadman::Deadman;
use super::holder::Holding;
use super::machine::FEATURES;
use super::newcomers::Waiting;
use super::quota;
use super::seat::Seat;
use super::snapshot::Cleaner;
use super::text::{errno, Refusal, Text};
use super::tracer::Tracer;
use super::Framework;
use crate::sys::audience::Listener;
use crate::sys::percpu::Losses;
use crate::sys::remains::Keeper;
use crate::sys::rights::{Rights, Watch};
use crate::sys::turn::Turn;
use crate::sys::unwind::Server;
use crate::sys::vtime::Measuring;
use crate::sys::{clock, device, percpu, privilege, random, task};
use core::ffi::CStr;
use dtrace_engine::{Config, Consumer};
use kernel::alloc::{KBox, KVVec};
use kernel::fs::File;
use kernel::prelude::*;
use kernel::seq_file::SeqFile;
use kernel::seq_print;
use kernel::sync::poll::PollTable;
use kernel::sync::{new_mutex, Arc, Mutex};

/// The registered `/dev/dtrace`.
pub type Device = device::Device<Open>;

/// Registers it at this path below `/dev`, for root alone until the administrator gives the file to others; [`privilege`] says what they may.
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

/// What opening works on.
pub struct Context {
    framework: Arc<Framework>,
    unclaimed: Arc<Unclaimed>,
}

/// An open file: a consumer.
#[pin_data]
pub struct Open {
    /// The processes that wait for it, if it has asked for any. They go on before anything else ends.
    #[pin]
    pub(super) holding: Mutex<Holding>,
    pub(super) consumer: Seat<Attachment>,
    pub(super) unclaimed: Arc<Unclaimed>,
    /// What control calls keep. Nobody waits for it: who has it has the turn.
    #[pin]
    control: Mutex<Control>,
    /// Makes the control calls follow one another.
    turn: Turn,
}

/// What control calls keep.
pub struct Control {
    /// What was to be said about the last one.
    pub(super) last: Text,
    /// What goes with the consumer's tracing, once there is one.
    pub(super) tracing: Option<Tracing>,
    /// Where the consumer is the anonymous one, the file it was made of.
    pub(super) file: Option<KVVec<u8>>,
    /// Notes files that have no table for stacks, once the consumer has asked for such.
    pub(super) server: Option<Server>,
    /// Has mappings of processes noted when they end, the same way.
    pub(super) keeper: Option<Keeper>,
    /// How many instructions had been left to uprobes when the file was opened: more are when probes are enabled, before the tracing begins.
    pub(super) carried_before: u64,
}

/// What goes with a tracing that has begun.
pub struct Tracing {
    /// What runs beside it, until it ends.
    pub(super) helpers: Option<Helpers>,
    /// What had been lost on the machine when it began.
    pub(super) lost_before: Losses,
}

impl device::OpenFile for Open {
    type Context = Context;

    fn open(context: &Self::Context) -> Result<Pin<KBox<Self>>> {
        let consumer = Seat::new(Attachment::open(context.framework.clone())?);
        let unclaimed = context.unclaimed.clone();
        let control = Control {
            last: Text::new(),
            tracing: None,
            file: None,
            server: None,
            keeper: None,
            carried_before: Losses::total().carried,
        };
        KBox::pin_init(
            pin_init!(Self {
                holding <- new_mutex!(Holding::new(), "dtrace::Holding"),
                consumer,
                unclaimed,
                control <- new_mutex!(control, "dtrace::Open"),
                turn: Turn::of_file()?,
            }? Error),
            GFP_KERNEL,
        )
    }

    fn ioctl(&self, cmd: u32, arg: usize) -> Result<isize> {
        // Those before may take long, as they wait for their user's turn.
        let _turn = self.turn.take()?;
        let mut control = self.control.lock();
        self.call(cmd, arg as u64, &mut control)
    }

    fn poll(&self, file: &File, table: PollTable<'_>) -> bool {
        self.holding.lock().poll(file, table)
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
        seq_print!(
            m,
            "dtrace-slow:\twaits {} in-vain {} carried {}\n",
            lost.waits,
            lost.waits_in_vain,
            lost.carried
        );
    }
}

/// What runs beside a tracing.
pub struct Helpers {
    pub(super) _cleaner: Cleaner,
    pub(super) _deadman: Option<Deadman>,
    pub(super) _waiting: Waiting,
    /// Where it asks how long threads run without firings.
    pub(super) _measuring: Option<Listener<Measuring>>,
}

/// What a consumer has from its first enabling on that may trace its user's processes alone.
struct Watching {
    _watch: Watch,
    _tracing: quota::Tracing,
}

/// A consumer, which the framework knows once it enables something; dropping it makes the framework forget everything about it.
pub struct Attachment {
    pub(super) framework: Arc<Framework>,
    pub(super) tracer: Arc<Tracer>,
    pub(super) visits: Arc<Visits>,
    /// Keeps up to date what it may trace, from its first enabling on.
    watch: Pin<KBox<Mutex<Option<Watching>>>>,
}

/// Held by whoever visits a consumer's buffers with [`crosscall::on_cpu`](crate::sys::crosscall::on_cpu): a control call, or
/// the cleaner.
pub type Visits = Mutex<()>;

impl Attachment {
    /// A new consumer, which may do what the current task may.
    pub fn open(framework: Arc<Framework>) -> Result<Self> {
        let privileges = privilege::of_current(framework.group)?.ok_or(EPERM)?;
        let ends = framework.ends;
        let engine = Consumer::new(Config {
            ncpus: percpu::nr_cpus(),
            privileges,
            features: FEATURES,
            begin: ends.begin.id(),
            end: ends.end.id(),
            error: ends.error.id(),
            seed: clock::monotonic(),
            secret: random::word(),
            is_killed: task::is_killed,
        })
        .map_err(errno)?;
        let rights = match privileges.all_users {
            true => None,
            false => Some(Rights::of_current()?),
        };
        let user = rights.as_ref().map(|rights| rights.payer());
        let payer = framework.users.lock().payer(user)?;
        let tracer = Tracer::new(engine, ends.error, rights, payer);
        let tracer = Arc::new(tracer, GFP_KERNEL)?;
        Self::new(framework, tracer)
    }

    fn new(framework: Arc<Framework>, tracer: Arc<Tracer>) -> Result<Self> {
        let visits = Arc::pin_init(new_mutex!((), "dtrace::Visits"), GFP_KERNEL)?;
        Ok(Self {
            framework,
            tracer,
            visits,
            watch: KBox::pin_init(new_mutex!(None, "dtrace::Watch"), GFP_KERNEL)?,
        })
    }

    /// The current task is the consumer's.
    pub fn sit(&self) {
        if let Some(rights) = &self.tracer.rights {
            rights.sit();
        }
    }

    /// From now on what it may trace is known of each process before that executes anything.
    pub fn watch(&self) -> Result<(), Refusal> {
        let Some(rights) = &self.tracer.rights else {
            return Ok(());
        };
        let mut watch = self.watch.lock();
        if watch.is_none() {
            let tracing = self.tracer.payer.trace()?;
            *watch = Some(Watching {
                _watch: Watch::begin(rights, &self.framework.watchers)?,
                _tracing: tracing,
            });
        }
        Ok(())
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        self.framework.forget(&self.tracer);
    }
}
