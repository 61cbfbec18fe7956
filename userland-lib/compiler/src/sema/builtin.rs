// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The built-in variables and their types.

use dtrace_types::{Tag, Ty, Types};
use dtrace_uapi::var::{Var, NAMES};

/// Returns the built-in variable of this name.
pub fn find(name: &str) -> Option<Var> {
    Var::named(name)
}

/// Names of all built-in variables that any program may use.
pub fn names() -> impl Iterator<Item = &'static str> {
    let anybodys = NAMES.iter().filter(|(var, _)| *var != Var::Walk);
    anybodys.map(|(_, name)| *name)
}

/// Whether the variable is an array and needs an index.
pub fn is_array(var: Var) -> bool {
    matches!(var, Var::Args | Var::Regs | Var::Uregs | Var::Walk)
}

/// Returns the type of the variable, or of the elements of an array. Elements of `args` only have
/// their raw type here; the type that a program sees depends on the probe.
pub fn ty(var: Var, types: &mut Types<'_>) -> Ty {
    match var {
        Var::Curthread => match types.lookup_tag(Tag::Struct, None, "task_struct") {
            Some(task) => types.pointer_to(task),
            None => types.pointer_to(Ty::VOID),
        },
        Var::Timestamp | Var::Vtimestamp | Var::Ucaller | Var::Regs | Var::Uregs | Var::Walk => {
            Ty::UINT64_T
        }
        Var::Walltimestamp
        | Var::Args
        | Var::Arg0
        | Var::Arg1
        | Var::Arg2
        | Var::Arg3
        | Var::Arg4
        | Var::Arg5
        | Var::Arg6
        | Var::Arg7
        | Var::Arg8
        | Var::Arg9 => Ty::INT64_T,
        Var::Ipl | Var::Epid | Var::Id => Ty::UINT,
        Var::Stackdepth | Var::Ustackdepth => Ty::UINT32_T,
        Var::Caller => Ty::UINTPTR_T,
        Var::Pid | Var::Ppid | Var::Tid => Ty::PID_T,
        Var::Uid => Ty::UID_T,
        Var::Gid => Ty::GID_T,
        Var::Errno | Var::Cpu => Ty::INT,
        Var::Probeprov
        | Var::Probemod
        | Var::Probefunc
        | Var::Probename
        | Var::Execname
        | Var::Zonename
        | Var::Execargs => Ty::STRING,
    }
}
