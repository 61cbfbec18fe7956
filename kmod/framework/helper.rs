// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The helper device: programs register probes of their own, and remove them (INV-52).
//!
//! Every user may open the device. So its calls concern only the memory of their caller, and
//! neither an open file nor a call keeps the module loaded ([`Public`], INV-23). The [`Registry`]
//! keeps what is registered. Consumers that look out for programs are notified, and the program
//! waits for them on its way to user mode, as it does when it maps a file. So they see the first
//! probe after the call.
//!
//! While anything is registered, and for some time after that, a hook on forks gives each child the
//! registrations of its parent. All programs take the lock that guards the hook's attachment, so
//! its holder neither allocates nor waits.

use super::consumer::OwnedConsumer;
use super::holds::Holds;
use super::registration::Registration;
use super::registry::{Registry, Room};
use super::text::{refuse, Answer};
use super::user;
use super::Framework;
use crate::sys::audience::{Audience, Crowd, Listener};
use crate::sys::births::{Births, Child, Telling};
use crate::sys::common::{Common, Of};
use crate::sys::deferred::{Chore, Deferred};
use crate::sys::process::Process;
use crate::sys::public::{self, Public};
use crate::sys::rights::Rights;
use core::ffi::CStr;
use core::sync::atomic::{AtomicBool, Ordering};
use dtrace_uapi::ioctl::{
    DofHelper, Registered, HELPER_ADD, HELPER_ADDDOF, HELPER_CLASSIC, HELPER_LOOK, HELPER_REMOVE,
};
use dtrace_uapi::limits::MODNAMELEN;
use kernel::alloc::{KBox, KVec};
use kernel::prelude::*;
use kernel::sync::Arc;

/// Calls [`Heirs`] when a process forks.
type Told = Telling<Arc<Crowd<Heirs>>>;

/// What is registered, and the consumers that want to be notified of it.
pub struct Desk {
    /// What is registered.
    pub registry: Arc<Registry>,
    /// Consumers that want to be notified.
    listening: Common<KVec<Arc<Holds>>>,
    births: Arc<Audience<Told>>,
    /// The attachment to forks, while there may be anything to inherit.
    looking: Common<Option<Listener<Told>>>,
}

impl Desk {
    /// Makes an empty desk.
    pub fn new() -> Result<Arc<Self>> {
        let registry = Registry::new()?;
        let desk = Self {
            registry,
            listening: Common::new(Of::Desk, KVec::new())?,
            births: Audience::new()?,
            looking: Common::new(Of::Heirs, None)?,
        };
        Ok(Arc::new(desk, GFP_KERNEL)?)
    }

    /// Has a consumer notified from now on.
    pub fn listen(&self, holds: &Arc<Holds>) -> Result {
        let mut listening = self.listening.lock();
        if !listening.iter().any(|one| Arc::ptr_eq(one, holds)) {
            listening.push(holds.clone(), GFP_KERNEL)?;
        }
        Ok(())
    }

    /// Has a consumer not notified any more.
    pub fn ignore(&self, holds: &Arc<Holds>) {
        let mut listening = self.listening.lock();
        listening.retain(|one| !Arc::ptr_eq(one, holds));
    }

    /// Removes the registrations of processes that have ended. Detaches from forks if nothing is
    /// left.
    fn sweep(&self) {
        let mut looking = self.looking.lock();
        let gone = match self.registry.sweep() {
            true => looking.take(),
            false => None,
        };
        drop(looking);
        // Waits until the tracepoint is not being handled any more, so not under the lock.
        drop(gone);
    }

    /// Adds what a process registers. Its children inherit it from now on.
    fn add(&self, room: Room, what: Arc<Registration>, heirs: &Heirs) -> Result<u32> {
        let mut looks = None;
        loop {
            let mut looking = self.looking.lock();
            if looking.is_none() {
                *looking = looks.take();
            }
            if looking.is_some() {
                return self.registry.add(room, what);
            }
            drop(looking);
            // Joining may wait, so it is done without the lock. Meanwhile another call may have
            // attached, so this looks again.
            looks = Some(self.births.join(heirs.clone(), false)?);
        }
    }
}

/// Sweeps the desk, soon after it was asked for.
struct Sweep(Arc<Desk>);

impl Chore for Sweep {
    fn run(&self) {
        self.0.sweep();
    }
}

/// Gives children what their parents have registered.
#[derive(Clone)]
struct Heirs {
    registry: Arc<Registry>,
    sweep: Arc<Deferred<Sweep>>,
    has_warned: Arc<AtomicBool>,
}

impl Births for Heirs {
    fn forked(&self, child: &Child<'_>) {
        let inherited = Process::of_child(child).map(|child| self.registry.inherit(child));
        // Warns once only, because programs control how often this happens.
        let is_first = || !self.has_warned.swap(true, Ordering::Relaxed);
        if inherited.is_some_and(|inherited| inherited.is_err()) && is_first() {
            pr_warn!("a child has not got its parent's probes: memory is short\n");
        }
        if self.registry.is_littered() {
            self.sweep.ask();
        }
    }

    fn executed(&self) {}
}

/// Handles the ioctls of the helper device.
pub struct Clerk {
    framework: Arc<Framework>,
    desk: Arc<Desk>,
    heirs: Heirs,
}

impl Clerk {
    fn add(&self, module: [u8; MODNAMELEN], addr: u64, dof: u64) -> Result<isize> {
        let what = self.desk.registry.read(module, addr, dof)?;
        let process = Process::current().ok_or(ESRCH)?;
        self.register(process, what, |room, what| {
            self.desk.add(room, what, &self.heirs)
        })
    }

    /// Has `add` add what a process registers, unless the process has registered the same before.
    /// Notifies consumers. Returns the number of the registration.
    fn register(
        &self,
        process: Process,
        what: Arc<Registration>,
        add: impl FnOnce(Room, Arc<Registration>) -> Result<u32>,
    ) -> Result<isize> {
        let number = match self.desk.registry.known(&process, &what) {
            Some(known) => known,
            None => add(Room::new(process)?, what)?,
        };
        self.tell();
        answer(number)
    }

    fn add_object(&self, arg: u64) -> Result<isize> {
        let object: DofHelper = user::fetch(arg)?;
        if !object.module.contains(&0) {
            return Err(EINVAL);
        }
        self.add(object.module, object.addr, object.dof)
    }

    fn look(&self, addr: u64) -> Result<isize> {
        let process = Process::current().ok_or(ESRCH)?;
        drop(process.text(addr)?);
        let registry = &self.desk.registry;
        let what = registry.look_at(addr)?;
        self.register(process, what, |room, what| registry.add(room, what))
    }

    fn remove(&self, number: u64) -> Result<isize> {
        let number = u32::try_from(number).map_err(|_| ENOENT)?;
        let process = Process::current().ok_or(ESRCH)?;
        let is_there = || self.desk.registry.has(&process, number);
        // A process without such a registration takes neither its user's turn nor the framework's
        // mutex.
        is_there().then_some(()).ok_or(ENOENT)?;
        let turn = self
            .framework
            .users
            .lock()
            .turn(Rights::payer_of_current())?;
        let _turn = turn.take()?;
        is_there().then_some(()).ok_or(ENOENT)?;
        // While the state is locked, no consumer makes probes of this registration.
        let mut state = self.framework.state.lock();
        is_there().then_some(()).ok_or(ENOENT)?;
        state.unregister(&process, number)?;
        self.desk.registry.remove(&process, number)?;
        Ok(0)
    }

    /// Notifies the consumers. The current process will wait for those that want it to, on its way
    /// to user mode.
    fn tell(&self) {
        if self.desk.registry.is_littered() {
            self.heirs.sweep.ask();
        }
        let listening = self.desk.listening.lock();
        listening.iter().for_each(Holds::registered);
    }
}

fn answer(number: u32) -> Result<isize> {
    isize::try_from(number).map_err(|_| ENOSPC)
}

impl public::Answers for Clerk {
    fn ioctl(&self, cmd: u32, arg: usize) -> Result<isize> {
        let arg = arg as u64;
        let cmd = match cmd.checked_sub(HELPER_CLASSIC) {
            Some(1) => HELPER_ADD,
            Some(2) => HELPER_REMOVE,
            Some(3) => HELPER_ADDDOF,
            _ => cmd,
        };
        match cmd {
            HELPER_ADD => self.add([0; MODNAMELEN], 0, arg),
            HELPER_ADDDOF => self.add_object(arg),
            HELPER_LOOK => self.look(arg),
            HELPER_REMOVE => self.remove(arg),
            _ => Err(ENOTTY),
        }
    }
}

/// The device, and what works for it.
pub struct Helper {
    device: Option<Pin<KBox<Public<Clerk>>>>,
    desk: Arc<Desk>,
    sweep: Arc<Deferred<Sweep>>,
}

/// Creates the device at this path below `/dev`, for all users.
pub fn register(framework: &Arc<Framework>, node: &'static CStr) -> Result<Helper> {
    let desk = framework.desk.clone();
    let sweep = Arc::pin_init(Deferred::new(Sweep(desk.clone())), GFP_KERNEL)?;
    let clerk = Clerk {
        framework: framework.clone(),
        desk: desk.clone(),
        heirs: Heirs {
            registry: desk.registry.clone(),
            sweep: sweep.clone(),
            has_warned: Arc::new(AtomicBool::new(false), GFP_KERNEL)?,
        },
    };
    Ok(Helper {
        device: Some(Public::register([c"dtracehelper", node], clerk)?),
        desk,
        sweep,
    })
}

impl Drop for Helper {
    fn drop(&mut self) {
        // In this order: calls may attach to forks, and forks may request sweeps.
        self.device = None;
        let looking = self.desk.looking.lock().take();
        drop(looking);
        // A sweep that is running may hold the listener, and with it the last other reference to
        // the work item that it runs in. `self.sweep` keeps the item until the sweep has ended.
        self.sweep.cancel();
    }
}

/// Returns the next registration of a process.
#[inline(never)]
pub fn registered(owned: &OwnedConsumer, arg: u64) -> Answer {
    let mut request: Registered = user::get(arg)?;
    let framework = &owned.framework;
    let consumer = &owned.shared;
    framework.enter(consumer)?.may_make(consumer)?;
    let process = owned.process(request.pid)?;
    let next = framework.desk.registry.next(&process, request.generation);
    let (number, one) = next.ok_or(refuse(ENOENT))?;
    let room = request.size;
    one.put(&mut request, number);
    if request.size > room {
        return Err(refuse(E2BIG));
    }
    user::put(request.data, one.image())?;
    user::put(arg, &request)?;
    Ok(0)
}
