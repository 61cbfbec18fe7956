// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! A handle over a device that behaves as each test prescribes.

use super::work::ends_at_once;
use super::*;
use crate::anon::{self, Meaning};
use dtrace_compiler::options::EvalTime;
use dtrace_consumer::consume::Event;
use dtrace_consumer::device::{fill, text, Buffer, DevDtrace};
use dtrace_files::text::plain;
use dtrace_objects::pid::Request;
use dtrace_render::{Text, Zone};
use dtrace_uapi::hold::Hold;
use dtrace_uapi::ioctl::{
    AggDesc, ArgDesc, BufDesc, Conf, EprobeDesc, ProbeDesc, ProviderDesc, RecDesc, RecHdr, Status,
    INTERFACE,
};
use dtrace_uapi::types::{AggId, Epid, ProbeId};
use nix::errno::Errno;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use zerocopy::{FromZeros, IntoBytes};

/// A device with the probes of the provider `dtrace`, one enabled probe (`END`), and state that
/// tests set.
#[derive(Default)]
struct Scripted {
    calls: RefCell<Vec<&'static str>>,
    status: RefCell<Status>,
    /// Refuses all calls, with this reason.
    refuse: RefCell<Option<(Errno, String)>>,
    /// Refuses `go` alone.
    refuse_go: RefCell<Option<Errno>>,
    /// If not 0, the next snapshot of the principal buffer has one record.
    records: Cell<u32>,
    /// The file of the anonymous state.
    anonymous: Vec<u8>,
    /// The sizes for which it had memory.
    got: Vec<(Opt, u64)>,
    /// By how much its DIF is newer than ours.
    newer: u32,
    /// By how much its interface is older than ours.
    older: u32,
}

impl Scripted {
    fn call(&self, name: &'static str) -> io::Result<()> {
        self.calls.borrow_mut().push(name);
        match &*self.refuse.borrow() {
            Some((errno, _)) => Err((*errno).into()),
            None => Ok(()),
        }
    }
}

impl Device for Scripted {
    fn conf(&self) -> io::Result<Conf> {
        let difversion = u32::from(dtrace_uapi::dif::DIF_VERSION) + self.newer;
        Ok(Conf {
            difversion,
            interface: INTERFACE - self.older,
            ..Conf::default()
        })
    }
    fn cpus(&self) -> u32 {
        1
    }
    fn provider(&self, _name: &str) -> io::Result<Option<ProviderDesc>> {
        Ok(None)
    }
    fn next_probe(&self, pattern: &ProbeDesc) -> io::Result<Option<ProbeDesc>> {
        let names = ["BEGIN", "END", "ERROR"].into_iter().zip(1..);
        let wanted = text(&pattern.name);
        let mut fitting =
            names.filter(|(name, id)| *id > pattern.id && (wanted.is_empty() || wanted == *name));
        Ok(fitting.next().map(|(name, id)| {
            let mut desc = ProbeDesc::new_zeroed();
            (desc.id, desc.provider, desc.name) =
                (id, fill("dtrace").unwrap(), fill(name).unwrap());
            desc
        }))
    }
    fn argument(&self, _probe: ProbeId, _index: u32) -> io::Result<Option<ArgDesc>> {
        Ok(None)
    }
    fn enable(&self, dof: &[u8]) -> io::Result<u32> {
        assert_eq!(dof[..4], dtrace_uapi::dof::MAGIC);
        self.call("enable").map(|()| 1)
    }
    fn enabled_probe(&self, epid: Epid) -> io::Result<(EprobeDesc, Vec<RecDesc>)> {
        Ok((
            EprobeDesc {
                epid,
                probeid: 2,
                size: 12,
                ..EprobeDesc::default()
            },
            Vec::new(),
        ))
    }
    fn aggregation(&self, _id: AggId) -> io::Result<(AggDesc, Vec<RecDesc>)> {
        Err(Errno::EINVAL.into())
    }
    fn go(&self) -> io::Result<u32> {
        let refused = *self.refuse_go.borrow();
        self.call("go")?;
        refused.map_or(Ok(0), |errno| Err(errno.into()))
    }
    fn stop(&self) -> io::Result<u32> {
        self.records.set(1);
        self.call("stop").map(|()| 0)
    }
    fn status(&self) -> io::Result<Status> {
        Ok(*self.status.borrow())
    }
    fn snapshot(&self, which: Buffer, cpu: u32, room: &mut [u8]) -> io::Result<Option<BufDesc>> {
        if which == Buffer::Aggregation || self.records.take() == 0 {
            return Ok(None);
        }
        let record = RecHdr::new(1, 7);
        room[..12].copy_from_slice(record.as_bytes());
        Ok(Some(BufDesc {
            size: 12,
            cpu,
            ..BufDesc::default()
        }))
    }
    fn options(&self) -> io::Result<Vec<(Opt, u64)>> {
        Ok(self.got.clone())
    }
    fn anonymous(&self) -> io::Result<Vec<u8>> {
        self.call("anonymous").map(|()| self.anonymous.clone())
    }
    fn reason(&self) -> String {
        self.refuse
            .borrow()
            .as_ref()
            .map(|(_, reason)| reason.clone())
            .unwrap_or_default()
    }
}

/// Reads and compiles a program.
fn compile(handle: &mut Handle<'_>, source: &Source) -> Result<Program, Error> {
    let script = handle.read(source, Given::default())?;
    handle.compile(&script)
}

/// Calls `work` once. Returns its progress, the text and the events.
fn work(handle: &mut Handle<'_>) -> Result<(Progress, String, Vec<Event>), Error> {
    let (mut out, mut events) = (Vec::new(), Vec::new());
    let mut event = |event| events.push(event);
    let progress = handle.work(&mut Text::new(Zone::utc()).to(&mut out, &mut event))?;
    Ok((progress, String::from_utf8(out).unwrap(), events))
}

#[test]
fn an_exit_in_begin_ends_tracing_without_a_sleep() {
    let device = Scripted::default();
    let world = KernelWorld::new(&device);
    let mut handle = Handle::new(&world).unwrap();
    handle.go().unwrap();
    device.status.borrow_mut().exiting = 1;
    let (progress, text, events) = work(&mut handle).unwrap();
    assert_eq!(progress, Progress::Done);
    assert!(text.contains(":END"), "{text}");
    assert!(events.is_empty());
    assert_eq!(*device.calls.borrow(), ["enable", "go", "stop"]);
    assert_eq!(handle.exit_status(), 0);
}

#[test]
fn a_longer_statusrate_delays_the_end() {
    let mut options = Options::default();
    assert!(ends_at_once(&options));
    for (rate, at_once) in [("10hz", true), ("1sec", true), ("3sec", false)] {
        options.set("statusrate", Some(rate), Setter::User).unwrap();
        assert_eq!(ends_at_once(&options), at_once, "{rate}");
    }
}

#[test]
fn what_destroys_must_be_allowed_before_tracing_begins() {
    for text in [
        "BEGIN { system(\"true\"); }",
        "BEGIN /(copyoutstr(\"x\", 1, 2), 1)/ { }",
        "BEGIN { stop(); }",
    ] {
        let device = Scripted::default();
        let world = KernelWorld::new(&device);
        let mut handle = Handle::new(&world).unwrap();
        let program = compile(&mut handle, &Source::argument(text)).unwrap();
        handle.enable(&program).unwrap();
        let error = handle.go().unwrap_err().to_string();
        assert_eq!(error, "Destructive actions not allowed", "{text}");
        assert_eq!(*device.calls.borrow(), ["enable"]);
        handle.set_option("destructive", None).unwrap();
        handle.go().unwrap();
    }
}

#[test]
fn what_is_asked_of_programs_is_not_asked_of_the_clause_for_faults() {
    let device = Scripted::default();
    let world = KernelWorld::new(&device);
    let mut handle = Handle::new(&world).unwrap();
    handle
        .set_option("amin", Some("Standard/Standard/Common"))
        .unwrap();
    handle.go().unwrap();
}

#[test]
fn tracing_goes_on_until_it_is_stopped() {
    let device = Scripted::default();
    let world = KernelWorld::new(&device);
    let mut handle = Handle::new(&world).unwrap();
    handle.go().unwrap();
    assert_eq!(work(&mut handle).unwrap().0, Progress::Okay);
    handle.stop().unwrap();
    handle.stop().unwrap();
    assert_eq!(work(&mut handle).unwrap().0, Progress::Done);
    assert_eq!(
        device
            .calls
            .borrow()
            .iter()
            .filter(|call| **call == "stop")
            .count(),
        1
    );
}

#[test]
fn drops_are_reported_once() {
    let device = Scripted::default();
    let world = KernelWorld::new(&device);
    let mut handle = Handle::new(&world).unwrap();
    handle.go().unwrap();
    device.status.borrow_mut().dyndrops = 3;
    let (_, _, events) = work(&mut handle).unwrap();
    let texts: Vec<String> = events.iter().map(ToString::to_string).collect();
    assert_eq!(texts, ["3 dynamic variable drops"]);
    handle.stop().unwrap();
    assert!(work(&mut handle).unwrap().2.is_empty());
}

#[test]
fn sizes_that_the_kernel_lowered_are_told_and_kept_to() {
    let device = Scripted {
        got: vec![(Opt::Bufsize, 32 << 20), (Opt::Aggsize, 3 << 10)],
        ..Scripted::default()
    };
    let world = KernelWorld::new(&device);
    let told = |quiet: Option<&str>| {
        let mut handle = Handle::new(&world).unwrap();
        // More memory than any machine has.
        handle.set_option("bufsize", Some("8388607t")).unwrap();
        handle.set_option("quietresize", quiet).unwrap();
        handle.go().unwrap();
        assert_eq!(handle.options.get(Opt::Bufsize), Some(32 << 20));
        let (_, _, events) = work(&mut handle).unwrap();
        assert!(work(&mut handle).unwrap().2.is_empty());
        events.iter().map(Event::to_string).collect::<Vec<_>>()
    };
    let lowered = [
        "buffer size lowered to 32m",
        "aggregation size lowered to 3k",
    ];
    assert_eq!(told(Some("no")), lowered);
    assert!(told(None).is_empty());
}

#[test]
fn a_kernel_that_gave_up_is_an_error() {
    let device = Scripted::default();
    let world = KernelWorld::new(&device);
    let mut handle = Handle::new(&world).unwrap();
    handle.go().unwrap();
    device.status.borrow_mut().killed = 1;
    let error = work(&mut handle).unwrap_err();
    assert_eq!(error.to_string(), "Abort due to systemic unresponsiveness");
    // A later stop gets the same error, not one that there is nothing to stop.
    *device.refuse.borrow_mut() = Some((Errno::EINVAL, String::new()));
    let error = handle.stop().unwrap_err();
    assert_eq!(error.to_string(), "Abort due to systemic unresponsiveness");
    device.status.borrow_mut().killed = 0;
    assert_eq!(handle.stop().unwrap_err().to_string(), "Invalid argument");
}

#[test]
fn a_refusal_has_the_kernels_words_or_the_errors() {
    let device = Scripted::default();
    let world = KernelWorld::new(&device);
    let mut handle = Handle::new(&world).unwrap();
    let mut refused = |reason: &str| {
        *device.refuse.borrow_mut() = Some((Errno::EINVAL, reason.to_owned()));
        handle.enable(&Program::default()).unwrap_err().to_string()
    };
    assert_eq!(refused("clause 1: bad register"), "clause 1: bad register");
    assert_eq!(refused(""), "Invalid argument");
}

#[test]
fn the_end_of_the_last_process_ends_tracing() {
    let device = Scripted::default();
    let world = KernelWorld::new(&device);
    let mut handle = Handle::new(&world).unwrap();
    let target = Target::create(
        "sh -c 'exit 4'",
        &[],
        dtrace_compiler::options::EvalTime::Main,
    )
    .unwrap();
    let pid = target.pid();
    handle.watch(target);
    assert_eq!(handle.target(), Some(pid));
    assert!(handle
        .settings()
        .macros
        .contains(&("target".to_owned(), i64::from(pid))));
    handle.go().unwrap();
    loop {
        let (progress, _, events) = work(&mut handle).unwrap();
        if progress == Progress::Done {
            assert_eq!(
                events[0].to_string(),
                format!("pid {pid} exited with status 4")
            );
            break;
        }
        handle.wait(None).unwrap();
    }
}

#[test]
fn a_created_process_has_its_libraries_unless_it_is_still_at_its_exec() {
    let device = Scripted::default();
    let world = KernelWorld::new(&device);
    let refused = |until: EvalTime, text: &str| {
        let mut handle = Handle::new(&world).unwrap();
        handle.options.compile.nolibs = true;
        let target = Target::create("cat /dev/null", &[], until).unwrap();
        let provider = format!("pid{}", target.pid());
        handle.watch(target);
        let Err(Error::Compile(error)) = compile(&mut handle, &Source::argument(text)) else {
            panic!("{text} compiles");
        };
        error.to_string().replace(&provider, "pid$target")
    };
    let in_library = "pid$target:libc:_exit:entry";
    assert_eq!(
        refused(EvalTime::default(), in_library),
        "[D_PROC_CREATEFAIL] failed to create entry probe for '_exit': the kernel has no probes in processes"
    );
    assert_eq!(
        refused(EvalTime::Exec, in_library),
        "[D_PDESC_ZERO] probe description pid$target:libc:_exit:entry does not match any probes"
    );
    assert_eq!(
        refused(EvalTime::Exec, "pid$target:cat:-:7"),
        "[D_PROC_OFF] offset 0x7 outside of function '-'"
    );
}

#[test]
fn an_error_tells_which_process_has_ended() {
    let device = Scripted::default();
    let world = KernelWorld::new(&device);
    let mut handle = Handle::new(&world).unwrap();
    handle.options.compile.nolibs = true;
    let mut child = std::process::Command::new("cat")
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let pid = child.id();
    handle.watch(Target::grab(pid).unwrap());
    let mut notes = || match compile(&mut handle, &Source::argument("pid$target:libc:none:entry")) {
        Err(Error::Compile(error)) => error.notes,
        other => panic!("{other:?}"),
    };
    let told = format!("process {pid} has ended");
    assert!(!notes().contains(&told));
    drop(child.stdin.take());
    child.wait().unwrap();
    assert!(notes().contains(&told));
}

#[test]
fn options_of_a_script_are_taken_over_or_refused() {
    let device = Scripted::default();
    let world = KernelWorld::new(&device);
    let mut handle = Handle::new(&world).unwrap();
    let source = |text: &str| Source::file("x.d", text);
    compile(&mut handle, &source("#pragma D option quiet\nBEGIN { }\n")).unwrap();
    assert!(handle.options.is_on(Opt::Quiet));
    let wrong = source("\n#pragma D option nonsense=5\nBEGIN { }\n");
    let Err(Error::Compile(diagnostic)) = compile(&mut handle, &wrong) else {
        panic!("it is accepted")
    };
    assert_eq!(
        diagnostic.headline(&wrong, true),
        "[D_PRAGMA_OPTSET] line 2: failed to set option 'nonsense' to '5': Invalid option name"
    );
}

#[test]
fn who_claims_gets_what_there_is_or_an_error() {
    let mut device = Scripted::default();
    let meaning = Meaning {
        options: BTreeMap::from([("quiet".into(), 1)]),
        ..Meaning::default()
    };
    device.anonymous = anon::write([], &meaning);
    let claim = |device: &Scripted| {
        let world = KernelWorld::new(device);
        let mut handle = Handle::new(&world).unwrap();
        handle.set_option("grabanon", None).unwrap();
        let went = handle.go().map_err(|error| error.to_string());
        went.map(|()| handle.options.is_on(Opt::Quiet))
    };
    assert_eq!(claim(&device), Ok(true));
    assert_eq!(*device.calls.borrow(), ["enable", "go", "anonymous"]);
    device.anonymous.clear();
    let error = "anonymous enabling was not made by dtrace -A";
    assert_eq!(claim(&device), Err(error.to_owned()));
    for (errno, text) in [
        (Errno::ENOENT, "No anonymous tracing state"),
        (
            Errno::EALREADY,
            "Can't claim anonymous state and enable probes",
        ),
        (Errno::ENOMEM, "Out of memory"),
    ] {
        *device.refuse_go.borrow_mut() = Some(errno);
        assert_eq!(claim(&device), Err(text.to_owned()));
    }
}

#[test]
fn an_anonymous_program_that_destroys_must_be_allowed() {
    let device = Scripted::default();
    let world = KernelWorld::new(&device);
    let mut handle = Handle::new(&world).unwrap();
    let source = Source::argument("BEGIN { stop(); }");
    let program = compile(&mut handle, &source).unwrap();
    let error = handle.anonymous(&[&program]).unwrap_err().to_string();
    assert_eq!(error, "Destructive actions not allowed");
    handle.set_option("destructive", None).unwrap();
    let file = handle.anonymous(&[&program]).unwrap();
    assert_eq!(
        anon::read(&file).unwrap().options.get("destructive"),
        Some(&1)
    );
    assert!(device.calls.borrow().is_empty());
}

#[test]
fn another_version_of_dif_is_refused() {
    let device = Scripted {
        newer: 1,
        ..Scripted::default()
    };
    let world = KernelWorld::new(&device);
    assert!(matches!(Handle::new(&world), Err(Error::Version(3))));
}

#[test]
fn an_older_module_may_not_know_what_it_refuses() {
    let refused = |older| {
        let device = Scripted {
            older,
            ..Scripted::default()
        };
        *device.refuse.borrow_mut() = Some((Errno::EINVAL, "no such action".to_owned()));
        let world = KernelWorld::new(&device);
        let mut handle = Handle::new(&world).unwrap();
        let program = compile(&mut handle, &Source::argument("BEGIN")).unwrap();
        handle.enable(&program).unwrap_err().to_string()
    };
    assert_eq!(refused(0), "no such action");
    let reason = refused(1);
    assert!(
        reason.starts_with(
            "no such action; it may not know that: the module is older than this command"
        ),
        "{reason}"
    );
}

/// `/dev/null`, which knows no ioctl at all, stands for a module that knows few.
#[test]
fn what_a_module_does_not_know_is_told_by_its_name() {
    let device = DevDtrace::open("/dev/null".as_ref()).unwrap();
    let (_, error) = device.make_probes(1, &Request::default()).unwrap_err();
    assert_eq!(plain(&error), "the kernel has no probes in processes");
    let error = device.hold(&Hold::default()).unwrap_err();
    let holds = "the kernel has no way to hold processes";
    assert_eq!(plain(&error), holds);
    // The library works without these.
    assert_eq!(device.held().unwrap().id, 0);
    assert!(device.registered(1, 0).unwrap().is_none());
    assert!(device.remains().unwrap().is_none());
    let error = device.status().unwrap_err();
    assert_eq!(error.raw_os_error(), Some(Errno::ENOTTY as i32));
}

#[test]
fn options_of_a_program_come_before_the_libraries() {
    let dir = std::env::temp_dir().join(format!("dtrace-pragma-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("mine.d"), "inline int MINE = 7;\n").unwrap();
    let device = Scripted::default();
    let world = KernelWorld::new(&device);
    let libraries = |option: &str, text: &str| {
        let mut handle = Handle::new(&world).unwrap();
        let text = format!("BEGIN {{ trace({text}); }}\n#pragma D option {option}\n");
        let compiled = compile(&mut handle, &Source::file("x.d", text));
        compiled
            .map(|_| handle.libraries().to_vec())
            .map_err(|error| error.to_string())
    };
    let here = dir.display();
    let mine = format!("{here}/mine.d");
    assert!(libraries(&format!("libdir={here}"), "MINE")
        .unwrap()
        .contains(&mine));
    assert_eq!(
        libraries(&format!("syslibdir={here}"), "MINE"),
        Ok(vec![mine])
    );
    assert_eq!(libraries("nolibs", "1"), Ok(Vec::new()));
    assert!(libraries("nolibs", "ENOENT")
        .unwrap_err()
        .contains("ENOENT"));
    assert!(libraries("nolibs=no", "ENOENT").is_ok());
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn options_of_a_program_are_those_that_it_is_compiled_under() {
    let device = Scripted::default();
    let world = KernelWorld::new(&device);
    let compiled = |options: &str, text: &str| {
        let mut handle = Handle::new(&world).unwrap();
        handle.options.compile.nolibs = true;
        handle.set_option("strsize", Some("8")).unwrap();
        let lines: String = options
            .split(' ')
            .map(|option| format!("#pragma D option {option}\n"))
            .collect();
        let compiled = compile(
            &mut handle,
            &Source::file("x.d", format!("{text}\n{lines}")),
        );
        compiled.map_err(|error| match error {
            Error::Compile(error) => error.tag,
            _ => "another",
        })
    };
    for (options, good, text) in [
        ("zdefs", true, "BEGNI { }"),
        ("zdefs=no", false, "BEGNI { }"),
        ("defaultargs", true, "BEGIN { trace($1); }"),
        ("defaultargs defaultargs=no", false, "BEGIN { trace($1); }"),
        (
            "strsize=99",
            true,
            "struct s { int a[sizeof (string) == 99 ? 1 : -1]; }; BEGIN { }",
        ),
        (
            "quiet",
            true,
            "struct s { int a[sizeof (string) == 8 ? 1 : -1]; }; BEGIN { }",
        ),
        (
            "maxframes=3",
            true,
            "struct s { int a[sizeof (stack()) < 64 ? 1 : -1]; }; BEGIN { }",
        ),
        (
            "stackframes=60",
            true,
            "struct s { int a[sizeof (stack()) > 480 ? 1 : -1]; }; BEGIN { }",
        ),
        (
            "scratchsize=64",
            false,
            "BEGIN { trace((int64_t)alloca(128)); }",
        ),
        ("empty", true, ""),
        (
            "amin=Stable/Stable/Common",
            false,
            "BEGIN { trace(curthread); }",
        ),
        ("linkmode=dynamic", true, "BEGIN { }"),
    ] {
        let compiled = compiled(options, text);
        assert_eq!(compiled.is_ok(), good, "{options}: {:?}", compiled.err());
    }
    assert!(!compiled("tree=1", "BEGIN { }").unwrap().tree.is_empty());
}

#[test]
fn no_process_has_the_number_0() {
    let device = Scripted::default();
    let world = KernelWorld::new(&device);
    let mut handle = Handle::new(&world).unwrap();
    let program =
        "struct s { int a[$target == 0 ? 1 : -1]; }; BEGIN /pid == $target/ { trace($$target); }";
    compile(&mut handle, &Source::argument(program)).unwrap();
    let Err(Error::Compile(error)) = compile(&mut handle, &Source::argument("pid$target:::entry"))
    else {
        panic!("it compiles");
    };
    assert_eq!(
        error.to_string(),
        "[D_PROC_BADPID] 'pid0' does not contain a valid pid"
    );
    assert_eq!(
        error.notes,
        ["$target is 0 where neither -c nor -p names a process"]
    );
}
