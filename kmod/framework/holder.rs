// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! What a consumer requests of processes that are to wait ([`holds`](super::holds)), for as long as
//! its file is open.
//!
//! An answer about a process may take long. So everything that must be known of a process is found
//! out before anything is locked ([`Wish`]). The last close of the file ends what was requested,
//! without a wait for the user's turn: the closing task may be a daemon, or a thread of the kernel
//! (INV-31).

use super::consumer::{Consumer, OwnedConsumer};
use super::holds::{Bell, Ear, Holds, Told};
use super::posts::Post;
use super::process::instruction_at;
use super::quota::{Charge, Payer};
use super::text::{refuse, Answer, Refusal};
use super::user;
use super::Framework;
use crate::sys::audience::Listener;
use crate::sys::mappings::{FileId, Mappings};
use crate::sys::process::{Process, Reader};
use crate::sys::turn::Turn;
use core::ffi::CStr;
use dtrace_uapi::hold::{self, Known, HOLDS_MAX, NAMES_MAX, NAME_SIZE, WAIT_MS};
use kernel::alloc::KVVec;
use kernel::fs::File;
use kernel::prelude::*;
use kernel::sync::poll::PollTable;
use kernel::sync::{Arc, Mutex};

/// An instruction at which a process waits.
struct Watch {
    address: u64,
    process: Process,
    is_over: bool,
    _charge: Charge,
}

/// What a consumer has requested. Dropping it lets all processes go on.
pub struct Holder {
    pub(super) holds: Arc<Holds>,
    watches: KVVec<Watch>,
    telling: Option<Listener<Told>>,
    mappings: Option<Listener<Mappings<Ear>>>,
    framework: Arc<Framework>,
    payer: Payer,
}

/// What a file has of processes that wait. The holder exists until the tracing ends. The bell is
/// made once and lives as long as the file, because a `select()` stays on its queue (INV-25).
pub struct Holding {
    holder: Option<Holder>,
    bell: Option<Arc<Bell>>,
}

impl Holding {
    /// Nothing is requested.
    pub const fn new() -> Self {
        Self {
            holder: None,
            bell: None,
        }
    }

    fn bell(&mut self) -> Result<&Arc<Bell>> {
        if self.bell.is_none() {
            self.bell = Some(Bell::new()?);
        }
        self.bell.as_ref().ok_or(ENOMEM)
    }

    fn holder(&mut self, consumer: &Consumer, framework: &Arc<Framework>) -> Result<&mut Holder> {
        let bell = self.bell()?.clone();
        if self.holder.is_none() {
            self.holder = Some(Holder::new(consumer, framework.clone(), bell)?);
        }
        self.holder.as_mut().ok_or(ENOMEM)
    }

    fn holds(&self) -> Result<&Arc<Holds>> {
        self.holder
            .as_ref()
            .map_or(Err(ENOENT), |holder| Ok(&holder.holds))
    }

    /// Ends what was requested. The caller drops the result, without this lock; that lets all
    /// processes go on.
    pub fn end(&mut self) -> Option<Holder> {
        if let Some(bell) = &self.bell {
            bell.ring();
        }
        self.holder.take()
    }

    /// Has the caller's `poll()` woken when a process begins to wait. Returns whether a process
    /// waits of which the consumer has yet to be notified. Also returns true if there is no memory
    /// for the bell, so that the caller does not wait for ever.
    pub fn poll(&mut self, file: &File, table: PollTable<'_>) -> bool {
        let Ok(bell) = self.bell() else {
            return true;
        };
        table.register_wait(file, &bell.queue);
        self.holds().is_ok_and(|holds| holds.is_waiting())
    }
}

impl Holder {
    fn new(consumer: &Consumer, framework: Arc<Framework>, bell: Arc<Bell>) -> Result<Self> {
        Ok(Self {
            holds: Holds::new(consumer.rights.clone(), bell)?,
            watches: KVVec::new(),
            telling: None,
            mappings: None,
            framework,
            payer: consumer.payer.clone(),
        })
    }

    fn ear(&self) -> Ear {
        Ear(self.holds.clone())
    }

    fn sees_all(&self) -> bool {
        self.holds.rights.is_none()
    }

    fn watch(&mut self, process: Process, post: Post) -> Result<(), Refusal> {
        let address = post.address;
        let is_same = |watch: &Watch| watch.address == address && watch.process.is(&process);
        if self.watches.iter().any(is_same) {
            return Ok(());
        }
        self.forget();
        if self.watches.len() >= HOLDS_MAX {
            return Err(refuse(ENOSPC));
        }
        let charge = self.payer.charge(1)?;
        self.watches.reserve(1, GFP_KERNEL)?;
        self.framework.state.lock().listen(post, self.ear())?;
        let watch = Watch {
            address,
            process,
            is_over: false,
            _charge: charge,
        };
        // Cannot fail: the room was reserved above.
        let _ = self.watches.push_within_capacity(watch);
        Ok(())
    }

    /// Attaches to forks and to executed programs, if it is not attached.
    fn tell(&mut self) -> Result {
        if self.telling.is_none() {
            let births = &self.framework.lookout.births;
            self.telling = Some(births.join(self.ear(), self.sees_all())?);
        }
        Ok(())
    }

    fn follow(&mut self, process: Process) -> Result<(), Refusal> {
        self.tell()?;
        let mut asked = self.holds.asked.lock();
        let parents = &mut asked.parents;
        parents.retain(|parent| !parent.is_over());
        if parents.iter().any(|parent| parent.is(&process)) {
            return Ok(());
        }
        if parents.len() >= HOLDS_MAX {
            return Err(refuse(ENOSPC));
        }
        parents.push(process, GFP_ATOMIC)?;
        Ok(())
    }

    fn expect(&mut self, name: [u8; NAME_SIZE]) -> Result<(), Refusal> {
        if name.first() == Some(&0) || CStr::from_bytes_until_nul(&name).is_err() {
            return Err(refuse(EINVAL));
        }
        self.tell()?;
        let mut asked = self.holds.asked.lock();
        if !asked.names.contains(&name) {
            if asked.names.len() >= NAMES_MAX {
                return Err(Refusal::new(
                    ENOSPC,
                    "too many names of processes to wait for",
                ));
            }
            asked.names.push(name, GFP_ATOMIC)?;
        }
        Ok(())
    }

    fn look_out(&mut self, process: Option<Process>, wait: u32) -> Result<(), Refusal> {
        if wait > WAIT_MS {
            return Err(refuse(EINVAL));
        }
        self.framework.desk.listen(&self.holds)?;
        if self.mappings.is_none() {
            let mappings = &self.framework.lookout.mappings;
            self.mappings = Some(mappings.join(self.ear(), self.sees_all())?);
        }
        // The last step, so that a refused call asks for nothing.
        self.holds.files.ask(process, wait)?;
        Ok(())
    }

    /// Removes the watches of processes that have ended.
    fn forget(&mut self) {
        for watch in &mut self.watches {
            watch.is_over = watch.process.is_over();
        }
        self.ignore(|watch| watch.is_over);
        self.watches.retain(|watch| !watch.is_over);
    }

    /// Removes the breakpoints of some watches, all with one wait. Takes the framework's mutex.
    fn ignore(&self, which: impl Fn(&Watch) -> bool) {
        let which = self.watches.iter().filter(|watch| which(watch));
        let mut posts = which
            .map(|watch| (&watch.process, watch.address))
            .peekable();
        if posts.peek().is_some() {
            let state = self.framework.state.lock();
            state.ignore(&mut posts, &self.ear());
        }
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        self.holds.close();
        self.framework.desk.ignore(&self.holds);
        self.ignore(|_| true);
        self.telling = None;
        self.mappings = None;
        // A hook that is running has found the list closed, so its process does not wait.
        self.holds.asked.lock().parents.clear();
    }
}

/// What a call requests, with everything that had to be found out for it.
enum Wish {
    /// A process waits at an instruction.
    Instruction(Process, Post),
    /// The children of a process wait.
    Fork(Process),
    /// Processes wait that execute a program and have this name then.
    Exec([u8; NAME_SIZE]),
    /// A process that maps unknown files waits, or all processes do, for so many ms.
    Map(Option<Process>, u32),
}

/// Finds out what a call requests. May wait for the process.
fn wish(owned: &OwnedConsumer, request: &hold::Hold) -> Result<Wish, Refusal> {
    Ok(match request.kind {
        hold::INSTRUCTION => {
            let process = owned.process(request.pid)?;
            let post = post(owned, &process, request)?;
            Wish::Instruction(process, post)
        }
        hold::FORK => Wish::Fork(owned.process(request.pid)?),
        hold::EXEC => Wish::Exec(request.name),
        hold::MAP => {
            let process = match request.pid {
                0 => None,
                pid => Some(owned.process(pid)?),
            };
            Wish::Map(process, request.wait)
        }
        _ => return Err(refuse(EINVAL)),
    })
}

/// Returns the place at which a process is to wait. It has a reference to the process of its own,
/// because it may live longer than the watch.
fn post(owned: &OwnedConsumer, process: &Process, request: &hold::Hold) -> Result<Post, Refusal> {
    let consumer = &owned.shared;
    let other = Process::find(request.pid)?;
    if !process.is(&other) {
        return Err(refuse(ESRCH));
    }
    let sees_all = consumer.rights.is_none();
    let (text, instruction) = instruction_at(&mut Reader::new(process), request.address, sees_all)?;
    Ok(Post {
        process: other,
        address: request.address,
        text,
        instruction,
        is_users: !sees_all,
        payer: consumer.payer.clone(),
    })
}

/// Has processes wait at an event from now on.
#[inline(never)]
pub fn hold(owned: &OwnedConsumer, holding: &Mutex<Holding>, arg: u64) -> Answer {
    let request: hold::Hold = user::get(arg)?;
    let consumer = &owned.shared;
    owned.framework.enter(consumer)?.may_make(consumer)?;
    // Each fork is compared with the requests of each consumer, so this counts as one of a member's
    // few tracings.
    owned.watch()?;
    // The order matters: the wait for a process comes before the turn, and the turn before the lock
    // of the holder. So no other call waits behind a process.
    let wish = wish(owned, &request)?;
    let _turn = consumer.payer.turn().map(Turn::take).transpose()?;
    let mut holding = holding.lock();
    let holder = holding.holder(consumer, &owned.framework)?;
    match wish {
        Wish::Instruction(process, post) => holder.watch(process, post)?,
        Wish::Fork(process) => holder.follow(process)?,
        Wish::Exec(name) => holder.expect(name)?,
        Wish::Map(process, wait) => holder.look_out(process, wait)?,
    }
    Ok(0)
}

/// Tells the consumer of the next process that waits.
pub fn held(owned: &OwnedConsumer, holding: &Mutex<Holding>, arg: u64) -> Answer {
    // Cloned, because the question whether the consumer may trace the process may take long.
    let holds = holding.lock().holds().cloned();
    let next = loop {
        let Ok(holds) = &holds else {
            break hold::Held::default();
        };
        let next = holds.next();
        if next.id == 0 || owned.shared.rights.is_none() || owned.process(next.pid).is_ok() {
            break next;
        }
        // The process looked like one that the consumer may trace, but it may not. It may have gone
        // on already, so an error is ignored.
        if next.id != hold::TOLD {
            let _ = holds.resume(next.id);
        }
    };
    if next.id == 0 {
        let consumer = &owned.shared;
        owned.framework.enter(consumer)?.tidy();
    }
    user::put(arg, &next)?;
    Ok(0)
}

/// Lets a process go on.
pub fn resume(holding: &Mutex<Holding>, arg: u64) -> Answer {
    let id: u64 = user::get(arg)?;
    holding.lock().holds()?.resume(id)?;
    Ok(0)
}

/// Notes that a file has nothing for the consumer.
pub fn known(owned: &OwnedConsumer, holding: &Mutex<Holding>, arg: u64) -> Answer {
    let known: Known = user::get(arg)?;
    let text = owned.process(known.pid)?.text(known.address)?;
    let file = FileId::of(&text).ok_or(EINVAL)?;
    holding.lock().holds()?.files.know(file)?;
    Ok(0)
}

/// Retires probes at instructions that a process has no longer.
pub fn review(owned: &OwnedConsumer, arg: u64) -> Answer {
    let pid: i32 = user::get(arg)?;
    let process = owned.process(pid)?;
    let consumer = &owned.shared;
    let mut state = owned.framework.enter(consumer)?;
    state.may_make(consumer)?;
    state.review(consumer, pid, &process)?;
    Ok(0)
}
