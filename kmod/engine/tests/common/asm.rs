// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Objects of the engine from DIF as text: the language of [`dtrace_uapi::asm`].

use dtrace_engine::dof::Difo;
use dtrace_uapi::asm::assemble;
pub use dtrace_uapi::asm::{bytes, int, string, Object};
use dtrace_uapi::types::{DifType, DifVar};

pub fn var(id: u32, scope: u8, ty: DifType) -> DifVar {
    DifVar {
        id,
        scope,
        kind: 1,
        ty,
        ..DifVar::default()
    }
}

pub fn array(id: u32, scope: u8, ty: DifType) -> DifVar {
    DifVar {
        kind: 0,
        ..var(id, scope, ty)
    }
}

/// Makes the engine's object.
pub fn difo(object: &Object) -> Difo {
    Difo {
        text: super::copy(&object.text),
        ints: super::copy(&object.ints),
        strings: super::copy(&object.strings),
        vars: super::copy(&object.vars),
        rtype: object.rtype,
    }
}

/// Assembles `text` into an object that returns `rtype` and uses `vars`.
pub fn asm_with(text: &str, rtype: DifType, vars: &[DifVar]) -> Difo {
    let object = assemble(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let object = Object {
        rtype,
        vars: vars.to_vec(),
        ..object
    };
    difo(&object)
}

/// Assembles an object that returns eight bytes by value.
pub fn asm(text: &str) -> Difo {
    asm_with(text, int(8), &[])
}

/// Returns a program that calls `subr`, by name or number, and returns its result. An argument is a
/// number, or `"text"` for a string.
pub fn call_text(subr: &str, args: &[&str]) -> String {
    let mut text = "flushts\n".to_string();
    for arg in args {
        let inner = arg.strip_prefix('"').and_then(|arg| arg.strip_suffix('"'));
        let set = match inner {
            Some(inner) => {
                let escaped = inner.replace('\\', "\\\\").replace('"', "\\\"");
                format!("sets \"{escaped}\"")
            }
            None => format!("setx {arg}"),
        };
        text += &format!("{set}, %r1\n pushtv ctf, %r0, %r1\n");
    }
    text + &format!("call {subr}, %r1\n ret %r1")
}
