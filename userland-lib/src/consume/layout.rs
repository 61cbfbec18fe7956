// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! What the records in the buffers look like: descriptions that the kernel gives by number, checked once and kept.
//!
//! Invariant: every record of a kept description lies within its data, and the data within `size`; whoever has
//! `size` bytes of a record may take each of its fields without another check failing.

use super::fields::{Field, Group};
use super::{ConsumeError, Context};
use crate::handle::{text, Device};
use crate::statement::{self, AggVarId, Statement};
use dtrace_uapi::ioctl::{ProbeDesc, RecDesc, RecHdr};
use dtrace_uapi::types::{AggId, Epid, ProbeId};
use std::collections::HashMap;
use std::rc::Rc;
use zerocopy::FromZeros;

/// The largest data of one enabled probe or aggregation entry that is believed.
const DATA_MAX: u32 = 64 << 20;

/// A probe's name, as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProbeName {
    /// The probe's number.
    pub id: ProbeId,
    /// Provider.
    pub provider: String,
    /// Module.
    pub module: String,
    /// Function.
    pub func: String,
    /// Name.
    pub name: String,
}

impl From<&ProbeDesc> for ProbeName {
    fn from(desc: &ProbeDesc) -> Self {
        Self {
            id: desc.id,
            provider: text(&desc.provider),
            module: text(&desc.module),
            func: text(&desc.func),
            name: text(&desc.name),
        }
    }
}

impl std::fmt::Display for ProbeName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{}:{}:{}:{}",
            self.provider, self.module, self.func, self.name
        )
    }
}

/// An enabled probe.
#[derive(Debug)]
pub struct EnabledProbe {
    /// Its number.
    pub epid: Epid,
    /// The probe.
    pub probe: Rc<ProbeName>,
    /// The number of its clause.
    pub clause: u64,
    /// Size of a record of it, with its head.
    pub size: usize,
    /// The fields, by their statements.
    pub groups: Vec<Group>,
    /// Whether this is the library's own clause of `dtrace:::ERROR`.
    pub is_error: bool,
}

/// An aggregation: what one aggregating action of one enabled probe makes.
#[derive(Debug)]
pub struct Aggregation {
    /// Size of an entry, with the number in front.
    pub size: usize,
    /// The variable; 0 for one of nobody's.
    pub var: AggVarId,
    /// The keys.
    pub keys: Vec<Field>,
    /// The value; its `action` is the function.
    pub value: RecDesc,
}

/// All descriptions seen so far.
#[derive(Debug, Default)]
pub struct Layouts {
    probes: HashMap<ProbeId, Rc<ProbeName>>,
    enabled: HashMap<Epid, Rc<EnabledProbe>>,
    aggregations: HashMap<AggId, Rc<Aggregation>>,
}

impl Layouts {
    /// The enabled probe `epid`.
    pub fn enabled(
        &mut self,
        context: Context<'_>,
        epid: Epid,
    ) -> Result<Rc<EnabledProbe>, ConsumeError> {
        if let Some(known) = self.enabled.get(&epid) {
            return Ok(Rc::clone(known));
        }
        let (head, fields) = context.device.enabled_probe(epid)?;
        // A clause that records nothing has no size. Should a record of it turn up, it is a head alone.
        let size = match head.size {
            0 => size_of::<RecHdr>() as u32,
            size => size,
        };
        check(&fields, size_of::<RecHdr>(), size)?;
        let probe = self.probe(context.device, head.probeid)?;
        let groups = Group::all(&fields, context.statements);
        let first = groups.first();
        let first = first.and_then(|group| group.statement(context.statements));
        let enabled = Rc::new(EnabledProbe {
            epid,
            probe,
            clause: head.uarg,
            size: size as usize,
            groups,
            is_error: first == Some(&Statement::Error),
        });
        self.enabled.insert(epid, Rc::clone(&enabled));
        Ok(enabled)
    }

    /// The probe `id`. One that has gone meanwhile (its module was unloaded) has no name.
    pub fn probe(
        &mut self,
        device: &dyn Device,
        id: ProbeId,
    ) -> Result<Rc<ProbeName>, ConsumeError> {
        if let Some(known) = self.probes.get(&id) {
            return Ok(Rc::clone(known));
        }
        let mut pattern = ProbeDesc::new_zeroed();
        pattern.id = id.saturating_sub(1);
        let name = match device.next_probe(&pattern)? {
            Some(desc) if desc.id == id => ProbeName::from(&desc),
            _ => ProbeName {
                id,
                ..ProbeName::default()
            },
        };
        let name = Rc::new(name);
        self.probes.insert(id, Rc::clone(&name));
        Ok(name)
    }

    /// The aggregation `id`.
    pub fn aggregation(
        &mut self,
        context: Context<'_>,
        id: AggId,
    ) -> Result<Rc<Aggregation>, ConsumeError> {
        if let Some(known) = self.aggregations.get(&id) {
            return Ok(Rc::clone(known));
        }
        let (head, mut fields) = context.device.aggregation(id)?;
        check(&fields, size_of::<AggId>(), head.size)?;
        let value = fields
            .pop()
            .ok_or(ConsumeError::Layout("an aggregation has no value"))?;
        let (var, kinds) = match statement::find(context.statements, statement::FIRST, value.uarg) {
            Some(Statement::Aggregate { var, keys }) => (*var, &keys[..]),
            _ => (0, &[][..]),
        };
        // An increment given to a quantization has a record without size.
        let keys = fields.iter().filter(|key| key.size > 0).enumerate();
        let aggregation = Rc::new(Aggregation {
            size: head.size as usize,
            var,
            keys: keys
                .map(|(at, key)| Field::new(kinds.get(at).copied(), key))
                .collect(),
            value,
        });
        self.aggregations.insert(id, Rc::clone(&aggregation));
        Ok(aggregation)
    }
}

/// Whether `fields` lie between a head of `head` bytes and the end of `size` bytes.
fn check(fields: &[RecDesc], head: usize, size: u32) -> Result<(), ConsumeError> {
    if size > DATA_MAX || (size as usize) < head {
        return Err(ConsumeError::Layout("a record has an impossible size"));
    }
    let fits = |field: &RecDesc| {
        field.size == 0
            || (field.offset as usize >= head
                && field
                    .offset
                    .checked_add(field.size)
                    .is_some_and(|end| end <= size))
    };
    if fields.iter().all(fits) {
        Ok(())
    } else {
        Err(ConsumeError::Layout("a field exceeds its record"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(offset: u32, size: u32) -> RecDesc {
        RecDesc {
            offset,
            size,
            ..RecDesc::default()
        }
    }

    #[test]
    fn fields_must_lie_behind_the_head_and_within_the_record() {
        assert!(check(&[field(12, 4), field(16, 8), field(0, 0)], 12, 24).is_ok());
        for (fields, size) in [
            (vec![field(8, 4)], 24),
            (vec![field(20, 8)], 24),
            (vec![field(u32::MAX, 8)], 24),
            (vec![], 11),
            (vec![], u32::MAX),
        ] {
            assert!(check(&fields, 12, size).is_err(), "{fields:?} {size}");
        }
    }
}
