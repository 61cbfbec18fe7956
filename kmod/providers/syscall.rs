// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The provider `syscall`: entry and return of every system call.
//!
//! A system call is traced where it is implemented, in its own function: enabling one costs the others nothing, where
//! the kernel's entry tracepoints would slow every system call. The functions are found by address, for some share one (the symbol
//! at `__x64_sys_getppid` is `__do_sys_getppid`). Calls of 32-bit programs have functions of their own and are not seen here.
//!
//! Names and argument types come from the kernel's own descriptions of system calls. `arg0` to `arg5` of an entry are the
//! arguments; `arg0` and `arg1` of a return are the value, and `errno` its error.

use super::function::{FunctionProbes, Shape, Site};
use super::KERNEL;
use crate::framework::{fire, Args, Failed, FireArgs, Framework, ProbeRef, Provider, Registration};
use crate::sys::functions;
use crate::sys::regs::Regs;
use crate::sys::syscalls::{self, Syscall};
use dtrace_engine::mem::sort::sort;
use dtrace_uapi::ioctl::{ArgDesc, PRIV_USER};
use dtrace_uapi::types::{Attribute, Class, ProbeId, ProviderAttributes, Stability};
use kernel::alloc::KVVec;
use kernel::prelude::*;
use kernel::sync::{Arc, SetOnce};

/// How system calls fire.
struct Shapes;

impl Shape for Shapes {
    #[inline]
    fn entry(probe: ProbeRef, caller: u64, _regs: &Regs) {
        // The function's own argument is the set of registers that the task came with, no more.
        fire(probe, &FireArgs::new(Args::Syscall).caller(caller));
    }

    #[inline]
    fn leave(probe: ProbeRef, caller: u64, value: u64) {
        let error = value.wrapping_neg();
        let errno = if (1..4096).contains(&error) {
            error as i32
        } else {
            0
        };
        let words = [value, value];
        let args = FireArgs::new(Args::Words(&words));
        fire(probe, &args.caller(caller).errno(errno));
    }
}

/// The provider.
struct SyscallProvider {
    functions: FunctionProbes<Shapes>,
    types: SetOnce<KVVec<Typed>>,
}

/// A probe whose arguments have the types of a system call's: in the order of the ids.
struct Typed {
    probe: ProbeId,
    entry: bool,
    call: Syscall,
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
        let Some(types) = self.types.as_ref() else {
            return false;
        };
        let Ok(at) = types.binary_search_by_key(&probe.id(), |t| t.probe) else {
            return false;
        };
        let Some(typed) = types.get(at) else {
            return false;
        };
        let text = match (typed.entry, n) {
            (true, n) => typed.call.type_of(n),
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

/// Registers the provider and creates its probes.
pub fn register(framework: &Arc<Framework>) -> Result<Registration> {
    let provider = Arc::new(
        SyscallProvider {
            functions: FunctionProbes::new()?,
            types: SetOnce::new(),
        },
        GFP_KERNEL,
    )?;
    let registration = framework.register(provider.clone())?;
    registration.populate(|batch| {
        let mut sites = KVVec::new();
        let mut types = KVVec::new();
        for call in syscalls::all()? {
            let ip = call.function().and_then(functions::traceable_at);
            let Some(ip) = ip else {
                pr_info!(
                    "syscall: {} left out, it cannot be traced\n",
                    call.display()
                );
                continue;
            };
            let site = Site::create(batch, ip, KERNEL, call.name())?;
            for (entry, probe) in [true, false].into_iter().zip(site.probes()) {
                let probe = probe.id();
                types.push(Typed { probe, entry, call }, GFP_KERNEL)?;
            }
            sites.push(site, GFP_KERNEL)?;
        }
        sort(&mut types, |a, b| a.probe < b.probe);
        provider.types.populate(types);
        provider.functions.add(sites)
    })?;
    Ok(registration)
}
