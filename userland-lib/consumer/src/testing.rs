// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! A device made of tables, for tests of consuming and of what becomes of records.

use crate::consume::{until_readable, ConsumeError, Consumer, Context, Places, Receiver};
use crate::device::{fill, Buffer, Device};
use crate::symbolizer::NoSymbols;
use dtrace_compiler::format::Format;
use dtrace_compiler::options::{Options, Setter};
use dtrace_compiler::statement::{self, Print, Statement};
use dtrace_uapi::action::Action;
use dtrace_uapi::ioctl::{
    AggDesc, ArgDesc, BufDesc, Conf, EprobeDesc, ProbeDesc, ProviderDesc, RecDesc, RecHdr, Status,
};
use dtrace_uapi::types::{AggId, Epid, ProbeId};
use nix::errno::Errno;
use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use zerocopy::IntoBytes;

/// A device made of tables. Requests for anything else fail with `EINVAL`.
#[derive(Default)]
pub struct Tables {
    /// The probes.
    pub probes: Vec<ProbeDesc>,
    /// The enabled probes.
    pub enabled: HashMap<Epid, (EprobeDesc, Vec<RecDesc>)>,
    /// The aggregations.
    pub aggregations: HashMap<AggId, (AggDesc, Vec<RecDesc>)>,
    /// Data and drops of the principal buffers, by CPU. A buffer is read once.
    pub principal: RefCell<HashMap<u32, (Vec<u8>, u64)>>,
    /// The data of the aggregation buffers, by CPU.
    pub aggregated: RefCell<HashMap<u32, Vec<u8>>>,
}

fn missing<T>() -> io::Result<T> {
    Err(Errno::EINVAL.into())
}

impl Device for Tables {
    fn conf(&self) -> io::Result<Conf> {
        missing()
    }
    fn cpus(&self) -> u32 {
        2
    }
    fn provider(&self, _name: &str) -> io::Result<Option<ProviderDesc>> {
        missing()
    }
    fn next_probe(&self, pattern: &ProbeDesc) -> io::Result<Option<ProbeDesc>> {
        Ok(self
            .probes
            .iter()
            .find(|probe| probe.id > pattern.id)
            .copied())
    }
    fn argument(&self, _probe: ProbeId, _index: u32) -> io::Result<Option<ArgDesc>> {
        missing()
    }
    fn enable(&self, _dof: &[u8]) -> io::Result<u32> {
        missing()
    }
    fn enabled_probe(&self, epid: Epid) -> io::Result<(EprobeDesc, Vec<RecDesc>)> {
        self.enabled.get(&epid).cloned().map_or_else(missing, Ok)
    }
    fn aggregation(&self, id: AggId) -> io::Result<(AggDesc, Vec<RecDesc>)> {
        self.aggregations.get(&id).cloned().map_or_else(missing, Ok)
    }
    fn go(&self) -> io::Result<u32> {
        missing()
    }
    fn stop(&self) -> io::Result<u32> {
        missing()
    }
    fn status(&self) -> io::Result<Status> {
        missing()
    }
    fn snapshot(&self, which: Buffer, cpu: u32, room: &mut [u8]) -> io::Result<Option<BufDesc>> {
        let taken = match which {
            Buffer::Principal => self.principal.borrow_mut().remove(&cpu),
            Buffer::Aggregation => self
                .aggregated
                .borrow_mut()
                .remove(&cpu)
                .map(|data| (data, 0)),
        };
        let Some((data, drops)) = taken else {
            return Ok(None);
        };
        room[..data.len()].copy_from_slice(&data);
        Ok(Some(BufDesc {
            size: data.len() as u64,
            cpu,
            drops,
            ..BufDesc::default()
        }))
    }
    fn reason(&self) -> String {
        String::new()
    }
}

/// A test's device, statements, options and consumer.
pub struct Bench {
    /// The device.
    pub tables: Tables,
    /// The statements.
    pub statements: Vec<Statement>,
    /// The options.
    pub options: Options,
    /// The consumer.
    pub consumer: Consumer,
    places: Places,
}

impl Default for Bench {
    fn default() -> Self {
        Self::new()
    }
}

impl Bench {
    /// Makes a bench whose records are consumed in the order of time.
    pub fn new() -> Self {
        let mut options = Options::default();
        options.set("temporal", None, Setter::User).unwrap();
        Self {
            tables: Tables::default(),
            statements: Vec::new(),
            options,
            consumer: Consumer::default(),
            places: Places::default(),
        }
    }

    /// Sets an option.
    pub fn set(&mut self, name: &str) {
        self.options.set(name, None, Setter::User).unwrap();
    }

    /// Adds probe `id` and an enabled probe of the same id, with fields of these statements,
    /// actions and sizes.
    pub fn probe(&mut self, id: u32, name: [&str; 4], fields: &[(Statement, Action, &[u32])]) {
        let [provider, module, func, name] = name;
        self.tables.probes.push(ProbeDesc {
            id,
            provider: fill(provider).unwrap(),
            module: fill(module).unwrap(),
            func: fill(func).unwrap(),
            name: fill(name).unwrap(),
        });
        let mut offset = size_of::<RecHdr>() as u32;
        let mut records = Vec::new();
        for (statement, action, sizes) in fields {
            self.statements.push(statement.clone());
            for size in *sizes {
                let uarg = statement::FIRST + self.statements.len() as u64 - 1;
                records.push(RecDesc {
                    action: *action as u32,
                    size: *size,
                    offset,
                    uarg,
                    ..RecDesc::default()
                });
                offset += size;
            }
        }
        let nrecs = records.len() as i32;
        let head = EprobeDesc {
            epid: id,
            probeid: id,
            size: offset,
            nrecs,
            ..EprobeDesc::default()
        };
        self.tables.enabled.insert(id, (head, records));
    }

    /// Adds a record of an enabled probe.
    pub fn record(&mut self, cpu: u32, epid: u32, time: u64, data: &[&[u8]]) {
        let mut buffers = self.tables.principal.borrow_mut();
        let (buffer, _) = buffers.entry(cpu).or_default();
        buffer.extend(RecHdr::new(epid, time).as_bytes());
        buffer.extend(data.concat());
    }

    /// Returns what reading needs of it, and the consumer and the options apart.
    pub fn parts(&mut self) -> (Context<'_>, &mut Consumer, &mut Options) {
        let context = Context {
            places: &self.places,
            device: &self.tables,
            statements: &self.statements,
            symbols: &NoSymbols,
            wait: &until_readable,
        };
        (context, &mut self.consumer, &mut self.options)
    }

    /// Consumes everything.
    pub fn consume(&mut self, to: &mut dyn Receiver) -> Result<(), ConsumeError> {
        let (context, consumer, options) = self.parts();
        consumer.read_aggregations(context, options, to)?;
        consumer.read_records(context, options, None, Some(0), to)?;
        consumer.yield_aggregations(context, options, to)
    }
}

/// The probe `BEGIN`.
pub const BEGIN: [&str; 4] = ["dtrace", "", "", "BEGIN"];
/// A probe of a system call.
pub const READ: [&str; 4] = ["syscall", "vmlinux", "read", "entry"];

/// Makes the statement of a `printf()`.
pub fn printf(format: &str, args: &[statement::Kind]) -> Statement {
    Statement::Printf(Print {
        format: Format::parse(format).unwrap(),
        args: args.to_vec(),
    })
}
