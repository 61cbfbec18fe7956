// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The control calls: their dispatch, those that begin and end a tracing, and those about probes
//! and enablings. The calls that describe what a consumer has are in [`described`], those that read
//! what was recorded in [`snapshot`], those about processes that wait in [`holder`], about what
//! programs have registered in [`helper`], and those for stacks in [`tables`] and [`remains`].
//!
//! A call works on a consumer, and on what its file keeps from one call to the next. It does not
//! know the file.
//!
//! Input from user space is copied once and then checked. Output is built completely before it is
//! copied. A refused call changes nothing (INV-2).

use super::anon::Unclaimed;
use super::claim::Claimable;
use super::consumer::{Consumer, OwnedConsumer, Tracing};
use super::enabling::too_long;
use super::holder::{self, Holding};
use super::patience::{Patience, ASKED};
use super::process::Order;
use super::provider::Description;
use super::quota::Payment;
use super::text::{refuse, Answer, Refusal, Text};
use super::user;
use super::{described, helper, remains, snapshot, tables};
use crate::sys::clock;
use crate::sys::pause::Pid;
use crate::sys::percpu::Losses;
use crate::sys::remains::Keeper;
use crate::sys::task;
use crate::sys::turn::Turn;
use crate::sys::unwind::Server;
use core::mem::size_of;
use dtrace_engine::consumer::Which;
use dtrace_engine::{Activity, Enabling, Errno, Reason};
use dtrace_uapi::ioctl::{
    self, AnonDesc, ArgDesc, Conf, Enable, ProbeDesc, ProviderDesc, ProviderPrivileges, ReplDesc,
    Status, STATUS_COMMON_SIZE, STATUS_FIRST_SIZE, STATUS_SECOND_SIZE, STATUS_THIRD_SIZE,
};
use dtrace_uapi::limits::{DOF_MAX, PROVNAMELEN};
use dtrace_uapi::option::{Opt, UNSET};
use dtrace_uapi::process::Probes;
use dtrace_uapi::{dif, dof};
use kernel::alloc::KVVec;
use kernel::prelude::*;
use kernel::sync::Mutex;
use zerocopy::{FromZeros, IntoBytes};

/// State of the control calls.
pub struct FileState {
    /// Note of the last call, or the reason of its refusal.
    last: Text,
    /// State of the tracing, from `GO` on.
    tracing: Option<Tracing>,
    /// The file that the anonymous enabling was made from, if this consumer has claimed the
    /// anonymous state.
    file: Option<KVVec<u8>>,
    /// Notes files that lack an unwind table, from the consumer's first request for one on.
    server: Option<Server>,
    /// Notes the mappings of processes that end, from the consumer's first `REMAINS` on.
    keeper: Option<Keeper>,
    /// Number of instructions that had been left to uprobes when the file was opened. Enabling
    /// leaves more to them, before the tracing begins.
    carried_before: u64,
}

impl FileState {
    /// Makes the state of a file that is being opened.
    pub fn new() -> Self {
        Self {
            last: Text::new(),
            tracing: None,
            file: None,
            server: None,
            keeper: None,
            carried_before: Losses::total().carried,
        }
    }
}

/// The control calls at one file: what they work on.
pub struct Calls<'a> {
    /// The consumer that the file speaks for.
    pub consumer: &'a Claimable<OwnedConsumer>,
    /// The processes that wait for the consumer.
    pub holding: &'a Mutex<Holding>,
    /// The anonymous state that the consumer may claim.
    pub unclaimed: &'a Unclaimed,
    /// What one call leaves to the next.
    pub state: &'a mut FileState,
}

impl Calls<'_> {
    /// Executes a control call. Its note, or the reason of its refusal, is left in the state.
    pub fn call(&mut self, cmd: u32, arg: u64) -> Result<isize> {
        if cmd == ioctl::REASON {
            user::put(arg, &self.state.last.to_reason())?;
            return Ok(0);
        }
        self.state.last = Text::new();
        self.consumer.sit();
        // A call that makes many probes may take long. Its caller is alive when it begins and when
        // it ends.
        self.consumer.shared.ask(clock::monotonic());
        let answer = self.dispatch(cmd, arg);
        // This may be another consumer, which the call has claimed.
        self.consumer.shared.ask(clock::monotonic());
        answer.map_err(|refusal| {
            let errno = refusal.errno;
            self.state.last = refusal.into_text();
            errno
        })
    }

    /// Each call is a function of its own and is never inlined: their structures are large, and a
    /// kernel stack is small.
    fn dispatch(&mut self, cmd: u32, arg: u64) -> Answer {
        let owned: &OwnedConsumer = self.consumer;
        let Self { holding, state, .. } = self;
        match cmd {
            ioctl::PROVIDER => provider(owned, arg),
            ioctl::PROBES => probes(owned, arg),
            ioctl::PROBEMATCH => probematch(owned, arg),
            ioctl::PROBEARG => probearg(owned, arg),
            ioctl::CONF => conf(arg),
            ioctl::ENABLE => enable(owned, arg, &mut state.last),
            ioctl::MAKEPROBES => makeprobes(owned, arg),
            ioctl::HOLD => holder::hold(owned, holding, arg),
            ioctl::HELD => holder::held(owned, holding, arg),
            ioctl::RESUME => holder::resume(holding, arg),
            ioctl::KNOWN => holder::known(owned, holding, arg),
            ioctl::NUMBER => number(arg),
            ioctl::REVIEW => holder::review(owned, arg),
            ioctl::REGISTERED => helper::registered(owned, arg),
            ioctl::WANTED => tables::wanted(owned, &mut state.server),
            ioctl::TABLE => tables::table(owned, arg),
            ioctl::REMAINS => remains::remains(owned, arg, &mut state.keeper),
            ioctl::FRAME => tables::frame(owned, arg),
            ioctl::REPLICATE => replicate(owned, arg, &mut state.last),
            ioctl::RETRACT => retract(owned, arg),
            ioctl::EPROBE => described::eprobe(owned, arg),
            ioctl::AGGDESC => described::aggdesc(owned, arg),
            ioctl::FORMAT => described::format(owned, arg),
            ioctl::DOFGET => described::dofget(owned, arg),
            ioctl::ANONGET => anonget(arg, state.file.as_deref()),
            ioctl::GO => self.go(arg),
            ioctl::STOP => self.stop(arg),
            ioctl::STATUS => self.status(arg, size_of::<Status>()),
            ioctl::STATUS_THIRD => self.status(arg, STATUS_THIRD_SIZE),
            ioctl::STATUS_SECOND => self.status(arg, STATUS_SECOND_SIZE),
            ioctl::STATUS_FIRST => self.status(arg, STATUS_FIRST_SIZE),
            ioctl::STATUS_COMMON => self.status(arg, STATUS_COMMON_SIZE),
            ioctl::BUFSNAP => snapshot::bufsnap(owned, arg, Which::Principal),
            ioctl::AGGSNAP => snapshot::bufsnap(owned, arg, Which::Aggregation),
            _ => Err(refuse(ENOTTY)),
        }
    }

    /// Starts the tracing, or claims the anonymous state.
    fn go(&mut self, arg: u64) -> Answer {
        answerable(arg)?;
        let grabs = !matches!(self.consumer.shared.engine.option(Opt::Grabanon), 0 | UNSET);
        let cpu = if grabs && !self.consumer.has_claimed() {
            self.claim()?
        } else {
            let (cpu, tracing) = self.consumer.go()?;
            self.state.tracing = Some(tracing);
            cpu
        };
        user::put(arg, &cpu)?;
        Ok(0)
    }

    /// Claims the anonymous state (INV-24). Returns the CPU on which its `BEGIN` fired.
    fn claim(&mut self) -> Result<u32, Refusal> {
        if self.consumer.shared.engine.has_clauses() {
            let why = "probes are enabled, which whoever claims the anonymous state cannot";
            return Err(Reason::new(Errno::EALREADY, why).into());
        }
        let may = self.consumer.shared.engine.privileges();
        let mut unclaimed = self.unclaimed.lock();
        if let Some(waiting) = unclaimed.as_ref() {
            if !may.cover(waiting.consumer.shared.engine.privileges()) {
                return Err(Refusal::new(EPERM, "the anonymous state may do more"));
            }
        }
        let anonymous = unclaimed.take();
        drop(unclaimed);
        let anonymous = anonymous.ok_or(Refusal::new(ENOENT, "no anonymous tracing state"))?;
        anonymous.consumer.shared.ask(clock::monotonic());
        // Cannot fail: the caller has checked that the file has claimed no consumer.
        self.consumer
            .claim(anonymous.consumer)
            .map_err(|_| refuse(EBUSY))?;
        self.state.tracing = Some(anonymous.tracing);
        self.state.file = Some(anonymous.file);
        Ok(anonymous.begin)
    }

    /// Ends the tracing.
    fn stop(&mut self, arg: u64) -> Answer {
        let activity = self.consumer.shared.engine.activity();
        if !matches!(
            activity,
            Activity::Active | Activity::Draining | Activity::Cooldown
        ) {
            // No process waits for a consumer that has ended otherwise (INV-25).
            if matches!(activity, Activity::Killed | Activity::Stopped) {
                self.let_go();
            }
            return Err(Refusal::new(EINVAL, "the tracing is not running"));
        }
        answerable(arg)?;
        // Nor for one that stops.
        self.let_go();
        let cpu = self
            .consumer
            .stop(self.state.tracing.as_mut(), &mut self.state.last)?;
        user::put(arg, &cpu)?;
        Ok(0)
    }

    /// Lets all processes go that wait for the consumer.
    fn let_go(&self) {
        // Dropped without the lock, which `poll` takes.
        let holder = self.holding.lock().end();
        drop(holder);
    }

    fn status(&self, arg: u64, room: usize) -> Answer {
        let (tracing, carried) = (self.state.tracing.as_ref(), self.state.carried_before);
        snapshot::status(self.consumer, arg, room, tracing, carried)
    }
}

#[inline(never)]
fn provider(owned: &OwnedConsumer, arg: u64) -> Answer {
    let mut desc: ProviderDesc = user::get(arg)?;
    let end = desc
        .name
        .iter()
        .position(|c| *c == 0)
        .unwrap_or(PROVNAMELEN);
    let name = desc.name.get(..end).unwrap_or_default();
    let OwnedConsumer {
        framework,
        shared: consumer,
        ..
    } = owned;
    let sees_all = consumer.rights.is_none();
    let provider = framework.enter(consumer)?.provider(name, sees_all);
    let provider = provider.ok_or(refuse(ESRCH))?;
    desc.attr = provider.attributes();
    desc.pad = 0;
    desc.privileges = ProviderPrivileges {
        flags: provider.privileges(),
        uid: 0,
        zoneid: 0,
    };
    user::put(arg, &desc)?;
    Ok(0)
}

#[inline(never)]
fn probes(owned: &OwnedConsumer, arg: u64) -> Answer {
    let desc: ProbeDesc = user::get(arg)?;
    let everything = Description {
        provider: b"",
        module: b"",
        func: b"",
        name: b"",
    };
    next_probe(owned, arg, &everything, desc.id)
}

#[inline(never)]
fn probematch(owned: &OwnedConsumer, arg: u64) -> Answer {
    let desc: ProbeDesc = user::get(arg)?;
    let parts = Description::from(&desc);
    if desc.id == 0 {
        let consumer = &owned.shared;
        owned
            .framework
            .enter(consumer)?
            .provide(consumer, &parts)
            .map_err(too_long)?;
    }
    next_probe(owned, arg, &parts, desc.id)
}

fn next_probe(owned: &OwnedConsumer, arg: u64, parts: &Description<'_>, after: u32) -> Answer {
    let mut after = after;
    let found = loop {
        if task::is_killed() {
            return Err(refuse(EINTR));
        }
        match look_for_next(owned, parts, after) {
            Ok(found) => break found,
            // The mutex was released here, because other calls may have waited for it.
            Err(last) => after = last,
        }
    };
    user::put(arg, &found.ok_or(refuse(ESRCH))?)?;
    Ok(0)
}

/// Returns the next probe after `after` that matches `parts` and that the consumer may know of. An
/// error is the id up to which no probe matches: the stretch was used up and other calls may get
/// the mutex, or the caller is killed.
fn look_for_next(
    owned: &OwnedConsumer,
    parts: &Description<'_>,
    after: u32,
) -> Result<Option<ProbeDesc>, u32> {
    let consumer = &owned.shared;
    let state = owned.framework.enter(consumer).map_err(|_| after)?;
    let pattern = state.table.pattern(parts);
    let patience = Patience::of_stretch();
    let mut after = after;
    while let Some(probe) = state.table.next_match(&pattern, after, &patience)? {
        after = probe.id();
        // Only consumers that may trace a process may know what probes it has.
        if consumer.rights.is_none() || state.may_list(consumer, probe) {
            // Copied while the mutex is held, because the probe may be retired after that.
            return Ok(Some(probe.desc()));
        }
        patience.take(ASKED).map_err(|_| after)?;
    }
    Ok(None)
}

#[inline(never)]
fn probearg(owned: &OwnedConsumer, arg: u64) -> Answer {
    let asked: ArgDesc = user::get(arg)?;
    let state = owned.framework.enter(&owned.shared)?;
    let probe = state.table.hold(asked.id).ok_or(refuse(EINVAL))?;
    if !state.may_list(&owned.shared, probe.probe()) {
        return Err(refuse(EINVAL));
    }
    let provider = state.provider_at(probe.provider());
    drop(state);
    let mut desc = ArgDesc {
        id: asked.id,
        ndx: asked.ndx,
        mapping: asked.ndx,
        ..ArgDesc::new_zeroed()
    };
    let known = match (u32::try_from(asked.ndx), provider) {
        (Ok(n), Some(provider)) => provider.argdesc(probe.probe(), n, &mut desc),
        _ => false,
    };
    if !known {
        desc = ArgDesc {
            id: asked.id,
            ndx: ioctl::ARG_NONE,
            ..ArgDesc::new_zeroed()
        };
    }
    user::put(arg, &desc)?;
    Ok(0)
}

#[inline(never)]
fn enable(owned: &OwnedConsumer, arg: u64, note: &mut Text) -> Answer {
    let mut request: Enable = user::get(arg)?;
    // Writes back before anything is enabled, so a caller that cannot get the answer is refused.
    user::put(arg, &request)?;
    let (enabling, paid) = read_enabling(owned, request.dof)?;
    request.n_matched = owned.enable(&enabling, note)?;
    paid.keep();
    user::put(arg, &request)?;
    Ok(0)
}

/// Reads a DOF image and pays for the memory that it takes (INV-29).
fn read_enabling(owned: &OwnedConsumer, addr: u64) -> Result<(Enabling, Payment<'_>), Refusal> {
    let Consumer { purse, payer, .. } = &*owned.shared;
    let hdr = image_header(addr)?;
    let size = hdr.loadsz as usize;
    let _paid = purse.pay(size)?;
    let image = read_image(addr, &hdr, size)?;
    // The memory that parsing takes is known, and paid for, only afterwards. So a member's calls
    // parse one image at a time.
    let _turn = payer.turn().map(Turn::take).transpose()?;
    let enabling = Enabling::parse(&image)?;
    let paid = purse.pay(enabling.memory())?;
    Ok((enabling, paid))
}

#[inline(never)]
fn makeprobes(owned: &OwnedConsumer, arg: u64) -> Answer {
    let mut request: Probes = user::get(arg)?;
    let mut failed = u32::MAX;
    let consumer = &owned.shared;
    owned.framework.enter(consumer)?.may_make(consumer)?;
    // Reading may wait for the caller's memory for as long as the caller likes.
    let _paid = consumer.purse.pay(Order::memory(&request))?;
    let order = Order::read(&request, consumer, &mut failed);
    request.failed = failed;
    user::put(arg, &request)?;
    let order = order?;
    let framework = &owned.framework;
    let mut state = framework.enter(consumer)?;
    order.check(&framework.desk.registry)?;
    state.make(consumer, order)?;
    Ok(0)
}

#[inline(never)]
fn replicate(owned: &OwnedConsumer, arg: u64, note: &mut Text) -> Answer {
    let repl: ReplDesc = user::get(arg)?;
    let OwnedConsumer {
        framework,
        shared: consumer,
        ..
    } = owned;
    framework
        .enter(consumer)?
        .replicate(consumer, &repl, note)?;
    Ok(0)
}

#[inline(never)]
fn retract(owned: &OwnedConsumer, arg: u64) -> Answer {
    let desc: ProbeDesc = user::get(arg)?;
    let consumer = &owned.shared;
    owned.framework.enter(consumer)?.retract(consumer, &desc)?;
    Ok(0)
}

/// Refuses a caller to which a CPU's number cannot be written, before there is one. Writes back
/// what it has read, so a call that is refused later has changed nothing.
fn answerable(arg: u64) -> Result {
    let stands: u32 = user::get(arg)?;
    user::put(arg, &stands)
}

/// Copies out the file of the claimed anonymous state.
#[inline(never)]
fn anonget(arg: u64, file: Option<&[u8]>) -> Answer {
    let mut desc: AnonDesc = user::get(arg)?;
    let file = file.ok_or(Refusal::new(ENOENT, "no anonymous state has been claimed"))?;
    if desc.size >= file.len() as u64 {
        user::put(desc.data, file)?;
    }
    desc.size = file.len() as u64;
    user::put(arg, &desc)?;
    Ok(0)
}

/// Replaces a process ID of the caller's namespace by the process ID in records.
fn number(arg: u64) -> Answer {
    let pid = Pid::find(user::get(arg)?).ok_or(refuse(ESRCH))?;
    user::put(arg, &pid.in_records())?;
    Ok(0)
}

fn conf(arg: u64) -> Answer {
    let conf = Conf {
        difversion: u32::from(dif::DIF_VERSION),
        difintregs: u32::from(dif::DIF_NREGS),
        diftupregs: u32::from(dif::DIF_NTREGS),
        ctfmodel: u32::from(dof::MODEL_LP64),
        interface: ioctl::INTERFACE,
        pad: [0; 7],
    };
    user::put(arg, &conf)?;
    Ok(0)
}

/// Reads the header of a DOF image. `loadsz` is the size of the image, and within limits.
fn image_header(addr: u64) -> Result<dof::Hdr, Refusal> {
    let hdr: dof::Hdr = user::get(addr)?;
    if hdr.loadsz < size_of::<dof::Hdr>() as u64 {
        return Err(Refusal::new(EINVAL, "DOF image is shorter than its header"));
    }
    if hdr.loadsz > DOF_MAX as u64 {
        return Err(Refusal::new(E2BIG, "DOF image is too large"));
    }
    Ok(hdr)
}

/// Copies in a DOF image of `size` bytes.
fn read_image(addr: u64, hdr: &dof::Hdr, size: usize) -> Result<KVVec<u8>, Refusal> {
    let mut image = KVVec::from_elem(0u8, size, GFP_KERNEL_ACCOUNT).map_err(|_| refuse(ENOMEM))?;
    user::read(addr, &mut image)?;
    // User space may have changed the header since it was checked. The checked one counts.
    for (to, from) in image.iter_mut().zip(hdr.as_bytes()) {
        *to = *from;
    }
    Ok(image)
}
