// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Anonymous tracing: a consumer that nobody has opened, for the time before there is a userland.
//!
//! When the module is loaded it reads a file of DOF images, which `dtrace -A` has written, and enables them by the very path of
//! [`ENABLE`](dtrace_uapi::ioctl::ENABLE) and [`GO`](dtrace_uapi::ioctl::GO): the same verification, the same limits. What
//! modules that are loaded later bring is enabled as it appears. Nothing of this can fail the module: the kernel's log says what
//! was wrong, and there is no anonymous state.
//!
//! The state waits for a consumer with the option `grabanon`, whose `GO` [claims](super::seat) it. Until then nobody asks for its
//! records, and nobody has to. The file's bytes are kept with it: beside what the kernel loads they hold what the records mean,
//! which whoever claims the state reads back ([`ANONGET`](dtrace_uapi::ioctl::ANONGET)). So the meaning belongs to
//! the enabling that runs, whatever has become of the file.

use super::device::{Attachment, Tracing};
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

/// A running anonymous state. Dropping it ends the tracing.
pub struct Anonymous {
    pub(super) consumer: Boxed<Attachment>,
    pub(super) tracing: Tracing,
    /// The CPU that fired `BEGIN`.
    pub(super) begin: u32,
    pub(super) file: KVVec<u8>,
}

/// The anonymous state until somebody claims it.
pub type Unclaimed = Mutex<Option<Anonymous>>;

/// Traces what the file at `path` asks for. None where there is no file, or, with a word in the kernel's log, where it cannot be
/// done, and where a file that somebody has named is not there.
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

/// Enables and starts what `file` asks for; also tells how many probes that matched.
#[inline(never)]
fn start(
    framework: &Arc<Framework>,
    file: KVVec<u8>,
    note: &mut Text,
) -> Result<(Anonymous, u32), Refusal> {
    let consumer = Boxed::new(Attachment::open(framework.clone())?).map_err(|_| ENOMEM)?;
    let mut probes = 0u32;
    for image in Images::new(&file) {
        let enabling = Enabling::parse(image.map_err(Reason::invalid)?)?;
        probes = probes.saturating_add(consumer.enable(&enabling, note)?);
    }
    let (begin, tracing) = consumer.go()?;
    consumer.tracer.need_no_attention();
    let anonymous = Anonymous {
        consumer,
        tracing,
        begin,
        file,
    };
    Ok((anonymous, probes))
}
