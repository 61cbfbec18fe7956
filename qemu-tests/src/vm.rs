// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! One virtual machine: booted by virtme-ng, controlled by files in a run directory, followed until
//! its work is done.
//!
//! The run directory is shared with the guest; `guest/init` describes the files. Output comes back
//! through files too, never mixed with the console, which has its own file. The machine's work is
//! done when its `status` exists; a machine that ends without one has failed.

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

/// A file in the run directory with which the guest requests to be stopped. It contains
/// milliseconds and a newline.
const STAND_STILL: &str = "stand-still";

/// How often the run directory is polled.
pub const POLL: Duration = Duration::from_millis(30);
/// How long a machine that has written its status may take to power off.
const POWER_OFF: Duration = Duration::from_secs(3);

/// Paths, and properties that all machines of this process share.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The checkout.
    pub top: PathBuf,
    /// The cache folder of the build.
    pub cache: PathBuf,
    /// The build folder of this checkout.
    pub build: PathBuf,
    /// The build folder for this kernel.
    pub kernel_build: PathBuf,
    /// The kernel image.
    pub kernel: PathBuf,
    /// The kernel's release, as `uname -r` prints it.
    pub release: String,
    /// The module to load, if any.
    pub module: Option<PathBuf>,
    /// How to run the guest's instructions; `None` lets [`crate::accel::choose`] decide.
    pub accel: Option<Accel>,
    /// Make the guest's clock count instructions: exact and repeatable, but slow, and only with one
    /// processor.
    pub icount: bool,
    /// The number of processors.
    pub cpus: u32,
    /// Whether the kernel is the debug kernel, which needs more memory and more time.
    pub debug: bool,
    /// Kernel parameters in addition to those that every machine gets.
    pub parameters: String,
    /// A plugin of the emulator and its arguments, as `-plugin` takes them.
    pub plugin: Option<String>,
}

/// How many times longer the debug kernel may take: emulated, it needs about five times as many
/// instructions.
const SLOWER: u32 = 6;

/// Seconds that an RCU reader may take before the kernel complains
/// (`CONFIG_RCU_CPU_STALL_TIMEOUT`).
const STALL_S: u32 = 21;

/// Seconds after which the kernel reports a hard lockup; it reports a CPU that does not schedule
/// after twice as many (kernel/watchdog.c: `watchdog_thresh`).
const WATCHDOG_S: u32 = 10;

impl Setup {
    /// Reads the setup that `scripts/vm` passes in the environment.
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

    /// The limit in this machine for what takes `usual` on the stock kernel: longer on the debug
    /// kernel.
    pub fn limit(&self, usual: Duration) -> Duration {
        let slower = if self.debug { SLOWER } else { 1 };
        usual * slower
    }

    /// Creates the file of how many seconds each case took on this kernel, for finding out which
    /// cases make the run long.
    pub fn times(&self) -> io::Result<File> {
        let name = match self.debug {
            true => "case-times-debug",
            false => "case-times",
        };
        File::create(self.build.join(name))
    }

    /// Creates a new, empty run directory that no other process uses while this one lives. The name
    /// does not contain the process ID, because each process has a PID namespace of its own and the
    /// IDs are not unique.
    pub fn run_dir(&self, name: &str) -> io::Result<PathBuf> {
        let run = self.build.join("run");
        fs::create_dir_all(&run)?;
        let mut number = 0;
        let dir = loop {
            let lock = File::create(run.join(format!("{name}-{number}.lock")))?;
            match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {
                    // The lock is held until the process ends.
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

/// What the machine does.
#[derive(Debug)]
pub enum Order {
    /// Runs this text as a bash script and ends.
    Run(String),
    /// Runs the cases in the run directory's `cases` and ends.
    Cases,
    /// Runs an interactive shell on this terminal.
    Shell,
}

/// How a machine's work ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// With the status that the guest left.
    Status(i32),
    /// It was still working when its limit was reached.
    Late,
    /// It was interrupted before its command began, or more often than `INTERRUPTS`.
    Interrupted,
    /// The machine ended without a status.
    Died,
}

/// How many interrupts are passed on to the command before the machine is ended: dtrace stops
/// tracing at the first, and exits at once at the second.
const INTERRUPTS: usize = 2;

/// A running machine.
pub struct Vm {
    dir: PathBuf,
    child: Child,
    control: PathBuf,
    /// A connection to the guest's control port, once QEMU listens.
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

    /// Whether a processor may execute code that another has changed already, as emulated
    /// processors with a thread each do
    /// ([`console::stale_breakpoint`](crate::console::stale_breakpoint)).
    pub fn may_run_stale_code(&self) -> bool {
        self.accel == Accel::Tcg
    }

    /// The console's log so far.
    pub fn console(&self) -> String {
        read_lossy(&self.dir.join("console.log"))
    }

    /// The status that the guest left, if it has.
    pub fn status(&self) -> Option<i32> {
        fs::read_to_string(self.dir.join("status"))
            .ok()?
            .trim()
            .parse()
            .ok()
    }

    /// Whether the machine still runs. Stops it for a while first if the guest has requested that.
    pub fn running(&mut self) -> io::Result<bool> {
        self.stand_still()?;
        Ok(self.child.try_wait()?.is_none())
    }

    /// Stops the machine and all its helpers for as many milliseconds as the guest has written to
    /// [`STAND_STILL`], and removes the file when they continue. Simulates a computer that is busy
    /// with something else.
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

    /// Waits for the status; `None` if the machine ends without one or the limit is reached.
    pub fn wait_status(&mut self, limit: Duration) -> io::Result<Option<i32>> {
        match self.follow(limit, &mut io::sink(), &mut io::sink(), &mut || 0)? {
            End::Status(status) => Ok(Some(status)),
            _ => Ok(None),
        }
    }

    /// Waits for the machine's work to end. Passes on the command's output as it comes, and
    /// interrupts to the command: `interrupts` returns how many have come since its last call.
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
            // Read before the output, so that the end of the output is not missed.
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

    /// Connects to the control port; without a peer the guest would read an end of file.
    fn connect(&mut self) {
        if self.port.is_none() {
            self.port = UnixStream::connect(&self.control).ok();
        }
    }

    /// Interrupts the command as a terminal would; false if there is no command yet.
    fn interrupt(&mut self) -> bool {
        self.dir.join("stdout").exists()
            && self
                .port
                .as_mut()
                .is_some_and(|port| port.write_all(b"INT\n").is_ok())
    }

    /// Waits until the machine has ended by itself.
    pub fn wait(&mut self) -> io::Result<()> {
        self.child.wait().map(drop)
    }

    /// Ends the machine: gives it a moment if it is powering off, then kills it.
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
            // Errors are ignored: nothing is left to do if the kill fails.
            let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
            let _ = self.child.wait();
        }
    }
}

impl Drop for Vm {
    fn drop(&mut self) {
        self.kill();
        // QEMU has removed the socket already if it ended by itself.
        let _ = fs::remove_file(&self.control);
    }
}

/// The emulated processor. The features that advertise fast string instructions are off: with them
/// the kernel copies and clears memory by bytes, and the emulator executes those one at a time.
const CPU: &str = "-cpu max,-erms,-fsrm,-fsrs,-fzrm";

/// A disk without storage, whose controller memory buffer the kernel's driver offers to other
/// devices. It provides device memory in the kernel's direct map.
const BUFFER: &str = "-device nvme,serial=buffer,cmb_size_mb=16";

/// Builds the virtme-ng command line. With a shell, which lives long, the guest revalidates a file
/// of the host whenever it is opened; without one it caches files (`qemu-tests/host`).
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
        // Forced even if the kernel could boot without an initramfs: without it the last init=
        // counts, which is virtme-ng's.
        .arg("--force-initramfs")
        .args(["--user", "root", "--memory"])
        .arg(if setup.debug { "3G" } else { "2G" })
        .arg("--cpus")
        .arg(setup.cpus.to_string())
        .arg(format!("--rwdir=/mnt={}", dir.display()));
    // virtme-ng's initramfs uses the first init= it finds.
    let init = setup.top.join("qemu-tests/guest/init");
    // Files are served by a process beside QEMU, whose writes to the guest's memory the emulation
    // does not see: QEMU would keep executing its translations of a page's former content. Clearing
    // pages when they are allocated makes the changes visible to it. Debian's kernels do so anyway.
    let mut parameters = format!("loglevel=5 init_on_alloc=1 init={}", init.display());
    // On a busy computer the emulated timer fails the kernel's check.
    parameters += " no_timer_check";
    if setup.debug {
        // With five-level page tables, an interrupt at an unlucky moment of the boot makes KASAN
        // report the kernel itself, which turns lockdep off: while the processor is being
        // identified, its features are unknown, and so is the location of the shadow memory.
        parameters += " no5lvl";
        // The watchdogs get the same factor as the cases' limits.
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
        // `--verbose` sends the console to standard error.
        command.args(["--verbose", "--", "true"]);
    }
    command
}

/// Reads a growing file.
struct Tail {
    path: PathBuf,
    at: u64,
}

impl Tail {
    fn new(path: PathBuf) -> Self {
        Self { path, at: 0 }
    }

    /// Copies what has been added since the last call.
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

/// Reads a file as text; empty if it cannot be read.
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
