// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The peers' root file system, entered by chroot(8) with the machine's /proc, /sys and /dev bound
//! into it, and the daemon that one of the peers needs for USDT probes: its helper device is a
//! character device in user space (cuse).

use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::command;

/// The device with which programs register their probes at the daemon. If this project's module is
/// loaded, `/dev/dtrace` is not a directory.
const HELPER: &str = "/dev/dtrace/helper";
/// Longer than the daemon takes to create it, in the guest's time.
const LIMIT: Duration = Duration::from_secs(60);

/// Mounts into the root what a chroot into it needs.
pub fn enter(root: &Path) -> io::Result<()> {
    for (from, to) in [("/proc", "proc"), ("/sys", "sys"), ("/dev", "dev")] {
        command(
            Command::new("mount")
                .arg("--rbind")
                .arg(from)
                .arg(root.join(to)),
        )?;
    }
    for directory in ["tmp", "run"] {
        command(
            Command::new("mount")
                .args(["-t", "tmpfs", "tmpfs"])
                .arg(root.join(directory)),
        )?;
    }
    Ok(())
}

/// The other DTrace's daemon; dropping it ends the daemon.
pub struct Daemon(Child);

impl Daemon {
    /// Starts the daemon, and waits until programs can register probes.
    pub fn start(root: &Path) -> io::Result<Self> {
        command(Command::new("modprobe").arg("cuse"))?;
        let mut daemon = Command::new("chroot")
            .arg(root)
            // `-F`: in the foreground.
            .args(["dtprobed", "-F"])
            .stdin(Stdio::null())
            .spawn()
            .map(Self)?;
        let begin = Instant::now();
        while !Path::new(HELPER).exists() {
            if daemon.0.try_wait()?.is_some() || begin.elapsed() > LIMIT {
                return Err(io::Error::other("dtprobed made no helper device"));
            }
            sleep(Duration::from_millis(20));
        }
        Ok(daemon)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _it_has_ended = self.0.kill().and_then(|()| self.0.wait());
    }
}
