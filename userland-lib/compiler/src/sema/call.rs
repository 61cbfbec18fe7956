// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Subroutines: their prototypes, and the checks of their arguments.
//!
//! A prototype is less strict than C's types: an address may be given as an integer or a pointer,
//! and a string as anything that text can be read from. The argument is then converted to the form
//! that the DIF machine takes.

use super::Sema;
use crate::diag::{Diagnostic, Result};
use crate::hir::{Expr, ExprKind};
use crate::source::Span;
use crate::syntax::ast;
use dtrace_files::nearest::nearest;
use dtrace_types::{Tag, Ty, Types};
use dtrace_uapi::subr::{Subr, NAMES};

/// What a parameter accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Param {
    /// An integer, which is converted to this type.
    Int(Ty),
    /// An address: an integer or any pointer.
    Address,
    /// Any pointer or string, or an integer that can hold an address.
    Pointer,
    /// A pointer to this structure, or to `void`. Messages show the second name as its type.
    Object(&'static str, &'static str),
    /// A pointer to an integer of this type, or to `void`. Messages show the name as its type.
    Number(Ty, &'static str),
    /// An integer constant, which is converted to this type.
    Constant(Ty),
    /// A string.
    Str,
}

/// What a subroutine returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ret {
    Type(Ty),
    /// A pointer to this structure, or to `void` if the kernel does not have it.
    PointerTo(&'static str),
}

struct Prototype {
    ret: Ret,
    params: &'static [Param],
    /// Number of parameters that must be given.
    required: usize,
}

const fn prototype(ret: Ty, params: &'static [Param]) -> Prototype {
    Prototype {
        ret: Ret::Type(ret),
        params,
        required: params.len(),
    }
}

/// Returns a prototype whose last parameter is optional.
const fn optional(ret: Ty, params: &'static [Param]) -> Prototype {
    Prototype {
        ret: Ret::Type(ret),
        params,
        required: params.len() - 1,
    }
}

const SIZE: Param = Param::Int(Ty::SIZE_T);
const SIZE32: Param = Param::Int(Ty::UINT32_T);
const ANY: Param = Param::Pointer;
const WORD: Param = Param::Int(Ty::UINT64_T);
const MUTEX: &[Param] = &[Param::Object("mutex", "struct mutex *")];
const FRAME: &[Param] = &[
    Param::Address,
    SIZE,
    Param::Address,
    SIZE,
    Param::Int(Ty::UINT32_T),
    Param::Address,
    SIZE,
    Param::Int(Ty::UINT32_T),
];
const TASK: &[Param] = &[Param::Object("task_struct", "struct task_struct *")];
const IN6: Param = Param::Object("in6_addr", "struct in6_addr *");

fn prototype_of(subr: Subr) -> Prototype {
    use Param::{Address, Int, Str};
    match subr {
        Subr::Rand | Subr::Speculation => prototype(Ty::INT, &[]),
        Subr::MutexOwned | Subr::MutexTypeAdaptive | Subr::MutexTypeSpin => {
            prototype(Ty::INT, MUTEX)
        }
        // Accepts any pointer, because Linux has several types of reader-writer locks.
        Subr::RwReadHeld | Subr::RwWriteHeld | Subr::RwIswriter => prototype(Ty::INT, &[ANY]),
        Subr::MutexOwner => Prototype {
            ret: Ret::PointerTo("task_struct"),
            params: MUTEX,
            required: 1,
        },
        Subr::Copyin => prototype(Ty::VOID_POINTER, &[Address, SIZE]),
        Subr::Copyinstr => optional(Ty::STRING, &[Address, SIZE]),
        Subr::Copyinto => prototype(Ty::VOID, &[Address, SIZE, ANY]),
        Subr::Copyout => prototype(Ty::VOID, &[ANY, Address, SIZE]),
        Subr::Copyoutstr => prototype(Ty::VOID, &[Str, Address, SIZE]),
        Subr::Progenyof => prototype(Ty::INT, &[Int(Ty::PID_T)]),
        Subr::Strlen => prototype(Ty::SIZE_T, &[Str]),
        Subr::Alloca => prototype(Ty::VOID_POINTER, &[SIZE]),
        Subr::Bcopy => prototype(Ty::VOID, &[ANY, ANY, SIZE]),
        Subr::Msgdsize | Subr::Msgsize => prototype(Ty::SIZE_T, &[ANY]),
        Subr::Getmajor | Subr::Getminor => prototype(Ty::UINT, &[Int(Ty::UINT64_T)]),
        Subr::DdiPathname => prototype(Ty::STRING, &[ANY, Int(Ty::INT64_T)]),
        Subr::Strjoin | Subr::Strstr | Subr::Strtok | Subr::Json => {
            prototype(Ty::STRING, &[Str, Str])
        }
        Subr::Lltostr => optional(Ty::STRING, &[Int(Ty::INT64_T), Int(Ty::INT)]),
        Subr::Strtoll => optional(Ty::INT64_T, &[Str, Int(Ty::INT)]),
        Subr::Basename | Subr::Dirname | Subr::Cleanpath | Subr::Toupper | Subr::Tolower => {
            prototype(Ty::STRING, &[Str])
        }
        Subr::Strchr | Subr::Strrchr => prototype(Ty::STRING, &[Str, Int(Ty::CHAR)]),
        Subr::Substr => optional(Ty::STRING, &[Str, Int(Ty::INT), Int(Ty::INT)]),
        Subr::Index | Subr::Rindex => optional(Ty::INT, &[Str, Str, Int(Ty::INT)]),
        Subr::Htons | Subr::Ntohs => prototype(Ty::UINT16_T, &[Int(Ty::UINT16_T)]),
        Subr::Htonl | Subr::Ntohl => prototype(Ty::UINT32_T, &[Int(Ty::UINT32_T)]),
        Subr::Htonll | Subr::Ntohll => prototype(Ty::UINT64_T, &[Int(Ty::UINT64_T)]),
        Subr::InetNtop | Subr::LinkNtop => prototype(Ty::STRING, &[Int(Ty::INT), ANY]),
        Subr::InetNtoa => prototype(Ty::STRING, &[Param::Number(Ty::UINT32_T, "ipaddr_t *")]),
        Subr::InetNtoa6 => optional(Ty::STRING, &[IN6, Param::Constant(Ty::INT)]),
        Subr::Getf => Prototype {
            ret: Ret::PointerTo("file"),
            params: &[Int(Ty::INT)],
            required: 1,
        },
        Subr::DPath => prototype(Ty::STRING, &[Param::Object("path", "struct path *")]),
        Subr::Taskargs => prototype(Ty::STRING, TASK),
        Subr::Uuidstr => prototype(Ty::STRING, &[ANY]),
        Subr::Frame => prototype(Ty::VOID, FRAME),
        Subr::Caller => prototype(Ty::VOID, &[WORD, WORD, WORD]),
        Subr::Scope => prototype(Ty::VOID, &[Address, SIZE]),
        Subr::Strip => prototype(Ty::VOID_POINTER, &[ANY, Int(Ty::INT)]),
        // Programs cannot name these. The compiler makes the calls.
        Subr::Outside => prototype(Ty::VOID_POINTER, &[Int(Ty::INT64_T)]),
        Subr::Stack => optional(Ty::STACK, &[SIZE32, SIZE32]),
        Subr::Ustack => optional(Ty::STACK, &[SIZE32, SIZE32, SIZE32]),
        Subr::LdAdd | Subr::LdSub | Subr::LdMul | Subr::LdDiv => {
            prototype(Ty::LONG_DOUBLE, &[ANY, ANY])
        }
        Subr::LdEq | Subr::LdLt | Subr::LdLe => prototype(Ty::INT, &[ANY, ANY]),
        Subr::LdValue | Subr::LdFromDouble | Subr::LdFromSigned | Subr::LdFromUnsigned => {
            prototype(Ty::LONG_DOUBLE, &[ANY])
        }
        Subr::LdToDouble => prototype(Ty::DOUBLE, &[ANY]),
        Subr::LdToSingle => prototype(Ty::FLOAT, &[ANY]),
        Subr::LdToSigned => prototype(Ty::INT64_T, &[ANY]),
        Subr::LdToUnsigned => prototype(Ty::UINT64_T, &[ANY]),
    }
}

/// Returns the subroutine of this name, if any program may call it.
pub fn find(name: &str) -> Option<Subr> {
    Subr::named(name).filter(|subr| is_anybodys(*subr))
}

/// Names of all subroutines that any program may call.
pub fn names() -> impl Iterator<Item = &'static str> {
    let functions = NAMES.iter().filter(|(subr, _)| is_anybodys(*subr));
    functions.map(|(_, name)| *name)
}

fn is_anybodys(subr: Subr) -> bool {
    !subr.is_operator() && !subr.is_walkers()
}

/// Checks the number of arguments of a call. `most` is `None` if the function takes any number.
pub fn check_count(
    name: &str,
    got: usize,
    least: usize,
    most: Option<usize>,
    span: Span,
) -> Result<()> {
    let expected = match most {
        Some(most) if most == least && got != least => least.to_string(),
        _ if got < least => format!("at least {least}"),
        Some(most) if got > most => format!("at most {most}"),
        _ => return Ok(()),
    };
    let plural = if got == 1 { "" } else { "s" };
    let message =
        format!("{name}( ) prototype mismatch: {got} arg{plural} passed, {expected} expected");
    Err(Diagnostic::new("D_PROTO_LEN", span, message))
}

/// Returns the error that an argument, counted from 0, does not match the prototype.
pub fn incompatible(
    name: &str,
    index: usize,
    prototype: &str,
    argument: &str,
    span: Span,
) -> Box<Diagnostic> {
    Diagnostic::new(
        "D_PROTO_ARG",
        span,
        format!(
            "{name}( ) argument #{} is incompatible with prototype:\n\tprototype: {prototype}\n\t argument: {argument}",
            index + 1
        ),
    )
}

impl Param {
    /// Returns the type of the parameter as messages show it.
    fn name(self, types: &Types<'_>) -> String {
        match self {
            Self::Int(ty) | Self::Constant(ty) => types.name(ty),
            Self::Address => types.name(Ty::UINTPTR_T),
            Self::Pointer => "void *".to_owned(),
            Self::Object(_, name) | Self::Number(_, name) => name.to_owned(),
            Self::Str => "char *".to_owned(),
        }
    }

    /// Returns the argument in the form that the DIF machine takes, or `None` if it does not fit.
    fn accept(self, types: &mut Types<'_>, argument: Expr) -> Option<Expr> {
        let ty = argument.ty;
        let target = types.pointee(ty);
        let null = argument.constant() == Some(0) && types.is_scalar(ty);
        match self {
            Self::Int(to) => types.int(ty).map(|_| convert(types, argument, to)),
            Self::Constant(to) => {
                types.int(ty)?;
                argument.constant()?;
                Some(convert(types, argument, to))
            }
            Self::Address if types.int(ty).is_some() => {
                Some(convert(types, argument, Ty::UINTPTR_T))
            }
            // The null pointer fits all of the parameters below, as `strtok()` needs it.
            _ if null => Some(argument.retype(Ty::UINTPTR_T)),
            Self::Address | Self::Pointer if target.is_some() => {
                Some(argument.retype(Ty::UINTPTR_T))
            }
            // The value of a string is its address.
            Self::Pointer if types.is_string(ty) => Some(argument.retype(Ty::UINTPTR_T)),
            Self::Pointer if types.int(ty).is_some_and(|int| int.size == 8) => {
                Some(argument.retype(Ty::UINTPTR_T))
            }
            Self::Object(tag, _) => {
                let target = target?;
                let fits = types.resolve(target) == Ty::VOID
                    || types.tag(target).is_some_and(|(_, known)| known == tag);
                fits.then(|| argument.retype(Ty::UINTPTR_T))
            }
            Self::Number(number, _) => {
                let target = target?;
                let fits = types.resolve(target) == Ty::VOID || types.compatible(target, number);
                fits.then(|| argument.retype(Ty::UINTPTR_T))
            }
            Self::Str if types.is_string_like(ty) => Some(argument.retype(Ty::STRING)),
            _ => None,
        }
    }
}

/// Converts the integer `value` to the type `to`.
fn convert(types: &Types<'_>, value: Expr, to: Ty) -> Expr {
    let span = value.span;
    match (value.constant(), types.int(to)) {
        (Some(constant), Some(int)) => Expr::int(int.normalize(constant), to, span),
        _ => Expr::new(ExprKind::Convert(Box::new(value)), to, span),
    }
}

impl Sema<'_, '_> {
    /// Types a call of a subroutine.
    pub(super) fn subroutine(
        &mut self,
        subr: Subr,
        args: &[ast::Expr],
        span: Span,
    ) -> Result<Expr> {
        let prototype = prototype_of(subr);
        let name = subr.name();
        check_count(
            name,
            args.len(),
            prototype.required,
            Some(prototype.params.len()),
            span,
        )?;
        let mut checked = Vec::with_capacity(args.len());
        for (index, (arg, param)) in args.iter().zip(prototype.params).enumerate() {
            let arg = self.expression(arg)?;
            let (ty, place) = (arg.ty, arg.span);
            let Some(arg) = param.accept(&mut self.state.types, arg) else {
                let wanted = param.name(&self.state.types);
                let given = self.state.types.name(ty);
                return Err(incompatible(name, index, &wanted, &given, place));
            };
            checked.push(arg);
        }
        self.check_memory(subr, &checked, span)?;
        let ret = match prototype.ret {
            Ret::Type(ty) => ty,
            Ret::PointerTo(tag) => {
                let target = self.state.types.lookup_tag(Tag::Struct, None, tag);
                self.state.types.pointer_to(target.unwrap_or(Ty::VOID))
            }
        };
        Ok(Expr::new(ExprKind::Call(subr, checked), ret, span))
    }

    /// Returns the error that no function is called `name`.
    pub(super) fn unknown_function(&self, name: &str, span: Span) -> Box<Diagnostic> {
        if let Some(kind) = self.meaning(name) {
            return super::access::not_as(&kind, name, "function", span);
        }
        let error = Diagnostic::new(
            "D_FUNC_UNDEF",
            span,
            format!("undefined function name: {name}"),
        );
        match nearest(name, names().chain(super::actions::names())) {
            Some(known) => error.note(format!("did you mean `{known}`?")),
            None => error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_subroutine_has_a_name_and_a_prototype() {
        for (subr, name) in NAMES {
            assert_eq!(find(name), Some(*subr).filter(|subr| is_anybodys(*subr)));
            assert!(prototype_of(*subr).required <= prototype_of(*subr).params.len());
        }
        assert_eq!(find("printf"), None);
    }

    #[test]
    fn counts_are_checked_in_words() {
        let message = |got, least, most| {
            check_count("f", got, least, most, Span::default())
                .unwrap_err()
                .message
        };
        assert_eq!(
            message(0, 1, Some(1)),
            "f( ) prototype mismatch: 0 args passed, 1 expected"
        );
        assert_eq!(
            message(1, 2, Some(3)),
            "f( ) prototype mismatch: 1 arg passed, at least 2 expected"
        );
        assert_eq!(
            message(4, 2, Some(3)),
            "f( ) prototype mismatch: 4 args passed, at most 3 expected"
        );
        assert!(check_count("f", 9, 1, None, Span::default()).is_ok());
    }

    #[test]
    fn the_machine_takes_as_many_arguments() {
        for (subr, name) in NAMES {
            let Prototype {
                params, required, ..
            } = prototype_of(*subr);
            let taken = dtrace_engine::subr::spec(*subr);
            let taken = (taken.min.into(), taken.max.into());
            assert_eq!((required, params.len()), taken, "{name}");
        }
    }
}
