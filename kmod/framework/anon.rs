// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Anonymous tracing: a consumer without an owner, for the time before there is a userland
//! (INV-24).
//!
//! At the end of its load the module reads a file of DOF images, which `dtrace -A` has written, and
//! enables them by the same functions as [`ENABLE`](dtrace_uapi::ioctl::ENABLE) and
//! [`GO`](dtrace_uapi::ioctl::GO), so the same verification and the same limits apply. Probes of
//! modules that are loaded later are enabled as they appear. Nothing that is wrong here fails the
//! load: the kernel's log gives the reason, and there is no anonymous state.
//!
//! The state waits for a consumer with the option `grabanon`, whose `GO` [claims](super::claim) it.
//! Until then no program asks for its records, and none has to. The bytes of the file are kept with
//! the state: behind the part that the kernel loads they hold the meaning of the records, which the
//! claiming consumer reads back ([`ANONGET`](dtrace_uapi::ioctl::ANONGET)). So the meaning is that
//! of the enabling that runs, whatever has become of the file since.

use super::consumer::{OwnedConsumer, Tracing};
use super::text::{Refusal, Text};
use super::Framework;
use crate::sys::file;
use core::ffi::CStr;
use dtrace_engine::error::Reason;
use dtrace_engine::mem::Boxed;
use dtrace_engine::Enabling;
use dtrace_uapi::dof::Images;
use dtrace_uapi::limits::ANON_MAX;
use kernel::alloc::KVVec;
use kernel::prelude::*;
use kernel::sync::{Arc, Mutex};

/// A running anonymous tracing. Dropping it ends the tracing.
pub struct Anonymous {
    pub(super) consumer: Boxed<OwnedConsumer>,
    pub(super) tracing: Tracing,
    /// The CPU on which `BEGIN` fired.
    pub(super) begin: u32,
    pub(super) file: KVVec<u8>,
}

/// The anonymous state until a consumer claims it.
pub type Unclaimed = Mutex<Option<Anonymous>>;

/// Enables and starts what the file at `path` requests. Returns `None` if that fails, with the
/// reason in the kernel's log, and if there is no file. A missing file is logged only if the
/// administrator has named the path.
pub fn load(framework: &Arc<Framework>, path: &CStr) -> Option<Anonymous> {
    let name = path.to_str().unwrap_or("?");
    let file = match file::read(path, ANON_MAX) {
        Ok(file) => file,
        Err(ENOENT) if file::is_usual(path) => return None,
        Err(ENOENT) => {
            pr_err!("{name}: no such file, so there is no anonymous enabling\n");
            return None;
        }
        Err(why) => {
            let errno = why.to_errno();
            pr_err!("{name}: anonymous enabling cannot be read (error {errno})\n");
            return None;
        }
    };
    let mut note = Text::new();
    match start(framework, file, &mut note) {
        Ok((anonymous, probes)) => {
            pr_info!("{name}: anonymous enabling matched {probes} probes\n");
            if !note.as_str().is_empty() {
                pr_warn!("{name}: {}\n", note.as_str());
            }
            Some(anonymous)
        }
        Err(refusal) => {
            let errno = refusal.errno.to_errno();
            let why = refusal.into_text();
            pr_err!(
                "{name}: anonymous enabling refused (error {errno}): {}\n",
                why.as_str()
            );
            None
        }
    }
}

/// Enables and starts what `file` requests. Also returns how many ECBs that made.
#[inline(never)]
fn start(
    framework: &Arc<Framework>,
    file: KVVec<u8>,
    note: &mut Text,
) -> Result<(Anonymous, u32), Refusal> {
    let consumer = Boxed::new(OwnedConsumer::open(framework.clone())?).map_err(|_| ENOMEM)?;
    let mut probes = 0u32;
    for image in Images::new(&file) {
        let enabling = Enabling::parse(image.map_err(Reason::invalid)?)?;
        probes = probes.saturating_add(consumer.enable(&enabling, note)?);
    }
    let (begin, tracing) = consumer.go()?;
    consumer.shared.need_no_attention();
    let anonymous = Anonymous {
        consumer,
        tracing,
        begin,
        file,
    };
    Ok((anonymous, probes))
}
