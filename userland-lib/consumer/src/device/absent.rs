// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! A machine without DTrace in its kernel: it has no probes, and nothing can be enabled.
//!
//! `-h` and `-G` work on such a machine too, because they make headers and objects for the probes
//! that an application defines itself.

use super::{Buffer, Device};
use dtrace_uapi::dif::{DIF_NREGS, DIF_NTREGS, DIF_VERSION};
use dtrace_uapi::dof::MODEL_LP64;
use dtrace_uapi::ioctl::{
    AggDesc, ArgDesc, BufDesc, Conf, EprobeDesc, ProbeDesc, ProviderDesc, RecDesc, Status,
    INTERFACE,
};
use dtrace_uapi::types::{AggId, Epid, ProbeId};
use std::io;

/// Stands for the device that does not exist.
#[derive(Debug)]
pub struct Absent;

fn absent<T>() -> io::Result<T> {
    Err(io::Error::from_raw_os_error(nix::libc::ENODEV))
}

impl Device for Absent {
    fn conf(&self) -> io::Result<Conf> {
        Ok(Conf {
            difversion: u32::from(DIF_VERSION),
            difintregs: u32::from(DIF_NREGS),
            diftupregs: u32::from(DIF_NTREGS),
            ctfmodel: u32::from(MODEL_LP64),
            interface: INTERFACE,
            ..Conf::default()
        })
    }

    fn cpus(&self) -> u32 {
        1
    }

    fn provider(&self, _name: &str) -> io::Result<Option<ProviderDesc>> {
        Ok(None)
    }

    fn next_probe(&self, _pattern: &ProbeDesc) -> io::Result<Option<ProbeDesc>> {
        Ok(None)
    }

    fn argument(&self, _probe: ProbeId, _index: u32) -> io::Result<Option<ArgDesc>> {
        Ok(None)
    }

    fn enable(&self, _dof: &[u8]) -> io::Result<u32> {
        absent()
    }

    fn enabled_probe(&self, _epid: Epid) -> io::Result<(EprobeDesc, Vec<RecDesc>)> {
        absent()
    }

    fn aggregation(&self, _id: AggId) -> io::Result<(AggDesc, Vec<RecDesc>)> {
        absent()
    }

    fn go(&self) -> io::Result<u32> {
        absent()
    }

    fn stop(&self) -> io::Result<u32> {
        absent()
    }

    fn status(&self) -> io::Result<Status> {
        absent()
    }

    fn snapshot(&self, _: Buffer, _cpu: u32, _room: &mut [u8]) -> io::Result<Option<BufDesc>> {
        absent()
    }

    fn reason(&self) -> String {
        String::new()
    }
}
