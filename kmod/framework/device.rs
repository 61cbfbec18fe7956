// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! `/dev/dtrace`, or `/dev/dtrace/dtrace`: an open file is a consumer (INV-23).
//!
//! Opening the device makes a consumer without enablings. Control calls ([`ioctl`](super::ioctl))
//! at one file are serialised by the file's turn. Closing the file, in whatever way, takes back
//! everything that the consumer has. The file keeps the reason of the last refusal.

use super::anon::{Anonymous, Unclaimed};
use super::claim::Claimable;
use super::consumer::Consumer;
use super::cpu_hotplug::Admitting;
use super::deadman::Deadman;
use super::holder::Holding;
use super::ioctl::{Calls, FileState};
use super::machine::FEATURES;
use super::quota;
use super::snapshot::Cleaner;
use super::text::{errno, Refusal};
use super::Framework;
use crate::sys::audience::Listener;
use crate::sys::percpu::Losses;
use crate::sys::process::Process;
use crate::sys::rights::{Rights, Watch};
use crate::sys::turn::Turn;
use crate::sys::vtime::Measuring;
use crate::sys::{clock, device, percpu, privilege, random, task};
use core::ffi::CStr;
use dtrace_engine::{Config, Consumer as Engine};
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
/// changes the mode of the file; [`privilege`] decides what an opener may do.
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

/// State of a tracing that has begun.
pub struct Tracing {
    /// Helpers of the tracing, until it ends.
    pub(super) helpers: Option<Helpers>,
    /// Losses on the whole machine before the tracing began.
    pub(super) lost_before: Losses,
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

/// What runs beside a tracing.
pub struct Helpers {
    pub(super) _cleaner: Cleaner,
    pub(super) _deadman: Option<Deadman>,
    pub(super) _admitting: Admitting,
    /// Measures the time of firings, if a clause reads `vtimestamp`.
    pub(super) _measuring: Option<Listener<Measuring>>,
}

/// What a member's consumer has from its first enabling, or its first `HOLD`, on.
struct Watching {
    _watch: Watch,
    _tracing: quota::Counted,
}

/// A consumer. The framework knows it once it enables something. Dropping it makes the framework
/// remove everything of it; this waits for an RCU grace period.
pub struct OwnedConsumer {
    pub(super) framework: Arc<Framework>,
    pub(super) shared: Arc<Consumer>,
    pub(super) visits: Arc<Visits>,
    /// Keeps the answers up to date which processes a member's consumer may trace (INV-36).
    watch: Pin<KBox<Mutex<Option<Watching>>>>,
}

/// Serialises the visits to a consumer's buffers by
/// [`crosscall::on_cpu`](crate::sys::crosscall::on_cpu): those of control calls and of the cleaner.
pub type Visits = Mutex<()>;

impl OwnedConsumer {
    /// Makes a consumer with the rights of the current task. `EPERM` if the task has none.
    pub fn open(framework: Arc<Framework>) -> Result<Self> {
        let privileges = privilege::of_current(framework.group)?.ok_or(EPERM)?;
        let ends = framework.ends;
        let engine = Engine::new(Config {
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
        let shared = Consumer::new(engine, ends.error, rights, payer);
        Self::new(framework, Arc::new(shared, GFP_KERNEL)?)
    }

    fn new(framework: Arc<Framework>, shared: Arc<Consumer>) -> Result<Self> {
        let visits = Arc::pin_init(new_mutex!((), "dtrace::Visits"), GFP_KERNEL)?;
        Ok(Self {
            framework,
            shared,
            visits,
            watch: KBox::pin_init(new_mutex!(None, "dtrace::Watch"), GFP_KERNEL)?,
        })
    }

    /// Notes that the current task is the consumer's: it is the one that is asked about processes.
    pub fn sit(&self) {
        if let Some(rights) = &self.shared.rights {
            rights.sit();
        }
    }

    /// Returns the process with this ID, if the consumer may trace it. May wait for the process.
    pub fn process(&self, pid: i32) -> Result<Process, Refusal> {
        let process = Process::find(pid)?;
        self.shared.must_trace(&process)?;
        Ok(process)
    }

    /// Makes sure that from now on each process is asked about before it executes anything. Does
    /// nothing for a consumer that may trace all processes. May sleep.
    pub fn watch(&self) -> Result<(), Refusal> {
        let Some(rights) = &self.shared.rights else {
            return Ok(());
        };
        let mut watch = self.watch.lock();
        if watch.is_none() {
            let tracing = self.shared.payer.trace()?;
            *watch = Some(Watching {
                _watch: Watch::begin(rights, &self.framework.watchers)?,
                _tracing: tracing,
            });
        }
        Ok(())
    }
}

impl Drop for OwnedConsumer {
    fn drop(&mut self) {
        self.framework.forget(&self.shared);
    }
}
