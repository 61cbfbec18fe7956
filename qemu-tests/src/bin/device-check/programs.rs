// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Builds DIF programs by hand, and decodes what they recorded.

use crate::done;
use dtrace::device::{Buffer, DevDtrace, Device};
use dtrace::dof;
use dtrace::pattern::ProbePattern;
use dtrace::program::{ActionDesc, Clause, Difo, Program};
use dtrace::source::Span;
use dtrace_uapi::action::Action;
use dtrace_uapi::dif::{Instr, Op};
use dtrace_uapi::ioctl::RecHdr;
use dtrace_uapi::limits::buffer_room;
use dtrace_uapi::option::Opt;
use dtrace_uapi::types::DifType;
use dtrace_uapi::var::Var;
use zerocopy::FromBytes;

fn int() -> DifType {
    DifType {
        size: 8,
        ..DifType::default()
    }
}

fn difo(text: &[Instr], ints: &[u64]) -> Difo {
    Difo {
        text: text.to_vec(),
        ints: ints.to_vec(),
        strings: vec![0],
        rtype: int(),
        spans: vec![Span::default(); text.len()],
        ..Difo::default()
    }
}

/// Returns the number `n`.
pub fn constant(n: u64) -> Difo {
    difo(
        &[Instr::indexed(Op::Setx, 0, 1), Instr::fmt(Op::Ret, 0, 0, 1)],
        &[n],
    )
}

/// Returns `*(uint64_t *)addr`.
pub fn load(addr: u64) -> Difo {
    difo(
        &[
            Instr::indexed(Op::Setx, 0, 1),
            Instr::fmt(Op::Ldx, 1, 0, 1),
            Instr::fmt(Op::Ret, 0, 0, 1),
        ],
        &[addr],
    )
}

/// Returns a built-in variable.
pub fn variable(id: Var) -> Difo {
    difo(
        &[
            Instr::indexed(Op::Ldgs, id as u16, 1),
            Instr::fmt(Op::Ret, 0, 0, 1),
        ],
        &[],
    )
}

pub fn action(kind: Action, difo: Difo) -> ActionDesc {
    ActionDesc {
        kind,
        difo: Some(difo),
        format: None,
        ntuple: 0,
        arg: 0,
        uarg: 1,
    }
}

/// A clause at `probes` (`provider:module:function:name`).
pub fn clause(probes: &str, actions: Vec<ActionDesc>) -> Clause {
    let mut parts = probes.split(':').map(String::from);
    let mut part = || parts.next().unwrap_or_default();
    Clause {
        probes: ProbePattern {
            id: 0,
            provider: part(),
            module: part(),
            func: part(),
            name: part(),
        },
        predicate: None,
        actions,
        number: 0,
        span: Span::default(),
    }
}

/// An image that traces the values at each probe description.
pub fn tracing(clauses: Vec<(&str, Vec<Difo>)>) -> Vec<u8> {
    let trace = |difo| action(Action::Difexpr, difo);
    let clauses = clauses
        .into_iter()
        .map(|(probes, values)| clause(probes, values.into_iter().map(trace).collect()))
        .collect();
    image(clauses)
}

pub fn image(clauses: Vec<Clause>) -> Vec<u8> {
    let program = Program {
        clauses,
        first_uarg: 1,
        ..Program::default()
    };
    let options = [(Opt::Bufsize, 64 << 10), (Opt::Aggsize, 64 << 10)];
    dof::emit(&program, &options)
}

/// The action `@ = count()`.
pub fn counted() -> ActionDesc {
    ActionDesc {
        difo: None,
        ..action(Action::Count, constant(0))
    }
}

/// An image of `@ = count()` at `probes`.
pub fn counting(probes: &str) -> Vec<u8> {
    image(vec![clause(probes, vec![counted()])])
}

/// An image for checks of the calls that describe probes, records and formats.
pub fn described() -> Vec<u8> {
    let formatted = ActionDesc {
        format: Some("<%d>".into()),
        ..action(Action::Printf, constant(1))
    };
    image(vec![
        clause("dtrace:::BEGIN", vec![formatted]),
        clause("dtrace:::END", vec![counted()]),
    ])
}

/// Reads every CPU's principal buffer. Returns each record's probe ID and 8-byte values, in the
/// order of time.
pub fn records(device: &DevDtrace) -> Result<Vec<(u32, Vec<u64>)>, String> {
    let mut found = Vec::new();
    for cpu in 0..device.cpus() {
        let mut room = vec![0; buffer_room(64 << 10) as usize];
        let taken = device.snapshot(Buffer::Principal, cpu, &mut room);
        let Some(desc) = done(device, "snapshot", taken)? else {
            continue;
        };
        ensure!(desc.drops == 0, "CPU {cpu} dropped {}", desc.drops);
        let mut rest = &room[..desc.size as usize];
        while let Ok((head, _)) = RecHdr::read_from_prefix(rest) {
            if head.epid == 0 {
                rest = &rest[4..];
                continue;
            }
            let probe = device.enabled_probe(head.epid);
            let (desc, recs) = done(device, "EPROBE", probe)?;
            ensure!(desc.size as usize <= rest.len(), "a record is cut off");
            let value = |offset: usize| {
                let bytes = rest.get(offset..offset + 8)?;
                Some(u64::from_ne_bytes(bytes.try_into().ok()?))
            };
            let values = recs.iter().filter_map(|rec| value(rec.offset as usize));
            found.push((head.timestamp(), desc.probeid, values.collect()));
            rest = &rest[desc.size as usize..];
        }
    }
    found.sort_by_key(|(time, ..)| *time);
    let found = found.into_iter().map(|(_, probe, values)| (probe, values));
    Ok(found.collect())
}

/// The sum of all CPUs' counts.
pub fn count(device: &DevDtrace) -> Result<u64, String> {
    let mut sum = 0;
    for cpu in 0..device.cpus() {
        let mut room = vec![0; 64 << 10];
        let taken = device.snapshot(Buffer::Aggregation, cpu, &mut room);
        let Some(desc) = done(device, "AGGSNAP", taken)? else {
            continue;
        };
        if desc.size < 8 {
            continue;
        }
        let (_, recs) = done(device, "AGGDESC", device.aggregation(1))?;
        let rec = recs.last().ok_or("an aggregation without records")?;
        let at = rec.offset as usize;
        let bytes = room.get(at..at + 8).ok_or("a record out of its buffer")?;
        sum += u64::from_ne_bytes(bytes.try_into().map_err(|_| "short")?);
    }
    Ok(sum)
}
