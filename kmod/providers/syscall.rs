// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The provider `syscall`: entry and return of every system call.
//!
//! A system call is traced at the function that implements it. So a probe at one call costs the
//! others nothing, whereas the kernel's entry tracepoints would slow down every call. The functions
//! are found by address, because some addresses have several symbols (`__x64_sys_getppid` is also
//! `__do_sys_getppid`).
//!
//! Names and argument types come from the kernel's own descriptions of system calls. `arg0` to
//! `arg5` of an entry are the arguments. `arg0` and `arg1` of a return are the value, and `errno`
//! is its error. A call that a signal interrupts returns an internal error, such as `ERESTARTSYS`,
//! before the kernel decides whether to restart the call. Programs never see these errors, so the
//! probe reports `EINTR`.
//!
//! System calls of 32-bit programs, which 64-bit programs can make too (`int $0x80`), have probes
//! of their own in the module `ia32`. A description without a module means both. These calls have
//! functions of their own, except calls without arguments. Such a function has two sites, and the
//! task shows at the entry which of them the call belongs to. Only the entry is asked, because a
//! task that executes another program may change its mode within the call.
//!
//! If clauses at an entry load memory of the program that is not in memory, the entry fires a
//! little later: the function is sent on a detour, which brings the memory ([`faults`]), fires the
//! probe, and goes on with the function (INV-47). Calls that miss no memory are not affected.

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

/// How system calls fire. Those of 32-bit programs are of the kind [`OTHER`].
struct Calls;

impl Shape for Calls {
    #[inline]
    fn kind() -> usize {
        match syscalls::in_compat() {
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
        let words = syscalls::compat_args();
        return f(&FireArgs::new(Args::Words(&words)).caller(caller));
    }
    // The function's only argument is a pointer to the registers that the task entered the kernel
    // with, so the arguments are read from those registers.
    f(&FireArgs::new(Args::Syscall).caller(caller))
}

#[inline]
fn fire_return(probe: ProbeRef, caller: u64, value: u64) {
    let (value, errno) = seen(value);
    let words = [value, value];
    let args = FireArgs::new(Args::Words(&words));
    fire(probe, &args.caller(caller).errno(errno));
}

/// The value and the error that a program sees when the function returns `value`.
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

/// What is known of a probe. The list is sorted by id.
struct Known {
    probe: ProbeId,
    entry: bool,
    /// The call that has the types of its arguments.
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

/// Writes a type as D reads it, without the annotations of user pointers (`__user`,
/// `__attribute__((btf_type_tag("user")))`). `false`: nothing remains, or the type does not fit.
fn put_type(field: &mut [u8], text: &[u8]) -> bool {
    let words = text
        .split(|c| *c == b' ')
        .filter(|word| !matches!(*word, b"" | b"__user") && !word.starts_with(b"__attribute__"));
    let mut at = 0usize;
    for word in words {
        let gap = usize::from(at > 0);
        let end = at.wrapping_add(gap).wrapping_add(word.len());
        // Leave one byte for the NUL.
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

/// Registers the provider and creates its probes. At functions that both trace, its probes enclose
/// those of `inside`.
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
        functions.add(compat(batch, &calls, &mut known)?)?;
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

/// Creates the probes of 32-bit programs' calls. The kernel has no types for them, so they get
/// those of the 64-bit call of the same name. So `args[]` can be used for both together.
fn compat(
    batch: &mut Batch<'_>,
    calls: &[Syscall],
    known: &mut KVVec<Known>,
) -> Result<KVVec<Site>> {
    let mut sites = KVVec::new();
    for call in syscalls::all_compat()? {
        let Some(ip) = call.function().and_then(functions::traceable_at) else {
            left_out(call.display());
            continue;
        };
        let types = calls.iter().find(|other| other.name() == call.name());
        let site = Site::create(batch, ip, OTHER, syscalls::COMPAT, call.name())?;
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
