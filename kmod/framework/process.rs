// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Probes in processes, as consumers ask for them.
//!
//! A consumer knows the symbols of a program, the kernel knows its memory. So the consumer names probes and the addresses of
//! instructions in a process ([`uapi::process`](dtrace_uapi::process)); here the names are checked, and each address is looked up
//! once: which file, where in it, which bytes ([`Order`]). That may wait for that process or for a file system, and is done
//! without the framework's mutex. Then the provider creates the probes, all or none.
//!
//! Such probes are a consumer's: the provider is told when it goes, and gives back what nobody else has asked for. Others' retained
//! descriptions match them only where their provider is a pattern without a number: a number may have been another process' when they
//! were written.

use super::provider::Provider;
use super::quota::Payer;
use super::registry::Registry;
use super::state::{State, NEEDS_KERNEL};
use super::text::{refuse, Refusal};
use super::tracer::Tracer;
use super::user;
use crate::sys::arch::program::Instruction;
use crate::sys::process::{Process, Reader, Text, CODE_MAX};
use crate::sys::task;
use core::ffi::CStr;
use dtrace_uapi::limits::FUNCNAMELEN;
use dtrace_uapi::process::{
    self, Arg, Probe, Probes, ANSWER, ARGS_MAX, FLOAT, NO_REGISTER, PROBES_MAX, PROBE_ARGS_MAX,
    SITES_MAX, TEXT_MAX, VECTOR,
};
use kernel::alloc::KVVec;
use kernel::prelude::*;
use kernel::sync::Arc;
use zerocopy::{FromZeros, IntoBytes};

/// Most text that a probe at one instruction has, and the names of arguments' types.
const TEXT_OF_SITE: usize = 4 * FUNCNAMELEN + PROBE_ARGS_MAX * FUNCNAMELEN;

/// Longest name of a program's own provider; with the number of a process, ten digits, it is a provider's name.
const USDT_PROVIDER_MAX: usize = dtrace_uapi::limits::PROVNAMELEN - 11;

/// An instruction of a process.
pub struct Site {
    /// Where the process has it.
    pub address: u64,
    found: Option<(Text, Instruction)>,
}

/// Which probes of a process are to be retired, and how many of its probes were looked at for that.
pub struct Stale {
    /// The number of the process.
    pub pid: u32,
    /// Which.
    pub which: Gone,
    /// Probes that were looked at.
    pub looked_at: usize,
}

/// What makes probes stale.
pub enum Gone {
    /// The instructions at these addresses, in order, are not where they were.
    Instructions(KVVec<u64>),
    /// The process has removed the registration that they go with.
    Registration(u32),
}

/// What a consumer has asked for, as far as it can be checked without knowing instructions.
pub struct Order {
    /// The number of the process, as the consumer knows it.
    pub pid: u32,
    /// The process.
    pub process: Process,
    /// The consumer.
    pub consumer: ConsumerId,
    /// The same, as who pays for what is made.
    pub payer: Payer,
    probes: KVVec<Probe>,
    text: KVVec<u8>,
    args: KVVec<Arg>,
    /// The instructions that its probes refer to.
    pub sites: KVVec<Site>,
}

/// A consumer, told from all others that there are at the same time.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ConsumerId(usize);

impl ConsumerId {
    /// That of a consumer.
    pub fn of(tracer: &Arc<Tracer>) -> Self {
        Self(core::ptr::from_ref::<Tracer>(tracer) as usize)
    }
}

/// A probe of an [`Order`].
pub struct Ordered<'a> {
    /// One of [`process::ENTRY`] to [`process::LINE`].
    pub kind: u32,
    /// Module, function and name.
    pub names: [&'a [u8]; 3],
    /// Where its function begins, and how long it is. Of a USDT probe: the registration that it goes with.
    pub function: (u64, u64),
    /// Its instructions: indices of [`Order::sites`].
    pub sites: core::ops::Range<usize>,
    /// What a USDT probe has besides.
    pub usdt: Option<Usdt<'a>>,
}

/// What a program says of its own probe.
#[derive(Clone, Copy)]
pub struct Usdt<'a> {
    /// The provider, without the number of the process.
    pub provider: &'a [u8],
    /// Where the counter of those is who have enabled it; 0 for none.
    pub semaphore: u64,
    /// How many arguments it has.
    pub nargs: usize,
    /// The first of its sites at which the program only asks whether it is enabled.
    pub asks_from: usize,
    /// Those of its first site, of its second and so on.
    pub args: &'a [Arg],
}

impl Order {
    /// Reads what `request` points to. Where one of the instructions is the reason of a refusal its index is in `failed`.
    pub fn read(request: &Probes, tracer: &Arc<Tracer>, failed: &mut u32) -> Result<Self, Refusal> {
        let sizes = [
            (request.nprobes as usize, PROBES_MAX),
            (request.nsites as usize, SITES_MAX),
            (request.text_size as usize, TEXT_MAX),
            (request.nargs as usize, ARGS_MAX),
        ];
        if sizes.iter().any(|(size, most)| size > most) {
            return Err(Refusal::new(E2BIG, "too many probes in one call"));
        }
        let [(nprobes, _), (nsites, _), (text_size, _), (nargs, _)] = sizes;
        // Every probe has a site, and names of its own at most; so what is read is no more than what may be had is worth.
        tracer.payer.check(nsites)?;
        if nprobes > nsites || text_size / TEXT_OF_SITE > nsites || nargs / PROBE_ARGS_MAX > nsites
        {
            return Err(Refusal::new(EINVAL, "more is sent than the probes need"));
        }
        let mut probes = KVVec::from_elem(Probe::new_zeroed(), nprobes, GFP_KERNEL)?;
        user::read(request.probes, probes.as_mut_bytes())?;
        let mut text = KVVec::from_elem(0u8, text_size, GFP_KERNEL)?;
        user::read(request.text, &mut text)?;
        let mut args = KVVec::from_elem(Arg::new_zeroed(), nargs, GFP_KERNEL)?;
        user::read(request.args, args.as_mut_bytes())?;
        let process = Process::find(request.pid)?;
        tracer.must_trace(&process)?;
        let sees_all = tracer.rights.is_none();
        let mut order = Self {
            pid: u32::try_from(request.pid).map_err(|_| refuse(ESRCH))?,
            process,
            consumer: ConsumerId::of(tracer),
            payer: tracer.payer.clone(),
            probes,
            text,
            args,
            sites: KVVec::with_capacity(nsites, GFP_KERNEL)?,
        };
        order.look_up(request.sites, nsites, sees_all, failed)?;
        // No instruction or argument is of two probes of a call, so that these take no more memory than was sent.
        let (mut left, mut args_left) = (nsites, nargs);
        let mut is_good = |n: usize| {
            let Some(probe) = order.probe(n) else {
                return false;
            };
            let args = probe.usdt.map_or(0, |usdt| usdt.args.len());
            match (
                left.checked_sub(probe.sites.len()),
                args_left.checked_sub(args),
            ) {
                (Some(rest), Some(args_rest)) => (left, args_left) = (rest, args_rest),
                _ => return false,
            }
            true
        };
        if !(0..nprobes).all(&mut is_good) {
            return Err(Refusal::new(
                EINVAL,
                "a probe's names or instructions are not there",
            ));
        }
        Ok(order)
    }

    /// Looks up the `n` instructions whose addresses are listed at `list`.
    fn look_up(
        &mut self,
        list: u64,
        n: usize,
        sees_all: bool,
        failed: &mut u32,
    ) -> Result<(), Refusal> {
        let mut addresses = KVVec::from_elem(0u64, n, GFP_KERNEL)?;
        user::read(list, addresses.as_mut_bytes())?;
        let mut reader = Reader::new(&self.process);
        for (at, address) in addresses.iter().enumerate() {
            if task::is_killed() {
                return Err(refuse(EINTR));
            }
            let site = Site::find(&mut reader, *address, sees_all);
            let site = site.inspect_err(|_| *failed = at as u32)?;
            self.sites.push(site, GFP_KERNEL)?;
        }
        Ok(())
    }

    /// Refuses probes that go with what the process has not registered any more. The state is locked, so nobody removes a registration and
    /// then looks for its probes in between.
    pub(super) fn check(&self, registry: &Registry) -> Result<(), Refusal> {
        let mut probes = self
            .probes
            .iter()
            .filter(|p| p.kind == process::USDT && p.start != 0);
        let has = |number: u64| {
            u32::try_from(number).is_ok_and(|number| registry.has(&self.process, number))
        };
        match probes.all(|probe| has(probe.start)) {
            true => Ok(()),
            false => Err(Refusal::new(ENOENT, "the process has removed its probes")),
        }
    }

    /// How many probes there are.
    pub fn len(&self) -> usize {
        self.probes.len()
    }

    /// One of them.
    pub fn probe(&self, n: usize) -> Option<Ordered<'_>> {
        let probe = self.probes.get(n)?;
        let name = |from: u32| {
            // No part of a name is longer; to look for its end any farther could take hours.
            let text = self.text.get(from as usize..)?;
            let text = text.get(..FUNCNAMELEN).unwrap_or(text);
            Some(CStr::from_bytes_until_nul(text).ok()?.to_bytes())
        };
        let first = probe.first as usize;
        let end = first.checked_add(probe.nsites as usize)?;
        let many = matches!(probe.kind, process::RETURN | process::USDT);
        let is_good = probe.kind <= process::LINE
            && end <= self.sites.len()
            && (probe.nsites == 1 || many && probe.nsites > 0);
        let usdt = match probe.kind {
            process::USDT => Some(self.usdt(probe, name(probe.provider)?)?),
            _ => None,
        };
        is_good.then_some(Ordered {
            usdt,
            kind: probe.kind,
            names: [name(probe.module)?, name(probe.func)?, name(probe.name)?],
            function: (probe.start, probe.size),
            sites: first..end,
        })
    }

    fn usdt<'a>(&'a self, probe: &Probe, provider: &'a [u8]) -> Option<Usdt<'a>> {
        let nargs = probe.nargs as usize;
        let first = probe.first_arg as usize;
        let count = nargs.checked_mul(probe.nsites as usize)?;
        let args = self.args.get(first..first.checked_add(count)?)?;
        let sites = probe.nsites as usize;
        let asks = probe.asks as usize;
        let is_good = nargs <= PROBE_ARGS_MAX && asks <= sites && args.iter().all(is_argument);
        (is_good && is_provider(provider)).then_some(Usdt {
            provider,
            semaphore: probe.semaphore,
            nargs,
            asks_from: sites.saturating_sub(asks),
            args,
        })
    }
}

/// Whether a program may call a provider so: what a description can spell, and not as those of functions are called.
fn is_provider(name: &[u8]) -> bool {
    let is_spelled = |c: &u8| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-' | b'.');
    let len = name.len();
    (1..=USDT_PROVIDER_MAX).contains(&len)
        && name.iter().all(is_spelled)
        && !name.last().is_some_and(u8::is_ascii_digit)
        && name != process::PROVIDER.as_bytes()
}

/// The register of a function's result.
const RESULT: u8 = 0;

fn is_argument(arg: &Arg) -> bool {
    let is_register = |n: u8| n < 16 || n == NO_REGISTER;
    let is_vector = (VECTOR..VECTOR + 16).contains(&arg.base)
        && arg.index == NO_REGISTER
        && arg.is_loaded == 0
        && arg.is_high == 0;
    (is_register(arg.base) || is_vector)
        && is_register(arg.index)
        && arg.shift <= 3
        && arg.form <= FLOAT
        && (arg.form != ANSWER || arg.base == RESULT)
        && matches!(arg.size, 1 | 2 | 4 | 8)
}

/// The instruction that a process has at an address. To set a breakpoint reads the file again, with the framework's mutex held: one who
/// does not see everything, and may himself be whom it is read from, cannot hold up everybody by that.
pub(super) fn instruction_at(
    reader: &mut Reader<'_>,
    address: u64,
    sees_all: bool,
) -> Result<(Text, Instruction), Refusal> {
    let text = reader.text(address).map_err(|error| {
        let why = match error {
            EFAULT => "the process has nothing at the address",
            EACCES => "the process may not execute what is there, or may change it",
            _ => "",
        };
        Refusal::new(error, why)
    })?;
    if !sees_all && text.is_served() {
        let why = "the file is on a file system that a program serves";
        return Err(Refusal::new(EACCES, why));
    }
    let mut code = [0; CODE_MAX];
    let len = reader.read(&text, address, &mut code)?;
    let code = code.get(..len).unwrap_or_default();
    let instruction = Instruction::new(code, reader.process().is_long())
        .map_err(|why| Refusal::with(EINVAL, format_args!("{why}")))?;
    Ok((text, instruction))
}

impl Site {
    fn find(reader: &mut Reader<'_>, address: u64, sees_all: bool) -> Result<Self, Refusal> {
        Ok(Self {
            address,
            found: Some(instruction_at(reader, address, sees_all)?),
        })
    }

    /// Where it comes from, and what it is; once.
    pub fn take(&mut self) -> Option<(Text, Instruction)> {
        self.found.take()
    }
}

impl State {
    /// The provider of processes, and its index.
    pub(super) fn processes(&self) -> Result<(u32, Arc<dyn Provider>)> {
        let index = self.index_of_provider(process::PROVIDER.as_bytes());
        let index = index.ok_or(ENODEV)?;
        Ok((index, self.provider_at(index).ok_or(ENODEV)?))
    }

    /// Whether a consumer may have probes in processes. Who may not is not told either what is in one.
    pub fn may_make(&self, tracer: &Arc<Tracer>) -> Result<(), Refusal> {
        let (index, _) = self.processes()?;
        match self.permits(&tracer.engine, index) {
            true => Ok(()),
            false => Err(Refusal::new(EACCES, NEEDS_KERNEL)),
        }
    }

    /// Makes what `order` asks for, and enables it for its consumer where that has described it.
    pub fn make(&mut self, tracer: &Arc<Tracer>, order: Order) -> Result<(), Refusal> {
        let (index, provider) = self.processes()?;
        if order.len() == 0 {
            return Ok(());
        }
        provider.expect(&order);
        self.remove_abandoned(index, &*provider);
        let mut refused = None;
        let made = self.populate_for(index, Some(tracer), |batch| {
            provider.make(order, batch).map_err(|refusal| {
                let errno = refusal.errno;
                refused = Some(refusal);
                errno
            })
        });
        match (made, refused) {
            (Ok(()), _) => Ok(()),
            (_, Some(refusal)) => Err(refusal),
            (Err(errno), None) => Err(refuse(errno)),
        }
    }

    /// Retires the probes of processes that have been over for a while.
    pub fn tidy(&mut self) {
        if let Ok((index, provider)) = self.processes() {
            provider.tidy();
            self.remove_abandoned(index, &*provider);
        }
    }

    /// Retires the probes of a process whose instructions are not where they were, in a library that has gone, say.
    pub fn review(&mut self, pid: i32, process: &Process) -> Result<(), Refusal> {
        let (index, provider) = self.processes()?;
        let stale = provider.review(pid.unsigned_abs(), process)?;
        self.remove_stale(index, &*provider, stale);
        Ok(())
    }

    /// Retires the probes of a process that go with a registration.
    pub(super) fn unregister(&mut self, process: &Process, number: u32) -> Result {
        let (index, provider) = self.processes()?;
        // A memory may be watched under several numbers.
        while let Some(stale) = provider.unregister(process, number) {
            self.remove_stale(index, &*provider, stale);
        }
        Ok(())
    }

    fn remove_stale(&mut self, index: u32, provider: &dyn Provider, mut stale: Stale) {
        self.retire_each(index, || provider.leave(&mut stale));
        provider.bury(stale);
    }

    /// Removes what was made for a consumer alone, which has gone.
    pub fn forget(&mut self, tracer: &Arc<Tracer>) {
        let Ok((index, provider)) = self.processes() else {
            return;
        };
        provider.forget(ConsumerId::of(tracer));
        self.remove_abandoned(index, &*provider);
    }
}
