// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! What happens to the machine in a round: a CPU goes offline and online, modules are loaded and
//! unloaded, all tasks are frozen as for a suspend, and the module itself is unloaded and loaded.
//!
//! A suspend goes as far as the machine can: the driver of its root file system (virtiofs) refuses
//! to sleep, so tasks are frozen and thawed, and devices stay awake (`/sys/power/pm_test`).

use crate::counted::{execs, FOLDER, NAMES};
use crate::program::{run, sleep, Outcome};
use qemu_tests::console;
use qemu_tests::random::Random;
use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// `O_NONBLOCK`, so that reading the log ends where there is nothing to read.
const NONBLOCK: i32 = 0o4000;

fn write(path: &str, text: &str) -> Outcome {
    fs::write(path, text).map_err(|e| format!("{path}: {e}"))
}

/// Runs these lines, which must succeed.
fn shell(lines: &str, slower: u32) -> Outcome {
    run(&["sh", "-ec", lines], slower).map(drop)
}

/// Finds a program in the path.
fn which(name: &str) -> Result<PathBuf, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(name));
    let mut found = found.filter(|file| file.is_file());
    found.next().ok_or(format!("no {name}"))
}

fn make_folder(path: &str, mode: u32) -> Outcome {
    fs::create_dir_all(path).map_err(|e| format!("{path}: {e}"))?;
    let set = fs::set_permissions(path, fs::Permissions::from_mode(mode));
    set.map_err(|e| format!("{path}: {e}"))
}

/// Prepares what the rounds need: a disk, and loads with names of their own. Closed TCP connections
/// are not kept in TIME-WAIT for a minute, because they would be counted.
pub fn prepare(slower: u32) -> Outcome {
    make_folder(FOLDER, 0o755)?;
    make_folder(&format!("{FOLDER}/out"), 0o1777)?;
    for (name, program) in NAMES {
        let copied = fs::copy(which(program)?, format!("{FOLDER}/{name}"));
        copied.map_err(|e| format!("{name}: {e}"))?;
    }
    write(&format!("{FOLDER}/execs"), &execs())?;
    write("/proc/sys/net/ipv4/tcp_max_tw_buckets", "0")?;
    shell(
        &format!(
            "modprobe loop; cd {FOLDER}; truncate -s 32M image; disk=$(losetup -f); losetup $disk image; busybox mke2fs $disk; mkdir -p disk
            mount -t ext4 $disk disk; mkdir -p disk/other"
        ),
        slower,
    )
}

/// Loads the module, with tracing rights for the members' group. The deadman's timeouts are long,
/// because the machine is overloaded on purpose.
pub fn load(slower: u32) -> Outcome {
    let path = fs::read_to_string("/run/vm/module").map_err(|e| format!("no module: {e}"))?;
    let timeout = format!("deadman_timeout={}", 60_000 * slower);
    let user = format!("deadman_user={}", 120_000 * slower);
    run(
        &["insmod", path.trim(), "group=77", &timeout, &user],
        slower,
    )?;
    let mode = fs::set_permissions("/dev/dtrace", fs::Permissions::from_mode(0o666));
    mode.map_err(|e| format!("/dev/dtrace: {e}"))
}

/// Unloads the module.
pub fn unload(slower: u32) -> Outcome {
    run(&["rmmod", "dtrace"], slower).map(drop)
}

/// Takes a CPU offline and online again.
fn hotplug(random: &mut Random) -> Outcome {
    let online = "/sys/devices/system/cpu/cpu1/online";
    if !Path::new(online).exists() {
        return Ok(());
    }
    write(online, "0")?;
    sleep(random, 600);
    write(online, "1")
}

/// Loads modules that nothing else uses, uses them, and unloads them; the one with a provider once
/// no consumer traces it any more.
fn modules(slower: u32) -> Outcome {
    shell(
        "modprobe dummy numdummies=0; ip link add soak0 type dummy; ip link del soak0; modprobe -r dummy
        modprobe brd rd_nr=1 rd_size=4096; dd if=/dev/zero of=/dev/ram0 bs=64k count=4 oflag=direct 2>/dev/null; modprobe -r brd
        insmod $(dirname $(cat /run/vm/module))/../provider/dtrace_sample.ko; for n in $(seq 20); do echo some >/proc/dtrace_sample; sleep 0.1; done
        for n in $(seq 600); do ! rmmod dtrace_sample 2>/dev/null || exit 0; sleep 0.1; done; exit 1",
        slower,
    )
}

/// Freezes all tasks for a second. An error if the kernel cannot.
fn suspend() -> Outcome {
    if !Path::new("/sys/power/pm_test").exists() {
        return Err("this kernel cannot suspend as far as it is told (CONFIG_PM_DEBUG)".into());
    }
    write("/sys/module/suspend/parameters/pm_test_delay", "1")?;
    write("/sys/power/pm_test", "freezer")?;
    write("/sys/power/state", "mem")
}

/// The events of one round, one after the other.
pub fn events(seed: u64, suspends: bool, slower: u32) -> Outcome {
    let mut random = Random::new(seed);
    sleep(&mut random, 4000 * slower);
    hotplug(&mut random)?;
    modules(slower)?;
    if suspends {
        suspend()?;
    }
    sleep(&mut random, 2000 * slower);
    hotplug(&mut random)?;
    modules(slower)
}

/// The kernel's messages from now on.
pub struct Log(File);

impl Log {
    /// Opens the log at its end.
    pub fn open() -> Result<Self, String> {
        let mut options = OpenOptions::new();
        let file = options.read(true).custom_flags(NONBLOCK).open("/dev/kmsg");
        let mut log = Self(file.map_err(|e| format!("/dev/kmsg: {e}"))?);
        log.lines();
        Ok(log)
    }

    /// The lines since the last call.
    fn lines(&mut self) -> Vec<String> {
        let mut record = [0; 8192];
        let mut lines = Vec::new();
        loop {
            match self.0.read(&mut record) {
                Ok(n) => {
                    let bytes = record.get(..n).unwrap_or_default();
                    let text = String::from_utf8_lossy(bytes);
                    lines.push(text.split_once(';').unwrap_or(("", &text)).1.to_owned());
                }
                // Some records were overwritten.
                Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => (),
                Err(_) => return lines,
            }
        }
    }

    /// Fails with the first line in which the kernel complains, or in which the module says
    /// anything except that it is loaded.
    pub fn trouble(&mut self) -> Outcome {
        let lines = self.lines();
        let is_ours = |l: &&String| l.starts_with("dtrace: ") && !l.contains("taint");
        let first = lines
            .iter()
            .find(|line| console::is_trouble(line) || is_ours(line));
        match first {
            Some(line) => Err(format!("the kernel says {}", line.trim_end())),
            None => Ok(()),
        }
    }
}
