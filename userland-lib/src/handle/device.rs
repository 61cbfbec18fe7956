// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! What the library needs of the kernel, as a trait.
//!
//! [`Device`] is `/dev/dtrace` seen from above: probes that can be listed, an image that can be enabled, tracing
//! that is started and stopped, and buffers that are read. The real one is [`super::DevDtrace`]; tests put the
//! engine itself behind the trait, so that all of the library runs without a kernel.
//!
//! Invariant: nothing that a device returns is trusted to be consistent; sizes and offsets are checked where
//! they are used.

use super::error::missing;
use crate::interp::names::Source;
use crate::names::printable;
use crate::pid::Request;
use crate::symbols::Remains;
use dtrace_uapi::hold::{Held, Hold, Known};
use dtrace_uapi::ioctl::{
    AggDesc, ArgDesc, BufDesc, Conf, EprobeDesc, ProbeDesc, ProviderDesc, RecDesc, Registered,
    Status,
};
use dtrace_uapi::option::Opt;
use dtrace_uapi::types::{AggId, Epid, ProbeId};
use std::fs::File;
use std::os::fd::BorrowedFd;
use std::{fmt, io};

/// Which of a CPU's buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buffer {
    /// The records of probes.
    Principal,
    /// Aggregations.
    Aggregation,
}

impl fmt::Display for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Principal => "principal",
            Self::Aggregation => "aggregation",
        })
    }
}

/// What a module has not got that does not know a control call: as it is told.
pub const PROBES: &str = "probes in processes";
/// Likewise.
pub const HOLDS: &str = "way to hold processes";
/// Likewise.
pub const TABLES: &str = "tables of programs' stacks";
/// Likewise.
pub const REPLICATION: &str = "way to enable clauses for probes that come later";

/// The kernel's side of one consumer.
pub trait Device {
    /// What its DIF machine is like.
    fn conf(&self) -> io::Result<Conf>;

    /// How many CPUs it may ever number.
    fn cpus(&self) -> u32;

    /// The provider `name`, if there is one.
    fn provider(&self, name: &str) -> io::Result<Option<ProviderDesc>>;

    /// The first probe after the one numbered `pattern.id` that matches `pattern`'s globs.
    fn next_probe(&self, pattern: &ProbeDesc) -> io::Result<Option<ProbeDesc>>;

    /// The type of argument `index` of a probe, if it has one.
    fn argument(&self, probe: ProbeId, index: u32) -> io::Result<Option<ArgDesc>>;

    /// Enables a DOF image; how many probes it is at. Those that it should be at and is not are in [`reason`](Self::reason).
    fn enable(&self, dof: &[u8]) -> io::Result<u32>;

    /// Makes probes in a process. Where it is about one of the instructions, an error has its index. A device may have no such probes.
    fn make_probes(&self, _pid: u32, _request: &Request) -> Result<(), (Option<u32>, io::Error)> {
        Err((None, missing(PROBES, None)))
    }

    /// What records say that the number of a process is.
    fn number(&self, pid: u32) -> io::Result<u32> {
        Ok(pid)
    }

    /// What a process has registered after the one with this number. A device may know of no such thing.
    fn registered(&self, _pid: u32, _after: u32) -> io::Result<Option<(Registered, Vec<u8>)>> {
        Ok(None)
    }

    /// Removes the probes of a process whose instructions are not any more where they were.
    fn review(&self, _pid: u32) -> io::Result<()> {
        Ok(())
    }

    /// Has processes wait for us. A device may know of no such thing.
    fn hold(&self, _hold: &Hold) -> io::Result<()> {
        Err(missing(HOLDS, None))
    }

    /// The next process that waits, if one does.
    fn held(&self) -> io::Result<Held> {
        Ok(Held::default())
    }

    /// Has nobody wait for a file any more.
    fn known(&self, _known: &Known) -> io::Result<()> {
        Ok(())
    }

    /// Lets a process go that waits.
    fn resume(&self, _id: u64) -> io::Result<()> {
        Ok(())
    }

    /// A file that a user stack leads into, and of which no table is known. A device may know of no such thing.
    fn wanted(&self) -> io::Result<Option<File>> {
        Err(missing(TABLES, None))
    }

    /// Gives the table by which stacks are walked that lead into a file, as it was when it had been `changed` last, in nanoseconds; empty if
    /// there is none.
    fn give_table(&self, _file: &File, _changed: u64, _table: &[u8]) -> io::Result<()> {
        Err(missing(TABLES, None))
    }

    /// Who tells what processes had mapped, as of now, when they ended. A device may know of no such thing, or not tell us.
    fn remains(&self) -> io::Result<Option<Box<dyn Remains>>> {
        Ok(None)
    }

    /// Who gives the names of frames of interpreted code. A device may know of no such thing.
    fn frames(&self) -> Option<Box<dyn Source>> {
        None
    }

    /// What becomes readable when a process waits.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Enables the clauses of one description for another one as well.
    fn replicate(&self, _from: &ProbeDesc, _to: &ProbeDesc) -> io::Result<()> {
        Err(missing(REPLICATION, None))
    }

    /// Takes back what was [replicated](Self::replicate) for a description. A device may know of no such thing: it keeps that.
    fn retract(&self, _desc: &ProbeDesc) -> io::Result<()> {
        Ok(())
    }

    /// An enabled probe and its records.
    fn enabled_probe(&self, epid: Epid) -> io::Result<(EprobeDesc, Vec<RecDesc>)>;

    /// An aggregation and its records.
    fn aggregation(&self, id: AggId) -> io::Result<(AggDesc, Vec<RecDesc>)>;

    /// Starts tracing; the CPU that fired `BEGIN`.
    fn go(&self) -> io::Result<u32>;

    /// Ends tracing; the CPU that fired `END`.
    fn stop(&self) -> io::Result<u32>;

    /// What happened so far.
    fn status(&self) -> io::Result<Status>;

    /// Moves what one buffer of `cpu` holds into `room` (as much as fits) and tells how it stands; `None` if the
    /// CPU has no such buffer. The description's `size` is at most `room.len()`.
    fn snapshot(&self, which: Buffer, cpu: u32, room: &mut [u8]) -> io::Result<Option<BufDesc>>;

    /// The options that are set, once tracing has begun with the sizes that there was memory for. A device may keep none.
    fn options(&self) -> io::Result<Vec<(Opt, u64)>> {
        Ok(Vec::new())
    }

    /// The file that the anonymous state was made of, which this consumer has claimed. A device may know of no such state.
    fn anonymous(&self) -> io::Result<Vec<u8>> {
        Err(io::ErrorKind::NotFound.into())
    }

    /// Why the last call failed, or what it has left out, in the kernel's words; empty if it has none.
    fn reason(&self) -> String;
}

/// The text of a C string in a fixed array; what is no UTF-8 or not to be printed is replaced.
pub fn text(bytes: &[u8]) -> String {
    let end = bytes
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(bytes.len());
    printable(&String::from_utf8_lossy(&bytes[..end])).into_owned()
}

/// Copies `text` into a fixed array with its NUL; `None` if it is too long.
pub fn fill<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    let room = bytes.get_mut(..text.len())?;
    room.copy_from_slice(text.as_bytes());
    (text.len() < N).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_of_fixed_size() {
        assert_eq!(text(b"ab\0cd"), "ab");
        assert_eq!(text(b"abcd"), "abcd");
        assert_eq!(fill::<4>("abc"), Some(*b"abc\0"));
        assert_eq!(fill::<4>("abcd"), None);
        assert_eq!(fill::<4>("abcde"), None);
    }
}
