// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The kernel interface that the library needs, as a trait.
//!
//! A [`Device`] is `/dev/dtrace` as the library uses it: probes that can be listed, an image that
//! can be enabled, tracing that is started and stopped, and buffers that are read.
//! [`DevDtrace`] is the real device. Tests put the engine itself behind the trait, so that
//! all of the library runs without a kernel.
//!
//! Invariant: data that a device returns is not trusted to be consistent. Sizes and offsets are
//! checked where they are used.

mod absent;
mod dev_dtrace;
mod error;

pub use absent::Absent;
pub use dev_dtrace::{DevDtrace, PATH};
pub use error::{age, missing, older, open_error};

use dtrace_files::names::printable;
use dtrace_machine::interp::names::Source;
use dtrace_machine::symbols::Remains;
use dtrace_objects::pid::Request;
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

/// One of a CPU's two buffers.
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

/// Error messages name by this what a module lacks that cannot make probes in processes.
pub const PROBES: &str = "probes in processes";
/// The same for a module that cannot hold processes.
pub const HOLDS: &str = "way to hold processes";
/// The same for a module that takes no unwind tables.
pub const TABLES: &str = "tables of programs' stacks";
/// The same for a module that cannot replicate enablings.
pub const REPLICATION: &str = "way to enable clauses for probes that come later";

/// The kernel's side of one consumer.
pub trait Device {
    /// The kernel's DIF machine and the version of its interface.
    fn conf(&self) -> io::Result<Conf>;

    /// The highest number that a CPU can have, plus one.
    fn cpus(&self) -> u32;

    /// Looks up the provider `name`.
    fn provider(&self, name: &str) -> io::Result<Option<ProviderDesc>>;

    /// Returns the first probe with an ID greater than `pattern.id` that matches `pattern`'s globs.
    fn next_probe(&self, pattern: &ProbeDesc) -> io::Result<Option<ProbeDesc>>;

    /// Returns the type of argument `index` of a probe, if it has one.
    fn argument(&self, probe: ProbeId, index: u32) -> io::Result<Option<ArgDesc>>;

    /// Enables a DOF image and returns the number of probes that it enabled. Matching probes that
    /// could not be enabled are listed by [`reason`](Self::reason).
    fn enable(&self, dof: &[u8]) -> io::Result<u32>;

    /// Makes probes in a process. If an error concerns one of the instructions, it carries its
    /// index. A device need not support such probes.
    fn make_probes(&self, _pid: u32, _request: &Request) -> Result<(), (Option<u32>, io::Error)> {
        Err((None, missing(PROBES, None)))
    }

    /// Returns the ID that the process `pid` has in records.
    fn number(&self, pid: u32) -> io::Result<u32> {
        Ok(pid)
    }

    /// Returns the first registration of a process after the one with the number `after`. A device
    /// need not know registrations.
    fn registered(&self, _pid: u32, _after: u32) -> io::Result<Option<(Registered, Vec<u8>)>> {
        Ok(None)
    }

    /// Removes the probes of a process whose instructions are no longer where they were.
    fn review(&self, _pid: u32) -> io::Result<()> {
        Ok(())
    }

    /// Makes processes wait for us at an event. A device need not support this.
    fn hold(&self, _hold: &Hold) -> io::Result<()> {
        Err(missing(HOLDS, None))
    }

    /// Returns the next process that waits. The ID is 0 if none does.
    fn held(&self) -> io::Result<Held> {
        Ok(Held::default())
    }

    /// Marks a file as known, so that no process waits for it.
    fn known(&self, _known: &Known) -> io::Result<()> {
        Ok(())
    }

    /// Lets a waiting process continue.
    fn resume(&self, _id: u64) -> io::Result<()> {
        Ok(())
    }

    /// Returns a file that a user stack leads into and whose unwind table the kernel does not have.
    /// A device need not support this.
    fn wanted(&self) -> io::Result<Option<File>> {
        Err(missing(TABLES, None))
    }

    /// Gives the unwind table of a file. `changed` is the time of the file's last change when the
    /// table was made, in ns. The table is empty if the file has none.
    fn give_table(&self, _file: &File, _changed: u64, _table: &[u8]) -> io::Result<()> {
        Err(missing(TABLES, None))
    }

    /// Starts to note what processes have mapped when they end, and returns the source of these
    /// mappings. A device need not support this, or may refuse it.
    fn remains(&self) -> io::Result<Option<Box<dyn Remains>>> {
        Ok(None)
    }

    /// Returns the source of the names of frames of interpreted code. A device need not support
    /// this.
    fn frames(&self) -> Option<Box<dyn Source>> {
        None
    }

    /// The descriptor that becomes readable when a process waits.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Enables the clauses of the description `from` for the description `to` as well.
    fn replicate(&self, _from: &ProbeDesc, _to: &ProbeDesc) -> io::Result<()> {
        Err(missing(REPLICATION, None))
    }

    /// Takes back what was [replicated](Self::replicate) for a description. A device that does not
    /// support this keeps it.
    fn retract(&self, _desc: &ProbeDesc) -> io::Result<()> {
        Ok(())
    }

    /// Returns an enabled probe and its records.
    fn enabled_probe(&self, epid: Epid) -> io::Result<(EprobeDesc, Vec<RecDesc>)>;

    /// Returns an aggregation and its records.
    fn aggregation(&self, id: AggId) -> io::Result<(AggDesc, Vec<RecDesc>)>;

    /// Starts tracing. Returns the CPU that fired `BEGIN`.
    fn go(&self) -> io::Result<u32>;

    /// Ends tracing. Returns the CPU that fired `END`.
    fn stop(&self) -> io::Result<u32>;

    /// Returns what happened to the tracing so far.
    fn status(&self) -> io::Result<Status>;

    /// Moves the contents of one buffer of `cpu` into `room` (as much as fits) and returns its
    /// state. `None` if the CPU has no such buffer. The `size` of the result is at most
    /// `room.len()`.
    fn snapshot(&self, which: Buffer, cpu: u32, room: &mut [u8]) -> io::Result<Option<BufDesc>>;

    /// Returns the options that are set. Once tracing has begun, sizes are those for which there
    /// was memory. A device may keep none.
    fn options(&self) -> io::Result<Vec<(Opt, u64)>> {
        Ok(Vec::new())
    }

    /// Returns the file from which the anonymous state that this consumer has claimed was made. A
    /// device need not support anonymous tracing.
    fn anonymous(&self) -> io::Result<Vec<u8>> {
        Err(io::ErrorKind::NotFound.into())
    }

    /// Returns why the last call failed or what it left out, in the kernel's words. Empty if there
    /// is nothing to say.
    fn reason(&self) -> String;
}

/// Returns the text of a C string in a fixed array. Bytes that are not UTF-8 or not printable are
/// replaced.
pub fn text(bytes: &[u8]) -> String {
    let end = bytes
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(bytes.len());
    printable(&String::from_utf8_lossy(&bytes[..end])).into_owned()
}

/// Copies `text` into a fixed array with a terminating NUL. `None` if it is too long.
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
