// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The layouts of records: descriptions that the kernel supplies by number, validated once and
//! kept.
//!
//! Invariant: every field of a kept description that is not empty lies behind the head and within
//! `size`. So with `size` bytes of a record, reading any of its fields cannot fail.

use super::fields::{Field, Group};
use super::{ConsumeError, Context};
use crate::device::{text, Device};
use dtrace_compiler::statement::{self, AggVarId, Statement};
use dtrace_uapi::ioctl::{ProbeDesc, RecDesc, RecHdr};
use dtrace_uapi::types::{AggId, Epid, ProbeId};
use std::collections::HashMap;
use std::rc::Rc;
use zerocopy::FromZeros;

/// Maximum accepted size of a record or an aggregation entry, bytes. Larger ones are treated as
/// inconsistent.
const DATA_MAX: u32 = 64 << 20;

/// A probe's name, as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProbeName {
    /// The probe's id.
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

/// An enabled probe: a probe with one of its clauses.
#[derive(Debug)]
pub struct EnabledProbe {
    /// Its id.
    pub epid: Epid,
    /// The probe.
    pub probe: Rc<ProbeName>,
    /// The number of its clause.
    pub clause: u64,
    /// Size of one of its records with the head, bytes.
    pub size: usize,
    /// The fields, grouped by statement.
    pub(super) groups: Vec<Group>,
    /// Whether this is the library's own clause of `dtrace:::ERROR`.
    pub is_error: bool,
}

/// The layout of the entries of one aggregating action of one enabled probe.
#[derive(Debug)]
pub struct Aggregation {
    /// Size of an entry with the id before it, bytes.
    pub size: usize,
    /// The variable; 0 if no statement of the consumer describes the action.
    pub var: AggVarId,
    /// The keys.
    pub keys: Vec<Field>,
    /// The value; its `action` is the function.
    pub value: RecDesc,
}

/// All descriptions that were read so far.
#[derive(Debug, Default)]
pub struct Layouts {
    probes: HashMap<ProbeId, Rc<ProbeName>>,
    enabled: HashMap<Epid, Rc<EnabledProbe>>,
    aggregations: HashMap<AggId, Rc<Aggregation>>,
}

impl Layouts {
    /// Returns the enabled probe `epid`. Fails if the device does not know it or its description is
    /// inconsistent.
    pub fn enabled(
        &mut self,
        context: Context<'_>,
        epid: Epid,
    ) -> Result<Rc<EnabledProbe>, ConsumeError> {
        if let Some(known) = self.enabled.get(&epid) {
            return Ok(Rc::clone(known));
        }
        let (head, fields) = context.device.enabled_probe(epid)?;
        // A clause that records nothing has size 0. If a record of it appears, it can be only a
        // head.
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

    /// Returns the probe `id`. A probe that no longer exists (its module was unloaded) has empty
    /// names.
    pub fn probe(
        &mut self,
        device: &dyn Device,
        id: ProbeId,
    ) -> Result<Rc<ProbeName>, ConsumeError> {
        if let Some(known) = self.probes.get(&id) {
            return Ok(Rc::clone(known));
        }
        // `next_probe` returns the first probe with a greater id than the pattern's.
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

    /// Returns the aggregation `id`. Fails if the device does not know it or its description is
    /// inconsistent.
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
        // The increment given to a distribution has a field without size, which is not a key.
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

/// Checks that all `fields` that are not empty lie between a head of `head` bytes and the end of
/// `size` bytes.
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
