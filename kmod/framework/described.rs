// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! What a consumer has, described to it: its ECBs, aggregations, formats and options.
//!
//! A description is copied while the engine holds it, and given out only then. If the caller has
//! less room than there are records, it gets as many as fit, and their number.

use super::consumer::OwnedConsumer;
use super::text::{refuse, Answer, Refusal};
use super::user;
use core::mem::size_of;
use dtrace_uapi::ioctl::{AggDesc, EprobeDesc, FmtDesc, RecDesc};
use dtrace_uapi::option::{NAMES, UNSET};
use dtrace_uapi::{dif, dof};
use kernel::alloc::KVVec;
use kernel::prelude::*;
use zerocopy::{Immutable, IntoBytes};

/// Returns an ECB with its records.
#[inline(never)]
pub fn eprobe(owned: &OwnedConsumer, arg: u64) -> Answer {
    let asked: EprobeDesc = user::get(arg)?;
    let (desc, recs) = owned
        .shared
        .engine
        .eprobe(asked.epid, |desc, recs| (*desc, copy(recs)))?;
    put_described(arg, &desc, size_of::<EprobeDesc>(), &recs?, asked.nrecs)
}

/// Returns an aggregation with its records.
#[inline(never)]
pub fn aggdesc(owned: &OwnedConsumer, arg: u64) -> Answer {
    let asked: AggDesc = user::get(arg)?;
    let (mut desc, recs) = owned
        .shared
        .engine
        .aggdesc(asked.id, |desc, recs| (*desc, copy(recs)))?;
    // The kernel does not know these three. The consumer gets back what it has passed.
    (desc.name, desc.varid, desc.flags) = (asked.name, asked.varid, asked.flags);
    put_described(arg, &desc, size_of::<AggDesc>(), &recs?, asked.nrecs)
}

/// Returns a format string.
#[inline(never)]
pub fn format(owned: &OwnedConsumer, arg: u64) -> Answer {
    let mut desc: FmtDesc = user::get(arg)?;
    let text = owned.shared.engine.format(desc.format, |text| {
        let mut copy = KVVec::with_capacity(text.len().saturating_add(1), GFP_KERNEL)?;
        copy.extend_from_slice(text, GFP_KERNEL)?;
        copy.push(0, GFP_KERNEL)?;
        Ok::<_, Error>(copy)
    })??;
    let length = i32::try_from(text.len()).map_err(|_| refuse(E2BIG))?;
    if desc.length >= length {
        user::put(desc.string, text.as_slice())?;
    }
    desc.length = length;
    user::put(arg, &desc)?;
    Ok(0)
}

/// Returns the options as a DOF image: a header, the header of one section, and the options that
/// are set.
#[inline(never)]
pub fn dofget(owned: &OwnedConsumer, arg: u64) -> Answer {
    let room: dof::Hdr = user::get(arg)?;
    let mut options = KVVec::with_capacity(NAMES.len(), GFP_KERNEL).map_err(|_| refuse(ENOMEM))?;
    for (option, _) in NAMES {
        let value = owned.shared.engine.option(*option);
        if value != UNSET {
            let desc = dof::OptDesc {
                option: *option as u32,
                strtab: dof::SECIDX_NONE,
                value,
            };
            options.push(desc, GFP_KERNEL).map_err(|_| refuse(ENOMEM))?;
        }
    }
    let from = size_of::<dof::Hdr>() + size_of::<dof::Sec>();
    let total = from as u64 + options.as_bytes().len() as u64;
    let sec = dof::Sec {
        ty: dof::SecType::OptDesc as u32,
        align: 8,
        flags: dof::SECF_LOAD,
        entsize: size_of::<dof::OptDesc>() as u32,
        offset: from as u64,
        size: options.as_bytes().len() as u64,
    };
    let hdr = dof_header(1, total);
    if room.loadsz >= total {
        user::put(user::offset(arg, size_of::<dof::Hdr>())?, &sec)?;
        user::put(user::offset(arg, from)?, options.as_slice())?;
    }
    user::put(arg, &hdr)?;
    Ok(0)
}

/// Returns the header of an image that the kernel writes, with `secnum` sections and `size` bytes.
fn dof_header(secnum: u32, size: u64) -> dof::Hdr {
    let encoding = if cfg!(target_endian = "little") {
        dof::ENCODE_LSB
    } else {
        dof::ENCODE_MSB
    };
    let mut ident = [0; 16];
    let known = [
        dof::MODEL_LP64,
        encoding,
        dof::VERSION_2,
        dif::DIF_VERSION,
        dif::DIF_NREGS,
        dif::DIF_NTREGS,
    ];
    for (to, from) in ident
        .iter_mut()
        .zip([&dof::MAGIC[..], &known].into_iter().flatten())
    {
        *to = *from;
    }
    dof::Hdr {
        ident,
        flags: 0,
        hdrsize: size_of::<dof::Hdr>() as u32,
        secsize: size_of::<dof::Sec>() as u32,
        secnum,
        secoff: size_of::<dof::Hdr>() as u64,
        loadsz: size,
        filesz: size,
        pad: 0,
    }
}

/// Writes a description and, behind it, as many of its records as there is room for.
fn put_described<T: IntoBytes + Immutable>(
    arg: u64,
    desc: &T,
    size: usize,
    recs: &[RecDesc],
    room: i32,
) -> Answer {
    let n = usize::try_from(room).unwrap_or(0).min(recs.len());
    let some = recs.get(..n).unwrap_or_default();
    user::put(user::offset(arg, size)?, some)?;
    user::put(arg, desc)?;
    Ok(0)
}

fn copy(recs: &[RecDesc]) -> Result<KVVec<RecDesc>, Refusal> {
    let mut copy = KVVec::new();
    copy.extend_from_slice(recs, GFP_KERNEL)
        .map_err(|_| refuse(ENOMEM))?;
    Ok(copy)
}
