// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The life of an anonymous enabling: one consumer writes it, the engine runs it without a
//! consumer, and another consumer claims it.

use super::device::EngineDevice;
use dtrace::anon;
use dtrace::device::{Buffer, Device};
use dtrace::handle::{Given, Handle, KernelWorld, Progress};
use dtrace::render::{Text, Zone};
use dtrace::source::Source;
use dtrace_engine::Enabling;
use dtrace_uapi::dof::Images;
use dtrace_uapi::ioctl::{
    AggDesc, ArgDesc, BufDesc, Conf, EprobeDesc, ProbeDesc, ProviderDesc, RecDesc, Status,
};
use dtrace_uapi::option::Opt;
use dtrace_uapi::types::{AggId, Epid, ProbeId};
use std::io;

/// A machine that has booted with the file of an anonymous enabling, as seen by the consumer that
/// claims it.
struct Booted {
    engine: EngineDevice,
    file: Vec<u8>,
}

impl Booted {
    fn new(file: Vec<u8>) -> Self {
        let engine = EngineDevice::new();
        for image in Images::new(&file) {
            let image = image.unwrap_or_else(|reason| panic!("{reason}"));
            engine.enable(image).expect("an image that is accepted");
        }
        engine.go().expect("a start");
        Self { engine, file }
    }
}

impl Device for Booted {
    fn conf(&self) -> io::Result<Conf> {
        self.engine.conf()
    }
    fn cpus(&self) -> u32 {
        self.engine.cpus()
    }
    fn provider(&self, name: &str) -> io::Result<Option<ProviderDesc>> {
        self.engine.provider(name)
    }
    fn next_probe(&self, pattern: &ProbeDesc) -> io::Result<Option<ProbeDesc>> {
        self.engine.next_probe(pattern)
    }
    fn argument(&self, probe: ProbeId, index: u32) -> io::Result<Option<ArgDesc>> {
        self.engine.argument(probe, index)
    }
    /// A consumer that claims an anonymous enabling sets only this option and enables nothing.
    fn enable(&self, dof: &[u8]) -> io::Result<u32> {
        let enabling = Enabling::parse(dof).unwrap_or_else(|reason| panic!("{reason}"));
        assert_eq!(enabling.options(), [(Opt::Grabanon, 1)]);
        assert!(enabling.clauses().is_empty());
        Ok(0)
    }
    fn enabled_probe(&self, epid: Epid) -> io::Result<(EprobeDesc, Vec<RecDesc>)> {
        self.engine.enabled_probe(epid)
    }
    fn aggregation(&self, id: AggId) -> io::Result<(AggDesc, Vec<RecDesc>)> {
        self.engine.aggregation(id)
    }
    fn go(&self) -> io::Result<u32> {
        Ok(0)
    }
    fn stop(&self) -> io::Result<u32> {
        self.engine.stop()
    }
    fn status(&self) -> io::Result<Status> {
        self.engine.status()
    }
    fn snapshot(&self, which: Buffer, cpu: u32, room: &mut [u8]) -> io::Result<Option<BufDesc>> {
        self.engine.snapshot(which, cpu, room)
    }
    fn options(&self) -> io::Result<Vec<(Opt, u64)>> {
        self.engine.options()
    }
    fn anonymous(&self) -> io::Result<Vec<u8>> {
        Ok(self.file.clone())
    }
    fn reason(&self) -> String {
        self.engine.reason()
    }
}

/// Consumes the recorded data. Returns the progress, the output, and the events.
fn take(handle: &mut Handle<'_>) -> (Progress, String, Vec<String>) {
    let (mut out, mut events) = (Vec::new(), Vec::new());
    let mut event = |event: dtrace::consume::Event| events.push(event.to_string());
    let mut text = Text::new(Zone::utc());
    let mut printer = text.to(&mut out, &mut event);
    let progress = handle.work(&mut printer).expect("work");
    if progress == Progress::Done {
        handle
            .yield_aggregations(&mut printer)
            .expect("aggregations");
    }
    let text = String::from_utf8(out).expect("text");
    (progress, text, events)
}

/// The contents of the file that two programs make with these options.
fn written(options: &[(&str, Option<&str>)], programs: &[&str]) -> Vec<u8> {
    let device = EngineDevice::new();
    let world = KernelWorld::new(&device);
    let mut handle = Handle::new(&world).expect("a handle");
    for (name, value) in options {
        handle.set_option(name, *value).expect("an option");
    }
    let compile = |text: &&str| {
        let script = handle.read(&Source::argument(*text), Given::default())?;
        handle.compile(&script)
    };
    let programs: Result<Vec<_>, _> = programs.iter().map(compile).collect();
    let programs = programs.expect("programs");
    let programs: Vec<_> = programs.iter().collect();
    handle.anonymous(&programs).expect("a file")
}

#[test]
fn what_was_recorded_before_the_claim_is_printed_and_it_goes_on() {
    let programs = [
        "BEGIN { printf(\"%s%5d%%|\\n\", \"at\", -3); } syscall::read:entry { @r[\"n\", arg0] = count(); }",
        "syscall::write:entry { trace(-5); } fbt::vfs_read:entry { trace(*(int *)0x10); } END { printa(\"%s %d %@d\\n\", @r); }",
    ];
    let options = [("quiet", None), ("strsize", Some("12"))];
    let booted = Booted::new(written(&options, &programs));
    booted.engine.fire(1, "syscall:vmlinux:read:entry", &[7]);
    booted.engine.fire(1, "syscall:vmlinux:read:entry", &[7]);
    booted.engine.fire(0, "syscall:vmlinux:write:entry", &[1]);
    booted.engine.fire(0, "fbt:vmlinux:vfs_read:entry", &[]);

    let world = KernelWorld::new(&booted);
    let mut handle = Handle::new(&world).expect("a handle");
    handle.set_option("grabanon", None).expect("an option");
    handle.go().expect("a claim");
    assert!(handle.options.is_on(Opt::Quiet));
    assert_eq!(handle.options.get(Opt::Strsize), Some(12));
    let (progress, text, events) = take(&mut handle);
    assert_eq!(progress, Progress::Okay);
    assert_eq!(text, "at   -3%|\n-5");
    let fault = "invalid address (0x10) in action #1";
    assert!(events[0].contains(fault), "{events:?}");

    booted.engine.fire(0, "syscall:vmlinux:read:entry", &[9]);
    handle.stop().expect("a stop");
    let (progress, text, _) = take(&mut handle);
    assert_eq!(progress, Progress::Done);
    assert_eq!(text, "n 9 1\nn 7 2\n");
}

#[test]
fn a_full_buffer_of_the_boot_is_reported_as_drops() {
    let options = [("quiet", None), ("bufsize", Some("32")), ("droptags", None)];
    let booted = Booted::new(written(&options, &["syscall::read:entry { trace(arg0); }"]));
    for n in 0..10 {
        booted.engine.fire(1, "syscall:vmlinux:read:entry", &[n]);
    }
    let world = KernelWorld::new(&booted);
    let mut handle = Handle::new(&world).expect("a handle");
    handle.set_option("grabanon", None).expect("an option");
    handle.go().expect("a claim");
    let (_, text, events) = take(&mut handle);
    assert_eq!(text, "0x00x1".replace("0x", ""));
    assert_eq!(events, ["[DTRACEDROP_PRINCIPAL] 8 drops on CPU 1"]);
}

#[test]
fn a_file_that_was_cut_off_is_refused_with_a_reason() {
    let file = written(&[], &["BEGIN { exit(0); }"]);
    assert!(anon::read(&file).is_ok());
    let reason = |file: &[u8]| Images::new(file).find_map(Result::err);
    assert_eq!(reason(&file), None);
    for len in 1..file.len() {
        let why = reason(&file[..len]);
        // A file that ends at the end of an image is valid, because it could have been written that
        // way.
        let whole = Images::new(&file)
            .scan(0, |at, image| {
                *at += image.map_or(0, <[u8]>::len);
                Some(*at)
            })
            .any(|end| end == len);
        assert_eq!(why.is_none(), whole, "{len}: {why:?}");
    }
    let mut wrong = file.clone();
    wrong[1] = b'd';
    let why = reason(&wrong).unwrap_or_default();
    assert!(why.contains("something else than DOF images"), "{why}");
}
