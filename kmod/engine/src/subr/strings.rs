// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Subroutines that search strings and cut them.
//!
//! A subroutine that finds something in a string returns an address within *that* string. A
//! subroutine that produces a string returns an address in scratch memory.

use super::{arg, optional, result};
use crate::dif::env::{Env, Vm};
use crate::dif::tokens::{Begun, Firing};
use crate::error::Trap;
use crate::machine::Machine;
use crate::text::{json, path, search};
use dtrace_uapi::subr::Subr;

pub(super) fn call<M: Machine>(subr: Subr, env: &mut Env<'_, M>) -> Result<u64, Trap> {
    if subr == Subr::Strtok {
        return strtok(env);
    }
    let at = arg(env, 0);
    let len = match subr {
        Subr::Strlen => return Ok(env.fetch(at, 0, usize::MAX)? as u64),
        _ => env.fetch_text(at, 0)?,
    };
    let second = arg(env, 1);
    match subr {
        Subr::Strchr | Subr::Strrchr => {
            let byte = second as u8;
            let text = env.fetched(0, len);
            let found = match (byte, subr) {
                (0, _) => Some(len),
                (_, Subr::Strchr) => text.iter().position(|b| *b == byte),
                _ => text.iter().rposition(|b| *b == byte),
            };
            Ok(found.map_or(0, |n| at.wrapping_add(n as u64)))
        }
        Subr::Strstr | Subr::Index | Subr::Rindex => {
            let needle = env.fetch_text(second, 1)?;
            let pos = optional(env, 2).map(|pos| i64::from(pos as i32));
            let Vm { tmp, budget, .. } = &mut *env.vm;
            let [text, other] = tmp;
            let text = text.get(..len).unwrap_or(&[]);
            let needle = other.get(..needle).unwrap_or(&[]);
            Ok(match subr {
                Subr::Strstr => {
                    search::strstr(text, needle, budget)?.map_or(0, |n| at.wrapping_add(n as u64))
                }
                Subr::Index => search::index(text, needle, pos.unwrap_or(0), budget)? as u64,
                _ => search::rindex(text, needle, pos, budget)? as u64,
            })
        }
        Subr::Substr => {
            let start = second as i64;
            let size = optional(env, 2).map(|size| size as i64);
            result(env, |env, out| {
                out.extend(search::substr(env.fetched(0, len), start, size));
                true
            })
        }
        Subr::Strjoin => {
            let other = env.fetch_text(second, 1)?;
            result(env, |env, out| {
                out.extend(env.fetched(0, len));
                out.extend(env.fetched(1, other));
                true
            })
        }
        Subr::Json => {
            let path = env.fetch_text(second, 1)?;
            result(env, |env, out| {
                json::find(env.fetched(0, len), env.fetched(1, path), out)
            })
        }
        _ => result(env, |env, out| {
            let text = env.fetched(0, len);
            match subr {
                Subr::Basename => out.extend(path::basename(text)),
                Subr::Dirname => out.extend(path::dirname(text)),
                Subr::Cleanpath => path::cleanpath(text, out),
                Subr::Toupper => text.iter().for_each(|b| out.push(b.to_ascii_uppercase())),
                _ => text.iter().for_each(|b| out.push(b.to_ascii_lowercase())),
            }
            true
        }),
    }
}

/// `strtok()`. An address starts with a new string. NULL continues with the last string of this
/// firing, from the end of its last token. That is before the delimiter, which may not be one of
/// the delimiters of this call.
fn strtok<M: Machine>(env: &mut Env<'_, M>) -> Result<u64, Trap> {
    let (string, delims) = (arg(env, 0), arg(env, 1));
    let firing = Firing {
        probe: env.at.probe,
        number: env.m.firing(),
    };
    if string != 0 {
        let len = env.fetch_text(string, 0)?;
        let Vm { tmp, tokens, .. } = &mut *env.vm;
        tokens.begin(firing, tmp[0].get(..len).unwrap_or(&[]));
    } else if env.vm.tokens.of(firing).is_none() {
        return Err(Trap::bad_addr(0));
    }
    let delims = env.fetch_text(delims, 1)?;
    let Vm {
        tmp,
        tokens,
        budget,
        ..
    } = &mut *env.vm;
    let Some(begun) = tokens.of_mut(firing) else {
        return Ok(0);
    };
    let len = begun.text().len();
    budget.pay(env.m, len.saturating_sub(begun.at))?;
    let delims = tmp[1].get(..delims).unwrap_or(&[]);
    let Some((start, end)) = search::token(begun.text(), delims, begun.at) else {
        begun.at = len;
        return Ok(0);
    };
    begun.at = end;
    result(env, |env, out| {
        let text = env.vm.tokens.of(firing).map_or(&[][..], Begun::text);
        out.extend(text.get(start..end).unwrap_or(&[]));
        true
    })
}
