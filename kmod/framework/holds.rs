// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Processes that wait for a consumer ([`uapi::hold`](dtrace_uapi::hold)).
//!
//! What a process is about to do, execute what its dynamic linker has just loaded, or begin as a copy of another one, a consumer may
//! have to see first, to make probes there. It is no debugger: nobody is stopped by `ptrace()`, so that debuggers can be there as well.
//! The breakpoint or tracepoint only queues a [`Pause`]; the process comes to wait when it holds nothing of the kernel's, and tells the
//! consumer then.
//!
//! Who waits is listed under a spin lock, for everybody's processes take it: nobody keeps it by not being run. A process leaves the list by
//! itself. When the consumer goes the list is closed: all go on at once, and who comes later does not wait. What would still
//! call in is taken away after that.
//!
//! Who waits by `poll()` or `select()` to hear of them keeps to the [`Bell`] for as long as that takes, so it stays as long as the file.

use super::calls::Answer;
use super::device::Open;
use super::files::{Files, Then};
use super::posts::Post;
use super::process::instruction_at;
use super::quota::{Charge, Payer};
use super::text::{refuse, Refusal};
use super::tracer::Tracer;
use super::user;
use super::Framework;
use crate::sys::audience::{Audience, Crowd, Listener};
use crate::sys::births::{self, Births, Child, Telling};
use crate::sys::mappings::{FileId, Mappings, Maps};
use crate::sys::pause::{Pause, Pid, Waits};
use crate::sys::process::{Process, Reader};
use crate::sys::rights::Rights;
use crate::sys::turn::Turn;
use core::ffi::CStr;
use core::sync::atomic::{AtomicU32, Ordering};
use dtrace_uapi::hold::{self, Known, HOLDS_MAX, NAMES_MAX, NAME_SIZE, WAIT_MS};
use kernel::alloc::{KVVec, KVec};
use kernel::fs::File;
use kernel::new_poll_condvar;
use kernel::prelude::*;
use kernel::sync::poll::{PollCondVar, PollTable};
use kernel::sync::{new_spinlock, Arc, SpinLock};

/// Where the consumer waits to hear of processes.
#[pin_data]
struct Bell {
    #[pin]
    queue: PollCondVar,
}

impl Bell {
    fn new() -> Result<Arc<Self>> {
        let bell = pin_init!(Self {
            queue <- new_poll_condvar!("dtrace::Bell"),
        });
        Arc::pin_init(bell, GFP_KERNEL)
    }

    fn ring(&self) {
        self.queue.notify_all();
    }
}

/// What is shared with the processes.
#[pin_data]
pub struct Holds {
    #[pin]
    list: SpinLock<List>,
    /// Read where nobody may sleep.
    #[pin]
    asked: SpinLock<Asked>,
    #[pin]
    files: Files,
    /// Whose processes; `None`: everybody's.
    rights: Option<Arc<Rights>>,
    bell: Arc<Bell>,
    /// How many went on too early.
    late: AtomicU32,
}

/// Room that is made for those who wait, to begin with.
const LIST_MIN: usize = 8;

/// Who waits.
struct List {
    waiting: KVVec<Entry>,
    last: u64,
    closed: bool,
}

impl List {
    /// Whether there is room for one more, if need be in `room`, which is exchanged for what is used then.
    fn has_room(&mut self, room: &mut KVVec<Entry>) -> bool {
        if self.waiting.len() < self.waiting.capacity() {
            return true;
        }
        if room.capacity() <= self.waiting.len() {
            return false;
        }
        for entry in self.waiting.drain_all() {
            // There is room.
            let _ = room.push_within_capacity(entry);
        }
        core::mem::swap(&mut self.waiting, room);
        true
    }
}

struct Entry {
    id: u64,
    told: bool,
    process: Pid,
    pause: Arc<Pause<Held>>,
}

/// Whose beginnings are asked for.
struct Asked {
    parents: KVec<Process>,
    names: KVec<[u8; NAME_SIZE]>,
}

/// Why a process waits, and for whom.
struct Held {
    holds: Arc<Holds>,
    kind: u32,
    parent: Option<Pid>,
    /// What it has mapped.
    file: Option<FileId>,
}

impl Holds {
    fn new(rights: Option<Arc<Rights>>, bell: Arc<Bell>) -> Result<Arc<Self>> {
        let list = List {
            waiting: KVVec::new(),
            last: 0,
            closed: false,
        };
        let asked = Asked {
            parents: KVec::new(),
            names: KVec::new(),
        };
        Arc::pin_init(
            pin_init!(Self {
                list <- new_spinlock!(list, "dtrace::Holds"),
                asked <- new_spinlock!(asked, "dtrace::Asked"),
                files <- Files::new(),
                rights,
                bell,
                late: AtomicU32::new(0),
            }),
            GFP_KERNEL,
        )
    }

    /// Whether somebody waits that the consumer has not been told of.
    pub fn is_waiting(&self) -> bool {
        self.files.has_told() || self.list.lock().waiting.iter().any(|entry| !entry.told)
    }

    /// Whether the current process may be one to wait. Whether it is one is asked before the consumer is told.
    fn concerns_current(&self) -> bool {
        self.rights.as_ref().is_none_or(|rights| rights.is_likely())
    }

    /// The current process has registered probes, and waits as it does when it maps a file.
    pub(super) fn registered(self: &Arc<Self>) {
        if !self.concerns_current() {
            return;
        }
        match self.files.registered() {
            Then::Waits(ms) => {
                let ear = Ear(self.clone());
                ear.queued(Pause::current(ear.held(hold::MAP, None), ms));
            }
            Then::IsTold => self.bell.ring(),
            Then::IsLost => self.count_late(),
            Then::Nothing => {}
        }
    }

    fn count_late(&self) {
        self.late.fetch_add(1, Ordering::Relaxed);
    }

    /// The next one that the consumer has not been told of.
    fn next(&self) -> hold::Held {
        let mut found = hold::Held::default();
        let told = self.files.next();
        if let Some(pid) = told.as_ref().and_then(Pid::number) {
            found.id = hold::TOLD;
            found.kind = hold::MAP;
            found.pid = pid;
            found.late = self.late.load(Ordering::Relaxed);
            return found;
        }
        let mut list = self.list.lock();
        for entry in list.waiting.iter_mut().filter(|entry| !entry.told) {
            entry.told = true;
            let Some(pid) = entry.process.number() else {
                // Nothing can be done in what cannot be seen.
                entry.pause.end();
                continue;
            };
            let parent = entry.pause.of.parent.as_ref().and_then(Pid::number);
            found.id = entry.id;
            found.kind = entry.pause.of.kind;
            found.pid = pid;
            found.parent = parent.unwrap_or(0);
            break;
        }
        found.late = self.late.load(Ordering::Relaxed);
        found
    }

    fn resume(&self, id: u64) -> Result {
        let list = self.list.lock();
        let entry = list.waiting.iter().find(|entry| entry.id == id);
        entry.ok_or(ENOENT)?.pause.end();
        Ok(())
    }

    fn close(&self) {
        let mut list = self.list.lock();
        list.closed = true;
        let waiting = core::mem::replace(&mut list.waiting, KVVec::new());
        drop(list);
        waiting.iter().for_each(|entry| entry.pause.end());
    }

    fn begin(&self, pause: &Arc<Pause<Held>>) -> Result {
        let process = Pid::current().ok_or(ESRCH)?;
        let mut room = KVVec::new();
        let mut list = loop {
            let mut list = self.list.lock();
            let is_known = pause.of.file.is_some_and(|file| self.files.knows(file));
            if list.closed || is_known {
                pause.end();
                return Ok(());
            }
            if list.has_room(&mut room) {
                break list;
            }
            // What was used before is freed here as well.
            let wanted = list.waiting.len().saturating_mul(2).max(LIST_MIN);
            drop(list);
            room = KVVec::with_capacity(wanted, GFP_KERNEL)?;
        };
        list.last = list.last.saturating_add(1);
        let entry = Entry {
            id: list.last,
            told: false,
            process,
            pause: pause.clone(),
        };
        // There is room.
        let _ = list.waiting.push_within_capacity(entry);
        drop(list);
        self.bell.ring();
        Ok(())
    }
}

impl Waits for Held {
    fn begins(pause: &Arc<Pause<Self>>) {
        let holds = &pause.of.holds;
        if holds.begin(pause).is_err() {
            holds.count_late();
            pause.end();
        }
    }

    fn ends(pause: &Arc<Pause<Self>>, late: bool) {
        let holds = &pause.of.holds;
        if late {
            holds.count_late();
            holds.files.waited_in_vain();
        }
        let mut list = holds.list.lock();
        let waiting = &mut list.waiting;
        let at = waiting.iter().position(|e| Arc::ptr_eq(&e.pause, pause));
        let gone = at.and_then(|at| waiting.remove(at).ok());
        drop(list);
        drop(gone);
    }
}

/// Who hears of what happens in processes.
#[derive(Clone)]
pub struct Ear(Arc<Holds>);

impl Ear {
    /// Whether both are the same consumer's.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The current process has come to an [instruction](super::posts). Interrupts may be off.
    pub fn reached(&self) {
        self.queued(Pause::current(self.held(hold::INSTRUCTION, None), WAIT_MS));
    }

    /// Processes will not wait there any more.
    pub fn lost(&self) {
        self.0.count_late();
    }

    fn held(&self, kind: u32, parent: Option<Pid>) -> Held {
        Held {
            holds: self.0.clone(),
            kind,
            parent,
            file: None,
        }
    }

    fn queued(&self, queued: Result) {
        if queued.is_err() {
            self.0.count_late();
        }
    }
}

impl Births for Ear {
    fn forked(&self, child: &Child<'_>) {
        if !self.0.concerns_current() {
            return;
        }
        let asked = self.0.asked.lock();
        let is_asked = asked.parents.iter().any(Process::is_current);
        drop(asked);
        if is_asked {
            let held = self.held(hold::FORK, Pid::current());
            self.queued(Pause::child(child, held, WAIT_MS));
        }
    }

    fn executed(&self) {
        if !self.0.concerns_current() {
            return;
        }
        let is_called =
            |name: &[u8; NAME_SIZE]| CStr::from_bytes_until_nul(name).is_ok_and(births::is_called);
        let asked = self.0.asked.lock();
        let is_asked = asked.names.iter().any(is_called);
        drop(asked);
        // Who stops it may do so for ever before it comes to wait.
        if is_asked && !births::is_ptraced() {
            self.queued(Pause::current(self.held(hold::EXEC, None), WAIT_MS));
        }
    }
}

impl Maps for Ear {
    fn mapped(&self, file: FileId) {
        if !self.0.concerns_current() {
            return;
        }
        match self.0.files.mapped(file) {
            Then::Nothing => {}
            Then::Waits(ms) => {
                let mut held = self.held(hold::MAP, None);
                held.file = Some(file);
                self.queued(Pause::current(held, ms));
            }
            Then::IsTold => self.0.bell.ring(),
            Then::IsLost => self.0.count_late(),
        }
    }
}

/// What tells of processes that begin.
type Told = Telling<Arc<Crowd<Ear>>>;

/// All consumers that have processes wait when they begin, and when they map files.
pub struct Lookout {
    births: Arc<Audience<Told>>,
    mappings: Arc<Audience<Mappings<Ear>>>,
}

impl Lookout {
    /// None.
    pub fn new() -> Result<Self> {
        Ok(Self {
            births: Audience::new()?,
            mappings: Audience::new()?,
        })
    }
}

/// An instruction at which a process waits.
struct Watch {
    address: u64,
    process: Process,
    is_over: bool,
    _charge: Charge,
}

/// What a consumer has asked for. Dropping it lets everybody go.
pub struct Holder {
    pub(super) holds: Arc<Holds>,
    watches: KVVec<Watch>,
    telling: Option<Listener<Told>>,
    mappings: Option<Listener<Mappings<Ear>>>,
    framework: Arc<Framework>,
    payer: Payer,
}

/// What a file has of processes that wait: what was asked for, until the tracing ends, and where its user hears of them, which is made once.
pub struct Holding {
    holder: Option<Holder>,
    bell: Option<Arc<Bell>>,
}

impl Holding {
    /// Nothing is asked for.
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

    fn holder(&mut self, tracer: &Tracer, framework: &Arc<Framework>) -> Result<&mut Holder> {
        let bell = self.bell()?.clone();
        if self.holder.is_none() {
            self.holder = Some(Holder::new(tracer, framework.clone(), bell)?);
        }
        self.holder.as_mut().ok_or(ENOMEM)
    }

    fn holds(&self) -> Result<&Arc<Holds>> {
        self.holder
            .as_ref()
            .map_or(Err(ENOENT), |holder| Ok(&holder.holds))
    }

    /// Ends what was asked for; dropping it lets everybody go.
    pub fn end(&mut self) -> Option<Holder> {
        if let Some(bell) = &self.bell {
            bell.ring();
        }
        self.holder.take()
    }

    /// Has who polls the file wait; whether somebody waits whom the consumer has not been told of. Without memory to wait by, he does not wait.
    pub fn poll(&mut self, file: &File, table: PollTable<'_>) -> bool {
        let Ok(bell) = self.bell() else {
            return true;
        };
        table.register_wait(file, &bell.queue);
        self.holds().is_ok_and(|holds| holds.is_waiting())
    }
}

impl Holder {
    fn new(tracer: &Tracer, framework: Arc<Framework>, bell: Arc<Bell>) -> Result<Self> {
        Ok(Self {
            holds: Holds::new(tracer.rights.clone(), bell)?,
            watches: KVVec::new(),
            telling: None,
            mappings: None,
            framework,
            payer: tracer.payer.clone(),
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
        // There is room.
        let _ = self.watches.push_within_capacity(watch);
        Ok(())
    }

    /// Tells of processes that begin, from now on.
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
        drop(asked);
        self.tell()?;
        Ok(())
    }

    fn look_out(&mut self, process: Option<Process>, wait: u32) -> Result<(), Refusal> {
        if wait > WAIT_MS {
            return Err(refuse(EINVAL));
        }
        self.holds.files.ask(process, wait)?;
        self.framework.desk.listen(&self.holds)?;
        if self.mappings.is_none() {
            let mappings = &self.framework.lookout.mappings;
            self.mappings = Some(mappings.join(self.ear(), self.sees_all())?);
        }
        Ok(())
    }

    /// Takes away what was asked for of processes that are over.
    fn forget(&mut self) {
        for watch in &mut self.watches {
            watch.is_over = watch.process.is_over();
        }
        self.ignore(|watch| watch.is_over);
        self.watches.retain(|watch| !watch.is_over);
    }

    /// Removes the breakpoints of some, all of them with one wait.
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
        // Who was called meanwhile does not wait.
        self.holds.asked.lock().parents.clear();
    }
}

/// What a call asks for, and what had to be found out for that.
enum Wish {
    /// A process waits at an instruction.
    Instruction(Process, Post),
    /// Children of a process wait.
    Fork(Process),
    /// Who begins to execute what is called so.
    Exec([u8; NAME_SIZE]),
    /// A process that maps files, or everybody, for so many ms.
    Map(Option<Process>, u32),
}

impl Open {
    /// Finds out what a call asks for. It may wait for the process.
    fn wish(&self, request: &hold::Hold) -> Result<Wish, Refusal> {
        Ok(match request.kind {
            hold::INSTRUCTION => {
                let process = self.process(request.pid)?;
                let post = self.post(&process, request)?;
                Wish::Instruction(process, post)
            }
            hold::FORK => Wish::Fork(self.process(request.pid)?),
            hold::EXEC => Wish::Exec(request.name),
            hold::MAP => {
                let process = match request.pid {
                    0 => None,
                    pid => Some(self.process(pid)?),
                };
                Wish::Map(process, request.wait)
            }
            _ => return Err(refuse(EINVAL)),
        })
    }

    /// The place at which a process is to wait. It may outlive what the consumer asks for.
    fn post(&self, process: &Process, request: &hold::Hold) -> Result<Post, Refusal> {
        let tracer = &self.consumer.tracer;
        let other = Process::find(request.pid)?;
        if !process.is(&other) {
            return Err(refuse(ESRCH));
        }
        let sees_all = tracer.rights.is_none();
        let (text, instruction) =
            instruction_at(&mut Reader::new(process), request.address, sees_all)?;
        Ok(Post {
            process: other,
            address: request.address,
            text,
            instruction,
            is_users: !sees_all,
            payer: tracer.payer.clone(),
        })
    }

    /// The process of a number, which the consumer may trace.
    pub(super) fn process(&self, pid: i32) -> Result<Process, Refusal> {
        let process = Process::find(pid)?;
        self.consumer.tracer.must_trace(&process)?;
        Ok(process)
    }

    /// Has processes wait.
    #[inline(never)]
    pub(super) fn hold(&self, arg: u64) -> Answer {
        let request: hold::Hold = user::get(arg)?;
        let tracer = &self.consumer.tracer;
        self.consumer.framework.enter(tracer)?.may_make(tracer)?;
        // Every fork passes by those who may be asked for: a user has few.
        self.consumer.watch()?;
        // Nobody waits for a process with his user's turn or with the holder locked, nor for his turn with the holder locked.
        let wish = self.wish(&request)?;
        let _turn = tracer.payer.turn().map(Turn::take).transpose()?;
        let mut holding = self.holding.lock();
        let holder = holding.holder(tracer, &self.consumer.framework)?;
        match wish {
            Wish::Instruction(process, post) => holder.watch(process, post)?,
            Wish::Fork(process) => holder.follow(process)?,
            Wish::Exec(name) => holder.expect(name)?,
            Wish::Map(process, wait) => holder.look_out(process, wait)?,
        }
        Ok(0)
    }

    /// Tells who waits.
    pub(super) fn held(&self, arg: u64) -> Answer {
        // To ask about a process may take long.
        let holds = self.holding.lock().holds().cloned();
        let next = loop {
            let Ok(holds) = &holds else {
                break hold::Held::default();
            };
            let next = holds.next();
            if next.id == 0
                || self.consumer.tracer.rights.is_none()
                || self.process(next.pid).is_ok()
            {
                break next;
            }
            // It seemed to be one to wait, and is not. It may have gone on by itself.
            if next.id != hold::TOLD {
                let _ = holds.resume(next.id);
            }
        };
        if next.id == 0 {
            let tracer = &self.consumer.tracer;
            self.consumer.framework.enter(tracer)?.tidy();
        }
        user::put(arg, &next)?;
        Ok(0)
    }

    /// Lets one go.
    pub(super) fn resume(&self, arg: u64) -> Answer {
        let id: u64 = user::get(arg)?;
        self.holding.lock().holds()?.resume(id)?;
        Ok(0)
    }

    /// Learns of a file that has nothing for the consumer.
    pub(super) fn known(&self, arg: u64) -> Answer {
        let known: Known = user::get(arg)?;
        let text = self.process(known.pid)?.text(known.address)?;
        let file = FileId::of(&text).ok_or(EINVAL)?;
        self.holding.lock().holds()?.files.know(file)?;
        Ok(0)
    }

    /// Removes probes of what a process has not any more.
    pub(super) fn review(&self, arg: u64) -> Answer {
        let pid: i32 = user::get(arg)?;
        let process = self.process(pid)?;
        let tracer = &self.consumer.tracer;
        let mut state = self.consumer.framework.enter(tracer)?;
        state.may_make(tracer)?;
        state.review(pid, &process)?;
        Ok(0)
    }
}
