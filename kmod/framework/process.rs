// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Probes in processes, as consumers request them.
//!
//! A consumer knows the symbols of a program, and the kernel knows its memory. So the consumer
//! names probes and the addresses of instructions in a process
//! ([`uapi::process`](dtrace_uapi::process)). Here the names are checked, and each address is
//! looked up once: its file, the offset there, and its bytes ([`Order`]). That may wait for the
//! process or for a file system, and is done without the framework's mutex. Then the provider
//! creates the probes, all or none.
//!
//! Such probes belong to the consumers that have requested them. The provider is notified when a
//! consumer goes, and retires the probes that no other consumer has requested. Retained
//! descriptions of other consumers match these probes only if their provider is a pattern without a
//! number at its end: the number may have been that of another process when the description was
//! written.

use super::consumer::Consumer;
use super::patience::LOOKED_UP;
use super::provider::Provider;
use super::quota::Payer;
use super::registry::Registry;
use super::state::{State, NEEDS_KERNEL};
use super::text::{refuse, Refusal};
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

/// Maximum size of the text that one instruction accounts for, bytes: the names of a probe, and of
/// its arguments' types.
const TEXT_OF_SITE: usize = 4 * FUNCNAMELEN + PROBE_ARGS_MAX * FUNCNAMELEN;

/// Maximum length of the name of a program's own provider, bytes. The process ID, of at most ten
/// digits, and a NUL follow.
const USDT_PROVIDER_MAX: usize = dtrace_uapi::limits::PROVNAMELEN - 11;

/// An instruction of a process.
pub struct Site {
    /// Its address in the process.
    pub address: u64,
    found: Option<(Text, Instruction)>,
}

/// The probes of a process that are to be retired, and the progress of the search for them.
pub struct Stale {
    /// The process ID.
    pub pid: u32,
    /// Which probes.
    pub which: Gone,
    /// Number of the process' probes that were looked at.
    pub looked_at: usize,
}

/// What makes probes stale.
pub enum Gone {
    /// The instructions at these sorted addresses are not there any more.
    Instructions(KVVec<u64>),
    /// The process has removed the registration with this number, to which the probes belong.
    Registration(u32),
}

/// What a consumer has requested, checked as far as that needs no knowledge of instructions.
pub struct Order {
    /// The process ID in the consumer's pid namespace.
    pub pid: u32,
    /// The process.
    pub process: Process,
    /// The consumer.
    pub consumer: ConsumerId,
    /// The consumer, as the one who pays for the probes.
    pub payer: Payer,
    probes: KVVec<Probe>,
    text: KVVec<u8>,
    args: KVVec<Arg>,
    /// The instructions that its probes refer to.
    pub sites: KVVec<Site>,
}

/// Identifies a consumer among all that exist at the same time.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ConsumerId(usize);

impl ConsumerId {
    /// Returns the id of a consumer.
    pub fn of(consumer: &Arc<Consumer>) -> Self {
        Self(core::ptr::from_ref::<Consumer>(consumer) as usize)
    }
}

/// A probe of an [`Order`].
pub struct Ordered<'a> {
    /// One of [`process::ENTRY`] to [`process::LINE`].
    pub kind: u32,
    /// Module, function and name.
    pub names: [&'a [u8]; 3],
    /// Address and size of its function. For a USDT probe, the first is the number of the
    /// registration that it belongs to.
    pub function: (u64, u64),
    /// Its instructions: indices of [`Order::sites`].
    pub sites: core::ops::Range<usize>,
    /// The rest of a USDT probe.
    pub usdt: Option<Usdt<'a>>,
}

/// What a program says of its own probe.
#[derive(Clone, Copy)]
pub struct Usdt<'a> {
    /// The provider's name, without the process ID.
    pub provider: &'a [u8],
    /// Offset in the file of the counter of enablings; 0 if there is none.
    pub semaphore: u64,
    /// Number of arguments.
    pub nargs: usize,
    /// Index of the first of its sites at which the program only tests whether it is enabled.
    pub asks_from: usize,
    /// All arguments of the first site, then those of the next one, and so on.
    pub args: &'a [Arg],
}

impl Order {
    /// Returns how many bytes [`read`](Self::read) takes for a request.
    pub fn memory(request: &Probes) -> usize {
        let size = |n: u32, each: usize| (n as usize).saturating_mul(each);
        size(request.nprobes, size_of::<Probe>())
            .saturating_add(size(request.nsites, size_of::<Site>()))
            .saturating_add(size(request.text_size, 1))
            .saturating_add(size(request.nargs, size_of::<Arg>()))
    }

    /// Reads what `request` points to and looks up its instructions. If an instruction is the
    /// reason of a refusal, its index is left in `failed`. May wait for the process and for file
    /// systems, so the framework's mutex must not be held.
    pub fn read(
        request: &Probes,
        consumer: &Arc<Consumer>,
        failed: &mut u32,
    ) -> Result<Self, Refusal> {
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
        // Bounds what is read by the number of places that the consumer may have: each probe has at
        // least one site, with names of its own.
        consumer.payer.check(nsites)?;
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
        consumer.must_trace(&process)?;
        let sees_all = consumer.rights.is_none();
        let mut order = Self {
            pid: u32::try_from(request.pid).map_err(|_| refuse(ESRCH))?,
            process,
            consumer: ConsumerId::of(consumer),
            payer: consumer.payer.clone(),
            probes,
            text,
            args,
            sites: KVVec::with_capacity(nsites, GFP_KERNEL)?,
        };
        order.look_up(request.sites, nsites, sees_all, failed)?;
        // An instruction or argument belongs to one probe of a call only. So the probes take no
        // more memory than was sent.
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

    /// Looks up the `n` instructions whose addresses are in the array at `list`.
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

    /// Refuses probes of registrations that the process has removed. The caller holds the
    /// framework's mutex until it has made the probes, so no registration is removed in between.
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

    /// Returns the number of probes.
    pub fn len(&self) -> usize {
        self.probes.len()
    }

    /// Returns the `n`th probe; `None` if it is not valid.
    pub fn probe(&self, n: usize) -> Option<Ordered<'_>> {
        let probe = self.probes.get(n)?;
        let name = |from: u32| {
            // No part of a name is longer. Searching all of the text for a NUL, for each name,
            // could take hours.
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

/// Whether a program may give a provider this name: one that a description can spell, and that does
/// not look like the provider of a process' functions.
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

/// Returns the instruction that a process has at an address. Setting a breakpoint reads the file
/// again, with the framework's mutex held. So a member may not have one in a file that a program
/// serves, because that program could hold up all consumers.
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

    /// Returns where it comes from and what it is. Can be taken once.
    pub fn take(&mut self) -> Option<(Text, Instruction)> {
        self.found.take()
    }
}

impl State {
    /// Returns the provider of probes in processes, and its index.
    pub(super) fn processes(&self) -> Result<(u32, Arc<dyn Provider>)> {
        let index = self.index_of_provider(process::PROVIDER.as_bytes());
        let index = index.ok_or(ENODEV)?;
        Ok((index, self.provider_at(index).ok_or(ENODEV)?))
    }

    /// Checks whether a consumer may have probes in processes. A consumer that may not is not told
    /// what a process has, either.
    pub fn may_make(&self, consumer: &Arc<Consumer>) -> Result<(), Refusal> {
        let (index, _) = self.processes()?;
        match self.permits(&consumer.engine, index) {
            true => Ok(()),
            false => Err(Refusal::new(EACCES, NEEDS_KERNEL)),
        }
    }

    /// Makes the probes of `order`, and enables them where descriptions match.
    pub fn make(&mut self, consumer: &Arc<Consumer>, order: Order) -> Result<(), Refusal> {
        let (index, provider) = self.processes()?;
        if order.len() == 0 {
            return Ok(());
        }
        provider.expect(&order);
        self.remove_abandoned(index, &*provider);
        let mut refused = None;
        let made = self.populate_for(index, Some(consumer), |batch| {
            provider.make(order, batch).map_err(|refusal| {
                let errno = refusal.errno;
                refused = Some(refusal);
                errno
            })
        });
        // Some may have taken the place of others' of the same name.
        self.remove_abandoned(index, &*provider);
        match (made, refused) {
            (Ok(()), _) => Ok(()),
            (_, Some(refusal)) => Err(refusal),
            (Err(errno), None) => Err(refuse(errno)),
        }
    }

    /// Retires the probes of processes that ended some time ago.
    pub fn tidy(&mut self) {
        if let Ok((index, provider)) = self.processes() {
            provider.tidy();
            self.remove_abandoned(index, &*provider);
        }
    }

    /// Retires the probes of a process at instructions that have moved or gone, for example with a
    /// library. `E2BIG` if a member has used up the steps of the call.
    pub fn review(
        &mut self,
        consumer: &Consumer,
        pid: i32,
        process: &Process,
    ) -> Result<(), Refusal> {
        let (index, provider) = self.processes()?;
        let patience = consumer.patience(self.occasion);
        // Others may have any number of places there.
        let begin = |places: usize| patience.take(LOOKED_UP.saturating_mul(places as u64));
        let stale = provider.review(pid.unsigned_abs(), process, &begin)?;
        drop(patience);
        self.remove_stale(index, &*provider, stale);
        Ok(())
    }

    /// Retires the probes of a process that belong to a registration.
    pub(super) fn unregister(&mut self, process: &Process, number: u32) -> Result {
        let (index, provider) = self.processes()?;
        // The provider may have the same memory under several process IDs.
        while let Some(stale) = provider.unregister(process, number) {
            self.remove_stale(index, &*provider, stale);
        }
        Ok(())
    }

    fn remove_stale(&mut self, index: u32, provider: &dyn Provider, mut stale: Stale) {
        self.retire_each(index, || provider.leave(&mut stale));
        provider.bury(stale);
    }

    /// Retires the probes that only this consumer had requested. The consumer has gone.
    pub fn forget(&mut self, consumer: &Arc<Consumer>) {
        let Ok((index, provider)) = self.processes() else {
            return;
        };
        provider.forget(ConsumerId::of(consumer));
        self.remove_abandoned(index, &*provider);
    }
}
