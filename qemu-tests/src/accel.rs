// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! KVM or emulation.
//!
//! `/dev/kvm` may exist, open, and even create a vCPU, and still be unable to run a kernel (nested
//! virtualization without hardware support). Only a trial boot tells. Its outcome is cached, keyed
//! by the computer's processor and kernel.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use crate::vm::{Order, Setup, Vm};

/// The limit of a trial boot: a machine with KVM needs a fraction of this.
const TRIAL: Duration = Duration::from_secs(20);

/// How the guest's instructions are executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accel {
    /// By the processor.
    Kvm,
    /// By QEMU, with one thread per processor.
    Tcg,
    /// By QEMU, with processors that take turns in one thread. Slower, but no processor sees
    /// another's change of code half done.
    TcgTurns,
}

/// Returns what this computer can do. Boots a trial machine if nothing is cached.
pub fn choose(setup: &Setup) -> io::Result<Accel> {
    if !Path::new("/dev/kvm").exists() {
        return Ok(Accel::Tcg);
    }
    let memory = setup.cache.join("accel");
    let machine = machine()?;
    if let Some(known) = fs::read_to_string(&memory)
        .ok()
        .and_then(|text| recall(&text, &machine))
    {
        return Ok(known);
    }
    let found = if trial(setup)? {
        Accel::Kvm
    } else {
        Accel::Tcg
    };
    let word = match found {
        Accel::Kvm => "kvm",
        Accel::Tcg | Accel::TcgTurns => "tcg",
    };
    fs::write(&memory, format!("{word} {machine}\n"))?;
    Ok(found)
}

fn recall(text: &str, machine: &str) -> Option<Accel> {
    match text.trim_end().split_once(' ')? {
        ("kvm", of) if of == machine => Some(Accel::Kvm),
        ("tcg", of) if of == machine => Some(Accel::Tcg),
        _ => None,
    }
}

/// What distinguishes this computer from others that share the cache: its processor and its kernel.
fn machine() -> io::Result<String> {
    let cpu = fs::read_to_string("/proc/cpuinfo")?
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map_or_else(String::new, |(_, name)| name.to_owned());
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease")?;
    Ok(format!("{} / {cpu}", kernel.trim_end()))
}

fn trial(setup: &Setup) -> io::Result<bool> {
    let dir = setup.run_dir("kvm-trial")?;
    let trial = Setup {
        accel: Some(Accel::Kvm),
        module: None,
        ..setup.clone()
    };
    let mut vm = Vm::boot(&trial, &dir, &Order::Run("exit 42".to_owned()))?;
    let status = vm.wait_status(TRIAL)?;
    vm.stop();
    fs::remove_dir_all(&dir)?;
    Ok(status == Some(42))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_machine_is_tried_anew() {
        assert_eq!(recall("kvm 6.1 / cpu x\n", "6.1 / cpu x"), Some(Accel::Kvm));
        assert_eq!(recall("tcg 6.1 / cpu x\n", "6.1 / cpu x"), Some(Accel::Tcg));
        assert_eq!(recall("kvm 6.1 / cpu x\n", "6.1 / cpu y"), None);
        assert_eq!(recall("", "6.1 / cpu y"), None);
    }
}
