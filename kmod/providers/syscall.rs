// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The provider `syscall`: entry and return of every system call.
//!
//! A system call is traced where it is implemented, in its own function: enabling one costs the others nothing, where
//! the kernel's entry tracepoints would slow every system call. The functions are found by address, for some share one (the symbol
//! at `__x64_sys_getppid` is `__do_sys_getppid`).
//!
//! Names and argument types come from the kernel's own descriptions of system calls. `arg0` to `arg5` of an entry are the
//! arguments; `arg0` and `arg1` of a return are the value, and `errno` its error. A call that a signal ends returns an error by
//! which the kernel tells itself what to do about it, before it is known whether the call is made again; a program never sees
//! one, and so the probe tells of `EINTR`.
//!
//! System calls of 32-bit programs, which 64-bit programs can do too (`int $0x80`), have probes of their own, of the module
//! `ia32`; a description without a module means both. They have functions of their own, but for those without
//! arguments: there the task tells at the entry which of the two it is, and the function has two sites. The entry alone
//! decides: a task that executes another program may change sides in its call.
//!
//! An entry whose clauses load memory of the program that is not there yet fires a little later: the function is sent on a detour, where
//! the memory is brought ([`faults`]), and begins when the probe has fired. Calls that miss nothing do not notice.

use super::function::{FunctionProbes, Inside, Shape, Site, OTHER};
use super::KERNEL;
use crate::framework::{
    fire, rehearse, Args, Batch, Failed, FireArgs, Framework, ProbeRef, Provider, Registration,
};
use crate::sys::faults::{self, Span};
use crate::sys::functions;
use crate::sys::regs::Regs;
use crate::sys::syscalls::{self, Syscall};
use dtrace_engine::mem::sort::sort;
use dtrace_uapi::ioctl::{ArgDesc, PRIV_USER};
use dtrace_uapi::types::{Attribute, Class, ProbeId, ProviderAttributes, Stability};
use kernel::alloc::KVVec;
use kernel::prelude::*;
use kernel::sync::{Arc, SetOnce};

/// How 32-bit programs' system calls are called where a probe's description names a module.
const IA32: &[u8] = b"ia32";

/// How system calls fire. Those of 32-bit programs are the [`OTHER`] kind.
struct Calls;

impl Shape for Calls {
    #[inline]
    fn kind() -> usize {
        match syscalls::in_ia32() {
            true => OTHER,
            false => 0,
        }
    }

    #[inline]
    fn entry(kind: usize, probe: ProbeRef, caller: u64, _regs: &Regs) {
        with_args(kind, caller, |args| fire(probe, args));
    }

    const HAS_USERS: bool = true;
    const DEFERS: bool = true;

    fn misses(kind: usize, probe: ProbeRef) -> bool {
        with_args(kind, 0, |args| rehearse(probe, args)).is_some()
    }

    fn late(kind: usize, probe: ProbeRef, caller: u64) {
        with_args(kind, caller, |args| {
            faults::bring_all(|| rehearse(probe, args), Span::fetch);
            fire(probe, args);
        });
    }

    #[inline]
    fn leave(probe: ProbeRef, caller: u64, value: u64) {
        fire_return(probe, caller, value);
    }
}

/// Calls `f` with the arguments of an entry.
#[inline]
fn with_args<R>(kind: usize, caller: u64, f: impl FnOnce(&FireArgs<'_>) -> R) -> R {
    if kind == OTHER {
        let words = syscalls::ia32_args();
        return f(&FireArgs::new(Args::Words(&words)).caller(caller));
    }
    // The function's own argument is the set of registers that the task came with, no more.
    f(&FireArgs::new(Args::Syscall).caller(caller))
}

#[inline]
fn fire_return(probe: ProbeRef, caller: u64, value: u64) {
    let (value, errno) = seen(value);
    let words = [value, value];
    let args = FireArgs::new(Args::Words(&words));
    fire(probe, &args.caller(caller).errno(errno));
}

/// The value that a program sees where a call returns this one, and its error.
#[inline]
fn seen(value: u64) -> (u64, i32) {
    if !(1..4096).contains(&value.wrapping_neg()) {
        return (value, 0);
    }
    let own = [
        ERESTARTSYS,
        ERESTARTNOINTR,
        ERESTARTNOHAND,
        ERESTART_RESTARTBLOCK,
    ];
    let error = value as i32;
    let error = match own.iter().any(|own| own.to_errno() == error) {
        true => EINTR.to_errno(),
        false => error,
    };
    (i64::from(error) as u64, error.wrapping_neg())
}

/// The provider.
struct SyscallProvider {
    functions: FunctionProbes<Calls>,
    known: SetOnce<KVVec<Known>>,
}

/// What is known of a probe: in the order of the ids.
struct Known {
    probe: ProbeId,
    entry: bool,
    /// The types of its arguments.
    types: Option<Syscall>,
}

impl SyscallProvider {
    fn known(&self, probe: ProbeRef) -> Option<&Known> {
        let known = self.known.as_ref()?;
        let at = known.binary_search_by_key(&probe.id(), |k| k.probe);
        known.get(at.ok()?)
    }
}

/// The type of a system call's value.
const VALUE: &[u8] = b"long";

impl Provider for SyscallProvider {
    fn name(&self) -> &'static str {
        "syscall"
    }

    fn attributes(&self) -> ProviderAttributes {
        let evolving = Attribute::new(Stability::Evolving, Stability::Evolving, Class::Common);
        let private = Attribute::new(Stability::Private, Stability::Private, Class::Unknown);
        let isa = Attribute::new(Stability::Unstable, Stability::Unstable, Class::Isa);
        ProviderAttributes {
            provider: evolving,
            module: private,
            func: isa,
            name: evolving,
            args: isa,
        }
    }

    fn privileges(&self) -> u32 {
        PRIV_USER
    }

    fn enable(&self, probes: &[ProbeRef], failed: &mut Failed) {
        self.functions.enable(probes, failed);
    }

    fn disable(&self, probes: &[ProbeRef]) {
        self.functions.disable(probes);
    }

    fn argdesc(&self, probe: ProbeRef, n: u32, desc: &mut ArgDesc) -> bool {
        let Some(known) = self.known(probe) else {
            return false;
        };
        let text = match (known.entry, n) {
            (true, n) => known.types.and_then(|call| call.type_of(n)),
            (false, 0 | 1) => Some(VALUE),
            (false, _) => None,
        };
        let Some(text) = text else {
            return false;
        };
        desc.mapping = n as i32;
        put_type(&mut desc.native, text)
    }
}

/// Writes a type as D reads it: without the marks that the kernel's sources put on pointers to user memory.
fn put_type(field: &mut [u8], text: &[u8]) -> bool {
    let words = text
        .split(|c| *c == b' ')
        .filter(|word| !word.is_empty() && !word.starts_with(b"__"));
    let mut at = 0usize;
    for word in words {
        let gap = usize::from(at > 0);
        let end = at.wrapping_add(gap).wrapping_add(word.len());
        // One byte stays for the NUL.
        if end >= field.len() {
            return false;
        }
        if let (1, Some(blank)) = (gap, field.get_mut(at)) {
            *blank = b' ';
        }
        if let Some(room) = field.get_mut(at.wrapping_add(gap)..end) {
            room.copy_from_slice(word);
        }
        at = end;
    }
    if let Some(rest) = field.get_mut(at..) {
        rest.fill(0);
    }
    at > 0
}

/// Registers the provider and creates its probes, which surround those of the same functions that are `inside`.
pub fn register(framework: &Arc<Framework>, inside: Arc<dyn Inside>) -> Result<Registration> {
    let provider = Arc::new(
        SyscallProvider {
            functions: FunctionProbes::new(Some(inside))?,
            known: SetOnce::new(),
        },
        GFP_KERNEL,
    )?;
    let registration = framework.register(provider.clone())?;
    registration.populate(|batch| {
        let calls = syscalls::all()?;
        let mut known = KVVec::new();
        let functions = &provider.functions;
        functions.add(native(batch, &calls, &mut known)?)?;
        functions.add(ia32(batch, &calls, &mut known)?)?;
        sort(&mut known, |a, b| a.probe < b.probe);
        provider.known.populate(known);
        Ok(())
    })?;
    Ok(registration)
}

/// Creates the probes of 64-bit programs' calls.
fn native(
    batch: &mut Batch<'_>,
    calls: &[Syscall],
    known: &mut KVVec<Known>,
) -> Result<KVVec<Site>> {
    let mut sites = KVVec::new();
    for call in calls {
        let Some(ip) = call.function().and_then(functions::traceable_at) else {
            left_out(call.display());
            continue;
        };
        let site = Site::create(batch, ip, 0, KERNEL, call.name())?;
        know(&site, Some(*call), known)?;
        sites.push(site, GFP_KERNEL)?;
    }
    Ok(sites)
}

/// Creates those of 32-bit programs' calls. The kernel tells no types of them, so that they get those of the 64-bit call of the
/// same name: then `args[]` can be used of both together.
fn ia32(batch: &mut Batch<'_>, calls: &[Syscall], known: &mut KVVec<Known>) -> Result<KVVec<Site>> {
    let mut sites = KVVec::new();
    for call in syscalls::all_ia32()? {
        let Some(ip) = call.function().and_then(functions::traceable_at) else {
            left_out(call.display());
            continue;
        };
        let types = calls.iter().find(|other| other.name() == call.name());
        let site = Site::create(batch, ip, OTHER, IA32, call.name())?;
        know(&site, types.copied(), known)?;
        sites.push(site, GFP_KERNEL)?;
    }
    Ok(sites)
}

fn left_out(name: &str) {
    pr_info!("syscall: {} left out, it cannot be traced\n", name);
}

fn know(site: &Site, types: Option<Syscall>, known: &mut KVVec<Known>) -> Result {
    for (entry, probe) in [true, false].into_iter().zip(site.probes()) {
        let probe = probe.id();
        let new = Known {
            probe,
            entry,
            types,
        };
        known.push(new, GFP_KERNEL)?;
    }
    Ok(())
}
