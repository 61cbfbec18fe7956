// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! The peers' root, entered by chroot(8), into which the machine's /proc, /sys and /dev are bound, and the daemon that one of them needs for
//! programs' own probes: its helper device is a character device in user space (cuse).

use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::command;

/// Where programs tell the daemon of their probes. With our module loaded `/dev/dtrace` is no directory.
const HELPER: &str = "/dev/dtrace/helper";
/// Longer than the daemon takes to make it, in the guest's time.
const LIMIT: Duration = Duration::from_secs(60);

/// Makes the root fit to be entered.
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

/// The other DTrace's daemon, which ends with this.
pub struct Daemon(Child);

impl Daemon {
    /// Starts it, and waits until programs can tell it something.
    pub fn start(root: &Path) -> io::Result<Self> {
        command(Command::new("modprobe").arg("cuse"))?;
        let mut daemon = Command::new("chroot")
            .arg(root)
            // In the foreground.
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
