// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! What root does meanwhile: it traces all the time, starts another tracing every second, searches
//! for a probe, and loads modules. All of that has to succeed, and soon: if it takes long, it is
//! waiting for a lock that others hold.

use dtrace::device::{Buffer, DevDtrace, Device, PATH};
use dtrace_uapi::ioctl::ProbeDesc;
use qemu_tests::processors::stamp;
use qemu_tests::program::compile;
use std::io::{self, Write};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use zerocopy::FromZeros;

/// The fault that a tracing of root was ended.
pub const ENDED: &str = "a tracing of root's was ended";

/// The system calls between two checks of the permanent tracing, and those of a short tracing.
const CALLS: u64 = 100;
const FEW: u64 = 10;
/// A module is loaded in one round of this many.
const LOADS: u64 = 5;

/// The operation that took longest.
struct Longest {
    what: &'static str,
    time: Duration,
    /// When it ended.
    end: u64,
}

impl Longest {
    fn of<T, E: ToString>(
        &mut self,
        what: &'static str,
        run: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, String> {
        let begin = Instant::now();
        let result = run();
        let time = begin.elapsed();
        if time > self.time {
            let end = stamp();
            *self = Self { what, time, end };
        }
        result.map_err(|error| format!("{what}: {}", error.to_string()))
    }
}

/// A tracing that counts this process' calls.
struct Tracer {
    device: DevDtrace,
    counted: u64,
}

impl Tracer {
    fn begin(image: &[u8], longest: &mut Longest) -> Result<Self, String> {
        let device = longest.of("open", || DevDtrace::open(Path::new(PATH)))?;
        longest
            .of("ENABLE", || device.enable(image))
            .map_err(|e| because(&device, e))?;
        longest
            .of("GO", || device.go())
            .map_err(|e| because(&device, e))?;
        Ok(Self { device, counted: 0 })
    }

    /// Adds the calls that it has counted since the last look.
    fn look(&mut self, longest: &mut Longest) -> Result<(), String> {
        let mut room = vec![0; 128 << 10];
        for cpu in 0..self.device.cpus() {
            let device = &self.device;
            let taken = longest.of("AGGSNAP", || {
                device.snapshot(Buffer::Aggregation, cpu, &mut room)
            })?;
            if taken.is_none_or(|desc| desc.size < 8) {
                continue;
            }
            let (_, records) = longest.of("AGGDESC", || device.aggregation(1))?;
            let at = records.last().map_or(0, |rec| rec.offset as usize);
            let bytes = room.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
            self.counted += u64::from_ne_bytes(bytes.ok_or("a record out of its buffer")?);
        }
        Ok(())
    }

    /// Checks that no calls are missing except reported drops.
    fn check(&mut self, made: u64, longest: &mut Longest) -> Result<(), String> {
        self.look(longest)?;
        let device = &self.device;
        let status = longest.of("STATUS", || device.status())?;
        if status.killed != 0 {
            return Err(ENDED.to_owned());
        }
        let lost = status.recursions + status.nmis;
        match self.counted <= made && self.counted + lost >= made {
            true => Ok(()),
            false => Err(format!(
                "root counted {} of {made} calls, {lost} were lost",
                self.counted
            )),
        }
    }
}

fn because(device: &DevDtrace, error: String) -> String {
    format!("{error} ({})", device.reason())
}

/// Works until its reader has gone. Every second it prints what took longest, in microseconds, with
/// the end, and what went wrong.
pub fn control() -> Result<(), String> {
    let pid = std::process::id();
    let text = format!("syscall::getppid:entry /pid == {pid}/ {{ @ = count(); }}");
    let image = compile(&text, "64k")?;
    let mut longest = Longest {
        what: "",
        time: Duration::ZERO,
        end: 0,
    };
    let mut steady = Tracer::begin(&image, &mut longest)?;
    let mut made = 0;
    for round in 0.. {
        (longest.what, longest.time) = ("", Duration::ZERO);
        made += call(CALLS);
        let all = [
            steady.check(made, &mut longest),
            moment(&image, &mut longest).map(|()| made += FEW),
            ask(&steady.device, &mut longest),
            match round % LOADS {
                0 => load(&mut longest),
                _ => Ok(()),
            },
        ];
        let mut lines: String = all
            .iter()
            .filter_map(|result| Some(format!("fault\t{}\n", result.as_ref().err()?)))
            .collect();
        lines += &format!(
            "control\t{}\t{}\t{}\n",
            longest.what,
            longest.time.as_micros(),
            longest.end
        );
        if io::stdout().write_all(lines.as_bytes()).is_err() {
            break;
        }
        std::thread::sleep(Duration::from_secs(1));
    }
    Ok(())
}

fn call(n: u64) -> u64 {
    for _ in 0..n {
        let _ = rustix::process::getppid();
    }
    n
}

/// Traces for a moment. The permanent tracing counts these calls as well.
fn moment(image: &[u8], longest: &mut Longest) -> Result<(), String> {
    let mut tracer = Tracer::begin(image, longest)?;
    call(FEW);
    tracer.check(FEW, longest)?;
    let device = tracer.device;
    longest.of("STOP", || device.stop())?;
    longest.of("close", || {
        drop(device);
        Ok::<(), String>(())
    })
}

/// Searches for a probe.
fn ask(device: &DevDtrace, longest: &mut Longest) -> Result<(), String> {
    let mut desc = ProbeDesc::new_zeroed();
    desc.provider[..7].copy_from_slice(b"syscall");
    desc.func[..7].copy_from_slice(b"getppid");
    let found = longest.of("PROBEMATCH", || device.next_probe(&desc))?;
    found.map(drop).ok_or("getppid has no probe".to_owned())
}

/// Loads a module of the kernel, for which probes are created, and removes it.
fn load(longest: &mut Longest) -> Result<(), String> {
    for (what, args) in [
        ("modprobe", &["dummy"][..]),
        ("modprobe -r", &["-r", "dummy"]),
    ] {
        let output = longest.of(what, || Command::new("modprobe").args(args).output())?;
        if !output.status.success() {
            let why = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{what} dummy: {}", why.trim()));
        }
    }
    Ok(())
}
