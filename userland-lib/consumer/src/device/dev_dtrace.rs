// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! `/dev/dtrace` itself: the ioctls behind [`Device`].
//!
//! This is the only module of the library that passes pointers to the kernel. Each ioctl passes one
//! structure of the contract (`dtrace_uapi`), whose size is encoded in the ioctl's number.
//! Structures that carry an address (snapshots, images) get it from a slice that outlives the call.

#![allow(unsafe_code)]

use super::error::missing;
use super::{fill, text, Buffer, Device, HOLDS, PROBES, REPLICATION, TABLES};
use dtrace_machine::interp::names::Source;
use dtrace_machine::symbols::{Relic, Remains, Remnant};
use dtrace_objects::pid::Request;
use dtrace_uapi::dof::{Hdr, OptDesc, Sec};
use dtrace_uapi::hold::{Held, Hold, Known};
use dtrace_uapi::interp::{Frame, NAMES_MAX};
use dtrace_uapi::ioctl::{
    self, AggDesc, AnonDesc, ArgDesc, BufDesc, Conf, Enable, EprobeDesc, ProbeDesc, ProviderDesc,
    Reason, RecDesc, Registered, ReplDesc, Status, REGISTERED_MAX,
};
use dtrace_uapi::limits::ANON_MAX;
use dtrace_uapi::option::{self, Opt};
use dtrace_uapi::process::Probes;
use dtrace_uapi::remains;
use dtrace_uapi::types::{AggId, Epid, ProbeId};
use dtrace_uapi::unwind::Table;
use nix::errno::Errno;
use nix::libc;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd as _};
use std::path::Path;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

/// The path of the kernel module's device.
pub const PATH: &str = "/dev/dtrace";
/// The device's name if that path is a directory (the module's parameter `layout`).
const WITHIN: &str = "dtrace";

/// Most bytes of an image of options. There are a few dozen options of 16 bytes.
const OPTIONS_MAX: usize = 64 << 10;

/// Room for records in the first attempt. Most probes have fewer.
const RECORDS: usize = 16;

/// An open `/dev/dtrace`: one consumer.
#[derive(Debug)]
pub struct DevDtrace {
    file: File,
    cpus: u32,
}

impl DevDtrace {
    /// Opens the device at `path`, or in the directory of that path.
    pub fn open(path: &Path) -> io::Result<Self> {
        let options = OpenOptions::new().read(true).write(true).clone();
        let file = match options.open(path) {
            Err(error) if error.kind() == io::ErrorKind::IsADirectory => {
                options.open(path.join(WITHIN))
            }
            opened => opened,
        }?;
        Ok(Self {
            file,
            cpus: possible_cpus(),
        })
    }

    /// Makes the ioctl `request`, whose argument is a `T`.
    fn call<T>(&self, request: u32, argument: &mut T) -> Result<(), Errno>
    where
        T: IntoBytes + FromBytes + Immutable + KnownLayout,
    {
        self.call_bytes(request, argument.as_mut_bytes())
    }

    /// Makes the ioctl `request` on bytes. EINVAL if there are fewer than the request's size says.
    fn call_bytes(&self, request: u32, argument: &mut [u8]) -> Result<(), Errno> {
        // Linux' _IOC_SIZE(): 14 bits from bit 16 on.
        let size = (request >> 16 & 0x3fff) as usize;
        if argument.len() < size {
            return Err(Errno::EINVAL);
        }
        // SAFETY: the descriptor is open. The kernel reads and writes `size` bytes at the argument.
        // Calls that return records or options also write behind these, but not more than the room
        // that the head states, and all of that room lies within `argument`. Addresses inside the
        // structures were taken from slices that outlive this call.
        let result = unsafe {
            libc::ioctl(
                self.file.as_raw_fd(),
                request as libc::Ioctl,
                argument.as_mut_ptr(),
            )
        };
        Errno::result(result).map(drop)
    }

    /// As [`call`](Self::call), for an ioctl that early modules do not know. The error then says
    /// that the kernel has no `what`.
    fn call_new<T>(&self, request: u32, argument: &mut T, what: &str) -> io::Result<()>
    where
        T: IntoBytes + FromBytes + Immutable + KnownLayout,
    {
        let called = self.call(request, argument);
        called.map_err(|errno| self.told(errno, what))
    }

    /// Turns the error of an ioctl that the module may not know into one that says so.
    fn told(&self, errno: Errno, what: &str) -> io::Error {
        match errno {
            Errno::ENOTTY => missing(what, self.conf().ok().map(|conf| conf.interface)),
            errno => errno.into(),
        }
    }

    /// Makes an ioctl that fills in a head of type `H` and the records behind it. Repeats it with
    /// more room until all records fit. `nrecs` selects the head's count of records.
    fn call_records<H>(
        &self,
        request: u32,
        mut head: H,
        nrecs: fn(&mut H) -> &mut i32,
    ) -> io::Result<(H, Vec<RecDesc>)>
    where
        H: IntoBytes + FromBytes + Immutable + KnownLayout + Copy,
    {
        let original = head;
        let mut room = RECORDS;
        loop {
            head = original;
            *nrecs(&mut head) = i32::try_from(room).map_err(|_| Errno::EINVAL)?;
            let mut bytes = head.as_bytes().to_vec();
            bytes.resize(size_of::<H>() + room * size_of::<RecDesc>(), 0);
            self.call_bytes(request, &mut bytes)?;
            let (mut head, rest) = H::read_from_prefix(&bytes).map_err(|_| Errno::EINVAL)?;
            let count = usize::try_from(*nrecs(&mut head)).map_err(|_| Errno::EINVAL)?;
            if count > room {
                if count > dtrace_uapi::limits::ACTIONS_MAX {
                    return Err(Errno::EINVAL.into());
                }
                room = count;
                continue;
            }
            let mut records = vec![RecDesc::new_zeroed(); count];
            let bytes = &rest[..count * size_of::<RecDesc>()];
            records.as_mut_bytes().copy_from_slice(bytes);
            return Ok((head, records));
        }
    }
}

impl Remains for DevDtrace {
    fn next(&self, pid: u32, after: u64) -> io::Result<Option<Remnant>> {
        let mut next = remains::Remains {
            after,
            pid,
            ..remains::Remains::default()
        };
        match self.call(ioctl::REMAINS, &mut next) {
            Err(Errno::ENOENT) => return Ok(None),
            done => done?,
        }
        Ok(Some(Remnant {
            number: next.after,
            start: next.start,
            end: next.end,
            offset: next.offset,
            is_code: next.is_code != 0,
            of: match next.kind {
                // SAFETY: the kernel has just opened this descriptor for us, and nothing else owns
                // it.
                remains::FILE => Relic::File(unsafe { File::from_raw_fd(next.fd) }),
                remains::VDSO => Relic::Vdso,
                _ => Relic::Nothing,
            },
        }))
    }
}

impl Source for DevDtrace {
    fn names(&self, number: u32) -> Option<Vec<u8>> {
        let mut names = vec![0; NAMES_MAX];
        let mut request = Frame {
            name: number,
            size: NAMES_MAX as u32,
            bytes: names.as_mut_ptr() as u64,
        };
        self.call(ioctl::FRAME, &mut request).ok()?;
        Some(names)
    }
}

impl Device for DevDtrace {
    fn conf(&self) -> io::Result<Conf> {
        let mut conf = Conf::default();
        self.call(ioctl::CONF, &mut conf)?;
        Ok(conf)
    }

    fn cpus(&self) -> u32 {
        self.cpus
    }

    fn provider(&self, name: &str) -> io::Result<Option<ProviderDesc>> {
        let mut desc = ProviderDesc::new_zeroed();
        let Some(name) = fill(name) else {
            return Ok(None);
        };
        desc.name = name;
        found(self.call(ioctl::PROVIDER, &mut desc), desc)
    }

    fn next_probe(&self, pattern: &ProbeDesc) -> io::Result<Option<ProbeDesc>> {
        let mut desc = *pattern;
        let result = self.call(ioctl::PROBEMATCH, &mut desc);
        found(result, desc)
    }

    fn argument(&self, probe: ProbeId, index: u32) -> io::Result<Option<ArgDesc>> {
        let mut desc = ArgDesc::new_zeroed();
        desc.id = probe;
        desc.ndx = i32::try_from(index).map_err(|_| Errno::EINVAL)?;
        let result = self.call(ioctl::PROBEARG, &mut desc);
        Ok(found(result, desc)?.filter(|desc| desc.ndx != ioctl::ARG_NONE))
    }

    fn enable(&self, dof: &[u8]) -> io::Result<u32> {
        let mut enable = Enable {
            dof: dof.as_ptr() as u64,
            ..Enable::default()
        };
        self.call(ioctl::ENABLE, &mut enable)?;
        Ok(enable.n_matched)
    }

    fn make_probes(&self, pid: u32, request: &Request) -> Result<(), (Option<u32>, io::Error)> {
        let Request {
            probes,
            sites,
            text,
            args,
            ..
        } = request;
        let too_many = |_| (None, io::Error::from(Errno::E2BIG));
        let mut argument = Probes {
            pid: i32::try_from(pid).map_err(too_many)?,
            nprobes: u32::try_from(probes.len()).map_err(too_many)?,
            nsites: u32::try_from(sites.len()).map_err(too_many)?,
            text_size: u32::try_from(text.len()).map_err(too_many)?,
            probes: probes.as_ptr() as u64,
            sites: sites.as_ptr() as u64,
            text: text.as_ptr() as u64,
            failed: u32::MAX,
            nargs: u32::try_from(args.len()).map_err(too_many)?,
            args: args.as_ptr() as u64,
        };
        let made = self.call(ioctl::MAKEPROBES, &mut argument);
        let failed = argument.failed;
        made.map_err(|errno| {
            let failed = (failed != u32::MAX).then_some(failed);
            (failed, self.told(errno, PROBES))
        })
    }

    fn number(&self, pid: u32) -> io::Result<u32> {
        let mut number = i32::try_from(pid).map_err(|_| Errno::ESRCH)?;
        self.call(ioctl::NUMBER, &mut number)?;
        Ok(number.unsigned_abs())
    }

    fn registered(&self, pid: u32, after: u32) -> io::Result<Option<(Registered, Vec<u8>)>> {
        let mut image = Vec::new();
        loop {
            let mut registered = Registered::new_zeroed();
            registered.pid = i32::try_from(pid).map_err(|_| Errno::ESRCH)?;
            registered.generation = after;
            registered.size = image.len() as u64;
            registered.data = image.as_mut_ptr() as u64;
            match self.call(ioctl::REGISTERED, &mut registered) {
                // Allocate only now, because most processes have no registrations.
                Err(Errno::E2BIG) if image.is_empty() => image = vec![0; REGISTERED_MAX],
                Err(Errno::ENOENT | Errno::ENOTTY) => return Ok(None),
                Err(errno) => return Err(errno.into()),
                Ok(()) => {
                    let size = usize::try_from(registered.size).map_err(|_| Errno::EINVAL)?;
                    image.truncate(size);
                    return Ok(Some((registered, image)));
                }
            }
        }
    }

    fn review(&self, pid: u32) -> io::Result<()> {
        let mut pid = i32::try_from(pid).map_err(|_| Errno::ESRCH)?;
        self.call_new(ioctl::REVIEW, &mut pid, PROBES)
    }

    fn hold(&self, hold: &Hold) -> io::Result<()> {
        self.call_new(ioctl::HOLD, &mut hold.clone(), HOLDS)
    }

    fn held(&self) -> io::Result<Held> {
        let mut held = Held::default();
        match self.call(ioctl::HELD, &mut held) {
            // A module that does not know the ioctl holds no process.
            Ok(()) | Err(Errno::ENOTTY) => Ok(held),
            Err(errno) => Err(errno.into()),
        }
    }

    fn known(&self, known: &Known) -> io::Result<()> {
        self.call_new(ioctl::KNOWN, &mut known.clone(), HOLDS)
    }

    fn resume(&self, mut id: u64) -> io::Result<()> {
        Ok(self.call(ioctl::RESUME, &mut id)?)
    }

    fn wanted(&self) -> io::Result<Option<File>> {
        // SAFETY: the descriptor is open; the call has no argument.
        let result = unsafe { libc::ioctl(self.file.as_raw_fd(), ioctl::WANTED as libc::Ioctl) };
        match Errno::result(result) {
            // SAFETY: the kernel has just opened this descriptor for us, and nothing else owns it.
            Ok(fd) => Ok(Some(unsafe { File::from_raw_fd(fd) })),
            Err(Errno::ENOENT) => Ok(None),
            Err(errno) => Err(self.told(errno, TABLES)),
        }
    }

    fn give_table(&self, file: &File, changed: u64, table: &[u8]) -> io::Result<()> {
        let mut request = Table {
            changed,
            fd: file.as_raw_fd(),
            size: u32::try_from(table.len()).map_err(|_| Errno::E2BIG)?,
            bytes: table.as_ptr() as u64,
        };
        self.call_new(ioctl::TABLE, &mut request, TABLES)
    }

    fn remains(&self) -> io::Result<Option<Box<dyn Remains>>> {
        let remains = Self {
            file: self.file.try_clone()?,
            cpus: self.cpus,
        };
        // The first call makes the kernel note mappings. A kernel that does not know the ioctl, or
        // does not allow it to us, says so here. Any other failure is reported, because otherwise
        // names would be missing without notice.
        match remains.next(0, 0) {
            Ok(_) => Ok(Some(Box::new(remains))),
            Err(e)
                if matches!(
                    e.raw_os_error(),
                    Some(libc::ENOTTY | libc::EACCES | libc::ENODEV)
                ) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn frames(&self) -> Option<Box<dyn Source>> {
        Some(Box::new(Self {
            file: self.file.try_clone().ok()?,
            cpus: self.cpus,
        }))
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.file.as_fd())
    }

    fn replicate(&self, from: &ProbeDesc, to: &ProbeDesc) -> io::Result<()> {
        let mut repl = ReplDesc {
            matching: *from,
            create: *to,
        };
        self.call_new(ioctl::REPLICATE, &mut repl, REPLICATION)
    }

    fn retract(&self, desc: &ProbeDesc) -> io::Result<()> {
        self.call_new(ioctl::RETRACT, &mut desc.clone(), REPLICATION)
    }

    fn enabled_probe(&self, epid: Epid) -> io::Result<(EprobeDesc, Vec<RecDesc>)> {
        let head = EprobeDesc {
            epid,
            ..EprobeDesc::default()
        };
        self.call_records(ioctl::EPROBE, head, |head| &mut head.nrecs)
    }

    fn aggregation(&self, id: AggId) -> io::Result<(AggDesc, Vec<RecDesc>)> {
        let head = AggDesc {
            id,
            ..AggDesc::default()
        };
        self.call_records(ioctl::AGGDESC, head, |head| &mut head.nrecs)
    }

    fn go(&self) -> io::Result<u32> {
        let mut cpu = 0u32;
        self.call(ioctl::GO, &mut cpu)?;
        Ok(cpu)
    }

    fn stop(&self) -> io::Result<u32> {
        let mut cpu = 0u32;
        self.call(ioctl::STOP, &mut cpu)?;
        Ok(cpu)
    }

    fn status(&self) -> io::Result<Status> {
        let mut status = Status::default();
        let bytes = status.as_mut_bytes();
        let sizes = [
            ioctl::STATUS,
            ioctl::STATUS_THIRD,
            ioctl::STATUS_SECOND,
            ioctl::STATUS_FIRST,
            ioctl::STATUS_COMMON,
        ];
        let mut answers = sizes.iter().map(|request| self.call_bytes(*request, bytes));
        // An older module fills in only a part; the rest stays 0.
        let answer = answers.find(|answer| *answer != Err(Errno::ENOTTY));
        answer.unwrap_or(Err(Errno::ENOTTY))?;
        Ok(status)
    }

    fn snapshot(&self, which: Buffer, cpu: u32, room: &mut [u8]) -> io::Result<Option<BufDesc>> {
        let request = match which {
            Buffer::Principal => ioctl::BUFSNAP,
            Buffer::Aggregation => ioctl::AGGSNAP,
        };
        let mut desc = BufDesc {
            size: room.len() as u64,
            cpu,
            data: room.as_mut_ptr() as u64,
            ..BufDesc::default()
        };
        match self.call(request, &mut desc) {
            // A CPU that is not traced or offline has no buffer.
            Err(Errno::ENOENT) => Ok(None),
            Err(errno) => Err(errno.into()),
            Ok(()) => {
                desc.size = desc.size.min(room.len() as u64);
                Ok(Some(desc))
            }
        }
    }

    fn options(&self) -> io::Result<Vec<(Opt, u64)>> {
        let mut room = size_of::<Hdr>() + size_of::<Sec>() + option::COUNT * size_of::<OptDesc>();
        loop {
            let mut image = vec![0; room];
            let head = Hdr {
                loadsz: room as u64,
                ..Hdr::default()
            };
            head.write_to_prefix(&mut image)
                .map_err(|_| Errno::EINVAL)?;
            self.call_bytes(ioctl::DOFGET, &mut image)?;
            let (head, _) = Hdr::read_from_prefix(&image).map_err(|_| Errno::EINVAL)?;
            let size = usize::try_from(head.loadsz).map_err(|_| Errno::EINVAL)?;
            if size <= room {
                return Ok(dtrace_compiler::dof::options(&image[..size]));
            }
            if size > OPTIONS_MAX {
                return Err(Errno::E2BIG.into());
            }
            // A newer module has more options.
            room = size;
        }
    }

    fn anonymous(&self) -> io::Result<Vec<u8>> {
        let mut file = Vec::new();
        loop {
            let mut desc = AnonDesc {
                size: file.len() as u64,
                data: file.as_mut_ptr() as u64,
            };
            self.call_new(ioctl::ANONGET, &mut desc, "anonymous tracing")?;
            let size = usize::try_from(desc.size).map_err(|_| Errno::EINVAL)?;
            if size <= file.len() {
                file.truncate(size);
                return Ok(file);
            }
            if size > ANON_MAX {
                return Err(Errno::E2BIG.into());
            }
            file.resize(size, 0);
        }
    }

    fn reason(&self) -> String {
        let mut reason = Reason::new_zeroed();
        match self.call(ioctl::REASON, &mut reason) {
            Ok(()) => text(&reason.text),
            Err(_) => String::new(),
        }
    }
}

/// The result of a lookup. ESRCH means that nothing was found.
fn found<T>(result: Result<(), Errno>, desc: T) -> io::Result<Option<T>> {
    match result {
        Ok(()) => Ok(Some(desc)),
        Err(Errno::ESRCH) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

/// The highest number that a CPU of this machine can have, plus one.
fn possible_cpus() -> u32 {
    std::fs::read_to_string("/sys/devices/system/cpu/possible")
        .ok()
        .and_then(|list| last_cpu(&list))
        .map_or(1, |last| last + 1)
}

/// The last CPU of a list such as `0-3,8`.
fn last_cpu(list: &str) -> Option<u32> {
    list.trim().rsplit([',', '-']).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus() {
        assert_eq!(last_cpu("0\n"), Some(0));
        assert_eq!(last_cpu("0-3\n"), Some(3));
        assert_eq!(last_cpu("0-3,8,10-11\n"), Some(11));
        assert_eq!(last_cpu(""), None);
    }

    #[test]
    fn a_missing_device_is_an_error_and_a_file_that_is_none_answers_no_call() {
        assert!(DevDtrace::open(Path::new("/nonexistent/dtrace")).is_err());
        let null = DevDtrace::open(Path::new("/dev/null")).unwrap();
        assert!(null.conf().is_err());
        assert!(null.enabled_probe(1).is_err());
        assert!(null.options().is_err());
        assert!(null.snapshot(Buffer::Principal, 0, &mut [0; 16]).is_err());
        assert_eq!(null.reason(), "");
    }
}
