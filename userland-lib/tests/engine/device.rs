// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! A [`Device`] that runs the kernel's engine in user space.
//!
//! It replaces the module's framework with the minimum that the tests need: a table of probes, the
//! binding of an image's clauses to matching probes, and `BEGIN`, `END` and `ERROR`. There is one
//! thread. It runs on the CPU that the test names.

use std::{
    cell::{Cell, RefCell},
    io,
};

use dtrace::device::{fill, text, Buffer, Device};
use dtrace_engine::{Config, Consumer, Cpu, Ecb, Enabling, Features, Privileges, Reason, Which};
use dtrace_uapi::glob;
use dtrace_uapi::{
    dif::{DIF_NREGS, DIF_NTREGS, DIF_VERSION},
    ioctl::{
        AggDesc, ArgDesc, BufDesc, Conf, EprobeDesc, ProbeDesc, ProviderDesc, RecDesc, Status,
        INTERFACE,
    },
    option::{self, Opt},
    types::{AggId, Epid, ProbeId},
};
use zerocopy::FromZeros;

use super::machine::{Firing, Platform, Thread};

/// Number of CPUs of the machine.
pub const CPUS: u32 = 2;

/// The probes, in the order of their IDs from 1. The first three are DTrace's own.
const PROBES: [[&str; 4]; 10] = [
    ["dtrace", "", "", "BEGIN"],
    ["dtrace", "", "", "END"],
    ["dtrace", "", "", "ERROR"],
    ["syscall", "vmlinux", "read", "entry"],
    ["syscall", "vmlinux", "read", "return"],
    ["syscall", "vmlinux", "write", "entry"],
    ["syscall", "vmlinux", "write", "return"],
    ["fbt", "vmlinux", "vfs_read", "entry"],
    ["fbt", "vmlinux", "vfs_read", "return"],
    ["profile", "", "", "tick-1s"],
];
const BEGIN: ProbeId = 1;
const END: ProbeId = 2;
const ERROR: ProbeId = 3;

/// One consumer of an engine.
pub struct EngineDevice {
    /// The machine on which probes fire.
    pub platform: Platform,
    /// The thread in which probes fire.
    pub thread: Cell<Thread>,
    consumer: Consumer,
    ecbs: RefCell<Vec<Ecb>>,
    reason: RefCell<String>,
}

fn describe(id: ProbeId) -> Option<ProbeDesc> {
    let index = usize::try_from(id.checked_sub(1)?).ok()?;
    let [provider, module, func, name] = *PROBES.get(index)?;
    Some(ProbeDesc {
        id,
        provider: fill(provider)?,
        module: fill(module)?,
        func: fill(func)?,
        name: fill(name)?,
    })
}

/// Whether `pattern` matches `probe`. An empty part matches everything.
fn matches(pattern: &ProbeDesc, probe: &ProbeDesc) -> bool {
    let part = |pattern: &[u8], value: &[u8]| {
        let pattern = text(pattern);
        pattern.is_empty() || glob::matches(pattern.as_bytes(), text(value).as_bytes())
    };
    part(&pattern.provider, &probe.provider)
        && part(&pattern.module, &probe.module)
        && part(&pattern.func, &probe.func)
        && part(&pattern.name, &probe.name)
}

fn claim(cpu: u32) -> Cpu {
    // SAFETY: Only one thread uses a device, and no claim outlives the call for which it is made.
    unsafe { Cpu::claim(cpu as usize) }
}

impl EngineDevice {
    /// Returns a machine on which nothing is enabled.
    pub fn new() -> Self {
        let config = Config {
            ncpus: CPUS as usize,
            privileges: Privileges::ALL,
            features: Features {
                signals: true,
                ustack: true,
                chill: true,
                user_store: true,
                ..Features::default()
            },
            begin: BEGIN,
            end: END,
            error: ERROR,
            seed: 1,
            secret: 1,
            is_killed: || false,
        };
        Self {
            platform: Platform::default(),
            thread: Cell::default(),
            consumer: Consumer::new(config).expect("memory for a consumer"),
            ecbs: RefCell::default(),
            reason: RefCell::default(),
        }
    }

    /// Fires the probe `name`, as in `syscall::read:entry`, on `cpu`.
    pub fn fire(&self, cpu: u32, name: &str, args: &[u64]) {
        let parts: Vec<&str> = name.split(':').collect();
        let mut pattern = ProbeDesc::new_zeroed();
        if let [provider, module, func, name] = parts[..] {
            pattern.provider = fill(provider).expect("a short provider");
            pattern.module = fill(module).expect("a short module");
            pattern.func = fill(func).expect("a short function");
            pattern.name = fill(name).expect("a short name");
        }
        let probe = self.next_probe(&pattern).expect("a table");
        self.fire_probe(cpu, probe.expect("a probe of the table").id, args);
    }

    fn fire_probe(&self, cpu: u32, id: ProbeId, args: &[u64]) {
        let Some(probe) = describe(id) else {
            return;
        };
        let ecbs: Vec<Ecb> = self.ecbs.borrow().clone();
        let firing = Firing::new(&self.platform, self.thread.get(), &probe, args);
        for ecb in ecbs.into_iter().filter(|ecb| ecb.probe == id) {
            if let Some(fault) = self.consumer.fire(&claim(cpu), ecb, &firing) {
                let args = [
                    0,
                    fault.epid.into(),
                    fault.action.into(),
                    fault.offset.into(),
                    fault.fault as u64,
                    fault.value,
                ];
                self.fire_probe(cpu, ERROR, &args);
            }
        }
    }

    /// Runs the cleaner, which finishes the speculations into which several CPUs may have recorded.
    pub fn clean(&self) {
        let on_cpu = |cpu, visit: &mut (dyn FnMut(&Cpu) + Send)| {
            visit(&claim(cpu as u32));
            true
        };
        let now = self.platform.now.get();
        self.consumer.clean_speculations(|| now, on_cpu);
    }

    /// Converts a refusal of the engine to an error number, and stores the reason for
    /// [`Device::reason`].
    fn refuse(&self, reason: Reason) -> io::Error {
        *self.reason.borrow_mut() = reason.to_string();
        io::Error::from_raw_os_error(reason.errno.0)
    }
}

impl Device for EngineDevice {
    fn conf(&self) -> io::Result<Conf> {
        Ok(Conf {
            difversion: DIF_VERSION.into(),
            interface: INTERFACE,
            difintregs: DIF_NREGS as u32,
            diftupregs: DIF_NTREGS as u32,
            ..Conf::default()
        })
    }

    fn cpus(&self) -> u32 {
        CPUS
    }

    fn provider(&self, name: &str) -> io::Result<Option<ProviderDesc>> {
        let mut desc = ProviderDesc::new_zeroed();
        let known = PROBES.iter().any(|probe| probe[0] == name);
        desc.name = fill(name).unwrap_or(desc.name);
        Ok(known.then_some(desc))
    }

    fn next_probe(&self, pattern: &ProbeDesc) -> io::Result<Option<ProbeDesc>> {
        let mut later = (pattern.id + 1..).map_while(describe);
        Ok(later.find(|probe| matches(pattern, probe)))
    }

    fn argument(&self, _probe: ProbeId, _index: u32) -> io::Result<Option<ArgDesc>> {
        Ok(None)
    }

    fn enable(&self, dof: &[u8]) -> io::Result<u32> {
        let enabling = Enabling::parse(dof).map_err(|reason| self.refuse(reason))?;
        let mut pending = self
            .consumer
            .prepare(enabling.options(), enabling.clauses())
            .map_err(|reason| self.refuse(reason))?;
        pending
            .add_walkers(enabling.walkers(), &self.consumer)
            .map_err(|reason| self.refuse(reason))?;
        let mut binding = self.consumer.binding();
        let mut made = Vec::new();
        for (index, clause) in enabling.clauses().iter().enumerate() {
            let id = pending.clause(index).expect("each clause was prepared");
            let wanted = clause.probe.id;
            let all = (1..).map_while(describe);
            for probe in all.filter(|p| match wanted {
                0 => matches(&clause.probe, p),
                _ => p.id == wanted,
            }) {
                let ecb = binding.bind(id, probe.id);
                made.push(ecb.map_err(|reason| self.refuse(reason))?);
            }
        }
        pending.commit();
        binding.keep();
        let count = made.len() as u32;
        self.ecbs.borrow_mut().extend(made);
        Ok(count)
    }

    fn enabled_probe(&self, epid: Epid) -> io::Result<(EprobeDesc, Vec<RecDesc>)> {
        let copy = |desc: &EprobeDesc, records: &[RecDesc]| (*desc, records.to_vec());
        let found = self.consumer.eprobe(epid, copy);
        found.map_err(|reason| self.refuse(reason))
    }

    fn aggregation(&self, id: AggId) -> io::Result<(AggDesc, Vec<RecDesc>)> {
        let copy = |desc: &AggDesc, records: &[RecDesc]| (*desc, records.to_vec());
        let found = self.consumer.aggdesc(id, copy);
        found.map_err(|reason| self.refuse(reason))
    }

    fn go(&self) -> io::Result<u32> {
        self.consumer.go().map_err(|reason| self.refuse(reason))?;
        self.fire_probe(0, BEGIN, &[]);
        self.consumer.activate();
        Ok(0)
    }

    fn stop(&self) -> io::Result<u32> {
        self.consumer.cool_down();
        self.fire_probe(0, END, &[]);
        self.consumer.stop();
        self.clean();
        Ok(0)
    }

    fn status(&self) -> io::Result<Status> {
        let status = self.consumer.status();
        status.map_err(|reason| self.refuse(reason))
    }

    fn snapshot(&self, which: Buffer, cpu: u32, room: &mut [u8]) -> io::Result<Option<BufDesc>> {
        let which = match which {
            Buffer::Principal => Which::Principal,
            Buffer::Aggregation => Which::Aggregation,
        };
        let now = self.platform.now.get();
        self.consumer
            .switch(&claim(cpu), which, now)
            .map_err(|reason| self.refuse(reason))?;
        let desc = self.consumer.snapshot(cpu as usize, which, |snapshot| {
            let n = snapshot.data.len().min(room.len());
            room[..n].copy_from_slice(&snapshot.data[..n]);
            BufDesc {
                size: n as u64,
                cpu,
                errors: snapshot.errors,
                drops: snapshot.drops,
                data: 0,
                oldest: snapshot.oldest,
                timestamp: snapshot.timestamp,
            }
        });
        desc.map(Some).map_err(|reason| self.refuse(reason))
    }

    fn options(&self) -> io::Result<Vec<(Opt, u64)>> {
        let options = option::NAMES.iter().map(|(opt, _)| *opt);
        let options = options.map(|opt| (opt, self.consumer.option(opt)));
        Ok(options
            .filter(|(_, value)| *value != option::UNSET)
            .collect())
    }

    fn reason(&self) -> String {
        self.reason.take()
    }
}
