// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! One virtual machine: booted by virtme-ng, told what to do by files in a run directory, followed until it is done.
//!
//! The run directory is shared with the guest; `guest/init` describes the files. Output comes back through files as
//! well, never mixed with the console, which has one of its own. The machine is done when its `status` is there; it has
//! failed when it ended without one.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::IntoRawFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::accel::Accel;
use rustix::fs::{flock, FlockOperation};
use rustix::io::Errno;
use rustix::process::{kill_process_group, Pid, Signal};

/// By this file in the run directory the guest asks to be stopped: it holds milliseconds and a newline.
const STAND_STILL: &str = "stand-still";

/// How often the run directory is looked at.
pub const POLL: Duration = Duration::from_millis(30);
/// How long a machine whose status is there may take to power off.
const POWER_OFF: Duration = Duration::from_secs(3);

/// Where things are, and what every machine of this process is like.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The checkout.
    pub top: PathBuf,
    /// The cache of the build.
    pub cache: PathBuf,
    /// Where this checkout builds.
    pub build: PathBuf,
    /// Where it builds for the kernel.
    pub kernel_build: PathBuf,
    /// The kernel image.
    pub kernel: PathBuf,
    /// The kernel's release, as `uname -r` tells it.
    pub release: String,
    /// The module to load, if any.
    pub module: Option<PathBuf>,
    /// How to run it; none is what the machine can do.
    pub accel: Option<Accel>,
    /// Make the guest's clock count instructions: exact and repeatable, slow, on one processor only.
    pub icount: bool,
    /// Processors.
    pub cpus: u32,
    /// The kernel is the debug kernel: it takes more memory and more time.
    pub debug: bool,
    /// Parameters for the kernel beside those that every machine gets.
    pub parameters: String,
    /// A plugin of the emulator's and its arguments, as `-plugin` takes them.
    pub plugin: Option<String>,
}

/// How many times longer the debug kernel may take: emulated, it needs about five times the instructions.
const SLOWER: u32 = 6;

/// Seconds that a reader of RCU may take before the kernel complains (`CONFIG_RCU_CPU_STALL_TIMEOUT`).
const STALL_S: u32 = 21;

/// Seconds, and twice as many of a CPU that does not schedule, after which the kernel complains (kernel/watchdog.c: `watchdog_thresh`).
const WATCHDOG_S: u32 = 10;

impl Setup {
    /// The set-up that `scripts/vm` hands over in the environment.
    pub fn from_env() -> io::Result<Self> {
        let path = |name: &str| {
            std::env::var_os(name).map(PathBuf::from).ok_or_else(|| {
                io::Error::other(format!("{name} is not set: call this by scripts/vm"))
            })
        };
        let build = path("DTRACE_VM_BUILD")?;
        let kernel_build = path("DTRACE_VM_KERNEL_BUILD")?;
        let module = kernel_build.join("modules/dtrace.ko");
        Ok(Self {
            top: path("DTRACE_VM_TOP")?,
            cache: path("DTRACE_VM_CACHE")?,
            kernel: path("DTRACE_VM_KERNEL")?,
            release: path("DTRACE_VM_RELEASE")?.display().to_string(),
            module: module.exists().then_some(module),
            build,
            kernel_build,
            accel: None,
            icount: false,
            cpus: 2,
            debug: std::env::var_os("DTRACE_VM_DEBUG").is_some(),
            parameters: String::new(),
            plugin: std::env::var("DTRACE_VM_PLUGIN").ok(),
        })
    }

    /// How long what takes `usual` in a machine that is alone, on the stock kernel, may take in this one.
    pub fn limit(&self, usual: Duration) -> Duration {
        let slower = if self.debug { SLOWER } else { 1 };
        usual * slower
    }

    /// Where it is written how long each case took, in seconds, of this kernel: what to look at where the whole takes too long.
    pub fn times(&self) -> io::Result<File> {
        let name = match self.debug {
            true => "case-times-debug",
            false => "case-times",
        };
        File::create(self.build.join(name))
    }

    /// A new, empty run directory, that no other process has while this one lives. (Its number says nothing to others: each has a
    /// namespace of its own.)
    pub fn run_dir(&self, name: &str) -> io::Result<PathBuf> {
        let run = self.build.join("run");
        fs::create_dir_all(&run)?;
        let mut number = 0;
        let dir = loop {
            let lock = File::create(run.join(format!("{name}-{number}.lock")))?;
            match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {
                    // To the end of the process.
                    let _ = lock.into_raw_fd();
                    break run.join(format!("{name}-{number}"));
                }
                Err(Errno::WOULDBLOCK) => number += 1,
                Err(error) => return Err(error.into()),
            }
        };
        if dir.exists() {
            fs::remove_dir_all(&dir)?;
        }
        fs::create_dir(&dir)?;
        Ok(dir)
    }
}

/// What the machine is for.
#[derive(Debug)]
pub enum Order {
    /// Run this text as a bash script and end.
    Run(String),
    /// Run what is in the run directory's `cases` and end.
    Cases,
    /// An interactive shell on this terminal.
    Shell,
}

/// How a machine's work ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// With the status that the guest left.
    Status(i32),
    /// It was still at work when its limit was reached.
    Late,
    /// It was interrupted before it began, or once too often.
    Interrupted,
    /// The machine ended without a status.
    Died,
}

/// How many interrupts the command gets before the machine is ended: dtrace stops tracing at the first, and at once at
/// the second.
const INTERRUPTS: usize = 2;

/// A machine that was started.
pub struct Vm {
    dir: PathBuf,
    child: Child,
    control: PathBuf,
    /// A connection to the guest's control port, as soon as QEMU listens.
    port: Option<UnixStream>,
    accel: Accel,
}

impl Vm {
    /// Boots a machine with the run directory `dir`.
    pub fn boot(setup: &Setup, dir: &Path, order: &Order) -> io::Result<Self> {
        let accel = match setup.accel {
            Some(accel) => accel,
            None => crate::accel::choose(setup)?,
        };
        let target = setup.build.join("target");
        let programs = setup.build.join("programs");
        let path = format!(
            "{0}/release:{0}/debug:{1}",
            target.display(),
            programs.display()
        );
        fs::write(dir.join("path"), path)?;
        fs::write(
            dir.join("directory"),
            setup.top.as_os_str().as_encoded_bytes(),
        )?;
        if let Some(module) = &setup.module {
            fs::write(dir.join("module"), module.as_os_str().as_encoded_bytes())?;
        }
        let mode = match order {
            Order::Run(text) => {
                fs::write(dir.join("command"), format!("{text}\n"))?;
                "run"
            }
            Order::Cases => "cases",
            Order::Shell => "shell",
        };
        fs::write(dir.join("mode"), mode)?;
        // Not in the run directory: the path of a socket must be short.
        let name = dir.file_name().unwrap_or_default().to_string_lossy();
        let control = std::env::temp_dir().join(format!("control-{name}"));
        let mut command = virtme(setup, dir, accel, &control, matches!(order, Order::Shell));
        if !matches!(order, Order::Shell) {
            // A group of its own, so that QEMU and its helpers end with it.
            let console = File::create(dir.join("console.log"))?;
            command
                .process_group(0)
                .stdin(Stdio::null())
                .stdout(console.try_clone()?)
                .stderr(console);
        }
        Ok(Self {
            dir: dir.to_owned(),
            child: command.spawn()?,
            control,
            port: None,
            accel,
        })
    }

    /// Whether a processor may see another's change of code too late: with a thread each, they do
    /// ([`console::stale_breakpoint`](crate::console::stale_breakpoint)).
    pub fn may_run_stale_code(&self) -> bool {
        self.accel == Accel::Tcg
    }

    /// What the kernel has said so far.
    pub fn console(&self) -> String {
        read_lossy(&self.dir.join("console.log"))
    }

    /// The status the guest left, once it has.
    pub fn status(&self) -> Option<i32> {
        fs::read_to_string(self.dir.join("status"))
            .ok()?
            .trim()
            .parse()
            .ok()
    }

    /// Whether the machine still runs. Has it stand still where it asks for that.
    pub fn running(&mut self) -> io::Result<bool> {
        self.stand_still()?;
        Ok(self.child.try_wait()?.is_none())
    }

    /// Stops the machine with all that belongs to it, for as many milliseconds as it has written to its file [`STAND_STILL`], and removes the file
    /// when it goes on: as a computer does that has something else to do.
    fn stand_still(&self) -> io::Result<()> {
        let file = self.dir.join(STAND_STILL);
        let text = fs::read_to_string(&file).unwrap_or_default();
        let Some(Ok(time)) = text.strip_suffix('\n').map(str::parse) else {
            return Ok(());
        };
        if let Some(group) = Pid::from_raw(self.child.id() as i32) {
            kill_process_group(group, Signal::STOP)?;
            sleep(Duration::from_millis(time));
            kill_process_group(group, Signal::CONT)?;
        }
        fs::remove_file(file)
    }

    /// Waits for the status; none when the machine ends without one or the limit is reached.
    pub fn wait_status(&mut self, limit: Duration) -> io::Result<Option<i32>> {
        match self.follow(limit, &mut io::sink(), &mut io::sink(), &mut || 0)? {
            End::Status(status) => Ok(Some(status)),
            _ => Ok(None),
        }
    }

    /// Waits for the machine's work to end, passing on what the command prints as it does, and to the command the
    /// interrupts that `interrupts` says have come since it was last asked.
    pub fn follow(
        &mut self,
        limit: Duration,
        out: &mut dyn Write,
        err: &mut dyn Write,
        interrupts: &mut dyn FnMut() -> usize,
    ) -> io::Result<End> {
        let start = Instant::now();
        let mut stdout = Tail::new(self.dir.join("stdout"));
        let mut stderr = Tail::new(self.dir.join("stderr"));
        let mut interrupted = 0;
        loop {
            // Asked before the output is read, so that the last of it is not missed.
            let status = self.status();
            let running = self.running()?;
            stdout.copy(out)?;
            stderr.copy(err)?;
            if let Some(status) = status.or_else(|| if running { None } else { self.status() }) {
                return Ok(End::Status(status));
            }
            if !running {
                return Ok(End::Died);
            }
            if start.elapsed() > limit {
                return Ok(End::Late);
            }
            self.connect();
            for _ in 0..interrupts() {
                interrupted += 1;
                if interrupted > INTERRUPTS || !self.interrupt() {
                    return Ok(End::Interrupted);
                }
            }
            sleep(POLL);
        }
    }

    /// Connects to the control port: the guest sees an end of file where nobody is.
    fn connect(&mut self) {
        if self.port.is_none() {
            self.port = UnixStream::connect(&self.control).ok();
        }
    }

    /// Interrupts the command as a terminal would; false where there is none yet.
    fn interrupt(&mut self) -> bool {
        self.dir.join("stdout").exists()
            && self
                .port
                .as_mut()
                .is_some_and(|port| port.write_all(b"INT\n").is_ok())
    }

    /// Waits until the machine's user has left it.
    pub fn wait(&mut self) -> io::Result<()> {
        self.child.wait().map(drop)
    }

    /// Ends the machine: gives it a moment where it is powering off, then by force.
    pub fn stop(&mut self) {
        let start = Instant::now();
        while self.status().is_some() && start.elapsed() < POWER_OFF {
            match self.running() {
                Ok(true) => sleep(POLL),
                _ => break,
            }
        }
        self.kill();
    }

    /// Ends the machine at once.
    pub fn kill(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let group = format!("-{}", self.child.id());
            // Nothing is left to do about a kill that fails.
            let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
            let _ = self.child.wait();
        }
    }
}

impl Drop for Vm {
    fn drop(&mut self) {
        self.kill();
        // QEMU that ended by itself has removed it.
        let _ = fs::remove_file(&self.control);
    }
}

/// The emulated processor, without the string instructions that a real one makes fast: where the kernel sees them, it copies and
/// clears by bytes, and the emulator goes through them one at a time.
const CPU: &str = "-cpu max,-erms,-fsrm,-fsrs,-fzrm";

/// A disk without storage, whose buffer the kernel's driver gives to other devices: memory of a device in the kernel's direct map.
const BUFFER: &str = "-device nvme,serial=buffer,cmb_size_mb=16";

/// The virtme-ng command line. Only in a shell, which lives long, the guest looks at a file of the host anew when it is opened.
fn virtme(setup: &Setup, dir: &Path, accel: Accel, control: &Path, shell: bool) -> Command {
    let mut command = Command::new("vng");
    if !shell {
        let path = std::env::var("PATH").unwrap_or_default();
        let host = setup.top.join("qemu-tests/host");
        command.env("PATH", format!("{}:{path}", host.display()));
    }
    command.arg("--run").arg(&setup.kernel);
    if accel != Accel::Kvm {
        command.arg("--disable-kvm");
    }
    command
        // Also where the kernel could do without one: the last init= counts there, which is virtme-ng's.
        .arg("--force-initramfs")
        .args(["--user", "root", "--memory"])
        .arg(if setup.debug { "3G" } else { "2G" })
        .arg("--cpus")
        .arg(setup.cpus.to_string())
        .arg(format!("--rwdir=/mnt={}", dir.display()));
    // virtme-ng's initial RAM disk takes the first init= it sees.
    let init = setup.top.join("qemu-tests/guest/init");
    // Files come from a process beside QEMU, whose writes to the guest's memory the emulation does not see: it would go
    // on executing what it translated from a page before. Clearing pages when they are given out shows it each change.
    // Debian's kernels do so anyway.
    let mut parameters = format!("loglevel=5 init_on_alloc=1 init={}", init.display());
    // On a busy computer the emulated timer is late for the kernel's check of it.
    parameters += " no_timer_check";
    if setup.debug {
        // With page tables of five levels an interrupt at an unlucky moment of its boot makes KASAN report the kernel itself, and
        // then lockdep is off: while the processor is identified, what it can do is unknown, and so where shadow memory is.
        parameters += " no5lvl";
        // The watchdogs give it as much more time as the cases get.
        parameters += &format!(" watchdog_thresh={}", WATCHDOG_S * SLOWER);
        parameters += &format!(" rcupdate.rcu_cpu_stall_timeout={}", STALL_S * SLOWER);
    }
    if !setup.parameters.is_empty() {
        parameters = format!("{parameters} {}", setup.parameters);
    }
    command.arg("--append").arg(parameters);
    let qemu = match (accel, setup.icount) {
        (Accel::Kvm, _) => "-cpu host".to_owned(),
        (Accel::Tcg, false) => CPU.to_owned(),
        (Accel::TcgTurns, false) => format!("{CPU} -accel tcg,thread=single"),
        (_, true) => "-cpu max -icount shift=0,sleep=off".to_owned(),
    };
    let qemu = match &setup.plugin {
        Some(plugin) if accel != Accel::Kvm => format!("{qemu} -plugin {plugin}"),
        _ => qemu,
    };
    if shell {
        command.arg(format!("--qemu-opts={qemu}"));
    } else {
        command.arg(format!(
            "--qemu-opts={qemu} -name debug-threads=on {BUFFER} \
             -chardev socket,id=control,path={},server=on,wait=off \
             -device virtserialport,name=dtrace.control,chardev=control",
            control.display()
        ));
        // Verbose: the console goes to standard error.
        command.args(["--verbose", "--", "true"]);
    }
    command
}

/// A file that grows, read as it does.
struct Tail {
    path: PathBuf,
    at: u64,
}

impl Tail {
    fn new(path: PathBuf) -> Self {
        Self { path, at: 0 }
    }

    /// Copies what is new.
    fn copy(&mut self, to: &mut dyn Write) -> io::Result<()> {
        let Ok(mut file) = File::open(&self.path) else {
            return Ok(());
        };
        file.seek(SeekFrom::Start(self.at))?;
        let mut new = Vec::new();
        file.read_to_end(&mut new)?;
        self.at += new.len() as u64;
        to.write_all(&new)?;
        to.flush()
    }
}

/// A file as text; empty where it cannot be read.
pub fn read_lossy(path: &Path) -> String {
    fs::read(path).map_or_else(
        |_| String::new(),
        |bytes| String::from_utf8_lossy(&bytes).into_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tail_gives_each_byte_once() {
        let path = std::env::temp_dir().join(format!("tail-{}", std::process::id()));
        let mut tail = Tail::new(path.clone());
        let mut out = Vec::new();
        tail.copy(&mut out).expect("a file that is not there yet");
        fs::write(&path, "one ").expect("write");
        tail.copy(&mut out).expect("first");
        fs::write(&path, "one two").expect("write");
        tail.copy(&mut out).expect("second");
        fs::remove_file(&path).expect("remove");
        assert_eq!(out, b"one two");
    }
}
