// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Subroutines that format network addresses and UUIDs.

use super::{arg, result};
use crate::budget::ADDRESS;
use crate::dif::env::Env;
use crate::error::Trap;
use crate::machine::Machine;
use crate::text::net;
use dtrace_uapi::fault::Fault;
use dtrace_uapi::subr::Subr;

const AF_INET: u64 = 2;
const AF_INET6: u64 = 10;
const ARPHRD_ETHER: u64 = 1;
const ARPHRD_INFINIBAND: u64 = 32;
/// Length of the longest link-layer address, InfiniBand's.
const LINK_MAX: usize = 20;

pub(super) fn call<M: Machine>(subr: Subr, env: &mut Env<'_, M>) -> Result<u64, Trap> {
    let (first, second) = (arg(env, 0), arg(env, 1));
    env.pay(ADDRESS)?;
    match (subr, first) {
        (Subr::InetNtop, AF_INET) => inet4(env, second),
        (Subr::InetNtop, AF_INET6) => inet6(env, second, true),
        (Subr::InetNtoa, at) => inet4(env, at),
        (Subr::InetNtoa6, at) => inet6(env, at, second != 0),
        (Subr::LinkNtop, ARPHRD_ETHER) => link(env, second, 6),
        (Subr::LinkNtop, ARPHRD_INFINIBAND) => link(env, second, LINK_MAX),
        (Subr::Uuidstr, at) => {
            let mut bytes = [0; 16];
            env.view().read(at, &mut bytes)?;
            result(env, |_, out| {
                net::uuid(bytes, out);
                true
            })
        }
        // An address family without a textual form.
        (_, family) => Err(Trap::new(Fault::IllOp, family)),
    }
}

fn inet4<M: Machine>(env: &mut Env<'_, M>, at: u64) -> Result<u64, Trap> {
    let mut bytes = [0; 4];
    env.view().read(at, &mut bytes)?;
    result(env, |_, out| {
        net::inet4(bytes, out);
        true
    })
}

/// Formats the IPv6 address at `at`. Unless `strict`, an embedded IPv4 address is written alone.
fn inet6<M: Machine>(env: &mut Env<'_, M>, at: u64, strict: bool) -> Result<u64, Trap> {
    let mut bytes = [0; 16];
    env.view().read(at, &mut bytes)?;
    result(env, |_, out| {
        match net::embedded(bytes).filter(|_| !strict) {
            Some(within) => net::inet4(within, out),
            None => net::inet6(bytes, out),
        }
        true
    })
}

fn link<M: Machine>(env: &mut Env<'_, M>, at: u64, len: usize) -> Result<u64, Trap> {
    let mut bytes = [0; LINK_MAX];
    let bytes = bytes.get_mut(..len).unwrap_or(&mut []);
    env.view().read(at, bytes)?;
    result(env, |_, out| {
        net::link(bytes, out);
        true
    })
}
